//! Whole values: GET, SET and their relatives.
use smallvec::SmallVec;

use super::{deadline_ms, encode, reply, text};
use crate::cmd::cx::{ReadCx, WriteCx, string_of};
use crate::cmd::spec::Done;
use crate::ds::raw::block::BlockRef;
use crate::store::db::Ttl;
use crate::store::news::Event;
use crate::wire::args::option_word;
use crate::wire::{Args, Error, Out};

/// GET key
pub fn get(cx: &ReadCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    match cx.string(args.key()?)? {
        Some(value) => reply(out, value),
        None => out.null(),
    }
    Ok(())
}

/// An expiration option before its number is read.
#[derive(Clone, Copy)]
struct Expire<'a> {
    arg: &'a [u8],
    unit_ms: i64,
    relative: bool,
}

impl Expire<'_> {
    fn deadline_ms(self, now_ms: u64, command: &'static str) -> Result<u64, Error> {
        deadline_ms(self.arg, self.unit_ms, if self.relative { now_ms } else { 0 }, command)
    }
}

const EX: u64 = option_word(b"EX");
const PX: u64 = option_word(b"PX");
const EXAT: u64 = option_word(b"EXAT");
const PXAT: u64 = option_word(b"PXAT");

/// `EX n`, `PX n`, `EXAT n` or `PXAT n` at the cursor.
#[inline]
fn expire_option<'a>(args: &mut Args<'a>) -> Result<Option<Expire<'a>>, Error> {
    let (unit_ms, relative) = match args.option() {
        EX => (1000, true),
        PX => (1, true),
        EXAT => (1000, false),
        PXAT => (1, false),
        _ => return Ok(None),
    };
    args.skip();
    Ok(Some(Expire { arg: args.bytes()?, unit_ms, relative }))
}

/// An expiration option at the cursor, which may stand there several times: the last one counts.
fn repeatable_expire<'a>(args: &mut Args<'a>, seen: &mut Option<Expire<'a>>) -> Result<(), Error> {
    let expire = expire_option(args)?.ok_or(Error::Syntax)?;
    let same_kind = |old: Expire<'_>| (old.unit_ms, old.relative) == (expire.unit_ms, expire.relative);
    if !seen.is_none_or(same_kind) {
        return Err(Error::Syntax);
    }
    *seen = Some(expire);
    Ok(())
}

/// When SET may store.
#[derive(Clone, Copy, PartialEq)]
enum Condition<'a> {
    Always,
    Absent,
    Present,
    Equals(&'a [u8]),
}

struct SetOptions<'a> {
    condition: Condition<'a>,
    get: bool,
    keep_ttl: bool,
    expire: Option<Expire<'a>>,
}

impl<'a> SetOptions<'a> {
    fn only_if(&mut self, condition: Condition<'a>) -> Done {
        if self.condition != Condition::Always && self.condition != condition {
            return Err(Error::Syntax);
        }
        self.condition = condition;
        Ok(())
    }
}

const GET: u64 = option_word(b"GET");
const KEEPTTL: u64 = option_word(b"KEEPTTL");
const NX: u64 = option_word(b"NX");
const XX: u64 = option_word(b"XX");
const IFEQ: u64 = option_word(b"IFEQ");

fn set_options<'a>(args: &mut Args<'a>) -> Result<SetOptions<'a>, Error> {
    let mut options = SetOptions { condition: Condition::Always, get: false, keep_ttl: false, expire: None };
    while !args.is_done() {
        match args.option() {
            GET => options.get = true,
            KEEPTTL => options.keep_ttl = true,
            NX => options.only_if(Condition::Absent)?,
            XX => options.only_if(Condition::Present)?,
            IFEQ => {
                args.skip();
                options.only_if(Condition::Equals(args.bytes()?))?;
                continue;
            }
            _ => {
                repeatable_expire(args, &mut options.expire)?;
                continue;
            }
        }
        args.skip();
    }
    if options.keep_ttl && options.expire.is_some() { Err(Error::Syntax) } else { Ok(options) }
}

