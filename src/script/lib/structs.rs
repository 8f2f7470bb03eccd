//! `struct`: Lua values to and from the layouts of C structures, as the `struct` library of Redis 8.0.
//!
//! Formats: `>` `<` byte order, `![n]` greatest alignment, `x` a byte of padding, `b` `B` `h` `H` `l` `L` `T` integers
//! of 1, 2, 8 and 8 bytes, `i[n]` `I[n]` of n bytes (4), `c[n]` n characters (1; `c0`: all, or as many as the number
//! before says), `s` a string up to its zero, `f` `d` floats; blanks are skipped. Small letters are signed.
//!
//! Must stay true: padding is at most 31 bytes whatever alignment a format asks for, and positions that pass the end of
//! the data are errors, however far they pass it.

use mlua::{IntoLua, Lua, MultiValue, Result, Table, Value};

use super::call::{Call, function, truncate};
use super::{SLOTS_OF_CALL, STACK_SLOTS_MAX};

/// The largest integer type, bytes.
const INTEGER_BYTES_MAX: usize = 32;
/// The alignment of `!` without a number.
const ALIGNMENT_DEFAULT: usize = 8;

/// Opens the library: a table of its functions.
///
/// # Errors
/// Lua's: memory.
pub fn open(lua: &Lua) -> Result<Table> {
    let table = lua.create_table()?;
    // Behind the arguments the original has a nil on its stack, which shows when one is missing.
    let marked = |lua: &Lua, mut args: MultiValue| {
        if !args.is_empty() {
            args.push_back(Value::Nil);
        }
        pack(&Call::new(lua, args))
    };
    table.raw_set("pack", lua.create_function(marked)?)?;
    table.raw_set("unpack", function(lua, unpack)?)?;
    table.raw_set("size", function(lua, size)?)?;
    Ok(table)
}

/// A format that is being read, and the state that its options set.
struct Format<'a> {
    call: &'a Call<'a>,
    text: &'a [u8],
    big_endian: bool,
    alignment: usize,
}

