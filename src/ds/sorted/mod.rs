//! Many members in the order of their scores, each with its score at hand: what large sorted sets are made of.
//!
//! Two parts. The tree holds the members: packed records in leaves of up to 768 bytes, under nodes that count, so that
//! ranks are found and members at ranks, too. The index leads from a member's hash to its leaf in six bytes; it
//! holds neither members nor scores, the leaf knows both. Buffers are exact, so half-full leaves cost nothing:
//! a member of 16 bytes takes 30 to 35 bytes in all.
//!
//! Scores are never NaN. `-0.0` and `0.0` are equal in order, and each comes back as it was given. Members with equal
//! scores are in the order of their bytes.
mod check;
mod edit;
mod index;
mod iter;
mod node;
mod record;
mod tree;

use crate::base::hash::KeyHash;
use crate::ds::packed::PackedBytes;
use edit::{LEAF_BYTES_MAX, Run};
use index::{EntryAt, Index};
pub use iter::{Ascending, Descending};
use record::Target;
use tree::Tree;

/// The hash of a member.
#[inline]
fn hash_of(member: &[u8]) -> u64 {
    let bits = KeyHash::of(member).bits();
    #[cfg(test)]
    let bits = bits & tests::hash_mask();
    bits
}

/// The place of a member with a score.
#[derive(Clone, Copy)]
struct Place<'a> {
    score: f64,
    member: &'a [u8],
}

impl Target for Place<'_> {
    #[inline]
    fn passes_bound(&self, score: f64) -> Option<bool> {
        (score != self.score).then_some(score < self.score)
    }

    #[inline]
    fn passes(&self, score: f64, member: &[u8]) -> bool {
        score < self.score || (score == self.score && member < self.member)
    }
}

/// In front of all members with a score, or behind them.
#[derive(Clone, Copy)]
struct ScoreEdge {
    score: f64,
    behind: bool,
}

impl Target for ScoreEdge {
    #[inline]
    fn passes_bound(&self, score: f64) -> Option<bool> {
        Some(self.passes(score, &[]))
    }

    #[inline]
    fn passes(&self, score: f64, _: &[u8]) -> bool {
        score < self.score || (self.behind && score == self.score)
    }
}

/// In front of a member or behind it, where all scores are equal.
#[derive(Clone, Copy)]
struct LexEdge<'a> {
    member: &'a [u8],
    behind: bool,
}

impl Target for LexEdge<'_> {
    fn passes_bound(&self, _: f64) -> Option<bool> {
        None
    }

    fn passes(&self, _: f64, member: &[u8]) -> bool {
        member < self.member || (self.behind && member == self.member)
    }
}

/// Where a member was found.
#[derive(Clone, Copy)]
struct Found {
    entry: EntryAt,
    leaf: u32,
    run: Run,
    /// Records before it in its leaf.
    before: usize,
    score: f64,
}

/// Members, byte strings below 4 GiB, in the order of (score, member).
///
/// Ranks count from 0, lowest score first. Ascending inserts (each score above all others) are the quickest.
#[derive(Clone)]
pub struct SortedTable {
    tree: Tree,
    index: Index,
    len: usize,
    /// No score is above it.
    high: f64,
}

impl std::fmt::Debug for SortedTable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

impl Default for SortedTable {
    fn default() -> SortedTable {
        SortedTable::new()
    }
}

impl SortedTable {
    /// An empty table.
    pub fn new() -> SortedTable {
        SortedTable { tree: Tree::new(), index: Index::new(), len: 0, high: f64::NEG_INFINITY }
    }

    /// Number of members.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is no member.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    #[inline]
    fn find(&self, hash: u64, member: &[u8]) -> Option<Found> {
        let found =
            self.index.find(hash, |leaf| Some((leaf, record::find(self.tree.records(leaf), member)?)));
        found.map(|(entry, (leaf, (before, at, record)))| {
            let run = Run { from: at, to: record.end, records: 1 };
            Found { entry, leaf, run, before, score: record.score() }
        })
    }

