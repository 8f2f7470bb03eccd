//! The order-statistics tree: leaves of packed records under nodes that count, read only. `edit.rs` changes it.
//!
//! Leaves and nodes have numbers, and know their parents, so that one can start from a leaf and climb: the index
//! leads to a leaf. A node is never empty; a leaf is empty only if it is all there is. The root is a node, never a
//! leaf.
use crate::ds::packed::PackedBytes;
use crate::ds::raw::thin::ThinBytes;
use crate::ds::sorted::node::{NONE, Node};
use crate::ds::sorted::record::{self, Target};

/// Packed records in order. Longer than [`LEAF_BYTES_MAX`](super::edit::LEAF_BYTES_MAX) only with a single one.
#[derive(Clone)]
pub(super) struct Leaf {
    pub records: ThinBytes,
    pub parent: u32,
}

/// All members in order.
#[derive(Clone)]
pub(super) struct Tree {
    pub(super) leaves: Vec<Leaf>,
    pub(super) nodes: Vec<Option<Box<Node>>>,
    pub(super) free_leaves: Vec<u32>,
    pub(super) free_nodes: Vec<u32>,
    pub(super) root: u32,
}

/// A place among the records.
#[derive(Clone, Copy, Debug)]
pub(super) struct Spot {
    pub leaf: u32,
    /// Offset in the leaf; at its end when everything in it precedes.
    pub at: usize,
    /// Records before it.
    pub rank: usize,
}

impl Tree {
    pub(super) fn new() -> Tree {
        let (leaves, nodes) = (Vec::new(), Vec::new());
        let mut tree = Tree { leaves, nodes, free_leaves: Vec::new(), free_nodes: Vec::new(), root: 0 };
        tree.plant();
        tree
    }

    #[inline]
    pub(super) fn node(&self, id: u32) -> &Node {
        self.nodes[id as usize].as_deref().expect("a node in use")
    }

    #[inline]
    pub(super) fn node_mut(&mut self, id: u32) -> &mut Node {
        self.nodes[id as usize].as_deref_mut().expect("a node in use")
    }

    /// The records of a leaf.
    #[inline]
    pub(super) fn records(&self, leaf: u32) -> &[u8] {
        self.leaves[leaf as usize].records.bytes()
    }

    #[inline]
    pub(super) fn parent_of_leaf(&self, leaf: u32) -> u32 {
        self.leaves[leaf as usize].parent
    }

    /// The first (or last) leaf below a child of a node with this height.
    #[inline]
    fn edge_below(&self, mut id: u32, height: u8, last: bool) -> u32 {
        for _ in 1..height {
            let ids = self.node(id).ids();
            id = ids[if last { ids.len() - 1 } else { 0 }];
        }
        id
    }

    /// The child of `node` in which the first record that does not precede `target` lies, or else ends the next one.
    #[inline]
    pub(super) fn slot_for(&self, node: &Node, target: &impl Target) -> usize {
        let (mut low, mut high) = (1, node.len());
        let mut tied = false;
        while low < high {
            let middle = low.midpoint(high);
            let passes = target.passes_bound(node.bounds[middle]).unwrap_or_else(|| {
                if !tied {
                    self.fetch_ties(node, low, high);
                    tied = true;
                }
                let leaf = self.edge_below(node.ids()[middle], node.height, false);
                let first = record::read(self.records(leaf), 0);
                target.passes(first.score(), first.member)
            });
            if passes { low = middle + 1 } else { high = middle }
        }
        low - 1
    }

    /// Asks at once for the first records of the children that halving `low..high` may look at in its first steps. One
    /// after another they would each be waited for.
    fn fetch_ties(&self, node: &Node, low: usize, high: usize) {
        let middle = low.midpoint(high);
        let (left, right) = (low.midpoint(middle), (middle + 1).midpoint(high));
        let ends = [low.midpoint(left), (left + 1).midpoint(middle), (middle + 1).midpoint(right)];
        let slots = [middle, left, right].into_iter().chain(ends).chain([(right + 1).midpoint(high)]);
        let first_byte = |slot: usize| {
            let leaf = self.edge_below(*node.ids().get(slot)?, node.height, false);
            self.records(leaf).first()
        };
        std::hint::black_box(slots.filter_map(first_byte).fold(0, |all, byte| all | byte));
    }

    /// The first place that `target` does not lie behind.
    pub(super) fn seek(&self, target: &impl Target) -> Spot {
        let (mut id, mut rank) = (self.root, 0);
        loop {
            let node = self.node(id);
            let slot = self.slot_for(node, target);
            rank += node.members_before(slot);
            id = node.ids()[slot];
            if node.height == 1 {
                let (at, passed) = record::seek(self.records(id), target);
                return Spot { leaf: id, at, rank: rank + passed };
            }
        }
    }

    /// The place of the record with this rank, which is there; the number of records before it in its leaf, too.
    pub(super) fn at_rank(&self, rank: usize) -> (Spot, usize) {
        let (mut id, mut left) = (self.root, rank as u64);
        loop {
            let node = self.node(id);
            let mut slot = 0;
            while slot + 1 < node.len() && left >= node.members()[slot] {
                left -= node.members()[slot];
                slot += 1;
            }
            id = node.ids()[slot];
            if node.height == 1 {
                let at = record::skip(self.records(id), 0, left as usize);
                return (Spot { leaf: id, at, rank }, left as usize);
            }
        }
    }

    /// Rank of the first record of a leaf.
    pub(super) fn rank_of_leaf(&self, leaf: u32) -> usize {
        let (mut id, mut parent, mut rank) = (leaf, self.parent_of_leaf(leaf), 0);
        while parent != NONE {
            let node = self.node(parent);
            rank += node.members_before(node.slot_of(id));
            (id, parent) = (parent, node.parent);
        }
        rank
    }

    /// The leaf after (or before) another.
    pub(super) fn neighbour(&self, leaf: u32, after: bool) -> Option<u32> {
        let (mut id, mut parent) = (leaf, self.parent_of_leaf(leaf));
        while parent != NONE {
            let node = self.node(parent);
            let slot = node.slot_of(id);
            let next = if after { Some(slot + 1).filter(|s| *s < node.len()) } else { slot.checked_sub(1) };
            if let Some(next) = next {
                return Some(self.edge_below(node.ids()[next], node.height, !after));
            }
            (id, parent) = (parent, node.parent);
        }
        None
    }

    /// Heap bytes taken.
    pub(super) fn heap_bytes(&self) -> usize {
        let leaves: usize = self.leaves.iter().map(|leaf| leaf.records.heap_bytes()).sum();
        let nodes = (self.nodes.len() - self.free_nodes.len()) * size_of::<Node>();
        let tables = self.leaves.capacity() * size_of::<Leaf>() + self.nodes.capacity() * size_of::<usize>();
        leaves
            + nodes
            + tables
            + (self.free_leaves.capacity() + self.free_nodes.capacity()) * size_of::<u32>()
    }
}
