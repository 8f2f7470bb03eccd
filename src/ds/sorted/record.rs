//! One member with its score as packed bytes, and walks over many of them lying back to back.
//!
//! ```text
//! [head u8][more of the length: 0, 1 or 4 bytes][score: 2, 4, 6 or 8 bytes][member]
//! head = score class (2 bits) | length code (6 bits)
//! ```
//! A score is the big end of its `f64`: low bytes that are zero are left out, so that whole numbers up to 31 take two
//! bytes, up to 2^21 four, up to 2^37 (times in seconds) six. The length code is the length up to 61; 62 says that
//! a byte with `length - 62` follows, 63 four bytes (little endian).
//!
//! Must stay true: bits are kept (`-0.0` comes back as `-0.0`); offsets given to [`read`] are starts of records.
use smallvec::SmallVec;

const SHORT_MAX: usize = 61;
const CODE_BYTE: usize = 62;
const CODE_WORD: usize = 63;
/// Longest member whose length takes one byte more.
const BYTE_MAX: usize = CODE_BYTE + 255;
/// Bytes of a leaf that are asked for at once; longer leaves hold a single record.
const FETCH_BYTES_MAX: usize = 1024;
/// The bytes of a score that each class keeps.
const MASKS: [u64; 4] = [!0 << 48, !0 << 32, !0 << 16, !0];

/// A record on its way into a leaf.
pub(super) type Encoded = SmallVec<[u8; 96]>;

/// A record where it lies. Its score is read when asked for: most walks want members only.
#[derive(Clone, Copy, Debug)]
pub(super) struct Record<'a> {
    bytes: &'a [u8],
    score_at: usize,
    class: usize,
    pub member: &'a [u8],
    /// Where the next record starts.
    pub end: usize,
}

impl Record<'_> {
    #[inline]
    pub(super) fn score(&self) -> f64 {
        let top = match self.bytes.get(self.score_at..self.score_at + 8) {
            Some(top) => u64::from_be_bytes(top.try_into().expect("eight bytes")),
            None => short_top(&self.bytes[self.score_at..]),
        };
        f64::from_bits(top & MASKS[self.class])
    }
}

/// A place in the order: records either precede it or do not, and all that do come first.
pub(super) trait Target {
    /// Whether records from a lower bound `score` on may precede the target; `None`: only a record can tell.
    fn passes_bound(&self, score: f64) -> Option<bool>;
    /// Whether a record precedes the target.
    fn passes(&self, score: f64, member: &[u8]) -> bool;
}

/// The bytes of a record.
pub(super) fn encode(score: f64, member: &[u8]) -> Encoded {
    let bits = score.to_bits();
    let class = 3 - (bits.trailing_zeros() / 16).min(3) as usize;
    let mut record = Encoded::new();
    let head = |code: usize| (class << 6 | code) as u8;
    match member.len() {
        len @ 0..=SHORT_MAX => record.push(head(len)),
        len @ CODE_BYTE..=BYTE_MAX => record.extend([head(CODE_BYTE), (len - CODE_BYTE) as u8]),
        len => {
            record.push(head(CODE_WORD));
            record.extend_from_slice(&u32::try_from(len).expect("a member stays below 4 GiB").to_le_bytes());
        }
    }
    record.extend_from_slice(&bits.to_be_bytes()[..2 * class + 2]);
    record.extend_from_slice(member);
    record
}

/// The record at `at`.
#[inline]
pub(super) fn read(bytes: &[u8], at: usize) -> Record<'_> {
    let head = usize::from(bytes[at]);
    let class = head >> 6;
    let (score_at, len) = match head & 63 {
        CODE_BYTE => (at + 2, CODE_BYTE + usize::from(bytes[at + 1])),
        CODE_WORD => (at + 5, long_length(&bytes[at + 1..at + 5])),
        len => (at + 1, len),
    };
    let member_at = score_at + 2 * class + 2;
    let end = member_at + len;
    Record { bytes, score_at, class, member: &bytes[member_at..end], end }
}

#[cold]
fn long_length(bytes: &[u8]) -> usize {
    u32::from_le_bytes(bytes.try_into().expect("four bytes")) as usize
}

/// The first bytes of a score at the end of a leaf.
#[cold]
fn short_top(bytes: &[u8]) -> u64 {
    let mut top = [0; 8];
    top[..bytes.len()].copy_from_slice(bytes);
    u64::from_be_bytes(top)
}

/// Asks for all cache lines of a leaf at once. A walk alone would wait for one after another, since each record's
/// place follows from the one before.
#[inline]
fn fetch(bytes: &[u8]) {
    std::hint::black_box(bytes.iter().take(FETCH_BYTES_MAX).step_by(64).fold(0, |all, byte| all | byte));
}

