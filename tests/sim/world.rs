//! The scheduler: threads of shards as fibers, their tasks, the clock and all that goes wrong, in an order that a seed
//! chooses.
//!
//! A step gives one shard's thread a turn: it goes on where it was set aside, or begins a task that something woke. While
//! a thread runs, the server's code comes by places where threads meet (`rt::meet`); there the seed may set it aside, and
//! others run meanwhile. Nothing runs that was not woken, so when nothing is left to run, everything must be done.
use std::cell::RefCell;
use std::rc::Rc;

use perigee::base::{clock, hash::KeyHash, rng as server_rng};
use perigee::conn::session::Turn;
use perigee::rt::meet::on_meet;
use perigee::rt::sys::fiber::{Fiber, set_aside};
use perigee::server::simulation::{self, Connection, Shard};
use perigee::wire::Key;

use crate::client::{Checked, Client, Program, say};
use crate::rng::Rng;
use crate::show;

/// Steps after which a seed counts as one that never ends.
const STEPS_MAX: u64 = 60_000;
const START_MS: u64 = 1_700_000_000_000;
const TICK_MS: u64 = 100;

thread_local! {
    /// Who decides at meeting places, and how often of 256 times a thread is set aside there.
    static MEETINGS: RefCell<(Rng, usize)> = RefCell::new((Rng::new(0), 0));
}

fn at_meeting() {
    let leaves = MEETINGS.with_borrow_mut(|(rng, in_256)| *in_256 > 0 && rng.below(256) < *in_256);
    if leaves {
        set_aside();
    }
}

/// How a seed's world is.
#[derive(Debug)]
pub struct Style {
    /// Number of shards.
    pub shards: usize,
    /// Messages that a ring takes.
    pub ring_messages: usize,
    /// How often of 256 times a thread is set aside where it may meet others.
    switch_in_256: usize,
    /// Once in so many steps a thread stalls.
    stall_one_in: usize,
    /// Once in so many steps the clock moves.
    clock_one_in: usize,
    /// Once in so many steps a client goes.
    death_one_in: usize,
    /// Requests arrive in small parts.
    is_choppy: bool,
}

impl Style {
    fn of(rng: &mut Rng) -> Style {
        Style {
            shards: *rng.pick(&[1, 2, 2, 3, 3, 4, 4]),
            ring_messages: *rng.pick(&[1, 2, 4, 256]),
            switch_in_256: *rng.pick(&[0, 6, 30, 100, 200]),
            stall_one_in: *rng.pick(&[20, 100, 1000]),
            clock_one_in: *rng.pick(&[20, 100, 1000]),
            death_one_in: *rng.pick(&[40, 150, 1000, usize::MAX]),
            is_choppy: rng.one_in(3),
        }
    }
}

/// A shard's thread.
struct Thread {
    shard: Rc<Shard>,
    /// What it is in the middle of.
    running: Option<(Fiber<()>, Option<usize>)>,
    stalled_until: u64,
    tick_at_ms: u64,
}

/// What may happen next on a thread.
#[derive(Clone, Copy, Debug)]
enum Choice {
    GoOn,
    Pump,
    Tick,
    /// A client's task runs, because it was woken.
    Run(usize),
    /// Bytes of a client arrive.
    Feed(usize),
    /// A client's program goes on.
    Ask(usize),
}

/// A server, its clients, and the seed's dice.
pub struct World {
    /// The dice.
    pub rng: Rng,
    /// How it is.
    pub style: Style,
    /// The clients, also those that are gone.
    pub clients: Vec<Client>,
    /// Steps so far.
    pub step: u64,
    /// The wall clock, milliseconds since the epoch.
    pub now_ms: u64,
    /// Lists that clients wait at.
    pub waited_keys: Vec<String>,
    /// What was chosen so far, as one number.
    pub trace: u64,
    threads: Vec<Thread>,
    /// Times that programs may still ask before everything must come to rest.
    asks_left: usize,
    has_asked: bool,
    choices: Vec<(usize, Choice)>,
}

