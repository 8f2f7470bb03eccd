//! The packed blobs of old servers, read once from front to back: ziplist (small lists, hashes and sorted
//! sets up to Redis 6.2) and zipmap (small hashes up to 2.4). We never write them.
//!
//! Both are iterators over hostile bytes. `open` looks at the frame; each step checks the entry that it hands
//! out; the step after the last entry checks what can only be known then (counts, the offset of the last
//! entry). So a blob is good when the iterator ends without an error, and a caller keeps nothing of a blob
//! that was not good. Nothing is reserved here. Positions in errors count from the blob's start.
use super::reader::{Corrupt, SHORT};

/// An entry of a ziplist.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Element<'a> {
    /// Bytes. (Old servers did not turn every text of an integer into one.)
    Bytes(&'a [u8]),
    /// The decimal text of an integer.
    Integer(i64),
}

/// The first byte of an entry that is none: the end.
const END: u8 = 255;
/// The first byte of a length of five bytes; smaller ones are the length.
const LONG: u8 = 254;

const fn corrupt<T>(position: usize, reason: &'static str) -> Result<T, Corrupt> {
    Err(Corrupt { position, reason })
}

/// The bytes `at..at + N`, which must end before `end`, the closing byte.
fn array<const N: usize>(bytes: &[u8], at: usize) -> Result<[u8; N], Corrupt> {
    bytes.get(at..).and_then(|b| b.first_chunk()).copied().ok_or(Corrupt { position: at, reason: SHORT })
}

/// A ziplist, as an iterator over its entries; it ends after an error.
///
/// Layout, little endian unless said otherwise: the blob's length in 32 bits; the offset of the last entry in
/// 32; the number of entries in 16, all ones for too many; the entries; a byte 255. An entry begins with the
/// length of the one before it (a byte, or 254 and 32 bits), then has one of these bytes:
///
/// | first byte | content |
/// |---|---|
/// | `00nnnnnn` | a string of n bytes |
/// | `01nnnnnn` and a byte | a string of n bytes, n in 14 bits, big endian |
/// | `10xxxxxx` and 4 bytes | a string of n bytes, n in 32 bits, big endian |
/// | `c0`, `d0`, `e0` | an integer of 16, 32, 64 bits |
/// | `f0`, `fe` | an integer of 24, 8 bits |
/// | `f1` to `fd` | the integers 0 to 12 |
#[derive(Clone, Debug)]
pub struct Ziplist<'a> {
    /// Without the byte 255 at the end.
    bytes: &'a [u8],
    /// Where the next entry begins.
    at: usize,
    /// Where the entry before it began; `at` before the first.
    last_at: usize,
    entries: usize,
    over: bool,
}

const ZIPLIST_HEADER_BYTES: usize = 10;
const COUNT_UNKNOWN: u16 = u16::MAX;

impl<'a> Ziplist<'a> {
    /// Checks the frame: length and closing byte.
    pub fn open(blob: &'a [u8]) -> Result<Self, Corrupt> {
        if blob.len() <= ZIPLIST_HEADER_BYTES {
            return corrupt(0, "a ziplist too short for its header");
        }
        if u32::from_le_bytes(array(blob, 0)?) as usize != blob.len() {
            return corrupt(0, "a ziplist with a false length");
        }
        match blob.split_last() {
            Some((&END, bytes)) => {
                let at = ZIPLIST_HEADER_BYTES;
                Ok(Ziplist { bytes, at, last_at: at, entries: 0, over: false })
            }
            _ => corrupt(blob.len() - 1, "a ziplist without its end"),
        }
    }

    /// The most entries that there can be: an entry has two bytes. Room for them is in proportion to the
    /// blob.
    pub fn entries_max(&self) -> usize {
        (self.bytes.len() - self.at) / 2
    }

