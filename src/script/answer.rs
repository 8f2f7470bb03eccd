//! What a script returns, as a reply of the server.
//!
//! Numbers are cut to integers, `false` and `nil` are null, `true` is 1 (unless the script chose RESP3), tables are
//! arrays up to the first `nil`, unless they have one of the telling keys `err`, `ok`, `double`, `big_number`,
//! `verbatim_string`, `map`, `set`. Nesting costs memory of a list, not of the stack, and is limited where Redis's is:
//! a table may contain itself.
use mlua::{Function, Lua, LuaString, Table, Value};

use crate::wire::{Out, Protocol};

/// Redis counts the slots of Lua's stack, of which there are 8,000; some are in use.
const SLOTS_MAX: usize = 7_900;

/// The telling keys, made once.
#[derive(Debug)]
pub struct Keys {
    err: LuaString,
    ok: LuaString,
    double: LuaString,
    big_number: LuaString,
    verbatim_string: LuaString,
    map: LuaString,
    set: LuaString,
    next: Function,
}

impl Keys {
    /// Makes them. `next` is Lua's function of that name.
    pub fn new(lua: &Lua, next: Function) -> mlua::Result<Keys> {
        Ok(Keys {
            err: lua.create_string("err")?,
            ok: lua.create_string("ok")?,
            double: lua.create_string("double")?,
            big_number: lua.create_string("big_number")?,
            verbatim_string: lua.create_string("verbatim_string")?,
            map: lua.create_string("map")?,
            set: lua.create_string("set")?,
            next,
        })
    }
}

/// A table whose parts are being written.
enum Open {
    Array {
        table: Table,
        index: usize,
        mark: usize,
    },
    /// `value` waits while its key is written.
    Map {
        table: Table,
        key: Value,
        value: Option<Value>,
        count: usize,
        mark: usize,
    },
    Set {
        table: Table,
        key: Value,
        count: usize,
        mark: usize,
    },
}

impl Open {
    /// Slots of the stack that this takes in Redis while a part of it is written.
    fn slots(&self) -> usize {
        match self {
            Open::Array { .. } => 1,
            Open::Map { .. } => 4,
            Open::Set { .. } => 3,
        }
    }
}

/// Writes values to a reply.
pub struct Answer<'a> {
    keys: &'a Keys,
    out: &'a mut Out,
    /// The protocol that the script chose.
    chosen: Protocol,
    /// Told of each error, and whether it was counted.
    failed: &'a mut dyn FnMut(&[u8], bool),
}

