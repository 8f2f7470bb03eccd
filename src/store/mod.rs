//! The data of one shard: its databases, and the only door to change them. Floor 2.
//!
//! Must stay true: every change passes [`Store::settle`], the one exit, once per key; a key whose deadline has
//! come is absent for everybody from that moment on; databases are made on first write.
pub mod db;
pub mod edit;
mod expire;
mod keyed;
pub mod log;
pub mod news;
mod now;
pub mod snapshot;
mod track;
pub mod wait;
pub mod watch;

use std::sync::Arc;

use db::Db;
pub use expire::PARTS_STEP;
use keyed::Keyed;
use log::Log;
use news::{Event, News, listen};
pub use now::{Now, Uses};
use track::Tracked;
use wait::Waiter;
use watch::Watch;

use crate::config::{P, Settings};
use crate::ds::raw::block::{Block, Value};
use crate::host::{Counters, LazyFree};
use crate::wire::Key;

/// A value with a heap vector of at least this size is freed in the background.
const LAZY_BYTES_MIN: usize = 1 << 20;
/// So is a container of more parts than this.
const LAZY_PARTS_MIN: usize = 64;

/// What a change did to a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// The key was made, or was put in whole in the place of another.
    Made,
    /// The value was replaced or edited.
    Written,
    /// What hangs on the value, as groups do on a stream, was changed: who watches the key, waits for it or has read it
    /// does not hear of that.
    Beside,
    /// The key was deleted by a command.
    Deleted,
    /// The key was taken out, to be put elsewhere.
    Taken,
    /// The value was edited until nothing was left, so the key went.
    Emptied,
    /// Only the deadline changed.
    Deadline,
    /// The key was deleted because its deadline had come.
    Expired,
    /// Parts of the value were deleted because their deadlines had come.
    PartsExpired,
}

/// The data of one shard.
pub struct Store {
    dbs: Vec<Option<Box<Db>>>,
    /// The time of this turn.
    pub now: Now,
    /// The settings in force.
    pub settings: Arc<Settings>,
    /// Version of `settings`, to notice a newer one.
    pub settings_version: u64,
    /// This shard's counters.
    pub counters: Arc<Counters>,
    /// Active expiry runs (DEBUG SET-ACTIVE-EXPIRE).
    pub active_expiry: bool,
    /// Where large things are freed; without it they are freed on the spot.
    pub lazy_free: Option<Arc<LazyFree>>,
    /// Who wants to hear of changes: bits of [`news::listen`].
    pub listens: u32,
    /// The events that a change by the running command stands for, in their order.
    pub events: &'static [Event],
    /// Whose command runs: the client's number; 0: nobody's.
    pub actor: u64,
    /// There is something in `news`.
    pub has_news: bool,
    /// The running command, transaction or script has left records in `log`.
    pub has_records: bool,
    /// What others shall hear when the running command is done.
    pub news: News,
    /// What the append-only log shall hear.
    pub log: Log,
    watches: Keyed<Watch>,
    waiters: Keyed<Arc<Waiter>>,
    tracked: Tracked,
    expiry: expire::Progress,
    snapshot: Option<Box<snapshot::Snapshot>>,
    /// Snapshots begun.
    walks: u32,
}

impl Store {
    /// An empty shard with `settings.databases` databases.
    pub fn new(settings: Arc<Settings>, counters: Arc<Counters>) -> Store {
        let databases = settings.int(P::DATABASES) as usize;
        let mut store = Store {
            dbs: (0..databases).map(|_| None).collect(),
            now: Now::read(Uses::under(&settings)),
            settings,
            settings_version: 0,
            counters,
            active_expiry: true,
            lazy_free: None,
            listens: 0,
            events: &[],
            actor: 0,
            has_news: false,
            has_records: false,
            news: News::default(),
            log: Log::default(),
            watches: Keyed::default(),
            waiters: Keyed::default(),
            tracked: Tracked::default(),
            expiry: expire::Progress::default(),
            snapshot: None,
            walks: 0,
        };
        store.heed_events();
        store
    }

    /// Takes over the settings in force.
    #[cold]
    pub fn refresh_settings(&mut self, host: &crate::host::Host) {
        self.settings_version = host.settings_version();
        self.settings = host.settings();
        self.now.heed(host, &self.settings);
        self.heed_events();
        self.set_listens(listen::BROADCASTS, host.trackers.broadcasts());
        self.set_listens(listen::LOG, host.journal.is_on());
    }

    fn set_listens(&mut self, listener: u32, listens: bool) {
        self.listens &= !listener;
        if listens {
            self.listens |= listener;
        }
    }

    /// Number of databases.
    pub fn databases(&self) -> usize {
        self.dbs.len()
    }

