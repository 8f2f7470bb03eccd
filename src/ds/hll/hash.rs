//! Where an element goes: its register, and the value that it gives it.
//!
//! The hash is MurmurHash2 in its 64-bit form for 64-bit machines (MurmurHash64A, Austin Appleby), read little endian
//! everywhere.
use super::{INDEX_BITS, REGISTERS};

const SEED: u64 = 0xadc8_3b19;
const FACTOR: u64 = 0xc6a4_a793_5bd1_e995;
const SHIFT: u32 = 47;

/// A register and a value for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// Which register, below [`REGISTERS`].
    pub index: usize,
    /// Number of zero bits in front of the first one, itself included: 1 to [`super::RANK_MAX`].
    pub rank: u8,
}

impl Place {
    /// The place of an element.
    #[inline]
    pub fn of(element: &[u8]) -> Place {
        let hash = murmur_64a(element, SEED);
        // A one behind the last bit ends the zeros.
        let rest = hash >> INDEX_BITS | 1 << (64 - INDEX_BITS);
        Place { index: hash as usize & (REGISTERS - 1), rank: rest.trailing_zeros() as u8 + 1 }
    }
}

#[inline]
fn murmur_64a(bytes: &[u8], seed: u64) -> u64 {
    let mut hash = seed ^ (bytes.len() as u64).wrapping_mul(FACTOR);
    let (words, tail) = bytes.as_chunks::<8>();
    for word in words {
        let mut word = u64::from_le_bytes(*word).wrapping_mul(FACTOR);
        word ^= word >> SHIFT;
        hash = (hash ^ word.wrapping_mul(FACTOR)).wrapping_mul(FACTOR);
    }
    if !tail.is_empty() {
        let word = tail.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte));
        hash = (hash ^ word).wrapping_mul(FACTOR);
    }
    hash ^= hash >> SHIFT;
    hash = hash.wrapping_mul(FACTOR);
    hash ^ hash >> SHIFT
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Read off a reference server: the register of a single element, by PFDEBUG DECODE.
    const KNOWN: [(&str, usize, u8); 8] = [
        ("", 5938, 2),
        ("a", 12711, 2),
        ("b", 15780, 1),
        ("hello", 9216, 1),
        ("1234567", 10327, 3),
        ("12345678", 10579, 3),
        ("123456789", 9293, 2),
        ("a somewhat longer element, 33 bytes", 4333, 1),
    ];

    #[test]
    fn elements_have_known_places() {
        for (element, index, rank) in KNOWN {
            assert_eq!(Place::of(element.as_bytes()), Place { index, rank }, "{element}");
        }
    }

    #[test]
    fn ranks_stay_in_range() {
        for n in 0u32..100_000 {
            let place = Place::of(&n.to_le_bytes());
            assert!(place.index < REGISTERS && (1..=51).contains(&place.rank));
        }
    }
}