impl World {
    /// The world of a seed.
    pub fn new(seed: u64) -> World {
        // Once for all seeds of the process: it says which keys lie on which shard.
        let _ = KeyHash::seed_for_measurement(11);
        let mut rng = Rng::new(seed);
        server_rng::seed_thread(rng.bits());
        clock::freeze(START_MS);
        let style = Style::of(&mut rng);
        say(|| format!("{style:?}"));
        MEETINGS.set((Rng::new(rng.bits()), style.switch_in_256));
        on_meet(Some(at_meeting));
        let thread =
            |shard| Thread { shard, running: None, stalled_until: 0, tick_at_ms: START_MS + TICK_MS };
        let threads = simulation::start(style.shards, style.ring_messages).into_iter().map(thread).collect();
        World {
            rng,
            style,
            clients: Vec::new(),
            step: 0,
            now_ms: START_MS,
            trace: seed,
            threads,
            asks_left: 0,
            has_asked: false,
            waited_keys: Vec::new(),
            choices: Vec::new(),
        }
    }

    /// Adds a client on a shard of the seed's choice.
    pub fn connect(&mut self, program: Box<dyn Program>) {
        let shard = self.rng.below(self.threads.len());
        let connection = self.threads[shard].shard.connect();
        self.clients.push(Client::new(connection, program));
    }

    /// The shards.
    pub fn shards(&self) -> impl Iterator<Item = &Rc<Shard>> {
        self.threads.iter().map(|thread| &thread.shard)
    }

    /// Runs until all programs are done and nothing is left to do.
    ///
    /// # Errors
    /// What was wrong.
    pub fn run(&mut self) -> Checked {
        loop {
            self.asks_left = 1 + self.rng.below(24);
            self.has_asked = false;
            while self.step()? {}
            self.check_quiet()?;
            if !self.has_asked && !self.advance_to_alarm() && !self.ask_all() {
                return Ok(());
            }
        }
    }

    /// Lets all programs ask. `false`: none asked anything.
    fn ask_all(&mut self) -> bool {
        let World { clients, rng, .. } = self;
        let may_ask = |client: &&mut Client| !client.is_done && !client.hangs_up;
        clients.iter_mut().filter(may_ask).fold(false, |any, client| client.ask(rng) || any)
    }

    /// One step. `false`: there is nothing to do.
    fn step(&mut self) -> Result<bool, String> {
        self.step += 1;
        if self.step > STEPS_MAX {
            return Err("it goes on for ever".into());
        }
        self.disturb();
        self.collect_choices(false);
        if self.choices.is_empty() {
            // All who could are stalled.
            self.collect_choices(true);
        }
        if self.choices.is_empty() {
            return Ok(false);
        }
        let thread = self.choices[self.rng.below(self.choices.len())].0;
        self.choices.retain(|(other, _)| *other == thread);
        let choice = self.choices[self.rng.below(self.choices.len())].1;
        let said = match choice {
            Choice::GoOn => (1, 0),
            Choice::Pump => (2, 0),
            Choice::Tick => (3, 0),
            Choice::Run(client) => (4, client),
            Choice::Feed(client) => (5, client),
            Choice::Ask(client) => (6, client),
        };
        let said = (said.0 << 32) | (said.1 << 8) | thread;
        self.trace = (self.trace ^ said as u64).wrapping_mul(0x0100_0000_01B3).rotate_left(9);
        say(|| format!("{}: shard {thread} {choice:?}", self.step));
        self.take(thread, choice)?;
        Ok(true)
    }

