//! Active expiry: keys whose time has come are deleted although nobody asks for them.
//!
//! Must stay true: a segment is opened only when its earliest deadline has come; one step is bounded in segments
//! and in keys, so that a shard is never held up for long.
use super::{Effect, Store};
use crate::wire::Key;

/// Segment headers looked at in one step and database.
const SEGMENTS_STEP: usize = 16_384;
/// Keys deleted in one step and database.
const KEYS_STEP: usize = 2_000;

/// How far the cycle came.
#[derive(Default)]
pub(super) struct Progress {
    next_db: usize,
}

impl Store {
    /// Runs one bounded step over all databases; `true` when there is more to do at once.
    pub fn expire_step(&mut self) -> bool {
        if !self.active_expiry {
            return false;
        }
        let (count, first) = (self.dbs.len(), self.expiry.next_db);
        for offset in 0..count {
            let index = (first + offset) % count;
            if self.expire_db(index as u32) >= KEYS_STEP {
                self.expiry.next_db = (index + 1) % count;
                return true;
            }
        }
        false
    }

    fn expire_db(&mut self, index: u32) -> usize {
        let now_ms = self.now.ms;
        let Some(base) = self.dbs[index as usize].as_deref_mut() else { return 0 };
        if base.deadlines == 0 {
            return 0;
        }
        let mut gone = Vec::new();
        let (taken, at) =
            base.table.take_due(now_ms, base.due_at, SEGMENTS_STEP, KEYS_STEP, &mut |block| gone.push(block));
        base.due_at = at;
        base.deadlines -= taken;
        for block in gone {
            self.settle(index, Key::new(block.view().key()), Effect::Expired);
            self.discard(block);
        }
        taken
    }
}
