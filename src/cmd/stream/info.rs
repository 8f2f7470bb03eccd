//! Telling about streams: XINFO.
use super::{count_or_all, no_such_group, reply_entries, reply_entry, reply_id};
use crate::cmd::cx::ReadCx;
use crate::cmd::spec::Done;
use crate::ds::stream::{Consumer, Delivery, Entry, Group, Log, Stream, StreamId};
use crate::types::stream;
use crate::wire::error::subcommand_syntax;
use crate::wire::{Args, Error, Out};

/// Entries that FULL shows, unless COUNT says otherwise.
const FULL_COUNT: i64 = 10;
/// Nodes whose ids are looked at to tell how large a radix tree of them is.
const NODES_COUNTED_MAX: usize = 1_000;
/// Bytes of an id as a key of a radix tree.
const ID_BYTES: usize = 16;

fn find<'a>(cx: &ReadCx<'a>, args: &mut Args<'_>) -> Result<&'a Stream, Error> {
    let block = cx.find(args.key()?).ok_or(Error::NoSuchKey)?;
    stream::of(block)
}

/// A name and a number, in a map.
fn number(out: &mut Out, name: &str, number: i64) {
    out.bulk(name.as_bytes());
    out.int(number);
}

fn count(out: &mut Out, name: &str, n: usize) {
    number(out, name, n as i64);
}

fn id(out: &mut Out, name: &str, id: StreamId) {
    out.bulk(name.as_bytes());
    reply_id(out, id);
}

fn known(out: &mut Out, name: &str, n: Option<i64>) {
    out.bulk(name.as_bytes());
    match n {
        Some(n) => out.int(n),
        None => out.null(),
    }
}

/// XINFO STREAM key [FULL [COUNT count]]
pub fn stream(cx: &ReadCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    let stream = find(cx, args)?;
    let syntax = |args: &Args<'_>| subcommand_syntax(args.get(1), "XINFO");
    let full = match args.left() {
        0 => None,
        1 | 3 if args.keyword("FULL") => Some(if args.is_done() {
            FULL_COUNT
        } else if args.keyword("COUNT") {
            args.int().map(|count| if count < 0 { FULL_COUNT } else { count })?
        } else {
            return Err(syntax(args));
        }),
        _ => return Err(syntax(args)),
    };
    match full {
        None => short(stream, out),
        Some(count) => full_info(stream, count_or_all(count), out),
    }
    Ok(())
}

fn facts(log: &Log, out: &mut Out) {
    number(out, "length", log.len() as i64);
    count(out, "radix-tree-keys", log.node_count());
    count(out, "radix-tree-nodes", radix_tree_nodes(log));
    id(out, "last-generated-id", log.last_id());
    id(out, "max-deleted-entry-id", log.max_deleted_id());
    number(out, "entries-added", log.entries_added() as i64);
    id(out, "recorded-first-entry-id", log.first_id());
}

fn short(stream: &Stream, out: &mut Out) {
    let log = &stream.log;
    let edge = |out: &mut Out, name: &str, entry: Option<Entry<'_>>| {
        out.bulk(name.as_bytes());
        match entry {
            Some(entry) => reply_entry(out, &entry),
            None => out.null(),
        }
    };
    out.map(10);
    facts(log, out);
    count(out, "groups", stream.groups.len());
    edge(out, "first-entry", log.range(StreamId::MIN, StreamId::MAX).next());
    edge(out, "last-entry", log.range_back(StreamId::MIN, StreamId::MAX).next());
}

fn full_info(stream: &Stream, max: usize, out: &mut Out) {
    let log = &stream.log;
    out.map(9);
    facts(log, out);
    out.bulk(b"entries");
    reply_entries(out, log.range(StreamId::MIN, StreamId::MAX), max);
    out.bulk(b"groups");
    out.array(stream.groups.len());
    for (name, group) in &stream.groups {
        out.map(7);
        out.bulk(b"name");
        out.bulk(name);
        id(out, "last-delivered-id", group.last_id);
        known(out, "entries-read", group.entries_read);
        known(out, "lag", group.lag(log));
        count(out, "pel-count", group.pending().len());
        out.bulk(b"pending");
        out.array(group.pending().len().min(max));
        for (id, delivery) in group.pending().iter().take(max) {
            out.array(4);
            reply_id(out, *id);
            out.bulk(group.consumer(delivery.consumer).name());
            reply_delivery(out, delivery);
        }
        out.bulk(b"consumers");
        out.array(group.consumer_count());
        group.consumers().for_each(|consumer| full_consumer(group, consumer, max, out));
    }
}

fn reply_delivery(out: &mut Out, delivery: &Delivery) {
    out.int(delivery.time_ms);
    out.int(delivery.count as i64);
}

fn full_consumer(group: &Group, consumer: &Consumer, max: usize, out: &mut Out) {
    let pending = consumer.pending();
    out.map(5);
    out.bulk(b"name");
    out.bulk(consumer.name());
    number(out, "seen-time", consumer.seen_ms);
    number(out, "active-time", consumer.active_ms.unwrap_or(-1));
    count(out, "pel-count", pending.len());
    out.bulk(b"pending");
    out.array(pending.len().min(max));
    for id in pending.iter().take(max) {
        out.array(3);
        reply_id(out, *id);
        reply_delivery(out, &group.pending()[id]);
    }
}

