//! Loading a library: its first line, and the functions that it registers.
//!
//! The texts of refusals are Redis's.
use std::time::Instant;

use mlua::{Function, Lua, LuaString, MultiValue, Table, Value};

use super::flags::{Flags, first_line, says};
use super::host::text_of;
use super::raise::raise;
use crate::base::clock;
use crate::rt::log::{self, Level};
use crate::wire::Error;
use crate::wire::inline::split_words;

/// A library must have registered its functions after this time.
const LOAD_MS_MAX: u128 = 500;

/// What a library's first line says.
#[derive(Debug)]
pub struct Head {
    /// The library's name.
    pub name: String,
    /// Where the code begins: at the end of the first line.
    pub code_at: usize,
}

/// Reads the first line of a library, `#!lua name=...`.
///
/// # Errors
/// When it is not of that form.
pub fn head(code: &[u8]) -> Result<Head, Error> {
    if !code.starts_with(b"#!") {
        return Err(Error::err("Missing library metadata"));
    }
    let invalid = || Error::err("Invalid library metadata");
    let line = first_line(code).ok_or_else(invalid)?;
    let words = split_words(line).filter(|words| !words.is_empty()).ok_or_else(invalid)?;
    let mut name = None;
    for word in &words[1..] {
        match word.split_at_checked(5) {
            Some((key, value)) if key.eq_ignore_ascii_case(b"name=") => {
                if name.replace(value).is_some() {
                    return Err(Error::err("Invalid metadata value, name argument was given multiple times"));
                }
            }
            _ => return Err(says("Invalid metadata value given: ", word)),
        }
    }
    let name = name.ok_or_else(|| Error::err("Library name was not given"))?;
    let name = checked_name(name).ok_or_else(|| Error::err(BAD_NAME))?;
    if !words[0][2..].eq_ignore_ascii_case(b"lua") {
        return Err(Error::err(format_args!(
            "Engine '{}' not found",
            String::from_utf8_lossy(&words[0][2..])
        )));
    }
    Ok(Head { name, code_at: line.len() })
}

const BAD_NAME: &str = "Library names can only contain letters, numbers, or underscores(_) and must be at least \
                        one character long";

fn checked_name(name: &[u8]) -> Option<String> {
    let fine = !name.is_empty() && name.iter().all(|b| b.is_ascii_alphanumeric() || *b == b'_');
    fine.then(|| String::from_utf8_lossy(name).into_owned())
}

/// A function that was registered.
pub struct Registered {
    /// Its name.
    pub name: String,
    /// For people.
    pub description: Option<Vec<u8>>,
    /// What it says about itself.
    pub flags: Flags,
    /// The code.
    pub callback: Function,
}

/// A library that is being loaded.
pub struct Loading {
    /// What it has registered.
    pub functions: Vec<Registered>,
    began: Instant,
    logs: bool,
}

impl Loading {
    /// Begins. The library may write to the log if it `logs`.
    pub fn new(logs: bool) -> Loading {
        Loading { functions: Vec::new(), began: clock::instant(), logs }
    }

    /// `redis.log`.
    pub fn log(&self, level: Level, text: &[u8]) {
        if self.logs {
            log::line(level, &String::from_utf8_lossy(text));
        }
    }

    /// Whether it has taken too long.
    pub fn is_late(&self) -> bool {
        self.began.elapsed().as_millis() > LOAD_MS_MAX
    }

    /// `redis.register_function`.
    ///
    /// # Errors
    /// Raises what is wrong with the arguments.
    pub fn register(&mut self, lua: &Lua, args: &MultiValue) -> mlua::Result<()> {
        let function = match args.len() {
            1 => named(lua, &args[0])?,
            2 => positional(lua, &args[0], &args[1])?,
            _ => return Err(raise("wrong number of arguments to redis.register_function")),
        };
        if self.functions.iter().any(|other| other.name == function.name) {
            return Err(raise("Function already exists in the library"));
        }
        self.functions.push(function);
        Ok(())
    }
}

