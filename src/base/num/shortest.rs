//! Decimal digits of a double: Grisu2, digit for digit as Redis's replies have them.
//!
//! Florian Loitsch, "Printing Floating-Point Numbers Quickly and Accurately with Integers", 2010. Grisu2 always
//! gives digits that read back as the same number; about once in a thousand random doubles they are not the
//! shortest or not the closest ones. Clients compare replies as text, so exactly these digits are wanted: the
//! choice of the cached power, the roundings and the narrowed interval below decide them and must not change.

/// The significands of 10^-348, 10^-340, .. 10^340, rounded to 64 bits. The exponent follows from the power.
#[rustfmt::skip]
static POWERS: [u64; 87] = [
    0xfa8f_d5a0_081c_0288, 0xbaae_e17f_a23e_bf76, 0x8b16_fb20_3055_ac76, 0xcf42_894a_5dce_35ea,
    0x9a6b_b0aa_5565_3b2d, 0xe61a_cf03_3d1a_45df, 0xab70_fe17_c79a_c6ca, 0xff77_b1fc_bebc_dc4f,
    0xbe56_91ef_416b_d60c, 0x8dd0_1fad_907f_fc3c, 0xd351_5c28_3155_9a83, 0x9d71_ac8f_ada6_c9b5,
    0xea9c_2277_23ee_8bcb, 0xaecc_4991_4078_536d, 0x823c_1279_5db6_ce57, 0xc210_9436_4dfb_5637,
    0x9096_ea6f_3848_984f, 0xd774_85cb_2582_3ac7, 0xa086_cfcd_97bf_97f4, 0xef34_0a98_172a_ace5,
    0xb238_67fb_2a35_b28e, 0x84c8_d4df_d2c6_3f3b, 0xc5dd_4427_1ad3_cdba, 0x936b_9fce_bb25_c996,
    0xdbac_6c24_7d62_a584, 0xa3ab_6658_0d5f_daf6, 0xf3e2_f893_dec3_f126, 0xb5b5_ada8_aaff_80b8,
    0x8762_5f05_6c7c_4a8b, 0xc9bc_ff60_34c1_3053, 0x964e_858c_91ba_2655, 0xdff9_7724_7029_7ebd,
    0xa6df_bd9f_b8e5_b88f, 0xf8a9_5fcf_8874_7d94, 0xb944_7093_8fa8_9bcf, 0x8a08_f0f8_bf0f_156b,
    0xcdb0_2555_6531_31b6, 0x993f_e2c6_d07b_7fac, 0xe45c_10c4_2a2b_3b06, 0xaa24_2499_6973_92d3,
    0xfd87_b5f2_8300_ca0e, 0xbce5_0864_9211_1aeb, 0x8cbc_cc09_6f50_88cc, 0xd1b7_1758_e219_652c,
    0x9c40_0000_0000_0000, 0xe8d4_a510_0000_0000, 0xad78_ebc5_ac62_0000, 0x813f_3978_f894_0984,
    0xc097_ce7b_c907_15b3, 0x8f7e_32ce_7bea_5c70, 0xd5d2_38a4_abe9_8068, 0x9f4f_2726_179a_2245,
    0xed63_a231_d4c4_fb27, 0xb0de_6538_8cc8_ada8, 0x83c7_088e_1aab_65db, 0xc45d_1df9_4271_1d9a,
    0x924d_692c_a61b_e758, 0xda01_ee64_1a70_8dea, 0xa26d_a399_9aef_774a, 0xf209_787b_b47d_6b85,
    0xb454_e4a1_79dd_1877, 0x865b_8692_5b9b_c5c2, 0xc835_53c5_c896_5d3d, 0x952a_b45c_fa97_a0b3,
    0xde46_9fbd_99a0_5fe3, 0xa59b_c234_db39_8c25, 0xf6c6_9a72_a398_9f5c, 0xb7dc_bf53_54e9_bece,
    0x88fc_f317_f222_41e2, 0xcc20_ce9b_d35c_78a5, 0x9816_5af3_7b21_53df, 0xe2a0_b5dc_971f_303a,
    0xa8d9_d153_5ce3_b396, 0xfb9b_7cd9_a4a7_443c, 0xbb76_4c4c_a7a4_4410, 0x8bab_8eef_b640_9c1a,
    0xd01f_ef10_a657_842c, 0x9b10_a4e5_e991_3129, 0xe710_9bfb_a19c_0c9d, 0xac28_20d9_623b_f429,
    0x8044_4b5e_7aa7_cf85, 0xbf21_e440_03ac_dd2d, 0x8e67_9c2f_5e44_ff8f, 0xd433_179d_9c8c_b841,
    0x9e19_db92_b4e3_1ba9, 0xeb96_bf6e_badf_77d9, 0xaf87_023b_9bf0_ee6b,
];

