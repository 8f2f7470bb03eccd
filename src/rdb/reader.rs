//! Reads the scalars of the snapshot format from a slice of hostile bytes.
//!
//! Invariants: the position never passes the end; nothing is reserved before the input was found to back the
//! claim (a raw string is borrowed, a compressed one is bounded by [`lzf::EXPANSION_MAX`] times its bytes,
//! and counts come from [`Reader::count`], which compares them with the bytes that are left). After a refusal
//! the position is unspecified; a caller gives up.
use crate::base::num;
use crate::ds::lzf;
use std::borrow::Cow;
use std::fmt;

/// Why bytes were refused: they are not what the format allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Corrupt {
    /// Where the refused item begins, in bytes from the start of the slice that was read.
    pub position: usize,
    /// What is wrong with it, for the log.
    pub reason: &'static str,
}

/// The [`Corrupt::reason`] of input that ends within an item: more of it might help.
pub const SHORT: &str = "the input ends early";

impl fmt::Display for Corrupt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at byte {}", self.reason, self.position)
    }
}

impl std::error::Error for Corrupt {}

/// A string as it was stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Text<'a> {
    /// Bytes, borrowed unless they were compressed.
    Bytes(Cow<'a, [u8]>),
    /// The decimal text of an integer of at most 32 bits.
    Integer(i64),
}

impl<'a> Text<'a> {
    /// The string's bytes.
    pub fn into_bytes(self) -> Cow<'a, [u8]> {
        match self {
            Text::Bytes(bytes) => bytes,
            Text::Integer(value) => {
                let mut digits = Vec::new();
                num::append_i64(&mut digits, value);
                Cow::Owned(digits)
            }
        }
    }
}

/// What the first byte of a length announces.
enum Prefix {
    Length(u64),
    /// A string in a special form, by its number.
    Form(u8),
}

/// A position in a slice.
#[derive(Clone, Debug)]
pub struct Reader<'a> {
    bytes: &'a [u8],
    position: usize,
}

impl<'a> Reader<'a> {
    /// Starts at the first byte.
    pub fn new(bytes: &'a [u8]) -> Self {
        Reader { bytes, position: 0 }
    }

    /// Bytes read.
    pub fn position(&self) -> usize {
        self.position
    }

    /// Bytes that are left.
    pub fn remaining(&self) -> usize {
        self.bytes.len() - self.position
    }

