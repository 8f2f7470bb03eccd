//! Records of a packed table that nobody names: all of them, some at random, or by a cursor.
//!
//! A cursor is a place in hash space. Buckets are intervals of it, so whoever always goes on from the end of a bucket
//! misses no record that was there throughout, however the table grew or shrank in between.
//!
//! Must stay true: a scan goes through whole buckets and ends where a bucket ends.
use std::collections::HashSet;

use super::bucket::{self, Found, Shapes};
use super::{PackedTable, Record, grid, hash_of};
use crate::ds::packed::PackedBytes;
use crate::ds::raw::thin::ThinBytes;

/// Buckets that a scan visits at most for each record that it was asked for.
const SCAN_BUCKETS_PER_RECORD: usize = 10;
/// Draws after which a random choice takes the next record there is; about one in e^14 when the table is sparsest.
const RANDOM_TRIES: u32 = 512;

/// All records of a table.
#[derive(Clone)]
pub struct Iter<'a> {
    table: &'a PackedTable,
    buckets: std::slice::Iter<'a, ThinBytes>,
    shapes: Shapes<'a>,
    left: usize,
}

impl<'a> Iterator for Iter<'a> {
    type Item = Record<'a>;

    fn next(&mut self) -> Option<Record<'a>> {
        loop {
            if let Some(found) = self.shapes.next() {
                self.left -= 1;
                return Some(found.shape.record(self.shapes.bytes()));
            }
            self.shapes = bucket::shapes(self.buckets.next()?.bytes(), self.table.layout);
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl ExactSizeIterator for Iter<'_> {}

impl<'a> IntoIterator for &'a PackedTable {
    type Item = Record<'a>;
    type IntoIter = Iter<'a>;

    fn into_iter(self) -> Iter<'a> {
        self.iter()
    }
}

/// A number below `below` and the fraction that is left of `random`, as the next number's bits.
fn draw(random: u64, below: usize) -> (usize, u64) {
    let product = u128::from(random) * below as u128;
    ((product >> 64) as usize, product as u64)
}

impl PackedTable {
    /// All records, in no order that means anything.
    pub fn iter(&self) -> Iter<'_> {
        let shapes = bucket::shapes(&[], self.layout);
        Iter { table: self, buckets: self.buckets.iter(), shapes, left: self.len }
    }

    /// Visits every record.
    pub fn for_each<'a>(&'a self, mut f: impl FnMut(Record<'a>)) {
        for bucket in &self.buckets {
            visit(bucket.bytes(), self, &mut f);
        }
    }

    /// Visits the records from `cursor` on, whole buckets at a time, until it has seen `count` of them or visited ten
    /// buckets for each; gives the cursor to go on from. Starts at 0, is done when 0 comes back. A record that is there
    /// from start to end is visited at least once.
    pub fn scan<'a>(&'a self, cursor: u64, count: usize, mut f: impl FnMut(Record<'a>)) -> u64 {
        let count = count.max(1);
        let grid = self.grid();
        let (mut at, mut seen) = (grid::place(cursor), 0);
        for _ in 0..count.saturating_mul(SCAN_BUCKETS_PER_RECORD) {
            seen += visit(self.buckets[grid.bucket(at)].bytes(), self, &mut f);
            at = grid.end(at);
            if at == 0 || seen >= count {
                break;
            }
        }
        at
    }

    /// The most records that a bucket is likely to hold: the mean of the fuller buckets and five deviations.
    fn crowd(&self) -> usize {
        if self.buckets.len() == 1 {
            return self.len;
        }
        let mean = self.grid().crowd(self.len) + 1;
        mean + 5 * mean.isqrt() + 6
    }

    /// A record picked by random numbers, all equally likely: a bucket, and a slot of as many as the fullest bucket
    /// has, until the slot is taken. The few records of a still fuller bucket are a little less likely.
    fn pick(&self, next: &mut impl FnMut() -> u64) -> Option<(usize, usize)> {
        if self.len == 0 {
            return None;
        }
        let crowd = self.crowd();
        for _ in 0..RANDOM_TRIES {
            let (index, rest) = draw(next(), self.buckets.len());
            let count = bucket::count(&self.buckets[index]);
            let (slot, rest) = draw(rest, crowd.max(1));
            if slot < count {
                // In an overfull bucket every record must have a chance.
                return Some((index, if count > crowd { draw(rest, count).0 } else { slot }));
            }
        }
        let (start, rest) = draw(next(), self.buckets.len());
        let order = (start..self.buckets.len()).chain(0..start);
        let index = order.into_iter().find(|index| !self.buckets[*index].is_empty())?;
        Some((index, draw(rest, bucket::count(&self.buckets[index])).0))
    }

    fn at(&self, (index, slot): (usize, usize)) -> Option<Found> {
        bucket::nth(self.buckets[index].bytes(), self.layout, slot)
    }

