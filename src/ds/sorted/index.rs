//! From a member's hash to the leaf that holds it, in six bytes a member: linear hashing (Litwin, 1980) over packed
//! buckets.
//!
//! ```text
//! bucket of n entries = [tag u8] * n, then [low u8][leaf u32 LE] * n, last entry first
//! ```
//! Since the second part is in reverse, an entry's end of both lies together: one splice adds it or takes it off.
//!
//! A bucket whose members agree in the low `depth` bits of the hash keeps a window of 16 bits, `tag` and `low`, from
//! bit `depth & !7` on: at least nine of them tell its members apart, and the bit that the next split needs is among
//! them. Every eighth split runs out of the window; it asks the leaves for whole hashes.
//!
//! Must stay true: every member has exactly one entry, in the bucket of its hash, with the leaf that holds it.
//! Entries that are alike (same window, same leaf) stand for each other, since the leaf decides who is meant.
use crate::ds::packed::PackedBytes;
use crate::ds::raw::thin::ThinBytes;

const ENTRY_BYTES: usize = 6;
const REST_BYTES: usize = ENTRY_BYTES - 1;
/// Entries per bucket, on average, above which a bucket is split.
const LOAD_MAX: usize = 28;
/// Entries per bucket, on average, below which two are merged.
const LOAD_MIN: usize = LOAD_MAX / 2;

/// Buckets by the low bits of the hash: `2^level` of them, and the first ones split once more.
#[derive(Clone)]
pub(super) struct Index {
    buckets: Vec<ThinBytes>,
    level: u32,
    len: usize,
}

/// Where an entry is, until entries come or go.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct EntryAt {
    bucket: usize,
    entry: usize,
}

type Entries = smallvec::SmallVec<[(u16, u32); 2 * LOAD_MAX]>;

/// First bit of the window of a bucket of this depth.
const fn window_base(depth: u32) -> u32 {
    depth & !7
}

#[inline]
fn window(hash: u64, depth: u32) -> u16 {
    (hash >> window_base(depth)) as u16
}

/// The low `bits` of a hash.
#[inline]
fn low_bits(hash: u64, bits: u32) -> usize {
    (hash & ((1 << bits) - 1)) as usize
}

#[inline]
fn entries(bytes: &[u8]) -> usize {
    bytes.len() / ENTRY_BYTES
}

/// Offset of the second part of entry `number` of `count`.
#[inline]
fn rest_at(count: usize, number: usize) -> usize {
    count + REST_BYTES * (count - 1 - number)
}

#[inline]
fn entry(bytes: &[u8], number: usize) -> (u16, u32) {
    let at = rest_at(entries(bytes), number);
    let rest: &[u8; REST_BYTES] = bytes[at..at + REST_BYTES].try_into().expect("a part's length");
    let [low, leaf @ ..] = *rest;
    (u16::from_le_bytes([low, bytes[number]]), u32::from_le_bytes(leaf))
}

fn packed(window: u16, leaf: u32) -> [u8; ENTRY_BYTES] {
    let ([low, tag], [a, b, c, d]) = (window.to_le_bytes(), leaf.to_le_bytes());
    [tag, low, a, b, c, d]
}

fn push(bucket: &mut ThinBytes, window: u16, leaf: u32) {
    let count = entries(bucket.bytes());
    bucket.splice(count, 0, &packed(window, leaf));
}

fn pack(entries: &[(u16, u32)]) -> ThinBytes {
    let mut bytes = smallvec::SmallVec::<[u8; 2 * LOAD_MAX * ENTRY_BYTES]>::new();
    bytes.extend(entries.iter().map(|(window, _)| (window >> 8) as u8));
    for (window, leaf) in entries.iter().rev() {
        bytes.extend_from_slice(&packed(*window, *leaf)[1..]);
    }
    ThinBytes::from(&bytes[..])
}

fn unpack(bytes: &[u8]) -> Entries {
    (0..entries(bytes)).map(|number| entry(bytes, number)).collect()
}

impl Index {
    pub(super) fn new() -> Index {
        Index { buckets: vec![ThinBytes::new()], level: 0, len: 0 }
    }

    /// Number of the next bucket to split.
    fn next_split(&self) -> usize {
        self.buckets.len() - (1 << self.level)
    }

    #[inline]
    fn bucket_of(&self, hash: u64) -> usize {
        let bucket = low_bits(hash, self.level + 1);
        if bucket < self.buckets.len() { bucket } else { low_bits(hash, self.level) }
    }

    /// Bits in which the members of a bucket agree.
    #[inline]
    fn depth(&self, bucket: usize) -> u32 {
        self.level + u32::from(bucket < self.next_split() || bucket >= 1 << self.level)
    }

