//! Commands that hold shards: those over several shards, and those that need the connection and data at once.
//!
//! Must stay true: while a connection waits for shards it holds none of its own thread's data; the bytes of the command
//! stay in the buffer until it has run.
use super::fibers::runs_scripts;
use super::session::{Round, Session, Stop, resolve};
use crate::base::hash::KeyHash;
use crate::cmd::cx::{Wish, WriteStores};
use crate::cmd::spec::Handler;
use crate::cmd::table::{RowRef, table};
use crate::shard::exec::Door;
use crate::shard::hold::{self, Holders, Stores};
use crate::shard::local::Local;
use crate::shard::plan::{ShardSet, plan_whole};
use crate::shard::watch::Origin;
use crate::store::Now;
use crate::wire::Args;
use crate::wire::parse::{Limits, Parsed};

impl Session {
    /// Shows a command that ran, or will soon run elsewhere, to whoever monitors.
    pub(super) fn feed_monitors(&self, door: &Door<'_>, row: RowRef, args: &Args<'_>) {
        let client = &self.client;
        door.feed_monitors(row.spec, Origin::Client(&client.info), client.caller.db, args);
    }

    /// Brings a command that needs the connection and data at once to where it runs.
    pub(super) fn dispatch_whole(
        &mut self,
        round: &mut Round<'_>,
        row: RowRef,
        args: &mut Args<'_>,
    ) -> Option<Stop> {
        let local = round.local;
        let shards = local.shared.shards();
        let is_long = runs_scripts(row, &self.client);
        if shards > 1 || is_long {
            if self.gather.is_open() {
                return Some(Stop::Barrier);
            }
            let set = plan_whole(row.spec, args, &self.client, shards);
            if is_long || set.iter().any(|shard| usize::from(*shard) != local.id) {
                return Some(Stop::Hold(row, set));
            }
        }
        let stores = WriteStores::One(&mut round.store);
        round.door.whole(row, &mut self.client, stores, args, &mut self.out);
        // Its parts may have changed settings and the client.
        self.follow_client();
        round.door.now = round.store.now;
        (self.client.wish != Wish::None).then_some(Stop::Wish)
    }

    /// Takes all of `set`, with the clock read and the settings in force. `None`: not all of it is free; it was asked
    /// for.
    pub(super) fn hold<'a>(&mut self, local: &'a Local, set: &ShardSet) -> Option<(Holders<'a>, Now)> {
        let mut held = match hold::acquire(&local.shared, set, &mut self.pending_hold) {
            Ok(held) => held,
            Err(busy) => {
                local.want_hold(busy, self.token);
                return None;
            }
        };
        let now = hold::begin(local, &mut held);
        Some((held, now))
    }

    /// Runs the command at the front of the buffer, which ends at `end`, while holding `set`. `Some`: it must wait, or
    /// it ran and asks for something.
    pub(super) fn run_holding(
        &mut self,
        local: &Local,
        row: RowRef,
        set: ShardSet,
        args: &mut Args<'_>,
        end: usize,
    ) -> Option<Stop> {
        if local.shared.shards() == 1 && runs_scripts(row, &self.client) {
            self.at = end;
            return self.run_on_fiber(row, ShardSet::new(), (Holders::new(), Now::default()), args);
        }
        let Some((held, now)) = self.hold(local, &set) else {
            self.wanted = Some(set);
            return Some(Stop::Waits);
        };
        self.at = end;
        if runs_scripts(row, &self.client) {
            return self.run_on_fiber(row, set, (held, now), args);
        }
        let mut stores = Stores::new(held, &set, local.shared.shards());
        let door = local.door(now);
        let before = self.out.buf.len();
        if let Handler::Whole(_) = row.spec.handler {
            door.whole(row, &mut self.client, WriteStores::Many(&mut stores), args, &mut self.out);
            self.follow_client();
        } else if let Some(wait) = door.on_many(row, &mut stores, &self.client.caller, args, &mut self.out) {
            self.feed_monitors(&door, row, args);
            self.begin_wait(&door, WriteStores::Many(&mut stores), row, args, *wait);
            return Some(Stop::Blocked);
        }
        self.feed_monitors(&door, row, args);
        self.after_slow(before);
        (self.client.wish != Wish::None).then_some(Stop::Wish)
    }

    /// Runs the command at the front of the buffer, which waited to hold `set`.
    pub(super) fn run_wanted(&mut self, local: &Local, set: ShardSet) -> Option<Stop> {
        let limits = Limits { bulk_bytes_max: u64::MAX, unauthenticated: false };
        let mut spans = Vec::new();
        let Parsed::Command { end } = self.parser.next(&self.input, self.at, &mut spans, limits) else {
            unreachable!("the command was parsed before and its bytes are still there");
        };
        let input = std::mem::take(&mut self.input);
        let mut args = Args::new(&input, &spans, (0, KeyHash::from_bits(0)));
        let row = resolve(table().find(args.get(0)), &mut args).expect("the command was resolved before");
        let stop = self.run_holding(local, row, set, &mut args, end);
        self.input = input;
        stop
    }
}
