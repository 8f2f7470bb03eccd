//! Streams: an append-only log of entries (each a list of fields), and groups of consumers that read it together.
//!
//! The log is a sequence of nodes, each a listpack of up to about a hundred entries; see `node` for their bytes,
//! `nodes` for where they are, `log` for what is done with them, `group` for who read what.
//!
//! Must stay true: what the modules say of their parts; groups know ids only, so that what they hold may be gone from
//! the log.
mod group;
mod id;
mod log;
mod node;
mod nodes;

use std::collections::BTreeMap;

pub use group::{Consumer, ConsumerId, Delivery, Group};
pub use id::{IdText, StreamId};
pub use log::{ENTRY_BYTES_MAX, Keep, Log, NewId, NodeLimits, Range, RangeBack, Trim};
pub use node::{Entry, Fields, Pairs};

/// A stream.
#[derive(Clone, Debug, Default)]
pub struct Stream {
    /// The entries.
    pub log: Log,
    /// The groups by name.
    pub groups: BTreeMap<Box<[u8]>, Group>,
}

impl Stream {
    /// Parts that are freed one by one when it goes.
    pub fn parts(&self) -> usize {
        let in_groups: usize =
            self.groups.values().map(|group| group.pending().len() + group.consumer_count()).sum();
        self.log.node_count() + self.groups.len() + in_groups
    }

    /// Heap bytes, those of the groups roughly.
    pub fn heap_bytes(&self) -> usize {
        let groups: usize = self.groups.iter().map(|(name, group)| name.len() + group.heap_bytes()).sum();
        self.log.heap_bytes() + groups + self.groups.len() * size_of::<(Box<[u8]>, Group)>()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    type Model = BTreeMap<StreamId, Vec<Vec<u8>>>;

    #[derive(Clone, Debug)]
    enum Step {
        Append { ms: u64, names: u8, value: usize },
        Delete(u16),
        TrimExactly(u8),
        TrimFrom(u16),
        TrimNodes(u8),
        Reload,
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            8 => (0u64..3, 0u8..6, 0usize..40).prop_map(|(ms, names, value)| Step::Append { ms, names, value }),
            3 => any::<u16>().prop_map(Step::Delete),
            1 => any::<u8>().prop_map(Step::TrimExactly),
            1 => any::<u16>().prop_map(Step::TrimFrom),
            1 => any::<u8>().prop_map(Step::TrimNodes),
            1 => Just(Step::Reload),
        ]
    }

    fn fields(names: u8, value: usize) -> Vec<Vec<u8>> {
        let value =
            if value.is_multiple_of(3) { value.to_string().into_bytes() } else { vec![b'v'; 3 * value] };
        let names: &[&[u8]] = match names {
            0..=3 => &[b"temp", b"hum"],
            4 => &[b"temp"],
            _ => &[b"hum", b"temp", b"17"],
        };
        names.iter().flat_map(|name| [name.to_vec(), value.clone()]).collect()
    }

    fn nth(model: &Model, n: u16) -> Option<StreamId> {
        model.keys().nth(usize::from(n) % model.len().max(1)).copied()
    }

