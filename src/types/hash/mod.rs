//! Hashes: pairs in a listpack (`listpack`), the same with deadlines (`listpackex`), a table beyond the limits
//! (`hashtable`).
//!
//! A field whose deadline has come is there until it is deleted: whoever reads for a client skips it. It still counts
//! in [`HashRef::len`], as in Redis.
//!
//! Must stay true: the form changes when Redis changes it, and only towards the table; `edit` alone changes anything.
mod edit;
mod pick;

pub use edit::{Condition, HashMut, Outcome, clear_due};

use crate::base::hash::KeyHash;
use crate::base::num;
use crate::ds::dated;
use crate::ds::listpack::{Element, HEAD_BYTES, Listpack, Probe};
use crate::ds::object::{Object, Packing};
use crate::ds::raw::block::{BlockRef, Value};
use crate::ds::table::{PackedTable, Record};
use crate::wire::Error;

/// A hash to read.
#[derive(Clone, Copy)]
pub enum HashRef<'a> {
    /// A small one.
    Pairs(Listpack<'a>),
    /// A small one that has, or had, deadlines.
    Dated(Listpack<'a>),
    /// A large one.
    Table(&'a PackedTable),
}

/// A field as it is stored. Its texts come as elements to be written out; those of a table are never integers, whatever
/// they say.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Field<'a> {
    /// Its name.
    pub name: Element<'a>,
    /// Its value.
    pub value: Element<'a>,
    /// When it is due, in milliseconds since the epoch.
    pub deadline_ms: Option<u64>,
}

impl<'a> Field<'a> {
    /// Whether its time has come.
    #[inline]
    pub fn is_due(&self, now_ms: u64) -> bool {
        self.deadline_ms.is_some_and(|at| at <= now_ms)
    }

    fn of_record(record: Record<'a>) -> Field<'a> {
        let (name, value) = (Element::Bytes(record.key()), Element::Bytes(record.value()));
        Field { name, value, deadline_ms: record.deadline_ms() }
    }

    fn of_pair(pack: Listpack<'a>, at: usize) -> Field<'a> {
        Field { name: pack.get(at), value: pack.get(pack.skip(at, 1)), deadline_ms: None }
    }

    fn of_place(pack: Listpack<'a>, place: &dated::Place) -> Field<'a> {
        Field { name: pack.get(place.at), value: pack.get(place.value_at), deadline_ms: place.deadline_ms }
    }
}

/// The integer that a value is in canonical form.
#[inline]
pub fn integer(value: Element<'_>) -> Option<i64> {
    match value {
        Element::Int(int) => Some(int),
        Element::Bytes(text) => num::parse_i64(text),
    }
}

impl<'a> HashRef<'a> {
    /// The hash in a block; WRONGTYPE when it holds something else.
    #[inline]
    pub fn of(block: BlockRef<'a>) -> Result<HashRef<'a>, Error> {
        HashRef::of_value(block.value()).ok_or(Error::WrongType)
    }

    /// The hash, when the value is one.
    #[inline]
    pub fn of_value(value: Value<'a>) -> Option<HashRef<'a>> {
        match value {
            Value::Packed(Packing::Hash, stored) => Some(HashRef::Pairs(Listpack::new(stored))),
            Value::Packed(Packing::HashDeadlines, stored) => Some(HashRef::Dated(Listpack::new(stored))),
            Value::Object(Object::Hash(table)) => Some(HashRef::Table(table)),
            _ => None,
        }
    }

    /// Number of fields, those whose time has come included.
    #[inline]
    #[allow(clippy::len_without_is_empty, reason = "a stored hash is never empty")]
    pub fn len(self) -> usize {
        match self {
            HashRef::Pairs(pack) => pack.len() / 2,
            HashRef::Dated(pack) => pack.len() / dated::STRIDE,
            HashRef::Table(table) => table.len(),
        }
    }

    /// The earliest deadline.
    #[inline]
    pub fn earliest_ms(self) -> Option<u64> {
        match self {
            HashRef::Pairs(_) => None,
            HashRef::Dated(pack) => dated::earliest_ms(pack),
            HashRef::Table(table) => table.earliest_deadline_ms(),
        }
    }

    /// Whether a field's time has come.
    #[inline]
    pub fn has_due(self, now_ms: u64) -> bool {
        self.earliest_ms().is_some_and(|at| at <= now_ms)
    }

    /// Number of fields whose time has not come. Visits all, when that of any has.
    pub fn live_len(self, now_ms: u64) -> usize {
        if !self.has_due(now_ms) {
            return self.len();
        }
        let mut live = 0;
        self.for_each_live(now_ms, |_| live += 1);
        live
    }

    /// A field by its name, due or not.
    #[inline]
    pub fn find(self, name: &[u8]) -> Option<Field<'a>> {
        match self {
            HashRef::Pairs(pack) => {
                let at = pack.find(&Probe::new(name), HEAD_BYTES, 2)?;
                Some(Field::of_pair(pack, at))
            }
            HashRef::Dated(pack) => {
                let place = dated::find(pack, &Probe::new(name))?;
                Some(Field::of_place(pack, &place))
            }
            HashRef::Table(table) => table.get(KeyHash::of(name), name).map(Field::of_record),
        }
    }

    /// Visits all fields, due or not.
    #[inline]
    pub fn for_each(self, mut f: impl FnMut(Field<'a>)) {
        match self {
            HashRef::Pairs(pack) => {
                let mut elements = pack.iter();
                while let (Some((_, name)), Some((_, value))) = (elements.next(), elements.next()) {
                    f(Field { name, value, deadline_ms: None });
                }
            }
            HashRef::Dated(pack) => {
                dated::entries(pack).for_each(|place| f(Field::of_place(pack, &place)));
            }
            HashRef::Table(table) => table.for_each(|record| f(Field::of_record(record))),
        }
    }

    /// Visits the fields whose time has not come.
    #[inline]
    pub fn for_each_live(self, now_ms: u64, mut f: impl FnMut(Field<'a>)) {
        self.for_each(|field| {
            if !field.is_due(now_ms) {
                f(field);
            }
        });
    }

    /// Visits some fields from `cursor` on, due or not, and gives the cursor to go on from: 0 at the end. A small hash
    /// is visited as a whole.
    pub fn scan(self, cursor: u64, count: usize, mut f: impl FnMut(Field<'a>)) -> u64 {
        match self {
            HashRef::Table(table) => table.scan(cursor, count, |record| f(Field::of_record(record))),
            small => {
                small.for_each(f);
                0
            }
        }
    }
}
