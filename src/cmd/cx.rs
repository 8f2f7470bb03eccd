//! What a handler gets: the data it may read or change, who asks, and the process's facts.
use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::spec::gate;
use super::table::RowRef;
use super::tracking::Tracking;
use super::transaction::{Multi, Watched};
use crate::base::hash::KeyHash;
use crate::config::{P, Settings};
use crate::ds::object::Kind;
use crate::ds::raw::block::{BlockMut, BlockRef, NewValue, Payload};
use crate::host::hub::{self, Subscriptions};
use crate::host::mail::Mail;
pub use crate::host::queued::Caller;
use crate::host::{ClientInfo, Counters, Host, mark};
use crate::store::db::{Found, Next, Ttl};
use crate::store::edit::Editor;
use crate::store::news::{Event, listen};
use crate::store::{Now, Store};
use crate::wire::{Args, Error, Key, Out, Protocol};

/// The stores a command may read.
#[derive(Clone, Copy)]
pub enum ReadStores<'a> {
    /// All keys lie here.
    One(&'a Store),
    /// By shard; `None` where the command has no key.
    Many(&'a [Option<&'a Store>]),
}

/// Stores that are held at once, by shard.
pub trait Held {
    /// Number of shards of the server.
    fn shards(&self) -> usize;
    /// The store of a shard, if it is held.
    fn get(&self, shard: usize) -> Option<&Store>;
    /// The store of a shard, if it is held, to change it.
    fn get_mut(&mut self, shard: usize) -> Option<&mut Store>;
}

impl Held for Vec<Store> {
    fn shards(&self) -> usize {
        self.len()
    }

    fn get(&self, shard: usize) -> Option<&Store> {
        self.as_slice().get(shard)
    }

    fn get_mut(&mut self, shard: usize) -> Option<&mut Store> {
        self.as_mut_slice().get_mut(shard)
    }
}

/// The stores a command may change.
pub enum WriteStores<'a> {
    /// All keys lie here.
    One(&'a mut Store),
    /// By shard; those that the command has keys in are held.
    Many(&'a mut (dyn Held + 'a)),
}

impl WriteStores<'_> {
    /// The same stores, for a part of the time.
    #[inline]
    pub fn reborrow(&mut self) -> WriteStores<'_> {
        match self {
            WriteStores::One(store) => WriteStores::One(store),
            WriteStores::Many(held) => WriteStores::Many(*held),
        }
    }

    /// Calls `f` with every store.
    #[inline]
    pub fn for_each(&mut self, mut f: impl FnMut(&mut Store)) {
        match self {
            WriteStores::One(store) => f(store),
            WriteStores::Many(held) => {
                for shard in 0..held.shards() {
                    if let Some(store) = held.get_mut(shard) {
                        f(store);
                    }
                }
            }
        }
    }

    /// Whether what changes is logged.
    #[inline]
    pub fn is_logged(&self) -> bool {
        match self {
            WriteStores::One(store) => store.is_logged(),
            WriteStores::Many(held) => {
                (0..held.shards()).find_map(|shard| held.get(shard)).is_some_and(Store::is_logged)
            }
        }
    }

    /// Every store that is held.
    pub fn all(&self) -> impl Iterator<Item = &Store> + Clone {
        let shards = match self {
            WriteStores::One(_) => 1,
            WriteStores::Many(held) => held.shards(),
        };
        (0..shards).filter_map(move |shard| match self {
            WriteStores::One(store) => Some(&**store),
            WriteStores::Many(held) => held.get(shard),
        })
    }

    /// The store that owns keys with this hash.
    ///
    /// # Panics
    /// When it is not held: the plan holds every key's shard.
    #[inline]
    pub fn of(&mut self, hash: KeyHash) -> &mut Store {
        match self {
            WriteStores::One(store) => store,
            WriteStores::Many(held) => {
                let shard = hash.shard(held.shards());
                held.get_mut(shard).expect("the plan holds every key's shard")
            }
        }
    }

    /// [`WriteStores::of`], shared.
    #[inline]
    pub fn shared(&self, hash: KeyHash) -> &Store {
        match self {
            WriteStores::One(store) => store,
            WriteStores::Many(held) => {
                held.get(hash.shard(held.shards())).expect("the plan holds every key's shard")
            }
        }
    }
}

