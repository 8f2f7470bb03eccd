//! SAVE, LASTSAVE, DEBUG RELOAD.
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::insert::How;
use super::load::{self, Placer};
use super::rdb_target::{Plan, Target, log_failure};
use super::snapshot::save_delay_us;
use crate::base::clock;
use crate::cmd::cx::{ConnCx, ReadCx, WriteCx};
use crate::cmd::spec::{Done, Group::Server as S, Route, Spec, flag, gate};
use crate::config::{P, Settings};
use crate::host::Host;
use crate::rdb::file::{DbSize, Encoder, Head};
use crate::rt::disk::File;
use crate::rt::log::{Level, line};
use crate::script::commands::known;
use crate::store::snapshot::Encode;
use crate::store::{Now, Store};
use crate::wire::{Args, Error, Out};

/// The rows.
pub const COMMANDS: &[Spec] = &[
    Spec::conn("lastsave", "", lastsave)
        .doc(S, "1.0.0", "Tells when the last snapshot was complete, in seconds since 1970.")
        .with(flag::FAST)
        .cat(&["admin", "dangerous"])
        .tips(&["nondeterministic_output"]),
    Spec::read("save", "", save)
        .doc(S, "1.0.0", "Writes a snapshot while everybody waits.")
        .cost("O(N) where N is the number of keys.")
        .without(flag::READONLY | flag::NO_INTERCEPT)
        .with(flag::ADMIN | flag::NOSCRIPT | flag::NO_MULTI | flag::NO_ASYNC_LOADING)
        .route(Route::All),
];

/// The row of a subcommand of DEBUG.
pub const DEBUG_RELOAD: Spec = Spec::write("debug|reload", "[MERGE] [NOFLUSH] [NOSAVE]", reload)
    .doc(S, "1.0.0", "Saves all data, empties all databases and loads them again.")
    .without(flag::WRITE | flag::NO_INTERCEPT)
    .with(flag::ADMIN | flag::NOSCRIPT | flag::LOADING | flag::STALE | flag::PROTECTED)
    .route(Route::All);

/// Bytes that are sent at a time, and how many may wait for the disk.
const PIECE_BYTES: usize = 1 << 20;
const WAITING_BYTES_MAX: u64 = 64 << 20;

fn lastsave(cx: &mut ConnCx<'_>, _: &mut Args<'_>, out: &mut Out) -> Done {
    out.int(cx.host.persistence.saved_s.load(Ordering::Relaxed) as i64);
    Ok(())
}

/// Has writes go by the gates where they may have to be refused: to be called whenever a snapshot or the log has failed,
/// or does no more.
pub fn heed_trouble(host: &Host) {
    if host.persistence.is_troubled() {
        host.gates.fetch_or(gate::DISK_TROUBLE, Ordering::SeqCst);
    } else {
        host.gates.fetch_and(!gate::DISK_TROUBLE, Ordering::SeqCst);
    }
}

/// Where a snapshot goes by the settings in force.
pub fn plan(settings: &Settings) -> Plan {
    Plan {
        target: settings.path(P::DBFILENAME).to_path_buf(),
        temporary: PathBuf::from(format!("temp-{}.rdb", std::process::id())),
        is_snapshot: true,
        has_checksum: settings.bool(P::RDBCHECKSUM),
        syncs_often: settings.bool(P::RDB_SAVE_INCREMENTAL_FSYNC),
    }
}

/// The head of a file with the keys of these stores.
pub fn head<'s>(stores: impl Iterator<Item = &'s Store>, host: &Host, is_base: bool) -> Vec<u8> {
    let settings = host.settings();
    let mut sizes: Vec<DbSize> = Vec::new();
    let mut has_field_deadlines = false;
    for store in stores {
        for index in 0..store.databases() as u32 {
            let Some(db) = store.db(index).filter(|db| !db.table.is_empty()) else { continue };
            has_field_deadlines |= db.dated_parts > 0;
            let (keys, deadlines) = (db.table.len() as u64, db.deadlines as u64);
            match sizes.iter_mut().find(|size| size.db == index) {
                Some(size) => {
                    size.keys += keys;
                    size.deadlines += deadlines;
                }
                None => sizes.push(DbSize { db: index, keys, deadlines }),
            }
        }
    }
    sizes.sort_by_key(|size| size.db);
    let libraries = known().libraries.all().1;
    let libraries = libraries.iter().map(|library| &library.code[..]).collect();
    let used_memory = host.memory().allocator.allocated;
    let time_s = clock::wall_ms() / 1000;
    Head { has_field_deadlines, time_s, used_memory, is_base, libraries, sizes }
        .write(settings.bool(P::RDBCOMPRESSION))
}

