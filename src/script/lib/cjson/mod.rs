//! `cjson`: Lua values to and from JSON, as Lua CJSON 2.1.0 in Redis 8.0.
//!
//! Must stay true: both ways keep their open containers on the heap, so nesting costs no stack of the thread; numbers
//! have the digits of `%.14g`; keys come in the order of Lua's `next`, which is why tables are never pre-sized.
//!
//! Beyond Redis 8.0 there is `decode_array_with_array_mt` of later versions, off as there.

mod decode;
mod encode;
mod lexer;
mod number;

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use mlua::{Function, LightUserData, Lua, Result, Table, Value};

use super::call::{Call, function};

/// Slots of Lua's stack that nested containers may seem to use, two for an object and one for an array. A little less
/// than Redis allows, because references to as many values must fit beside others.
const SLOTS_MAX: usize = super::STACK_SLOTS_MAX - 1_000;

/// A buffer that is kept between calls has at most so many bytes.
const KEPT_BYTES_MAX: usize = 64 << 10;

/// The mark in the metatable of a table that was an array.
const ARRAY_MARK: &str = "__is_cjson_array";

/// What becomes of a number that JSON does not have.
#[derive(Clone, Copy, PartialEq)]
enum Invalid {
    Refused,
    Written,
    Null,
}

/// The settings of one instance, as its functions change them.
#[derive(Clone, Copy)]
struct Config {
    /// Whether an excessively sparse array becomes an object; else it is refused.
    sparse_convert: bool,
    /// An array with fewer than one element in so many places is excessively sparse; zero: none is.
    sparse_ratio: i32,
    /// Up to this length no array is.
    sparse_safe: i32,
    encode_depth_max: i32,
    encode_invalid: Invalid,
    /// Significant digits of a number.
    precision: i32,
    keep_buffer: bool,
    decode_depth_max: i32,
    decode_invalid: bool,
    mark_arrays: bool,
}

/// One instance of the library.
struct Instance {
    config: Cell<Config>,
    buffer: RefCell<Vec<u8>>,
    shared: Rc<Shared>,
}

/// What all instances of a state share, so that making one takes no references to Lua values.
struct Shared {
    /// Lua's `next`.
    next: Function,
    /// The metatable of tables that were arrays.
    array_mark: Table,
}

/// Opens the library: a table of its functions, of `null` and of what it says about itself.
///
/// # Errors
/// Lua's: memory, or a state without `next`.
pub fn open(lua: &Lua) -> Result<Table> {
    let array_mark = lua.create_table()?;
    array_mark.raw_set(ARRAY_MARK, true)?;
    let next = lua.globals().raw_get("next")?;
    instance(lua, Rc::new(Shared { next, array_mark }))
}

fn instance(lua: &Lua, shared: Rc<Shared>) -> Result<Table> {
    let config = Config {
        sparse_convert: false,
        sparse_ratio: 2,
        sparse_safe: 10,
        encode_depth_max: 1_000,
        encode_invalid: Invalid::Refused,
        precision: 14,
        keep_buffer: true,
        decode_depth_max: 1_000,
        decode_invalid: true,
        mark_arrays: false,
    };
    let json = Rc::new(Instance { config: Cell::new(config), buffer: RefCell::default(), shared });
    let table = lua.create_table()?;
    let add = |name: &str, f: fn(&Instance, &Call<'_>) -> Result<Value>| {
        let json = Rc::clone(&json);
        table.raw_set(name, function(lua, move |call| f(&json, call))?)
    };
    add("encode", encode::encode)?;
    add("decode", decode::decode)?;
    add("encode_max_depth", |json, call| {
        integer_setting(json, call, 1, 1, i32::MAX, |config| &mut config.encode_depth_max)
    })?;
    add("decode_max_depth", |json, call| {
        integer_setting(json, call, 1, 1, i32::MAX, |config| &mut config.decode_depth_max)
    })?;
    add("encode_number_precision", |json, call| {
        integer_setting(json, call, 1, 1, 14, |config| &mut config.precision)
    })?;
    add("encode_keep_buffer", |json, call| switch(json, call, |config| &mut config.keep_buffer))?;
    add("decode_invalid_numbers", |json, call| switch(json, call, |config| &mut config.decode_invalid))?;
    add("decode_array_with_array_mt", |json, call| switch(json, call, |config| &mut config.mark_arrays))?;
    add("encode_invalid_numbers", encode_invalid_numbers)?;
    add("new", |json, call| instance(call.lua, Rc::clone(&json.shared)).map(Value::Table))?;
    let sparse = Rc::clone(&json);
    table.raw_set("encode_sparse_array", function(lua, move |call| encode_sparse_array(&sparse, call))?)?;
    table.raw_set("null", LightUserData(std::ptr::null_mut()))?;
    table.raw_set("_NAME", "cjson")?;
    table.raw_set("_VERSION", "2.1.0")?;
    Ok(table)
}

/// Refuses more than `max` arguments.
fn at_most(call: &Call<'_>, max: usize) -> Result<()> {
    if call.count() > max {
        return Err(call.bad_argument(max + 1, "found too many arguments"));
    }
    Ok(())
}

