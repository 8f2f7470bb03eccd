//! From registers to a number of elements: the improved raw estimator of Otmar Ertl, "New cardinality estimation
//! algorithms for HyperLogLog sketches" (arXiv:1702.01284, algorithm 6), which needs no tables and no special cases for
//! small or large sets.
//!
//! Must stay true: the operations are done in the order of the paper, in double precision and without fused ones, since
//! other servers compute the same number from the same registers, to the last bit.
use super::{Histogram, RANK_MAX, REGISTERS};

/// 1 / (2 ln 2).
const ALPHA_INFINITE: f64 = 0.721_347_520_444_481_7;

/// The number of elements that registers with this histogram stand for.
///
/// Values above [`RANK_MAX`], which no element gives, count as no registers at all. Where the estimate is beyond 63 bits
/// only bit 63 is set, which is what rounding such a number gives on x86-64.
pub(super) fn count(histogram: &Histogram) -> u64 {
    let registers = REGISTERS as f64;
    let number = |value: usize| f64::from(histogram[value]);
    let mut z = registers * tau((registers - number(RANK_MAX)) / registers);
    for value in (1..RANK_MAX).rev() {
        z = (z + number(value)) * 0.5;
    }
    z += registers * sigma(number(0) / registers);
    let estimate = (ALPHA_INFINITE * registers * registers / z).round();
    if estimate < (1u64 << 63) as f64 { estimate as u64 } else { 1 << 63 }
}

/// Corrects for the share `x` of registers that are zero.
fn sigma(mut x: f64) -> f64 {
    if x == 1.0 {
        return f64::INFINITY;
    }
    let (mut y, mut z) = (1.0, x);
    loop {
        x *= x;
        let before = z;
        z += x * y;
        y += y;
        if z == before {
            return z;
        }
    }
}

/// Corrects for the share `x` of registers that are not at their maximum.
fn tau(mut x: f64) -> f64 {
    if x == 0.0 || x == 1.0 {
        return 0.0;
    }
    let (mut y, mut z) = (1.0, 1.0 - x);
    loop {
        x = x.sqrt();
        let before = z;
        y *= 0.5;
        z -= (1.0 - x) * (1.0 - x) * y;
        if z == before {
            return z / 3.0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ds::hll::REGISTER_VALUES;

    fn counted(registers: &[(usize, u32)]) -> u64 {
        let mut histogram = [0; REGISTER_VALUES];
        registers.iter().for_each(|(value, number)| histogram[*value] = *number);
        count(&histogram)
    }

    #[test]
    fn estimates_are_known_at_the_ends() {
        assert_eq!(counted(&[(0, 16384)]), 0);
        assert_eq!(counted(&[(0, 16383), (1, 1)]), 1);
        assert_eq!(counted(&[(0, 16382), (1, 1), (7, 1)]), 2);
        // Every register at its maximum, or at values that no element gives.
        assert_eq!(counted(&[(51, 16384)]), 1 << 63);
        assert_eq!(counted(&[(63, 16384)]), 1 << 63);
        assert_eq!(counted(&[]), 1 << 63);
    }

    #[test]
    fn every_histogram_ends() {
        for zeros in 0..=16384 {
            let rest = 16384 - zeros;
            assert!(counted(&[(0, zeros), (3, rest / 2), (51, rest - rest / 2)]) <= 1 << 63);
        }
    }
}
