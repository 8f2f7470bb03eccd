//! Changing a container: a key handed out with the right to edit its value in place, to replace it, or to delete it.
//!
//! Must stay true: whatever an editor did to its key is settled once, when the edit ends; an edit that reports no
//! change settles nothing; a container never stays empty (who empties it removes the key).
use super::db::{Dated, is_due};
use super::log::Log;
use super::news::{Event, listen};
use super::snapshot::save_ahead;
use super::{Effect, Now, Store};
use crate::config::Settings;
use crate::ds::object::{Kind, Object, Packing};
use crate::ds::packed::PackedBytes;
use crate::ds::raw::block::{Block, BlockMut, BlockRef, NewValue, Value};
use crate::ds::raw::dash::Slot;
use crate::wire::Key;

/// Where the key is.
enum Place<'a> {
    /// In the table.
    Table(Slot<'a, Block>),
    /// Nowhere yet, or made by this edit and not in the table yet.
    Made(Option<Block>),
    /// In the table, to be deleted when the edit ends.
    Removed(Slot<'a, Block>),
}

/// A key handed out for an edit.
pub struct Editor<'a> {
    place: Place<'a>,
    key: Key<'a>,
    now: Now,
    settings: &'a Settings,
    report: Report,
    /// A value that was replaced, to be freed by the store.
    replaced: Option<Block>,
    /// Where deleted parts are recorded, and the database.
    log: Option<(u32, &'a mut Log)>,
}

/// What an edit did, as far as the store must be told.
#[derive(Default)]
struct Report {
    /// Changed parts.
    changes: u64,
    /// It counts as a change, whether or not any part changed.
    is_change: bool,
    /// Parts deleted because their deadlines had come,
    expired: u64,
    /// and those whose new deadlines had come already.
    overdue: u64,
    /// The change is beside the value itself.
    is_beside: bool,
    /// The key went with its last part, and was made anew.
    remade: bool,
    /// The events that the change stands for.
    events: &'static [Event],
}

impl<'a> Editor<'a> {
    /// The key.
    pub fn key(&self) -> Key<'a> {
        self.key
    }

    /// The time of this turn.
    pub fn now(&self) -> Now {
        self.now
    }

    /// The settings in force.
    pub fn settings(&self) -> &'a Settings {
        self.settings
    }

    /// The key as it is now.
    #[inline]
    pub fn block(&self) -> Option<BlockRef<'_>> {
        match &self.place {
            Place::Table(slot) => Some(slot.view()),
            Place::Made(made) => made.as_ref().map(Block::view),
            Place::Removed(_) => None,
        }
    }

    #[inline]
    fn block_mut(&mut self) -> Option<BlockMut<'_>> {
        match &mut self.place {
            Place::Table(slot) => Some(slot.view_mut()),
            Place::Made(made) => made.as_mut().map(Block::view_mut),
            Place::Removed(_) => None,
        }
    }

    /// Its value; `None`: no such key.
    #[inline]
    pub fn value(&self) -> Option<Value<'_>> {
        self.block().map(BlockRef::value)
    }

    /// What its value is; `None`: no such key.
    #[inline]
    pub fn kind(&self) -> Option<Kind> {
        self.value().map(Value::kind)
    }

    /// Reports `parts` changed parts (elements, fields). Without a report the edit counts as none.
    #[inline]
    pub fn changed(&mut self, parts: usize) {
        self.report.changes += parts as u64;
        self.report.is_change |= parts > 0;
        self.report.is_beside &= parts == 0;
    }

    /// Reports so many changes of what hangs on the value, which are no changes of the value itself.
    #[inline]
    pub fn changed_beside(&mut self, changes: usize) {
        let is_beside = !self.report.is_change || self.report.is_beside;
        self.changed(changes);
        self.report.is_beside = is_beside;
    }

    /// Reports a change whatever it did: commands that Redis takes for changes even when they find nothing to do.
    #[inline]
    pub fn counts_as_change(&mut self) {
        self.report.is_change = true;
    }

    /// Reports a change that is a part of another one, which counts for both.
    #[inline]
    pub fn counts_with_another(&mut self) {
        self.report.is_change = true;
        self.report.changes = 0;
    }

    /// Names the events that this edit's change stands for, instead of those of the command.
    #[inline]
    pub fn stands_for(&mut self, events: &'static [Event]) {
        self.report.events = events;
    }

    /// Reports `parts` that were deleted because their deadlines had come.
    #[inline]
    pub fn expired(&mut self, parts: usize) {
        self.report.expired += parts as u64;
    }

    /// Records that a part was deleted because its deadline had come.
    #[inline]
    pub fn record_expired(&mut self, part: &[u8]) {
        if let Some((db, log)) = &mut self.log {
            log.note_part_gone(*db, self.key, part);
        }
    }

    /// [`Editor::record_expired`] while the value is handed out: for parts of this key.
    pub(super) fn take_log(&mut self) -> Option<(u32, &'a mut Log)> {
        self.log.take()
    }

    /// Reports `parts` that were deleted because the deadlines that the command gave them had come already. They count
    /// as expired, and are part of the command's own change.
    #[inline]
    pub fn overdue(&mut self, parts: usize) {
        self.report.overdue += parts as u64;
    }

    /// The large container.
    #[inline]
    pub fn object_mut(&mut self) -> Option<&mut Object> {
        match &mut self.place {
            Place::Table(slot) => slot.view_mut().into_object(),
            Place::Made(made) => made.as_mut().and_then(|block| block.view_mut().into_object()),
            Place::Removed(_) => None,
        }
    }

    /// The packed bytes, to change them, and how they are to be read.
    #[inline]
    pub fn packed(&mut self) -> Option<(Packing, PackedValue<'_, 'a>)> {
        match self.value() {
            Some(Value::Packed(packing, _)) => Some((packing, PackedValue(self))),
            _ => None,
        }
    }

    /// Says how the packed bytes are to be read from now on.
    pub fn set_packing(&mut self, packing: Packing) {
        if let Some(mut block) = self.block_mut() {
            block.set_packing(packing);
        }
    }

    /// Makes the key, or gives it another value; its deadline stays.
    pub fn set(&mut self, value: NewValue<'_>) {
        let deadline = self.block().and_then(BlockRef::deadline_ms);
        let access = self.block().map_or(self.now.fresh(), BlockRef::access);
        self.replace(Block::new(self.key.bytes, value, deadline, access, 0));
    }

    /// The last part of the key was deleted because its deadline had come, so the key is gone; makes it anew, without
    /// a deadline.
    pub fn remake(&mut self, value: NewValue<'_>) {
        self.report.remade = true;
        self.replace(Block::new(self.key.bytes, value, None, self.now.fresh(), 0));
    }

    fn replace(&mut self, block: Block) {
        match &mut self.place {
            Place::Table(slot) => {
                let old = slot.replace(block);
                // Only what is large must be freed by the store, and an edit replaces a large value once at most.
                if matches!(old.view().value(), Value::Object(_)) {
                    self.replaced = Some(old);
                }
            }
            Place::Made(made) => *made = Some(block),
            Place::Removed(_) => debug_assert!(false, "an edit does not go on behind a removal"),
        }
    }

    /// Deletes the key.
    pub fn remove(&mut self) {
        self.place = match std::mem::replace(&mut self.place, Place::Made(None)) {
            Place::Table(slot) => Place::Removed(slot),
            Place::Made(_) => Place::Made(None),
            removed @ Place::Removed(_) => removed,
        };
    }
}

