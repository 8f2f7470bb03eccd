//! Commands that may take long, because they run scripts: each on a fiber, which is set aside when it takes too long, so
//! that other connections of the thread get answers meanwhile.
//!
//! Must stay true: as long as a fiber is set aside all its shards stay held and nobody enters their data; its connection
//! runs nothing else, and does not end before it.
use super::gates::data_allows;
use super::session::{Session, Stop, Turn, resolve};
use crate::base::clock;
use crate::base::hash::KeyHash;
use crate::cmd::cx::{Client, Wish, WriteStores};
use crate::cmd::spec::{Handler, Route, flag, gate};
use crate::cmd::table::{RowRef, table};
use crate::host::queued::Queued;
use crate::rt::sys::fiber::Fiber;
use crate::shard::hold::{Holders, Stores};
use crate::shard::local::Local;
use crate::shard::logged::write_unit;
use crate::shard::plan::ShardSet;
use crate::store::Now;
use crate::wire::parse::{Limits, Parsed};
use crate::wire::{Args, Out};
use std::cell::Cell;
use std::sync::atomic::Ordering;

/// Milliseconds between two turns of a fiber that was set aside.
const PAUSE_MS: u64 = 1;

/// A command for a fiber, with all that it works with: it may be set aside, and outlive the batch. It travels in a box,
/// and the box is used again.
#[derive(Default)]
pub(super) struct Job {
    /// Whose command it is, while it is on the fiber.
    client: Option<Client>,
    /// The command.
    queued: Queued,
    /// The shards that are held for it; none where there is only one.
    set: ShardSet,
    /// The time when they were taken.
    now: Now,
    reply: Vec<u8>,
}

/// Larger buffers are given back after use.
const JOB_BYTES_KEEP: usize = 64 * 1024;

thread_local! {
    /// Of the last fiber, for the next.
    static SPARE: Cell<Option<Box<Job>>> = const { Cell::new(None) };
}

impl Job {
    /// Keeps its box and its buffers for the next.
    fn recycle(mut self: Box<Job>) {
        if self.queued.capacity() + self.reply.capacity() <= JOB_BYTES_KEEP {
            self.queued.clear();
            self.reply.clear();
            SPARE.set(Some(self));
        }
    }

    fn run(&mut self, home: &Local) {
        let Some(client) = &mut self.client else { return };
        let (mut own, mut held);
        let (stores, now) = if self.set.is_empty() {
            own = home.enter_again();
            let now = own.now;
            (WriteStores::One(&mut own), now)
        } else {
            held = Stores::adopt(&home.shared, &self.set);
            (WriteStores::Many(&mut held), self.now)
        };
        let command = self.queued.commands[0];
        let mut out = Out { buf: std::mem::take(&mut self.reply), protocol: client.caller.protocol };
        let (row, mut args) = (table().row(command.row), self.queued.args(command));
        home.door(now).whole(row, client, stores, &mut args, &mut out);
        self.reply = out.buf;
    }
}

/// Whether a command runs scripts.
pub(super) fn runs_scripts(row: RowRef, client: &Client) -> bool {
    let queued = match (row.spec.route, &client.multi) {
        (Route::Transaction, Some(multi)) => multi.flags,
        _ => 0,
    };
    (row.spec.flags | queued) & flag::RUNS_SCRIPTS != 0
}

