//! Bits and small integers inside byte strings: the arithmetic of the bitmap commands.
//!
//! Bit 0 is the *most significant* bit of byte 0, so a field that begins at a byte reads as big-endian. All
//! offsets and widths are in bits. Readers treat what lies past the end as zero; writers never grow the slice:
//! whoever calls them has made it long enough.
//!
//! The runs are taken eight bytes at a time through `u64::from_be_bytes`, which keeps the order of the bits.

/// Number of set bits.
pub fn popcount(bytes: &[u8]) -> u64 {
    let (blocks, tail) = bytes.as_chunks::<BLOCK_LEN>();
    let (words, tail) = tail.as_chunks::<8>();
    let ones = |word: &[u8; 8]| u64::from(u64::from_ne_bytes(*word).count_ones());
    popcount_blocks(blocks)
        + words.iter().map(ones).sum::<u64>()
        + tail.iter().map(|byte| u64::from(byte.count_ones())).sum::<u64>()
}

/// Four words side by side: the compiler keeps them in vector registers.
type Lanes = [u64; 4];

/// Bytes that one round of [`popcount_blocks`] takes: eight times [`Lanes`].
const BLOCK_LEN: usize = 256;

/// Counts without counting most words: full adders gather the bits of eight words per lane into binary digits
/// (ones, twos, fours), and only the eights are counted each round (Harley and Seal; Warren, "Hacker's
/// Delight", 5-1). Without this the plain x86-64 instruction set counts at half the speed.
fn popcount_blocks(blocks: &[[u8; BLOCK_LEN]]) -> u64 {
    let count = |lanes: Lanes| lanes.iter().map(|word| u64::from(word.count_ones())).sum::<u64>();
    let (mut ones, mut twos, mut fours, mut eights_count) =
        (Lanes::default(), Lanes::default(), Lanes::default(), 0);
    for block in blocks {
        let (words, _) = block.as_chunks::<8>();
        let lanes =
            |at: usize| -> Lanes { std::array::from_fn(|lane| u64::from_ne_bytes(words[at * 4 + lane])) };
        let (twos_a, sum) = add_bits(ones, lanes(0), lanes(1));
        let (twos_b, sum) = add_bits(sum, lanes(2), lanes(3));
        let (fours_a, twos_sum) = add_bits(twos, twos_a, twos_b);
        let (twos_a, sum) = add_bits(sum, lanes(4), lanes(5));
        let (twos_b, sum) = add_bits(sum, lanes(6), lanes(7));
        let (fours_b, twos_sum) = add_bits(twos_sum, twos_a, twos_b);
        let (eights, fours_sum) = add_bits(fours, fours_a, fours_b);
        (ones, twos, fours) = (sum, twos_sum, fours_sum);
        eights_count += count(eights);
    }
    8 * eights_count + 4 * count(fours) + 2 * count(twos) + count(ones)
}

/// Adds three bits in each place: the carries and the sums.
#[inline(always)]
fn add_bits(a: Lanes, b: Lanes, c: Lanes) -> (Lanes, Lanes) {
    let mut carry = Lanes::default();
    let mut sum = Lanes::default();
    for lane in 0..sum.len() {
        let half = a[lane] ^ b[lane];
        carry[lane] = (a[lane] & b[lane]) | (half & c[lane]);
        sum[lane] = half ^ c[lane];
    }
    (carry, sum)
}

/// Number of set bits from `first_bit` to `last_bit`, both included. An empty range holds none.
pub fn popcount_bits(bytes: &[u8], first_bit: u64, last_bit: u64) -> u64 {
    let Some(span) = Span::new(bytes, first_bit, last_bit) else { return 0 };
    let outside = u64::from((bytes[span.first] & !span.first_mask).count_ones())
        + u64::from((bytes[span.last] & !span.last_mask).count_ones());
    popcount(&bytes[span.first..=span.last]) - outside
}

/// The first position from `first_bit` to `last_bit`, both included, whose bit is `value`. Positions past the
/// end of `bytes` are not looked at, whatever `last_bit` says.
pub fn find_bit(bytes: &[u8], value: bool, first_bit: u64, last_bit: u64) -> Option<u64> {
    let span = Span::new(bytes, first_bit, last_bit)?;
    // Turned so that the wanted bit is always a one.
    let flip = if value { 0 } else { 0xff };
    if span.first == span.last {
        return first_one((bytes[span.first] ^ flip) & span.first_mask & span.last_mask, span.first);
    }
    first_one((bytes[span.first] ^ flip) & span.first_mask, span.first)
        .or_else(|| find_in_bytes(bytes, flip, span.first + 1, span.last))
        .or_else(|| first_one((bytes[span.last] ^ flip) & span.last_mask, span.last))
}

