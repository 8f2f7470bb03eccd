//! Hashes: fields and values in a listpack, or one by one; with deadlines of fields in one of several ways.
use super::blob::{self, BYTES_MAX, EMPTY, TWICE};
use super::{Limits, Loaded, Small};
use crate::base::hash::KeyHash;
use crate::ds::listpack::{self, Element, HEAD_BYTES, Listpack};
use crate::ds::object::{Object, Packing};
use crate::ds::raw::block::Value;
use crate::ds::table::{Deadline, Layout, PackedTable, Record};
use crate::rdb::{Corrupt, Reader, ValueType, Writer, legacy};

/// The latest deadline that Redis keeps, in milliseconds since the epoch.
pub const DEADLINE_MS_MAX: u64 = (1 << 48) - 2;

const LATE: &str = "a deadline beyond the range of deadlines";

/// A field: name, value, deadline.
type Field<'a> = (Element<'a>, Element<'a>, Option<u64>);

/// The fields of a listpack with deadlines.
fn dated_fields(stored: &[u8]) -> impl Iterator<Item = Field<'_>> {
    let mut elements = Listpack::new(stored).iter().map(|(_, element)| element);
    std::iter::from_fn(move || {
        let (name, value, deadline) = (elements.next()?, elements.next()?, elements.next()?);
        Some((name, value, deadline.to_i64().and_then(|ms| u64::try_from(ms).ok()).filter(|ms| *ms > 0)))
    })
}

/// The type of a hash whose fields may have deadlines.
pub fn type_of(value: Value<'_>) -> ValueType {
    let earliest = match value {
        Value::Packed(_, stored) => dated_fields(stored).next().and_then(|field| field.2),
        Value::Object(Object::Hash(table)) => table.earliest_deadline_ms(),
        _ => None,
    };
    if earliest.is_some() { ValueType::HashMetadata } else { ValueType::Hash }
}

/// Writes a small hash whose fields may have deadlines. Where there are some, the first field has the earliest.
pub fn write_dated(stored: &[u8], writer: &mut Writer) {
    let earliest_ms = dated_fields(stored).next().and_then(|field| field.2);
    write_head(Listpack::new(stored).len() / 3, earliest_ms, writer);
    dated_fields(stored).for_each(|field| write_field(field, earliest_ms, writer));
}

/// Writes what stands before the fields, of which the earliest deadline is `earliest_ms`.
pub fn write_head(count: usize, earliest_ms: Option<u64>, writer: &mut Writer) {
    if let Some(ms) = earliest_ms {
        writer.u64_le(ms);
    }
    writer.length(count as u64);
}

fn write_field((name, value, deadline_ms): Field<'_>, earliest_ms: Option<u64>, writer: &mut Writer) {
    if let Some(earliest_ms) = earliest_ms {
        writer.length(deadline_ms.map_or(0, |ms| ms.saturating_sub(earliest_ms) + 1));
    }
    blob::write_element(name, writer);
    blob::write_element(value, writer);
}

/// Writes a field of a large hash.
pub fn write_record(record: &Record<'_>, earliest_ms: Option<u64>, writer: &mut Writer) {
    let (name, value) = (Element::Bytes(record.key()), Element::Bytes(record.value()));
    write_field((name, value, record.deadline_ms()), earliest_ms, writer);
}

/// A hash in the making.
enum Making {
    Pack(Packed),
    Table(PackedTable),
}

/// A small hash in the making.
#[derive(Default)]
struct Packed {
    /// Encoded names and values.
    entries: Vec<u8>,
    len: usize,
    /// Where each field's entries end and its deadline, in order; empty while no field has one.
    dates: Vec<(u32, u64)>,
}

/// A deadline as it is stored in listpacks.
const NEVER: u64 = 0;

impl Packed {
    fn add(&mut self, name: &[u8], value: &[u8], deadline_ms: Option<u64>) {
        if deadline_ms.is_some() && self.dates.is_empty() {
            let stored = self.pairs();
            let pack = Listpack::new(&stored);
            let ends = std::iter::successors(Some(HEAD_BYTES), |at| Some(pack.skip(*at, 2)));
            self.dates.extend(ends.skip(1).take(self.len).map(|end| ((end - HEAD_BYTES) as u32, NEVER)));
        }
        listpack::encode(Element::Bytes(name), &mut self.entries);
        listpack::encode(Element::Bytes(value), &mut self.entries);
        self.len += 1;
        if deadline_ms.is_some() || !self.dates.is_empty() {
            self.dates.push((self.entries.len() as u32, deadline_ms.unwrap_or(NEVER)));
        }
    }

    /// A listpack of names and values.
    fn pairs(&self) -> Vec<u8> {
        blob::listpack_of(&self.entries, 2 * self.len)
    }

