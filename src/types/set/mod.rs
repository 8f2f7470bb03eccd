//! Sets: distinct members in no order that means anything.
//!
//! Three forms: an integer set, a listpack of members, a table. A set starts as small as its first members allow and
//! never goes back to a smaller form while it lives; only a set that is made anew (by a store command, by a pop that
//! leaves little) starts over.
//!
//! Here: reading, in whatever form ([`SetRef`]), and the limits. `build` sets in the making, `edit` the set of a key,
//! `algebra` unions, intersections and differences.
//!
//! Must stay true: forms change at the same moments as in Redis 8.0, so that OBJECT ENCODING tells the same.
pub mod algebra;
mod build;
mod edit;

pub use build::NewSet;
pub use edit::SetMut;

use crate::base::hash::KeyHash;
use crate::base::{num, rng};
use crate::config::{P, Settings};
use crate::ds::intset::Intset;
use crate::ds::listpack::{self, Element, Listpack, Probe};
use crate::ds::object::{Object, Packing};
use crate::ds::raw::block::{BlockRef, Value};
use crate::ds::table::{self, PackedTable};
use crate::types::PACK_BYTES_MAX;
use crate::wire::Error;

/// Members that an integer set may have, whatever the settings say: its bytes stay below 4 GiB.
const INTS_MAX: usize = 1 << 28;
/// Bytes that an integer takes in a listpack at most.
const INT_ENTRY_BYTES_MAX: usize = 10;
/// Random choices among members from which on a listpack is measured first.
const DRAWS_MIN_TO_MEASURE: u64 = 8;

/// Up to where a set stays in a small form.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Members of an integer set (`set-max-intset-entries`).
    pub ints: usize,
    /// Members of a listpack (`set-max-listpack-entries`).
    pub entries: usize,
    /// Bytes of a listpack's members (`set-max-listpack-value`).
    pub value_bytes: usize,
}

impl Limits {
    /// Those in force.
    #[inline]
    pub fn of(settings: &Settings) -> Limits {
        let int = |id| usize::try_from(settings.int(id)).unwrap_or(0);
        Limits {
            ints: int(P::SET_MAX_INTSET_ENTRIES).min(INTS_MAX),
            entries: int(P::SET_MAX_LISTPACK_ENTRIES),
            value_bytes: int(P::SET_MAX_LISTPACK_VALUE),
        }
    }

    /// Whether a set with so many members is a table, whatever they are.
    fn exceeded_by(&self, members: usize) -> bool {
        members > self.ints.max(self.entries)
    }

    /// Whether a listpack can take a member that it has not yet.
    fn fit(&self, pack: Listpack<'_>, member_bytes: usize) -> bool {
        pack.len() < self.entries
            && member_bytes <= self.value_bytes
            && pack.portable_bytes() + member_bytes <= PACK_BYTES_MAX
    }

    /// Whether an integer set and a member that is no integer can be a listpack.
    fn fit_mixed(&self, ints: Intset<'_>, member_bytes: usize) -> bool {
        let longest = |int: Option<i64>| int.map_or(0, |int| Element::Int(int).text_len());
        ints.len() < self.entries
            && member_bytes.max(longest(ints.min())).max(longest(ints.max())) <= self.value_bytes
            && ints.len() * INT_ENTRY_BYTES_MAX + member_bytes <= PACK_BYTES_MAX
    }
}

/// The integer that a member is.
#[inline]
fn int_of(member: Element<'_>) -> Option<i64> {
    match member {
        Element::Int(int) => Some(int),
        Element::Bytes(text) => num::parse_i64(text),
    }
}