/// The first one in the whole bytes from `start` up to, not including, `end`, after turning them by `flip`.
fn find_in_bytes(bytes: &[u8], flip: u8, start: usize, end: usize) -> Option<u64> {
    let boring = [flip; 64];
    let (blocks, _) = bytes[start..end].as_chunks::<64>();
    let skipped = 64 * blocks.iter().take_while(|block| **block == boring).count();
    let rest = &bytes[start + skipped..end];
    let at = rest.iter().position(|&byte| byte != flip)?;
    first_one(rest[at] ^ flip, start + skipped + at)
}

/// The position of the first one in the byte at `index`.
fn first_one(byte: u8, index: usize) -> Option<u64> {
    (byte != 0).then(|| index as u64 * 8 + u64::from(byte.leading_zeros()))
}

/// A range of bits as a range of bytes and the bits that count in its outer two.
struct Span {
    first: usize,
    first_mask: u8,
    last: usize,
    last_mask: u8,
}

impl Span {
    /// The part of an inclusive range of bits that lies inside `bytes`, if any does.
    fn new(bytes: &[u8], first_bit: u64, last_bit: u64) -> Option<Self> {
        let last_bit = last_bit.min((bytes.len() as u64 * 8).checked_sub(1)?);
        (first_bit <= last_bit).then(|| Self {
            first: (first_bit / 8) as usize,
            first_mask: 0xff >> (first_bit % 8),
            last: (last_bit / 8) as usize,
            last_mask: 0xff << (7 - last_bit % 8),
        })
    }
}

/// The bit at `offset`; false past the end.
pub fn get_bit(bytes: &[u8], offset: u64) -> bool {
    let byte = usize::try_from(offset / 8).ok().and_then(|index| bytes.get(index));
    byte.is_some_and(|byte| byte & bit_mask(offset) != 0)
}

/// Sets the bit at `offset` and returns what it was.
///
/// # Panics
/// When the slice does not reach to `offset`.
pub fn set_bit(bytes: &mut [u8], offset: u64, value: bool) -> bool {
    let byte = &mut bytes[(offset / 8) as usize];
    let mask = bit_mask(offset);
    let old = *byte & mask != 0;
    *byte = if value { *byte | mask } else { *byte & !mask };
    old
}

fn bit_mask(offset: u64) -> u8 {
    0x80 >> (offset % 8)
}

/// How BITOP joins its sources; "the first" is the first source, "the others" all after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BitOp {
    /// Set in all.
    And,
    /// Set in any.
    Or,
    /// Set in an odd number of them.
    Xor,
    /// Clear in the first; the others are not read.
    Not,
    /// Set in the first and in none of the others.
    Diff,
    /// Set in some other and not in the first.
    Diff1,
    /// Set in the first and in some other.
    AndOr,
    /// Set in exactly one.
    One,
}

/// Joins the sources bit by bit. The result is as long as the longest source (for [`BitOp::Not`], as the
/// first); shorter ones count as filled up with zeros. No source gives an empty result.
pub fn combine(op: BitOp, sources: &[&[u8]]) -> Vec<u8> {
    let Some((&head, others)) = sources.split_first() else { return Vec::new() };
    if op == BitOp::Not {
        return head.iter().map(|byte| !byte).collect();
    }
    let len = sources.iter().map(|source| source.len()).max().unwrap_or(0);
    let mut result = Vec::with_capacity(len);
    match op {
        BitOp::Diff | BitOp::Diff1 | BitOp::AndOr => {
            // First the union of the others, then what the first source makes of it.
            result.resize(len, 0);
            others.iter().for_each(|other| or_into(&mut result, other));
            join_with_head(op, &mut result, head);
        }
        BitOp::One => {
            result.resize(len, 0);
            combine_one(&mut result, sources);
        }
        BitOp::And | BitOp::Or | BitOp::Xor | BitOp::Not => {
            result.extend_from_slice(head);
            result.resize(len, 0);
            others.iter().for_each(|other| fold_into(op, &mut result, other));
        }
    }
    result
}

