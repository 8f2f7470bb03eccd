//! Registers of six bits each, four in three bytes, and the same as one byte each.
//!
//! Must stay true: a register is read and written through the three bytes of its group of four, so the last one needs
//! no byte behind the end.
use super::hash::Place;
use super::{Histogram, REGISTER_VALUES, REGISTERS};

/// Bytes of all registers.
pub(super) const DENSE_BYTES: usize = REGISTERS * 6 / 8;
const MASK: u32 = 63;

type Packed = [u8; DENSE_BYTES];

fn word_of(group: &[u8; 3]) -> u32 {
    u32::from_le_bytes([group[0], group[1], group[2], 0])
}

/// Sets a register when it is lower. `false`: it was not.
#[inline]
pub(super) fn raise(registers: &mut Packed, place: Place) -> bool {
    let (groups, _) = registers.as_chunks_mut::<3>();
    let Some(group) = groups.get_mut(place.index / 4) else { return false };
    let shift = place.index % 4 * 6;
    let word = word_of(group);
    if word >> shift & MASK >= u32::from(place.rank) {
        return false;
    }
    let next = word & !(MASK << shift) | u32::from(place.rank) << shift;
    group.copy_from_slice(&next.to_le_bytes()[..3]);
    true
}

/// How often each pair of neighbours occurs, the first one in the lower six bits. Counting pairs takes half as many
/// steps as counting registers, and two tables keep equal pairs from waiting for each other's count.
struct Pairs([[u16; PAIRS]; 2]);

const PAIRS: usize = REGISTER_VALUES * REGISTER_VALUES;

impl Pairs {
    /// Counts four pairs, each in the lower bits of a part of `part_bits` bits.
    #[inline(always)]
    fn count(&mut self, four: u64, part_bits: usize) {
        for n in 0..4 {
            self.0[n % 2][(four >> (n * part_bits)) as usize % PAIRS] += 1;
        }
    }

    fn histogram(&self) -> Histogram {
        let [left, right] = &self.0;
        let (mut histogram, mut first) = ([0; REGISTER_VALUES], [0u16; REGISTER_VALUES]);
        let (left, _) = left.as_chunks::<REGISTER_VALUES>();
        let (right, _) = right.as_chunks::<REGISTER_VALUES>();
        for ((left, right), second) in left.iter().zip(right).zip(&mut histogram) {
            let mut sum = 0;
            for ((left, right), first) in left.iter().zip(right).zip(&mut first) {
                *first += left + right;
                sum += left + right;
            }
            *second = u32::from(sum);
        }
        histogram.iter_mut().zip(first).for_each(|(all, first)| *all += u32::from(first));
        histogram
    }
}

/// How many registers have each value.
pub(super) fn histogram(registers: &Packed) -> Histogram {
    let mut pairs = Pairs([[0; PAIRS]; 2]);
    for run in registers.as_chunks::<24>().0 {
        let (words, _) = run.as_chunks::<8>();
        let [a, b, c]: [u64; 3] = std::array::from_fn(|n| u64::from_le_bytes(words[n]));
        for four in [a, a >> 48 | b << 16, b >> 32 | c << 32, c >> 16] {
            pairs.count(four, 12);
        }
    }
    pairs.histogram()
}

/// [`histogram`] of registers that are one byte each, below 64.
pub(super) fn histogram_of_bytes(registers: &[u8; REGISTERS]) -> Histogram {
    let mut pairs = Pairs([[0; PAIRS]; 2]);
    for eight in registers.as_chunks::<8>().0 {
        pairs.count(join_pairs(u64::from_le_bytes(*eight)), 16);
    }
    pairs.histogram()
}

/// Four registers in the lower 24 bits, spread to a byte each.
#[inline(always)]
fn spread(word: u32) -> [u8; 4] {
    (word & MASK | (word & MASK << 6) << 2 | (word & MASK << 12) << 4 | (word & MASK << 18) << 6)
        .to_le_bytes()
}

/// Eight registers of a byte each, every two of them together in the lower bits of 16.
#[inline(always)]
fn join_pairs(eight: u64) -> u64 {
    eight & 0x003F_003F_003F_003F | (eight & 0x3F00_3F00_3F00_3F00) >> 2
}

