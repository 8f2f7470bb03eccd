//! A server without threads, sockets and a clock, whose parts run only when they are told to: for tests that choose how
//! the threads of several shards take turns. Everything from the parser to the reply is the code that serves
//! connections; what stands here takes the place of the runtime and of the loops between it and that code (the pump and
//! the chores of `boot`, `conn::serve`), step for step.
//!
//! Must stay true: a part runs only when something woke it that would wake it in a server, so a forgotten wake-up is a
//! hang here, too; wakers and the buttons of bells are ours, everything that calls them is the server's.
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Wake, Waker};

use super::{boot, table};
use crate::base::clock;
use crate::cmd::cx::Client;
use crate::config::Settings;
use crate::conn::session::{Session, Turn};
use crate::host::{ClientInfo, Facts, Host};
use crate::shard::Shared;
use crate::shard::doorbell::Button;
use crate::shard::local::Local;
use crate::shard::msg::Control;

/// Whether a part was woken.
#[derive(Default)]
struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Woken {
    fn take(&self) -> bool {
        self.0.swap(false, Ordering::Relaxed)
    }

    fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// One shard: what its thread would have.
pub struct Shard {
    /// The thread's part.
    pub local: Rc<Local>,
    /// Somebody pressed the button of the shard's bell.
    rung: Arc<AtomicBool>,
    pump: Arc<Woken>,
}

/// An empty server of several shards, with the settings' defaults; a ring between two of them takes so many messages.
pub fn start(shards: usize, ring_messages: usize) -> Vec<Rc<Shard>> {
    let host = Host::new(Facts {
        settings: Settings::default(),
        shards,
        commands: table::assemble().rows().len(),
        config_file: None,
        io_driver: "none",
    });
    let rung: Vec<Arc<AtomicBool>> = (0..shards).map(|_| Arc::default()).collect();
    let button = |rung: &Arc<AtomicBool>| {
        let rung = rung.clone();
        Box::new(move || rung.store(true, Ordering::Relaxed)) as Button
    };
    let (shared, controls) = boot::share(Arc::new(host), rung.iter().map(button).collect(), ring_messages);
    let shard = |(id, (rung, controls))| {
        let local = Rc::new(Local::new(id, Arc::clone(&shared), controls));
        // As a task that was just spawned.
        let pump = Arc::new(Woken(AtomicBool::new(true)));
        Rc::new(Shard { local, rung, pump })
    };
    rung.into_iter().zip(controls).enumerate().map(shard).collect()
}

impl Shard {
    /// What all shards share.
    pub fn shared(&self) -> &Arc<Shared> {
        &self.local.shared
    }

    /// Whether something woke the pump.
    pub fn is_pump_woken(&self) -> bool {
        self.pump.is_set() || self.rung.load(Ordering::Relaxed)
    }

    /// Lets the pump run until it waits.
    ///
    /// # Panics
    /// When it is told to end, or to serve a socket.
    pub fn pump(&self) {
        self.pump.take();
        self.local.set_pump(&Waker::from(self.pump.clone()));
        loop {
            self.local.pump(|control| match control {
                Control::Ring(_) => unreachable!("the pump keeps these"),
                Control::Job(job) => job(&self.local),
                Control::Walk | Control::Connection(_) | Control::Stop => {
                    panic!("this server has no sockets and no end")
                }
            });
            if !self.rung.swap(false, Ordering::Relaxed) {
                return;
            }
        }
    }

    /// The chores of a tick.
    pub fn tick(&self) {
        self.local.tick();
        while boot::tidy_step(&self.local) {}
    }

    /// A connection of this shard.
    pub fn connect(self: &Rc<Shard>) -> Connection {
        let host = &self.shared().host;
        let id = host.clients.next_id();
        let info = ClientInfo::new(id, format!("127.0.0.1:{id}"), "127.0.0.1:0".into(), -1, self.local.id);
        let info = Arc::new(info);
        host.clients.add(info.clone());
        self.local.counters.clients.add(1);
        let mut session = Session::new(Client::new(info), &self.local);
        let reading = Some(session.lend_input());
        Connection {
            shard: self.clone(),
            session: Some(session),
            turn: Turn::Read,
            reading,
            has_hung_up: false,
            woken: Arc::default(),
            output: Vec::new(),
        }
    }
}

/// A connection, and what its task would have.
pub struct Connection {
    /// Its shard.
    pub shard: Rc<Shard>,
    /// `None`: it has ended.
    session: Option<Session>,
    turn: Turn,
    /// The buffer of the read under way.
    reading: Option<Vec<u8>>,
    /// The client will send no more.
    has_hung_up: bool,
    woken: Arc<Woken>,
    /// What was written to the client.
    pub output: Vec<u8>,
}

impl Connection {
    /// Whether something woke the task, apart from bytes of the client.
    pub fn is_woken(&self) -> bool {
        self.woken.is_set() || self.is_time_up()
    }

    /// Whether it would take bytes of the client now.
    pub fn is_reading(&self) -> bool {
        self.session.is_some() && self.reading.is_some()
    }

    /// Whether it has ended.
    pub fn has_ended(&self) -> bool {
        self.session.is_none()
    }

    /// What it does next.
    pub fn turn(&self) -> &Turn {
        &self.turn
    }

    fn is_time_up(&self) -> bool {
        self.alarm_ms().is_some_and(|alarm_ms| alarm_ms <= clock::wall_ms())
    }

    /// When the time wakes it, milliseconds since the epoch.
    pub fn alarm_ms(&self) -> Option<u64> {
        match self.turn {
            Turn::Blocked(until_ms) if !self.has_ended() => until_ms,
            _ => None,
        }
    }

    /// Lets the task run until it waits. `arrived` are bytes of the client, which must be [`Connection::is_reading`]
    /// then; returns how many of them were taken. No bytes at all are the end of what the client sends.
    pub fn run(&mut self, mut arrived: Option<&[u8]>) -> usize {
        self.woken.take();
        let waker = Waker::from(self.woken.clone());
        let local = self.shard.local.clone();
        let (mut taken, mut is_time_up) = (0, self.is_time_up());
        while let Some(session) = &mut self.session {
            session.hear();
            let is_logged = !session.may_write() || local.write_log() || session.ring_when_free(&local);
            if is_logged && session.may_write() {
                self.output.append(&mut session.out.buf);
            }
            if self.turn == Turn::Close && is_logged {
                self.end();
                break;
            }
            assert!(!matches!(self.turn, Turn::Shutdown(_)), "this server has no end");
            let reads_on = matches!(self.turn, Turn::Read | Turn::Blocked(_));
            if reads_on && self.reading.is_none() && !self.has_hung_up {
                self.reading = Some(session.lend_input());
            }
            if let Some(bytes) = arrived.take() {
                let Some(mut input) = self.reading.take() else { panic!("nobody reads") };
                taken = bytes.len().min(input.capacity() - input.len());
                input.extend_from_slice(&bytes[..taken]);
                session.take_input(input, taken);
                self.has_hung_up = bytes.is_empty();
                self.turn = if bytes.is_empty() { session.hang_up(&local) } else { session.run(&local) };
                continue;
            }
            let waits = matches!(self.turn, Turn::Wait | Turn::Blocked(_)) || session.listens();
            // Once: the time stays up.
            if !(std::mem::take(&mut is_time_up) || waits && session.mailbox().poll(&waker)) {
                break;
            }
            if self.turn != Turn::Read || !session.only_hears() {
                self.turn = session.run(&local);
            }
        }
        taken
    }

    /// The connection breaks: its task ends wherever it stands.
    pub fn end(&mut self) {
        let Some(session) = self.session.take() else { return };
        let (host, id) = (&self.shard.shared().host, session.client.info.id);
        session.end(&self.shard.local);
        host.clients.remove(id);
        self.shard.local.counters.clients.add(1u64.wrapping_neg());
    }
}
