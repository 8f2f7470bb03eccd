//! Reading several streams: XREAD and XREADGROUP.
use smallvec::SmallVec;

use super::id::parse;
use super::record::Records;
use super::{CREATECONSUMER, count_or_all, no_group, reply_entries, reply_entry, reply_id};
use crate::cmd::cx::{ReadCx, Wait, WriteCx};
use crate::cmd::spec::Done;
use crate::cmd::waiting::{Until, until_of_ms};
use crate::ds::object::Kind;
use crate::ds::stream::{ConsumerId, Group, Log, Stream, StreamId};
use crate::store::edit::Editor;
use crate::types::stream;
use crate::wire::args::option_word;
use crate::wire::{Args, Error, Key, Out, Protocol};

const BLOCK: u64 = option_word(b"BLOCK");
const COUNT: u64 = option_word(b"COUNT");
const STREAMS: u64 = option_word(b"STREAMS");
const GROUP: u64 = option_word(b"GROUP");
const NOACK: u64 = option_word(b"NOACK");

/// What stands before the streams.
struct Options<'a> {
    max: usize,
    /// Waits for entries when there are none, so long.
    block: Option<Until>,
    no_ack: bool,
    /// Group and consumer.
    group: Option<(&'a [u8], &'a [u8])>,
    /// Number of streams; the cursor stands at the first.
    streams: usize,
}

impl<'a> Options<'a> {
    fn of(args: &mut Args<'a>, in_group: bool, now_ms: u64) -> Result<Options<'a>, Error> {
        let mut options = Options { max: usize::MAX, block: None, no_ack: false, group: None, streams: 0 };
        while !args.is_done() {
            let (word, more) = (args.option(), args.left() - 1);
            args.skip();
            match word {
                BLOCK if more > 0 => options.block = Some(until_of_ms(args.bytes()?, now_ms)?),
                COUNT if more > 0 => options.max = count_or_all(args.int()?),
                STREAMS if more > 0 => {
                    if !more.is_multiple_of(2) {
                        return Err(unbalanced(in_group));
                    }
                    options.streams = more / 2;
                    return Ok(options);
                }
                GROUP if more >= 2 && in_group => options.group = Some((args.bytes()?, args.bytes()?)),
                NOACK if in_group => options.no_ack = true,
                GROUP if more >= 2 => return Err(only_in_group("GROUP")),
                NOACK => return Err(only_in_group("NOACK")),
                _ => return Err(Error::Syntax),
            }
        }
        Err(Error::Syntax)
    }
}

fn unbalanced(in_group: bool) -> Error {
    let (command, ids) = if in_group { ("xreadgroup", "ID or '>'") } else { ("xread", "ID, '+', or '$'") };
    Error::err(format_args!(
        "Unbalanced '{command}' list of streams: for each stream key an {ids} must be specified."
    ))
}

fn only_in_group(option: &str) -> Error {
    Error::err(format_args!("The {option} option is only supported by XREADGROUP. You called XREAD instead."))
}

fn meaningless(id: &str) -> Error {
    Error::err(format_args!(
        "The {id} ID is meaningless in the context of XREADGROUP: you want to read the history of this consumer by \
         specifying a proper ID, or use the > ID to get new messages. The {id} ID would just return an empty result set."
    ))
}

/// Keys with the arguments that belong to them.
type Pairs<'a> = SmallVec<[(Key<'a>, &'a [u8]); 4]>;

fn keys_and_ids<'a>(args: &mut Args<'a>, streams: usize) -> Pairs<'a> {
    let keys = args.keys(streams);
    keys.zip(args.rest()).collect()
}

/// Writes the head of one stream's part of the reply.
fn reply_name(out: &mut Out, key: Key<'_>) {
    if out.protocol == Protocol::Resp2 {
        out.array(2);
    }
    out.bulk(key.bytes);
}

/// Writes the head of the whole reply, of `served` streams.
fn finish(out: &mut Out, mark: usize, served: usize) {
    out.insert_at(mark, |out| match out.protocol {
        Protocol::Resp2 => out.array(served),
        Protocol::Resp3 => out.map(served),
    });
}

