//! A connection's state machine: takes bytes, gives bytes, knows no socket.
//!
//! A batch is what lies in the read buffer. Its commands are parsed and hashed a few at a time, their buckets and
//! blocks are asked for, then they run in order: on this shard's data, in place on another's, or posted to their
//! owner. Commands over several shards first wait for everything posted, then hold those shards.
//!
//! Must stay true: a command takes effect after all earlier ones of its connection that share a shard with it;
//! replies keep order; a command that cannot run yet leaves its bytes in the buffer and is parsed again.
use std::rc::Rc;
use std::sync::atomic::Ordering;

use super::blocked::Blocked;
use super::fibers::Job;
use super::gather::Gather;
use super::{commands, gates, memory};

use crate::base::hash::KeyHash;
use crate::cmd::cx::{Client, Ending, Wish, WriteStores};
use crate::cmd::spec::{Done, Group, Handler, Route, flag, gate};
use crate::cmd::table::{RowRef, table};
use crate::config::P;
use crate::host::mail::{Address, Letter};
use crate::host::mark;
use crate::rt::sys::fiber::Fiber;
use crate::shard::cell::Owner;
use crate::shard::exec::Door;
use crate::shard::hold;
use crate::shard::local::{Event, Local, Mailbox};
use crate::shard::msg::Token;
use crate::shard::plan::{Plan, ShardSet, plan};
use crate::shard::watch::Origin;
use crate::store::Store;
use crate::wire::error::{unknown_command, unknown_subcommand};
use crate::wire::parse::{Limits, Parsed, Parser, Violation};
use crate::wire::{Args, Error, Out, Span, inline};

/// Commands that are parsed, then prefetched, before the first of them runs.
const AHEAD: usize = 24;
/// The read buffer a connection starts with, and the one it falls back to after large requests.
const INPUT_BYTES_MIN: usize = 1024;
const INPUT_BYTES_KEEP: usize = 32 * 1024;
/// A read buffer that was filled grows up to this without a command that needs more.
const INPUT_BYTES_STEADY: usize = 64 * 1024;

/// What the driver shall do next.
#[derive(Debug, PartialEq)]
pub enum Turn {
    /// Read more bytes.
    Read,
    /// Wait for the mailbox.
    Wait,
    /// The client is blocked in a command until then (milliseconds since the epoch; `None`: for ever): wait for the
    /// mailbox, and read on meanwhile.
    Blocked(Option<u64>),
    /// Write what is there, then close.
    Close,
    /// The process shall end; if it cannot, [`Session::goes_on`].
    Shutdown(Ending),
    /// The log shall be loaded again; then [`Session::goes_on`].
    ReloadLog,
}

/// Why a batch stopped before its end.
pub(super) enum Stop {
    /// All commands have run.
    Drained,
    /// Everything posted must come back first.
    Barrier,
    /// This command, at the front, needs these shards at once.
    Hold(RowRef, ShardSet),
    /// This shard's data is held by somebody.
    Locked,
    /// What the command at the front needs at once is not free: it waits.
    Waits,
    /// Clients are paused.
    Paused,
    /// The client is blocked in the last command.
    Blocked,
    /// The last command takes long and was set aside.
    Aside,
    /// The last command asked the driver for something.
    Wish,
    /// The client broke the protocol.
    Violation(Violation),
}

/// What the commands of one batch run with.
pub(super) struct Round<'a> {
    pub local: &'a Local,
    pub door: Door<'a>,
    pub store: Owner<'a, Store>,
}

