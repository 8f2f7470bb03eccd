//! DashTable: extendible hashing. A directory of hash prefixes leads to segments, a segment holds its keys in
//! buckets of one cache line (after "Dash: Scalable Hashing on Persistent Memory", VLDB 2020, for memory).
//!
//! Segments lie in slabs: arrays that double in size and never move, so the directory can point straight at
//! them. An empty table holds one segment without buckets; a pre-sized one holds exactly what was asked; the
//! doubling of slabs is capped. A segment's buckets grow with its keys in steps of an eighth to a quarter, so
//! the table is about four fifths full at every size.
//!
//! Must stay true: the directory entries of a segment are exactly the prefixes of its range; segments are never
//! merged, so a scan in hash order misses nothing that was there throughout.
use std::marker::PhantomData;
use std::ptr::NonNull;

use super::segment::{BUCKETS_MAX, Place, SLOTS, Segment};
use crate::base::hash::{KeyHash, PREFIX_BITS};

/// Organic growth adds at most this many segments at once.
const SLAB_SEGMENTS_MAX: usize = 256;
/// Keys that a pre-sized segment is laid out for.
const PRESIZED_ENTRIES: usize = 336;
/// A full segment never holds more.
const SEGMENT_ENTRIES_MAX: u64 = BUCKETS_MAX as u64 * SLOTS as u64;
/// Draws after which [`Dash::random`] takes the next entry there is: reached only where the table is almost empty.
const RANDOM_TRIES: u32 = 256;

/// A pointer-sized owner of one heap block that knows its key.
///
/// # Safety
/// The address is 8-aligned and below 2^48, stays valid until `from_raw` takes it back and the entry is dropped,
/// and `key` never changes meanwhile.
pub unsafe trait Entry: Sized + 'static {
    /// A shared view.
    type Ref<'a>: View<'a>;
    /// An exclusive view that can change neither key nor deadline.
    type Mut<'a>: ViewMut;
    /// Gives up ownership.
    fn into_raw(self) -> NonNull<u8>;
    /// Takes ownership back.
    ///
    /// # Safety
    /// `at` comes from `into_raw` and was not taken back yet.
    unsafe fn from_raw(at: NonNull<u8>) -> Self;
    /// The address, without giving up ownership.
    fn raw(&self) -> NonNull<u8> {
        // SAFETY: read back at once; the copy is forgotten by `into_raw`.
        unsafe { std::ptr::read(self) }.into_raw()
    }
    /// Looks at the entry.
    ///
    /// # Safety
    /// The entry at `at` lives, and nobody changes it, for `'a`.
    unsafe fn view_at<'a>(at: NonNull<u8>) -> Self::Ref<'a>;
    /// Looks at the entry exclusively.
    ///
    /// # Safety
    /// The entry at `at` lives, and nobody else looks at it, for `'a`.
    unsafe fn view_mut_at<'a>(at: NonNull<u8>) -> Self::Mut<'a>;
}

/// What the table must learn from an entry.
pub trait View<'a>: Copy {
    /// Its key.
    fn key(self) -> &'a [u8];
    /// When it expires, in milliseconds since the epoch.
    fn deadline_ms(self) -> Option<u64>;
    /// When it, or the earliest of its parts, expires.
    fn wake_ms(self) -> Option<u64>;
}

/// What the table may change in an entry itself.
pub trait ViewMut {
    /// Overwrites the deadline of an entry that has one; `false` when it has none.
    fn move_deadline(&mut self, deadline_ms: u64) -> bool;
}

/// The table.
pub struct Dash<E: Entry> {
    directory: Vec<NonNull<Segment<E>>>,
    depth: u8,
    slabs: Vec<Vec<Segment<E>>>,
    len: usize,
    /// The number of the last walk that began.
    walk: u32,
}

// SAFETY: the table owns its segments; the directory's pointers stay inside it.
unsafe impl<E: Entry + Send> Send for Dash<E> {}
// SAFETY: shared use only reads.
unsafe impl<E: Entry + Sync> Sync for Dash<E> {}

/// A position between two calls of [`Dash::scan`], in hash order. The default is the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct ScanAt {
    /// Hash prefix, `PREFIX_BITS` bits.
    pub prefix: u32,
    /// Bucket bits.
    pub bits: u16,
}

