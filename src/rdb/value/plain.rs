//! What a value says, whatever its form: for tests and fuzzing, to compare values and to check them.
use std::collections::{BTreeMap, BTreeSet};

use crate::base::num;
use crate::ds::intset::{self, Intset};
use crate::ds::list::{NodeBytes, Quicklist};
use crate::ds::listpack::{self, Listpack};
use crate::ds::object::{Object, Packing};
use crate::ds::raw::block::{Payload, Value};
use crate::ds::sorted::SortedTable;
use crate::ds::stream::{Stream, StreamId};
use crate::ds::table::PackedTable;

/// Bytes of a text.
pub type Text = Vec<u8>;

/// A value without its form.
#[derive(Clone, Debug, PartialEq)]
pub enum Plain {
    /// A string.
    Text(Text),
    /// Elements in order.
    List(Vec<Text>),
    /// Members.
    Set(BTreeSet<Text>),
    /// Members with their scores.
    SortedSet(BTreeMap<Text, f64>),
    /// Fields with values and deadlines, milliseconds since the epoch.
    Hash(BTreeMap<Text, (Text, Option<u64>)>),
    /// A stream.
    Stream(PlainStream),
}

/// A stream without its form. Times when consumers were active are not compared: not all formats have them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PlainStream {
    /// Ids, names and values in turns.
    pub entries: Vec<(StreamId, Vec<Text>)>,
    /// The last id, the highest deleted id, the number of entries ever added.
    pub facts: (StreamId, StreamId, u64),
    /// Groups by name.
    pub groups: BTreeMap<Text, PlainGroup>,
}

/// A group without its form.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PlainGroup {
    /// The last id and the number of entries read.
    pub facts: (StreamId, Option<i64>),
    /// What is pending: id, consumer, time, count.
    pub pending: Vec<(StreamId, Text, i64, u64)>,
    /// Consumers and when they were seen.
    pub consumers: Vec<(Text, i64)>,
}

fn texts(stored: &[u8]) -> Vec<Text> {
    Listpack::new(stored).iter().map(|(_, element)| element.to_vec()).collect()
}

fn quick(list: &Quicklist) -> Vec<Text> {
    let mut all = Vec::new();
    list.for_each_node(|node| match node {
        NodeBytes::Packed(stored) => all.extend(texts(stored)),
        NodeBytes::Plain(text) => all.push(text.to_vec()),
    });
    all
}

fn stream(stream: &Stream) -> PlainStream {
    let log = &stream.log;
    let entry = |pairs: crate::ds::stream::Pairs<'_>| {
        pairs.flat_map(|(name, value)| [name.to_vec(), value.to_vec()]).collect()
    };
    let mut groups = BTreeMap::new();
    for (name, group) in &stream.groups {
        let pending = group.pending().iter().map(|(id, delivery)| {
            let name = group.consumer(delivery.consumer).name().to_vec();
            (*id, name, delivery.time_ms, delivery.count)
        });
        let plain = PlainGroup {
            facts: (group.last_id, group.entries_read),
            pending: pending.collect(),
            consumers: group.consumers().map(|c| (c.name().to_vec(), c.seen_ms)).collect(),
        };
        groups.insert(name.to_vec(), plain);
    }
    PlainStream {
        entries: log.range(StreamId::MIN, StreamId::MAX).map(|e| (e.id, entry(e.pairs()))).collect(),
        facts: (log.last_id(), log.max_deleted_id(), log.entries_added()),
        groups,
    }
}

fn scored<'a>(pairs: impl Iterator<Item = (&'a [u8], f64)>) -> Plain {
    // Zero has one sign here: listpacks keep no other.
    Plain::SortedSet(pairs.map(|(member, score)| (member.to_vec(), score + 0.0)).collect())
}

fn hash_of_table(table: &PackedTable) -> Plain {
    let field = |record: crate::ds::table::Record<'_>| {
        (record.key().to_vec(), (record.value().to_vec(), record.deadline_ms()))
    };
    Plain::Hash(table.iter().map(field).collect())
}

