//! A sorted set made as a whole, to be stored under a key.
//!
//! Must stay true: the forms that it goes through are those of Redis, for a small set has no minus zero, and a large one
//! made of it has none either.
use super::algebra::Scored;
use super::{Limits, SortedSetRef, pack};
use crate::ds::listpack::{self, Element, Listpack};
use crate::ds::object::{Object, Packing};
use crate::ds::raw::block::NewValue;
use crate::ds::sorted::SortedTable;

/// A sorted set that is no key's yet: small while it fits the limits.
#[derive(Debug)]
pub struct NewSortedSet {
    limits: Limits,
    form: Form,
}

#[derive(Debug)]
enum Form {
    Pack(Vec<u8>),
    Table(SortedTable),
}

impl NewSortedSet {
    /// Without members. It is large from the beginning if `expected` members would not fit.
    pub fn new(limits: Limits, expected: usize) -> NewSortedSet {
        let large = expected > limits.entries;
        let form = if large { Form::Table(SortedTable::new()) } else { Form::Pack(listpack::EMPTY.to_vec()) };
        NewSortedSet { limits, form }
    }

    /// With these members, all different, in their order.
    pub fn of(members: &Scored<'_>, limits: Limits) -> NewSortedSet {
        let fits = members.iter().all(|(member, _)| member.text_len() <= limits.value_bytes);
        let mut set = NewSortedSet::new(limits, if fits { members.len() } else { usize::MAX });
        members.iter().for_each(|(member, score)| set.push(*member, *score));
        set
    }

    /// Appends a member. All come once, in their order.
    pub fn push(&mut self, member: Element<'_>, score: f64) {
        let Form::Pack(stored) = &mut self.form else { return self.push_to_table(member, score) };
        let count = pack::len(Listpack::new(stored));
        if !self.limits.fit(count, stored.len(), member.text_len()) {
            self.form = Form::Table(table_of(Listpack::new(stored)));
            return self.push_to_table(member, score);
        }
        let at = stored.len();
        let mut entries = listpack::Entries::new();
        pack::encode_pair(member, score, &mut entries);
        listpack::insert_encoded(stored, at, &entries, 2);
    }

    fn push_to_table(&mut self, member: Element<'_>, score: f64) {
        if let Form::Table(table) = &mut self.form {
            member.with_text(|text| table.insert(text, score));
        }
    }

    /// What it has so far.
    pub fn view(&self) -> SortedSetRef<'_> {
        match &self.form {
            Form::Pack(stored) => SortedSetRef::Pack(Listpack::new(stored)),
            Form::Table(table) => SortedSetRef::Table(table),
        }
    }

    /// Hands it to `put` as a value.
    pub fn store<R>(self, put: impl FnOnce(NewValue<'_>) -> R) -> R {
        match self.form {
            Form::Pack(stored) => put(NewValue::Packed(Packing::SortedSet, &stored)),
            Form::Table(table) => put(NewValue::Object(Box::new(Object::SortedSet(table)))),
        }
    }
}

/// The large form of a small set.
pub(super) fn table_of(pack: Listpack<'_>) -> SortedTable {
    let mut table = SortedTable::new();
    for (_, member, score) in pack::pairs(pack) {
        member.with_text(|text| table.insert(text, pack::score_of(score)));
    }
    table
}
