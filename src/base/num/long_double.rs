//! The 80-bit extended floating point ("long double" on x86) in which INCRBYFLOAT and its kin reckon.
//!
//! Three operations, each exact down to the last bit: reading decimal or hexadecimal text, adding, and printing
//! with 17 digits after the point. Short numbers take 128-bit arithmetic; only long texts and huge or tiny
//! numbers need the big integers at the file's foot, whose size the format's range bounds (about 5 kB).
use super::literal::{self, EXTENDED, Magnitude};
use std::cmp::Ordering;

/// Texts of this many bytes or more are refused unread, as in Redis.
const TEXT_LEN_END: usize = 5 * 1024;

/// Digits printed after the point, before trailing zeros go.
const FRACTION_DIGITS: usize = 17;

/// The largest power of ten below 2^64, as an exponent.
const TEN_EXPONENT_MAX: u32 = 19;

/// Why a floating-point increment is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FloatError {
    /// One of the two texts is not a number of the format.
    NotAFloat,
    /// The sum has no finite value.
    NanOrInfinity,
}

/// An 80-bit extended number: infinite, or `significand * 2^exponent`. Never NaN.
#[derive(Clone, Copy, Debug)]
pub struct LongDouble {
    negative: bool,
    infinite: bool,
    significand: u64,
    exponent: i32,
}

/// Adds `increment` to `current`, both as text, and gives the sum as text: 17 digits after the point, without
/// trailing zeros.
///
/// # Errors
/// [`FloatError::NotAFloat`] if either text is no number, [`FloatError::NanOrInfinity`] if the sum is not finite.
pub fn incr_by_float(current: &[u8], increment: &[u8]) -> Result<Vec<u8>, FloatError> {
    let parse = |text| LongDouble::parse(text).ok_or(FloatError::NotAFloat);
    let sum = parse(current)?.checked_add(parse(increment)?).ok_or(FloatError::NanOrInfinity)?;
    let mut text = Vec::with_capacity(40);
    sum.format(&mut text);
    Ok(text)
}

impl LongDouble {
    /// Reads a whole text as `strtold` does, rounding to nearest. Infinity is a number, NaN is none. Refused:
    /// blanks, numbers too large, numbers other than zero that round to zero, texts of 5 kB.
    pub fn parse(text: &[u8]) -> Option<Self> {
        if text.len() >= TEXT_LEN_END {
            return None;
        }
        let scanned = literal::scan(text)?;
        let rounded = match scanned.magnitude {
            Magnitude::Infinite => {
                return Some(Self {
                    negative: scanned.negative,
                    infinite: true,
                    significand: 0,
                    exponent: 0,
                });
            }
            Magnitude::Hex { whole, fraction, exponent } => {
                let (significand, exponent, sticky) = literal::read_hex(whole, fraction, exponent);
                Rounded::new(significand, exponent, sticky)
            }
            Magnitude::Decimal { whole, fraction, exponent } => read_decimal(whole, fraction, exponent),
        }?;
        rounded.into_finite(scanned.negative)
    }

    /// The same number; `None` for NaN.
    pub fn from_f64(value: f64) -> Option<Self> {
        if value.is_nan() {
            return None;
        }
        let (bits, negative) = (value.to_bits(), value.is_sign_negative());
        let (fraction, biased) = (bits & ((1 << 52) - 1), (bits >> 52 & 0x7ff) as i32);
        let (significand, exponent) = match biased {
            0 => (fraction, -1074),
            _ => (fraction | 1 << 52, biased - 1075),
        };
        Some(Self { negative, infinite: value.is_infinite(), significand, exponent })
    }

    /// Whether the number is infinite, of either sign.
    pub fn is_infinite(&self) -> bool {
        self.infinite
    }