impl Session {
    /// Runs a command on a fiber, on shards that are held for it. The only shard of a server need not be held.
    pub(super) fn run_on_fiber(
        &mut self,
        row: RowRef,
        set: ShardSet,
        (held, now): (Holders<'_>, Now),
        args: &Args<'_>,
    ) -> Option<Stop> {
        // Others answer BUSY while it is set aside, and cannot write what they have noted here.
        if set.is_empty() {
            self.home.write_log();
        } else {
            let shared = &self.home.shared;
            let mut stores = Stores::new(held, &set, shared.shards());
            write_unit(&shared.host.journal, &mut stores);
            stores.pass_on();
        }
        let mut job = SPARE.take().unwrap_or_default();
        job.queued.push(row.id, args, (0, KeyHash::from_bits(0)), self.client.caller);
        (job.set, job.now) = (set, now);
        let mut stand_in = self.client.stand_in();
        stand_in.gates = self.client.gates;
        job.client = Some(std::mem::replace(&mut self.client, stand_in));
        let home = self.home.clone();
        self.go_on(Fiber::new(move || {
            job.run(&home);
            job
        }))
    }

    fn go_on(&mut self, mut fiber: Fiber<Box<Job>>) -> Option<Stop> {
        let Some(mut job) = fiber.resume() else {
            self.home.set_aside(true);
            self.fiber = Some(fiber);
            return Some(Stop::Aside);
        };
        self.home.set_aside(false);
        if let Some(client) = job.client.take() {
            self.client = client;
        }
        let before = self.out.buf.len();
        self.out.buf.extend_from_slice(&job.reply);
        job.recycle();
        self.follow_client();
        self.after_slow(before);
        (self.client.wish != Wish::None).then_some(Stop::Wish)
    }

    /// Whether a command of this connection was set aside.
    pub fn is_set_aside(&self) -> bool {
        self.fiber.is_some()
    }

    /// Gives the fiber that was set aside another turn. `None`: it is done.
    pub(super) fn run_set_aside(&mut self, local: &Local) -> Option<Turn> {
        let fiber = self.fiber.take()?;
        let stop = self.go_on(fiber)?;
        self.stopped(local, stop)
    }

    /// When a fiber that was set aside shall have its next turn.
    pub(super) fn next_turn() -> Turn {
        Turn::Blocked(Some(clock::wall_ms() + PAUSE_MS))
    }

    /// Somebody's script runs for too long and has the data: answers what can be answered without.
    pub(super) fn answer_busy(&mut self, local: &Local) -> Turn {
        let limits = Limits { bulk_bytes_max: u64::MAX, unauthenticated: false };
        let mut spans = Vec::new();
        loop {
            spans.clear();
            match self.parser.next(&self.input, self.at, &mut spans, limits) {
                Parsed::Command { end } => {
                    let input = std::mem::take(&mut self.input);
                    self.answer_one_busy(local, &mut Args::new(&input, &spans, (0, KeyHash::from_bits(0))));
                    self.input = input;
                    self.at = end;
                    if self.client.wish != Wish::None
                        && let Some(turn) = self.stopped(local, Stop::Wish)
                    {
                        return turn;
                    }
                }
                Parsed::Inline { line, end } if self.unfold_inline(line, end).is_ok() => {}
                Parsed::Inline { .. } | Parsed::Violation(_) => {
                    // The usual way says what is wrong, when it can.
                    local.ring_when_free(self.token);
                    return Turn::Wait;
                }
                _ => return Turn::Read,
            }
        }
    }

    fn answer_one_busy(&mut self, local: &Local, args: &mut Args<'_>) {
        if args.count() == 0 {
            return;
        }
        let door = local.door_now();
        let before = self.out.buf.len();
        match resolve(table().find(args.get(0)), args) {
            Ok(row)
                if row.spec.flags & flag::ALLOW_BUSY != 0 && matches!(row.spec.handler, Handler::Conn(_)) =>
            {
                door.conn(row, &mut self.client, args, &mut self.out);
                self.follow_client();
                self.after_slow(before);
            }
            Ok(row) => {
                // A script that a log is loaded with may be the one that takes long.
                let refusal = data_allows(row, &self.client, &local.shared.host);
                let refusal = refusal.err().unwrap_or_else(|| local.shared.host.scripts.busy());
                drop(self.reject(&door, Some(row), &refusal));
            }
            Err(error) => drop(self.reject(&door, None, &error)),
        }
    }

    /// Whether a script has had the data for too long.
    pub(super) fn is_busy(local: &Local) -> bool {
        local.shared.host.gates.load(Ordering::Relaxed) & gate::BUSY != 0
    }
}
