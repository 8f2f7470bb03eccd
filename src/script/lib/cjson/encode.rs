//! From Lua values to JSON.
//!
//! A table is written while it is iterated over, until another table is met in it. Then it is set aside with the key
//! that was reached, and Lua's `next` goes on from there; so tables without tables, which are most, are the fast ones.

use mlua::{Error, LuaString, Result, Table, Value};

use super::super::call::{Call, type_name};
use super::{ARRAY_MARK, Config, Instance, Invalid, KEPT_BYTES_MAX, SLOTS_MAX};
use crate::base::num::{append_i64, f64_text_general};

/// What a byte becomes inside a string: itself (0), an escape of two bytes (its second), or `\u00xx` (`u`).
const ESCAPES: [u8; 256] = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 0x20 {
        table[byte] = b'u';
        byte += 1;
    }
    table[0x7f] = b'u';
    table[0x08] = b'b';
    table[b'\t' as usize] = b't';
    table[b'\n' as usize] = b'n';
    table[0x0c] = b'f';
    table[b'\r' as usize] = b'r';
    table[b'"' as usize] = b'"';
    table[b'/' as usize] = b'/';
    table[b'\\' as usize] = b'\\';
    table
};

/// `cjson.encode`.
pub(super) fn encode(json: &Instance, call: &Call<'_>) -> Result<Value> {
    if call.count() != 1 {
        return Err(call.bad_argument(1, "expected 1 argument"));
    }
    let config = json.config.get();
    // Taken, not borrowed: no call may find it in use.
    let mut out = json.buffer.take();
    out.clear();
    let mut encoder = Encoder { json, call, config, out, open: Vec::new(), slots: 1 };
    encoder.document(call.value(1))?;
    out = encoder.out;
    let text = call.lua.create_string(&out)?;
    if config.keep_buffer && out.capacity() <= KEPT_BYTES_MAX {
        json.buffer.replace(out);
    }
    Ok(Value::String(text))
}

/// A table that was set aside for one inside of it.
enum Open {
    Array { table: Table, index: usize, len: usize },
    Object { table: Table, key: Value },
}

impl Open {
    /// Slots of Lua's stack that the original would use for it.
    fn slots(&self) -> usize {
        match self {
            Open::Array { .. } => 1,
            Open::Object { .. } => 2,
        }
    }
}

struct Encoder<'a> {
    json: &'a Instance,
    call: &'a Call<'a>,
    config: Config,
    out: Vec<u8>,
    open: Vec<Open>,
    slots: usize,
}

