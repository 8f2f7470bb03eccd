//! One node of a long list: a listpack of some elements, or one large element by itself; compressed or not.
//!
//! Must stay true: the count is that of the elements, and never 0 while the node is in a list; a plain node is never
//! empty; compressed bytes are `[length before u32][LZF]`.
use super::super::listpack::{self, Listpack};
use super::super::lzf;
use super::super::packed::PackedBytes;
use super::super::raw::thin::ThinBytes;

/// Nodes below this are not worth compressing.
const COMPRESS_BYTES_MIN: usize = 48;
/// What compression must save at least.
const SAVED_BYTES_MIN: usize = 8;
/// Bytes in front of compressed ones.
const LENGTH_BYTES: usize = 4;
/// What the smallest of the size limits allows.
const LEVEL_BYTES: usize = 4096;
/// The size limit where elements are counted.
const COUNTED_BYTES_MAX: usize = 8192;
/// An entry takes at most so much more than its text, as far as it matters.
const ENTRY_EXTRA_BYTES: usize = 8;

/// How large a node may be: from -1 to -5 for 4 to 64 kilobytes, from 0 on for so many elements (and 8 kilobytes).
/// Bytes are those of the listpack's portable form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit(i16);

impl Default for Limit {
    fn default() -> Limit {
        Limit(-2)
    }
}

impl Limit {
    /// From the number that stands for it; any number is one.
    pub fn new(number: i64) -> Limit {
        Limit(number.clamp(-5, i64::from(i16::MAX)) as i16)
    }

    /// The number that stands for it.
    pub fn number(self) -> i64 {
        i64::from(self.0)
    }

    fn bytes_max(self) -> usize {
        if self.0 < 0 { LEVEL_BYTES << (-1 - self.0) } else { COUNTED_BYTES_MAX }
    }

    fn entries_max(self) -> usize {
        if self.0 < 0 { usize::MAX } else { self.0.max(1) as usize }
    }

    /// Whether so many bytes in so many elements are too much for one listpack.
    #[inline]
    pub fn is_exceeded(self, portable_bytes: usize, entries: usize) -> bool {
        portable_bytes > self.bytes_max() || entries > self.entries_max()
    }

    /// Whether so many bytes in so many elements are at most half of what is allowed. Where elements are counted, bytes
    /// do not matter.
    pub fn is_half_free(self, portable_bytes: usize, entries: usize) -> bool {
        if self.0 < 0 { portable_bytes <= self.bytes_max() / 2 } else { entries <= self.entries_max() / 2 }
    }

    /// Whether a text is too long to share a node with others.
    #[inline]
    pub fn is_large(self, text_bytes: usize) -> bool {
        text_bytes > self.bytes_max()
    }
}

/// The node.
#[derive(Clone, Debug)]
pub(super) struct Node {
    bytes: ThinBytes,
    count: u32,
    plain: bool,
    compressed: bool,
}