    /// A listpack of names, values and deadlines, the earliest first, those without last.
    fn triples(&self) -> Vec<u8> {
        let mut fields = Vec::with_capacity(self.dates.len());
        let mut start = 0;
        for (end, deadline_ms) in &self.dates {
            fields.push((*deadline_ms, start, *end as usize));
            start = *end as usize;
        }
        fields.sort_by_key(|field| if field.0 == NEVER { u64::MAX } else { field.0 });
        let mut entries = Vec::with_capacity(self.entries.len() + 10 * fields.len());
        for (deadline_ms, start, end) in fields {
            entries.extend_from_slice(&self.entries[start..end]);
            listpack::encode(Element::Int(deadline_ms as i64), &mut entries);
        }
        blob::listpack_of(&entries, 3 * self.len)
    }

    /// Stored bytes, and how they are to be read.
    fn finish(&self) -> Result<(Packing, Vec<u8>), &'static str> {
        let (packing, stored, stride) = if self.dates.is_empty() {
            (Packing::Hash, self.pairs(), 2)
        } else {
            (Packing::HashDeadlines, self.triples(), 3)
        };
        blob::check_entries(&stored, stride)?;
        Ok((packing, stored))
    }
}

fn put(
    table: &mut PackedTable,
    name: &[u8],
    value: &[u8],
    deadline_ms: Option<u64>,
) -> Result<(), &'static str> {
    let deadline = deadline_ms.map_or(Deadline::Clear, Deadline::At);
    if table.insert(KeyHash::of(name), name, value, deadline) { Ok(()) } else { Err(TWICE) }
}

/// A table with room for `capacity` fields.
fn table_of<'a>(
    fields: impl Iterator<Item = Field<'a>>,
    capacity: usize,
) -> Result<PackedTable, &'static str> {
    let mut table = PackedTable::with_capacity(Layout::KeysAndValues, capacity);
    for (name, value, deadline_ms) in fields {
        name.with_text(|name| value.with_text(|value| put(&mut table, name, value, deadline_ms)))?;
    }
    Ok(table)
}

fn pair_fields(stored: &[u8]) -> impl Iterator<Item = Field<'_>> {
    let mut elements = Listpack::new(stored).iter().map(|(_, element)| element);
    std::iter::from_fn(move || Some((elements.next()?, elements.next()?, None)))
}

/// The table of what stored bytes hold.
fn table_of_stored(packing: Packing, stored: &[u8], capacity: usize) -> Result<PackedTable, &'static str> {
    match packing {
        Packing::HashDeadlines => table_of(dated_fields(stored), capacity),
        _ => table_of(pair_fields(stored), capacity),
    }
}

impl Making {
    /// For so many fields, as far as is known.
    fn new(count: usize, limits: &Small) -> Making {
        if count <= limits.entries {
            Making::Pack(Packed::default())
        } else {
            Making::Table(PackedTable::with_capacity(Layout::KeysAndValues, count))
        }
    }

    fn add(
        &mut self,
        (name, value): (&[u8], &[u8]),
        deadline_ms: Option<u64>,
        limits: &Small,
    ) -> Result<(), &'static str> {
        if let Making::Pack(pack) = self {
            let fits = pack.len < limits.entries
                && name.len().max(value.len()) <= limits.text_bytes
                && pack.entries.len() + name.len() + value.len() < BYTES_MAX / 2;
            if fits {
                pack.add(name, value, deadline_ms);
                return Ok(());
            }
            let table = if pack.len == 0 {
                PackedTable::new(Layout::KeysAndValues)
            } else {
                let (packing, stored) = pack.finish()?;
                table_of_stored(packing, &stored, pack.len)?
            };
            *self = Making::Table(table);
        }
        match self {
            Making::Table(table) => put(table, name, value, deadline_ms),
            Making::Pack(_) => Ok(()),
        }
    }

    fn finish(self) -> Result<Loaded, &'static str> {
        match self {
            Making::Pack(pack) => pack.finish().map(|(packing, stored)| Loaded::Packed(packing, stored)),
            Making::Table(table) if table.is_empty() => Err(EMPTY),
            Making::Table(table) => Ok(Loaded::of(Object::Hash(table))),
        }
    }
}

/// Reads `count` fields, one by one; `times` are read before and behind each.
fn read_fields<'a>(
    reader: &mut Reader<'a>,
    limits: &Limits,
    count: usize,
    mut before: impl FnMut(&mut Reader<'a>) -> Result<Option<u64>, Corrupt>,
    mut behind: impl FnMut(&mut Reader<'a>) -> Result<Option<u64>, Corrupt>,
) -> Result<Loaded, Corrupt> {
    let mut making = Making::new(count, &limits.hash);
    for _ in 0..count {
        let early = before(reader)?;
        let name = blob::read_element(reader)?;
        let value = blob::read_element(reader)?;
        let deadline_ms = early.or(behind(reader)?);
        making.add((&name, &value), deadline_ms, &limits.hash).map_err(|reason| reader.refuse(reason))?;
    }
    making.finish().map_err(|reason| reader.refuse(reason))
}

/// Reads fields without deadlines.
pub fn read(reader: &mut Reader<'_>, limits: &Limits) -> Result<Loaded, Corrupt> {
    let count = reader.count(2)?;
    read_fields(reader, limits, count, |_| Ok(None), |_| Ok(None))
}

/// Reads fields with a time before each.
pub fn read_with_times(
    value_type: ValueType,
    reader: &mut Reader<'_>,
    limits: &Limits,
) -> Result<Loaded, Corrupt> {
    // The time that the others count from; for 0, their number is the time itself.
    let base = if value_type == ValueType::HashMetadata { Some(reader.u64_le()?) } else { None };
    let count = reader.count(3)?;
    let time = |reader: &mut Reader<'_>| {
        let start = reader.clone();
        let deadline_ms = match (reader.length()?, base) {
            (0, _) => return Ok(None),
            (time, None) => Some(time),
            (time, Some(base)) => base.checked_add(time - 1),
        };
        match deadline_ms.filter(|ms| *ms <= DEADLINE_MS_MAX) {
            Some(NEVER) => Ok(None),
            Some(ms) => Ok(Some(ms)),
            None => Err(start.refuse(LATE)),
        }
    };
    read_fields(reader, limits, count, time, |_| Ok(None))
}

