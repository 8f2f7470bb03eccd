//! What is known about rewriting the append-only log: who asked for it, whether it goes on, how it ended.
use std::time::Instant;

use crate::base::clock;
use crate::rt::log::{Level, line};

/// Where a rewrite stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Stage {
    /// There is none.
    #[default]
    Idle,
    /// Asked for; it begins at once.
    Asked,
    /// Under way.
    Running,
}

/// What INFO and the commands know.
#[derive(Debug, Default)]
pub struct Rewrites {
    /// Where the one under way stands.
    pub stage: Stage,
    /// One shall begin when nothing else writes snapshots.
    pub is_scheduled: bool,
    /// Until one has succeeded nothing is logged that can be loaded: the log was just switched on.
    pub is_first: bool,
    began: Option<Instant>,
    /// Seconds that the last one took.
    pub last_seconds: Option<u64>,
    /// The last one failed.
    pub has_failed: bool,
    /// Failures since the last success.
    pub failures: u64,
    /// Begun so far.
    pub count: u64,
    /// Who wants the data emptied and loaded again, and hears whether it was.
    pub reloads: Vec<flume::Sender<bool>>,
}

/// Says in the log that a rewrite ends because the log is switched off; as Redis, which has a process for it.
pub fn tell_killed() {
    let pid = std::process::id();
    line(Level::Notice, &format!("Killing running AOF rewrite child: {pid}"));
}

impl Rewrites {
    /// Whether one goes on, or is about to.
    pub fn is_running(&self) -> bool {
        self.stage != Stage::Idle
    }

    /// Asks for the first one of a log that is switched on, behind what `goes_on` already: another, or a snapshot.
    pub fn ask_first(&mut self, goes_on: bool) {
        self.is_first = true;
        match self.stage {
            Stage::Idle if !goes_on => self.stage = Stage::Asked,
            Stage::Idle | Stage::Asked | Stage::Running => self.is_scheduled = true,
        }
    }

    /// The log is switched off: what was asked for while it was on shall not begin.
    pub fn withdraw(&mut self) {
        (self.is_scheduled, self.is_first) = (false, false);
        if self.stage == Stage::Asked {
            self.stage = Stage::Idle;
            tell_killed();
        }
    }

    /// Who wants the data loaded again now: nobody while a rewrite may name other files.
    pub fn take_reloads(&mut self) -> Vec<flume::Sender<bool>> {
        if self.is_running() { Vec::new() } else { std::mem::take(&mut self.reloads) }
    }

    /// One begins.
    pub fn begin(&mut self) {
        self.stage = Stage::Running;
        self.is_scheduled = false;
        self.began = Some(clock::instant());
        self.count += 1;
    }

    /// The one under way ended. `None`: given up, which is no failure.
    pub fn end(&mut self, went_well: Option<bool>) {
        self.stage = Stage::Idle;
        self.last_seconds = self.began.take().map(|began| began.elapsed().as_secs());
        match went_well {
            Some(true) => (self.has_failed, self.failures, self.is_first) = (false, 0, false),
            Some(false) => (self.has_failed, self.failures) = (true, self.failures + 1),
            None => {}
        }
    }

    /// Seconds since the one under way began.
    pub fn seconds(&self) -> Option<u64> {
        self.began.map(|began| began.elapsed().as_secs())
    }
}