    /// The entry at `at`, and where the next one begins.
    fn entry(&self) -> Result<(Element<'a>, usize), Corrupt> {
        let before = match array(self.bytes, self.at)? {
            [END] => return corrupt(self.at, "a ziplist that ends before its end"),
            [LONG] => (u32::from_le_bytes(array(self.bytes, self.at + 1)?) as usize, 5),
            [short] => (usize::from(short), 1),
        };
        if before.0 != self.at - self.last_at {
            return corrupt(self.at, "a ziplist entry with a false length of the one before");
        }
        let at = self.at + before.1;
        let [kind] = array(self.bytes, at)?;
        match kind >> 6 {
            0 => self.text(at + 1, usize::from(kind)),
            1 => {
                let [low] = array(self.bytes, at + 1)?;
                self.text(at + 2, usize::from(u16::from_be_bytes([kind & 63, low])))
            }
            2 => self.text(at + 5, u32::from_be_bytes(array(self.bytes, at + 1)?) as usize),
            _ => self.integer(at + 1, kind),
        }
    }

    fn text(&self, at: usize, length: usize) -> Result<(Element<'a>, usize), Corrupt> {
        let text = self.bytes.get(at..).and_then(|rest| rest.get(..length));
        text.map(|text| (Element::Bytes(text), at + length))
            .ok_or(Corrupt { position: self.at, reason: SHORT })
    }

    /// An integer whose bytes begin at `at`.
    fn integer(&self, at: usize, kind: u8) -> Result<(Element<'a>, usize), Corrupt> {
        let (value, bytes) = match kind {
            0xc0 => (i64::from(i16::from_le_bytes(array(self.bytes, at)?)), 2),
            0xd0 => (i64::from(i32::from_le_bytes(array(self.bytes, at)?)), 4),
            0xe0 => (i64::from_le_bytes(array(self.bytes, at)?), 8),
            0xf0 => {
                let [a, b, c] = array(self.bytes, at)?;
                // Shifted back down with its sign.
                (i64::from(i32::from_le_bytes([0, a, b, c]) >> 8), 3)
            }
            0xfe => (i64::from(i8::from_le_bytes(array(self.bytes, at)?)), 1),
            0xf1..=0xfd => (i64::from(kind) - 0xf1, 0),
            _ => return corrupt(self.at, "a ziplist entry of an unknown kind"),
        };
        Ok((Element::Integer(value), at + bytes))
    }

    /// What the header says, now that all entries were seen.
    fn check_header(&self) -> Result<(), Corrupt> {
        let last_at = u32::from_le_bytes(array(self.bytes, 4)?) as usize;
        let count = u16::from_le_bytes(array(self.bytes, 8)?);
        // Without entries Redis only asks that it lies within.
        if if self.entries == 0 { last_at > self.bytes.len() } else { last_at != self.last_at } {
            return corrupt(4, "a ziplist with a false offset of its last entry");
        }
        if count != COUNT_UNKNOWN && usize::from(count) != self.entries {
            return corrupt(8, "a ziplist with a false count");
        }
        Ok(())
    }
}

impl<'a> Iterator for Ziplist<'a> {
    type Item = Result<Element<'a>, Corrupt>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.over {
            return None;
        }
        if self.at == self.bytes.len() {
            self.over = true;
            return self.check_header().err().map(Err);
        }
        match self.entry() {
            Ok((element, next)) => {
                (self.last_at, self.at) = (self.at, next);
                self.entries += 1;
                Some(Ok(element))
            }
            Err(refusal) => {
                self.over = true;
                Some(Err(refusal))
            }
        }
    }
}

impl std::iter::FusedIterator for Ziplist<'_> {}

/// A zipmap, as an iterator over fields and values; it ends after an error. Fields may repeat: that is for
/// the caller to see.
///
/// Layout: a byte with the number of fields, 254 for too many; the pairs; a byte 255. A pair is a field's
/// length and bytes, a value's length, a byte with the number of unused bytes, the value's bytes, the unused
/// bytes. A length is a byte, or 254 and 32 bits, little endian.
#[derive(Clone, Debug)]
pub struct Zipmap<'a> {
    /// Without the byte 255 at the end.
    bytes: &'a [u8],
    /// Where the next pair begins.
    at: usize,
    pairs: usize,
    over: bool,
}

