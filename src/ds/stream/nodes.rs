//! The nodes of a log in the order of their ids: finished ones in buffers of their exact size, the last one in a
//! buffer that grows.
//!
//! Finished nodes stand in runs of at most [`RUN_NODES_MAX`], so that a search is two binary searches, the front goes
//! in constant time, and one that goes in the middle moves little.
//!
//! Must stay true: no run is empty; ids rise; where there is any node there is a growing one, and it is the last.
use std::collections::VecDeque;

use super::id::StreamId;
use super::node::Node;
use crate::ds::packed::PackedBytes;
use crate::ds::raw::heap_class;
use crate::ds::raw::thin::ThinBytes;

const RUN_NODES_MAX: usize = 128;

/// A finished node.
#[derive(Clone, Debug)]
struct Finished {
    first: StreamId,
    bytes: ThinBytes,
}

/// The node that grows.
#[derive(Clone, Debug)]
struct Growing {
    first: StreamId,
    bytes: Vec<u8>,
}

/// Where a node is. Good until a node goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The number of runs stands for the growing node.
    run: usize,
    at: usize,
}

/// Nodes in order.
#[derive(Clone, Debug, Default)]
pub struct Nodes {
    runs: VecDeque<VecDeque<Finished>>,
    finished: usize,
    growing: Option<Growing>,
}

/// The bytes of a node, to change them.
pub enum NodeBytes<'a> {
    /// Of a finished node.
    Finished(&'a mut ThinBytes),
    /// Of the last one.
    Growing(&'a mut Vec<u8>),
}

impl PackedBytes for NodeBytes<'_> {
    fn bytes(&self) -> &[u8] {
        match self {
            NodeBytes::Finished(bytes) => bytes.bytes(),
            NodeBytes::Growing(bytes) => bytes,
        }
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        match self {
            NodeBytes::Finished(bytes) => bytes.bytes_mut(),
            NodeBytes::Growing(bytes) => bytes,
        }
    }

    fn splice(&mut self, at: usize, remove: usize, insert: &[u8]) {
        match self {
            NodeBytes::Finished(bytes) => bytes.splice(at, remove, insert),
            NodeBytes::Growing(bytes) => PackedBytes::splice(*bytes, at, remove, insert),
        }
    }
}

impl Nodes {
    /// Number of nodes.
    pub fn len(&self) -> usize {
        self.finished + usize::from(self.growing.is_some())
    }

    /// Heap bytes.
    pub fn heap_bytes(&self) -> usize {
        let runs = self.runs.capacity() * size_of::<VecDeque<Finished>>();
        let slots: usize = self.runs.iter().map(|run| run.capacity() * size_of::<Finished>()).sum();
        let finished: usize = self.runs.iter().flatten().map(|node| node.bytes.heap_bytes()).sum();
        let growing = self.growing.as_ref().map_or(0, |node| heap_class(node.bytes.capacity()));
        runs + slots + finished + growing
    }

    /// Ids that nodes count from, and their bytes, in order.
    pub fn iter(&self) -> impl Iterator<Item = (StreamId, &[u8])> {
        let finished = self.runs.iter().flatten().map(|node| (node.first, node.bytes.bytes()));
        finished.chain(self.growing.iter().map(|node| (node.first, &node.bytes[..])))
    }

    /// The first node.
    pub fn first(&self) -> Option<Place> {
        self.growing.as_ref().map(|_| Place { run: 0, at: 0 })
    }

    /// The last node.
    pub fn last(&self) -> Option<Place> {
        self.growing.as_ref().map(|_| Place { run: self.runs.len(), at: 0 })
    }

    /// The node that has the entry with this id, if any has: the last one that starts at the id or before it.
    pub fn find(&self, id: StreamId) -> Option<Place> {
        if self.growing.as_ref()?.first <= id {
            return self.last();
        }
        let run = self.runs.partition_point(|run| run[0].first <= id).checked_sub(1)?;
        let at = self.runs[run].partition_point(|node| node.first <= id) - 1;
        Some(Place { run, at })
    }

    /// The node behind one.
    #[inline]
    pub fn next(&self, Place { run, at }: Place) -> Option<Place> {
        if at + 1 < self.runs.get(run)?.len() {
            Some(Place { run, at: at + 1 })
        } else {
            Some(Place { run: run + 1, at: 0 })
        }
    }

    /// The node before one.
    #[inline]
    pub fn previous(&self, Place { run, at }: Place) -> Option<Place> {
        match at.checked_sub(1) {
            Some(at) => Some(Place { run, at }),
            None => {
                let run = run.checked_sub(1)?;
                Some(Place { run, at: self.runs[run].len() - 1 })
            }
        }
    }

