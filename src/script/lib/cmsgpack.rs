//! `cmsgpack`: Lua values to and from MessagePack, as lua-cmsgpack 0.4.0 in Redis 8.0.
//!
//! Must stay true: tables are written to a depth of sixteen, deeper ones as nil, so recursion is bounded; tables are
//! read as they would grow one element at a time, for that decides the order of their keys.

use mlua::{Error, IntoLua, Lua, MultiValue, Result, Table, Value};

use super::call::{Call, function};
use super::guard::Raised;
use super::msgpack::{
    Container, Malformed, Scalar, Sink, decode, put_boolean, put_container, put_integer, put_nil, put_number,
    put_text,
};
use super::{SLOTS_OF_CALL, STACK_SLOTS_MAX};

/// Tables inside tables that are written.
const NESTING_MAX: usize = 16;

/// Opens the library: a table of its functions and of what it says about itself.
///
/// # Errors
/// Lua's: memory.
pub fn open(lua: &Lua) -> Result<Table> {
    let table = lua.create_table()?;
    table.raw_set("pack", function(lua, pack)?)?;
    table.raw_set("unpack", function(lua, |call| unpack(call, call.count(), 0, 0))?)?;
    table.raw_set("unpack_one", function(lua, |call| unpack(call, 1, 1, call.integer_or(2, 0)?))?)?;
    let limited = |call: &Call<'_>| unpack(call, 1, call.integer(2)?, call.integer_or(3, 0)?);
    table.raw_set("unpack_limit", function(lua, limited)?)?;
    table.raw_set("_NAME", "cmsgpack")?;
    table.raw_set("_VERSION", "lua-cmsgpack 0.4.0")?;
    table.raw_set("_COPYRIGHT", "Copyright (C) 2012, Salvatore Sanfilippo")?;
    table.raw_set("_DESCRIPTION", "MessagePack C implementation for Lua")?;
    Ok(table)
}

/// All arguments, one document each.
fn pack(call: &Call<'_>) -> Result<Value> {
    if call.count() == 0 {
        return Err(call.bad_argument(0, "MessagePack pack needs input."));
    }
    if 2 * call.count() > STACK_SLOTS_MAX {
        return Err(call.bad_argument(0, "Too many arguments for MessagePack pack."));
    }
    let mut out = Vec::new();
    for number in 1..=call.count() {
        put_value(&mut out, call.value(number), 0)?;
    }
    call.lua.create_string(out).map(Value::String)
}

fn put_value(out: &mut Vec<u8>, value: &Value, level: usize) -> Result<()> {
    match value {
        Value::Boolean(value) => put_boolean(out, *value),
        Value::Integer(value) => put_integer(out, *value),
        Value::Number(value) => put_number(out, *value),
        Value::String(text) => put_text(out, &text.as_bytes()),
        Value::Table(table) if level < NESTING_MAX => return put_table(out, table, level + 1),
        _ => put_nil(out),
    }
    Ok(())
}

/// A table, as an array if its keys are the numbers from one on without a hole.
fn put_table(out: &mut Vec<u8>, table: &Table, level: usize) -> Result<()> {
    if let Some(count) = array_len(table)? {
        put_container(out, Container::Array, count);
        for index in 1..=count {
            put_value(out, &table.raw_get(index)?, level)?;
        }
        return Ok(());
    }
    let mut count = 0;
    table.for_each::<bool, bool>(|_, _| {
        count += 1;
        Ok(())
    })?;
    put_container(out, Container::Map, count);
    for pair in table.pairs::<Value, Value>() {
        let (key, value) = pair?;
        put_value(out, &key, level)?;
        put_value(out, &value, level)?;
    }
    Ok(())
}

/// The number of elements of a table that is an array.
fn array_len(table: &Table) -> Result<Option<usize>> {
    let (mut count, mut largest) = (0, 0);
    // Truth values in place of the elements keep those from being looked at.
    for pair in table.pairs::<Value, bool>() {
        let Value::Integer(key @ 1..=0x7fff_ffff) = pair?.0 else { return Ok(None) };
        largest = largest.max(key as usize);
        count += 1;
    }
    Ok((largest == count).then_some(count))
}

