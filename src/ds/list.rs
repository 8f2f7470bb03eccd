//! A long list: a deque of listpacks.
use std::collections::VecDeque;

use super::raw::thin::ThinBytes;

/// A list in several nodes.
#[derive(Clone, Debug, Default)]
pub struct Quicklist {
    nodes: VecDeque<ThinBytes>,
}

impl Quicklist {
    /// Number of nodes.
    pub fn node_count(&self) -> usize {
        self.nodes.len()
    }

    /// Heap bytes.
    pub fn heap_bytes(&self) -> usize {
        self.nodes.iter().map(ThinBytes::heap_bytes).sum::<usize>()
            + self.nodes.capacity() * size_of::<ThinBytes>()
    }
}
