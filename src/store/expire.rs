//! Active expiry: keys whose time has come are deleted although nobody asks for them, and so are parts of values (the
//! fields of hashes).
//!
//! Must stay true: a segment is opened only when its earliest deadline has come; one step is bounded in segments, in
//! keys and in parts, so that a shard is never held up for long.
use super::db::Dated;
use super::edit::Editor;
use super::{Effect, Store};
use crate::ds::dated;
use crate::ds::listpack::Listpack;
use crate::ds::object::{Object, Packing};
use crate::ds::packed::PackedBytes;
use crate::ds::raw::block::Value;
use crate::ds::raw::dash::Due;
use crate::wire::Key;

/// Segment headers looked at in one step and database.
const SEGMENTS_STEP: usize = 16_384;
/// Keys deleted, or handed out for their parts, in one step and database.
const KEYS_STEP: usize = 2_000;
/// Parts deleted in one step and database.
pub const PARTS_STEP: usize = 2_000;

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
        self.actor = 0;
        let (count, first) = (self.dbs.len(), self.expiry.next_db);
        let full =
            (0..count).map(|offset| (first + offset) % count).find(|index| self.expire_db(*index as u32));
        if let Some(index) = full {
            self.expiry.next_db = (index + 1) % count;
        }
        self.end_units();
        full.is_some()
    }

    /// Runs one bounded step over one database, also while active expiry is switched off: somebody walked by what is
    /// due.
    pub fn expire_walked(&mut self, db: u32) {
        self.expire_db(db);
    }

    fn expire_db(&mut self, index: u32) -> bool {
        let now_ms = self.now.ms;
        let Some(base) = self.dbs[index as usize].as_deref_mut() else { return false };
        if base.deadlines == 0 && base.dated_parts == 0 {
            return false;
        }
        let (mut gone, mut holders) = (Vec::new(), Vec::new());
        let (handed, at) =
            base.table.take_due(now_ms, base.due_at, SEGMENTS_STEP, KEYS_STEP, &mut |due| match due {
                Due::Entry(block) => gone.push(block),
                Due::Parts(block) => holders.push(Box::from(block.key())),
            });
        base.due_at = at;
        for block in &gone {
            base.note(Dated::of(block.view()), Dated::default());
            if let Some(snapshot) = &mut self.snapshot {
                // What has expired is owed no record, but one that was begun is completed.
                snapshot.complete(base.saved_as, block.view());
            }
        }
        for block in gone {
            self.settle(index, Key::new(block.view().key()), Effect::Expired);
            self.discard(block);
        }
        let parts = self.expire_parts_of(index, &holders);
        handed >= KEYS_STEP || parts >= PARTS_STEP
    }

    /// Deletes what is due of the values of these keys, up to the limit of a step; returns how many parts.
    fn expire_parts_of(&mut self, db: u32, holders: &[Box<[u8]>]) -> usize {
        let mut parts = 0;
        for key in holders {
            // Those behind the limit, too: the edit takes note of what is due.
            parts += self.expire_parts(db, Key::new(key), PARTS_STEP - parts);
        }
        parts
    }

    /// Deletes parts of a value whose deadlines have come, the earliest first, up to `limit`; with the last part the
    /// key goes. Returns how many parts. Is no use of the key.
    pub fn expire_parts(&mut self, db: u32, key: Key<'_>, limit: usize) -> usize {
        self.edit_unused(db, key, |editor| {
            let parts = take_due_parts(editor, limit);
            editor.expired(parts);
            parts
        })
    }
}