impl<'a> Zipmap<'a> {
    /// Checks the frame: the closing byte.
    pub fn open(blob: &'a [u8]) -> Result<Self, Corrupt> {
        match blob.split_last() {
            Some((&END, bytes)) if !bytes.is_empty() => Ok(Zipmap { bytes, at: 1, pairs: 0, over: false }),
            _ => corrupt(0, "a zipmap without its ends"),
        }
    }

    /// The most pairs that there can be: a pair has three bytes. Room for them is in proportion to the blob.
    pub fn pairs_max(&self) -> usize {
        (self.bytes.len() - self.at) / 3
    }

    /// A length at `at`, and where it ends.
    fn length(&self, at: usize) -> Result<(usize, usize), Corrupt> {
        match array(self.bytes, at)? {
            [END] => corrupt(at, "a zipmap that ends before its end"),
            [LONG] => match u32::from_le_bytes(array(self.bytes, at + 1)?) {
                length if length < u32::from(LONG) => {
                    corrupt(at, "a zipmap length in a needlessly long form")
                }
                length => Ok((length as usize, at + 5)),
            },
            [short] => Ok((usize::from(short), at + 1)),
        }
    }

    fn bytes(&self, at: usize, length: usize) -> Result<(&'a [u8], usize), Corrupt> {
        let bytes = self.bytes.get(at..).and_then(|rest| rest.get(..length));
        bytes.map(|bytes| (bytes, at + length)).ok_or(Corrupt { position: at, reason: SHORT })
    }

    /// The pair at `at`, and where the next one begins.
    fn pair(&self) -> Result<(&'a [u8], &'a [u8], usize), Corrupt> {
        let (length, at) = self.length(self.at)?;
        let (field, at) = self.bytes(at, length)?;
        let (length, at) = self.length(at)?;
        let [unused] = array(self.bytes, at)?;
        let (value, at) = self.bytes(at + 1, length)?;
        let (_, at) = self.bytes(at, usize::from(unused))?;
        Ok((field, value, at))
    }

    /// What the header says, now that all pairs were seen.
    fn check_header(&self) -> Result<(), Corrupt> {
        match self.bytes[0] {
            _ if self.pairs == 0 => corrupt(0, "an empty zipmap"),
            count if count == LONG || usize::from(count) == self.pairs => Ok(()),
            _ => corrupt(0, "a zipmap with a false count"),
        }
    }
}

impl<'a> Iterator for Zipmap<'a> {
    type Item = Result<(&'a [u8], &'a [u8]), Corrupt>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.over {
            return None;
        }
        if self.at == self.bytes.len() {
            self.over = true;
            return self.check_header().err().map(Err);
        }
        match self.pair() {
            Ok((field, value, next)) => {
                self.at = next;
                self.pairs += 1;
                Some(Ok((field, value)))
            }
            Err(refusal) => {
                self.over = true;
                Some(Err(refusal))
            }
        }
    }
}

