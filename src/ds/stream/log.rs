//! The log itself: append, ranges, deletion, trimming.
//!
//! Must stay true ([`Log::check`] verifies it): the length is the number of entries that are not deleted; every entry
//! is at or before the last id; the first id is that of the first entry that is there, and 0-0 without one; an entry is
//! in the node that starts at its id or closest before it.
use super::id::StreamId;
use super::node::{self, Entry, Fields, Node};
use super::nodes::{Nodes, Place};
use crate::ds::listpack::Listpack;

/// Bytes of names and values that an entry can have, and of a node without another limit.
pub const ENTRY_BYTES_MAX: usize = 1 << 30;

/// How large a node gets. 0: no limit.
#[derive(Clone, Copy, Debug, Default)]
pub struct NodeLimits {
    /// Bytes; an entry that would bring a node there begins another.
    pub bytes: u64,
    /// Entries, deleted ones included.
    pub entries: u64,
}

impl NodeLimits {
    /// Whether a node takes no further entry whose names and values have `more` bytes.
    fn is_full(self, node: Node<'_>, bytes: &[u8], more: usize) -> bool {
        let limit = match usize::try_from(self.bytes).unwrap_or(ENTRY_BYTES_MAX) {
            0 => ENTRY_BYTES_MAX,
            limit => limit.min(ENTRY_BYTES_MAX),
        };
        Listpack::new(bytes).portable_bytes() + more >= limit
            || self.entries != 0 && node.live() + node.deleted() >= self.entries
    }
}

/// Which id a new entry shall have.
#[derive(Clone, Copy, Debug)]
pub enum NewId {
    /// That of the clock (milliseconds), or the one behind the last.
    Now(u64),
    /// The next one in this millisecond.
    In(u64),
    /// Exactly this one.
    Exactly(StreamId),
}

/// What trimming leaves.
#[derive(Clone, Copy, Debug)]
pub enum Keep {
    /// So many of the last entries.
    Last(u64),
    /// Entries with this id and those behind it.
    From(StreamId),
}

/// How to trim.
#[derive(Clone, Copy, Debug)]
pub struct Trim {
    /// What to leave.
    pub keep: Keep,
    /// Only whole nodes go, so that perhaps more is left.
    pub whole_nodes: bool,
    /// No more than so many entries go; 0: no limit.
    pub limit: u64,
}

/// Entries in the order of their ids.
#[derive(Clone, Debug, Default)]
pub struct Log {
    pub(super) nodes: Nodes,
    pub(super) length: u64,
    pub(super) last_id: StreamId,
    pub(super) first_id: StreamId,
    pub(super) max_deleted_id: StreamId,
    pub(super) entries_added: u64,
}

impl Log {
    /// Number of entries.
    #[inline]
    pub fn len(&self) -> u64 {
        self.length
    }

    /// Whether there is no entry.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// The id of the last entry that was ever appended, or what was set.
    pub fn last_id(&self) -> StreamId {
        self.last_id
    }

    /// The id of the first entry; 0-0 without one.
    pub fn first_id(&self) -> StreamId {
        self.first_id
    }

    /// The highest id that was ever deleted one by one, or what was set.
    pub fn max_deleted_id(&self) -> StreamId {
        self.max_deleted_id
    }

    /// How many entries were ever appended, or what was set.
    pub fn entries_added(&self) -> u64 {
        self.entries_added
    }

    /// Sets the last id. It must not lie before an entry.
    pub fn set_last_id(&mut self, id: StreamId) {
        self.last_id = id;
    }

    /// Sets the highest deleted id.
    pub fn set_max_deleted_id(&mut self, id: StreamId) {
        self.max_deleted_id = id;
    }

    /// Sets how many entries were ever appended.
    pub fn set_entries_added(&mut self, count: u64) {
        self.entries_added = count;
    }

    /// Ids that the nodes count from, and their bytes, in order; for files.
    pub fn nodes(&self) -> impl Iterator<Item = (StreamId, &[u8])> {
        self.nodes.iter()
    }

    /// Number of nodes.
    pub fn node_count(&self) -> usize {
        self.nodes.len()
    }

    /// Heap bytes.
    pub fn heap_bytes(&self) -> usize {
        self.nodes.heap_bytes()
    }