impl Encoder<'_> {
    fn document(&mut self, value: &Value) -> Result<()> {
        let Value::Table(table) = value else { return self.scalar(value) };
        let mut inner = self.enter(table.clone())?;
        loop {
            inner = match inner {
                Some(table) => self.enter(table)?,
                None => match self.open.pop() {
                    Some(outer) => {
                        self.slots -= outer.slots();
                        self.resume(outer)?
                    }
                    None => return Ok(()),
                },
            }
        }
    }

    /// Sets a table aside.
    fn set_aside(&mut self, outer: Open) {
        self.slots += outer.slots();
        self.open.push(outer);
    }

    /// Begins a table. Gives the table that must be written before it goes on.
    fn enter(&mut self, table: Table) -> Result<Option<Table>> {
        let depth = self.open.len() + 1;
        let excessive = || self.call.failure(format!("Cannot serialise, excessive nesting ({depth})"));
        if depth > self.config.encode_depth_max as usize || self.slots + 3 > SLOTS_MAX {
            return Err(excessive());
        }
        match self.array_len(&table)? {
            Some(len) => {
                self.out.push(b'[');
                self.resume(Open::Array { table, index: 0, len })
            }
            None => self.enter_object(table),
        }
    }

    /// Begins an object, by the fast iteration up to the first table in it.
    fn enter_object(&mut self, table: Table) -> Result<Option<Table>> {
        let mut first = true;
        let mut inner = None;
        for pair in table.pairs::<Value, Value>() {
            let (key, value) = pair?;
            let bracket = if first { b'{' } else { b',' };
            first = false;
            self.out.push(bracket);
            self.key(&key)?;
            if let Value::Table(found) = value {
                inner = Some((key, found));
                break;
            }
            self.scalar(&value)?;
        }
        let Some((key, found)) = inner else {
            self.end_empty_or_object(first, &table)?;
            return Ok(None);
        };
        self.set_aside(Open::Object { table, key });
        Ok(Some(found))
    }

    /// Ends an object, or writes an empty one.
    fn end_empty_or_object(&mut self, empty: bool, table: &Table) -> Result<()> {
        let marked = || -> Result<bool> {
            let Some(metatable) = table.metatable() else { return Ok(false) };
            metatable.raw_get::<bool>(ARRAY_MARK)
        };
        match empty {
            false => self.out.push(b'}'),
            true if marked()? => self.out.extend_from_slice(b"[]"),
            true => self.out.extend_from_slice(b"{}"),
        }
        Ok(())
    }

    /// Goes on with a table that has begun.
    fn resume(&mut self, outer: Open) -> Result<Option<Table>> {
        match outer {
            Open::Array { table, index, len } => self.resume_array(table, index, len),
            Open::Object { table, key } => self.resume_object(table, key),
        }
    }

    fn resume_array(&mut self, table: Table, index: usize, len: usize) -> Result<Option<Table>> {
        for index in index + 1..=len {
            if index > 1 {
                self.out.push(b',');
            }
            let value = table.raw_get::<Value>(index)?;
            if let Value::Table(found) = value {
                self.set_aside(Open::Array { table, index, len });
                return Ok(Some(found));
            }
            self.scalar(&value)?;
        }
        self.out.push(b']');
        Ok(None)
    }

    fn resume_object(&mut self, table: Table, mut key: Value) -> Result<Option<Table>> {
        loop {
            let (next, value): (Value, Value) = self.json.shared.next.call((&table, key))?;
            if next.is_nil() {
                self.out.push(b'}');
                return Ok(None);
            }
            self.out.push(b',');
            self.key(&next)?;
            if let Value::Table(found) = value {
                self.set_aside(Open::Object { table, key: next });
                return Ok(Some(found));
            }
            self.scalar(&value)?;
            key = next;
        }
    }

    /// The length of a table that is an array; empty ones are objects.
    fn array_len(&self, table: &Table) -> Result<Option<usize>> {
        // In 32 bits and with what becomes of larger keys there, as in Redis, where such a table's form can depend on
        // the order of its keys.
        let (mut largest, mut count) = (0_i32, 0_i32);
        // Truth values in place of the elements keep those from being looked at.
        for pair in table.pairs::<Value, bool>() {
            let key = match pair?.0 {
                Value::Integer(key) => key as f64,
                Value::Number(key) => key,
                _ => return Ok(None),
            };
            if key.floor() != key || key < 1.0 {
                return Ok(None);
            }
            if key > f64::from(largest) {
                largest = if key <= f64::from(i32::MAX) { key as i32 } else { i32::MIN };
            }
            count = count.saturating_add(1);
        }
        let Config { sparse_ratio: ratio, sparse_safe: safe, sparse_convert: convert, .. } = self.config;
        if ratio > 0 && largest > count.saturating_mul(ratio) && largest > safe {
            return if convert { Ok(None) } else { Err(self.refused("table", "excessively sparse array")) };
        }
        Ok(usize::try_from(largest).ok().filter(|len| *len > 0))
    }

    #[cold]
    fn refused(&self, what: &str, why: &str) -> Error {
        self.call.failure(format!("Cannot serialise {what}: {why}"))
    }

    /// A key with its colon.
    fn key(&mut self, key: &Value) -> Result<()> {
        match key {
            Value::String(text) => self.text(text),
            Value::Integer(_) | Value::Number(_) => {
                self.out.push(b'"');
                self.scalar(key)?;
                self.out.push(b'"');
            }
            _ => return Err(self.refused(type_name(key), "table key must be a number or string")),
        }
        self.out.push(b':');
        Ok(())
    }

    /// A value that is no table.
    fn scalar(&mut self, value: &Value) -> Result<()> {
        match value {
            Value::String(text) => self.text(text),
            Value::Integer(value) => self.integer(*value),
            Value::Number(value) => self.number(*value)?,
            Value::Boolean(true) => self.out.extend_from_slice(b"true"),
            Value::Boolean(false) => self.out.extend_from_slice(b"false"),
            Value::Nil => self.out.extend_from_slice(b"null"),
            Value::LightUserData(pointer) if pointer.0.is_null() => self.out.extend_from_slice(b"null"),
            _ => return Err(self.refused(type_name(value), "type not supported")),
        }
        Ok(())
    }

    fn integer(&mut self, value: i64) {
        if value.unsigned_abs() < 10_u64.pow(self.config.precision as u32) {
            append_i64(&mut self.out, value);
        } else {
            self.out.extend_from_slice(&f64_text_general(value as f64, self.config.precision as usize));
        }
    }

    fn number(&mut self, value: f64) -> Result<()> {
        match self.config.encode_invalid {
            Invalid::Refused if !value.is_finite() => {
                return Err(self.refused("number", "must not be NaN or Inf"));
            }
            Invalid::Null if !value.is_finite() => self.out.extend_from_slice(b"null"),
            _ => self.out.extend_from_slice(&f64_text_general(value, self.config.precision as usize)),
        }
        Ok(())
    }

    fn text(&mut self, text: &LuaString) {
        append_text(&mut self.out, &text.as_bytes());
    }
}

/// Appends a string in quotes. Bytes above 127 are taken as they are.
fn append_text(out: &mut Vec<u8>, text: &[u8]) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    out.reserve(text.len() + 2);
    out.push(b'"');
    let mut rest = text;
    while let Some(at) = rest.iter().position(|byte| ESCAPES[usize::from(*byte)] != 0) {
        let byte = rest[at];
        out.extend_from_slice(&rest[..at]);
        match ESCAPES[usize::from(byte)] {
            b'u' => out.extend_from_slice(&[
                b'\\',
                b'u',
                b'0',
                b'0',
                DIGITS[usize::from(byte >> 4)],
                DIGITS[usize::from(byte & 15)],
            ]),
            second => out.extend_from_slice(&[b'\\', second]),
        }
        rest = &rest[at + 1..];
    }
    out.extend_from_slice(rest);
    out.push(b'"');
}
