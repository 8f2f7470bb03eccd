//! The number at the front of a text, as C's `strtod` finds it, and what of it strict JSON does not have.

use crate::base::num::parse_f64;

/// The number at the front of `text` and how many bytes it has; `None`: no number begins there. No blanks are skipped.
pub(super) fn leading_number(text: &[u8]) -> Option<(f64, usize)> {
    let sign = usize::from(matches!(text, [b'-' | b'+', ..]));
    let digits = &text[sign..];
    let negative = text.first() == Some(&b'-');
    let signed = |value: f64| if negative { -value } else { value };
    if let Some(found) = short_integer(digits) {
        return Some((signed(found.0), sign + found.1));
    }
    if let Some(len) = word(digits) {
        let value = if digits[0].eq_ignore_ascii_case(&b'i') { f64::INFINITY } else { f64::NAN };
        return Some((signed(value), sign + len));
    }
    if let [b'0', b'x' | b'X', hex @ ..] = digits {
        let Some(len) = extent(hex, u8::is_ascii_hexdigit, b'p') else {
            return Some((signed(0.0), sign + 1));
        };
        let text = &digits[..2 + len];
        return Some((signed(parse_f64(text).unwrap_or_else(|| out_of_range(text))), sign + 2 + len));
    }
    let len = extent(digits, u8::is_ascii_digit, b'e')?;
    let value = std::str::from_utf8(&digits[..len]).ok()?.parse::<f64>().ok()?;
    Some((signed(value), sign + len))
}

/// A few digits that nothing follows which could belong to the number.
#[inline]
fn short_integer(text: &[u8]) -> Option<(f64, usize)> {
    let mut value = 0_u64;
    for (at, byte) in text.iter().enumerate() {
        match byte {
            b'0'..=b'9' if at < 15 => value = value * 10 + u64::from(byte - b'0'),
            b',' | b']' | b'}' | b' ' | b'\n' | b'\r' | b'\t' if at > 0 => return Some((value as f64, at)),
            _ => return None,
        }
    }
    (!text.is_empty()).then_some((value as f64, text.len()))
}

/// The length of `inf`, `infinity`, `nan` or `nan(...)` at the front.
fn word(text: &[u8]) -> Option<usize> {
    let starts = |word: &[u8]| text.get(..word.len()).is_some_and(|front| front.eq_ignore_ascii_case(word));
    if starts(b"infinity") {
        return Some(8);
    }
    if starts(b"nan(") {
        let inside =
            text[4..].iter().take_while(|byte| byte.is_ascii_alphanumeric() || **byte == b'_').count();
        return Some(if text.get(4 + inside) == Some(&b')') { 5 + inside } else { 3 });
    }
    (starts(b"inf") || starts(b"nan")).then_some(3)
}

/// The length of digits, perhaps with a point (one digit at least), and of an exponent if it has digits.
fn extent(text: &[u8], is_digit: fn(&u8) -> bool, mark: u8) -> Option<usize> {
    let run = |from: usize| text[from..].iter().take_while(|byte| is_digit(byte)).count();
    let whole = run(0);
    let fraction = if text.get(whole) == Some(&b'.') { run(whole + 1) } else { 0 };
    if whole + fraction == 0 {
        return None;
    }
    // A point behind the last digit belongs to the number.
    let end = whole + usize::from(text.get(whole) == Some(&b'.')) + fraction;
    let exponent = match text.get(end..).unwrap_or_default() {
        [first, rest @ ..] if first.eq_ignore_ascii_case(&mark) => {
            let sign = usize::from(matches!(rest, [b'+' | b'-', ..]));
            match rest[sign..].iter().take_while(|byte| byte.is_ascii_digit()).count() {
                0 => 0,
                digits => 1 + sign + digits,
            }
        }
        _ => 0,
    };
    Some(end + exponent)
}

/// The value of a hexadecimal number that no double is near: infinite, or nothing if its exponent is negative.
fn out_of_range(text: &[u8]) -> f64 {
    if text.contains(&b'-') { 0.0 } else { f64::INFINITY }
}

/// Whether what begins at the front of `text` is a number, or might be one, that strict JSON does not have: one with a
/// plus sign or a leading zero, a hexadecimal one, an infinity, or none.
pub(super) fn is_invalid(text: &[u8]) -> bool {
    let unsigned = match text {
        [b'+', ..] => return true,
        [b'-', rest @ ..] => rest,
        _ => text,
    };
    match unsigned {
        [b'0', b'x' | b'X' | b'0'..=b'9', ..] => true,
        [a, b, c, ..] => {
            let word = [a, b, c].map(u8::to_ascii_lowercase);
            word == *b"inf" || word == *b"nan"
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_end_where_c_ends_them() {
        for (text, value, len) in [
            ("12", 12.0, 2),
            ("12,", 12.0, 2),
            ("-12]", -12.0, 3),
            ("+7", 7.0, 2),
            ("1.5e3x", 1500.0, 5),
            ("1.", 1.0, 2),
            (".5", 0.5, 2),
            ("1e", 1.0, 1),
            ("1e+", 1.0, 1),
            ("1e-2-", 0.01, 4),
            ("007", 7.0, 3),
            ("0x", 0.0, 1),
            ("0xg", 0.0, 1),
            ("0x10", 16.0, 4),
            ("0X1.8p1", 3.0, 7),
            ("0x1p", 1.0, 3),
            ("-0x10", -16.0, 5),
            ("0x1p99999", f64::INFINITY, 9),
            ("0x1p-99999", 0.0, 10),
            ("1e999", f64::INFINITY, 5),
            ("1e-999", 0.0, 6),
            ("12345678901234567890", 12345678901234567890.0, 20),
            ("9007199254740993", 9007199254740992.0, 16),
            ("infinite", f64::INFINITY, 3),
            ("-Infinity", f64::NEG_INFINITY, 9),
        ] {
            assert_eq!(leading_number(text.as_bytes()), Some((value, len)), "{text}");
        }
        for (text, len) in [("nan", 3), ("NaN(12_x)y", 9), ("nan(", 3), ("-nan(.)", 4)] {
            let (value, found) = leading_number(text.as_bytes()).expect("a number");
            assert!(value.is_nan() && found == len, "{text}: {found}");
        }
        for text in ["", "-", "+", ".", "-.", "x", "e5", "- 1", "--1", "in", "."] {
            assert_eq!(leading_number(text.as_bytes()), None, "{text}");
        }
        assert!(leading_number(b"-0").is_some_and(|(zero, _)| zero == 0.0 && zero.is_sign_negative()));
    }

    #[test]
    fn what_json_does_not_have() {
        for text in ["+1", "0x1", "-0x1", "01", "-00", "inf", "-INF", "NaN", "nanny"] {
            assert!(is_invalid(text.as_bytes()), "{text}");
        }
        for text in ["1", "-1", "0", "-0", "0.5", "10", "-", "", "null", "in"] {
            assert!(!is_invalid(text.as_bytes()), "{text}");
        }
    }
}
