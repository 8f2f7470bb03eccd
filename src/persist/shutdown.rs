//! The end of the server: what must be on the disk before.
//!
//! Must stay true: a server that was to save ends only when the snapshot is in its place, unless the end is forced; between
//! that snapshot and the end nothing is changed or answered; data that is still being loaded is not saved over the file
//! that it comes from.
use std::sync::atomic::Ordering;

use super::background::is_saving;
use super::commands::save_all;
use crate::cmd::cx::{Ending, WriteStores};
use crate::cmd::spec::gate;
use crate::host::Host;
use crate::rt::log::{Level, line};
use crate::shard::hold::hold_all;
use crate::shard::local::Local;
use crate::store::Store;

/// Whether the server saves before it ends.
fn saves(host: &Host, ending: Ending) -> bool {
    if host.gates.load(Ordering::Relaxed) & gate::LOADING != 0 {
        return false;
    }
    ending.saves.unwrap_or_else(|| !host.settings().save_rules().is_empty())
}

/// Said when the server was to end and goes on.
const STAYS: &str = "Errors trying to shut down the server. Check the logs for more information.";

/// Whether the log is one that the data can be loaded from, or nobody minds: it was just switched on, and has no base.
fn may_leave_log(host: &Host, ending: Ending) -> bool {
    let rewrites = host.rewrites.lock();
    if !(rewrites.is_first && rewrites.is_running()) {
        return true;
    }
    if ending.is_forced {
        line(Level::Warning, "Writing initial AOF. Exit anyway.");
    } else {
        line(Level::Warning, "Writing initial AOF, can't exit.");
        line(Level::Warning, STAYS);
    }
    ending.is_forced
}

/// Ends the server. `false`: it goes on, since what was to be saved could not be.
pub async fn shut_down(local: &Local, ending: Ending) -> bool {
    let host = &local.shared.host;
    line(Level::Warning, "User requested shutdown...");
    hold_all(local, |stores, now| {
        if !may_leave_log(host, ending) {
            return false;
        }
        let mut stores = WriteStores::Many(stores);
        if is_saving(&host.persistence) {
            line(Level::Warning, "There is a child saving an .rdb. Killing it!");
            stores.for_each(|store| store.give_up_snapshot());
        }
        if saves(host, ending) {
            line(Level::Notice, "Saving the final RDB snapshot before exiting.");
            let all: Vec<&Store> = stores.all().collect();
            if !save_all(all.iter().copied(), host, now) {
                line(Level::Warning, "Error trying to save the DB, can't exit.");
                if !ending.is_forced {
                    line(Level::Warning, STAYS);
                    return false;
                }
            }
        }
        // Whoever comes now waits, and is closed.
        host.pause_until_ms.store(u64::MAX, Ordering::Relaxed);
        host.gates.fetch_or(gate::PAUSE_ALL, Ordering::SeqCst);
        local.shared.stop();
        true
    })
    .await
}