/// An entry that was found, with the right to change it.
pub struct Slot<'a, E: Entry> {
    segment: NonNull<Segment<E>>,
    place: Place,
    len: &'a mut usize,
    walk: u32,
    _table: PhantomData<&'a mut Dash<E>>,
}

impl<E: Entry> Default for Dash<E> {
    fn default() -> Self {
        Self::new()
    }
}

impl<E: Entry> Dash<E> {
    /// An empty table: one segment, no buckets.
    pub fn new() -> Self {
        Self::with_depth(0, 0, 0)
    }

    /// An empty table that counts as walked by walk number `walk`.
    pub fn walked(walk: u32) -> Self {
        Self::with_depth(0, 0, walk)
    }

    /// A table laid out for `entries` keys: exactly the segments and buckets that they need.
    pub fn with_capacity(entries: usize) -> Self {
        let segments = entries.div_ceil(PRESIZED_ENTRIES).next_power_of_two();
        let depth = segments.ilog2().min(PREFIX_BITS) as u8;
        Self::with_depth(depth, entries.div_ceil(1 << depth), 0)
    }

    fn with_depth(depth: u8, entries_each: usize, walk: u32) -> Self {
        let count = 1usize << depth;
        let slabs = vec![Vec::with_capacity(count)];
        let mut table = Dash { directory: Vec::new(), depth, slabs, len: 0, walk };
        for index in 0..count {
            let start = ((index as u64) << (PREFIX_BITS - u32::from(depth))) as u32;
            let mut segment = Segment::empty(start, depth, walk);
            if entries_each > 0 {
                segment.reserve(entries_each);
            }
            let at = table.place_segment(segment);
            table.directory.push(at);
        }
        table
    }

    /// Puts a segment into the last slab, or into a new one as large as all before it (capped).
    fn place_segment(&mut self, segment: Segment<E>) -> NonNull<Segment<E>> {
        let full = self.slabs.last().is_none_or(|slab| slab.len() == slab.capacity());
        if full {
            let so_far: usize = self.slabs.iter().map(Vec::len).sum();
            self.slabs.push(Vec::with_capacity(so_far.clamp(1, SLAB_SEGMENTS_MAX)));
        }
        let slab = self.slabs.last_mut().expect("just made");
        slab.push(segment);
        // A slab is never pushed beyond its capacity, so its segments never move. The pointer is made from the
        // vector's own, not from a reference to one element, since all elements are reached through it.
        // SAFETY: the index is in bounds.
        unsafe { NonNull::new_unchecked(slab.as_mut_ptr().add(slab.len() - 1)) }
    }

    /// Number of entries.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is no entry.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    #[inline]
    fn index(&self, prefix: u32) -> usize {
        // In 64 bits, since a depth of zero shifts by all 24.
        (u64::from(prefix) >> (PREFIX_BITS - u32::from(self.depth))) as usize
    }

    #[inline]
    fn segment(&self, hash: KeyHash) -> &Segment<E> {
        // SAFETY: the directory has 2^depth entries and points at live segments of our slabs.
        // Checked by: `table_model` (proptest, Miri).
        unsafe { self.directory.get_unchecked(self.index(hash.prefix())).as_ref() }
    }

    fn segment_ptr(&self, hash: KeyHash) -> NonNull<Segment<E>> {
        self.directory[self.index(hash.prefix())]
    }

    /// Asks the processor to load the bucket of `hash`. First stage of a batch.
    #[inline]
    pub fn prefetch(&self, hash: KeyHash) {
        self.segment(hash).prefetch(hash);
    }

    /// Asks the processor to load the entry of `hash`. Second stage of a batch.
    #[inline]
    pub fn prefetch_entry(&self, hash: KeyHash) {
        self.segment(hash).prefetch_entry(hash);
    }