    /// The bytes that are left.
    pub fn rest(&self) -> &'a [u8] {
        &self.bytes[self.position..]
    }

    /// Whether all was read.
    pub fn is_at_end(&self) -> bool {
        self.remaining() == 0
    }

    /// A refusal of what begins here, for callers that find a value's content wrong.
    pub fn refuse(&self, reason: &'static str) -> Corrupt {
        Corrupt { position: self.position, reason }
    }

    /// The next `length` bytes.
    pub fn bytes(&mut self, length: usize) -> Result<&'a [u8], Corrupt> {
        let bytes = self.rest().get(..length).ok_or(self.refuse(SHORT))?;
        self.position += length;
        Ok(bytes)
    }

    /// The next `N` bytes.
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], Corrupt> {
        let bytes = *self.rest().first_chunk().ok_or(self.refuse(SHORT))?;
        self.position += N;
        Ok(bytes)
    }

    /// A byte: a value's type, an opcode.
    pub fn u8(&mut self) -> Result<u8, Corrupt> {
        self.array().map(|[byte]| byte)
    }

    /// Four bytes, little endian.
    pub fn u32_le(&mut self) -> Result<u32, Corrupt> {
        self.array().map(u32::from_le_bytes)
    }

    /// Eight bytes, little endian.
    pub fn u64_le(&mut self) -> Result<u64, Corrupt> {
        self.array().map(u64::from_le_bytes)
    }

    /// A time in milliseconds since 1970. (Before version 9 it was in the writer's byte order; a big endian
    /// writer of that age is not supported.)
    pub fn time_ms(&mut self) -> Result<i64, Corrupt> {
        self.array().map(i64::from_le_bytes)
    }

    /// A time in seconds since 1970, as old snapshots have it.
    pub fn time_s(&mut self) -> Result<i32, Corrupt> {
        self.array().map(i32::from_le_bytes)
    }

    fn prefix(&mut self) -> Result<Prefix, Corrupt> {
        let start = self.position;
        let first = self.u8()?;
        Ok(match (first >> 6, first & 63) {
            (0, length) => Prefix::Length(u64::from(length)),
            (1, high) => Prefix::Length(u64::from(u16::from_be_bytes([high, self.u8()?]))),
            (2, 0) => Prefix::Length(u64::from(u32::from_be_bytes(self.array()?))),
            (2, 1) => Prefix::Length(u64::from_be_bytes(self.array()?)),
            (3, form) => Prefix::Form(form),
            _ => return Err(Corrupt { position: start, reason: "a length of an unknown width" }),
        })
    }

    /// A number in the form of a length, of any size: half an ID of a stream, a counter. What it counts is
    /// not checked against the input: for that take [`Self::count`].
    pub fn length(&mut self) -> Result<u64, Corrupt> {
        let start = self.position;
        match self.prefix()? {
            Prefix::Length(length) => Ok(length),
            Prefix::Form(_) => {
                Err(Corrupt { position: start, reason: "a string's form in the place of a length" })
            }
        }
    }

    /// A number of elements that follow and take `bytes_min_each` bytes at least (0 counts as 1). A count
    /// that the rest of the input cannot hold is refused, so a caller may reserve room for it.
    pub fn count(&mut self, bytes_min_each: usize) -> Result<usize, Corrupt> {
        let start = self.position;
        let count = self.length()?;
        let possible = self.remaining() / bytes_min_each.max(1);
        usize::try_from(count)
            .ok()
            .filter(|&count| count <= possible)
            .ok_or(Corrupt { position: start, reason: "a count of more elements than there are bytes for" })
    }

    /// A string, as bytes.
    pub fn string(&mut self) -> Result<Cow<'a, [u8]>, Corrupt> {
        self.text().map(Text::into_bytes)
    }

    /// A string, an integer left as one.
    pub fn text(&mut self) -> Result<Text<'a>, Corrupt> {
        let start = self.position;
        Ok(match self.prefix()? {
            Prefix::Length(length) => Text::Bytes(Cow::Borrowed(self.claimed(length)?)),
            Prefix::Form(0) => Text::Integer(i64::from(i8::from_le_bytes(self.array()?))),
            Prefix::Form(1) => Text::Integer(i64::from(i16::from_le_bytes(self.array()?))),
            Prefix::Form(2) => Text::Integer(i64::from(i32::from_le_bytes(self.array()?))),
            Prefix::Form(3) => Text::Bytes(Cow::Owned(self.compressed(start)?)),
            Prefix::Form(_) => {
                return Err(Corrupt { position: start, reason: "a string of an unknown form" });
            }
        })
    }

    /// Passes over a string.
    pub fn skip_string(&mut self) -> Result<(), Corrupt> {
        let start = self.position;
        let bytes = match self.prefix()? {
            Prefix::Length(length) => length,
            Prefix::Form(form @ 0..=2) => 1 << form,
            Prefix::Form(3) => {
                let packed = self.length()?;
                self.length()?;
                packed
            }
            Prefix::Form(_) => {
                return Err(Corrupt { position: start, reason: "a string of an unknown form" });
            }
        };
        self.claimed(bytes).map(|_| ())
    }

    /// As many bytes as the input says.
    fn claimed(&mut self, length: u64) -> Result<&'a [u8], Corrupt> {
        self.bytes(usize::try_from(length).map_err(|_| self.refuse(SHORT))?)
    }

    /// A compressed string behind its prefix, which was at `start`: both lengths, then the bytes.
    fn compressed(&mut self, start: usize) -> Result<Vec<u8>, Corrupt> {
        let (packed, length) = (self.length()?, self.length()?);
        let packed = self.claimed(packed)?;
        usize::try_from(length)
            .ok()
            .and_then(|length| lzf::decompress(packed, length))
            .ok_or(Corrupt { position: start, reason: "a string that does not decompress to its length" })
    }

    /// A double as eight bytes, little endian. It may be NaN.
    pub fn double(&mut self) -> Result<f64, Corrupt> {
        self.array().map(f64::from_le_bytes)
    }

    /// A double as text behind a byte with its length, or one of three bytes for what has no digits. It may
    /// be NaN. The text must be a number as a whole (Redis stops at the first byte that is none, which no
    /// writer used).
    pub fn double_text(&mut self) -> Result<f64, Corrupt> {
        let start = self.position;
        match self.u8()? {
            255 => Ok(f64::NEG_INFINITY),
            254 => Ok(f64::INFINITY),
            253 => Ok(f64::NAN),
            length => num::parse_f64(self.bytes(usize::from(length))?)
                .ok_or(Corrupt { position: start, reason: "a number that is none" }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rdb::Writer;
    use proptest::prelude::*;

    fn corrupt<T>(position: usize, reason: &'static str) -> Result<T, Corrupt> {
        Err(Corrupt { position, reason })
    }

    #[test]
    fn lengths_have_four_widths() {
        for (bytes, length) in [
            (&b"\x00"[..], 0),
            (b"\x3f", 63),
            (b"\x40\x40", 64),
            (b"\x7f\xff", 16383),
            (b"\x80\x00\x00\x40\x00", 16384),
            (b"\x80\x00\x00\x00\x05", 5),
            (b"\x81\x00\x00\x00\x01\x00\x00\x00\x00", 1 << 32),
            (b"\x81\xff\xff\xff\xff\xff\xff\xff\xff", u64::MAX),
        ] {
            let mut reader = Reader::new(bytes);
            assert_eq!(reader.length(), Ok(length));
            assert!(reader.is_at_end());
            for end in 0..bytes.len() {
                let refusal = Reader::new(&bytes[..end]).length().unwrap_err();
                assert_eq!(refusal.reason, SHORT, "{bytes:?} {end}");
            }
        }
        assert_eq!(Reader::new(b"\x82\0\0\0\0\0\0\0\0").length(), corrupt(0, "a length of an unknown width"));
        assert_eq!(Reader::new(b"\xc0\x01").length(), corrupt(0, "a string's form in the place of a length"));
    }

    #[test]
    fn a_count_must_be_backed_by_bytes() {
        let bytes = b"\x03abcdef";
        assert_eq!(Reader::new(bytes).count(2), Ok(3));
        assert_eq!(Reader::new(bytes).count(1), Ok(3));
        assert_eq!(Reader::new(bytes).count(0), Ok(3));
        let reason = "a count of more elements than there are bytes for";
        assert_eq!(Reader::new(bytes).count(3), corrupt(0, reason));
        assert_eq!(Reader::new(b"\x07abcdef").count(0), corrupt(0, reason));
        let mut reader = Reader::new(b"\x00\x81\xff\xff\xff\xff\xff\xff\xff\xff");
        assert_eq!(reader.count(usize::MAX), Ok(0));
        assert_eq!(reader.count(1), corrupt(1, reason));
    }

    /// Strings out of DUMP payloads of Redis 8.0.6.
    #[test]
    fn redis_s_strings_are_read() {
        for (bytes, text) in [
            (&b"\xc0\xfb"[..], &b"-5"[..]),
            (b"\xc1\xd2\x04", b"1234"),
            (b"\xc2\x90\xee\xfe\xff", b"-70000"),
            (b"\x0a5000000000", b"5000000000"),
            (b"\x05hello", b"hello"),
            (b"\x00", b""),
            (b"\xc3\x09\x40\x40\x01aa\xe0\x33\x00\x01aa", &[b'a'; 64]),
        ] {
            let mut reader = Reader::new(bytes);
            assert_eq!(reader.string().as_deref(), Ok(text));
            assert!(reader.is_at_end());
            assert!((0..bytes.len()).all(|end| Reader::new(&bytes[..end]).string().is_err()), "{bytes:?}");
        }
        assert_eq!(Reader::new(b"\xc0\xfb").text(), Ok(Text::Integer(-5)));
        assert!(matches!(Reader::new(b"\x05hello").string(), Ok(Cow::Borrowed(_))));
    }

    #[test]
    fn strings_with_false_claims_are_refused() {
        let long = b"\x81\x7f\xff\xff\xff\xff\xff\xff\xffabc";
        assert_eq!(Reader::new(long).string(), corrupt(9, SHORT));
        assert_eq!(Reader::new(b"\xc4\x00").string(), corrupt(0, "a string of an unknown form"));
        let reason = "a string that does not decompress to its length";
        // Two packed bytes that claim an exbibyte.
        let bomb = b"\xc3\x02\x81\x10\x00\x00\x00\x00\x00\x00\x00\x00a";
        assert_eq!(Reader::new(bomb).string(), corrupt(0, reason));
        assert_eq!(Reader::new(b"\x00\xc3\x02\x02\x00a").bytes(1), Ok(&b"\0"[..]));
        let mut reader = Reader::new(b"\x00\xc3\x02\x02\x00a");
        assert_eq!(reader.string().as_deref(), Ok(&b""[..]));
        assert_eq!(reader.string(), corrupt(1, reason));
    }

    /// Among them scores of a snapshot that Redis 2.4 wrote, and what Redis 8.0.6 reads and refuses.
    #[test]
    fn doubles_in_text() {
        for (bytes, value) in [
            (&b"\x0220"[..], 20.0),
            (b"\x0a5000000000", 5e9),
            (b"\x16-1.5000000000000000001", -1.5),
            (b"\x040x10", 16.0),
            (b"\xff", f64::NEG_INFINITY),
            (b"\xfe", f64::INFINITY),
        ] {
            assert_eq!(Reader::new(bytes).double_text(), Ok(value));
        }
        assert!(Reader::new(b"\xfd").double_text().unwrap().is_nan());
        for bytes in [&b"\x00"[..], b"\x03nan", b"\x01x"] {
            assert_eq!(Reader::new(bytes).double_text(), corrupt(0, "a number that is none"));
        }
        assert_eq!(Reader::new(b"\x0520").double_text(), corrupt(1, SHORT));
        assert_eq!(Reader::new(b"").double_text(), corrupt(0, SHORT));
    }

    #[test]
    fn fixed_widths() {
        let mut reader = Reader::new(b"\x01\x02\x00\x00\x00\x00\x00\x00\x00\x00\x00\xf8\xbf\xff\xff\xff\xff");
        assert_eq!(reader.u8(), Ok(1));
        assert_eq!(reader.u32_le(), Ok(2));
        assert_eq!(reader.double(), Ok(-1.5));
        assert_eq!(reader.remaining(), 4);
        assert_eq!(reader.clone().time_s(), Ok(-1));
        assert_eq!(reader.u64_le(), corrupt(13, SHORT));
        assert_eq!(reader.rest(), [255; 4]);
        assert_eq!(Reader::new(b"\x00\xd8\xc3\x2c\xbb\x03\x00\x00").time_ms(), Ok(4_102_444_800_000));
        assert_eq!(corrupt::<()>(7, SHORT).unwrap_err().to_string(), "the input ends early at byte 7");
    }

    /// Reads everything in turn until something is refused; the sum of what was handed out and was not
    /// borrowed.
    fn drain(bytes: &[u8], order: &[u8]) -> usize {
        let mut reader = Reader::new(bytes);
        let mut owned = 0;
        for what in order {
            let before = reader.position();
            let fine = match what % 7 {
                0 => reader.count(1).map(|n| assert!(n <= bytes.len())),
                1 => reader.double_text().map(drop),
                2 => reader.time_ms().map(drop),
                3 => reader.length().map(drop),
                _ => reader.string().map(|text| {
                    if let Cow::Owned(text) = text {
                        owned += text.capacity();
                    }
                }),
            };
            match fine {
                Ok(()) => assert!(reader.position() > before),
                Err(refusal) => {
                    assert!(refusal.position <= bytes.len());
                    break;
                }
            }
            assert!(reader.position() <= bytes.len());
        }
        owned
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1000))]

        #[test]
        fn hostile_bytes_cost_what_they_can_back(
            bytes in proptest::collection::vec(prop_oneof![any::<u8>(), 0xc0_u8..=0xc4, 0_u8..9], 0..300),
            order in proptest::collection::vec(any::<u8>(), 1..60),
        ) {
            // An integer of a byte needs room for its digits, which the allocator rounds up.
            prop_assert!(drain(&bytes, &order) <= bytes.len() * lzf::EXPANSION_MAX);
        }

        #[test]
        fn edited_and_cut_strings_cost_what_they_can_back(
            texts in proptest::collection::vec(proptest::collection::vec(0_u8..4, 0..120), 1..8),
            edits in proptest::collection::vec((any::<proptest::sample::Index>(), any::<u8>()), 0..4),
            cut in any::<proptest::sample::Index>(),
        ) {
            let mut writer = Writer::new(true);
            for text in &texts {
                writer.string(text);
            }
            let mut bytes = writer.into_bytes();
            for (at, value) in edits {
                let at = at.index(bytes.len());
                bytes[at] = value;
            }
            for bytes in [&bytes[..], &bytes[..cut.index(bytes.len())]] {
                prop_assert!(drain(bytes, &[6; 20]) <= bytes.len() * lzf::EXPANSION_MAX);
            }
        }
    }
}
