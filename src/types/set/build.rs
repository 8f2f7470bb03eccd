//! Sets in the making, outside any key: results of store commands, new keys, other forms of what a key holds.
//!
//! Must stay true: what is added one by one goes through the forms that the set of a key would go through.
use smallvec::SmallVec;

use super::{Limits, SetRef, int_of};
use crate::base::hash::KeyHash;
use crate::ds::intset::{self, Intset};
use crate::ds::listpack::{self, Element, Listpack, Probe};
use crate::ds::object::{Object, Packing};
use crate::ds::packed::PackedBytes;
use crate::ds::raw::block::NewValue;
use crate::ds::table::{Deadline, Layout, PackedTable};

/// Packed bytes in the making; small ones take no allocation.
type Bytes = SmallVec<[u8; 128]>;

/// A set that no key has yet.
#[derive(Clone, Debug)]
pub enum NewSet {
    /// An integer set.
    Ints(Bytes),
    /// A listpack of members.
    Pack(Bytes),
    /// A table of members.
    Table(PackedTable),
}

/// What came of adding a member to packed bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// It is there already.
    Present,
    /// It was added.
    Added,
    /// It is new and does not fit: the set has to become a listpack first.
    BecomePack,
    /// It is new and does not fit: the set has to become a table first.
    BecomeTable,
}

/// Adds a member to packed bytes where it fits. `is_new`: it is known not to be there.
#[inline]
pub(super) fn add_packed(
    packing: Packing,
    bytes: &mut impl PackedBytes,
    member: Element<'_>,
    is_new: bool,
    limits: &Limits,
) -> Step {
    if packing == Packing::IntSet {
        return add_to_ints(bytes, member, limits);
    }
    let probe = Probe::of(member);
    let pack = Listpack::new(bytes.bytes());
    if !is_new && pack.find(&probe, listpack::HEAD_BYTES, 1).is_some() {
        return Step::Present;
    }
    if !limits.fit(pack, member.text_len()) {
        return Step::BecomeTable;
    }
    listpack::push_back_probe(bytes, &probe);
    Step::Added
}

#[inline]
fn add_to_ints(bytes: &mut impl PackedBytes, member: Element<'_>, limits: &Limits) -> Step {
    let ints = Intset::new(bytes.bytes());
    match int_of(member) {
        Some(int) if ints.len() < limits.ints => {
            if intset::add(bytes, int) {
                Step::Added
            } else {
                Step::Present
            }
        }
        Some(int) if ints.contains(int) => Step::Present,
        None if limits.fit_mixed(ints, member.text_len()) => Step::BecomePack,
        _ => Step::BecomeTable,
    }
}

/// Adds a member to a table. `true`: it is new.
#[inline]
pub(super) fn add_to_table(table: &mut PackedTable, member: Element<'_>) -> bool {
    member.with_text(|text| table.insert(KeyHash::of(text), text, b"", Deadline::Keep))
}

impl NewSet {
    /// An empty integer set.
    pub fn of_ints() -> NewSet {
        NewSet::Ints(Bytes::from_slice(&intset::EMPTY))
    }

    /// An empty listpack.
    pub fn of_pack() -> NewSet {
        NewSet::Pack(Bytes::from_slice(&listpack::EMPTY))
    }

    /// An empty set in the form that fits its first member and the number of members it is expected to get.
    pub fn for_members(first: Element<'_>, expected: usize, limits: &Limits) -> NewSet {
        if expected <= limits.ints && int_of(first).is_some() {
            NewSet::of_ints()
        } else if expected <= limits.entries {
            NewSet::of_pack()
        } else {
            NewSet::Table(PackedTable::with_capacity(Layout::Keys, expected))
        }
    }

    /// A listpack of the members of `view`.
    pub fn pack_of(view: SetRef<'_>) -> NewSet {
        let mut pack = Bytes::from_slice(&listpack::EMPTY);
        listpack::append_many(&mut pack, view.iter());
        NewSet::Pack(pack)
    }

    /// A table of the members of `view`.
    pub fn table_of(view: SetRef<'_>) -> NewSet {
        if let SetRef::Table(table) = view {
            return NewSet::Table(table.clone());
        }
        let mut table = PackedTable::with_capacity(Layout::Keys, view.len() + 1);
        view.for_each(&mut |member| {
            add_to_table(&mut table, member);
        });
        NewSet::Table(table)
    }

