//! Edits of stored bytes: each is one splice, and keeps the count.
use super::entry::{Element, Entries, Probe, encode, encode_probe, entry_bytes, load};
use super::{COUNT_BY_WALKING, HEAD_BYTES, Listpack, count_head};
use crate::ds::packed::PackedBytes;

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
        COUNT_BY_WALKING => Listpack::new(pack.bytes()).count_by_walking(),
        count => usize::from(count) + added - removed,
    };
    pack.bytes_mut()[..HEAD_BYTES].copy_from_slice(&count_head(count));
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

/// Appends the element that was looked for.
#[inline]
pub fn push_back_probe(pack: &mut impl PackedBytes, probe: &Probe<'_>) {
    let end = pack.bytes().len();
    let mut entry = Entries::new();
    encode_probe(probe, &mut entry);
    change(pack, end, (0, 0), (&entry, 1));
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
    // Counters and flags: a small integer in the place of another.
    if let (Element::Int(int @ 0..=127), Some(0..=127)) = (element, pack.bytes().get(offset)) {
        pack.bytes_mut()[offset] = int as u8;
        return;
    }
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
