//! A segment: the buckets that hold the keys of one range of hash prefixes.
//!
//! A bucket is one cache line: seven one-byte fingerprints, a count of entries that passed over it, seven slots.
//! A slot is the entry's address, with the sixteen hash bits that place it among the buckets above bit 48 and a
//! "has a deadline, or has parts that have" bit at the bottom, and beside it one that says that a walk has visited the
//! entry; so growing a segment touches no entry. Buckets come in units of eight, all of one size, so that growth by a
//! unit leaves no holes in the heap behind.
//!
//! Must stay true: an entry lies in its home bucket or in one after it (cyclic), and every full bucket that its
//! insertion passed counts it (255 = lost count, never lowered); `count < nb * 7`, so a probe ends;
//! `deadline_min_ms` is at or below every deadline in the segment; an entry with any has the bit (one with the bit may
//! have lost them); a segment that a walk is through with (`walk` is the table's) has no entry with the visited bit.
use std::marker::PhantomData;
use std::ptr::NonNull;

use super::arena;
use super::dash::{Due, Entry, View};
use crate::base::hash::{KeyHash, PREFIX_BITS};

/// Slots of a bucket.
pub const SLOTS: usize = 7;
/// Buckets of a unit.
const UNIT: u16 = 8;
const UNITS_MAX: usize = 8;
/// A segment with this many buckets splits instead of growing.
pub const BUCKETS_MAX: u16 = UNIT * UNITS_MAX as u16;
/// Entries that the buckets of a segment can ever hold.
pub const ENTRIES_MAX: usize = BUCKETS_MAX as usize * SLOTS;

const LOW: u64 = 0x0101_0101_0101_0101;
const HIGH: u64 = 0x8080_8080_8080_8080;
/// The high bits of the seven fingerprints; the eighth byte is the overflow count.
const SEVEN: u64 = 0x0080_8080_8080_8080;
const ADDRESS: u64 = 0x0000_FFFF_FFFF_FFF8;
const HAS_DEADLINE: u64 = 1;
const VISITED: u64 = 2;

#[repr(C, align(64))]
pub(super) struct Bucket {
    tags: u64,
    slots: [u64; SLOTS],
}

/// What an empty segment points at, so that a lookup needs no test for "no buckets yet".
static EMPTY: Bucket = Bucket { tags: 0, slots: [0; SLOTS] };

impl Bucket {
    /// High bits set where a fingerprint may equal `byte`; never misses one, and a false one only above a true one.
    #[inline]
    fn matches(&self, byte: u8) -> u64 {
        let x = self.tags ^ (LOW * u64::from(byte));
        x.wrapping_sub(LOW) & !x & SEVEN
    }

    #[inline]
    fn occupied(&self) -> u64 {
        // A byte is non-zero when its low seven bits carry into the high bit or the high bit is set.
        (((self.tags & !HIGH) + !HIGH) | self.tags) & SEVEN
    }

    #[inline]
    fn overflow(&self) -> u64 {
        self.tags >> 56
    }

    fn pass(&mut self) {
        if self.overflow() < 255 {
            self.tags += 1 << 56;
        }
    }

    fn unpass(&mut self) {
        if self.overflow() < 255 {
            self.tags -= 1 << 56;
        }
    }

    fn set_fingerprint(&mut self, slot: usize, byte: u8) {
        let shift = slot * 8;
        self.tags = (self.tags & !(0xFF << shift)) | (u64::from(byte) << shift);
    }

    #[inline]
    fn fingerprint(&self, slot: usize) -> u8 {
        (self.tags >> (slot * 8)) as u8
    }
}

#[inline]
fn slot_of(mark: u64) -> usize {
    (mark.trailing_zeros() / 8) as usize
}

/// Where an entry lies in its segment. Valid until the segment changes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    bucket: u16,
    slot: u16,
}

#[repr(C, align(64))]
pub(super) struct Segment<E: Entry> {
    /// The earliest deadline that may be in here; `u64::MAX`: none.
    pub deadline_min_ms: u64,
    /// First hash prefix of the range that this segment holds.
    pub start: u32,
    nb: u16,
    pub count: u16,
    /// Entries up to which the buckets are filled; 0 while they are the shared empty one.
    limit: u16,
    /// Directory bits that lead here.
    pub depth: u8,
    /// The last walk that is through with this segment.
    pub walk: u32,
    /// The first `nb / UNIT` are ours; the first one is the shared empty bucket while `limit` is 0.
    units: [NonNull<Bucket>; UNITS_MAX],
    _owns: PhantomData<E>,
}