    /// Looks `key` up.
    #[inline(always)]
    pub fn get(&self, hash: KeyHash, key: &[u8]) -> Option<E::Ref<'_>> {
        let segment = self.segment(hash);
        segment.find(hash, key).map(|place| segment.at(place))
    }

    /// Looks `key` up, to change it.
    #[inline(always)]
    pub fn slot(&mut self, hash: KeyHash, key: &[u8]) -> Option<Slot<'_, E>> {
        let segment = self.segment_ptr(hash);
        // SAFETY: live, and borrowed exclusively through `self` for the slot's lifetime.
        let place = unsafe { segment.as_ref() }.find(hash, key)?;
        Some(Slot { segment, place, len: &mut self.len, walk: self.walk, _table: PhantomData })
    }

    /// Puts an entry in. Its key must not be there.
    pub fn insert(&mut self, hash: KeyHash, entry: E) {
        loop {
            let mut at = self.segment_ptr(hash);
            // SAFETY: live, and `self` is borrowed exclusively.
            let segment = unsafe { at.as_mut() };
            if !segment.is_full() {
                segment.insert(hash, entry, self.walk);
                self.len += 1;
                return;
            }
            // Prefixes are exhausted only beyond 2^24 full segments; the last ones then just grow slower.
            if segment.may_grow() {
                segment.grow();
            } else {
                self.split(at);
            }
        }
    }

    fn split(&mut self, mut at: NonNull<Segment<E>>) {
        // SAFETY: live, and `self` is borrowed exclusively.
        let segment = unsafe { at.as_mut() };
        assert!(u32::from(segment.depth) < PREFIX_BITS, "a shard holds fewer than 2^24 full segments");
        if segment.depth == self.depth {
            self.double_directory();
        }
        let high = segment.split();
        let (start, depth) = (high.start, high.depth);
        let high = self.place_segment(high);
        let first = self.index(start);
        let entries = 1usize << (self.depth - depth);
        self.directory[first..first + entries].fill(high);
    }

    fn double_directory(&mut self) {
        self.directory = self.directory.iter().flat_map(|s| [*s, *s]).collect();
        self.depth += 1;
    }

    /// Visits entries in hash order from `at`, at least `count` of them where there are that many; returns where
    /// to go on, `None` at the end. Looks at no more than ten buckets per wanted entry, so a sparse table costs
    /// no more than a full one. Every entry that is there throughout a whole scan is visited; one may come twice
    /// when its segment splits meanwhile.
    pub fn scan<'a>(&'a self, at: ScanAt, count: usize, f: &mut dyn FnMut(E::Ref<'a>)) -> Option<ScanAt> {
        let (mut prefix, mut bits, mut seen) = (at.prefix & ((1 << PREFIX_BITS) - 1), at.bits, 0);
        for _ in 0..count.saturating_mul(10).max(10) {
            // SAFETY: as in `segment`.
            let segment = unsafe { self.directory[self.index(prefix)].as_ref() };
            let next = segment.scan_home(bits, |entry| {
                seen += 1;
                f(entry);
            });
            match next {
                Some(next) => bits = next,
                None => {
                    (prefix, bits) = (next_start(segment)?, 0);
                }
            }
            if seen >= count {
                break;
            }
        }
        Some(ScanAt { prefix, bits })
    }

    /// Visits every entry.
    pub fn for_each<'a>(&'a self, mut f: impl FnMut(E::Ref<'a>)) {
        for segment in self.slabs.iter().flatten() {
            segment.for_each(&mut f);
        }
    }

    /// An entry picked by random numbers, each about equally likely; in a table that is almost empty, each of
    /// some.
    pub fn random(&self, mut next: impl FnMut() -> u64) -> Option<E::Ref<'_>> {
        if self.len == 0 {
            return None;
        }
        let entries = self.directory.len();
        for _ in 0..RANDOM_TRIES {
            // Choosing a segment, then rejecting in proportion to how full it is, is fair over entries. A shallow
            // segment stands behind several directory entries; only the first of them counts.
            let index = (next() % entries as u64) as usize;
            // SAFETY: as in `segment`.
            let segment = unsafe { self.directory[index].as_ref() };
            let n = next() % SEGMENT_ENTRIES_MAX;
            let hit = n < u64::from(segment.count) && self.index(segment.start) == index;
            if hit || (entries == 1 && segment.count > 0) {
                return Some(segment.nth(n));
            }
        }
        let first = (next() % entries as u64) as usize;
        let (before, behind) = self.directory.split_at(first);
        // SAFETY: as in `segment`.
        let mut segments = behind.iter().chain(before).map(|at| unsafe { at.as_ref() });
        segments.find(|segment| segment.count > 0).map(|segment| segment.nth(next()))
    }

    /// Hands out what is due in up to `segments` segments after position `from`, at most `limit` entries; returns how
    /// many they were and the position to go on from. Looks into no segment whose earliest deadline lies ahead.
    ///
    /// Whoever learns of an entry with parts that are due must change it and call [`Slot::note_wake`]: until then the
    /// table does not remember that it has any.
    pub fn take_due(
        &mut self,
        now_ms: u64,
        from: DueAt,
        segments: usize,
        limit: usize,
        f: &mut dyn FnMut(Due<'_, E>),
    ) -> (usize, DueAt) {
        let (mut at, mut handed) = (from, 0);
        for _ in 0..segments {
            let Some(slab) = self.slabs.get_mut(at.slab) else {
                at = DueAt::default();
                break;
            };
            let Some(segment) = slab.get_mut(at.segment) else {
                at = DueAt { slab: at.slab + 1, segment: 0 };
                continue;
            };
            if segment.deadline_min_ms <= now_ms {
                let count = segment.count;
                handed += segment.take_due(now_ms, limit - handed, f);
                self.len -= usize::from(count - segment.count);
                segment.shrink_if_sparse();
                if handed >= limit {
                    break;
                }
            }
            at.segment += 1;
        }
        (handed, at)
    }

    /// Begins walk number `walk`, which owes a visit to every entry that is there now. The walk before must be through.
    pub fn begin_walk(&mut self, walk: u32) {
        self.walk = walk;
    }

    /// Visits entries that the walk owes, from segment `at` on, until `f` refuses one or one more segment is done with.
    /// Returns where to go on; `None`: the walk is through.
    ///
    /// Entries that come, change and go meanwhile, and segments that split, do not disturb it: whoever is about to change
    /// an entry asks [`Slot::is_owed`] and visits it first.
    pub fn walk(&mut self, at: WalkAt, f: &mut dyn FnMut(E::Ref<'_>) -> bool) -> Option<WalkAt> {
        let mut at = at;
        loop {
            let slab = self.slabs.get_mut(at.slab)?;
            let Some(segment) = slab.get_mut(at.segment) else {
                at = WalkAt { slab: at.slab + 1, segment: 0 };
                continue;
            };
            if segment.walk == self.walk {
                at.segment += 1;
                continue;
            }
            segment.prefetch_entries();
            if segment.walk(self.walk, f) {
                at.segment += 1;
            }
            return Some(at);
        }
    }

    /// Number of segments, for pacing.
    pub fn segments(&self) -> usize {
        self.slabs.iter().map(Vec::len).sum()
    }

    /// Heap bytes of directory, slabs and buckets.
    pub fn table_bytes(&self) -> usize {
        let slabs: usize = self.slabs.iter().map(|s| s.capacity() * size_of::<Segment<E>>()).sum();
        let buckets: usize = self.slabs.iter().flatten().map(Segment::table_bytes).sum();
        self.directory.capacity() * size_of::<usize>() + slabs + buckets
    }

    #[cfg(test)]
    fn check(&self) {
        let mut total = 0;
        for segment in self.slabs.iter().flatten() {
            segment.check();
            total += usize::from(segment.count);
        }
        assert_eq!(total, self.len);
        for (index, segment) in self.directory.iter().enumerate() {
            // SAFETY: as in `segment`.
            let segment = unsafe { segment.as_ref() };
            let prefix = ((index as u64) << (PREFIX_BITS - u32::from(self.depth))) as u32;
            let range = (
                u64::from(segment.start),
                u64::from(segment.start) + (1u64 << (PREFIX_BITS - u32::from(segment.depth))),
            );
            assert!((range.0..range.1).contains(&u64::from(prefix)));
        }
    }
}

/// What [`Dash::take_due`] finds.
pub enum Due<'a, E: Entry> {
    /// An entry whose deadline has come, taken out.
    Entry(E),
    /// An entry that stays, with parts whose time has come.
    Parts(E::Ref<'a>),
}

/// Where [`Dash::walk`] goes on.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct WalkAt {
    slab: usize,
    segment: usize,
}