/// The contents of a node to read.
#[derive(Clone, Copy)]
pub(super) enum View<'a> {
    Packed(Listpack<'a>),
    Plain(&'a [u8]),
}

impl Node {
    /// A listpack; the bytes are its stored ones.
    pub fn packed(stored: &[u8]) -> Node {
        let count = Listpack::new(stored).len() as u32;
        Node { bytes: stored.into(), count, plain: false, compressed: false }
    }

    /// A listpack of this one element.
    pub fn of(text: &[u8]) -> Node {
        let mut node = Node::packed(&listpack::EMPTY);
        node.insert(listpack::HEAD_BYTES, text);
        node
    }

    /// A large element by itself.
    pub fn plain(text: &[u8]) -> Node {
        debug_assert!(!text.is_empty(), "a large text is not empty");
        Node { bytes: text.into(), count: 1, plain: true, compressed: false }
    }

    /// Number of elements.
    #[inline]
    pub fn count(&self) -> usize {
        self.count as usize
    }

    pub fn is_plain(&self) -> bool {
        self.plain
    }

    pub fn is_compressed(&self) -> bool {
        self.compressed
    }

    pub fn heap_bytes(&self) -> usize {
        self.bytes.heap_bytes()
    }

    /// Bytes of the uncompressed contents.
    fn open_bytes(&self) -> usize {
        match self.bytes.bytes().first_chunk::<LENGTH_BYTES>() {
            Some(length) if self.compressed => u32::from_le_bytes(*length) as usize,
            _ => self.bytes.len(),
        }
    }

    /// Bytes that size limits count.
    pub fn portable_bytes(&self) -> usize {
        self.open_bytes() + if self.plain { 0 } else { listpack::PORTABLE_EXTRA_BYTES }
    }

    /// Whether another text of so many bytes has room here.
    #[inline]
    pub fn allows(&self, text_bytes: usize, limit: Limit) -> bool {
        !self.plain
            && !limit.is_large(text_bytes)
            && !limit.is_exceeded(self.portable_bytes() + text_bytes + ENTRY_EXTRA_BYTES, self.count() + 1)
    }

    /// Whether the node behind this one may join it.
    pub fn allows_merge(&self, next: &Node, limit: Limit) -> bool {
        // One head and end mark, and a byte more, goes.
        let bytes = (self.portable_bytes() + next.portable_bytes()).saturating_sub(7);
        !self.plain && !next.plain && !limit.is_exceeded(bytes, self.count() + next.count())
    }

    /// The contents. Those of a compressed node are written to `scratch`, which is left alone otherwise.
    #[inline]
    pub fn view<'a>(&'a self, scratch: &'a mut Vec<u8>) -> View<'a> {
        let bytes = if self.compressed {
            *scratch = self.decompressed();
            &scratch[..]
        } else {
            self.bytes.bytes()
        };
        if self.plain { View::Plain(bytes) } else { View::Packed(Listpack::new(bytes)) }
    }

    fn decompressed(&self) -> Vec<u8> {
        let packed = self.bytes.bytes().get(LENGTH_BYTES..).unwrap_or_default();
        lzf::decompress(packed, self.open_bytes()).expect("a node holds what was compressed")
    }

    /// Undoes [`Node::compress`].
    pub fn open(&mut self) {
        if self.compressed {
            self.bytes = self.decompressed().as_slice().into();
            self.compressed = false;
        }
    }

    /// Compresses the contents, if they are large enough and something is saved.
    pub fn compress(&mut self) {
        let open_bytes = self.bytes.len();
        if self.compressed || self.portable_bytes() < COMPRESS_BYTES_MIN {
            return;
        }
        let mut squeezed = (open_bytes as u32).to_le_bytes().to_vec();
        if lzf::compress_into(self.bytes.bytes(), &mut squeezed)
            && squeezed.len() - LENGTH_BYTES + SAVED_BYTES_MIN < open_bytes
        {
            self.bytes = squeezed.as_slice().into();
            self.compressed = true;
        }
    }

    /// The listpack of an open node that is not plain.
    #[inline]
    pub fn pack(&self) -> Listpack<'_> {
        debug_assert!(!self.plain && !self.compressed, "only a listpack's elements have places");
        Listpack::new(self.bytes.bytes())
    }

    /// Offset of the element at `index` of an open node that is not plain; the end when there is none.
    pub fn offset(&self, index: usize) -> usize {
        self.pack().nth(index as i64).unwrap_or(self.pack().end())
    }

    /// Puts an element before the one at `offset`, which may be the end.
    #[inline]
    pub fn insert(&mut self, offset: usize, text: &[u8]) {
        listpack::insert_before(&mut self.bytes, offset, listpack::Element::Bytes(text));
        self.count += 1;
    }

    /// Appends an element.
    #[inline]
    pub fn push_back(&mut self, text: &[u8]) {
        self.insert(self.bytes.len(), text);
    }

    /// Puts another element in the place of the one at `offset`.
    pub fn replace(&mut self, offset: usize, text: &[u8]) {
        listpack::replace(&mut self.bytes, offset, listpack::Element::Bytes(text));
    }

    /// Takes out `n` elements at `offset`.
    #[inline]
    pub fn remove(&mut self, offset: usize, n: usize) {
        self.count -= listpack::remove(&mut self.bytes, offset, n) as u32;
    }

    /// Puts other elements in the place of all.
    pub fn refill(&mut self, entries: &[u8], count: usize) {
        let mut stored = ThinBytes::from(&listpack::EMPTY[..]);
        listpack::insert_encoded(&mut stored, listpack::HEAD_BYTES, entries, count);
        self.bytes = stored;
        self.count = count as u32;
    }

    /// Takes out everything.
    pub fn clear(&mut self) {
        *self = Node { bytes: ThinBytes::new(), count: 0, plain: true, compressed: false };
    }

    /// Leaves the first `index` elements here and returns the others.
    pub fn split_off(&mut self, index: usize) -> Node {
        let offset = self.offset(index);
        let rest = self.count() - index;
        let mut behind = Node::packed(&listpack::EMPTY);
        behind.refill(&self.bytes.bytes()[offset..], rest);
        self.remove(offset, rest);
        behind
    }

    /// Appends the elements of another open node.
    pub fn append(&mut self, next: &Node) {
        let entries = &next.bytes.bytes()[listpack::HEAD_BYTES..];
        let end = self.bytes.len();
        listpack::insert_encoded(&mut self.bytes, end, entries, next.count());
        self.count += next.count;
    }

    /// Whether everything that must stay true is true.
    #[cfg(test)]
    pub fn check(&self) -> bool {
        let mut scratch = Vec::new();
        match self.view(&mut scratch) {
            View::Plain(text) => self.count == 1 && !text.is_empty(),
            View::Packed(pack) => {
                listpack::check(pack.bytes()) && pack.len() == self.count() && self.count > 0
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits() {
        let bytes =
            [(-1, 4096), (-2, 8192), (-3, 16_384), (-4, 32_768), (-5, 65_536), (-6, 65_536), (3, 8192)];
        for (number, max) in bytes {
            let limit = Limit::new(number);
            assert!(!limit.is_exceeded(max, 1) && limit.is_exceeded(max + 1, 1), "{number}");
            assert!(!limit.is_large(max) && limit.is_large(max + 1), "{number}");
        }
        assert!(!Limit::new(-1).is_exceeded(4096, 4000));
        assert!(!Limit::new(3).is_exceeded(10, 3) && Limit::new(3).is_exceeded(10, 4));
        assert!(!Limit::new(0).is_exceeded(10, 1) && Limit::new(0).is_exceeded(10, 2));
        assert!(Limit::new(-1).is_half_free(2048, 4000) && !Limit::new(-1).is_half_free(2049, 1));
        assert!(Limit::new(5).is_half_free(9000, 2) && !Limit::new(5).is_half_free(10, 3));
        assert!(!Limit::new(1).is_half_free(7, 1));
        assert_eq!(Limit::new(i64::MIN).number(), -5);
        assert_eq!(Limit::new(i64::MAX).number(), 32_767);
    }

    #[test]
    fn compression_is_undone_and_pays() {
        let mut text = Node::plain(&[b'x'; 5000]);
        text.compress();
        assert!(
            text.is_compressed() && text.heap_bytes() < 200 && text.portable_bytes() == 5000 && text.check()
        );
        let mut scratch = Vec::new();
        assert!(matches!(text.view(&mut scratch), View::Plain(bytes) if bytes == [b'x'; 5000]));
        text.open();
        assert!(!text.is_compressed() && text.check());
        let mut small = Node::of(&[b'x'; 30]);
        small.compress();
        assert!(!small.is_compressed());
    }

    #[test]
    fn nodes_are_split_and_joined() {
        let mut node = Node::of(b"a");
        (0..5).for_each(|n| node.push_back(n.to_string().as_bytes()));
        let behind = node.split_off(2);
        assert_eq!((node.count(), behind.count()), (2, 4));
        assert!(node.check() && behind.check());
        assert!(node.allows_merge(&behind, Limit::new(6)) && !node.allows_merge(&behind, Limit::new(5)));
        node.append(&behind);
        let texts: Vec<Vec<u8>> = node.pack().iter().map(|(_, element)| element.to_vec()).collect();
        assert_eq!(texts, [b"a", b"0", b"1", b"2", b"3", b"4"].map(|text| text.to_vec()));
        assert!(node.check());
    }
}