    /// The sum, rounded to nearest; `None` when it is infinite or has no value.
    pub fn checked_add(self, other: Self) -> Option<Self> {
        if self.infinite || other.infinite {
            return None;
        }
        let (large, small) = match (self.significand, other.significand) {
            (0, 0) => return Some(Self { negative: self.negative && other.negative, ..self }),
            (0, _) => return Some(other),
            (_, 0) => return Some(self),
            _ if self.top() >= other.top() => (self.normalized(), other.normalized()),
            _ => (other.normalized(), self.normalized()),
        };
        // Both at the top of 126 bits, so that a carry has room. A bit that the shift drops can only matter as
        // "a little more", and only where at most one leading bit can cancel: the lowest bit stands for it.
        let distance = (large.exponent - small.exponent) as u32;
        let (high, low) = (u128::from(large.significand) << 62, u128::from(small.significand) << 62);
        let shifted = match low.checked_shr(distance) {
            Some(shifted) => shifted | u128::from(shifted << distance != low),
            // Far below the guard bits it cannot tip the rounding: the larger number alone is no tie.
            None => 0,
        };
        let same_sign = large.negative == small.negative;
        let (sum, flipped) = match high.checked_sub(shifted) {
            _ if same_sign => (high + shifted, false),
            Some(difference) => (difference, false),
            None => (shifted - high, true),
        };
        let (significand, exponent) = EXTENDED.round(sum, i64::from(large.exponent) - 62, false)?;
        let negative = significand != 0 && large.negative != flipped;
        Some(Self { negative, infinite: false, significand, exponent: exponent as i32 })
    }

    /// Appends the number as decimal text, rounded (half to even) to 17 digits after the point, without trailing
    /// zeros and never in scientific notation; `inf` or `-inf` if infinite. Zero has no sign.
    pub fn format(&self, out: &mut Vec<u8>) {
        let start = out.len();
        if self.negative {
            out.push(b'-');
        }
        if self.infinite {
            out.extend_from_slice(b"inf");
        } else if self.exponent >= 0 {
            self.format_whole(out);
        } else {
            self.format_fraction(out);
        }
        if out[start..] == *b"-0" {
            out.remove(start);
        }
    }

    fn format_whole(&self, out: &mut Vec<u8>) {
        if self.exponent <= 64 {
            let whole = u128::from(self.significand) << self.exponent;
            out.extend_from_slice(itoa::Buffer::new().format(whole).as_bytes());
        } else {
            let mut whole = Big::from(self.significand);
            whole.shift_left(self.exponent.unsigned_abs());
            whole.append_decimal(out);
        }
    }

    fn format_fraction(&self, out: &mut Vec<u8>) {
        let scale = 10_u64.pow(FRACTION_DIGITS as u32);
        let shift = self.exponent.unsigned_abs();
        let whole = self.significand.checked_shr(shift).unwrap_or(0);
        let fraction = if shift < 64 { self.significand & ((1 << shift) - 1) } else { self.significand };
        // Less than 2^64 * 10^17 < 2^121: beyond 127 bits of shift nothing is left.
        let scaled = match shift {
            ..=127 => literal::shift_right_rounding(u128::from(fraction) * u128::from(scale), shift, false),
            _ => 0,
        };
        // Rounding may reach the next whole number.
        let (whole, scaled) = (whole + scaled / scale, scaled % scale);
        let mut buffer = itoa::Buffer::new();
        out.extend_from_slice(buffer.format(whole).as_bytes());
        if scaled > 0 {
            // The one in front keeps the leading zeros; it becomes the point.
            let point = out.len();
            out.extend_from_slice(buffer.format(scale + scaled).as_bytes());
            out[point] = b'.';
            while out.last() == Some(&b'0') {
                out.pop();
            }
        }
    }

    /// The power of two above the number, which is not zero.
    fn top(&self) -> i32 {
        self.exponent + 64 - self.significand.leading_zeros() as i32
    }

    fn normalized(self) -> Self {
        let shift = self.significand.leading_zeros();
        Self { significand: self.significand << shift, exponent: self.exponent - shift as i32, ..self }
    }
}

/// A magnitude within the format, and whether it was zero before rounding.
struct Rounded {
    significand: u64,
    exponent: i32,
    exact_zero: bool,
}

impl Rounded {
    fn new(significand: u128, exponent: i64, sticky: bool) -> Option<Self> {
        let (kept, exponent) = EXTENDED.round(significand, exponent, sticky)?;
        Some(Self { significand: kept, exponent: exponent as i32, exact_zero: significand == 0 })
    }

