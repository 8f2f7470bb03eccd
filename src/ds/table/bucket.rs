//! One bucket of a packed table: some records back to back, with a byte of each one's hash in front.
//!
//! ```text
//! [count code][fingerprint 0 .. n-1][record n-1 ... record 0]
//! ```
//! The newest record lies right behind the newest fingerprint, so that adding one is a single splice. An empty bucket
//! has no bytes at all.
//!
//! Must stay true: as many fingerprints as records, in mirrored order; nothing behind record 0.
use smallvec::SmallVec;

use super::record::{self, LITERAL_MAX, Layout, Scratch, Shape, put_len, read_len};
use crate::base::hash::KeyHash;
use crate::ds::packed::PackedBytes;
use crate::ds::raw::thin::ThinBytes;

/// Fingerprints compared at once.
const LANES: usize = 8;

/// A record that was found.
#[derive(Clone, Copy)]
pub(super) struct Found {
    /// Number of its fingerprint.
    pub slot: usize,
    /// Where it lies.
    pub shape: Shape,
}

/// Number of records, and where the fingerprints start.
#[inline]
pub(super) fn head(bytes: &[u8]) -> (usize, usize) {
    match bytes.first() {
        Some(&first) => read_len(bytes, 1, first, LITERAL_MAX),
        None => (0, 0),
    }
}

/// Number of records.
#[inline]
pub(super) fn count(bucket: &ThinBytes) -> usize {
    head(bucket.bytes()).0
}

/// The fingerprints.
pub(super) fn fingerprints(bytes: &[u8]) -> &[u8] {
    let (count, at) = head(bytes);
    &bytes[at..at + count]
}

/// Which of the `left` (at least one) fingerprints at `at` are `byte`: the top bit of each of eight bytes.
#[inline]
fn matches(bytes: &[u8], at: usize, left: usize, byte: u8) -> u64 {
    const LOW: u64 = 0x7F7F_7F7F_7F7F_7F7F;
    let mut lanes = [0; LANES];
    match bytes.get(at..at + LANES) {
        Some(eight) => lanes.copy_from_slice(eight),
        None => lanes[..bytes.len() - at].copy_from_slice(&bytes[at..]),
    }
    // A byte without any bit is the only one that neither overflows into its top bit nor has it.
    let differences = u64::from_le_bytes(lanes) ^ (u64::from(byte) * 0x0101_0101_0101_0101);
    let equal = !(((differences & LOW) + LOW) | differences | LOW);
    if left < LANES { equal & ((1 << (LANES * left)) - 1) } else { equal }
}

/// The record with this fingerprint that `is` accepts.
#[inline]
pub(super) fn find(
    bytes: &[u8],
    layout: Layout,
    fingerprint: u8,
    is: impl Fn(&Shape) -> bool,
) -> Option<Found> {
    let (count, first) = head(bytes);
    // `at` is where the record below `slot` starts.
    let (mut slot, mut at) = (count, first + count);
    for start in (0..count).step_by(LANES).rev() {
        let mut hits = matches(bytes, first + start, count - start, fingerprint);
        while hits != 0 {
            let top = hits.ilog2();
            hits ^= 1 << top;
            let hit = start + top as usize / LANES;
            while slot > hit + 1 {
                at = Shape::read(bytes, at, layout).end();
                slot -= 1;
            }
            let shape = Shape::read(bytes, at, layout);
            if is(&shape) {
                return Some(Found { slot: hit, shape });
            }
        }
    }
    None
}

/// The record of a slot below the count.
pub(super) fn nth(bytes: &[u8], layout: Layout, slot: usize) -> Option<Found> {
    shapes(bytes, layout).find(|found| found.slot == slot)
}

/// All records, the newest first.
#[derive(Clone)]
pub(super) struct Shapes<'a> {
    bytes: &'a [u8],
    layout: Layout,
    slot: usize,
    at: usize,
}

