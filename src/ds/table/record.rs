//! One record of a packed table: a key, perhaps a value, perhaps a deadline, as bytes.
//!
//! ```text
//! [key code][value code][deadline u64 LE][key ...][value ...]
//! ```
//! The key code's top bit says that there is a deadline; tables of keys alone have no value code. A code is one byte
//! for short lengths, else an escape and the length as u16 or u32, little endian. Both codes lie in front, so that a
//! walk over records reads two neighbouring bytes and never waits for one length to find the next.
//!
//! Must stay true: whatever [`write`] makes, [`Shape::read`] measures to the byte.
use smallvec::SmallVec;

/// Bytes of a record that is being put together.
pub(super) type Scratch = SmallVec<[u8; 256]>;

/// What the records of a table have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// Keys alone: values are empty and take no byte.
    Keys,
    /// A key and a value each.
    KeysAndValues,
}

/// A record, borrowed from its table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    key: &'a [u8],
    value: &'a [u8],
    deadline_ms: Option<u64>,
}

impl<'a> Record<'a> {
    /// The key.
    #[inline]
    pub fn key(&self) -> &'a [u8] {
        self.key
    }

    /// The value; empty in a table of keys alone.
    #[inline]
    pub fn value(&self) -> &'a [u8] {
        self.value
    }

    /// When it is due, in milliseconds since the epoch.
    #[inline]
    pub fn deadline_ms(&self) -> Option<u64> {
        self.deadline_ms
    }
}

/// The bit of the key code that announces a deadline.
const DATED: u8 = 0x80;
const DEADLINE_BYTES: usize = 8;
/// The longest key whose code is one byte; the next two numbers are the escapes.
const KEY_LITERAL_MAX: u8 = 0x7D;
/// The same for values and for the number of records in a bucket.
pub(super) const LITERAL_MAX: u8 = 0xFD;

/// Appends the code of a length. `flags` go into the first byte.
#[inline]
pub(super) fn put_len(out: &mut impl Extend<u8>, len: usize, literal_max: u8, flags: u8) {
    if len <= usize::from(literal_max) {
        out.extend([len as u8 | flags]);
    } else if let Ok(short) = u16::try_from(len) {
        let [a, b] = short.to_le_bytes();
        out.extend([(literal_max + 1) | flags, a, b]);
    } else {
        // Keys and values are strings of clients, which stay below 4 GiB.
        let [a, b, c, d] = (len as u32).to_le_bytes();
        out.extend([(literal_max + 2) | flags, a, b, c, d]);
    }
}

/// The length whose code, stripped of flags, is `first` followed by the bytes at `at`, and where the code ends.
#[inline]
pub(super) fn read_len(bytes: &[u8], at: usize, first: u8, literal_max: u8) -> (usize, usize) {
    if first <= literal_max {
        (usize::from(first), at)
    } else {
        read_wide(bytes, at, first > literal_max + 1)
    }
}

#[cold]
fn read_wide(bytes: &[u8], at: usize, is_u32: bool) -> (usize, usize) {
    if is_u32 {
        (u32::from_le_bytes(array(bytes, at)) as usize, at + 4)
    } else {
        (usize::from(u16::from_le_bytes(array(bytes, at))), at + 2)
    }
}

#[inline]
fn array<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    let mut array = [0; N];
    array.copy_from_slice(&bytes[at..at + N]);
    array
}

/// Appends a record.
pub(super) fn write(out: &mut Scratch, layout: Layout, key: &[u8], value: &[u8], deadline_ms: Option<u64>) {
    put_len(out, key.len(), KEY_LITERAL_MAX, if deadline_ms.is_some() { DATED } else { 0 });
    if layout == Layout::KeysAndValues {
        put_len(out, value.len(), LITERAL_MAX, 0);
    }
    if let Some(ms) = deadline_ms {
        out.extend_from_slice(&ms.to_le_bytes());
    }
    out.extend_from_slice(key);
    if layout == Layout::KeysAndValues {
        out.extend_from_slice(value);
    }
}