/// SET key value [options]
pub fn set(cx: &mut WriteCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    let (key, value) = (args.key()?, args.bytes()?);
    if args.is_done() {
        cx.put(key, encode(value), Ttl::Clear, 0);
        out.ok();
        return Ok(());
    }
    let options = set_options(args)?;
    let ttl = match options.expire {
        Some(expire) => Ttl::At(expire.deadline_ms(cx.now.ms, "set")?),
        None if options.keep_ttl => Ttl::Keep,
        None => Ttl::Clear,
    };
    let passes = if options.get || options.condition != Condition::Always {
        let found = if options.get { cx.find_counted(key) } else { cx.find(key) };
        let passes = match options.condition {
            Condition::Always => true,
            Condition::Absent => found.is_none(),
            Condition::Present => found.is_some(),
            Condition::Equals(want) => match found {
                Some(block) => *text(string_of(block)?) == *want,
                None => false,
            },
        };
        match found {
            _ if !options.get => {}
            Some(block) => reply(out, string_of(block)?),
            None => out.null(),
        }
        passes
    } else {
        true
    };
    if passes {
        cx.put(key, encode(value), ttl, 0);
        if options.expire.is_some() {
            cx.note_event(key, Event::EXPIRE);
        }
        log_set(cx, args, ttl, &options);
    } else {
        cx.find_used(key);
    }
    if !options.get {
        if passes { out.ok() } else { out.null() }
    }
    Ok(())
}

/// Logs a SET: a time that is no time of the day in milliseconds as one, and without GET, which nobody reads.
fn log_set(cx: &mut WriteCx<'_>, args: &Args<'_>, ttl: Ttl, options: &SetOptions<'_>) {
    let is_exact = |expire: Expire<'_>| !expire.relative && expire.unit_ms == 1;
    match (ttl, options.expire) {
        (Ttl::At(ms), Some(expire)) if !is_exact(expire) => log_set_until(cx, args.get(1), args.get(2), ms),
        (_, None) if options.get && cx.is_logged() => {
            let words = (0..args.count()).map(|at| args.get(at));
            let words: Vec<&[u8]> = words
                .enumerate()
                .filter(|(at, word)| *at < 3 || option_word(word) != GET)
                .map(|(_, word)| word)
                .collect();
            cx.log(&words);
        }
        _ => {}
    }
}

fn log_set_until(cx: &mut WriteCx<'_>, key: &[u8], value: &[u8], ms: u64) {
    if cx.is_logged() {
        cx.log(&[b"SET", key, value, b"PXAT", itoa::Buffer::new().format(ms).as_bytes()]);
    }
}

/// SETNX key value
pub fn setnx(cx: &mut WriteCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    let (key, value) = (args.key()?, args.bytes()?);
    let absent = cx.find_used(key).is_none();
    if absent {
        cx.put(key, encode(value), Ttl::Clear, 0);
    }
    out.flag(absent);
    Ok(())
}

fn set_for(
    cx: &mut WriteCx<'_>,
    args: &mut Args<'_>,
    out: &mut Out,
    unit_ms: i64,
    command: &'static str,
) -> Done {
    let (key, time, value) = (args.key()?, args.bytes()?, args.bytes()?);
    let at_ms = deadline_ms(time, unit_ms, cx.now.ms, command)?;
    cx.put(key, encode(value), Ttl::At(at_ms), 0);
    cx.note_event(key, Event::EXPIRE);
    log_set_until(cx, key.bytes, value, at_ms);
    out.ok();
    Ok(())
}

/// SETEX key seconds value
pub fn setex(cx: &mut WriteCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    set_for(cx, args, out, 1000, "setex")
}

/// PSETEX key milliseconds value
pub fn psetex(cx: &mut WriteCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    set_for(cx, args, out, 1, "psetex")
}

/// GETSET key value
pub fn getset(cx: &mut WriteCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    let (key, value) = (args.key()?, args.bytes()?);
    reply_counted(cx, key, out)?;
    cx.put(key, encode(value), Ttl::Clear, 0);
    cx.log(&[b"SET", key.bytes, value]);
    Ok(())
}

