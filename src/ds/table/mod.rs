//! The packed hash table behind large hashes and sets: linear hashing over buckets of packed records.
//!
//! A bucket (`bucket.rs`) is one buffer that holds about [`RECORDS_TARGET`] records (`record.rs`) back to back, fewer
//! when they are long, so that a record costs its bytes, a fingerprint and about two bytes for its share of the bucket
//! instead of a node, pointers and a slot. Lookups compare fingerprints and walk to the candidate.
//!
//! The table grows and shrinks by a bucket at a time (linear hashing with partial expansions, `grid.rs`). So no operation
//! moves more than the records of a few buckets; only the list of buckets, eight bytes each, is now and then copied.
//!
//! Must stay true:
//! - callers give every key its own hash, [`KeyHash::of`]; growth computes it again;
//! - the number of buckets is at least what [`PackedTable::needed`] asks and at most three times that, so that a walk
//!   over buckets finds records;
//! - every deadline is in the index (`due.rs`); without deadlines there is no index.
//!
//! Keys and values stay below 4 GiB each.
mod bucket;
mod check;
mod due;
mod grid;
mod record;
mod walk;

use bucket::Found;
use due::Due;
use grid::Grid;
pub use record::{Layout, Record};
use record::{Scratch, Shape};
pub use walk::Iter;

use crate::base::hash::KeyHash;
use crate::ds::packed::PackedBytes;
use crate::ds::raw::thin::ThinBytes;

/// Records per bucket that the table aims at.
const RECORDS_TARGET: usize = 16;
/// Bytes of records per bucket that the table aims at.
const BYTES_TARGET: usize = 512;
/// A record counts for no more bytes than this: longer ones get a bucket each, not several.
const RECORD_WEIGHT_MAX: usize = BYTES_TARGET;
/// Buckets that go after one change. A record that goes takes away the need for one bucket at most, and there are three times
/// as many as needed at most.
const SHRINKS_MAX: usize = 3;

/// What an insertion does with a deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deadline {
    /// An existing record keeps its own; a new one has none.
    Keep,
    /// The record has none.
    Clear,
    /// The record is due then, in milliseconds since the epoch.
    At(u64),
}

/// The table.
#[derive(Clone)]
pub struct PackedTable {
    buckets: Vec<ThinBytes>,
    len: usize,
    /// Bytes of all records, each counted up to [`RECORD_WEIGHT_MAX`].
    weight: usize,
    due: Option<Box<Due>>,
    layout: Layout,
}

/// The hash of a key that the table holds.
#[cfg(not(test))]
#[inline]
fn hash_of(key: &[u8]) -> KeyHash {
    KeyHash::of(key)
}

/// The hash of a key that the table holds. In tests, keys with a certain start all have the same.
#[cfg(test)]
fn hash_of(key: &[u8]) -> KeyHash {
    if key.starts_with(b"\0collides") { KeyHash::from_bits(0x1234_5678_9ABC_DEF0) } else { KeyHash::of(key) }
}

fn weight(record_bytes: usize) -> usize {
    record_bytes.min(RECORD_WEIGHT_MAX)
}

impl std::fmt::Debug for PackedTable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_map().entries(self.iter().map(|record| (record.key(), record.value()))).finish()
    }
}

impl PackedTable {
    /// An empty table.
    pub fn new(layout: Layout) -> PackedTable {
        PackedTable::with_capacity(layout, 0)
    }

    /// An empty table whose list of buckets has the length that `records` short records will ask for: half a byte per
    /// record. Buckets come as records do.
    pub fn with_capacity(layout: Layout, records: usize) -> PackedTable {
        let mut buckets = Vec::with_capacity(records.div_ceil(RECORDS_TARGET).max(1));
        buckets.push(ThinBytes::new());
        PackedTable { buckets, len: 0, weight: 0, due: None, layout }
    }

    /// Number of records.
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is no record.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Number of buckets.
    pub fn bucket_count(&self) -> usize {
        self.buckets.len()
    }

    /// What its records have.
    pub fn layout(&self) -> Layout {
        self.layout
    }