fn packed(packing: Packing, stored: &[u8]) -> Plain {
    if packing == Packing::IntSet {
        return Plain::Set(Intset::new(stored).iter().map(|int| int.to_string().into_bytes()).collect());
    }
    let all = texts(stored);
    match packing {
        Packing::List => Plain::List(all),
        Packing::Set | Packing::IntSet => Plain::Set(all.into_iter().collect()),
        Packing::SortedSet => {
            scored(all.chunks(2).map(|pair| (&pair[0][..], num::parse_f64(&pair[1]).unwrap_or(f64::NAN))))
        }
        Packing::Hash => {
            Plain::Hash(all.chunks(2).map(|pair| (pair[0].clone(), (pair[1].clone(), None))).collect())
        }
        Packing::HashDeadlines => {
            let deadline = |text: &Text| num::parse_u64(text).filter(|ms| *ms > 0);
            let field = |entry: &[Text]| (entry[0].clone(), (entry[1].clone(), deadline(&entry[2])));
            Plain::Hash(all.chunks(3).map(field).collect())
        }
    }
}

/// What a value says.
pub fn plain(value: Value<'_>) -> Plain {
    match value {
        Value::String(Payload::Bytes(bytes)) => Plain::Text(bytes.to_vec()),
        Value::String(Payload::Int(int)) => Plain::Text(int.to_string().into_bytes()),
        Value::Packed(packing, stored) => packed(packing, stored),
        Value::Object(Object::List(list)) => Plain::List(quick(list)),
        Value::Object(Object::Set(table)) => {
            Plain::Set(table.iter().map(|record| record.key().to_vec()).collect())
        }
        Value::Object(Object::Hash(table)) => hash_of_table(table),
        Value::Object(Object::SortedSet(table)) => scored(table.iter()),
        Value::Object(Object::Stream(stream)) => Plain::Stream(self::stream(stream)),
    }
}

/// Checks what must stay true of a value, so that nobody stumbles over it later.
///
/// # Panics
/// When something is not as it must be.
pub fn check(value: Value<'_>) {
    match value {
        Value::String(_) => {}
        Value::Packed(packing, stored) => check_packed(packing, stored),
        Value::Object(Object::List(list)) => {
            let mut nodes = 0;
            list.for_each_node(|node| {
                nodes += 1;
                assert!(
                    matches!(node, NodeBytes::Plain(text) if !text.is_empty())
                        || matches!(node, NodeBytes::Packed(stored) if listpack::check(stored))
                );
            });
            assert!(nodes > 0 && list.len() == quick(list).len());
        }
        Value::Object(Object::Set(table) | Object::Hash(table)) => {
            assert!(!table.is_empty());
            table.check();
        }
        Value::Object(Object::SortedSet(table)) => check_sorted(table),
        Value::Object(Object::Stream(stream)) => {
            assert!(stream.log.check());
            assert!(stream.groups.values().all(|group| group.check()));
        }
    }
}

fn check_sorted(table: &SortedTable) {
    assert!(!table.is_empty());
    table.check().expect("a sound sorted table");
}

fn check_packed(packing: Packing, stored: &[u8]) {
    if packing == Packing::IntSet {
        return assert!(intset::check(stored) && !Intset::new(stored).is_empty());
    }
    assert!(listpack::check(stored));
    let (all, stride) = match packing {
        Packing::List | Packing::Set | Packing::IntSet => (texts(stored), 1),
        Packing::Hash | Packing::SortedSet => (texts(stored), 2),
        Packing::HashDeadlines => (texts(stored), 3),
    };
    assert!(!all.is_empty() && all.len().is_multiple_of(stride));
    if packing != Packing::List {
        let distinct: BTreeSet<&Text> = all.iter().step_by(stride).collect();
        assert_eq!(distinct.len(), all.len() / stride, "nothing twice");
    }
    if packing == Packing::SortedSet {
        let place = |pair: &[Text]| (num::parse_f64(&pair[1]).expect("a score"), pair[0].clone());
        assert!(all.chunks(2).map(place).is_sorted());
    }
    if packing == Packing::HashDeadlines {
        let deadline =
            |entry: &[Text]| num::parse_u64(&entry[2]).map(|ms| if ms == 0 { u64::MAX } else { ms });
        assert!(all.chunks(3).map(|entry| deadline(entry).expect("a deadline")).is_sorted());
    }
}