const UNIT_BYTES: usize = UNIT as usize * size_of::<Bucket>();

fn new_unit() -> NonNull<Bucket> {
    let unit = arena::take(UNIT_BYTES);
    // SAFETY: the unit has that many bytes; zeroed buckets are empty buckets.
    unsafe { unit.as_ptr().write_bytes(0, UNIT_BYTES) };
    unit.cast()
}

/// Seven eighths full: beyond that, misses probe too many buckets.
fn limit_for(nb: u16) -> u16 {
    nb * SLOTS as u16 * 7 / 8
}

#[inline]
fn home(bits: u16, nb: u16) -> u16 {
    ((u32::from(bits) * u32::from(nb)) >> 16) as u16
}

#[inline]
fn address(word: u64) -> NonNull<u8> {
    // SAFETY: only called on words made by `word_for`, whose address is that of a live block, not null.
    unsafe { NonNull::new_unchecked((word & ADDRESS) as *mut u8) }
}

#[inline]
fn bits_of(word: u64) -> u16 {
    (word >> 48) as u16
}

impl<E: Entry> Segment<E> {
    pub fn empty(start: u32, depth: u8, walk: u32) -> Self {
        Segment {
            deadline_min_ms: u64::MAX,
            start,
            nb: 1,
            count: 0,
            limit: 0,
            depth,
            walk,
            units: [NonNull::from(&EMPTY); UNITS_MAX],
            _owns: PhantomData,
        }
    }

    /// Makes room for `entries` at once, as far as a segment goes.
    pub fn reserve(&mut self, entries: usize) {
        while usize::from(self.limit) < entries && self.may_grow() {
            self.add_unit();
        }
    }

    pub fn is_full(&self) -> bool {
        self.count >= self.limit
    }

    pub fn may_grow(&self) -> bool {
        self.nb < BUCKETS_MAX
    }

    #[inline]
    fn bucket(&self, index: u16) -> &Bucket {
        debug_assert!(index < self.nb);
        // SAFETY: `index < nb`, so its unit is one of ours (or the shared empty bucket). Checked by: `table_model`.
        unsafe {
            let unit = self.units.get_unchecked(usize::from(index / UNIT));
            unit.add(usize::from(index % UNIT)).as_ref()
        }
    }

    fn bucket_mut(&mut self, index: u16) -> &mut Bucket {
        debug_assert!(index < self.nb && self.limit > 0, "the shared empty bucket is never written");
        // SAFETY: as above; `limit > 0` means that the unit is ours.
        unsafe { self.units[usize::from(index / UNIT)].add(usize::from(index % UNIT)).as_mut() }
    }

    #[inline]
    fn after(&self, index: u16) -> u16 {
        if index + 1 == self.nb { 0 } else { index + 1 }
    }

    /// Asks the processor to load the home bucket.
    #[inline]
    pub fn prefetch(&self, hash: KeyHash) {
        prefetch(self.bucket(home(hash.bucket_bits(), self.nb)));
    }

    /// Asks the processor to load the entry that `find` would most likely look at.
    #[inline]
    pub fn prefetch_entry(&self, hash: KeyHash) {
        let bucket = self.bucket(home(hash.bucket_bits(), self.nb));
        let marks = bucket.matches(hash.fingerprint());
        if marks != 0 {
            // Two lines: small blocks are not aligned to one.
            let at = address(bucket.slots[slot_of(marks)]).as_ptr();
            prefetch(at);
            prefetch(at.wrapping_add(63));
        }
    }

    #[inline(always)]
    pub fn find(&self, hash: KeyHash, key: &[u8]) -> Option<Place> {
        let (fingerprint, bits) = (hash.fingerprint(), hash.bucket_bits());
        let mut index = home(bits, self.nb);
        loop {
            let bucket = self.bucket(index);
            let mut marks = bucket.matches(fingerprint);
            while marks != 0 {
                let slot = slot_of(marks);
                let word = bucket.slots[slot];
                // The value often lies on the next line.
                prefetch(((word & ADDRESS) as *const u8).wrapping_add(63));
                // A false match may be a free slot, whose word is 0.
                if bits_of(word) == bits && word != 0 && same(self.view(word).key(), key) {
                    return Some(Place { bucket: index, slot: slot as u16 });
                }
                marks &= marks - 1;
            }
            if bucket.overflow() == 0 {
                return None;
            }
            index = self.after(index);
            if index == home(bits, self.nb) {
                return None;
            }
        }
    }