    fn into_finite(self, negative: bool) -> Option<LongDouble> {
        let Self { significand, exponent, exact_zero } = self;
        let vanished = significand == 0 && !exact_zero;
        (!vanished).then_some(LongDouble { negative, infinite: false, significand, exponent })
    }
}

/// The value of decimal digits around a point, times 10^exponent; `None` when too large.
fn read_decimal(whole: &[u8], fraction: &[u8], exponent: i64) -> Option<Rounded> {
    let digits = whole.iter().chain(fraction).skip_while(|&&digit| digit == b'0');
    let exponent = exponent - fraction.len() as i64;
    let len = digits.clone().count();
    if len == 0 {
        return Rounded::new(0, 0, false);
    }
    if len <= TEN_EXPONENT_MAX as usize {
        let small = digits.clone().fold(0, |sum: u64, digit| sum * 10 + u64::from(digit - b'0'));
        if let Some(rounded) = scale_small(small, exponent) {
            return rounded;
        }
    }
    // The decimal exponents of the format's ends are 4932 and -4951; far outside there is nothing to reckon.
    match exponent + len as i64 {
        5_000.. => None,
        ..-5_000 => Some(Rounded { significand: 0, exponent: 0, exact_zero: false }),
        _ => scale_big(Big::from_digits(digits.copied()), exponent as i32),
    }
}

/// `digits * 10^exponent` when 128 bits suffice for it.
fn scale_small(digits: u64, exponent: i64) -> Option<Option<Rounded>> {
    let power = u128::from(10_u64.checked_pow(u32::try_from(exponent.unsigned_abs()).ok()?)?);
    if exponent >= 0 {
        return Some(Rounded::new(u128::from(digits) * power, 0, false));
    }
    // A quotient of at least 67 bits asks for a divisor of at most 60.
    if power >> 60 > 0 {
        return None;
    }
    let shift = u128::from(digits).leading_zeros();
    let dividend = u128::from(digits) << shift;
    Some(Rounded::new(dividend / power, -i64::from(shift), dividend % power != 0))
}

/// `digits * 10^exponent`, as `digits * 5^exponent * 2^exponent`.
fn scale_big(mut digits: Big, exponent: i32) -> Option<Rounded> {
    if exponent >= 0 {
        digits.times_five_to(exponent.unsigned_abs());
        let (significand, lost, sticky) = digits.top_bits();
        return Rounded::new(significand, i64::from(exponent) + i64::from(lost), sticky);
    }
    let mut divisor = Big::from(1);
    divisor.times_five_to(exponent.unsigned_abs());
    let (digit_bits, divisor_bits) = (digits.bit_len(), divisor.bit_len());
    digits.shift_left(divisor_bits.saturating_sub(digit_bits));
    divisor.shift_left(digit_bits.saturating_sub(divisor_bits));
    // Now the quotient lies between 1/2 and 2: long division for 68 bits leaves 67 at least.
    const QUOTIENT_BITS: u32 = 68;
    let mut quotient = 0_u128;
    for _ in 0..QUOTIENT_BITS {
        let fits = digits.compare(&divisor) != Ordering::Less;
        quotient = quotient << 1 | u128::from(fits);
        if fits {
            digits.subtract(&divisor);
        }
        digits.shift_left(1);
    }
    let aligned = i64::from(digit_bits) - i64::from(divisor_bits);
    let unit = i64::from(exponent) + aligned - i64::from(QUOTIENT_BITS - 1);
    Rounded::new(quotient, unit, !digits.is_zero())
}

/// A natural number of any size, lowest limb first; the highest limb is not zero.
struct Big {
    limbs: Vec<u64>,
}

impl From<u64> for Big {
    fn from(value: u64) -> Self {
        let mut big = Self { limbs: vec![value] };
        big.trim();
        big
    }
}

impl Big {
    fn from_digits(digits: impl Iterator<Item = u8>) -> Self {
        let mut big = Self { limbs: Vec::new() };
        let (mut pending, mut factor) = (0, 1);
        for digit in digits {
            (pending, factor) = (pending * 10 + u64::from(digit - b'0'), factor * 10);
            if factor == 10_u64.pow(TEN_EXPONENT_MAX) {
                big.multiply_add(factor, pending);
                (pending, factor) = (0, 1);
            }
        }
        big.multiply_add(factor, pending);
        big
    }