    /// The score of a member.
    pub fn score(&self, member: &[u8]) -> Option<f64> {
        self.find(hash_of(member), member).map(|found| found.score)
    }

    /// The rank of a member, and its score.
    pub fn rank(&self, member: &[u8]) -> Option<(usize, f64)> {
        let found = self.find(hash_of(member), member)?;
        Some((self.tree.rank_of_leaf(found.leaf) + found.before, found.score))
    }

    /// Sets the score of a member, new or not, and gives its score so far. `score` is not NaN. A score that equals
    /// the one so far changes nothing, so `-0.0` does not replace `0.0`.
    pub fn insert(&mut self, member: &[u8], score: f64) -> Option<f64> {
        let hash = hash_of(member);
        match self.find(hash, member) {
            Some(found) => {
                if found.score != score && !self.move_in_leaf(found, member, score) {
                    self.take_out(found);
                    self.insert_new(hash, member, score);
                }
                Some(found.score)
            }
            None => {
                self.insert_new(hash, member, score);
                None
            }
        }
    }

    fn insert_new(&mut self, hash: u64, member: &[u8], score: f64) {
        debug_assert!(!score.is_nan());
        let (leaf, at) = if score > self.high {
            let leaf = self.tree.descend_to_append();
            (leaf, self.tree.records(leaf).len())
        } else {
            let place = Place { score, member };
            let leaf = self.tree.descend_to_insert(&place);
            (leaf, record::seek(self.tree.records(leaf), &place).0)
        };
        self.high = self.high.max(score);
        self.index.insert(hash, leaf);
        self.tree.insert_at(leaf, at, &record::encode(score, member), &mut self.index);
        self.len += 1;
        let tree = &self.tree;
        self.index.grow(|leaf, each| {
            record::walk(tree.records(leaf)).for_each(|(_, record)| each(hash_of(record.member)));
        });
    }

    /// Gives a member another score if it stays in its leaf.
    fn move_in_leaf(&mut self, found: Found, member: &[u8], score: f64) -> bool {
        let Run { from, to, .. } = found.run;
        let (at, _) = record::seek(self.tree.records(found.leaf), &Place { score, member });
        let at = if at > from { at - (to - from) } else { at };
        let others = self.tree.records(found.leaf).len() - (to - from);
        // At an edge of its leaf the member might belong to the neighbour.
        let stays = (at > 0 || self.tree.neighbour(found.leaf, false).is_none())
            && (at < others || self.tree.neighbour(found.leaf, true).is_none());
        let record = record::encode(score, member);
        if !stays || (others > 0 && others + record.len() > LEAF_BYTES_MAX) {
            return false;
        }
        let records = &mut self.tree.leaves[found.leaf as usize].records;
        if at == from {
            records.splice(from, to - from, &record);
        } else {
            records.splice(from, to - from, &[]);
            records.splice(at, 0, &record);
        }
        self.high = self.high.max(score);
        true
    }

    /// Takes a member out of tree and index.
    fn take_out(&mut self, found: Found) {
        self.index.remove(found.entry);
        self.tree.remove_run(found.leaf, found.run, &mut self.index);
        self.len -= 1;
    }

    /// What every removal ends with; `highest` is the highest score removed.
    fn settle(&mut self, highest: f64) {
        if self.len == 0 {
            *self = SortedTable::new();
            return;
        }
        self.index.shrink();
        if highest >= self.high {
            self.high = self.last().map_or(f64::NEG_INFINITY, |(_, score)| score);
        }
    }

    /// Removes a member and gives its score.
    pub fn remove(&mut self, member: &[u8]) -> Option<f64> {
        let found = self.find(hash_of(member), member)?;
        self.take_out(found);
        self.settle(found.score);
        Some(found.score)
    }

