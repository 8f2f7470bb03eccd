//! The functions that the server gives to scripts: `redis.call` and its kin, `math.random`, and what the prelude needs.
//!
//! Must stay true: nothing here keeps a borrow of shared state while the bridge runs, except of the bridge itself;
//! a command may set the script's stack aside. Errors are raised as `raise` describes.
use std::cell::{Cell, RefCell};

use mlua::{Error, Lua, MultiValue, Table, Value};
use sha1::{Digest, Sha1};

use super::lent::{BRIDGE, SHARED};
use super::load::Loading;
use super::raise::{self, raise};
use super::random::Random;
use super::{Bridge, REPL_AOF, REPL_REPLICA, Words, reply};
use crate::base::num;
use crate::config::REDIS_VERSION;
use crate::rt::log::Level;
use crate::rt::sys::lua::{self, Answer, Callee, Word};
use crate::wire::{Out, Protocol, Span};

/// Buffers larger than this are given back after use.
const KEPT_BYTES_MAX: usize = 64 * 1024;

/// What the functions of an engine share.
#[derive(Default)]
pub struct Shared {
    /// Of the library that is being loaded.
    pub loading: RefCell<Option<Loading>>,
    /// The protocol that the script chose for replies to it.
    pub protocol: Cell<Protocol>,
    /// Behind `math.random`.
    pub random: Random,
    /// The script must end with this text.
    pub end: RefCell<Option<String>>,
    words: Cell<WordBuffer>,
    /// A reply that [`Shared::make`] shall make a value of.
    reply: RefCell<Vec<u8>>,
    /// Why a call was refused, for [`Shared::make`] too.
    refusal: Cell<Option<&'static str>>,
    /// And whether the call throws.
    throws: Cell<bool>,
}

#[derive(Default)]
struct WordBuffer {
    buf: Vec<u8>,
    spans: Vec<Span>,
}

impl WordBuffer {
    /// Takes the arguments of a call over.
    fn fill<'w>(&mut self, words: impl ExactSizeIterator<Item = Word<'w>>) -> Result<(), &'static str> {
        self.buf.clear();
        self.spans.clear();
        if words.len() == 0 {
            return Err("Please specify at least one argument for this redis lib call");
        }
        for word in words {
            let at = self.buf.len();
            match word {
                Word::Text(text) => self.buf.extend_from_slice(text),
                Word::Number(number) => self.push_number(number),
                Word::Other => return Err("Lua redis lib command arguments must be strings or integers"),
            }
            self.spans.push(span(at, self.buf.len())?);
        }
        Ok(())
    }

    /// Integers without a point, up to 2^62; a NaN with its sign, which that of 0/0 has.
    fn push_number(&mut self, n: f64) {
        match num::integer_of(n) {
            Some(n) => self.buf.extend_from_slice(itoa::Buffer::new().format(n).as_bytes()),
            None if n.is_nan() && n.is_sign_negative() => self.buf.extend_from_slice(b"-nan"),
            None => self.buf.extend_from_slice(&num::f64_digits(n)),
        }
    }

    fn words(&self) -> Words<'_> {
        Words { buf: &self.buf, spans: &self.spans }
    }
}

fn span(at: usize, end: usize) -> Result<Span, &'static str> {
    match (u32::try_from(at), u32::try_from(end)) {
        (Ok(at), Ok(end)) => Ok(Span { at, len: end - at }),
        _ => Err("the arguments of a command are too long"),
    }
}

/// A message for who calls a function while no script runs, which no script can.
const NOBODY: &str = "there is no script running";

/// `redis.call`, which `THROWS`, and `redis.pcall`.
struct Call<const THROWS: bool>;

impl<const THROWS: bool> Callee for Call<THROWS> {
    fn call(words: &lua::Words, reply: &mut Vec<u8>) -> Answer {
        if SHARED.is_set() { SHARED.with(|shared| shared.call(words, reply, THROWS)) } else { Answer::Raised }
    }
}

/// The answer that a reply of the server stands for, if it is one of the simple kinds.
fn simple_answer(reply: &[u8]) -> Option<Answer> {
    let line_end = memchr::memchr(b'\r', reply)?;
    let number = |line| num::parse_i64(line);
    match reply.split_first()? {
        (b':', _) => number(&reply[1..line_end]).map(|number| Answer::Number(number as f64)),
        (b'$', b"-1\r\n") => Some(Answer::False),
        (b'$', _) => {
            let (at, bytes) = (line_end + 2, usize::try_from(number(&reply[1..line_end])?).ok()?);
            let is_whole = reply.len() - line_end >= bytes.checked_add(4)?;
            is_whole.then(|| Answer::Text(at..at + bytes))
        }
        _ => None,
    }
}

