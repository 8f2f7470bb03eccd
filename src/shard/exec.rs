//! The one door: only this file calls handlers. It times them, counts them and writes their refusals.
use std::cell::Cell as StdCell;

use smallvec::SmallVec;

use super::local::Local;
use super::watch::Origin;
use crate::cmd::cx::{
    Caller, Client, ConnCx, Held, Met, Parts, ReadCx, ReadStores, Recording, Wait, WholeCx, Wish, WriteCx,
    WriteStores,
};
use crate::cmd::spec::{Done, Handler, flag};
use crate::cmd::table::RowRef;
use crate::host::journal::Piece;
use crate::host::{Counters, Host};
use crate::rt::meet::meet;
use crate::rt::sys::cycles;
use crate::store::log::encode;
use crate::store::news::listen;
use crate::store::{Now, PARTS_STEP, Store};
use crate::types::hash;
use crate::wire::{Args, Error, Key, Out};

/// The door, as the executing shard has it.
pub struct Door<'a> {
    /// The executing shard's thread.
    pub local: &'a Local,
    /// The process.
    pub host: &'a Host,
    /// Counters of the executing shard.
    pub counters: &'a Counters,
    /// The time of this turn.
    pub now: Now,
    /// When the last command of this turn ended, or the turn began.
    pub clock: StdCell<u64>,
}

impl<'a> Door<'a> {
    /// A door for one turn.
    #[inline]
    pub fn new(local: &'a Local, now: Now) -> Door<'a> {
        Door {
            local,
            host: &local.shared.host,
            counters: &local.counters,
            now,
            clock: StdCell::new(cycles()),
        }
    }

    /// A handler has run, and its command does not wait: counts the call, writes its refusal, looks at how long it took.
    /// What it wrote begins at `before`.
    #[inline(always)]
    fn finish(
        &self,
        row: RowRef,
        done: Done,
        before: usize,
        caller: &Caller,
        args: &Args<'_>,
        out: &mut Out,
    ) {
        // Commands of a turn follow each other, so one look at the counter serves as the end of this one and the
        // start of the next.
        let end = cycles();
        self.finish_after(end.wrapping_sub(self.clock.replace(end)), row, done, before, caller, args, out);
    }

    /// [`Door::finish`] of a command that took so many cycles.
    #[inline(always)]
    #[allow(clippy::too_many_arguments)]
    fn finish_after(
        &self,
        cycles: u64,
        row: RowRef,
        done: Done,
        before: usize,
        caller: &Caller,
        args: &Args<'_>,
        out: &mut Out,
    ) {
        let counters = &self.counters.commands[row.id as usize];
        counters.add_call(cycles, self.local.watch.tracks.get());
        if let Err(error) = done {
            counters.failed.add(1);
            out.buf.truncate(before);
            self.refuse(&error, out);
        }
        if self.is_slow(cycles) {
            self.note_slow(row, caller, args, cycles);
        }
    }

    /// Writes an error reply and counts it.
    #[cold]
    pub fn refuse(&self, error: &Error, out: &mut Out) {
        self.counters.count_error(error.code());
        out.error(error);
    }

    /// A command that waited ends without having been served: it counts as a call all the same, which has `failed` when
    /// somebody ended it with an error.
    #[cold]
    pub fn count_unserved(&self, row: RowRef, caller: &Caller, args: &Args<'_>, failed: bool) {
        if failed {
            self.counters.commands[row.id as usize].failed.add(1);
        }
        self.finish_after(0, row, Ok(()), 0, caller, args, &mut Out::default());
    }

    /// Writes an error reply of a command that never ran.
    #[cold]
    pub fn reject(&self, row: RowRef, error: &Error, out: &mut Out) {
        self.counters.commands[row.id as usize].rejected.add(1);
        self.refuse(error, out);
    }

    /// Runs a reading command; returns what it met whose time has come, and whether it waits.
    #[inline(always)]
    pub fn read(
        &self,
        row: RowRef,
        stores: ReadStores<'_>,
        caller: &Caller,
        args: &mut Args<'_>,
        out: &mut Out,
    ) -> (Met, Option<Box<Wait>>) {
        let Handler::Read(handler) = row.spec.handler else { unreachable!("the caller matched the row") };
        meet();
        let (host, counters) = (self.host, self.counters);
        let now = self.now.with_no_touch(caller.no_touch);
        let (met, wait) = (StdCell::default(), StdCell::default());
        let cx = ReadCx { stores, caller, host, counters, now, met, wait };
        let before = out.buf.len();
        let done = handler(&cx, args, out);
        let wait = cx.wait.take();
        if wait.is_none() {
            self.finish(row, done, before, caller, args, out);
        }
        (cx.met.get(), wait)
    }

    /// Runs a writing command; returns whether it waits.
    #[inline(always)]
    pub fn write<'x>(
        &'x self,
        row: RowRef,
        stores: WriteStores<'x>,
        caller: &'x Caller,
        args: &mut Args<'_>,
        out: &mut Out,
    ) -> Option<Box<Wait>> {
        let is_logged = stores.is_logged();
        let mut cx =
            WriteCx::new(stores, caller, self.host, self.counters, self.now, row.spec.event.as_slice());
        if is_logged {
            self.write_logged(row, &mut cx, args, out)
        } else {
            self.write_in(row, &mut cx, args, out)
        }
        cx.wait
    }

