//! Writes a base: all data at one moment.
use std::io::{self, Write};
use std::path::Path;

use super::encode::{Encoder, command};
use crate::base::clock;
use crate::cmd::cx::Held;
use crate::config::{P, Settings};
use crate::host::{Allocated, Host};
use crate::rdb::crc64::crc64;
use crate::rdb::file;
use crate::rt::disk::File;
use crate::script;
use crate::shard::hold::{Stores, hold_all};
use crate::shard::local::Local;
use crate::store::snapshot::Encode;
use crate::store::{Store, count_keys};

/// Bytes of commands that are written at once.
const CHUNK_BYTES: usize = 256 * 1024;
/// Bytes after which a large base is flushed, so that the disk is not flooded at its end.
const SYNC_BYTES: u64 = 4 << 20;

/// Whether bases are in the snapshot format.
pub fn is_snapshot(settings: &Settings) -> bool {
    settings.bool(P::AOF_USE_RDB_PREAMBLE)
}

/// A file that is flushed now and then while it grows.
struct Target {
    file: File,
    buffer: Vec<u8>,
    checksum: u64,
    unsynced: u64,
    syncs_often: bool,
}

impl Target {
    fn put(&mut self) -> io::Result<()> {
        self.file.write_all(&self.buffer)?;
        self.checksum = crc64(self.checksum, &self.buffer);
        self.unsynced += self.buffer.len() as u64;
        self.buffer.clear();
        if self.syncs_often && self.unsynced >= SYNC_BYTES {
            self.unsynced = 0;
            self.file.sync()?;
        }
        Ok(())
    }
}

/// Writes all data to a new file. `at_cut` runs while all shards are held, at the moment that the data is of.
///
/// # Errors
/// What the system answers. `at_cut` may have run or not.
pub async fn write_base(local: &Local, path: &Path, at_cut: impl FnOnce(&mut Stores<'_>)) -> io::Result<()> {
    let settings = local.shared.host.settings();
    let mut target = Target {
        file: File::create(path)?,
        buffer: Vec::new(),
        checksum: 0,
        unsynced: 0,
        syncs_often: settings.bool(P::AOF_REWRITE_INCREMENTAL_FSYNC),
    };
    hold_all(local, |stores, now| {
        at_cut(stores);
        if is_snapshot(&settings) {
            target.buffer = head(stores, &local.shared.host);
            write_stores(stores, &mut file::Encoder::new(&settings, now), &mut target)
        } else {
            if settings.bool(P::AOF_TIMESTAMP_ENABLED) {
                target.buffer.extend_from_slice(format!("#TS:{}\r\n", clock::wall_ms() / 1000).as_bytes());
            }
            for library in script::commands::known().libraries.all().1 {
                command(&mut target.buffer, &[b"FUNCTION", b"LOAD", &library.code]);
            }
            write_stores(stores, &mut Encoder, &mut target)
        }
    })
    .await?;
    if is_snapshot(&settings) {
        target.buffer.push(file::op::END);
        target.put()?;
        let sum = if settings.bool(P::RDBCHECKSUM) { target.checksum } else { 0 };
        target.buffer.extend_from_slice(&sum.to_le_bytes());
    }
    target.put()?;
    target.file.sync()
}

fn all<'a>(stores: &'a Stores<'_>) -> impl Iterator<Item = &'a Store> {
    (0..stores.shards()).filter_map(|shard| stores.get(shard))
}

fn databases(stores: &Stores<'_>) -> u32 {
    all(stores).map(|store| store.databases()).max().unwrap_or(0) as u32
}

/// The head of a base in the snapshot format.
fn head(stores: &Stores<'_>, host: &Host) -> Vec<u8> {
    let libraries = script::commands::known().libraries.all().1;
    let counted = (0..databases(stores)).map(|db| (db, count_keys(all(stores), db)));
    let counted: Vec<_> = counted.filter(|(_, counts)| counts.keys > 0).collect();
    file::Head {
        has_field_deadlines: counted.iter().any(|(_, counts)| counts.dated_parts > 0),
        time_s: clock::wall_ms() / 1000,
        used_memory: Allocated::read().allocated,
        is_base: true,
        libraries: libraries.iter().map(|library| &*library.code).collect(),
        sizes: counted
            .iter()
            .map(|(db, counts)| file::DbSize {
                db: *db,
                keys: counts.keys as u64,
                deadlines: counts.deadlines as u64,
            })
            .collect(),
    }
    .write(host.settings().bool(P::RDBCOMPRESSION))
}

fn write_stores(stores: &Stores<'_>, encoder: &mut dyn Encode, target: &mut Target) -> io::Result<()> {
    let mut outcome = Ok(());
    for index in 0..databases(stores) {
        let mut is_selected = false;
        for db in all(stores).filter_map(|store| store.db(index)) {
            db.table.for_each(|block| {
                if outcome.is_err() {
                    return;
                }
                if !std::mem::replace(&mut is_selected, true) {
                    encoder.select(index, &mut target.buffer);
                }
                encoder.key(block, &mut target.buffer);
                if target.buffer.len() >= CHUNK_BYTES {
                    outcome = target.put();
                }
            });
        }
    }
    outcome
}