    #[inline]
    fn view(&self, word: u64) -> E::Ref<'_> {
        // SAFETY: an occupied slot holds a live entry, borrowed for as long as the segment is.
        unsafe { E::view_at(address(word)) }
    }

    #[inline]
    pub fn at(&self, place: Place) -> E::Ref<'_> {
        self.view(self.bucket(place.bucket).slots[usize::from(place.slot)])
    }

    pub fn at_mut(&mut self, place: Place) -> E::Mut<'_> {
        let word = self.bucket(place.bucket).slots[usize::from(place.slot)];
        // SAFETY: as in `view`, exclusively.
        unsafe { E::view_mut_at(address(word)) }
    }

    /// Whether the table's walk number `walk` has still to visit the entry.
    #[inline]
    pub fn is_owed(&self, place: Place, walk: u32) -> bool {
        self.walk != walk && self.bucket(place.bucket).slots[usize::from(place.slot)] & VISITED == 0
    }

    /// Notes that the walk has visited the entry ahead of the others of its segment.
    pub fn set_visited(&mut self, place: Place) {
        self.bucket_mut(place.bucket).slots[usize::from(place.slot)] |= VISITED;
    }

    /// Visits the entries that walk number `walk` has not visited yet, until `f` refuses one. `true`: the walk is through
    /// with this segment.
    pub fn walk(&mut self, walk: u32, f: &mut dyn FnMut(E::Ref<'_>) -> bool) -> bool {
        if self.limit > 0 {
            for index in 0..self.nb {
                let mut marks = self.bucket(index).occupied();
                while marks != 0 {
                    let slot = slot_of(marks);
                    marks &= marks - 1;
                    let word = self.bucket(index).slots[slot];
                    if word & VISITED == 0 {
                        if !f(self.view(word)) {
                            return false;
                        }
                        self.bucket_mut(index).slots[slot] |= VISITED;
                    }
                }
            }
            for index in 0..self.nb {
                for word in &mut self.bucket_mut(index).slots {
                    *word &= !VISITED;
                }
            }
        }
        self.walk = walk;
        true
    }

    /// Puts an entry in whose key is not there yet. The segment must not be full. `walk`: the number of the table's.
    pub fn insert(&mut self, hash: KeyHash, entry: E, walk: u32) {
        assert!(!self.is_full());
        // SAFETY: the entry is alive until `into_raw` hands it to the slot.
        let wake = unsafe { E::view_at(entry.raw()) }.wake_ms();
        self.note_deadline(wake);
        // A walk under way does not owe what came behind its beginning.
        let visited = if self.walk == walk { 0 } else { VISITED };
        let word = word_for(entry, hash.bucket_bits(), wake.is_some()) | visited;
        self.put(word, hash.fingerprint());
        self.count += 1;
    }

    fn put(&mut self, word: u64, fingerprint: u8) {
        let mut index = home(bits_of(word), self.nb);
        loop {
            let bucket = self.bucket_mut(index);
            let free = !bucket.occupied() & SEVEN;
            if free != 0 {
                let slot = slot_of(free);
                bucket.slots[slot] = word;
                bucket.set_fingerprint(slot, fingerprint);
                return;
            }
            bucket.pass();
            index = self.after(index);
        }
    }

    pub fn note_deadline(&mut self, deadline_ms: Option<u64>) {
        self.deadline_min_ms = self.deadline_min_ms.min(deadline_ms.unwrap_or(u64::MAX));
    }

    /// Takes note of the deadlines of an entry after a change.
    pub fn note_wake(&mut self, place: Place) {
        let wake = self.at(place).wake_ms();
        self.note_deadline(wake);
        if wake.is_some() {
            self.bucket_mut(place.bucket).slots[usize::from(place.slot)] |= HAS_DEADLINE;
        }
    }

    /// Puts `entry`, which has the same key, in the place of the one there.
    pub fn replace(&mut self, place: Place, entry: E) -> E {
        // SAFETY: as in `insert`.
        let wake = unsafe { E::view_at(entry.raw()) }.wake_ms();
        self.note_deadline(wake);
        let slot = &mut self.bucket_mut(place.bucket).slots[usize::from(place.slot)];
        let old = *slot;
        *slot = word_for(entry, bits_of(old), wake.is_some()) | (old & VISITED);
        // SAFETY: the slot gave up its only copy of the address.
        unsafe { E::from_raw(address(old)) }
    }

    /// Exchanges the entry for what `f` makes of it (with the same key).
    pub fn update(&mut self, place: Place, f: impl FnOnce(E) -> E) {
        let word = self.bucket(place.bucket).slots[usize::from(place.slot)];
        let guard = AbortOnUnwind;
        // SAFETY: until the slot is overwritten below nobody can see the old address; unwinding aborts.
        let entry = f(unsafe { E::from_raw(address(word)) });
        // SAFETY: as in `insert`.
        let wake = unsafe { E::view_at(entry.raw()) }.wake_ms();
        self.note_deadline(wake);
        let next = word_for(entry, bits_of(word), wake.is_some()) | (word & VISITED);
        self.bucket_mut(place.bucket).slots[usize::from(place.slot)] = next;
        std::mem::forget(guard);
    }

    pub fn remove(&mut self, place: Place) -> E {
        let bucket = self.bucket_mut(place.bucket);
        let word = bucket.slots[usize::from(place.slot)];
        bucket.set_fingerprint(usize::from(place.slot), 0);
        bucket.slots[usize::from(place.slot)] = 0;
        let mut index = home(bits_of(word), self.nb);
        while index != place.bucket {
            self.bucket_mut(index).unpass();
            index = self.after(index);
        }
        self.count -= 1;
        if self.count == 0 {
            self.deadline_min_ms = u64::MAX;
        }
        // SAFETY: the slot gave up its only copy of the address.
        unsafe { E::from_raw(address(word)) }
    }

    /// Calls `f` on every entry.
    pub fn for_each<'a>(&'a self, mut f: impl FnMut(E::Ref<'a>)) {
        for index in 0..self.nb {
            let bucket = self.bucket(index);
            let mut marks = bucket.occupied();
            while marks != 0 {
                // SAFETY: an occupied slot holds a live entry, borrowed like the segment.
                f(unsafe { E::view_at(address(bucket.slots[slot_of(marks)])) });
                marks &= marks - 1;
            }
        }
    }

    /// Calls `f` on the entries of the home bucket that `from` falls into whose bits are at or above `from`;
    /// returns the first bits of the next home bucket, `None` after the last. Order and stop points depend only on
    /// hash bits, so a scan survives growth and splits between two calls.
    pub fn scan_home<'a>(&'a self, from: u16, mut f: impl FnMut(E::Ref<'a>)) -> Option<u16> {
        let first = home(from, self.nb);
        let mut index = first;
        loop {
            let bucket = self.bucket(index);
            let mut marks = bucket.occupied();
            while marks != 0 {
                let word = bucket.slots[slot_of(marks)];
                if bits_of(word) >= from && home(bits_of(word), self.nb) == first {
                    // SAFETY: as in `for_each`.
                    f(unsafe { E::view_at(address(word)) });
                }
                marks &= marks - 1;
            }
            index = self.after(index);
            if bucket.overflow() == 0 || index == first {
                break;
            }
        }
        let next = first + 1;
        (next < self.nb).then(|| ((u32::from(next) << 16).div_ceil(u32::from(self.nb))) as u16)
    }

    /// Removes the entries whose deadline is at or before `now_ms` and hands them to `f`, as well as those with parts
    /// that are due (at most `limit` of both together); makes `deadline_min_ms` exact for all others. Returns how many
    /// were handed out.
    pub fn take_due(&mut self, now_ms: u64, limit: usize, f: &mut dyn FnMut(Due<'_, E>)) -> usize {
        let (mut earliest_ms, mut handed) = (u64::MAX, 0);
        for index in 0..self.nb {
            let mut marks = self.bucket(index).occupied();
            while marks != 0 {
                let slot = slot_of(marks);
                marks &= marks - 1;
                let word = self.bucket(index).slots[slot];
                if word & HAS_DEADLINE == 0 {
                    continue;
                }
                let entry = self.view(word);
                let Some(wake_ms) = entry.wake_ms() else {
                    // Its parts lost their deadlines.
                    self.bucket_mut(index).slots[slot] &= !HAS_DEADLINE;
                    continue;
                };
                if wake_ms > now_ms || handed == limit {
                    earliest_ms = earliest_ms.min(wake_ms);
                    continue;
                }
                handed += 1;
                if entry.deadline_ms().is_some_and(|at| at <= now_ms) {
                    f(Due::Entry(self.remove(Place { bucket: index, slot: slot as u16 })));
                } else {
                    f(Due::Parts(entry));
                }
            }
        }
        self.deadline_min_ms = earliest_ms;
        handed
    }

    /// The `n`-th occupied place (cyclic), for random picks. The segment must not be empty.
    pub fn nth(&self, n: u64) -> E::Ref<'_> {
        let mut left = n % u64::from(self.count);
        for index in 0..self.nb {
            let bucket = self.bucket(index);
            let mut marks = bucket.occupied();
            let here = u64::from(marks.count_ones());
            if left >= here {
                left -= here;
                continue;
            }
            while left > 0 {
                marks &= marks - 1;
                left -= 1;
            }
            return self.view(bucket.slots[slot_of(marks)]);
        }
        unreachable!("count entries are occupied")
    }

    /// Adds a unit of buckets and spreads the entries over all. Touches no entry.
    pub fn grow(&mut self) {
        let mut all = Gathered::new();
        self.gather(&mut all);
        self.add_unit();
        self.spread(all.as_slice());
    }

    /// Gives units back after deletions, when more than two thirds of the slots stand empty.
    pub fn shrink_if_sparse(&mut self) {
        if self.limit > 0 && self.nb > UNIT && usize::from(self.count) * 3 < usize::from(self.limit) {
            let mut all = Gathered::new();
            self.gather(&mut all);
            self.fit(all.len);
            self.spread(all.as_slice());
        }
    }

    /// Splits by the next prefix bit: keeps the lower half, returns the upper one.
    pub fn split(&mut self) -> Self {
        let bit = 1u32 << (PREFIX_BITS - 1 - u32::from(self.depth));
        self.prefetch_entries();
        let mut all = Gathered::new();
        self.gather(&mut all);
        let is_high = |moved: &Moved| KeyHash::of(self.view(moved.word).key()).prefix() & bit != 0;
        let (mut low, mut high) = (Gathered::new(), Gathered::new());
        for moved in all.as_slice() {
            if is_high(moved) { high.push(*moved) } else { low.push(*moved) }
        }
        self.depth += 1;
        let mut upper = Self::empty(self.start | bit, self.depth, self.walk);
        // A bound, not exact: the next visit by the expiry cycle makes it exact.
        upper.deadline_min_ms = if high.len > 0 { self.deadline_min_ms } else { u64::MAX };
        if low.len == 0 {
            self.deadline_min_ms = u64::MAX;
        }
        self.fit(low.len);
        self.spread(low.as_slice());
        upper.fit(high.len);
        upper.spread(high.as_slice());
        upper
    }

    /// Asks the processor for all entries.
    pub fn prefetch_entries(&self) {
        for index in 0..self.nb {
            for word in self.bucket(index).slots {
                prefetch((word & ADDRESS) as *const u8);
            }
        }
    }

    /// Takes all slots out and leaves the buckets empty.
    fn gather(&mut self, all: &mut Gathered) {
        if self.limit == 0 {
            return;
        }
        for index in 0..self.nb {
            let bucket = self.bucket_mut(index);
            let mut marks = bucket.occupied();
            while marks != 0 {
                let slot = slot_of(marks);
                marks &= marks - 1;
                all.push(Moved { word: bucket.slots[slot], fingerprint: bucket.fingerprint(slot) });
            }
            *bucket = Bucket { tags: 0, slots: [0; SLOTS] };
        }
        self.count = 0;
    }

    /// Puts slots that were gathered into the empty buckets.
    fn spread(&mut self, all: &[Moved]) {
        for moved in all {
            self.put(moved.word, moved.fingerprint);
        }
        self.count = all.len() as u16;
    }

    fn add_unit(&mut self) {
        if self.limit == 0 {
            self.nb = 0;
        }
        self.units[usize::from(self.nb / UNIT)] = new_unit();
        self.nb += UNIT;
        self.limit = limit_for(self.nb);
    }

    /// Takes or gives back units until about four fifths of the slots will be used. The buckets must be empty.
    fn fit(&mut self, entries: usize) {
        let wanted = (entries * 5).div_ceil(4).div_ceil(SLOTS * usize::from(UNIT)).clamp(1, UNITS_MAX);
        while usize::from(self.nb / UNIT) > wanted {
            self.nb -= UNIT;
            free_unit(self.units[usize::from(self.nb / UNIT)]);
        }
        self.limit = if self.limit == 0 { 0 } else { limit_for(self.nb) };
        while self.limit == 0 || usize::from(self.nb / UNIT) < wanted || usize::from(self.limit) < entries {
            self.add_unit();
        }
    }

    pub fn table_bytes(&self) -> usize {
        if self.limit == 0 { 0 } else { usize::from(self.nb / UNIT) * UNIT_BYTES }
    }

    #[cfg(test)]
    pub fn check(&self) {
        let mut passed = vec![0u64; usize::from(self.nb)];
        let mut seen = 0;
        for index in 0..self.nb {
            let mut marks = self.bucket(index).occupied();
            while marks != 0 {
                let word = self.bucket(index).slots[slot_of(marks)];
                marks &= marks - 1;
                seen += 1;
                let deadline = self.view(word).deadline_ms();
                assert_eq!(deadline.is_some(), word & HAS_DEADLINE != 0);
                assert!(word & VISITED == 0, "no walk is under way");
                assert!(deadline.unwrap_or(u64::MAX) >= self.deadline_min_ms);
                let mut at = home(bits_of(word), self.nb);
                while at != index {
                    passed[usize::from(at)] += 1;
                    at = self.after(at);
                }
            }
        }
        assert_eq!(seen, self.count);
        for (index, passed) in passed.iter().enumerate() {
            assert_eq!(self.bucket(index as u16).overflow().min(254), (*passed).min(254));
        }
    }
}

