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

/// Several tables, so that equal neighbours do not wait for each other's count.
type Tables = [Histogram; 4];

fn sum(tables: &Tables) -> Histogram {
    std::array::from_fn(|value| tables.iter().map(|table| table[value]).sum())
}

/// How many registers have each value.
pub(super) fn histogram(registers: &Packed) -> Histogram {
    let mut tables = [[0; REGISTER_VALUES]; 4];
    for group in registers.as_chunks::<3>().0 {
        let word = word_of(group);
        for (n, table) in tables.iter_mut().enumerate() {
            table[(word >> (6 * n) & MASK) as usize] += 1;
        }
    }
    sum(&tables)
}

/// [`histogram`] of registers that are one byte each.
pub(super) fn histogram_of_bytes(registers: &[u8; REGISTERS]) -> Histogram {
    let mut tables = [[0; REGISTER_VALUES]; 4];
    for group in registers.as_chunks::<4>().0 {
        for (table, value) in tables.iter_mut().zip(group) {
            table[usize::from(*value) % REGISTER_VALUES] += 1;
        }
    }
    sum(&tables)
}

/// Eight registers in 48 bits, spread to a byte each. In three steps everything in the upper half of a part moves to
/// the middle of a part a third wider.
fn spread(six: &[u8; 6]) -> [u8; 8] {
    let [a, b, c, d, e, f] = *six;
    let halves = u64::from_le_bytes([a, b, c, 0, d, e, f, 0]);
    let quarters = halves & 0x0000_0FFF_0000_0FFF | (halves & 0x00FF_F000_00FF_F000) << 4;
    let bytes = quarters & 0x003F_003F_003F_003F | (quarters & 0x0FC0_0FC0_0FC0_0FC0) << 2;
    bytes.to_le_bytes()
}

/// Undoes [`spread`].
fn squeeze(eight: &[u8; 8]) -> [u8; 6] {
    let bytes = u64::from_le_bytes(*eight);
    let quarters = bytes & 0x003F_003F_003F_003F | (bytes & 0x3F00_3F00_3F00_3F00) >> 2;
    let halves = quarters & 0x0000_0FFF_0000_0FFF | (quarters & 0x0FFF_0000_0FFF_0000) >> 4;
    let [a, b, c, _, d, e, f, _] = halves.to_le_bytes();
    [a, b, c, d, e, f]
}

/// Raises `union` to `registers`, register by register. The bytes are compared in longer runs than they are spread, so
/// that the compiler takes many at a time.
pub(super) fn merge(union: &mut [u8; REGISTERS], registers: &Packed) {
    let (runs, _) = union.as_chunks_mut::<128>();
    for (run, packed) in runs.iter_mut().zip(registers.as_chunks::<96>().0) {
        let mut bytes = [0; 128];
        for (eight, six) in bytes.as_chunks_mut::<8>().0.iter_mut().zip(packed.as_chunks::<6>().0) {
            *eight = spread(six);
        }
        for (register, byte) in run.iter_mut().zip(&bytes) {
            *register = (*register).max(*byte);
        }
    }
}

/// Sets all registers.
pub(super) fn pack(registers: &mut Packed, bytes: &[u8; REGISTERS]) {
    let (groups, _) = registers.as_chunks_mut::<6>();
    for (six, eight) in groups.iter_mut().zip(bytes.as_chunks::<8>().0) {
        *six = squeeze(eight);
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
