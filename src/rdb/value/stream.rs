//! Streams: the nodes of the log as they are in memory, the facts about it, the groups.
use std::collections::BTreeMap;

use super::Loaded;
use super::blob;
use crate::ds::object::Object;
use crate::ds::stream::{Consumer, Delivery, Group, Log, Stream, StreamId};
use crate::rdb::{Corrupt, Reader, ValueType, Writer};

/// The number of entries read that stands for "unknown".
const UNKNOWN: u64 = u64::MAX;
/// The time that stands for "never".
const NEVER_MS: i64 = -1;

const fn raw(id: StreamId) -> [u8; 16] {
    ((id.ms as u128) << 64 | id.seq as u128).to_be_bytes()
}

fn id_of(raw: [u8; 16]) -> StreamId {
    let both = u128::from_be_bytes(raw);
    StreamId::new((both >> 64) as u64, both as u64)
}

fn write_id(id: StreamId, writer: &mut Writer) {
    writer.length(id.ms);
    writer.length(id.seq);
}

fn read_id(reader: &mut Reader<'_>) -> Result<StreamId, Corrupt> {
    Ok(StreamId::new(reader.length()?, reader.length()?))
}

/// Writes a node of a stream's log, behind their number.
pub fn write_node(first: StreamId, stored: &[u8], writer: &mut Writer) {
    writer.string(&raw(first));
    blob::write_listpack(stored, writer);
}

/// Writes what stands between the nodes and the groups, in the form of Redis 7.0.
pub fn write_facts(stream: &Stream, writer: &mut Writer) {
    let log = &stream.log;
    writer.length(log.len());
    for id in [log.last_id(), log.first_id(), log.max_deleted_id()] {
        write_id(id, writer);
    }
    writer.length(log.entries_added());
    writer.length(stream.groups.len() as u64);
}

/// Writes a group.
pub fn write_group(name: &[u8], group: &Group, writer: &mut Writer) {
    writer.string(name);
    write_id(group.last_id, writer);
    writer.length(group.entries_read.map_or(UNKNOWN, |read| read as u64));
    writer.length(group.pending().len() as u64);
    for (id, delivery) in group.pending() {
        writer.raw(&raw(*id));
        writer.time_ms(delivery.time_ms);
        writer.length(delivery.count);
    }
    writer.length(group.consumer_count() as u64);
    group.consumers().for_each(|consumer| write_consumer(consumer, writer));
}

fn write_consumer(consumer: &Consumer, writer: &mut Writer) {
    writer.string(consumer.name());
    writer.time_ms(consumer.seen_ms);
    writer.length(consumer.pending().len() as u64);
    consumer.pending().iter().for_each(|id| writer.raw(&raw(*id)));
}

/// Reads a stream of any form.
pub fn read(value_type: ValueType, reader: &mut Reader<'_>) -> Result<Loaded, Corrupt> {
    let has_facts = value_type != ValueType::StreamListpacks;
    let mut stream = Stream { log: read_log(has_facts, reader)?, groups: BTreeMap::new() };
    for _ in 0..reader.count(if has_facts { 6 } else { 5 })? {
        let start = reader.clone();
        let name = blob::read_element(reader)?;
        let group = read_group(value_type, &stream.log, reader)?;
        if stream.groups.insert(name.into(), group).is_some() {
            return Err(start.refuse("a group's name that stands there twice"));
        }
    }
    Ok(Loaded::of(Object::Stream(Box::new(stream))))
}

/// Reads nodes and facts. Of the facts, those that the nodes tell are compared with them, but for the first id, which
/// servers may leave at an entry that is gone.
fn read_log(has_facts: bool, reader: &mut Reader<'_>) -> Result<Log, Corrupt> {
    let mut log = Log::default();
    for _ in 0..reader.count(2)? {
        let start = reader.clone();
        let first = reader.string()?;
        let first = first.as_ref().try_into().map_err(|_| start.refuse("a node's id of another length"))?;
        let stored = blob::read_any_listpack(reader)?;
        if !log.load_node(id_of(first), &stored) {
            return Err(start.refuse("a node that is none, or out of order"));
        }
    }
    let start = reader.clone();
    if reader.length()? != log.len() {
        return Err(start.refuse("a false number of entries"));
    }
    let last_id = read_id(reader)?;
    if last_id < log.last_id() {
        return Err(start.refuse("a last id before an entry"));
    }
    log.set_last_id(last_id);
    log.set_entries_added(log.len());
    if has_facts {
        read_id(reader)?;
        log.set_max_deleted_id(read_id(reader)?);
        log.set_entries_added(reader.length()?);
    }
    Ok(log)
}

/// When and how often entries were delivered that no consumer has claimed yet.
type Unclaimed = BTreeMap<StreamId, (i64, u64)>;

fn read_group(value_type: ValueType, log: &Log, reader: &mut Reader<'_>) -> Result<Group, Corrupt> {
    let last_id = read_id(reader)?;
    let entries_read = if value_type == ValueType::StreamListpacks {
        log.position(last_id)
    } else {
        Some(reader.length()? as i64).filter(|read| *read >= 0)
    };
    let mut group = Group::new(last_id, entries_read);
    let mut unclaimed = Unclaimed::new();
    for _ in 0..reader.count(25)? {
        let start = reader.clone();
        let id = id_of(reader.array()?);
        let delivery = (reader.time_ms()?, reader.length()?);
        if unclaimed.insert(id, delivery).is_some() {
            return Err(start.refuse("an entry that is pending twice"));
        }
    }
    let has_active_times = value_type == ValueType::StreamListpacks3;
    for _ in 0..reader.count(if has_active_times { 18 } else { 10 })? {
        read_consumer(has_active_times, &mut group, &mut unclaimed, reader)?;
    }
    if unclaimed.is_empty() { Ok(group) } else { Err(reader.refuse("an entry that is pending for nobody")) }
}

fn read_consumer(
    has_active_times: bool,
    group: &mut Group,
    unclaimed: &mut Unclaimed,
    reader: &mut Reader<'_>,
) -> Result<(), Corrupt> {
    let start = reader.clone();
    let name = blob::read_element(reader)?;
    let seen_ms = reader.time_ms()?;
    // Older servers did not tell; they have it that way, too.
    let active_ms = if has_active_times { reader.time_ms()? } else { seen_ms };
    let (consumer, is_new) = group.find_or_add(&name, seen_ms);
    if !is_new {
        return Err(start.refuse("a consumer's name that stands there twice"));
    }
    group.consumer_mut(consumer).active_ms = Some(active_ms).filter(|ms| *ms != NEVER_MS);
    for _ in 0..reader.count(16)? {
        let start = reader.clone();
        let id = id_of(reader.array()?);
        let Some((time_ms, count)) = unclaimed.remove(&id) else {
            return Err(start.refuse("a consumer's entry that is not pending, or is another's"));
        };
        group.assign(id, Delivery { consumer, time_ms, count });
    }
    Ok(())
}
