//! Which bucket of a packed table holds which hashes: a function of the number of buckets alone.
//!
//! Hash space, `0..2^40`, is cut into `2^level` equal groups, and each group into two or three equal buckets, in the
//! groups below `expanded` one more. A new bucket comes with the expansion of one group, whose records spread anew over
//! its buckets; when all groups have four buckets, each becomes two groups of two (P.-Å. Larson, "Linear hashing with
//! partial expansions", VLDB 1980). So the fullest buckets expect half as much again as the emptiest, where plain
//! linear hashing has twice as much: walks stay short, and buffers keep to few size classes, which leaves few holes in
//! their chunks.
//!
//! Bucket `j` of group `i` is number `j * 2^level + i` in the list: an expansion appends. Where the level changes, the
//! list is put in another order ([`Grid::refined`]), and no record moves.
//!
//! Must stay true: buckets are intervals of hash space; only the bounds within one group change by an expansion.
use super::record::Layout;
use super::{bucket, hash_of};
use crate::base::hash::KeyHash;
use crate::ds::raw::thin::ThinBytes;

/// Bits of [`KeyHash::index_bits`].
const SPACE_BITS: u32 = 40;
/// Buckets of a group before its expansions, from the second level on.
const GROUP_MIN: u64 = 2;

/// The cut for some number of buckets.
#[derive(Clone, Copy)]
pub(super) struct Grid {
    /// Bits that tell groups apart.
    level: u32,
    /// Buckets of a group that was not expanded yet.
    width: u64,
    /// Groups that have one more.
    expanded: u64,
}

impl Grid {
    /// The cut for `buckets` (at least one).
    #[inline]
    pub fn of(buckets: usize) -> Grid {
        let buckets = buckets as u64;
        let level = buckets.ilog2().saturating_sub(1);
        Grid { level, width: buckets >> level, expanded: buckets & ((1 << level) - 1) }
    }

    #[inline]
    fn width(&self, group: u64) -> u64 {
        self.width + u64::from(group < self.expanded)
    }

    #[inline]
    fn group(&self, place: u64) -> u64 {
        place >> (SPACE_BITS - self.level)
    }

    /// Which of `width` buckets of its group a place belongs to.
    #[inline]
    fn part(&self, place: u64, width: u64) -> u64 {
        let inside = (place << self.level) & ((1 << SPACE_BITS) - 1);
        (inside * width) >> SPACE_BITS
    }

    #[inline]
    fn number(&self, group: u64, part: u64) -> usize {
        ((part << self.level) + group) as usize
    }

    /// The bucket of a place in hash space.
    #[inline]
    pub fn bucket(&self, place: u64) -> usize {
        let group = self.group(place);
        self.number(group, self.part(place, self.width(group)))
    }

    /// Where the bucket of a place ends; 0 after the last one.
    pub fn end(&self, place: u64) -> u64 {
        let group = self.group(place);
        let width = self.width(group);
        let part = self.part(place, width) + 1;
        let inside = (part << SPACE_BITS).div_ceil(width).div_ceil(1 << self.level);
        ((group << (SPACE_BITS - self.level)) + inside) & ((1 << SPACE_BITS) - 1)
    }

    /// The records that one of the fuller buckets expects when there are `records` in all.
    pub fn crowd(&self, records: usize) -> usize {
        (records >> self.level) / self.width as usize
    }
}

/// A place in hash space from any number.
#[inline]
pub(super) fn place(number: u64) -> u64 {
    number & ((1 << SPACE_BITS) - 1)
}

/// Adds a bucket.
pub(super) fn grow(buckets: &mut Vec<ThinBytes>, layout: Layout) {
    let grid = Grid::of(buckets.len());
    if buckets.len() == buckets.capacity() {
        // Less than doubling: the list is small against the buckets, and its slack need not be large.
        buckets.reserve_exact((buckets.len() / 4).max(4));
    }
    buckets.push(ThinBytes::new());
    respread(buckets, layout, &grid, (grid.expanded, grid.width, grid.width + 1));
    let next = Grid::of(buckets.len());
    if next.level > grid.level {
        *buckets = refined(buckets, grid.level);
    }
}

/// Takes a bucket away; there are at least two.
pub(super) fn shrink(buckets: &mut Vec<ThinBytes>, layout: Layout) {
    let grid = Grid::of(buckets.len() - 1);
    if Grid::of(buckets.len()).level > grid.level {
        *buckets = coarsened(buckets, grid.level);
    }
    respread(buckets, layout, &grid, (grid.expanded, grid.width + 1, grid.width));
    buckets.pop();
    if buckets.capacity() > 4 * buckets.len() {
        buckets.shrink_to(2 * buckets.len());
    }
}

