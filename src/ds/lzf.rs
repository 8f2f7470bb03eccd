//! LZF, a quick and simple compression: Marc Lehmann's format, as liblzf writes it.
//!
//! The format is a row of items. An item's first byte below 32 begins a literal: that many bytes plus one
//! follow. Any other first byte begins a copy of earlier output: its upper three bits are the length less two
//! (the value 7 adds a further byte to it), its lower five bits and the last byte are the distance less one.
//! The output of [`decompress`] is never reserved on the input's word alone: an item cannot expand more than
//! [`EXPANSION_MAX`] times, so a larger claim is refused first.

/// An item of three bytes stands for at most 264 bytes.
pub const EXPANSION_MAX: usize = COPY_MAX / 3;

const LITERAL_MAX: usize = 32;
const COPY_MIN: usize = 3;
const COPY_MAX: usize = 264;
const DISTANCE_MAX: usize = 1 << 13;
/// What a compressed string must save to pay for its longer header.
const SAVING_MIN: usize = 4;
/// After this many positions without a match, one more position is skipped per step: incompressible bytes
/// pass quickly.
const PATIENCE: usize = 64;

/// Compresses `input`; `None` when that would not save four bytes, or when the input has 4 GiB or more.
pub fn compress(input: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(input.len());
    compress_into(input, &mut out).then_some(out)
}

/// As [`compress`], appending to `out`. When it returns false `out` is as before.
pub fn compress_into(input: &[u8], out: &mut Vec<u8>) -> bool {
    if input.len() <= SAVING_MIN {
        return false;
    }
    let start = out.len();
    // Clearing the table is most of the work for a short input, so it grows with the input.
    let fits = match input.len() {
        0..=64 => pack::<64>(input, out),
        65..=256 => pack::<256>(input, out),
        257..=8192 => pack::<4096>(input, out),
        length if u32::try_from(length).is_ok() => pack::<{ 1 << 14 }>(input, out),
        _ => false,
    };
    if !fits {
        out.truncate(start);
    }
    fits
}

/// Compresses with a table of `SLOTS` places, a power of two; false when that does not pay.
fn pack<const SLOTS: usize>(input: &[u8], out: &mut Vec<u8>) -> bool {
    let limit = out.len() + (input.len() - SAVING_MIN);
    // The most that is ever written: all of it as literals.
    out.reserve(input.len() + input.len().div_ceil(LITERAL_MAX));
    Packer { input, out, limit, places: &mut [0; SLOTS] }.run()
}

/// A greedy search for the last place with the same three bytes.
struct Packer<'a, const SLOTS: usize> {
    input: &'a [u8],
    out: &'a mut Vec<u8>,
    /// Where `out` must not get beyond.
    limit: usize,
    /// By hash of three bytes, the last position that had them, plus one; 0 for none.
    places: &'a mut [u32; SLOTS],
}

impl<const SLOTS: usize> Packer<'_, SLOTS> {
    /// False when the output would pass its limit.
    fn run(&mut self) -> bool {
        let (mut at, mut literal_from, mut misses) = (0, 0, 0);
        while let Some(key) = self.key(at) {
            let Some(from) = self.earlier(at, key) else {
                misses += 1;
                at += 1 + misses / PATIENCE;
                continue;
            };
            let length = self.match_length(from, at);
            self.put_literal(literal_from, at);
            self.put_copy(at - from, length);
            if self.out.len() > self.limit {
                return false;
            }
            at += length;
            (literal_from, misses) = (at, 0);
            // Of the positions within a match the last two are worth remembering.
            for inside in [at - 2, at - 1] {
                if let Some(key) = self.key(inside) {
                    *self.place(key) = inside as u32 + 1;
                }
            }
        }
        self.put_literal(literal_from, self.input.len());
        self.out.len() <= self.limit
    }

    /// The three bytes at `at` as a number. `None` already when no fourth one follows: one load reads all of
    /// them, and a match of the last three bytes would save nothing.
    #[inline]
    fn key(&self, at: usize) -> Option<u32> {
        self.input.get(at..)?.first_chunk().map(|&bytes| u32::from_le_bytes(bytes) << 8)
    }

    /// Where the last position of these three bytes is remembered. Others may share it.
    #[inline]
    fn place(&mut self, key: u32) -> &mut u32 {
        // Fibonacci hashing: the product's upper bits.
        let slot = key.wrapping_mul(2_654_435_761) >> (32 - SLOTS.ilog2());
        &mut self.places[slot as usize % SLOTS]
    }

    /// The last position within reach that has the three bytes at `at`, which becomes the last one itself.
    #[inline]
    fn earlier(&mut self, at: usize, key: u32) -> Option<usize> {
        let place = self.place(key);
        let from = (*place as usize).checked_sub(1);
        *place = at as u32 + 1;
        from.filter(|&from| at - from <= DISTANCE_MAX && self.key(from) == Some(key))
    }

    /// How many bytes at `from` and `at` are the same, when the first three are.
    #[inline]
    fn match_length(&self, from: usize, at: usize) -> usize {
        let max = COPY_MAX.min(self.input.len() - at);
        let (left, right) = (&self.input[from + COPY_MIN..from + max], &self.input[at + COPY_MIN..at + max]);
        let (left_words, left_rest) = left.as_chunks::<8>();
        let (right_words, right_rest) = right.as_chunks::<8>();
        let mut same = COPY_MIN;
        for (l, r) in left_words.iter().zip(right_words) {
            let difference = u64::from_le_bytes(*l) ^ u64::from_le_bytes(*r);
            if difference != 0 {
                return same + difference.trailing_zeros() as usize / 8;
            }
            same += 8;
        }
        same + left_rest.iter().zip(right_rest).take_while(|(l, r)| l == r).count()
    }

    fn put_literal(&mut self, from: usize, to: usize) {
        for run in self.input[from..to].chunks(LITERAL_MAX) {
            self.out.push(run.len() as u8 - 1);
            self.out.extend_from_slice(run);
        }
    }

    fn put_copy(&mut self, distance: usize, length: usize) {
        let [high, low] = (distance as u16 - 1).to_be_bytes();
        match length - 2 {
            short @ ..7 => self.out.push((short as u8) << 5 | high),
            long => self.out.extend_from_slice(&[7 << 5 | high, (long - 7) as u8]),
        }
        self.out.push(low);
    }
}

