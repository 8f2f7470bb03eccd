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

/// Overwrites the count, whose code took `width` bytes, behind a change of the records.
fn set_count(bucket: &mut ThinBytes, width: usize, count: usize) {
    if width == 1 && count <= usize::from(LITERAL_MAX) {
        bucket.bytes_mut()[0] = count as u8;
        return;
    }
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

/// The buckets of a group.
pub(super) type Group = SmallVec<[ThinBytes; GROUP_MAX]>;

/// Buckets of a group at most.
pub(super) const GROUP_MAX: usize = 4;

/// A bucket that is being put together, from the newest record on.
#[derive(Default)]
struct Draft {
    fingerprints: SmallVec<[u8; 64]>,
    records: SmallVec<[u8; 1024]>,
}

impl Draft {
    fn finish(self) -> ThinBytes {
        let mut out: SmallVec<[u8; 1024]> = SmallVec::new();
        if !self.fingerprints.is_empty() {
            put_len(&mut out, self.fingerprints.len(), LITERAL_MAX, 0);
        }
        out.extend(self.fingerprints.iter().rev().copied());
        out.extend_from_slice(&self.records);
        ThinBytes::from(&out[..])
    }
}

/// New buckets for the records of a group, each in the one below [`GROUP_MAX`] that `part` says for its key.
pub(super) fn spread(
    group: &[ThinBytes],
    layout: Layout,
    part: impl Fn(&[u8]) -> usize,
) -> [ThinBytes; GROUP_MAX] {
    let mut drafts: [Draft; GROUP_MAX] = Default::default();
    for bucket in group {
        let bytes = bucket.bytes();
        let marks = fingerprints(bytes);
        for Found { slot, shape } in shapes(bytes, layout) {
            let draft = &mut drafts[part(shape.key(bytes))];
            draft.fingerprints.push(marks[slot]);
            draft.records.extend_from_slice(&bytes[shape.at..shape.end()]);
        }
    }
    drafts.map(Draft::finish)
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
    fn spreading_loses_nothing() {
        for count in [0, 1, 2, 40, 300, 700] {
            let keys = |bucket: &ThinBytes| {
                let bytes = bucket.bytes();
                shapes(bytes, LAYOUT).map(|found| found.shape.key(bytes).to_vec()).collect::<Vec<_>>()
            };
            let parts = spread(&[filled(count)], LAYOUT, |key| key.len());
            assert!((0..GROUP_MAX).all(|part| keys(&parts[part]).iter().all(|key| key.len() == part)));
            let [bucket, ..] = spread(&parts, LAYOUT, |_| 0);
            let there = |number: &usize| key_of(&bucket, &number.to_string()).is_some();
            assert_eq!((keys(&bucket).len(), (0..count).filter(there).count()), (count, count));
        }
    }
}
