//! BGSAVE, and snapshots that the server takes by itself.
//!
//! Must stay true: a snapshot and a rewriting of the log never go on at once; what was scheduled begins when nothing goes
//! on any more; a failure refuses writes only where the settings say so (`Persistence::refusal`).
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use super::commands::{head, plan};
use super::rdb_target::{Ended, Failure, Plan, log_failure};
use super::snapshot::{Purpose, begin, is_under_way};
use crate::base::clock;
use crate::cmd::cx::{WriteCx, WriteStores};
use crate::cmd::spec::{Done, Group::Server as S, Route, Spec, flag};
use crate::host::{Host, Persistence};
use crate::rdb::file::Encoder;
use crate::rt::log::{Level, line};
use crate::shard::hold::hold_all;
use crate::shard::local::Local;
use crate::store::Now;
use crate::wire::{Args, Error, Out};

/// The rows.
pub const COMMANDS: &[Spec] = &[Spec::write("bgsave", "[SCHEDULE]", bgsave)
    .doc(S, "1.0.0", "Writes a snapshot while everybody goes on.")
    .without(flag::WRITE | flag::NO_INTERCEPT)
    .with(flag::ADMIN | flag::NOSCRIPT | flag::NO_ASYNC_LOADING)
    .route(Route::All)];

/// Seconds after which a snapshot that failed is tried again by itself.
const RETRY_S: u64 = 5;

fn bgsave(cx: &mut WriteCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    let may_wait = match args.is_done() {
        true => false,
        false if args.keyword("SCHEDULE") && args.is_done() => true,
        false => return Err(Error::Syntax),
    };
    let (host, now) = (cx.host, cx.now);
    if is_saving(&host.persistence) {
        return Err(Error::err("Background save already in progress"));
    }
    if host.rewrites.lock().is_running() || is_under_way(cx.stores.all()) {
        // Of snapshots that were given up only marks are left, which soon are gone.
        if may_wait || !host.rewrites.lock().is_running() {
            host.persistence.is_scheduled.store(true, Relaxed);
            out.simple("Background saving scheduled");
            return Ok(());
        }
        return Err(Error::err(
            "Another child process is active (AOF?): can't BGSAVE right now. Use BGSAVE SCHEDULE in order to schedule \
             a BGSAVE whenever possible.",
        ));
    }
    begin_save(&mut cx.stores, host, now)
        .map_err(|error| Error::err(format_args!("{}", crate::host::error_text(&error))))?;
    out.simple("Background saving started");
    Ok(())
}

/// Whether a snapshot is being written in the background.
pub fn is_saving(state: &Persistence) -> bool {
    state.save_began_s.load(Relaxed) >= 0
}

/// Begins a snapshot of these stores, which are all.
///
/// # Errors
/// When another goes on, or there can be no more threads.
pub fn begin_save(stores: &mut WriteStores<'_>, host: &Host, now: Now) -> io::Result<()> {
    let settings = host.settings();
    let (state, began_s) = (host.persistence.clone(), clock::wall_ms() / 1000);
    let changes = host.sum(|counters| &counters.dirty);
    let plan = plan(&settings);
    state.tried_s.store(began_s, Relaxed);
    state.is_scheduled.store(false, Relaxed);
    state.save_began_s.store(began_s as i64, Relaxed);
    let first = head(stores.all(), host, false);
    let (ended_plan, ended_state) = (plan.clone(), state.clone());
    let then = move |ended| note_end(&ended_state, &ended_plan, began_s, changes, ended);
    let encoder = || Box::new(Encoder::new(&settings, now)) as _;
    begin(stores, &state, (plan, Purpose::Snapshot), first, &encoder, then).inspect_err(|_| {
        state.save_failed.store(true, Relaxed);
        state.watcher.tell();
        state.save_began_s.store(-1, Relaxed);
    })?;
    state.saves.fetch_add(1, Relaxed);
    line(Level::Notice, &format!("Background saving started by pid {}", std::process::id()));
    Ok(())
}

/// A snapshot that began at `began_s` with so many changes has ended.
fn note_end(state: &Arc<Persistence>, plan: &Plan, began_s: u64, changes: u64, ended: Ended) {
    let now_s = clock::wall_ms() / 1000;
    state.save_took_s.store(now_s.saturating_sub(began_s) as i64, Relaxed);
    match ended {
        Ok(_) => {
            line(Level::Notice, "DB saved on disk");
            state.note_saved(now_s, changes);
            line(Level::Notice, "Background saving terminated with success");
        }
        Err(Failure::Aborted) => {
            line(Level::Warning, "Background saving terminated by FLUSHALL or at the end")
        }
        Err(failure) => {
            log_failure(&failure, plan);
            state.save_failed.store(true, Relaxed);
            line(Level::Warning, "Background saving error");
        }
    }
    // Whoever sees that it has ended finds writes refused, or taken again.
    state.watcher.tell();
    state.save_began_s.store(-1, Relaxed);
}

/// Why a snapshot is due, if one is: a line for the log, empty if it was asked for.
fn due(host: &Host) -> Option<String> {
    let (state, settings) = (&host.persistence, host.settings());
    if state.is_scheduled.load(Relaxed) {
        return Some(String::new());
    }
    let changes = state.unsaved(host.sum(|counters| &counters.dirty));
    let now_s = clock::wall_ms() / 1000;
    if state.save_failed.load(Relaxed) && now_s < state.tried_s.load(Relaxed) + RETRY_S {
        return None;
    }
    let since_s = now_s.saturating_sub(state.saved_s.load(Relaxed));
    let rules = settings.save_rules();
    let rule = rules.iter().find(|rule| changes >= rule.changes as u64 && since_s > rule.seconds as u64)?;
    Some(format!("{} changes in {} seconds. Saving...", rule.changes, rule.seconds))
}

/// Begins a snapshot if one is due.
pub async fn tend(local: &Local) {
    let host = &local.shared.host;
    if is_saving(&host.persistence) || host.rewrites.lock().is_running() {
        return;
    }
    let Some(reason) = due(host) else { return };
    let began = hold_all(local, |stores, now| {
        let mut stores = WriteStores::Many(stores);
        if is_under_way(stores.all()) {
            return Ok(());
        }
        if !reason.is_empty() {
            line(Level::Notice, &reason);
        }
        begin_save(&mut stores, host, now)?;
        local.door(now).spread(stores);
        Ok::<(), io::Error>(())
    });
    if let Err(error) = began.await {
        line(Level::Warning, &format!("Can't save in background: {error}"));
    }
}