fn free_unit(unit: NonNull<Bucket>) {
    // SAFETY: units come from `new_unit`, and whoever frees one takes it out of its segment.
    unsafe { arena::give(unit.cast(), UNIT_BYTES) };
}

/// A slot on its way between buckets.
#[derive(Clone, Copy)]
struct Moved {
    word: u64,
    fingerprint: u8,
}

/// The slots of a segment, on the stack.
struct Gathered {
    slots: [Moved; ENTRIES_MAX],
    len: usize,
}

impl Gathered {
    fn new() -> Gathered {
        Gathered { slots: [Moved { word: 0, fingerprint: 0 }; ENTRIES_MAX], len: 0 }
    }

    fn push(&mut self, moved: Moved) {
        self.slots[self.len] = moved;
        self.len += 1;
    }

    fn as_slice(&self) -> &[Moved] {
        &self.slots[..self.len]
    }
}

/// Equality of keys, without a call for the usual short ones.
#[inline]
fn same(a: &[u8], b: &[u8]) -> bool {
    let len = a.len();
    if len != b.len() {
        return false;
    }
    if !(8..=32).contains(&len) {
        return a == b;
    }
    // SAFETY: both have `len` bytes, and every word read lies within them; words may overlap.
    let word = |s: &[u8], at: usize| unsafe { s.as_ptr().add(at).cast::<u64>().read_unaligned() };
    let ends = (word(a, 0) ^ word(b, 0)) | (word(a, len - 8) ^ word(b, len - 8));
    if len <= 16 {
        return ends == 0;
    }
    ends | (word(a, 8) ^ word(b, 8)) | (word(a, len - 16) ^ word(b, len - 16)) == 0
}