// These loops are written over equal-length slices so that the compiler turns them into vector code.

fn fold_into(op: BitOp, result: &mut [u8], other: &[u8]) {
    match op {
        BitOp::And => {
            result.iter_mut().zip(other).for_each(|(byte, other)| *byte &= other);
            result[other.len()..].fill(0);
        }
        BitOp::Xor => result.iter_mut().zip(other).for_each(|(byte, other)| *byte ^= other),
        _ => or_into(result, other),
    }
}

fn or_into(result: &mut [u8], other: &[u8]) {
    result.iter_mut().zip(other).for_each(|(byte, other)| *byte |= other);
}

/// Turns the union of the other sources into the result; `head` may be shorter than it.
fn join_with_head(op: BitOp, union: &mut [u8], head: &[u8]) {
    let (shared, rest) = union.split_at_mut(head.len());
    let pairs = shared.iter_mut().zip(head);
    match op {
        BitOp::Diff => pairs.for_each(|(byte, head)| *byte = head & !*byte),
        BitOp::Diff1 => pairs.for_each(|(byte, head)| *byte &= !head),
        _ => pairs.for_each(|(byte, head)| *byte &= head),
    }
    // Past the first source's end it is all zeros: only what asks for its absence stays.
    if op != BitOp::Diff1 {
        rest.fill(0);
    }
}

fn combine_one(once: &mut [u8], sources: &[&[u8]]) {
    let mut twice = vec![0_u8; once.len()];
    for source in sources {
        for ((once, twice), byte) in once.iter_mut().zip(&mut twice).zip(*source) {
            *twice |= *once & byte;
            *once |= byte;
        }
    }
    once.iter_mut().zip(&twice).for_each(|(once, twice)| *once &= !twice);
}

/// The unsigned number in the field of `width` bits (1 to 64) at `bit_offset`; bits past the end are zero.
pub fn get_unsigned(bytes: &[u8], bit_offset: u64, width: u32) -> u64 {
    debug_assert!((1..=64).contains(&width));
    let Some(bytes) = usize::try_from(bit_offset / 8).ok().and_then(|start| bytes.get(start..)) else {
        return 0;
    };
    // A field of 64 bits touches nine bytes at most; they land at the top of 128 bits.
    let mut window = [0_u8; 16];
    let len = bytes.len().min(9);
    window[..len].copy_from_slice(&bytes[..len]);
    ((u128::from_be_bytes(window) << (bit_offset % 8)) >> (128 - width)) as u64
}

/// The signed (two's complement) number in the field of `width` bits (1 to 64) at `bit_offset`; bits past the
/// end are zero.
pub fn get_signed(bytes: &[u8], bit_offset: u64, width: u32) -> i64 {
    sign_extend(get_unsigned(bytes, bit_offset, width), width)
}

/// Writes the low `width` bits (1 to 64) of `value` into the field at `bit_offset`.
///
/// # Panics
/// When the slice does not hold the whole field.
pub fn set_field(bytes: &mut [u8], bit_offset: u64, width: u32, value: u64) {
    debug_assert!((1..=64).contains(&width));
    let (start, shift) = ((bit_offset / 8) as usize, (bit_offset % 8) as u32);
    let touched = &mut bytes[start..start + (shift + width).div_ceil(8) as usize];
    let mut window = [0_u8; 16];
    window[..touched.len()].copy_from_slice(touched);
    let below = 128 - width - shift;
    let mask = u128::from(value_mask(width)) << below;
    let new = (u128::from_be_bytes(window) & !mask) | ((u128::from(value) << below) & mask);
    touched.copy_from_slice(&new.to_be_bytes()[..touched.len()]);
}

/// The largest unsigned number of `width` bits.
fn value_mask(width: u32) -> u64 {
    u64::MAX >> (64 - width)
}

/// Reads the low `width` bits as a signed number.
fn sign_extend(value: u64, width: u32) -> i64 {
    ((value << (64 - width)) as i64) >> (64 - width)
}

/// What BITFIELD does with a result that its field cannot hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overflow {
    /// Keep the low bits.
    Wrap,
    /// Stop at the nearest end of the range.
    Sat,
    /// Do nothing; the answer is null.
    Fail,
}

