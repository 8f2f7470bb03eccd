//! What several kinds of values share: elements, packed blobs inside a string, the search for elements that stand there
//! twice.
use std::borrow::Cow;

use crate::ds::listpack::{self, Element, HEAD_BYTES, Listpack};
use crate::rdb::{Corrupt, Reader, Writer, legacy};

/// Refusal of a container without elements.
pub const EMPTY: &str = "a value without elements";
/// Refusal of a member or field that stands there twice.
pub const TWICE: &str = "an element that stands there twice";
/// Refusal of elements that should come in pairs or triples, and do not.
pub const UNEVEN: &str = "a packed value that ends within an entry";

/// Bytes that an element of a container or a packed blob may have. Servers keep their blobs below that, too.
pub const BYTES_MAX: usize = 1 << 30;

/// Writes an element as a string.
pub fn write_element(element: Element<'_>, writer: &mut Writer) {
    match element {
        Element::Bytes(text) => writer.string(text),
        Element::Int(int) => writer.integer(int),
    }
}

/// Writes a listpack, of which these are the stored bytes, as a string.
pub fn write_listpack(stored: &[u8], writer: &mut Writer) {
    writer.string(&listpack::to_portable(stored));
}

/// Reads a string that is an element of a container, or a packed blob.
pub fn read_element<'a>(reader: &mut Reader<'a>) -> Result<Cow<'a, [u8]>, Corrupt> {
    let start = reader.clone();
    let text = reader.string()?;
    if text.len() > BYTES_MAX {
        return Err(start.refuse("a part of a value beyond a gigabyte"));
    }
    Ok(text)
}

/// Reads a string that holds a listpack: its stored bytes. It may be empty.
pub fn read_any_listpack(reader: &mut Reader<'_>) -> Result<Vec<u8>, Corrupt> {
    let start = reader.clone();
    let blob = read_element(reader)?;
    let stored = listpack::from_portable(&blob).ok_or(start.refuse("an unsound listpack"))?;
    // Entries that were written anew may have grown.
    if stored.len() > BYTES_MAX {
        return Err(start.refuse("a listpack beyond a gigabyte"));
    }
    Ok(stored)
}

/// Reads a string that holds a listpack of entries of `stride` elements each, no two of which begin with the same.
pub fn read_listpack(reader: &mut Reader<'_>, stride: usize) -> Result<Vec<u8>, Corrupt> {
    let start = reader.clone();
    let stored = read_any_listpack(reader)?;
    check_entries(&stored, stride).map_err(|reason| start.refuse(reason))?;
    Ok(stored)
}

/// Whether a listpack has entries of `stride` elements each, no two of which begin with the same.
pub fn check_entries(stored: &[u8], stride: usize) -> Result<(), &'static str> {
    let pack = Listpack::new(stored);
    match pack.len() {
        0 => Err(EMPTY),
        len if len % stride != 0 => Err(UNEVEN),
        _ if has_twins(pack, stride) => Err(TWICE),
        _ => Ok(()),
    }
}

/// Whether two of the elements that begin an entry are the same. Sorts where they lie, so that many elements with an
/// evil choice of texts take no longer than others.
fn has_twins(pack: Listpack<'_>, stride: usize) -> bool {
    let bytes = pack.bytes();
    let mut spans = Vec::with_capacity(pack.len() / stride);
    let mut at = HEAD_BYTES;
    while at < pack.end() {
        let end = pack.skip(at, 1);
        // Listpacks are shorter than 4 GiB.
        spans.push((at as u32, end as u32));
        at = pack.skip(end, stride - 1);
    }
    // Equal elements have equal entries.
    let entry = |span: &(u32, u32)| &bytes[span.0 as usize..span.1 as usize];
    spans.sort_unstable_by(|a, b| entry(a).cmp(entry(b)));
    spans.windows(2).any(|pair| entry(&pair[0]) == entry(&pair[1]))
}

/// Stored bytes of a listpack out of `count` encoded entries.
pub fn listpack_of(entries: &[u8], count: usize) -> Vec<u8> {
    let mut stored = Vec::with_capacity(HEAD_BYTES + entries.len());
    stored.extend_from_slice(&listpack::EMPTY);
    listpack::insert_encoded(&mut stored, HEAD_BYTES, entries, count);
    stored
}

/// Calls `f` with the text of each element of an old server's packed blob.
pub fn for_each_in_ziplist(
    blob: &[u8],
    mut f: impl FnMut(&[u8]) -> Result<(), Corrupt>,
) -> Result<(), Corrupt> {
    for element in legacy::Ziplist::open(blob)? {
        match element? {
            legacy::Element::Bytes(text) => f(text)?,
            legacy::Element::Integer(int) => f(itoa::Buffer::new().format(int).as_bytes())?,
        }
    }
    Ok(())
}

/// The elements of an old server's packed blob as the stored bytes of a listpack, and their number.
pub fn pack_of_ziplist(blob: &[u8]) -> Result<(Vec<u8>, usize), Corrupt> {
    let (mut entries, mut count) = (Vec::new(), 0);
    for_each_in_ziplist(blob, |text| {
        listpack::encode(Element::Bytes(text), &mut entries);
        count += 1;
        Ok(())
    })?;
    Ok((listpack_of(&entries, count), count))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn twins_are_found() {
        let pack = |texts: &[&str]| {
            let mut stored = listpack::EMPTY.to_vec();
            listpack::append_many(&mut stored, texts.iter().map(|text| Element::of(text.as_bytes())));
            stored
        };
        let check = |texts: &[&str], stride| check_entries(&pack(texts), stride);
        assert_eq!(check(&[], 1), Err(EMPTY));
        assert_eq!(check(&["a", "b", "1", "01"], 1), Ok(()));
        assert_eq!(check(&["a", "b", "a"], 1), Err(TWICE));
        assert_eq!(check(&["300", "b", "300"], 1), Err(TWICE));
        assert_eq!(check(&["a", "b", "c"], 2), Err(UNEVEN));
        assert_eq!(check(&["a", "x", "b", "x", "x", "a"], 2), Ok(()));
        assert_eq!(check(&["a", "x", "b", "x", "a", "y"], 2), Err(TWICE));
        assert_eq!(check(&["a", "x", "0", "b", "x", "0"], 3), Ok(()));
        assert_eq!(check(&["a", "x", "0", "a", "x", "0"], 3), Err(TWICE));
    }
}
