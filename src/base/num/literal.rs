//! The grammar of C's `strtod` and `strtold` for a whole byte string, and rounding to a binary format.
//!
//! Reading is split in two: [`scan`] finds the parts of a number without judging its size; [`Format::round`]
//! brings an exact binary value, of which only the top bits need be known, to the nearest number of a format.

/// A number's text, taken apart.
pub(super) struct Literal<'a> {
    pub(super) negative: bool,
    pub(super) magnitude: Magnitude<'a>,
}

/// A number's text without its sign. NaN is no number here.
pub(super) enum Magnitude<'a> {
    Infinite,
    /// The digits before and after the point, times 10^exponent.
    Decimal {
        whole: &'a [u8],
        fraction: &'a [u8],
        exponent: i64,
    },
    /// The hexadecimal digits before and after the point, times 2^exponent.
    Hex {
        whole: &'a [u8],
        fraction: &'a [u8],
        exponent: i64,
    },
}

/// Takes a whole text apart; `None` when any byte of it does not belong to a number. No blanks are skipped.
pub(super) fn scan(text: &[u8]) -> Option<Literal<'_>> {
    let (negative, rest) = match text {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        rest => (false, rest),
    };
    let magnitude = if rest.eq_ignore_ascii_case(b"inf") || rest.eq_ignore_ascii_case(b"infinity") {
        Magnitude::Infinite
    } else if let [b'0', b'x' | b'X', rest @ ..] = rest {
        let (whole, fraction, exponent) = scan_digits(rest, u8::is_ascii_hexdigit, b'p')?;
        Magnitude::Hex { whole, fraction, exponent }
    } else {
        let (whole, fraction, exponent) = scan_digits(rest, u8::is_ascii_digit, b'e')?;
        Magnitude::Decimal { whole, fraction, exponent }
    };
    Some(Literal { negative, magnitude })
}

/// Digits, perhaps a point and more digits (one digit at least in all), perhaps an exponent after `mark`.
fn scan_digits(text: &[u8], is_digit: fn(&u8) -> bool, mark: u8) -> Option<(&[u8], &[u8], i64)> {
    let run = |text: &[u8]| text.iter().take_while(|&byte| is_digit(byte)).count();
    let (whole, rest) = text.split_at(run(text));
    let (fraction, rest) = match rest {
        [b'.', rest @ ..] => rest.split_at(run(rest)),
        rest => (&rest[..0], rest),
    };
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let exponent = match rest {
        [] => 0,
        [first, rest @ ..] if first.eq_ignore_ascii_case(&mark) => scan_exponent(rest)?,
        _ => return None,
    };
    Some((whole, fraction, exponent))
}

/// A signed decimal number. Beyond 10^15 its exact size no longer matters: no text holds the zeros that could
/// bring such a number back into range.
fn scan_exponent(text: &[u8]) -> Option<i64> {
    let (negative, digits) = match text {
        [b'-', digits @ ..] => (true, digits),
        [b'+', digits @ ..] => (false, digits),
        digits => (false, digits),
    };
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let add = |sum: i64, digit: &u8| (sum * 10 + i64::from(digit - b'0')).min(1_000_000_000_000_000);
    let size = digits.iter().fold(0, add);
    Some(if negative { -size } else { size })
}

/// Collects hexadecimal digits into `(significand, exponent, sticky)`: the value is `significand * 2^exponent`,
/// plus a little less than one unit of it when `sticky`.
pub(super) fn read_hex(whole: &[u8], fraction: &[u8], exponent: i64) -> (u128, i64, bool) {
    let (mut significand, mut exponent, mut sticky) = (0_u128, exponent - 4 * fraction.len() as i64, false);
    for &byte in whole.iter().chain(fraction) {
        let digit = char::from(byte).to_digit(16).unwrap_or(0);
        if significand >> 124 == 0 {
            significand = significand << 4 | u128::from(digit);
        } else {
            sticky |= digit != 0;
            exponent += 4;
        }
    }
    (significand, exponent, sticky)
}

/// A binary floating-point format with gradual underflow.
pub(super) struct Format {
    /// Bits of the significand, at most 64.
    pub(super) precision: i64,
    /// Exponent of the lowest bit of the smallest numbers.
    pub(super) exponent_min: i64,
    /// The least power of two that is too large.
    pub(super) exponent_end: i64,
}

/// IEEE 754 binary64.
pub(super) const DOUBLE: Format = Format { precision: 53, exponent_min: -1074, exponent_end: 1024 };

/// The 80-bit extended format of the x87 unit.
pub(super) const EXTENDED: Format = Format { precision: 64, exponent_min: -16445, exponent_end: 16384 };