impl<'a> Round<'a> {
    /// Goes in to the data of `local`'s shard. `None`: somebody holds it.
    #[inline]
    fn enter(local: &'a Local) -> Option<Round<'a>> {
        let store = local.enter()?;
        Some(Round { local, door: local.door(store.now), store })
    }
}

/// A command that was parsed.
struct Parsing {
    row: Option<RowRef>,
    first: u32,
    count: u32,
    end: usize,
    known: (u32, KeyHash),
}

/// Reused between batches of a thread.
#[derive(Default)]
struct Scratch {
    spans: Vec<Span>,
    commands: Vec<Parsing>,
}

thread_local! {
    static SCRATCH: std::cell::RefCell<Scratch> = std::cell::RefCell::default();
}

/// The state of a connection.
pub struct Session {
    /// What commands may look at.
    pub client: Client,
    /// Replies not handed to the driver yet.
    pub out: Out,
    pub(super) token: Token,
    pub(super) mailbox: Rc<Mailbox>,
    pub(super) parser: Parser,
    pub(super) input: Vec<u8>,
    pub(super) at: usize,
    pub(super) gather: Gather,
    pub(super) pending_hold: hold::Pending,
    /// What the command at the front, or the one that the client is blocked in, waits to hold.
    pub(super) wanted: Option<ShardSet>,
    /// The command that the client is blocked in.
    pub(super) blocked: Option<Blocked>,
    /// Letters that must not overtake a reply.
    pub(super) held_back: Vec<Letter>,
    /// A command that was set aside because it takes long.
    pub(super) fiber: Option<Fiber<Box<Job>>>,
    /// Its shard.
    pub(super) home: Rc<Local>,
    closing: bool,
    /// It replays a log: what was once accepted is not measured by the limits of today.
    pub replays: bool,
}

impl Session {
    /// A fresh connection of `local`'s shard.
    pub fn new(mut client: Client, local: &Rc<Local>) -> Session {
        let (token, mailbox) = local.sit();
        client.caller.address = Address { shard: local.id as u16, token };
        *client.info.address.lock() = client.caller.address;
        Session {
            client,
            out: Out::default(),
            token,
            mailbox,
            parser: Parser::default(),
            input: Vec::new(),
            at: 0,
            gather: Gather::default(),
            pending_hold: hold::Pending::default(),
            wanted: None,
            blocked: None,
            held_back: Vec::new(),
            fiber: None,
            home: local.clone(),
            closing: false,
            replays: false,
        }
    }

    /// Whether letters may come at any time.
    #[inline]
    pub fn listens(&self) -> bool {
        self.client.gates & (gate::LISTENER | gate::SUBSCRIBED) != 0
    }

    /// Has the mailbox ring at the next tick.
    pub fn ring_at_tick(&self, local: &Local) {
        local.ring_once_at_tick(self.token, &self.mailbox);
    }

    /// Has the mailbox ring when the shard's data is free, which it is not: `false`.
    pub fn ring_when_free(&self, local: &Local) -> bool {
        local.ring_when_free(self.token);
        false
    }

    /// The letter box to wait at.
    pub fn mailbox(&self) -> &Mailbox {
        &self.mailbox
    }

    /// Ends the connection: gives back what it has of the shard.
    pub fn end(mut self, local: &Local) {
        local.shared.host.hub.leave(&mut self.client.subscriptions, self.client.caller.address);
        // What came but was not read: a grant that is dropped would lock its shard for ever.
        while let Some(event) = self.mailbox.take() {
            match event {
                Event::Granted(shard) => self.pending_hold.granted(shard),
                Event::Done(group) => local.recycle(group),
                Event::Rung | Event::Letter(_) => {}
            }
        }
        self.pending_hold.release(&local.shared);
        self.leave_wait(local);
        commands::stop_monitoring(&self.client, &local.shared.host);
        self.client.stop_tracking(&local.shared.host);
        memory::forget(local, &self.client.info);
        local.stand_up(self.token);
    }