/// The string in a block.
#[inline(always)]
pub fn string_of(block: BlockRef<'_>) -> Result<Payload<'_>, Error> {
    block.string().ok_or(Error::WrongType)
}

/// What a read met that its owner must see to: what has come to its time, and is cleared away, or is absent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Met {
    /// Nothing.
    #[default]
    Nothing,
    /// The absence of a key, where somebody wants to hear of that. What else is met comes before it.
    Missing,
    /// A key.
    Key,
    /// Parts of the key's value that the arguments behind it name.
    NamedParts,
    /// Any parts of the key's value.
    Parts,
    /// Keys that a walk over the database came by.
    Walked,
}

/// That a command waits for others to write, and how.
#[derive(Debug)]
pub struct Wait {
    /// When it gives up, milliseconds since the epoch; `None`: never.
    pub until_ms: Option<u64>,
    /// What one of its keys must become to serve it.
    pub kind: Kind,
    /// Whether it is run again whatever becomes of its keys.
    pub heeds_all: bool,
    /// Arguments that must not be looked up again, with the texts that stand for them from now on.
    pub replaced: Vec<(usize, Vec<u8>)>,
}

/// For handlers that read.
pub struct ReadCx<'a> {
    /// Data.
    pub stores: ReadStores<'a>,
    /// Who asks.
    pub caller: &'a Caller,
    /// The process.
    pub host: &'a Host,
    /// Counters of the executing shard.
    pub counters: &'a Counters,
    /// The time of this turn.
    pub now: Now,
    /// What was met whose time has come.
    pub met: Cell<Met>,
    /// That the command waits, which writes no reply then.
    pub wait: Cell<Option<Box<Wait>>>,
}

/// For handlers that write.
pub struct WriteCx<'a> {
    /// Data.
    pub stores: WriteStores<'a>,
    /// Who asks.
    pub caller: &'a Caller,
    /// The process.
    pub host: &'a Host,
    /// Counters of the executing shard.
    pub counters: &'a Counters,
    /// The time of this turn.
    pub now: Now,
    /// That the command waits, which writes no reply then.
    pub wait: Option<Box<Wait>>,
    /// What the log gets.
    pub record: Recording,
}

/// What the append-only log gets of a command that changes something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recording {
    /// Nothing: there is no log.
    Off,
    /// Its words.
    Words,
    /// What its handler says.
    Own,
}

#[inline(always)]
fn count_lookup(found: Option<BlockRef<'_>>, counters: &Counters) {
    if found.is_some() { counters.hits.add(1) } else { counters.misses.add(1) }
}

/// Buckets of all keys first, so that they arrive together; then blocks.
fn prefetch<'s>(keys: &[Key<'_>], db: u32, store: impl Fn(KeyHash) -> &'s Store) {
    for key in keys {
        store(key.hash).prefetch(db, key.hash);
    }
    for key in keys {
        store(key.hash).prefetch_entry(db, key.hash);
    }
}

impl<'a> ReadCx<'a> {
    /// Waits for others to write, as `wait` says. `false`: it must not wait, and answers as if its time were up.
    pub fn waits(&self, wait: Box<Wait>) -> bool {
        if !self.caller.is_part {
            self.wait.set(Some(wait));
        }
        !self.caller.is_part
    }