    /// Heap bytes taken; the index of deadlines is an estimate. Visits every bucket.
    pub fn heap_bytes(&self) -> usize {
        let buckets: usize = self.buckets.iter().map(ThinBytes::heap_bytes).sum();
        let due = self.due.as_ref().map_or(0, |due| due.heap_bytes());
        buckets + self.buckets.capacity() * size_of::<ThinBytes>() + due
    }

    #[inline]
    fn grid(&self) -> Grid {
        Grid::of(self.buckets.len())
    }

    #[inline]
    fn index(&self, hash: KeyHash) -> usize {
        self.grid().bucket(hash.index_bits())
    }

    #[inline]
    fn find(&self, index: usize, hash: KeyHash, key: &[u8]) -> Option<Found> {
        let bytes = self.buckets[index].bytes();
        bucket::find(bytes, self.layout, hash.fingerprint(), |shape| shape.key(bytes) == key)
    }

    /// Looks a key up.
    #[inline]
    pub fn get(&self, hash: KeyHash, key: &[u8]) -> Option<Record<'_>> {
        let index = self.index(hash);
        Some(self.find(index, hash, key)?.shape.record(self.buckets[index].bytes()))
    }

    /// Whether the table holds a key.
    #[inline]
    pub fn contains(&self, hash: KeyHash, key: &[u8]) -> bool {
        self.find(self.index(hash), hash, key).is_some()
    }

    /// Adds a record, or changes value and deadline of the one with this key. `true`: it is new. A table of keys alone
    /// ignores `value`.
    pub fn insert(&mut self, hash: KeyHash, key: &[u8], value: &[u8], deadline: Deadline) -> bool {
        let value = if self.layout == Layout::Keys { &[] } else { value };
        let index = self.index(hash);
        if let Some(found) = self.find(index, hash, key) {
            self.update(index, hash, &found.shape, (key, value), deadline);
            return false;
        }
        let deadline_ms = match deadline {
            Deadline::At(ms) => Some(ms),
            Deadline::Keep | Deadline::Clear => None,
        };
        let record = (key, value, deadline_ms);
        let bytes = bucket::push(&mut self.buckets[index], self.layout, hash.fingerprint(), record);
        self.len += 1;
        self.weight += weight(bytes);
        self.redate(index, hash, None, deadline_ms);
        self.settle();
        true
    }

    fn update(
        &mut self,
        index: usize,
        hash: KeyHash,
        shape: &Shape,
        (key, value): (&[u8], &[u8]),
        deadline: Deadline,
    ) {
        let bucket = &mut self.buckets[index];
        let old_ms = shape.deadline_ms(bucket.bytes());
        let new_ms = match deadline {
            Deadline::Keep => old_ms,
            Deadline::Clear => None,
            Deadline::At(ms) => Some(ms),
        };
        if shape.value_len == value.len() {
            shape.value_mut(bucket.bytes_mut()).copy_from_slice(value);
            self.put_deadline(index, hash, shape, new_ms);
            return;
        }
        let mut new = Scratch::new();
        record::write(&mut new, self.layout, key, value, new_ms);
        bucket.splice(shape.at, shape.len(), &new);
        self.weight = self.weight - weight(shape.len()) + weight(new.len());
        self.redate(index, hash, old_ms, new_ms);
        self.settle();
    }

    /// Overwrites the value of a record when the new one is just as long. `false`: there is no such record, or its
    /// value has another length; nothing changed.
    pub fn update_value_in_place(&mut self, hash: KeyHash, key: &[u8], value: &[u8]) -> bool {
        let index = self.index(hash);
        let found = self.find(index, hash, key).filter(|found| found.shape.value_len == value.len());
        if let Some(found) = &found {
            found.shape.value_mut(self.buckets[index].bytes_mut()).copy_from_slice(value);
        }
        found.is_some()
    }

    /// Gives a record a deadline in milliseconds since the epoch, or takes it away; the former one comes back. `None`:
    /// there is no such record.
    pub fn set_deadline(
        &mut self,
        hash: KeyHash,
        key: &[u8],
        deadline_ms: Option<u64>,
    ) -> Option<Option<u64>> {
        let index = self.index(hash);
        let found = self.find(index, hash, key)?;
        Some(self.put_deadline(index, hash, &found.shape, deadline_ms))
    }

    fn put_deadline(
        &mut self,
        index: usize,
        hash: KeyHash,
        shape: &Shape,
        new_ms: Option<u64>,
    ) -> Option<u64> {
        let bucket = &mut self.buckets[index];
        let old_ms = shape.deadline_ms(bucket.bytes());
        if old_ms == new_ms {
            return old_ms;
        }
        let (at, taken, head) = shape.deadline_part(bucket.bytes(), new_ms.is_some());
        bucket.bytes_mut()[shape.at] = head;
        match new_ms {
            Some(ms) => bucket.splice(at, taken, &ms.to_le_bytes()),
            None => bucket.splice(at, taken, &[]),
        }
        let len = Shape::read(bucket.bytes(), shape.at, self.layout).len();
        self.weight = self.weight - weight(shape.len()) + weight(len);
        self.redate(index, hash, old_ms, new_ms);
        self.settle();
        old_ms
    }

    /// Brings the index of deadlines up to date with a record that changed or went from the bucket at `index`.
    fn redate(&mut self, index: usize, hash: KeyHash, old_ms: Option<u64>, new_ms: Option<u64>) {
        if old_ms == new_ms {
            return;
        }
        if let Some(ms) = new_ms {
            self.due.get_or_insert_default().add(ms, hash);
        }
        if let Some(ms) = old_ms {
            let shared = self.find_dated(index, hash, ms).is_some();
            if let Some(due) = &mut self.due {
                due.forget(ms, hash, shared);
            }
        }
        if self.due.as_ref().is_some_and(|due| due.records() == 0) {
            self.due = None;
        }
    }

    /// A record of the bucket at `index` with this hash and deadline.
    fn find_dated(&self, index: usize, hash: KeyHash, deadline_ms: u64) -> Option<Found> {
        let bytes = self.buckets[index].bytes();
        bucket::find(bytes, self.layout, hash.fingerprint(), |shape| {
            shape.deadline_ms(bytes) == Some(deadline_ms) && hash_of(shape.key(bytes)) == hash
        })
    }

    /// Removes a record. `false`: there was none.
    pub fn remove(&mut self, hash: KeyHash, key: &[u8]) -> bool {
        self.remove_with(hash, key, |_| ()).is_some()
    }

    /// Removes a record after a last look at it.
    pub fn remove_with<R>(
        &mut self,
        hash: KeyHash,
        key: &[u8],
        look: impl FnOnce(Record<'_>) -> R,
    ) -> Option<R> {
        let index = self.index(hash);
        let found = self.find(index, hash, key)?;
        Some(self.take(index, hash, &found, look))
    }

    fn take<R>(
        &mut self,
        index: usize,
        hash: KeyHash,
        found: &Found,
        look: impl FnOnce(Record<'_>) -> R,
    ) -> R {
        let bucket = &mut self.buckets[index];
        let record = found.shape.record(bucket.bytes());
        let deadline_ms = record.deadline_ms();
        let seen = look(record);
        bucket::remove(bucket, found);
        self.len -= 1;
        self.weight -= weight(found.shape.len());
        self.redate(index, hash, deadline_ms, None);
        self.settle();
        seen
    }

    /// The earliest deadline, in milliseconds since the epoch.
    pub fn earliest_deadline_ms(&self) -> Option<u64> {
        Some(self.due.as_ref()?.first()?.0)
    }

    /// Number of records with a deadline.
    pub fn deadline_count(&self) -> usize {
        self.due.as_ref().map_or(0, |due| due.records())
    }

    /// Removes up to `limit` records whose deadline is `now_ms` or before, the earliest first, each after `look` saw
    /// its key and value. Gives their number.
    pub fn take_due(&mut self, now_ms: u64, limit: usize, mut look: impl FnMut(&[u8], &[u8])) -> usize {
        let mut taken = 0;
        while taken < limit {
            let first = self.due.as_ref().and_then(|due| due.first());
            let Some((deadline_ms, hash)) = first.filter(|(deadline_ms, _)| *deadline_ms <= now_ms) else {
                break;
            };
            let index = self.index(hash);
            let Some(found) = self.find_dated(index, hash, deadline_ms) else {
                debug_assert!(false, "a deadline without a record");
                break;
            };
            self.take(index, hash, &found, |record| look(record.key(), record.value()));
            taken += 1;
        }
        taken
    }

    /// The number of buckets that the records are worth.
    fn needed(&self) -> usize {
        self.len.div_ceil(RECORDS_TARGET).max(self.weight.div_ceil(BYTES_TARGET))
    }

    /// Adds a bucket, or takes a few away, after a change of one record.
    #[inline]
    fn settle(&mut self) {
        let needed = self.needed();
        if needed > self.buckets.len() {
            return grid::grow(&mut self.buckets, self.layout);
        }
        for _ in 0..SHRINKS_MAX {
            if self.buckets.len() <= (3 * needed).max(1) {
                break;
            }
            grid::shrink(&mut self.buckets, self.layout);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, HashMap};

    use proptest::prelude::*;

    use super::*;
    use crate::base::rng::Rng;

    /// What a table should hold.
    type Model = HashMap<Vec<u8>, (Vec<u8>, Option<u64>)>;

    #[derive(Clone, Debug)]
    enum Step {
        Insert { key: u16, value: u16, deadline: Deadline },
        Overwrite { key: u16, value: u16 },
        Date { key: u16, deadline_ms: Option<u64> },
        Remove { key: u16 },
        Pop { random: u64 },
        Due { now_ms: u64, limit: usize },
    }

    /// A key of a number: most short, some long, some that all share one hash.
    fn key(number: u16) -> Vec<u8> {
        let text = format!("{number:x}").into_bytes();
        match number % 8 {
            0 => [b"\0collides".as_slice(), &text].concat(),
            1 => [text, vec![b'-'; usize::from(number)]].concat(),
            _ => text,
        }
    }

    /// Lengths on both sides of every width of their code, and of the weight's limit.
    fn value(number: u16) -> Vec<u8> {
        let length = [0, 1, 11, 11, 12, 250, 253, 254, 255, 480, 600, 3000][usize::from(number) % 12];
        vec![number as u8; length]
    }

    fn steps(keys: u16) -> impl Strategy<Value = Vec<Step>> {
        let some_key = 0..keys;
        let deadline =
            prop_oneof![Just(Deadline::Keep), Just(Deadline::Clear), (0u64..20).prop_map(Deadline::At)];
        let step = prop_oneof![
            6 => (some_key.clone(), any::<u16>(), deadline).prop_map(|(key, value, deadline)| Step::Insert {
                key,
                value,
                deadline
            }),
            1 => (some_key.clone(), any::<u16>()).prop_map(|(key, value)| Step::Overwrite { key, value }),
            2 => (some_key.clone(), proptest::option::of(0u64..20))
                .prop_map(|(key, deadline_ms)| Step::Date { key, deadline_ms }),
            3 => some_key.prop_map(|key| Step::Remove { key }),
            1 => any::<u64>().prop_map(|random| Step::Pop { random }),
            1 => (0u64..20, 0usize..5).prop_map(|(now_ms, limit)| Step::Due { now_ms, limit }),
        ];
        proptest::collection::vec(step, 1..200)
    }

    fn apply(table: &mut PackedTable, model: &mut Model, step: Step) {
        match step {
            Step::Insert { key: k, value: v, deadline } => {
                let (k, mut v) = (key(k), value(v));
                let new = table.insert(hash_of(&k), &k, &v, deadline);
                assert_eq!(new, !model.contains_key(&k));
                if table.layout() == Layout::Keys {
                    v.clear();
                }
                let entry = model.entry(k).or_default();
                entry.0 = v;
                match deadline {
                    Deadline::Keep => {}
                    Deadline::Clear => entry.1 = None,
                    Deadline::At(ms) => entry.1 = Some(ms),
                }
            }
            Step::Overwrite { key: k, value: v } => {
                let (k, v) = (key(k), value(v));
                let old = model.get_mut(&k).filter(|old| old.0.len() == v.len());
                assert_eq!(table.update_value_in_place(hash_of(&k), &k, &v), old.is_some());
                if let Some(old) = old {
                    old.0 = v;
                }
            }
            Step::Date { key: k, deadline_ms } => {
                let k = key(k);
                let previous = model.get_mut(&k).map(|entry| std::mem::replace(&mut entry.1, deadline_ms));
                assert_eq!(table.set_deadline(hash_of(&k), &k, deadline_ms), previous);
            }
            Step::Remove { key: k } => {
                let k = key(k);
                let seen = table.remove_with(hash_of(&k), &k, |r| (r.value().to_vec(), r.deadline_ms()));
                assert_eq!(seen, model.remove(&k));
            }
            Step::Pop { random } => {
                let mut rng = Rng::seeded(random);
                let popped = table.pop_random(&mut || rng.next_u64(), |record| record.key().to_vec());
                assert_eq!(popped.is_some(), !model.is_empty());
                assert!(popped.is_none_or(|key| model.remove(&key).is_some()));
            }
            Step::Due { now_ms, limit } => take_due(table, model, now_ms, limit),
        }
    }

    fn take_due(table: &mut PackedTable, model: &mut Model, now_ms: u64, limit: usize) {
        let due = |model: &Model| model.values().filter(|v| v.1.is_some_and(|ms| ms <= now_ms)).count();
        let (before, mut deadlines) = (due(model), Vec::new());
        let taken = table.take_due(now_ms, limit, |key, value| {
            let old = model.remove(key).expect("a record that the model has");
            assert_eq!(value, old.0);
            deadlines.push(old.1.expect("a deadline"));
        });
        assert_eq!((taken, deadlines.len(), due(model)), (before.min(limit), taken, before - taken));
        assert!(deadlines.is_sorted() && deadlines.iter().all(|ms| *ms <= now_ms));
    }

    fn compare(table: &PackedTable, model: &Model) {
        table.check();
        assert_eq!((table.len(), table.is_empty()), (model.len(), model.is_empty()));
        for (key, (value, deadline_ms)) in model {
            let record = table.get(hash_of(key), key).expect("a key of the model");
            assert_eq!((record.key(), record.value()), (&key[..], &value[..]));
            assert_eq!(record.deadline_ms(), *deadline_ms);
        }
        let mut deadlines: BTreeMap<u64, usize> = BTreeMap::new();
        model.values().filter_map(|v| v.1).for_each(|ms| *deadlines.entry(ms).or_default() += 1);
        assert_eq!(table.deadline_count(), deadlines.values().sum::<usize>());
        assert_eq!(table.earliest_deadline_ms(), deadlines.first_key_value().map(|first| *first.0));
        let keys = table.iter().filter(|record| model.contains_key(record.key())).count();
        assert_eq!((keys, table.iter().len()), (model.len(), model.len()));
    }

    proptest! {
        #[test]
        fn table_model(steps in steps(90), keys_alone: bool) {
            let layout = if keys_alone { Layout::Keys } else { Layout::KeysAndValues };
            let (mut table, mut model) = (PackedTable::new(layout), Model::new());
            for step in steps {
                apply(&mut table, &mut model, step);
                table.check();
            }
            compare(&table, &model);
            compare(&table.clone(), &model);
        }
    }

    fn member(number: usize) -> Vec<u8> {
        format!("member:{number:09}").into_bytes()
    }

    fn with_members(count: usize) -> PackedTable {
        let mut table = PackedTable::new(Layout::Keys);
        for number in 0..count {
            let key = member(number);
            assert!(table.insert(KeyHash::of(&key), &key, b"", Deadline::Keep));
        }
        table
    }

    #[test]
    fn grows_to_thousands_and_back_to_nothing() {
        let mut rng = Rng::seeded(3);
        let (mut table, mut model) = (PackedTable::new(Layout::KeysAndValues), Model::new());
        for target in [9_000_u16, 0] {
            while model.len() != usize::from(target) {
                let grow = target > 0 && rng.below(10) < 8;
                let (key, value) = (rng.below(12_000) as u16, rng.next_u64() as u16);
                let deadline = match rng.below(4) {
                    0 => Deadline::At(rng.below(1000)),
                    _ => Deadline::Keep,
                };
                let step = if grow { Step::Insert { key, value, deadline } } else { Step::Remove { key } };
                apply(&mut table, &mut model, step);
                if rng.below(2_000) == 0 {
                    compare(&table, &model);
                }
            }
            compare(&table, &model);
        }
        assert_eq!(table.buckets.len(), 1);
        assert!(table.due.is_none() && table.heap_bytes() <= 64, "{}", table.heap_bytes());
    }

    #[test]
    fn the_number_of_buckets_follows_count_and_bytes() {
        let buckets = |value: usize, records: usize| {
            let mut table = PackedTable::new(Layout::KeysAndValues);
            for number in 0..records {
                let key = member(number);
                table.insert(KeyHash::of(&key), &key, &vec![0; value], Deadline::Keep);
            }
            table.buckets.len()
        };
        assert_eq!(buckets(1, 16_000), 1_000);
        assert_eq!(buckets(10_000, 1_000), 1_000, "long records have a bucket each");
        let middle = buckets(110, 1_000);
        assert!((240..=256).contains(&middle), "about 512 bytes each: {middle}");
    }

    #[test]
    fn short_values_in_the_place_of_long_ones_give_memory_back() {
        let mut table = PackedTable::new(Layout::KeysAndValues);
        for value in [2_000, 10] {
            for number in 0..1_000 {
                let key = member(number);
                table.insert(KeyHash::of(&key), &key, &vec![0; value], Deadline::Keep);
            }
            table.check();
        }
        assert!(table.buckets.len() <= 3 * 63 && table.heap_bytes() < 45_000, "{}", table.heap_bytes());
    }

    #[test]
    fn memory_per_record() {
        let per_record = |table: &PackedTable| table.heap_bytes() as f64 / table.len() as f64;
        for count in [50_000, 65_536, 100_000, 131_072] {
            let mut table = with_members(count);
            assert!(per_record(&table) < 21.0, "{count} members: {}", per_record(&table));
            let mut hash = PackedTable::new(Layout::KeysAndValues);
            for number in 0..count {
                let key = member(number);
                hash.insert(KeyHash::of(&key), &key, b"01234567890", Deadline::Keep);
            }
            assert!(per_record(&hash) < 33.0, "{count} fields: {}", per_record(&hash));
            for number in count / 50..count {
                assert!(table.remove(KeyHash::of(&member(number)), &member(number)));
            }
            assert!(per_record(&table) < 30.0, "few members are left: {}", per_record(&table));
        }
    }

    #[test]
    fn a_list_made_beforehand_does_not_grow() {
        let mut table = PackedTable::with_capacity(Layout::Keys, 10_000);
        let room = table.buckets.capacity();
        for number in 0..10_000 {
            table.insert(KeyHash::of(&member(number)), &member(number), b"", Deadline::Clear);
        }
        assert_eq!((table.buckets.capacity(), table.buckets.len()), (room, 625));
    }

    #[test]
    fn equal_deadlines_of_equal_hashes_are_all_kept() {
        let mut table = PackedTable::new(Layout::KeysAndValues);
        let keys: Vec<Vec<u8>> = (0..300).map(|n| format!("\0collides{n}").into_bytes()).collect();
        for key in &keys {
            assert!(table.insert(hash_of(key), key, b"v", Deadline::At(5)));
        }
        table.check();
        assert_eq!((table.deadline_count(), table.due.as_ref().map(|due| due.entries())), (300, Some(1)));
        assert_eq!(table.set_deadline(hash_of(&keys[7]), &keys[7], Some(4)), Some(Some(5)));
        assert_eq!(table.set_deadline(hash_of(&keys[8]), &keys[8], None), Some(Some(5)));
        assert!(table.remove(hash_of(&keys[9]), &keys[9]));
        table.check();
        assert_eq!(table.earliest_deadline_ms(), Some(4));
        let mut seen = Vec::new();
        assert_eq!(table.take_due(5, 10, |key, _| seen.push(key.to_vec())), 10);
        assert_eq!(seen[0], keys[7]);
        assert_eq!(table.take_due(4, usize::MAX, |_, _| ()), 0);
        assert_eq!(table.take_due(u64::MAX, usize::MAX, |_, _| ()), 288);
        assert_eq!((table.len(), table.deadline_count(), table.earliest_deadline_ms()), (1, 0, None));
        assert!(table.get(hash_of(&keys[8]), &keys[8]).is_some_and(|record| record.deadline_ms().is_none()));
    }
}