    #[inline(always)]
    fn write_in(&self, row: RowRef, cx: &mut WriteCx<'_>, args: &mut Args<'_>, out: &mut Out) {
        let Handler::Write(handler) = row.spec.handler else { unreachable!("the caller matched the row") };
        meet();
        let before = out.buf.len();
        let done = handler(cx, args, out);
        if cx.wait.is_none() {
            self.finish(row, done, before, cx.caller, args, out);
        }
    }

    /// [`Door::write_in`], and the log gets what the command changed: its own words, unless the handler had others.
    #[inline(never)]
    fn write_logged(&self, row: RowRef, cx: &mut WriteCx<'_>, args: &mut Args<'_>, out: &mut Out) {
        let before = cx.changes();
        cx.record = Recording::Words;
        self.write_in(row, cx, args, out);
        if cx.record == Recording::Words
            && row.spec.flags & (flag::WRITE | flag::MAY_REPLICATE) != 0
            && cx.changes() != before
        {
            let (buf, spans) = args.parts();
            cx.record_words(spans.iter().map(|span| span.of(buf)));
        }
    }

    /// Runs a command about the connection or the process.
    pub fn conn(&self, row: RowRef, client: &mut Client, args: &mut Args<'_>, out: &mut Out) {
        let Handler::Conn(handler) = row.spec.handler else { unreachable!("the caller matched the row") };
        let mut cx = ConnCx { client, host: self.host, counters: self.counters, now: self.now };
        let before = out.buf.len();
        let done = handler(&mut cx, args, out);
        if let Wish::SleepMs(ms) = client.wish {
            // The sleep is still to come, and is its time all the same.
            let cycles = (ms as f64 * 1000.0 * self.host.cycles_per_us()) as u64;
            self.clock.set(self.clock.get().wrapping_sub(cycles));
        }
        if done.is_ok() && row.spec.flags & flag::WRITE != 0 {
            self.log_apart(args);
        }
        // What changed the settings is judged by the new ones.
        self.local.watch.heed_settings(self.host);
        self.finish(row, done, before, &client.caller, args, out);
        if !client.mail.is_empty() {
            self.local.send_mail(&mut client.mail);
        }
    }

    /// What is no shard's was changed: the log gets the words at once.
    #[cold]
    fn log_apart(&self, args: &Args<'_>) {
        let journal = &self.host.journal;
        if journal.is_on() {
            let (mut out, (buf, spans)) = (Out::default(), args.parts());
            encode(&mut out, spans.iter().map(|span| span.of(buf)));
            journal.write(&[Piece { first_db: None, last_db: None, bytes: &out.buf }]);
        }
    }

