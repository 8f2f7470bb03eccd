//! A node of a log: some entries in a listpack, the field names that most of them share written once.
//!
//! ```text
//! node   live, deleted, names, name 1 ... name n, 0        then entries
//! entry  flags, ms, seq, value 1 ... value n, pieces       (flag SAME_NAMES: the names are those of the node)
//!        flags, ms, seq, n, name 1, value 1 ..., pieces
//! ```
//! Every word is an element of the listpack. `ms` and `seq` are distances from the node's first id, which is kept
//! beside the node; `pieces` is the number of elements before it in the entry, so that entries can be walked backwards,
//! and the 0 in front of the first entry ends such a walk. These are, byte for byte, the nodes of Redis's stream
//! files.
//!
//! Must stay true ([`check`] verifies it): `live` entries have no DELETED flag, `deleted` ones have it; entries are in
//! the order of their ids; flags fit seven bits, so that setting one moves nothing.
use super::id::StreamId;
use crate::ds::listpack::{self, COUNT_BY_WALKING, Element, HEAD_BYTES, Listpack};
use crate::ds::packed::PackedBytes;
use crate::ds::raw::heap_class;

const DELETED: i64 = 1;
const SAME_NAMES: i64 = 2;
const FLAGS_MAX: i64 = 127;

/// Elements of an entry besides names and values: flags, two distances, pieces.
const ENTRY_EXTRA_PIECES: usize = 4;

/// Names and values in turns.
pub trait Fields<'f>: ExactSizeIterator<Item = &'f [u8]> + Clone {}
impl<'f, T: ExactSizeIterator<Item = &'f [u8]> + Clone> Fields<'f> for T {}

fn number(pack: Listpack<'_>, at: usize) -> i64 {
    pack.get(at).to_i64().unwrap_or(0)
}

/// A node to read.
#[derive(Clone, Copy, Debug)]
pub struct Node<'a> {
    first: StreamId,
    pack: Listpack<'a>,
    /// Number of names.
    names: usize,
    /// Offset of the first name.
    names_at: usize,
}

impl<'a> Node<'a> {
    /// Views a node's bytes; `first` is the id that its distances count from.
    #[inline]
    pub fn new(first: StreamId, bytes: &'a [u8]) -> Node<'a> {
        let pack = Listpack::new(bytes);
        let count_at = pack.skip(HEAD_BYTES, 2);
        Node {
            first,
            pack,
            names: usize::try_from(number(pack, count_at)).unwrap_or(0),
            names_at: pack.skip(count_at, 1),
        }
    }

    /// Entries that are there.
    #[inline]
    pub fn live(self) -> u64 {
        number(self.pack, HEAD_BYTES) as u64
    }

    /// Entries that are marked as deleted.
    #[inline]
    pub fn deleted(self) -> u64 {
        number(self.pack, self.pack.skip(HEAD_BYTES, 1)) as u64
    }

    /// Offset of the first entry, or the end.
    #[inline]
    pub fn entries_at(self) -> usize {
        self.pack.skip(self.names_at, self.names + 1)
    }

    /// The offset behind the last entry.
    #[inline]
    pub fn end(self) -> usize {
        self.pack.end()
    }

    /// The entry at `at`.
    #[inline]
    pub fn entry(self, at: usize) -> Entry<'a> {
        let pack = self.pack;
        let ms_at = pack.skip(at, 1);
        let seq_at = pack.skip(ms_at, 1);
        let rest_at = pack.skip(seq_at, 1);
        let flags = number(pack, at);
        let id = self.first.plus((number(pack, ms_at), number(pack, seq_at)));
        let (names_at, at, left) = if flags & SAME_NAMES != 0 {
            (Some(self.names_at), rest_at, self.names)
        } else {
            let count = usize::try_from(number(pack, rest_at)).unwrap_or(0);
            (None, pack.skip(rest_at, 1), count)
        };
        Entry { id, is_deleted: flags & DELETED != 0, pairs: Pairs { pack, names_at, at, left } }
    }

    /// Offset of what follows an entry.
    #[inline]
    pub fn after(self, entry: &Entry<'a>) -> usize {
        let Pairs { names_at, at, left, .. } = entry.pairs;
        let pieces = if names_at.is_some() { left } else { 2 * left };
        self.pack.skip(at, pieces + 1)
    }

    /// Offset of the entry before `at`, which is that of an entry or the end.
    #[inline]
    pub fn before(self, at: usize) -> Option<usize> {
        let mut at = self.pack.previous(at)?;
        let pieces = number(self.pack, at);
        for _ in 0..pieces {
            at = self.pack.previous(at)?;
        }
        (pieces > 0).then_some(at)
    }