    /// Removes up to `count` members from rank `start` on, each shown to `each` before; gives their number.
    pub fn remove_range_by_rank(
        &mut self,
        start: usize,
        count: usize,
        mut each: impl FnMut(&[u8], f64),
    ) -> usize {
        let count = count.min(self.len.saturating_sub(start));
        let (mut left, mut highest) = (count, f64::NEG_INFINITY);
        while left > 0 {
            let (spot, _) = self.tree.at_rank(start);
            let mut run = Run { from: spot.at, to: spot.at, records: 0 };
            let records = self.tree.records(spot.leaf);
            while run.to < records.len() && run.records < left {
                let record = record::read(records, run.to);
                each(record.member, record.score());
                self.index.forget(hash_of(record.member), spot.leaf);
                run = Run { to: record.end, records: run.records + 1, ..run };
                highest = record.score();
            }
            self.tree.remove_run(spot.leaf, run, &mut self.index);
            self.len -= run.records;
            left -= run.records;
        }
        self.settle(highest);
        count
    }

    fn pop(&mut self, rank: usize) -> Option<(Vec<u8>, f64)> {
        let mut popped = None;
        self.remove_range_by_rank(rank, 1, |member, score| popped = Some((member.to_vec(), score)));
        popped
    }

    /// Removes the member with the lowest score.
    pub fn pop_first(&mut self) -> Option<(Vec<u8>, f64)> {
        self.pop(0)
    }

    /// Removes the member with the highest score.
    pub fn pop_last(&mut self) -> Option<(Vec<u8>, f64)> {
        self.pop(self.len.checked_sub(1)?)
    }

    /// The member with a rank.
    pub fn at_rank(&self, rank: usize) -> Option<(&[u8], f64)> {
        (rank < self.len).then(|| {
            let (spot, _) = self.tree.at_rank(rank);
            let record = record::read(self.tree.records(spot.leaf), spot.at);
            (record.member, record.score())
        })
    }

    /// The member with the lowest score.
    pub fn first(&self) -> Option<(&[u8], f64)> {
        self.at_rank(0)
    }

    /// The member with the highest score.
    pub fn last(&self) -> Option<(&[u8], f64)> {
        self.at_rank(self.len.checked_sub(1)?)
    }

    /// Rank of the first member whose score is at least `score`, or above it if `above`; the length if there is none.
    pub fn seek_score(&self, score: f64, above: bool) -> usize {
        self.tree.seek(&ScoreEdge { score, behind: above }).rank
    }

    /// Rank of the first member that is not before `member`, or behind it if `behind`; the length if there is none.
    /// Compares members only: where scores differ, the rank says nothing.
    pub fn seek_lex(&self, member: &[u8], behind: bool) -> usize {
        self.tree.seek(&LexEdge { member, behind }).rank
    }

    /// All members with their scores, ascending.
    pub fn iter(&self) -> Ascending<'_> {
        self.iter_from(0)
    }

    /// Members from a rank on, ascending.
    pub fn iter_from(&self, rank: usize) -> Ascending<'_> {
        Ascending::new(&self.tree, rank, self.len)
    }

    /// Members from a rank on, descending; none if there is no such rank.
    pub fn iter_back_from(&self, rank: usize) -> Descending<'_> {
        Descending::new(&self.tree, rank, self.len)
    }

    /// A member that `next` (64 random bits) picks, each as likely as the others.
    pub fn random(&self, next: &mut impl FnMut() -> u64) -> Option<(&[u8], f64)> {
        let rank = (u128::from(next()) * self.len as u128) >> 64;
        self.at_rank(rank as usize)
    }

    /// Shows members around `cursor` to `each`, at least `count` if so many are left, and gives the next cursor, 0 at
    /// the end. A scan begins with 0. Members that are there from its beginning to its end are shown, whatever else
    /// is inserted, removed or given another score meanwhile; some may be shown twice.
    pub fn scan(&self, cursor: u64, count: usize, mut each: impl FnMut(&[u8], f64)) -> u64 {
        let (mut cursor, mut shown) = (cursor, 0);
        loop {
            let (bucket, next) = self.index.scan_step(cursor);
            for (window, leaf) in self.index.distinct(bucket) {
                for (_, record) in record::walk(self.tree.records(leaf)) {
                    if bucket.has(hash_of(record.member), window) {
                        each(record.member, record.score());
                        shown += 1;
                    }
                }
            }
            cursor = next;
            if cursor == 0 || shown >= count {
                return cursor;
            }
        }
    }

    /// Number of buckets of the index by member.
    pub fn bucket_count(&self) -> usize {
        self.index.bucket_count()
    }

    /// Heap bytes taken. Looks at every leaf and bucket.
    pub fn heap_bytes(&self) -> usize {
        self.tree.heap_bytes() + self.index.heap_bytes()
    }
}

