//! Changes of the tree: records in and out of leaves, and the splits and merges that follow.
//!
//! Must stay true: a record that moves to another leaf is told to the index at once; member counts on the way to
//! the root always tell the records below.
use crate::ds::packed::PackedBytes;
use crate::ds::raw::thin::ThinBytes;
use crate::ds::sorted::hash_of;
use crate::ds::sorted::index::Index;
use crate::ds::sorted::node::{FANOUT, FEW, Kid, MERGED_MAX, NONE, Node};
use crate::ds::sorted::record::{self, Target};
use crate::ds::sorted::tree::{Leaf, Tree};

/// Longest leaf with more than one record: with its head it fills one of the allocator's slots. Longer leaves would
/// save half a byte a member and cost time, since leaves are walked.
pub(super) const LEAF_BYTES_MAX: usize = 764;
/// A shorter leaf looks for a neighbour to merge with.
const LEAF_BYTES_FEW: usize = LEAF_BYTES_MAX / 4;
/// Longest leaf after a merge, so that it does not split again soon.
const LEAF_BYTES_MERGED: usize = LEAF_BYTES_MAX * 3 / 4;
/// A longer record gets a leaf of its own.
const SHARED_RECORD_MAX: usize = LEAF_BYTES_MAX / 2;

/// Part of a leaf: bytes, and how many records they are.
#[derive(Clone, Copy, Debug)]
pub(super) struct Run {
    pub from: usize,
    pub to: usize,
    pub records: usize,
}

/// Makes room in a table of many entries without doubling it.
fn reserve_some<T>(table: &mut Vec<T>) {
    if table.len() == table.capacity() {
        table.reserve_exact(table.len() / 8 + 4);
    }
}

/// Tells the index that these records went from one leaf to another.
fn relocate(records: &[u8], from: u32, to: u32, index: &mut Index) {
    for (_, moved) in record::walk(records) {
        index.relocate(hash_of(moved.member), from, to);
    }
}

impl Tree {
    /// The root and its one empty leaf.
    pub(super) fn plant(&mut self) {
        let leaf = self.new_leaf(ThinBytes::new());
        self.root = self.new_node(Node::new(1));
        self.node_mut(self.root).insert(0, Kid { id: leaf, bound: f64::NEG_INFINITY, members: 0 });
        self.leaves[leaf as usize].parent = self.root;
    }

    fn new_leaf(&mut self, records: ThinBytes) -> u32 {
        let leaf = Leaf { records, parent: NONE };
        if let Some(id) = self.free_leaves.pop() {
            self.leaves[id as usize] = leaf;
            return id;
        }
        reserve_some(&mut self.leaves);
        self.leaves.push(leaf);
        u32::try_from(self.leaves.len() - 1).expect("fewer than 2^32 leaves")
    }

    fn new_node(&mut self, node: Node) -> u32 {
        if let Some(id) = self.free_nodes.pop() {
            self.nodes[id as usize] = Some(Box::new(node));
            return id;
        }
        reserve_some(&mut self.nodes);
        self.nodes.push(Some(Box::new(node)));
        u32::try_from(self.nodes.len() - 1).expect("fewer than 2^32 nodes")
    }

    fn free_node(&mut self, id: u32) {
        self.nodes[id as usize] = None;
        self.free_nodes.push(id);
    }

    /// Tells a child of a node with this height where it is now.
    fn set_parent(&mut self, id: u32, height: u8, parent: u32) {
        if height == 1 {
            self.leaves[id as usize].parent = parent;
        } else {
            self.node_mut(id).parent = parent;
        }
    }

    /// The leaf where a record at `target` belongs, already counted on the way to it.
    pub(super) fn descend_to_insert(&mut self, target: &impl Target) -> u32 {
        let mut id = self.root;
        loop {
            let slot = self.slot_for(self.node(id), target);
            let node = self.node_mut(id);
            node.members_mut()[slot] += 1;
            id = node.ids()[slot];
            if node.height == 1 {
                return id;
            }
        }
    }

    /// The last leaf, one more record already counted on the way to it.
    pub(super) fn descend_to_append(&mut self) -> u32 {
        let mut id = self.root;
        loop {
            let node = self.node_mut(id);
            let slot = node.len() - 1;
            node.members_mut()[slot] += 1;
            id = node.ids()[slot];
            if node.height == 1 {
                return id;
            }
        }
    }