/// Up to `limit` documents from `offset` on, behind the offset of what follows them (-1: nothing). When both are zero,
/// all documents and no offset. `slots` of Lua's stack hold arguments.
fn unpack(call: &Call<'_>, slots: usize, limit: i64, offset: i64) -> Result<MultiValue> {
    let input = call.string(1)?;
    let input = &*input.as_bytes();
    let all = limit == 0 && offset == 0;
    if offset < 0 || limit < 0 {
        // Redis has the length where the limit should stand.
        let (offset, len) = (offset as i32, input.len() as i32);
        return Err(
            call.failure(format!("Invalid request to unpack with offset of {offset} and limit of {len}."))
        );
    }
    let Some(rest) = usize::try_from(offset).ok().and_then(|offset| input.get(offset..)) else {
        let (offset, len) = (offset as i32, input.len() as i32);
        return Err(call.failure(format!("Start offset {offset} greater than input length {len}.")));
    };
    let limit = if all { i64::from(i32::MAX) } else { limit };
    let mut builder = Builder { lua: call.lua, open: Vec::new(), done: Vec::new() };
    let (mut at, mut count) = (0, 0);
    while at < rest.len() && count < limit {
        let results = builder.done.len();
        if slots + results + usize::from(!all) + SLOTS_OF_CALL > STACK_SLOTS_MAX {
            return Err(Stop::from(Malformed::TooManyValues).raise(call));
        }
        at += decode(&rest[at..], slots + results, &mut builder).map_err(|stop| stop.raise(call))?;
        count += 1;
    }
    let mut results = MultiValue::from_vec(builder.done);
    if !all {
        let next = if at == rest.len() { -1 } else { offset + at as i64 };
        results.push_front(next.into_lua(call.lua)?);
    }
    Ok(results)
}

/// Why building values ended.
enum Stop {
    Malformed(Malformed),
    Lua(Error),
}

impl Stop {
    fn raise(self, call: &Call<'_>) -> Error {
        match self {
            Stop::Malformed(malformed) => call.failure(malformed.to_string()),
            // More references than Lua has room for, which takes as many results or levels as fill its stack.
            Stop::Lua(Error::StackError) => call.failure(Malformed::TooManyValues.to_string()),
            Stop::Lua(error) => error,
        }
    }
}

impl From<Malformed> for Stop {
    fn from(malformed: Malformed) -> Stop {
        Stop::Malformed(malformed)
    }
}

impl From<Error> for Stop {
    fn from(error: Error) -> Stop {
        Stop::Lua(error)
    }
}

/// A table that is being filled.
struct Open {
    table: Table,
    /// The place of the next element, of an array.
    index: usize,
    /// The key that waits for its value, of a map.
    key: Option<Value>,
    container: Container,
}

/// Makes Lua values of a document.
struct Builder<'a> {
    lua: &'a Lua,
    open: Vec<Open>,
    done: Vec<Value>,
}

impl Builder<'_> {
    /// Puts a value where it belongs; it may still be filled.
    fn add<V: IntoLua>(&mut self, value: V) -> Result<()> {
        let Some(outer) = self.open.last_mut() else {
            self.done.push(value.into_lua(self.lua)?);
            return Ok(());
        };
        if outer.container == Container::Array {
            outer.index += 1;
            return outer.table.raw_seti(outer.index, value);
        }
        match outer.key.take() {
            None => outer.key = Some(value.into_lua(self.lua)?),
            Some(Value::Nil) => return Err(Raised::error("table index is nil")),
            Some(Value::Number(key)) if key.is_nan() => return Err(Raised::error("table index is NaN")),
            Some(key) => return outer.table.raw_set(key, value),
        }
        Ok(())
    }
}

impl Sink for Builder<'_> {
    type Error = Stop;

    fn scalar(&mut self, value: Scalar<'_>) -> std::result::Result<(), Stop> {
        match value {
            Scalar::Nil => self.add(Value::Nil),
            Scalar::Boolean(value) => self.add(value),
            Scalar::Integer(value) => self.add(value),
            Scalar::Number(value) => self.add(value),
            // Lua takes text at once, other bytes by way of a reference.
            Scalar::Text(bytes) => match std::str::from_utf8(bytes) {
                Ok(text) => self.add(text),
                Err(_) => self.add(self.lua.create_string(bytes)?),
            },
        }
        .map_err(Stop::Lua)
    }

    fn open(&mut self, container: Container, _: usize) -> std::result::Result<(), Stop> {
        let table = self.lua.create_table()?;
        self.add(&table)?;
        self.open.push(Open { table, index: 0, key: None, container });
        Ok(())
    }

    fn close(&mut self) {
        self.open.pop();
    }
}

#[cfg(test)]
mod tests {
    //! What is expected here is what Redis 8.0.6 says.

    use super::super::testing::check;

