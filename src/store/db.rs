//! One database of one shard, and the store's operations on keys.
use super::snapshot::save_ahead;
use super::{Effect, Store};
use crate::ds::object::Kind;
use crate::ds::raw::block::{Block, BlockMut, BlockRef, NewValue};
use crate::ds::raw::dash::{Dash, Slot};
use crate::wire::Key;

/// The keys of one database in one shard.
#[derive(Default)]
pub struct Db {
    /// All keys.
    pub table: Dash<Block>,
    /// How many of them have a deadline.
    pub deadlines: usize,
    /// How many of them have a value with parts that have deadlines.
    pub dated_parts: usize,
    /// Where the expiry cycle goes on.
    pub(super) due_at: crate::ds::raw::dash::DueAt,
    /// Its number at the last snapshot's cut.
    pub(super) saved_as: u32,
}

/// What becomes of a key's deadline when its value is replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ttl {
    /// It stays.
    Keep,
    /// None from now on.
    Clear,
    /// Milliseconds since the epoch.
    At(u64),
}

/// What a command makes of a key's deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeadlineChange {
    /// It stays as it is.
    Keep,
    /// None from now on.
    Clear,
    /// Milliseconds since the epoch, in the future.
    Set(u64),
    /// It has come already: the key goes.
    Delete,
}

/// Which deadlines a key has; a missing key has none.
#[derive(Clone, Copy, Default, PartialEq)]
pub(super) struct Dated {
    key: bool,
    parts: bool,
}

impl Dated {
    #[inline]
    pub fn of(block: BlockRef<'_>) -> Dated {
        Dated { key: block.deadline_ms().is_some(), parts: block.parts_wake_ms().is_some() }
    }

    /// That of the key alone.
    #[inline]
    fn of_key(deadline_ms: Option<u64>) -> Dated {
        Dated { key: deadline_ms.is_some(), parts: false }
    }

    #[inline]
    pub fn has_parts(self) -> bool {
        self.parts
    }
}

impl Db {
    /// An empty one, made since snapshot number `walk` began.
    pub(super) fn walked(walk: u32) -> Db {
        Db { table: Dash::walked(walk), ..Db::default() }
    }

    /// Counts a key whose deadlines changed.
    #[inline]
    pub(super) fn note(&mut self, before: Dated, after: Dated) {
        self.deadlines = self.deadlines + usize::from(after.key) - usize::from(before.key);
        self.dated_parts = self.dated_parts + usize::from(after.parts) - usize::from(before.parts);
    }
}

#[inline]
pub(super) fn is_due(block: BlockRef<'_>, now_ms: u64) -> bool {
    block.deadline_ms().is_some_and(|at| at <= now_ms)
}

