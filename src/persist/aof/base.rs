//! Writes a base: all data at one moment.
use std::io::{self, Write};
use std::path::Path;

use super::encode::{Encoder, command};
use crate::base::clock;
use crate::cmd::cx::Held;
use crate::config::{P, Settings};
use crate::rt::disk::File;
use crate::script;
use crate::shard::hold::{Stores, hold_all};
use crate::shard::local::Local;

/// Bytes of commands that are written at once.
const CHUNK_BYTES: usize = 256 * 1024;
/// Bytes after which a large base is flushed, so that the disk is not flooded at its end.
const SYNC_BYTES: u64 = 4 << 20;

/// Whether bases are in the snapshot format.
pub fn is_snapshot(_settings: &Settings) -> bool {
    false
}

/// A file that is flushed now and then while it grows.
struct Target {
    file: File,
    buffer: Vec<u8>,
    unsynced: u64,
    syncs_often: bool,
}

impl Target {
    fn put(&mut self) -> io::Result<()> {
        self.file.write_all(&self.buffer)?;
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
        unsynced: 0,
        syncs_often: settings.bool(P::AOF_REWRITE_INCREMENTAL_FSYNC),
    };
    if settings.bool(P::AOF_TIMESTAMP_ENABLED) {
        target.buffer.extend_from_slice(format!("#TS:{}\r\n", clock::wall_ms() / 1000).as_bytes());
    }
    hold_all(local, |stores, _| {
        at_cut(stores);
        for library in script::commands::known().libraries.all().1 {
            command(&mut target.buffer, &[b"FUNCTION", b"LOAD", &library.code]);
        }
        write_stores(stores, &mut target)
    })
    .await?;
    target.put()?;
    target.file.sync()
}

fn write_stores(stores: &Stores<'_>, target: &mut Target) -> io::Result<()> {
    let all = || (0..stores.shards()).filter_map(|shard| stores.get(shard));
    let databases = all().map(|store| store.databases()).max().unwrap_or(0);
    let (mut encoder, mut outcome) = (Encoder::default(), Ok(()));
    for index in 0..databases as u32 {
        for db in all().filter_map(|store| store.db(index)) {
            db.table.for_each(|block| {
                if outcome.is_err() {
                    return;
                }
                encoder.key(index, block, &mut target.buffer);
                if target.buffer.len() >= CHUNK_BYTES {
                    outcome = target.put();
                }
            });
        }
    }
    outcome
}