impl Iterator for Shapes<'_> {
    type Item = Found;

    #[inline]
    fn next(&mut self) -> Option<Found> {
        self.slot = self.slot.checked_sub(1)?;
        let shape = Shape::read(self.bytes, self.at, self.layout);
        self.at = shape.end();
        Some(Found { slot: self.slot, shape })
    }
}

impl<'a> Shapes<'a> {
    /// The bucket's bytes.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }
}

/// Walks over a bucket.
#[inline]
pub(super) fn shapes(bytes: &[u8], layout: Layout) -> Shapes<'_> {
    let (count, first) = head(bytes);
    Shapes { bytes, layout, slot: count, at: first + count }
}

/// Overwrites the count behind a change of the records.
fn set_count(bucket: &mut ThinBytes, width: usize, count: usize) {
    let mut code = Scratch::new();
    put_len(&mut code, count, LITERAL_MAX, 0);
    bucket.splice(0, width, &code);
}

/// Adds a record; gives its bytes.
pub(super) fn push(
    bucket: &mut ThinBytes,
    layout: Layout,
    fingerprint: u8,
    (key, value, deadline_ms): (&[u8], &[u8], Option<u64>),
) -> usize {
    let (count, first) = head(bucket.bytes());
    let mut new = Scratch::new();
    if count == 0 {
        new.push(1);
    }
    new.push(fingerprint);
    let front = new.len();
    record::write(&mut new, layout, key, value, deadline_ms);
    bucket.splice(first + count, 0, &new);
    if count > 0 {
        set_count(bucket, first, count + 1);
    }
    new.len() - front
}

/// Takes a record out.
pub(super) fn remove(bucket: &mut ThinBytes, found: &Found) {
    let (count, first) = head(bucket.bytes());
    if count == 1 {
        bucket.splice(0, bucket.len(), &[]);
        return;
    }
    // What lies between the fingerprint and the record closes up to the former; one hole is left.
    let hole = first + found.slot;
    bucket.bytes_mut().copy_within(hole + 1..found.shape.at, hole);
    bucket.splice(found.shape.at - 1, found.shape.len() + 1, &[]);
    set_count(bucket, first, count - 1);
}

/// Moves the records that `goes` picks by their hash to a bucket of their own.
pub(super) fn split(
    bucket: &mut ThinBytes,
    layout: Layout,
    goes: impl Fn(KeyHash) -> bool,
    hash_of: impl Fn(&[u8]) -> KeyHash,
) -> ThinBytes {
    let bytes = bucket.bytes();
    let mut going: SmallVec<[bool; 64]> = SmallVec::from_elem(false, count(bucket));
    for found in shapes(bytes, layout) {
        going[found.slot] = goes(hash_of(found.shape.key(bytes)));
    }
    let leaving = going.iter().filter(|goes| **goes).count();
    if leaving == 0 {
        return ThinBytes::new();
    }
    if leaving == going.len() {
        return std::mem::take(bucket);
    }
    let gone = gather(bytes, layout, leaving, |slot| going[slot]);
    *bucket = gather(bytes, layout, going.len() - leaving, |slot| !going[slot]);
    gone
}

/// A bucket of the `count` records that are picked by their slot.
fn gather(bytes: &[u8], layout: Layout, count: usize, picked: impl Fn(usize) -> bool) -> ThinBytes {
    let mut out = Vec::with_capacity(bytes.len());
    put_len(&mut out, count, LITERAL_MAX, 0);
    let marks = fingerprints(bytes).iter().enumerate();
    out.extend(marks.filter(|(slot, _)| picked(*slot)).map(|(_, mark)| *mark));
    for found in shapes(bytes, layout).filter(|found| picked(found.slot)) {
        out.extend_from_slice(&bytes[found.shape.at..found.shape.end()]);
    }
    ThinBytes::from(&out[..])
}

