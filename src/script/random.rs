//! The generator behind `math.random`: a script gets the same numbers everywhere, from the same seed at each start.
//!
//! It is the 48-bit linear congruential generator of `lrand48` (POSIX): `x' = x * 0x5DEECE66D + 0xB mod 2^48`, of which
//! the upper 31 bits are taken.
use std::cell::Cell;

const MULTIPLIER: u64 = 0x5_DEEC_E66D;
const ADDEND: u64 = 0xB;
const MASK: u64 = (1 << 48) - 1;
/// The state that an unseeded generator of this kind has.
const START: u64 = 0x1234_ABCD_330E;
const LOW_AFTER_SEED: u64 = 0x330E;
/// Largest number given out.
pub const MAX: u32 = i32::MAX as u32;

/// The generator of one engine.
#[derive(Debug)]
pub struct Random(Cell<u64>);

impl Default for Random {
    fn default() -> Random {
        Random(Cell::new(START))
    }
}

impl Random {
    /// Starts over from `seed`.
    pub fn seed(&self, seed: i32) {
        self.0.set(u64::from(seed as u32) << 16 | LOW_AFTER_SEED);
    }

    /// The next number, up to [`MAX`].
    pub fn next(&self) -> u32 {
        let x = self.0.get().wrapping_mul(MULTIPLIER).wrapping_add(ADDEND) & MASK;
        self.0.set(x);
        (x >> 17) as u32
    }

    /// The next number as a fraction, at least 0 and below 1.
    pub fn fraction(&self) -> f64 {
        f64::from(self.next() % MAX) / f64::from(MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_redis() {
        let random = Random::default();
        random.seed(0);
        assert_eq!(format!("{:.14}", random.fraction()), "0.17082803611217");
        random.seed(5);
        assert_eq!(format!("{:.14}", random.fraction()), "0.52483957937213");
    }
}