    /// Hands out the read buffer, with room for more bytes behind what a command still needs.
    pub fn lend_input(&mut self) -> Vec<u8> {
        if (self.blocked.is_some() || self.fiber.is_some()) && self.input_bytes() > 0 {
            // What is there runs as soon as the wait is over, whether anything new has come or not.
            return Vec::with_capacity(INPUT_BYTES_MIN);
        }
        let mut input = std::mem::take(&mut self.input);
        if self.at == input.len() {
            input.clear();
            self.at = 0;
        } else if self.at > 0 {
            input.drain(..self.at);
            self.parser.moved(self.at);
            self.at = 0;
        }
        if input.is_empty() && input.capacity() > INPUT_BYTES_STEADY {
            input = Vec::with_capacity(INPUT_BYTES_KEEP);
        }
        if input.capacity() - input.len() < (input.capacity() / 2).min(INPUT_BYTES_STEADY) {
            // Doubling: what was received backs what is reserved.
            input.reserve_exact((input.capacity()).max(INPUT_BYTES_MIN));
        } else if input.capacity() == 0 {
            input.reserve_exact(INPUT_BYTES_MIN);
        }
        let info = &self.client.info;
        info.query_bytes.store(input.len() as u64, Ordering::Relaxed);
        info.query_capacity.store(input.capacity() as u64, Ordering::Relaxed);
        input
    }

    /// Takes the read buffer back, with `new_bytes` more bytes.
    pub fn take_input(&mut self, mut input: Vec<u8>, new_bytes: usize) {
        if new_bytes > 0 && input.len() == input.capacity() && input.capacity() < INPUT_BYTES_STEADY {
            input.reserve_exact(input.capacity());
        }
        if self.input_bytes() > 0 {
            // A wait has kept it.
            self.input.extend_from_slice(&input);
            input = std::mem::take(&mut self.input);
        } else {
            self.at = 0;
        }
        let info = &self.client.info;
        info.net_in.add(new_bytes as u64);
        info.query_bytes.store(input.len() as u64, Ordering::Relaxed);
        info.query_capacity.store(input.capacity() as u64, Ordering::Relaxed);
        self.input = input;
    }

    /// What the last command wished of the driver was done, or could not be.
    pub fn goes_on(&mut self, local: &Local, outcome: Done) -> Turn {
        match outcome {
            Ok(()) => self.out.ok(),
            Err(refusal) => local.door_now().refuse(&refusal, &mut self.out),
        }
        self.run(local)
    }

    /// The client will send no more.
    pub fn hang_up(&mut self, local: &Local) -> Turn {
        self.closing = true;
        // What was set aside has shards, and ends first.
        if self.is_set_aside() { self.run(local) } else { Turn::Close }
    }

    /// Bytes of the read buffer that are not executed.
    pub fn input_bytes(&self) -> usize {
        self.input.len() - self.at
    }

    /// Whether replies may be written now: not while an earlier one is missing.
    pub fn may_write(&self) -> bool {
        !self.gather.is_open() && !self.out.buf.is_empty()
    }

    /// Runs as far as it goes.
    pub fn run(&mut self, local: &Local) -> Turn {
        local.begin_turn();
        if self.listens() {
            local.take_arrivals();
        }
        if !self.read_mail(local) {
            return Turn::Wait;
        }
        loop {
            if self.fiber.is_some() {
                match self.run_set_aside(local) {
                    Some(turn) => return turn,
                    None => continue,
                }
            }
            if self.closing {
                return Turn::Close;
            }
            if self.blocked.is_some() {
                match self.run_blocked(local) {
                    Some(turn) => return turn,
                    None => continue,
                }
            }
            if let Some(set) = self.wanted.take() {
                // Before entering this shard: when it is what was granted, nobody enters until the command has run.
                if let Some(turn) = self.run_wanted(local, set).and_then(|stop| self.stopped(local, stop)) {
                    return turn;
                }
                continue;
            }
            let mut scratch = SCRATCH.take();
            let stop = self.batch(local, &mut scratch);
            SCRATCH.set(scratch);
            if let Some(turn) = self.stopped(local, stop) {
                return turn;
            }
        }
    }

