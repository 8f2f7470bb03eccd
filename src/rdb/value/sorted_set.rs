//! Sorted sets: members and scores in a listpack, or one by one.
use std::borrow::Cow;
use std::cmp::Ordering;

use super::blob::{self, BYTES_MAX, EMPTY, TWICE, UNEVEN};
use super::{Limits, Loaded, Small};
use crate::base::num;
use crate::ds::listpack::{self, Element, Listpack};
use crate::ds::object::{Object, Packing};
use crate::ds::sorted::SortedTable;
use crate::rdb::{Corrupt, Reader, ValueType};

const NO_SCORE: &str = "a score that is no number";

/// A member with its score.
type Scored<'a> = (f64, Cow<'a, [u8]>);

/// A sorted set in the making.
enum Making<'a> {
    /// Few members so far, in any order.
    Few(Vec<Scored<'a>>),
    Table(SortedTable),
}

fn add(table: &mut SortedTable, member: &[u8], score: f64) -> Result<(), &'static str> {
    if table.insert(member, score).is_none() { Ok(()) } else { Err(TWICE) }
}

fn table_of(mut members: Vec<Scored<'_>>) -> Result<SortedTable, &'static str> {
    members.sort_unstable_by(order);
    let mut table = SortedTable::new();
    members.iter().try_for_each(|(score, member)| add(&mut table, member, *score))?;
    Ok(table)
}

fn order(a: &Scored<'_>, b: &Scored<'_>) -> Ordering {
    // Neither score is NaN.
    a.0.partial_cmp(&b.0).unwrap_or(Ordering::Equal).then_with(|| a.1.cmp(&b.1))
}

/// Appends a score's entry: an integer where it is one, else its shortest text.
fn encode_score(score: f64, entries: &mut Vec<u8>) {
    match num::integer_of(score) {
        Some(integer) => listpack::encode(Element::Int(integer), entries),
        None => listpack::encode(Element::Bytes(&num::f64_text(score)), entries),
    }
}

/// A listpack of the members in their order.
fn pack_of(mut members: Vec<Scored<'_>>) -> Result<Vec<u8>, &'static str> {
    members.sort_unstable_by(order);
    let mut entries = Vec::new();
    for (score, member) in &members {
        listpack::encode(Element::Bytes(member), &mut entries);
        encode_score(*score, &mut entries);
    }
    let stored = blob::listpack_of(&entries, 2 * members.len());
    blob::check_entries(&stored, 2)?;
    Ok(stored)
}

impl<'a> Making<'a> {
    fn add(&mut self, member: Cow<'a, [u8]>, score: f64, limits: &Small) -> Result<(), &'static str> {
        if score.is_nan() {
            return Err(NO_SCORE);
        }
        if let Making::Few(members) = self {
            if members.len() < limits.entries {
                members.push((score, member));
                return Ok(());
            }
            *self = Making::Table(table_of(std::mem::take(members))?);
        }
        if let Making::Table(table) = self { add(table, &member, score) } else { Ok(()) }
    }

    /// `text_bytes`: how long a member of a small one may be.
    fn finish(self, text_bytes: usize) -> Result<Loaded, &'static str> {
        let members = match self {
            Making::Few(members) if members.is_empty() => return Err(EMPTY),
            Making::Few(members) => members,
            Making::Table(table) => return Ok(Loaded::of(Object::SortedSet(table))),
        };
        let (mut longest, mut total) = (0, 0);
        for (_, member) in &members {
            longest = longest.max(member.len());
            total += member.len();
        }
        if longest <= text_bytes && total < BYTES_MAX {
            return Ok(Loaded::Packed(Packing::SortedSet, pack_of(members)?));
        }
        Ok(Loaded::of(Object::SortedSet(table_of(members)?)))
    }
}

/// Reads members and scores one by one.
pub fn read(value_type: ValueType, reader: &mut Reader<'_>, limits: &Limits) -> Result<Loaded, Corrupt> {
    let is_text = value_type == ValueType::Zset;
    let count = reader.count(if is_text { 2 } else { 9 })?;
    let small = &limits.sorted_set;
    let mut making =
        if count <= small.entries { Making::Few(Vec::new()) } else { Making::Table(SortedTable::new()) };
    for _ in 0..count {
        let member = blob::read_element(reader)?;
        let score = if is_text { reader.double_text()? } else { reader.double()? };
        making.add(member, score, small).map_err(|reason| reader.refuse(reason))?;
    }
    making.finish(small.text_bytes).map_err(|reason| reader.refuse(reason))
}

/// The score that an element is.
fn score_of(element: Element<'_>) -> Result<f64, &'static str> {
    match element {
        Element::Int(int) => Ok(int as f64),
        Element::Bytes(text) => num::parse_f64(text).ok_or(NO_SCORE),
    }
}

/// Members and scores of a listpack, which may be in any order.
fn scored(pack: Listpack<'_>) -> impl Iterator<Item = (Element<'_>, Result<f64, &'static str>)> {
    let mut elements = pack.iter().map(|(_, element)| element);
    std::iter::from_fn(move || Some((elements.next()?, score_of(elements.next()?))))
}

/// Whether all scores are numbers; `Ok(true)`: members and scores are in order, too.
fn is_in_order(pack: Listpack<'_>) -> Result<bool, &'static str> {
    let (mut last, mut in_order) = (None, true);
    for (member, score) in scored(pack) {
        let score = score?;
        if let Some((before, above)) = last {
            in_order &= before < score || (before == score && is_before(above, member));
        }
        last = Some((score, member));
    }
    Ok(in_order)
}

fn is_before(a: Element<'_>, b: Element<'_>) -> bool {
    a.with_text(|a| b.with_text(|b| a < b))
}

/// Reads a listpack of members and scores. Only the number of members decides on its form, as in Redis; one that is out
/// of order is put in order.
pub fn read_pack(reader: &mut Reader<'_>, limits: &Limits) -> Result<Loaded, Corrupt> {
    let stored = blob::read_listpack(reader, 2)?;
    of_pack(stored, limits).map_err(|reason| reader.refuse(reason))
}

fn of_pack(stored: Vec<u8>, limits: &Limits) -> Result<Loaded, &'static str> {
    let pack = Listpack::new(&stored);
    let is_small = pack.len() / 2 <= limits.sorted_set.entries;
    if is_in_order(pack)? && is_small {
        return Ok(Loaded::Packed(Packing::SortedSet, stored));
    }
    let text = |element: Element<'_>| Cow::Owned(element.to_vec());
    let members: Result<Vec<Scored<'_>>, &'static str> =
        scored(pack).map(|(member, score)| Ok((score?, text(member)))).collect();
    Ok(if is_small {
        Loaded::Packed(Packing::SortedSet, pack_of(members?)?)
    } else {
        Loaded::of(Object::SortedSet(table_of(members?)?))
    })
}

/// Reads a ziplist of members and scores.
pub fn read_ziplist(reader: &mut Reader<'_>, limits: &Limits) -> Result<Loaded, Corrupt> {
    let blob = blob::read_element(reader)?;
    let (stored, count) = blob::pack_of_ziplist(&blob)?;
    let sound = if count % 2 == 0 { blob::check_entries(&stored, 2) } else { Err(UNEVEN) };
    sound.and_then(|()| of_pack(stored, limits)).map_err(|reason| reader.refuse(reason))
}
