//! Sets of integers in one run of bytes: ascending, all as wide as the widest needs. The small form of sets of
//! numbers.
//!
//! ```text
//! stored    [width u8: 2, 4 or 8][integer of that width ...]
//! portable  [width u32][count u32][integer of that width ...]      (files and dumps, see `to_portable`)
//! ```
//! All little endian. Must stay true of stored bytes ([`check`] verifies it): the integers ascend strictly. The width
//! grows with the first integer that needs it and never shrinks, as in Redis, so it may be wider than needed.
use super::packed::PackedBytes;

/// The stored bytes of a set without members.
pub const EMPTY: [u8; HEAD_BYTES] = [2];

/// Bytes in front of the integers.
const HEAD_BYTES: usize = 1;
const PORTABLE_HEAD_BYTES: usize = 8;

/// Bytes that an integer needs: 2, 4 or 8.
#[inline]
fn width_of(value: i64) -> usize {
    if i16::try_from(value).is_ok() {
        2
    } else if i32::try_from(value).is_ok() {
        4
    } else {
        8
    }
}

/// A set to read. The bytes are the stored ones.
#[derive(Clone, Copy, Debug)]
pub struct Intset<'a> {
    width: usize,
    ints: &'a [u8],
}

impl<'a> Intset<'a> {
    /// Views stored bytes.
    ///
    /// # Panics
    /// When there is not even a width.
    #[inline]
    pub fn new(stored: &'a [u8]) -> Intset<'a> {
        Intset { width: usize::from(stored[0]), ints: &stored[HEAD_BYTES..] }
    }

    /// The integers' bytes.
    pub fn int_bytes(self) -> &'a [u8] {
        self.ints
    }

    /// Bytes of one integer.
    #[inline]
    pub fn width(self) -> usize {
        self.width
    }

    /// The number of members.
    #[inline]
    pub fn len(self) -> usize {
        // Widths are powers of two; a shift is much quicker than a division.
        self.ints.len() >> self.width.trailing_zeros()
    }

    /// Whether there is no member.
    #[inline]
    pub fn is_empty(self) -> bool {
        self.ints.is_empty()
    }

    /// The member at `index` in ascending order.
    #[inline]
    pub fn get(self, index: usize) -> Option<i64> {
        match self.width {
            2 => self.ints.as_chunks::<2>().0.get(index).map(|int| i64::from(i16::from_le_bytes(*int))),
            4 => self.ints.as_chunks::<4>().0.get(index).map(|int| i64::from(i32::from_le_bytes(*int))),
            _ => self.ints.as_chunks::<8>().0.get(index).map(|int| i64::from_le_bytes(*int)),
        }
    }

    /// The least member.
    pub fn min(self) -> Option<i64> {
        self.get(0)
    }

    /// The greatest member.
    pub fn max(self) -> Option<i64> {
        self.get(self.len().checked_sub(1)?)
    }

    /// Where a value stands, or else would have to.
    #[inline]
    fn search(self, value: i64) -> Result<usize, usize> {
        match self.width {
            2 => self
                .ints
                .as_chunks()
                .0
                .binary_search_by_key(&value, |int| i64::from(i16::from_le_bytes(*int))),
            4 => self
                .ints
                .as_chunks()
                .0
                .binary_search_by_key(&value, |int| i64::from(i32::from_le_bytes(*int))),
            _ => self.ints.as_chunks().0.binary_search_by_key(&value, |int| i64::from_le_bytes(*int)),
        }
    }

    /// The index of a member.
    #[inline]
    pub fn position(self, value: i64) -> Option<usize> {
        self.search(value).ok()
    }

    /// Whether a value is a member.
    #[inline]
    pub fn contains(self, value: i64) -> bool {
        self.search(value).is_ok()
    }

    /// Members in ascending order.
    #[inline]
    pub fn iter(self) -> impl DoubleEndedIterator<Item = i64> + ExactSizeIterator + Clone + use<'a> {
        self.ints.chunks_exact(self.width).map(read)
    }
}

/// The integer in two, four or eight bytes.
#[inline]
fn read(int: &[u8]) -> i64 {
    if let Ok(int) = <[u8; 2]>::try_from(int) {
        i64::from(i16::from_le_bytes(int))
    } else if let Ok(int) = <[u8; 4]>::try_from(int) {
        i64::from(i32::from_le_bytes(int))
    } else {
        i64::from_le_bytes(int.try_into().unwrap_or_default())
    }
}

