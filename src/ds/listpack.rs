//! Listpacks: a sequence of short strings and integers in one run of bytes, walked from either end. The small form
//! of lists, hashes, sets and sorted sets.
//!
//! ```text
//! stored    [count u16][entry ...]
//! portable  [total bytes u32][count u16][entry ...][0xFF]      (files and dumps, see `to_portable`)
//!
//! entry     [encoding, length][text][length of what stands before it, readable backwards]
//!   0xxxxxxx                   integer 0 to 127         110xxxxx x        integer of 13 bits, signed
//!   10llllll text              up to 63 bytes           1110llll l text   up to 4095 bytes
//!   F0 llll  text              longer                   F1 F2 F3 F4 x...  integers of 16, 24, 32, 64 bits
//! ```
//! All numbers are little endian, but for those of 12 and 13 bits. The format is documented in the specification
//! "Listpack" of Redis's author; entries are byte for byte those that Redis writes.
//!
//! Must stay true of stored bytes ([`check`] verifies it; everything here relies on it):
//! - the count is that of the entries, or [`COUNT_BY_WALKING`] for that many and more;
//! - a text that is an integer in canonical form is stored as an integer, and every entry has the shortest encoding
//!   that can hold it. So two elements are equal exactly when their bytes are, which is what makes [`Listpack::find`]
//!   quick.
//!
//! Offsets count from the start of the stored bytes. The total must stay below 4 GiB; callers limit it far lower.
use smallvec::SmallVec;

use super::packed::PackedBytes;
use crate::base::num;

/// The stored bytes of a listpack without elements.
pub const EMPTY: [u8; HEAD_BYTES] = [0; HEAD_BYTES];

/// Offset of the first entry.
pub const HEAD_BYTES: usize = 2;

/// The count that says no more than "this many or more".
pub const COUNT_BY_WALKING: u16 = u16::MAX;

/// Bytes that the portable form has and the stored one has not: total and end mark.
const PORTABLE_EXTRA_BYTES: usize = 5;
const PORTABLE_HEAD_BYTES: usize = 6;
const END_MARK: u8 = 0xFF;

const SHORT_TEXT: u8 = 0x80;
const INT_13: u8 = 0xC0;
const MIDDLE_TEXT: u8 = 0xE0;
const LONG_TEXT: u8 = 0xF0;
const INT_16: u8 = 0xF1;
const INT_24: u8 = 0xF2;
const INT_32: u8 = 0xF3;
const INT_64: u8 = 0xF4;

const SHORT_TEXT_MAX: usize = 63;
const MIDDLE_TEXT_MAX: usize = 4095;
/// No integer has a longer text.
const INT_TEXT_MAX: usize = 20;

/// The most bytes in front of a text: an integer's whole encoding.
const LEAD_BYTES_MAX: usize = 9;

/// One element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Element<'a> {
    /// A text that is no canonical integer.
    Bytes(&'a [u8]),
    /// An integer; its text is the canonical one.
    Int(i64),
}

impl<'a> Element<'a> {
    /// The element with this text: an integer when the text is one in canonical form.
    #[inline]
    pub fn of(text: &'a [u8]) -> Element<'a> {
        match canonical_int(text) {
            Some(int) => Element::Int(int),
            None => Element::Bytes(text),
        }
    }

    /// Bytes of its text.
    #[inline]
    pub fn text_len(self) -> usize {
        match self {
            Element::Bytes(text) => text.len(),
            Element::Int(int) => {
                let digits = int.unsigned_abs().checked_ilog10().map_or(1, |log| log as usize + 1);
                digits + usize::from(int < 0)
            }
        }
    }

    /// Whether its text is `text`. To compare many elements with one text, make a [`Probe`].
    #[inline]
    pub fn equals(self, text: &[u8]) -> bool {
        match self {
            Element::Bytes(own) => own == text,
            Element::Int(int) => canonical_int(text) == Some(int),
        }
    }

    /// Hands its text to `use_text`; an integer is printed on the stack.
    #[inline]
    pub fn with_text<R>(self, use_text: impl FnOnce(&[u8]) -> R) -> R {
        match self {
            Element::Bytes(text) => use_text(text),
            Element::Int(int) => use_text(itoa::Buffer::new().format(int).as_bytes()),
        }
    }

    /// A copy of its text.
    pub fn to_vec(self) -> Vec<u8> {
        self.with_text(<[u8]>::to_vec)
    }

    /// Its value, if it is an integer.
    #[inline]
    pub fn to_i64(self) -> Option<i64> {
        match self {
            Element::Bytes(_) => None,
            Element::Int(int) => Some(int),
        }
    }
}

impl From<i64> for Element<'_> {
    fn from(int: i64) -> Self {
        Element::Int(int)
    }
}