    fn listed<'a>(entries: impl Iterator<Item = Entry<'a>>) -> Vec<(StreamId, Vec<Vec<u8>>)> {
        entries
            .map(|entry| {
                (entry.id, entry.pairs().flat_map(|(name, value)| [name.to_vec(), value.to_vec()]).collect())
            })
            .collect()
    }

    fn apply(step: &Step, log: &mut Log, model: &mut Model, limits: NodeLimits) {
        match *step {
            Step::Append { ms, names, value } => {
                let id = log.new_id(NewId::Now(log.last_id().ms + ms)).unwrap();
                let fields = fields(names, value);
                log.append(id, limits, fields.iter().map(Vec::as_slice));
                model.insert(id, fields);
            }
            Step::Delete(n) => {
                let id = nth(model, n).unwrap_or(StreamId::MAX);
                assert_eq!(log.delete(id), model.remove(&id).is_some());
                assert!(!log.delete(id));
            }
            Step::TrimExactly(n) => {
                let keep = u64::from(n) % (model.len() as u64 + 2);
                let before = model.len();
                while model.len() as u64 > keep {
                    model.pop_first();
                }
                let removed = log.trim(Trim { keep: Keep::Last(keep), whole_nodes: false, limit: 0 });
                assert_eq!(removed, (before - model.len()) as u64);
            }
            Step::TrimFrom(n) => {
                let from = nth(model, n).unwrap_or(StreamId::MAX);
                let before = model.len();
                *model = model.split_off(&from);
                let removed = log.trim(Trim { keep: Keep::From(from), whole_nodes: false, limit: 0 });
                assert_eq!(removed, (before - model.len()) as u64);
            }
            Step::TrimNodes(n) => {
                let keep = u64::from(n) % (model.len() as u64 + 2);
                let removed = log.trim(Trim { keep: Keep::Last(keep), whole_nodes: true, limit: 20 });
                assert!(removed <= 20);
                (0..removed).for_each(|_| drop(model.pop_first()));
                assert!(removed == 0 || model.len() as u64 >= keep);
            }
            Step::Reload => {
                let mut loaded = Log::default();
                assert!(log.nodes().all(|(first, bytes)| loaded.load_node(first, bytes)));
                loaded.set_last_id(log.last_id());
                loaded.set_entries_added(log.entries_added());
                assert_eq!((loaded.len(), loaded.first_id()), (log.len(), log.first_id()));
                *log = loaded;
            }
        }
    }

    proptest! {
        #[test]
        fn log_model(steps in proptest::collection::vec(step(), 1..250), entries in 0u64..8, bytes in 0u64..400) {
            let limits = NodeLimits { bytes, entries };
            let (mut log, mut model) = (Log::default(), Model::new());
            for step in &steps {
                apply(step, &mut log, &mut model, limits);
                prop_assert_eq!(log.len(), model.len() as u64);
                prop_assert_eq!(log.first_id(), model.keys().next().copied().unwrap_or_default());
                prop_assert_eq!(log.last_entry_id(), model.keys().next_back().copied());
            }
            prop_assert!(log.check());
            let all: Vec<_> = model.clone().into_iter().collect();
            prop_assert_eq!(listed(log.range(StreamId::MIN, StreamId::MAX)), all.clone());
            let mut back = listed(log.range_back(StreamId::MIN, StreamId::MAX));
            back.reverse();
            prop_assert_eq!(back, all.clone());
            for (at, (id, fields)) in all.iter().enumerate() {
                prop_assert_eq!(listed(log.get(*id).into_iter()), [(*id, fields.clone())]);
                let next = id.next().unwrap();
                prop_assert!(log.get(next).is_none() || model.contains_key(&next));
                let until = &all[all.len().min(at + 5) - 1].0;
                let want = all[at..all.len().min(at + 5)].to_vec();
                prop_assert_eq!(listed(log.range(*id, *until)), want.clone());
                let mut back = listed(log.range_back(*id, *until));
                back.reverse();
                prop_assert_eq!(back, want);
            }
        }
    }

    #[test]
    fn nodes_end_where_the_limits_say() {
        let one = |limits: NodeLimits, value: &[u8], count| {
            let mut log = Log::default();
            for _ in 0..count {
                log.append(log.new_id(NewId::Now(1)).unwrap(), limits, [&b"f"[..], value].into_iter());
            }
            log.node_count()
        };
        assert_eq!(one(NodeLimits { bytes: 0, entries: 100 }, b"v", 300), 3);
        assert_eq!(one(NodeLimits { bytes: 0, entries: 0 }, b"v", 3_000), 1);
        assert_eq!(one(NodeLimits { bytes: 1, entries: 100 }, b"v", 7), 7);
        // Twenty-one bytes and eight for every entry.
        assert_eq!(one(NodeLimits { bytes: 100, entries: 0 }, &[b'v'; 60], 4), 4);
        assert_eq!(one(NodeLimits { bytes: 170, entries: 0 }, &[b'v'; 60], 4), 2);
    }

    #[test]
    fn a_reading_of_a_sensor_takes_few_bytes() {
        let mut log = Log::default();
        let limits = NodeLimits { bytes: 4096, entries: 100 };
        for n in 0..50_000u64 {
            // Seventy entries a millisecond.
            let (temp, hum) = ((n * 7 % 100).to_string(), (n * 5 % 77).to_string());
            let fields = [&b"temp"[..], temp.as_bytes(), b"hum", hum.as_bytes()];
            log.append(log.new_id(NewId::Now(1_000_000 + n / 70)).unwrap(), limits, fields.into_iter());
        }
        let per_entry = log.heap_bytes() as f64 / 50_000.0;
        assert!(per_entry < 13.5, "{per_entry}");
    }

    #[test]
    fn ids_are_given_out() {
        let mut log = Log::default();
        let id = StreamId::new;
        assert_eq!(log.new_id(NewId::Exactly(StreamId::MIN)), None);
        assert_eq!(log.new_id(NewId::In(0)), Some(id(0, 1)));
        assert_eq!(log.new_id(NewId::Now(7)), Some(id(7, 0)));
        log.set_last_id(id(7, u64::MAX));
        assert_eq!(log.new_id(NewId::Now(7)), Some(id(8, 0)));
        assert_eq!(log.new_id(NewId::Now(3)), Some(id(8, 0)));
        assert_eq!((log.new_id(NewId::In(7)), log.new_id(NewId::In(6))), (None, None));
        assert_eq!((log.new_id(NewId::In(9)), log.new_id(NewId::Exactly(id(7, 5)))), (Some(id(9, 0)), None));
        log.set_last_id(StreamId::MAX);
        assert_eq!(log.new_id(NewId::Now(7)), None);
    }
}
