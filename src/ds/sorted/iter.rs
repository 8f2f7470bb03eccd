//! Walks along the order, forward and backward.
//!
//! Records have no way back to the one before, so a backward walk notes where the records of a leaf start.
use smallvec::SmallVec;

use crate::ds::sorted::record;
use crate::ds::sorted::tree::Tree;

/// Members from some rank on, ascending.
#[derive(Clone)]
pub struct Ascending<'a> {
    tree: &'a Tree,
    records: &'a [u8],
    leaf: u32,
    at: usize,
    left: usize,
}

impl<'a> Ascending<'a> {
    /// `len`: members in the tree.
    pub(super) fn new(tree: &'a Tree, rank: usize, len: usize) -> Ascending<'a> {
        if rank >= len {
            return Ascending { tree, records: &[], leaf: 0, at: 0, left: 0 };
        }
        let (spot, _) = tree.at_rank(rank);
        Ascending { tree, records: tree.records(spot.leaf), leaf: spot.leaf, at: spot.at, left: len - rank }
    }
}

impl<'a> Iterator for Ascending<'a> {
    type Item = (&'a [u8], f64);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        if self.at == self.records.len() {
            self.leaf = self.tree.neighbour(self.leaf, true)?;
            (self.records, self.at) = (self.tree.records(self.leaf), 0);
        }
        let record = record::read(self.records, self.at);
        self.at = record.end;
        Some((record.member, record.score()))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl ExactSizeIterator for Ascending<'_> {}

/// Members from some rank on, descending.
#[derive(Clone)]
pub struct Descending<'a> {
    tree: &'a Tree,
    records: &'a [u8],
    leaf: u32,
    /// Starts of the records that are still to come in this leaf. A leaf with several is short.
    starts: SmallVec<[u16; 64]>,
    left: usize,
}

impl<'a> Descending<'a> {
    /// `len`: members in the tree.
    pub(super) fn new(tree: &'a Tree, rank: usize, len: usize) -> Descending<'a> {
        let mut walk = Descending { tree, records: &[], leaf: 0, starts: SmallVec::new(), left: 0 };
        if rank < len {
            let (spot, before) = tree.at_rank(rank);
            walk.left = rank + 1;
            walk.enter(spot.leaf, before + 1);
        }
        walk
    }

    /// Notes the first `count` records of a leaf.
    fn enter(&mut self, leaf: u32, count: usize) {
        self.leaf = leaf;
        self.records = self.tree.records(leaf);
        self.starts.extend(record::walk(self.records).take(count).map(|(at, _)| at as u16));
    }
}

impl<'a> Iterator for Descending<'a> {
    type Item = (&'a [u8], f64);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        if self.starts.is_empty() {
            let leaf = self.tree.neighbour(self.leaf, false)?;
            self.enter(leaf, usize::MAX);
        }
        let record = record::read(self.records, usize::from(self.starts.pop()?));
        Some((record.member, record.score()))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl ExactSizeIterator for Descending<'_> {}