/// Replies with the string under `key`; `true` when there is one.
fn reply_counted(cx: &mut WriteCx<'_>, key: crate::wire::Key<'_>, out: &mut Out) -> Result<bool, Error> {
    match cx.find_counted(key) {
        Some(block) => {
            reply(out, string_of(block)?);
            Ok(true)
        }
        None => {
            out.null();
            Ok(false)
        }
    }
}

/// GETDEL key
pub fn getdel(cx: &mut WriteCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    let key = args.key()?;
    if reply_counted(cx, key, out)? {
        cx.remove(key);
        cx.log(&[b"DEL", key.bytes]);
    }
    Ok(())
}

/// GETEX key [expiration]
pub fn getex(cx: &mut WriteCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    let key = args.key()?;
    let (mut persist, mut expire) = (false, None);
    while !args.is_done() {
        if args.keyword("PERSIST") {
            persist = true;
        } else {
            repeatable_expire(args, &mut expire)?;
        }
    }
    if persist && expire.is_some() {
        return Err(Error::Syntax);
    }
    let now_ms = cx.now.ms;
    let Some(block) = cx.find_counted(key) else {
        out.null();
        return Ok(());
    };
    let (had_deadline, string) = (block.deadline_ms().is_some(), string_of(block)?);
    let deadline = expire.map(|e| e.deadline_ms(now_ms, "getex")).transpose()?;
    reply(out, string);
    match deadline {
        Some(ms) if ms <= now_ms => {
            cx.remove(key);
            cx.log(&[b"DEL", key.bytes]);
        }
        Some(ms) => {
            cx.set_deadline(key, Some(ms));
            cx.log(&[b"PEXPIREAT", key.bytes, itoa::Buffer::new().format(ms).as_bytes()]);
        }
        None if persist && had_deadline => {
            cx.stands_for(&[Event::PERSIST]);
            cx.set_deadline(key, None);
            cx.log(&[b"PERSIST", key.bytes]);
        }
        None => {}
    }
    Ok(())
}

/// MGET key [key ...]
pub fn mget(cx: &ReadCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    out.array(args.left());
    while !args.is_done() {
        let keys = args.some_keys();
        cx.prefetch(&keys);
        for key in keys {
            match cx.find(key).and_then(BlockRef::string) {
                Some(string) => reply(out, string),
                None => out.null(),
            }
        }
    }
    Ok(())
}

fn pairs_complete(args: &Args<'_>, command: &'static str) -> Done {
    if args.left().is_multiple_of(2) { Ok(()) } else { Err(Error::Arity(command)) }
}

fn put_pairs(cx: &mut WriteCx<'_>, args: &mut Args<'_>) -> Done {
    while !args.is_done() {
        let (mut keys, mut values) = (SmallVec::<[_; 16]>::new(), SmallVec::<[_; 16]>::new());
        while keys.len() < 16 && !args.is_done() {
            keys.push(args.key()?);
            values.push(args.bytes()?);
        }
        cx.prefetch(&keys);
        for (key, value) in keys.into_iter().zip(values) {
            cx.put(key, encode(value), Ttl::Clear, 0);
        }
    }
    Ok(())
}

/// MSET key value [key value ...]
pub fn mset(cx: &mut WriteCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    pairs_complete(args, "mset")?;
    put_pairs(cx, args)?;
    out.ok();
    Ok(())
}

/// MSETNX key value [key value ...]
pub fn msetnx(cx: &mut WriteCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    pairs_complete(args, "msetnx")?;
    let mut look = args.clone();
    while !look.is_done() {
        let key = look.key()?;
        look.bytes()?;
        if cx.find_used(key).is_some() {
            out.flag(false);
            return Ok(());
        }
    }
    put_pairs(cx, args)?;
    out.flag(true);
    Ok(())
}
/// SET with GET also reads.
pub fn set_key_use(call: &[&[u8]]) -> &'static str {
    let gets = call.iter().skip(3).any(|word| word.eq_ignore_ascii_case(b"get"));
    if gets { "RW access update" } else { "OW update" }
}