/// A set to read.
///
/// Members come as [`Element`]s. A table does not tell integers apart: all its members come as bytes.
#[derive(Clone, Copy, Debug)]
pub enum SetRef<'a> {
    /// An integer set.
    Ints(Intset<'a>),
    /// A listpack of members.
    Pack(Listpack<'a>),
    /// A table of members.
    Table(&'a PackedTable),
}

impl<'a> SetRef<'a> {
    /// The set under a key.
    ///
    /// # Errors
    /// [`Error::WrongType`] when the key holds something else.
    #[inline]
    pub fn of(block: BlockRef<'a>) -> Result<SetRef<'a>, Error> {
        SetRef::of_value(block.value())
    }

    /// The set that a value is.
    ///
    /// # Errors
    /// [`Error::WrongType`] when it is something else.
    #[inline]
    pub fn of_value(value: Value<'a>) -> Result<SetRef<'a>, Error> {
        match value {
            Value::Packed(Packing::IntSet, bytes) => Ok(SetRef::Ints(Intset::new(bytes))),
            Value::Packed(Packing::Set, bytes) => Ok(SetRef::Pack(Listpack::new(bytes))),
            Value::Object(Object::Set(table)) => Ok(SetRef::Table(table)),
            _ => Err(Error::WrongType),
        }
    }

    /// The number of members.
    #[inline]
    pub fn len(self) -> usize {
        match self {
            SetRef::Ints(ints) => ints.len(),
            SetRef::Pack(pack) => pack.len(),
            SetRef::Table(table) => table.len(),
        }
    }

    /// Whether there is no member. Sets under keys always have some.
    pub fn is_empty(self) -> bool {
        match self {
            SetRef::Ints(ints) => ints.is_empty(),
            SetRef::Pack(pack) => pack.is_empty(),
            SetRef::Table(table) => table.is_empty(),
        }
    }

    /// Whether both are views of one set.
    pub fn is_same(self, other: SetRef<'_>) -> bool {
        match (self, other) {
            (SetRef::Ints(a), SetRef::Ints(b)) => std::ptr::eq(a.int_bytes(), b.int_bytes()),
            (SetRef::Pack(a), SetRef::Pack(b)) => std::ptr::eq(a.bytes(), b.bytes()),
            (SetRef::Table(a), SetRef::Table(b)) => std::ptr::eq(a, b),
            _ => false,
        }
    }

    /// Whether a text is a member.
    #[inline]
    pub fn contains(self, text: &[u8]) -> bool {
        match self {
            SetRef::Ints(ints) => num::parse_i64(text).is_some_and(|int| ints.contains(int)),
            SetRef::Pack(pack) => pack.find(&Probe::new(text), listpack::HEAD_BYTES, 1).is_some(),
            SetRef::Table(table) => table.contains(KeyHash::of(text), text),
        }
    }

    /// Whether a member of another set is one of this, too.
    #[inline]
    pub fn contains_element(self, member: Element<'_>) -> bool {
        match (self, member) {
            (SetRef::Ints(ints), Element::Int(int)) => ints.contains(int),
            (SetRef::Pack(pack), member) => pack.find(&Probe::of(member), listpack::HEAD_BYTES, 1).is_some(),
            (_, member) => member.with_text(|text| self.contains(text)),
        }
    }

    /// All members, an integer set's in ascending order.
    pub fn iter(self) -> Iter<'a> {
        match self {
            SetRef::Ints(ints) => Iter::Ints(ints, 0),
            SetRef::Pack(pack) => Iter::Pack(pack.iter()),
            SetRef::Table(table) => Iter::Table(table.iter()),
        }
    }

    /// Visits all members, in the order of [`SetRef::iter`].
    pub fn for_each(self, f: &mut dyn FnMut(Element<'a>)) {
        match self {
            SetRef::Ints(ints) => ints.iter().for_each(|int| f(Element::Int(int))),
            SetRef::Pack(pack) => pack.iter().for_each(|(_, member)| f(member)),
            SetRef::Table(table) => table.for_each(|record| f(Element::Bytes(record.key()))),
        }
    }

    /// Visits members from `cursor` on and gives the cursor to go on from, 0 at the end. A table is visited about
    /// `count` members at a time, the small forms at once.
    pub fn scan(self, cursor: u64, count: usize, f: &mut dyn FnMut(Element<'a>)) -> u64 {
        match self {
            SetRef::Table(table) => table.scan(cursor, count, |record| f(Element::Bytes(record.key()))),
            small => {
                small.for_each(f);
                0
            }
        }
    }

    /// A random member.
    pub fn random(self) -> Option<Element<'a>> {
        match self {
            SetRef::Ints(ints) => ints.get(rng::index_below(ints.len())).map(Element::Int),
            SetRef::Pack(pack) => Some(pack.get(pack.nth(rng::index_below(pack.len()) as i64)?)),
            SetRef::Table(table) => {
                table.random(&mut rng::next_u64).map(|record| Element::Bytes(record.key()))
            }
        }
    }

    /// Visits `count` random members; one may come several times.
    pub fn random_repeated(self, count: u64, f: &mut dyn FnMut(Element<'a>)) {
        match self {
            SetRef::Pack(pack) if count >= DRAWS_MIN_TO_MEASURE => {
                let offsets: Vec<usize> = pack.iter().map(|(at, _)| at).collect();
                for _ in 0..count {
                    f(pack.get(offsets[rng::index_below(offsets.len())]));
                }
            }
            _ => (0..count).filter_map(|_| self.random()).for_each(f),
        }
    }

    /// Visits `count` different random members, or all if there are no more.
    pub fn random_distinct(self, count: usize, f: &mut dyn FnMut(Element<'a>)) {
        if count >= self.len() {
            return self.for_each(f);
        }
        match self {
            SetRef::Table(table) => {
                table.random_distinct(count, &mut rng::next_u64, |record| f(Element::Bytes(record.key())));
            }
            small => {
                let mut choice = Choice::new(count, small.len());
                small.iter().filter(|_| choice.takes_next()).for_each(f);
            }
        }
    }
}

/// Chooses some of a row of things in one pass, all choices equally likely: each is taken with the odds of what is
/// wanted to what is left (D. Knuth, "The Art of Computer Programming", 3.4.2, algorithm S).
struct Choice {
    wanted: usize,
    left: usize,
}

impl Choice {
    /// `wanted` of `all`.
    fn new(wanted: usize, all: usize) -> Choice {
        Choice { wanted: wanted.min(all), left: all }
    }

    /// Whether the next one is taken.
    fn takes_next(&mut self) -> bool {
        let takes = self.wanted > 0 && rng::index_below(self.left) < self.wanted;
        self.wanted -= usize::from(takes);
        self.left -= 1;
        takes
    }
}

/// The members of a set.
#[derive(Clone)]
pub enum Iter<'a> {
    /// Of an integer set, from an index on.
    Ints(Intset<'a>, usize),
    /// Of a listpack.
    Pack(listpack::Iter<'a>),
    /// Of a table.
    Table(table::Iter<'a>),
}

impl<'a> Iterator for Iter<'a> {
    type Item = Element<'a>;

    #[inline]
    fn next(&mut self) -> Option<Element<'a>> {
        match self {
            Iter::Ints(ints, at) => {
                let int = ints.get(*at)?;
                *at += 1;
                Some(Element::Int(int))
            }
            Iter::Pack(pack) => pack.next().map(|(_, member)| member),
            Iter::Table(table) => table.next().map(|record| Element::Bytes(record.key())),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// The limits of the default settings.
    pub(super) const LIMITS: Limits = Limits { ints: 512, entries: 128, value_bytes: 64 };

    /// A set of these members in any form: made within `limits`.
    pub(super) fn set_of<T: AsRef<str>>(members: &[T], limits: &Limits) -> NewSet {
        let mut set = NewSet::of_ints();
        for member in members {
            set.add(Element::of(member.as_ref().as_bytes()), limits);
        }
        set
    }

    pub(super) fn texts(set: SetRef<'_>) -> BTreeSet<String> {
        set.iter().map(|member| String::from_utf8(member.to_vec()).unwrap()).collect()
    }

    /// The same 40 members in all three forms; the integers among them alone.
    fn forms() -> [NewSet; 3] {
        let ints: Vec<String> = (-20..20).map(|n| (n * 1000).to_string()).collect();
        let pack = NewSet::pack_of(set_of(&ints, &LIMITS).view());
        let table = set_of(&ints, &Limits { ints: 0, entries: 0, value_bytes: 0 });
        [set_of(&ints, &LIMITS), pack, table]
    }

    #[test]
    fn limits_follow_the_settings() {
        let mut settings = Settings::default();
        let limits = Limits::of(&settings);
        assert_eq!((limits.ints, limits.entries, limits.value_bytes), (512, 128, 64));
        for (name, value) in [
            ("set-max-intset-entries", "9223372036854775807"),
            ("set-max-listpack-entries", "7"),
            ("set-max-listpack-value", "8"),
        ] {
            settings.set(name.as_bytes(), &[value.as_bytes()]).unwrap();
        }
        let limits = Limits::of(&settings);
        assert_eq!((limits.ints, limits.entries, limits.value_bytes), (INTS_MAX, 7, 8));
    }

    #[test]
    fn forms_read_alike() {
        let forms = forms();
        let views = [forms[0].view(), forms[1].view(), forms[2].view()];
        assert!(matches!(views, [SetRef::Ints(_), SetRef::Pack(_), SetRef::Table(_)]));
        for view in views {
            assert_eq!((view.len(), view.is_empty(), texts(view)), (40, false, texts(views[0])));
            for (text, is_member) in
                [("0", true), ("-20000", true), ("19000", true), ("1", false), ("00", false), ("x", false)]
            {
                assert_eq!(view.contains(text.as_bytes()), is_member, "{text}");
                assert_eq!(view.contains_element(Element::of(text.as_bytes())), is_member, "{text}");
                assert_eq!(view.contains_element(Element::Bytes(text.as_bytes())), is_member, "{text}");
            }
            let mut seen = Vec::new();
            view.for_each(&mut |member| seen.push(member));
            assert!(view.iter().eq(seen));
            let (mut walked, mut cursor) = (BTreeSet::new(), 0);
            loop {
                cursor = view.scan(cursor, 5, &mut |member| {
                    walked.insert(member.to_vec());
                });
                if cursor == 0 {
                    break;
                }
            }
            assert_eq!(walked.len(), 40);
        }
        assert!(
            views
                .iter()
                .enumerate()
                .all(|(i, a)| { views.iter().enumerate().all(|(j, b)| a.is_same(*b) == (i == j)) })
        );
    }

    #[test]
    fn random_members_are_members_all_likely() {
        for set in &forms() {
            let view = set.view();
            let mut counts = std::collections::BTreeMap::new();
            let mut note = |member: Element<'_>| *counts.entry(member.to_vec()).or_insert(0) += 1;
            view.random_repeated(8_000, &mut note);
            (0..4_000).filter_map(|_| view.random()).for_each(&mut note);
            for _ in 0..800 {
                view.random_distinct(10, &mut note);
            }
            // 500 are expected of each; ten standard deviations.
            assert!(counts.len() == 40 && counts.values().all(|n| (280..720).contains(n)), "{counts:?}");
            for count in [0, 1, 39, 40, 41, usize::MAX] {
                let (mut seen, mut draws) = (BTreeSet::new(), 0);
                view.random_distinct(count, &mut |member| {
                    seen.insert(member.to_vec());
                    draws += 1;
                });
                assert_eq!((seen.len(), draws), (count.min(40), count.min(40)));
            }
            let mut few = 0;
            view.random_repeated(3, &mut |_| few += 1);
            assert_eq!(few, 3);
        }
    }

    #[test]
    fn other_values_are_refused() {
        for value in [
            Value::String(crate::ds::raw::block::Payload::Int(1)),
            Value::Packed(Packing::List, &listpack::EMPTY),
            Value::Packed(Packing::Hash, &listpack::EMPTY),
            Value::Object(&Object::List(Default::default())),
        ] {
            assert!(matches!(SetRef::of_value(value), Err(Error::WrongType)));
        }
    }
}