/// Where the parts of a record lie in its bucket.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    /// Its first byte.
    pub at: usize,
    /// Where the key starts; a deadline lies in front of it.
    key_at: usize,
    key_len: usize,
    /// Bytes of the value.
    pub value_len: usize,
    dated: bool,
}

impl Shape {
    /// Measures the record at `at`.
    #[inline]
    pub fn read(bytes: &[u8], at: usize, layout: Layout) -> Shape {
        let head = bytes[at];
        let dated = head & DATED != 0;
        let (key_len, mut next) = read_len(bytes, at + 1, head & !DATED, KEY_LITERAL_MAX);
        let mut value_len = 0;
        if layout == Layout::KeysAndValues {
            (value_len, next) = read_len(bytes, next + 1, bytes[next], LITERAL_MAX);
        }
        let key_at = next + if dated { DEADLINE_BYTES } else { 0 };
        Shape { at, key_at, key_len, value_len, dated }
    }

    #[inline]
    fn value_at(&self) -> usize {
        self.key_at + self.key_len
    }

    /// Where the next record starts.
    #[inline]
    pub fn end(&self) -> usize {
        self.value_at() + self.value_len
    }

    /// Bytes of the record.
    #[inline]
    pub fn len(&self) -> usize {
        self.end() - self.at
    }

    /// The key.
    #[inline]
    pub fn key<'a>(&self, bytes: &'a [u8]) -> &'a [u8] {
        &bytes[self.key_at..self.value_at()]
    }

    /// The value, to overwrite it.
    pub fn value_mut<'a>(&self, bytes: &'a mut [u8]) -> &'a mut [u8] {
        &mut bytes[self.value_at()..self.end()]
    }

    /// The deadline.
    #[inline]
    pub fn deadline_ms(&self, bytes: &[u8]) -> Option<u64> {
        self.dated.then(|| u64::from_le_bytes(array(bytes, self.key_at - DEADLINE_BYTES)))
    }

    /// Where a deadline lies or would lie, how many bytes it takes now, and the first byte of the record when it has
    /// one or not: what a splice needs to put one in or take it out.
    pub fn deadline_part(&self, bytes: &[u8], dated: bool) -> (usize, usize, u8) {
        let taken = if self.dated { DEADLINE_BYTES } else { 0 };
        let head = bytes[self.at];
        (self.key_at - taken, taken, if dated { head | DATED } else { head & !DATED })
    }

    /// The whole record.
    #[inline]
    pub fn record<'a>(&self, bytes: &'a [u8]) -> Record<'a> {
        Record {
            key: self.key(bytes),
            value: &bytes[self.value_at()..self.end()],
            deadline_ms: self.deadline_ms(bytes),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_reads_back() {
        let lengths = [0, 1, 0x7D, 0x7E, 0x7F, 0x80, 0xFD, 0xFE, 0xFF, 0x100, 0xFFFF, 0x1_0000, 70_000];
        for key_len in lengths {
            for value_len in lengths {
                for deadline in [None, Some(0), Some(u64::MAX)] {
                    let (key, value) = (vec![1; key_len], vec![2; value_len]);
                    let mut out = Scratch::from_slice(b"in front");
                    write(&mut out, Layout::KeysAndValues, &key, &value, deadline);
                    out.push(9);
                    let shape = Shape::read(&out, 8, Layout::KeysAndValues);
                    assert_eq!((shape.end(), shape.len()), (out.len() - 1, out.len() - 9));
                    let record = shape.record(&out);
                    assert_eq!((record.key(), record.value()), (&key[..], &value[..]));
                    assert_eq!(record.deadline_ms(), deadline);
                }
            }
        }
    }

    #[test]
    fn overhead_is_a_byte_for_each_part() {
        let bytes = |layout, deadline| {
            let mut out = Scratch::new();
            write(&mut out, layout, b"0123456789abcdef", b"01234567890", deadline);
            out.len()
        };
        assert_eq!(bytes(Layout::Keys, None), 17);
        assert_eq!(bytes(Layout::KeysAndValues, None), 29);
        assert_eq!(bytes(Layout::KeysAndValues, Some(1)), 37);
    }
}