impl<'a> Format<'a> {
    /// The format in the first argument; a zero byte ends it.
    fn new(call: &'a Call<'a>, text: &'a [u8]) -> Format<'a> {
        let end = text.iter().position(|byte| *byte == 0).unwrap_or(text.len());
        Format { call, text: &text[..end], big_endian: cfg!(target_endian = "big"), alignment: 1 }
    }

    /// The next option with its size, 0 when it has none or its value's.
    fn next(&mut self) -> Result<Option<(u8, usize)>> {
        let Some((option, rest)) = self.text.split_first() else { return Ok(None) };
        self.text = rest;
        let size = match option {
            b'b' | b'B' | b'x' => 1,
            b'h' | b'H' => 2,
            b'l' | b'L' | b'T' | b'd' => 8,
            b'f' => 4,
            b'c' => self.number(1)?,
            b'i' | b'I' => match self.number(4)? {
                size @ 0..=INTEGER_BYTES_MAX => size,
                size => {
                    let text = format!("integral size {size} is larger than limit of {INTEGER_BYTES_MAX}");
                    return Err(self.call.failure(text));
                }
            },
            _ => 0,
        };
        Ok(Some((*option, size)))
    }

    /// The number in front, `default` if there is none.
    fn number(&mut self, default: usize) -> Result<usize> {
        let len = self.text.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let (digits, rest) = self.text.split_at(len);
        if digits.is_empty() {
            return Ok(default);
        }
        self.text = rest;
        let number = digits
            .iter()
            .try_fold(0_i32, |number, digit| number.checked_mul(10)?.checked_add(i32::from(digit - b'0')));
        number.map(|number| number as usize).ok_or_else(|| self.call.failure("integral size overflow"))
    }

    /// Bytes between `position` and the next place for an option of `size`. Sizes that are no powers of two get what
    /// the original's arithmetic gives them.
    fn padding(&self, position: usize, option: u8, size: usize) -> usize {
        if size == 0 || option == b'c' {
            return 0;
        }
        let size = size.min(self.alignment);
        (size - (position & (size - 1))) & (size - 1)
    }

    /// An option that stands for no value.
    fn control(&mut self, option: u8) -> Result<()> {
        match option {
            b' ' => {}
            b'>' => self.big_endian = true,
            b'<' => self.big_endian = false,
            b'!' => {
                let alignment = self.number(ALIGNMENT_DEFAULT)?;
                if !alignment.is_power_of_two() {
                    return Err(self.call.failure(format!("alignment {alignment} is not a power of 2")));
                }
                self.alignment = alignment;
            }
            _ => {
                return Err(self
                    .call
                    .bad_argument(1, [b"invalid format option '", &[option][..], b"'"].concat()));
            }
        }
        Ok(())
    }

    /// Appends a number's bytes, which are little-endian.
    fn put(&self, out: &mut Vec<u8>, bytes: &[u8]) {
        let from = out.len();
        out.extend_from_slice(bytes);
        if self.big_endian {
            out[from..].reverse();
        }
    }

    /// A number's bytes as little-endian ones, the rest zero.
    fn take<const N: usize>(&self, bytes: &[u8]) -> [u8; N] {
        let mut taken = [0; N];
        if self.big_endian {
            taken.iter_mut().zip(bytes.iter().rev()).for_each(|(to, from)| *to = *from);
        } else {
            taken.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
        }
        taken
    }
}

/// The integer of a number, as C on x86-64 converts it: negative ones by way of a signed integer, and what is too large
/// for an unsigned one is zero.
fn integer_of(value: f64) -> u64 {
    const HALF: f64 = 9_223_372_036_854_775_808.0;
    if value >= HALF { truncate(value - HALF) as u64 ^ 1 << 63 } else { truncate(value) as u64 }
}

fn pack(call: &Call<'_>) -> Result<Value> {
    let text = call.string(1)?;
    let text = text.as_bytes();
    let mut format = Format::new(call, &text);
    let (mut out, mut argument) = (Vec::new(), 1);
    while let Some((option, size)) = format.next()? {
        let padding = format.padding(out.len(), option, size);
        out.resize(out.len() + padding, 0);
        match option {
            b'b' | b'B' | b'h' | b'H' | b'l' | b'L' | b'T' | b'i' | b'I' => {
                argument += 1;
                let mut bytes = [0; INTEGER_BYTES_MAX];
                bytes[..8].copy_from_slice(&integer_of(call.number(argument)?).to_le_bytes());
                format.put(&mut out, &bytes[..size]);
            }
            b'f' => {
                argument += 1;
                format.put(&mut out, &(call.number(argument)? as f32).to_le_bytes());
            }
            b'd' => {
                argument += 1;
                format.put(&mut out, &call.number(argument)?.to_le_bytes());
            }
            b'x' => out.push(0),
            b'c' | b's' => {
                argument += 1;
                let value = call.string(argument)?;
                let value = value.as_bytes();
                let size = if size == 0 { value.len() } else { size };
                // The original has counted on before it complains.
                let taken =
                    value.get(..size).ok_or_else(|| call.bad_argument(argument + 1, "string too short"))?;
                out.extend_from_slice(taken);
                if option == b's' {
                    out.push(0);
                }
            }
            _ => format.control(option)?,
        }
    }
    call.lua.create_string(out).map(Value::String)
}

fn unpack(call: &Call<'_>) -> Result<MultiValue> {
    let (text, data) = (call.string(1)?, call.string(2)?);
    let (text, data) = (text.as_bytes(), &*data.as_bytes());
    let mut format = Format::new(call, &text);
    let position = call.integer_or(3, 1)?;
    if position == 0 {
        return Err(call.bad_argument(3, "offset must be 1 or greater"));
    }
    // A negative one is as good as one behind the end.
    let mut at = usize::try_from(position).map_or(usize::MAX, |position| position - 1);
    let too_short = || call.bad_argument(2, "data string too short");
    let too_many = || call.overflow("too many results");
    let mut results: Vec<Value> = Vec::new();
    while let Some((option, size)) = format.next()? {
        at = at.saturating_add(format.padding(at, option, size));
        let rest = data.get(at..).ok_or_else(too_short)?;
        let field = rest.get(..size).ok_or_else(too_short)?;
        if call.count() + results.len() + 2 + SLOTS_OF_CALL > STACK_SLOTS_MAX {
            return Err(too_many());
        }
        let mut used = size;
        match option {
            b'b' | b'B' | b'h' | b'H' | b'l' | b'L' | b'T' | b'i' | b'I' => {
                results.push(integer(&format, field, option.is_ascii_lowercase()));
            }
            b'f' => results.push(Value::Number(f32::from_le_bytes(format.take(field)).into())),
            b'd' => results.push(Value::Number(f64::from_le_bytes(format.take(field)))),
            b'x' => {}
            b'c' => {
                if size == 0 {
                    used = previous_size(call, &mut results)?;
                }
                let bytes = rest.get(..used).ok_or_else(too_short)?;
                results.push(Value::String(call.lua.create_string(bytes).map_err(|_| too_many())?));
            }
            b's' => {
                let len = memchr::memchr(0, rest).ok_or_else(|| call.failure("unfinished string in data"))?;
                results.push(Value::String(call.lua.create_string(&rest[..len]).map_err(|_| too_many())?));
                used = len + 1;
            }
            _ => format.control(option)?,
        }
        at += used;
    }
    results.push((at as u64 as f64 + 1.0).into_lua(call.lua)?);
    Ok(MultiValue::from_vec(results))
}

/// An integer of any size, of which the low 64 bits count.
fn integer(format: &Format<'_>, field: &[u8], signed: bool) -> Value {
    let value = u64::from_le_bytes(format.take(field));
    let unused = 64 - 8 * field.len().min(8) as u32;
    match signed {
        true if !field.is_empty() => Value::Number(((value << unused) as i64 >> unused) as f64),
        _ => Value::Number(value as f64),
    }
}

/// The size of a string that the number before it says; that number is no result then.
fn previous_size(call: &Call<'_>, results: &mut Vec<Value>) -> Result<usize> {
    let size = match results.pop() {
        Some(Value::Number(size)) => Some(size),
        Some(text @ Value::String(_)) => call.lua.coerce_number(text)?,
        _ => None,
    };
    let size = size.ok_or_else(|| call.failure("format 'c0' needs a previous size"))?;
    Ok(integer_of(size) as usize)
}

fn size(call: &Call<'_>) -> Result<f64> {
    let text = call.string(1)?;
    let text = text.as_bytes();
    let mut format = Format::new(call, &text);
    let mut total = 0_usize;
    while let Some((option, size)) = format.next()? {
        total = total.saturating_add(format.padding(total, option, size)).saturating_add(size);
        match option {
            b's' => return Err(call.bad_argument(1, "option 's' has no fixed size")),
            b'c' if size == 0 => return Err(call.bad_argument(1, "option 'c0' has no fixed size")),
            // Unknown letters and digits are let pass here, unlike elsewhere.
            _ if option.is_ascii_alphanumeric() => {}
            _ => format.control(option)?,
        }
    }
    Ok(total as f64)
}

#[cfg(test)]
mod tests {
    //! What is expected here is what Redis 8.0.6 says.