/// Puts all records of `other` into `bucket`.
pub(super) fn merge(bucket: &mut ThinBytes, other: ThinBytes) {
    if bucket.is_empty() || other.is_empty() {
        if bucket.is_empty() {
            *bucket = other;
        }
        return;
    }
    let (old, new) = (bucket.bytes(), other.bytes());
    let ((old_count, old_first), (new_count, new_first)) = (head(old), head(new));
    let mut out = Vec::with_capacity(old.len() + new.len());
    put_len(&mut out, old_count + new_count, LITERAL_MAX, 0);
    out.extend_from_slice(fingerprints(old));
    out.extend_from_slice(fingerprints(new));
    out.extend_from_slice(&new[new_first + new_count..]);
    out.extend_from_slice(&old[old_first + old_count..]);
    *bucket = ThinBytes::from(&out[..]);
}

#[cfg(test)]
mod tests {
    use super::*;

    const LAYOUT: Layout = Layout::KeysAndValues;

    fn filled(count: usize) -> ThinBytes {
        let mut bucket = ThinBytes::new();
        for number in 0..count {
            let key = number.to_string();
            push(&mut bucket, LAYOUT, (number % 7) as u8, (key.as_bytes(), b"v", None));
        }
        bucket
    }

    fn key_of(bucket: &ThinBytes, key: &str) -> Option<usize> {
        let bytes = bucket.bytes();
        let number: usize = key.parse().expect("a number");
        let found = find(bytes, LAYOUT, (number % 7) as u8, |shape| shape.key(bytes) == key.as_bytes())?;
        Some(found.slot)
    }

    #[test]
    fn equal_bytes_are_found_exactly() {
        let bytes: Vec<u8> = (0..=255).collect();
        for at in 0..=255 {
            for left in 1..=9 {
                for byte in [0, 1, 0x7F, 0x80, 0x81, 0xFE, 0xFF, at as u8] {
                    let hits = matches(&bytes, at, left, byte);
                    for lane in 0..8 {
                        let equal = lane < left && bytes.get(at + lane) == Some(&byte);
                        // Behind the bucket's end there are zeros, which no count reaches.
                        let beyond = at + lane > 255;
                        assert!(beyond || (hits >> (8 * lane + 7) & 1 == 1) == equal, "{at} {left} {byte}");
                    }
                }
            }
        }
    }

    #[test]
    fn records_come_and_go_past_every_width_of_the_count() {
        let count = 700;
        let mut bucket = filled(count);
        for number in 0..count {
            assert_eq!(key_of(&bucket, &number.to_string()), Some(number));
        }
        assert_eq!(key_of(&bucket, "700"), None);
        for number in (0..count).step_by(2).chain((1..count).step_by(2)) {
            let bytes = bucket.bytes();
            let key = number.to_string();
            let found = find(bytes, LAYOUT, (number % 7) as u8, |s| s.key(bytes) == key.as_bytes());
            remove(&mut bucket, &found.expect("still there"));
            assert_eq!(key_of(&bucket, &key), None);
        }
        assert!(bucket.is_empty());
    }

    #[test]
    fn a_split_and_a_merge_lose_nothing() {
        for count in [0, 1, 2, 40, 300] {
            let mut bucket = filled(count);
            let hash = |key: &[u8]| KeyHash::from_bits(key.len() as u64);
            let other = split(&mut bucket, LAYOUT, |hash| hash.bits() == 2, hash);
            let keys = |bucket: &ThinBytes| {
                let bytes = bucket.bytes();
                shapes(bytes, LAYOUT).map(|found| found.shape.key(bytes).to_vec()).collect::<Vec<_>>()
            };
            assert!(keys(&other).iter().all(|key| key.len() == 2));
            assert!(keys(&bucket).iter().all(|key| key.len() != 2));
            merge(&mut bucket, other);
            let there = |number: &usize| key_of(&bucket, &number.to_string()).is_some();
            assert_eq!((keys(&bucket).len(), (0..count).filter(there).count()), (count, count));
        }
    }
}