impl<'a> From<&'a [u8]> for Element<'a> {
    fn from(text: &'a [u8]) -> Self {
        Element::of(text)
    }
}

#[inline]
fn canonical_int(text: &[u8]) -> Option<i64> {
    if text.len() > INT_TEXT_MAX { None } else { num::parse_i64(text) }
}

/// An element as it stands in an entry, to look for it or to write it.
///
/// Equal elements have equal bytes, so looking for one is comparing bytes.
#[derive(Clone, Copy, Debug)]
pub struct Probe<'a> {
    /// Encoding and length; of an integer, all of it.
    lead: [u8; LEAD_BYTES_MAX],
    lead_len: u8,
    /// The last four bytes of lead and text, if there are as many. Texts of one length that are used together mostly
    /// differ at their ends (`field:17`), so these reject nearly all of them.
    last: Option<[u8; 4]>,
    /// Empty for an integer.
    text: &'a [u8],
    int: Option<i64>,
}

impl<'a> Probe<'a> {
    /// For the element with this text.
    #[inline]
    pub fn new(text: &'a [u8]) -> Probe<'a> {
        let int = canonical_int(text);
        let text = if int.is_some() { &[] } else { text };
        let (lead, lead_len) = int.map_or_else(|| text_lead(text.len()), int_lead);
        let last = match (text.last_chunk::<4>(), int) {
            (Some(last), _) => Some(*last),
            (None, Some(_)) => lead[..lead_len].last_chunk::<4>().copied(),
            (None, None) => match *text {
                [a, b, c] => Some([lead[0], a, b, c]),
                _ => None,
            },
        };
        Probe { lead, lead_len: lead_len as u8, last, text, int }
    }

    /// For this element.
    #[inline]
    pub fn of(element: Element<'a>) -> Probe<'a> {
        match element {
            Element::Bytes(text) => Probe::new(text),
            Element::Int(int) => {
                let (lead, lead_len) = int_lead(int);
                let last = lead[..lead_len].last_chunk::<4>().copied();
                Probe { lead, lead_len: lead_len as u8, last, text: &[], int: Some(int) }
            }
        }
    }

    /// Whether `element` is the one looked for.
    #[inline]
    pub fn matches(&self, element: Element<'_>) -> bool {
        match element {
            Element::Int(int) => self.int == Some(int),
            Element::Bytes(text) => self.int.is_none() && self.text == text,
        }
    }

    /// Bytes of lead and text.
    #[inline]
    fn body_bytes(&self) -> usize {
        usize::from(self.lead_len) + self.text.len()
    }

    /// Whether the entry at `at`, whose first byte is known to fit, is the one looked for.
    #[inline]
    fn is_at(&self, bytes: &[u8], at: usize) -> bool {
        let Some(body) = bytes.get(at..at + self.body_bytes()) else { return false };
        if let Some(last) = self.last
            && body.last_chunk::<4>() != Some(&last)
        {
            return false;
        }
        let (lead, text) = body.split_at(usize::from(self.lead_len));
        lead == &self.lead[..lead.len()] && text == self.text
    }
}

/// Encoding and length of a text.
#[inline]
fn text_lead(len: usize) -> ([u8; LEAD_BYTES_MAX], usize) {
    let mut lead = [0; LEAD_BYTES_MAX];
    if len <= SHORT_TEXT_MAX {
        lead[0] = SHORT_TEXT | len as u8;
        (lead, 1)
    } else if len <= MIDDLE_TEXT_MAX {
        lead[0] = MIDDLE_TEXT | (len >> 8) as u8;
        lead[1] = len as u8;
        (lead, 2)
    } else {
        lead[0] = LONG_TEXT;
        lead[1..5].copy_from_slice(&(len as u32).to_le_bytes());
        (lead, 5)
    }
}

/// The shortest encoding of an integer.
#[inline]
fn int_lead(int: i64) -> ([u8; LEAD_BYTES_MAX], usize) {
    let mut lead = [0; LEAD_BYTES_MAX];
    if (0..=127).contains(&int) {
        lead[0] = int as u8;
        return (lead, 1);
    }
    if (-4096..=4095).contains(&int) {
        lead[0] = INT_13 | ((int >> 8) as u8 & 0x1F);
        lead[1] = int as u8;
        return (lead, 2);
    }
    let (encoding, width) = match int {
        -0x8000..=0x7FFF => (INT_16, 2),
        -0x80_0000..=0x7F_FFFF => (INT_24, 3),
        -0x8000_0000..=0x7FFF_FFFF => (INT_32, 4),
        _ => (INT_64, 8),
    };
    lead[0] = encoding;
    lead[1..=width].copy_from_slice(&int.to_le_bytes()[..width]);
    (lead, 1 + width)
}

/// Bytes of the length that ends an entry. The limits of two bytes and more lie one below what would fit: other
/// programs compute the same, and walk by it.
#[inline]
const fn backlen_bytes(body_bytes: usize) -> usize {
    match body_bytes {
        0..=127 => 1,
        128..16_383 => 2,
        16_383..2_097_151 => 3,
        2_097_151..268_435_455 => 4,
        _ => 5,
    }
}

/// The length that ends an entry: seven bits a byte, the highest first; all but the first marked.
#[inline]
fn backlen(body_bytes: usize) -> ([u8; 5], usize) {
    let mut encoded = [0; 5];
    let n = backlen_bytes(body_bytes);
    for (i, byte) in encoded[..n].iter_mut().rev().enumerate() {
        *byte = (body_bytes >> (7 * i)) as u8 & 0x7F | 0x80;
    }
    encoded[0] &= 0x7F;
    (encoded, n)
}

/// Where encoded entries go.
pub trait Sink {
    /// Appends bytes.
    fn put(&mut self, bytes: &[u8]);
}

impl Sink for Vec<u8> {
    #[inline]
    fn put(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }
}

impl<const N: usize> Sink for SmallVec<[u8; N]> {
    #[inline]
    fn put(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }
}

/// Room for a few entries, usually without an allocation.
pub type Entries = SmallVec<[u8; 64]>;

/// Appends the entry of an element. A text that is a canonical integer becomes one, whatever variant it came in.
#[inline]
pub fn encode(element: Element<'_>, out: &mut impl Sink) {
    encode_probe(&Probe::of(element), out);
}

#[inline]
fn encode_probe(probe: &Probe<'_>, out: &mut impl Sink) {
    out.put(&probe.lead[..usize::from(probe.lead_len)]);
    if !probe.text.is_empty() {
        out.put(probe.text);
    }
    let (length, n) = backlen(probe.body_bytes());
    out.put(&length[..n]);
}

/// Encodes elements one after the other; also tells how many they were.
fn encode_all<'e>(elements: impl IntoIterator<Item = Element<'e>>) -> (Entries, usize) {
    let mut entries = Entries::new();
    let mut count = 0;
    for element in elements {
        encode(element, &mut entries);
        count += 1;
    }
    (entries, count)
}

#[inline]
fn load<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    let mut loaded = [0; N];
    loaded.copy_from_slice(&bytes[at..at + N]);
    loaded
}