    /// Takes what came for this connection. `false`: something is still missing.
    fn read_mail(&mut self, local: &Local) -> bool {
        self.hear();
        let mut granted = false;
        while let Some(event) = self.mailbox.take() {
            match event {
                Event::Rung => {}
                Event::Letter(letter) => self.read_letter(local, letter),
                Event::Granted(shard) => {
                    self.pending_hold.granted(shard);
                    granted = true;
                }
                Event::Done(group) => {
                    if self.gather.back(group.to, group) {
                        self.gather.assemble(local, &mut self.out);
                    }
                }
            }
        }
        !self.gather.is_open() && (granted || self.wanted.is_none())
    }

    /// What follows from how a batch stopped; `None`: go on at once.
    pub(super) fn stopped(&mut self, local: &Local, stop: Stop) -> Option<Turn> {
        if self.client.info.has(mark::PAUSED) != matches!(stop, Stop::Paused) {
            self.client.info.set(mark::PAUSED, matches!(stop, Stop::Paused));
        }
        // A wish was consumed with its command; every other reason is still there when the replies are back.
        if self.gather.is_open() && !matches!(stop, Stop::Wish) {
            self.gather.send(local);
            return Some(Turn::Wait);
        }
        match stop {
            Stop::Drained => Some(Turn::Read),
            Stop::Barrier => None,
            Stop::Hold(..) => unreachable!("what needs several shards runs within the batch"),
            Stop::Locked if Session::is_busy(local) => Some(self.answer_busy(local)),
            Stop::Locked => {
                local.ring_when_free(self.token);
                Some(Turn::Wait)
            }
            Stop::Waits => Some(Turn::Wait),
            Stop::Blocked => None,
            Stop::Aside => Some(Session::next_turn()),
            Stop::Paused => {
                local.ring_at_tick(self.token);
                Some(Turn::Wait)
            }
            Stop::Violation(violation) => {
                local.counters.protocol_errors.add(1);
                self.out.error(&Error::err(format!("Protocol error: {violation}")));
                self.closing = true;
                None
            }
            Stop::Wish => self.grant_wish(local),
        }
    }

    fn grant_wish(&mut self, local: &Local) -> Option<Turn> {
        match std::mem::take(&mut self.client.wish) {
            Wish::None => None,
            Wish::Close => {
                self.closing = true;
                if !self.gather.is_open() {
                    return None;
                }
                self.gather.send(local);
                Some(Turn::Wait)
            }
            Wish::SleepMs(ms) => {
                // Outside the data: other shards can still reach it.
                std::thread::sleep(std::time::Duration::from_millis(ms));
                None
            }
            Wish::Shutdown(ending) => Some(Turn::Shutdown(ending)),
            Wish::ReloadLog => Some(Turn::ReloadLog),
            Wish::WaitUntil(until_ms, reply) => {
                self.blocked = Some(Blocked::for_time(local, &self.client, until_ms, reply));
                None
            }
        }
    }

    /// Parses and runs what is in the buffer.
    fn batch(&mut self, local: &Local, scratch: &mut Scratch) -> Stop {
        let mut inside = Round::enter(local);
        let Some(round) = &inside else { return Stop::Locked };
        let bulk_bytes_max = match self.replays {
            true => u64::MAX,
            false => round.store.settings.memory(P::PROTO_MAX_BULK_LEN),
        };
        let limits = Limits { bulk_bytes_max, unauthenticated: false };
        loop {
            let Some(round) = &inside else { return Stop::Locked };
            let ended = self.parse_ahead(local, &round.store, scratch, limits);
            if scratch.commands.is_empty() {
                return match ended {
                    Some(Parsed::Violation(violation)) => Stop::Violation(violation),
                    Some(Parsed::Inline { line, end }) => match self.unfold_inline(line, end) {
                        Ok(()) => continue,
                        Err(violation) => Stop::Violation(violation),
                    },
                    _ => Stop::Drained,
                };
            }
            if let Some(stop) = self.run_parsed(&mut inside, scratch) {
                return stop;
            }
            if self.at == self.input.len() {
                return Stop::Drained;
            }
        }
    }