    use super::super::testing::check;

    #[test]
    fn layouts_are_packed_and_unpacked() {
        check(&[
            (
                "return (string.gsub(struct.pack('>bBhHlLTiIfdx', -1,255,-2,65535,-3,4,5,-6,7,1.5,2.5), '.', function(c) return string.format('%02x', c:byte()) end))",
                "fffffffefffffffffffffffffffd00000000000000040000000000000005fffffffa000000073fc00000400400000000000000",
            ),
            (
                "return (string.gsub(struct.pack('<bBhHlLTiIfdx', -1,255,-2,65535,-3,4,5,-6,7,1.5,2.5), '.', function(c) return string.format('%02x', c:byte()) end))",
                "fffffefffffffdffffffffffffff04000000000000000500000000000000faffffff070000000000c03f000000000000044000",
            ),
            (
                "return (string.gsub(struct.pack('!8bhbibdbl', 1,2,3,4,5,6,7,8), '.', function(c) return string.format('%02x', c:byte()) end))",
                "01000200030000000400000005000000000000000000184007000000000000000800000000000000",
            ),
            (
                "return (string.gsub(struct.pack('!4bdbs!bd', 1,2,3,'ab',4,5), '.', function(c) return string.format('%02x', c:byte()) end))",
                "0100000000000000000000400361620004000000000000000000000000001440",
            ),
            (
                "return (string.gsub(struct.pack('!bi3bi5bi16', 1,2,3,4,5,6), '.', function(c) return string.format('%02x', c:byte()) end))",
                "0100000200000304000000000500000006000000000000000000000000000000",
            ),
            (
                "return (string.gsub(struct.pack('>i3>i16<i16i0', -2,-2,-2,7), '.', function(c) return string.format('%02x', c:byte()) end))",
                "fffffe0000000000000000fffffffffffffffefeffffffffffffff0000000000000000",
            ),
            (
                r#"return (string.gsub(struct.pack('c3c0cs', 'abcdef','xyz','hello','zero\0in'), '.', function(c) return string.format('%02x', c:byte()) end))"#,
                "61626378797a687a65726f00696e00",
            ),
            (
                "return (string.gsub(struct.pack(' b  b ', 1, 2), '.', function(c) return string.format('%02x', c:byte()) end))",
                "0102",
            ),
            (
                r#"return (string.gsub(struct.pack('b\0b', 1, 2), '.', function(c) return string.format('%02x', c:byte()) end))"#,
                "01",
            ),
            (
                "return struct.pack('c5', 'abc')",
                "error: user_script:1: bad argument #3 to 'pack' (string too short)",
            ),
            (
                "return struct.pack('bc5', 1, 'abc')",
                "error: user_script:1: bad argument #4 to 'pack' (string too short)",
            ),
            (
                "return struct.pack('b')",
                "error: user_script:1: bad argument #2 to 'pack' (number expected, got nil)",
            ),
            (
                "return struct.pack('b', 'x')",
                "error: user_script:1: bad argument #2 to 'pack' (number expected, got string)",
            ),
            ("return (struct.pack('b', '65'))", "A"),
            (
                "return struct.pack('s', {})",
                "error: user_script:1: bad argument #2 to 'pack' (string expected, got table)",
            ),
            (
                "return struct.pack('z')",
                "error: user_script:1: bad argument #1 to 'pack' (invalid format option 'z')",
            ),
            (
                "return struct.pack('b1', 1)",
                "error: user_script:1: bad argument #1 to 'pack' (invalid format option '1')",
            ),
            (
                r#"return struct.pack('\200')"#,
                "error: user_script:1: bad argument #1 to 'pack' (invalid format option '�')",
            ),
            (
                "return struct.pack('i33', 1)",
                "error: user_script:1: integral size 33 is larger than limit of 32",
            ),
            ("return struct.pack('i99999999999', 1)", "error: user_script:1: integral size overflow"),
            ("return struct.pack('c2147483648', 'x')", "error: user_script:1: integral size overflow"),
            (
                "return struct.pack('c2147483647', 'x')",
                "error: user_script:1: bad argument #3 to 'pack' (string too short)",
            ),
            ("return struct.pack('!3')", "error: user_script:1: alignment 3 is not a power of 2"),
            ("return struct.pack('!0')", "error: user_script:1: alignment 0 is not a power of 2"),
            ("return struct.pack('!1073741824b', 1)", "\u{1}"),
            (
                "return struct.pack()",
                "error: user_script:1: bad argument #1 to 'pack' (string expected, got no value)",
            ),
            (
                "return struct.pack({})",
                "error: user_script:1: bad argument #1 to 'pack' (string expected, got table)",
            ),
            (
                "return struct.pack(12)",
                "error: user_script:1: bad argument #1 to 'pack' (invalid format option '1')",
            ),
            ("return tostring(struct.unpack('L', struct.pack('L', 0/0)))", "9.2233720368548e+18"),
            ("return tostring(struct.unpack('L', struct.pack('L', 1e30)))", "0"),
            ("return tostring(struct.unpack('L', struct.pack('L', 2^63)))", "9.2233720368548e+18"),
            ("return tostring(struct.unpack('L', struct.pack('L', 2^64)))", "0"),
            ("return tostring(struct.unpack('L', struct.pack('L', -1)))", "1.844674407371e+19"),
            ("return tostring(struct.unpack('l', struct.pack('l', -1e30)))", "-9.2233720368548e+18"),
            ("return tostring(struct.unpack('b', struct.pack('b', 300)))", "44"),
            ("return tostring(struct.unpack('b', struct.pack('b', -1.9)))", "-1"),
            ("return tostring(struct.unpack('f', struct.pack('f', 0.1)))", "0.10000000149012"),
            ("return tostring(struct.unpack('f', struct.pack('f', 1e300)))", "inf"),
            ("return tostring(struct.unpack('<i16', struct.pack('<i16', -300)))", "-300"),
            ("return tostring(struct.unpack('>i16', struct.pack('>i16', -300)))", "-300"),
            (r#"return tostring(struct.unpack('>I3', '\255\255\254'))"#, "16777214"),
            (r#"return tostring(struct.unpack('>i3', '\255\255\254'))"#, "-2"),
            ("return tostring(struct.unpack('i0', ''))", "0"),
            (
                "return table.concat({struct.unpack('>bBhHlLTiIfdx', struct.pack('>bBhHlLTiIfdx', -1,255,-2,65535,-3,4,5,-6,7,1.5,2.5))}, ' ')",
                "-1 255 -2 65535 -3 4 5 -6 7 1.5 2.5 52",
            ),
            (
                "return table.concat({struct.unpack('!8bhbibdbl', struct.pack('!8bhbibdbl', 1,2,3,4,5,6,7,8))}, ' ')",
                "1 2 3 4 5 6 7 8 41",
            ),
            (r#"return table.concat({struct.unpack('bc0b', '\3abc\4')}, ' ')"#, "abc 4 6"),
            (r#"return table.concat({struct.unpack('sc0b', '3\0abc\4')}, ' ')"#, "abc 4 7"),
            (
                r#"return table.concat({struct.unpack('sc0', 'x\0abc')}, ' ')"#,
                "error: user_script:1: format 'c0' needs a previous size",
            ),
            ("return struct.unpack('c0', 'abc')", "error: user_script:1: format 'c0' needs a previous size"),
            (
                r#"return struct.unpack('bc0', '\5abc')"#,
                "error: user_script:1: bad argument #2 to 'unpack' (data string too short)",
            ),
            (
                r#"return struct.unpack('bc0', '\255abc')"#,
                "error: user_script:1: bad argument #2 to 'unpack' (data string too short)",
            ),
            (r#"return table.concat({struct.unpack('bc0', '\0abc')}, ' ')"#, " 2"),
            (r#"return table.concat({struct.unpack('sc2s', 'ab\0xyzzy\0')}, ' ')"#, "ab xy zzy 10"),
            ("return struct.unpack('s', 'abc')", "error: user_script:1: unfinished string in data"),
            (
                "return struct.unpack('i', 'abc')",
                "error: user_script:1: bad argument #2 to 'unpack' (data string too short)",
            ),
            (
                "return struct.unpack('b', '')",
                "error: user_script:1: bad argument #2 to 'unpack' (data string too short)",
            ),
            ("return table.concat({struct.unpack('', '')}, ' ')", "1"),
            ("return table.concat({struct.unpack('b', 'abc', 2)}, ' ')", "98 3"),
            (
                "return struct.unpack('b', 'abc', 0)",
                "error: user_script:1: bad argument #3 to 'unpack' (offset must be 1 or greater)",
            ),
            (
                "return struct.unpack('b', 'abc', -1)",
                "error: user_script:1: bad argument #2 to 'unpack' (data string too short)",
            ),
            (
                "return struct.unpack('b', 'abc', 4)",
                "error: user_script:1: bad argument #2 to 'unpack' (data string too short)",
            ),
            ("return struct.unpack('', 'abc', 4)", "4"),
            ("return struct.unpack('', 'abc', 5)", "5"),
            (
                "return struct.unpack('!8d', 'xxxxxxxxxxxxxxxxx', -1)",
                "error: user_script:1: bad argument #2 to 'unpack' (data string too short)",
            ),
            (
                "return struct.unpack('b', 'abc', 'x')",
                "error: user_script:1: bad argument #3 to 'unpack' (number expected, got string)",
            ),
            (
                "return struct.unpack('b', 'abc', 1e300)",
                "error: user_script:1: bad argument #2 to 'unpack' (data string too short)",
            ),
            (
                "return struct.unpack('z', 'abc')",
                "error: user_script:1: bad argument #1 to 'unpack' (invalid format option 'z')",
            ),
            ("return struct.unpack('>', '')", "1"),
            (
                "return struct.unpack('c2147483647', 'abc')",
                "error: user_script:1: bad argument #2 to 'unpack' (data string too short)",
            ),
            (
                "return struct.unpack('b')",
                "error: user_script:1: bad argument #2 to 'unpack' (string expected, got no value)",
            ),
            (
                "return struct.unpack()",
                "error: user_script:1: bad argument #1 to 'unpack' (string expected, got no value)",
            ),
            ("return struct.size('bhild')", "23"),
            ("return struct.size('!8bhild')", "24"),
            (
                "return struct.size('s')",
                "error: user_script:1: bad argument #1 to 'size' (option 's' has no fixed size)",
            ),
            (
                "return struct.size('c0')",
                "error: user_script:1: bad argument #1 to 'size' (option 'c0' has no fixed size)",
            ),
            ("return struct.size('c10x')", "11"),
            ("return struct.size('z1')", "0"),
            (
                "return struct.size('$')",
                "error: user_script:1: bad argument #1 to 'size' (invalid format option '$')",
            ),
            ("return struct.size('c2147483647c2147483647c2147483647')", "6442450941"),
            (
                "return struct.size('i33')",
                "error: user_script:1: integral size 33 is larger than limit of 32",
            ),
            ("return struct.size('')", "0"),
            (
                "return struct.size()",
                "error: user_script:1: bad argument #1 to 'size' (string expected, got no value)",
            ),
        ]);
    }

    #[test]
    fn wide_integers_keep_their_sign() {
        // Shifts beyond the width of a number make something else of this one in Redis.
        check(&[
            ("return struct.unpack('<i9', struct.pack('<i9', 300))", "300"),
            ("return struct.unpack('>i9', struct.pack('>i9', 300))", "300"),
        ]);
    }

    #[test]
    fn results_end_with_the_stack() {
        check(&[
            ("local s = string.rep('b', 7933) return select('#', struct.unpack(s, s))", "7934"),
            (
                "local s = string.rep('b', 7934) return select('#', struct.unpack(s, s))",
                "error: user_script:1: stack overflow (too many results)",
            ),
            (
                "local s = string.rep('s', 7980) return select('#', struct.unpack(s, string.rep('x\\0', 7980)))",
                "error: user_script:1: stack overflow (too many results)",
            ),
        ]);
    }
}