/// `value + incr` in a signed field of `width` bits (1 to 64); `None` when it does not fit and `mode` is
/// [`Overflow::Fail`]. `value` is one that the field can hold.
pub fn add_signed(value: i64, incr: i64, width: u32, mode: Overflow) -> Option<i64> {
    let (max, sum) = ((value_mask(width) >> 1) as i64, i128::from(value) + i128::from(incr));
    match mode {
        _ if (i128::from(-max - 1)..=i128::from(max)).contains(&sum) => Some(sum as i64),
        Overflow::Wrap => Some(sign_extend(sum as u64, width)),
        Overflow::Sat => Some(if sum > 0 { max } else { -max - 1 }),
        Overflow::Fail => None,
    }
}

/// `value + incr` in an unsigned field of `width` bits (1 to 64); `None` when it does not fit and `mode` is
/// [`Overflow::Fail`]. `value` is one that the field can hold.
pub fn add_unsigned(value: u64, incr: i64, width: u32, mode: Overflow) -> Option<u64> {
    let (max, sum) = (value_mask(width), i128::from(value) + i128::from(incr));
    match mode {
        _ if (0..=i128::from(max)).contains(&sum) => Some(sum as u64),
        Overflow::Wrap => Some(sum as u64 & max),
        Overflow::Sat => Some(if sum > 0 { max } else { 0 }),
        Overflow::Fail => None,
    }
}

/// The number that SET stores into a signed field of `width` bits (1 to 64); `None` when it does not fit and
/// `mode` is [`Overflow::Fail`].
///
/// Saturation takes a far too small number for a too large one when its distance from the field's maximum
/// passes 63 bits. Redis computes that distance in a signed 64-bit number and answers so; clients get the same.
pub fn fit_signed(value: i64, width: u32, mode: Overflow) -> Option<i64> {
    let max = (value_mask(width) >> 1) as i64;
    match mode {
        _ if (-max - 1..=max).contains(&value) => Some(value),
        Overflow::Wrap => Some(sign_extend(value as u64, width)),
        Overflow::Sat if value > max || max.checked_sub(value).is_none() => Some(max),
        Overflow::Sat => Some(-max - 1),
        Overflow::Fail => None,
    }
}

