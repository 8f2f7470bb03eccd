//! Large containers, written part by part, so that whoever writes them can do something else in between.
//!
//! Must stay true: the steps together write each part once, whatever their sizes; nobody changes the value between two
//! steps.
use super::{hash, list, stream};
use crate::ds::object::Object;
use crate::ds::sorted::SortedTable;
use crate::ds::stream::Stream;
use crate::ds::table::{PackedTable, Record};
use crate::rdb::Writer;

/// Parts of a value that are small: so many are written between two looks at the length.
const SMALL_PARTS: usize = 32;

/// How far a value is written.
#[derive(Clone, Copy, Debug)]
pub enum Steps {
    /// From this place in the table's hash space on.
    Table(u64),
    /// The members below this rank are to be written, the highest first: so others read them quickest.
    Ranks(usize),
    /// From this node of a list on.
    ListNodes(usize),
    /// From this node of a stream's log on.
    LogNodes(usize),
    /// From this group of a stream on.
    Groups(usize),
    /// All is written.
    Done,
}

impl Steps {
    /// Writes what stands before the parts.
    pub fn begin(object: &Object, writer: &mut Writer) -> Steps {
        match object {
            Object::List(list) => {
                writer.length(list.node_count() as u64);
                Steps::ListNodes(0)
            }
            Object::Set(table) => {
                writer.length(table.len() as u64);
                Steps::Table(0)
            }
            Object::Hash(table) => {
                hash::write_head(table.len(), table.earliest_deadline_ms(), writer);
                Steps::Table(0)
            }
            Object::SortedSet(table) => {
                writer.length(table.len() as u64);
                Steps::Ranks(table.len())
            }
            Object::Stream(stream) => {
                writer.length(stream.log.node_count() as u64);
                Steps::LogNodes(0)
            }
        }
    }

    /// Writes about `bytes` more of the value. `true`: it is complete.
    pub fn go_on(&mut self, object: &Object, bytes: usize, writer: &mut Writer) -> bool {
        let end = writer.as_bytes().len().saturating_add(bytes);
        while !matches!(self, Steps::Done) {
            *self = match (object, *self) {
                (Object::Set(table), Steps::Table(at)) => {
                    go_through(table, at, |record| writer.string(record.key()))
                }
                (Object::Hash(table), Steps::Table(at)) => {
                    let earliest_ms = table.earliest_deadline_ms();
                    go_through(table, at, |record| hash::write_record(&record, earliest_ms, writer))
                }
                (Object::SortedSet(table), Steps::Ranks(left)) => write_ranks(table, left, writer),
                (Object::List(list), Steps::ListNodes(at)) => {
                    list.visit_nodes(at, at + 1, |node| list::write_node(node, writer));
                    if at + 1 < list.node_count() { Steps::ListNodes(at + 1) } else { Steps::Done }
                }
                (Object::Stream(stream), Steps::LogNodes(at)) => write_log_node(stream, at, writer),
                (Object::Stream(stream), Steps::Groups(at)) => write_group(stream, at, writer),
                // Another value than the one that was begun.
                _ => Steps::Done,
            };
            if writer.as_bytes().len() >= end {
                break;
            }
        }
        matches!(self, Steps::Done)
    }
}

fn go_through<'t>(table: &'t PackedTable, at: u64, write: impl FnMut(Record<'t>)) -> Steps {
    match table.scan(at, SMALL_PARTS, write) {
        0 => Steps::Done,
        at => Steps::Table(at),
    }
}

fn write_ranks(table: &SortedTable, left: usize, writer: &mut Writer) -> Steps {
    let Some(last) = left.checked_sub(1) else { return Steps::Done };
    for (member, score) in table.iter_back_from(last).take(SMALL_PARTS) {
        writer.string(member);
        writer.double(score);
    }
    match left.saturating_sub(SMALL_PARTS) {
        0 => Steps::Done,
        left => Steps::Ranks(left),
    }
}

fn write_log_node(stream: &Stream, at: usize, writer: &mut Writer) -> Steps {
    match stream.log.nodes().nth(at) {
        Some((first, stored)) => {
            stream::write_node(first, stored, writer);
            Steps::LogNodes(at + 1)
        }
        None => {
            stream::write_facts(stream, writer);
            Steps::Groups(0)
        }
    }
}

fn write_group(stream: &Stream, at: usize, writer: &mut Writer) -> Steps {
    match stream.groups.iter().nth(at) {
        Some((name, group)) => {
            stream::write_group(name, group, writer);
            Steps::Groups(at + 1)
        }
        None => Steps::Done,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::hash::KeyHash;
    use crate::ds::list::{Limit, Quicklist, Side};
    use crate::ds::raw::block::Value;
    use crate::ds::table::{Deadline, Layout};
    use crate::rdb::value::plain::plain;
    use crate::rdb::value::{self, Limits};
    use crate::rdb::{Reader, value::type_of};

    fn large() -> Vec<Object> {
        let texts: Vec<String> = (0..3000).map(|n| format!("element number {n}")).collect();
        let mut list = Quicklist::new(Limit::new(-2), 0);
        let mut set = PackedTable::new(Layout::Keys);
        let mut hash = PackedTable::new(Layout::KeysAndValues);
        let mut sorted = SortedTable::new();
        for (n, text) in texts.iter().enumerate() {
            let key = text.as_bytes();
            list.push(Side::Back, key);
            set.insert(KeyHash::of(key), key, b"", Deadline::Clear);
            let deadline = if n % 3 == 0 { Deadline::At(1_000_000 + n as u64) } else { Deadline::Clear };
            hash.insert(KeyHash::of(key), key, b"value", deadline);
            sorted.insert(key, n as f64 / 2.0);
        }
        vec![Object::List(list), Object::Set(set), Object::Hash(hash), Object::SortedSet(sorted)]
    }

    #[test]
    fn steps_of_any_size_write_the_value() {
        for object in large() {
            let value = Value::Object(&object);
            for bytes in [0, 100, 10_000, usize::MAX] {
                let mut writer = Writer::new(false);
                let mut steps = Steps::begin(&object, &mut writer);
                let mut count = 1;
                while !steps.go_on(&object, bytes, &mut writer) {
                    count += 1;
                }
                assert!(bytes > 10_000 || count > 3, "{count} steps of {bytes}");
                let mut reader = Reader::new(writer.as_bytes());
                let limits = Limits::of(&crate::config::Settings::default());
                let loaded = value::read(type_of(value), &mut reader, &limits).unwrap();
                assert!(reader.is_at_end());
                assert_eq!(plain(loaded.value()), plain(value));
            }
        }
    }
}
