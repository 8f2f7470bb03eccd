//! What is known about rewriting the append-only log: who asked for it, whether it goes on, how it ended.
use std::time::Instant;

use crate::base::clock;

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

impl Rewrites {
    /// Whether one goes on, or is about to.
    pub fn is_running(&self) -> bool {
        self.stage != Stage::Idle
    }

    /// Asks for one, behind the one under way.
    pub fn ask(&mut self) {
        match self.stage {
            Stage::Idle => self.stage = Stage::Asked,
            Stage::Asked | Stage::Running => self.is_scheduled = true,
        }
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
            Some(true) => (self.has_failed, self.failures) = (false, 0),
            Some(false) => (self.has_failed, self.failures) = (true, self.failures + 1),
            None => {}
        }
    }

    /// Seconds since the one under way began.
    pub fn seconds(&self) -> Option<u64> {
        self.began.map(|began| began.elapsed().as_secs())
    }
}