fn function_name(name: &[u8]) -> mlua::Result<String> {
    checked_name(name).ok_or_else(|| raise(BAD_NAME))
}

fn positional(lua: &Lua, name: &Value, callback: &Value) -> mlua::Result<Registered> {
    let name = text_of(lua, name)?
        .ok_or_else(|| raise("first argument to redis.register_function must be a string"))?;
    let Value::Function(callback) = callback else {
        return Err(raise("second argument to redis.register_function must be a function"));
    };
    let (name, callback) = (function_name(&name)?, callback.clone());
    Ok(Registered { name, description: None, flags: Flags::default(), callback })
}

fn named(lua: &Lua, args: &Value) -> mlua::Result<Registered> {
    let Value::Table(args) = args else {
        return Err(raise(
            "calling redis.register_function with a single argument is only applicable to Lua table \
             (representing named arguments).",
        ));
    };
    let (mut name, mut description, mut flags, mut callback) = (None, None, Flags::default(), None);
    for pair in args.pairs::<Value, Value>() {
        let (key, value) = pair?;
        let not_string = "named argument key given to redis.register_function is not a string";
        let key = text_of(lua, &key)?.ok_or_else(|| raise(not_string))?.to_ascii_lowercase();
        match (&key[..], &value) {
            (b"function_name", _) => {
                let refusal = "function_name argument given to redis.register_function must be a string";
                name = Some(text_of(lua, &value)?.ok_or_else(|| raise(refusal))?);
            }
            (b"description", _) => {
                let refusal = "description argument given to redis.register_function must be a string";
                description = Some(text_of(lua, &value)?.ok_or_else(|| raise(refusal))?);
            }
            (b"callback", Value::Function(function)) => callback = Some(function.clone()),
            (b"callback", _) => {
                return Err(raise("callback argument given to redis.register_function must be a function"));
            }
            (b"flags", Value::Table(list)) => flags = flag_list(list)?,
            (b"flags", _) => {
                return Err(raise(
                    "flags argument to redis.register_function must be a table representing function flags",
                ));
            }
            _ => return Err(raise("unknown argument given to redis.register_function")),
        }
    }
    let name = name.ok_or_else(|| raise("redis.register_function must get a function name argument"))?;
    let callback = callback.ok_or_else(|| raise("redis.register_function must get a callback argument"))?;
    Ok(Registered { name: function_name(&name)?, description, flags, callback })
}

fn flag_list(list: &Table) -> mlua::Result<Flags> {
    let (mut flags, mut index) = (Flags::default(), 1);
    loop {
        let flag = match list.raw_get::<Value>(index)? {
            Value::Nil => return Ok(flags),
            Value::String(name) => flag_named(&name),
            _ => None,
        };
        flags = flags.with(flag.ok_or_else(|| raise("unknown flag given"))?);
        index += 1;
    }
}

fn flag_named(name: &LuaString) -> Option<Flags> {
    Flags::named(&name.as_bytes().to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_are_read() {
        let head = head(b"#!lua name=lib\nreturn").unwrap();
        assert_eq!((&head.name[..], head.code_at), ("lib", 14));
    }

    #[test]
    fn refusals_are_those_of_redis() {
        let refusal = |code: &str| head(code.as_bytes()).unwrap_err().to_string();
        let bad_name = format!("ERR {BAD_NAME}");
        for (code, text) in [
            ("x", "ERR Missing library metadata"),
            ("#!lua", "ERR Invalid library metadata"),
            ("#!lua\nx", "ERR Library name was not given"),
            ("#!lua name=\nx", &bad_name),
            ("#!lua name=a-b\nx", &bad_name),
            ("#!LUA name=a foo=b\nx", "ERR Invalid metadata value given: foo=b"),
            ("#!js name=a\nx", "ERR Engine 'js' not found"),
            ("#!lua name=a name=b\nx", "ERR Invalid metadata value, name argument was given multiple times"),
        ] {
            assert_eq!(refusal(code), text);
        }
    }
}