    /// Parses up to `AHEAD` commands and asks for their buckets. Returns what ended it early.
    fn parse_ahead(
        &mut self,
        local: &Local,
        store: &Store,
        scratch: &mut Scratch,
        limits: Limits,
    ) -> Option<Parsed> {
        scratch.spans.clear();
        scratch.commands.clear();
        let (shards, db) = (local.shared.shards(), self.client.caller.db);
        let (table, mut last) = (table(), None);
        let mut at = self.at;
        while scratch.commands.len() < AHEAD && at < self.input.len() {
            let first = scratch.spans.len();
            let end = match self.parser.next(&self.input, at, &mut scratch.spans, limits) {
                Parsed::Command { end } => end,
                ended => return Some(ended),
            };
            at = end;
            let spans = &scratch.spans[first..];
            let Some(name) = spans.first() else {
                // An empty array asks for nothing.
                if scratch.commands.is_empty() {
                    self.at = end;
                }
                continue;
            };
            let row = table.find_after(last, name.of(&self.input));
            last = row;
            let key_at = row.map_or(0, |row| row.first_key);
            let known = match spans.get(key_at as usize) {
                Some(key) if key_at > 0 => {
                    let hash = KeyHash::of(key.of(&self.input));
                    if shards == 1 || hash.shard(shards) == local.id {
                        store.prefetch(db, hash);
                    }
                    (key_at, hash)
                }
                _ => (0, KeyHash::from_bits(0)),
            };
            scratch.commands.push(Parsing {
                row,
                first: first as u32,
                count: spans.len() as u32,
                end,
                known,
            });
        }
        None
    }

    /// Runs the parsed commands. `Some`: stopped before the end.
    fn run_parsed<'a>(&mut self, inside: &mut Option<Round<'a>>, scratch: &Scratch) -> Option<Stop> {
        let round = inside.as_mut()?;
        let local = round.local;
        let (shards, db) = (local.shared.shards(), self.client.caller.db);
        if scratch.commands.len() > 1 {
            for command in &scratch.commands {
                if command.known.0 != 0 && (shards == 1 || command.known.1.shard(shards) == local.id) {
                    round.store.prefetch_entry(db, command.known.1);
                }
            }
        }
        let input = std::mem::take(&mut self.input);
        let now_ms = round.store.now.ms;
        let mut stopped = None;
        for command in &scratch.commands {
            let Some(round) = inside else { break };
            let spans = &scratch.spans[command.first as usize..(command.first + command.count) as usize];
            let mut args = Args::new(&input, spans, command.known);
            match self.one(round, command, &mut args) {
                None => {
                    self.at = command.end;
                    continue;
                }
                Some(stop @ (Stop::Wish | Stop::Blocked | Stop::Aside)) => {
                    self.at = command.end;
                    stopped = Some(stop);
                }
                Some(Stop::Hold(row, set)) => {
                    *inside = None;
                    stopped = self.run_holding(local, row, set, &mut args, command.end);
                    if stopped.is_none() {
                        *inside = Round::enter(local);
                        continue;
                    }
                }
                stop => stopped = stop,
            }
            break;
        }
        // What CLIENT LIST shows is written once a batch.
        let info = &self.client.info;
        if let Some(last) = scratch.commands.last()
            && let Some(row) = last.row
        {
            let subcommand = scratch.spans[last.first as usize..].get(1).filter(|_| last.count > 1);
            let sub = subcommand.and_then(|span| table().find_sub(row, span.of(&input)));
            info.last_command.store(sub.unwrap_or(row).id, Ordering::Relaxed);
        }
        self.input = input;
        info.last_ms.store(now_ms, Ordering::Relaxed);
        stopped
    }