const POWER_FIRST: i32 = -348;
const POWER_STEP: i32 = 8;

/// The scaled number's binary exponent is kept from here up to -32, so that its whole part fits 32 bits.
const SCALED_EXPONENT_MIN: i32 = -60;

/// A number `digits * 10^exponent`, without sign.
pub(super) struct Decimal {
    bytes: [u8; 18],
    len: usize,
    /// Power of ten of the last digit.
    pub(super) exponent: i32,
}

impl Decimal {
    /// ASCII digits, the first not '0'.
    pub(super) fn digits(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

/// `significand * 2^exponent`.
#[derive(Clone, Copy)]
struct Scaled {
    significand: u64,
    exponent: i32,
}

impl Scaled {
    fn normalized(self) -> Self {
        let shift = self.significand.leading_zeros();
        Self { significand: self.significand << shift, exponent: self.exponent - shift as i32 }
    }

    /// The upper half of the product, rounded half up.
    fn times(self, other: Self) -> Self {
        let product = u128::from(self.significand) * u128::from(other.significand);
        let significand = ((product + (1 << 63)) >> 64) as u64;
        Self { significand, exponent: self.exponent + other.exponent + 64 }
    }
}

/// The digits of a positive, finite number.
pub(super) fn digits(value: f64) -> Decimal {
    debug_assert!(value > 0.0 && value.is_finite());
    let (number, lower, upper) = boundaries(value);
    let (power, power_exponent) = cached_power(upper.exponent);
    let mut number = number.times(power).significand;
    let mut upper = upper.times(power);
    let mut lower = lower.times(power).significand;
    // Each product may be off by one unit: only what lies surely inside the interval is used.
    lower = lower.wrapping_add(1);
    upper.significand -= 1;
    number = upper.significand - number;
    generate(upper, upper.significand - lower, number, -power_exponent)
}

/// The number and the two halfway points to its neighbours, all with the same exponent.
fn boundaries(value: f64) -> (Scaled, Scaled, Scaled) {
    const HIDDEN_BIT: u64 = 1 << 52;
    let bits = value.to_bits();
    let (fraction, biased) = (bits & (HIDDEN_BIT - 1), (bits >> 52) as i32);
    let number = match biased {
        0 => Scaled { significand: fraction, exponent: -1074 },
        _ => Scaled { significand: fraction | HIDDEN_BIT, exponent: biased - 1075 },
    };
    let upper =
        Scaled { significand: number.significand * 2 + 1, exponent: number.exponent - 1 }.normalized();
    // Below a power of two the neighbour is half as far away.
    let shift = if number.significand == HIDDEN_BIT { 2 } else { 1 };
    let lower = Scaled { significand: (number.significand << shift) - 1, exponent: number.exponent - shift };
    let aligned = lower.significand << (lower.exponent - upper.exponent);
    (number.normalized(), Scaled { significand: aligned, exponent: upper.exponent }, upper)
}

/// The smallest cached power that lifts a number with this binary exponent into the wanted range, and its
/// exponent of ten.
fn cached_power(exponent: i32) -> (Scaled, i32) {
    // The power's own binary exponent must reach this; 78913 / 2^18 is the logarithm of 2 to base 10.
    let needed = SCALED_EXPONENT_MIN - 64 - exponent + 63;
    let ten_exponent = -((-needed * 78913) >> 18);
    let index = (ten_exponent - POWER_FIRST + POWER_STEP - 1) / POWER_STEP;
    let ten_exponent = POWER_FIRST + index * POWER_STEP;
    // 217706 / 2^16 is the logarithm of 10 to base 2.
    let power =
        Scaled { significand: POWERS[index as usize], exponent: ((ten_exponent * 217_706) >> 16) - 63 };
    (power, ten_exponent)
}

/// Takes digits of `upper` until what is left of it lies within `delta`, the width of the interval; then moves
/// the last digit towards the number itself, which lies `distance` below `upper`.
fn generate(upper: Scaled, mut delta: u64, distance: u64, mut exponent: i32) -> Decimal {
    let shift = -upper.exponent as u32;
    let (mut whole, mut part) = (upper.significand >> shift, upper.significand & ((1 << shift) - 1));
    let mut found = Decimal { bytes: [0; 18], len: 0, exponent };
    let mut divisor = 1_000_000_000;
    for left in (0..10).rev() {
        found.push(whole / divisor);
        whole %= divisor;
        let rest = (whole << shift) + part;
        if rest <= delta {
            found.exponent += left;
            found.round(delta, rest, divisor << shift, distance);
            return found;
        }
        divisor /= 10;
    }
    let mut unit: u64 = 1;
    loop {
        part = part.wrapping_mul(10);
        delta = delta.wrapping_mul(10);
        unit = unit.wrapping_mul(10);
        exponent -= 1;
        found.push(part >> shift);
        part &= (1 << shift) - 1;
        if part < delta {
            found.exponent = exponent;
            found.round(delta, part, 1 << shift, distance.wrapping_mul(unit));
            return found;
        }
    }
}

impl Decimal {
    fn push(&mut self, digit: u64) {
        if self.len > 0 || digit > 0 {
            self.bytes[self.len] = b'0' + digit as u8;
            self.len += 1;
        }
    }

    /// Lowers the last digit while that brings the decimal, `rest` below the upper end, closer to the number,
    /// `distance` below it, and keeps it inside the interval. `unit` is the last digit's weight.
    fn round(&mut self, delta: u64, mut rest: u64, unit: u64, distance: u64) {
        while rest < distance
            && delta - rest >= unit
            && (rest + unit < distance || distance - rest > rest + unit - distance)
        {
            self.bytes[self.len - 1] -= 1;
            rest += unit;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn text(value: f64) -> String {
        let decimal = digits(value);
        format!("{}e{}", std::str::from_utf8(decimal.digits()).unwrap(), decimal.exponent)
    }

    #[test]
    fn plain_numbers() {
        assert_eq!(text(0.1), "1e-1");
        assert_eq!(text(3.1), "31e-1");
        assert_eq!(text(0.1 + 0.2), "30000000000000004e-17");
        assert_eq!(text(f64::MAX), "17976931348623157e292");
        assert_eq!(text(f64::MIN_POSITIVE), "22250738585072014e-324");
        assert_eq!(text(5e-324), "5e-324");
    }

    #[test]
    fn every_exponent_has_a_power_in_range() {
        for exponent in -1138..=960 {
            let (power, _) = cached_power(exponent);
            let scaled = exponent + power.exponent + 64;
            assert!((SCALED_EXPONENT_MIN..=-32).contains(&scaled), "{exponent} gives {scaled}");
        }
    }

    #[test]
    fn cached_powers_are_those_of_ten() {
        for (index, &significand) in POWERS.iter().enumerate() {
            let ten_exponent = POWER_FIRST + index as i32 * POWER_STEP;
            let exponent = ((ten_exponent * 217_706) >> 16) - 63;
            let log2 = (significand as f64).log2() + f64::from(exponent);
            assert!(
                (log2 - f64::from(ten_exponent) * std::f64::consts::LOG2_10).abs() < 1e-9,
                "{ten_exponent}"
            );
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(20_000))]

        #[test]
        fn digits_read_back(bits: u64) {
            let value = f64::from_bits(bits & (u64::MAX >> 1));
            prop_assume!(value > 0.0 && value.is_finite());
            prop_assert_eq!(text(value).parse::<f64>().unwrap(), value);
        }
    }
}
