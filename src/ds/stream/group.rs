//! Consumer groups: how far a group has read, and what its consumers got and did not acknowledge yet.
//!
//! How many entries a group has read cannot always be known: deletions leave holes that nobody counts. What is known
//! follows the rules of Redis, since clients compute with it: see [`Log::position`] and [`Group::lag`].
//!
//! Must stay true ([`Group::check`] verifies it): an id is pending for exactly one consumer, and stands in that
//! consumer's own set, too.
use std::collections::btree_map::{self, Entry as Slot};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::id::StreamId;
use super::log::Log;

/// Bytes that a tree takes for an element, roughly: its nodes are not full.
const TREE_OVERHEAD: usize = 8;

/// A consumer of a group. Good until the consumer goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConsumerId(u32);

/// An entry that was delivered and not acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// Who has it.
    pub consumer: ConsumerId,
    /// When it was delivered last, milliseconds since the epoch.
    pub time_ms: i64,
    /// How often it was delivered.
    pub count: u64,
}

/// Somebody who reads with a group.
#[derive(Clone, Debug)]
pub struct Consumer {
    name: Arc<[u8]>,
    /// When it asked last, milliseconds since the epoch.
    pub seen_ms: i64,
    /// When it got something last, milliseconds since the epoch; never, if `None`.
    pub active_ms: Option<i64>,
    pending: BTreeSet<StreamId>,
}

impl Consumer {
    /// Its name.
    pub fn name(&self) -> &[u8] {
        &self.name
    }

    /// What it has not acknowledged.
    pub fn pending(&self) -> &BTreeSet<StreamId> {
        &self.pending
    }
}

/// A consumer group.
#[derive(Clone, Debug, Default)]
pub struct Group {
    /// The last entry that was delivered.
    pub last_id: StreamId,
    /// How many entries of the log were delivered or lie before the first one that was, where that is known.
    pub entries_read: Option<i64>,
    pending: BTreeMap<StreamId, Delivery>,
    /// By number; the numbers of those who went are used again.
    consumers: Vec<Option<Consumer>>,
    names: BTreeMap<Arc<[u8]>, ConsumerId>,
}

impl Group {
    /// A group that has read up to `last_id`.
    pub fn new(last_id: StreamId, entries_read: Option<i64>) -> Group {
        Group { last_id, entries_read, ..Group::default() }
    }

    /// What was delivered and not acknowledged, in the order of the log.
    pub fn pending(&self) -> &BTreeMap<StreamId, Delivery> {
        &self.pending
    }

    /// Number of consumers.
    pub fn consumer_count(&self) -> usize {
        self.names.len()
    }

    /// The consumers in the order of their names.
    pub fn consumers(&self) -> impl Iterator<Item = &Consumer> {
        self.names.values().map(|id| self.consumer(*id))
    }

    /// The consumer with this name.
    pub fn find(&self, name: &[u8]) -> Option<ConsumerId> {
        self.names.get(name).copied()
    }

    /// A consumer.
    ///
    /// # Panics
    /// When it is gone.
    pub fn consumer(&self, id: ConsumerId) -> &Consumer {
        self.consumers[id.0 as usize].as_ref().expect("pending entries and names go with their consumer")
    }

    /// A consumer, to change its times.
    ///
    /// # Panics
    /// When it is gone.
    pub fn consumer_mut(&mut self, id: ConsumerId) -> &mut Consumer {
        self.consumers[id.0 as usize].as_mut().expect("pending entries and names go with their consumer")
    }

    /// The consumer with this name, and whether it had to be made. It has been seen now.
    pub fn find_or_add(&mut self, name: &[u8], now_ms: i64) -> (ConsumerId, bool) {
        if let Some(id) = self.find(name) {
            self.consumer_mut(id).seen_ms = now_ms;
            return (id, false);
        }
        let name: Arc<[u8]> = Arc::from(name);
        let consumer =
            Consumer { name: name.clone(), seen_ms: now_ms, active_ms: None, pending: BTreeSet::new() };
        // Without a free number there is nothing to look for.
        let has_free = self.names.len() < self.consumers.len();
        let free = if has_free { self.consumers.iter().position(Option::is_none) } else { None };
        let at = free.unwrap_or(self.consumers.len());
        match free {
            Some(at) => self.consumers[at] = Some(consumer),
            None => self.consumers.push(Some(consumer)),
        }
        let id = ConsumerId(at as u32);
        self.names.insert(name, id);
        (id, true)
    }

    /// Takes a consumer out, with all that is pending for it; tells how much that was.
    pub fn remove(&mut self, name: &[u8]) -> Option<usize> {
        let id = self.names.remove(name)?;
        let consumer = self.consumers[id.0 as usize].take()?;
        for entry in &consumer.pending {
            self.pending.remove(entry);
        }
        Some(consumer.pending.len())
    }

