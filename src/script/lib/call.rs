//! One call of a library function: its arguments, read with the leniency and the errors of Lua's auxiliary library.
//!
//! Must stay true: texts are those of `luaL_check*` and `luaL_error` of Lua 5.1, with the position of the caller in
//! front. Arguments count from one.

use mlua::{Error, Function, IntoLuaMulti, Lua, LuaString, MultiValue, Result, Value};

use super::guard::Raised;

/// A call that is under way.
pub(super) struct Call<'a> {
    pub(super) lua: &'a Lua,
    args: MultiValue,
}

/// A Lua function that runs `f`.
pub(super) fn function<R, F>(lua: &Lua, f: F) -> Result<Function>
where
    R: IntoLuaMulti + 'static,
    F: Fn(&Call<'_>) -> Result<R> + 'static,
{
    lua.create_function(move |lua, args: MultiValue| f(&Call::new(lua, args)))
}

impl<'a> Call<'a> {
    /// A call with these arguments.
    pub(super) fn new(lua: &'a Lua, args: MultiValue) -> Call<'a> {
        Call { lua, args }
    }

    /// How many arguments were given, trailing nils included.
    pub(super) fn count(&self) -> usize {
        self.args.len()
    }

    /// An argument; nil when there is none.
    pub(super) fn value(&self, number: usize) -> &Value {
        self.args.get(number - 1).unwrap_or(&Value::Nil)
    }

    /// Whether an argument is nil or was not given.
    pub(super) fn is_nil(&self, number: usize) -> bool {
        matches!(self.value(number), Value::Nil)
    }

    /// An argument as a number; a string that reads as one is one.
    pub(super) fn number(&self, number: usize) -> Result<f64> {
        match self.value(number) {
            Value::Integer(integer) => Ok(*integer as f64),
            Value::Number(value) => Ok(*value),
            text @ Value::String(_) => {
                self.lua.coerce_number(text.clone())?.ok_or_else(|| self.wrong_type(number, "number"))
            }
            _ => Err(self.wrong_type(number, "number")),
        }
    }

    /// An argument as an integer: a number without its fraction.
    pub(super) fn integer(&self, number: usize) -> Result<i64> {
        self.number(number).map(truncate)
    }

    /// An argument as an integer, `default` when there is none.
    pub(super) fn integer_or(&self, number: usize, default: i64) -> Result<i64> {
        if self.is_nil(number) { Ok(default) } else { self.integer(number) }
    }

    /// An argument as a string; a number is written as Lua writes it.
    pub(super) fn string(&self, number: usize) -> Result<LuaString> {
        match self.value(number) {
            Value::String(text) => Ok(text.clone()),
            value @ (Value::Integer(_) | Value::Number(_)) => {
                self.lua.coerce_string(value.clone())?.ok_or_else(|| self.wrong_type(number, "string"))
            }
            _ => Err(self.wrong_type(number, "string")),
        }
    }

    /// The error that an argument has another type than it must.
    pub(super) fn wrong_type(&self, number: usize, wanted: &str) -> Error {
        let found = if number > self.count() { "no value" } else { type_name(self.value(number)) };
        self.bad_argument(number, format!("{wanted} expected, got {found}"))
    }

    /// The error that an argument is no good. In a call of a method the object does not count.
    pub(super) fn bad_argument(&self, number: usize, what: impl AsRef<[u8]>) -> Error {
        let (name, is_method) = self
            .lua
            .inspect_stack(0, |frame| {
                let names = frame.names();
                let name = names.name.map_or_else(|| "?".to_string(), |name| name.into_owned());
                (name, names.name_what == Some("method"))
            })
            .unwrap_or_else(|| ("?".to_string(), false));
        let number = number as i64 - i64::from(is_method);
        let mut text = if is_method && number == 0 {
            format!("calling '{name}' on bad self (")
        } else {
            format!("bad argument #{number} to '{name}' (")
        }
        .into_bytes();
        text.extend_from_slice(what.as_ref());
        text.push(b')');
        self.failure(text)
    }

    /// An error with the caller's position in front, if the caller is Lua code.
    pub(super) fn failure(&self, what: impl AsRef<[u8]>) -> Error {
        let position = self.lua.inspect_stack(1, |frame| {
            let line = frame.current_line().filter(|line| *line > 0)?;
            let source = frame.source();
            Some(format!("{}:{line}: ", source.short_src.as_deref().unwrap_or("?")))
        });
        let mut text = position.flatten().unwrap_or_default().into_bytes();
        text.extend_from_slice(what.as_ref());
        Raised::error(text)
    }

    /// The error that more would be needed of Lua's stack than there is.
    pub(super) fn overflow(&self, what: &str) -> Error {
        self.failure(format!("stack overflow ({what})"))
    }
}

/// The name of a value's type as Lua has it.
pub(super) fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Nil => "nil",
        Value::Boolean(_) => "boolean",
        Value::Integer(_) | Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Table(_) => "table",
        Value::Function(_) => "function",
        Value::Thread(_) => "thread",
        _ => "userdata",
    }
}

/// A double without its fraction, as C on x86-64 converts it: what does not fit, and what is no number, is the least
/// integer.
pub(super) fn truncate(value: f64) -> i64 {
    // -2^63 is a double, and the first that is too large is 2^63.
    let fits = (i64::MIN as f64..-(i64::MIN as f64)).contains(&value);
    if fits { value as i64 } else { i64::MIN }
}

#[cfg(test)]
mod tests {
    use super::super::testing::check;
    use super::*;

    #[test]
    fn doubles_lose_their_fraction() {
        for (value, want) in [
            (1.9, 1),
            (-1.9, -1),
            (1e19, i64::MIN),
            (-1e19, i64::MIN),
            (f64::NAN, i64::MIN),
            (4611686018427387904.5, 4611686018427387904),
            (-9223372036854775808.0, i64::MIN),
        ] {
            assert_eq!(truncate(value), want, "{value}");
        }
    }

    #[test]
    fn errors_say_where_and_in_what() {
        check(&[
            (
                "return cjson.decode()",
                "error: user_script:1: bad argument #1 to 'decode' (expected 1 argument)",
            ),
            (
                "local f = cjson.decode\nf('x', 1)",
                "error: user_script:2: bad argument #1 to 'f' (expected 1 argument)",
            ),
            ("return select(2, pcall(cjson.decode))", "bad argument #1 to '?' (expected 1 argument)"),
            (
                "local t = {decode = cmsgpack.unpack} return t:decode()",
                "error: user_script:1: calling 'decode' on bad self (string expected, got table)",
            ),
            (
                "local t = {one = cmsgpack.unpack_one} return t:one('x')",
                "error: user_script:1: bad argument #1 to 'one' (number expected, got string)",
            ),
            (
                "return struct.unpack('b')",
                "error: user_script:1: bad argument #2 to 'unpack' (string expected, got no value)",
            ),
            (
                "return struct.unpack('b', nil)",
                "error: user_script:1: bad argument #2 to 'unpack' (string expected, got nil)",
            ),
            ("return struct.unpack('bbbbb', -1234)", "45"),
        ]);
    }
}