/// What becomes of a key that was handed out for a change.
pub enum Next<'v> {
    /// Nothing: it is as it was.
    Same,
    /// Its value was edited in place.
    Edited,
    /// It gets this value and these marks; its deadline stays. A missing key is made.
    Put(NewValue<'v>, u32),
    /// It gets this value, the same one in another form, and these marks. No change, so nobody hears of it.
    Recode(NewValue<'v>, u32),
}

/// What a lookup found.
pub enum Found<'a> {
    /// The key.
    Live(BlockRef<'a>),
    /// A key whose time has come; it counts as absent.
    Due,
    /// Nothing.
    Absent,
}

/// Gives the key in `slot` a value, without a move of its block where that is possible. Its deadline stays. Returns the
/// block that was replaced.
#[inline(always)]
fn set_value(slot: &mut Slot<'_, Block>, key: Key<'_>, value: NewValue<'_>, marks: u32) -> Option<Block> {
    if slot.view_mut().store(&value) {
        slot.view_mut().set_marks(marks);
        return None;
    }
    let (deadline, access) = (slot.view().deadline_ms(), slot.view().access());
    Some(slot.replace(Block::new(key.bytes, value, deadline, access, marks)))
}

impl Store {
    /// Looks a key up. Expired means absent, and is told apart so that the owner can clear it away.
    #[inline(always)]
    pub fn find(&self, db: u32, key: Key<'_>, now_ms: u64) -> Found<'_> {
        match self.db(db).and_then(|db| db.table.get(key.hash, key.bytes)) {
            Some(block) if is_due(block, now_ms) => Found::Due,
            Some(block) => Found::Live(block),
            None => Found::Absent,
        }
    }

    /// What a live key is; `None`: there is none.
    pub fn kind(&self, db: u32, key: Key<'_>) -> Option<Kind> {
        match self.find(db, key, self.now.ms) {
            Found::Live(block) => Some(block.value().kind()),
            Found::Due | Found::Absent => None,
        }
    }

    /// Deletes the key when its time has come.
    pub fn clear_due(&mut self, db: u32, key: Key<'_>) {
        // A database without deadlines is spared the lookup.
        if self.db(db).is_none_or(|base| base.deadlines == 0) {
            return;
        }
        if matches!(self.find(db, key, self.now.ms), Found::Due) {
            self.remove_as(db, key, Effect::Expired);
        }
    }

    fn remove_as(&mut self, db: u32, key: Key<'_>, effect: Effect) -> bool {
        self.take_as(db, key, effect).map(|(block, effect)| {
            self.discard(block);
            effect
        }) == Some(effect)
    }

    /// Takes a key out; one whose time has come counts as expired, whatever `effect` says.
    fn take_as(&mut self, db: u32, key: Key<'_>, effect: Effect) -> Option<(Block, Effect)> {
        let now_ms = self.now.ms;
        let base = self.dbs[db as usize].as_deref_mut()?;
        let mut slot = base.table.slot(key.hash, key.bytes)?;
        let effect = if is_due(slot.view(), now_ms) { Effect::Expired } else { effect };
        save_ahead(&mut self.snapshot, base.saved_as, &mut slot);
        let block = slot.remove();
        base.note(Dated::of(block.view()), Dated::default());
        self.settle(db, key, effect);
        Some((block, effect))
    }

    /// Deletes a key. `false`: it was not there.
    pub fn remove(&mut self, db: u32, key: Key<'_>) -> bool {
        self.remove_as(db, key, Effect::Deleted)
    }

    /// Takes a key out, to put it elsewhere.
    pub fn take(&mut self, db: u32, key: Key<'_>) -> Option<Block> {
        let (block, effect) = self.take_as(db, key, Effect::Taken)?;
        (effect == Effect::Taken).then_some(block)
    }

    /// Makes or replaces a key. Without a move of its block where value and deadline allow it.
    pub fn put(&mut self, db: u32, key: Key<'_>, value: NewValue<'_>, ttl: Ttl, marks: u32) {
        let now = self.now;
        let (base, snapshot) = self.db_with_snapshot(db);
        let Some(mut slot) = base.table.slot(key.hash, key.bytes) else {
            let deadline = if let Ttl::At(ms) = ttl { Some(ms) } else { None };
            let block = Block::new(key.bytes, value, deadline, now.fresh(), marks);
            base.note(Dated::default(), Dated::of(block.view()));
            base.table.insert(key.hash, block);
            return self.settle(db, key, Effect::Made);
        };
        let before = slot.view().deadline_ms();
        if before.is_some_and(|at| at <= now.ms) {
            self.clear_due(db, key);
            return self.put(db, key, value, ttl, marks);
        }
        save_ahead(snapshot, base.saved_as, &mut slot);
        let after = match ttl {
            Ttl::Keep => before,
            Ttl::Clear => None,
            Ttl::At(ms) => Some(ms),
        };
        let access = now.used(slot.view());
        if before.is_some() == after.is_some() && slot.view_mut().store(&value) {
            if let Some(ms) = after {
                slot.move_deadline(ms);
            }
            slot.view_mut().set_marks(marks);
            slot.view().touch(access);
        } else {
            let block = Block::new(key.bytes, value, after, access, marks);
            let after = Dated::of(block.view());
            let old = slot.replace(block);
            base.note(Dated::of(old.view()), after);
            self.discard(old);
        }
        self.settle(db, key, Effect::Written);
    }

    /// Puts a block in under its own key, which is `key`, instead of whatever is there.
    pub fn place(&mut self, db: u32, key: Key<'_>, block: Block) {
        debug_assert_eq!(block.view().key(), key.bytes);
        let (base, snapshot) = self.db_with_snapshot(db);
        let after = Dated::of(block.view());
        let old = match base.table.slot(key.hash, key.bytes) {
            Some(mut slot) => {
                save_ahead(snapshot, base.saved_as, &mut slot);
                Some(slot.replace(block))
            }
            None => {
                base.table.insert(key.hash, block);
                None
            }
        };
        base.note(old.as_ref().map_or(Dated::default(), |old| Dated::of(old.view())), after);
        if let Some(old) = old {
            self.discard(old);
        }
        self.settle(db, key, Effect::Made);
    }

    /// Puts a block in that comes from a file, under its own key, which is `key`; nobody hears of it, and it counts as no
    /// change. `false`: there is such a key, and it stays.
    pub fn load(&mut self, db: u32, key: Key<'_>, block: Block) -> bool {
        debug_assert_eq!(block.view().key(), key.bytes);
        let base = self.db_mut(db);
        if base.table.get(key.hash, key.bytes).is_some() {
            return false;
        }
        base.note(Dated::default(), Dated::of(block.view()));
        base.table.insert(key.hash, block);
        true
    }

    /// Makes room in a database without keys for so many of them.
    pub fn make_room(&mut self, db: u32, keys: usize) {
        let walks = self.walks;
        // A table that was laid out counts as walked by no walk.
        if walks == 0 && keys > 0 && self.key_count(db) == 0 {
            self.dbs[db as usize] = Some(Box::new(Db { table: Dash::with_capacity(keys), ..Db::default() }));
        }
    }

    /// Hands the live key out for a change, `None` when there is none (one whose time has come is deleted on the
    /// way), and does what `change` says. One lookup, unless the key has to be made.
    ///
    /// # Errors
    /// What `change` returns; then nothing but the access clock changes.
    #[inline]
    pub fn update<'v, T, E>(
        &mut self,
        db: u32,
        key: Key<'_>,
        change: impl FnOnce(Option<BlockMut<'_>>) -> Result<(T, Next<'v>), E>,
    ) -> Result<T, E> {
        let now = self.now;
        let found = self.dbs[db as usize]
            .as_deref_mut()
            .and_then(|base| base.table.slot(key.hash, key.bytes).map(|slot| (slot, base.saved_as)));
        if let Some((mut slot, saved_as)) = found {
            if !is_due(slot.view(), now.ms) {
                save_ahead(&mut self.snapshot, saved_as, &mut slot);
                now.mark_use(slot.view());
                let (result, next) = change(Some(slot.view_mut()))?;
                let (changed, old) = match next {
                    Next::Same => (false, None),
                    Next::Edited => (true, None),
                    Next::Put(value, marks) => (true, set_value(&mut slot, key, value, marks)),
                    Next::Recode(value, marks) => (false, set_value(&mut slot, key, value, marks)),
                };
                if let Some(old) = old {
                    self.discard(old);
                }
                if changed {
                    self.settle(db, key, Effect::Written);
                }
                return Ok(result);
            }
            self.remove_as(db, key, Effect::Expired);
        }
        let (result, next) = change(None)?;
        if let Next::Put(value, marks) = next {
            let base = self.db_mut(db);
            base.table.insert(key.hash, Block::new(key.bytes, value, None, now.fresh(), marks));
            self.settle(db, key, Effect::Made);
        }
        Ok(result)
    }

    /// Sets or clears a key's deadline. `false`: no such key.
    pub fn set_deadline(&mut self, db: u32, key: Key<'_>, deadline_ms: Option<u64>) -> bool {
        let change = deadline_ms.map_or(DeadlineChange::Clear, DeadlineChange::Set);
        self.change_deadline(db, key, |_| change).is_some()
    }

    /// Changes a key's deadline as `decide` wants it; returns what that was. `None`: no such key.
    pub fn change_deadline(
        &mut self,
        db: u32,
        key: Key<'_>,
        decide: impl FnOnce(BlockRef<'_>) -> DeadlineChange,
    ) -> Option<DeadlineChange> {
        let now_ms = self.now.ms;
        let base = self.dbs[db as usize].as_deref_mut()?;
        let mut slot = base.table.slot(key.hash, key.bytes)?;
        if is_due(slot.view(), now_ms) {
            self.clear_due(db, key);
            return None;
        }
        let change = decide(slot.view());
        if change != DeadlineChange::Keep {
            save_ahead(&mut self.snapshot, base.saved_as, &mut slot);
        }
        let after = match change {
            DeadlineChange::Keep => return Some(change),
            DeadlineChange::Clear => None,
            DeadlineChange::Set(ms) => Some(ms),
            DeadlineChange::Delete => {
                self.remove_as(db, key, Effect::Deleted);
                return Some(change);
            }
        };
        let before = slot.view().deadline_ms();
        let moved = after.is_some_and(|ms| slot.move_deadline(ms));
        if !moved && before != after {
            slot.update(|block| block.with_deadline(after));
            // Its parts stay as they are.
            base.note(Dated::of_key(before), Dated::of_key(after));
        }
        self.settle(db, key, Effect::Deadline);
        Some(change)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::ds::raw::block::Payload;
    use crate::host::Counters;
    use crate::store::Now;

    fn store() -> Store {
        let mut store = Store::new(Arc::default(), Arc::new(Counters::new(0)));
        store.now = Now { ms: 1_000, access: 1, ..Now::default() };
        store
    }

    fn put(store: &mut Store, key: &[u8], ttl: Ttl) {
        store.put(0, Key::new(key), NewValue::Int(1), ttl, 0);
    }

    fn deadlines(store: &Store) -> usize {
        let db = store.db(0).unwrap();
        let mut counted = 0;
        db.table.for_each(|block| counted += usize::from(block.deadline_ms().is_some()));
        assert_eq!(db.deadlines, counted);
        counted
    }

    #[test]
    fn deadlines_are_counted() {
        let mut store = store();
        let (a, b) = (Key::new(b"a"), Key::new(b"b"));
        put(&mut store, b"a", Ttl::At(2_000));
        put(&mut store, b"b", Ttl::At(2_000));
        assert_eq!(deadlines(&store), 2);
        let block = store.take(0, a).unwrap();
        assert_eq!(deadlines(&store), 1);
        store.place(0, b, block.with_key(b"b"));
        assert_eq!(deadlines(&store), 1);
        store.place(0, b, Block::new(b"b", NewValue::Int(7), None, 0, 0));
        assert_eq!(deadlines(&store), 0);
        assert!(store.set_deadline(0, b, Some(3_000)) && deadlines(&store) == 1);
        assert!(store.set_deadline(0, b, None) && deadlines(&store) == 0);
        assert!(
            matches!(store.find(0, b, 1_000), Found::Live(block) if block.string() == Some(Payload::Int(7)))
        );
        assert!(!store.set_deadline(0, a, Some(3_000)));
    }

    #[test]
    fn what_is_due_is_absent_to_every_change() {
        let mut store = store();
        let changes: [fn(&mut Store, Key<'_>) -> bool; 4] = [
            |store, key| store.remove(0, key),
            |store, key| store.take(0, key).is_some(),
            |store, key| store.set_deadline(0, key, None),
            |store, key| store.change_deadline(0, key, |_| DeadlineChange::Delete).is_some(),
        ];
        for (round, change) in changes.into_iter().enumerate() {
            put(&mut store, b"k", Ttl::At(1_000));
            assert!(!change(&mut store, Key::new(b"k")));
            assert_eq!((store.key_count(0), deadlines(&store)), (0, 0));
            assert_eq!(store.counters.expired_keys.get(), round as u64 + 1);
        }
    }

    #[test]
    fn deadlines_change_as_decided() {
        let mut store = store();
        let key = Key::new(b"k");
        put(&mut store, b"k", Ttl::Clear);
        for change in [DeadlineChange::Set(5_000), DeadlineChange::Keep] {
            assert_eq!(store.change_deadline(0, key, |_| change), Some(change));
            assert!(matches!(store.find(0, key, 1_000), Found::Live(b) if b.deadline_ms() == Some(5_000)));
        }
        store.change_deadline(0, key, |_| DeadlineChange::Delete);
        assert!(matches!(store.find(0, key, 1_000), Found::Absent));
        assert_eq!(deadlines(&store), 0);
    }
}

#[cfg(test)]
mod update_tests {
    use std::sync::Arc;

    use super::*;
    use crate::config::Settings;
    use crate::ds::raw::block::{MARK_EDITED, Payload};
    use crate::host::Counters;

    const NEVER_MS: u64 = u64::MAX;

    fn store_with(key: Key<'_>, value: NewValue<'_>, ttl: Ttl) -> Store {
        let mut store = Store::new(Arc::new(Settings::default()), Arc::new(Counters::new(1)));
        store.put(0, key, value, ttl, 0);
        store
    }

    fn change(store: &mut Store, key: Key<'_>, next: Result<Next<'static>, ()>) -> Result<bool, ()> {
        store.update(0, key, |block| Ok((block.is_some(), next?)))
    }

    #[test]
    fn updates_keep_the_deadline() {
        let key = Key::new(b"key");
        for value in [NewValue::Int(1), NewValue::Bytes(b"abc"), NewValue::Heap(vec![7; 20_000])] {
            let mut store = store_with(key, value, Ttl::At(NEVER_MS));
            for next in [NewValue::Int(5), NewValue::Bytes(b"xyz"), NewValue::Heap(vec![1; 30_000])] {
                assert_eq!(change(&mut store, key, Ok(Next::Put(next, MARK_EDITED))), Ok(true));
                let Found::Live(block) = store.find(0, key, 0) else { panic!("the key stays") };
                assert_eq!((block.deadline_ms(), block.marks()), (Some(NEVER_MS), MARK_EDITED));
            }
            assert_eq!(store.db(0).map(|db| (db.table.len(), db.deadlines)), Some((1, 1)));
        }
    }

    #[test]
    fn updates_find_no_key_whose_time_has_come() {
        let key = Key::new(b"key");
        let mut store = store_with(key, NewValue::Int(1), Ttl::At(1));
        assert_eq!(change(&mut store, key, Ok(Next::Put(NewValue::Int(2), 0))), Ok(false));
        let Found::Live(block) = store.find(0, key, 0) else { panic!("the key was made anew") };
        assert_eq!((block.string(), block.deadline_ms()), (Some(Payload::Int(2)), None));
        assert_eq!(store.counters.expired_keys.get(), 1);
        assert_eq!(store.db(0).map(|db| (db.table.len(), db.deadlines)), Some((1, 0)));
    }

    #[test]
    fn only_changes_are_settled() {
        let (key, other) = (Key::new(b"key"), Key::new(b"other"));
        let mut store = store_with(key, NewValue::Int(1), Ttl::Clear);
        let dirty = |store: &Store| store.counters.dirty.get();
        let before = dirty(&store);
        assert_eq!(change(&mut store, key, Err(())), Err(()));
        assert_eq!(change(&mut store, other, Err(())), Err(()));
        assert_eq!(change(&mut store, key, Ok(Next::Same)), Ok(true));
        assert_eq!(change(&mut store, key, Ok(Next::Recode(NewValue::Bytes(b"1"), MARK_EDITED))), Ok(true));
        assert_eq!(change(&mut store, other, Ok(Next::Same)), Ok(false));
        assert_eq!((dirty(&store), store.db(0).map(|db| db.table.len())), (before, Some(1)));
        assert_eq!(change(&mut store, key, Ok(Next::Edited)), Ok(true));
        assert_eq!(change(&mut store, key, Ok(Next::Put(NewValue::Int(2), 0))), Ok(true));
        assert_eq!(change(&mut store, other, Ok(Next::Put(NewValue::Int(2), 0))), Ok(false));
        assert_eq!(dirty(&store), before + 3);
    }
}
