//! What belongs to one shard's thread: its ends of the mesh, the connections that wait, and the pump that moves
//! messages. Lives on its thread only.
//!
//! Must stay true: commands of other shards run in the order of arrival; a message for a connection that is gone
//! harms nobody; before the thread sleeps it has looked for work after saying so.
use std::cell::{Cell as StdCell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Waker;

use super::Shared;
use super::cell::{Holder, Owner};
use super::exec::Door;
pub use super::mailbox::{Event, Mailbox};
use super::mesh::Mesh;
use super::msg::{Control, Group, Message, Token};
use super::watch::Watch;
use crate::cmd::table::table;
use crate::host::Counters;
use crate::host::mail::{Address, Letter, Mail};
use crate::store::{Now, Store, Uses};
use crate::wire::Key;

struct Seat {
    generation: u32,
    mailbox: Option<Rc<Mailbox>>,
}

/// The thread's part of a shard.
pub struct Local {
    /// Which shard.
    pub id: usize,
    /// What all shards share.
    pub shared: Arc<Shared>,
    /// This shard's counters.
    pub counters: Arc<Counters>,
    /// What of the settings every command needs.
    pub watch: Watch,
    mesh: Mesh,
    seats: RefCell<Vec<Seat>>,
    free_seats: RefCell<Vec<u32>>,
    /// Connections that wait for this shard's data to be free.
    ringing: RefCell<Vec<Token>>,
    /// Connections that wait for a pause to end. A list of their own: ringing them is the tick's, not the pump's, or
    /// the two would wake each other without end.
    paused: RefCell<Vec<Token>>,
    /// Holds of this shard's data that were asked for.
    wanted: RefCell<VecDeque<(usize, Token)>>,
    /// Keys at which those who wait shall be looked at again.
    looks: RefCell<VecDeque<(u32, Box<[u8]>)>>,
    /// Groups of other shards that wait for the data.
    backlog: RefCell<VecDeque<Box<Group>>>,
    /// Messages that wait until the log has what they are about.
    pub(super) kept: RefCell<VecDeque<(usize, Message)>>,
    /// Groups to use again. Boxed, because they travel boxed.
    #[allow(clippy::vec_box)]
    pool: RefCell<Vec<Box<Group>>>,
    controls: flume::Receiver<Control>,
    /// Rare messages that were taken in ahead of the pump, and are for it.
    kept_controls: RefCell<VecDeque<Control>>,
    /// Wakes the pump.
    pump: RefCell<Option<Waker>>,
    pump_awake: StdCell<bool>,
    turn: StdCell<usize>,
    /// A command that holds this thread's data was set aside. (With one shard the latch does not say so.)
    is_aside: StdCell<bool>,
    /// Replies on their way to sockets.
    writing: StdCell<usize>,
}

/// A write of replies that is under way.
pub struct Writing<'a>(&'a Local);

impl Drop for Writing<'_> {
    #[inline]
    fn drop(&mut self) {
        self.0.writing.set(self.0.writing.get() - 1);
    }
}

/// Groups kept for use again, and the largest buffer they may keep.
const POOL_GROUPS_MAX: usize = 64;
const POOL_BYTES_MAX: usize = 64 * 1024;

impl Local {
    /// The thread's part of shard `id`.
    pub fn new(id: usize, shared: Arc<Shared>, controls: flume::Receiver<Control>) -> Local {
        Local {
            id,
            counters: shared.host.counters[id].clone(),
            watch: Watch::new(),
            mesh: Mesh::new(shared.shards()),
            shared,
            seats: RefCell::default(),
            free_seats: RefCell::default(),
            ringing: RefCell::default(),
            paused: RefCell::default(),
            wanted: RefCell::default(),
            looks: RefCell::default(),
            backlog: RefCell::default(),
            kept: RefCell::default(),
            pool: RefCell::default(),
            controls,
            kept_controls: RefCell::default(),
            pump: RefCell::default(),
            pump_awake: StdCell::new(false),
            turn: StdCell::new(0),
            is_aside: StdCell::new(false),
            writing: StdCell::new(0),
        }
    }