    /// Notes that the group has read the entry `id`, which lies behind what it read before.
    pub fn advance(&mut self, log: &Log, id: StreamId) {
        match self.entries_read {
            Some(read) if self.last_id >= log.first_id() && !log.has_holes_behind(self.last_id) => {
                self.entries_read = Some(read.wrapping_add(1));
            }
            _ if log.entries_added() > 0 => self.entries_read = log.position(id),
            _ => {}
        }
        self.last_id = id;
    }

    /// How many entries of the log the group has not read yet, where that is known.
    pub fn lag(&self, log: &Log) -> Option<i64> {
        let added = log.entries_added() as i64;
        if added == 0 || log.is_empty() {
            return Some(0);
        }
        if self.last_id < log.first_id() && log.max_deleted_id() < log.first_id() {
            return Some(log.len() as i64);
        }
        let read = match self.entries_read {
            Some(read) if !log.has_holes_behind(self.last_id) => read,
            _ => log.position(self.last_id)?,
        };
        Some(added.wrapping_sub(read))
    }

    /// Notes that a consumer got an entry for the first time; what another had is now its own.
    pub fn deliver(&mut self, id: StreamId, consumer: ConsumerId, now_ms: i64) {
        self.assign(id, Delivery { consumer, time_ms: now_ms, count: 1 });
        self.consumer_mut(consumer).active_ms = Some(now_ms);
    }

    /// Sets what is pending under an id.
    pub fn assign(&mut self, id: StreamId, delivery: Delivery) {
        let before = match self.pending.entry(id) {
            Slot::Occupied(mut slot) => Some(slot.insert(delivery)),
            Slot::Vacant(slot) => {
                slot.insert(delivery);
                None
            }
        };
        if before.is_some_and(|old| old.consumer == delivery.consumer) {
            return;
        }
        if let Some(old) = before {
            self.consumer_mut(old.consumer).pending.remove(&id);
        }
        self.consumer_mut(delivery.consumer).pending.insert(id);
    }

    /// Hands what is pending for a consumer to `deliver`, from `id` on, at most `max` entries, and tells how many they
    /// were. Those that `deliver` says are still in the log count as delivered once more.
    pub fn deliver_again(
        &mut self,
        consumer: ConsumerId,
        id: StreamId,
        max: usize,
        now_ms: i64,
        mut deliver: impl FnMut(StreamId) -> bool,
    ) -> usize {
        let Group { pending, consumers, .. } = self;
        let Some(consumer) = &consumers[consumer.0 as usize] else { return 0 };
        let mut delivered = 0;
        for id in consumer.pending.range(id..).take(max) {
            delivered += 1;
            if deliver(*id)
                && let Some(delivery) = pending.get_mut(id)
            {
                delivery.time_ms = now_ms;
                delivery.count = delivery.count.wrapping_add(1);
            }
        }
        delivered
    }

    /// Takes an entry out of what is pending. `false`: it was not.
    pub fn acknowledge(&mut self, id: StreamId) -> bool {
        let Some(delivery) = self.pending.remove(&id) else { return false };
        self.consumer_mut(delivery.consumer).pending.remove(&id);
        true
    }

    /// Pending entries from `id` on.
    pub fn pending_from(&self, id: StreamId) -> btree_map::Range<'_, StreamId, Delivery> {
        self.pending.range(id..)
    }

    /// Heap bytes, roughly.
    pub fn heap_bytes(&self) -> usize {
        let pending = size_of::<(StreamId, Delivery)>() + size_of::<StreamId>() + 2 * TREE_OVERHEAD;
        let names: usize = self.names.keys().map(|name| name.len() + 2 * size_of::<usize>()).sum();
        let consumer = size_of::<(Arc<[u8]>, ConsumerId)>() + TREE_OVERHEAD;
        self.pending.len() * pending
            + self.consumers.capacity() * size_of::<Option<Consumer>>()
            + self.names.len() * consumer
            + names
    }

    /// Whether all that must stay true of a group is true, for tests and for whoever doubts.
    pub fn check(&self) -> bool {
        let owned: usize = self.consumers.iter().flatten().map(|consumer| consumer.pending.len()).sum();
        owned == self.pending.len()
            && self.pending.iter().all(|(id, to)| self.consumer(to.consumer).pending.contains(id))
            && self.names.len() == self.consumers.iter().flatten().count()
            && self.names.iter().all(|(name, id)| self.consumer(*id).name == *name)
    }
}

impl Log {
    /// Whether entries at `id` or behind it were deleted one by one, as far as is known.
    pub fn has_holes_behind(&self, id: StreamId) -> bool {
        !self.is_empty() && !self.max_deleted_id.is_min() && id <= self.max_deleted_id
    }