fn take_due_parts(editor: &mut Editor<'_>, limit: usize) -> usize {
    let (now_ms, key) = (editor.now().ms, editor.key());
    let mut log = editor.take_log();
    let mut record = |part: &[u8]| {
        if let Some((db, log)) = &mut log {
            log.note_part_gone(*db, key, part);
        }
    };
    let (parts, is_empty) = match editor.value() {
        Some(Value::Packed(Packing::HashDeadlines, bytes)) => {
            let due = dated::due(Listpack::new(bytes), now_ms, limit);
            for place in dated::entries(Listpack::new(bytes)).take(due) {
                Listpack::new(bytes).get(place.at).with_text(&mut record);
            }
            let Some((_, mut pack)) = editor.packed().filter(|_| due > 0) else { return 0 };
            dated::remove_first(&mut pack, due);
            (due, Listpack::new(pack.bytes()).is_empty())
        }
        _ => match editor.object_mut() {
            Some(Object::Hash(table)) => {
                (table.take_due(now_ms, limit, |part, _| record(part)), table.is_empty())
            }
            _ => return 0,
        },
    };
    if is_empty {
        editor.remove();
    }
    parts
}
#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::base::hash::KeyHash;
    use crate::ds::listpack::{self, Element};
    use crate::ds::raw::block::NewValue;
    use crate::ds::table::{Deadline, Layout, PackedTable};
    use crate::host::Counters;
    use crate::store::db::{DeadlineChange, Found, Ttl};

    fn store() -> Store {
        let mut store = Store::new(Arc::default(), Arc::new(Counters::new(0)));
        store.now.ms = 1_000;
        store
    }

    /// A small map of keys to deadlines.
    fn small(deadlines: &[Option<u64>]) -> Vec<u8> {
        let mut pack = listpack::EMPTY.to_vec();
        for (number, deadline_ms) in deadlines.iter().enumerate() {
            let at = pack.len();
            dated::append(&mut pack, Element::Int(number as i64), Element::Bytes(b"v"));
            let place = dated::at(Listpack::new(&pack), at);
            dated::set_deadline(&mut pack, &place, *deadline_ms);
        }
        pack
    }

    fn large(deadlines: &[Option<u64>]) -> PackedTable {
        let mut table = PackedTable::new(Layout::KeysAndValues);
        for (number, deadline_ms) in deadlines.iter().enumerate() {
            let key = number.to_string().into_bytes();
            let deadline = deadline_ms.map_or(Deadline::Clear, Deadline::At);
            table.insert(KeyHash::of(&key), &key, b"v", deadline);
        }
        table
    }

    fn put(store: &mut Store, key: &[u8], deadlines: &[Option<u64>], is_large: bool, ttl: Ttl) {
        let pack = small(deadlines);
        let value = if is_large {
            NewValue::Object(Box::new(Object::Hash(large(deadlines))))
        } else {
            NewValue::Packed(Packing::HashDeadlines, &pack)
        };
        store.put(0, Key::new(key), value, ttl, 0);
    }

    /// Number of parts; `None`: no such key.
    fn parts(store: &Store, key: &[u8]) -> Option<usize> {
        match store.db(0)?.table.get(KeyHash::of(key), key)?.value() {
            Value::Packed(_, bytes) => Some(dated::entries(Listpack::new(bytes)).count()),
            Value::Object(Object::Hash(table)) => Some(table.len()),
            _ => None,
        }
    }

    /// Counts of keys with deadlines, of keys with dated parts; and that both are what a walk finds.
    fn counts(store: &Store) -> (usize, usize) {
        let db = store.db(0).unwrap();
        let mut counted = (0, 0);
        db.table.for_each(|block| {
            counted.0 += usize::from(block.deadline_ms().is_some());
            counted.1 += usize::from(block.parts_wake_ms().is_some());
        });
        assert_eq!((db.deadlines, db.dated_parts), counted);
        counted
    }

    /// Steps until nothing is left to do.
    fn run(store: &mut Store) -> usize {
        let mut steps = 1;
        while store.expire_step() {
            steps += 1;
            assert!(steps < 100, "the cycle ends");
        }
        steps
    }

    #[test]
    fn due_parts_go_and_the_key_with_the_last() {
        for is_large in [false, true] {
            let mut store = store();
            put(&mut store, b"a", &[Some(1_500), Some(2_000), None], is_large, Ttl::Clear);
            put(&mut store, b"b", &[Some(1_500), Some(3_000)], is_large, Ttl::At(9_000));
            put(&mut store, b"c", &[Some(7_000)], is_large, Ttl::At(2_000));
            put(&mut store, b"d", &[None], is_large, Ttl::Clear);
            assert_eq!(counts(&store), (2, 3));
            let at = |store: &mut Store, now_ms| {
                store.now.ms = now_ms;
                assert_eq!(run(store), 1);
                [b"a", b"b", b"c", b"d"].map(|key| parts(store, key))
            };
            assert_eq!(at(&mut store, 1_499), [Some(3), Some(2), Some(1), Some(1)]);
            assert_eq!(at(&mut store, 1_500), [Some(2), Some(1), Some(1), Some(1)]);
            assert_eq!(counts(&store), (2, 3));
            assert_eq!(at(&mut store, 2_000), [Some(1), Some(1), None, Some(1)]);
            assert_eq!(counts(&store), (1, 1));
            assert_eq!(at(&mut store, 3_000), [Some(1), None, None, Some(1)]);
            assert_eq!(counts(&store), (0, 0));
            let counters = &store.counters;
            assert_eq!((counters.expired_subkeys.get(), counters.expired_keys.get()), (4, 1));
        }
    }

    #[test]
    fn a_step_is_bounded_and_nothing_is_forgotten() {
        for is_large in [false, true] {
            let mut store = store();
            let deadlines: Vec<_> = (0..3 * PARTS_STEP as u64 + 7).map(|n| Some(2_000 + n % 50)).collect();
            put(&mut store, b"many", &deadlines, is_large, Ttl::Clear);
            for number in 0..30 {
                put(&mut store, format!("few{number}").as_bytes(), &[Some(2_000), None], false, Ttl::Clear);
            }
            store.now.ms = 2_100;
            assert!(store.expire_step());
            assert_eq!(store.counters.expired_subkeys.get(), PARTS_STEP as u64);
            assert!(run(&mut store) >= 3);
            assert_eq!(
                (parts(&store, b"many"), parts(&store, b"few7"), counts(&store)),
                (None, Some(1), (0, 0))
            );
        }
    }

    #[test]
    fn deadlines_that_an_edit_brings_are_noticed() {
        let (mut store, key) = (store(), Key::new(b"key"));
        put(&mut store, b"key", &[None, None], false, Ttl::Clear);
        put(&mut store, b"other", &[Some(50_000)], false, Ttl::Clear);
        store.now.ms = 1_500;
        run(&mut store);
        store.edit(0, key, |editor| {
            let (_, mut pack) = editor.packed().unwrap();
            let place = dated::at(Listpack::new(pack.bytes()), listpack::HEAD_BYTES);
            dated::set_deadline(&mut pack, &place, Some(2_000));
        });
        assert_eq!(counts(&store), (0, 2));
        store.now.ms = 2_000;
        run(&mut store);
        assert_eq!((parts(&store, b"key"), counts(&store)), (Some(1), (0, 1)));
        assert_eq!(
            store.change_deadline(0, key, |_| DeadlineChange::Set(3_000)),
            Some(DeadlineChange::Set(3_000))
        );
        assert_eq!(counts(&store), (1, 1));
    }

    #[test]
    fn dated_parts_move_with_their_key() {
        let (mut store, there) = (store(), Key::new(b"there"));
        put(&mut store, b"here", &[Some(2_000), None], true, Ttl::Clear);
        put(&mut store, b"there", &[Some(7_000)], false, Ttl::At(8_000));
        let block = store.take(0, Key::new(b"here")).unwrap();
        assert_eq!(counts(&store), (1, 1));
        store.place(0, there, block.with_key(b"there"));
        assert_eq!(counts(&store), (0, 1));
        let Found::Live(block) = store.find(0, there, 1_000) else { panic!("the key is there") };
        let copy = block.copy_as(b"copy", 0);
        store.place(0, Key::new(b"copy"), copy);
        assert_eq!(counts(&store), (0, 2));
        store.now.ms = 2_000;
        run(&mut store);
        assert_eq!(
            (parts(&store, b"there"), parts(&store, b"copy"), counts(&store)),
            (Some(1), Some(1), (0, 0))
        );
        put(&mut store, b"there", &[Some(7_000)], false, Ttl::Clear);
        store.put(0, there, NewValue::Int(7), Ttl::Clear, 0);
        assert_eq!(counts(&store), (0, 0));
    }

    #[test]
    fn expiry_is_no_use() {
        let mut store = store();
        store.now.access = 5;
        put(&mut store, b"key", &[Some(2_000), None], false, Ttl::Clear);
        store.now.ms = 2_000;
        store.now.access = 9;
        run(&mut store);
        let Found::Live(block) = store.find(0, Key::new(b"key"), 2_000) else { panic!("the key is there") };
        assert_eq!((block.access(), store.counters.dirty.get()), (5, 1));
    }

    #[test]
    fn nothing_expires_when_that_is_switched_off() {
        let mut store = store();
        put(&mut store, b"key", &[Some(500)], false, Ttl::Clear);
        store.active_expiry = false;
        run(&mut store);
        assert_eq!(parts(&store, b"key"), Some(1));
        assert_eq!(store.expire_parts(0, Key::new(b"key"), 9), 1);
        assert_eq!((parts(&store, b"key"), store.counters.dirty.get()), (None, 1));
    }
}