    /// Runs a reading or writing command whose keys all lie in `store`, and tells what is new.
    #[inline(always)]
    pub fn on_one(
        &self,
        row: RowRef,
        store: &mut Store,
        caller: &Caller,
        args: &mut Args<'_>,
        out: &mut Out,
    ) -> Option<Box<Wait>> {
        let wait = self.part_on_one(row, store, caller, args, out);
        self.spread_one(store);
        wait
    }

    /// [`Door::on_one`] as a part of a whole, which tells what is new at its end.
    #[inline(always)]
    pub fn part_on_one(
        &self,
        row: RowRef,
        store: &mut Store,
        caller: &Caller,
        args: &mut Args<'_>,
        out: &mut Out,
    ) -> Option<Box<Wait>> {
        let wait = if matches!(row.spec.handler, Handler::Write(_)) {
            self.write(row, WriteStores::One(store), caller, args, out)
        } else {
            let (met, wait) = self.read(row, ReadStores::One(store), caller, args, out);
            if met != Met::Nothing {
                self.see_to_all(row, WriteStores::One(store), caller, args, met);
            }
            wait
        };
        if caller.tracks {
            self.track(row, WriteStores::One(store), caller, args);
        }
        wait
    }

    /// Runs a reading or writing command on the stores it holds, as a part of a whole, which tells what is new at
    /// its end.
    pub fn part_on_many(
        &self,
        row: RowRef,
        held: &mut dyn Held,
        caller: &Caller,
        args: &mut Args<'_>,
        out: &mut Out,
    ) -> Option<Box<Wait>> {
        let wait = if matches!(row.spec.handler, Handler::Write(_)) {
            self.write(row, WriteStores::Many(held), caller, args, out)
        } else {
            let shared: SmallVec<[Option<&Store>; 8]> =
                (0..held.shards()).map(|shard| held.get(shard)).collect();
            let (met, wait) = self.read(row, ReadStores::Many(&shared), caller, args, out);
            drop(shared);
            if met != Met::Nothing {
                self.see_to_all(row, WriteStores::Many(held), caller, args, met);
            }
            wait
        };
        if caller.tracks {
            self.track(row, WriteStores::Many(held), caller, args);
        }
        wait
    }

    /// [`Door::part_on_many`] as a whole.
    pub fn on_many(
        &self,
        row: RowRef,
        held: &mut dyn Held,
        caller: &Caller,
        args: &mut Args<'_>,
        out: &mut Out,
    ) -> Option<Box<Wait>> {
        let wait = self.part_on_many(row, held, caller, args, out);
        self.spread(WriteStores::Many(held));
        wait
    }

    /// Runs a reading or writing command as a part of a whole.
    pub fn part(
        &self,
        row: RowRef,
        stores: WriteStores<'_>,
        caller: &Caller,
        args: &mut Args<'_>,
        out: &mut Out,
    ) -> Option<Box<Wait>> {
        match stores {
            WriteStores::One(store) => self.part_on_one(row, store, caller, args, out),
            WriteStores::Many(held) => self.part_on_many(row, held, caller, args, out),
        }
    }

    /// Sees to what a read met. While clients are paused nothing is deleted; it is absent all the same.
    #[cold]
    fn see_to_all(
        &self,
        row: RowRef,
        mut stores: WriteStores<'_>,
        caller: &Caller,
        args: &Args<'_>,
        mut met: Met,
    ) {
        stores.for_each(|store| store.actor = caller.client_id);
        if self.host.is_paused(self.now.ms) {
            met = if met == Met::Walked { Met::Nothing } else { Met::Missing };
        }
        match met {
            Met::Nothing => {}
            Met::Walked => stores.for_each(|store| store.expire_walked(caller.db)),
            _ => for_keys(row, args, |at, key| see_to(stores.of(key.hash), caller.db, key, met, args, at)),
        }
    }