/// Adds a value; tells whether it was not there yet.
pub fn add(set: &mut impl PackedBytes, value: i64) -> bool {
    let view = Intset::new(set.bytes());
    let width = width_of(value);
    if width > view.width {
        widen(set, value, width);
        return true;
    }
    let Err(index) = view.search(value) else { return false };
    let width = view.width;
    set.splice(HEAD_BYTES + index * width, 0, &value.to_le_bytes()[..width]);
    true
}

/// Adds a value that needs more bytes than the present members, which makes it the least or the greatest.
fn widen(set: &mut impl PackedBytes, value: i64, width: usize) {
    let view = Intset::new(set.bytes());
    let (before, after) = if value < 0 { (Some(value), None) } else { (None, Some(value)) };
    let mut wider = Vec::with_capacity(HEAD_BYTES + (view.len() + 1) * width);
    wider.push(width as u8);
    for int in before.into_iter().chain(view.iter()).chain(after) {
        wider.extend_from_slice(&int.to_le_bytes()[..width]);
    }
    let old_bytes = set.bytes().len();
    set.splice(0, old_bytes, &wider);
}

/// Takes a value out; tells whether it was there.
pub fn remove(set: &mut impl PackedBytes, value: i64) -> bool {
    match Intset::new(set.bytes()).position(value) {
        Some(index) => remove_at(set, index, 1) == 1,
        None => false,
    }
}

/// Takes out `n` members from `index` on (all from there, if there are fewer) and tells how many it were.
pub fn remove_at(set: &mut impl PackedBytes, index: usize, n: usize) -> usize {
    let view = Intset::new(set.bytes());
    let (width, len) = (view.width, view.len());
    let index = index.min(len);
    let n = n.min(len - index);
    set.splice(HEAD_BYTES + index * width, n * width, &[]);
    n
}

/// The portable form of stored bytes.
pub fn to_portable(stored: &[u8]) -> Vec<u8> {
    let view = Intset::new(stored);
    let mut portable = Vec::with_capacity(PORTABLE_HEAD_BYTES + view.ints.len());
    portable.extend_from_slice(&(view.width as u32).to_le_bytes());
    portable.extend_from_slice(&(view.len() as u32).to_le_bytes());
    portable.extend_from_slice(view.ints);
    portable
}

/// The stored form of portable bytes, which may be anything: `None` unless they are a sound set with a member.
pub fn from_portable(portable: &[u8]) -> Option<Vec<u8>> {
    let (width, rest) = portable.split_first_chunk()?;
    let (count, ints) = rest.split_first_chunk()?;
    let width = u8::try_from(u32::from_le_bytes(*width)).ok()?;
    let mut stored = Vec::with_capacity(HEAD_BYTES + ints.len());
    stored.push(width);
    stored.extend_from_slice(ints);
    let count = u32::from_le_bytes(*count) as usize;
    (count > 0 && check(&stored) && Intset::new(&stored).len() == count).then_some(stored)
}