    /// What the members of `view` become when they are added to an empty integer set one by one.
    pub fn copy_of(view: SetRef<'_>, limits: &Limits) -> NewSet {
        if limits.exceeded_by(view.len()) {
            return NewSet::table_of(view);
        }
        let mut copy = NewSet::of_ints();
        view.for_each(&mut |member| copy.add_new(member, limits));
        copy
    }

    /// The set, to read.
    pub fn view(&self) -> SetRef<'_> {
        match self {
            NewSet::Ints(bytes) => SetRef::Ints(Intset::new(bytes)),
            NewSet::Pack(bytes) => SetRef::Pack(Listpack::new(bytes)),
            NewSet::Table(table) => SetRef::Table(table),
        }
    }

    /// Adds a member. `false`: it is there already.
    pub fn add(&mut self, member: Element<'_>, limits: &Limits) -> bool {
        self.put(member, false, limits)
    }

    /// Adds a member that is known not to be there.
    pub fn add_new(&mut self, member: Element<'_>, limits: &Limits) {
        self.put(member, true, limits);
    }

    fn put(&mut self, member: Element<'_>, is_new: bool, limits: &Limits) -> bool {
        let step = match self {
            NewSet::Ints(bytes) => add_packed(Packing::IntSet, bytes, member, is_new, limits),
            NewSet::Pack(bytes) => add_packed(Packing::Set, bytes, member, is_new, limits),
            NewSet::Table(table) => return add_to_table(table, member),
        };
        if let Some(mut other) = NewSet::become_after(step, self.view()) {
            other.push(member);
            *self = other;
        }
        step != Step::Present
    }

    /// The form that `step` asks for, with the members of `view`; `None`: the form stays.
    pub(super) fn become_after(step: Step, view: SetRef<'_>) -> Option<NewSet> {
        match step {
            Step::Present | Step::Added => None,
            Step::BecomePack => Some(NewSet::pack_of(view)),
            Step::BecomeTable => Some(NewSet::table_of(view)),
        }
    }

    /// Adds a member that is known not to be there, and to be an integer where the form demands it, whatever the
    /// limits.
    pub fn push(&mut self, member: Element<'_>) {
        match self {
            NewSet::Ints(bytes) => {
                let int = int_of(member);
                debug_assert!(int.is_some(), "integer sets have integers");
                int.map(|int| intset::add(bytes, int));
            }
            NewSet::Pack(bytes) => listpack::push_back(bytes, member),
            NewSet::Table(table) => {
                add_to_table(table, member);
            }
        }
    }

    /// Takes a member out. `false`: it was not there.
    pub fn remove(&mut self, member: Element<'_>) -> bool {
        match self {
            NewSet::Ints(bytes) => int_of(member).is_some_and(|int| intset::remove(bytes, int)),
            NewSet::Pack(bytes) => {
                let found = Listpack::new(bytes).find(&Probe::of(member), listpack::HEAD_BYTES, 1);
                found.is_some_and(|at| listpack::remove(bytes, at, 1) == 1)
            }
            NewSet::Table(table) => member.with_text(|text| table.remove(KeyHash::of(text), text)),
        }
    }

    /// The same as an integer set, if all members are integers and not too many.
    pub fn as_ints_if_possible(self, limits: &Limits) -> NewSet {
        let view = self.view();
        if matches!(view, SetRef::Ints(_)) || view.len() > limits.ints {
            return self;
        }
        let mut ints = Bytes::from_slice(&intset::EMPTY);
        let all_ints =
            view.iter().all(|member| int_of(member).is_some_and(|int| intset::add(&mut ints, int)));
        if all_ints { NewSet::Ints(ints) } else { self }
    }

    /// Hands the set over as the value of a key. It must have a member.
    pub fn store(self, put: impl FnOnce(NewValue<'_>)) {
        debug_assert!(!self.view().is_empty(), "no key has an empty set");
        match self {
            NewSet::Ints(bytes) => put(NewValue::Packed(Packing::IntSet, &bytes)),
            NewSet::Pack(bytes) => put(NewValue::Packed(Packing::Set, &bytes)),
            NewSet::Table(table) => put(NewValue::Object(Box::new(Object::Set(table)))),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;
    use crate::types::set::tests::{LIMITS, set_of, texts};

    fn form(set: &NewSet) -> char {
        match set {
            NewSet::Ints(_) => 'i',
            NewSet::Pack(_) => 'p',
            NewSet::Table(_) => 't',
        }
    }

    #[test]
    fn forms_change_when_redis_changes_them() {
        let ints = |n: i64| (0..n).map(|n| n.to_string()).collect::<Vec<_>>();
        let with = |mut members: Vec<String>, more: &str| {
            members.push(more.to_string());
            form(&set_of(&members, &LIMITS))
        };
        let (fits, too_long) = ("x".repeat(64), "x".repeat(65));
        assert_eq!((form(&set_of(&ints(512), &LIMITS)), form(&set_of(&ints(513), &LIMITS))), ('i', 't'));
        assert_eq!(
            (with(ints(512), "511"), with(ints(512), "512")),
            ('i', 't'),
            "a member again is none more"
        );
        assert_eq!((with(ints(127), "x"), with(ints(128), "x")), ('p', 't'));
        assert_eq!((with(ints(1), &fits), with(ints(1), &too_long)), ('p', 't'));
        assert_eq!((with(vec!["x".into()], &fits), with(vec!["x".into()], &too_long)), ('p', 't'));
        let pack = |n: usize| [vec!["x".to_string()], ints(n as i64 - 1)].concat();
        assert_eq!((with(pack(127), "y"), with(pack(128), "y"), with(pack(128), "x")), ('p', 't', 'p'));
        assert_eq!((with(ints(5), "05"), with(ints(5), "-0"), with(ints(5), "-7")), ('p', 'p', 'i'));
        let short = Limits { value_bytes: 3, ..LIMITS };
        assert_eq!(form(&set_of(&["-999", "x"], &short)), 't', "an integer too long for the listpack");
        assert_eq!(form(&set_of(&["1000", "x"], &short)), 't');
        assert_eq!(form(&set_of(&["-99", "999", "x"], &short)), 'p');
    }

    #[test]
    fn the_first_form_follows_from_the_first_member_and_the_number() {
        let first =
            |text: &str, n: usize| form(&NewSet::for_members(Element::of(text.as_bytes()), n, &LIMITS));
        assert_eq!(
            (first("1", 512), first("1", 513), first("x", 128), first("x", 129)),
            ('i', 't', 'p', 't')
        );
        let few_ints = Limits { ints: 10, ..LIMITS };
        assert_eq!(form(&NewSet::for_members(Element::Int(1), 11, &few_ints)), 'p');
    }

    #[test]
    fn integers_become_an_integer_set_again_where_asked() {
        let back = |members: &[&str], ints: usize| {
            let pack = NewSet::pack_of(set_of(members, &LIMITS).view());
            let limits = Limits { ints, ..LIMITS };
            let set = pack.as_ints_if_possible(&limits);
            assert_eq!(set.view().len(), members.len());
            form(&set)
        };
        assert_eq!((back(&["1", "-5"], 2), back(&["1", "-5"], 1), back(&["1", "x"], 9)), ('i', 'p', 'p'));
    }

    proptest! {
        #[test]
        fn sets_in_the_making_agree_with_a_model(
            start in 0..3,
            steps in proptest::collection::vec((0..4, prop_oneof![
                4 => (-9..9_i64).prop_map(|n| n.to_string()),
                1 => any::<i64>().prop_map(|n| n.to_string()),
                1 => "[ab]{0,9}",
            ]), 1..60),
        ) {
            let limits = Limits { ints: 12, entries: 16, value_bytes: 7 };
            let (mut set, mut model) = (NewSet::of_ints(), BTreeSet::new());
            for (kind, text) in steps {
                let member = Element::of(text.as_bytes());
                if kind == 0 {
                    prop_assert_eq!(set.remove(member), model.remove(&text));
                } else if kind == 1 && !model.contains(&text) {
                    set.add_new(member, &limits);
                    model.insert(text);
                } else {
                    prop_assert_eq!(set.add(member, &limits), model.insert(text.clone()));
                }
                prop_assert_eq!(texts(set.view()), model.clone());
            }
            let copy = match start {
                0 => NewSet::copy_of(set.view(), &limits),
                1 => NewSet::pack_of(set.view()),
                _ => NewSet::table_of(set.view()),
            };
            prop_assert_eq!(texts(copy.view()), model);
        }
    }
}