impl Shared {
    /// Lets the bridge work.
    fn with_bridge<R>(&self, work: impl FnOnce(&mut dyn Bridge) -> R) -> Result<R, &'static str> {
        if !BRIDGE.is_set() {
            return Err(NOBODY);
        }
        Ok(BRIDGE.with(|bridge| work(bridge)))
    }

    /// Lets the bridge work with the words of a command.
    fn with_words<'w, R>(
        &self,
        given: impl ExactSizeIterator<Item = Word<'w>>,
        work: impl FnOnce(&mut dyn Bridge, Words<'_>) -> R,
    ) -> Result<R, &'static str> {
        let mut words = self.words.take();
        let result = words.fill(given);
        let result = result.and_then(|()| self.with_bridge(|bridge| work(bridge, words.words())));
        if words.buf.capacity() <= KEPT_BYTES_MAX {
            self.words.set(words);
        }
        result
    }

    /// `redis.call` and, when it does not throw, `redis.pcall`.
    fn call(&self, words: &lua::Words, reply: &mut Vec<u8>, throws: bool) -> Answer {
        let mut out = Out { buf: std::mem::take(reply), protocol: self.protocol.get() };
        let called = self.with_words(words.iter(), |bridge, words| bridge.call(words, &mut out));
        *reply = out.buf;
        self.refusal.set(called.err());
        if called.is_ok()
            && let Some(answer) = simple_answer(reply)
        {
            return answer;
        }
        let failed = called.is_err() || reply.first() == Some(&b'-');
        std::mem::swap(reply, &mut *self.reply.borrow_mut());
        self.throws.set(throws);
        if failed && throws { Answer::Raised } else { Answer::Made }
    }

    /// Makes what a call returns or raises that has no simple answer.
    fn make(&self, lua: &Lua) -> mlua::Result<Value> {
        if !SHARED.is_set() {
            return raise::refusal_table(lua, NOBODY).map(Value::Table);
        }
        if let Some(why) = self.refusal.take() {
            return raise::refusal_table(lua, why).map(Value::Table);
        }
        let mut reply = self.reply.borrow_mut();
        let value = reply::to_value(lua, &reply);
        if reply.capacity() > KEPT_BYTES_MAX {
            *reply = Vec::new();
        }
        match value {
            Err(error) if !self.throws.get() => raise::seen(lua, Value::Error(Box::new(error))),
            value => value,
        }
    }

    /// What the hook does.
    ///
    /// # Errors
    /// The text with which the script must end.
    pub fn pulse(&self) -> Result<(), String> {
        if let Some(loading) = self.loading.borrow().as_ref() {
            return if loading.is_late() { Err("FUNCTION LOAD timeout".to_string()) } else { Ok(()) };
        }
        // Without a bridge there is nobody who could end it.
        self.with_bridge(|bridge| bridge.pulse()).unwrap_or(Ok(()))
    }

    fn log(&self, lua: &Lua, args: &MultiValue) -> mlua::Result<()> {
        if args.len() < 2 {
            return Err(raise("redis.log() requires two arguments or more."));
        }
        let Some(level) = as_number(&args[0]) else {
            return Err(raise("First argument must be a number (log level)."));
        };
        let level = match level as i32 {
            0 => Level::Debug,
            1 => Level::Verbose,
            2 => Level::Notice,
            3 => Level::Warning,
            _ => return Err(raise("Invalid log level.")),
        };
        let text = joined(lua, args.iter().skip(1))?;
        if let Some(loading) = self.loading.borrow().as_ref() {
            loading.log(level, &text);
            return Ok(());
        }
        self.with_bridge(|bridge| bridge.log(level, &text)).map_err(raise)
    }

    fn setresp(&self, args: &MultiValue) -> mlua::Result<()> {
        if args.len() != 1 {
            return Err(raise("redis.setresp() requires one argument."));
        }
        self.protocol.set(match as_number(&args[0]).unwrap_or_default() as i32 {
            2 => Protocol::Resp2,
            3 => Protocol::Resp3,
            _ => return Err(raise("RESP version must be 2 or 3.")),
        });
        Ok(())
    }

    fn set_repl(&self, args: &MultiValue) -> mlua::Result<()> {
        if args.len() != 1 {
            return Err(raise("redis.set_repl() requires one argument."));
        }
        let flags = as_number(&args[0]).unwrap_or_default() as i32;
        if flags & !i32::from(REPL_AOF | REPL_REPLICA) != 0 {
            return Err(raise(
                "Invalid replication flags. Use REPL_AOF, REPL_REPLICA, REPL_ALL or REPL_NONE.",
            ));
        }
        self.with_bridge(|bridge| bridge.set_repl(flags as u8)).map_err(raise)
    }

    fn may_call(&self, args: &MultiValue) -> mlua::Result<bool> {
        let texts: Vec<_> = args.iter().map(|arg| arg.as_string().map(|text| text.as_bytes())).collect();
        let words = args.iter().zip(&texts).map(|(arg, text)| match (arg, text) {
            (_, Some(text)) => Word::Text(text),
            (Value::Integer(number), _) => Word::Number(*number as f64),
            (Value::Number(number), _) => Word::Number(*number),
            _ => Word::Other,
        });
        let answer = self.with_words(words, |bridge, words| bridge.may_call(words)).map_err(raise)?;
        answer.ok_or_else(|| raise("Invalid command passed to redis.acl_check_cmd()"))
    }
}