    /// The entry, among those that `hash` could have, whose leaf `verify` accepts.
    #[inline]
    pub(super) fn find<T>(
        &self,
        hash: u64,
        mut verify: impl FnMut(u32) -> Option<T>,
    ) -> Option<(EntryAt, T)> {
        let bucket = self.bucket_of(hash);
        let window = window(hash, self.depth(bucket));
        let bytes = self.buckets[bucket].bytes();
        for number in memchr::memchr_iter((window >> 8) as u8, &bytes[..entries(bytes)]) {
            let (found, leaf) = entry(bytes, number);
            if found == window
                && let Some(answer) = verify(leaf)
            {
                return Some((EntryAt { bucket, entry: number }, answer));
            }
        }
        None
    }

    /// Adds an entry. The caller lets the index [grow](Index::grow) once tree and index agree again.
    pub(super) fn insert(&mut self, hash: u64, leaf: u32) {
        let bucket = self.bucket_of(hash);
        let window = window(hash, self.depth(bucket));
        push(&mut self.buckets[bucket], window, leaf);
        self.len += 1;
    }

    /// Takes an entry out.
    pub(super) fn remove(&mut self, at: EntryAt) {
        let bucket = &mut self.buckets[at.bucket];
        let count = entries(bucket.bytes());
        let (window, leaf) = entry(bucket.bytes(), count - 1);
        let [tag, rest @ ..] = packed(window, leaf);
        let bytes = bucket.bytes_mut();
        bytes[at.entry] = tag;
        bytes[rest_at(count, at.entry)..][..REST_BYTES].copy_from_slice(&rest);
        bucket.splice(count - 1, ENTRY_BYTES, &[]);
        self.len -= 1;
    }

    /// Takes out the entry of a member known to be in `leaf`.
    pub(super) fn forget(&mut self, hash: u64, leaf: u32) {
        if let Some((at, ())) = self.find(hash, |found| (found == leaf).then_some(())) {
            self.remove(at);
        }
    }

    /// Notes that a member moved to another leaf.
    pub(super) fn relocate(&mut self, hash: u64, from: u32, to: u32) {
        if let Some((at, ())) = self.find(hash, |found| (found == from).then_some(())) {
            let bytes = self.buckets[at.bucket].bytes_mut();
            let rest = rest_at(entries(bytes), at.entry);
            bytes[rest + 1..rest + REST_BYTES].copy_from_slice(&to.to_le_bytes());
        }
    }

    /// Splits a bucket if the buckets got full. `hashes` gives the hashes of a leaf's members.
    #[inline]
    pub(super) fn grow(&mut self, hashes: impl Fn(u32, &mut dyn FnMut(u64))) {
        if self.len > self.buckets.len() * LOAD_MAX {
            self.split(hashes);
        }
    }

    fn split(&mut self, hashes: impl Fn(u32, &mut dyn FnMut(u64))) {
        let (bucket, depth) = (self.next_split(), self.level);
        let old = unpack(self.buckets[bucket].bytes());
        let (mut stay, mut go) = (Entries::new(), Entries::new());
        if window_base(depth) == window_base(depth + 1) {
            let bit = depth - window_base(depth);
            for (window, leaf) in old {
                if window >> bit & 1 == 0 { stay.push((window, leaf)) } else { go.push((window, leaf)) }
            }
        } else {
            for (number, (seen, leaf)) in old.iter().enumerate() {
                if old[..number].contains(&(*seen, *leaf)) {
                    continue;
                }
                hashes(*leaf, &mut |hash| {
                    if low_bits(hash, depth) == bucket && window(hash, depth) == *seen {
                        let half = if hash >> depth & 1 == 0 { &mut stay } else { &mut go };
                        half.push((window(hash, depth + 1), *leaf));
                    }
                });
            }
        }
        self.buckets[bucket] = pack(&stay);
        if self.buckets.len() == self.buckets.capacity() {
            self.buckets.reserve_exact(self.buckets.len() / 8 + 4);
        }
        self.buckets.push(pack(&go));
        if self.next_split() == 1 << self.level {
            self.level += 1;
        }
    }

    /// Merges buckets while they are too empty.
    #[inline]
    pub(super) fn shrink(&mut self) {
        while self.buckets.len() > 1 && self.len < self.buckets.len() * LOAD_MIN {
            self.merge();
        }
    }

