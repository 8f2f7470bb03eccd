//! The one hash of a key, and how its 64 bits are shared out.
//!
//! Must stay true: shard, fingerprint, bucket and directory use disjoint bits. A fingerprint that repeats
//! routing bits says nothing new inside its segment, and probes get long (`bits_are_independent` below).
//!
//! ```text
//! bit 63            40 39           24 23        16 15            0
//!     directory prefix | bucket bits  | fingerprint | shard
//!              index bits             |
//! ```
//! Packed tables (`ds::table`) hold fields and members, which no shard or directory has sorted before: they take
//! everything above the fingerprint as one index.
use std::sync::OnceLock;

use rapidhash::v3::{RapidSecrets, rapidhash_v3_inline};

/// Bits of [`KeyHash::prefix`]: the deepest directory a table can have.
pub const PREFIX_BITS: u32 = 24;

static SECRETS: OnceLock<RapidSecrets> = OnceLock::new();

fn secrets() -> &'static RapidSecrets {
    SECRETS.get_or_init(|| RapidSecrets::seed(crate::base::rng::Rng::from_entropy().next_u64()))
}

/// The hash of a key under this process's random seed (rapidhash v3).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct KeyHash(u64);

impl KeyHash {
    /// Hashes `key`. The seed is drawn once per process, so that nobody can choose colliding keys from outside.
    #[inline]
    pub fn of(key: &[u8]) -> KeyHash {
        KeyHash(rapidhash_v3_inline::<true, false, false>(key, secrets()))
    }

    /// Fixes the seed of this process, so that runs whose instructions are counted take the same ways. For
    /// measurement only: with a known seed anybody can choose colliding keys. `false`: a key was hashed before, and
    /// the seed stays as it is.
    #[doc(hidden)]
    pub fn seed_for_measurement(seed: u64) -> bool {
        SECRETS.set(RapidSecrets::seed(seed)).is_ok()
    }

    /// A hash with the given bits, for tests of the table.
    pub fn from_bits(bits: u64) -> KeyHash {
        KeyHash(bits)
    }

    /// Which of `shards` shards owns the key.
    #[inline]
    pub fn shard(self, shards: usize) -> usize {
        (((self.0 & 0xFFFF) * shards as u64) >> 16) as usize
    }

    /// One byte, never zero: zero marks a free slot.
    #[inline]
    pub fn fingerprint(self) -> u8 {
        let byte = (self.0 >> 16) as u8;
        byte | u8::from(byte == 0)
    }

    /// Sixteen bits that place the key among the buckets of its segment.
    #[inline]
    pub fn bucket_bits(self) -> u16 {
        (self.0 >> 24) as u16
    }

    /// The forty bits above the fingerprint as one number, for tables without a directory.
    #[inline]
    pub fn index_bits(self) -> u64 {
        self.0 >> 24
    }

    /// All 64 bits.
    #[inline]
    pub fn bits(self) -> u64 {
        self.0
    }

    /// The top [`PREFIX_BITS`] bits, which the directory consumes from the most significant one down.
    #[inline]
    pub fn prefix(self) -> u32 {
        (self.0 >> (64 - PREFIX_BITS)) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_are_independent() {
        // Flipping a bit of one field never shows in another.
        let fields = |h: KeyHash| (h.shard(1 << 16), h.fingerprint(), h.bucket_bits(), h.prefix());
        let base_bits = 0x5555_5555_5555_5555;
        let base = fields(KeyHash::from_bits(base_bits));
        for bit in 0..64 {
            let now = fields(KeyHash::from_bits(base_bits ^ (1 << bit)));
            let changed = [base.0 != now.0, base.1 != now.1, base.2 != now.2, base.3 != now.3];
            assert_eq!(changed.iter().filter(|c| **c).count(), 1, "bit {bit}");
            // A table without a directory takes bucket and directory bits together.
            let moved = KeyHash::from_bits(base_bits ^ (1 << bit)).index_bits() != base_bits >> 24;
            assert_eq!(moved, changed[2] || changed[3], "bit {bit}");
        }
    }

    #[test]
    fn shards_are_even() {
        let mut counts = [0u32; 3];
        for i in 0..30_000 {
            counts[KeyHash::of(format!("key:{i}").as_bytes()).shard(3)] += 1;
        }
        assert!(counts.iter().all(|c| (9_500..10_500).contains(c)), "{counts:?}");
    }
}
