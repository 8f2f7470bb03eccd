//! Whether a sorted table is what it promises to be, for tests and fuzzing: every part of it is looked at.
use crate::ds::sorted::edit::LEAF_BYTES_MAX;
use crate::ds::sorted::node::NONE;
use crate::ds::sorted::{SortedTable, hash_of, record};

/// What a check has seen so far.
struct Walk<'a> {
    table: &'a SortedTable,
    last: Option<(f64, &'a [u8])>,
    members: usize,
    leaves: usize,
    nodes: usize,
}

fn ensure(holds: bool, what: &str) -> Result<(), String> {
    if holds { Ok(()) } else { Err(what.to_string()) }
}

impl<'a> Walk<'a> {
    fn leaf(&mut self, leaf: u32, parent: u32, bound: f64) -> Result<u64, String> {
        let tree = &self.table.tree;
        let records = tree.records(leaf);
        ensure(tree.parent_of_leaf(leaf) == parent, "a leaf knows its parent")?;
        ensure(!records.is_empty() || self.table.is_empty(), "a leaf is not empty")?;
        let mut count = 0;
        for (_, record) in record::walk(records) {
            let place = (record.score(), record.member);
            ensure(!record.score().is_nan() && record.score() >= bound, "no score is below its bound")?;
            ensure(self.last.is_none_or(|last| last < place), "members are in order")?;
            let indexed = self.table.index.find(hash_of(record.member), |l| (l == leaf).then_some(()));
            ensure(indexed.is_some(), "the index leads to the leaf")?;
            self.last = Some(place);
            count += 1;
        }
        ensure(count < 2 || records.len() <= LEAF_BYTES_MAX, "a leaf with several records is short")?;
        self.leaves += 1;
        self.members += count;
        Ok(count as u64)
    }

    fn node(&mut self, id: u32, parent: u32, height: u8, bound: f64) -> Result<u64, String> {
        let table = self.table;
        let node = table.tree.node(id);
        self.nodes += 1;
        ensure(node.parent == parent && node.height == height, "a node knows its place")?;
        ensure(node.len() > 0, "a node has children")?;
        for (slot, kid) in node.ids().iter().enumerate() {
            let bound = if slot == 0 { bound } else { node.bounds[slot] };
            ensure(slot == 0 || self.last.is_none_or(|(score, _)| score <= bound), "a bound divides")?;
            let members = match height {
                1 => self.leaf(*kid, id, bound)?,
                _ => self.node(*kid, id, height - 1, bound)?,
            };
            ensure(members == node.members()[slot], "members are counted")?;
        }
        Ok(node.total())
    }
}

impl SortedTable {
    /// Checks everything that must stay true.
    ///
    /// # Errors
    /// Says what does not hold.
    pub fn check(&self) -> Result<(), String> {
        let tree = &self.tree;
        let mut walk = Walk { table: self, last: None, members: 0, leaves: 0, nodes: 0 };
        let root = tree.node(tree.root);
        walk.node(tree.root, NONE, root.height, f64::NEG_INFINITY)?;
        ensure(root.height == 1 || root.len() > 1, "the root is needed")?;
        ensure(
            walk.members == self.len && self.index.len() == self.len,
            "all members are counted and indexed",
        )?;
        ensure(walk.last.is_none_or(|(score, _)| score <= self.high), "no score is above the highest")?;
        ensure(walk.leaves + tree.free_leaves.len() == tree.leaves.len(), "leaves are used or free")?;
        ensure(walk.nodes + tree.free_nodes.len() == tree.nodes.len(), "nodes are used or free")
    }
}