    fn merge(&mut self) {
        if self.next_split() == 0 {
            self.level -= 1;
        }
        let last = self.buckets.len() - 1;
        let (bucket, depth) = (last - (1 << self.level), self.level);
        let Some(gone) = self.buckets.pop() else { return };
        let (mut kept, mut moved) = (unpack(self.buckets[bucket].bytes()), unpack(gone.bytes()));
        if window_base(depth) != window_base(depth + 1) {
            // The bits that the window loses above come back below: members of a bucket agree in them.
            for (entries, number) in [(&mut kept, bucket), (&mut moved, last)] {
                let low = (number >> window_base(depth)) as u8;
                entries.iter_mut().for_each(|(window, _)| *window = *window << 8 | u16::from(low));
            }
        }
        kept.extend(moved);
        self.buckets[bucket] = pack(&kept);
        if self.buckets.capacity() > 2 * self.buckets.len() + 64 {
            self.buckets.shrink_to(self.buckets.len() + self.buckets.len() / 8);
        }
    }

    /// The bucket around the place `cursor`, and the cursor after it, 0 at the end.
    ///
    /// A cursor is a place in the order of reversed hashes, itself reversed, as it stays small so. In that order a
    /// bucket of any depth is one unbroken range: what was not passed yet stays ahead however buckets are split and
    /// merged.
    pub(super) fn scan_step(&self, cursor: u64) -> (Bucket, u64) {
        let bucket = self.bucket_of(cursor);
        let depth = self.depth(bucket);
        let start = (bucket as u64).reverse_bits();
        // Bucket 0 of depth 0 spans everything: its end is the beginning.
        let end = if depth == 0 { 0 } else { start.wrapping_add(1 << (64 - depth)) };
        (Bucket { number: bucket, depth }, end.reverse_bits())
    }

    /// The distinct entries of a bucket.
    pub(super) fn distinct(&self, bucket: Bucket) -> Entries {
        let mut all = unpack(self.buckets[bucket.number].bytes());
        all.sort_unstable_by_key(|(window, leaf)| (*leaf, *window));
        all.dedup();
        all
    }

    /// Heap bytes taken.
    pub(super) fn heap_bytes(&self) -> usize {
        let buckets: usize = self.buckets.iter().map(ThinBytes::heap_bytes).sum();
        buckets + self.buckets.capacity() * size_of::<ThinBytes>()
    }

    /// Number of buckets.
    pub(super) fn bucket_count(&self) -> usize {
        self.buckets.len()
    }

    /// Number of entries.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Number of buckets.
    #[cfg(test)]
    pub(super) fn buckets(&self) -> usize {
        self.buckets.len()
    }
}

/// A bucket as a scan meets it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bucket {
    number: usize,
    depth: u32,
}

impl Bucket {
    /// Whether a member with this hash has the entry with this window.
    #[inline]
    pub(super) fn has(self, hash: u64, seen: u16) -> bool {
        low_bits(hash, self.depth) == self.number && window(hash, self.depth) == seen
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;
    use crate::base::rng::Rng;

    /// Every member is a leaf of its own, so that leaves tell members apart.
    fn check(index: &Index, hashes: &HashMap<u32, u64>) {
        assert_eq!(index.len(), hashes.len());
        for (leaf, hash) in hashes {
            assert!(index.find(*hash, |found| (found == *leaf).then_some(())).is_some(), "{leaf}");
        }
        let stored: usize = index.buckets.iter().map(|b| entries(b.bytes())).sum();
        assert_eq!(stored, hashes.len());
    }

    fn grown(mask: u64, count: u32) -> (Index, HashMap<u32, u64>) {
        let (mut index, mut hashes, mut rng) = (Index::new(), HashMap::new(), Rng::seeded(7));
        for leaf in 0..count {
            let hash = rng.next_u64() & mask;
            index.insert(hash, leaf);
            hashes.insert(leaf, hash);
            index.grow(|leaf, each| each(hashes[&leaf]));
        }
        (index, hashes)
    }

    #[test]
    fn grows_and_shrinks_through_windows() {
        for mask in [u64::MAX, 0xF0F, 0, 0x80_0000_0000_0000] {
            let (mut index, mut hashes) = grown(mask, if mask == u64::MAX { 20_000 } else { 2_000 });
            check(&index, &hashes);
            if mask == u64::MAX {
                assert!(index.buckets() > 512);
            }
            for leaf in 0..hashes.len() as u32 {
                let hash = hashes.remove(&leaf).expect("a member");
                index.forget(hash, leaf);
                index.shrink();
                if hashes.len().is_multiple_of(977) {
                    check(&index, &hashes);
                }
            }
            assert_eq!((index.buckets(), index.len()), (1, 0));
        }
    }

    #[test]
    fn entries_move() {
        let (mut index, mut hashes) = grown(u64::MAX, 3_000);
        for leaf in 0..3_000 {
            let hash = hashes.remove(&leaf).expect("a member");
            index.relocate(hash, leaf, leaf + 10_000);
            hashes.insert(leaf + 10_000, hash);
        }
        check(&index, &hashes);
    }
}