/// Bytes of the whole entry at `at`, which starts with `first`.
#[inline(always)]
fn entry_bytes(first: u8, bytes: &[u8], at: usize) -> usize {
    if first < INT_13 {
        // Nearly all entries end up here: a small integer, or a short text whose length is in the first byte.
        if first < SHORT_TEXT { 2 } else { usize::from(first - SHORT_TEXT) + 2 }
    } else {
        wide_entry_bytes(first, bytes, at)
    }
}

fn wide_entry_bytes(first: u8, bytes: &[u8], at: usize) -> usize {
    let body = match first {
        ..MIDDLE_TEXT => return 3,
        MIDDLE_TEXT..LONG_TEXT => 2 + (usize::from(first & 0x0F) << 8 | usize::from(bytes[at + 1])),
        LONG_TEXT => 5 + u32::from_le_bytes(load(bytes, at + 1)) as usize,
        INT_16 => return 4,
        INT_24 => return 5,
        INT_32 => return 6,
        INT_64 => return 10,
        // Not in stored bytes. The walk ends here.
        _ => return bytes.len() - at,
    };
    body + backlen_bytes(body)
}

/// A listpack to read. The bytes are the stored ones.
#[derive(Clone, Copy, Debug)]
pub struct Listpack<'a>(&'a [u8]);

