//! What a connection asked for with CLIENT TRACKING and CLIENT CACHING.
//!
//! Must stay true: [`Caller::tracks`](super::cx::Caller::tracks) says at every command whether its reads are entered.
use std::collections::BTreeSet;
use std::sync::atomic::Ordering;

use super::cx::Client;
use super::spec::gate;
use crate::host::{Host, mark};

/// Which reads are entered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// All.
    #[default]
    All,
    /// Only those behind CLIENT CACHING YES.
    OptIn,
    /// All but those behind CLIENT CACHING NO.
    OptOut,
    /// None: the client hears of all keys with some prefixes.
    Broadcast,
}

/// What a connection asked for.
#[derive(Debug, Default)]
pub struct Tracking {
    /// Which reads are entered.
    pub mode: Mode,
    /// CLIENT CACHING was given, for the next command.
    pub is_given: bool,
    /// The command that runs does not use it up.
    pub is_kept: bool,
    /// Not of changes that it made itself.
    pub skips_own: bool,
    /// Prefixes of keys that it hears of.
    pub prefixes: BTreeSet<Box<[u8]>>,
}

impl Client {
    /// After a change of what it tracks.
    pub fn note_tracking(&mut self) {
        let tracking = self.tracking.as_deref();
        let mode = tracking.map(|tracking| (tracking.mode, tracking.is_given));
        self.caller.tracks =
            matches!(mode, Some((Mode::All, _) | (Mode::OptIn, true) | (Mode::OptOut, false)));
        self.info.set(mark::TRACKING, mode.is_some());
        self.info.set(mark::TRACKING_BROADCAST, matches!(mode, Some((Mode::Broadcast, _))));
        self.gates &= !gate::TRACKING;
        if mode.is_some() {
            self.gates |= gate::TRACKING;
        }
        self.note_listening();
    }

    /// After a change of why letters may come at any time.
    pub fn note_listening(&mut self) {
        self.gates &= !gate::LISTENER;
        if self.tracking.is_some() || self.info.has(mark::MONITOR) {
            self.gates |= gate::LISTENER;
        }
    }

    /// The command that comes now leaves CLIENT CACHING to the next one.
    pub fn keep_caching(&mut self) {
        if let Some(tracking) = &mut self.tracking {
            tracking.is_kept = true;
        }
    }

    /// A command has run, which uses CLIENT CACHING up. Not inside MULTI: there it holds for the whole transaction.
    pub fn use_caching_up(&mut self) {
        let in_multi = self.gates & gate::MULTI != 0;
        let Some(tracking) = &mut self.tracking else { return };
        let is_kept = std::mem::take(&mut tracking.is_kept) || in_multi;
        if tracking.is_given && !is_kept {
            tracking.is_given = false;
            self.note_tracking();
        }
    }

    /// Tracks nothing any more.
    pub fn stop_tracking(&mut self, host: &Host) {
        let Some(tracking) = self.tracking.take() else { return };
        if host.trackers.leave(self.info.id, tracking.prefixes.iter().map(|prefix| &**prefix)) {
            host.renew_settings();
        }
        self.info.set(mark::TRACKING_BROKEN, false);
        self.info.redirect.store(-1, Ordering::Relaxed);
        self.note_tracking();
    }
}
