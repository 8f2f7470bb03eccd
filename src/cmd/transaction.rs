//! Transactions: MULTI, EXEC, DISCARD, WATCH, UNWATCH.
//!
//! Must stay true: every command between MULTI and EXEC is queued and none runs early; EXEC holds the shards of all keys
//! of its commands and of all watched keys, so nobody sees a part of it, and nothing changes between its look at the
//! watched keys and its first command.
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::cx::{Client, ConnCx, WholeCx};
use super::spec::{Done, Group::Transactions as T, Route, Spec, flag, gate, key_range};
use super::table::{RowRef, table};
use crate::base::hash::KeyHash;
use crate::host::queued::Queued;
use crate::store::watch::Changed;
use crate::wire::{Args, Error, Key, Out};

const FLAGS: u32 = flag::NOSCRIPT | flag::LOADING | flag::STALE;
const AT_ONCE: u32 = FLAGS | flag::FAST | flag::ALLOW_BUSY;

/// The rows.
pub const COMMANDS: &[Spec] = &[
    Spec::conn("discard", "", discard)
        .doc(T, "2.0.0", "Forgets the commands queued since MULTI.")
        .cost("O(N) where N is the number of queued commands.")
        .with(AT_ONCE | flag::UNQUEUED),
    Spec::whole("exec", "", exec)
        .doc(T, "1.2.0", "Runs the commands queued since MULTI, as a whole.")
        .cost("Depends on the commands of the transaction.")
        .route(Route::Transaction)
        .with(FLAGS | flag::SKIP_SLOWLOG | flag::UNQUEUED),
    Spec::conn("multi", "", multi)
        .doc(T, "1.2.0", "Begins a transaction: commands are queued from now on.")
        .with(AT_ONCE | flag::UNQUEUED),
    Spec::conn("unwatch", "", unwatch).doc(T, "2.2.0", "Forgets the watched keys.").with(AT_ONCE),
    Spec::whole("watch", "key [key ...]", watch)
        .doc(
            T,
            "2.2.0",
            "Watches keys: when one of them changes before EXEC, nothing of the transaction runs.",
        )
        .cost("O(1) for every key.")
        .keys(&[key_range("RO", 1, -1, 1)])
        .route(Route::Keys)
        .with(AT_ONCE | flag::UNQUEUED),
];

/// Commands that wait for EXEC.
#[derive(Debug, Default)]
pub struct Multi {
    /// The commands.
    pub queued: Queued,
    /// The flag bits of all of them.
    pub flags: u32,
    /// One was refused: EXEC will refuse them all.
    pub has_failed: bool,
}

/// What a client watches.
#[derive(Debug, Default)]
pub struct Watched {
    /// Raised when one of the keys has changed.
    changed: Changed,
    /// The keys, by database.
    keys: Vec<(u32, Box<[u8]>, KeyHash)>,
    /// Bytes of the keys.
    key_bytes: usize,
}

impl Watched {
    /// Hashes of the keys.
    pub fn hashes(&self) -> impl Iterator<Item = KeyHash> {
        self.keys.iter().map(|(_, _, hash)| *hash)
    }

    /// Bytes that they cost.
    pub fn bytes(&self) -> usize {
        self.keys.capacity() * size_of::<(u32, Box<[u8]>, KeyHash)>() + self.key_bytes
    }

    /// Number of keys.
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Whether there is no key.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    fn each(&self) -> impl Iterator<Item = (u32, Key<'_>)> {
        self.keys.iter().map(|(db, bytes, hash)| (*db, Key { bytes, hash: *hash }))
    }
}

impl Client {
    /// Queues a command for EXEC.
    pub fn queue(&mut self, row: RowRef, args: &Args<'_>, known: (u32, KeyHash)) {
        if let Some(multi) = &mut self.multi {
            multi.queued.push(row.id, args, known, self.caller);
            multi.flags |= row.spec.flags;
        }
        self.show_transaction();
    }

