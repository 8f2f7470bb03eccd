//! The set of a key under edit.
//!
//! Must stay true: who takes the last member removes the key; who changed nothing reports nothing, even where the form
//! changed.
use super::build::{Step, add_packed};
use super::{Choice, Limits, NewSet, SetRef, int_of};
use crate::base::hash::KeyHash;
use crate::base::rng;
use crate::ds::intset::{self, Intset};
use crate::ds::listpack::{self, Element, Listpack, Probe};
use crate::ds::object::{Object, Packing};
use crate::ds::packed::PackedBytes;
use crate::ds::raw::block::Value;
use crate::ds::table::{Deadline, PackedTable, Record};
use crate::store::edit::Editor;
use crate::wire::Error;

/// A pop that leaves at most one in so many of what it takes makes a set of the rest.
const REBUILD_RATIO: usize = 5;

/// The set of a key, or the key that is to get one.
pub struct SetMut<'e, 'a> {
    editor: &'e mut Editor<'a>,
    limits: Limits,
}

impl<'e, 'a> SetMut<'e, 'a> {
    /// The set of the key under edit, which may be missing.
    ///
    /// # Errors
    /// [`Error::WrongType`] when the key holds something else.
    #[inline]
    pub fn of(editor: &'e mut Editor<'a>) -> Result<SetMut<'e, 'a>, Error> {
        if let Some(value) = editor.value() {
            SetRef::of_value(value)?;
        }
        let limits = Limits::of(editor.settings());
        Ok(SetMut { editor, limits })
    }

