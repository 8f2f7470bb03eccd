//! Which clients have read which keys, so that they can be told when these change (CLIENT TRACKING).
//!
//! Must stay true: a read is entered in the same access to the store as the read itself, so no change falls between;
//! what is entered of a key goes when the key changes. As in Redis the databases have this in common: a client does not
//! say which one it means, so a key that changes in one has changed in all.
use super::Store;
use super::news::{Changed, Stale, listen};
use crate::base::rng;
use crate::ds::table::{Deadline, Layout, PackedTable};
use crate::wire::Key;

/// Numbers of clients that have read a key.
pub type Readers = Box<[u64]>;

/// Bytes of a client's number.
const ID_BYTES: usize = 8;
/// A table with fewer keys is freed on the spot.
const LAZY_KEYS_MIN: usize = 4096;

/// Keys, and the numbers of the clients that have read them: ascending, each little-endian.
#[derive(Debug)]
pub(super) struct Tracked(PackedTable);

impl Default for Tracked {
    fn default() -> Tracked {
        Tracked(PackedTable::new(Layout::KeysAndValues))
    }
}

fn ids(value: &[u8]) -> &[[u8; ID_BYTES]] {
    value.as_chunks().0
}

impl Tracked {
    /// Enters a client under a key. `None`: it was there; else whether the key is new.
    fn add(&mut self, key: Key<'_>, client_id: u64) -> Option<bool> {
        let own = client_id.to_le_bytes();
        let known = self.0.get(key.hash, key.bytes).map_or(&[][..], |record| ids(record.value()));
        let Err(at) = known.binary_search_by_key(&client_id, |id| u64::from_le_bytes(*id)) else {
            return None;
        };
        let (before, after) = known.split_at(at);
        let value = [before.as_flattened(), &own, after.as_flattened()].concat();
        Some(self.0.insert(key.hash, key.bytes, &value, Deadline::Clear))
    }

    /// Takes a key out, with the clients that have read it.
    fn take(&mut self, key: Key<'_>) -> Option<Readers> {
        self.0.remove_with(key.hash, key.bytes, |record| numbers(record.value()))
    }

    /// Takes any key out.
    fn take_any(&mut self) -> Option<(Box<[u8]>, Readers)> {
        self.0.pop_random(&mut rng::next_u64, |record| (record.key().into(), numbers(record.value())))
    }
}

fn numbers(value: &[u8]) -> Readers {
    ids(value).iter().map(|id| u64::from_le_bytes(*id)).collect()
}

impl Store {
    /// Notes that a client has read a key.
    pub fn track(&mut self, key: Key<'_>, client_id: u64) {
        let Some(is_new) = self.tracked.add(key, client_id) else { return };
        self.listens |= listen::READERS;
        self.counters.tracked_reads.add(1);
        self.counters.tracked_keys.add(u64::from(is_new));
    }

    /// Number of keys that some client has read.
    pub fn tracked_keys(&self) -> usize {
        self.tracked.0.len()
    }

    /// Forgets so many keys, any of them; their readers are told as if these had changed.
    pub fn untrack_some(&mut self, count: usize) {
        for _ in 0..count {
            let Some((key, readers)) = self.tracked.take_any() else { break };
            self.note_stale(key, readers, 0);
        }
    }

    /// A key has changed: its readers will be told.
    pub(super) fn note_readers(&mut self, key: Key<'_>) {
        if let Some(readers) = self.tracked.take(key) {
            self.note_stale(key.bytes.into(), readers, self.actor);
        }
    }

    fn note_stale(&mut self, key: Box<[u8]>, readers: Readers, by: u64) {
        self.counters.tracked_keys.add(1u64.wrapping_neg());
        self.counters.tracked_reads.add((readers.len() as u64).wrapping_neg());
        if self.tracked.0.is_empty() {
            self.listens &= !listen::READERS;
        }
        self.has_news = true;
        self.news.stale.push(Stale { number: super::news::next_number(), key, readers, by });
    }

    /// A key has changed, by the client `by`: those who have asked for its prefix will be told.
    pub(super) fn note_broadcast(&mut self, key: Key<'_>, by: u64) {
        self.has_news = true;
        match self.news.changed.last_mut() {
            Some(last) if *last.key == *key.bytes => last.by = by,
            _ => self.news.changed.push(Changed { key: key.bytes.into(), by }),
        }
    }

    /// A database is emptied: whoever tracks keys will be told to forget them all.
    pub(super) fn note_all_stale(&mut self) {
        self.has_news = true;
        self.news.all_stale = true;
        self.listens &= !listen::READERS;
        self.counters.tracked_keys.set(0);
        self.counters.tracked_reads.set(0);
        let tracked = std::mem::take(&mut self.tracked);
        if let Some(lazy) = self.lazy_free.as_deref()
            && tracked.0.len() >= LAZY_KEYS_MIN
        {
            lazy.drop_later(Box::new(tracked), 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ds::raw::block::NewValue;
    use crate::host::Counters;
    use crate::store::db::Ttl;
    use std::sync::Arc;

    fn store() -> Store {
        Store::new(Arc::default(), Arc::new(Counters::new(0)))
    }

    fn counted(store: &Store) -> (u64, u64) {
        assert_eq!(store.tracked_keys() as u64, store.counters.tracked_keys.get());
        (store.counters.tracked_keys.get(), store.counters.tracked_reads.get())
    }

    fn told(store: &mut Store) -> Vec<(Vec<u8>, Vec<u64>, u64)> {
        store.has_news = false;
        let stale = std::mem::take(&mut store.news.stale);
        stale.into_iter().map(|stale| (stale.key.into(), stale.readers.into(), stale.by)).collect()
    }

    #[test]
    fn readers_are_told_once_and_whatever_the_database() {
        let (mut store, key) = (store(), Key::new(b"key"));
        for id in [300, 7, 70_000, 7, 300] {
            store.track(key, id);
        }
        store.track(Key::new(b"other"), 7);
        assert_eq!((counted(&store), store.listens & listen::READERS), ((2, 4), listen::READERS));
        store.actor = 9;
        store.put(3, key, NewValue::Int(1), Ttl::Clear, 0);
        store.put(0, key, NewValue::Int(1), Ttl::Clear, 0);
        assert!(store.has_news);
        assert_eq!(told(&mut store), [(b"key".to_vec(), vec![7, 300, 70_000], 9)]);
        assert_eq!(counted(&store), (1, 1));
        store.untrack_some(5);
        assert_eq!(told(&mut store), [(b"other".to_vec(), vec![7], 0)]);
        assert_eq!((counted(&store), store.listens), ((0, 0), 0));
    }

    #[test]
    fn an_emptied_database_takes_all() {
        let mut store = store();
        for number in 0..10_000_u64 {
            store.track(Key::new(&number.to_be_bytes()), number % 3);
        }
        store.flush_db(0);
        assert!(store.has_news && store.news.all_stale);
        assert_eq!((counted(&store), store.listens), ((0, 0), 0));
        store.put(0, Key::new(&[0; 8]), NewValue::Int(1), Ttl::Clear, 0);
        assert!(told(&mut store).is_empty());
    }

    #[test]
    fn of_keys_that_change_again_the_last_change_counts() {
        let (mut store, key) = (store(), Key::new(b"key"));
        store.listens |= listen::BROADCASTS;
        store.actor = 9;
        store.put(0, key, NewValue::Int(1), Ttl::At(1), 0);
        store.clear_due(0, key);
        let changed: Vec<_> = store.news.changed.iter().map(|changed| (&*changed.key, changed.by)).collect();
        assert_eq!(changed, [(&b"key"[..], 0)]);
    }
}