    fn trim(&mut self) {
        while self.limbs.last() == Some(&0) {
            self.limbs.pop();
        }
    }

    fn is_zero(&self) -> bool {
        self.limbs.is_empty()
    }

    fn bit_len(&self) -> u32 {
        self.limbs.last().map_or(0, |top| self.limbs.len() as u32 * 64 - top.leading_zeros())
    }

    fn multiply_add(&mut self, factor: u64, addend: u64) {
        let mut carry = addend;
        for limb in &mut self.limbs {
            let product = u128::from(*limb) * u128::from(factor) + u128::from(carry);
            (*limb, carry) = (product as u64, (product >> 64) as u64);
        }
        if carry > 0 {
            self.limbs.push(carry);
        }
    }

    fn times_five_to(&mut self, mut exponent: u32) {
        const STEP: u32 = 27; // the largest power of five below 2^64
        while exponent > 0 {
            let step = exponent.min(STEP);
            self.multiply_add(5_u64.pow(step), 0);
            exponent -= step;
        }
    }

    fn shift_left(&mut self, bits: u32) {
        let mut carry = 0;
        if !bits.is_multiple_of(64) {
            for limb in &mut self.limbs {
                let shifted = (u128::from(*limb) << (bits % 64)) | u128::from(carry);
                (*limb, carry) = (shifted as u64, (shifted >> 64) as u64);
            }
        }
        if carry > 0 {
            self.limbs.push(carry);
        }
        if !self.is_zero() {
            self.limbs.splice(0..0, std::iter::repeat_n(0, (bits / 64) as usize));
        }
    }

    fn compare(&self, other: &Self) -> Ordering {
        let by_len = self.limbs.len().cmp(&other.limbs.len());
        by_len.then_with(|| self.limbs.iter().rev().cmp(other.limbs.iter().rev()))
    }

    /// Takes away a number that is not larger.
    fn subtract(&mut self, other: &Self) {
        let mut borrow = false;
        for (index, limb) in self.limbs.iter_mut().enumerate() {
            let (difference, under) = limb.overflowing_sub(other.limbs.get(index).copied().unwrap_or(0));
            let (difference, under_by_borrow) = difference.overflowing_sub(u64::from(borrow));
            borrow = under | under_by_borrow;
            *limb = difference;
        }
        self.trim();
    }

    /// The highest 65 to 128 bits (all, if there are fewer), how many bits lie below them, and whether any of
    /// those is set.
    fn top_bits(&self) -> (u128, u32, bool) {
        let (low, high) = self.limbs.split_at(self.limbs.len().saturating_sub(3));
        let mut window = [0; 3];
        window[..high.len()].copy_from_slice(high);
        let sticky = low.iter().any(|&limb| limb != 0);
        let upper = u128::from(window[2]) << 64 | u128::from(window[1]);
        if window[2] == 0 {
            return (u128::from(window[1]) << 64 | u128::from(window[0]), 0, false);
        }
        (upper, (low.len() as u32 + 1) * 64, sticky || window[0] != 0)
    }

    fn divide_small(&mut self, divisor: u64) -> u64 {
        let mut rest = 0_u64;
        for limb in self.limbs.iter_mut().rev() {
            let dividend = u128::from(rest) << 64 | u128::from(*limb);
            (*limb, rest) =
                ((dividend / u128::from(divisor)) as u64, (dividend % u128::from(divisor)) as u64);
        }
        self.trim();
        rest
    }

