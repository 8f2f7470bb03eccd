//! Sets: integers in a blob, anything else member by member.
use super::blob::{self, BYTES_MAX, EMPTY, TWICE};
use super::{Limits, Loaded};
use crate::base::hash::KeyHash;
use crate::base::num;
use crate::ds::intset::{self, Intset};
use crate::ds::listpack::{self, Element, Listpack};
use crate::ds::object::{Object, Packing};
use crate::ds::table::{Deadline, Layout, PackedTable};
use crate::rdb::{Corrupt, Reader, Writer};

/// Writes an integer set, of which these are the stored bytes.
pub fn write_ints(stored: &[u8], writer: &mut Writer) {
    writer.string(&intset::to_portable(stored));
}

/// Writes the members of a listpack.
pub fn write_pack(stored: &[u8], writer: &mut Writer) {
    let pack = Listpack::new(stored);
    writer.length(pack.len() as u64);
    pack.iter().for_each(|(_, member)| blob::write_element(member, writer));
}

/// A set in the making.
enum Making {
    /// All members so far are integers, and few.
    Ints(Vec<i64>),
    /// Encoded members and their number.
    Pack(Vec<u8>, usize),
    Table(PackedTable),
}

/// Adds a member to a table.
fn add(table: &mut PackedTable, member: &[u8]) -> Result<(), &'static str> {
    let is_new = table.insert(KeyHash::of(member), member, b"", Deadline::Clear);
    if is_new { Ok(()) } else { Err(TWICE) }
}

fn table_of<'e>(
    members: impl Iterator<Item = Element<'e>>,
    capacity: usize,
) -> Result<PackedTable, &'static str> {
    let mut table = PackedTable::with_capacity(Layout::Keys, capacity);
    for member in members {
        member.with_text(|text| add(&mut table, text))?;
    }
    Ok(table)
}

impl Making {
    /// For so many members.
    fn new(count: usize, limits: &Limits) -> Making {
        if count <= limits.ints {
            Making::Ints(Vec::new())
        } else if count <= limits.set.entries {
            Making::Pack(Vec::new(), 0)
        } else {
            Making::Table(PackedTable::with_capacity(Layout::Keys, count))
        }
    }

    /// Makes a listpack of integers, if their texts fit there.
    fn leave_ints(&mut self, count: usize, limits: &Limits) -> Result<(), &'static str> {
        let Making::Ints(ints) = self else { return Ok(()) };
        let longest = ints.iter().map(|int| Element::Int(*int).text_len()).max().unwrap_or(0);
        if ints.len() < limits.set.entries && longest <= limits.set.text_bytes {
            let mut entries = Vec::new();
            ints.iter().for_each(|int| listpack::encode(Element::Int(*int), &mut entries));
            *self = Making::Pack(entries, ints.len());
        } else {
            *self = Making::Table(table_of(ints.iter().map(|int| Element::Int(*int)), count)?);
        }
        Ok(())
    }

    /// Adds a member of `count` in all.
    fn add(&mut self, member: &[u8], count: usize, limits: &Limits) -> Result<(), &'static str> {
        if let Making::Ints(ints) = self {
            if let Some(int) = num::parse_i64(member) {
                ints.push(int);
                return Ok(());
            }
            self.leave_ints(count, limits)?;
        }
        if let Making::Pack(entries, len) = self {
            let fits = *len < limits.set.entries
                && member.len() <= limits.set.text_bytes
                && entries.len() + member.len() < BYTES_MAX;
            if fits {
                listpack::encode(Element::Bytes(member), entries);
                *len += 1;
                return Ok(());
            }
            let stored = blob::listpack_of(entries, *len);
            let members = Listpack::new(&stored).iter().map(|(_, member)| member);
            *self = Making::Table(table_of(members, count)?);
        }
        if let Making::Table(table) = self { add(table, member) } else { Ok(()) }
    }

    fn finish(self) -> Result<Loaded, &'static str> {
        match self {
            Making::Ints(mut ints) => {
                ints.sort_unstable();
                let mut stored = intset::EMPTY.to_vec();
                let distinct = ints.iter().all(|int| intset::add(&mut stored, *int));
                if distinct { Ok(Loaded::Packed(Packing::IntSet, stored)) } else { Err(TWICE) }
            }
            Making::Pack(entries, len) => {
                let stored = blob::listpack_of(&entries, len);
                blob::check_entries(&stored, 1)?;
                Ok(Loaded::Packed(Packing::Set, stored))
            }
            Making::Table(table) => Ok(Loaded::of(Object::Set(table))),
        }
    }
}

/// Reads members one by one.
pub fn read(reader: &mut Reader<'_>, limits: &Limits) -> Result<Loaded, Corrupt> {
    let count = reader.count(1)?;
    if count == 0 {
        return Err(reader.refuse(EMPTY));
    }
    let mut making = Making::new(count, limits);
    for _ in 0..count {
        let member = blob::read_element(reader)?;
        making.add(&member, count, limits).map_err(|reason| reader.refuse(reason))?;
    }
    making.finish().map_err(|reason| reader.refuse(reason))
}

/// Reads an integer set.
pub fn read_ints(reader: &mut Reader<'_>, limits: &Limits) -> Result<Loaded, Corrupt> {
    let start = reader.clone();
    let blob = reader.string()?;
    let stored = intset::from_portable(&blob).ok_or(start.refuse("an unsound integer set"))?;
    let ints = Intset::new(&stored);
    if ints.len() <= limits.ints && stored.len() <= BYTES_MAX {
        return Ok(Loaded::Packed(Packing::IntSet, stored));
    }
    let table = table_of(ints.iter().map(Element::Int), ints.len());
    table.map(|table| Loaded::of(Object::Set(table))).map_err(|reason| start.refuse(reason))
}

/// Reads a listpack of members. However long they are, only their number decides on its form, as in Redis.
pub fn read_pack(reader: &mut Reader<'_>, limits: &Limits) -> Result<Loaded, Corrupt> {
    let stored = blob::read_listpack(reader, 1)?;
    let pack = Listpack::new(&stored);
    if pack.len() <= limits.set.entries {
        return Ok(Loaded::Packed(Packing::Set, stored));
    }
    let table = table_of(pack.iter().map(|(_, member)| member), pack.len());
    table.map(|table| Loaded::of(Object::Set(table))).map_err(|reason| reader.refuse(reason))
}