/// XINFO GROUPS key
pub fn groups(cx: &ReadCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    let stream = find(cx, args)?;
    out.array(stream.groups.len());
    for (name, group) in &stream.groups {
        out.map(6);
        out.bulk(b"name");
        out.bulk(name);
        count(out, "consumers", group.consumer_count());
        count(out, "pending", group.pending().len());
        id(out, "last-delivered-id", group.last_id);
        known(out, "entries-read", group.entries_read);
        known(out, "lag", group.lag(&stream.log));
    }
    Ok(())
}

/// XINFO CONSUMERS key group
pub fn consumers(cx: &ReadCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    let key = args.clone().key()?;
    let (stream, name) = (find(cx, args)?, args.bytes()?);
    let group = stream.groups.get(name).ok_or_else(|| no_such_group(key.bytes, name))?;
    let now_ms = cx.now.ms as i64;
    out.array(group.consumer_count());
    for consumer in group.consumers() {
        out.map(4);
        out.bulk(b"name");
        out.bulk(consumer.name());
        count(out, "pending", consumer.pending().len());
        number(out, "idle", now_ms.saturating_sub(consumer.seen_ms).max(0));
        number(out, "inactive", consumer.active_ms.map_or(-1, |active| now_ms.saturating_sub(active)));
    }
    Ok(())
}

/// Nodes that a radix tree with the nodes' ids as keys has where Redis keeps streams in one. Of many nodes only the
/// first ones are looked at, and the rest is taken to be like them.
fn radix_tree_nodes(log: &Log) -> usize {
    let keys = log.nodes().take(NODES_COUNTED_MAX).map(|(id, _)| {
        let mut key = [0; ID_BYTES];
        key[..8].copy_from_slice(&id.ms.to_be_bytes());
        key[8..].copy_from_slice(&id.seq.to_be_bytes());
        key
    });
    let nodes = count_tree(keys);
    match log.node_count() {
        count if count <= NODES_COUNTED_MAX => nodes,
        count => nodes * count / NODES_COUNTED_MAX,
    }
}

/// Nodes of a radix tree of keys that come in order: one for every key's end, one for every branch, and one for what
/// lies between two of those where that is more than the byte by which a branch tells its children apart.
fn count_tree(keys: impl Iterator<Item = [u8; ID_BYTES]>) -> usize {
    // Depths at which the path to the last key branches.
    let mut branches: Vec<usize> = Vec::new();
    let (mut nodes, mut last): (usize, Option<[u8; ID_BYTES]>) = (0, None);
    // An edge from a branch at `from` down to `to`.
    let edge = |from: usize, to: usize| 1 + usize::from(to - from > 1);
    for key in keys {
        if let Some(last) = last {
            let common = last.iter().zip(key).take_while(|(a, b)| **a == *b).count();
            let mut below = ID_BYTES;
            while let Some(depth) = branches.pop_if(|depth| *depth > common) {
                nodes += edge(depth, below);
                below = depth;
            }
            nodes += edge(common, below);
            if branches.last() != Some(&common) {
                branches.push(common);
            }
        }
        last = Some(key);
    }
    let mut below = ID_BYTES;
    while let Some(depth) = branches.pop() {
        nodes += edge(depth, below);
        below = depth;
    }
    // What leads from the root to the first branch, and the root itself.
    nodes + usize::from(last.is_some()) * usize::from(below > 0) + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(ids: &[(u64, u64)]) -> usize {
        count_tree(ids.iter().map(|(ms, seq)| {
            let mut key = [0; ID_BYTES];
            key[..8].copy_from_slice(&ms.to_be_bytes());
            key[8..].copy_from_slice(&seq.to_be_bytes());
            key
        }))
    }

    /// As XINFO STREAM of Redis 8.0.6 shows them with stream-node-max-entries 1.
    #[test]
    fn radix_trees_are_counted() {
        assert_eq!(tree(&[]), 1);
        assert_eq!(tree(&[(1, 1)]), 2);
        assert_eq!(tree(&[(1, 1), (1, 2)]), 4);
        assert_eq!(tree(&[(1, 1), (1, 2), (1, 3)]), 5);
        assert_eq!(tree(&[(1, 1), (2, 1)]), 6);
        assert_eq!(tree(&[(1, 1), (1, 256), (65_536, 0), (65_536, 1), (65_537, 0)]), 16);
        assert_eq!(tree(&[(1, 1), (1 << 56, 0)]), 5);
        assert_eq!(tree(&[(1, 1), (1 << 56, 0), (1 << 56, 5), (2 << 56, 256)]), 9);
        assert_eq!(tree(&[(1, 0), (1, 65_536), (1, 65_537), (1, 131_072), (5, 0)]), 14);
        assert_eq!(tree(&[(1, 1), (1, 2), (1, 3), (2, 1), (2, 2)]), 11);
    }
}
