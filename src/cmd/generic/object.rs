//! Looking at how a key is kept: OBJECT and MEMORY USAGE. Nothing here counts as a use.
use super::int_arg;
use crate::cmd::cx::{ConnCx, ReadCx};
use crate::cmd::spec::Done;
use crate::config::{P, Settings};
use crate::ds::object::{Object, Packing};
use crate::ds::raw::block::{BlockRef, MARK_EDITED, Payload, Value};
use crate::store::Uses;
use crate::wire::{Args, Error, Out};

/// Longest string that counts as embedded.
const EMBEDDED_BYTES_MAX: usize = 44;
/// Numbers below this are one shared object in Redis.
const SHARED_NUMBERS: i64 = 10_000;
/// The reference count that Redis shows for shared objects.
const SHARED_REFCOUNT: i64 = 2_147_483_647;
/// A key's share of its table: a slot and fingerprint in buckets that are four fifths full.
const SLOT_BYTES: usize = 12;

const HELP: &[&str] = &[
    "OBJECT <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
    "ENCODING <key>",
    "    Tell how the value of <key> is represented.",
    "FREQ <key>",
    "    Tell how often <key> is used, on a logarithmic scale. Needs an LFU policy.",
    "IDLETIME <key>",
    "    Tell for how many seconds <key> was not used.",
    "REFCOUNT <key>",
    "    Tell how many references the value of <key> has.",
    "HELP",
    "    Print this help.",
];

/// OBJECT HELP
pub fn help(_cx: &mut ConnCx<'_>, _args: &mut Args<'_>, out: &mut Out) -> Done {
    out.array(HELP.len());
    HELP.iter().for_each(|line| out.simple(line));
    Ok(())
}

/// Whether every key has an access clock of its own in Redis, so that no values are shared.
fn shares_nothing(settings: &Settings) -> bool {
    let policy = settings.choice(P::MAXMEMORY_POLICY);
    settings.memory(P::MAXMEMORY) != 0 && (policy.ends_with("lfu") || policy.ends_with("lru"))
}

/// The name of a value's representation, in the terms of Redis.
pub(super) fn encoding(value: Value<'_>, marks: u32) -> &'static str {
    match value {
        Value::String(Payload::Int(_)) => "int",
        Value::String(Payload::Bytes(bytes))
            if bytes.len() <= EMBEDDED_BYTES_MAX && marks & MARK_EDITED == 0 =>
        {
            "embstr"
        }
        Value::String(Payload::Bytes(_)) => "raw",
        Value::Packed(Packing::IntSet, _) => "intset",
        Value::Packed(Packing::HashDeadlines, _) => "listpackex",
        Value::Packed(..) => "listpack",
        Value::Object(Object::List(_)) => "quicklist",
        Value::Object(Object::Set(_) | Object::Hash(_)) => "hashtable",
        Value::Object(Object::SortedSet(_)) => "skiplist",
        Value::Object(Object::Stream(_)) => "stream",
    }
}

pub(super) fn refcount(value: Value<'_>, settings: &Settings) -> i64 {
    match value {
        Value::String(Payload::Int(n)) if (0..SHARED_NUMBERS).contains(&n) && !shares_nothing(settings) => {
            SHARED_REFCOUNT
        }
        _ => 1,
    }
}

/// Replies with what `f` says of the key; with null when there is none.
fn about(
    cx: &ReadCx<'_>,
    args: &mut Args<'_>,
    out: &mut Out,
    f: impl FnOnce(BlockRef<'_>, &mut Out) -> Done,
) -> Done {
    match cx.look_aside(args.key()?) {
        Some(block) => f(block, out),
        None => {
            out.null();
            Ok(())
        }
    }
}

/// OBJECT ENCODING key
pub fn object_encoding(cx: &ReadCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    about(cx, args, out, |block, out| {
        out.bulk(encoding(block.value(), block.marks()).as_bytes());
        Ok(())
    })
}

/// OBJECT REFCOUNT key
pub fn object_refcount(cx: &ReadCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    about(cx, args, out, |block, out| {
        out.int(refcount(block.value(), &cx.host.settings()));
        Ok(())
    })
}

fn wrong_policy(what: &str) -> Error {
    Error::err(format_args!(
        "An LFU maxmemory policy is {what}. Please note that when switching between policies at runtime LRU and LFU \
         data will take some time to adjust."
    ))
}

/// OBJECT IDLETIME key
pub fn object_idletime(cx: &ReadCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    about(cx, args, out, |block, out| {
        if cx.now.uses != Uses::Timed {
            return Err(wrong_policy("selected, idle time not tracked"));
        }
        out.int(i64::from(cx.now.idle_seconds(block.access())));
        Ok(())
    })
}

/// OBJECT FREQ key
pub fn object_freq(cx: &ReadCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    about(cx, args, out, |block, out| {
        let frequency = cx.now.frequency(block.access());
        let frequency =
            frequency.ok_or_else(|| wrong_policy("not selected, access frequency not tracked"))?;
        out.int(i64::from(frequency));
        Ok(())
    })
}

/// MEMORY USAGE key [SAMPLES count]
pub fn memory_usage(cx: &ReadCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    let key = args.key()?;
    while !args.is_done() {
        if !args.keyword("SAMPLES") || int_arg(args.bytes()?)? < 0 {
            return Err(Error::Syntax);
        }
    }
    match cx.peek(key) {
        Some(block) => out.count(block.heap_bytes() + SLOT_BYTES),
        None => out.null(),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encodings() {
        let cases: [(Payload<'_>, u32, &str); 5] = [
            (Payload::Int(-1), 0, "int"),
            (Payload::Bytes(b""), 0, "embstr"),
            (Payload::Bytes(&[b'x'; 44]), 0, "embstr"),
            (Payload::Bytes(&[b'x'; 45]), 0, "raw"),
            (Payload::Bytes(b"x"), MARK_EDITED, "raw"),
        ];
        for (value, marks, name) in cases {
            assert_eq!(encoding(Value::String(value), marks), name, "{value:?}");
        }
    }
}
