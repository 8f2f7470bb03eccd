//! The checksum of snapshots and DUMP payloads: CRC-64 with Jones's polynomial, in the variant that
//! catalogues call CRC-64/REDIS (`ad93d23594c935a9`, reflected both ways, nothing inverted). The sum of
//! pieces is the sum of the whole when each piece starts from its predecessor's sum.
use crc_fast::{CrcAlgorithm, Digest};

/// Continues the checksum `seed` with `bytes`; a fresh checksum starts from 0.
pub fn crc64(seed: u64, bytes: &[u8]) -> u64 {
    let mut digest = Digest::new_with_init_state(CrcAlgorithm::Crc64Redis, seed);
    digest.update(bytes);
    digest.finalize()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The definition, bit by bit.
    fn model(mut crc: u64, bytes: &[u8]) -> u64 {
        let polynomial = 0xad93_d235_94c9_35a9_u64.reverse_bits();
        for byte in bytes {
            crc ^= u64::from(*byte);
            for _ in 0..8 {
                crc = (crc >> 1) ^ if crc & 1 == 1 { polynomial } else { 0 };
            }
        }
        crc
    }

    #[test]
    fn the_catalogue_s_check_value() {
        assert_eq!(crc64(0, b"123456789"), 0xe9c6_d914_c4b8_d9ca);
        assert_eq!(crc64(0, b""), 0);
        assert_eq!(crc64(7, b""), 7);
    }

    /// Lengths on both sides of every block size that a fast implementation may treat apart.
    #[test]
    fn any_length_and_any_cut_agree_with_the_definition() {
        let bytes: Vec<u8> = (0..2100_u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
        for length in (0..300).chain([511, 512, 513, 1023, 1024, 1025, 2047, 2048, 2049, 2100]) {
            let whole = model(0, &bytes[..length]);
            assert_eq!(crc64(0, &bytes[..length]), whole, "{length}");
            let (head, tail) = bytes[..length].split_at(length / 3);
            assert_eq!(crc64(crc64(0, head), tail), whole, "{length} in two pieces");
        }
    }
}