/// Reads Valkey's fields, a time behind each.
pub fn read_valkey(reader: &mut Reader<'_>, limits: &Limits) -> Result<Loaded, Corrupt> {
    let count = reader.count(10)?;
    let time = |reader: &mut Reader<'_>| {
        let start = reader.clone();
        match reader.time_ms()? {
            -1 => Ok(None),
            // Later than Redis can say is as good as the latest; at the epoch, as just behind it.
            ms @ 0.. => Ok(Some((ms as u64).clamp(1, DEADLINE_MS_MAX))),
            _ => Err(start.refuse("a deadline before the epoch")),
        }
    };
    read_fields(reader, limits, count, |_| Ok(None), time)
}

/// Reads a zipmap of fields and values.
pub fn read_zipmap(reader: &mut Reader<'_>, limits: &Limits) -> Result<Loaded, Corrupt> {
    let blob = blob::read_element(reader)?;
    let mut making = Making::new(0, &limits.hash);
    for pair in legacy::Zipmap::open(&blob)? {
        making.add(pair?, None, &limits.hash).map_err(|reason| reader.refuse(reason))?;
    }
    making.finish().map_err(|reason| reader.refuse(reason))
}

/// Reads a ziplist of fields and values. Only the number of fields decides on its form, as in Redis.
pub fn read_ziplist(reader: &mut Reader<'_>, limits: &Limits) -> Result<Loaded, Corrupt> {
    let blob = blob::read_element(reader)?;
    let small = Small { text_bytes: usize::MAX, ..limits.hash };
    let (mut making, mut name) = (Making::new(0, &small), None);
    let refuse = reader.clone();
    blob::for_each_in_ziplist(&blob, |text| match name.take() {
        None => {
            name = Some(text.to_vec());
            Ok(())
        }
        Some(name) => making.add((&name, text), None, &small).map_err(|reason| refuse.refuse(reason)),
    })?;
    if name.is_some() {
        return Err(reader.refuse(blob::UNEVEN));
    }
    making.finish().map_err(|reason| reader.refuse(reason))
}

/// What stored bytes are. Only the number of fields decides on their form, as in Redis.
fn of_stored(
    packing: Packing,
    stored: Vec<u8>,
    stride: usize,
    limits: &Limits,
) -> Result<Loaded, &'static str> {
    let fields = Listpack::new(&stored).len() / stride;
    if fields <= limits.hash.entries {
        return Ok(Loaded::Packed(packing, stored));
    }
    Ok(Loaded::of(Object::Hash(table_of_stored(packing, &stored, fields)?)))
}

/// Reads a listpack of fields and values.
pub fn read_pack(reader: &mut Reader<'_>, limits: &Limits) -> Result<Loaded, Corrupt> {
    let stored = blob::read_listpack(reader, 2)?;
    of_stored(Packing::Hash, stored, 2, limits).map_err(|reason| reader.refuse(reason))
}

/// Reads a listpack of fields, values and deadlines.
pub fn read_dated(
    value_type: ValueType,
    reader: &mut Reader<'_>,
    limits: &Limits,
) -> Result<Loaded, Corrupt> {
    if value_type == ValueType::HashListpackEx {
        // The earliest deadline stands in the listpack, too.
        reader.time_ms()?;
    }
    let stored = blob::read_listpack(reader, 3)?;
    check_dates(&stored)
        .and_then(|()| of_stored(Packing::HashDeadlines, stored, 3, limits))
        .map_err(|reason| reader.refuse(reason))
}

/// Whether every third element is a deadline, and they are in order.
fn check_dates(stored: &[u8]) -> Result<(), &'static str> {
    let mut last = None;
    for (_, element) in Listpack::new(stored).iter().skip(2).step_by(3) {
        let ms = element.to_i64().and_then(|ms| u64::try_from(ms).ok()).filter(|ms| *ms <= DEADLINE_MS_MAX);
        let ms = ms.ok_or(LATE)?;
        if ms != NEVER && last.is_some_and(|last| last == NEVER || ms < last) {
            return Err("deadlines out of order");
        }
        last = Some(ms);
    }
    Ok(())
}
