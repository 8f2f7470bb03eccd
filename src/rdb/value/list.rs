//! Lists: nodes of elements, as they are in memory.
use super::blob::{self, EMPTY};
use super::{Limits, Loaded};
use crate::ds::list::{NodeBytes, Quicklist, Side};
use crate::ds::listpack::Listpack;
use crate::ds::object::{Object, Packing};
use crate::rdb::{Corrupt, Reader, ValueType, Writer};

/// The kind of a node that is one element by itself.
const PLAIN: u64 = 1;
/// The kind of a node that is a listpack.
const PACKED: u64 = 2;

/// Writes a short list: one node.
pub fn write_pack(stored: &[u8], writer: &mut Writer) {
    writer.length(1);
    write_node(NodeBytes::Packed(stored), writer);
}

/// Writes a node of a long list, behind their number.
pub fn write_node(node: NodeBytes<'_>, writer: &mut Writer) {
    match node {
        NodeBytes::Packed(stored) => {
            writer.length(PACKED);
            blob::write_listpack(stored, writer);
        }
        NodeBytes::Plain(text) => {
            writer.length(PLAIN);
            writer.string(text);
        }
    }
}

fn new(limits: &Limits) -> Quicklist {
    Quicklist::new(limits.list, limits.list_depth)
}

/// The list in the form that it is to have.
fn finish(list: Quicklist, limits: &Limits) -> Result<Loaded, &'static str> {
    if list.is_empty() {
        return Err(EMPTY);
    }
    let small = list.sole_pack().filter(|pack| !limits.list.is_exceeded(pack.portable_bytes(), pack.len()));
    Ok(match small {
        Some(pack) => Loaded::Packed(Packing::List, pack.bytes().to_vec()),
        None => Loaded::of(Object::List(list)),
    })
}

/// Reads elements one by one.
pub fn read_plain(reader: &mut Reader<'_>, limits: &Limits) -> Result<Loaded, Corrupt> {
    let mut list = new(limits);
    for _ in 0..reader.count(1)? {
        list.push(Side::Back, &blob::read_element(reader)?);
    }
    finish(list, limits).map_err(|reason| reader.refuse(reason))
}

/// Reads a ziplist of elements. It stays in the long form until it changes, as in Redis.
pub fn read_ziplist(reader: &mut Reader<'_>, limits: &Limits) -> Result<Loaded, Corrupt> {
    let mut list = new(limits);
    let blob = blob::read_element(reader)?;
    blob::for_each_in_ziplist(&blob, |text| {
        list.push(Side::Back, text);
        Ok(())
    })?;
    if list.is_empty() { Err(reader.refuse(EMPTY)) } else { Ok(Loaded::of(Object::List(list))) }
}

/// Reads nodes. Those without elements, which old servers left behind, are passed over.
pub fn read_nodes(
    value_type: ValueType,
    reader: &mut Reader<'_>,
    limits: &Limits,
) -> Result<Loaded, Corrupt> {
    let has_kinds = value_type == ValueType::ListQuicklist2;
    let mut list = new(limits);
    for _ in 0..reader.count(if has_kinds { 2 } else { 1 })? {
        if !has_kinds {
            read_old_node(&mut list, reader)?;
            continue;
        }
        match reader.length()? {
            PACKED => list.append_pack(&blob::read_any_listpack(reader)?),
            PLAIN => {
                let text = blob::read_element(reader)?;
                if text.is_empty() {
                    return Err(reader.refuse("a large element without bytes"));
                }
                list.append_plain(&text);
            }
            _ => return Err(reader.refuse("a node of an unknown kind")),
        }
    }
    finish(list, limits).map_err(|reason| reader.refuse(reason))
}

fn read_old_node(list: &mut Quicklist, reader: &mut Reader<'_>) -> Result<(), Corrupt> {
    let blob = blob::read_element(reader)?;
    let (stored, count) = blob::pack_of_ziplist(&blob)?;
    debug_assert_eq!(Listpack::new(&stored).len(), count);
    list.append_pack(&stored);
    Ok(())
}