    /// A record picked by random numbers, each about equally likely.
    pub fn random(&self, next: &mut impl FnMut() -> u64) -> Option<Record<'_>> {
        let place = self.pick(next)?;
        Some(self.at(place)?.shape.record(self.buckets[place.0].bytes()))
    }

    /// Visits `count` different records picked by random numbers, or all if there are no more. Takes memory for
    /// `count` numbers at most.
    pub fn random_distinct<'a>(
        &'a self,
        count: usize,
        next: &mut impl FnMut() -> u64,
        mut f: impl FnMut(Record<'a>),
    ) {
        if count.saturating_mul(3) > self.len {
            return self.choose(count, next, f);
        }
        let mut seen = HashSet::with_capacity(count);
        while seen.len() < count {
            let Some(place) = self.pick(next) else { return };
            if seen.insert(place)
                && let Some(found) = self.at(place)
            {
                f(found.shape.record(self.buckets[place.0].bytes()));
            }
        }
    }

    /// Visits `count` records in one pass over all: each is taken with the odds of what is wanted to what is left
    /// (D. Knuth, "The Art of Computer Programming", 3.4.2, algorithm S).
    fn choose<'a>(&'a self, count: usize, next: &mut impl FnMut() -> u64, mut f: impl FnMut(Record<'a>)) {
        let (mut wanted, mut left) = (count.min(self.len), self.len);
        for record in self {
            if wanted == 0 {
                break;
            }
            if wanted == left || draw(next(), left).0 < wanted {
                wanted -= 1;
                f(record);
            }
            left -= 1;
        }
    }

    /// Removes a record picked by random numbers after a last look at it.
    pub fn pop_random<R>(
        &mut self,
        next: &mut impl FnMut() -> u64,
        look: impl FnOnce(Record<'_>) -> R,
    ) -> Option<R> {
        let place = self.pick(next)?;
        let found = self.at(place)?;
        let hash = hash_of(found.shape.key(self.buckets[place.0].bytes()));
        Some(self.take(place.0, hash, &found, look))
    }
}

