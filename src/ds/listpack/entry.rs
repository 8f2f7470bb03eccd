//! Elements and their entries: how one is encoded, how it is read, how one is looked for.
//!
//! Must stay true: [`encode`] alone writes entries, and an element has one encoding only, the shortest.
use smallvec::SmallVec;

use crate::base::num;

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

/// The most bytes in front of a text: an integer's whole encoding.
const LEAD_BYTES_MAX: usize = 9;

/// One element.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
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
        match num::parse_i64(text) {
            Some(int) => Element::Int(int),
            None => Element::Bytes(text),
        }
    }

    /// The same element, as [`Element::of`] has it: comparable with any other such one.
    #[inline]
    pub fn canonical(self) -> Element<'a> {
        match self {
            Element::Bytes(text) => Element::of(text),
            Element::Int(_) => self,
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
            Element::Int(int) => num::parse_i64(text) == Some(int),
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
        if let Some(int) = num::parse_i64(text) {
            return Probe::of_int(int);
        }
        let (lead, lead_len) = text_lead(text.len());
        let last = match *text {
            [.., a, b, c, d] => Some([a, b, c, d]),
            [a, b, c] => Some([lead[0], a, b, c]),
            _ => None,
        };
        Probe { lead, lead_len: lead_len as u8, last, text, int: None }
    }

    #[inline]
    fn of_int(int: i64) -> Probe<'a> {
        let (lead, lead_len) = int_lead(int);
        let last = lead[..lead_len].last_chunk().copied();
        Probe { lead, lead_len: lead_len as u8, last, text: &[], int: Some(int) }
    }

    /// For this element.
    #[inline]
    pub fn of(element: Element<'a>) -> Probe<'a> {
        match element {
            Element::Bytes(text) => Probe::new(text),
            Element::Int(int) => Probe::of_int(int),
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
    pub(super) fn body_bytes(&self) -> usize {
        usize::from(self.lead_len) + self.text.len()
    }

    /// The first byte of the entry.
    #[inline]
    pub(super) fn first(&self) -> u8 {
        self.lead[0]
    }

    /// Whether the end of the element is found anywhere in `bytes`. `false`: the element is not among them.
    pub(super) fn may_be_in(&self, bytes: &[u8]) -> bool {
        // Few bytes are looked for many places at a time, and elements mostly differ in their last ones: more of them
        // would only bring in what all have in common.
        const NEEDLE_BYTES_MAX: usize = 8;
        const NEEDLE_BYTES_MIN: usize = 4;
        let body = if self.int.is_some() { &self.lead[..usize::from(self.lead_len)] } else { self.text };
        let needle = &body[body.len().saturating_sub(NEEDLE_BYTES_MAX)..];
        needle.len() < NEEDLE_BYTES_MIN || memchr::memmem::find(bytes, needle).is_some()
    }

    /// Whether the entry at `at`, whose first byte is known to fit, is the one looked for.
    #[inline]
    pub(super) fn is_at(&self, bytes: &[u8], at: usize) -> bool {
        let Some(body) = bytes.get(at..at + self.body_bytes()) else { return false };
        if let Some(last) = self.last
            && body.last_chunk::<4>() != Some(&last)
        {
            return false;
        }
        let (lead, text) = body.split_at(usize::from(self.lead_len));
        // A lead of one byte was compared already.
        (lead.len() == 1 || lead == &self.lead[..lead.len()]) && text == self.text
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

/// Bytes of the length that ends an entry. The limits of two bytes and more lie one below what would fit: Redis
/// computes the same and walks by it.
#[inline]
pub(super) const fn backlen_bytes(body_bytes: usize) -> usize {
    match body_bytes {
        0..=127 => 1,
        128..16_383 => 2,
        16_383..2_097_151 => 3,
        2_097_151..268_435_455 => 4,
        _ => 5,
    }
}

/// The length that ends an entry, in `n` bytes: seven bits each, the highest first, all but the first marked.
#[inline]
pub(super) fn backlen(body_bytes: usize, n: usize) -> [u8; 5] {
    let mut encoded = [0; 5];
    for (i, byte) in encoded[..n].iter_mut().rev().enumerate() {
        *byte = (body_bytes >> (7 * i)) as u8 & 0x7F | 0x80;
    }
    encoded[0] &= 0x7F;
    encoded
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
    let element = if let Element::Bytes(text) = element { Element::of(text) } else { element };
    // Nearly all elements are small integers or short texts.
    match element {
        Element::Int(int @ 0..=127) => out.put(&[int as u8, 1]),
        Element::Bytes(text) if text.len() <= SHORT_TEXT_MAX => {
            out.put(&[SHORT_TEXT | text.len() as u8]);
            out.put(text);
            out.put(&[1 + text.len() as u8]);
        }
        _ => encode_probe(&Probe::of(element), out),
    }
}

/// Appends the entry of the element that is looked for.
#[inline]
pub(super) fn encode_probe(probe: &Probe<'_>, out: &mut impl Sink) {
    out.put(&probe.lead[..usize::from(probe.lead_len)]);
    if !probe.text.is_empty() {
        out.put(probe.text);
    }
    let body = probe.body_bytes();
    let n = backlen_bytes(body);
    out.put(&backlen(body, n)[..n]);
}

#[inline]
pub(super) fn load<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    let mut loaded = [0; N];
    loaded.copy_from_slice(&bytes[at..at + N]);
    loaded
}

/// Bytes of the whole entry at `at`, which starts with `first`.
#[inline(always)]
pub(super) fn entry_bytes(first: u8, bytes: &[u8], at: usize) -> usize {
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

/// The element at `at`, and the bytes of its encoding without the length behind it.
#[inline]
pub(super) fn decode(bytes: &[u8], at: usize) -> (Element<'_>, usize) {
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

/// Bytes of encoding and text that an entry claims; they may lie beyond the end. `None` for an unknown encoding.
pub(super) fn claimed_body_bytes(entry: &[u8]) -> Option<usize> {
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
