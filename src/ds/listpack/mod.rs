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
//!
//! Inside: `entry` elements and their bytes, `edit` the changes, `portable` the form of files. Here: reading.
mod edit;
mod entry;
mod portable;

pub use edit::{
    append_many, insert_before, insert_encoded, insert_many, push_back, push_back_probe, push_front, remove,
    remove_range, replace, replace_many,
};
pub use entry::{Element, Entries, Probe, Sink, encode};
pub use portable::{check, from_portable, to_portable};

use entry::{backlen_bytes, decode, entry_bytes, load};

/// The stored bytes of a listpack without elements.
pub const EMPTY: [u8; HEAD_BYTES] = [0; HEAD_BYTES];

/// Offset of the first entry.
pub const HEAD_BYTES: usize = 2;

/// The count that says no more than "this many or more".
pub const COUNT_BY_WALKING: u16 = u16::MAX;

/// Bytes that the portable form has and the stored one has not: total and end mark.
pub const PORTABLE_EXTRA_BYTES: usize = 5;

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
        // A walk waits for each entry's length in turn; bytes that are nowhere are missed much sooner.
        if self.0.len() >= from + SKIM_BYTES_MIN && !probe.may_be_in(&self.0[from..]) {
            return None;
        }
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
pub fn place(index: i64, len: usize) -> Option<usize> {
    let place = if index < 0 {
        len.checked_sub(usize::try_from(index.unsigned_abs()).ok()?)?
    } else {
        index as usize
    };
    (place < len).then_some(place)
}