/// The packed bytes of a key under edit.
pub struct PackedValue<'e, 'a>(&'e mut Editor<'a>);

impl PackedBytes for PackedValue<'_, '_> {
    #[inline]
    fn bytes(&self) -> &[u8] {
        match self.0.value() {
            Some(Value::Packed(_, bytes)) => bytes,
            _ => &[],
        }
    }

    #[inline]
    fn bytes_mut(&mut self) -> &mut [u8] {
        match &mut self.0.place {
            Place::Table(slot) => slot.view_mut().into_packed(),
            Place::Made(Some(block)) => block.view_mut().into_packed(),
            Place::Made(None) | Place::Removed(_) => &mut [],
        }
    }

    fn splice(&mut self, at: usize, remove: usize, insert: &[u8]) {
        let next = self.0.block_mut().and_then(|mut block| block.splice_packed(at, remove, insert));
        if let Some(next) = next {
            self.0.replace(next);
        }
    }
}

impl Store {
    /// Hands a key out for an edit of its container (one whose time has come is deleted on the way) and settles what
    /// `edit` did to it. One lookup, unless the key has to be made.
    #[inline]
    pub fn edit<T>(&mut self, db: u32, key: Key<'_>, edit: impl FnOnce(&mut Editor<'_>) -> T) -> T {
        self.edit_at(self.now, db, key, edit)
    }

    /// [`Store::edit`] without a mark that the key was used.
    pub fn edit_unused<T>(&mut self, db: u32, key: Key<'_>, edit: impl FnOnce(&mut Editor<'_>) -> T) -> T {
        self.edit_at(self.now.with_no_touch(true), db, key, edit)
    }

    #[inline]
    fn edit_at<T>(&mut self, now: Now, db: u32, key: Key<'_>, edit: impl FnOnce(&mut Editor<'_>) -> T) -> T {
        let found = self.dbs[db as usize]
            .as_deref_mut()
            .and_then(|base| base.table.slot(key.hash, key.bytes).map(|slot| (slot, base.saved_as)));
        let mut before = Dated::default();
        let place = match found {
            Some((mut slot, saved_as)) if !is_due(slot.view(), now.ms) => {
                save_ahead(&mut self.snapshot, saved_as, &mut slot);
                now.mark_use(slot.view());
                before = Dated::of(slot.view());
                Place::Table(slot)
            }
            Some(_) => {
                self.clear_due(db, key);
                Place::Made(None)
            }
            None => Place::Made(None),
        };
        let settings = &self.settings;
        let report = Report { events: self.events, ..Report::default() };
        let existed = matches!(place, Place::Table(_));
        let log = if self.listens & listen::LOG != 0 { Some((db, &mut self.log)) } else { None };
        let mut editor = Editor { place, key, now, settings, report, replaced: None, log };
        let result = edit(&mut editor);
        let Editor { place, report, replaced, .. } = editor;
        let exists = matches!(place, Place::Table(_) | Place::Made(Some(_)));
        let (after, gone) = match place {
            Place::Table(mut slot) => {
                let after = Dated::of(slot.view());
                if after.has_parts() {
                    slot.note_wake();
                }
                (after, replaced)
            }
            Place::Made(None) => (before, replaced),
            Place::Made(Some(block)) => {
                let after = Dated::of(block.view());
                self.db_mut(db).table.insert(key.hash, block);
                (after, replaced)
            }
            Place::Removed(slot) => (Dated::default(), Some(slot.remove())),
        };
        if before != after {
            self.db_mut(db).note(before, after);
        }
        if let Some(block) = gone {
            self.discard(block);
        }
        if report.expired + report.overdue > 0 || report.remade {
            self.settle_expired(db, key, &report, existed && !exists);
        }
        if report.is_change {
            let command_events = std::mem::replace(&mut self.events, report.events);
            let effect = match (existed && !report.remade, exists) {
                (true, true) if report.is_beside => Effect::Beside,
                (true, true) => Effect::Written,
                (true, false) => Effect::Emptied,
                (false, _) => Effect::Made,
            };
            self.settle_many(db, key, effect, report.changes);
            if effect == Effect::Made && !exists {
                self.settle_many(db, key, Effect::Deleted, 0);
            }
            self.events = command_events;
        }
        result
    }

    /// Settles what happened before the edit's own change: parts were deleted because their deadlines had come, and
    /// perhaps the key with them.
    #[cold]
    fn settle_expired(&mut self, db: u32, key: Key<'_>, report: &Report, removed: bool) {
        self.counters.expired_subkeys.add(report.overdue);
        self.has_records |= self.is_logged();
        if report.expired > 0 {
            self.settle_many(db, key, Effect::PartsExpired, report.expired);
        }
        if report.remade || (removed && !report.is_change) {
            self.settle_many(db, key, Effect::Deleted, 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::ds::list::Quicklist;
    use crate::host::Counters;
    use crate::store::db::{Found, Ttl};

    fn store() -> Store {
        let mut store = Store::new(Arc::default(), Arc::new(Counters::new(0)));
        store.now.ms = 1_000;
        store
    }

    fn state(store: &Store, key: Key<'_>) -> Option<(Vec<u8>, Option<u64>)> {
        let Found::Live(block) = store.find(0, key, store.now.ms) else { return None };
        let bytes = match block.value() {
            Value::Packed(_, bytes) => bytes.to_vec(),
            other => format!("{other:?}").into_bytes(),
        };
        Some((bytes, block.deadline_ms()))
    }

    fn append(editor: &mut Editor<'_>, bytes: &[u8]) {
        if editor.value().is_none() {
            editor.set(NewValue::Packed(Packing::List, b"ab"));
        }
        editor.packed().unwrap().1.append(bytes);
        editor.changed(bytes.len());
    }

    #[test]
    fn keys_are_made_edited_replaced_and_removed() {
        let (mut store, key) = (store(), Key::new(b"key"));
        store.edit(0, key, |_| {});
        assert_eq!((state(&store, key), store.db(0).is_none()), (None, true));
        store.edit(0, key, |editor| append(editor, b"c"));
        assert_eq!(state(&store, key), Some((b"abc".to_vec(), None)));
        store.set_deadline(0, key, Some(5_000));
        store.edit(0, key, |editor| append(editor, &[b'x'; 600]));
        assert_eq!(state(&store, key).map(|(bytes, at)| (bytes.len(), at)), Some((603, Some(5_000))));
        store.edit(0, key, |editor| {
            editor.packed().unwrap().1.bytes_mut()[..2].copy_from_slice(b"zz");
            editor.packed().unwrap().1.splice(2, 600, b"");
            editor.set_packing(Packing::Set);
            assert_eq!(editor.kind(), Some(Kind::Set));
        });
        assert_eq!(state(&store, key), Some((b"zzx".to_vec(), Some(5_000))));
        store.edit(0, key, |editor| {
            editor.set(NewValue::Object(Box::new(Object::List(Quicklist::default()))));
            assert!(editor.object_mut().is_some() && editor.packed().is_none());
            editor.remove();
            assert!(editor.value().is_none());
            editor.changed(1);
        });
        assert_eq!(
            (state(&store, key), store.db(0).map(|db| (db.table.len(), db.deadlines))),
            (None, Some((0, 0)))
        );
        assert_eq!(store.counters.dirty.get(), 1 + 1 + 600 + 1);
    }

    #[test]
    fn an_edit_finds_no_key_whose_time_has_come() {
        let (mut store, key) = (store(), Key::new(b"key"));
        store.put(0, key, NewValue::Packed(Packing::List, b"old"), Ttl::At(1_000), 0);
        store.edit(0, key, |editor| append(editor, b"c"));
        assert_eq!(state(&store, key), Some((b"abc".to_vec(), None)));
        assert_eq!(store.counters.expired_keys.get(), 1);
        assert_eq!(store.db(0).map(|db| db.deadlines), Some(0));
    }
}
