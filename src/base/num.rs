//! Numbers as text, read and written exactly as Redis does.
//!
//! Every client argument that is a number passes here, and what is stored, compared or replied depends on the
//! last bit and the last byte. So the readers are strict (a whole string or nothing, never a prefix), and the
//! writers print the same digits.
//! Inside: `literal` the grammar of C's `strtod`, `shortest` the digits of a double, `long_double` the 80-bit
//! arithmetic of INCRBYFLOAT.

mod literal;
mod long_double;
mod shortest;

pub use long_double::{FloatError, LongDouble, incr_by_float};

use literal::{DOUBLE, Magnitude};
use smallvec::SmallVec;

/// Digits that any `u64` arithmetic below can take without overflow.
const SAFE_DIGITS: usize = 19;

/// Reads a signed integer in its one canonical form, the form that [`append_i64`] writes: no plus sign, no
/// leading zero, no `-0`, no blank. Any other text is a string, not a number (this decides how values are kept).
#[inline]
pub fn parse_i64(b: &[u8]) -> Option<i64> {
    let (negative, digits) = match b {
        [b'0'] => return Some(0),
        [b'1'..=b'9', ..] => (false, b),
        [b'-', digits @ ..] => (true, digits),
        _ => return None,
    };
    // Twenty digits without a leading zero pass the range of i64 in any case.
    if digits.len() > SAFE_DIGITS || !matches!(digits, [b'1'..=b'9', ..]) {
        return None;
    }
    let magnitude = digits_value(digits)?;
    if negative { 0_i64.checked_sub_unsigned(magnitude) } else { i64::try_from(magnitude).ok() }
}

/// Reads an unsigned integer in its one canonical form; see [`parse_i64`].
#[inline]
pub fn parse_u64(b: &[u8]) -> Option<u64> {
    match b {
        [b'0'] => Some(0),
        [b'1'..=b'9', ..] if b.len() <= SAFE_DIGITS => digits_value(b),
        [b'1'..=b'9', ..] if b.len() == SAFE_DIGITS + 1 => {
            let (head, last) = b.split_at(SAFE_DIGITS);
            digits_value(head)?.checked_mul(10)?.checked_add(digits_value(last)?)
        }
        _ => None,
    }
}

/// The value of at most [`SAFE_DIGITS`] decimal digits.
#[inline]
fn digits_value(digits: &[u8]) -> Option<u64> {
    let mut value = 0_u64;
    for byte in digits {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        value = value * 10 + u64::from(digit);
    }
    Some(value)
}

/// Reads a SCAN cursor, with all the leniency of C's `strtoull` that Redis leaves in: leading blanks, a sign and
/// leading zeros are taken, a negative number wraps around, and the text ends at its first NUL byte. Only the
/// canonical negative numbers (`-5`) are refused, and whatever passes 64 bits.
pub fn parse_scan_cursor(b: &[u8]) -> Option<u64> {
    let text = memchr::memchr(0, b).map_or(b, |end| &b[..end]);
    if let Some(cursor) = parse_u64(text) {
        return Some(cursor);
    }
    if parse_i64(text).is_some() {
        return None;
    }
    let blanks = text.iter().take_while(|byte| matches!(byte, b' ' | b'\t'..=b'\r')).count();
    let (negative, digits) = match &text[blanks..] {
        [b'-', digits @ ..] => (true, digits),
        [b'+', digits @ ..] => (false, digits),
        digits => (false, digits),
    };
    let zeros = digits.iter().take_while(|&&byte| byte == b'0').count();
    let magnitude = match &digits[zeros..] {
        [] if zeros > 0 => 0,
        digits => parse_u64(digits)?,
    };
    Some(if negative { magnitude.wrapping_neg() } else { magnitude })
}