impl std::iter::FusedIterator for Zipmap<'_> {}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn ziplist(blob: &[u8]) -> Result<Vec<Element<'_>>, Corrupt> {
        Ziplist::open(blob)?.collect()
    }

    type Pair<'a> = (&'a [u8], &'a [u8]);

    fn zipmap(blob: &[u8]) -> Result<Vec<Pair<'_>>, Corrupt> {
        Zipmap::open(blob)?.collect()
    }

    fn text(bytes: &[u8]) -> Element<'_> {
        Element::Bytes(bytes)
    }

    fn refused<T>(result: Result<T, Corrupt>) -> &'static str {
        result.err().map_or("nothing", |refusal| refusal.reason)
    }

    /// Wraps raw entries; `last` is the length of the last one.
    fn framed(count: u16, entries: &[u8], last: usize) -> Vec<u8> {
        let length = ZIPLIST_HEADER_BYTES + entries.len() + 1;
        let mut blob = (length as u32).to_le_bytes().to_vec();
        blob.extend_from_slice(&((length - 1 - last) as u32).to_le_bytes());
        blob.extend_from_slice(&count.to_le_bytes());
        blob.extend_from_slice(entries);
        blob.push(END);
        blob
    }

    /// As an old server would: every integer in its shortest form. Element by element, with the long form for
    /// some.
    fn packed(elements: &[Element], long_before: bool) -> Vec<u8> {
        let (mut entries, mut last) = (Vec::new(), 0_usize);
        for element in elements {
            let start = entries.len();
            match u8::try_from(last).ok().filter(|&last| last < LONG && !long_before) {
                Some(last) => entries.push(last),
                None => entries.extend([&[LONG][..], &(last as u32).to_le_bytes()].concat()),
            }
            match *element {
                Element::Bytes(bytes) => {
                    match bytes.len() {
                        length @ ..64 => entries.push(length as u8),
                        length @ ..16384 => entries.extend((0x4000 | length as u16).to_be_bytes()),
                        length => entries.extend([&[0x80][..], &(length as u32).to_be_bytes()].concat()),
                    }
                    entries.extend_from_slice(bytes);
                }
                Element::Integer(value) => {
                    let bytes = value.to_le_bytes();
                    match value {
                        0..=12 => entries.push(0xf1 + value as u8),
                        -0x80..0x80 => entries.extend([0xfe, bytes[0]]),
                        -0x8000..0x8000 => entries.extend([&[0xc0], &bytes[..2]].concat()),
                        -0x80_0000..0x80_0000 => entries.extend([&[0xf0], &bytes[..3]].concat()),
                        -0x8000_0000..0x8000_0000 => entries.extend([&[0xd0], &bytes[..4]].concat()),
                        _ => entries.extend([&[0xe0], &bytes[..]].concat()),
                    }
                }
            }
            last = entries.len() - start;
        }
        framed(elements.len().min(0xffff) as u16, &entries, last)
    }

    /// Blobs of snapshots that Redis 2.4, 4.0 and 6.2 wrote.
    #[test]
    fn old_servers_ziplists() {
        let list =
            b"\x30\0\0\0\x25\0\0\0\x08\0\0\xc0\x01\0\x04\xc0\x02\0\x04\xc0\x03\0\x04\x01a\x03\x01b\x03\x01c\
                     \x03\xd0\xa0\x86\x01\0\x06\xe0\0\xbc\xa0\x65\x01\0\0\0\xff";
        let integer = Element::Integer;
        let (a, b, c) = (text(b"a"), text(b"b"), text(b"c"));
        let elements =
            vec![integer(1), integer(2), integer(3), a, b, c, integer(100_000), integer(6_000_000_000)];
        assert_eq!(ziplist(list), Ok(elements));
        let list = b"\x0d\0\0\0\x0a\0\0\0\x01\0\0\xf8\xff";
        assert_eq!(ziplist(list), Ok(vec![integer(7)]));
        let scores = b"\x19\0\0\0\x16\0\0\0\x04\0\0\x03one\x05\xf2\x02\x03two\x05\xf3\xff";
        assert_eq!(ziplist(scores), Ok(vec![text(b"one"), integer(1), text(b"two"), integer(2)]));
    }

    #[test]
    fn every_kind_of_entry() {
        let long = [b'x'; 20_000];
        let mut elements = vec![text(b""), text(&long[..63]), text(&long[..64]), text(&long[..16383])];
        elements.extend([text(&long[..16384]), text(&long)]);
        for bits in [0, 7, 8, 15, 16, 23, 24, 31, 32, 63] {
            let edge = 1_i64.wrapping_shl(bits);
            elements.extend(
                [edge, edge.wrapping_neg(), edge.wrapping_sub(1), edge.wrapping_neg().wrapping_sub(1)]
                    .map(Element::Integer),
            );
        }
        elements.extend((-2..15).map(Element::Integer));
        for long_before in [false, true] {
            let blob = packed(&elements, long_before);
            assert_eq!(ziplist(&blob), Ok(elements.clone()));
            assert!(Ziplist::open(&blob).unwrap().entries_max() >= elements.len());
        }
    }

    #[test]
    fn counts_may_be_unknown_and_lists_empty() {
        let many = vec![Element::Integer(3); 70_000];
        assert_eq!(ziplist(&packed(&many, false)).map(|elements| elements.len()), Ok(70_000));
        assert_eq!(ziplist(&framed(COUNT_UNKNOWN, b"\x00\xf1", 2)), Ok(vec![Element::Integer(0)]));
        assert_eq!(ziplist(&framed(0, b"", 0)), Ok(vec![]));
    }

    #[test]
    fn what_is_no_ziplist_is_refused() {
        assert_eq!(refused(ziplist(b"")), "a ziplist too short for its header");
        assert_eq!(refused(ziplist(b"\x0a\0\0\0\x0a\0\0\0\0\xff")), "a ziplist too short for its header");
        let good = framed(2, b"\x00\x02ab\x04\xf2", 2);
        assert_eq!(ziplist(&good), Ok(vec![text(b"ab"), Element::Integer(1)]));
        for (at, value, reason) in [
            (0, 18, "a ziplist with a false length"),
            (3, 1, "a ziplist with a false length"),
            (16, 254, "a ziplist without its end"),
            (4, 10, "a ziplist with a false offset of its last entry"),
            (8, 3, "a ziplist with a false count"),
            (10, 1, "a ziplist entry with a false length of the one before"),
            (14, 3, "a ziplist entry with a false length of the one before"),
            (14, 255, "a ziplist that ends before its end"),
            (11, 5, SHORT),
            (14, 254, SHORT),
            (15, 0xfe, SHORT),
            (15, 0xff, "a ziplist entry of an unknown kind"),
            (15, 0xc1, "a ziplist entry of an unknown kind"),
        ] {
            let mut bad = good.clone();
            bad[at] = value;
            assert_eq!(refused(ziplist(&bad)), reason, "{at} {value}");
        }
        assert_eq!(refused(ziplist(&framed(1, b"\x00\x80\xff\xff\xff\xff", 6))), SHORT);
    }

    /// A blob of a snapshot that Redis 2.4 wrote, then with unused bytes, then with long lengths.
    #[test]
    fn old_servers_zipmaps() {
        let (f1, v1, f2, v2) = (&b"f1"[..], &b"v1"[..], &b"f2"[..], &b"v2"[..]);
        assert_eq!(zipmap(b"\x02\x02f1\x02\x00v1\x02f2\x02\x00v2\xff"), Ok(vec![(f1, v1), (f2, v2)]));
        assert_eq!(zipmap(b"\x02\x02f1\x02\x03v1\xff??\x02f2\x02\x01v2!\xff"), Ok(vec![(f1, v1), (f2, v2)]));
        let long = [b'x'; 300];
        let mut blob = b"\xfe\xfe\x2c\x01\0\0".to_vec();
        blob.extend_from_slice(&long);
        blob.extend_from_slice(b"\x00\x00\x00\x01\x00a\xff");
        assert_eq!(zipmap(&blob), Ok(vec![(&long[..], &b""[..]), (&b""[..], &b"a"[..])]));
        assert_eq!(Zipmap::open(&blob).unwrap().pairs_max(), (305 + 6) / 3);
    }

    #[test]
    fn what_is_no_zipmap_is_refused() {
        for (blob, reason) in [
            (&b""[..], "a zipmap without its ends"),
            (b"\xff", "a zipmap without its ends"),
            (b"\x01\x01f\x01\x00v", "a zipmap without its ends"),
            (b"\x00\xff", "an empty zipmap"),
            (b"\x02\x01f\x01\x00v\xff", "a zipmap with a false count"),
            (b"\x01\x01f\xff", SHORT),
            (b"\x01\x01f\x01\xff", SHORT),
            (b"\x01\x01f\x01\x00\xff", SHORT),
            (b"\x01\x01f\x01\x01v\xff", SHORT),
            (b"\x01\x09f\x01\x00v\xff", SHORT),
            (b"\x01\xfe\xff\xff\xff\xff\x01\x00v\xff", SHORT),
            (b"\x01\xfe\x01\x00\x00\x00f\x01\x00v\xff", "a zipmap length in a needlessly long form"),
            (b"\x01\x01f\x01\x00v\xff\xff", "a zipmap that ends before its end"),
            (b"\x01\x01f\xff\x00\x00\x01\x00\x00v\xff", "a zipmap that ends before its end"),
        ] {
            assert_eq!(refused(zipmap(blob)), reason, "{blob:?}");
        }
    }

    /// Walks hostile bytes; what was handed out lies in the blob, in order and without overlap.
    fn walk(blob: &[u8]) {
        let mut bytes = 0;
        let mut errors = 0;
        for element in Ziplist::open(blob).into_iter().flatten() {
            assert_eq!(errors, 0, "nothing follows an error");
            match element {
                Ok(Element::Bytes(text)) => bytes += text.len() + 2,
                Ok(Element::Integer(_)) => bytes += 2,
                Err(_) => errors += 1,
            }
        }
        assert!(bytes <= blob.len());
        (bytes, errors) = (0, 0);
        for pair in Zipmap::open(blob).into_iter().flatten() {
            assert_eq!(errors, 0, "nothing follows an error");
            match pair {
                Ok((field, value)) => bytes += field.len() + value.len() + 3,
                Err(_) => errors += 1,
            }
        }
        assert!(bytes <= blob.len());
    }

    fn elements() -> impl Strategy<Value = Vec<(Vec<u8>, Option<i64>)>> {
        let number = (any::<i64>(), 0_u32..64).prop_map(|(value, shift)| value >> shift);
        let one = (proptest::collection::vec(any::<u8>(), 0..80), proptest::option::of(number));
        proptest::collection::vec(one, 1..20)
    }

    fn borrowed(elements: &[(Vec<u8>, Option<i64>)]) -> Vec<Element<'_>> {
        elements.iter().map(|(text, number)| number.map_or(Element::Bytes(text), Element::Integer)).collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(800))]

        #[test]
        fn ziplists_are_read_as_written(elements in elements(), long_before in any::<bool>()) {
            let blob = packed(&borrowed(&elements), long_before);
            prop_assert_eq!(ziplist(&blob), Ok(borrowed(&elements)));
            // Each byte of a cut blob is checked, even if its header was mended.
            for end in ZIPLIST_HEADER_BYTES + 1..blob.len() {
                let mut cut = blob[..end].to_vec();
                cut[..4].copy_from_slice(&(end as u32).to_le_bytes());
                cut[end - 1] = END;
                prop_assert!(ziplist(&cut).is_err());
            }
        }

        #[test]
        fn hostile_bytes_do_no_harm(bytes in proptest::collection::vec(prop_oneof![any::<u8>(), 0_u8..6], 0..200)) {
            walk(&bytes);
            let mut framed = framed(COUNT_UNKNOWN, &bytes, 0);
            walk(&framed);
            framed[0] ^= 1;
            walk(&framed);
        }

        #[test]
        fn edits_do_no_harm(
            elements in elements(),
            edits in proptest::collection::vec((any::<proptest::sample::Index>(), any::<u8>()), 1..4),
        ) {
            let mut blob = packed(&borrowed(&elements), false);
            for (at, value) in edits {
                let at = at.index(blob.len());
                blob[at] = value;
                walk(&blob);
            }
        }
    }
}
