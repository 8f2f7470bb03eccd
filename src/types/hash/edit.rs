//! Changing hashes.
//!
//! Must stay true: a hash that lost its last field takes its key along, at [`HashMut::finish`]; a hash of a form with
//! deadlines keeps it even when the last deadline is gone, as in Redis.
use smallvec::SmallVec;

use super::{Field, HashRef, integer};
use crate::base::hash::KeyHash;
use crate::config::P;
use crate::ds::dated;
use crate::ds::listpack::{self, COUNT_BY_WALKING, Element, HEAD_BYTES, Listpack, Probe};
use crate::ds::object::{Object, Packing};
use crate::ds::packed::PackedBytes;
use crate::ds::raw::block::{NewValue, Value};
use crate::ds::table::{Deadline, Layout, PackedTable};
use crate::store::Store;
use crate::store::edit::Editor;
use crate::store::news::Event;
use crate::types::PACK_BYTES_MAX;
use crate::wire::{Error, Key};

/// Which changes of a field's deadline are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Condition {
    /// All.
    Always,
    /// Only where there is none.
    Absent,
    /// Only where there is one.
    Present,
    /// Only from an earlier one.
    Later,
    /// Only from a later one, or from none.
    Earlier,
}

impl Condition {
    fn allows(self, old_ms: Option<u64>, new_ms: u64) -> bool {
        match (self, old_ms) {
            (Condition::Always, _)
            | (Condition::Absent | Condition::Earlier, None)
            | (Condition::Present, Some(_)) => true,
            (Condition::Absent, Some(_)) | (Condition::Present | Condition::Later, None) => false,
            (Condition::Later, Some(old_ms)) => new_ms > old_ms,
            (Condition::Earlier, Some(old_ms)) => new_ms < old_ms,
        }
    }
}

/// What became of a field whose deadline was to change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// There is no such field.
    NoField,
    /// The deadline stays, for the condition or since there is none to take away.
    Unchanged,
    /// It has another one.
    Changed,
    /// Its time has come already: it is deleted.
    Deleted,
}

/// A hash to change. The key may be missing.
pub struct HashMut<'e, 'a> {
    editor: &'e mut Editor<'a>,
    /// Something was taken out.
    shrank: bool,
}

/// Deletes those of the named fields whose time has come, as Redis does when a read meets them.
pub fn clear_due<'n>(store: &mut Store, db: u32, key: Key<'_>, names: impl Iterator<Item = &'n [u8]>) {
    store.edit_unused(db, key, |editor| {
        let Ok(mut hash) = HashMut::of(editor) else { return };
        for name in names {
            hash.drop_due(name);
        }
        hash.finish();
    });
}

impl<'e, 'a> HashMut<'e, 'a> {
    /// The hash under a key; WRONGTYPE when it holds something else.
    #[inline]
    pub fn of(editor: &'e mut Editor<'a>) -> Result<HashMut<'e, 'a>, Error> {
        match editor.value() {
            Some(value) if HashRef::of_value(value).is_none() => Err(Error::WrongType),
            _ => Ok(HashMut { editor, shrank: false }),
        }
    }