/// Reads a double: decimal or hexadecimal text with optional sign and exponent, or `inf`/`infinity` in any case.
///
/// Refused: NaN, blanks, anything behind the number, numbers too large, and numbers other than zero that round
/// to zero. (`-+inf`, which Redis 8.0 lets pass by an oversight, is refused too.)
pub fn parse_f64(b: &[u8]) -> Option<f64> {
    if let Some(integer) = parse_i64(b) {
        // One correctly rounded conversion, as reading the digits as a double would be.
        return Some(integer as f64);
    }
    let literal = literal::scan(b)?;
    let magnitude = match literal.magnitude {
        Magnitude::Infinite => f64::INFINITY,
        Magnitude::Hex { whole, fraction, exponent } => {
            let (significand, exponent, sticky) = literal::read_hex(whole, fraction, exponent);
            let (kept, exponent) = DOUBLE.round(significand, exponent, sticky)?;
            if kept == 0 && significand != 0 {
                return None;
            }
            compose(kept, exponent)
        }
        Magnitude::Decimal { whole, fraction, .. } => {
            // The grammar is settled and plain ASCII; the library rounds correctly.
            let value = std::str::from_utf8(b).ok()?.parse::<f64>().ok()?.abs();
            let is_zero = whole.iter().chain(fraction).all(|&digit| digit == b'0');
            if value.is_infinite() || (value == 0.0 && !is_zero) {
                return None;
            }
            value
        }
    };
    Some(if literal.negative { -magnitude } else { magnitude })
}

/// The double `significand * 2^exponent`, which exists exactly.
fn compose(significand: u64, exponent: i64) -> f64 {
    // In two steps, for a power of two below 2^-1022 is no normal number.
    let power = |exponent: i64| f64::from_bits(((exponent + 1023) as u64) << 52);
    let first = exponent.clamp(-1000, 1000);
    significand as f64 * power(first) * power(exponent - first)
}

/// Reads an end of a range of doubles, which Redis takes more leniently than a score: decimal text with optional sign
/// and exponent, or `inf`/`infinity` in any case; too large numbers are infinite, too small ones zero. An empty text
/// is zero, and a text ends at its first NUL byte.
///
/// Refused: NaN, hexadecimal numbers, blanks, anything behind the number.
pub fn parse_bound(b: &[u8]) -> Option<f64> {
    let text = memchr::memchr(0, b).map_or(b, |end| &b[..end]);
    if text.is_empty() {
        return Some(0.0);
    }
    match literal::scan(text)?.magnitude {
        Magnitude::Hex { .. } => None,
        // The grammar is settled and plain ASCII; the library knows the same words for infinity.
        Magnitude::Infinite | Magnitude::Decimal { .. } => std::str::from_utf8(text).ok()?.parse().ok(),
    }
}

/// The integer that a double is, up to 2^62 either way, as far as Redis writes such doubles as integers. Minus zero
/// is zero.
#[inline]
pub fn integer_of(v: f64) -> Option<i64> {
    const INTEGER_MAX: f64 = (1_u64 << 62) as f64;
    (v.abs() <= INTEGER_MAX && v.trunc() == v).then_some(v as i64)
}

/// The text of a double.
#[derive(Clone, Copy)]
pub struct F64Text {
    bytes: [u8; F64Text::LEN_MAX],
    len: u8,
}

impl F64Text {
    /// No text is longer: sign, point, five zeros and seventeen digits are the most that is filled in, with and
    /// without an exponent.
    const LEN_MAX: usize = 32;

    const fn new() -> F64Text {
        F64Text { bytes: [0; F64Text::LEN_MAX], len: 0 }
    }

    fn push(&mut self, byte: u8) {
        self.extend_from_slice(&[byte]);
    }

    fn extend_from_slice(&mut self, bytes: &[u8]) {
        let at = usize::from(self.len);
        self.bytes[at..at + bytes.len()].copy_from_slice(bytes);
        self.len += bytes.len() as u8;
    }

    fn push_zeros(&mut self, count: i32) {
        (0..count).for_each(|_| self.push(b'0'));
    }

