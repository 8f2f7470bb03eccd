//! Changing the sorted set under a key.
use std::ops::Range;

use super::{Limits, SortedSetRef, build, pack};
use crate::ds::listpack::{self, Element, Entries, Listpack, Probe};
use crate::ds::object::{Object, Packing};
use crate::ds::packed::PackedBytes;
use crate::ds::raw::block::NewValue;
use crate::ds::sorted::SortedTable;
use crate::store::edit::Editor;
use crate::wire::Error;

/// What an addition does to members, new and old.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rules {
    /// Old members stay as they are.
    pub nx: bool,
    /// New members are not added.
    pub xx: bool,
    /// Scores only grow.
    pub gt: bool,
    /// Scores only shrink.
    pub lt: bool,
    /// The score is added to that of an old member.
    pub incr: bool,
}

impl Rules {
    /// Whether every score is simply set.
    #[inline]
    fn are_none(self) -> bool {
        self == Rules::default()
    }

    /// The score that a member gets; `None`: none, by these rules.
    #[inline]
    fn apply(self, old: Option<f64>, score: f64) -> Result<Option<f64>, NotANumber> {
        let Some(old) = old else { return Ok((!self.xx).then_some(score)) };
        if self.nx {
            return Ok(None);
        }
        let score = if self.incr { old + score } else { score };
        if score.is_nan() {
            return Err(NotANumber);
        }
        let refused = self.lt && score >= old || self.gt && score <= old;
        Ok((!refused).then_some(score))
    }
}

/// What an addition did.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Outcome {
    /// The member is new.
    Added(f64),
    /// The member has another score than before.
    Changed(f64),
    /// The member had this score already.
    Same(f64),
    /// The rules did not allow it.
    Refused,
}

impl Outcome {
    #[inline]
    fn of(old: Option<f64>, new: f64) -> Outcome {
        match old {
            None => Outcome::Added(new),
            Some(old) if old == new => Outcome::Same(new),
            Some(_) => Outcome::Changed(new),
        }
    }
}

/// A sum of scores has no value: those of infinities with different signs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotANumber;

/// A sorted set to change. The key may be missing; then only [`SortedSetMut::add`] does anything.
pub struct SortedSetMut<'e, 'a> {
    editor: &'e mut Editor<'a>,
    expected: usize,
}

impl<'e, 'a> SortedSetMut<'e, 'a> {
    /// The sorted set under a key.
    ///
    /// # Errors
    /// [`Error::WrongType`] when it holds something else.
    #[inline]
    pub fn of(editor: &'e mut Editor<'a>) -> Result<SortedSetMut<'e, 'a>, Error> {
        match editor.value() {
            Some(value) if SortedSetRef::of_value(value).is_none() => Err(Error::WrongType),
            _ => Ok(SortedSetMut { editor, expected: 1 }),
        }
    }