/// A number, or the number that a text says.
fn as_number(value: &Value) -> Option<f64> {
    match value {
        Value::Integer(n) => Some(*n as f64),
        Value::Number(n) => Some(*n),
        Value::String(text) => num::parse_f64(text.as_bytes().trim_ascii()),
        _ => None,
    }
}

/// Texts and numbers, with blanks between them; other values are left out.
fn joined<'a>(lua: &Lua, values: impl Iterator<Item = &'a Value>) -> mlua::Result<Vec<u8>> {
    let mut joined = Vec::new();
    for (index, value) in values.enumerate() {
        if let Some(text) = text_of(lua, value)? {
            if index > 0 {
                joined.push(b' ');
            }
            joined.extend_from_slice(&text);
        }
    }
    Ok(joined)
}

/// A text, or a number as Lua writes it; `None` for other values.
///
/// # Errors
/// When memory is out.
pub fn text_of(lua: &Lua, value: &Value) -> mlua::Result<Option<Vec<u8>>> {
    Ok(match value {
        Value::String(text) => Some(text.as_bytes().to_vec()),
        Value::Integer(_) | Value::Number(_) => {
            lua.coerce_string(value.clone())?.map(|text| text.as_bytes().to_vec())
        }
        _ => None,
    })
}

/// The lower-case hexadecimal SHA-1 of `bytes`.
pub fn sha1_hex(bytes: &[u8]) -> [u8; 40] {
    let mut hex = [0; 40];
    for (pair, byte) in hex.chunks_exact_mut(2).zip(Sha1::digest(bytes)) {
        pair[0] = b"0123456789abcdef"[usize::from(byte >> 4)];
        pair[1] = b"0123456789abcdef"[usize::from(byte & 15)];
    }
    hex
}

fn sha1hex(lua: &Lua, args: &MultiValue) -> mlua::Result<mlua::LuaString> {
    if args.len() != 1 {
        return Err(raise("wrong number of arguments"));
    }
    let text = text_of(lua, &args[0])?.unwrap_or_default();
    lua.create_string(sha1_hex(&text))
}

/// Argument `index` (from 0) of the function `name` as an integer, in the way of the C library of Lua.
fn int_arg(args: &MultiValue, index: usize, name: &str) -> mlua::Result<i32> {
    let given = args.get(index);
    given.and_then(as_number).map(|n| n as i64 as i32).ok_or_else(|| {
        let kind = given.map_or("no value", Value::type_name);
        let kind = if kind == "integer" { "number" } else { kind };
        bad_arg(index, name, &format!("number expected, got {kind}"))
    })
}

fn bad_arg(index: usize, name: &str, why: &str) -> Error {
    Error::runtime(format!("bad argument #{} to '{name}' ({why})", index + 1))
}

fn math_random(random: &Random, args: &MultiValue) -> mlua::Result<f64> {
    let fraction = random.fraction();
    let (low, high) = match args.len() {
        0 => return Ok(fraction),
        1 => (1, int_arg(args, 0, "random")?),
        2 => (int_arg(args, 0, "random")?, int_arg(args, 1, "random")?),
        _ => return Err(Error::runtime("wrong number of arguments")),
    };
    if low > high {
        return Err(bad_arg(args.len() - 1, "random", "interval is empty"));
    }
    let width = high.wrapping_sub(low).wrapping_add(1);
    Ok((fraction * f64::from(width)).floor() + f64::from(low))
}