/// The number that SET stores into an unsigned field of `width` bits (1 to 64); `None` when it does not fit and
/// `mode` is [`Overflow::Fail`]. A negative `value` counts as the huge number with the same bits, so it
/// saturates to the maximum.
pub fn fit_unsigned(value: i64, width: u32, mode: Overflow) -> Option<u64> {
    let (max, value) = (value_mask(width), value as u64);
    match mode {
        _ if value <= max => Some(value),
        Overflow::Wrap => Some(value & max),
        Overflow::Sat => Some(max),
        Overflow::Fail => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn bytes() -> impl Strategy<Value = Vec<u8>> {
        // Long runs of equal bytes, so that the searches meet their fast paths.
        proptest::collection::vec(
            (proptest::sample::select(&b"\x00\xff\x00\xff\x10\xef"[..]), 1_usize..90),
            0..8,
        )
        .prop_map(|runs| runs.into_iter().flat_map(|(byte, len)| vec![byte; len]).collect())
    }

    fn any_op() -> impl Strategy<Value = BitOp> {
        use BitOp::*;
        proptest::sample::select(&[And, Or, Xor, Not, Diff, Diff1, AndOr, One][..])
    }

    fn any_mode() -> impl Strategy<Value = Overflow> {
        proptest::sample::select(&[Overflow::Wrap, Overflow::Sat, Overflow::Fail][..])
    }

    /// What one column of bits gives.
    fn model_bit(op: BitOp, column: &[bool]) -> bool {
        let (head, others) = (column[0], &column[1..]);
        let any_other = others.contains(&true);
        match op {
            BitOp::And => column.iter().all(|&bit| bit),
            BitOp::Or => head || any_other,
            BitOp::Xor => column.iter().filter(|&&bit| bit).count() % 2 == 1,
            BitOp::Not => !head,
            BitOp::Diff => head && !any_other,
            BitOp::Diff1 => !head && any_other,
            BitOp::AndOr => head && any_other,
            BitOp::One => column.iter().filter(|&&bit| bit).count() == 1,
        }
    }

    #[test]
    fn bit_zero_is_the_most_significant() {
        let mut bytes = [0_u8; 2];
        assert!(!set_bit(&mut bytes, 0, true));
        assert!(!set_bit(&mut bytes, 15, true));
        assert_eq!(bytes, [0x80, 0x01]);
        assert!(set_bit(&mut bytes, 0, false));
        assert!(get_bit(&bytes, 15) && !get_bit(&bytes, 0));
        assert!(!get_bit(&bytes, 16) && !get_bit(&bytes, u64::MAX));
    }

    #[test]
    fn counts() {
        assert_eq!(popcount(b"foobar"), 26);
        assert_eq!(popcount(&[0xff; 1001]), 8008);
        assert_eq!(popcount_bits(b"foobar", 5, 30), 17);
        assert_eq!(popcount_bits(b"foobar", 8, 15), 6);
        assert_eq!(popcount_bits(b"foobar", 3, 2), 0);
        assert_eq!(popcount_bits(b"foobar", 0, u64::MAX), 26);
        assert_eq!(popcount_bits(b"", 0, u64::MAX), 0);
        assert_eq!(popcount_bits(b"\xff", 2, 4), 3);
    }

    #[test]
    fn searches() {
        assert_eq!(find_bit(b"\xff\xf0\x00", false, 0, 23), Some(12));
        assert_eq!(find_bit(b"\x00\xff\xf0", true, 0, 23), Some(8));
        assert_eq!(find_bit(b"\x00\xff\xf0", true, 16, 23), Some(16));
        assert_eq!(find_bit(b"\xff\xff", false, 0, u64::MAX), None);
        assert_eq!(find_bit(b"\x00\x01", true, 0, 14), None);
        assert_eq!(find_bit(b"\x10", true, 4, 7), None);
        assert_eq!(find_bit(b"\x10", true, 2, 3), Some(3));
        assert_eq!(find_bit(b"", true, 0, 7), None);
    }

    #[test]
    fn combinations_of_unequal_lengths() {
        let sources: [&[u8]; 3] = [b"\xf0\x0f", b"\xcc", b"\xaa\xaa\xaa"];
        assert_eq!(combine(BitOp::And, &sources), [0x80, 0, 0]);
        assert_eq!(combine(BitOp::Or, &sources), [0xfe, 0xaf, 0xaa]);
        assert_eq!(combine(BitOp::Xor, &sources), [0x96, 0xa5, 0xaa]);
        assert_eq!(combine(BitOp::Not, &sources[..1]), [0x0f, 0xf0]);
        assert_eq!(combine(BitOp::Diff, &sources), [0x10, 0x05, 0]);
        assert_eq!(combine(BitOp::Diff1, &sources), [0x0e, 0xa0, 0xaa]);
        assert_eq!(combine(BitOp::AndOr, &sources), [0xe0, 0x0a, 0]);
        assert_eq!(combine(BitOp::One, &sources), [0x16, 0xa5, 0xaa]);
        assert_eq!(combine(BitOp::Or, &[]), Vec::<u8>::new());
    }

    #[test]
    fn fields() {
        let mut bytes = [0_u8; 2];
        set_field(&mut bytes, 7, 5, 23);
        assert_eq!(bytes, [0x01, 0x70]);
        assert_eq!(get_unsigned(&bytes, 7, 5), 23);
        assert_eq!(get_signed(&bytes, 7, 5), -9);
        assert_eq!(get_unsigned(&[0xff], 4, 8), 0xf0, "zeros follow the end");
        assert_eq!(get_unsigned(&[0xff], 8, 8), 0);
        assert_eq!(get_unsigned(&[0xff], u64::MAX, 64), 0);
        assert_eq!(get_signed(&[0xff; 9], 3, 64), -1);
    }

    /// Replies of a Redis 8.0.6 server, its odd saturation of very small numbers included.
    #[test]
    fn overflow_as_in_redis() {
        use Overflow::*;
        assert_eq!(fit_signed(i64::MIN, 8, Sat), Some(127));
        assert_eq!(fit_signed(i64::MIN + 127, 8, Sat), Some(127));
        assert_eq!(fit_signed(i64::MIN + 128, 8, Sat), Some(-128));
        assert_eq!(fit_signed(-129, 8, Sat), Some(-128));
        assert_eq!(fit_signed(i64::MIN, 64, Fail), Some(i64::MIN));
        assert_eq!(fit_signed(200, 8, Wrap), Some(-56));
        assert_eq!(fit_unsigned(-1, 8, Sat), Some(255));
        assert_eq!(fit_unsigned(-1, 8, Wrap), Some(255));
        assert_eq!(fit_unsigned(256, 8, Fail), None);
        assert_eq!(add_unsigned(255, -300, 8, Sat), Some(0));
        assert_eq!(add_unsigned(0, 300, 8, Sat), Some(255));
        assert_eq!(add_unsigned(255, 1, 8, Wrap), Some(0));
        assert_eq!(add_unsigned(0, -1, 63, Wrap), Some((1 << 63) - 1));
        assert_eq!(add_signed(-128, i64::MAX, 8, Sat), Some(127));
        assert_eq!(add_signed(127, 1, 8, Wrap), Some(-128));
        assert_eq!(add_signed(i64::MAX, 1, 64, Wrap), Some(i64::MIN));
        assert_eq!(add_signed(i64::MIN, -1, 64, Sat), Some(i64::MIN));
        assert_eq!(add_signed(i64::MIN, -1, 64, Fail), None);
        assert_eq!(add_signed(0, -1, 1, Fail), Some(-1));
        assert_eq!(add_signed(0, 1, 1, Wrap), Some(-1));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1500))]

        #[test]
        fn ranges_agree_with_single_bits(bytes in bytes(), first in 0_u64..900, len in 0_u64..900, value: bool) {
            let last = first + len;
            let positions = || (first..=last.min(10_000)).filter(|&at| at < bytes.len() as u64 * 8);
            prop_assert_eq!(
                popcount_bits(&bytes, first, last),
                positions().filter(|&at| get_bit(&bytes, at)).count() as u64
            );
            prop_assert_eq!(
                find_bit(&bytes, value, first, last),
                positions().find(|&at| get_bit(&bytes, at) == value)
            );
        }

        #[test]
        fn counts_agree_with_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..1500)) {
            prop_assert_eq!(popcount(&bytes), bytes.iter().map(|byte| u64::from(byte.count_ones())).sum::<u64>());
        }

        #[test]
        fn combine_agrees_with_single_bits(op in any_op(), sources in proptest::collection::vec(any::<Vec<u8>>(), 1..5)) {
            let count = if op == BitOp::Not { 1 } else { sources.len() };
            let sources: Vec<&[u8]> = sources[..count].iter().map(Vec::as_slice).collect();
            let result = combine(op, &sources);
            prop_assert_eq!(result.len(), sources.iter().map(|source| source.len()).max().unwrap());
            for at in 0..result.len() as u64 * 8 {
                let column: Vec<bool> = sources.iter().map(|source| get_bit(source, at)).collect();
                prop_assert_eq!(get_bit(&result, at), model_bit(op, &column));
            }
        }

        #[test]
        fn fields_agree_with_single_bits(
            before in proptest::collection::vec(any::<u8>(), 20), offset in 0_u64..90, width in 1_u32..=64, value: u64,
        ) {
            let mut after = before.clone();
            set_field(&mut after, offset, width, value);
            for at in 0..160 {
                let inside = (offset..offset + u64::from(width)).contains(&at);
                let from_value = || value >> (offset + u64::from(width) - 1 - at) & 1 == 1;
                prop_assert_eq!(get_bit(&after, at), if inside { from_value() } else { get_bit(&before, at) });
            }
            prop_assert_eq!(get_unsigned(&after, offset, width), value & value_mask(width));
        }

        #[test]
        fn sums_fit_their_field(value: i64, incr: i64, width in 1_u32..=64, mode in any_mode()) {
            let value = sign_extend(value as u64, width);
            let fits = |number: i128| number == i128::from(sign_extend(number as u64, width));
            let sum = i128::from(value) + i128::from(incr);
            match add_signed(value, incr, width, mode) {
                None => prop_assert!(mode == Overflow::Fail && !fits(sum)),
                Some(got) => {
                    prop_assert!(fits(got.into()));
                    prop_assert!(!fits(sum) || i128::from(got) == sum);
                    prop_assert!(mode != Overflow::Wrap || got == sign_extend(sum as u64, width));
                }
            }
        }
    }
}