    /// Database `index`, if anything was ever written to it.
    #[inline]
    pub fn db(&self, index: u32) -> Option<&Db> {
        self.dbs.get(index as usize)?.as_deref()
    }

    /// Number of keys of a database, those whose time has come included.
    pub fn key_count(&self, db: u32) -> usize {
        self.db(db).map_or(0, |db| db.table.len())
    }

    #[inline]
    fn db_mut(&mut self, index: u32) -> &mut Db {
        self.db_with_snapshot(index).0
    }

    /// A database to be changed, and the snapshot that must see first what is changed there.
    #[inline]
    fn db_with_snapshot(&mut self, index: u32) -> (&mut Db, &mut Option<Box<snapshot::Snapshot>>) {
        let walks = self.walks;
        let db = self.dbs[index as usize].get_or_insert_with(|| Box::new(Db::walked(walks)));
        (db, &mut self.snapshot)
    }

    /// Asks the processor for the bucket of a key that will be looked up soon.
    #[inline]
    pub fn prefetch(&self, db: u32, hash: crate::base::hash::KeyHash) {
        if let Some(db) = self.db(db) {
            db.table.prefetch(hash);
        }
    }

    /// Asks the processor for the block of a key whose bucket was asked for.
    #[inline]
    pub fn prefetch_entry(&self, db: u32, hash: crate::base::hash::KeyHash) {
        if let Some(db) = self.db(db) {
            db.table.prefetch_entry(hash);
        }
    }

    /// Exchanges two databases.
    pub fn swap(&mut self, a: u32, b: u32) {
        if self.listens != 0 {
            self.note_swap(a, b);
        }
        self.dbs.swap(a as usize, b as usize);
        self.swap_in_snapshot(a, b);
        self.counters.dirty.add(1);
    }

    /// Empties one database and has it freed in the background; returns how many keys it had.
    pub fn flush_db(&mut self, index: u32) -> usize {
        if self.listens != 0 {
            self.note_flush(index);
        }
        self.note_all_stale();
        let Some(db) = self.dbs[index as usize].take() else { return 0 };
        let keys = db.table.len();
        self.counters.dirty.add(keys as u64);
        if let Some(db) = self.retire(index, db) {
            self.free_db(db);
        }
        keys
    }

    /// Frees a database in the background.
    fn free_db(&self, db: Box<Db>) {
        let keys = db.table.len() as u64;
        if let Some(lazy) = self.lazy_free.as_deref()
            && keys > 0
        {
            lazy.drop_later(db, keys);
        }
    }

    /// Empties all databases. A snapshot under way that stands for all data is given up.
    pub fn flush_all(&mut self) {
        self.give_up_snapshot();
        for index in 0..self.databases() as u32 {
            self.flush_db(index);
        }
    }

    /// Frees a key that is out of its table; a large one in the background.
    #[inline]
    fn discard(&self, block: Block) {
        let small = match block.view().value() {
            Value::Object(object) => object.parts() <= LAZY_PARTS_MIN,
            _ => block.view().vector_bytes() < LAZY_BYTES_MIN,
        };
        if small {
            return;
        }
        if let Some(lazy) = self.lazy_free.as_deref() {
            lazy.drop_later(Box::new(block), 1);
        }
    }

    /// The one exit for changes: whoever must know of a change learns of it here.
    #[inline]
    fn settle(&mut self, db: u32, key: Key<'_>, effect: Effect) {
        self.settle_many(db, key, effect, 1);
    }

    /// [`Store::settle`] for a change of `changes` parts of a value.
    #[inline]
    fn settle_many(&mut self, db: u32, key: Key<'_>, effect: Effect, changes: u64) {
        if self.listens & !listen::LOG != 0 {
            self.note_change(db, key, effect);
        }
        match effect {
            Effect::Expired => {
                self.counters.expired_keys.add(1);
                if self.is_logged() {
                    self.record_gone(db, key, effect);
                }
            }
            Effect::PartsExpired => self.counters.expired_subkeys.add(changes),
            _ => self.counters.dirty.add(changes),
        }
    }
}

/// How many keys there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KeyCounts {
    /// All.
    pub keys: usize,
    /// Those that have a deadline.
    pub deadlines: usize,
    /// Those whose value has parts with deadlines.
    pub dated_parts: usize,
}

/// Counts the keys of database `index` in all the stores.
pub fn count_keys<'a>(stores: impl Iterator<Item = &'a Store>, index: u32) -> KeyCounts {
    stores.filter_map(|store| store.db(index)).fold(KeyCounts::default(), |counts, db| KeyCounts {
        keys: counts.keys + db.table.len(),
        deadlines: counts.deadlines + db.deadlines,
        dated_parts: counts.dated_parts + db.dated_parts,
    })
}