    /// How many entries were appended up to and with `id`, where that can be told: at the last id, before the first
    /// entry, and at it, when nothing behind was deleted.
    pub fn position(&self, id: StreamId) -> Option<i64> {
        let added = self.entries_added as i64;
        if added == 0 || self.is_empty() && id <= self.last_id {
            return Some(added);
        }
        if !id.is_min() && id < self.max_deleted_id {
            return None;
        }
        if id >= self.last_id {
            return (id == self.last_id).then_some(added);
        }
        if !self.max_deleted_id.is_min() && self.max_deleted_id >= self.first_id {
            return None;
        }
        let before = added.wrapping_sub(self.length as i64);
        match id.cmp(&self.first_id) {
            std::cmp::Ordering::Less => Some(before),
            std::cmp::Ordering::Equal => Some(before.wrapping_add(1)),
            std::cmp::Ordering::Greater => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::log::{Keep, NewId, NodeLimits, Trim};
    use super::*;

    fn id(ms: u64) -> StreamId {
        StreamId::new(ms, 0)
    }

    fn log(count: u64) -> Log {
        let mut log = Log::default();
        for ms in 1..=count {
            let id = log.new_id(NewId::Exactly(id(ms))).unwrap();
            log.append(id, NodeLimits::default(), [&b"f"[..], b"v"].into_iter());
        }
        log
    }

    #[test]
    fn entries_have_one_consumer() {
        let mut group = Group::default();
        let (one, made) = group.find_or_add(b"one", 5);
        assert!(made && !group.find_or_add(b"one", 6).1);
        let (two, _) = group.find_or_add(b"two", 7);
        for ms in 1..=4 {
            group.deliver(id(ms), if ms < 3 { one } else { two }, 10);
        }
        group.deliver(id(1), two, 11);
        let mut seen = Vec::new();
        let again = group.deliver_again(two, id(1), 2, 12, |id| {
            seen.push(id);
            id.ms == 1
        });
        assert_eq!((again, seen, group.pending()[&id(3)].count), (2, vec![id(1), id(3)], 1));
        assert_eq!(group.pending()[&id(1)], Delivery { consumer: two, time_ms: 12, count: 2 });
        assert_eq!((group.consumer(one).pending().len(), group.consumer(two).pending().len()), (1, 3));
        assert_eq!((group.consumer(one).seen_ms, group.consumer(one).active_ms), (6, Some(10)));
        assert!(group.check());
        assert!(group.acknowledge(id(2)) && !group.acknowledge(id(2)) && group.check());
        let copy = group.clone();
        assert_eq!((group.remove(b"two"), group.remove(b"two")), (Some(3), None));
        assert!(group.check() && group.pending().is_empty() && group.consumer_count() == 1);
        let (three, _) = group.find_or_add(b"three", 9);
        assert!(three == two && group.consumer(three).pending().is_empty() && group.check());
        let names: Vec<&[u8]> = group.consumers().map(Consumer::name).collect();
        assert_eq!(names, [&b"one"[..], b"three"]);
        assert!(copy.check() && copy.pending().len() == 3, "a copy is deep");
    }

    #[test]
    fn what_was_read_is_counted_while_nothing_is_deleted() {
        let mut log = log(5);
        let mut group = Group::new(StreamId::MIN, None);
        assert_eq!(group.lag(&log), Some(5));
        group.advance(&log, id(1));
        assert_eq!((group.entries_read, group.lag(&log)), (Some(1), Some(4)));
        group.advance(&log, id(2));
        assert_eq!((group.entries_read, group.lag(&log)), (Some(2), Some(3)));
        log.delete(id(4));
        assert_eq!(group.lag(&log), None, "a hole ahead");
        group.advance(&log, id(3));
        assert_eq!((group.entries_read, group.lag(&log)), (None, None));
        group.advance(&log, id(5));
        assert_eq!((group.entries_read, group.lag(&log)), (Some(5), Some(0)));
    }

    #[test]
    fn trimming_from_the_front_leaves_the_lag_known() {
        let mut log = log(5);
        let group = Group::new(id(1), Some(1));
        log.trim(Trim { keep: Keep::Last(2), whole_nodes: false, limit: 0 });
        assert_eq!((group.lag(&log), log.position(id(1)), log.position(id(4))), (Some(2), Some(3), Some(4)));
        assert_eq!((log.position(id(5)), log.position(id(6))), (Some(5), None));
        log.delete(id(4));
        log.delete(id(5));
        assert_eq!((group.lag(&log), log.position(id(3))), (Some(0), Some(5)));
        assert_eq!(Group::default().lag(&Log::default()), Some(0));
    }
}