/// Expands `input` to exactly `len` bytes; `None` when it is no LZF, or has another length.
pub fn decompress(input: &[u8], len: usize) -> Option<Vec<u8>> {
    if len.div_ceil(EXPANSION_MAX) > input.len() {
        return None;
    }
    let mut out = Vec::with_capacity(len);
    let mut rest = input;
    while let Some((&first, tail)) = rest.split_first() {
        if first < LITERAL_MAX as u8 {
            let (literal, tail) = tail.split_at_checked(usize::from(first) + 1)?;
            if literal.len() > len - out.len() {
                return None;
            }
            out.extend_from_slice(literal);
            rest = tail;
        } else {
            let (distance, length, tail) = read_copy(first, tail)?;
            if distance > out.len() || length > len - out.len() {
                return None;
            }
            copy_back(&mut out, distance, length);
            rest = tail;
        }
    }
    (out.len() == len).then_some(out)
}

/// Distance and length of a copy, and what follows it.
fn read_copy(first: u8, tail: &[u8]) -> Option<(usize, usize, &[u8])> {
    let (length, tail) = match first >> 5 {
        7 => {
            let (&more, tail) = tail.split_first()?;
            (7 + usize::from(more), tail)
        }
        short => (usize::from(short), tail),
    };
    let (&low, tail) = tail.split_first()?;
    let distance = usize::from(u16::from_be_bytes([first & 31, low])) + 1;
    Some((distance, length + 2, tail))
}

