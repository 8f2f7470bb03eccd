//! Errors on their way through Lua.
//!
//! A function of the server cannot raise a table: what it returns as an error travels as an opaque value until a
//! `pcall`, an `xpcall`, a coroutine's end or the handler of the whole script catches it. There it becomes what a
//! script of Redis would have caught: a table `{err = ...}` for the functions of `redis`, a text with the place of the
//! call for all others. The place is in the traceback that the error carries.
use std::fmt;

use super::lib::guard;
use mlua::{Error, Lua, Table, Value};

/// An error of a function of `redis`: `{err = text}` for who catches it.
#[derive(Debug, Clone)]
pub struct Raised {
    text: Vec<u8>,
    counted: bool,
}

impl fmt::Display for Raised {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&String::from_utf8_lossy(&self.text))
    }
}

impl std::error::Error for Raised {}

/// An error with the code `ERR`, raised by a function of `redis`.
#[cold]
pub fn raise(text: &str) -> Error {
    Error::external(Raised { text: format!("ERR {text}").into_bytes(), counted: false })
}

/// The table for an error reply `line` of a command, which `redis.pcall` returns and `redis.call` raises.
#[cold]
pub fn reply_table(lua: &Lua, line: &[u8]) -> mlua::Result<Table> {
    table(lua, &Raised { text: with_code(line), counted: true })
}

/// The table for an error that [`raise`] would raise.
#[cold]
pub fn refusal_table(lua: &Lua, text: &str) -> mlua::Result<Table> {
    table(lua, &Raised { text: format!("ERR {text}").into_bytes(), counted: false })
}

/// An error reply always has a code word.
fn with_code(line: &[u8]) -> Vec<u8> {
    if line.contains(&b' ') { line.to_vec() } else { [b"ERR ", line].concat() }
}

fn table(lua: &Lua, raised: &Raised) -> mlua::Result<Table> {
    let table = lua.create_table_with_capacity(0, 4)?;
    table.raw_set("err", lua.create_string(&raised.text)?)?;
    if raised.counted {
        table.raw_set("ignore_error_stats_update", true)?;
    }
    Ok(table)
}

/// What a script sees of `value`, which it caught.
pub fn seen(lua: &Lua, value: Value) -> mlua::Result<Value> {
    let Value::Error(error) = value else { return Ok(value) };
    let (cause, place) = unwrap(&error);
    if let Error::ExternalError(inner) = cause
        && let Some(raised) = inner.downcast_ref::<guard::Raised>()
    {
        return lua.create_string(raised.text()).map(Value::String);
    }
    if let Some(raised) = cause.downcast_ref::<Raised>() {
        return Ok(Value::Table(table(lua, raised)?));
    }
    Ok(Value::String(lua.create_string(format!("{place}{}", text(cause)))?))
}

/// The error inside, and the place of the call that raised it.
fn unwrap(error: &Error) -> (&Error, &str) {
    let (mut error, mut at) = (error, "");
    while let Error::CallbackError { traceback, cause } = error {
        at = place(traceback);
        error = cause;
    }
    (error, at)
}

/// The text of an error, as Lua has it.
pub fn text(error: &Error) -> String {
    match error {
        Error::RuntimeError(text) | Error::MemoryError(text) => text.clone(),
        Error::SyntaxError { message, .. } => message.clone(),
        Error::CallbackError { cause, .. } => text(cause),
        Error::BadArgument { cause, .. } => text(cause),
        other => other.to_string(),
    }
}

/// Where the function was called that raised an error, like `user_script:1: `; nothing if that has no lines. The
/// traceback has a head line, the function itself and then its caller.
fn place(traceback: &str) -> &str {
    let caller = traceback.lines().nth(2).unwrap_or_default().trim_start();
    let end = caller.rfind(": in ").unwrap_or_default();
    let line = caller[..end].rsplit(':').next().unwrap_or_default();
    let numbered = !line.is_empty() && line.bytes().all(|b| b.is_ascii_digit()) && end > line.len();
    if numbered { &caller[..end + 2] } else { "" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_read_from_tracebacks() {
        let of = |caller: &str| {
            place(&format!("stack traceback:\n\t[C]: in function 'f'\n\t{caller}\n")).to_string()
        };
        assert_eq!(of("user_script:12: in main chunk"), "user_script:12: ");
        assert_eq!(of("[string \"a: in b\"]:1: in function <x>"), "[string \"a: in b\"]:1: ");
        assert_eq!(of("[C]: in function 'pcall'"), "");
        assert_eq!(of("?: in function <?:0>"), "");
        assert_eq!(place(""), "");
    }

    #[test]
    fn codes_are_added() {
        assert_eq!(with_code(b"WRONGTYPE x"), b"WRONGTYPE x");
        assert_eq!(with_code(b"odd"), b"ERR odd");
    }
}