    /// Appends a node out of a file; `bytes` are those of a sound listpack as it is stored. The last id rises with it,
    /// other facts are the caller's. `false`: it is no node, or does not lie behind all that there is.
    pub fn load_node(&mut self, first: StreamId, bytes: &[u8]) -> bool {
        let before = self.nodes.last().map(|place| self.nodes.node(place).last_id().unwrap_or(first));
        if before.is_some_and(|last| last >= first) || !node::check(first, bytes) {
            return false;
        }
        let node = Node::new(first, bytes);
        self.length += node.live();
        self.last_id = self.last_id.max(node.last_id().unwrap_or(first));
        let own = self.nodes.start(first);
        own.clear();
        own.extend_from_slice(bytes);
        if self.first_id.is_min() {
            self.note_first();
        }
        true
    }

    /// The id that a new entry would get; `None`: it does not lie behind the last.
    #[inline]
    pub fn new_id(&self, wanted: NewId) -> Option<StreamId> {
        let last = self.last_id;
        match wanted {
            NewId::Now(ms) if ms > last.ms => Some(StreamId::new(ms, 0)),
            NewId::Now(_) => last.next(),
            NewId::In(ms) if ms == last.ms => Some(StreamId::new(ms, last.seq.checked_add(1)?)),
            NewId::In(ms) => Some(StreamId::new(ms, 0)).filter(|id| *id > last),
            NewId::Exactly(id) => Some(id).filter(|id| *id > last),
        }
    }

    /// Appends an entry. `id` comes from [`Log::new_id`], and names and values together have at most
    /// [`ENTRY_BYTES_MAX`] bytes.
    pub fn append<'f>(&mut self, id: StreamId, limits: NodeLimits, fields: impl Fields<'f>) {
        debug_assert!(id > self.last_id, "ids rise");
        let more = fields.clone().map(<[u8]>::len).sum();
        let takes_more = |first, bytes: &[u8]| !limits.is_full(Node::new(first, bytes), bytes, more);
        match self.nodes.growing() {
            Some((first, bytes)) if takes_more(first, bytes) => node::push(bytes, first, id, fields, more),
            _ => {
                let bytes = self.nodes.start(id);
                node::start(bytes, fields.clone(), more);
                node::push(bytes, id, id, fields, more);
            }
        }
        self.length += 1;
        self.entries_added += 1;
        self.last_id = id;
        if self.length == 1 {
            self.first_id = id;
        }
    }

    /// The entries from `start` to `end`, both included, in order.
    pub fn range(&self, start: StreamId, end: StreamId) -> Range<'_> {
        let place = self.nodes.find(start).or_else(|| self.nodes.first());
        let mut range = Range { nodes: &self.nodes, current: None, start, end };
        range.enter(place);
        range
    }

    /// The entries from `end` back to `start`, both included, the last one first.
    pub fn range_back(&self, start: StreamId, end: StreamId) -> RangeBack<'_> {
        let mut range = RangeBack { nodes: &self.nodes, current: None, start, end };
        range.enter(self.nodes.find(end));
        range
    }

    /// The entry with this id.
    pub fn get(&self, id: StreamId) -> Option<Entry<'_>> {
        let node = self.nodes.node(self.nodes.find(id)?);
        let (at, is_deleted) = node.find(id)?;
        (!is_deleted).then(|| node.entry(at))
    }

    /// The id of the last entry that is there.
    pub fn last_entry_id(&self) -> Option<StreamId> {
        if self.length == 0 {
            return None;
        }
        self.range_back(StreamId::MIN, StreamId::MAX).next().map(|entry| entry.id)
    }

    /// Deletes the entry with this id. `false`: there is none.
    pub fn delete(&mut self, id: StreamId) -> bool {
        let Some(place) = self.nodes.find(id) else { return false };
        let node = self.nodes.node(place);
        let Some((at, false)) = node.find(id) else { return false };
        let (live, deleted) = (node.live(), node.deleted());
        if live == 1 {
            self.nodes.remove(place);
        } else {
            let (_, mut bytes) = self.nodes.node_mut(place);
            node::mark_deleted(&mut bytes, at);
            node::set_counts(&mut bytes, live - 1, deleted + 1);
        }
        self.length -= 1;
        self.max_deleted_id = self.max_deleted_id.max(id);
        if id == self.first_id || self.length == 0 {
            self.note_first();
        }
        true
    }

    /// Deletes entries from the front and tells how many.
    pub fn trim(&mut self, trim: Trim) -> u64 {
        let mut removed = 0;
        while let Some(place) = self.nodes.first() {
            if matches!(trim.keep, Keep::Last(count) if self.length <= count) {
                break;
            }
            let node = self.nodes.node(place);
            let live = node.live();
            if trim.limit != 0 && removed + live > trim.limit {
                break;
            }
            let whole = match trim.keep {
                Keep::Last(count) => self.length.saturating_sub(live) >= count,
                Keep::From(id) => node.last_id().is_none_or(|last| last < id),
            };
            if whole {
                self.nodes.remove(place);
                self.length = self.length.saturating_sub(live);
                removed += live;
                continue;
            }
            if !trim.whole_nodes {
                removed += self.trim_node(place, trim.keep);
            }
            break;
        }
        if removed > 0 || self.length == 0 {
            self.note_first();
        }
        removed
    }

    /// Marks entries at the front of a node as deleted, not all of which go.
    fn trim_node(&mut self, place: Place, keep: Keep) -> u64 {
        let (first, mut bytes) = self.nodes.node_mut(place);
        let view = Node::new(first, crate::ds::packed::PackedBytes::bytes(&bytes));
        let (live, deleted, mut at, end) = (view.live(), view.deleted(), view.entries_at(), view.end());
        let mut removed = 0;
        while at < end {
            let view = Node::new(first, crate::ds::packed::PackedBytes::bytes(&bytes));
            let entry = view.entry(at);
            let stays = match keep {
                Keep::Last(count) => self.length <= count,
                Keep::From(id) => entry.id >= id,
            };
            if stays {
                break;
            }
            let (this, is_deleted) = (at, entry.is_deleted);
            at = view.after(&entry);
            if !is_deleted {
                node::mark_deleted(&mut bytes, this);
                self.length -= 1;
                removed += 1;
            }
        }
        node::set_counts(&mut bytes, live - removed, deleted + removed);
        removed
    }

    fn note_first(&mut self) {
        self.first_id = if self.length == 0 {
            StreamId::MIN
        } else {
            self.range(StreamId::MIN, StreamId::MAX).next().map_or(StreamId::MIN, |entry| entry.id)
        };
    }

    /// Whether all that must stay true of a log is true, for tests and for whoever doubts.
    pub fn check(&self) -> bool {
        let (mut live, mut previous) = (0, None);
        for (first, bytes) in self.nodes.iter() {
            if !node::check(first, bytes) || previous.is_some_and(|last| last >= first) {
                return false;
            }
            let node = Node::new(first, bytes);
            live += node.live();
            previous = node.last_id();
        }
        let mut first = self.clone();
        first.note_first();
        live == self.length
            && first.first_id == self.first_id
            && previous.is_none_or(|last| last <= self.last_id)
    }
}