/// XREAD [COUNT count] [BLOCK milliseconds] STREAMS key [key ...] id [id ...]
pub fn xread(cx: &ReadCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    let options = Options::of(args, false, cx.now.ms)?;
    let first_id = args.position() + options.streams;
    let (mut asked, mut replaced) = (SmallVec::<[(Key<'_>, &Log, StreamId); 4]>::new(), Vec::new());
    for (index, (key, id)) in keys_and_ids(args, options.streams).into_iter().enumerate() {
        let stream = cx.find(key).map(stream::of).transpose()?;
        let after = after(stream, id)?;
        if id == b"$" && options.block.is_some() {
            // The end of the log as it is now, whenever it is looked for again.
            replaced.push((first_id + index, after.text(b'-').as_bytes().to_vec()));
        }
        if let Some(stream) = stream {
            asked.push((key, &stream.log, after));
        }
    }
    let (mark, mut served) = (out.mark(), 0);
    for (key, log, after) in asked {
        if let Some(start) = after.next()
            && log.last_entry_id().is_some_and(|last| last > after)
        {
            reply_name(out, key);
            reply_entries(out, log.range(start, StreamId::MAX), options.max);
            served += 1;
        }
    }
    if served > 0 {
        finish(out, mark, served);
    } else if !options.block.is_some_and(|until_ms| cx.waits(Wait::for_entries(until_ms, replaced))) {
        out.null_array();
    }
    Ok(())
}

impl Wait {
    /// A wait of XREAD for new entries.
    fn for_entries(until_ms: Until, replaced: Vec<(usize, Vec<u8>)>) -> Box<Wait> {
        Box::new(Wait { replaced, ..*Wait::for_kind(Kind::Stream, until_ms) })
    }

    /// A wait of XREADGROUP for new entries, which ends with a refusal when the key or its group goes away.
    fn for_deliveries(until_ms: Until) -> Box<Wait> {
        Box::new(Wait { heeds_all: true, ..*Wait::for_kind(Kind::Stream, until_ms) })
    }
}

/// The id behind which XREAD reads.
fn after(stream: Option<&Stream>, id: &[u8]) -> Result<StreamId, Error> {
    Ok(match id {
        b"$" => stream.map_or(StreamId::MIN, |stream| stream.log.last_id()),
        b"+" => {
            let last = stream.and_then(|stream| stream.log.last_entry_id());
            last.and_then(StreamId::previous).unwrap_or_default()
        }
        b">" => {
            return Err(Error::err(
                "The > ID can be specified only when calling XREADGROUP using the GROUP <group> <consumer> option.",
            ));
        }
        _ => parse(id, 0)?,
    })
}

/// How XREADGROUP reads one stream.
struct Reader<'a> {
    group: &'a [u8],
    consumer: &'a [u8],
    max: usize,
    no_ack: bool,
    now_ms: i64,
}

/// XREADGROUP GROUP group consumer [COUNT count] [BLOCK milliseconds] [NOACK] STREAMS key [key ...] id [id ...]
pub fn xreadgroup(cx: &mut WriteCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    let options = Options::of(args, true, cx.now.ms)?;
    let (group, consumer) = options.group.ok_or_else(|| Error::err("Missing GROUP option for XREADGROUP"))?;
    // All is checked before anything is delivered.
    let mut asked = SmallVec::<[(Key<'_>, StreamId); 4]>::new();
    for (key, id) in keys_and_ids(args, options.streams) {
        let known = match cx.find_counted(key) {
            Some(block) => stream::of(block)?.groups.contains_key(group),
            None => false,
        };
        if !known {
            return Err(no_group(key.bytes, group, " in XREADGROUP with GROUP option"));
        }
        asked.push((key, history_after(id)?));
    }
    let reader =
        Reader { group, consumer, max: options.max, no_ack: options.no_ack, now_ms: cx.now.ms as i64 };
    let (mark, mut served) = (out.mark(), 0);
    for (key, after) in asked {
        let mut records = Records::new(cx);
        served += usize::from(cx.edit(key, |editor| reader.read(editor, after, &mut records, out))?);
        records.log(cx, key.bytes, group, consumer);
    }
    if served > 0 {
        finish(out, mark, served);
    } else if !options.block.is_some_and(|until_ms| cx.waits(Wait::for_deliveries(until_ms))) {
        out.null_array();
    }
    Ok(())
}

/// The id behind which XREADGROUP reads again what is pending; the highest one stands for new entries.
fn history_after(id: &[u8]) -> Result<StreamId, Error> {
    match id {
        b"$" => Err(meaningless("$")),
        b"+" => Err(meaningless("+")),
        b">" => Ok(StreamId::MAX),
        _ => parse(id, 0),
    }
}

impl Reader<'_> {
    /// Reads one stream. `false`: there is nothing to deliver.
    fn read(
        &self,
        editor: &mut Editor<'_>,
        after: StreamId,
        records: &mut Records,
        out: &mut Out,
    ) -> Result<bool, Error> {
        let key = editor.key();
        let Some(Stream { log, groups }) = stream::edit(editor)? else { return Ok(false) };
        let Some(group) = groups.get_mut(self.group) else { return Ok(false) };
        let (consumer, made) = group.find_or_add(self.consumer, self.now_ms);
        let history = after.next();
        let has_new = history.is_none() && log.last_entry_id().is_some_and(|last| last > group.last_id);
        if let Some(start) = history {
            reply_name(out, key);
            self.deliver_again(log, group, consumer, start, out);
        } else if has_new {
            reply_name(out, key);
            self.deliver(log, group, consumer, records, out);
        }
        if made && self.no_ack {
            records.made_consumer();
        }
        records.end(group);
        if made {
            editor.stands_for(&[CREATECONSUMER]);
        }
        editor.changed_beside(usize::from(made) + usize::from(has_new));
        Ok(history.is_some() || has_new)
    }

    fn deliver(
        &self,
        log: &Log,
        group: &mut Group,
        consumer: ConsumerId,
        records: &mut Records,
        out: &mut Out,
    ) {
        let Some(start) = group.last_id.next() else { return out.array(0) };
        let entries = log.range(start, StreamId::MAX).inspect(|entry| {
            group.advance(log, entry.id);
            if !self.no_ack {
                group.deliver(entry.id, consumer, self.now_ms);
                records.delivery(group, entry.id);
            }
        });
        reply_entries(out, entries, self.max);
        records.moved();
    }

    /// What is pending for the consumer; what is gone from the log comes without its fields.
    fn deliver_again(
        &self,
        log: &Log,
        group: &mut Group,
        consumer: ConsumerId,
        start: StreamId,
        out: &mut Out,
    ) {
        let mark = out.mark();
        let count = group.deliver_again(consumer, start, self.max, self.now_ms, |id| {
            let entry = log.get(id);
            match &entry {
                Some(entry) => reply_entry(out, entry),
                None => {
                    out.array(2);
                    reply_id(out, id);
                    out.null_array();
                }
            }
            entry.is_some()
        });
        out.insert_at(mark, |out| out.array(count));
    }
}