    /// Runs one command. `Some`: it did not run (or, for a wish, asks for something).
    #[inline(always)]
    fn one(&mut self, round: &mut Round<'_>, command: &Parsing, args: &mut Args<'_>) -> Option<Stop> {
        let row = match command.row {
            Some(row) if row.is_plain && row.spec.accepts(command.count as usize) => row,
            _ => match resolve(command.row, args) {
                Ok(row) => row,
                Err(error) => return self.reject(&round.door, command.row, &error),
            },
        };
        if row.gates & (self.client.gates | round.door.host.gates.load(Ordering::Relaxed)) != 0 {
            return self.one_slow(round, row, command, args);
        }
        self.dispatch(round, row, command, args, false)
    }

    /// Answers a command that cannot run.
    #[cold]
    pub(super) fn reject(&mut self, door: &Door<'_>, row: Option<RowRef>, error: &Error) -> Option<Stop> {
        let before = self.out.buf.len();
        if let Some(row) = row
            && row.spec.route == Route::Transaction
        {
            self.client.discard_transaction();
            let reason = error.to_string();
            let reason = reason.strip_prefix("ERR ").unwrap_or(&reason);
            let error = Error::line(format!("EXECABORT Transaction discarded because of: {reason}"));
            door.reject(row, &error, &mut self.out);
            // It was shown to begin, so it is shown to end.
            door.show_monitors(Origin::Client(&self.client.info), self.client.caller.db, &[b"exec"]);
            return self.after_slow(before);
        }
        self.client.fail_transaction();
        match row {
            Some(row) => door.reject(row, error, &mut self.out),
            None => door.refuse(error, &mut self.out),
        }
        self.after_slow(before)
    }

    /// The same with gates in force.
    #[cold]
    #[inline(never)]
    fn one_slow(
        &mut self,
        round: &mut Round<'_>,
        row: RowRef,
        command: &Parsing,
        args: &mut Args<'_>,
    ) -> Option<Stop> {
        if gates::is_paused(row, args, &self.client, round.door.host, round.door.now) {
            return Some(Stop::Paused);
        }
        let before = self.out.buf.len();
        let allowed = gates::allowed(row, round.door.host, &self.client.caller)
            .and_then(|()| match self.replays {
                true => Ok(()),
                false => gates::data_allows(row, &self.client, round.door.host),
            })
            .and_then(|()| gates::subscriber_may(row, &self.client));
        if let Err(error) = allowed {
            return self.reject(&round.door, Some(row), &error);
        }
        if self.client.gates & gate::MULTI != 0 && row.spec.flags & flag::UNQUEUED == 0 {
            return self.queue(round, row, command, args);
        }
        self.client.info.last_command.store(row.id, Ordering::Relaxed);
        let silent = gates::is_silent(row, &self.client);
        if command.row.is_some_and(|row| row.spec.flags & flag::KEEPS_CACHING != 0) {
            self.client.keep_caching();
        }
        let stop = self.dispatch(round, row, command, args, silent);
        if matches!(stop, None | Some(Stop::Wish | Stop::Blocked)) {
            self.feed_monitors(&round.door, row, args);
        }
        match stop {
            None | Some(Stop::Wish) if row.spec.flags & flag::PUSHES != 0 => {
                self.after_slow(self.out.buf.len()).or(stop)
            }
            None | Some(Stop::Wish) => self.after_slow(before).or(stop),
            stop => stop,
        }
    }

    /// Queues a command for EXEC.
    fn queue(&mut self, round: &Round<'_>, row: RowRef, command: &Parsing, args: &Args<'_>) -> Option<Stop> {
        if row.spec.flags & flag::NO_MULTI != 0 {
            let error = Error::err("Command not allowed inside a transaction");
            return self.reject(&round.door, Some(row), &error);
        }
        let before = self.out.buf.len();
        self.client.queue(row, args, command.known);
        self.out.simple("QUEUED");
        self.after_slow(before)
    }

    /// Moves the reply mode on and drops the reply when nobody wants it; then comes what the client hears behind it.
    pub(super) fn after_slow(&mut self, before: usize) -> Option<Stop> {
        if self.client.gates & gate::REPLY_MODE != 0 && gates::after(&mut self.client) {
            self.out.buf.truncate(before);
        }
        if self.client.gates & gate::TRACKING != 0 || !self.held_back.is_empty() {
            self.client.use_caching_up();
            self.hear_behind_reply();
        }
        None
    }

