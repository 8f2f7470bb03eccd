//! An inner node of the tree: its children with a lower bound of their scores and their number of members.
//!
//! Must stay true for children 1 and up: the bound is not above any score of the child and not below any score of
//! the child before. It need not be the first score, so removals leave it alone. The bound of child 0 says nothing:
//! whatever is smaller than all others lands there.

/// Children a node can have: as many as fill the allocator's 1280 bytes.
pub(super) const FANOUT: usize = 63;
/// A node with fewer children looks for a neighbour to merge with.
pub(super) const FEW: usize = FANOUT / 4;
/// Most children a node has after a merge, so that it does not split again soon.
pub(super) const MERGED_MAX: usize = FANOUT * 3 / 4;
/// No node.
pub(super) const NONE: u32 = u32::MAX;

/// A child on its way into a node.
#[derive(Clone, Copy, Debug)]
pub(super) struct Kid {
    pub id: u32,
    pub bound: f64,
    pub members: u64,
}

/// Arrays instead of an array of [`Kid`]s: a search reads bounds only.
#[derive(Clone)]
pub(super) struct Node {
    pub bounds: [f64; FANOUT],
    members: [u64; FANOUT],
    ids: [u32; FANOUT],
    /// The node above, or [`NONE`].
    pub parent: u32,
    /// Distance from the leaves; children of height 1 are leaves.
    pub height: u8,
    len: u8,
}

impl Node {
    pub(super) fn new(height: u8) -> Node {
        let (bounds, members, ids) = ([0.0; FANOUT], [0; FANOUT], [0; FANOUT]);
        Node { bounds, members, ids, parent: NONE, height, len: 0 }
    }

    #[inline]
    pub(super) fn len(&self) -> usize {
        usize::from(self.len)
    }

    #[inline]
    pub(super) fn ids(&self) -> &[u32] {
        &self.ids[..self.len()]
    }

    #[inline]
    pub(super) fn members(&self) -> &[u64] {
        &self.members[..self.len()]
    }

    #[inline]
    pub(super) fn members_mut(&mut self) -> &mut [u64] {
        &mut self.members[..usize::from(self.len)]
    }

    pub(super) fn replace_id(&mut self, slot: usize, id: u32) {
        self.ids[slot] = id;
    }

    /// Members in all children.
    pub(super) fn total(&self) -> u64 {
        self.members().iter().sum()
    }

    /// Members in the children before `slot`.
    #[inline]
    pub(super) fn members_before(&self, slot: usize) -> usize {
        self.members[..slot].iter().sum::<u64>() as usize
    }

    /// The slot of a child.
    #[inline]
    pub(super) fn slot_of(&self, id: u32) -> usize {
        // Without an early end the compiler compares many at once.
        self.ids().iter().enumerate().fold(0, |found, (slot, kid)| if *kid == id { slot } else { found })
    }

    pub(super) fn kid(&self, slot: usize) -> Kid {
        Kid { id: self.ids[slot], bound: self.bounds[slot], members: self.members[slot] }
    }

    /// Puts a child at `slot`; there is room.
    pub(super) fn insert(&mut self, slot: usize, kid: Kid) {
        let len = self.len();
        self.ids.copy_within(slot..len, slot + 1);
        self.bounds.copy_within(slot..len, slot + 1);
        self.members.copy_within(slot..len, slot + 1);
        (self.ids[slot], self.bounds[slot], self.members[slot]) = (kid.id, kid.bound, kid.members);
        self.len += 1;
    }

    pub(super) fn remove(&mut self, slot: usize) {
        let len = self.len();
        self.ids.copy_within(slot + 1..len, slot);
        self.bounds.copy_within(slot + 1..len, slot);
        self.members.copy_within(slot + 1..len, slot);
        self.len -= 1;
    }

    /// Takes the children from `slot` on into a new node.
    pub(super) fn split_off(&mut self, slot: usize) -> Node {
        let mut right = Node::new(self.height);
        (slot..self.len()).for_each(|from| right.insert(from - slot, self.kid(from)));
        self.len = slot as u8;
        right
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_fills_its_class() {
        assert!(size_of::<Node>() <= 1280 && size_of::<Node>() + size_of::<Kid>() > 1280);
    }

    #[test]
    fn kids_come_and_go() {
        let mut node = Node::new(1);
        for id in 0..FANOUT as u32 {
            node.insert(id as usize / 2, Kid { id, bound: f64::from(id), members: 1 });
        }
        assert_eq!(node.len(), FANOUT);
        for id in 0..FANOUT as u32 {
            let slot = node.slot_of(id);
            assert_eq!((node.kid(slot).id, node.kid(slot).bound), (id, f64::from(id)));
        }
        let right = node.split_off(40);
        assert_eq!((node.len(), right.len(), right.total()), (40, 23, 23));
        node.remove(39);
        node.remove(0);
        assert_eq!((node.len(), node.members_before(38)), (38, 38));
    }
}
