//! A reply of the server as a Lua value, for `redis.call`.
//!
//! Integers become numbers, bulk strings texts, null `false`; a status `{ok = ...}`, an error `{err = ...}`. What only
//! RESP3 has becomes a table with one telling key: `map`, `set`, `double`, `big_number`, `verbatim_string`; its null is
//! `nil`. Attributes are passed over.
use mlua::{Error, Lua, Table, Value};

use super::raise;

/// The server's own replies are never nested deeper.
const DEPTH_MAX: usize = 64;

/// Reads the first reply of `bytes`.
///
/// # Errors
/// When it is cut short or nested too deep, or memory is out.
#[inline]
pub fn to_value(lua: &Lua, bytes: &[u8]) -> mlua::Result<Value> {
    Reader { lua, bytes, at: 0 }.value(0)
}

struct Reader<'a> {
    lua: &'a Lua,
    bytes: &'a [u8],
    at: usize,
}

fn cut() -> Error {
    raise::raise("a reply of the server could not be read")
}

fn number(line: &[u8]) -> mlua::Result<i64> {
    crate::base::num::parse_i64(line).ok_or_else(cut)
}

impl<'a> Reader<'a> {
    fn line(&mut self) -> mlua::Result<&'a [u8]> {
        let rest = &self.bytes[self.at..];
        let end =
            memchr::memchr(b'\r', rest).filter(|end| rest.get(end + 1) == Some(&b'\n')).ok_or_else(cut)?;
        self.at += end + 2;
        Ok(&rest[..end])
    }

    /// A length that was announced; `None` for -1.
    fn length(&mut self) -> mlua::Result<Option<usize>> {
        Ok(usize::try_from(number(self.line()?)?).ok())
    }

    fn blob(&mut self, length: usize) -> mlua::Result<&'a [u8]> {
        let blob = self.bytes.get(self.at..self.at.saturating_add(length)).ok_or_else(cut)?;
        self.at = (self.at + length + 2).min(self.bytes.len());
        Ok(blob)
    }

    fn value(&mut self, depth: usize) -> mlua::Result<Value> {
        let kind = *self.bytes.get(self.at).ok_or_else(cut)?;
        self.at += 1;
        match kind {
            b':' => Ok(Value::Number(number(self.line()?)? as f64)),
            b'$' => match self.length()? {
                Some(length) => self.string(length),
                None => Ok(Value::Boolean(false)),
            },
            b'*' | b'>' => match self.length()? {
                Some(count) => self.array(count, depth),
                None => Ok(Value::Boolean(false)),
            },
            _ => self.rare(kind, depth),
        }
    }

    fn string(&mut self, length: usize) -> mlua::Result<Value> {
        let blob = self.blob(length)?;
        Ok(Value::String(self.lua.create_string(blob)?))
    }

    fn rare(&mut self, kind: u8, depth: usize) -> mlua::Result<Value> {
        match kind {
            b'+' => {
                let line = self.line()?;
                self.tagged("ok", Value::String(self.lua.create_string(line)?))
            }
            b'-' => Ok(Value::Table(raise::reply_table(self.lua, self.line()?)?)),
            b'_' => self.line().map(|_| Value::Nil),
            b'#' => Ok(Value::Boolean(self.line()? == b"t")),
            b',' => {
                let value = crate::base::num::parse_f64(self.line()?).unwrap_or(f64::NAN);
                self.tagged("double", Value::Number(value))
            }
            b'(' => {
                let line = self.line()?;
                self.tagged("big_number", Value::String(self.lua.create_string(line)?))
            }
            b'=' => self.verbatim(),
            b'%' => self.map(depth),
            b'~' => self.set(depth),
            b'|' => {
                for _ in 0..2 * self.length()?.unwrap_or_default() {
                    self.nested(depth)?;
                }
                self.value(depth)
            }
            _ => Err(cut()),
        }
    }

    fn tagged(&self, key: &str, value: Value) -> mlua::Result<Value> {
        let table = self.lua.create_table_with_capacity(0, 1)?;
        table.raw_set(key, value)?;
        Ok(Value::Table(table))
    }

    fn nested(&mut self, depth: usize) -> mlua::Result<Value> {
        if depth >= DEPTH_MAX { Err(cut()) } else { self.value(depth + 1) }
    }

    /// Room for `count` parts, of which each takes three bytes at least.
    fn table(&self, count: usize, array: bool) -> mlua::Result<Table> {
        let count = count.min((self.bytes.len() - self.at) / 3);
        if array {
            self.lua.create_table_with_capacity(count, 0)
        } else {
            self.lua.create_table_with_capacity(0, count)
        }
    }

    fn array(&mut self, count: usize, depth: usize) -> mlua::Result<Value> {
        let table = self.table(count, true)?;
        for index in 1..=count {
            table.raw_set(index, self.nested(depth)?)?;
        }
        Ok(Value::Table(table))
    }

    fn map(&mut self, depth: usize) -> mlua::Result<Value> {
        let pairs = self.length()?.unwrap_or_default();
        let table = self.table(pairs, false)?;
        for _ in 0..pairs {
            let key = self.nested(depth)?;
            let value = self.nested(depth)?;
            if key != Value::Nil {
                table.raw_set(key, value)?;
            }
        }
        self.tagged("map", Value::Table(table))
    }

    fn set(&mut self, depth: usize) -> mlua::Result<Value> {
        let count = self.length()?.unwrap_or_default();
        let table = self.table(count, false)?;
        for _ in 0..count {
            let member = self.nested(depth)?;
            if member != Value::Nil {
                table.raw_set(member, true)?;
            }
        }
        self.tagged("set", Value::Table(table))
    }

    fn verbatim(&mut self) -> mlua::Result<Value> {
        let length = self.length()?.unwrap_or_default();
        let blob = self.blob(length)?;
        let (format, text) = (blob.get(..3).unwrap_or_default(), blob.get(4..).unwrap_or_default());
        let table = self.lua.create_table_with_capacity(0, 2)?;
        table.raw_set("format", self.lua.create_string(format)?)?;
        table.raw_set("string", self.lua.create_string(text)?)?;
        self.tagged("verbatim_string", Value::Table(table))
    }
}