/// Spreads the records of a group's `from` buckets over `to`.
fn respread(buckets: &mut [ThinBytes], layout: Layout, grid: &Grid, (group, from, to): (u64, u64, u64)) {
    let part = |hash: KeyHash| grid.part(hash.index_bits(), to) as usize;
    let old: bucket::Group =
        (0..from).map(|part| std::mem::take(&mut buckets[grid.number(group, part)])).collect();
    let new = bucket::spread(&old, layout, |key| part(hash_of(key)));
    for (part, bucket) in (0..to).zip(new) {
        buckets[grid.number(group, part)] = bucket;
    }
}

/// The list after a step from `level`, where all groups have four buckets, to the next one, where twice as many have
/// two: part `2 a + b` of group `i` is part `b` of group `2 i + a`.
fn refined(old: &mut Vec<ThinBytes>, level: u32) -> Vec<ThinBytes> {
    let mut new = Vec::with_capacity(old.capacity());
    for b in 0..GROUP_MIN as usize {
        for i in 0..1 << level {
            for a in 0..2 {
                new.push(std::mem::take(&mut old[((2 * a + b) << level) + i]));
            }
        }
    }
    new
}

/// The way back to `level` from the next one.
fn coarsened(old: &mut [ThinBytes], level: u32) -> Vec<ThinBytes> {
    let mut new = Vec::with_capacity(old.len());
    for part in 0..4 {
        let (a, b) = (part / 2, part % 2);
        for i in 0..1 << level {
            new.push(std::mem::take(&mut old[(b << (level + 1)) + 2 * i + a]));
        }
    }
    new
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPACE: u64 = 1 << SPACE_BITS;

    /// The buckets in the order of hash space, with their starts.
    fn walk(grid: &Grid) -> Vec<(u64, usize)> {
        let (mut place, mut seen) = (0, Vec::new());
        loop {
            seen.push((place, grid.bucket(place)));
            let end = grid.end(place);
            let last = if end == 0 { SPACE - 1 } else { end - 1 };
            assert_eq!(grid.bucket(last), grid.bucket(place), "an interval belongs to one bucket");
            place = end;
            if end == 0 {
                return seen;
            }
        }
    }

    #[test]
    fn every_number_of_buckets_covers_hash_space() {
        for count in (1..200).chain([1000, 1023, 1024, 1025, 1535, 1536, 1537]) {
            let grid = Grid::of(count);
            let walked = walk(&grid);
            let mut numbers: Vec<usize> = walked.iter().map(|step| step.1).collect();
            numbers.sort_unstable();
            assert!(numbers.into_iter().eq(0..count), "{count}");
            let ends = walked.iter().skip(1).map(|step| step.0).chain([SPACE]);
            let shares = walked.iter().zip(ends).map(|(step, end)| end - step.0);
            let (most, least) = (shares.clone().max(), shares.min());
            if count >= 4 {
                assert!(most.unwrap_or(0) * 10 <= least.unwrap_or(0) * 16, "{count}: {most:?} {least:?}");
            }
            let expected = 1_000_000 * u128::from(most.unwrap_or(0)) / u128::from(SPACE);
            assert!(grid.crowd(1_000_000).abs_diff(expected as usize) <= 1, "the fuller ones: {count}");
        }
    }

    #[test]
    fn a_step_changes_one_group_only() {
        for count in 1..300 {
            let (before, after) = (walk(&Grid::of(count)), walk(&Grid::of(count + 1)));
            let starts = |walk: &[(u64, usize)]| walk.iter().map(|step| step.0).collect::<Vec<_>>();
            let (before, after) = (starts(&before), starts(&after));
            let same = before.iter().zip(&after).take_while(|(a, b)| a == b).count();
            let tail = before.iter().rev().zip(after.iter().rev()).take_while(|(a, b)| a == b).count();
            assert!(same + tail + 3 >= after.len(), "{count}: {before:?} {after:?}");
        }
    }

    #[test]
    fn deep_levels_keep_their_precision() {
        for count in [(1_usize << 32) - 1, 1 << 32, (1 << 31) + (1 << 30) + 5] {
            let grid = Grid::of(count);
            for place in [0, 1, 77 << 20, SPACE / 3, SPACE - 1] {
                let end = grid.end(place);
                assert!(grid.bucket(place) < count && (end > place || end == 0));
                assert_ne!(grid.bucket(end), grid.bucket(place));
            }
        }
    }
}