impl<'a> Listpack<'a> {
    /// Views stored bytes.
    #[inline]
    pub fn new(stored: &'a [u8]) -> Listpack<'a> {
        debug_assert!(stored.len() >= HEAD_BYTES, "stored bytes start with a count");
        Listpack(stored)
    }

    /// The stored bytes.
    #[inline]
    pub fn bytes(self) -> &'a [u8] {
        self.0
    }

    /// Bytes of the portable form, which is what Redis's size limits count.
    #[inline]
    pub fn portable_bytes(self) -> usize {
        self.0.len() + PORTABLE_EXTRA_BYTES
    }

    /// The number of elements.
    #[inline]
    pub fn len(self) -> usize {
        match u16::from_le_bytes(load(self.0, 0)) {
            COUNT_BY_WALKING => self.count_by_walking(),
            count => usize::from(count),
        }
    }

    #[cold]
    fn count_by_walking(self) -> usize {
        let (mut at, mut count) = (HEAD_BYTES, 0);
        while let Some(&first) = self.0.get(at) {
            at += entry_bytes(first, self.0, at);
            count += 1;
        }
        count
    }

    /// Whether there is no element.
    #[inline]
    pub fn is_empty(self) -> bool {
        self.0.len() <= HEAD_BYTES
    }

    /// The offset behind the last entry.
    #[inline]
    pub fn end(self) -> usize {
        self.0.len()
    }

    /// Offset of the first element.
    #[inline]
    pub fn first(self) -> Option<usize> {
        (!self.is_empty()).then_some(HEAD_BYTES)
    }

    /// Offset of the last element.
    #[inline]
    pub fn last(self) -> Option<usize> {
        self.previous(self.end())
    }

    /// Offset of the element behind the one at `offset`.
    #[inline]
    pub fn next(self, offset: usize) -> Option<usize> {
        Some(self.skip(offset, 1)).filter(|&next| next < self.end())
    }

    /// Offset of the element before the one at `offset`, which may be the end.
    #[inline]
    pub fn previous(self, offset: usize) -> Option<usize> {
        if offset <= HEAD_BYTES {
            return None;
        }
        let mut length_at = offset - 1;
        let mut body = usize::from(self.0[length_at] & 0x7F);
        let mut shift = 7;
        // At most five bytes, since the first of a length is not marked.
        while self.0[length_at] & 0x80 != 0 && shift <= 28 {
            length_at -= 1;
            body |= usize::from(self.0[length_at] & 0x7F) << shift;
            shift += 7;
        }
        length_at.checked_sub(body)
    }

    /// The offset `n` entries behind `offset`; the end, if there are fewer.
    #[inline]
    pub fn skip(self, offset: usize, n: usize) -> usize {
        let mut at = offset;
        for _ in 0..n {
            let Some(&first) = self.0.get(at) else { break };
            at += entry_bytes(first, self.0, at);
        }
        at
    }

    /// The element at `offset`.
    ///
    /// # Panics
    /// When `offset` is not that of an element (or gives any element, if it happens to look like one).
    #[inline]
    pub fn get(self, offset: usize) -> Element<'a> {
        let (element, _) = decode(self.0, offset);
        element
    }

    /// Offset of the element at `index`; negative ones count from the end (-1 is the last). Walks from the nearer
    /// end.
    pub fn nth(self, index: i64) -> Option<usize> {
        let len = self.len();
        let index = place(index, len)?;
        if index <= len / 2 {
            return Some(self.skip(HEAD_BYTES, index)).filter(|&at| at < self.end());
        }
        let mut at = self.end();
        for _ in index..len {
            at = self.previous(at)?;
        }
        Some(at)
    }

    /// Offset of the first element that `probe` looks for, at `from` or behind it, where only every `stride`th is
    /// compared: 1 compares all, 2 the fields of field and value, 3 the fields of field, value and deadline.
    #[inline]
    pub fn find(self, probe: &Probe<'_>, from: usize, stride: usize) -> Option<usize> {
        // Known strides unroll the skipping.
        match stride {
            1 => scan(self.0, probe, from, 1),
            2 => scan(self.0, probe, from, 2),
            3 => scan(self.0, probe, from, 3),
            _ => scan(self.0, probe, from, stride),
        }
    }

    /// Offsets and elements, from either end.
    #[inline]
    pub fn iter(self) -> Iter<'a> {
        self.iter_from(HEAD_BYTES)
    }

    /// Offsets and elements from `offset` to the end.
    #[inline]
    pub fn iter_from(self, offset: usize) -> Iter<'a> {
        Iter { pack: self, at: offset, end: self.end() }
    }

    /// Offsets and elements before `offset`; of use backwards.
    #[inline]
    pub fn iter_until(self, offset: usize) -> Iter<'a> {
        Iter { pack: self, at: HEAD_BYTES, end: offset }
    }
}