    /// The sorted set as it is now; `None`: no such key.
    #[inline]
    pub fn view(&self) -> Option<SortedSetRef<'_>> {
        self.editor.value().and_then(SortedSetRef::of_value)
    }

    #[inline]
    fn table(&mut self) -> Option<&mut SortedTable> {
        match self.editor.object_mut()? {
            Object::SortedSet(table) => Some(table),
            _ => None,
        }
    }

    #[inline]
    fn limits(&self) -> Limits {
        Limits::of(self.editor.settings())
    }

    fn set_table(&mut self, table: SortedTable) {
        self.editor.set(NewValue::Object(Box::new(Object::SortedSet(table))));
    }

    /// Makes the set large if it is small.
    #[cold]
    fn grow(&mut self) {
        if let Some(SortedSetRef::Pack(pack)) = self.view() {
            let table = build::table_of(pack);
            self.set_table(table);
        }
    }

    /// Says how many additions come. So many that they would not fit make the set large at once, even if they turn out
    /// to be few members.
    #[inline]
    pub fn expect(&mut self, additions: usize) {
        self.expected = additions;
        if additions > self.limits().entries {
            self.grow();
        }
    }

    /// Adds a member, or gives it another score, as the rules allow; makes the key when it is missing.
    ///
    /// # Errors
    /// [`NotANumber`] when a sum has no value; nothing changes.
    #[inline]
    pub fn add(&mut self, member: &[u8], score: f64, rules: Rules) -> Result<Outcome, NotANumber> {
        let outcome = match self.editor.packed() {
            Some((_, mut packed)) => {
                let probe = Probe::new(member);
                let pack = Listpack::new(packed.bytes());
                let found = pack::find(pack, &probe);
                let old = found.map(|(_, old)| old);
                let Some(new) = rules.apply(old, score)? else { return Ok(Outcome::Refused) };
                match found {
                    Some((_, old)) if old == new => {}
                    Some((at, _)) => pack::rescore(&mut packed, at, member, new),
                    None => self.insert(member, new),
                }
                Outcome::of(old, new)
            }
            None => self.add_large(member, score, rules)?,
        };
        if matches!(outcome, Outcome::Added(_) | Outcome::Changed(_)) {
            self.editor.changed(1);
        }
        Ok(outcome)
    }

    #[inline]
    fn add_large(&mut self, member: &[u8], score: f64, rules: Rules) -> Result<Outcome, NotANumber> {
        if let Some(table) = self.table() {
            if rules.are_none() {
                return Ok(Outcome::of(table.insert(member, score), score));
            }
            let old = table.score(member);
            let Some(new) = rules.apply(old, score)? else { return Ok(Outcome::Refused) };
            table.insert(member, new);
            return Ok(Outcome::of(old, new));
        }
        let Some(new) = rules.apply(None, score)? else { return Ok(Outcome::Refused) };
        self.make(member, new);
        Ok(Outcome::Added(new))
    }

    /// Makes the key with its first member.
    fn make(&mut self, member: &[u8], score: f64) {
        let limits = self.limits();
        if self.expected.max(1) > limits.entries || member.len() > limits.value_bytes {
            let mut table = SortedTable::new();
            table.insert(member, score);
            return self.set_table(table);
        }
        let mut stored = Entries::from_slice(&2_u16.to_le_bytes());
        pack::encode_pair(Element::Bytes(member), score, &mut stored);
        self.editor.set(NewValue::Packed(Packing::SortedSet, &stored));
    }

    /// Puts a new member into a small set, which becomes large if it must.
    fn insert(&mut self, member: &[u8], score: f64) {
        let limits = self.limits();
        let Some((_, mut packed)) = self.editor.packed() else { return };
        let pack = Listpack::new(packed.bytes());
        if limits.fit(pack::len(pack), pack.portable_bytes(), member.len()) {
            return pack::insert(&mut packed, member, score);
        }
        self.grow();
        if let Some(table) = self.table() {
            table.insert(member, score);
        }
    }

    /// Removes a member; the last one takes the key along. `false`: it was not there.
    #[inline]
    pub fn remove(&mut self, member: &[u8]) -> bool {
        let (was_there, is_empty) = match self.editor.packed() {
            Some((_, mut packed)) => {
                let found = pack::find(Listpack::new(packed.bytes()), &Probe::new(member));
                if let Some((at, _)) = found {
                    listpack::remove(&mut packed, at, 2);
                }
                (found.is_some(), Listpack::new(packed.bytes()).is_empty())
            }
            None => match self.table() {
                Some(table) => (table.remove(member).is_some(), table.is_empty()),
                None => (false, false),
            },
        };
        if was_there {
            self.editor.changed(1);
            if is_empty {
                self.editor.remove();
            }
        }
        was_there
    }

    /// Removes the members with these ranks, all of which there must be; the last one takes the key along.
    pub fn remove_run(&mut self, run: Range<usize>) {
        let (count, len) = (run.len(), self.view().map_or(0, SortedSetRef::len));
        if count == 0 {
            return;
        }
        self.editor.changed(count);
        if count >= len {
            self.editor.remove();
        } else if let Some((_, mut packed)) = self.editor.packed() {
            let at = pack::offset_of(Listpack::new(packed.bytes()), run.start);
            listpack::remove(&mut packed, at, 2 * count);
        } else if let Some(table) = self.table() {
            table.remove_range_by_rank(run.start, count, |_, _| {});
        }
    }
}