#[inline(always)]
fn scan(bytes: &[u8], probe: &Probe<'_>, from: usize, stride: usize) -> Option<usize> {
    let lead = probe.first();
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

/// From so many bytes on it pays to look for an element's last bytes anywhere before walking.
const SKIM_BYTES_MIN: usize = 256;

/// The stored count.
fn count_head(count: usize) -> [u8; HEAD_BYTES] {
    u16::try_from(count).unwrap_or(COUNT_BY_WALKING).to_le_bytes()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::ds::packed::PackedBytes;
    use crate::ds::raw::thin::ThinBytes;

    /// Texts at all limits of encodings, and between.
    fn text() -> impl Strategy<Value = Vec<u8>> {
        let limits: Vec<i64> = [0, 127, 128, 4095, 4096, 0x7FFF, 0x7F_FFFF, 0x7FFF_FFFF, i64::MAX - 2]
            .iter()
            .flat_map(|limit| (-2..=2).flat_map(move |d| [limit + d, -limit + d]))
            .collect();
        let lens = [0_usize, 1, 2, 3, 4, 62, 63, 64, 125, 126, 127, 4095, 4096, 16_377, 16_378, 16_379];
        prop_oneof![
            4 => proptest::sample::select(limits).prop_map(|int| int.to_string().into_bytes()),
            1 => any::<i64>().prop_map(|int| int.to_string().into_bytes()),
            2 => (proptest::sample::select(lens.to_vec()), any::<u8>()).prop_map(|(n, byte)| vec![byte; n]),
            3 => "[ab0-9-]{0,5}".prop_map(String::into_bytes),
            1 => proptest::sample::select(vec!["01", "-0", "+1", " 1", "1 ", "9223372036854775808", "-"])
                .prop_map(|text| text.as_bytes().to_vec()),
        ]
    }

    #[derive(Clone, Debug)]
    enum Step {
        PushBack(Vec<u8>),
        PushFront(Vec<u8>),
        Insert(usize, Vec<u8>),
        InsertMany(usize, Vec<Vec<u8>>),
        AppendMany(Vec<Vec<u8>>),
        Replace(usize, Vec<u8>),
        ReplaceMany(usize, usize, Vec<Vec<u8>>),
        Remove(usize, usize),
        RemoveRange(i64, usize),
    }

    fn step() -> impl Strategy<Value = Step> {
        let texts = || proptest::collection::vec(text(), 0..5);
        let at = || 0_usize..1000;
        prop_oneof![
            text().prop_map(Step::PushBack),
            text().prop_map(Step::PushFront),
            (at(), text()).prop_map(|(at, text)| Step::Insert(at, text)),
            (at(), texts()).prop_map(|(at, texts)| Step::InsertMany(at, texts)),
            texts().prop_map(Step::AppendMany),
            (at(), text()).prop_map(|(at, text)| Step::Replace(at, text)),
            (at(), 0_usize..4, texts()).prop_map(|(at, n, texts)| Step::ReplaceMany(at, n, texts)),
            (at(), 0_usize..4).prop_map(|(at, n)| Step::Remove(at, n)),
            (-20_i64..20, 0_usize..4).prop_map(|(at, n)| Step::RemoveRange(at, n)),
        ]
    }

    fn elements(texts: &[Vec<u8>]) -> impl Iterator<Item = Element<'_>> {
        texts.iter().map(|text| Element::of(text))
    }

    /// Offset of the element at `index`, or the end.
    fn offset(pack: &impl PackedBytes, index: usize) -> usize {
        Listpack::new(pack.bytes()).skip(HEAD_BYTES, index)
    }

    fn apply(step: &Step, pack: &mut impl PackedBytes, model: &mut Vec<Vec<u8>>) {
        let len = model.len();
        match step {
            Step::PushBack(text) => {
                if len.is_multiple_of(2) {
                    push_back(pack, Element::of(text));
                } else {
                    push_back_probe(pack, &Probe::new(text));
                }
                model.push(text.clone());
            }
            Step::PushFront(text) => {
                push_front(pack, Element::of(text));
                model.insert(0, text.clone());
            }
            Step::Insert(at, text) => {
                let at = at % (len + 1);
                // As bytes, even if it is an integer: writing classifies by itself.
                insert_before(pack, offset(pack, at), Element::Bytes(text));
                model.insert(at, text.clone());
            }
            Step::InsertMany(at, texts) => {
                let at = at % (len + 1);
                insert_many(pack, offset(pack, at), elements(texts));
                model.splice(at..at, texts.iter().cloned());
            }
            Step::AppendMany(texts) => {
                append_many(pack, elements(texts));
                model.extend(texts.iter().cloned());
            }
            Step::Replace(at, text) if len > 0 => {
                replace(pack, offset(pack, at % len), Element::of(text));
                model[at % len] = text.clone();
            }
            Step::Replace(..) => {}
            Step::ReplaceMany(at, n, texts) => {
                let at = at % (len + 1);
                replace_many(pack, offset(pack, at), *n, elements(texts));
                model.splice(at..len.min(at + n), texts.iter().cloned());
            }
            Step::Remove(at, n) => {
                let at = at % (len + 1);
                let gone = model.drain(at..len.min(at + n)).count();
                assert_eq!(remove(pack, offset(pack, at), *n), gone);
            }
            Step::RemoveRange(index, n) => {
                let at = if *index < 0 { len as i64 + index } else { *index };
                let gone = match usize::try_from(at) {
                    Ok(at) if at < len => model.drain(at..len.min(at + n)).count(),
                    _ => 0,
                };
                assert_eq!(remove_range(pack, *index, *n), gone);
            }
        }
    }

    fn compare(stored: &[u8], model: &[Vec<u8>]) {
        assert!(check(stored));
        let pack = Listpack::new(stored);
        assert_eq!((pack.len(), pack.is_empty()), (model.len(), model.is_empty()));
        let forth: Vec<_> = pack.iter().collect();
        let mut back: Vec<_> = pack.iter().rev().collect();
        back.reverse();
        assert_eq!(forth, back);
        let texts: Vec<Vec<u8>> = forth.iter().map(|(_, element)| element.to_vec()).collect();
        assert_eq!(texts, model);
        assert_eq!(pack.first(), forth.first().map(|(at, _)| *at));
        assert_eq!(pack.last(), forth.last().map(|(at, _)| *at));
        for (i, (at, element)) in forth.iter().enumerate() {
            assert_eq!(*element, Element::of(&model[i]));
            assert_eq!(element.text_len(), model[i].len());
            assert_eq!(pack.get(*at), *element);
            assert_eq!(pack.nth(i as i64), Some(*at));
            assert_eq!(pack.nth(i as i64 - model.len() as i64), Some(*at));
            assert_eq!(pack.next(*at), forth.get(i + 1).map(|(at, _)| *at));
            assert_eq!(pack.previous(*at), i.checked_sub(1).map(|i| forth[i].0));
            assert_eq!(pack.iter_from(*at).next(), Some((*at, *element)));
            assert_eq!(pack.iter_until(*at).next_back(), i.checked_sub(1).map(|i| forth[i]));
        }
        assert_eq!((pack.nth(model.len() as i64), pack.nth(-(model.len() as i64) - 1)), (None, None));
        let portable = to_portable(stored);
        assert_eq!(portable.len(), pack.portable_bytes());
        assert_eq!(from_portable(&portable).as_deref(), Some(stored));
    }

    fn compare_find(stored: &[u8], model: &[Vec<u8>], needle: &[u8]) {
        let (pack, probe) = (Listpack::new(stored), Probe::new(needle));
        for (stride, start) in [(1, 0), (2, 0), (2, 1), (3, 0), (3, 2), (4, 1)] {
            let wanted = (start..model.len()).step_by(stride).find(|i| model[*i] == needle);
            let from = pack.skip(HEAD_BYTES, start);
            assert_eq!(pack.find(&probe, from, stride), wanted.and_then(|i| pack.nth(i as i64)));
        }
        for (_, element) in pack {
            let equal = element.to_vec() == needle;
            assert_eq!((probe.matches(element), element.equals(needle)), (equal, equal));
        }
    }

    proptest! {
        #[test]
        fn edits_agree_with_a_model(steps in proptest::collection::vec(step(), 1..25), needle in text()) {
            let (mut vec, mut thin) = (EMPTY.to_vec(), ThinBytes::from(&EMPTY[..]));
            let (mut model, mut model_of_thin) = (Vec::new(), Vec::new());
            for step in &steps {
                apply(step, &mut vec, &mut model);
                apply(step, &mut thin, &mut model_of_thin);
                prop_assert_eq!(thin.bytes(), &vec[..]);
                compare(&vec, &model);
            }
            compare_find(&vec, &model, &needle);
            for text in &model {
                compare_find(&vec, &model, text);
            }
        }

        #[test]
        fn near_misses_are_not_found(a in "[a-c]{0,9}", b in "[a-c]{0,9}", x in -300_i64..300, y in -300_i64..300) {
            let model: Vec<Vec<u8>> = vec![a.into_bytes(), x.to_string().into_bytes()];
            let mut pack = EMPTY.to_vec();
            append_many(&mut pack, elements(&model));
            compare_find(&pack, &model, b.as_bytes());
            compare_find(&pack, &model, y.to_string().as_bytes());
        }

        #[test]
        fn hostile_bytes_are_refused_or_sound(
            texts in proptest::collection::vec(text(), 0..6),
            damage in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
            cut in proptest::option::of(any::<prop::sample::Index>()),
            honest_total: bool,
        ) {
            let mut pack = EMPTY.to_vec();
            append_many(&mut pack, elements(&texts));
            let mut portable = to_portable(&pack);
            for (at, byte) in damage {
                let at = at.index(portable.len());
                portable[at] = byte;
            }
            if let Some(cut) = cut {
                portable.truncate(cut.index(portable.len()));
            }
            if honest_total && portable.len() >= 4 {
                let total = portable.len() as u32;
                portable[..4].copy_from_slice(&total.to_le_bytes());
            }
            if let Some(stored) = from_portable(&portable) {
                let texts: Vec<Vec<u8>> = Listpack::new(&stored).iter().map(|(_, e)| e.to_vec()).collect();
                compare(&stored, &texts);
            }
        }

        #[test]
        fn any_bytes_are_refused_or_sound(entries in proptest::collection::vec(any::<u8>(), 0..12), count: u16) {
            let portable = to_portable(&[&count.to_le_bytes()[..], &entries].concat());
            if let Some(stored) = from_portable(&portable) {
                prop_assert!(check(&stored));
            }
        }
    }

    fn hex(text: &str) -> Vec<u8> {
        let digits: Vec<u8> = text.bytes().filter(|b| !b.is_ascii_whitespace()).collect();
        digits.chunks(2).map(|d| u8::from_str_radix(str::from_utf8(d).unwrap(), 16).unwrap()).collect()
    }

    /// From DUMP of Redis 8.0.6.
    const DUMPED: &str = "900000001b0000017f01c08002dfff02cfff02f1001003d00002f1ffef03f1ff7f03f200800004f1008003f2ff \
        7fff04f2ffff7f04f30000800005f200008004f3ffff7fff05f3ffffff7f05f4000000800000000009f3000000 \
        8005f4ffffff7fffffffff09f4ffffffffffffff7f09f40000000000000080098568656c6c6f0682303103822d \
        30038001822b3103ff";

    #[test]
    fn bytes_are_those_of_redis() {
        let texts = [
            "0",
            "127",
            "128",
            "-1",
            "4095",
            "4096",
            "-4096",
            "-4097",
            "32767",
            "32768",
            "-32768",
            "-32769",
            "8388607",
            "8388608",
            "-8388608",
            "-8388609",
            "2147483647",
            "2147483648",
            "-2147483648",
            "-2147483649",
            "9223372036854775807",
            "-9223372036854775808",
            "hello",
            "01",
            "-0",
            "",
            "+1",
        ];
        let mut pack = EMPTY.to_vec();
        append_many(&mut pack, texts.iter().map(|text| Element::of(text.as_bytes())));
        assert_eq!(to_portable(&pack), hex(DUMPED));
        assert_eq!(from_portable(&hex(DUMPED)), Some(pack));
    }

    /// An entry's first and last bytes by the length of its text, as DUMP of Redis 8.0.6 shows them.
    #[test]
    fn long_texts_are_those_of_redis() {
        for (len, lead, length) in [
            (63, "bf", "40"),
            (64, "e040", "42"),
            (4095, "efff", "2081"),
            (4096, "f000100000", "2085"),
            (16_377, "f0f93f0000", "7ffe"),
            (16_378, "f0fa3f0000", "00ffff"),
            (16_379, "f0fb3f0000", "018080"),
            (16_380, "f0fc3f0000", "018081"),
        ] {
            let mut entry = Vec::new();
            encode(Element::of(&vec![b'z'; len]), &mut entry);
            assert_eq!(entry, [hex(lead), vec![b'z'; len], hex(length)].concat());
        }
    }

    fn portable(count: u16, entries: &[u8]) -> Vec<u8> {
        to_portable(&[&count.to_le_bytes()[..], entries].concat())
    }

    #[test]
    fn longer_encodings_are_written_anew() {
        // A text "5"; 5 in sixteen bits; a short text with a length of twelve bits.
        let entries = hex("81 35 02  f1 05 00 03  e0 01 61 03");
        assert_eq!(from_portable(&portable(3, &entries)), Some(hex("0300 05 01 05 01 81 61 02")));
        assert!(!check(&[&hex("0300")[..], &entries].concat()));
        // A length in two bytes where Redis takes three, as Valkey 9 has it.
        let long = [hex("f0fa3f0000"), vec![b'z'; 16_378]].concat();
        let stored = from_portable(&portable(1, &[&long[..], &hex("7fff")].concat()));
        assert_eq!(stored, Some([&hex("0100")[..], &long, &hex("00ffff")].concat()));
        assert_eq!(from_portable(&portable(1, &[&long[..], &hex("7ffe")].concat())), None);
    }

    #[test]
    fn unsound_bytes_are_refused() {
        assert_eq!(from_portable(&hex("07000000 0000 ff")), Some(EMPTY.to_vec()));
        for (bytes, what) in [
            ("", "nothing"),
            ("07000000 0000", "no end"),
            ("08000000 0000 ff", "a total too large"),
            ("06000000 0000 ff", "a total too small"),
            ("07000000 0000 fe", "another end"),
            ("09000000 0200 0501 ff", "a count too large"),
            ("09000000 0000 0501 ff", "a count too small"),
            ("09000000 0100 0502 ff", "a wrong length behind an entry"),
            ("08000000 0100 05 ff", "no length behind an entry"),
            ("0a000000 0100 856102 ff", "a text beyond the end"),
            ("0d000000 0100 f0ffffffff05 ff", "a text far beyond the end"),
            ("09000000 0100 f501 ff", "an encoding that is none"),
            ("09000000 0100 ff01 ff", "an end in the middle"),
            ("0a000000 0100 058100 ff", "a length in too many bytes"),
        ] {
            assert_eq!(from_portable(&hex(bytes)), None, "{what}");
        }
        assert_eq!(from_portable(&hex("09000000 ffff 0501 ff")), Some(hex("0100 0501")));
    }

    #[test]
    fn large_counts_are_found_by_walking() {
        let mut pack = EMPTY.to_vec();
        append_many(&mut pack, (0..65_534).map(|i| Element::Int(i % 100)));
        assert_eq!(pack[..2], [0xFE, 0xFF]);
        for len in 65_535..65_540 {
            push_back(&mut pack, Element::Int(7));
            assert_eq!((Listpack::new(&pack).len(), &pack[..2]), (len, &[0xFF, 0xFF][..]));
        }
        assert!(check(&pack));
        assert_eq!(from_portable(&to_portable(&pack)).as_ref(), Some(&pack));
        assert_eq!(remove(&mut pack, HEAD_BYTES, 4), 4);
        assert_eq!((Listpack::new(&pack).len(), check(&pack)), (65_535, true));
        assert_eq!(remove_range(&mut pack, -1, 1), 1);
        assert_eq!((Listpack::new(&pack).len(), &pack[..2], check(&pack)), (65_534, &[0xFE, 0xFF][..], true));
    }

    #[test]
    fn elements_know_their_texts() {
        for int in [0, 9, 10, -1, -10, i64::MAX, i64::MIN] {
            let text = int.to_string();
            let element = Element::of(text.as_bytes());
            assert_eq!((element, element.to_i64()), (Element::Int(int), Some(int)));
            assert_eq!((element.text_len(), element.to_vec()), (text.len(), text.clone().into_bytes()));
            assert!(element.equals(text.as_bytes()) && !element.equals(b"01"));
        }
        assert_eq!(Element::of(b"-0"), Element::Bytes(b"-0"));
        assert_eq!((Element::of(b"x").to_i64(), Element::of(b"").text_len()), (None, 0));
    }
}