    fn push_int(&mut self, v: i64) {
        self.extend_from_slice(itoa::Buffer::new().format(v).as_bytes());
    }
}

impl std::ops::Deref for F64Text {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }
}

/// A double as Redis's replies have it: an integer without point up to 2^62, else the digits that read back as the
/// same double, plain or with an exponent (`1e+20`); `inf`, `-inf`, `nan`, and `-0` for minus zero.
pub fn f64_text(v: f64) -> F64Text {
    match integer_of(v) {
        Some(integer) if integer != 0 => {
            let mut text = F64Text::new();
            text.push_int(integer);
            text
        }
        _ => f64_digits(v),
    }
}

/// A double by its digits alone, large integers too (`1e+10`); else as [`f64_text`].
pub fn f64_digits(v: f64) -> F64Text {
    let mut text = F64Text::new();
    if v.is_sign_negative() && !v.is_nan() {
        text.push(b'-');
    }
    match v.abs() {
        special if special.is_nan() => text.extend_from_slice(b"nan"),
        special if special.is_infinite() => text.extend_from_slice(b"inf"),
        0.0 => text.push(b'0'),
        v => {
            let decimal = shortest::digits(v);
            push_decimal(decimal.digits(), decimal.exponent, &mut text);
        }
    }
    text
}

/// Appends a double in the form of [`f64_text`].
pub fn format_f64(v: f64, out: &mut Vec<u8>) {
    out.extend_from_slice(&f64_text(v));
}

/// Lays out digits and exponent: plain while few zeros have to be filled in, else scientific.
fn push_decimal(digits: &[u8], exponent: i32, text: &mut F64Text) {
    let scientific = exponent + digits.len() as i32 - 1;
    if (0..=7).contains(&exponent) {
        text.extend_from_slice(digits);
        text.push_zeros(exponent);
    } else if exponent < 0 && (exponent > -7 || scientific.abs() < 4) {
        push_with_point(digits, exponent, text);
    } else {
        push_scientific(digits, scientific, text);
        text.push_int(i64::from(scientific.abs()));
    }
}

/// Digits with a point in or before them.
fn push_with_point(digits: &[u8], exponent: i32, text: &mut F64Text) {
    let point = digits.len() as i32 + exponent;
    if point > 0 {
        let (whole, fraction) = digits.split_at(point as usize);
        text.extend_from_slice(whole);
        text.push(b'.');
        text.extend_from_slice(fraction);
    } else {
        text.extend_from_slice(b"0.");
        text.push_zeros(-point);
        text.extend_from_slice(digits);
    }
}

/// Digits with a point behind the first, up to the sign of the exponent.
fn push_scientific(digits: &[u8], exponent: i32, text: &mut F64Text) {
    text.push(digits[0]);
    if digits.len() > 1 {
        text.push(b'.');
        text.extend_from_slice(&digits[1..]);
    }
    text.extend_from_slice(if exponent < 0 { b"e-" } else { b"e+" });
}

/// A double in seventeen digits as C's `%.17g` has it; see [`f64_text_general`].
pub fn f64_text_17(v: f64) -> F64Text {
    f64_text_general(v, 17)
}