impl Format {
    /// The nearest number `(significand, exponent)` of the format, the even one when two are equally near;
    /// `None` when that is too large. A significand of zero says that the value vanished (or was zero).
    ///
    /// `sticky` says that the exact value lies a little above the given one. It asks for a significand with two
    /// bits more than the format's.
    pub(super) fn round(&self, significand: u128, exponent: i64, sticky: bool) -> Option<(u64, i64)> {
        if significand == 0 {
            return Some((0, 0));
        }
        let bits = 128 - i64::from(significand.leading_zeros());
        let dropped = (bits - self.precision).max(self.exponent_min - exponent);
        let (mut kept, mut exponent) = match dropped {
            ..=0 => (significand as u64, exponent),
            1..=127 => (shift_right_rounding(significand, dropped as u32, sticky), exponent + dropped),
            // All of it lies below half of the last place, or exactly on half of it at most.
            _ => (
                u64::from(dropped == 128 && (significand > 1 << 127 || significand == 1 << 127 && sticky)),
                self.exponent_min,
            ),
        };
        if kept == 0 && self.precision == 64 && dropped > 0 && bits > dropped {
            // Rounding carried out of 64 bits.
            (kept, exponent) = (1 << 63, exponent + 1);
        }
        let top = 64 - i64::from(kept.leading_zeros()) + exponent;
        (kept == 0 || top <= self.exponent_end).then_some((kept, exponent))
    }
}

/// `value / 2^shift` to the nearest whole number, ties to even, modulo 2^64; `shift` is from 1 to 127.
pub(super) fn shift_right_rounding(value: u128, shift: u32, sticky: bool) -> u64 {
    let (quotient, rest, half) = (value >> shift, value & ((1 << shift) - 1), 1 << (shift - 1));
    let up = rest > half || rest == half && (sticky || quotient & 1 == 1);
    (quotient + u128::from(up)) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grammar() {
        for good in [
            "1",
            "-1",
            "+1",
            "1.",
            ".5",
            "1e5",
            "1E+05",
            "1e-5",
            "0x1",
            "0X.8P1",
            "-0x1.p-3",
            "inf",
            "+INFinity",
        ] {
            assert!(scan(good.as_bytes()).is_some(), "{good}");
        }
        for bad in [
            "", "+", "-", ".", "e5", "1e", "1e+", "1 ", " 1", "--1", "0x", "0x.", "0xg", "0x1p", "1p3",
            "infi", "nan", "1_0", "1\0",
        ] {
            assert!(scan(bad.as_bytes()).is_none(), "{bad}");
        }
    }

    #[test]
    fn rounding_to_even_and_up_to_the_next_power() {
        let tie = (1_u128 << 64) + 1;
        assert_eq!(EXTENDED.round(tie, 0, false), Some((1 << 63, 1)));
        assert_eq!(EXTENDED.round(tie + 2, 0, false), Some(((1 << 63) + 2, 1)));
        assert_eq!(EXTENDED.round((1 << 66) + 4, 0, true), Some(((1 << 63) + 1, 3)));
        assert_eq!(EXTENDED.round((1 << 66) + 4, 0, false), Some((1 << 63, 3)));
        assert_eq!(EXTENDED.round((1 << 65) - 1, 0, false), Some((1 << 63, 2)));
        assert_eq!(DOUBLE.round((1 << 54) - 1, 0, false), Some((1 << 53, 1)));
    }

    #[test]
    fn ends_of_the_range() {
        assert_eq!(EXTENDED.round(1, 16383, false), Some((1, 16383)));
        assert_eq!(EXTENDED.round(1, 16384, false), None);
        assert_eq!(EXTENDED.round((1 << 65) - 1, 16384 - 65, false), None, "rounds up to a number too large");
        assert_eq!(EXTENDED.round(1, -16445, false), Some((1, -16445)));
        assert_eq!(EXTENDED.round(1, -16446, false), Some((0, -16445)));
        assert_eq!(EXTENDED.round(3, -16447, false), Some((1, -16445)));
        assert_eq!(EXTENDED.round(u128::MAX, -16445 - 128, false), Some((1, -16445)));
        assert_eq!(EXTENDED.round(1 << 127, -16445 - 128, false), Some((0, -16445)));
        assert_eq!(EXTENDED.round(u128::MAX, -16445 - 129, false), Some((0, -16445)));
        assert_eq!(EXTENDED.round(1, i64::MAX / 2, false), None);
        assert_eq!(EXTENDED.round(1, i64::MIN / 2, false), Some((0, -16445)));
    }
}
