//! A connection whose client is blocked in a command: waits for keys, or only for time to pass.
//!
//! Must stay true: the wait ends once, by whoever claims it: the shard that serves it on the spot, this connection when
//! it runs the command again or when the time is up, or another client that unblocks it. What ends here without having
//! been served lets those behind it have their turn.
use std::sync::Arc;

use super::session::{Session, Turn};
use crate::base::clock;
use crate::base::hash::KeyHash;
use crate::cmd::cx::{Client, Wait, WriteStores};
use crate::cmd::spec::flag;
use crate::cmd::table::{RowRef, table};
use crate::host::queued::Queued;
use crate::host::{Claim, Stand};
use crate::shard::exec::Door;
use crate::shard::hold::Stores;
use crate::shard::local::Local;
use crate::shard::plan::plan_whole;
use crate::shard::spread::for_each_waited_key;
use crate::store::wait::Waiter;
use crate::wire::{Args, Error, Out};

const ONE_LESS: u64 = 1u64.wrapping_neg();

/// What the client is blocked in.
pub(super) struct Blocked {
    pub claim: Arc<Claim>,
    /// The command, when it waits for keys.
    waiter: Option<Arc<Waiter>>,
    /// This connection has the claim and must run the command again.
    pub must_retry: bool,
    /// When the wait is over, milliseconds since the epoch; `None`: never.
    until_ms: Option<u64>,
    /// The reply when the time is up.
    reply: Vec<u8>,
}

impl Blocked {
    /// Waits only for time to pass.
    pub(super) fn for_time(local: &Local, client: &Client, until_ms: Option<u64>, reply: Vec<u8>) -> Blocked {
        Blocked::new(local, client, None, until_ms, reply)
    }

    fn new(
        local: &Local,
        client: &Client,
        waiter: Option<Arc<Waiter>>,
        until_ms: Option<u64>,
        reply: Vec<u8>,
    ) -> Blocked {
        let claim = waiter.as_ref().map_or_else(Arc::default, |waiter| waiter.claim.clone());
        *client.info.wait.lock() = Some(claim.clone());
        let blocked = Blocked { claim, waiter, must_retry: false, until_ms, reply };
        blocked.count(local, 1);
        blocked
    }

    /// One more, or (one less than none) one less is blocked.
    fn count(&self, local: &Local, by: u64) {
        local.counters.blocked_clients.add(by);
        if self.until_ms.is_some() {
            local.counters.timed_waits.add(by);
        }
    }
}

impl Session {
    /// Blocks the client in a command, which waits at all of its keys; they lie in `stores`.
    #[cold]
    pub(super) fn begin_wait(
        &mut self,
        door: &Door<'_>,
        mut stores: WriteStores<'_>,
        row: RowRef,
        args: &mut Args<'_>,
        wait: Wait,
    ) {
        debug_assert!(row.spec.flags & flag::BLOCKING != 0 && row.spec.subs.is_empty());
        // From behind the name, as every run of it begins.
        args.seek(1);
        let mut command = Queued::default();
        let (known, caller) = ((0, KeyHash::from_bits(0)), self.client.caller);
        command.push_with(row.id, args, known, caller, |index| {
            wait.replaced.iter().find(|(at, _)| *at == index).map(|(_, text)| text.as_slice())
        });
        let waiter = Arc::new(Waiter::new(command, wait.kind, wait.heeds_all));
        for_each_waited_key(&waiter, |key| stores.of(key.hash).wait_at(caller.db, key, &waiter));
        let mut reply = Out::new(caller.protocol);
        reply.null_array();
        let blocked = Blocked::new(door.local, &self.client, Some(waiter), wait.until_ms, reply.buf);
        self.blocked = Some(blocked);
    }

    /// Looks whether the wait is over. `None`: it is, go on.
    pub(super) fn run_blocked(&mut self, local: &Local) -> Option<Turn> {
        let blocked = self.blocked.as_ref()?;
        if blocked.must_retry {
            return self.retry(local);
        }
        if blocked.until_ms.is_some_and(|until_ms| until_ms <= clock::wall_ms()) {
            // Fails when somebody serves it at this moment; then its letter is on the way.
            blocked.claim.end(Stand::TimedOut);
        }
        match blocked.claim.stand() {
            Stand::TimedOut => {
                count_unserved(local, blocked, false);
                let reply = blocked.reply.clone();
                self.end_wait(local, |out| out.buf.extend_from_slice(&reply));
                None
            }
            Stand::Unblocked => {
                count_unserved(local, blocked, true);
                let error = Error::line("UNBLOCKED client unblocked via CLIENT UNBLOCK".into());
                self.end_wait(local, |out| local.door_now().refuse(&error, out));
                None
            }
            Stand::Waiting | Stand::Claimed | Stand::Over => Some(Turn::Blocked(blocked.until_ms)),
        }
    }

    /// Ends the wait with a reply.
    pub(super) fn end_wait(&mut self, local: &Local, reply: impl FnOnce(&mut Out)) {
        if let Some(blocked) = self.blocked.take() {
            blocked.count(local, ONE_LESS);
        }
        *self.client.info.wait.lock() = None;
        let before = self.out.buf.len();
        reply(&mut self.out);
        self.after_slow(before);
    }

    /// Runs the command again that the client is blocked in, holding all shards of its keys. `None`: it is served.
    fn retry(&mut self, local: &Local) -> Option<Turn> {
        let blocked = self.blocked.as_mut()?;
        let waiter = blocked.waiter.clone()?;
        let until_ms = blocked.until_ms;
        let spec = table().row(waiter.row()).spec;
        let set = plan_whole(spec, &waiter.args(), &self.client, local.shared.shards());
        let Some((held, now)) = self.hold(local, &set) else {
            self.wanted = Some(set);
            return Some(Turn::Wait);
        };
        self.wanted = None;
        if let Some(blocked) = &mut self.blocked {
            blocked.must_retry = false;
        }
        let (door, db) = (local.door(now), waiter.caller().db);
        let mut stores = Stores::new(held, &set, local.shared.shards());
        let mut stores = WriteStores::Many(&mut stores);
        let mut out = Out::new(waiter.caller().protocol);
        let is_served = door.serve(&mut stores, &waiter, &mut out);
        // Those behind it have their turn.
        for_each_waited_key(&waiter, |key| stores.of(key.hash).look_at(db, key));
        door.spread(stores);
        if !is_served {
            return Some(Turn::Blocked(until_ms));
        }
        self.end_wait(local, |reply| reply.buf.extend_from_slice(&out.buf));
        None
    }

    /// The connection ends: so does its wait, and those behind it have their turn.
    pub(super) fn leave_wait(&mut self, local: &Local) {
        let Some(blocked) = self.blocked.take() else { return };
        blocked.count(local, ONE_LESS);
        if let (true, Some(waiter)) = (blocked.claim.abandon(), blocked.waiter) {
            // It may have been the one to try next, and those behind it wait for that.
            let (db, shards) = (waiter.caller().db, local.shared.shards());
            for_each_waited_key(&waiter, |key| local.look(key.hash.shard(shards), db, key.bytes));
        }
    }
}

/// The command that the client is blocked in ends without having been served.
fn count_unserved(local: &Local, blocked: &Blocked, failed: bool) {
    if let Some(waiter) = &blocked.waiter {
        let row = table().row(waiter.row());
        local.door_now().count_unserved(row, waiter.caller(), &waiter.args(), failed);
    }
}
