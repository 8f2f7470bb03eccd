//! The arguments of one command: a cursor over spans of the read buffer.
use smallvec::SmallVec;

use super::error::Error;
use super::parse::Span;
use crate::base::hash::KeyHash;
use crate::base::num;

/// A key with its hash, which is computed once per request.
#[derive(Clone, Copy, Debug)]
pub struct Key<'a> {
    /// The key.
    pub bytes: &'a [u8],
    /// Its hash.
    pub hash: KeyHash,
}

impl<'a> Key<'a> {
    /// Hashes `bytes`.
    pub fn new(bytes: &'a [u8]) -> Key<'a> {
        Key { bytes, hash: KeyHash::of(bytes) }
    }
}

/// A word of up to seven bytes as a number, the same for capitals and small letters; 0 for longer ones. The top byte is
/// the length. Bytes that are no letters fold too (`{` to `[` and the like), which no option has.
#[inline]
pub const fn option_word(bytes: &[u8]) -> u64 {
    if bytes.len() > 7 {
        return 0;
    }
    let (mut word, mut i) = ((bytes.len() as u64) << 56, 0);
    while i < bytes.len() {
        word |= ((bytes[i] & !0x20) as u64) << (8 * i);
        i += 1;
    }
    word
}

/// The cursor. Argument 0 is the command's name; the cursor starts behind it (behind the subcommand for those).
#[derive(Clone)]
pub struct Args<'a> {
    buf: &'a [u8],
    spans: &'a [Span],
    at: usize,
    /// Index and hash of the key that the plan already looked at.
    known: (u32, KeyHash),
}

impl<'a> Args<'a> {
    /// Arguments `spans` of `buf`. `known` is the hash of the argument with that index (index 0: none).
    #[inline]
    pub fn new(buf: &'a [u8], spans: &'a [Span], known: (u32, KeyHash)) -> Args<'a> {
        Args { buf, spans, at: 1, known }
    }

    /// Number of arguments, the name included.
    #[inline]
    pub fn count(&self) -> usize {
        self.spans.len()
    }

    /// How many are still to come.
    #[inline]
    pub fn left(&self) -> usize {
        self.spans.len() - self.at
    }

    /// Whether the cursor is at the end.
    #[inline]
    pub fn is_done(&self) -> bool {
        self.at >= self.spans.len()
    }

    /// Argument `index`; empty beyond the end.
    #[inline]
    pub fn get(&self, index: usize) -> &'a [u8] {
        self.spans.get(index).map_or(&[][..], |s| s.of(self.buf))
    }

    /// Moves the cursor to argument `index`.
    pub fn seek(&mut self, index: usize) {
        self.at = index.min(self.spans.len());
    }

    /// Index of the next argument.
    pub fn position(&self) -> usize {
        self.at
    }

    /// The next argument, if there is one.
    #[inline]
    pub fn take(&mut self) -> Option<&'a [u8]> {
        let span = self.spans.get(self.at)?;
        self.at += 1;
        Some(span.of(self.buf))
    }

    /// The next argument; a syntax error when there is none.
    #[inline]
    pub fn bytes(&mut self) -> Result<&'a [u8], Error> {
        self.take().ok_or(Error::Syntax)
    }

    /// The next argument as a key.
    #[inline]
    pub fn key(&mut self) -> Result<Key<'a>, Error> {
        let index = self.at as u32;
        let bytes = self.bytes()?;
        let hash = if self.known.0 == index { self.known.1 } else { KeyHash::of(bytes) };
        Ok(Key { bytes, hash })
    }

    /// The next argument as a 64-bit integer.
    #[inline]
    pub fn int(&mut self) -> Result<i64, Error> {
        num::parse_i64(self.bytes()?).ok_or(Error::NotInteger)
    }

    /// The next argument as a number of at least `min`, which is not negative; `refusal` is the text for any other.
    pub fn int_from(&mut self, min: i64, refusal: &'static str) -> Result<usize, Error> {
        match num::parse_i64(self.bytes()?) {
            Some(number) if number >= min => Ok(usize::try_from(number).unwrap_or(usize::MAX)),
            _ => Err(Error::err(refusal)),
        }
    }

    /// The next argument as an integer whose distance from zero is one too; that is any but the lowest.
    pub fn signed(&mut self) -> Result<i64, Error> {
        match self.int()? {
            i64::MIN => Err(Error::not_between(-i64::MAX, i64::MAX)),
            number => Ok(number),
        }
    }

    /// The next argument, when it equals `word` in any case; else the cursor stays.
    #[inline]
    pub fn keyword(&mut self, word: &str) -> bool {
        let same =
            self.spans.get(self.at).is_some_and(|s| s.of(self.buf).eq_ignore_ascii_case(word.as_bytes()));
        self.at += usize::from(same);
        same
    }

    /// The next argument as an [`option_word`], for a `match` over many options; the cursor stays. 0 when there is no
    /// argument or it is too long to be one.
    #[inline]
    pub fn option(&self) -> u64 {
        self.spans.get(self.at).map_or(0, |s| option_word(s.of(self.buf)))
    }

    /// Skips one argument.
    #[inline]
    pub fn skip(&mut self) {
        self.at += 1;
    }

    /// The arguments still to come.
    pub fn rest(&self) -> impl DoubleEndedIterator<Item = &'a [u8]> + ExactSizeIterator + Clone + use<'a> {
        let buf = self.buf;
        self.spans[self.at..].iter().map(move |s| s.of(buf))
    }

    /// The next `n` arguments as keys.
    pub fn keys(&mut self, n: usize) -> impl Iterator<Item = Key<'a>> + Clone + use<'a> {
        let first = self.at;
        self.at = (first + n).min(self.spans.len());
        let (buf, known) = (self.buf, self.known);
        self.spans[first..self.at].iter().enumerate().map(move |(i, s)| {
            let bytes = s.of(buf);
            let hash = if known.0 == (first + i) as u32 { known.1 } else { KeyHash::of(bytes) };
            Key { bytes, hash }
        })
    }

    /// The next arguments, up to sixteen, as keys, each hashed once.
    #[inline]
    pub fn some_keys(&mut self) -> SmallVec<[Key<'a>; 16]> {
        let n = self.left().min(16);
        self.keys(n).collect()
    }

    /// The raw parts, to take the command elsewhere.
    pub fn parts(&self) -> (&'a [u8], &'a [Span]) {
        (self.buf, self.spans)
    }
}