impl<'a> IntoIterator for Listpack<'a> {
    type Item = (usize, Element<'a>);
    type IntoIter = Iter<'a>;

    fn into_iter(self) -> Iter<'a> {
        self.iter()
    }
}

/// Elements of a listpack with their offsets.
#[derive(Clone, Debug)]
pub struct Iter<'a> {
    pack: Listpack<'a>,
    at: usize,
    end: usize,
}

impl<'a> Iterator for Iter<'a> {
    type Item = (usize, Element<'a>);

    #[inline]
    fn next(&mut self) -> Option<(usize, Element<'a>)> {
        if self.at >= self.end {
            return None;
        }
        let at = self.at;
        let (element, body) = decode(self.pack.0, at);
        self.at += body + backlen_bytes(body);
        Some((at, element))
    }
}

impl DoubleEndedIterator for Iter<'_> {
    #[inline]
    fn next_back(&mut self) -> Option<Self::Item> {
        if self.at >= self.end {
            return None;
        }
        self.end = self.pack.previous(self.end)?;
        Some((self.end, self.pack.get(self.end)))
    }
}

/// The place that an index means in a sequence of `len`, negative ones counted from the end.
#[inline]
fn place(index: i64, len: usize) -> Option<usize> {
    let place = if index < 0 {
        len.checked_sub(usize::try_from(index.unsigned_abs()).ok()?)?
    } else {
        index as usize
    };
    (place < len).then_some(place)
}

#[inline(always)]
fn scan(bytes: &[u8], probe: &Probe<'_>, from: usize, stride: usize) -> Option<usize> {
    let lead = probe.lead[0];
    let mut at = from;
    while let Some(&first) = bytes.get(at) {
        if first == lead && probe.is_at(bytes, at) {
            return Some(at);
        }
        at += entry_bytes(first, bytes, at);
        for _ in 1..stride {
            let &first = bytes.get(at)?;
            at += entry_bytes(first, bytes, at);
        }
    }
    None
}

/// The element at `at`, and the bytes of its encoding without the length behind it.
#[inline]
fn decode(bytes: &[u8], at: usize) -> (Element<'_>, usize) {
    let first = bytes[at];
    match first {
        ..SHORT_TEXT => (Element::Int(i64::from(first)), 1),
        SHORT_TEXT..INT_13 => {
            let body = 1 + usize::from(first & 0x3F);
            (Element::Bytes(&bytes[at + 1..at + body]), body)
        }
        _ => decode_wide(first, bytes, at),
    }
}

fn decode_wide(first: u8, bytes: &[u8], at: usize) -> (Element<'_>, usize) {
    let (int, body) = match first {
        MIDDLE_TEXT..=LONG_TEXT => {
            let lead = if first == LONG_TEXT { 5 } else { 2 };
            let body = match first {
                LONG_TEXT => lead + u32::from_le_bytes(load(bytes, at + 1)) as usize,
                _ => lead + (usize::from(first & 0x0F) << 8 | usize::from(bytes[at + 1])),
            };
            return (Element::Bytes(&bytes[at + lead..at + body]), body);
        }
        INT_16 => (i64::from(i16::from_le_bytes(load(bytes, at + 1))), 3),
        INT_24 => {
            let [low, middle, high] = load(bytes, at + 1);
            (i64::from(i32::from_le_bytes([0, low, middle, high]) >> 8), 4)
        }
        INT_32 => (i64::from(i32::from_le_bytes(load(bytes, at + 1))), 5),
        INT_64 => (i64::from_le_bytes(load(bytes, at + 1)), 9),
        // Thirteen bits; shifted up and down for the sign.
        _ => (i64::from(i16::from_be_bytes([first, bytes[at + 1]]) << 3 >> 3), 2),
    };
    (Element::Int(int), body)
}