impl Instance {
    fn change(&self, f: impl FnOnce(&mut Config)) {
        let mut config = self.config.get();
        f(&mut config);
        self.config.set(config);
    }
}

/// A setting that is a number, set if there is an argument. Gives what it is then.
fn integer(
    json: &Instance,
    call: &Call<'_>,
    number: usize,
    min: i32,
    max: i32,
    of: Field<i32>,
) -> Result<i32> {
    if !call.is_nil(number) {
        let value = call.integer(number)? as i32;
        if !(min..=max).contains(&value) {
            // Redis names the first argument whichever it is.
            return Err(call.bad_argument(1, format!("expected integer between {min} and {max}")));
        }
        json.change(|config| *of(config) = value);
    }
    Ok(*of(&mut json.config.get()))
}

type Field<T> = fn(&mut Config) -> &mut T;

fn integer_setting(
    json: &Instance,
    call: &Call<'_>,
    number: usize,
    min: i32,
    max: i32,
    of: Field<i32>,
) -> Result<Value> {
    at_most(call, number)?;
    integer(json, call, number, min, max, of).map(|value| Value::Integer(value.into()))
}

/// Which of `options` an argument is; `None`: there is no argument.
fn option(call: &Call<'_>, options: &[&str]) -> Result<Option<usize>> {
    match call.value(1) {
        Value::Nil => Ok(None),
        Value::Boolean(value) => Ok(Some(usize::from(*value))),
        _ => {
            let text = call.string(1)?;
            let text = text.as_bytes();
            let found = options.iter().position(|option| option.as_bytes() == &*text);
            let refused = || call.bad_argument(1, [b"invalid option '", &*text, b"'"].concat());
            found.map(Some).ok_or_else(refused)
        }
    }
}

/// A setting that is on or off, set if there is an argument. Gives what it is then.
fn switched(json: &Instance, call: &Call<'_>, of: Field<bool>) -> Result<bool> {
    if let Some(value) = option(call, &["off", "on"])? {
        json.change(|config| *of(config) = value == 1);
    }
    Ok(*of(&mut json.config.get()))
}

fn switch(json: &Instance, call: &Call<'_>, of: Field<bool>) -> Result<Value> {
    at_most(call, 1)?;
    switched(json, call, of).map(Value::Boolean)
}

fn encode_sparse_array(json: &Instance, call: &Call<'_>) -> Result<(bool, i32, i32)> {
    at_most(call, 3)?;
    let convert = switched(json, call, |config| &mut config.sparse_convert)?;
    let ratio = integer(json, call, 2, 0, i32::MAX, |config| &mut config.sparse_ratio)?;
    let safe = integer(json, call, 3, 0, i32::MAX, |config| &mut config.sparse_safe)?;
    Ok((convert, ratio, safe))
}

fn encode_invalid_numbers(json: &Instance, call: &Call<'_>) -> Result<Value> {
    at_most(call, 1)?;
    let all = [Invalid::Refused, Invalid::Written, Invalid::Null];
    if let Some(value) = option(call, &["off", "on", "null"])? {
        json.change(|config| config.encode_invalid = all[value]);
    }
    match json.config.get().encode_invalid {
        Invalid::Refused => Ok(Value::Boolean(false)),
        Invalid::Written => Ok(Value::Boolean(true)),
        Invalid::Null => call.lua.create_string("null").map(Value::String),
    }
}

#[cfg(test)]
mod tests {
    //! What is expected here is what Redis 8.0.6 says.

    use super::super::testing::check;