    /// The set, to read; `None`: no such key.
    #[inline]
    pub fn view(&self) -> Option<SetRef<'_>> {
        self.editor.value().and_then(|value| SetRef::of_value(value).ok())
    }

    /// Adds members, among which may be some twice; gives the number of new ones.
    #[inline]
    pub fn add<'m>(&mut self, members: impl ExactSizeIterator<Item = &'m [u8]> + Clone) -> usize {
        // How many new members the form could hold at best; more of them make a table before they come.
        let held = match self.editor.value() {
            Some(Value::Packed(Packing::IntSet, _)) => self.limits.ints,
            Some(Value::Packed(..)) => self.limits.entries,
            Some(_) => usize::MAX,
            None => return self.make(members),
        };
        if members.len() > held {
            self.become_after(Step::BecomeTable, None);
        }
        let added = members.filter(|member| self.add_one(member)).count();
        self.editor.changed(added);
        added
    }

    /// Makes the key.
    fn make<'m>(&mut self, members: impl ExactSizeIterator<Item = &'m [u8]> + Clone) -> usize {
        let Some(first) = members.clone().next() else { return 0 };
        let mut set = NewSet::for_members(Element::of(first), members.len(), &self.limits);
        let added = members.filter(|member| set.add(Element::of(member), &self.limits)).count();
        set.store(|value| self.editor.set(value));
        self.editor.changed(added);
        added
    }

    #[inline]
    fn add_one(&mut self, text: &[u8]) -> bool {
        let Some((packing, mut bytes)) = self.editor.packed() else {
            let add = |table: &mut PackedTable| table.insert(KeyHash::of(text), text, b"", Deadline::Keep);
            return self.table(add).unwrap_or(false);
        };
        let member = Element::of(text);
        let step = add_packed(packing, &mut bytes, member, false, &self.limits);
        if step != Step::Added && step != Step::Present {
            self.become_after(step, Some(member));
        }
        step != Step::Present
    }

    /// Changes the form as `step` says and adds a new member.
    #[cold]
    fn become_after(&mut self, step: Step, member: Option<Element<'_>>) {
        if let Some(mut set) = self.view().and_then(|view| NewSet::become_after(step, view)) {
            if let Some(member) = member {
                set.push(member);
            }
            set.store(|value| self.editor.set(value));
        }
    }

    /// Calls `f` with the table, where the set is one.
    #[inline]
    fn table<T>(&mut self, f: impl FnOnce(&mut PackedTable) -> T) -> Option<T> {
        match self.editor.object_mut() {
            Some(Object::Set(table)) => Some(f(table)),
            _ => None,
        }
    }

    /// Removes members, and the key with the last one; gives the number of those that were there.
    #[inline]
    pub fn remove<'m>(&mut self, members: impl Iterator<Item = &'m [u8]>) -> usize {
        let removed = members.filter(|member| self.remove_one(member)).count();
        self.editor.changed(removed);
        removed
    }

    #[inline]
    fn remove_one(&mut self, member: &[u8]) -> bool {
        match self.view() {
            Some(SetRef::Ints(ints)) => {
                let place = int_of(Element::of(member)).and_then(|int| ints.position(int));
                place.is_some_and(|index| self.take_int(index))
            }
            Some(SetRef::Pack(pack)) => {
                let place = pack.find(&Probe::new(member), listpack::HEAD_BYTES, 1);
                place.is_some_and(|at| self.take_entry(at))
            }
            Some(SetRef::Table(_)) => self
                .table(|table| (table.remove(KeyHash::of(member), member), table.is_empty()))
                .is_some_and(|(was_there, is_empty)| {
                    if is_empty {
                        self.editor.remove();
                    }
                    was_there
                }),
            None => false,
        }
    }

    /// Takes out the integer at `index`.
    fn take_int(&mut self, index: usize) -> bool {
        match self.editor.packed() {
            Some((_, bytes)) if Intset::new(bytes.bytes()).len() == 1 => self.editor.remove(),
            Some((_, mut bytes)) => {
                intset::remove_at(&mut bytes, index, 1);
            }
            None => return false,
        }
        true
    }

    /// Takes out the member of a listpack at `offset`.
    fn take_entry(&mut self, offset: usize) -> bool {
        match self.editor.packed() {
            Some((_, bytes)) if Listpack::new(bytes.bytes()).len() == 1 => self.editor.remove(),
            Some((_, mut bytes)) => {
                listpack::remove(&mut bytes, offset, 1);
            }
            None => return false,
        }
        true
    }

    /// Removes a random member after `look` saw it. `None`: no such key.
    pub fn pop<T>(&mut self, look: impl FnOnce(Element<'_>) -> T) -> Option<T> {
        let seen = match self.view()? {
            SetRef::Ints(ints) => {
                let index = rng::index_below(ints.len());
                let seen = look(Element::Int(ints.get(index)?));
                self.take_int(index);
                seen
            }
            SetRef::Pack(pack) => {
                let at = pack.nth(rng::index_below(pack.len()) as i64)?;
                let seen = look(pack.get(at));
                self.take_entry(at);
                seen
            }
            SetRef::Table(_) => {
                let pop = |table: &mut PackedTable| {
                    let look = |record: Record<'_>| look(Element::Bytes(record.key()));
                    (table.pop_random(&mut rng::next_u64, look), table.is_empty())
                };
                let (seen, is_empty) = self.table(pop)?;
                if is_empty {
                    self.editor.remove();
                }
                seen?
            }
        };
        self.editor.changed(1);
        Some(seen)
    }

    /// Removes `count` random members, each after `look` saw it, or all if there are no more, and the key with the
    /// last one. Gives their number.
    ///
    /// What little a large pop leaves becomes a new set, as small as it can be.
    pub fn pop_many(&mut self, count: usize, look: &mut dyn FnMut(Element<'_>)) -> usize {
        let Some(view) = self.view() else { return 0 };
        let len = view.len();
        if count >= len {
            view.for_each(look);
            self.editor.remove();
            self.editor.changed(len);
            return len;
        }
        let leaves_little = (len - count).saturating_mul(REBUILD_RATIO) <= count;
        if !leaves_little && matches!(view, SetRef::Table(_)) {
            return (0..count).map_while(|_| self.pop(&mut *look)).count();
        }
        let mut kept = if matches!(view, SetRef::Ints(_)) { NewSet::of_ints() } else { NewSet::of_pack() };
        let mut choice = Choice::new(count, len);
        for member in view.iter() {
            if choice.takes_next() {
                look(member);
            } else if leaves_little {
                kept.add_new(member, &self.limits);
            } else {
                kept.push(member);
            }
        }
        kept.store(|value| self.editor.set(value));
        self.editor.changed(count);
        count
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::sync::Arc;

    use proptest::prelude::*;

    use super::*;
    use crate::config::Settings;
    use crate::ds::raw::block::NewValue;
    use crate::host::Counters;
    use crate::store::Store;
    use crate::store::db::{Found, Ttl};
    use crate::types::set::tests::texts;
    use crate::wire::Key;

    /// A store where sets become tables soon: 12 integers, 8 members of up to 5 bytes.
    fn store() -> Store {
        let mut settings = Settings::default();
        for (name, value) in [
            ("set-max-intset-entries", "12"),
            ("set-max-listpack-entries", "8"),
            ("set-max-listpack-value", "5"),
        ] {
            settings.set(name.as_bytes(), &[value.as_bytes()]).unwrap();
        }
        Store::new(Arc::new(settings), Arc::new(Counters::new(0)))
    }

    const KEY: &[u8] = b"key";

    fn edit<T>(store: &mut Store, f: impl FnOnce(SetMut<'_, '_>) -> T) -> T {
        store.edit(0, Key::new(KEY), |editor| f(SetMut::of(editor).unwrap()))
    }

    fn add(store: &mut Store, members: &[&str]) -> usize {
        let members: Vec<&[u8]> = members.iter().map(|member| member.as_bytes()).collect();
        edit(store, |mut set| set.add(members.iter().copied()))
    }

    fn remove(store: &mut Store, members: &[&str]) -> usize {
        edit(store, |mut set| set.remove(members.iter().map(|member| member.as_bytes())))
    }

    /// Form and members; `None`: no such key.
    fn state(store: &Store) -> Option<(char, BTreeSet<String>)> {
        let Found::Live(block) = store.find(0, Key::new(KEY), 0) else { return None };
        let set = SetRef::of(block).unwrap();
        let form = match set {
            SetRef::Ints(_) => 'i',
            SetRef::Pack(_) => 'p',
            SetRef::Table(_) => 't',
        };
        Some((form, texts(set)))
    }

    fn form(store: &Store) -> Option<char> {
        state(store).map(|state| state.0)
    }

    #[test]
    fn keys_come_with_the_first_member_and_go_with_the_last() {
        for first in [&["1"][..], &["x"], &["longer than fits"]] {
            let mut store = store();
            assert_eq!((remove(&mut store, first), state(&store)), (0, None));
            assert_eq!((add(&mut store, first), add(&mut store, first)), (1, 0));
            assert_eq!(state(&store).unwrap().1.len(), 1);
            assert_eq!((remove(&mut store, &["9"]), remove(&mut store, &[first[0], first[0]])), (0, 1));
            assert_eq!(state(&store), None);
            assert_eq!(store.counters.dirty.get(), 2, "what changes nothing is not reported");
            add(&mut store, first);
            let popped = edit(&mut store, |mut set| set.pop(|member| member.to_vec()));
            assert_eq!((popped.as_deref(), state(&store)), (Some(first[0].as_bytes()), None));
            assert!(edit(&mut store, |mut set| set.pop(|_| ())).is_none());
            assert_eq!(edit(&mut store, |mut set| set.pop_many(3, &mut |_| ())), 0);
            assert_eq!(store.counters.dirty.get(), 4);
        }
    }

    #[test]
    fn forms_follow_the_settings() {
        let numbers: Vec<String> = (0..13).map(|n| n.to_string()).collect();
        let numbers: Vec<&str> = numbers.iter().map(String::as_str).collect();
        let mut store = store();
        assert_eq!((add(&mut store, &numbers[..12]), form(&store)), (12, Some('i')));
        assert_eq!((add(&mut store, &["12"]), form(&store)), (1, Some('t')));
        remove(&mut store, &numbers);
        assert_eq!(
            (add(&mut store, &numbers[..7]), add(&mut store, &["x"]), form(&store)),
            (7, 1, Some('p'))
        );
        assert_eq!((add(&mut store, &["x", "1"]), form(&store)), (0, Some('p')));
        assert_eq!((add(&mut store, &["y"]), form(&store)), (1, Some('t')));
        remove(&mut store, &numbers);
        assert_eq!((remove(&mut store, &["x", "y"]), state(&store)), (2, None));
        // So many that they would not fit, were they all new: nothing is added, nothing reported.
        add(&mut store, &["x"]);
        let dirty = store.counters.dirty.get();
        assert_eq!((add(&mut store, &["x"; 9]), form(&store)), (0, Some('t')));
        assert_eq!(store.counters.dirty.get(), dirty);
    }

    #[test]
    fn large_pops_leave_a_new_set() {
        let letters: Vec<String> = ('a'..='z').map(String::from).collect();
        let letters: Vec<&str> = letters.iter().map(String::as_str).collect();
        for (count, left) in [(21, 't'), (22, 'p'), (25, 'p')] {
            let mut store = store();
            add(&mut store, &letters);
            let mut popped = BTreeSet::new();
            let note = &mut |member: Element<'_>| {
                popped.insert(String::from_utf8(member.to_vec()).unwrap());
            };
            assert_eq!(edit(&mut store, |mut set| set.pop_many(count, note)), count);
            let (form, rest) = state(&store).unwrap();
            assert_eq!(
                (form, rest.len(), popped.len(), rest.is_disjoint(&popped)),
                (left, 26 - count, count, true)
            );
            assert_eq!(store.counters.dirty.get(), 26 + count as u64);
        }
    }

    #[test]
    fn other_types_are_refused() {
        let mut store = store();
        store.put(0, Key::new(KEY), NewValue::Int(1), Ttl::Clear, 0);
        store.edit(0, Key::new(KEY), |editor| {
            assert!(matches!(SetMut::of(editor), Err(Error::WrongType)));
        });
    }

    proptest! {
        #[test]
        fn edits_agree_with_a_model(steps in proptest::collection::vec(
            (0..5, proptest::collection::vec(prop_oneof![
                4 => (0..16_i64).prop_map(|n| n.to_string()),
                1 => "[ab]{0,6}",
            ], 1..4)),
            1..60,
        )) {
            let (mut store, mut model) = (store(), BTreeSet::new());
            for (kind, members) in steps {
                let texts: Vec<&str> = members.iter().map(String::as_str).collect();
                let mut gone = Vec::new();
                let mut note = |member: Element<'_>| gone.push(String::from_utf8(member.to_vec()).unwrap());
                match kind {
                    0..2 => {
                        let added = texts.iter().filter(|text| model.insert(text.to_string())).count();
                        prop_assert_eq!(add(&mut store, &texts), added);
                    }
                    2 => {
                        let removed = texts.iter().filter(|text| model.remove(**text)).count();
                        prop_assert_eq!(remove(&mut store, &texts), removed);
                    }
                    3 => {
                        let popped = edit(&mut store, |mut set| set.pop(&mut note));
                        prop_assert_eq!(popped.is_some(), !model.is_empty());
                    }
                    _ => {
                        let popped = edit(&mut store, |mut set| set.pop_many(texts.len(), &mut note));
                        prop_assert_eq!(popped, texts.len().min(model.len()));
                    }
                }
                prop_assert!(gone.iter().all(|text| model.remove(text)));
                prop_assert_eq!(state(&store).map(|state| state.1).unwrap_or_default(), model.clone());
            }
        }
    }
}