    /// The door to handlers at the time `now`.
    #[inline]
    pub fn door(&self, now: Now) -> Door<'_> {
        Door::new(self, now)
    }

    /// Notes that a command that has this thread's data was set aside, or is done.
    pub fn set_aside(&self, is_aside: bool) {
        if self.is_aside.replace(is_aside) == is_aside {
            return;
        }
        // The only shard was not held, but entered: nobody may hold it now.
        let alone = self.shared.shards() == 1;
        if is_aside {
            let holder = if alone { self.shared.cells[self.id].hold() } else { None };
            holder.into_iter().for_each(Holder::pass_on);
        } else {
            drop(alone.then(|| self.shared.cells[self.id].adopt()));
            self.wake_pump();
        }
    }

    /// The door to handlers at this moment, for what needs no data.
    pub fn door_now(&self) -> Door<'_> {
        self.door(Now::read(Uses::default()))
    }

    /// Goes in to this shard's data, with the clock read and the settings in force.
    #[inline]
    pub fn enter(&self) -> Option<Owner<'_, Store>> {
        if self.is_aside.get() {
            return None;
        }
        let mut store = self.shared.cells[self.id].enter()?;
        store.now.advance();
        self.heed_settings(&mut store);
        Some(store)
    }

    /// Goes in to the data of the only shard, on a fiber of the turn that was in just now; the time stays.
    ///
    /// # Panics
    /// When there are more shards: somebody else may be in.
    pub fn enter_again(&self) -> Owner<'_, Store> {
        assert_eq!(self.shared.shards(), 1, "others may be in");
        self.shared.cells[self.id].enter().expect("nobody holds the only shard")
    }

    /// Makes a store follow the settings in force: whoever gets at a store does this first, and again behind a command
    /// that may have changed settings.
    #[inline]
    pub fn heed_settings(&self, store: &mut Store) {
        self.watch.heed_settings(&self.shared.host);
        if store.settings_version != self.shared.host.settings_version() {
            store.refresh_settings(&self.shared.host);
            self.shared.set_in_place(&store.settings);
            self.door(store.now).limit_tracked(store);
        }
    }

    /// Notes that a write of replies began; it ends with what this returns.
    #[inline]
    pub fn writing(&self) -> Writing<'_> {
        self.writing.set(self.writing.get() + 1);
        Writing(self)
    }

    /// Whether replies are on their way to sockets.
    pub fn is_writing(&self) -> bool {
        self.writing.get() > 0
    }

    /// Whether reads of other shards' keys may be served in place.
    #[inline]
    pub fn in_place(&self) -> bool {
        self.shared.in_place.load(std::sync::atomic::Ordering::Relaxed)
    }

    /// A seat for a connection.
    pub fn sit(&self) -> (Token, Rc<Mailbox>) {
        let mailbox = Rc::new(Mailbox::default());
        let mut seats = self.seats.borrow_mut();
        let slot = self.free_seats.borrow_mut().pop().unwrap_or_else(|| {
            seats.push(Seat { generation: 0, mailbox: None });
            seats.len() as u32 - 1
        });
        let seat = &mut seats[slot as usize];
        seat.mailbox = Some(mailbox.clone());
        (Token { slot, generation: seat.generation }, mailbox)
    }

    /// Gives a seat back; what still comes for it is let go.
    pub fn stand_up(&self, token: Token) {
        let mut seats = self.seats.borrow_mut();
        let seat = &mut seats[token.slot as usize];
        seat.generation = seat.generation.wrapping_add(1);
        seat.mailbox = None;
        self.free_seats.borrow_mut().push(token.slot);
    }

    fn mailbox(&self, token: Token) -> Option<Rc<Mailbox>> {
        let seats = self.seats.borrow();
        let seat = seats.get(token.slot as usize)?;
        if seat.generation == token.generation { seat.mailbox.clone() } else { None }
    }

    fn deliver(&self, token: Token, event: Event) {
        if let Some(mailbox) = self.mailbox(token) {
            return mailbox.put(event);
        }
        match event {
            Event::Granted(shard) => drop(self.shared.cells[shard].adopt()),
            Event::Done(group) => self.recycle(group),
            Event::Rung | Event::Letter(_) => {}
        }
    }

    /// Has those who wait at a key looked at again, by the shard that has it.
    pub fn look(&self, shard: usize, db: u32, key: &[u8]) {
        if shard == self.id {
            self.looks.borrow_mut().push_back((db, key.into()));
            return self.wake_pump();
        }
        self.mesh.send(&self.shared, self.id, shard, Message::Look { db, key: key.into() });
    }

    /// Sends a letter.
    pub fn send_letter(&self, Address { shard, token }: Address, letter: Letter) {
        let to = usize::from(shard);
        if to == self.id {
            self.hand_out(token, letter);
        } else {
            self.send_news(to, Message::Letter { token, letter });
        }
    }

    pub(super) fn send(&self, to: usize, message: Message) {
        self.mesh.send(&self.shared, self.id, to, message);
        if self.mesh.has_waiting() {
            // Chores send letters, too: nobody else would come back for what found its ring full.
            self.begin_turn();
        }
    }

    fn hand_out(&self, token: Token, letter: Letter) {
        let Letter::Published(message) = letter else { return self.deliver(token, Event::Letter(letter)) };
        let seats = self.seats.borrow();
        self.shared.host.hub.for_each_receiver(&message, self.id, |token| {
            let seat = seats.get(token.slot as usize).filter(|seat| seat.generation == token.generation);
            if let Some(mailbox) = seat.and_then(|seat| seat.mailbox.as_ref()) {
                mailbox.put_push(message.push());
            }
        });
    }

    /// Takes in what other shards have sent, ahead of the pump: whoever listens hears what happened before the command
    /// that it sent.
    pub fn take_arrivals(&self) {
        // The first messages of a shard come over a ring that is new.
        while let Ok(control) = self.controls.try_recv() {
            match control {
                Control::Ring(receiver) => self.mesh.add(receiver),
                other => self.kept_controls.borrow_mut().push_back(other),
            }
        }
        if self.mesh.has_arrivals() {
            self.mesh.receive(self.turn.get(), |message| self.receive(message));
        }
    }

    /// Sends letters.
    #[cold]
    pub fn send_mail(&self, mail: &mut Mail) {
        for (address, letter) in mail.drain(..) {
            self.send_letter(address, letter);
        }
    }

    /// The connection is rung when the shard's data is free.
    pub fn ring_when_free(&self, token: Token) {
        self.ringing.borrow_mut().push(token);
        self.wake_pump();
    }

    /// The connection is rung at the next tick.
    pub fn ring_at_tick(&self, token: Token) {
        self.paused.borrow_mut().push(token);
    }

    /// The connection with this mailbox is rung at the next tick, once however often this is asked.
    pub fn ring_once_at_tick(&self, token: Token, mailbox: &Mailbox) {
        if !mailbox.expect_ring() {
            self.ring_at_tick(token);
        }
    }

    /// Rings everybody who waits to try again, for a pause to end too.
    pub fn tick(&self) {
        self.ring(&self.paused);
        self.ring(&self.ringing);
    }

    fn ring(&self, tokens: &RefCell<Vec<Token>>) {
        for token in tokens.take() {
            self.deliver(token, Event::Rung);
        }
    }

    /// An empty group.
    pub fn group(&self, token: Token) -> Box<Group> {
        let mut group = self.pool.borrow_mut().pop().unwrap_or_default();
        group.token = token;
        group.from = self.id;
        group
    }

    /// Keeps a group for use again.
    pub fn recycle(&self, mut group: Box<Group>) {
        let mut pool = self.pool.borrow_mut();
        if pool.len() < POOL_GROUPS_MAX && group.capacity() <= POOL_BYTES_MAX {
            group.clear();
            pool.push(group);
        }
    }

    /// Sends a group to the shard that owns its keys.
    pub fn post(&self, to: usize, mut group: Box<Group>) {
        group.to = to;
        self.counters.mesh_commands.add(group.queued.commands.len() as u64);
        self.mesh.send(&self.shared, self.id, to, Message::Work(group));
    }

    /// Asks the owner of `shard` for a hold.
    pub fn want_hold(&self, shard: usize, token: Token) {
        self.counters.hold_waits.add(1);
        if shard == self.id {
            self.wanted.borrow_mut().push_back((self.id, token));
            return self.wake_pump();
        }
        self.mesh.send(&self.shared, self.id, shard, Message::WantHold { from: self.id, token });
    }

    /// Sets what wakes the pump.
    pub fn set_pump(&self, waker: &Waker) {
        *self.pump.borrow_mut() = Some(waker.clone());
    }

    fn wake_pump(&self) {
        if let Some(waker) = self.pump.borrow().as_ref() {
            waker.wake_by_ref();
        }
    }

    /// A connection's turn begins: others need not ring while this thread is awake, so the pump shall look for
    /// messages before the thread sleeps.
    #[inline]
    pub fn begin_turn(&self) {
        if self.shared.shards() > 1 && !self.pump_awake.get() {
            self.pump_awake.set(true);
            self.shared.bells[self.id].wake_up();
            self.wake_pump();
        }
    }

    /// Moves messages until nothing is left, then says that the thread goes to sleep. Connections and the stop of
    /// the server are handed to `f`. When rings are full, their receivers must run first: until then the thread stays
    /// awake, but its connections have turns, too.
    pub fn pump(&self, mut f: impl FnMut(Control)) {
        let bell = &self.shared.bells[self.id];
        bell.wake_up();
        loop {
            let mut busy = self.pump_once(&mut f);
            if !busy {
                if self.mesh.has_waiting() {
                    return self.wake_pump();
                }
                self.pump_awake.set(false);
                bell.fall_asleep();
                busy = self.mesh.has_arrivals() || !self.controls.is_empty() || self.is_free_after_all();
                if !busy {
                    return;
                }
                bell.wake_up();
            }
        }
    }

    fn next_control(&self) -> Option<Control> {
        let kept = self.kept_controls.borrow_mut().pop_front();
        kept.or_else(|| self.controls.try_recv().ok())
    }

    /// Whether work waits for the data to be free, and it is by now: a guest that left since we looked found us awake
    /// and rang nobody. Else the guest that leaves will ring.
    fn is_free_after_all(&self) -> bool {
        let waits = self.waits_for_data() || !self.wanted.borrow().is_empty();
        waits && !self.is_aside.get() && self.shared.cells[self.id].wait()
    }

    /// Whether there is work that needs the data.
    fn waits_for_data(&self) -> bool {
        !self.backlog.borrow().is_empty()
            || !self.ringing.borrow().is_empty()
            || !self.looks.borrow().is_empty()
            || self.keeps_news()
    }

    fn pump_once(&self, f: &mut impl FnMut(Control)) -> bool {
        let mut busy = false;
        while let Some(control) = self.next_control() {
            busy = true;
            match control {
                Control::Ring(receiver) => self.mesh.add(receiver),
                other => f(other),
            }
        }
        let turn = self.turn.get();
        self.turn.set(turn.wrapping_add(1));
        busy |= self.mesh.receive(turn, |message| self.receive(message));
        self.work();
        self.grant();
        busy |= self.mesh.send_waiting(&self.shared);
        busy
    }

    fn receive(&self, message: Message) {
        match message {
            Message::Work(group) => self.backlog.borrow_mut().push_back(group),
            Message::Done(group) => self.deliver(group.token, Event::Done(group)),
            Message::WantHold { from, token } => self.wanted.borrow_mut().push_back((from, token)),
            Message::Granted { shard, token } => self.deliver(token, Event::Granted(shard)),
            Message::Look { db, key } => self.looks.borrow_mut().push_back((db, key)),
            Message::Letter { token, letter } => self.hand_out(token, letter),
        }
    }

    /// Runs the groups that other shards sent, and rings who waits for the data. Rung again by the latch when
    /// somebody holds it.
    fn work(&self) {
        self.send_what_is_logged();
        if !self.waits_for_data() {
            return;
        }
        let Some(mut store) = self.enter().or_else(|| self.enter_after_wait()) else { return };
        loop {
            let Some(mut group) = self.backlog.borrow_mut().pop_front() else { break };
            self.run_group(&mut store, &mut group);
            self.send_news(group.from, Message::Done(group));
        }
        for (db, key) in self.looks.take() {
            store.look_at(db, Key::new(&key));
        }
        self.door(store.now).spread_one(&mut store);
        if self.keeps_news() {
            // One write for all that came.
            self.write_log_of(&mut store);
        }
        drop(store);
        self.ring(&self.ringing);
    }

    fn enter_after_wait(&self) -> Option<Owner<'_, Store>> {
        if self.shared.cells[self.id].wait() { self.enter() } else { None }
    }

    fn run_group(&self, store: &mut Store, group: &mut Group) {
        let door = self.door(store.now);
        let mut out = std::mem::take(&mut group.out);
        for index in 0..group.queued.commands.len() {
            let posted = group.queued.commands[index];
            out.protocol = posted.caller.protocol;
            let row = table().row(posted.row);
            let wait = door.on_one(row, store, &posted.caller, &mut group.queued.args(posted), &mut out);
            debug_assert!(wait.is_none(), "what may wait is not posted");
            group.ends.push(out.buf.len() as u32);
        }
        group.out = out;
    }

    /// Grants holds of this shard's data, first come first served.
    fn grant(&self) {
        loop {
            let Some((from, token)) = self.wanted.borrow().front().copied() else { return };
            let cell = &self.shared.cells[self.id];
            let Some(holder) = cell.hold().or_else(|| if cell.wait() { cell.hold() } else { None }) else {
                return;
            };
            self.wanted.borrow_mut().pop_front();
            holder.pass_on();
            if from == self.id {
                self.deliver(token, Event::Granted(self.id));
            } else {
                self.mesh.send(&self.shared, self.id, from, Message::Granted { shard: self.id, token });
            }
        }
    }
}
