//! Streams: rows, and what the handlers of the family share.
mod add;
mod claim;
mod group;
mod id;
mod info;
mod range;
mod read;
mod record;

use super::docs;
use super::spec::keys::{LOOK, READ, UPDATE};
use super::spec::{Done, Group::Stream as S, KeyPart, Spec, flag, half_behind_options, key};
use crate::cmd::element::put_element;
use crate::ds::stream::{Entry, StreamId};
use crate::store::news::{Event, class};
use crate::wire::{Args, Error, Out};

const DELETE: &[KeyPart] = &[key("RW delete", 1)];
const READ_SECOND: &[KeyPart] = &[key("RO access", 2)];
const INSERT_SECOND: &[KeyPart] = &[key("RW insert", 2)];
const UPDATE_SECOND: &[KeyPart] = &[key("RW update", 2)];
const DELETE_SECOND: &[KeyPart] = &[key("RW delete", 2)];
const VARYING: &[&str] = &["nondeterministic_output"];

/// The options that may stand before STREAMS, with the number of arguments that each takes.
const READ_OPTIONS: &[(&str, usize)] = &[("COUNT", 1), ("BLOCK", 1), ("GROUP", 2), ("NOACK", 0)];

const RETURNED: &str = "O(N) with N being the number of entries returned.";

const XADD: Event = Event { class: class::STREAM, name: "xadd" };
const XTRIM: Event = Event { class: class::STREAM, name: "xtrim" };
const CREATECONSUMER: Event = Event { class: class::STREAM, name: "xgroup-createconsumer" };

/// The rows.
pub const COMMANDS: &[Spec] = &[
    Spec::write(
        "xadd",
        "key [NOMKSTREAM] [MAXLEN|MINID [=|~] threshold [LIMIT count]] <*|id> field value [field value ...]",
        add::xadd,
    )
    .event(class::STREAM, "xadd")
    .doc(S, "5.0.0", "Appends an entry to a stream; makes the key when it does not exist.")
    .cost("O(1) for the entry, O(N) for trimming where N is the number of entries that go.")
    .keys(UPDATE)
    .tips(VARYING)
    .with(flag::DENYOOM | flag::FAST),
    Spec::write("xtrim", "key MAXLEN|MINID [=|~] threshold [LIMIT count]", add::xtrim)
        .event(class::STREAM, "xtrim")
        .doc(S, "5.0.0", "Deletes entries from the beginning of a stream.")
        .cost("O(N) where N is the number of entries that go; whole nodes go at once.")
        .keys(DELETE)
        .tips(VARYING),
    Spec::write("xdel", "key id [id ...]", add::xdel)
        .event(class::STREAM, "xdel")
        .doc(S, "5.0.0", "Deletes entries from a stream and counts those that were there.")
        .cost("O(log(M)) for each entry where M is the number of entries of the stream.")
        .keys(DELETE)
        .with(flag::FAST),
    Spec::write(
        "xsetid",
        "key last-id [ENTRIESADDED entries-added:integer] [MAXDELETEDID max-deleted-id]",
        add::xsetid,
    )
    .event(class::STREAM, "xsetid")
    .doc(S, "5.0.0", "Sets the last ID of a stream and what it knows of its past, as replication does.")
    .keys(UPDATE)
    .with(flag::DENYOOM | flag::FAST),
    Spec::read("xlen", "key", range::xlen)
        .doc(S, "5.0.0", "Returns the number of entries of a stream.")
        .keys(LOOK)
        .with(flag::FAST),
    Spec::read("xrange", "key start:string end:string [COUNT count]", range::xrange)
        .doc(S, "5.0.0", "Returns the entries of a stream whose IDs lie in a range.")
        .cost(RETURNED)
        .keys(READ),
    Spec::read("xrevrange", "key end:string start:string [COUNT count]", range::xrevrange)
        .doc(S, "5.0.0", "Returns the entries of a stream whose IDs lie in a range, the last one first.")
        .cost(RETURNED)
        .keys(READ),
    Spec::read("xread", "[COUNT count] [BLOCK milliseconds] STREAMS key [key ...] id [id ...]", read::xread)
        .doc(S, "5.0.0", "Returns the entries of several streams behind given IDs.")
        .cost(RETURNED)
        .keys(&[half_behind_options("RO access", "STREAMS", 1, READ_OPTIONS)])
        .with(flag::BLOCKING | flag::MOVABLEKEYS),
    Spec::write(
        "xreadgroup",
        "GROUP group consumer [COUNT count] [BLOCK milliseconds] [NOACK] STREAMS key [key ...] id [id ...]",
        read::xreadgroup,
    )
    .doc(S, "5.0.0", "Delivers new entries of several streams to a consumer of a group, or again what it did not acknowledge.")
    .cost(RETURNED)
    .keys(&[half_behind_options("RO access", "STREAMS", 4, READ_OPTIONS)])
    .with(flag::BLOCKING | flag::MOVABLEKEYS),
    Spec::write("xack", "key group id [id ...]", claim::xack)
        .doc(S, "5.0.0", "Acknowledges entries that a consumer of a group got, and counts those that were pending.")
        .cost("O(log(N)) for each ID where N is the number of pending entries.")
        .keys(UPDATE)
        .with(flag::FAST),
    Spec::read("xpending", "key group [[IDLE min-idle-time:integer] start:string end:string count [consumer]]", claim::xpending)
        .doc(S, "5.0.0", "Tells which entries the consumers of a group got and did not acknowledge.")
        .cost("O(N) where N is the number of entries looked at; O(N) for the summary where N is the number of consumers.")
        .keys(READ)
        .tips(VARYING),
    Spec::write(
        "xclaim",
        "key group consumer min-idle-time id [id ...] [IDLE ms:integer] [TIME unix-time-milliseconds] [RETRYCOUNT count] [FORCE] [JUSTID] [LASTID lastid]",
        claim::xclaim,
    )
    .doc(S, "5.0.0", "Gives pending entries to another consumer of the group.")
    .cost("O(log(N)) for each ID where N is the number of pending entries.")
    .keys(UPDATE)
    .tips(VARYING)
    .with(flag::FAST),
    Spec::write("xautoclaim", "key group consumer min-idle-time start:string [COUNT count] [JUSTID]", claim::xautoclaim)
        .doc(S, "6.2.0", "Gives entries that are pending for long to another consumer of the group.")
        .cost("O(N) where N is COUNT.")
        .keys(DELETE)
        .tips(VARYING)
        .with(flag::FAST),
    Spec::container("xgroup", XGROUP).doc(S, "5.0.0", "Makes, changes and removes consumer groups."),
    Spec::container("xinfo", XINFO).doc(S, "5.0.0", "Tells about streams, groups and consumers."),
];

