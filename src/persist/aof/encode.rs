//! Turns keys into the commands that make them again: the base of a log whose base is not in the snapshot format.
//!
//! Elements come in batches, deadlines as absolute times. The commands are those that Redis's rewriting chooses.
use crate::base::num;
use crate::cmd::string::with_text;
use crate::ds::raw::block::BlockRef;
use crate::ds::stream::{Group, Stream, StreamId};
use crate::store::snapshot::Encode;
use crate::types::hash::HashRef;
use crate::types::list::ListRef;
use crate::types::set::SetRef;
use crate::types::sorted_set::SortedSetRef;
use crate::types::stream;

/// Elements that one command adds.
const BATCH: usize = 64;

/// Appends a number of arguments: the head of a command.
fn head(out: &mut Vec<u8>, arguments: usize) {
    out.push(b'*');
    num::append_i64(out, arguments as i64);
    out.extend_from_slice(b"\r\n");
}

/// Appends an argument.
fn word(out: &mut Vec<u8>, text: &[u8]) {
    out.push(b'$');
    num::append_i64(out, text.len() as i64);
    out.extend_from_slice(b"\r\n");
    out.extend_from_slice(text);
    out.extend_from_slice(b"\r\n");
}

fn int(out: &mut Vec<u8>, value: i64) {
    word(out, itoa::Buffer::new().format(value).as_bytes());
}

/// Appends a whole command.
pub fn command(out: &mut Vec<u8>, words: &[&[u8]]) {
    head(out, words.len());
    words.iter().for_each(|text| word(out, text));
}

/// Begins a command for each batch of elements.
struct Batches<'a> {
    name: &'a [u8],
    key: &'a [u8],
    /// Arguments that an element takes.
    width: usize,
    left: usize,
    at: usize,
}

impl<'a> Batches<'a> {
    fn new(name: &'a [u8], key: &'a [u8], width: usize, elements: usize) -> Batches<'a> {
        Batches { name, key, width, left: elements, at: 0 }
    }

    /// An element comes.
    fn next(&mut self, out: &mut Vec<u8>) {
        if self.at.is_multiple_of(BATCH) {
            head(out, 2 + self.width * self.left.min(BATCH));
            word(out, self.name);
            word(out, self.key);
        }
        self.at += 1;
        self.left -= 1;
    }
}

/// Turns keys into commands.
#[derive(Default)]
pub struct Encoder;

impl Encode for Encoder {
    fn select(&mut self, db: u32, out: &mut Vec<u8>) {
        command(out, &[b"SELECT", itoa::Buffer::new().format(db).as_bytes()]);
    }

    fn begin(&mut self, block: BlockRef<'_>, out: &mut Vec<u8>) {
        self.key(block, out);
    }

    fn go_on(&mut self, _: BlockRef<'_>, _: usize, _: &mut Vec<u8>) -> bool {
        true
    }

    fn key(&mut self, block: BlockRef<'_>, out: &mut Vec<u8>) {
        let key = block.key();
        if let Some(string) = block.string() {
            with_text(Some(string), |text| command(out, &[b"SET", key, text]));
        } else if let Ok(list) = ListRef::of(block) {
            let mut batches = Batches::new(b"RPUSH", key, 1, list.len());
            list.for_each(|element| {
                batches.next(out);
                element.with_text(|text| word(out, text));
            });
        } else if let Some(set) = SortedSetRef::of_value(block.value()) {
            let mut batches = Batches::new(b"ZADD", key, 2, set.len());
            for (member, score) in set.iter() {
                batches.next(out);
                word(out, &num::f64_digits(score));
                member.with_text(|text| word(out, text));
            }
        } else if let Ok(set) = SetRef::of(block) {
            let mut batches = Batches::new(b"SADD", key, 1, set.len());
            set.for_each(&mut |member| {
                batches.next(out);
                member.with_text(|text| word(out, text));
            });
        } else if let Ok(hash) = HashRef::of(block) {
            append_hash(key, hash, out);
        } else if let Ok(stream) = stream::of(block) {
            append_stream(key, stream, out);
        }
        if let Some(deadline_ms) = block.deadline_ms() {
            head(out, 3);
            word(out, b"PEXPIREAT");
            word(out, key);
            int(out, deadline_ms as i64);
        }
    }
}

fn append_hash(key: &[u8], hash: HashRef<'_>, out: &mut Vec<u8>) {
    let mut batches = Batches::new(b"HMSET", key, 2, hash.len());
    hash.for_each(|field| {
        batches.next(out);
        field.name.with_text(|name| word(out, name));
        field.value.with_text(|value| word(out, value));
    });
    hash.for_each(|field| {
        let Some(deadline_ms) = field.deadline_ms else { return };
        head(out, 6);
        word(out, b"HPEXPIREAT");
        word(out, key);
        int(out, deadline_ms as i64);
        word(out, b"FIELDS");
        word(out, b"1");
        field.name.with_text(|name| word(out, name));
    });
}

fn append_stream(key: &[u8], stream: &Stream, out: &mut Vec<u8>) {
    let log = &stream.log;
    for entry in log.range(StreamId::MIN, StreamId::MAX) {
        head(out, 3 + 2 * entry.pairs().count());
        word(out, b"XADD");
        word(out, key);
        word(out, entry.id.text(b'-').as_bytes());
        for (name, value) in entry.pairs() {
            name.with_text(|name| word(out, name));
            value.with_text(|value| word(out, value));
        }
    }
    if log.is_empty() {
        command(out, &[b"XADD", key, b"MAXLEN", b"0", b"0-1", b"x", b"y"]);
    }
    head(out, 7);
    word(out, b"XSETID");
    word(out, key);
    word(out, log.last_id().text(b'-').as_bytes());
    word(out, b"ENTRIESADDED");
    int(out, log.entries_added() as i64);
    word(out, b"MAXDELETEDID");
    word(out, log.max_deleted_id().text(b'-').as_bytes());
    for (name, group) in &stream.groups {
        append_group(key, name, group, out);
    }
}

fn append_group(key: &[u8], name: &[u8], group: &Group, out: &mut Vec<u8>) {
    head(out, 7);
    word(out, b"XGROUP");
    word(out, b"CREATE");
    word(out, key);
    word(out, name);
    word(out, group.last_id.text(b'-').as_bytes());
    word(out, b"ENTRIESREAD");
    int(out, group.entries_read.unwrap_or(-1));
    for consumer in group.consumers() {
        if consumer.pending().is_empty() {
            command(out, &[b"XGROUP", b"CREATECONSUMER", key, name, consumer.name()]);
        }
        for id in consumer.pending() {
            let Some(delivery) = group.pending().get(id) else { continue };
            head(out, 12);
            word(out, b"XCLAIM");
            word(out, key);
            word(out, name);
            word(out, consumer.name());
            word(out, b"0");
            word(out, id.text(b'-').as_bytes());
            word(out, b"TIME");
            int(out, delivery.time_ms);
            word(out, b"RETRYCOUNT");
            int(out, delivery.count as i64);
            word(out, b"JUSTID");
            word(out, b"FORCE");
        }
    }
}
