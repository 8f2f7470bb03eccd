//! Clients that wait for keys: BLPOP and its kin.
//!
//! Must stay true: whoever wants to end a wait claims it first, and only one claim succeeds, so a client is served
//! exactly once; clients that wait at one key stand in the order in which they came.
use std::sync::Arc;

use super::Store;
use super::news::{Ready, listen, next_number};
use crate::ds::object::Kind;
use crate::host::queued::{Caller, Queued};
use crate::host::{Claim, Stand};
use crate::wire::{Args, Key};

/// A command that waits, and for what.
#[derive(Debug)]
pub struct Waiter {
    /// The right to end the wait.
    pub claim: Arc<Claim>,
    /// The command, with what it must not look up again (such as `$` of XREAD) replaced.
    command: Queued,
    /// What its keys must be to serve it.
    kind: Kind,
    /// It is run again whatever becomes of its keys: a group that it reads may be gone.
    heeds_all: bool,
}

impl Waiter {
    /// A wait of one command.
    pub fn new(command: Queued, kind: Kind, heeds_all: bool) -> Waiter {
        debug_assert_eq!(command.commands.len(), 1);
        Waiter { claim: Arc::default(), command, kind, heeds_all }
    }

    /// Row of the command table.
    pub fn row(&self) -> u32 {
        self.command.commands[0].row
    }

    /// Who waits.
    pub fn caller(&self) -> &Caller {
        &self.command.commands[0].caller
    }

    /// The command's arguments.
    pub fn args(&self) -> Args<'_> {
        self.command.args(self.command.commands[0])
    }

    /// Whether it is worth running again now that a key has become this.
    pub fn may_take(&self, kind: Option<Kind>) -> bool {
        self.heeds_all || kind == Some(self.kind)
    }

    /// Whether the wait has ended.
    pub fn is_over(&self) -> bool {
        !matches!(self.claim.stand(), Stand::Waiting | Stand::Claimed)
    }
}

impl Store {
    /// Puts a waiter at a key, behind the others; once, when its command names the key several times.
    pub fn wait_at(&mut self, db: u32, key: Key<'_>, waiter: &Arc<Waiter>) {
        if !self.waiters.at(db, key).last().is_some_and(|last| Arc::ptr_eq(last, waiter)) {
            self.waiters.leave(db, key, waiter.clone());
            self.listens |= listen::WAITERS;
        }
    }

    /// Takes a waiter away from a key.
    pub fn leave_wait(&mut self, db: u32, key: Key<'_>, waiter: &Arc<Waiter>) {
        self.waiters.take_at(db, key, |other| Arc::ptr_eq(other, waiter));
        self.forget_waiters_if_none();
    }

    /// The first of those who wait at a key, from a place in their order on, who may take it as it is; and his place.
    pub fn next_waiter(&self, db: u32, key: Key<'_>, from: usize) -> Option<(usize, Arc<Waiter>)> {
        let kind = self.kind(db, key);
        let waiters = self.waiters.at(db, key).iter().enumerate().skip(from);
        let mut waiters = waiters.filter(|(_, waiter)| waiter.may_take(kind) && !waiter.is_over());
        waiters.next().map(|(at, waiter)| (at, waiter.clone()))
    }

    /// Number of keys that somebody waits at; with `heeds_all` only those whose going away somebody waits for, too.
    pub fn waited_keys(&self, heeds_all: bool) -> usize {
        self.waiters.keys(|waiter| !waiter.is_over() && (waiter.heeds_all || !heeds_all))
    }

    /// Takes out waits that are over.
    pub(super) fn sweep_waiters(&mut self) {
        self.waiters.retain(|waiter| !waiter.is_over());
        self.forget_waiters_if_none();
    }

    fn forget_waiters_if_none(&mut self) {
        if self.waiters.is_empty() {
            self.listens &= !listen::WAITERS;
        }
    }

    /// Somebody waits at this key: it shall be looked at when the command is done.
    pub fn note_ready(&mut self, db: u32, key: Key<'_>) {
        if !self.waiters.at(db, key).is_empty() {
            self.look_at(db, key);
        }
    }

    /// Has those who wait at a key looked at when the command is done.
    pub fn look_at(&mut self, db: u32, key: Key<'_>) {
        self.has_news = true;
        if !self.news.ready.iter().any(|ready| ready.db == db && *ready.key == *key.bytes) {
            let ready = Ready { number: next_number(), db, key: key.bytes.into() };
            self.news.ready.push_back(ready);
        }
    }

    /// The same for all keys of a database that somebody waits at: what it has changed as a whole.
    pub(super) fn note_ready_db(&mut self, db: u32) {
        let mut keys = Vec::new();
        self.waiters.for_each_in(db, |key, _| keys.push(Box::<[u8]>::from(key.bytes)));
        for key in keys {
            self.look_at(db, Key::new(&key));
        }
    }
}