/// The source and line from which the function was called that raised an error, for the handler in the prelude: level
/// 0 is this function, 1 the handler, 2 who raised it. A function that is not Lua says nothing, its caller does; frames
/// of the prelude itself do not count, nor what it replaced by a tail call.
fn place(lua: &Lua) -> Option<(String, i64)> {
    let frame = |level| {
        lua.inspect_stack(level, |frame| {
            let source = frame.source();
            let line = frame.current_line().map_or(-1, |line| line as i64);
            (source.what == "C", source.source.unwrap_or_default().into_owned(), line)
        })
    };
    let (mut level, mut passed, mut inside) = (2, false, false);
    loop {
        let (is_c, source, line) = frame(level)?;
        if source == PRELUDE_NAME || (inside && source == TAIL_CALL) {
            (passed, inside) = (false, true);
        } else if !is_c || passed {
            return Some((source, line));
        } else {
            (passed, inside) = (true, false);
        }
        level += 1;
    }
}

/// What Lua calls a frame that is not there any more.
const TAIL_CALL: &str = "=(tail call)";
/// The prelude's name, which no error may show.
pub const PRELUDE_NAME: &str = "=\u{1}";

/// The table of functions for the prelude.
///
/// # Errors
/// When memory is out.
pub fn table(lua: &Lua, shared: &std::rc::Rc<Shared>) -> mlua::Result<Table> {
    let host = lua.create_table()?;
    host.raw_set("api", api(lua, shared)?)?;
    host.raw_set("caught_value", lua.create_function(|lua, value: Value| raise::seen(lua, value))?)?;
    host.raw_set("where", lua.create_function(|lua, ()| Ok(place(lua).unzip()))?)?;
    let of = shared.clone();
    host.raw_set("random", lua.create_function(move |_, args: MultiValue| math_random(&of.random, &args))?)?;
    let of = shared.clone();
    let seed = move |_: &Lua, args: MultiValue| {
        of.random.seed(int_arg(&args, 0, "randomseed")?);
        Ok(())
    };
    host.raw_set("randomseed", lua.create_function(seed)?)?;
    let of = shared.clone();
    let register = move |lua: &Lua, args: MultiValue| match of.loading.borrow_mut().as_mut() {
        Some(loading) => loading.register(lua, &args),
        None => Err(raise("redis.register_function can only be called on FUNCTION LOAD command")),
    };
    host.raw_set("register_function", lua.create_function(register)?)?;
    Ok(host)
}

fn api(lua: &Lua, shared: &std::rc::Rc<Shared>) -> mlua::Result<Table> {
    let api = lua.create_table()?;
    let of = shared.clone();
    let make = lua.create_function(move |lua, ()| of.make(lua))?;
    api.raw_set("call", lua::function::<Call<true>>(lua, make.clone())?)?;
    api.raw_set("pcall", lua::function::<Call<false>>(lua, make)?)?;
    let of = shared.clone();
    api.raw_set("log", lua.create_function(move |lua, args: MultiValue| of.log(lua, &args))?)?;
    let of = shared.clone();
    api.raw_set("setresp", lua.create_function(move |_, args: MultiValue| of.setresp(&args))?)?;
    let of = shared.clone();
    api.raw_set("set_repl", lua.create_function(move |_, args: MultiValue| of.set_repl(&args))?)?;
    let of = shared.clone();
    api.raw_set("acl_check_cmd", lua.create_function(move |_, args: MultiValue| of.may_call(&args))?)?;
    api.raw_set("sha1hex", lua.create_function(|lua, args: MultiValue| sha1hex(lua, &args))?)?;
    for (name, value) in [
        ("LOG_DEBUG", 0),
        ("LOG_VERBOSE", 1),
        ("LOG_NOTICE", 2),
        ("LOG_WARNING", 3),
        ("REPL_NONE", 0),
        ("REPL_AOF", REPL_AOF),
        ("REPL_SLAVE", REPL_REPLICA),
        ("REPL_REPLICA", REPL_REPLICA),
        ("REPL_ALL", REPL_AOF | REPL_REPLICA),
    ] {
        api.raw_set(name, value)?;
    }
    api.raw_set("REDIS_VERSION", REDIS_VERSION)?;
    api.raw_set("REDIS_VERSION_NUM", version_number(REDIS_VERSION))?;
    Ok(api)
}

/// A version `a.b.c` as one number, a byte each.
fn version_number(version: &str) -> u32 {
    version.split('.').fold(0, |number, part| number << 8 | part.parse::<u32>().unwrap_or_default())
}