    /// Appends the decimal digits, using up the number.
    fn append_decimal(mut self, out: &mut Vec<u8>) {
        let mut groups = Vec::new();
        while !self.is_zero() {
            groups.push(self.divide_small(10_u64.pow(TEN_EXPONENT_MAX)));
        }
        let mut buffer = itoa::Buffer::new();
        out.extend_from_slice(buffer.format(groups.pop().unwrap_or(0)).as_bytes());
        for group in groups.into_iter().rev() {
            let digits = buffer.format(group).as_bytes();
            out.extend(std::iter::repeat_n(b'0', TEN_EXPONENT_MAX as usize - digits.len()));
            out.extend_from_slice(digits);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::FloatError::{NanOrInfinity, NotAFloat};
    use super::*;
    use proptest::prelude::*;

    fn sum(a: &str, b: &str) -> Result<String, FloatError> {
        incr_by_float(a.as_bytes(), b.as_bytes()).map(|text| String::from_utf8(text).unwrap())
    }

    fn printed(number: LongDouble) -> String {
        let mut text = Vec::new();
        number.format(&mut text);
        String::from_utf8(text).unwrap()
    }

    /// Replies of a Redis 8.0.6 server (x86-64) to INCRBYFLOAT.
    #[rustfmt::skip]
    const SUMS: &[(&str, &str, Result<&str, FloatError>)] = &[
        ("0", "0", Ok("0")),
        ("0", "-0", Ok("0")),
        ("-0", "-0", Ok("0")),
        ("18446744073709551616", "0x1p0", Ok("18446744073709551616")),
        ("18446744073709551616", "0x1.0000000000000002p0", Ok("18446744073709551618")),
        ("10.50", "0.1", Ok("10.6")),
        ("5.0e3", "200", Ok("5200")),
        ("3", "1.1", Ok("4.1")),
        ("0.1", "0.2", Ok("0.3")),
        ("1.1", "2.2", Ok("3.3")),
        ("0.7", "0.1", Ok("0.8")),
        ("1", "-0.9", Ok("0.1")),
        ("100", "-99.99", Ok("0.01")),
        ("3.0e3", "2e2", Ok("3200")),
        ("1e17", "1", Ok("100000000000000001")),
        ("1e18", "0.1", Ok("1000000000000000000.125")),
        ("1e19", "0.5", Ok("10000000000000000000")),
        ("9223372036854775807", "1", Ok("9223372036854775808")),
        ("9223372036854775807", "0.5", Ok("9223372036854775807.5")),
        ("-9223372036854775808", "-0.5", Ok("-9223372036854775808")),
        ("18446744073709551615", "0", Ok("18446744073709551615")),
        ("18446744073709551615", "1", Ok("18446744073709551616")),
        ("18446744073709551616", "1", Ok("18446744073709551616")),
        ("18446744073709551617", "0", Ok("18446744073709551616")),
        ("18446744073709551617", "0.5", Ok("18446744073709551616")),
        ("36893488147419103233", "0", Ok("36893488147419103232")),
        ("36893488147419103235", "0", Ok("36893488147419103236")),
        ("36893488147419103234", "1e-4000", Ok("36893488147419103232")),
        ("36893488147419103233", "1e-4000", Ok("36893488147419103232")),
        ("36893488147419103233", "-1e-4000", Ok("36893488147419103232")),
        ("9223372036854775808", "-1e-4000", Ok("9223372036854775808")),
        ("0.00000000000000001", "0", Ok("0.00000000000000001")),
        ("0.000000000000000005", "0", Ok("0")),
        ("0.000000000000000015", "0", Ok("0.00000000000000002")),
        ("0.000000000000000004", "0", Ok("0")),
        ("-0.000000000000000004", "0", Ok("0")),
        ("0.5", "0.49999999999999999999", Ok("1")),
        ("0.99999999999999999999", "0", Ok("1")),
        ("1.00000000000000000005", "0", Ok("1")),
        ("0.1", "-0.1", Ok("0")),
        ("1e-17", "-2e-17", Ok("-0.00000000000000001")),
        ("1e22", "0", Ok("10000000000000000000000")),
        ("1e23", "0", Ok("100000000000000000000000")),
        ("1e27", "1e-17", Ok("1000000000000000000000000000")),
        ("123456789012345678901234567890", "0", Ok("123456789012345678899921813504")),
        ("1e40", "-1e40", Ok("0")),
        ("1e40", "1", Ok("9999999999999999999783686092270256259072")),
        ("0x1p3", "0", Ok("8")),
        ("0x1.8p-1", "0x.8", Ok("1.25")),
        ("0X1P64", "1", Ok("18446744073709551616")),
        ("0xffffffffffffffff.8", "0", Ok("18446744073709551616")),
        ("0xffffffffffffffff.7", "0", Ok("18446744073709551615")),
        ("0x1p-16445", "0", Ok("0")),
        ("0x1p-16446", "0", Err(NotAFloat)),
        ("0x1.8p-16446", "0", Ok("0")),
        ("3.6e-4951", "0", Ok("0")),
        ("1.8e-4951", "0", Err(NotAFloat)),
        ("1e-5000", "0", Err(NotAFloat)),
        ("0e-99999", "1", Ok("1")),
        ("0e99999999999999999999", "1", Ok("1")),
        ("1e5000", "0", Err(NotAFloat)),
        ("inf", "1", Err(NanOrInfinity)),
        ("-inf", "inf", Err(NanOrInfinity)),
        ("infinity", "0", Err(NanOrInfinity)),
        ("+InF", "0", Err(NanOrInfinity)),
        ("1", "inf", Err(NanOrInfinity)),
        ("nan", "1", Err(NotAFloat)),
        ("inf", "nan", Err(NotAFloat)),
        ("1.", ".5", Ok("1.5")),
        ("+1", "+2", Ok("3")),
        (".", "1", Err(NotAFloat)),
        ("1e", "1", Err(NotAFloat)),
        ("0x", "1", Err(NotAFloat)),
        ("0x1p", "1", Err(NotAFloat)),
        ("1_", "1", Err(NotAFloat)),
        ("--1", "1", Err(NotAFloat)),
        ("1e+2", "1E-2", Ok("100.01")),
        ("3.14159265358979323846", "2.71828182845904523536", Ok("5.85987448204883847")),
    ];

    #[test]
    fn sums_as_in_redis() {
        for &(a, b, expected) in SUMS {
            assert_eq!(sum(a, b), expected.map(str::to_owned), "{a} + {b}");
        }
    }

    #[test]
    fn the_ends_of_the_range_print_in_full() {
        assert_eq!(sum("0x1.fffffffffffffp1023", "0").unwrap(), format!("{:.0}", f64::MAX));
        let largest = sum("0x1.fffffffffffffffep16383", "0").unwrap();
        assert_eq!(largest.len(), 4933);
        assert!(
            largest.starts_with("11897314953572317650") && largest.ends_with("9552086811989770240"),
            "{largest}"
        );
        assert_eq!(sum("1.1897314953572317651e4932", "0"), Err(NotAFloat), "too large to read");
        assert_eq!(sum(&largest, &largest), Err(NanOrInfinity), "the sum is too large");
        assert_eq!(sum(&largest, "1e4000"), Ok(largest.clone()));
        assert_eq!(sum(&largest, &format!("-{largest}")), Ok("0".into()));
    }

    #[test]
    fn long_texts_are_read_to_their_last_digit() {
        // One half unit above 2^64, and a little more or less at the far end of the text.
        let tie = "18446744073709551617.";
        let text = |end: &str| format!("{tie}{}{end}", "0".repeat(4_000));
        assert_eq!(sum(&text(""), "0").unwrap(), "18446744073709551616");
        assert_eq!(sum(&text("1"), "0").unwrap(), "18446744073709551618");
        assert_eq!(
            sum(&format!("18446744073709551616.{}", "9".repeat(4_000)), "0").unwrap(),
            "18446744073709551616"
        );
        let hex = format!("0x10000000000000001.{}1", "0".repeat(40));
        assert_eq!(sum(&hex, "0").unwrap(), "18446744073709551618");
        assert_eq!(sum(&"0".repeat(TEXT_LEN_END - 1), "0"), Ok("0".into()));
        assert_eq!(sum(&"0".repeat(TEXT_LEN_END), "0"), Err(NotAFloat));
        assert_eq!(sum(&format!("0.{}1e5000", "0".repeat(4_999)), "0"), Ok("1".into()));
        assert_eq!(sum(&format!("1{}e-5000", "0".repeat(5_000)), "0"), Ok("1".into()));
    }

    #[test]
    fn doubles_pass_unchanged() {
        for (value, text) in [
            (0.0, "0"),
            (-0.0, "0"),
            (3.1, "3.10000000000000009"),
            (-0.5, "-0.5"),
            (13.361389338970184, "13.36138933897018433"),
            (5e-324, "0"),
            (f64::INFINITY, "inf"),
            (f64::NEG_INFINITY, "-inf"),
            (1e23, "99999999999999991611392"),
        ] {
            assert_eq!(printed(LongDouble::from_f64(value).unwrap()), text);
        }
        assert!(LongDouble::from_f64(f64::NAN).is_none());
        assert!(LongDouble::parse(b"-inf").unwrap().is_infinite());
        assert!(!LongDouble::parse(b"1e4000").unwrap().is_infinite());
    }

    #[test]
    fn no_low_limb_is_forgotten_in_a_tie() {
        // (2^64 + 1) * 2^200, halfway between two numbers, and a little more.
        let rounded = |low: [u64; 3]| {
            let limbs = [&low[..], &[1 << 8, 1 << 8]].concat();
            scale_big(Big { limbs }, 0).unwrap().significand
        };
        assert_eq!(rounded([0, 0, 0]), 1 << 63);
        assert_eq!(rounded([0, 0, 1]), (1 << 63) + 1);
        assert_eq!(rounded([1, 0, 0]), (1 << 63) + 1);
    }

    #[test]
    fn big_numbers_print_and_compare() {
        let mut number = Big::from_digits(b"340282366920938463463374607431768211456".iter().copied());
        assert_eq!(number.limbs, [0, 0, 1]);
        assert_eq!(number.bit_len(), 129);
        number.shift_left(63);
        assert_eq!(number.limbs, [0, 0, 1 << 63]);
        number.subtract(&Big::from(1));
        assert_eq!(number.limbs, [u64::MAX, u64::MAX, (1 << 63) - 1]);
        assert_eq!(number.compare(&Big::from(u64::MAX)), Ordering::Greater);
        let mut text = Vec::new();
        let mut power = Big::from(1);
        power.times_five_to(40);
        power.shift_left(40);
        power.append_decimal(&mut text);
        assert_eq!(text, [b"1".to_vec(), vec![b'0'; 40]].concat());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(3000))]

        /// Any double prints exactly as the library prints it with 17 digits.
        #[test]
        fn printing_agrees_with_the_library(bits: u64) {
            let value = f64::from_bits(bits);
            prop_assume!(value.is_finite());
            let mut expected = format!("{value:.17}");
            expected.truncate(expected.trim_end_matches('0').trim_end_matches('.').len());
            let expected = if expected == "-0" { "0" } else { &expected };
            prop_assert_eq!(printed(LongDouble::from_f64(value).unwrap()), expected);
        }

        /// The quick and the thorough way of scaling give the same number.
        #[test]
        fn both_ways_of_scaling_agree(digits in 1_u64.., cut in 0_u32..64, exponent in -18_i64..=19) {
            let digits = (digits >> cut).max(1);
            let quick = scale_small(digits, exponent).unwrap().unwrap();
            let thorough = scale_big(Big::from(digits), exponent as i32).unwrap();
            let exact = |number: &Rounded| {
                let zeros = number.significand.trailing_zeros();
                (number.significand >> zeros, number.exponent + zeros as i32)
            };
            prop_assert_eq!(exact(&quick), exact(&thorough));
        }

        /// 64 bits hold every integer: their sums are exact while they fit.
        #[test]
        fn integers_add_exactly(a: i64, b: i64, cut_a in 1_u32..64, cut_b in 1_u32..64) {
            let (a, b) = (a >> cut_a, b >> cut_b);
            prop_assert_eq!(sum(&a.to_string(), &b.to_string()).unwrap(), (a + b).to_string());
        }

        #[test]
        fn sums_read_back_unchanged(a in -1e15..1e15, b in -1e-3..1e3) {
            let text = sum(&format!("{a:e}"), &format!("{b:e}")).unwrap();
            let (near, exact): (f64, f64) = (text.parse().unwrap(), a + b);
            prop_assert!((near - exact).abs() <= exact.abs() * 1e-15 + 1e-17);
            prop_assert_eq!(sum(&text, "0").unwrap(), text);
        }

        #[test]
        fn no_text_panics(text in "[-+0-9.eExXpPinfa ]{0,12}", other in "[0-9]{1,30}[.]?[0-9]{0,30}(e[-+]?[0-9]{1,5})?") {
            let _ = sum(&text, &other);
        }
    }
}