impl<'a> Answer<'a> {
    /// Writes to `out` for a script that chose `chosen`; tells `failed` of errors.
    pub fn new(
        keys: &'a Keys,
        out: &'a mut Out,
        chosen: Protocol,
        failed: &'a mut dyn FnMut(&[u8], bool),
    ) -> Answer<'a> {
        Answer { keys, out, chosen, failed }
    }

    /// Writes `value`.
    pub fn write(&mut self, value: &Value) {
        if let Some(open) = self.begin(value) {
            self.write_parts(open);
        }
    }

    fn write_parts(&mut self, open: Open) {
        let (mut stack, mut slots) = (vec![open], 2);
        slots += stack[0].slots();
        while let Some(top) = stack.last_mut() {
            match self.part(top) {
                None => {
                    slots -= top.slots();
                    stack.pop();
                }
                Some(_) if slots >= SLOTS_MAX => self.error_line(b"ERR reached lua stack limit", false),
                Some(part) => {
                    if let Some(open) = self.begin(&part) {
                        slots += open.slots();
                        stack.push(open);
                    }
                }
            }
        }
    }

    /// Writes `value`, or the beginning of it, if it has parts.
    fn begin(&mut self, value: &Value) -> Option<Open> {
        match value {
            Value::String(text) => self.out.bulk(&text.as_bytes()),
            Value::Integer(n) => self.out.int(*n),
            Value::Number(n) => self.out.int(cut(*n)),
            Value::Boolean(yes) if self.chosen == Protocol::Resp3 => self.out.boolean(*yes),
            Value::Boolean(true) => self.out.int(1),
            Value::Table(table) => return self.table(table),
            _ => self.out.null(),
        }
        None
    }

    fn table(&mut self, table: &Table) -> Option<Open> {
        let keys = self.keys;
        let get = |key: &LuaString| table.raw_get::<Value>(key).unwrap_or(Value::Nil);
        if let Value::String(text) = get(&keys.err) {
            let counted = matches!(table.raw_get("ignore_error_stats_update"), Ok(Value::Boolean(true)));
            self.error_line(&text.as_bytes(), counted);
        } else if let Value::String(text) = get(&keys.ok) {
            let text = text.as_bytes();
            self.line(b'+', &blanked(before_zero(&text)));
        } else if let Value::Number(value) = numeric(get(&keys.double)) {
            self.out.double(value);
        } else if let Value::String(text) = get(&keys.big_number) {
            self.big_number(&blanked(&text.as_bytes()));
        } else if self.verbatim(&get(&keys.verbatim_string)) {
        } else {
            return Some(self.open(table, get(&keys.map), &keys.set));
        }
        None
    }

    fn open(&mut self, table: &Table, map: Value, set: &LuaString) -> Open {
        let mark = self.out.mark();
        if let Value::Table(table) = map {
            return Open::Map { table, key: Value::Nil, value: None, count: 0, mark };
        }
        match table.raw_get(set) {
            Ok(Value::Table(table)) => Open::Set { table, key: Value::Nil, count: 0, mark },
            _ => Open::Array { table: table.clone(), index: 0, mark },
        }
    }

    /// Whether `value` is a verbatim string; then it was written.
    fn verbatim(&mut self, value: &Value) -> bool {
        let Value::Table(table) = value else { return false };
        let (Ok(Value::String(format)), Ok(Value::String(text))) =
            (table.raw_get("format"), table.raw_get("string"))
        else {
            return false;
        };
        let mut letters = [b' '; 3];
        letters.iter_mut().zip(format.as_bytes().iter()).for_each(|(to, from)| *to = *from);
        self.out.verbatim(&String::from_utf8_lossy(&letters), &text.as_bytes());
        true
    }

    /// The next part of `open`; when there is none, its head is put before the others.
    fn part(&mut self, open: &mut Open) -> Option<Value> {
        let keys = self.keys;
        match open {
            Open::Array { table, index, mark } => {
                let part = table.raw_get(*index + 1).unwrap_or(Value::Nil);
                if part == Value::Nil {
                    self.out.insert_at(*mark, |out| out.array(*index));
                    return None;
                }
                *index += 1;
                Some(part)
            }
            Open::Map { table, key, value, count, mark } => {
                if let Some(value) = value.take() {
                    return Some(value);
                }
                let Some((next, part)) = step(&keys.next, table, key) else {
                    self.out.insert_at(*mark, |out| out.map(*count));
                    return None;
                };
                *count += 1;
                (*key, *value) = (next.clone(), Some(part));
                Some(next)
            }
            Open::Set { table, key, count, mark } => {
                let Some((next, _)) = step(&keys.next, table, key) else {
                    self.out.insert_at(*mark, |out| out.set(*count));
                    return None;
                };
                *count += 1;
                *key = next.clone();
                Some(next)
            }
        }
    }

    /// Writes an error; `text` begins with its code.
    pub fn error_line(&mut self, text: &[u8], counted: bool) {
        let text = line(text);
        self.line(b'-', &text);
        (self.failed)(&text, counted);
    }

    fn big_number(&mut self, digits: &[u8]) {
        match self.out.protocol {
            Protocol::Resp3 => self.line(b'(', digits),
            Protocol::Resp2 => self.out.bulk(digits),
        }
    }

    fn line(&mut self, kind: u8, text: &[u8]) {
        self.out.buf.push(kind);
        self.out.buf.extend_from_slice(text);
        self.out.buf.extend_from_slice(b"\r\n");
    }
}

/// The entry of `table` after `key`.
fn step(next: &Function, table: &Table, key: &Value) -> Option<(Value, Value)> {
    let (key, value): (Value, Value) = next.call((table, key)).ok()?;
    (key != Value::Nil).then_some((key, value))
}

/// Lua has one kind of numbers, the crate shows two.
fn numeric(value: Value) -> Value {
    if let Value::Integer(n) = value { Value::Number(n as f64) } else { value }
}

/// A number as an integer, like the processor's own conversion: what does not fit is the least integer.
fn cut(n: f64) -> i64 {
    const END: f64 = (1_u64 << 63) as f64;
    if (-END..END).contains(&n) { n as i64 } else { i64::MIN }
}

/// A text that fits one line: up to the first zero byte, without line ends behind it, other line ends blank.
pub fn line(text: &[u8]) -> Vec<u8> {
    let text = before_zero(text);
    let is_end = |b: &u8| matches!(b, b'\r' | b'\n');
    let end = text.iter().rposition(|b| !is_end(b)).map_or(0, |at| at + 1);
    blanked(&text[..end])
}

fn before_zero(text: &[u8]) -> &[u8] {
    &text[..memchr::memchr(0, text).unwrap_or(text.len())]
}

fn blanked(text: &[u8]) -> Vec<u8> {
    text.iter().map(|b| if matches!(b, b'\r' | b'\n') { b' ' } else { *b }).collect()
}