    /// Runs a command that needs the connection and data at once, and tells what is new.
    pub fn whole(
        &self,
        row: RowRef,
        client: &mut Client,
        mut stores: WriteStores<'_>,
        args: &mut Args<'_>,
        out: &mut Out,
    ) {
        self.part_whole(row, client, stores.reborrow(), args, out);
        self.spread(stores);
    }

    fn part_whole(
        &self,
        row: RowRef,
        client: &mut Client,
        mut stores: WriteStores<'_>,
        args: &mut Args<'_>,
        out: &mut Out,
    ) {
        let Handler::Whole(handler) = row.spec.handler else { unreachable!("the caller matched the row") };
        let (host, now) = (self.host, self.now);
        let (before, start) = (out.buf.len(), self.clock.get());
        if row.spec.flags & flag::SKIP_MONITOR != 0 && self.is_monitored() {
            // A script, which is shown before what it calls.
            self.show_monitors(Origin::Client(&client.info), client.caller.db, &row.spec.shown(args));
        }
        let mut cx = WholeCx { client, stores: stores.reborrow(), host, now, parts: self };
        let done = handler(&mut cx, args, out);
        // Its time is that of its parts, too.
        self.clock.set(start);
        self.finish(row, done, before, &client.caller, args, out);
    }
}

impl Parts for Door<'_> {
    fn refuse(&self, error: &Error, out: &mut Out) {
        Door::refuse(self, error, out);
    }

    fn count_error(&self, code: &str) {
        self.counters.count_error(code.to_string());
    }

    fn clock(&self) -> u64 {
        self.clock.get()
    }

    fn run_for_script(
        &self,
        row: RowRef,
        caller: &Caller,
        stores: WriteStores<'_>,
        args: &mut Args<'_>,
        out: &mut Out,
    ) {
        let wait = self.part(row, stores, caller, args, out);
        debug_assert!(wait.is_none(), "a part of a whole does not wait");
        self.feed_monitors(row.spec, Origin::Script, caller.db, args);
    }

    fn run(
        &self,
        row: RowRef,
        client: &mut Client,
        mut stores: WriteStores<'_>,
        args: &mut Args<'_>,
        out: &mut Out,
    ) {
        match row.spec.handler {
            Handler::Conn(_) => {
                self.conn(row, client, args, out);
                out.protocol = client.caller.protocol;
                stores.for_each(|store| self.local.heed_settings(store));
            }
            Handler::Whole(_) => self.part_whole(row, client, stores, args, out),
            _ => {
                let wait = self.part(row, stores, &client.caller, args, out);
                debug_assert!(wait.is_none(), "a part of a whole does not wait");
            }
        }
        let origin = if client.caller.is_script { Origin::Script } else { Origin::Client(&client.info) };
        self.feed_monitors(row.spec, origin, client.caller.db, args);
    }
}

/// Hands the keys of a command to `f`, with the indexes of their arguments.
#[cold]
pub(super) fn for_keys(row: RowRef, args: &Args<'_>, mut f: impl FnMut(usize, Key<'_>)) {
    row.spec.for_each_key(args.count(), |at| args.get(at), |index| f(index, Key::new(args.get(index))));
}

/// Deletes what a read met of a key whose time has come, as Redis deletes it, and notes a key that is not there. `at` is
/// the key's argument.
fn see_to(store: &mut Store, db: u32, key: Key<'_>, met: Met, args: &Args<'_>, at: usize) {
    if met == Met::Key {
        store.clear_due(db, key);
    }
    // A key that goes with its last part was there.
    if store.listens & listen::MISSES != 0 {
        store.note_miss(db, key);
    }
    match met {
        Met::Nothing | Met::Missing | Met::Walked | Met::Key => {}
        Met::NamedParts => hash::clear_due(store, db, key, (at + 1..args.count()).map(|at| args.get(at))),
        Met::Parts => {
            store.expire_parts(db, key, PARTS_STEP);
        }
    }
}