    /// Id of the last entry, deleted or not.
    pub fn last_id(self) -> Option<StreamId> {
        self.before(self.end()).map(|at| self.entry(at).id)
    }

    /// Offset of the entry with this id, and whether it is deleted.
    pub fn find(self, id: StreamId) -> Option<(usize, bool)> {
        let mut at = self.entries_at();
        while at < self.end() {
            let entry = self.entry(at);
            if entry.id >= id {
                return (entry.id == id).then_some((at, entry.is_deleted));
            }
            at = self.after(&entry);
        }
        None
    }

    /// Whether the names among `fields` are those of the node, in the same order.
    fn has_names<'f>(self, fields: impl Fields<'f>) -> bool {
        if fields.len() != 2 * self.names {
            return false;
        }
        let mut at = self.names_at;
        fields.step_by(2).all(|name| {
            let same = self.pack.get(at).equals(name);
            at = self.pack.skip(at, 1);
            same
        })
    }
}

/// An entry to read.
#[derive(Clone, Copy, Debug)]
pub struct Entry<'a> {
    /// Its id.
    pub id: StreamId,
    /// It is marked as deleted; only nodes show such entries.
    pub is_deleted: bool,
    pairs: Pairs<'a>,
}

impl<'a> Entry<'a> {
    /// Its fields: names and values.
    #[inline]
    pub fn pairs(&self) -> Pairs<'a> {
        self.pairs
    }
}

/// Names and values of an entry.
#[derive(Clone, Copy, Debug)]
pub struct Pairs<'a> {
    pack: Listpack<'a>,
    /// Offset of the next name, where names stand apart.
    names_at: Option<usize>,
    at: usize,
    left: usize,
}

/// The element at `at`, which moves behind it.
#[inline]
fn take<'a>(pack: Listpack<'a>, at: &mut usize) -> Element<'a> {
    let element = pack.get(*at);
    *at = pack.skip(*at, 1);
    element
}

impl<'a> Iterator for Pairs<'a> {
    type Item = (Element<'a>, Element<'a>);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        let name = match &mut self.names_at {
            Some(at) => take(self.pack, at),
            None => take(self.pack, &mut self.at),
        };
        Some((name, take(self.pack, &mut self.at)))
    }

    #[inline]
    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl ExactSizeIterator for Pairs<'_> {}

/// Appends elements to a node and counts them.
struct Pieces<'n> {
    node: &'n mut Vec<u8>,
    count: usize,
}

impl<'n> Pieces<'n> {
    /// Makes room for `pieces` elements whose texts have `bytes` bytes: for most, four bytes besides the text are more
    /// than enough. Where there is no room, a quarter of what is there is added, as much as the allocator gives anyway.
    #[inline]
    fn new(node: &'n mut Vec<u8>, pieces: usize, bytes: usize) -> Pieces<'n> {
        let more = 4 * pieces + bytes;
        if node.capacity() - node.len() < more {
            let room = heap_class(node.len() + more + node.len() / 4);
            node.reserve_exact(room - node.len());
        }
        Pieces { node, count: 0 }
    }

    #[inline]
    fn int(&mut self, int: i64) {
        listpack::encode(Element::Int(int), self.node);
        self.count += 1;
    }

    #[inline]
    fn text(&mut self, text: &[u8]) {
        listpack::encode(Element::Bytes(text), self.node);
        self.count += 1;
    }

    /// Has the node's count of elements follow.
    #[inline]
    fn finish(self) {
        let count = u16::from_le_bytes([self.node[0], self.node[1]]);
        let sum = u16::try_from(usize::from(count) + self.count).unwrap_or(COUNT_BY_WALKING);
        self.node[..HEAD_BYTES].copy_from_slice(&sum.to_le_bytes());
    }
}

/// Makes an empty node that has the names among `fields`, in place of whatever `node` was; `bytes`: those of all names
/// and values.
pub fn start<'f>(node: &mut Vec<u8>, fields: impl Fields<'f>, bytes: usize) {
    let names = fields.len() / 2;
    node.clear();
    node.extend_from_slice(&listpack::EMPTY);
    let mut pieces = Pieces::new(node, names + 4, bytes);
    pieces.int(0);
    pieces.int(0);
    pieces.int(names as i64);
    fields.step_by(2).for_each(|name| pieces.text(name));
    pieces.int(0);
    pieces.finish();
}