/// Eight registers of a byte each in the lower 48 bits.
#[inline(always)]
fn squeeze(eight: &[u8; 8]) -> u64 {
    let pairs = join_pairs(u64::from_le_bytes(*eight));
    let fours = pairs & 0x0000_0FFF_0000_0FFF | (pairs & 0x0FFF_0000_0FFF_0000) >> 4;
    fours & 0xFF_FFFF | fours >> 8 & 0xFFFF_FF00_0000
}

/// Raises `union` to `registers`, register by register.
///
/// The groups are read into words first and then treated alike, many at a time, which is a form that the compiler turns
/// into vector instructions. A word reads a byte more than its group has, so the last one reads from the byte in front.
pub(super) fn merge(union: &mut [u8; REGISTERS], registers: &Packed) {
    const GROUPS: usize = 16;
    let (runs, _) = union.as_chunks_mut::<{ GROUPS * 4 }>();
    for (run, packed) in runs.iter_mut().zip(registers.as_chunks::<{ GROUPS * 3 }>().0) {
        let word = |at: usize| packed[at..].first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes));
        let mut words = [0; GROUPS];
        for (n, group) in words.iter_mut().enumerate() {
            *group = if n == GROUPS - 1 { word(n * 3 - 1) >> 8 } else { word(n * 3) };
        }
        let mut bytes = [0; GROUPS * 4];
        for (four, word) in bytes.as_chunks_mut::<4>().0.iter_mut().zip(words) {
            *four = spread(word);
        }
        for (register, byte) in run.iter_mut().zip(&bytes) {
            *register = (*register).max(*byte);
        }
    }
}

/// Sets all registers. The bits of a byte above the sixth are left out.
pub(super) fn pack(registers: &mut Packed, bytes: &[u8; REGISTERS]) {
    let (runs, _) = registers.as_chunks_mut::<24>();
    for (run, bytes) in runs.iter_mut().zip(bytes.as_chunks::<32>().0) {
        let (eights, _) = bytes.as_chunks::<8>();
        let [a, b, c, d]: [u64; 4] = std::array::from_fn(|n| squeeze(&eights[n]));
        let words = [a | b << 48, b >> 16 | c << 32, c >> 32 | d << 16];
        for (packed, word) in run.as_chunks_mut::<8>().0.iter_mut().zip(words) {
            *packed = word.to_le_bytes();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::rng::Rng;

    fn random_bytes(seed: u64) -> [u8; REGISTERS] {
        let mut rng = Rng::seeded(seed);
        std::array::from_fn(|_| rng.below(64) as u8)
    }

    /// A register by its definition: six bits from bit `6 * index`.
    fn register(registers: &Packed, index: usize) -> u8 {
        (0..6).map(|n| (registers[(index * 6 + n) / 8] >> ((index * 6 + n) % 8) & 1) << n).sum()
    }

    #[test]
    fn packed_registers_keep_their_place() {
        let bytes = random_bytes(1);
        let mut one_by_one = [0; DENSE_BYTES];
        for (index, rank) in bytes.into_iter().enumerate() {
            assert_eq!(raise(&mut one_by_one, Place { index, rank }), rank > 0);
            assert!(!raise(&mut one_by_one, Place { index, rank }));
            assert_eq!(register(&one_by_one, index), rank);
        }
        let mut at_once = [0xFF; DENSE_BYTES];
        pack(&mut at_once, &bytes);
        assert_eq!(at_once, one_by_one);
        assert!(!raise(&mut at_once, Place { index: REGISTERS, rank: 63 }));
    }

    #[test]
    fn merges_take_the_larger_register() {
        let (left, right) = (random_bytes(2), random_bytes(3));
        let mut packed = [0; DENSE_BYTES];
        pack(&mut packed, &right);
        let mut union = left;
        merge(&mut union, &packed);
        assert!((0..REGISTERS).all(|n| union[n] == left[n].max(right[n])));
    }

    #[test]
    fn histograms_count_every_register() {
        let bytes = random_bytes(4);
        let mut packed = [0; DENSE_BYTES];
        pack(&mut packed, &bytes);
        let mut plain = [0; REGISTER_VALUES];
        bytes.iter().for_each(|value| plain[usize::from(*value)] += 1);
        assert_eq!(histogram(&packed), plain);
        assert_eq!(histogram_of_bytes(&bytes), plain);
    }
}