/// The one change: `removed` entries in `old_bytes` at `at` give way to `added` encoded ones.
fn change(
    pack: &mut impl PackedBytes,
    at: usize,
    (old_bytes, removed): (usize, usize),
    (entries, added): (&[u8], usize),
) {
    if old_bytes == entries.len() {
        pack.bytes_mut()[at..at + old_bytes].copy_from_slice(entries);
    } else {
        pack.splice(at, old_bytes, entries);
    }
    if added == removed {
        return;
    }
    let count = match u16::from_le_bytes(load(pack.bytes(), 0)) {
        COUNT_BY_WALKING if added > removed => return,
        COUNT_BY_WALKING => Listpack(pack.bytes()).count_by_walking(),
        count => usize::from(count) + added - removed,
    };
    pack.bytes_mut()[..HEAD_BYTES].copy_from_slice(&count_head(count));
}

/// The stored count.
fn count_head(count: usize) -> [u8; HEAD_BYTES] {
    u16::try_from(count).unwrap_or(COUNT_BY_WALKING).to_le_bytes()
}

/// Bytes and number of at most `n` entries from `offset` on.
fn extent(bytes: &[u8], offset: usize, n: usize) -> (usize, usize) {
    let (mut at, mut found) = (offset, 0);
    while found < n {
        let Some(&first) = bytes.get(at) else { break };
        at += entry_bytes(first, bytes, at);
        found += 1;
    }
    (at - offset, found)
}

/// Appends an element.
#[inline]
pub fn push_back(pack: &mut impl PackedBytes, element: Element<'_>) {
    let end = pack.bytes().len();
    insert_before(pack, end, element);
}

/// Puts an element in front of all others.
#[inline]
pub fn push_front(pack: &mut impl PackedBytes, element: Element<'_>) {
    insert_before(pack, HEAD_BYTES, element);
}

/// Puts an element before the one at `offset`, which may be the end. The new one is then at `offset`.
#[inline]
pub fn insert_before(pack: &mut impl PackedBytes, offset: usize, element: Element<'_>) {
    let mut entry = Entries::new();
    encode(element, &mut entry);
    change(pack, offset, (0, 0), (&entry, 1));
}

/// Appends elements, all in one go.
pub fn append_many<'e>(pack: &mut impl PackedBytes, elements: impl IntoIterator<Item = Element<'e>>) {
    let end = pack.bytes().len();
    insert_many(pack, end, elements);
}

/// Puts elements before the one at `offset`, which may be the end, all in one go.
pub fn insert_many<'e>(
    pack: &mut impl PackedBytes,
    offset: usize,
    elements: impl IntoIterator<Item = Element<'e>>,
) {
    let (entries, count) = encode_all(elements);
    insert_encoded(pack, offset, &entries, count);
}

/// Puts `count` encoded entries before the one at `offset`, which may be the end. They come from [`encode`] or out of
/// another listpack.
pub fn insert_encoded(pack: &mut impl PackedBytes, offset: usize, entries: &[u8], count: usize) {
    change(pack, offset, (0, 0), (entries, count));
}

/// Puts an element in the place of the one at `offset`.
#[inline]
pub fn replace(pack: &mut impl PackedBytes, offset: usize, element: Element<'_>) {
    let mut entry = Entries::new();
    encode(element, &mut entry);
    let old = extent(pack.bytes(), offset, 1);
    change(pack, offset, old, (&entry, 1));
}

/// Puts elements in the place of `n` at `offset` (of all behind it, if there are fewer).
pub fn replace_many<'e>(
    pack: &mut impl PackedBytes,
    offset: usize,
    n: usize,
    elements: impl IntoIterator<Item = Element<'e>>,
) {
    let (entries, count) = encode_all(elements);
    let old = extent(pack.bytes(), offset, n);
    change(pack, offset, old, (&entries, count));
}