/// Appends an entry to a node that starts at `first`; `bytes`: those of all names and values.
pub fn push<'f>(node: &mut Vec<u8>, first: StreamId, id: StreamId, fields: impl Fields<'f>, bytes: usize) {
    let view = Node::new(first, node);
    let (live, same) = (view.live(), view.has_names(fields.clone()));
    let (ms, seq) = id.minus(first);
    let mut pieces = Pieces::new(node, fields.len() + ENTRY_EXTRA_PIECES + 1, bytes);
    pieces.int(if same { SAME_NAMES } else { 0 });
    pieces.int(ms);
    pieces.int(seq);
    if same {
        fields.skip(1).step_by(2).for_each(|value| pieces.text(value));
    } else {
        pieces.int(fields.len() as i64 / 2);
        fields.for_each(|text| pieces.text(text));
    }
    pieces.int(pieces.count as i64);
    pieces.finish();
    listpack::replace(node, HEAD_BYTES, Element::Int(live as i64 + 1));
}

/// Marks the entry at `at` as deleted; offsets stay. The counts of the node are the caller's: see [`set_counts`].
pub fn mark_deleted(node: &mut impl PackedBytes, at: usize) {
    let flags = number(Listpack::new(node.bytes()), at);
    listpack::replace(node, at, Element::Int(flags | DELETED));
}

/// Sets how many entries of the node are there and how many are deleted. Offsets may change.
pub fn set_counts(node: &mut impl PackedBytes, live: u64, deleted: u64) {
    let counts = [Element::Int(live as i64), Element::Int(deleted as i64)];
    listpack::replace_many(node, HEAD_BYTES, 2, counts);
}

/// Whether stored bytes of a sound listpack are a node whose entries are at `first` or behind it, in order.
pub fn check(first: StreamId, bytes: &[u8]) -> bool {
    listpack::check(bytes) && check_elements(first, Listpack::new(bytes)).is_some()
}