    /// Puts a record, counted and indexed already, into its leaf.
    pub(super) fn insert_at(&mut self, leaf: u32, at: usize, bytes: &[u8], index: &mut Index) {
        let len = self.records(leaf).len();
        if bytes.len() > SHARED_RECORD_MAX || len > LEAF_BYTES_MAX {
            return self.insert_alone(leaf, at, bytes, index);
        }
        if len + bytes.len() <= LEAF_BYTES_MAX {
            return self.leaves[leaf as usize].records.splice(at, 0, bytes);
        }
        // Ascending and descending members leave full leaves behind.
        if at == len && self.neighbour(leaf, true).is_none() {
            self.insert_leaf(leaf, true, ThinBytes::from(bytes), 1, index);
            return;
        }
        if at == 0 && self.neighbour(leaf, false).is_none() {
            self.insert_leaf(leaf, false, ThinBytes::from(bytes), 1, index);
            return;
        }
        self.leaves[leaf as usize].records.splice(at, 0, bytes);
        self.cut(leaf, record::middle(self.records(leaf)), index);
    }

    /// Puts a record into a leaf of its own: it is too long, or the leaf at its place is.
    fn insert_alone(&mut self, leaf: u32, at: usize, bytes: &[u8], index: &mut Index) {
        let len = self.records(leaf).len();
        if len == 0 {
            return self.leaves[leaf as usize].records.splice(0, 0, bytes);
        }
        if 0 < at && at < len {
            self.cut(leaf, at, index);
        }
        let alone = self.insert_leaf(leaf, at > 0, ThinBytes::from(bytes), 1, index);
        self.mend_leaf(alone, index);
    }

    /// Moves the records from `cut` on to a new leaf.
    fn cut(&mut self, leaf: u32, cut: usize, index: &mut Index) {
        let tail = ThinBytes::from(&self.records(leaf)[cut..]);
        let moved = record::walk(tail.bytes()).count();
        let len = self.records(leaf).len();
        self.leaves[leaf as usize].records.splice(cut, len - cut, &[]);
        self.insert_leaf(leaf, true, tail, moved, index);
    }

    /// Makes a leaf beside another one, of records that are counted and indexed as the other's so far.
    fn insert_leaf(
        &mut self,
        beside: u32,
        after: bool,
        records: ThinBytes,
        count: usize,
        index: &mut Index,
    ) -> u32 {
        let id = self.new_leaf(records);
        relocate(self.records(id), beside, id, index);
        let parent = self.parent_of_leaf(beside);
        let right = record::read(self.records(if after { id } else { beside }), 0).score();
        let members = count as u64;
        let node = self.node_mut(parent);
        let slot = node.slot_of(beside);
        node.members_mut()[slot] -= members;
        if after {
            self.add_kid(parent, slot + 1, Kid { id, bound: right, members });
        } else {
            let bound = std::mem::replace(&mut node.bounds[slot], right);
            self.add_kid(parent, slot, Kid { id, bound, members });
        }
        id
    }

    fn add_kid(&mut self, id: u32, slot: usize, kid: Kid) {
        let node = self.node_mut(id);
        let height = node.height;
        if node.len() < FANOUT {
            node.insert(slot, kid);
            return self.set_parent(kid.id, height, id);
        }
        let cut = match slot {
            0 => 1,
            FANOUT => FANOUT - 1,
            _ => FANOUT / 2,
        };
        let mut upper = node.split_off(cut);
        let goes_left = slot <= cut;
        if goes_left {
            node.insert(slot, kid)
        } else {
            upper.insert(slot - cut, kid)
        }
        let (left, parent) = (node.total(), node.parent);
        let (bound, members) = (upper.bounds[0], upper.total());
        let right = self.new_node(upper);
        if goes_left {
            self.set_parent(kid.id, height, id);
        }
        self.adopt_all(right);
        let right = Kid { id: right, bound, members };
        if parent == NONE {
            let mut root = Node::new(height + 1);
            root.insert(0, Kid { id, bound: f64::NEG_INFINITY, members: left });
            root.insert(1, right);
            self.root = self.new_node(root);
            self.adopt_all(self.root);
        } else {
            let above = self.node_mut(parent);
            let slot = above.slot_of(id);
            above.members_mut()[slot] -= members;
            self.add_kid(parent, slot + 1, right);
        }
    }

    /// Tells all children of a node where they are.
    fn adopt_all(&mut self, id: u32) {
        let (height, count) = (self.node(id).height, self.node(id).len());
        for slot in 0..count {
            self.set_parent(self.node(id).ids()[slot], height, id);
        }
    }