/// Visits the records of a bucket; gives their number.
fn visit<'a>(bytes: &'a [u8], table: &PackedTable, f: &mut impl FnMut(Record<'a>)) -> usize {
    let mut seen = 0;
    for found in bucket::shapes(bytes, table.layout) {
        f(found.shape.record(bytes));
        seen += 1;
    }
    seen
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::hash::KeyHash;
    use crate::base::rng::Rng;
    use crate::ds::table::{Deadline, Layout};

    fn add(table: &mut PackedTable, numbers: impl Iterator<Item = usize>) {
        for number in numbers {
            let key = number.to_string().into_bytes();
            table.insert(KeyHash::of(&key), &key, b"", Deadline::Keep);
        }
    }

    fn drop_all(table: &mut PackedTable, numbers: impl Iterator<Item = usize>) {
        for number in numbers {
            let key = number.to_string().into_bytes();
            assert!(table.remove(KeyHash::of(&key), &key));
        }
    }

    fn number(record: Record<'_>) -> usize {
        std::str::from_utf8(record.key()).expect("digits").parse().expect("a number")
    }

    fn table(count: usize) -> PackedTable {
        let mut table = PackedTable::new(Layout::Keys);
        add(&mut table, 0..count);
        table
    }

    #[test]
    fn a_scan_at_rest_sees_everything_once() {
        for count in [0, 1, 16, 17, 100, 1000, 5000] {
            let table = table(count);
            for step in [0, 1, 10, 1000, usize::MAX] {
                let (mut seen, mut cursor) = (Vec::new(), 0);
                loop {
                    cursor = table.scan(cursor, step, |record| seen.push(number(record)));
                    if cursor == 0 {
                        break;
                    }
                }
                seen.sort_unstable();
                assert!(seen.iter().copied().eq(0..count), "{count} by {step}: {}", seen.len());
            }
        }
    }

    #[test]
    fn a_scan_misses_nothing_while_the_table_grows_and_shrinks() {
        let (mut rng, mut changes) = (Rng::seeded(5), 0);
        for round in 0..60 {
            // 0..300 stay; what is above comes and goes between the steps of the scan.
            let mut table = table(300);
            let mut others = 300..300;
            let (mut seen, mut cursor, mut sizes) = (HashSet::new(), 0, HashSet::new());
            let grows_first = round % 2 == 0;
            if !grows_first {
                others = 300..6_000;
                add(&mut table, others.clone());
            }
            loop {
                cursor = table.scan(cursor, 1 + rng.below(20) as usize, |record| {
                    seen.insert(number(record));
                });
                if cursor == 0 {
                    break;
                }
                let change = rng.below(if round < 20 { 40 } else { 2_000 }) as usize;
                // A table that grows faster than it is scanned would keep the scan busy for ever.
                if others.end < 8_000 && (rng.below(4) > 0) == grows_first {
                    add(&mut table, others.end..others.end + change);
                    others.end += change;
                } else {
                    let end = others.end.saturating_sub(change).max(300);
                    drop_all(&mut table, end..others.end);
                    others.end = end;
                }
                sizes.insert(table.buckets.len());
            }
            assert!((0..300).all(|number| seen.contains(&number)), "round {round}");
            changes += sizes.len();
        }
        assert!(changes > 600, "the table changed its size under the scan: {changes}");
    }

    #[test]
    fn a_scan_of_a_sparse_table_ends_soon_and_takes_any_cursor() {
        let mut table = table(20_000);
        drop_all(&mut table, 10..20_000);
        assert_eq!(table.scan(0, 1000, |_| ()), 0);
        for cursor in [1, 77, u64::MAX, 1 << 63] {
            let (mut at, mut calls) = (cursor, 0);
            loop {
                at = table.scan(at, 10, |_| ());
                calls += 1;
                if at == 0 {
                    break;
                }
            }
            assert!(calls < 100);
        }
    }

    /// The sum of squared deviations from an even spread in units of the expectation: about `counts.len()`, with a
    /// standard deviation of the square root of twice that.
    fn chi_square(counts: &[u32]) -> f64 {
        let mean = f64::from(counts.iter().sum::<u32>()) / counts.len() as f64;
        counts.iter().map(|count| (f64::from(*count) - mean).powi(2) / mean).sum()
    }

    #[test]
    fn random_is_fair() {
        let mut rng = Rng::seeded(11);
        // One bucket, tables with some groups expanded, and one that has shrunk.
        for (first, left) in [(10, 10), (300, 300), (700, 700), (6_000, 500)] {
            let mut table = table(first);
            drop_all(&mut table, left..first);
            let mut counts = vec![0; left];
            for _ in 0..left * 100 {
                counts[table.random(&mut || rng.next_u64()).map(number).expect("a record")] += 1;
            }
            let (chi, n) = (chi_square(&counts), left as f64);
            assert!(chi < n + 5.0 * (2.0 * n).sqrt(), "{left}: {chi}");
        }
        assert!(PackedTable::new(Layout::Keys).random(&mut || rng.next_u64()).is_none());
    }

    #[test]
    fn random_draws_are_few() {
        let mut rng = Rng::seeded(12);
        let mut long = PackedTable::new(Layout::KeysAndValues);
        for number in 0..2_000 {
            let key = number.to_string().into_bytes();
            long.insert(KeyHash::of(&key), &key, &[0; 2_000], Deadline::Keep);
        }
        let mut shrunk = table(20_000);
        drop_all(&mut shrunk, 300..20_000);
        for (table, most) in [(table(10), 1.0), (table(20_000), 4.0), (shrunk, 12.0), (long, 20.0)] {
            let mut draws = 0;
            for _ in 0..1000 {
                let mut next = || {
                    draws += 1;
                    rng.next_u64()
                };
                assert!(table.random(&mut next).is_some());
            }
            let per_record = f64::from(draws) / 1000.0;
            assert!(per_record <= most, "{} records: {per_record}", table.len());
        }
    }

    #[test]
    fn a_generator_that_is_stuck_still_gives_a_record() {
        let mut table = table(200);
        for stuck in [0, u64::MAX] {
            assert!(table.random(&mut || stuck).is_some());
        }
        for left in (0..200).rev() {
            assert!(table.pop_random(&mut || u64::MAX, |_| ()).is_some());
            assert_eq!(table.len(), left);
        }
    }

    #[test]
    fn distinct_records_are_distinct_and_fair() {
        let mut rng = Rng::seeded(13);
        let table = table(200);
        for count in [0, 1, 20, 66, 67, 150, 200, 500] {
            let mut counts = vec![0; 200];
            let rounds = 4_000 / count.max(1) + 20;
            for _ in 0..rounds {
                let mut seen = HashSet::new();
                table.random_distinct(count, &mut || rng.next_u64(), |record| {
                    assert!(seen.insert(number(record)));
                    counts[number(record)] += 1;
                });
                assert_eq!(seen.len(), count.min(200));
            }
            let chi = if count == 0 { 0.0 } else { chi_square(&counts) };
            assert!(chi < 200.0 + 5.0 * 20.0, "{count}: {chi}");
        }
    }

    #[test]
    fn pops_empty_the_table_in_an_order_that_differs() {
        let mut rng = Rng::seeded(14);
        let mut orders = HashSet::new();
        for _ in 0..3 {
            let mut table = table(500);
            let mut order = Vec::new();
            while let Some(number) = table.pop_random(&mut || rng.next_u64(), number) {
                order.push(number);
                table.check();
            }
            let distinct: HashSet<_> = order.iter().collect();
            assert_eq!((order.len(), distinct.len()), (500, 500));
            orders.insert(order);
        }
        assert_eq!(orders.len(), 3);
    }
}
