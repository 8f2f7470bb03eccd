//! Errors of libraries on their way through Lua.
//!
//! An error that Rust raises is an opaque value in Lua, while scripts expect strings from `pcall` and its like: the
//! engine's `raise::seen` hands out the text of a [`Raised`]. The position in it is found when it is raised, so no wrapper
//! stands between a script and a library's function. The guards do the same for the tests of the libraries, which have a
//! Lua state without the engine.

use std::fmt;

use mlua::Error;
#[cfg(test)]
use mlua::{Lua, Result, Table, Value};

/// The error of a library: a text, as Lua's own `error` would raise it.
#[derive(Debug)]
pub struct Raised(Vec<u8>);

impl Raised {
    /// An error whose text is `text` and nothing else.
    pub fn error(text: impl Into<Vec<u8>>) -> Error {
        Error::external(Raised(text.into()))
    }

    /// The text, with the position where there is one. It need not be UTF-8.
    pub fn text(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Display for Raised {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&String::from_utf8_lossy(&self.0))
    }
}

impl std::error::Error for Raised {}

#[cfg(test)]
/// The text that a script sees of an error, without traces and without what was said about it on its way.
pub fn text_of(error: &Error) -> Vec<u8> {
    match error {
        Error::CallbackError { cause, .. } | Error::WithContext { cause, .. } => text_of(cause),
        Error::ExternalError(inner) => match inner.downcast_ref::<Raised>() {
            Some(raised) => raised.text().to_vec(),
            None => inner.to_string().into_bytes(),
        },
        // Lua's own, whose text has been joined with a trace of the stack.
        Error::RuntimeError(text) | Error::SyntaxError { message: text, .. } | Error::MemoryError(text) => {
            text.split("\nstack traceback:").next().unwrap_or_default().as_bytes().to_vec()
        }
        Error::StackError => b"stack overflow".to_vec(),
        other => other.to_string().into_bytes(),
    }
}

#[cfg(test)]
/// What `pcall`, `xpcall` and `coroutine.resume` become. `text` makes a string of an error that Rust raised.
const GUARDS: &str = r"
local text, pcall, xpcall, resume = ...
local function settle(ok, ...)
    if ok then return ok, ... end
    return ok, text((...))
end
return function(...) return settle(pcall(...)) end,
    function(f, handler, ...)
        return settle(xpcall(f, handler and function(e) return handler(text(e)) end, ...))
    end,
    resume and function(...) return settle(resume(...)) end
";

#[cfg(test)]
/// Replaces the functions in `globals` that catch errors, so that scripts get the text of a library's error.
///
/// # Errors
/// Lua's: memory, or no `pcall` in `globals`.
pub fn open(lua: &Lua, globals: &Table) -> Result<()> {
    let text = lua.create_function(|lua, value: Value| match value {
        Value::Error(error) => lua.create_string(text_of(&error)).map(Value::String),
        other => Ok(other),
    })?;
    let coroutine: Option<Table> = globals.raw_get("coroutine")?;
    let resume: Value = coroutine.as_ref().map_or(Ok(Value::Nil), |table| table.raw_get("resume"))?;
    let old = (text, globals.raw_get::<Value>("pcall")?, globals.raw_get::<Value>("xpcall")?, resume);
    let (pcall, xpcall, resume): (Value, Value, Value) = lua.load(GUARDS).set_name("=guard").call(old)?;
    globals.raw_set("pcall", pcall)?;
    globals.raw_set("xpcall", xpcall)?;
    if let Some(coroutine) = coroutine {
        coroutine.raw_set("resume", resume)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::testing::check;

    #[test]
    fn caught_errors_are_strings() {
        let text = "Expected value but found invalid token at character 1";
        let inside = format!("user_script:1: {text}");
        check(&[
            ("local ok, e = pcall(cjson.decode, 'x') return type(e) .. ' ' .. e", &format!("string {text}")),
            ("return select(2, pcall(function() return cjson.decode('x') end))", &inside),
            (
                "return select(2, xpcall(function() cjson.decode('x') end, function(e) return '<' .. e end))",
                &format!("<{inside}"),
            ),
            (
                "return select(2, coroutine.resume(coroutine.create(function() cjson.decode('x') end)))",
                &inside,
            ),
            ("return cjson.decode('x')", &format!("error: {inside}")),
            ("return select(2, pcall(error, {1}))[1]", "1"),
            ("return select(2, pcall(error, 'x'))", "x"),
            (
                "local a, b, c, d = pcall(function(...) return ... end, 1, nil, 3) return tostring(a) .. tostring(b) .. tostring(c) .. d",
                "true1nil3",
            ),
            ("return select('#', pcall(error))", "2"),
            ("local ok, e = pcall(cjson.decode, 'x') error(e, 0)", &format!("error: {text}")),
            ("error('x')", "error: user_script:1: x"),
        ]);
    }
}
