//! `bit`: operations on the bits of 32-bit numbers, with the semantics of Lua BitOp 1.0.2.
//!
//! Must stay true: a number is taken modulo 2^32, rounded to the nearest integer (the even one of two), whatever its
//! size; results are signed.

use mlua::{Lua, Result, Table, Value};

use super::call::{Call, function};

/// Adding 2^52 + 2^51 leaves the integer nearest to a number in the low bits of the sum.
const ROUNDING: f64 = 6_755_399_441_055_744.0;

/// Opens the library: a table of its functions.
///
/// # Errors
/// Lua's: memory.
pub fn open(lua: &Lua) -> Result<Table> {
    let table = lua.create_table()?;
    let unary = |name: &str, f: fn(u32) -> u32| {
        table.raw_set(name, function(lua, move |call| Ok(f(bits(call, 1)?) as i32))?)
    };
    unary("tobit", |a| a)?;
    unary("bnot", |a| !a)?;
    unary("bswap", u32::swap_bytes)?;
    let folding = |name: &str, f: fn(u32, u32) -> u32| {
        table.raw_set(name, function(lua, move |call| fold(call, f).map(|value| value as i32))?)
    };
    folding("band", |a, b| a & b)?;
    folding("bor", |a, b| a | b)?;
    folding("bxor", |a, b| a ^ b)?;
    let shifting = |name: &str, f: fn(u32, u32) -> u32| {
        table.raw_set(name, function(lua, move |call| Ok(f(bits(call, 1)?, bits(call, 2)? & 31) as i32))?)
    };
    shifting("lshift", |a, n| a << n)?;
    shifting("rshift", |a, n| a >> n)?;
    shifting("arshift", |a, n| (a as i32 >> n) as u32)?;
    shifting("rol", u32::rotate_left)?;
    shifting("ror", u32::rotate_right)?;
    table.raw_set("tohex", function(lua, to_hex)?)?;
    Ok(table)
}

/// An argument's bits.
fn bits(call: &Call<'_>, number: usize) -> Result<u32> {
    match call.value(number) {
        Value::Integer(value) => Ok((*value as f64 + ROUNDING).to_bits() as u32),
        _ => Ok((call.number(number)? + ROUNDING).to_bits() as u32),
    }
}

fn fold(call: &Call<'_>, f: fn(u32, u32) -> u32) -> Result<u32> {
    let first = bits(call, 1)?;
    // From behind, which shows in what argument is complained about.
    (2..=call.count()).rev().try_fold(first, |value, number| Ok(f(value, bits(call, number)?)))
}

/// So many hexadecimal digits, large ones when the count is negative.
fn to_hex(call: &Call<'_>) -> Result<String> {
    let value = bits(call, 1)?;
    let count = if call.count() < 2 { 8 } else { bits(call, 2)? as i32 };
    let text = if count < 0 { format!("{value:08X}") } else { format!("{value:08x}") };
    let kept = count.unsigned_abs().min(8) as usize;
    Ok(text[8 - kept..].to_string())
}

#[cfg(test)]
mod tests {
    use super::super::testing::check;

    #[test]
    fn results_are_those_of_lua_bitop() {
        check(&[
            ("return bit.tobit(1)", "1"),
            ("return bit.tobit(0xffffffff)", "-1"),
            ("return bit.tobit(0xffffffff + 1)", "0"),
            ("return bit.tobit(2^40 + 1234)", "1234"),
            ("return bit.tobit(2.5)", "2"),
            ("return bit.tobit(3.5)", "4"),
            ("return bit.tobit(-1.5)", "-2"),
            ("return bit.tobit('0x10')", "16"),
            ("return bit.tobit(2^52 + 1)", "0"),
            ("return bit.tobit(1e308)", "-2048145248"),
            ("return bit.tobit(1/0)", "0"),
            ("return bit.tobit(0/0)", "0"),
            ("return bit.bnot(0)", "-1"),
            ("return bit.bnot(0x12345678)", "-305419897"),
            ("return bit.band(1)", "1"),
            ("return bit.bor(1, 2, 4, 8, 16, 32, 64, 128)", "255"),
            ("return bit.bxor(0xa5a5f0f0, 0xaa55ff00)", "267390960"),
            ("return bit.band(0x12345678, 0xff)", "120"),
            ("return bit.lshift(1, 0)", "1"),
            ("return bit.lshift(1, 8)", "256"),
            ("return bit.lshift(1, 40)", "256"),
            ("return bit.rshift(256, 8)", "1"),
            ("return bit.rshift(-256, 8)", "16777215"),
            ("return bit.arshift(256, 8)", "1"),
            ("return bit.arshift(-256, 8)", "-1"),
            ("return bit.rol(0x12345678, 12)", "1164411171"),
            ("return bit.ror(0x12345678, 12)", "1736516421"),
            ("return bit.bswap(0x12345678)", "2018915346"),
            ("return bit.bswap(0x78563412)", "305419896"),
            ("return bit.tohex(1)", "00000001"),
            ("return bit.tohex(-1)", "ffffffff"),
            ("return bit.tohex(-1, 4)", "ffff"),
            ("return bit.tohex(0x87654321, -4)", "4321"),
            ("return bit.tohex(0xabcd, -8)", "0000ABCD"),
            ("return bit.tohex(1, 100)", "00000001"),
            ("return bit.tohex(1, 0)", ""),
            ("return bit.tohex(65535, -2147483648)", "0000FFFF"),
        ]);
    }

    #[test]
    fn what_is_no_number_is_refused() {
        check(&[
            (
                "return bit.band()",
                "error: user_script:1: bad argument #1 to 'band' (number expected, got no value)",
            ),
            (
                "return bit.bor(1, {}, nil)",
                "error: user_script:1: bad argument #3 to 'bor' (number expected, got nil)",
            ),
            (
                "return bit.lshift('x', 1)",
                "error: user_script:1: bad argument #1 to 'lshift' (number expected, got string)",
            ),
            (
                "return bit.tohex(1, nil)",
                "error: user_script:1: bad argument #2 to 'tohex' (number expected, got nil)",
            ),
        ]);
    }
}