/// Whether bytes are those of a set as stored.
pub fn check(stored: &[u8]) -> bool {
    matches!(stored, [2 | 4 | 8, ..])
        && (stored.len() - HEAD_BYTES).is_multiple_of(usize::from(stored[0]))
        && Intset::new(stored).iter().is_sorted_by(|a, b| a < b)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;
    use crate::ds::raw::thin::ThinBytes;

    const LIMITS: [i64; 6] = [0, 300, 0x7FFF, 0x8000, 0x7FFF_FFFF, 0x8000_0000];

    fn value() -> impl Strategy<Value = i64> {
        let near = |limit: i64| (limit - 2..=limit + 2).flat_map(|v| [v, -v]);
        prop_oneof![
            2 => proptest::sample::select(LIMITS.into_iter().flat_map(near).collect::<Vec<i64>>()),
            8 => -20_i64..20,
            1 => any::<i64>(),
            1 => proptest::sample::select(vec![i64::MIN, i64::MAX]),
        ]
    }

    fn compare(stored: &[u8], model: &BTreeSet<i64>) {
        assert!(check(stored));
        let set = Intset::new(stored);
        assert_eq!((set.len(), set.is_empty()), (model.len(), model.is_empty()));
        assert!(set.iter().eq(model.iter().copied()));
        assert!(set.iter().rev().eq(model.iter().rev().copied()));
        assert_eq!((set.min(), set.max()), (model.first().copied(), model.last().copied()));
        for (i, value) in model.iter().enumerate() {
            assert_eq!((set.get(i), set.position(*value)), (Some(*value), Some(i)));
            for near in [value.saturating_sub(1), *value, value.saturating_add(1)] {
                assert_eq!(set.contains(near), model.contains(&near));
            }
        }
        assert_eq!(set.get(model.len()), None);
        let back = (!model.is_empty()).then_some(stored);
        assert_eq!(from_portable(&to_portable(stored)).as_deref(), back);
    }

    proptest! {
        #[test]
        fn edits_agree_with_a_model(steps in proptest::collection::vec((value(), 0..4), 1..80)) {
            let (mut vec, mut thin) = (EMPTY.to_vec(), ThinBytes::from(&EMPTY[..]));
            let mut model = BTreeSet::new();
            for (value, kind) in steps {
                match kind {
                    0..2 => {
                        let is_new = model.insert(value);
                        prop_assert_eq!((add(&mut vec, value), add(&mut thin, value)), (is_new, is_new));
                    }
                    2 => {
                        let was_there = model.remove(&value);
                        prop_assert_eq!((remove(&mut vec, value), remove(&mut thin, value)), (was_there, was_there));
                    }
                    _ => {
                        let (index, n) = (value.unsigned_abs() as usize % (model.len() + 1), 2);
                        let gone: Vec<i64> = model.iter().copied().skip(index).take(n).collect();
                        model.retain(|value| !gone.contains(value));
                        let removed = (remove_at(&mut vec, index, n), remove_at(&mut thin, index, n));
                        prop_assert_eq!(removed, (gone.len(), gone.len()));
                    }
                }
                prop_assert_eq!(thin.bytes(), &vec[..]);
                compare(&vec, &model);
            }
        }

        #[test]
        fn hostile_bytes_are_refused_or_sound(
            values in proptest::collection::vec(value(), 0..8),
            damage in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
            cut in proptest::option::of(any::<prop::sample::Index>()),
        ) {
            let mut set = EMPTY.to_vec();
            for value in values {
                add(&mut set, value);
            }
            let mut portable = to_portable(&set);
            for (at, byte) in damage {
                let at = at.index(portable.len());
                portable[at] = byte;
            }
            if let Some(cut) = cut {
                portable.truncate(cut.index(portable.len()));
            }
            if let Some(stored) = from_portable(&portable) {
                compare(&stored, &Intset::new(&stored).iter().collect());
                prop_assert_eq!(to_portable(&stored), portable);
            }
        }
    }

    /// As DUMP of Redis 8.0.6 shows them.
    #[test]
    fn bytes_are_those_of_redis() {
        for (values, dumped) in [
            (vec![1_i64, -5, 300], &[2, 0, 0, 0, 3, 0, 0, 0, 0xFB, 0xFF, 1, 0, 0x2C, 1][..]),
            (vec![1, 70_000], &[4, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 0x70, 0x11, 1, 0]),
        ] {
            let mut set = EMPTY.to_vec();
            values.iter().for_each(|value| assert!(add(&mut set, *value)));
            assert_eq!(to_portable(&set), dumped);
        }
    }

    #[test]
    fn unsound_bytes_are_refused() {
        let sound = [2, 0, 0, 0, 2, 0, 0, 0, 1, 0, 2, 0];
        assert_eq!(from_portable(&sound), Some(vec![2, 1, 0, 2, 0]));
        for (at, byte, what) in [
            (0, 3, "a width that is none"),
            (0, 0, "no width"),
            (1, 1, "a wide width"),
            (4, 1, "a count too small"),
            (4, 3, "a count too large"),
            (7, 0x80, "a count that would wrap"),
            (8, 2, "the same twice"),
            (9, 1, "a descent"),
        ] {
            let mut bytes = sound;
            bytes[at] = byte;
            assert_eq!(from_portable(&bytes), None, "{what}");
        }
        assert_eq!(from_portable(&sound[..11]), None);
        assert_eq!(from_portable(&[2, 0, 0, 0, 0, 0, 0, 0]), None);
    }

    #[test]
    fn the_width_grows_only() {
        let mut set = EMPTY.to_vec();
        let widths = [(1, 2), (-32_769, 4), (i64::MAX, 8)].map(|(value, width)| {
            add(&mut set, value);
            Intset::new(&set).width() == width
        });
        assert_eq!(widths, [true; 3]);
        assert!(remove(&mut set, i64::MAX) && !remove(&mut set, i64::MAX));
        assert_eq!(Intset::new(&set).width(), 8);
    }
}