const XGROUP: &[Spec] = &[
    Spec::write(
        "xgroup|create",
        "key group <id|$> [MKSTREAM] [ENTRIESREAD entriesread:integer]",
        group::create,
    )
    .event(class::STREAM, "xgroup-create")
    .doc(S, "5.0.0", "Makes a consumer group.")
    .keys(INSERT_SECOND)
    .with(flag::DENYOOM),
    Spec::write("xgroup|setid", "key group <id|$> [ENTRIESREAD entriesread:integer]", group::setid)
        .event(class::STREAM, "xgroup-setid")
        .doc(S, "5.0.0", "Sets which entry counts as the last that a group got.")
        .keys(UPDATE_SECOND),
    Spec::write("xgroup|destroy", "key group", group::destroy)
        .event(class::STREAM, "xgroup-destroy")
        .doc(S, "5.0.0", "Removes a consumer group.")
        .cost("O(N) where N is the number of pending entries of the group.")
        .keys(DELETE_SECOND),
    Spec::write("xgroup|createconsumer", "key group consumer", group::createconsumer)
        .event(class::STREAM, "xgroup-createconsumer")
        .doc(S, "6.2.0", "Adds a consumer to a group.")
        .keys(INSERT_SECOND)
        .with(flag::DENYOOM),
    Spec::write("xgroup|delconsumer", "key group consumer", group::delconsumer)
        .event(class::STREAM, "xgroup-delconsumer")
        .doc(S, "5.0.0", "Removes a consumer from a group, with all that is pending for it.")
        .cost("O(N) where N is the number of pending entries of the consumer.")
        .keys(DELETE_SECOND),
    Spec::conn("xgroup|help", "", |_, _, out| help("xgroup", out)).doc(
        S,
        "5.0.0",
        "Tells what each subcommand does.",
    ),
];

const XINFO: &[Spec] = &[
    Spec::read("xinfo|stream", "key [FULL [COUNT count]]", info::stream)
        .doc(S, "5.0.0", "Tells about a stream, with FULL about its entries, groups and consumers, too.")
        .keys(READ_SECOND),
    Spec::read("xinfo|groups", "key", info::groups)
        .doc(S, "5.0.0", "Tells about the groups of a stream.")
        .keys(READ_SECOND),
    Spec::read("xinfo|consumers", "key group", info::consumers)
        .doc(S, "5.0.0", "Tells about the consumers of a group.")
        .keys(READ_SECOND)
        .tips(VARYING),
    Spec::conn("xinfo|help", "", |_, _, out| help("xinfo", out)).doc(
        S,
        "5.0.0",
        "Tells what each subcommand does.",
    ),
];

fn help(container: &str, out: &mut Out) -> Done {
    docs::help(container, out);
    Ok(())
}

/// Writes an id as a reply.
#[inline]
fn reply_id(out: &mut Out, id: StreamId) {
    out.bulk(id.text(b'-').as_bytes());
}

/// Writes an entry as a reply.
#[inline]
fn reply_entry(out: &mut Out, entry: &Entry<'_>) {
    let pairs = entry.pairs();
    out.array(2);
    reply_id(out, entry.id);
    out.array(2 * pairs.len());
    for (name, value) in pairs {
        put_element(out, name);
        put_element(out, value);
    }
}

/// Writes entries as an array, at most `max`; returns their number.
fn reply_entries<'a>(out: &mut Out, entries: impl Iterator<Item = Entry<'a>>, max: usize) -> usize {
    let (mark, mut count) = (out.mark(), 0);
    for entry in entries.take(max) {
        reply_entry(out, &entry);
        count += 1;
    }
    out.insert_at(mark, |out| out.array(count));
    count
}

/// A COUNT where 0 and less mean "all".
fn count_or_all(count: i64) -> usize {
    usize::try_from(count).ok().filter(|count| *count > 0).unwrap_or(usize::MAX)
}

/// An entry of a client's integer argument with a text of its own for what is none.
fn int_or(args: &mut Args<'_>, refusal: &'static str) -> Result<i64, Error> {
    match args.int() {
        Err(Error::NotInteger) => Err(Error::err(refusal)),
        int => int,
    }
}

/// The refusal where a key or its group is missing.
fn no_group(key: &[u8], group: &[u8], where_asked: &str) -> Error {
    Error::line(format!(
        "NOGROUP No such key '{}' or consumer group '{}'{where_asked}",
        String::from_utf8_lossy(key),
        String::from_utf8_lossy(group)
    ))
}

/// The refusal where the key is there and the group is missing.
fn no_such_group(key: &[u8], group: &[u8]) -> Error {
    Error::line(format!(
        "NOGROUP No such consumer group '{}' for key name '{}'",
        String::from_utf8_lossy(group),
        String::from_utf8_lossy(key)
    ))
}