    /// Takes records, gone from the index already, out of a leaf.
    pub(super) fn remove_run(&mut self, leaf: u32, run: Run, index: &mut Index) {
        let (mut id, mut parent) = (leaf, self.parent_of_leaf(leaf));
        while parent != NONE {
            let node = self.node_mut(parent);
            let slot = node.slot_of(id);
            node.members_mut()[slot] -= run.records as u64;
            (id, parent) = (parent, node.parent);
        }
        self.leaves[leaf as usize].records.splice(run.from, run.to - run.from, &[]);
        self.mend_leaf(leaf, index);
    }

    /// Takes an empty leaf out, merges one that got short.
    fn mend_leaf(&mut self, leaf: u32, index: &mut Index) {
        let len = self.records(leaf).len();
        if len >= LEAF_BYTES_FEW {
            return;
        }
        let parent = self.parent_of_leaf(leaf);
        let node = self.node(parent);
        let slot = node.slot_of(leaf);
        if len == 0 {
            if parent != self.root || node.len() > 1 {
                self.free_leaves.push(leaf);
                self.remove_kid(parent, slot);
            }
            return;
        }
        let fits = |left: &usize| {
            let pair = &node.ids()[*left..left + 2];
            pair.iter().map(|leaf| self.records(*leaf).len()).sum::<usize>() <= LEAF_BYTES_MERGED
        };
        let pairs = [slot.checked_sub(1), Some(slot).filter(|s| s + 1 < node.len())];
        if let Some(left) = pairs.into_iter().flatten().find(fits) {
            self.merge_leaves(parent, left, index);
        }
    }

    /// Merges the leaves at `slot` and behind it. The shorter one moves.
    fn merge_leaves(&mut self, parent: u32, slot: usize, index: &mut Index) {
        let (left, right) = (self.node(parent).ids()[slot], self.node(parent).ids()[slot + 1]);
        let left_moves = self.records(left).len() < self.records(right).len();
        let (from, to) = if left_moves { (left, right) } else { (right, left) };
        let moved = std::mem::take(&mut self.leaves[from as usize].records);
        relocate(moved.bytes(), from, to, index);
        let records = &mut self.leaves[to as usize].records;
        records.splice(if left_moves { 0 } else { records.len() }, 0, moved.bytes());
        self.free_leaves.push(from);
        let node = self.node_mut(parent);
        node.members_mut()[slot] += node.members()[slot + 1];
        node.replace_id(slot, to);
        self.remove_kid(parent, slot + 1);
    }

    /// Takes a child off a node, and what gets empty or short with it.
    fn remove_kid(&mut self, id: u32, slot: usize) {
        let node = self.node_mut(id);
        node.remove(slot);
        let (len, parent) = (node.len(), node.parent);
        if parent == NONE {
            return self.lower_root();
        }
        if len < FEW {
            let slot = self.node(parent).slot_of(id);
            if len == 0 {
                self.free_node(id);
                self.remove_kid(parent, slot);
            } else {
                self.merge_node(parent, slot);
            }
        }
    }

    /// A root with a single child is none, unless the child is a leaf.
    fn lower_root(&mut self) {
        while self.node(self.root).height > 1 && self.node(self.root).len() == 1 {
            let below = self.node(self.root).ids()[0];
            self.free_node(self.root);
            self.node_mut(below).parent = NONE;
            self.root = below;
        }
    }

    /// Merges the node at `slot` with a neighbour, if one has room.
    fn merge_node(&mut self, parent: u32, slot: usize) {
        let above = self.node(parent);
        let len_at = |slot: usize| self.node(above.ids()[slot]).len();
        let pairs = [slot.checked_sub(1), Some(slot).filter(|s| s + 1 < above.len())];
        let fits = |left: &usize| len_at(*left) + len_at(left + 1) <= MERGED_MAX;
        let Some(left) = pairs.into_iter().flatten().find(fits) else { return };
        let (to, from) = (above.kid(left), above.kid(left + 1));
        let Some(mut moving) = self.nodes[from.id as usize].take() else { return };
        self.free_nodes.push(from.id);
        // The first child's bound said nothing as long as it was the first.
        moving.bounds[0] = from.bound;
        let height = moving.height;
        for slot in 0..moving.len() {
            let node = self.node_mut(to.id);
            node.insert(node.len(), moving.kid(slot));
            self.set_parent(moving.kid(slot).id, height, to.id);
        }
        self.node_mut(parent).members_mut()[left] += from.members;
        self.remove_kid(parent, left + 1);
    }
}