fn check_elements(first: StreamId, pack: Listpack<'_>) -> Option<()> {
    let mut elements = pack.iter().map(|(_, element)| element);
    let mut left = pack.len();
    let mut take = || -> Option<Element<'_>> {
        left = left.checked_sub(1)?;
        elements.next()
    };
    let (live, deleted) = (take()?.to_i64()?, take()?.to_i64()?);
    let names = usize::try_from(take()?.to_i64()?).ok()?;
    for _ in 0..names {
        take()?;
    }
    if take()?.to_i64()? != 0 {
        return None;
    }
    let (mut counts, mut previous) = ([0, 0], None);
    while let Some(flags) = take() {
        let flags = flags.to_i64().filter(|flags| (0..=FLAGS_MAX).contains(flags))?;
        let id = first.plus((take()?.to_i64()?, take()?.to_i64()?));
        let pieces = if flags & SAME_NAMES != 0 {
            names
        } else {
            usize::try_from(take()?.to_i64()?).ok()?.checked_mul(2)?
        };
        for _ in 0..pieces {
            take()?;
        }
        let own_count = usize::from(flags & SAME_NAMES == 0);
        let said = usize::try_from(take()?.to_i64()?).ok()?;
        if said != pieces + own_count + ENTRY_EXTRA_PIECES - 1
            || id < first
            || previous.is_some_and(|p| p >= id)
        {
            return None;
        }
        previous = Some(id);
        counts[usize::from(flags & DELETED != 0)] += 1;
    }
    (counts == [live, deleted] && previous.is_some()).then_some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(line: &str) -> Vec<&[u8]> {
        line.split(' ').map(str::as_bytes).collect()
    }

    fn node(first: StreamId, entries: &[(StreamId, &str)]) -> Vec<u8> {
        let mut node = Vec::new();
        start(&mut node, fields(entries[0].1).iter().copied(), 0);
        for (id, line) in entries {
            push(&mut node, first, *id, fields(line).iter().copied(), line.len());
        }
        node
    }

    fn listing(first: StreamId, bytes: &[u8]) -> Vec<String> {
        let node = Node::new(first, bytes);
        let mut at = node.entries_at();
        let mut list = Vec::new();
        while at < node.end() {
            let entry = node.entry(at);
            let pairs: Vec<String> = entry
                .pairs()
                .flat_map(|(name, value)| [name, value])
                .map(|element| String::from_utf8(element.to_vec()).unwrap())
                .collect();
            list.push(format!("{}{} {}", if entry.is_deleted { "x" } else { "" }, entry.id, pairs.join(" ")));
            assert_eq!(node.find(entry.id), Some((at, entry.is_deleted)));
            at = node.after(&entry);
        }
        list
    }

    const FIRST: StreamId = StreamId::new(1_000, 5);

    fn sample() -> Vec<u8> {
        let id = StreamId::new;
        node(
            FIRST,
            &[
                (FIRST, "a 1 b xyz"),
                (id(1_000, 6), "a 2 b "),
                (id(1_007, 0), "b 1"),
                (id(9_999, 0), "a -5 b 7"),
            ],
        )
    }

    /// The listpack that DUMP of Redis 8.0.6 has after the same XADDs.
    #[test]
    fn bytes_are_those_of_redis() {
        let want: &[u8] = b"P\0\0\0\x1f\0\x04\x01\x00\x01\x02\x01\x81a\x02\x81b\x02\x00\x01\
            \x02\x01\x00\x01\x00\x01\x01\x01\x83xyz\x04\x05\x01\
            \x02\x01\x00\x01\x01\x01\x02\x01\x80\x01\x05\x01\
            \x00\x01\x07\x01\xdf\xfb\x02\x01\x01\x81b\x02\x01\x01\x06\x01\
            \x02\x01\xf1'#\x03\xdf\xfb\x02\xdf\xfb\x02\x07\x01\x05\x01\xff";
        let bytes = sample();
        assert_eq!(listpack::to_portable(&bytes), want);
        assert!(check(FIRST, &bytes));
        assert_eq!(
            listing(FIRST, &bytes),
            ["1000-5 a 1 b xyz", "1000-6 a 2 b ", "1007-0 b 1", "9999-0 a -5 b 7"]
        );
    }

    #[test]
    fn nodes_are_walked_backwards() {
        let bytes = sample();
        let node = Node::new(FIRST, &bytes);
        let (mut at, mut ids) = (node.end(), Vec::new());
        while let Some(before) = node.before(at) {
            ids.push(node.entry(before).id.to_string());
            at = before;
        }
        assert_eq!(ids, ["9999-0", "1007-0", "1000-6", "1000-5"]);
        assert_eq!(node.last_id(), Some(StreamId::new(9_999, 0)));
        assert_eq!(node.find(StreamId::new(1_007, 1)), None);
    }

    #[test]
    fn entries_are_marked_and_counted() {
        let mut bytes = sample();
        let (at, _) = Node::new(FIRST, &bytes).find(StreamId::new(1_007, 0)).unwrap();
        mark_deleted(&mut bytes, at);
        assert!(!check(FIRST, &bytes), "the counts say otherwise");
        set_counts(&mut bytes, 3, 1);
        assert!(check(FIRST, &bytes));
        let node = Node::new(FIRST, &bytes);
        assert_eq!((node.live(), node.deleted()), (3, 1));
        assert_eq!(listing(FIRST, &bytes)[2], "x1007-0 b 1");
        let many: Vec<(StreamId, &str)> = (0..300).map(|n| (StreamId::new(1_000, 5 + n), "a b")).collect();
        let mut bytes = self::node(FIRST, &many);
        assert!(check(FIRST, &bytes));
        for n in 0..200 {
            let (at, deleted) = Node::new(FIRST, &bytes).find(StreamId::new(1_000, 5 + n)).unwrap();
            assert!(!deleted);
            mark_deleted(&mut bytes, at);
            set_counts(&mut bytes, 299 - n, 1 + n);
            assert!(check(FIRST, &bytes));
        }
    }

    #[test]
    fn bad_nodes_are_told() {
        let good = sample();
        assert!(!check(StreamId::new(u64::MAX, 0), &good), "ids run over the end");
        let elements: Vec<Element<'_>> = Listpack::new(&good).iter().map(|(_, element)| element).collect();
        let with = |at: usize, element: Element<'static>| {
            let mut bytes = listpack::EMPTY.to_vec();
            let changed = elements.iter().enumerate().map(|(i, e)| if i == at { element } else { *e });
            listpack::append_many(&mut bytes, changed);
            bytes
        };
        assert!(check(FIRST, &with(4, Element::Bytes(b"name"))));
        // Counts, number of names, end of the names, flags, distances, pieces of the first entry.
        for (at, element) in
            [(0, 5), (1, 1), (2, 3), (5, 1), (6, 128), (6, 0), (8, -6), (8, 2), (11, 6), (11, 0)]
        {
            assert!(!check(FIRST, &with(at, Element::Int(element))), "{at} {element}");
        }
        for cut in 0..good.len() {
            assert!(!check(FIRST, &good[..cut]));
        }
    }
}
