//! WATCH: whether keys changed since a client began to watch them.
//!
//! Must stay true: a flag is raised by the change itself, within the latch, so EXEC, which holds the shards of all keys
//! that its client watches, misses none; a watch that nobody looks at any more is swept within a tick.
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::db::{Found, is_due};
use super::news::listen;
use super::{Effect, Store};
use crate::wire::Key;

/// Raised when something watched has changed. Shared by a client and what it left in stores.
pub type Changed = Arc<AtomicBool>;

/// A watch that a client left at a key.
#[derive(Debug)]
pub struct Watch {
    changed: Changed,
    /// The key's time had come when the watch began: to delete it is no change.
    was_due: bool,
}

impl Watch {
    /// Whether its client has forgotten it.
    fn is_forgotten(&self) -> bool {
        Arc::strong_count(&self.changed) == 1
    }
}

impl Store {
    /// Raises `changed` when this key changes from now on.
    pub fn watch(&mut self, db: u32, key: Key<'_>, changed: &Changed) {
        let was_due = matches!(self.find(db, key, self.now.ms), Found::Due);
        self.watches.leave(db, key, Watch { changed: changed.clone(), was_due });
        self.listens |= listen::WATCHES;
    }

    /// Whether a watched key has changed by its time having come, which nothing else has noticed yet.
    pub fn watched_is_due(&self, db: u32, key: Key<'_>, changed: &Changed) -> bool {
        let own = |watch: &Watch| Arc::ptr_eq(&watch.changed, changed) && !watch.was_due;
        matches!(self.find(db, key, self.now.ms), Found::Due) && self.watches.at(db, key).iter().any(own)
    }

    /// Takes a client's watch of a key back.
    pub fn unwatch(&mut self, db: u32, key: Key<'_>, changed: &Changed) {
        self.watches.retain_at(db, key, |watch| !Arc::ptr_eq(&watch.changed, changed));
        if self.watches.is_empty() {
            self.listens &= !listen::WATCHES;
        }
    }

    /// Number of keys that somebody watches.
    pub fn watched_keys(&self) -> usize {
        self.watches.keys()
    }

    /// Takes out watches that their clients have forgotten.
    pub(super) fn sweep_watches(&mut self) {
        self.watches.retain(|watch| !watch.is_forgotten());
        if self.watches.is_empty() {
            self.listens &= !listen::WATCHES;
        }
    }

    pub(super) fn raise_watches(&self, db: u32, key: Key<'_>, effect: Effect) {
        for watch in self.watches.at(db, key) {
            if effect != Effect::Expired || !watch.was_due {
                watch.changed.store(true, Ordering::Relaxed);
            }
        }
    }

    /// The database is emptied, or another takes its place: what it has, or will have, of watched keys changes.
    pub(super) fn raise_watches_of_db(&self, db: u32, other: Option<u32>) {
        let live = |db: u32, key: Key<'_>| match self.db(db).and_then(|db| db.table.get(key.hash, key.bytes))
        {
            Some(block) if is_due(block, self.now.ms) => None,
            found => Some(found.is_some()),
        };
        self.watches.for_each_in(db, |key, watches| {
            let (is, comes) = (live(db, key), other.and_then(|other| live(other, key)));
            for watch in watches {
                if is == Some(true) || comes == Some(true) || is.is_none() && !watch.was_due {
                    watch.changed.store(true, Ordering::Relaxed);
                }
            }
        });
    }
}
