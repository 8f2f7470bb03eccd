//! From JSON to Lua values.
//!
//! A container is put into the one around it before it is filled, so an open one is just a table on a list.

use mlua::{Error, IntoLua, LightUserData, Lua, Result, Table, Value};

use super::super::call::Call;
use super::lexer::{Kind, Lexer, Text, Token};
use super::{Config, Instance, SLOTS_MAX};

/// `cjson.decode`.
pub(super) fn decode(json: &Instance, call: &Call<'_>) -> Result<Value> {
    if call.count() != 1 {
        return Err(call.bad_argument(1, "expected 1 argument"));
    }
    let text = call.string(1)?;
    let data = &*text.as_bytes();
    // The first character is ASCII in any JSON text, so a NUL byte gives wider encodings away.
    if let [0, _, ..] | [_, 0, ..] = data {
        return Err(call.failure("JSON parser does not support UTF-16 or UTF-32"));
    }
    let config = json.config.get();
    let mut decoder = Decoder {
        json,
        call,
        config,
        lexer: Lexer::new(data, config.decode_invalid),
        key: Text::Plain(0, 0),
        key_unescaped: Vec::new(),
        open: Vec::new(),
        slots: 1,
        root: Value::Nil,
    };
    decoder.document()?;
    Ok(decoder.root)
}

/// A table that is being filled.
struct Open {
    table: Table,
    /// The place of the next element; zero: an object.
    index: usize,
}

struct Decoder<'a> {
    json: &'a Instance,
    call: &'a Call<'a>,
    config: Config,
    lexer: Lexer<'a>,
    /// The key of the value that comes next, if that is in an object.
    key: Text,
    /// Its bytes if it had escapes.
    key_unescaped: Vec<u8>,
    open: Vec<Open>,
    /// Slots of Lua's stack that the original would use.
    slots: usize,
    root: Value,
}

impl Decoder<'_> {
    fn document(&mut self) -> Result<()> {
        let mut token = self.lexer.next();
        loop {
            if let Some(first) = self.value(token)? {
                token = first;
                continue;
            }
            match self.behind_value()? {
                Some(next) => token = next,
                None => return Ok(()),
            }
        }
    }

    /// Takes a value in. Gives the first token of the value inside of it if it is a container that holds any.
    fn value(&mut self, token: Token) -> Result<Option<Token>> {
        match token.kind {
            Kind::Text(text) => self.text(text)?,
            Kind::Number(value) => self.add(value)?,
            Kind::Boolean(value) => self.add(value)?,
            Kind::Null => self.add(LightUserData(std::ptr::null_mut()))?,
            Kind::ArrayBegin => {
                let table = self.begin(2)?;
                if self.config.mark_arrays {
                    table.set_metatable(Some(self.json.shared.array_mark.clone()))?;
                }
                let first = self.lexer.next();
                if first.kind != Kind::ArrayEnd {
                    self.slots += 1;
                    self.open.push(Open { table, index: 1 });
                    return Ok(Some(first));
                }
            }
            Kind::ObjectBegin => {
                let table = self.begin(3)?;
                let first = self.lexer.next();
                if first.kind != Kind::ObjectEnd {
                    self.slots += 2;
                    self.open.push(Open { table, index: 0 });
                    return self.key(first).map(Some);
                }
            }
            _ => return Err(self.expected("value", token)),
        }
        Ok(None)
    }

    /// Goes on behind a value. Gives the first token of the next one; `None`: the document is complete.
    fn behind_value(&mut self) -> Result<Option<Token>> {
        loop {
            let token = self.lexer.next();
            let Some(outer) = self.open.last_mut() else {
                return if token.kind == Kind::End { Ok(None) } else { Err(self.expected("the end", token)) };
            };
            let in_array = outer.index > 0;
            match token.kind {
                Kind::Comma if in_array => {
                    outer.index += 1;
                    return Ok(Some(self.lexer.next()));
                }
                Kind::Comma => {
                    let key = self.lexer.next();
                    return self.key(key).map(Some);
                }
                Kind::ArrayEnd if in_array => self.slots -= 1,
                Kind::ObjectEnd if !in_array => self.slots -= 2,
                _ if in_array => return Err(self.expected("comma or array end", token)),
                _ => return Err(self.expected("comma or object end", token)),
            }
            self.open.pop();
        }
    }

    /// Takes a key and its colon in. Gives the first token of the value.
    fn key(&mut self, token: Token) -> Result<Token> {
        let Kind::Text(text) = token.kind else { return Err(self.expected("object key string", token)) };
        self.key = text;
        if text == Text::Unescaped {
            std::mem::swap(&mut self.key_unescaped, &mut self.lexer.unescaped);
        }
        let colon = self.lexer.next();
        if colon.kind != Kind::Colon {
            return Err(self.expected("colon", colon));
        }
        Ok(self.lexer.next())
    }

    /// A new container in its place. The original would ask for so many slots of Lua's stack.
    fn begin(&mut self, slots: usize) -> Result<Table> {
        let depth = self.open.len() + 1;
        if depth > self.config.decode_depth_max as usize || self.slots + slots > SLOTS_MAX {
            let at = self.lexer.at;
            return Err(self
                .call
                .failure(format!("Found too many nested data structures ({depth}) at character {at}")));
        }
        let table = self.call.lua.create_table()?;
        self.add(&table)?;
        Ok(table)
    }

    /// Puts a value in its place.
    fn add<V: IntoLua>(&mut self, value: V) -> Result<()> {
        let Some(outer) = self.open.last() else {
            self.root = value.into_lua(self.call.lua)?;
            return Ok(());
        };
        let key = bytes_of(self.key, self.lexer.data, &self.key_unescaped);
        put(self.call.lua, outer, key, value)
    }

    /// Puts a string in its place.
    fn text(&mut self, text: Text) -> Result<()> {
        let lua = self.call.lua;
        let bytes = bytes_of(text, self.lexer.data, &self.lexer.unescaped);
        let Some(outer) = self.open.last() else {
            self.root = Value::String(lua.create_string(bytes)?);
            return Ok(());
        };
        let key = bytes_of(self.key, self.lexer.data, &self.key_unescaped);
        // Lua takes text at once, other bytes by way of a reference.
        match std::str::from_utf8(bytes) {
            Ok(text) => put(lua, outer, key, text),
            Err(_) => put(lua, outer, key, lua.create_string(bytes)?),
        }
    }

    #[cold]
    fn expected(&self, what: &str, token: Token) -> Error {
        let (found, character) = (token.kind.name(), token.at + 1);
        self.call.failure(format!("Expected {what} but found {found} at character {character}"))
    }
}

fn bytes_of<'a>(text: Text, data: &'a [u8], unescaped: &'a [u8]) -> &'a [u8] {
    match text {
        Text::Plain(from, to) => &data[from..to],
        Text::Unescaped => unescaped,
    }
}

fn put(lua: &Lua, outer: &Open, key: &[u8], value: impl IntoLua) -> Result<()> {
    if outer.index > 0 {
        return outer.table.raw_seti(outer.index, value);
    }
    match std::str::from_utf8(key) {
        Ok(key) => outer.table.raw_set(key, value),
        Err(_) => outer.table.raw_set(lua.create_string(key)?, value),
    }
}