/// A slot without its entry must not be seen by anybody, not even by a destructor.
struct AbortOnUnwind;

impl Drop for AbortOnUnwind {
    fn drop(&mut self) {
        std::process::abort();
    }
}

fn word_for<E: Entry>(entry: E, bits: u16, has_deadline: bool) -> u64 {
    let at = entry.into_raw().as_ptr() as u64;
    debug_assert_eq!(at & !ADDRESS, 0, "an entry's address is 8-aligned and below 2^48");
    at | (u64::from(bits) << 48) | if has_deadline { HAS_DEADLINE } else { 0 }
}

#[inline]
fn prefetch<T>(at: *const T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch never faults, whatever the address.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(at.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = at;
}

impl<E: Entry> Drop for Segment<E> {
    fn drop(&mut self) {
        if self.limit == 0 {
            return;
        }
        for index in 0..self.nb {
            let mut marks = self.bucket(index).occupied();
            while marks != 0 {
                // SAFETY: each occupied slot owns its entry; the buckets are freed right after.
                drop(unsafe { E::from_raw(address(self.bucket(index).slots[slot_of(marks)])) });
                marks &= marks - 1;
            }
        }
        for unit in &self.units[..usize::from(self.nb / UNIT)] {
            free_unit(*unit);
        }
    }
}

// SAFETY: a segment owns its entries and buckets outright.
unsafe impl<E: Entry + Send> Send for Segment<E> {}
// SAFETY: shared use only reads.
unsafe impl<E: Entry + Sync> Sync for Segment<E> {}