    /// The hash as it is now; `None`: no such key.
    #[inline]
    pub fn view(&self) -> Option<HashRef<'_>> {
        self.editor.value().and_then(HashRef::of_value)
    }

    /// A field by its name, due or not.
    #[inline]
    pub fn find(&self, name: &[u8]) -> Option<Field<'_>> {
        self.view()?.find(name)
    }

    /// The time of this turn.
    #[inline]
    pub fn now_ms(&self) -> u64 {
        self.editor.now().ms
    }

    /// Deletes the key when no field is left. Ends every change.
    #[inline]
    pub fn finish(self) {
        if self.shrank && self.view().is_some_and(|hash| hash.len() == 0) {
            self.editor.remove();
        }
    }

    /// Reports changed fields.
    #[inline]
    pub fn changed(&mut self, fields: usize) {
        self.editor.changed(fields);
    }

    /// Names the events that the change stands for; see [`Editor::stands_for`].
    #[inline]
    pub fn stands_for(&mut self, events: &'static [Event]) {
        self.editor.stands_for(events);
    }

    fn table(&mut self) -> Option<&mut PackedTable> {
        match self.editor.object_mut()? {
            Object::Hash(table) => Some(table),
            _ => None,
        }
    }

    #[inline]
    fn is_table(&self) -> bool {
        matches!(self.editor.value(), Some(Value::Object(_)))
    }

    #[inline]
    fn entries_max(&self) -> usize {
        usize::try_from(self.editor.settings().int(P::HASH_MAX_LISTPACK_ENTRIES)).unwrap_or(usize::MAX)
    }

    #[inline]
    fn text_bytes_max(&self) -> usize {
        usize::try_from(self.editor.settings().memory(P::HASH_MAX_LISTPACK_VALUE)).unwrap_or(usize::MAX)
    }

    /// Makes it a table, with room for `more` fields.
    #[cold]
    fn make_table(&mut self, more: usize) {
        let old = self.view();
        let fields = old.map_or(0, HashRef::len);
        let mut table = PackedTable::with_capacity(Layout::KeysAndValues, fields + more);
        if let Some(old) = old {
            old.for_each(|Field { name, value, deadline_ms }| {
                let deadline = deadline_ms.map_or(Deadline::Clear, Deadline::At);
                name.with_text(|name| {
                    value.with_text(|value| table.insert(KeyHash::of(name), name, value, deadline))
                });
            });
        }
        self.editor.set(NewValue::Object(Box::new(Object::Hash(table))));
    }

    /// Makes it a table where the fields to come are too many or too long for a small hash.
    #[inline]
    pub fn make_room<'t>(&mut self, fields: usize, texts: impl Iterator<Item = &'t [u8]>) {
        if self.is_table() {
            return;
        }
        let text_bytes_max = self.text_bytes_max();
        let (mut bytes, mut longest) = (0, 0);
        for text in texts {
            bytes += text.len();
            longest = longest.max(text.len());
        }
        let stored = match self.editor.value() {
            Some(Value::Packed(_, stored)) => stored.len(),
            _ => 0,
        };
        if fields > self.entries_max() || longest > text_bytes_max || bytes + stored > PACK_BYTES_MAX {
            self.make_table(fields);
        }
    }

    /// Makes it a table when it has too many fields for a small hash.
    #[inline]
    fn keep_limit(&mut self) {
        if self.view().is_some_and(|hash| hash.len() > self.entries_max()) && !self.is_table() {
            self.make_table(0);
        }
    }

    /// Sets fields, whose number is known, and takes their deadlines away; returns how many are new.
    #[inline]
    pub fn set_all<'t>(
        &mut self,
        fields: usize,
        pairs: impl Iterator<Item = (&'t [u8], &'t [u8])> + Clone,
    ) -> usize {
        self.make_room(fields, pairs.clone().flat_map(|(name, value)| [name, value]));
        self.changed(fields);
        match self.editor.value() {
            None | Some(Value::Packed(Packing::Hash, _)) => self.set_pairs(pairs),
            Some(Value::Object(Object::Hash(_))) => {
                let Some(table) = self.table() else { return 0 };
                pairs
                    .filter(|(name, value)| table.insert(KeyHash::of(name), name, value, Deadline::Clear))
                    .count()
            }
            _ => pairs.filter(|(name, value)| self.put(name, value, false)).count(),
        }
    }

    /// Sets fields of pairs without deadlines. What is new goes in behind the others in one go.
    #[inline]
    fn set_pairs<'t>(&mut self, pairs: impl Iterator<Item = (&'t [u8], &'t [u8])>) -> usize {
        let mut fresh: SmallVec<[u8; 256]> = SmallVec::from_slice(&listpack::EMPTY);
        let mut added = 0;
        for (name, value) in pairs {
            let (probe, value) = (Probe::new(name), Element::Bytes(value));
            if let Some((_, mut pack)) = self.editor.packed() {
                let stored = Listpack::new(pack.bytes());
                if let Some(at) = stored.find(&probe, HEAD_BYTES, 2) {
                    let value_at = stored.skip(at, 1);
                    listpack::replace(&mut pack, value_at, value);
                    continue;
                }
            }
            let before = Listpack::new(&fresh);
            if added > 0
                && let Some(at) = before.find(&probe, HEAD_BYTES, 2)
            {
                let value_at = before.skip(at, 1);
                listpack::replace(&mut fresh, value_at, value);
                continue;
            }
            listpack::encode(Element::Bytes(name), &mut fresh);
            listpack::encode(value, &mut fresh);
            added += 1;
        }
        if added > 0 {
            self.append_pairs(&mut fresh, added);
        }
        added
    }

    /// Appends `added` encoded pairs that stand behind an empty head.
    fn append_pairs(&mut self, fresh: &mut [u8], added: usize) {
        if let Some((_, mut pack)) = self.editor.packed() {
            let end = pack.bytes().len();
            listpack::insert_encoded(&mut pack, end, &fresh[HEAD_BYTES..], 2 * added);
        } else {
            let count = u16::try_from(2 * added).unwrap_or(COUNT_BY_WALKING);
            fresh[..HEAD_BYTES].copy_from_slice(&count.to_le_bytes());
            self.editor.set(NewValue::Packed(Packing::Hash, fresh));
        }
        self.keep_limit();
    }

    /// Sets one field; its deadline stays or goes. `true`: it is new. Reports nothing.
    pub fn put(&mut self, name: &[u8], value: &[u8], keep_deadline: bool) -> bool {
        if !self.is_table() && name.len().max(value.len()) > self.text_bytes_max() {
            self.make_table(1);
        }
        match self.editor.value() {
            None | Some(Value::Packed(Packing::Hash, _)) => {
                self.set_pairs(std::iter::once((name, value))) == 1
            }
            Some(Value::Packed(..)) => self.put_dated(name, value, keep_deadline),
            _ => {
                let deadline = if keep_deadline { Deadline::Keep } else { Deadline::Clear };
                self.table().is_some_and(|table| table.insert(KeyHash::of(name), name, value, deadline))
            }
        }
    }

    fn put_dated(&mut self, name: &[u8], value: &[u8], keep_deadline: bool) -> bool {
        let Some((_, mut pack)) = self.editor.packed() else { return false };
        let (probe, value) = (Probe::new(name), Element::Bytes(value));
        let Some(place) = dated::find(Listpack::new(pack.bytes()), &probe) else {
            dated::append(&mut pack, Element::Bytes(name), value);
            self.keep_limit();
            return true;
        };
        listpack::replace(&mut pack, place.value_at, value);
        if !keep_deadline && place.deadline_ms.is_some() {
            // The value's length may have changed, so the place is looked up again.
            let place = dated::at(Listpack::new(pack.bytes()), place.at);
            dated::set_deadline(&mut pack, &place, None);
        }
        false
    }

    /// Adds to a field that is an integer, or is made; returns the sum.
    ///
    /// # Errors
    /// Its value is no integer, or the sum is none of 64 bits.
    pub fn increment(&mut self, name: &[u8], by: i64) -> Result<i64, Error> {
        let text_bytes_max = self.text_bytes_max();
        self.replace_due(name);
        if let Some((packing, mut pack)) = self.editor.packed() {
            let stored = Listpack::new(pack.bytes());
            let stride = if packing == Packing::Hash { 2 } else { dated::STRIDE };
            if let Some(at) = stored.find(&Probe::new(name), HEAD_BYTES, stride) {
                let value_at = stored.skip(at, 1);
                let next = sum(Some(stored.get(value_at)), by)?;
                if name.len().max(Element::Int(next).text_len()) <= text_bytes_max {
                    listpack::replace(&mut pack, value_at, Element::Int(next));
                    self.changed(1);
                    return Ok(next);
                }
            }
        }
        let next = sum(self.find(name).map(|field| field.value), by)?;
        self.put(name, itoa::Buffer::new().format(next).as_bytes(), true);
        self.changed(1);
        Ok(next)
    }

    /// Deletes a field whose time has come. `true`: it was there.
    pub fn drop_due(&mut self, name: &[u8]) -> bool {
        let now_ms = self.now_ms();
        let is_due = |hash: HashRef<'_>| {
            hash.has_due(now_ms) && hash.find(name).is_some_and(|field| field.is_due(now_ms))
        };
        let due = self.view().is_some_and(is_due) && self.remove(name);
        if due {
            self.editor.expired(1);
            self.editor.record_expired(name);
        }
        due
    }

    /// [`HashMut::drop_due`] before the field is made anew. A hash without any other field starts again from the
    /// smallest form.
    pub fn replace_due(&mut self, name: &[u8]) {
        if self.drop_due(name) && self.view().is_some_and(|hash| hash.len() == 0) {
            self.editor.remake(NewValue::Packed(Packing::Hash, &listpack::EMPTY));
        }
    }

    /// Deletes a field. `false`: there is none. Reports nothing.
    pub fn remove(&mut self, name: &[u8]) -> bool {
        let removed = match self.editor.packed() {
            Some((packing, mut pack)) => {
                let stride = if packing == Packing::Hash { 2 } else { dated::STRIDE };
                let found = Listpack::new(pack.bytes()).find(&Probe::new(name), HEAD_BYTES, stride);
                found.is_some_and(|at| listpack::remove(&mut pack, at, stride) > 0)
            }
            None => self.table().is_some_and(|table| table.remove(KeyHash::of(name), name)),
        };
        self.shrank |= removed;
        removed
    }

    /// Gives a small hash the form with deadlines. A missing one is made, and must get a field.
    pub fn admit_deadlines(&mut self) {
        let stored = match self.editor.value() {
            None => &listpack::EMPTY[..],
            Some(Value::Packed(Packing::Hash, stored)) => stored,
            _ => return,
        };
        let mut next = listpack::EMPTY.to_vec();
        dated::append_pairs(&mut next, Listpack::new(stored));
        self.editor.set(NewValue::Packed(Packing::HashDeadlines, &next));
    }

    /// Changes a field's deadline to `deadline_ms` where `condition` wants it; deletes the field when that has come
    /// already. The hash must admit deadlines. Reports nothing but the deletion.
    pub fn set_deadline(&mut self, name: &[u8], deadline_ms: u64, condition: Condition) -> Outcome {
        let now_ms = self.now_ms();
        let old_ms = match self.find(name) {
            None => return Outcome::NoField,
            Some(field) => field.deadline_ms,
        };
        if !condition.allows(old_ms, deadline_ms) {
            return Outcome::Unchanged;
        }
        if deadline_ms <= now_ms {
            self.remove(name);
            self.editor.overdue(1);
            self.editor.record_expired(name);
            return Outcome::Deleted;
        }
        self.write_deadline(name, Some(deadline_ms));
        Outcome::Changed
    }

    /// Takes a field's deadline away. Reports nothing.
    pub fn persist(&mut self, name: &[u8]) -> Outcome {
        match self.find(name) {
            None => Outcome::NoField,
            Some(Field { deadline_ms: None, .. }) => Outcome::Unchanged,
            Some(_) => {
                self.write_deadline(name, None);
                Outcome::Changed
            }
        }
    }

    fn write_deadline(&mut self, name: &[u8], deadline_ms: Option<u64>) {
        if let Some((_, mut pack)) = self.editor.packed() {
            if let Some(place) = dated::find(Listpack::new(pack.bytes()), &Probe::new(name)) {
                dated::set_deadline(&mut pack, &place, deadline_ms);
            }
        } else if let Some(table) = self.table() {
            table.set_deadline(KeyHash::of(name), name, deadline_ms);
        }
    }
}

/// The integer that a value becomes by a step; no value counts as 0.
fn sum(value: Option<Element<'_>>, by: i64) -> Result<i64, Error> {
    let now = match value {
        Some(value) => integer(value).ok_or_else(|| Error::err("hash value is not an integer"))?,
        None => 0,
    };
    now.checked_add(by).ok_or(Error::Overflow)
}
