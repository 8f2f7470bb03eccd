//! A snapshot of a store, taken while writes go on: one walk over all keys, which writers help along.
//!
//! The cut ([`Store::begin_snapshot`]) copies nothing. From then on whoever is about to change a key that the walk has
//! not visited writes that key first ([`Store::save_ahead`], asked at the places where keys are handed out for a
//! change), so what is written is what was there at the cut. What is new since the cut is not owed and is not written.
//!
//! Must stay true: of each key that was there at the cut one record is written, in the state of the cut (but for keys whose
//! deadline has come meanwhile, which are as good as gone); records are sent whole, but for those that say `is_open`; the
//! walk ends however much is written meanwhile.
use std::collections::VecDeque;

use super::Store;
use super::db::Db;
use crate::ds::object::Object;
use crate::ds::raw::block::{Block, BlockRef, Value};
use crate::ds::raw::dash::{Slot, WalkAt};
use crate::wire::Key;

/// Values with a vector of more bytes are written in steps.
const VECTOR_BYTES_STEP: usize = 64 * 1024;
/// So are containers of more parts.
const PARTS_STEP: usize = 1024;

/// Turns keys into the records of a file.
pub trait Encode: Send + Sync {
    /// Says that the records that follow are of database `db`.
    fn select(&mut self, db: u32, out: &mut Vec<u8>);
    /// Appends the record of a key.
    fn key(&mut self, block: BlockRef<'_>, out: &mut Vec<u8>);
    /// Begins the record of a key with a large value. [`Encode::go_on`] is called until it is complete; other records may
    /// be encoded meanwhile, but no other large one.
    fn begin(&mut self, block: BlockRef<'_>, out: &mut Vec<u8>);
    /// Appends about `bytes` more of the record that was begun. `true`: it is complete.
    fn go_on(&mut self, block: BlockRef<'_>, bytes: usize, out: &mut Vec<u8>) -> bool;
}

/// Where the bytes of one store's snapshot go.
pub trait Outlet: Send + Sync {
    /// An empty buffer to be filled.
    fn buffer(&self) -> Vec<u8>;
    /// Takes records, the first one behind the selection of its database. While `is_open` the last record goes on in the
    /// next bytes of this store, and nothing may come between.
    fn send(&self, bytes: Vec<u8>, is_open: bool);
    /// Whether there is room for more now; guards send whatever is in flight.
    fn has_room(&self) -> bool;
    /// Whether anybody still wants the snapshot.
    fn is_wanted(&self) -> bool;
    /// So many keys more were written.
    fn note_keys(&self, keys: u64);
    /// All databases were emptied at once, or the server ends: a snapshot that stands for all data is worth nothing.
    fn give_up(&self);
    /// Nobody wants the snapshot any more, whatever it is for.
    fn cancel(&self);
    /// All records of this store were sent.
    fn finish(self: Box<Self>);
}

/// How a step of the walk ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// There is more to do.
    More,
    /// All is written.
    Done,
}

/// Records, and the database that they have selected.
#[derive(Default)]
struct Records {
    bytes: Vec<u8>,
    selected: Option<u32>,
}

impl Records {
    fn select(&mut self, db: u32, encoder: &mut dyn Encode) {
        if self.selected != Some(db) {
            encoder.select(db, &mut self.bytes);
            self.selected = Some(db);
        }
    }
}

/// A database that the walk is not through with.
struct Base {
    /// Its number at the cut.
    saved_as: u32,
    place: Place,
}

enum Place {
    /// It is the store's database of this number.
    Live(u32),
    /// It was emptied since the cut; its keys wait here for the walk.
    Retired(Box<Db>),
}

/// A large key whose record is being written.
struct Large {
    saved_as: u32,
    key: Box<[u8]>,
}

/// The walk of one store.
pub(super) struct Snapshot {
    encoder: Box<dyn Encode>,
    outlet: Box<dyn Outlet>,
    /// What is left to walk; the first is under way, at `at`.
    bases: VecDeque<Base>,
    at: WalkAt,
    large: Option<Large>,
    records: Records,
    /// Records that were written ahead while a large one is under way.
    aside: Records,
    /// Keys written that the outlet does not know of.
    keys: u64,
    /// Nobody wants the rest; the walk goes on to its end, for the marks that it leaves.
    is_dropped: bool,
}

/// Whether the value is to be written in steps.
fn is_large(block: BlockRef<'_>) -> bool {
    match block.value() {
        Value::Object(object) => object.parts() > PARTS_STEP || matches!(object, Object::Stream(_)),
        _ => block.vector_bytes() > VECTOR_BYTES_STEP,
    }
}

impl Snapshot {
    /// Writes a key of database `saved_as` that the walk owes, whole.
    fn write(&mut self, saved_as: u32, block: BlockRef<'_>) {
        self.keys += 1;
        if self.is_dropped {
            return;
        }
        let records = if self.large.is_some() { &mut self.aside } else { &mut self.records };
        records.select(saved_as, &mut *self.encoder);
        self.encoder.key(block, &mut records.bytes);
    }

    /// Goes on with the large key under way. `true`: it is complete.
    fn go_on(&mut self, block: BlockRef<'_>, bytes: usize) -> bool {
        if !self.is_dropped && !self.encoder.go_on(block, bytes, &mut self.records.bytes) {
            return false;
        }
        self.large = None;
        let aside = std::mem::take(&mut self.aside);
        if !aside.bytes.is_empty() {
            self.records.bytes.extend_from_slice(&aside.bytes);
            self.records.selected = aside.selected;
        }
        true
    }

    /// Sends what was written.
    fn send(&mut self) {
        if !self.is_dropped && !self.outlet.is_wanted() {
            self.is_dropped = true;
            self.records = Records::default();
            self.aside = Records::default();
        }
        self.outlet.note_keys(std::mem::take(&mut self.keys));
        if self.records.bytes.is_empty() {
            return;
        }
        let is_open = self.large.is_some();
        // What goes on selects nothing anew.
        let selected = if is_open { self.records.selected } else { None };
        let next = Records { bytes: self.outlet.buffer(), selected };
        let records = std::mem::replace(&mut self.records, next);
        self.outlet.send(records.bytes, is_open);
    }

    /// Writes a key that is about to change.
    #[cold]
    fn save_ahead(&mut self, saved_as: u32, slot: &mut Slot<'_, Block>) {
        if !self.complete(saved_as, slot.view()) {
            self.write(saved_as, slot.view());
        }
        slot.set_visited();
    }

    /// Completes the large key under way if it is this one. `false`: it is not.
    pub(super) fn complete(&mut self, saved_as: u32, block: BlockRef<'_>) -> bool {
        let large = self.large.as_ref();
        let is_this = large.is_some_and(|large| large.saved_as == saved_as && *large.key == *block.key());
        while is_this && !self.go_on(block, usize::MAX) {}
        is_this
    }

    /// Walks on in `db` until about `bytes` are there. `true`: the walk is through with it.
    fn walk(&mut self, saved_as: u32, db: &mut Db, bytes: usize) -> bool {
        if let Some(large) = &self.large {
            let key = Key::new(&large.key);
            // Whoever changes it completes it first, so it is there.
            let Some(mut slot) = db.table.slot(key.hash, key.bytes) else {
                debug_assert!(false, "a large key under way stays");
                self.large = None;
                return false;
            };
            if self.go_on(slot.view(), bytes) {
                slot.set_visited();
            }
            return false;
        }
        let next = db.table.walk(self.at, &mut |block| {
            if self.records.bytes.len() >= bytes || self.large.is_some() {
                return false;
            }
            if is_large(block) && !self.is_dropped {
                self.keys += 1;
                self.records.select(saved_as, &mut *self.encoder);
                self.encoder.begin(block, &mut self.records.bytes);
                self.large = Some(Large { saved_as, key: block.key().into() });
                return false;
            }
            self.write(saved_as, block);
            true
        });
        self.at = next.unwrap_or_default();
        next.is_none()
    }
}

/// Has the snapshot under way write a key that is about to change, if it has not yet.
#[inline(always)]
pub(super) fn save_ahead(snapshot: &mut Option<Box<Snapshot>>, saved_as: u32, slot: &mut Slot<'_, Block>) {
    if let Some(snapshot) = snapshot
        && slot.is_owed()
    {
        snapshot.save_ahead(saved_as, slot);
    }
}

impl Store {
    /// Begins a snapshot of what is here now. The walk of the one before must be through ([`Store::has_snapshot`]).
    pub fn begin_snapshot(&mut self, encoder: Box<dyn Encode>, outlet: Box<dyn Outlet>) {
        debug_assert!(self.snapshot.is_none(), "one snapshot at a time");
        self.walks = self.walks.wrapping_add(1);
        let mut bases = VecDeque::new();
        for (index, db) in self.dbs.iter_mut().enumerate() {
            let Some(db) = db else { continue };
            db.saved_as = index as u32;
            db.table.begin_walk(self.walks);
            bases.push_back(Base { saved_as: index as u32, place: Place::Live(index as u32) });
        }
        self.snapshot = Some(Box::new(Snapshot {
            encoder,
            outlet,
            bases,
            at: WalkAt::default(),
            large: None,
            records: Records::default(),
            aside: Records::default(),
            keys: 0,
            is_dropped: false,
        }));
        self.news.has_cut = true;
        self.has_news = true;
    }

    /// Whether a snapshot is under way, if only for the marks that an abandoned one left behind.
    #[inline]
    pub fn has_snapshot(&self) -> bool {
        self.snapshot.is_some()
    }

    /// Whether the snapshot under way may be walked on now.
    pub fn may_walk(&self) -> bool {
        self.snapshot
            .as_ref()
            .is_some_and(|snapshot| snapshot.outlet.has_room() || !snapshot.outlet.is_wanted())
    }

    /// Whether anybody still wants the snapshot under way.
    pub fn is_snapshot_wanted(&self) -> bool {
        self.snapshot.as_ref().is_some_and(|snapshot| snapshot.outlet.is_wanted())
    }

    /// Walks on, and sends about `bytes`. [`Step::Done`]: the snapshot is complete and over.
    pub fn snapshot_step(&mut self, bytes: usize) -> Step {
        let Some(mut snapshot) = self.snapshot.take() else { return Step::Done };
        while let Some(Base { saved_as, place }) = snapshot.bases.pop_front() {
            let is_through = match place {
                Place::Live(index) => {
                    let db = self.dbs[index as usize].as_deref_mut();
                    let is_through = db.is_none_or(|db| snapshot.walk(saved_as, db, bytes));
                    if !is_through {
                        snapshot.bases.push_front(Base { saved_as, place: Place::Live(index) });
                    }
                    is_through
                }
                Place::Retired(mut db) => {
                    let is_through = snapshot.walk(saved_as, &mut db, bytes);
                    if is_through {
                        self.free_db(db);
                    } else {
                        snapshot.bases.push_front(Base { saved_as, place: Place::Retired(db) });
                    }
                    is_through
                }
            };
            if !is_through && (snapshot.records.bytes.len() >= bytes || snapshot.is_dropped) {
                break;
            }
        }
        snapshot.send();
        if snapshot.bases.is_empty() {
            snapshot.outlet.finish();
            return Step::Done;
        }
        self.snapshot = Some(snapshot);
        Step::More
    }

    /// Gives the snapshot under way up, if it stands for all data: that is emptied, or the server ends.
    pub fn give_up_snapshot(&self) {
        if let Some(snapshot) = &self.snapshot {
            snapshot.outlet.give_up();
        }
    }

    /// Gives the snapshot under way up, whatever it is for: nobody wants it any more.
    pub fn cancel_snapshot(&self) {
        if let Some(snapshot) = &self.snapshot {
            snapshot.outlet.cancel();
        }
    }

    /// Keeps a database that is emptied for the snapshot under way, if it is owed any of it. `Some`: it is not.
    pub(super) fn retire(&mut self, index: u32, db: Box<Db>) -> Option<Box<Db>> {
        let snapshot = self.snapshot.as_mut().filter(|snapshot| !snapshot.is_dropped);
        let base = snapshot.and_then(|s| {
            s.bases.iter_mut().find(|base| matches!(base.place, Place::Live(at) if at == index))
        });
        match base {
            Some(base) => {
                base.place = Place::Retired(db);
                None
            }
            None => Some(db),
        }
    }

    /// Follows databases that take each other's places.
    pub(super) fn swap_in_snapshot(&mut self, a: u32, b: u32) {
        let Some(snapshot) = &mut self.snapshot else { return };
        for base in &mut snapshot.bases {
            if let Place::Live(index) = &mut base.place {
                *index = if *index == a {
                    b
                } else if *index == b {
                    a
                } else {
                    *index
                };
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    use parking_lot::Mutex;
    use proptest::prelude::*;

    use super::*;
    use crate::ds::raw::block::{NewValue, Payload};
    use crate::host::Counters;
    use crate::store::db::Ttl;

    /// Writes `db key length first;` for each key, and large values byte by byte.
    #[derive(Default)]
    struct Lines {
        written: usize,
    }

    fn text(block: BlockRef<'_>) -> Vec<u8> {
        match block.string() {
            Some(Payload::Int(int)) => int.to_string().into_bytes(),
            Some(Payload::Bytes(bytes)) => bytes.to_vec(),
            None => Vec::new(),
        }
    }

    impl Encode for Lines {
        fn select(&mut self, db: u32, out: &mut Vec<u8>) {
            out.extend_from_slice(format!("@{db};").as_bytes());
        }

        fn key(&mut self, block: BlockRef<'_>, out: &mut Vec<u8>) {
            let key = String::from_utf8_lossy(block.key());
            out.extend_from_slice(format!("{key} ").as_bytes());
            out.extend_from_slice(&text(block));
            out.push(b';');
        }

        fn begin(&mut self, block: BlockRef<'_>, out: &mut Vec<u8>) {
            let key = String::from_utf8_lossy(block.key());
            out.extend_from_slice(format!("{key} ").as_bytes());
            self.written = 0;
        }

        fn go_on(&mut self, block: BlockRef<'_>, bytes: usize, out: &mut Vec<u8>) -> bool {
            let text = text(block);
            let end = self.written.saturating_add(bytes.max(1)).min(text.len());
            out.extend_from_slice(&text[self.written..end]);
            self.written = end;
            if end == text.len() {
                out.push(b';');
            }
            end == text.len()
        }
    }

    type Keys = BTreeMap<(u32, String), String>;

    /// What a store holds.
    fn state(store: &Store) -> Keys {
        let mut keys = Keys::new();
        for db in 0..3 {
            let Some(base) = store.db(db) else { continue };
            base.table.for_each(|block| {
                let key = String::from_utf8_lossy(block.key()).into_owned();
                keys.insert((db, key), String::from_utf8_lossy(&text(block)).into_owned());
            });
        }
        keys
    }

    /// What the records say; `None`: a key comes twice, or before any database is selected.
    fn parsed(bytes: &[u8]) -> Option<Keys> {
        let (mut keys, mut db) = (Keys::new(), None);
        for record in String::from_utf8_lossy(bytes).split_terminator(';') {
            if let Some(number) = record.strip_prefix('@') {
                db = number.parse().ok();
                continue;
            }
            let (key, value) = record.split_once(' ')?;
            if keys.insert((db?, key.to_string()), value.to_string()).is_some() {
                return None;
            }
        }
        Some(keys)
    }

    #[derive(Clone, Debug)]
    enum Change {
        Put(u32, u16, usize),
        Number(u32, u16, i64),
        Remove(u32, u16),
        Deadline(u32, u16),
        Move(u32, u16, u16),
        Flush(u32),
        Swap(u32, u32),
        Expire,
    }

    fn change() -> impl Strategy<Value = Change> {
        let (db, key) = (0u32..3, 0u16..150);
        prop_oneof![
            6 => (db.clone(), key.clone(), prop_oneof![0usize..40, Just(VECTOR_BYTES_STEP + 900)])
                .prop_map(|(db, key, bytes)| Change::Put(db, key, bytes)),
            4 => (db.clone(), key.clone(), any::<i64>()).prop_map(|(db, key, n)| Change::Number(db, key, n)),
            3 => (db.clone(), key.clone()).prop_map(|(db, key)| Change::Remove(db, key)),
            2 => (db.clone(), key.clone()).prop_map(|(db, key)| Change::Deadline(db, key)),
            2 => (db.clone(), key.clone(), key).prop_map(|(db, from, to)| Change::Move(db, from, to)),
            1 => db.clone().prop_map(Change::Flush),
            1 => (db.clone(), db).prop_map(|(a, b)| Change::Swap(a, b)),
            1 => Just(Change::Expire),
        ]
    }

    fn apply(store: &mut Store, change: &Change) {
        let name = |key: u16| format!("key:{key}");
        match *change {
            Change::Put(db, key, bytes) => {
                let fill = b'a' + (bytes % 26) as u8;
                let value = vec![fill; bytes];
                let value = if bytes > 100 { NewValue::Heap(value) } else { NewValue::Bytes(&value) };
                store.put(db, Key::new(name(key).as_bytes()), value, Ttl::Clear, 0);
            }
            Change::Number(db, key, number) => {
                store.put(db, Key::new(name(key).as_bytes()), NewValue::Int(number), Ttl::Keep, 0);
            }
            Change::Remove(db, key) => drop(store.remove(db, Key::new(name(key).as_bytes()))),
            Change::Deadline(db, key) => {
                store.set_deadline(db, Key::new(name(key).as_bytes()), Some(2_000));
            }
            Change::Move(db, from, to) => {
                let (from, to) = (name(from), name(to));
                if let Some(block) = store.take(db, Key::new(from.as_bytes())) {
                    store.place(db, Key::new(to.as_bytes()), block.with_key(to.as_bytes()));
                }
            }
            Change::Flush(db) => drop(store.flush_db(db)),
            Change::Swap(a, b) => store.swap(a, b),
            Change::Expire => {
                store.now.ms += 1_500;
                while store.expire_step() {}
            }
        }
    }

    /// Collects what is sent.
    #[derive(Clone, Default)]
    struct Collected {
        out: Arc<Mutex<Vec<u8>>>,
        is_unwanted: Arc<AtomicBool>,
        is_over: Arc<AtomicBool>,
    }

    impl Outlet for Collected {
        fn buffer(&self) -> Vec<u8> {
            Vec::new()
        }

        fn send(&self, bytes: Vec<u8>, _: bool) {
            self.out.lock().extend_from_slice(&bytes);
        }

        fn has_room(&self) -> bool {
            true
        }

        fn is_wanted(&self) -> bool {
            !self.is_unwanted.load(Ordering::Relaxed)
        }

        fn note_keys(&self, _: u64) {}

        fn give_up(&self) {}

        fn cancel(&self) {}

        fn finish(self: Box<Self>) {
            self.is_over.store(true, Ordering::Relaxed);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]
        #[test]
        fn a_snapshot_holds_what_was_there_at_the_cut(
            before in proptest::collection::vec(change(), 1..400),
            during in proptest::collection::vec((change(), 1usize..5_000), 0..300),
        ) {
            let mut store = Store::new(Arc::default(), Arc::new(Counters::new(0)));
            store.now.ms = 0;
            for (round, abandon) in [(0, false), (1, true), (2, false)] {
                before.iter().skip(before.len() * round / 3).for_each(|change| apply(&mut store, change));
                // Without deadlines what has expired meanwhile does not matter.
                let owed = state(&store);
                let dated: Vec<_> = (0..3).filter_map(|db| store.db(db)).map(|db| db.deadlines).collect();
                let has_dated = dated.iter().sum::<usize>() > 0;
                let collected = Collected::default();
                store.begin_snapshot(Box::new(Lines::default()), Box::new(collected.clone()));
                for (change, bytes) in &during {
                    apply(&mut store, change);
                    store.snapshot_step(*bytes);
                }
                collected.is_unwanted.store(abandon, Ordering::Relaxed);
                while store.snapshot_step(3_000) == Step::More {}
                prop_assert!(!store.has_snapshot() && collected.is_over.load(Ordering::Relaxed));
                if !abandon {
                    let written = parsed(&collected.out.lock()).expect("records are whole and single");
                    for (key, value) in &written {
                        prop_assert_eq!(Some(value), owed.get(key));
                    }
                    prop_assert!(written.len() == owed.len() || has_dated);
                }
            }
        }
    }
}