    /// Lets others know what it has queued and what it watches.
    fn show_transaction(&self) {
        let (info, queued) = (&self.info, self.multi.as_ref().map(|multi| &multi.queued));
        info.queued.store(queued.map_or(-1, |queued| queued.commands.len() as i64), Ordering::Relaxed);
        info.queued_bytes.store(queued.map_or(0, |queued| queued.capacity() as u64), Ordering::Relaxed);
        let watched = self.watched.as_ref().map_or(0, |watched| watched.len() as u32);
        info.watched.store(watched, Ordering::Relaxed);
    }

    /// Notes that a command was refused before it ran: EXEC will refuse, too.
    pub fn fail_transaction(&mut self) {
        if let Some(multi) = &mut self.multi {
            multi.has_failed = true;
        }
    }

    /// Ends the transaction and forgets the watched keys. What was left in stores is swept there.
    pub fn discard_transaction(&mut self) {
        self.multi = None;
        self.watched = None;
        self.gates &= !gate::MULTI;
        self.show_transaction();
    }
}

fn multi(cx: &mut ConnCx<'_>, _: &mut Args<'_>, out: &mut Out) -> Done {
    if cx.client.multi.is_some() {
        return Err(Error::err("MULTI calls can not be nested"));
    }
    cx.client.multi = Some(Box::default());
    cx.client.gates |= gate::MULTI;
    cx.client.show_transaction();
    out.ok();
    Ok(())
}

fn discard(cx: &mut ConnCx<'_>, _: &mut Args<'_>, out: &mut Out) -> Done {
    if cx.client.multi.is_none() {
        return Err(Error::err("DISCARD without MULTI"));
    }
    cx.client.discard_transaction();
    out.ok();
    Ok(())
}

fn unwatch(cx: &mut ConnCx<'_>, _: &mut Args<'_>, out: &mut Out) -> Done {
    cx.client.watched = None;
    cx.client.show_transaction();
    out.ok();
    Ok(())
}

fn watch(cx: &mut WholeCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    if cx.client.multi.is_some() {
        return Err(Error::err("WATCH inside MULTI is not allowed"));
    }
    let db = cx.client.caller.db;
    let watched = cx.client.watched.get_or_insert_default();
    *cx.client.info.watched_changed.lock() = Arc::downgrade(&watched.changed);
    for key in args.keys(args.left()) {
        if watched.each().any(|(other, watched)| other == db && watched.bytes == key.bytes) {
            continue;
        }
        cx.stores.of(key.hash).watch(db, key, &watched.changed);
        watched.keys.push((db, key.bytes.into(), key.hash));
        watched.key_bytes += key.bytes.len();
    }
    cx.client.show_transaction();
    out.ok();
    Ok(())
}

/// Whether a watched key has changed; takes the watches back.
fn has_watched_change(cx: &mut WholeCx<'_>) -> bool {
    let Some(watched) = cx.client.watched.take() else { return false };
    let mut changed = watched.changed.load(Ordering::Relaxed);
    for (db, key) in watched.each() {
        let store = cx.stores.of(key.hash);
        changed |= store.watched_is_due(db, key, &watched.changed);
        store.unwatch(db, key, &watched.changed);
    }
    changed
}

fn exec(cx: &mut WholeCx<'_>, _: &mut Args<'_>, out: &mut Out) -> Done {
    let Some(multi) = cx.client.multi.take() else { return Err(Error::err("EXEC without MULTI")) };
    cx.client.gates &= !gate::MULTI;
    let changed = has_watched_change(cx);
    cx.client.show_transaction();
    if multi.has_failed {
        return Err(Error::line("EXECABORT Transaction discarded because of previous errors.".into()));
    }
    if changed {
        out.null_array();
        return Ok(());
    }
    let queued = &multi.queued;
    out.array(queued.commands.len());
    cx.client.caller.is_part = true;
    for command in &queued.commands {
        let mut args = queued.args(*command);
        cx.parts.run(table().row(command.row), cx.client, cx.stores.reborrow(), &mut args, out);
    }
    cx.client.caller.is_part = false;
    Ok(())
}