    /// Brings a command to where it runs; its reply is dropped when `silent`.
    #[inline(always)]
    fn dispatch(
        &mut self,
        round: &mut Round<'_>,
        row: RowRef,
        command: &Parsing,
        args: &mut Args<'_>,
        silent: bool,
    ) -> Option<Stop> {
        let (local, door) = (round.local, &round.door);
        if let Handler::Conn(_) = row.spec.handler {
            // What is about the whole process, or waits, follows everything before it.
            let follows = row.spec.group == Group::Server || row.spec.flags & flag::BLOCKING != 0;
            if self.gather.is_open() && follows {
                return Some(Stop::Barrier);
            }
            if !silent && self.listens() {
                // What came before it gives a subject up, or changes the protocol.
                self.hear();
            }
            door.conn(row, &mut self.client, args, &mut self.out);
            self.follow_client();
            // The commands behind a CONFIG SET in the batch run under the new settings.
            local.heed_settings(&mut round.store);
            round.door.now = round.store.now;
            round.door.spread_one(&mut round.store);
            return (self.client.wish != Wish::None).then_some(Stop::Wish);
        }
        if let Handler::Whole(_) = row.spec.handler {
            return self.dispatch_whole(round, row, args);
        }
        let may_wait = row.spec.flags & flag::BLOCKING != 0;
        if may_wait && self.gather.is_open() {
            return Some(Stop::Barrier);
        }
        match plan(row.spec, args, command.known, local.shared.shards(), local.id) {
            Plan::Local => {
                let wait = door.on_one(row, &mut round.store, &self.client.caller, args, &mut self.out);
                if let Some(wait) = wait {
                    self.begin_wait(&round.door, WriteStores::One(&mut round.store), row, args, *wait);
                    return Some(Stop::Blocked);
                }
            }
            Plan::Foreign(shard) => {
                if !self.read_in_place(round, shard, row, args) {
                    if may_wait {
                        return Some(Stop::Hold(row, ShardSet::from_slice(&[shard as u16])));
                    }
                    let reply_at = (!silent).then_some(self.out.buf.len());
                    let command = (row.id, &*args, command.known);
                    self.gather.post(local, self.token, shard, command, self.client.caller, reply_at);
                }
            }
            Plan::Several(_) if self.gather.is_open() => return Some(Stop::Barrier),
            Plan::Several(set) => {
                if !self.read_several_in_place(round, &set, row, args) {
                    return Some(Stop::Hold(row, set));
                }
            }
        }
        None
    }

    /// Puts the array form of an inline line in its place.
    #[cold]
    pub(super) fn unfold_inline(&mut self, line: Span, end: usize) -> Result<(), Violation> {
        let words = inline::split_words(line.of(&self.input)).ok_or(Violation::Quotes)?;
        let array = if words.is_empty() { Vec::new() } else { inline::as_array(&words) };
        self.input.splice(line.at as usize..end, array);
        Ok(())
    }
}

/// The row that shall run: the subcommand's where there is one; arity checked, the cursor behind the name.
#[cold]
pub(super) fn resolve(row: Option<RowRef>, args: &mut Args<'_>) -> Result<RowRef, Error> {
    let Some(mut row) = row else {
        return Err(unknown_command(args.get(0), args.rest()));
    };
    if !row.spec.subs.is_empty() && args.count() > 1 {
        row = sub_row(row, args)?;
    }
    if !row.spec.accepts(args.count()) {
        return Err(Error::Arity(row.spec.name));
    }
    Ok(row)
}

#[cold]
fn sub_row(row: RowRef, args: &mut Args<'_>) -> Result<RowRef, Error> {
    let sub = args.get(1);
    args.seek(2);
    table().find_sub(row, sub).ok_or_else(|| unknown_subcommand(sub, &row.spec.name.to_ascii_uppercase()))
}
