//! WATCH: whether keys changed since a client began to watch them.
//!
//! Must stay true: a flag is raised by the change itself, within the latch, so EXEC, which holds the shards of all keys
//! that its client watches, misses none; a watch that nobody looks at any more is swept within a tick.
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use super::db::Found;
use super::news::listen;
use super::{Effect, Store};
use crate::wire::Key;

/// Raised when something watched has changed. Shared by a client and what it left in stores.
pub type Changed = Arc<AtomicBool>;

/// A watch that a client left at a key.
#[derive(Debug)]
pub struct Watch {
    changed: Weak<AtomicBool>,
    /// The key's time had come when the watch began: to delete it is no change.
    was_due: bool,
}

impl Watch {
    /// Whether its client has forgotten it.
    fn is_forgotten(&self) -> bool {
        self.changed.strong_count() == 0
    }

    fn is_of(&self, changed: &Changed) -> bool {
        std::ptr::eq(self.changed.as_ptr(), Arc::as_ptr(changed))
    }

    fn raise(&self) {
        if let Some(changed) = self.changed.upgrade() {
            changed.store(true, Ordering::Relaxed);
        }
    }
}

impl Store {
    /// Raises `changed` when this key changes from now on.
    pub fn watch(&mut self, db: u32, key: Key<'_>, changed: &Changed) {
        let was_due = matches!(self.find(db, key, self.now.ms), Found::Due);
        self.watches.leave(db, key, Watch { changed: Arc::downgrade(changed), was_due });
        self.listens |= listen::WATCHES;
    }

    /// Whether a watched key has changed by its time having come, which nothing else has noticed yet.
    pub fn watched_is_due(&self, db: u32, key: Key<'_>, changed: &Changed) -> bool {
        let own = |watch: &Watch| watch.is_of(changed) && !watch.was_due;
        matches!(self.find(db, key, self.now.ms), Found::Due) && self.watches.at(db, key).iter().any(own)
    }

    /// Takes a client's watch of a key back.
    pub fn unwatch(&mut self, db: u32, key: Key<'_>, changed: &Changed) {
        self.watches.retain_at(db, key, |watch| !watch.is_of(changed));
        if self.watches.is_empty() {
            self.listens &= !listen::WATCHES;
        }
    }

    /// Number of keys that somebody watches.
    pub fn watched_keys(&self) -> usize {
        self.watches.keys(|watch| !watch.is_forgotten())
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
                watch.raise();
            }
        }
    }

    /// The database is emptied, or another takes its place: what it has, or will have, of watched keys changes.
    pub(super) fn raise_watches_of_db(&mut self, db: u32, other: Option<u32>) {
        let mut watches = std::mem::take(&mut self.watches);
        watches.for_each_in(db, |key, watches| {
            let now_ms = self.now.ms;
            let is = self.find(db, key, now_ms);
            let comes = other.map_or(Found::Absent, |other| self.find(other, key, now_ms));
            watches.iter_mut().for_each(|watch| watch.raise_at_swap(&is, &comes));
        });
        self.watches = watches;
    }
}

impl Watch {
    /// A key whose time has come is as good as none: where one takes the place of the other nothing changes.
    fn raise_at_swap(&mut self, is: &Found<'_>, comes: &Found<'_>) {
        match (is, comes, self.was_due) {
            (Found::Absent, Found::Absent, _) | (_, Found::Due, true) => {}
            (_, Found::Absent, true) => self.was_due = false,
            (Found::Absent, Found::Due, false) => self.was_due = true,
            _ => self.raise(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Settings;
    use crate::ds::raw::block::NewValue;
    use crate::host::Counters;
    use crate::store::db::Ttl;

    fn store() -> Store {
        Store::new(Arc::new(Settings::default()), Arc::new(Counters::new(0)))
    }

    fn key(bytes: &[u8]) -> Key<'_> {
        Key::new(bytes)
    }

    #[test]
    fn a_change_raises_the_flags_of_its_key() {
        let mut store = store();
        let (a, b) = (Changed::default(), Changed::default());
        store.watch(0, key(b"k"), &a);
        store.watch(1, key(b"k"), &b);
        store.put(0, key(b"other"), NewValue::Bytes(b"v"), Ttl::Clear, 0);
        assert!(!a.load(Ordering::Relaxed));
        store.put(0, key(b"k"), NewValue::Bytes(b"v"), Ttl::Clear, 0);
        assert!(a.load(Ordering::Relaxed) && !b.load(Ordering::Relaxed));
    }

    #[test]
    fn forgotten_watches_are_swept_however_many_keys_they_had() {
        let mut store = store();
        let (gone, stays) = (Changed::default(), Changed::default());
        for bytes in [b"a", b"b", b"c"] {
            store.watch(0, key(bytes), &gone);
        }
        store.watch(0, key(b"c"), &stays);
        assert_eq!(store.watched_keys(), 3);
        drop(gone);
        assert_eq!(store.watched_keys(), 1);
        store.sweep_listeners();
        assert_eq!((store.watches.keys(|_| true), store.listens), (1, listen::WATCHES));
        store.unwatch(0, key(b"c"), &stays);
        assert_eq!((store.watched_keys(), store.listens), (0, 0));
    }
}