/// Where [`Dash::take_due`] goes on.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct DueAt {
    slab: usize,
    segment: usize,
}

/// The first prefix after a segment's range, `None` after the last.
fn next_start<E: Entry>(segment: &Segment<E>) -> Option<u32> {
    let next = u64::from(segment.start) + (1u64 << (PREFIX_BITS - u32::from(segment.depth)));
    (next < (1 << PREFIX_BITS)).then_some(next as u32)
}

impl<'a, E: Entry> Slot<'a, E> {
    #[inline]
    fn segment(&self) -> &Segment<E> {
        // SAFETY: the slot borrows the table exclusively, and segments never move.
        unsafe { self.segment.as_ref() }
    }

    fn segment_mut(&mut self) -> &mut Segment<E> {
        // SAFETY: as above.
        unsafe { self.segment.as_mut() }
    }

    /// The entry.
    #[inline]
    pub fn view(&self) -> E::Ref<'_> {
        self.segment().at(self.place)
    }

    /// The entry, for changes that concern neither key nor deadline.
    pub fn view_mut(&mut self) -> E::Mut<'_> {
        let place = self.place;
        self.segment_mut().at_mut(place)
    }

    /// Whether the walk under way has still to visit the entry.
    #[inline]
    pub fn is_owed(&self) -> bool {
        self.segment().is_owed(self.place, self.walk)
    }

    /// Notes that the entry was visited ahead of the walk, which owed that.
    pub fn set_visited(&mut self) {
        let place = self.place;
        self.segment_mut().set_visited(place);
    }

    /// Overwrites the deadline of an entry that has one; `false` when it has none (then `replace` it).
    pub fn move_deadline(&mut self, deadline_ms: u64) -> bool {
        let moved = self.view_mut().move_deadline(deadline_ms);
        if moved {
            self.segment_mut().note_deadline(Some(deadline_ms));
        }
        moved
    }

    /// Takes note of what is due in the entry, after a change that may have given its parts deadlines.
    pub fn note_wake(&mut self) {
        let place = self.place;
        self.segment_mut().note_wake(place);
    }

    /// Puts `entry`, which has the same key, in its place; returns the old one.
    pub fn replace(&mut self, entry: E) -> E {
        let place = self.place;
        self.segment_mut().replace(place, entry)
    }

    /// Exchanges the entry for what `f` makes of it (with the same key).
    pub fn update(&mut self, f: impl FnOnce(E) -> E) {
        let place = self.place;
        self.segment_mut().update(place, f);
    }

    /// Takes the entry out.
    pub fn remove(mut self) -> E {
        let place = self.place;
        let entry = self.segment_mut().remove(place);
        self.segment_mut().shrink_if_sparse();
        *self.len -= 1;
        entry
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use proptest::prelude::*;

    use super::super::block::{Block, NewValue, Payload};
    use super::*;

    fn block(key: &[u8], value: i64, deadline: Option<u64>) -> Block {
        Block::new(key, NewValue::Int(value), deadline, 0, 0)
    }

    fn put(table: &mut Dash<Block>, key: &[u8], value: i64, deadline: Option<u64>) {
        let hash = KeyHash::of(key);
        match table.slot(hash, key) {
            Some(mut slot) => drop(slot.replace(block(key, value, deadline))),
            None => table.insert(hash, block(key, value, deadline)),
        }
    }

    fn get(table: &Dash<Block>, key: &[u8]) -> Option<i64> {
        match table.get(KeyHash::of(key), key)?.string()? {
            Payload::Int(v) => Some(v),
            Payload::Bytes(_) => None,
        }
    }

    #[derive(Clone, Debug)]
    enum Step {
        Put(u16, i64, Option<u64>),
        Remove(u16),
        Expire(u64),
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            4 => (any::<u16>(), any::<i64>(), proptest::option::of(0u64..100)).prop_map(|(k, v, d)| Step::Put(k % 900, v, d)),
            2 => any::<u16>().prop_map(|k| Step::Remove(k % 900)),
            1 => (0u64..100).prop_map(Step::Expire),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: if cfg!(miri) { 3 } else { 64 }, ..ProptestConfig::default() })]
        #[test]
        fn table_model(steps in proptest::collection::vec(step(), 1..if cfg!(miri) { 200 } else { 1500 })) {
            let mut table = Dash::<Block>::new();
            let mut model: BTreeMap<Vec<u8>, (i64, Option<u64>)> = BTreeMap::new();
            for step in steps {
                match step {
                    Step::Put(k, v, d) => {
                        let key = format!("key:{k}").into_bytes();
                        put(&mut table, &key, v, d);
                        model.insert(key, (v, d));
                    }
                    Step::Remove(k) => {
                        let key = format!("key:{k}").into_bytes();
                        let gone = table.slot(KeyHash::of(&key), &key).map(Slot::remove).is_some();
                        prop_assert_eq!(gone, model.remove(&key).is_some());
                    }
                    Step::Expire(now) => {
                        let all = table.segments() + 64;
                        let (n, _) = table.take_due(now, DueAt::default(), all, usize::MAX, &mut |due| drop(due));
                        let before = model.len();
                        model.retain(|_, (_, d)| d.is_none_or(|d| d > now));
                        prop_assert_eq!(n, before - model.len());
                    }
                }
            }
            table.check();
            prop_assert_eq!(table.len(), model.len());
            for (key, (value, _)) in &model {
                prop_assert_eq!(get(&table, key), Some(*value));
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: if cfg!(miri) { 3 } else { 64 }, ..ProptestConfig::default() })]
        #[test]
        fn a_walk_sees_what_was_there_when_it_began(
            before in proptest::collection::vec(step(), 1..if cfg!(miri) { 200 } else { 1500 }),
            during in proptest::collection::vec((step(), 1usize..30), 1..if cfg!(miri) { 50 } else { 500 }),
        ) {
            let mut table = Dash::<Block>::new();
            for number in 1..4u32 {
                let steps = before.iter().skip(before.len() * (number as usize - 1) / 3);
                for step in steps.take(before.len() / 3 + 1) {
                    apply(&mut table, step, &mut |_| ());
                }
                let mut owed = BTreeMap::new();
                table.for_each(|entry| {
                    owed.insert(entry.key().to_vec(), entry.string());
                });
                let owed: BTreeMap<_, _> = owed.into_iter().map(|(k, v)| (k, format!("{v:?}"))).collect();
                let mut seen = BTreeMap::new();
                let mut see = |entry: <Block as Entry>::Ref<'_>| {
                    let known = seen.insert(entry.key().to_vec(), format!("{:?}", entry.string()));
                    assert_eq!(known, None, "nothing is visited twice");
                };
                table.begin_walk(number);
                let (mut at, mut left) = (Some(WalkAt::default()), during.iter());
                while let Some(here) = at {
                    let mut budget = 7;
                    if let Some((step, entries)) = left.next() {
                        budget = *entries;
                        apply(&mut table, step, &mut see);
                    }
                    at = table.walk(here, &mut |entry| {
                        let goes = budget > 0;
                        if goes {
                            see(entry);
                            budget -= 1;
                        }
                        goes
                    });
                }
                prop_assert_eq!(&seen, &owed);
                table.check();
            }
        }
    }

    /// Takes a step; what a walk owes and is about to change is shown to `see` first.
    fn apply(table: &mut Dash<Block>, step: &Step, see: &mut dyn FnMut(<Block as Entry>::Ref<'_>)) {
        let (Step::Put(k, ..) | Step::Remove(k)) = step else { return };
        let key = format!("key:{k}").into_bytes();
        let hash = KeyHash::of(&key);
        match (table.slot(hash, &key), step) {
            (Some(mut slot), _) => {
                if slot.is_owed() {
                    see(slot.view());
                    slot.set_visited();
                }
                match step {
                    Step::Put(_, value, _) => drop(slot.replace(block(&key, *value, None))),
                    _ => drop(slot.remove()),
                }
            }
            (None, Step::Put(_, value, _)) => table.insert(hash, block(&key, *value, None)),
            (None, _) => {}
        }
    }

    #[test]
    fn fill_stays_high() {
        // Memory per slot stays near 9.14 / 0.8 bytes at every size, not only at powers of two.
        let mut table = Dash::<Block>::new();
        for i in 0..60_000u32 {
            put(&mut table, &i.to_le_bytes(), 0, None);
            if i > 5_000 && i % 5_000 == 0 {
                let per_key = table.table_bytes() as f64 / f64::from(i);
                assert!(per_key < 13.2, "{per_key} bytes per key at {i}");
            }
        }
        table.check();
    }

    #[test]
    fn presized_holds_what_was_asked() {
        let mut table = Dash::<Block>::with_capacity(10_000);
        let segments = table.segments();
        for i in 0..10_000u32 {
            put(&mut table, &i.to_le_bytes(), 0, None);
        }
        assert!(table.segments() <= segments + segments / 8);
        assert_eq!(Dash::<Block>::new().segments(), 1);
        assert!(Dash::<Block>::new().table_bytes() <= 256);
    }

    #[test]
    fn a_scan_misses_nothing_while_segments_split_and_shrink() {
        let mut table = Dash::<Block>::new();
        let stay: Vec<Vec<u8>> = (0..2_000u32).map(|i| format!("stay:{i}").into_bytes()).collect();
        for key in &stay {
            put(&mut table, key, 1, None);
        }
        let mut seen = BTreeSet::new();
        let (mut at, mut round) = (Some(ScanAt::default()), 0u32);
        while let Some(here) = at {
            at = table.scan(here, 10, &mut |entry| {
                seen.insert(entry.key().to_vec());
            });
            // Grow by much for half of the scan, then take it away again.
            for i in 0..100 {
                let n = if round < 100 { round * 100 + i } else { (round - 100) * 100 + i };
                let key = format!("come:{n}").into_bytes();
                if round < 100 {
                    put(&mut table, &key, 1, None);
                } else {
                    table.slot(KeyHash::of(&key), &key).map(Slot::remove);
                }
            }
            round += 1;
        }
        assert!(round > 100, "the scan saw both phases");
        assert!(stay.iter().all(|key| seen.contains(key)));
    }

    #[test]
    fn a_false_match_on_a_free_slot_is_none() {
        // Fingerprint 1 in the first slot makes the free second slot look like a match too.
        let hash = KeyHash::from_bits(1 << 16);
        let mut table = Dash::<Block>::new();
        table.insert(hash, block(b"there", 1, None));
        assert!(table.get(hash, b"absent").is_none());
        assert!(table.get(hash, b"there").is_some());
    }

    #[test]
    fn emptied_tables_give_buckets_back() {
        let mut table = Dash::<Block>::new();
        for i in 0..20_000u32 {
            put(&mut table, &i.to_le_bytes(), 0, None);
        }
        let full = table.table_bytes();
        for i in 0..20_000u32 {
            table.slot(KeyHash::of(&i.to_le_bytes()), &i.to_le_bytes()).map(Slot::remove);
        }
        table.check();
        assert!(table.table_bytes() * 4 < full);
    }

    #[test]
    fn random_picks_reach_every_entry() {
        let mut table = Dash::<Block>::new();
        for i in 0..1_000u32 {
            put(&mut table, &i.to_le_bytes(), i64::from(i), None);
        }
        let mut rng = 1u64;
        let mut seen = BTreeSet::new();
        for _ in 0..20_000 {
            let entry = table.random(|| {
                rng = rng.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                rng >> 33
            });
            seen.insert(entry.unwrap().key().to_vec());
        }
        assert!(seen.len() > 990);
    }

    #[test]
    fn random_picks_are_fair_and_end() {
        let mut table = Dash::<Block>::new();
        let mut rng = crate::base::rng::Rng::seeded(1);
        // Half of the keys in one sixteenth of the hash range: segments of very different depth.
        for i in 0..4_000u64 {
            let top = if i % 2 == 0 { rng.next_u64() >> 4 } else { rng.next_u64() };
            let hash = KeyHash::from_bits(top);
            table.insert(hash, block(&i.to_le_bytes(), i as i64, None));
        }
        let odd = (0..20_000).filter(|_| {
            let entry = table.random(|| rng.next_u64()).unwrap();
            entry.key()[0] % 2 == 1
        });
        let odd = odd.count();
        assert!((9_300..10_700).contains(&odd), "{odd} of 20000");

        let mut table = Dash::<Block>::new();
        for i in 0..20_000u32 {
            put(&mut table, &i.to_le_bytes(), 0, None);
        }
        for i in 1..20_000u32 {
            table.slot(KeyHash::of(&i.to_le_bytes()), &i.to_le_bytes()).map(Slot::remove);
        }
        let mut draws = 0;
        let entry = table.random(|| {
            draws += 1;
            rng.next_u64()
        });
        assert_eq!(entry.unwrap().key(), 0u32.to_le_bytes());
        assert!(draws < 1_000, "{draws}");
    }
}