/// Appends `length` bytes that begin `distance` bytes before the end, which may run into themselves.
fn copy_back(out: &mut Vec<u8>, distance: usize, length: usize) {
    let start = out.len() - distance;
    let mut left = length;
    // What lies from `start` on is a whole number of periods until the last round, so each round may double
    // it.
    while left > 0 {
        let piece = left.min(out.len() - start);
        out.extend_from_within(start..start + piece);
        left -= piece;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Strings as Redis 8.0.6 compressed them in DUMP payloads.
    #[test]
    fn what_redis_compressed_expands() {
        assert_eq!(decompress(b"\x01aa\xe0\x33\x00\x01aa", 64).unwrap(), [b'a'; 64]);
        let packed = b"\x03abca@\x02\x00d`\x05 \x0b\xe0>\x08\x01bd";
        assert_eq!(decompress(packed, 90).unwrap(), b"abcabcabd".repeat(10));
        assert_eq!(decompress(b"", 0).unwrap(), b"");
    }

    #[test]
    fn what_is_no_lzf_is_refused() {
        let good = b"\x01aa\xe0\x33\x00\x01aa";
        for end in 0..good.len() {
            assert_eq!(decompress(&good[..end], 64), None, "{end}");
        }
        assert_eq!(decompress(b"\x00a\x20\x01", 4), None, "a copy from before the start");
        assert_eq!(decompress(b"\x00a\x20\x00", 4).unwrap(), b"aaaa");
        assert_eq!(decompress(b"\x00a\x20\x00", 3), None, "longer than claimed");
        assert_eq!(decompress(b"\x00a\x20\x00", 5), None, "shorter than claimed");
    }

    #[test]
    fn an_implausible_claim_is_refused_before_anything_is_reserved() {
        assert_eq!(decompress(&[0; 100], usize::MAX), None);
        assert_eq!(decompress(&[0; 100], 100 * EXPANSION_MAX + 1), None);
        let mut most = b"\x00a".to_vec();
        for _ in 0..1000 {
            most.extend_from_slice(&[0xff - 0x1f, 0xff, 0x00]);
        }
        assert_eq!(decompress(&most, 1 + 1000 * COPY_MAX).unwrap(), vec![b'a'; 1 + 1000 * COPY_MAX]);
    }

    fn round_trip(input: &[u8]) -> Option<usize> {
        let packed = compress(input)?;
        assert!(packed.len() + SAVING_MIN <= input.len());
        assert_eq!(decompress(&packed, input.len()).unwrap(), input);
        assert_eq!(decompress(&packed, input.len() + 1), None);
        assert_eq!(decompress(&packed, input.len() - 1), None);
        Some(packed.len())
    }

    /// Mixed by the finalizer of MurmurHash3.
    fn noise(index: u64) -> u8 {
        let mixed = (index ^ index << 33).wrapping_add(1).wrapping_mul(0xff51_afd7_ed55_8ccd);
        ((mixed ^ mixed >> 33).wrapping_mul(0xc4ce_b9fe_1a85_ec53) >> 40) as u8
    }

    #[test]
    fn repetitions_shrink_and_noise_does_not() {
        assert_eq!(round_trip(&[b'a'; 64]), Some(2 + 3), "a literal and one long copy");
        for length in [20, 21, 255, 256, 257, 8192, 8193, 100_000] {
            let text: Vec<u8> = b"the quick brown fox ".iter().copied().cycle().take(length).collect();
            assert!(length < 30 || round_trip(&text).unwrap() < 24 + length / 40, "{length}");
        }
        let noise: Vec<u8> = (0..100_000_u64).map(noise).collect();
        assert_eq!(round_trip(&noise), None);
    }

    #[test]
    fn a_match_may_lie_as_far_back_as_the_format_reaches() {
        for distance in [DISTANCE_MAX - 1, DISTANCE_MAX, DISTANCE_MAX + 1] {
            let mut text = b"0123456789abcdefghijklmnopqrstuvwxyz".to_vec();
            text.resize(distance, 0);
            text.extend_from_within(..36);
            let packed = compress(&text).unwrap();
            assert_eq!(decompress(&packed, text.len()).unwrap(), text);
            // Zeros take three bytes for 264, either alphabet 38 as a literal.
            assert_eq!(
                packed.len() < 38 + 38 + 3 * (distance / COPY_MAX),
                distance <= DISTANCE_MAX,
                "{distance}"
            );
        }
    }

    #[test]
    fn output_is_appended_or_left_alone() {
        let mut out = b"before".to_vec();
        assert!(!compress_into(b"0123456789abcdef", &mut out));
        assert_eq!(out, b"before");
        assert!(compress_into(&[b'a'; 64], &mut out));
        assert_eq!(
            out.strip_prefix(b"before").and_then(|packed| decompress(packed, 64)).unwrap(),
            [b'a'; 64]
        );
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(600))]

        #[test]
        fn compression_is_undone(
            alphabet in 1_u8..=255,
            bytes in proptest::collection::vec(any::<u8>(), 0..1500),
            repeat in 1_usize..8,
        ) {
            let text: Vec<u8> = bytes.iter().map(|b| b % alphabet).collect();
            round_trip(&text.repeat(repeat));
        }

        #[test]
        fn hostile_bytes_are_refused_or_expand_as_claimed(
            bytes in proptest::collection::vec(any::<u8>(), 0..300),
            len in 0_usize..3000,
        ) {
            if let Some(out) = decompress(&bytes, len) {
                prop_assert_eq!(out.len(), len);
                prop_assert!(out.capacity() <= bytes.len() * EXPANSION_MAX);
            }
        }

        #[test]
        fn edited_bytes_are_refused_or_expand_as_claimed(
            edits in proptest::collection::vec((any::<proptest::sample::Index>(), any::<u8>()), 1..4),
            cut in any::<proptest::sample::Index>(),
        ) {
            let text = b"abcabcabd, and now something else, abcabcabd".repeat(20);
            let mut packed = compress(&text).unwrap();
            for (at, value) in edits {
                let at = at.index(packed.len());
                packed[at] = value;
            }
            for input in [&packed[..], &packed[..cut.index(packed.len())]] {
                prop_assert!(decompress(input, text.len()).is_none_or(|out| out.len() == text.len()));
            }
        }
    }
}