    /// The store that owns keys with this hash.
    #[inline]
    pub fn store(&self, hash: KeyHash) -> &'a Store {
        match self.stores {
            ReadStores::One(store) => store,
            ReadStores::Many(stores) => {
                stores[hash.shard(stores.len())].expect("the plan holds every key's shard")
            }
        }
    }

    /// All stores this command may read.
    pub fn all(&self) -> impl Iterator<Item = &'a Store> + use<'a> {
        let (one, many) = match self.stores {
            ReadStores::One(store) => (Some(store), &[][..]),
            ReadStores::Many(stores) => (None, stores),
        };
        one.into_iter().chain(many.iter().copied().flatten())
    }

    /// Looks a key up without counting or marking a use.
    #[inline(always)]
    pub fn peek(&self, key: Key<'_>) -> Option<BlockRef<'a>> {
        match self.store(key.hash).find(self.caller.db, key, self.now.ms) {
            Found::Live(block) => Some(block),
            Found::Due => {
                self.met.set(Met::Key);
                None
            }
            Found::Absent => None,
        }
    }

    /// Looks a key up: counts a hit or miss, marks the use.
    #[inline(always)]
    pub fn find(&self, key: Key<'_>) -> Option<BlockRef<'a>> {
        self.look(key).inspect(|block| self.now.mark_use(*block))
    }

    /// Bytes of the longest string allowed (`proto-max-bulk-len`).
    #[inline]
    pub fn string_bytes_max(&self, key: Key<'_>) -> u64 {
        self.store(key.hash).settings.memory(P::PROTO_MAX_BULK_LEN)
    }

    /// Looks a key up without its value: counts a hit or miss, marks no use.
    #[inline(always)]
    pub fn look(&self, key: Key<'_>) -> Option<BlockRef<'a>> {
        let found = self.look_aside(key);
        if found.is_none()
            && self.store(key.hash).listens & listen::MISSES != 0
            && self.met.get() == Met::Nothing
        {
            self.met.set(Met::Missing);
        }
        found
    }

    /// [`ReadCx::look`] of commands about how a value is kept: nobody hears of a miss.
    #[inline]
    pub fn look_aside(&self, key: Key<'_>) -> Option<BlockRef<'a>> {
        let found = self.peek(key);
        count_lookup(found, self.counters);
        found
    }

    /// Asks the processor for the buckets, then the blocks, of keys that are looked up next.
    pub fn prefetch(&self, keys: &[Key<'_>]) {
        prefetch(keys, self.caller.db, |hash| self.store(hash));
    }

    /// The string under a key.
    #[inline]
    pub fn string(&self, key: Key<'_>) -> Result<Option<Payload<'a>>, Error> {
        self.find(key).map(string_of).transpose()
    }
}

impl<'a> WriteCx<'a> {
    /// For one command; the stores learn whether its uses leave a trace, and what its changes are called.
    #[inline(always)]
    pub fn new(
        mut stores: WriteStores<'a>,
        caller: &'a Caller,
        host: &'a Host,
        counters: &'a Counters,
        now: Now,
        events: &'static [Event],
    ) -> WriteCx<'a> {
        let now = now.with_no_touch(caller.no_touch);
        stores.for_each(|store| {
            store.now.no_touch = now.no_touch;
            store.events = events;
            store.actor = caller.client_id;
        });
        WriteCx { stores, caller, host, counters, now, wait: None, record: Recording::Off }
    }

    /// Whether what changes is logged, for handlers that have other words for it than the client's.
    #[inline]
    pub fn is_logged(&self) -> bool {
        self.record != Recording::Off
    }

    /// Logs these words instead of the command's.
    pub fn log(&mut self, words: &[&[u8]]) {
        if self.is_logged() {
            self.record = Recording::Own;
            self.record_words(words.iter().copied());
        }
    }

    /// Logs the command's words even when it changed nothing, as Redis does with commands that stand for all data.
    pub fn log_words(&mut self, args: &Args<'_>) {
        self.log_with(args, &[], &[]);
    }

    /// Logs the command's words with others in the places of some of them, and `more` behind them.
    pub fn log_with(&mut self, args: &Args<'_>, replaced: &[(usize, &[u8])], more: &[&[u8]]) {
        if !self.is_logged() {
            return;
        }
        let word =
            |at| replaced.iter().find(|(other, _)| *other == at).map_or(args.get(at), |(_, word)| *word);
        let words: Vec<&[u8]> = (0..args.count()).map(word).chain(more.iter().copied()).collect();
        self.log(&words);
    }

    /// Logs nothing of this command but what it said and will say with [`WriteCx::log`].
    pub fn log_own(&mut self) {
        if self.is_logged() {
            self.record = Recording::Own;
        }
    }

    /// Leaves a record of the running command.
    #[inline]
    pub fn record_words<'w>(&mut self, words: impl ExactSizeIterator<Item = &'w [u8]>) {
        let db = self.caller.db;
        match &mut self.stores {
            WriteStores::One(store) => store.record(db, words),
            // Wherever it lies, its number tells its place.
            WriteStores::Many(held) => {
                let shard = (0..held.shards()).find(|shard| held.get(*shard).is_some());
                if let Some(store) = shard.and_then(|shard| held.get_mut(shard)) {
                    store.record(db, words);
                }
            }
        }
    }

    /// A number that changes with every change of the data.
    pub fn changes(&mut self) -> u64 {
        let mut changes = 0u64;
        self.for_all(|store| changes = changes.wrapping_add(store.counters.dirty.get()));
        changes
    }

    /// Waits for others to write, as `wait` says. `false`: it must not wait, and answers as if its time were up.
    pub fn waits(&mut self, wait: Box<Wait>) -> bool {
        if !self.caller.is_part {
            self.wait = Some(wait);
        }
        self.wait.is_some()
    }

    /// The store that owns keys with this hash.
    #[inline]
    pub fn store(&mut self, hash: KeyHash) -> &mut Store {
        self.stores.of(hash)
    }

    fn shared_store(&self, hash: KeyHash) -> &Store {
        self.stores.shared(hash)
    }

    /// Calls `f` with every store this command may change.
    pub fn for_all(&mut self, f: impl FnMut(&mut Store)) {
        self.stores.for_each(f);
    }

    /// The live key; one whose time has come is deleted on the way. Marks no use, counts no hit: the write that
    /// follows does the first, and Redis counts hits of reading commands only where they read for the client.
    #[inline]
    pub fn find(&mut self, key: Key<'_>) -> Option<BlockRef<'_>> {
        let db = self.caller.db;
        self.find_in(db, key)
    }

    /// [`WriteCx::find`] in any database.
    #[inline]
    pub fn find_in(&mut self, db: u32, key: Key<'_>) -> Option<BlockRef<'_>> {
        let now_ms = self.now.ms;
        let store = self.store(key.hash);
        store.clear_due(db, key);
        match store.find(db, key, now_ms) {
            Found::Live(block) => Some(block),
            _ => None,
        }
    }

    /// The live key, its use marked: for a command that may come to write nothing, or moves the key elsewhere.
    #[inline]
    pub fn find_used(&mut self, key: Key<'_>) -> Option<BlockRef<'_>> {
        let now = self.now;
        self.find(key).inspect(|block| now.mark_use(*block))
    }

    /// Asks the processor for the buckets, then the blocks, of keys that are changed next.
    pub fn prefetch(&self, keys: &[Key<'_>]) {
        prefetch(keys, self.caller.db, |hash| self.shared_store(hash));
    }

    /// Names the events that the changes from now on stand for, instead of those of the row.
    pub fn stands_for(&mut self, events: &'static [Event]) {
        self.for_all(|store| store.events = events);
    }

    /// Notes an event of a key beside those that follow from its changes.
    pub fn note_event(&mut self, key: Key<'_>, event: Event) {
        let db = self.caller.db;
        self.store(key.hash).note_event(db, key, event);
    }

    /// Makes or replaces a key.
    #[inline]
    pub fn put(&mut self, key: Key<'_>, value: NewValue<'_>, ttl: Ttl, marks: u32) {
        let db = self.caller.db;
        self.store(key.hash).put(db, key, value, ttl, marks);
    }

    /// Deletes a key. `false`: it was not there.
    pub fn remove(&mut self, key: Key<'_>) -> bool {
        let db = self.caller.db;
        self.store(key.hash).remove(db, key)
    }

    /// Sets or clears a key's deadline. `false`: no such key.
    pub fn set_deadline(&mut self, key: Key<'_>, deadline_ms: Option<u64>) -> bool {
        let db = self.caller.db;
        self.store(key.hash).set_deadline(db, key, deadline_ms)
    }

    /// Hands a string out for a change, with one lookup; see [`Store::update`].
    #[inline]
    pub fn update<'v, T>(
        &mut self,
        key: Key<'_>,
        change: impl FnOnce(Option<BlockMut<'_>>) -> Result<(T, Next<'v>), Error>,
    ) -> Result<T, Error> {
        let db = self.caller.db;
        self.store(key.hash).update(db, key, |block| match block {
            Some(block) if !block.view().is_string() => Err(Error::WrongType),
            block => change(block),
        })
    }

    /// Hands a key out for an edit of its container; see [`Store::edit`].
    #[inline]
    pub fn edit<T>(&mut self, key: Key<'_>, edit: impl FnOnce(&mut Editor<'_>) -> T) -> T {
        let db = self.caller.db;
        self.store(key.hash).edit(db, key, edit)
    }

    /// The live key, through a shared view, so that several keys can be looked at together. Counts and marks
    /// nothing, and leaves a key whose time has come to others.
    pub fn peek(&self, key: Key<'_>) -> Option<BlockRef<'_>> {
        match self.shared_store(key.hash).find(self.caller.db, key, self.now.ms) {
            Found::Live(block) => Some(block),
            Found::Due | Found::Absent => None,
        }
    }

    /// Bytes of the longest string allowed (`proto-max-bulk-len`).
    #[inline]
    pub fn string_bytes_max(&self, key: Key<'_>) -> u64 {
        self.shared_store(key.hash).settings.memory(P::PROTO_MAX_BULK_LEN)
    }

    /// The live key as a read finds it: counts a hit or miss, marks the use.
    pub fn find_counted(&mut self, key: Key<'_>) -> Option<BlockRef<'_>> {
        let (counters, db) = (self.counters, self.caller.db);
        if self.store(key.hash).listens & listen::MISSES != 0 && self.find(key).is_none() {
            self.store(key.hash).note_miss(db, key);
        }
        let found = self.find_used(key);
        count_lookup(found, counters);
        found
    }

    /// The string under a key.
    #[inline]
    pub fn string(&mut self, key: Key<'_>) -> Result<Option<Payload<'_>>, Error> {
        self.find(key).map(string_of).transpose()
    }
}

/// What CLIENT REPLY asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum ReplyMode {
    /// Replies are sent.
    #[default]
    On,
    /// None are.
    Off,
    /// The reply of the next command is not.
    SkipNext,
    /// The reply of this command is not.
    Skip,
}

/// How the process shall end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ending {
    /// With a snapshot, or without; `None`: as the settings say.
    pub saves: Option<bool>,
    /// Even if what is to be saved cannot be.
    pub is_forced: bool,
}

/// What a connection handler asks of the driver.
#[derive(Clone, Debug, PartialEq, Default)]
pub enum Wish {
    /// Nothing.
    #[default]
    None,
    /// Close after the replies so far are written.
    Close,
    /// Stop this shard's thread for so long, outside its data (DEBUG SLEEP).
    SleepMs(u64),
    /// End the process.
    Shutdown(Ending),
    /// Empty all databases and load the append-only log again (DEBUG LOADAOF).
    ReloadLog,
    /// Wait until then (milliseconds since the epoch; `None`: for ever), then answer with this.
    WaitUntil(Option<u64>, Vec<u8>),
}

/// The state of a connection that commands look at and change.
pub struct Client {
    /// What others may know.
    pub info: Arc<ClientInfo>,
    /// Travels with commands.
    pub caller: Caller,
    /// Gate bits in force.
    pub gates: u32,
    /// CLIENT REPLY.
    pub reply_mode: ReplyMode,
    /// What the last command asks of the driver.
    pub wish: Wish,
    /// The transaction that is being queued.
    pub multi: Option<Box<Multi>>,
    /// The keys it watches.
    pub watched: Option<Box<Watched>>,
    /// Letters that the last command left, to any connection.
    pub mail: Mail,
    /// What it is subscribed to.
    pub subscriptions: Subscriptions,
    /// What it asked for with CLIENT TRACKING.
    pub tracking: Option<Box<Tracking>>,
}

impl Client {
    /// A fresh connection.
    pub fn new(info: Arc<ClientInfo>) -> Client {
        let local =
            info.addr.starts_with("127.") || info.addr.starts_with("[::1]") || info.addr.starts_with('/');
        Client {
            mail: Mail::new(),
            multi: None,
            watched: None,
            subscriptions: Subscriptions::default(),
            tracking: None,
            caller: Caller { local, client_id: info.id, ..Caller::default() },
            gates: gate::ALWAYS,
            reply_mode: ReplyMode::On,
            wish: Wish::None,
            info,
        }
    }

    /// What stands in for this client elsewhere: it has the same identity, and nothing of what the client has asked for.
    pub fn stand_in(&self) -> Client {
        Client {
            info: self.info.clone(),
            caller: self.caller,
            gates: gate::ALWAYS,
            reply_mode: ReplyMode::On,
            wish: Wish::None,
            multi: None,
            watched: None,
            mail: Mail::new(),
            subscriptions: Subscriptions::default(),
            tracking: None,
        }
    }

    /// Sets the reply mode and its gate bit.
    pub fn set_reply_mode(&mut self, mode: ReplyMode) {
        self.reply_mode = mode;
        self.gates &= !gate::REPLY_MODE;
        if mode != ReplyMode::On {
            self.gates |= gate::REPLY_MODE;
        }
    }

    /// Selects a database.
    pub fn select(&mut self, db: u32) {
        self.caller.db = db;
        self.info.db.store(db, Ordering::Relaxed);
    }

    /// CLIENT NO-TOUCH.
    pub fn set_no_touch(&mut self, on: bool) {
        self.caller.no_touch = on;
        self.info.set(mark::NO_TOUCH, on);
    }

    /// Switches the protocol.
    pub fn set_protocol(&mut self, protocol: Protocol) {
        self.caller.protocol = protocol;
        self.info.resp.store(if protocol == Protocol::Resp3 { 3 } else { 2 }, Ordering::Relaxed);
        self.note_subscriptions();
    }

    /// After a change of its subscriptions or of its protocol: the gate bits and the numbers that others see.
    pub fn note_subscriptions(&mut self) {
        self.gates &= !(gate::SUBSCRIBED | gate::SUBSCRIBER);
        if !self.subscriptions.is_empty() {
            self.gates |= gate::SUBSCRIBED;
            if self.caller.protocol == Protocol::Resp2 {
                self.gates |= gate::SUBSCRIBER;
            }
        }
        for kind in hub::Kind::ALL {
            let count = self.subscriptions.count(kind) as u32;
            self.info.subscriptions[kind as usize].store(count, Ordering::Relaxed);
        }
    }
}

/// For handlers that need the connection and data at once, and may run other commands as their parts.
pub struct WholeCx<'a> {
    /// The connection.
    pub client: &'a mut Client,
    /// Data.
    pub stores: WriteStores<'a>,
    /// The process.
    pub host: &'a Host,
    /// The time of this turn.
    pub now: Now,
    /// Runs the parts.
    pub parts: &'a dyn Parts,
}

/// Runs commands as parts of a whole.
pub trait Parts {
    /// Writes the refusal of a part, and counts it.
    fn refuse(&self, error: &Error, out: &mut Out);

    /// Counts an error reply that a whole made up itself; `code` is its first word.
    fn count_error(&self, code: &str);

    /// When the part before ended, or the whole began, in cycles.
    fn clock(&self) -> u64;

    /// [`Parts::run`] of a command that reads or writes, for a script.
    fn run_for_script(
        &self,
        row: RowRef,
        caller: &Caller,
        stores: WriteStores<'_>,
        args: &mut Args<'_>,
        out: &mut Out,
    );

    /// Runs a command for `client` on stores that its keys lie in, and writes its reply.
    fn run(
        &self,
        row: RowRef,
        client: &mut Client,
        stores: WriteStores<'_>,
        args: &mut Args<'_>,
        out: &mut Out,
    );
}

/// For handlers about the connection or the process.
pub struct ConnCx<'a> {
    /// The connection.
    pub client: &'a mut Client,
    /// The process.
    pub host: &'a Host,
    /// Counters of the executing shard.
    pub counters: &'a Counters,
    /// The time of this turn.
    pub now: Now,
}

impl ConnCx<'_> {
    /// A database index in range, from an argument.
    pub fn db_index(&self, arg: &[u8], not_a_number: Error) -> Result<u32, Error> {
        db_index(&self.host.settings(), arg, not_a_number)
    }
}

/// A database index in range, from an argument.
pub fn db_index(settings: &Settings, arg: &[u8], not_a_number: Error) -> Result<u32, Error> {
    let index = crate::base::num::parse_i64(arg).ok_or(not_a_number)?;
    if index < 0 || index >= settings.int(P::DATABASES) {
        return Err(Error::DbIndex);
    }
    Ok(index as u32)
}