/// Entries in order.
#[derive(Clone, Debug)]
pub struct Range<'a> {
    nodes: &'a Nodes,
    /// The node at hand and the offset of its next entry.
    current: Option<(Place, Node<'a>, usize)>,
    start: StreamId,
    end: StreamId,
}

impl Range<'_> {
    fn enter(&mut self, place: Option<Place>) {
        self.current = place.map(|place| {
            let node = self.nodes.node(place);
            (place, node, node.entries_at())
        });
    }
}

impl<'a> Iterator for Range<'a> {
    type Item = Entry<'a>;

    #[inline]
    fn next(&mut self) -> Option<Entry<'a>> {
        loop {
            let (place, node, at) = self.current.as_mut()?;
            if *at >= node.end() {
                let next = self.nodes.next(*place);
                self.enter(next);
                continue;
            }
            let entry = node.entry(*at);
            *at = node.after(&entry);
            if entry.id > self.end {
                self.current = None;
            } else if entry.id >= self.start && !entry.is_deleted {
                return Some(entry);
            }
        }
    }
}

/// Entries in reverse order.
#[derive(Clone, Debug)]
pub struct RangeBack<'a> {
    nodes: &'a Nodes,
    /// The node at hand and the offset behind its next entry.
    current: Option<(Place, Node<'a>, usize)>,
    start: StreamId,
    end: StreamId,
}

impl RangeBack<'_> {
    fn enter(&mut self, place: Option<Place>) {
        self.current = place.map(|place| {
            let node = self.nodes.node(place);
            (place, node, node.end())
        });
    }
}

impl<'a> Iterator for RangeBack<'a> {
    type Item = Entry<'a>;

    fn next(&mut self) -> Option<Entry<'a>> {
        loop {
            let (place, node, at) = self.current.as_mut()?;
            let Some(before) = node.before(*at) else {
                let previous = self.nodes.previous(*place);
                self.enter(previous);
                continue;
            };
            *at = before;
            let entry = node.entry(before);
            if entry.id < self.start {
                self.current = None;
            } else if entry.id <= self.end && !entry.is_deleted {
                return Some(entry);
            }
        }
    }
}