impl<'a> IntoIterator for &'a SortedTable {
    type Item = (&'a [u8], f64);
    type IntoIter = Ascending<'a>;

    fn into_iter(self) -> Ascending<'a> {
        self.iter()
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::cmp::Ordering;
    use std::collections::{BTreeSet, HashMap, HashSet};

    use proptest::prelude::*;

    use super::*;
    use crate::base::rng::Rng;

    thread_local! {
        static HASH_MASK: Cell<u64> = const { Cell::new(u64::MAX) };
    }

    /// The bits of hashes that are left; few of them make members collide.
    pub(super) fn hash_mask() -> u64 {
        HASH_MASK.get()
    }

    /// Runs with weak hashes.
    fn with_hash_mask<T>(mask: u64, run: impl FnOnce() -> T) -> T {
        HASH_MASK.set(mask);
        let result = run();
        HASH_MASK.set(u64::MAX);
        result
    }

    #[derive(Clone, Debug)]
    struct Key(f64, Vec<u8>);

    impl Ord for Key {
        fn cmp(&self, other: &Key) -> Ordering {
            self.0.partial_cmp(&other.0).expect("no NaN").then_with(|| self.1.cmp(&other.1))
        }
    }

    impl PartialOrd for Key {
        fn partial_cmp(&self, other: &Key) -> Option<Ordering> {
            Some(self.cmp(other))
        }
    }

    impl PartialEq for Key {
        fn eq(&self, other: &Key) -> bool {
            self.cmp(other) == Ordering::Equal
        }
    }

    impl Eq for Key {}

    #[derive(Default)]
    struct Model {
        order: BTreeSet<Key>,
        scores: HashMap<Vec<u8>, f64>,
    }

    impl Model {
        fn insert(&mut self, member: &[u8], score: f64) -> Option<f64> {
            let old = self.scores.get(member).copied();
            if old.is_none_or(|old| old != score) {
                if let Some(old) = old {
                    self.order.remove(&Key(old, member.to_vec()));
                }
                self.scores.insert(member.to_vec(), score);
                self.order.insert(Key(score, member.to_vec()));
            }
            old
        }

        fn remove(&mut self, member: &[u8]) -> Option<f64> {
            let old = self.scores.remove(member)?;
            self.order.remove(&Key(old, member.to_vec()));
            Some(old)
        }

        fn members(&self) -> Vec<(&[u8], u64)> {
            self.order.iter().map(|key| (&key.1[..], key.0.to_bits())).collect()
        }

        fn compare(&self, table: &SortedTable) {
            table.check().expect("a sound table");
            let bits = |(member, score): (&'_ [u8], f64)| (member.to_vec(), score.to_bits());
            let want: Vec<_> =
                self.members().into_iter().map(|(member, score)| (member.to_vec(), score)).collect();
            assert_eq!(table.iter().map(bits).collect::<Vec<_>>(), want);
            let mut back: Vec<_> = table.iter_back_from(table.len().wrapping_sub(1)).map(bits).collect();
            back.reverse();
            assert_eq!(back, want);
        }
    }

    /// Checks everything that reads at one place.
    fn compare_at(table: &SortedTable, model: &Model, member: &[u8], score: f64, rank: usize) {
        let keys: Vec<&Key> = model.order.iter().collect();
        let old = model.scores.get(member);
        assert_eq!(table.score(member), old.copied());
        let place = old.map(|old| (keys.iter().position(|key| key.1 == member).expect("a member"), *old));
        assert_eq!(table.rank(member), place);
        for above in [false, true] {
            let want = keys.iter().filter(|key| key.0 < score || (above && key.0 == score)).count();
            assert_eq!(table.seek_score(score, above), want);
        }
        if keys.iter().all(|key| key.0 == keys[0].0) {
            for behind in [false, true] {
                let want =
                    keys.iter().filter(|key| &key.1[..] < member || (behind && key.1 == member)).count();
                assert_eq!(table.seek_lex(member, behind), want);
            }
        }
        let at = |rank: usize| keys.get(rank).map(|key| (&key.1[..], key.0));
        assert_eq!(table.at_rank(rank), at(rank));
        assert_eq!((table.first(), table.last()), (at(0), at(keys.len().wrapping_sub(1))));
        assert!(table.iter_from(rank).take(40).eq((rank..).map_while(at).take(40)));
        assert!(table.iter_back_from(rank).take(40).eq((0..=rank).rev().map_while(at).take(40)));
    }

    #[derive(Clone, Debug)]
    enum Step {
        Insert(usize, f64),
        /// Many at once, so that leaves and buckets split.
        Burst(usize, usize, f64),
        Remove(usize),
        RemoveRange(usize, usize),
        PopFirst,
        PopLast,
        Look(usize, f64, usize),
        Clone,
    }

    /// Member number `number`: mostly short, some empty, some long.
    fn member(number: usize, long: bool) -> Vec<u8> {
        let mut member = if number == 0 { Vec::new() } else { format!("m{number}").into_bytes() };
        if long {
            let len = [0, 40, 62, 200, 318, 505, 600, 1100, 5000][number % 9];
            member.resize(member.len().max(len), b'x');
            member.extend_from_slice(number.to_string().as_bytes());
        }
        member
    }

    fn score() -> impl Strategy<Value = f64> {
        prop_oneof![
            4 => (-20i32..20).prop_map(f64::from),
            2 => -1e6..1e6f64,
            1 => prop_oneof![Just(0.0), Just(-0.0), Just(f64::INFINITY), Just(f64::NEG_INFINITY)],
        ]
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            8 => (0usize..800, score()).prop_map(|(n, s)| Step::Insert(n, s)),
            3 => (0usize..800, 1usize..200, score()).prop_map(|(n, c, s)| Step::Burst(n, c, s)),
            6 => (0usize..800).prop_map(Step::Remove),
            1 => (0usize..900, 0usize..300).prop_map(|(s, c)| Step::RemoveRange(s, c)),
            1 => Just(Step::PopFirst),
            1 => Just(Step::PopLast),
            3 => (0usize..800, score(), 0usize..900).prop_map(|(n, s, r)| Step::Look(n, s, r)),
            1 => Just(Step::Clone),
        ]
    }

    fn take_range(model: &mut Model, start: usize, count: usize) -> Vec<Key> {
        let gone: Vec<Key> = model.order.iter().skip(start).take(count).cloned().collect();
        for key in &gone {
            model.remove(&key.1);
        }
        gone
    }

    fn run(steps: Vec<Step>, long: bool, equal: bool) {
        let (mut table, mut model) = (SortedTable::new(), Model::default());
        let at = |score: f64| if equal { 7.0 } else { score };
        for step in steps {
            match step {
                Step::Insert(n, s) => {
                    let member = member(n, long);
                    assert_eq!(table.insert(&member, at(s)), model.insert(&member, at(s)));
                }
                Step::Burst(n, count, s) => {
                    for number in n..n + count {
                        let (member, s) = (member(number, long), at(s + (number * 7 % 13) as f64));
                        assert_eq!(table.insert(&member, s), model.insert(&member, s));
                    }
                }
                Step::Remove(n) => {
                    let member = member(n, long);
                    assert_eq!(table.remove(&member), model.remove(&member));
                }
                Step::RemoveRange(start, count) => {
                    let mut gone = Vec::new();
                    table.remove_range_by_rank(start, count, |m, s| gone.push(Key(s, m.to_vec())));
                    assert_eq!(gone, take_range(&mut model, start, count));
                }
                Step::PopFirst => {
                    let want = take_range(&mut model, 0, 1).pop().map(|key| (key.1, key.0));
                    assert_eq!(table.pop_first(), want);
                }
                Step::PopLast => {
                    let start = model.order.len().saturating_sub(1);
                    let want = take_range(&mut model, start, 1).pop().map(|key| (key.1, key.0));
                    assert_eq!(table.pop_last(), want);
                }
                Step::Look(n, s, rank) => compare_at(&table, &model, &member(n, long), at(s), rank),
                Step::Clone => table = table.clone(),
            }
            assert_eq!(table.len(), model.order.len());
            table.check().expect("a sound table");
        }
        model.compare(&table);
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

        #[test]
        fn sorted_model(steps in prop::collection::vec(step(), 1..120), long: bool, equal: bool, weak in 0u32..3) {
            let mask = [u64::MAX, 0x0F01, 3][weak as usize];
            with_hash_mask(mask, || run(steps, long, equal));
        }
    }

    fn name(number: usize) -> Vec<u8> {
        format!("member:{number:09}").into_bytes()
    }

    fn insert_all(
        table: &mut SortedTable,
        numbers: impl IntoIterator<Item = usize>,
        mut score: impl FnMut(usize) -> f64,
    ) {
        for number in numbers {
            table.insert(&name(number), score(number));
        }
    }

    /// Inserts, checks and removes again, in the given orders.
    fn fill_and_drain(numbers: &[usize], score: impl Fn(usize) -> f64, drain: &[usize]) {
        let (mut table, mut model) = (SortedTable::new(), Model::default());
        for number in numbers {
            assert_eq!(table.insert(&name(*number), score(*number)), None);
            model.insert(&name(*number), score(*number));
        }
        model.compare(&table);
        for (rank, key) in model.order.iter().enumerate().step_by(997) {
            assert_eq!(table.rank(&key.1), Some((rank, key.0)));
            assert_eq!(table.at_rank(rank), Some((&key.1[..], key.0)));
        }
        let full = table.heap_bytes();
        for (done, number) in drain.iter().enumerate() {
            assert_eq!(table.remove(&name(*number)), Some(score(*number)));
            if done == drain.len() * 9 / 10 {
                table.check().expect("a sound table");
                assert!(table.heap_bytes() < full / 4, "{} of {full} bytes for a tenth", table.heap_bytes());
            }
        }
        assert!(table.is_empty() && table.heap_bytes() < 2000);
    }

    #[test]
    fn a_hundred_thousand() {
        let ascending: Vec<usize> = (0..100_000).collect();
        let descending: Vec<usize> = (0..100_000).rev().collect();
        let jumping: Vec<usize> = (0..100_000).map(|n| n * 7919 % 100_000).collect();
        fill_and_drain(&ascending, |n| n as f64, &ascending);
        fill_and_drain(&descending, |n| n as f64, &descending);
        fill_and_drain(&jumping, |n| n as f64, &jumping);
        fill_and_drain(&jumping, |_| 0.0, &descending);
        fill_and_drain(&jumping, |n| (n % 10) as f64, &ascending);
    }

    #[test]
    fn ascending_leaves_are_full() {
        let mut table = SortedTable::new();
        insert_all(&mut table, 0..20_000, |n| n as f64);
        assert!(table.tree.leaves.len() < 20_000 * 22 / (LEAF_BYTES_MAX - 40), "{}", table.tree.leaves.len());
        let mut table = SortedTable::new();
        insert_all(&mut table, (0..20_000).rev(), |n| n as f64);
        assert!(table.tree.leaves.len() < 20_000 * 22 / (LEAF_BYTES_MAX - 40), "{}", table.tree.leaves.len());
    }

    #[test]
    fn memory_stays_small() {
        let (members, mut rng) = (200_000, Rng::seeded(3));
        for (fractions, bytes_max) in [(false, 34), (true, 38)] {
            let mut table = SortedTable::new();
            for number in 0..members {
                let score = if fractions { rng.next_u64() as f64 / 1e9 } else { rng.below(1 << 20) as f64 };
                table.insert(&name(number), score);
            }
            let bytes = table.heap_bytes() as f64 / members as f64;
            assert!(bytes < f64::from(bytes_max), "{bytes} bytes a member");
        }
    }

    #[test]
    fn a_scan_misses_nobody_that_stays() {
        for (mask, seed) in [(u64::MAX, 1), (u64::MAX, 2), (0x33, 3)] {
            with_hash_mask(mask, || scan_under_changes(seed));
        }
    }

    fn scan_under_changes(seed: u64) {
        let (mut table, mut rng) = (SortedTable::new(), Rng::seeded(seed));
        let (stay, all) = (2_000, if seed == 1 { 30_000 } else { 5_000 });
        // One scan while the table grows manyfold, one while it shrinks.
        insert_all(&mut table, 0..stay, |_| rng.below(100) as f64);
        for grow in [true, false] {
            let (mut cursor, mut seen, mut next) = (0, HashSet::new(), if grow { stay } else { all });
            loop {
                cursor = table.scan(cursor, 10, |member, _| {
                    seen.insert(member.to_vec());
                });
                for _ in 0..200 {
                    if grow && next < all {
                        table.insert(&name(next), rng.below(100) as f64);
                        next += 1;
                    } else if !grow && next > stay {
                        next -= 1;
                        table.remove(&name(next));
                    }
                }
                table.insert(&name(rng.below(stay as u64) as usize), rng.below(100) as f64);
                if cursor == 0 {
                    break;
                }
            }
            assert!((0..stay).all(|n| seen.contains(&name(n))));
            insert_all(&mut table, next..all, |_| 1.0);
        }
        let mut quiet = Vec::new();
        let mut cursor = table.scan(0, 1, |member, _| quiet.push(member.to_vec()));
        while cursor != 0 {
            cursor = table.scan(cursor, 1, |member, _| quiet.push(member.to_vec()));
        }
        let distinct: HashSet<_> = quiet.iter().collect();
        assert_eq!((quiet.len(), distinct.len()), (table.len(), table.len()));
    }

    #[test]
    fn any_cursor_will_do() {
        let mut table = SortedTable::new();
        assert_eq!(table.scan(u64::MAX, 10, |_, _| ()), 0);
        insert_all(&mut table, 0..1000, |_| 1.0);
        for cursor in [u64::MAX, 1, 0xDEAD_BEEF, 1 << 63] {
            table.scan(cursor, usize::MAX, |_, _| ());
        }
    }

    #[test]
    fn zero_keeps_its_sign() {
        let mut table = SortedTable::new();
        table.insert(b"b", -0.0);
        table.insert(b"a", 0.0);
        assert_eq!(table.at_rank(0), Some((&b"a"[..], 0.0)));
        assert!(table.score(b"b").is_some_and(f64::is_sign_negative));
        assert_eq!(table.insert(b"a", -0.0), Some(0.0));
        assert!(table.score(b"a").is_some_and(f64::is_sign_positive));
    }

    #[test]
    fn random_members_are_spread() {
        let (mut table, mut rng) = (SortedTable::new(), Rng::seeded(5));
        assert_eq!(table.random(&mut || rng.next_u64()), None);
        insert_all(&mut table, 0..10, |n| n as f64);
        let mut counts = [0; 10];
        for _ in 0..10_000 {
            let (_, score) = table.random(&mut || rng.next_u64()).expect("a member");
            counts[score as usize] += 1;
        }
        assert!(counts.iter().all(|count| (800..1200).contains(count)), "{counts:?}");
    }
}