    /// What nobody asked for: time passes, threads stall, clients go.
    fn disturb(&mut self) {
        if self.rng.one_in(self.style.clock_one_in) {
            self.now_ms += 1 + self.rng.below(40) as u64;
            clock::freeze(self.now_ms);
        }
        if self.rng.one_in(self.style.stall_one_in) {
            let thread = self.rng.below(self.threads.len());
            let steps = 1 + self.rng.below(60) as u64;
            let is_inside = self.rng.one_in(2);
            let thread = &mut self.threads[thread];
            thread.stalled_until = self.step + steps;
            if is_inside && thread.running.is_none() {
                thread.running = Some((stay_inside(&thread.shard), None));
            }
        }
        if !self.clients.is_empty() && self.rng.one_in(self.style.death_one_in) {
            let (client, is_rude) = (self.any_client(), self.rng.one_in(2));
            self.let_go(client, is_rude);
        }
    }

    /// A client, more often one that waits in the middle of something.
    fn any_client(&mut self) -> usize {
        for _ in 0..4 {
            let index = self.rng.below(self.clients.len());
            let client = &self.clients[index];
            let is_busy = self.threads[client.shard].running.is_some() || client.is_gone;
            if !is_busy && matches!(client.connection.borrow().turn(), Turn::Wait | Turn::Blocked(_)) {
                return index;
            }
        }
        self.rng.below(self.clients.len())
    }

    /// A client goes: it says so behind its last request, or its connection breaks.
    fn let_go(&mut self, index: usize, is_rude: bool) {
        let client = &mut self.clients[index];
        if client.is_gone || client.hangs_up || !client.program.is_mortal() {
            return;
        }
        let thread = &mut self.threads[client.shard];
        if !is_rude {
            client.hangs_up = true;
        } else if thread.running.is_none() {
            let connection = client.connection.clone();
            thread.running = Some((Fiber::new(move || connection.borrow_mut().end()), Some(index)));
        }
    }

    fn collect_choices(&mut self, stalled_too: bool) {
        self.choices.clear();
        for (index, thread) in self.threads.iter().enumerate() {
            if !stalled_too && thread.stalled_until > self.step {
                continue;
            }
            if thread.running.is_some() {
                self.choices.push((index, Choice::GoOn));
                continue;
            }
            if thread.shard.is_pump_woken() {
                self.choices.push((index, Choice::Pump));
            }
            if thread.tick_at_ms <= self.now_ms {
                self.choices.push((index, Choice::Tick));
            }
        }
        for (index, client) in self.clients.iter().enumerate().filter(|(_, client)| !client.is_gone) {
            let thread = &self.threads[client.shard];
            if thread.running.is_some() || (!stalled_too && thread.stalled_until > self.step) {
                continue;
            }
            let connection = client.connection.borrow();
            if connection.is_woken() {
                self.choices.push((client.shard, Choice::Run(index)));
            }
            if connection.is_reading() && (client.has_unsent() || client.hangs_up) {
                self.choices.push((client.shard, Choice::Feed(index)));
            }
            if self.asks_left > 0 && !client.is_done && !client.hangs_up {
                self.choices.push((client.shard, Choice::Ask(index)));
            }
        }
    }

    fn take(&mut self, index: usize, choice: Choice) -> Checked {
        let thread = &mut self.threads[index];
        let shard = thread.shard.clone();
        let (mut fiber, client) = match choice {
            Choice::GoOn => thread.running.take().ok_or("nothing was running")?,
            Choice::Pump => (Fiber::new(move || shard.pump()), None),
            Choice::Tick => {
                thread.tick_at_ms = self.now_ms + TICK_MS;
                (Fiber::new(move || shard.tick()), None)
            }
            Choice::Run(client) => (self.run_client(client, None), Some(client)),
            Choice::Feed(client) => (self.feed(client), Some(client)),
            Choice::Ask(client) => {
                self.asks_left -= 1;
                self.has_asked |= self.clients[client].ask(&mut self.rng);
                return Ok(());
            }
        };
        if fiber.resume().is_none() {
            self.threads[index].running = Some((fiber, client));
        } else if let Some(client) = client {
            let looked = self.clients[client].look(self.step, self.now_ms);
            looked.map_err(|error| format!("client {client}, step {}: {error}", self.step))?;
        }
        Ok(())
    }