/// Writes all keys, and waits until they are on the disk. `false`: they are not, and the log says why.
pub(super) fn save_all<'s>(stores: impl Iterator<Item = &'s Store> + Clone, host: &Host, now: Now) -> bool {
    let settings = host.settings();
    let state = &host.persistence;
    state.saves.fetch_add(1, Ordering::Relaxed);
    let changes = host.sum(|counters| &counters.dirty);
    let plan = plan(&settings);
    let (sender, ended) = flume::bounded(1);
    let target = match Target::start(plan.clone(), 1, move |end| drop(sender.send(end))) {
        Ok(target) => target,
        Err(error) => {
            log_failure(&super::rdb_target::Failure::Io(error), &plan);
            return false;
        }
    };
    target.send(0, head(stores.clone(), host, false), false);
    let mut encoder = Encoder::new(&settings, now);
    for store in stores {
        send_store(store, &mut encoder, &target);
    }
    target.finish();
    match ended.recv() {
        Ok(Ok(_)) => {
            state.note_saved(clock::wall_ms() / 1000, changes);
            heed_trouble(host);
            line(Level::Notice, "DB saved on disk");
            true
        }
        Ok(Err(failure)) => {
            log_failure(&failure, &plan);
            false
        }
        Err(_) => false,
    }
}

fn send_store(store: &Store, encoder: &mut Encoder, target: &Target) {
    let key_us = save_delay_us(&store.settings);
    let mut out = target.buffer();
    for index in 0..store.databases() as u32 {
        let Some(db) = store.db(index) else { continue };
        let mut is_selected = false;
        db.table.for_each(|block| {
            if target.has_failed() {
                return;
            }
            if !std::mem::replace(&mut is_selected, true) {
                encoder.select(index, &mut out);
            }
            encoder.key(block, &mut out);
            if key_us > 0 {
                std::thread::sleep(Duration::from_micros(key_us));
            }
            if out.len() >= PIECE_BYTES {
                while target.in_flight(0) > WAITING_BYTES_MAX {
                    std::thread::sleep(Duration::from_millis(1));
                }
                target.send(0, std::mem::replace(&mut out, target.buffer()), false);
            }
        });
    }
    if !out.is_empty() {
        target.send(0, out, false);
    }
}

fn save(cx: &ReadCx<'_>, _: &mut Args<'_>, out: &mut Out) -> Done {
    if cx.host.persistence.save_began_s.load(Ordering::Relaxed) >= 0 {
        return Err(Error::err("Background save already in progress"));
    }
    let stores: Vec<&Store> = cx.all().collect();
    if !save_all(stores.iter().copied(), cx.host, cx.now) {
        return Err(Error::line("ERR".into()));
    }
    out.ok();
    Ok(())
}

fn reload(cx: &mut WriteCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    let (mut merge, mut flush, mut saves) = (false, true, true);
    while !args.is_done() {
        if args.keyword("MERGE") {
            merge = true;
        } else if args.keyword("NOFLUSH") {
            flush = false;
        } else if args.keyword("NOSAVE") {
            saves = false;
        } else {
            let text = "DEBUG RELOAD only supports the MERGE, NOFLUSH and NOSAVE options.";
            return Err(Error::err(text));
        }
    }
    let (host, now) = (cx.host, cx.now);
    if saves && !save_all(cx.stores.all(), host, now) {
        return Err(Error::line("ERR".into()));
    }
    if flush {
        cx.for_all(Store::flush_all);
        known().libraries.flush();
    }
    let settings = host.settings();
    let how = How { replaces: merge, ..How::of(&settings) };
    let path = settings.path(P::DBFILENAME);
    let loaded = File::open(path).and_then(|file| file.len().map(|bytes| (file, bytes)));
    let loaded = loaded.map_err(|error| super::rdb_stream::Refusal::new(0, crate::host::error_text(&error)));
    let loaded = loaded.and_then(|(file, bytes)| {
        load::read(file, (bytes, 0), host, &how, &mut Placer::new(&mut cx.stores, &how))
    });
    match loaded {
        Ok(_) => {
            if saves {
                // What was emptied and loaded again is what was saved.
                let changes = host.sum(|counters| &counters.dirty);
                host.persistence.saved_changes.store(changes, Ordering::Relaxed);
            }
            line(Level::Warning, "DB reloaded by DEBUG RELOAD");
            out.ok();
            Ok(())
        }
        Err(refusal) => {
            load::log_refusal(path, &refusal);
            Err(Error::err("Error trying to load the RDB dump, check server logs."))
        }
    }
}
