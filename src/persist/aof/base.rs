//! Writes a base: all data at one moment, while everybody goes on.
use std::io;
use std::path::{Path, PathBuf};

use super::encode::{Encoder, command};
use crate::base::clock;
use crate::cmd::cx::WriteStores;
use crate::config::{P, Settings};
use crate::persist::commands::head;
use crate::persist::rdb_target::{Failure, Plan};
use crate::persist::snapshot::{Purpose, begin, is_under_way};
use crate::rdb::file;
use crate::rt;
use crate::script;
use crate::shard::hold::{Stores, hold_all};
use crate::shard::local::Local;
use crate::store::snapshot::Encode;

/// Milliseconds between two looks at whether a walk is through.
const LOOK_MS: u64 = 1;

/// Whether bases are in the snapshot format.
pub fn is_snapshot(settings: &Settings) -> bool {
    settings.bool(P::AOF_USE_RDB_PREAMBLE)
}

fn plan(path: &Path, is_snapshot: bool, settings: &Settings) -> Plan {
    let mut temporary = path.as_os_str().to_owned();
    temporary.push(".part");
    Plan {
        target: path.to_path_buf(),
        temporary: PathBuf::from(temporary),
        is_snapshot,
        has_checksum: settings.bool(P::RDBCHECKSUM),
        syncs_often: settings.bool(P::AOF_REWRITE_INCREMENTAL_FSYNC),
    }
}

/// What a base that is a log of its own begins with.
fn first_commands(settings: &Settings) -> Vec<u8> {
    let mut out = Vec::new();
    if settings.bool(P::AOF_TIMESTAMP_ENABLED) {
        out.extend_from_slice(format!("#TS:{}\r\n", clock::wall_ms() / 1000).as_bytes());
    }
    for library in script::commands::known().libraries.all().1 {
        command(&mut out, &[b"FUNCTION", b"LOAD", &library.code]);
    }
    out
}

/// Writes all data to a new file, as a snapshot or as commands. `at_cut` runs while all shards are held, at the moment that the data is of.
///
/// # Errors
/// What the system answers, or `at_cut`, which may have run or not.
pub async fn write_base(
    local: &Local,
    (path, is_snapshot): (&Path, bool),
    at_cut: impl FnOnce(&mut Stores<'_>) -> io::Result<()>,
) -> io::Result<()> {
    let (sender, receiver) = flume::bounded(1);
    // One that was given up leaves marks, which soon are gone.
    while hold_all(local, |stores, _| is_under_way(WriteStores::Many(stores).all())).await {
        rt::sleep_ms(LOOK_MS).await;
    }
    hold_all(local, |stores, now| {
        at_cut(stores)?;
        let host = &local.shared.host;
        let settings = host.settings();
        let mut stores = WriteStores::Many(stores);
        let first = match is_snapshot {
            true => head(stores.all(), host, true),
            false => first_commands(&settings),
        };
        let encoder = || match is_snapshot {
            true => Box::new(file::Encoder::new(&settings, now)) as Box<dyn Encode>,
            false => Box::new(Encoder),
        };
        let what = (plan(path, is_snapshot, &settings), Purpose::Base);
        let then = move |ended| drop(sender.send(ended));
        begin(&mut stores, &host.persistence, what, first, &encoder, then)?;
        local.door(now).spread(stores);
        Ok::<(), io::Error>(())
    })
    .await?;
    match rt::received(&receiver).await {
        Some(Ok(_)) => Ok(()),
        Some(Err(Failure::Io(error))) => Err(error),
        Some(Err(Failure::Aborted)) | None => Err(io::Error::other("the writing of the file was given up")),
    }
}