/// Takes out `n` elements at `offset` (all behind it, if there are fewer) and tells how many it were. What stood
/// behind them is then at `offset`.
pub fn remove(pack: &mut impl PackedBytes, offset: usize, n: usize) -> usize {
    let old = extent(pack.bytes(), offset, n);
    change(pack, offset, old, (&[], 0));
    old.1
}

/// Takes out `n` elements from `index` on, negative ones counted from the end, and tells how many it were.
pub fn remove_range(pack: &mut impl PackedBytes, index: i64, n: usize) -> usize {
    match Listpack::new(pack.bytes()).nth(index) {
        Some(offset) => remove(pack, offset, n),
        None => 0,
    }
}

/// The portable form of stored bytes.
pub fn to_portable(stored: &[u8]) -> Vec<u8> {
    let total = stored.len() + PORTABLE_EXTRA_BYTES;
    let mut portable = Vec::with_capacity(total);
    portable.extend_from_slice(&(total as u32).to_le_bytes());
    portable.extend_from_slice(stored);
    portable.push(END_MARK);
    portable
}

/// The stored form of portable bytes, which may be anything: `None` unless they are a sound listpack. Entries that
/// are not the shortest for their element are written anew.
pub fn from_portable(portable: &[u8]) -> Option<Vec<u8>> {
    let (head, rest) = portable.split_at_checked(PORTABLE_HEAD_BYTES)?;
    let (&end_mark, entries) = rest.split_last()?;
    let total = u32::from_le_bytes(load(head, 0));
    if end_mark != END_MARK || u32::try_from(portable.len()) != Ok(total) {
        return None;
    }
    let found = survey(entries)?;
    let count = u16::from_le_bytes(load(head, 4));
    if count != COUNT_BY_WALKING && usize::from(count) != found.count {
        return None;
    }
    let mut stored = Vec::with_capacity(HEAD_BYTES + entries.len());
    stored.extend_from_slice(&count_head(found.count));
    if found.shortest {
        stored.extend_from_slice(entries);
    } else {
        let mut at = 0;
        while at < entries.len() {
            let (element, body) = decode(entries, at);
            encode(element, &mut stored);
            at += body + backlen_bytes(body);
        }
    }
    Some(stored)
}

/// Whether bytes are those of a listpack as stored, for tests and for whoever doubts.
pub fn check(stored: &[u8]) -> bool {
    let Some((head, entries)) = stored.split_at_checked(HEAD_BYTES) else { return false };
    survey(entries).is_some_and(|found| found.shortest && head == count_head(found.count))
}

/// What a walk over sound entries found.
struct Survey {
    count: usize,
    /// Whether each entry is the one that [`encode`] writes.
    shortest: bool,
}

/// Walks over entries that may be anything; `None` unless they are sound.
fn survey(entries: &[u8]) -> Option<Survey> {
    let mut found = Survey { count: 0, shortest: true };
    let mut at = 0;
    while at < entries.len() {
        let body = body_bytes_checked(&entries[at..])?;
        let (length, n) = backlen(body);
        let end = at.checked_add(body)?;
        if entries.get(end..)?.get(..n)? != &length[..n] {
            return None;
        }
        let (element, _) = decode(entries, at);
        let probe = Probe::of(element);
        found.shortest &= probe.body_bytes() == body && probe.lead[0] == entries[at];
        found.count += 1;
        at = end + n;
    }
    Some(found)
}

/// Bytes of encoding and text that an entry claims; they may lie beyond the end. `None` for an unknown encoding.
fn body_bytes_checked(entry: &[u8]) -> Option<usize> {
    Some(match *entry.first()? {
        ..SHORT_TEXT => 1,
        first @ SHORT_TEXT..INT_13 => 1 + usize::from(first & 0x3F),
        INT_13..MIDDLE_TEXT => 2,
        first @ MIDDLE_TEXT..LONG_TEXT => 2 + (usize::from(first & 0x0F) << 8 | usize::from(*entry.get(1)?)),
        LONG_TEXT => 5 + u32::from_le_bytes(*entry.get(1..)?.first_chunk()?) as usize,
        INT_16 => 3,
        INT_24 => 4,
        INT_32 => 5,
        INT_64 => 9,
        _ => return None,
    })
}