    /// A node to read.
    ///
    /// # Panics
    /// When no node is there.
    #[inline]
    pub fn node(&self, Place { run, at }: Place) -> Node<'_> {
        match self.runs.get(run) {
            Some(run) => Node::new(run[at].first, run[at].bytes.bytes()),
            None => {
                let last = self.growing.as_ref().expect("a place is that of a node");
                Node::new(last.first, &last.bytes)
            }
        }
    }

    /// The id that a node counts from, and its bytes, to change them.
    ///
    /// # Panics
    /// When no node is there.
    pub fn node_mut(&mut self, Place { run, at }: Place) -> (StreamId, NodeBytes<'_>) {
        match self.runs.get_mut(run) {
            Some(run) => (run[at].first, NodeBytes::Finished(&mut run[at].bytes)),
            None => {
                let last = self.growing.as_mut().expect("a place is that of a node");
                (last.first, NodeBytes::Growing(&mut last.bytes))
            }
        }
    }

    /// The id that the last node counts from, and its bytes.
    #[inline]
    pub fn growing(&mut self) -> Option<(StreamId, &mut Vec<u8>)> {
        self.growing.as_mut().map(|node| (node.first, &mut node.bytes))
    }

    /// Finishes the last node and starts another at `first`, which lies behind all that there is. Its buffer holds old
    /// bytes to be overwritten.
    pub fn start(&mut self, first: StreamId) -> &mut Vec<u8> {
        if let Some(last) = &self.growing {
            let finished = Finished { first: last.first, bytes: ThinBytes::from(&last.bytes[..]) };
            self.push_finished(finished);
        }
        let node = self.growing.get_or_insert_with(|| Growing { first, bytes: Vec::new() });
        node.first = first;
        &mut node.bytes
    }

    fn push_finished(&mut self, node: Finished) {
        self.finished += 1;
        match self.runs.back_mut() {
            Some(run) if run.len() < RUN_NODES_MAX => run.push_back(node),
            _ => self.runs.push_back(VecDeque::from([node])),
        }
    }

    /// Takes a node out. When it is the last one, the one before grows again.
    ///
    /// # Panics
    /// When no node is there.
    pub fn remove(&mut self, Place { run, at }: Place) {
        if run < self.runs.len() {
            self.take_finished(run, at);
            return;
        }
        self.growing = self.previous(Place { run, at }).map(|place| {
            let Finished { first, bytes } = self.take_finished(place.run, place.at);
            Growing { first, bytes: bytes.bytes().to_vec() }
        });
    }

    fn take_finished(&mut self, run: usize, at: usize) -> Finished {
        self.finished -= 1;
        let node = self.runs[run].remove(at).expect("a place is that of a node");
        if self.runs[run].is_empty() {
            self.runs.remove(run);
        }
        node
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn ids(nodes: &Nodes) -> Vec<u64> {
        nodes.iter().map(|(first, _)| first.ms).collect()
    }

    fn check(nodes: &Nodes) {
        assert!(nodes.runs.iter().all(|run| !run.is_empty() && run.len() <= RUN_NODES_MAX));
        assert_eq!(nodes.finished, nodes.runs.iter().map(VecDeque::len).sum::<usize>());
        assert!(nodes.growing.is_some() || nodes.runs.is_empty());
        assert_eq!(nodes.len(), ids(nodes).len());
        let (mut place, mut walked) = (nodes.first(), Vec::new());
        while let Some(at) = place {
            walked.push(at);
            place = nodes.next(at);
        }
        assert_eq!(walked.len(), nodes.len());
        assert_eq!(walked.last().copied(), nodes.last());
        for pair in walked.windows(2) {
            assert_eq!(nodes.previous(pair[1]), Some(pair[0]));
        }
        assert_eq!(walked.first().and_then(|first| nodes.previous(*first)), None);
    }

    proptest! {
        #[test]
        fn nodes_model(steps in proptest::collection::vec((0u8..10, any::<u64>()), 1..900)) {
            let (mut nodes, mut model, mut next) = (Nodes::default(), Vec::new(), 0);
            for (what, n) in steps {
                if what < 8 || model.is_empty() {
                    next += 1 + n % 3;
                    let bytes = nodes.start(StreamId::new(next, 0));
                    bytes.clear();
                    bytes.extend_from_slice(&next.to_le_bytes());
                    model.push(next);
                } else {
                    let index = if what == 8 { 0 } else { n as usize % model.len() };
                    let id = model.remove(index);
                    nodes.remove(nodes.find(StreamId::new(id, u64::MAX)).unwrap());
                }
            }
            check(&nodes);
            prop_assert_eq!(ids(&nodes), model.clone());
            prop_assert!(nodes.iter().all(|(first, bytes)| bytes == first.ms.to_le_bytes()));
            for id in 0..=next + 1 {
                let want = model.iter().copied().filter(|first| *first <= id).max();
                let found = nodes.find(StreamId::new(id, 7)).map(|place| nodes.clone().node_mut(place).0.ms);
                prop_assert_eq!(found, want);
            }
        }
    }
}