    #[test]
    fn values_are_packed_and_unpacked() {
        check(&[
            (
                "return (string.gsub(cmsgpack.pack(0,127,128,255,256,65535,65536,4294967295,4294967296,2^53,-1,-32,-33,-128,-129,-32768,-32769,-2147483648,-2147483649,-2^63,2^63,-0,0.1,0.5,1/0,-1/0,nil,true,false), '.', function(c) return string.format('%02x', c:byte()) end))",
                "007fcc80ccffcd0100cdffffce00010000ceffffffffcf0000000100000000cf0020000000000000ffe0d0dfd080d1ff7fd18000d2ffff7fffd280000000d3ffffffff7fffffffd38000000000000000ca5f00000000cb3fb999999999999aca3f000000ca7f800000caff800000c0c3c2",
            ),
            ("local h = string.format('%02x', cmsgpack.pack(0/0):byte(2)) return h", "ff"),
            (
                "return (string.gsub(cmsgpack.pack('', 'abc', string.rep('x',31), string.rep('x', 32)), '.', function(c) return string.format('%02x', c:byte()) end))",
                "a0a3616263bf78787878787878787878787878787878787878787878787878787878787878d9207878787878787878787878787878787878787878787878787878787878787878",
            ),
            (
                "return (string.gsub(cmsgpack.pack(string.rep('x',255)):sub(1,4), '.', function(c) return string.format('%02x', c:byte()) end))",
                "d9ff7878",
            ),
            (
                "return (string.gsub(cmsgpack.pack(string.rep('x',256)):sub(1,4), '.', function(c) return string.format('%02x', c:byte()) end))",
                "da010078",
            ),
            (
                "return (string.gsub(cmsgpack.pack(string.rep('x',65536)):sub(1,6), '.', function(c) return string.format('%02x', c:byte()) end))",
                "db0001000078",
            ),
            (
                "return (string.gsub(cmsgpack.pack({}, {1}, {1,2,nil,4}, {a=1}, {[1]=1,[3]=3}, {[0]=1}, {[1.5]=1}, {[true]=false}), '.', function(c) return string.format('%02x', c:byte()) end))",
                "9091018301010202040481a16101820101030381000181ca3fc000000181c3c2",
            ),
            (
                "local t={} for i=1,16 do t[i]=i end return (string.gsub(cmsgpack.pack(t), '.', function(c) return string.format('%02x', c:byte()) end))",
                "dc00100102030405060708090a0b0c0d0e0f10",
            ),
            (
                "local t={} for i=1,20 do t['k'..i]=i end return (string.gsub(cmsgpack.pack(t), '.', function(c) return string.format('%02x', c:byte()) end))",
                "de0014a36b313610a36b313913a36b31310ba36b313711a36b31350fa36b323014a36b31300aa26b3808a26b3101a36b31320ca26b3303a26b3202a26b3909a36b31330da36b313812a36b31340ea26b3606a26b3707a26b3404a26b3505",
            ),
            (
                "local a = {x=nil,y=5} local b = {x=a} a['x'] = b return (string.gsub(cmsgpack.pack(a), '.', function(c) return string.format('%02x', c:byte()) end))",
                "82a17905a17881a17882a17905a17881a17882a17905a17881a17882a17905a17881a17882a17905a17881a17882a17905a17881a17882a17905a17881a17882a17905a17881a178c0",
            ),
            (
                "local t={} for i=1,20 do t={t} end return (string.gsub(cmsgpack.pack(t), '.', function(c) return string.format('%02x', c:byte()) end))",
                "91919191919191919191919191919191c0",
            ),
            (
                "return (string.gsub(cmsgpack.pack(type, cjson.null, {type}), '.', function(c) return string.format('%02x', c:byte()) end))",
                "c0c091c0",
            ),
            (
                "return cmsgpack.pack()",
                "error: user_script:1: bad argument #0 to 'pack' (MessagePack pack needs input.)",
            ),
            (
                "return cmsgpack.unpack()",
                "error: user_script:1: bad argument #1 to 'unpack' (string expected, got no value)",
            ),
            (
                "return cmsgpack.unpack({})",
                "error: user_script:1: bad argument #1 to 'unpack' (string expected, got table)",
            ),
            ("return cmsgpack.unpack(5)", "53"),
            ("return select('#', cmsgpack.unpack(''))", "0"),
            (r#"return select('#', cmsgpack.unpack('\1\2\3', 'extra'))"#, "3"),
            (r#"return cmsgpack.unpack('\204')"#, "error: user_script:1: Missing bytes in input."),
            (r#"return cmsgpack.unpack('\193')"#, "error: user_script:1: Bad data format in input."),
            (r#"return cmsgpack.unpack('\196\1x')"#, "error: user_script:1: Bad data format in input."),
            (r#"return cmsgpack.unpack('\1\193')"#, "error: user_script:1: Bad data format in input."),
            (r#"return cmsgpack.unpack('\220\0\5\1\2')"#, "error: user_script:1: Missing bytes in input."),
            (
                r#"return cmsgpack.unpack('\221\255\255\255\255\1\193')"#,
                "error: user_script:1: Bad data format in input.",
            ),
            (
                r#"return cmsgpack.unpack('\223\255\255\255\255\1\2')"#,
                "error: user_script:1: Missing bytes in input.",
            ),
            (
                r#"return cmsgpack.unpack('\219\255\255\255\255abc')"#,
                "error: user_script:1: Missing bytes in input.",
            ),
            (r#"return cmsgpack.unpack('\129\192\1')"#, "error: table index is nil"),
            (r#"return cmsgpack.unpack('\129\203\127\248\0\0\0\0\0\0\1')"#, "error: table index is NaN"),
            (r#"return cmsgpack.unpack('\129\1\192')[1]"#, "nil"),
            (r#"return #cmsgpack.unpack('\147\1\192\3')"#, "1"),
            (r#"return cmsgpack.unpack('\207\255\255\255\255\255\255\255\255')"#, "-1"),
            (r#"return cmsgpack.unpack('\207\128\0\0\0\0\0\0\0')"#, "-9.2233720368548e+18"),
            (r#"return cmsgpack.unpack('\211\255\255\255\255\255\255\255\255')"#, "-1"),
            (r#"return cmsgpack.unpack('\202\63\128\0\0')"#, "1"),
            (r#"return cmsgpack.unpack('\203\63\240\0\0\0\0\0\0')"#, "1"),
            (r#"return cmsgpack.unpack('\208\128')"#, "-128"),
            (r#"return cmsgpack.unpack('\209\128\0')"#, "-32768"),
            (r#"return cmsgpack.unpack('\210\128\0\0\0')"#, "-2147483648"),
            (r#"return cmsgpack.unpack('\206\255\255\255\255')"#, "4294967295"),
            (r#"return cmsgpack.unpack('\224')"#, "-32"),
            (r#"return next(cmsgpack.unpack('\129\129\1\2\3')) ~= nil"#, "true"),
            (r#"return type(next(cmsgpack.unpack('\129\129\1\2\147\1\2\3')))"#, "table"),
            (r#"return #select(2, next(cmsgpack.unpack('\129\129\1\2\147\1\2\3')))"#, "3"),
            (r#"local o,v = cmsgpack.unpack_one('\1\2\3') return o..' '..v"#, "1 1"),
            (r#"local o,v = cmsgpack.unpack_one('\1\2\3', 2) return o..' '..v"#, "-1 3"),
            (r#"local o,v = cmsgpack.unpack_one('\1\2\3', 3) return o..' '..tostring(v)"#, "-1 nil"),
            (
                r#"return cmsgpack.unpack_one('\1\2\3', 4)"#,
                "error: user_script:1: Start offset 4 greater than input length 3.",
            ),
            (
                r#"return cmsgpack.unpack_one('\1\2\3', -1)"#,
                "error: user_script:1: Invalid request to unpack with offset of -1 and limit of 3.",
            ),
            (
                r#"return cmsgpack.unpack_one('\1', 1e300)"#,
                "error: user_script:1: Invalid request to unpack with offset of 0 and limit of 1.",
            ),
            (
                r#"return cmsgpack.unpack_one('\1', 'x')"#,
                "error: user_script:1: bad argument #2 to 'unpack_one' (number expected, got string)",
            ),
            (
                "return cmsgpack.unpack_one()",
                "error: user_script:1: bad argument #1 to 'unpack_one' (string expected, got no value)",
            ),
            ("return cmsgpack.unpack_one('')", "-1"),
            (r#"return cmsgpack.unpack_limit('\1\2\3', 2)"#, "2"),
            (
                r#"local a,b,c,d = cmsgpack.unpack_limit('\1\2\3', 2) return a..' '..b..' '..c..' '..tostring(d)"#,
                "2 1 2 nil",
            ),
            (
                r#"local a,b,c,d = cmsgpack.unpack_limit('\1\2\3', 9) return a..' '..b..' '..c..' '..tostring(d)"#,
                "-1 1 2 3",
            ),
            (
                r#"local a,b,c,d = cmsgpack.unpack_limit('\1\2\3', 0) return a..' '..b..' '..c..' '..tostring(d)"#,
                "1 2 3 nil",
            ),
            (r#"local a,b,c,d = cmsgpack.unpack_limit('\1\2\3', 0, 1) return a..' '..tostring(b)"#, "1 nil"),
            (r#"local a,b,c,d = cmsgpack.unpack_limit('\1\2\3', 1, 1) return a..' '..tostring(b)"#, "2 2"),
            (
                r#"return cmsgpack.unpack_limit('\1\2\3')"#,
                "error: user_script:1: bad argument #2 to 'unpack_limit' (number expected, got no value)",
            ),
            (
                r#"return cmsgpack.unpack_limit('\1\2\3', -1)"#,
                "error: user_script:1: Invalid request to unpack with offset of 0 and limit of 3.",
            ),
            (
                r#"return cmsgpack.unpack_limit('\1\2\3', 1, 99)"#,
                "error: user_script:1: Start offset 99 greater than input length 3.",
            ),
            (r#"local s=string.rep('\161x',7000) return select('#',cmsgpack.unpack(s))"#, "7000"),
            (r#"local s=string.rep('\145',3999)..'\1' return (type(cmsgpack.unpack(s)))"#, "table"),
            (
                r#"local s=string.rep('\145',4000)..'\1' return (type(cmsgpack.unpack(s)))"#,
                "error: user_script:1: stack overflow (in function mp_decode_to_lua_array)",
            ),
            (r#"local s=string.rep('\129\1',3999)..'\1' return (type(cmsgpack.unpack(s)))"#, "table"),
            (
                r#"local s=string.rep('\129\1',4000)..'\1' return (type(cmsgpack.unpack(s)))"#,
                "error: user_script:1: stack overflow (too many return values at once; use unpack_one or unpack_limit instead.)",
            ),
            ("return #cmsgpack.pack(unpack({1,2,3},1,4000))", "4000"),
            (
                "return cmsgpack.pack(unpack({1,2,3},1,4001))",
                "error: user_script:1: bad argument #0 to 'pack' (Too many arguments for MessagePack pack.)",
            ),
            ("local t={} for i=1,3900 do t[i]='s'..i end return #cmsgpack.pack(unpack(t))", "22293"),
            (
                "return cmsgpack._NAME..cmsgpack._VERSION..cmsgpack._COPYRIGHT..cmsgpack._DESCRIPTION",
                "cmsgpacklua-cmsgpack 0.4.0Copyright (C) 2012, Salvatore SanfilippoMessagePack C implementation for Lua",
            ),
        ]);
    }

    #[test]
    fn results_end_with_the_stack() {
        // Redis has room for a few more.
        let full = "error: user_script:1: stack overflow (too many return values at once; use unpack_one or unpack_limit \
                    instead.)";
        check(&[
            (r"local s = string.rep('\1', 7936) return select('#', cmsgpack.unpack(s))", "7936"),
            (r"local s = string.rep('\1', 7937) return select('#', cmsgpack.unpack(s))", full),
            (r"local s = string.rep('\1', 7937) return select('#', cmsgpack.unpack_limit(s, 9999))", full),
            (r"local s = string.rep('\161x', 7937) return select('#', cmsgpack.unpack(s))", full),
            (r"local s = string.rep('\144', 7937) return select('#', cmsgpack.unpack(s))", full),
            (r"local s = string.rep('\161x', 7000) return select('#', cmsgpack.unpack(s))", "7000"),
            (r"local s = string.rep('\145', 3999) .. '\1' return type(cmsgpack.unpack(s))", "table"),
            (
                r"local s = string.rep('\145', 4000) .. '\1' return type(cmsgpack.unpack(s))",
                "error: user_script:1: stack overflow (in function mp_decode_to_lua_array)",
            ),
            (
                "local t = {} for i = 1, 7900 do t[i] = 's' .. i end return bit.band(unpack(t))",
                "error: user_script:1: bad argument #1 to 'band' (number expected, got string)",
            ),
        ]);
    }

    #[test]
    fn long_things_come_back() {
        check(&[(
            "local t = {s = string.rep('x', 65530), l = string.rep('x', 100000), a = {}, m = {}, d = 0.1, n = -3147483648}
             for i = 1, 100000 do t.a[i] = i t.m[tostring(i)] = i end
             local u = cmsgpack.unpack(cmsgpack.pack(t))
             for i = 1, 100000 do assert(u.a[i] == i and u.m[tostring(i)] == i) end
             return tostring(u.s == t.s and u.l == t.l and u.d == t.d and u.n == t.n and #u.a == 100000)",
            "true",
        )]);
    }
}
