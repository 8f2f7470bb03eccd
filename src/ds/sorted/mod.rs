//! Many members in the order of their scores, each with its score at hand: what large sorted sets are made of.
//!
//! Two parts. The [tree] holds the members: packed records in leaves of up to 1 KB, under nodes that count, so that
//! ranks are found and members at ranks, too. The [index] leads from a member's hash to its leaf in six bytes; it
//! holds neither members nor scores, the leaf knows both. Buffers are exact, so half-full leaves cost nothing:
//! a member of 16 bytes takes about 32 bytes in all.
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
            Found { entry, leaf, run, before, score: record.score }
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
                each(record.member, record.score);
                self.index.forget(hash_of(record.member), spot.leaf);
                run = Run { to: record.end, records: run.records + 1, ..run };
                highest = record.score;
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
            (record.member, record.score)
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
                        each(record.member, record.score);
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
mod tests;