/// Offset of the first record that does not precede `target`, and how many do.
#[inline]
pub(super) fn seek(bytes: &[u8], target: &impl Target) -> (usize, usize) {
    fetch(bytes);
    // Lengths are quick to walk, comparisons are not, so records are marked out first and then halved.
    let mut starts = SmallVec::<[u16; MARKS]>::new();
    let mut at = 0;
    while at < bytes.len() && starts.len() < MARKS {
        starts.push(at as u16);
        at = read(bytes, at).end;
    }
    let passes = |at: usize| {
        let record = read(bytes, at);
        target.passes(record.score(), record.member)
    };
    let passed = starts.partition_point(|at| passes(usize::from(*at)));
    if let Some(at) = starts.get(passed) {
        return (usize::from(*at), passed);
    }
    // Behind the marks: the end, unless records are tiny.
    let mut passed = passed;
    while at < bytes.len() && passes(at) {
        (at, passed) = (read(bytes, at).end, passed + 1);
    }
    (at, passed)
}

/// Records of a leaf that are marked out before they are compared.
const MARKS: usize = 64;

/// Offset of the record after `count` others.
#[inline]
pub(super) fn skip(bytes: &[u8], from: usize, count: usize) -> usize {
    fetch(bytes);
    (0..count).fold(from, |at, _| read(bytes, at).end)
}

/// Records one after another, each with its offset.
pub(super) fn walk(bytes: &[u8]) -> impl Iterator<Item = (usize, Record<'_>)> {
    let mut at = 0;
    std::iter::from_fn(move || {
        (at < bytes.len()).then(|| {
            let (start, record) = (at, read(bytes, at));
            at = record.end;
            (start, record)
        })
    })
}

/// The record of `member`: how many come before it, its offset, itself.
#[inline]
pub(super) fn find<'a>(bytes: &'a [u8], member: &[u8]) -> Option<(usize, usize, Record<'a>)> {
    fetch(bytes);
    let mut all = walk(bytes).enumerate();
    all.find_map(|(before, (at, record))| same(record.member, member).then_some((before, at, record)))
}

/// Members often begin alike, so their ends are compared first.
#[inline]
fn same(a: &[u8], b: &[u8]) -> bool {
    a.len() == b.len() && a.last_chunk::<8>() == b.last_chunk::<8>() && a == b
}

/// Where to cut records that outgrew a leaf: the boundary whose larger side is the smallest.
pub(super) fn middle(bytes: &[u8]) -> usize {
    let larger = |at: usize| at.max(bytes.len() - at);
    let starts = walk(bytes).map(|(at, _)| at).skip(1);
    starts.min_by_key(|at| larger(*at)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn sizes() {
        let cases = [
            (0.0, 2),
            (-0.0, 2),
            (31.0, 2),
            (33.0, 4),
            (2_097_151.0, 4),
            (-2_097_151.0, 4),
            (2_097_153.0, 6),
        ];
        let more =
            [(1_764_530_000.0, 6), (0.1, 8), (f64::INFINITY, 2), (f64::MAX, 8), (f64::from_bits(1), 8)];
        for (score, bytes) in cases.into_iter().chain(more) {
            let record = encode(score, b"member");
            assert_eq!(record.len(), 1 + bytes + 6, "{score}");
            assert_eq!(read(&record, 0).score().to_bits(), score.to_bits());
        }
    }

    #[test]
    fn lengths() {
        for len in [0, 1, 61, 62, 63, 317, 318, 70_000] {
            let member = vec![7; len];
            let mut bytes = encode(1.5, &member);
            bytes.extend_from_slice(&encode(2.0, b"x"));
            let record = read(&bytes, 0);
            assert_eq!((record.score(), record.member), (1.5, &member[..]));
            assert_eq!(read(&bytes, record.end).member, b"x");
        }
    }

    #[test]
    fn the_middle_is_balanced() {
        let all = |lens: &[usize]| {
            lens.iter().flat_map(|len| encode(1.0, &vec![0; len - 3]).into_vec()).collect::<Vec<u8>>()
        };
        assert_eq!(middle(&all(&[30, 30, 30, 30])), 60);
        assert_eq!(middle(&all(&[10, 10, 60])), 20);
        assert_eq!(middle(&all(&[60, 10, 10])), 60);
        assert_eq!(middle(&all(&[10, 60])), 10);
        assert_eq!(middle(&all(&[60, 10])), 60);
    }

    proptest! {
        #[test]
        fn any_score_comes_back(bits in any::<u64>(), shift in 0u32..64) {
            let score = f64::from_bits(bits << shift);
            prop_assume!(!score.is_nan());
            let record = encode(score, b"m");
            prop_assert_eq!(read(&record, 0).score().to_bits(), score.to_bits());
        }
    }
}