/// A double in so many digits (1 to 17) as C's `%.*g` has it: without trailing zeros, with an exponent of two digits
/// at least below 1e-4 and from 10^digits on. Not a number is `nan` whatever its sign.
pub fn f64_text_general(v: f64, digits: usize) -> F64Text {
    let digits_max = digits.clamp(1, 17);
    if !v.is_finite() || v == 0.0 {
        return f64_digits(v);
    }
    let mut text = F64Text::new();
    if v < 0.0 {
        text.push(b'-');
    }
    // The library rounds correctly; its form is always `d.dddde-x`.
    let rounded = format!("{:.*e}", digits_max - 1, v.abs());
    let (digits, exponent) = rounded.split_once('e').unwrap_or((&rounded, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let mut kept: SmallVec<[u8; 24]> = digits.bytes().filter(u8::is_ascii_digit).collect();
    kept.truncate(kept.iter().rposition(|digit| *digit != b'0').map_or(1, |last| last + 1));
    let last = exponent - (kept.len() as i32 - 1);
    if !(-4..digits_max as i32).contains(&exponent) {
        push_scientific(&kept, exponent, &mut text);
        if exponent.abs() < 10 {
            text.push(b'0');
        }
        text.push_int(i64::from(exponent.abs()));
    } else if last >= 0 {
        text.extend_from_slice(&kept);
        text.push_zeros(last);
    } else {
        push_with_point(&kept, last, &mut text);
    }
    text
}

/// Reads an amount of memory in bytes as configuration files write it: digits and perhaps a unit in any case.
/// `k`, `m`, `g` count in thousands, `kb`, `mb`, `gb` in 1024s, `b` changes nothing.
///
/// Refused: signs, fractions, blanks, a missing number and amounts beyond 64 bits. (Redis reads a missing
/// number as zero and lets too large ones wrap around; a mistyped limit must not become "no limit".)
pub fn parse_memory(b: &[u8]) -> Option<u64> {
    let (digits, unit) = b.split_at(b.iter().take_while(|byte| byte.is_ascii_digit()).count());
    let scale: u64 = match unit.to_ascii_lowercase().as_slice() {
        b"" | b"b" => 1,
        b"k" => 1_000,
        b"kb" => 1 << 10,
        b"m" => 1_000_000,
        b"mb" => 1 << 20,
        b"g" => 1_000_000_000,
        b"gb" => 1 << 30,
        _ => return None,
    };
    std::str::from_utf8(digits).ok()?.parse::<u64>().ok()?.checked_mul(scale)
}

/// Appends an integer as decimal text.
#[inline]
pub fn append_i64(out: &mut Vec<u8>, v: i64) {
    out.extend_from_slice(itoa::Buffer::new().format(v).as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn formatted(value: f64) -> String {
        let mut text = Vec::new();
        format_f64(value, &mut text);
        String::from_utf8(text).unwrap()
    }

    #[test]
    fn canonical_integers_only() {
        for (text, value) in [
            ("0", 0),
            ("7", 7),
            ("-1", -1),
            ("1234567890123456789", 1234567890123456789),
            ("9223372036854775807", i64::MAX),
            ("-9223372036854775808", i64::MIN),
        ] {
            assert_eq!(parse_i64(text.as_bytes()), Some(value), "{text}");
        }
        for text in [
            "",
            "-",
            "+1",
            "-0",
            "00",
            "01",
            "-01",
            " 1",
            "1 ",
            "1a",
            "a",
            "1\0",
            "--1",
            "0x1",
            "1.0",
            "1/",
            "1:",
            "9223372036854775808",
            "-9223372036854775809",
            "18446744073709551616",
            "99999999999999999999",
            "-99999999999999999999",
            "100000000000000000000000",
        ] {
            assert_eq!(parse_i64(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn canonical_unsigned_integers_only() {
        assert_eq!(parse_u64(b"0"), Some(0));
        assert_eq!(parse_u64(b"9999999999999999999"), Some(9_999_999_999_999_999_999));
        assert_eq!(parse_u64(b"10000000000000000000"), Some(10_000_000_000_000_000_000));
        assert_eq!(parse_u64(b"18446744073709551615"), Some(u64::MAX));
        for text in [
            "",
            "-1",
            "+1",
            "00",
            "01",
            "1x",
            "18446744073709551616",
            "99999999999999999999",
            "1844674407370955161x",
            "100000000000000000000",
        ] {
            assert_eq!(parse_u64(text.as_bytes()), None, "{text}");
        }
    }

    /// Found on a Redis 8.0.6 server.
    #[test]
    fn cursors_are_read_leniently() {
        for (text, value) in [
            ("0", 0),
            ("+0", 0),
            ("-0", 0),
            ("007", 7),
            (" \t\n\x0b\x0c\r5", 5),
            ("18446744073709551615", u64::MAX),
            ("0000018446744073709551615", u64::MAX),
            ("-05", 5_u64.wrapping_neg()),
            ("-18446744073709551615", 1),
            ("-9223372036854775809", i64::MAX as u64),
            ("12\x00junk", 12),
        ] {
            assert_eq!(parse_scan_cursor(text.as_bytes()), Some(value), "{text:?}");
        }
        for text in [
            "",
            " ",
            "-",
            "+",
            "-5",
            "5 ",
            "0x5",
            "- 5",
            "+-5",
            "18446744073709551616",
            "\x005",
            "-018446744073709551616",
        ] {
            assert_eq!(parse_scan_cursor(text.as_bytes()), None, "{text:?}");
        }
    }

    /// What ZADD takes on a Redis 8.0.6 server.
    #[test]
    fn doubles_are_read_as_in_redis() {
        for (text, value) in [
            ("+5", 5.0),
            (".5", 0.5),
            ("5.", 5.0),
            ("-.5e-3", -0.0005),
            ("00012", 12.0),
            ("1e+5", 1e5),
            ("inf", f64::INFINITY),
            ("+inf", f64::INFINITY),
            ("-InFinity", f64::NEG_INFINITY),
            ("0x1p3", 8.0),
            ("-0x1.8", -1.5),
            ("0X.8P1", 1.0),
            ("0x1p-1074", 5e-324),
            ("0x1.fffffffffffff7p1023", f64::MAX),
            ("0x1p1023", 8.98846567431158e307),
            ("0x10000000000000000000000000000000000000000p-160", 1.0),
            ("4e-324", 5e-324),
            ("0e999999999999999999", 0.0),
            ("9007199254740993", 9007199254740992.0),
            ("9223372036854775807", 9223372036854775808.0),
            ("1.7976931348623158e308", f64::MAX),
        ] {
            assert_eq!(parse_f64(text.as_bytes()), Some(value), "{text}");
        }
        assert!(parse_f64(b"-0").is_some_and(|zero| zero == 0.0 && zero.is_sign_negative()));
        for text in [
            "",
            " 1",
            "1 ",
            ".",
            "1e",
            "0x",
            "0x1p",
            "1e400",
            "-1e400",
            "1e-400",
            "2e-324",
            "0x1p-1080",
            "0x0.8p-1074",
            "0x1p1024",
            "0x1.fffffffffffff8p1023",
            "nan",
            "-nan",
            "NaN(1)",
            "infi",
            "--1",
            "1_0",
            "1\0",
            "e5",
            "1f",
            "0x1.p+",
        ] {
            assert_eq!(parse_f64(text.as_bytes()), None, "{text}");
        }
    }

    /// Replies of a Redis 8.0.6 server to ZSCORE.
    #[expect(clippy::excessive_precision, reason = "written as they were sent")]
    const SCORES: &[(f64, &str)] = &[
        (3.0, "3"),
        (3.0, "3"),
        (3.1, "3.1"),
        (-3.1, "-3.1"),
        (0.1, "0.1"),
        (0.30000000000000004, "0.30000000000000004"),
        (100.0, "100"),
        (1e5, "100000"),
        (123456.789, "123456.789"),
        (1e17, "100000000000000000"),
        (1e18, "1000000000000000000"),
        (4611686018427387904.0, "4611686018427387904"),
        (4611686018427388928.0, "4611686018427389000"),
        (9007199254740993.0, "9007199254740992"),
        (1e19, "1e+19"),
        (1e20, "1e+20"),
        (1e21, "1e+21"),
        (12345678901234567890.0, "12345678901234567000"),
        (123456789012345678901234.0, "123456789012345690000000"),
        (1.5e22, "1.5e+22"),
        (1e-3, "0.001"),
        (1e-4, "0.0001"),
        (1e-5, "0.00001"),
        (1e-6, "0.000001"),
        (1e-7, "1e-7"),
        (1e-8, "1e-8"),
        (1.5e-7, "1.5e-7"),
        (0.000001234, "1.234e-6"),
        (0.00000012345678901234567, "1.2345678901234566e-7"),
        (1.2345678901234567e-7, "1.2345678901234566e-7"),
        (0.00012345678901234567, "1.2345678901234567e-4"),
        (1.7976931348623157e308, "1.7976931348623157e+308"),
        (5e-324, "5e-324"),
        (2.2250738585072014e-308, "2.2250738585072014e-308"),
        (1e100, "1e+100"),
        (1e-100, "1e-100"),
        (1.5e-10, "1.5e-10"),
        (9.5367431640625e-7, "9.5367431640625e-7"),
        (0.001220703125, "0.001220703125"),
        (5e21, "5e+21"),
        (-1e300, "-1e+300"),
        (2.5e-5, "0.000025"),
        (1234567890.123456789, "1.2345678901234567e+9"),
        (4.35, "4.35"),
        (2.0e-3, "0.002"),
        (8.41, "8.41"),
        (9.41, "9.41"),
        (17179869184.5, "17179869184.5"),
        (8.465347e-7, "8.465347000000001e-7"),
        (1.7800590868057611e-307, "1.7800590868057611e-307"),
        (1.1392378155556871e-305, "1.1392378155556871e-305"),
        (f64::INFINITY, "inf"),
        (f64::NEG_INFINITY, "-inf"),
        (f64::NAN, "nan"),
        (0.0, "0"),
        (-0.0, "-0"),
    ];

    #[test]
    fn doubles_are_written_as_in_redis() {
        for &(value, text) in SCORES {
            assert_eq!(formatted(value), text);
        }
    }

    #[test]
    fn doubles_in_few_digits() {
        // As `%.*g` of C has them.
        for (value, digits, text) in [
            (3.15, 2, "3.1"),
            (9.99, 2, "10"),
            (123456.0, 3, "1.23e+05"),
            (99999999999999.5, 14, "1e+14"),
            (99999999999999.0, 14, "99999999999999"),
            (1e15, 14, "1e+15"),
            (0.1, 14, "0.1"),
            (-1.0 / 3.0, 14, "-0.33333333333333"),
            (5e-324, 14, "4.9406564584125e-324"),
            (7.0, 1, "7"),
            (75.0, 1, "8e+01"),
            (-f64::NAN, 14, "nan"),
        ] {
            assert_eq!(std::str::from_utf8(&f64_text_general(value, digits)), Ok(text));
        }
    }

    #[test]
    fn digits_of_doubles() {
        // As `%.17g` of C has them, and as DEBUG DIGEST of Redis 8.0.6 takes them in.
        for (value, seventeen, digits) in [
            (0.1, "0.10000000000000001", "0.1"),
            (1e20, "1e+20", "1e+20"),
            (1e10, "10000000000", "1e+10"),
            (100.0, "100", "100"),
            (-1e16, "-10000000000000000", "-1e+16"),
            (1.5, "1.5", "1.5"),
            (1e-4, "0.0001", "0.0001"),
            (1e-5, "1.0000000000000001e-05", "0.00001"),
            (-f64::MAX, "-1.7976931348623157e+308", "-1.7976931348623157e+308"),
            (0.001220703125, "0.001220703125", "0.001220703125"),
            (123456789012345678.0, "1.2345678901234568e+17", "123456789012345680"),
            (f64::INFINITY, "inf", "inf"),
            (f64::NEG_INFINITY, "-inf", "-inf"),
            (-0.0, "-0", "-0"),
            (0.0, "0", "0"),
        ] {
            assert_eq!(std::str::from_utf8(&f64_text_17(value)), Ok(seventeen));
            assert_eq!(std::str::from_utf8(&f64_digits(value)), Ok(digits));
        }
        assert_eq!(integer_of(-0.0), Some(0));
        assert_eq!((integer_of(0.5), integer_of(f64::INFINITY), integer_of(f64::NAN)), (None, None, None));
        assert_eq!(integer_of(-4611686018427387904.0), Some(-4611686018427387904));
        assert_eq!(integer_of(4611686018427388928.0), None);
    }

    /// What ZCOUNT takes on a Redis 8.0.6 server.
    #[test]
    fn bounds_are_read_leniently() {
        for (text, value) in [
            ("1e400", f64::INFINITY),
            ("-1e400", f64::NEG_INFINITY),
            ("1e-400", 0.0),
            ("", 0.0),
            ("+5", 5.0),
            ("5.", 5.0),
            ("-.5e1", -5.0),
            ("+inf", f64::INFINITY),
            ("-Infinity", f64::NEG_INFINITY),
            ("00005", 5.0),
            ("7\0junk", 7.0),
        ] {
            assert_eq!(parse_bound(text.as_bytes()), Some(value), "{text}");
        }
        for text in [" 5", "5 ", "0x1", "nan", "+nan", "1e", "-", "+-5", "--5", "inf5", "(5", "1_0"] {
            assert_eq!(parse_bound(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn amounts_of_memory() {
        for (text, bytes) in [
            ("0", 0),
            ("1b", 1),
            ("1k", 1_000),
            ("1KB", 1_024),
            ("2m", 2_000_000),
            ("2Mb", 2 << 20),
            ("3g", 3_000_000_000),
            ("3gB", 3 << 30),
            ("0100", 100),
            ("18446744073709551615", u64::MAX),
        ] {
            assert_eq!(parse_memory(text.as_bytes()), Some(bytes), "{text}");
        }
        for text in [
            "",
            "mb",
            "-1",
            "+1",
            "1.5k",
            "1 kb",
            "1t",
            "1kbb",
            "k1",
            "18446744073709551616",
            "18014398509481984kb",
        ] {
            assert_eq!(parse_memory(text.as_bytes()), None, "{text}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(5000))]

        #[test]
        fn integers_read_back(value: i64, cut in 0_u32..64) {
            let mut text = Vec::new();
            append_i64(&mut text, value >> cut);
            prop_assert_eq!(parse_i64(&text), Some(value >> cut));
            prop_assert_eq!(parse_u64((value as u64 >> cut).to_string().as_bytes()), Some(value as u64 >> cut));
        }

        /// A text is an integer exactly when writing the integer gives the text back.
        #[test]
        fn integers_are_canonical(text in "[-+]?[0-9 ]{0,21}") {
            let model = text.parse::<i64>().ok().filter(|value| value.to_string() == text);
            prop_assert_eq!(parse_i64(text.as_bytes()), model);
            let model = text.parse::<u64>().ok().filter(|value| value.to_string() == text);
            prop_assert_eq!(parse_u64(text.as_bytes()), model);
        }

        #[test]
        fn doubles_read_back(bits: u64) {
            let value = f64::from_bits(bits);
            prop_assume!(!value.is_nan());
            prop_assert_eq!(parse_f64(formatted(value).as_bytes()), Some(value));
        }

        #[test]
        fn hexadecimal_doubles_read_exactly(significand: u32, exponent in -900_i64..900) {
            let text = format!("{significand:#x}p{exponent}");
            prop_assert_eq!(parse_f64(text.as_bytes()), Some(f64::from(significand) * 2_f64.powi(exponent as i32)));
        }

        #[test]
        fn no_bytes_panic(bytes: Vec<u8>, text in "[-+0-9.eExXpPinfa ]{0,12}") {
            for input in [bytes.as_slice(), text.as_bytes()] {
                let _ = (parse_i64(input), parse_u64(input), parse_f64(input), parse_memory(input), parse_scan_cursor(input));
            }
        }
    }
}