    #[test]
    fn values_are_encoded() {
        check(&[
            ("return cjson.encode({1,2,3})", "[1,2,3]"),
            ("return cjson.encode({})", "{}"),
            ("return cjson.encode({a=1})", r#"{"a":1}"#),
            ("return cjson.encode({{}, {{}}, {a={b={c={}}}}})", r#"[{},[{}],{"a":{"b":{"c":{}}}}]"#),
            (
                "return cjson.encode({a={1,{b={2}}},c={d={}},e='x',f={g=1,h={i=2}}})",
                r#"{"a":[1,{"b":[2]}],"e":"x","c":{"d":{}},"f":{"g":1,"h":{"i":2}}}"#,
            ),
            (
                r#"return cjson.encode('a"b\\c/d\b\f\n\r\t\1\31\127\200\255é')"#,
                r#""a\"b\\c\/d\b\f\n\r\t\u0001\u001f\u007f��é""#,
            ),
            ("return cjson.encode('')", r#""""#),
            (r#"return cjson.encode('a\0b')"#, r#""a\u0000b""#),
            ("return cjson.encode(1)", "1"),
            ("return cjson.encode(-1)", "-1"),
            ("return cjson.encode(0)", "0"),
            ("return cjson.encode(-0)", "-0"),
            ("return cjson.encode(0/-1)", "-0"),
            ("return cjson.encode(1.5)", "1.5"),
            ("return cjson.encode(1/3)", "0.33333333333333"),
            ("return cjson.encode(1e14)", "1e+14"),
            ("return cjson.encode(99999999999999)", "99999999999999"),
            ("return cjson.encode(1e15)", "1e+15"),
            ("return cjson.encode(123456789012345)", "1.2345678901234e+14"),
            ("return cjson.encode(1e100)", "1e+100"),
            ("return cjson.encode(1e-5)", "1e-05"),
            ("return cjson.encode(0.0001)", "0.0001"),
            ("return cjson.encode(2^53)", "9.007199254741e+15"),
            ("return cjson.encode(2^63)", "9.2233720368548e+18"),
            ("return cjson.encode(true)", "true"),
            ("return cjson.encode(false)", "false"),
            ("return cjson.encode(nil)", "null"),
            ("return cjson.encode(cjson.null)", "null"),
            ("return cjson.encode({cjson.null, false})", "[null,false]"),
            ("return cjson.encode({[1]=1,[2]=2,[4]=4})", "[1,2,null,4]"),
            ("return cjson.encode({[1]=1,[10]=2})", "[1,null,null,null,null,null,null,null,null,2]"),
            (
                "return cjson.encode({[11]=2})",
                "error: user_script:1: Cannot serialise table: excessively sparse array",
            ),
            ("return cjson.encode({[10]=2})", "[null,null,null,null,null,null,null,null,null,2]"),
            ("return cjson.encode({[0]=2})", r#"{"0":2}"#),
            ("return cjson.encode({[-1]=2})", r#"{"-1":2}"#),
            ("return cjson.encode({[1.5]=2})", r#"{"1.5":2}"#),
            ("return cjson.encode({[1]=1,a=2})", r#"{"1":1,"a":2}"#),
            ("return cjson.encode({[1e10]=1})", r#"{"10000000000":1}"#),
            ("return cjson.encode({[1e10]=1,[3]=2})", "[null,null,2]"),
            (
                "return cjson.encode({[2147483647]=1})",
                "error: user_script:1: Cannot serialise table: excessively sparse array",
            ),
            ("return cjson.encode({[2147483648]=1})", r#"{"2147483648":1}"#),
            ("return cjson.encode({[1e15]=1})", r#"{"1e+15":1}"#),
            (
                "return cjson.encode({[true]=1})",
                "error: user_script:1: Cannot serialise boolean: table key must be a number or string",
            ),
            (
                "return cjson.encode({[{}]=1})",
                "error: user_script:1: Cannot serialise table: table key must be a number or string",
            ),
            (
                "return cjson.encode({[type]=1})",
                "error: user_script:1: Cannot serialise function: table key must be a number or string",
            ),
            (
                "return cjson.encode(type)",
                "error: user_script:1: Cannot serialise function: type not supported",
            ),
            (
                "return cjson.encode({type})",
                "error: user_script:1: Cannot serialise function: type not supported",
            ),
            (
                "return cjson.encode(coroutine.create(type))",
                "error: user_script:1: bad argument #1 to 'create' (Lua function expected)",
            ),
            (
                "return cjson.encode(1/0)",
                "error: user_script:1: Cannot serialise number: must not be NaN or Inf",
            ),
            (
                "return cjson.encode({-1/0})",
                "error: user_script:1: Cannot serialise number: must not be NaN or Inf",
            ),
            (
                "return cjson.encode(0/0)",
                "error: user_script:1: Cannot serialise number: must not be NaN or Inf",
            ),
            (
                "return cjson.encode({[1/0]=1})",
                "error: user_script:1: Cannot serialise number: must not be NaN or Inf",
            ),
            (
                "return cjson.encode()",
                "error: user_script:1: bad argument #1 to 'encode' (expected 1 argument)",
            ),
            (
                "return cjson.encode(1,2)",
                "error: user_script:1: bad argument #1 to 'encode' (expected 1 argument)",
            ),
        ]);
    }

    #[test]
    fn values_are_decoded() {
        check(&[
            (
                "return cjson.decode()",
                "error: user_script:1: bad argument #1 to 'decode' (expected 1 argument)",
            ),
            (
                "return cjson.decode('1','2')",
                "error: user_script:1: bad argument #1 to 'decode' (expected 1 argument)",
            ),
            (
                "return cjson.decode(nil)",
                "error: user_script:1: bad argument #1 to 'decode' (string expected, got nil)",
            ),
            (
                "return cjson.decode({})",
                "error: user_script:1: bad argument #1 to 'decode' (string expected, got table)",
            ),
            (
                "return cjson.decode(true)",
                "error: user_script:1: bad argument #1 to 'decode' (string expected, got boolean)",
            ),
            ("return cjson.decode(12)", "12"),
            (
                "return cjson.decode('')",
                "error: user_script:1: Expected value but found T_END at character 1",
            ),
            (
                "return cjson.decode(' ')",
                "error: user_script:1: Expected value but found T_END at character 2",
            ),
            (
                "return cjson.decode('[')",
                "error: user_script:1: Expected value but found T_END at character 2",
            ),
            (
                "return cjson.decode('{')",
                "error: user_script:1: Expected object key string but found T_END at character 2",
            ),
            (
                "return cjson.decode('[1')",
                "error: user_script:1: Expected comma or array end but found T_END at character 3",
            ),
            (
                "return cjson.decode('[1,')",
                "error: user_script:1: Expected value but found T_END at character 4",
            ),
            (
                "return cjson.decode('[1,]')",
                "error: user_script:1: Expected value but found T_ARR_END at character 4",
            ),
            (
                "return cjson.decode('[,1]')",
                "error: user_script:1: Expected value but found T_COMMA at character 2",
            ),
            (
                "return cjson.decode('[1 2]')",
                "error: user_script:1: Expected comma or array end but found T_NUMBER at character 4",
            ),
            (
                r#"return cjson.decode('{"a"')"#,
                "error: user_script:1: Expected colon but found T_END at character 5",
            ),
            (
                r#"return cjson.decode('{"a":')"#,
                "error: user_script:1: Expected value but found T_END at character 6",
            ),
            (
                r#"return cjson.decode('{"a":}')"#,
                "error: user_script:1: Expected value but found T_OBJ_END at character 6",
            ),
            (
                r#"return cjson.decode('{"a":1')"#,
                "error: user_script:1: Expected comma or object end but found T_END at character 7",
            ),
            (
                r#"return cjson.decode('{"a":1,')"#,
                "error: user_script:1: Expected object key string but found T_END at character 8",
            ),
            (
                r#"return cjson.decode('{"a":1,}')"#,
                "error: user_script:1: Expected object key string but found T_OBJ_END at character 8",
            ),
            (
                r#"return cjson.decode('{"a" 1}')"#,
                "error: user_script:1: Expected colon but found T_NUMBER at character 6",
            ),
            (
                "return cjson.decode('{a:1}')",
                "error: user_script:1: Expected object key string but found invalid token at character 2",
            ),
            (
                "return cjson.decode('{1:1}')",
                "error: user_script:1: Expected object key string but found T_NUMBER at character 2",
            ),
            (
                r#"return cjson.decode('{"a":1 "b":2}')"#,
                "error: user_script:1: Expected comma or object end but found T_STRING at character 8",
            ),
            (
                r#"return cjson.decode('{"a":1]')"#,
                "error: user_script:1: Expected comma or object end but found T_ARR_END at character 7",
            ),
            (
                "return cjson.decode('[1}')",
                "error: user_script:1: Expected comma or array end but found T_OBJ_END at character 3",
            ),
            (
                "return cjson.decode('1 2')",
                "error: user_script:1: Expected the end but found T_NUMBER at character 3",
            ),
            (
                "return cjson.decode('[] []')",
                "error: user_script:1: Expected the end but found T_ARR_BEGIN at character 4",
            ),
            (
                "return cjson.decode(']')",
                "error: user_script:1: Expected value but found T_ARR_END at character 1",
            ),
            (
                r#"return cjson.decode('"abc')"#,
                "error: user_script:1: Expected value but found unexpected end of string at character 5",
            ),
            (
                r#"return cjson.decode('"ab\\x"')"#,
                "error: user_script:1: Expected value but found invalid escape code at character 4",
            ),
            (
                r#"return cjson.decode('"ab\\')"#,
                "error: user_script:1: Expected value but found invalid escape code at character 4",
            ),
            (
                r#"return cjson.decode('"ab\\u12"')"#,
                "error: user_script:1: Expected value but found invalid unicode escape code at character 4",
            ),
            (
                r#"return cjson.decode('"ab\\ud800"')"#,
                "error: user_script:1: Expected value but found invalid unicode escape code at character 4",
            ),
            (
                r#"return cjson.decode('"ab\\ud800\\u0041"')"#,
                "error: user_script:1: Expected value but found invalid unicode escape code at character 4",
            ),
            (
                r#"return cjson.decode('"ab\\udc00"')"#,
                "error: user_script:1: Expected value but found invalid unicode escape code at character 4",
            ),
            (r#"return cjson.decode('"\\ud83d\\ude00"')"#, "😀"),
            (
                r#"return cjson.decode('"\\u00e9\\u20ac\\u0041\\n\\t\\/\\\\\\"\\b\\f\\r"')"#,
                "é€A\u{a}\u{9}/\\\"\u{8}\u{c}\u{d}",
            ),
            (r#"return cjson.decode('"x\\u0000y"')"#, "x\u{0}y"),
            (
                r#"return cjson.decode('"a\0b"')"#,
                "error: user_script:1: Expected value but found unexpected end of string at character 3",
            ),
            (
                r#"return cjson.decode('1\0 junk')"#,
                "error: user_script:1: JSON parser does not support UTF-16 or UTF-32",
            ),
            (
                r#"return cjson.decode('[1\0]')"#,
                "error: user_script:1: Expected comma or array end but found T_END at character 3",
            ),
            (
                r#"return cjson.decode('\0\0')"#,
                "error: user_script:1: JSON parser does not support UTF-16 or UTF-32",
            ),
            (
                r#"return cjson.decode('"\0')"#,
                "error: user_script:1: JSON parser does not support UTF-16 or UTF-32",
            ),
            (r#"return cjson.decode('"a\nb\tc"')"#, "a\u{a}b\u{9}c"),
            (r#"return cjson.decode('"\255\254"')"#, "��"),
            (r#"return cjson.decode('{"\255":"\254"}')['\255']"#, "�"),
            (r#"return cjson.decode('{"a\\nb":"c\\nd"}')['a\nb']"#, "c\u{a}d"),
            (r#"return cjson.decode('{"k\\n":{"l\\t":[1,"\\r"]}}')['k\n']['l\t'][2]"#, "\u{d}"),
            (r#"return cjson.decode('{"a":1,"a":2}').a"#, "2"),
            (r#"return cjson.decode('{"a":[1],"a":2}').a"#, "2"),
            ("return cjson.decode('true')", "true"),
            ("return cjson.decode('false')", "false"),
            ("return cjson.decode('null') == cjson.null", "true"),
            ("return type(cjson.decode('null'))", "userdata"),
            (
                "return cjson.decode('tru')",
                "error: user_script:1: Expected value but found invalid token at character 1",
            ),
            (
                "return cjson.decode('nul')",
                "error: user_script:1: Expected value but found invalid token at character 1",
            ),
            (
                "return cjson.decode('truex')",
                "error: user_script:1: Expected the end but found invalid token at character 5",
            ),
            (
                "return cjson.decode('True')",
                "error: user_script:1: Expected value but found invalid token at character 1",
            ),
            (
                "return cjson.decode('x')",
                "error: user_script:1: Expected value but found invalid token at character 1",
            ),
            (
                r#"return cjson.decode("'a'")"#,
                "error: user_script:1: Expected value but found invalid token at character 1",
            ),
            ("return cjson.decode('nan')", "nan"),
            ("return cjson.decode('NaN')", "nan"),
            ("return cjson.decode('-nan')", "-nan"),
            ("return cjson.decode('[nan(12)]')[1]", "nan"),
            ("return cjson.decode('Infinity')", "inf"),
            ("return cjson.decode('-inf')", "-inf"),
            ("return cjson.decode('+5')", "5"),
            (
                "return cjson.decode('+')",
                "error: user_script:1: Expected value but found invalid number at character 1",
            ),
            (
                "return cjson.decode('-')",
                "error: user_script:1: Expected value but found invalid number at character 1",
            ),
            (
                "return cjson.decode('--1')",
                "error: user_script:1: Expected value but found invalid number at character 1",
            ),
            (
                "return cjson.decode('- 1')",
                "error: user_script:1: Expected value but found invalid number at character 1",
            ),
            (
                "return cjson.decode('.5')",
                "error: user_script:1: Expected value but found invalid token at character 1",
            ),
            ("return cjson.decode('-.5')", "-0.5"),
            ("return cjson.decode('5.')", "5"),
            (
                "return cjson.decode('1.5.5')",
                "error: user_script:1: Expected the end but found invalid token at character 4",
            ),
            ("return cjson.decode('1e5')", "100000"),
            (
                "return cjson.decode('1e')",
                "error: user_script:1: Expected the end but found invalid token at character 2",
            ),
            (
                "return cjson.decode('1e+')",
                "error: user_script:1: Expected the end but found invalid token at character 2",
            ),
            ("return cjson.decode('0x10')", "16"),
            (
                "return cjson.decode('0x')",
                "error: user_script:1: Expected the end but found invalid token at character 2",
            ),
            ("return cjson.decode('007')", "7"),
            ("return cjson.decode('1e999')", "inf"),
            ("return cjson.decode('1e-999')", "0"),
            ("return cjson.decode('-0')", "-0"),
            ("return cjson.decode('12345678901234567890')", "1.2345678901235e+19"),
            ("return cjson.decode('123456789012345678')", "1.2345678901235e+17"),
            ("return cjson.decode('0.1')", "0.1"),
            ("return cjson.decode('  [ 1 , 2 ]  ')[2]", "2"),
            ("return #cjson.decode('[1,null,3]')", "3"),
            (
                r#"return table.concat(cjson.decode("[0.0, -5e3, -1, 0.3e-3, 1023.2, 0e10]"), " ")"#,
                "0 -5000 -1 0.0003 1023.2 0",
            ),
        ]);
    }

    #[test]
    fn order_and_nesting() {
        check(&[
            (
                r#"return cjson.encode(cjson.decode('{"a":[1,2,{"b":null}],"c":{},"d":[],"e":"x","f":1.5,"g":true}'))"#,
                r#"{"a":[1,2,{"b":null}],"c":{},"e":"x","d":{},"g":true,"f":1.5}"#,
            ),
            (
                "local t={} for i=1,40 do t['key'..i]=i end return cjson.encode(t)",
                r#"{"key16":16,"key9":9,"key35":35,"key24":24,"key14":14,"key8":8,"key31":31,"key26":26,"key17":17,"key39":39,"key13":13,"key21":21,"key4":4,"key32":32,"key2":2,"key1":1,"key27":27,"key40":40,"key38":38,"key22":22,"key33":33,"key3":3,"key25":25,"key15":15,"key6":6,"key34":34,"key11":11,"key5":5,"key30":30,"key10":10,"key19":19,"key29":29,"key7":7,"key37":37,"key20":20,"key12":12,"key18":18,"key23":23,"key36":36,"key28":28}"#,
            ),
            (
                r#"local t={} for i=1,40 do t[#t+1]='"key'..i..'":{"v'..i..'":'..i..'}' end return cjson.encode(cjson.decode('{'..table.concat(t,',')..'}'))"#,
                r#"{"key16":{"v16":16},"key9":{"v9":9},"key35":{"v35":35},"key24":{"v24":24},"key14":{"v14":14},"key8":{"v8":8},"key31":{"v31":31},"key26":{"v26":26},"key17":{"v17":17},"key39":{"v39":39},"key13":{"v13":13},"key21":{"v21":21},"key4":{"v4":4},"key32":{"v32":32},"key2":{"v2":2},"key1":{"v1":1},"key27":{"v27":27},"key40":{"v40":40},"key38":{"v38":38},"key22":{"v22":22},"key33":{"v33":33},"key3":{"v3":3},"key25":{"v25":25},"key15":{"v15":15},"key6":{"v6":6},"key34":{"v34":34},"key11":{"v11":11},"key5":{"v5":5},"key30":{"v30":30},"key10":{"v10":10},"key19":{"v19":19},"key29":{"v29":29},"key7":{"v7":7},"key37":{"v37":37},"key20":{"v20":20},"key12":{"v12":12},"key18":{"v18":18},"key23":{"v23":23},"key36":{"v36":36},"key28":{"v28":28}}"#,
            ),
            (
                "local t={} for i=1,30 do t['key'..i]={i,{a=i,b={i}}} t[i]='z' end return cjson.encode(t)",
                r#"{"1":"z","2":"z","3":"z","4":"z","5":"z","6":"z","7":"z","8":"z","9":"z","10":"z","11":"z","12":"z","13":"z","14":"z","15":"z","16":"z","17":"z","18":"z","19":"z","20":"z","21":"z","22":"z","23":"z","24":"z","25":"z","26":"z","27":"z","28":"z","29":"z","30":"z","key16":[16,{"a":16,"b":[16]}],"key9":[9,{"a":9,"b":[9]}],"key2":[2,{"a":2,"b":[2]}],"key1":[1,{"a":1,"b":[1]}],"key30":[30,{"a":30,"b":[30]}],"key29":[29,{"a":29,"b":[29]}],"key27":[27,{"a":27,"b":[27]}],"key20":[20,{"a":20,"b":[20]}],"key26":[26,{"a":26,"b":[26]}],"key22":[22,{"a":22,"b":[22]}],"key7":[7,{"a":7,"b":[7]}],"key14":[14,{"a":14,"b":[14]}],"key25":[25,{"a":25,"b":[25]}],"key8":[8,{"a":8,"b":[8]}],"key12":[12,{"a":12,"b":[12]}],"key5":[5,{"a":5,"b":[5]}],"key11":[11,{"a":11,"b":[11]}],"key24":[24,{"a":24,"b":[24]}],"key23":[23,{"a":23,"b":[23]}],"key10":[10,{"a":10,"b":[10]}],"key19":[19,{"a":19,"b":[19]}],"key17":[17,{"a":17,"b":[17]}],"key3":[3,{"a":3,"b":[3]}],"key6":[6,{"a":6,"b":[6]}],"key13":[13,{"a":13,"b":[13]}],"key15":[15,{"a":15,"b":[15]}],"key18":[18,{"a":18,"b":[18]}],"key21":[21,{"a":21,"b":[21]}],"key4":[4,{"a":4,"b":[4]}],"key28":[28,{"a":28,"b":[28]}]}"#,
            ),
            (
                "local t={} for i=1,1000 do t={t} end return #cjson.encode(t)",
                "error: user_script:1: Cannot serialise, excessive nesting (1001)",
            ),
            (
                "local t={} for i=1,1001 do t={t} end return cjson.encode(t)",
                "error: user_script:1: Cannot serialise, excessive nesting (1001)",
            ),
            ("local t={} for i=1,999 do t={a=t} end return #cjson.encode(t)", "5996"),
            (
                "local t={} for i=1,1000 do t={a=t,b=1} end return cjson.encode(t)",
                "error: user_script:1: Cannot serialise, excessive nesting (1001)",
            ),
            (
                "local t={} t[1]=t return cjson.encode(t)",
                "error: user_script:1: Cannot serialise, excessive nesting (1001)",
            ),
            ("local s=string.rep('[',1000)..string.rep(']',1000) return type(cjson.decode(s))", "table"),
            (
                "local s=string.rep('[',1001)..string.rep(']',1001) return type(cjson.decode(s))",
                "error: user_script:1: Found too many nested data structures (1001) at character 1001",
            ),
            (
                r#"local s=string.rep('{"a":',1000)..'1'..string.rep('}',1000) return type(cjson.decode(s))"#,
                "table",
            ),
            (
                r#"local s=string.rep('{"a":',1001)..'1'..string.rep('}',1001) return type(cjson.decode(s))"#,
                "error: user_script:1: Found too many nested data structures (1001) at character 5001",
            ),
        ]);
    }

    #[test]
    fn settings() {
        check(&[
            ("return cjson.encode_max_depth()", "1000"),
            ("return cjson.encode_max_depth(5)", "5"),
            ("return cjson.encode({{{{{}}}}})", "[[[[{}]]]]"),
            (
                "return cjson.encode({{{{{{}}}}}})",
                "error: user_script:1: Cannot serialise, excessive nesting (6)",
            ),
            (
                "return cjson.encode_max_depth(0)",
                "error: user_script:1: bad argument #1 to 'encode_max_depth' (expected integer between 1 and 2147483647)",
            ),
            (
                "return cjson.encode_max_depth('x')",
                "error: user_script:1: bad argument #1 to 'encode_max_depth' (number expected, got string)",
            ),
            (
                "return cjson.encode_max_depth(1, 2)",
                "error: user_script:1: bad argument #2 to 'encode_max_depth' (found too many arguments)",
            ),
            ("return cjson.encode_max_depth('1000')", "1000"),
            ("return cjson.decode_max_depth(1)", "1"),
            ("return type(cjson.decode('[1]'))", "table"),
            (
                r#"return type(cjson.decode('{"obj": {"array": [1,2,3,4]}}'))"#,
                "error: user_script:1: Found too many nested data structures (2) at character 9",
            ),
            ("return cjson.decode_max_depth(1000)", "1000"),
            ("return cjson.encode_number_precision()", "14"),
            ("return cjson.encode_number_precision(3)", "3"),
            (
                "return cjson.encode({1234, 1.23456, 100, 999, 1000, 0.1})",
                "[1.23e+03,1.23,100,999,1e+03,0.1]",
            ),
            (
                "return cjson.encode_number_precision(15)",
                "error: user_script:1: bad argument #1 to 'encode_number_precision' (expected integer between 1 and 14)",
            ),
            (
                "return cjson.encode_number_precision(0)",
                "error: user_script:1: bad argument #1 to 'encode_number_precision' (expected integer between 1 and 14)",
            ),
            ("return cjson.encode_number_precision(14)", "14"),
            ("return cjson.encode_keep_buffer()", "true"),
            ("return cjson.encode_keep_buffer(false)", "false"),
            ("return cjson.encode({1})", "[1]"),
            ("return cjson.encode_keep_buffer('on')", "true"),
            (
                "return cjson.encode_keep_buffer('maybe')",
                "error: user_script:1: bad argument #1 to 'encode_keep_buffer' (invalid option 'maybe')",
            ),
            (
                "return cjson.encode_keep_buffer(1)",
                "error: user_script:1: bad argument #1 to 'encode_keep_buffer' (invalid option '1')",
            ),
            (
                "return cjson.encode_keep_buffer({})",
                "error: user_script:1: bad argument #1 to 'encode_keep_buffer' (string expected, got table)",
            ),
            (
                "return cjson.encode_keep_buffer(true, 1)",
                "error: user_script:1: bad argument #2 to 'encode_keep_buffer' (found too many arguments)",
            ),
            ("return cjson.encode_invalid_numbers()", "false"),
            ("return cjson.encode_invalid_numbers('null')", "null"),
            ("return cjson.encode({1/0, -1/0, 0/0})", "[null,null,null]"),
            ("return cjson.encode({[1/0]=1})", r#"{"null":1}"#),
            ("return cjson.encode_invalid_numbers(true)", "true"),
            ("return cjson.encode({1/0, -1/0, 0/0})", "[inf,-inf,nan]"),
            ("return cjson.encode_invalid_numbers('off')", "false"),
            (
                "return cjson.encode_invalid_numbers('wrong')",
                "error: user_script:1: bad argument #1 to 'encode_invalid_numbers' (invalid option 'wrong')",
            ),
            ("return cjson.decode_invalid_numbers()", "true"),
            ("return cjson.decode_invalid_numbers(false)", "false"),
            (
                "return cjson.decode('0x10')",
                "error: user_script:1: Expected value but found invalid number at character 1",
            ),
            (
                "return cjson.decode('007')",
                "error: user_script:1: Expected value but found invalid number at character 1",
            ),
            (
                "return cjson.decode('-01')",
                "error: user_script:1: Expected value but found invalid number at character 1",
            ),
            (
                "return cjson.decode('nan')",
                "error: user_script:1: Expected value but found invalid token at character 1",
            ),
            (
                "return cjson.decode('-inf')",
                "error: user_script:1: Expected value but found invalid number at character 1",
            ),
            (
                "return cjson.decode('+5')",
                "error: user_script:1: Expected value but found invalid token at character 1",
            ),
            ("return cjson.decode('-5')", "-5"),
            ("return cjson.decode('0')", "0"),
            ("return cjson.decode('1e999')", "inf"),
            ("return cjson.decode_invalid_numbers('on')", "true"),
            ("local a,b,c = cjson.encode_sparse_array() return tostring(a)..' '..b..' '..c", "false 2 10"),
            ("local a,b,c = cjson.encode_sparse_array(true) return tostring(a)..' '..b..' '..c", "true 2 10"),
            ("return cjson.encode({[1]=1,[20]=2})", r#"{"1":1,"20":2}"#),
            ("return cjson.encode({[11]=2,[13]={1}})", r#"{"11":2,"13":[1]}"#),
            (
                "local a,b,c = cjson.encode_sparse_array(false, 0) return tostring(a)..' '..b..' '..c",
                "false 0 10",
            ),
            (
                "return cjson.encode({[20]=1})",
                "[null,null,null,null,null,null,null,null,null,null,null,null,null,null,null,null,null,null,null,1]",
            ),
            (
                "local a,b,c = cjson.encode_sparse_array(false, 2, 3) return tostring(a)..' '..b..' '..c",
                "false 2 3",
            ),
            (
                "return cjson.encode({[4]=1})",
                "error: user_script:1: Cannot serialise table: excessively sparse array",
            ),
            ("return cjson.encode({[3]=1})", "[null,null,1]"),
            (
                "return cjson.encode_sparse_array(false, -1)",
                "error: user_script:1: bad argument #1 to 'encode_sparse_array' (expected integer between 0 and 2147483647)",
            ),
            (
                "return cjson.encode_sparse_array(false, 2, 'x')",
                "error: user_script:1: bad argument #3 to 'encode_sparse_array' (number expected, got string)",
            ),
            (
                "return cjson.encode_sparse_array(false, 2, 10, 1)",
                "error: user_script:1: bad argument #4 to 'encode_sparse_array' (found too many arguments)",
            ),
            (
                "local a,b,c = cjson.encode_sparse_array(false, 2, 10) return tostring(a)..' '..b..' '..c",
                "false 2 10",
            ),
            (
                "local n = cjson.new() n.encode_max_depth(1) return tostring(pcall(n.encode, {{}}))..cjson.encode({{}})",
                "false[{}]",
            ),
            ("return cjson._NAME .. cjson._VERSION .. type(cjson.null)", "cjson2.1.0userdata"),
            (
                "local f = cjson.encode return f()",
                "error: user_script:1: bad argument #1 to 'f' (expected 1 argument)",
            ),
            ("return cjson:encode()", "error: user_script:1: Cannot serialise function: type not supported"),
            (
                "return cjson.encode:x()",
                "error: user_script:1: attempt to index field 'encode' (a function value)",
            ),
            (
                "local t={} for i=1,40 do t['key'..i]={i} end return cjson.encode(cmsgpack.unpack(cmsgpack.pack(t)))",
                r#"{"key16":[16],"key9":[9],"key40":[40],"key24":[24],"key14":[14],"key8":[8],"key31":[31],"key26":[26],"key17":[17],"key39":[39],"key13":[13],"key21":[21],"key4":[4],"key32":[32],"key15":[15],"key1":[1],"key27":[27],"key5":[5],"key38":[38],"key34":[34],"key33":[33],"key3":[3],"key22":[22],"key23":[23],"key6":[6],"key25":[25],"key11":[11],"key12":[12],"key2":[2],"key10":[10],"key19":[19],"key29":[29],"key7":[7],"key37":[37],"key20":[20],"key35":[35],"key18":[18],"key30":[30],"key36":[36],"key28":[28]}"#,
            ),
        ]);
    }

    #[test]
    fn nesting_ends_without_a_stack() {
        // Redis goes a thousand slots of its stack deeper.
        check(&[
            (
                "cjson.encode_max_depth(100000) cjson.decode_max_depth(100000) local t = {} for i = 1, 9000 do t = {t} end return cjson.encode(t)",
                "error: user_script:1: Cannot serialise, excessive nesting (6998)",
            ),
            (
                "local t = {} for i = 1, 9000 do t = {a = t} end return cjson.encode(t)",
                "error: user_script:1: Cannot serialise, excessive nesting (3500)",
            ),
            (
                "return cjson.decode(string.rep('[', 9000))",
                "error: user_script:1: Found too many nested data structures (6999) at character 6999",
            ),
            (
                r#"return cjson.decode(string.rep('{"a":', 9000))"#,
                "error: user_script:1: Found too many nested data structures (3500) at character 17496",
            ),
            ("return #cjson.encode(cjson.decode(string.rep('[', 6997) .. string.rep(']', 6997)))", "13994"),
        ]);
    }

    #[test]
    fn arrays_can_be_marked() {
        check(&[
            ("return cjson.encode(cjson.decode('[]'))", "{}"),
            ("return cjson.decode_array_with_array_mt()", "false"),
            ("return cjson.decode_array_with_array_mt(true)", "true"),
            ("return cjson.encode(cjson.decode('[[],{},[1],{\"a\":[]}]'))", r#"[[],{},[1],{"a":[]}]"#),
            ("return cjson.encode(setmetatable({}, {}))", "{}"),
            ("return cjson.encode(cjson.new().decode('[]'))", "{}"),
            ("return cjson.decode_array_with_array_mt(false)", "false"),
            ("return cjson.encode(cjson.decode('[]'))", "{}"),
        ]);
    }

    #[test]
    fn instances_share_their_references() {
        check(&[("for i = 1, 20000 do cjson.new() end return cjson.encode({1})", "[1]")]);
    }
}