    fn run_client(&self, client: usize, arrived: Option<Vec<u8>>) -> Fiber<()> {
        let connection: Rc<RefCell<Connection>> = self.clients[client].connection.clone();
        Fiber::new(move || {
            let bytes = arrived.as_ref().map_or(0, Vec::len);
            let taken = connection.borrow_mut().run(arrived.as_deref());
            assert_eq!(taken, bytes, "a read takes what there is");
        })
    }

    /// Some of what a client sends arrives.
    fn feed(&mut self, index: usize) -> Fiber<()> {
        let client = &mut self.clients[index];
        // No more than what a read buffer has room for.
        let left = (client.bytes.len() - client.sent).min(400);
        let bytes = match left {
            0 => 0,
            _ if self.style.is_choppy => 1 + self.rng.below(left.min(40)),
            _ if self.rng.one_in(2) => left,
            _ => 1 + self.rng.below(left),
        };
        let arrived = client.bytes[client.sent..client.sent + bytes].to_vec();
        client.note_sent(bytes, self.step, self.now_ms);
        self.run_client(index, Some(arrived))
    }

    /// Checks how everything stands when nothing is left to run.
    fn check_quiet(&self) -> Checked {
        for (index, client) in self.clients.iter().enumerate() {
            client.check_quiet().map_err(|error| format!("client {index}: {error}"))?;
        }
        for shard in self.shards() {
            let id = shard.local.id;
            if self.style.shards > 1 && shard.shared().cells[id].hold().is_none() {
                return Err(format!("shard {id} is still held, and nobody does anything"));
            }
        }
        self.waited_keys.iter().try_for_each(|key| self.check_waiters(key))
    }

    /// Nobody waits at a key that has something.
    fn check_waiters(&self, key: &str) -> Checked {
        let key = Key::new(key.as_bytes());
        let shard = &self.threads[key.hash.shard(self.style.shards)].shard;
        let store = shard.local.enter().ok_or("the owner cannot enter")?;
        match (store.next_waiter(0, key, 0), store.kind(0, key)) {
            (Some((_, first)), Some(_)) => Err(format!(
                "client {}, {:?}, waits at {:?}, which has something",
                first.caller().client_id,
                first.claim.stand(),
                show(key.bytes)
            )),
            _ => Ok(()),
        }
    }

    /// Moves the clock on to when it wakes somebody. `false`: it never does.
    fn advance_to_alarm(&mut self) -> bool {
        let alarm_ms = |client: &Client| client.connection.borrow().alarm_ms();
        let Some(next_ms) = self.clients.iter().filter_map(alarm_ms).min() else { return false };
        self.now_ms = self.now_ms.max(next_ms);
        clock::freeze(self.now_ms);
        true
    }

    /// Ends all connections, one way or another, and checks that nothing of them is left.
    ///
    /// # Errors
    /// What was left.
    pub fn end(&mut self) -> Checked {
        for index in 0..self.clients.len() {
            let client = &mut self.clients[index];
            if client.is_gone {
                continue;
            }
            let connection = client.connection.clone();
            let mut fiber = Fiber::new(move || connection.borrow_mut().end());
            while fiber.resume().is_none() {}
            self.clients[index].look(self.step, self.now_ms)?;
        }
        while self.step()? {}
        self.check_quiet()?;
        let Some(shard) = self.shards().next() else { return Ok(()) };
        let host = &shard.shared().host;
        let blocked = host.counters.iter().fold(0u64, |sum, of| sum.wrapping_add(of.blocked_clients.get()));
        if blocked != 0 || !host.clients.is_empty() || !host.hub.is_empty() {
            return Err(format!("{blocked} clients blocked, {} there", host.clients.len()));
        }
        Ok(())
    }
}

/// The thread is in its shard's data and stays there, as in a long command.
fn stay_inside(shard: &Rc<Shard>) -> Fiber<()> {
    let local = shard.local.clone();
    Fiber::new(move || {
        local.begin_turn();
        let inside = local.enter();
        set_aside();
        drop(inside);
    })
}
