//! A client of the simulation: what it has to send, what it waits for, and the program that decides both.
use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use perigee::conn::session::Turn;
use perigee::server::simulation::Connection;

use crate::resp::{self, Value};
use crate::rng::Rng;
use crate::show;

/// What went wrong, for the reader of a failed seed.
pub type Checked = Result<(), String>;

thread_local! {
    static IS_TRACED: bool = std::env::var_os("SIM_TRACE").is_some();
}

/// Prints a line when the run is traced.
pub fn say(line: impl FnOnce() -> String) {
    if IS_TRACED.with(|is| *is) {
        eprintln!("{}", line());
    }
}

/// What a program wants to do now.
pub enum Ask {
    /// Send these commands, words between spaces.
    Commands(Vec<String>),
    /// Wait for what is under way.
    Later,
    /// Send nothing more.
    Done,
}

/// A command that was sent. Times are steps of the simulation.
#[derive(Clone, Debug, Default)]
pub struct Asked {
    /// The command.
    pub command: String,
    /// When the server had all of it; `u64::MAX`: not yet.
    pub invoked: u64,
    /// When the client was seen to be blocked in it.
    pub blocked: Option<u64>,
    /// When the reply came; `u64::MAX`: not yet.
    pub replied: u64,
    /// Wall time when the server had all of it, milliseconds.
    pub invoked_ms: u64,
    /// Wall time of the reply, milliseconds.
    pub replied_ms: u64,
    /// Where its bytes end among all that the client sends.
    pub end: usize,
}

/// What a client does, and what it makes of the replies.
pub trait Program {
    /// What to send now, with so many commands under way.
    fn ask(&mut self, rng: &mut Rng, under_way: usize) -> Ask;

    /// A reply.
    fn answer(&mut self, asked: &Asked, reply: Value) -> Checked;

    /// Whether a value that came is none of the replies.
    fn is_push(&self, _: &Value) -> bool {
        false
    }

    /// A value that came out of the order of replies.
    fn push(&mut self, value: Value, _step: u64) -> Checked {
        Err(format!("nobody listens to {value:?}"))
    }

    /// The connection has ended, with these commands still under way.
    fn end(&mut self, _under_way: &VecDeque<Asked>) {}

    /// All is over, the connection is still there, with these commands under way.
    fn report(&self, _under_way: &VecDeque<Asked>) {}

    /// Whether its client may break or hang up at any time.
    fn is_mortal(&self) -> bool {
        true
    }
}

/// A client.
pub struct Client {
    /// Its end of the connection, at the server.
    pub connection: Rc<RefCell<Connection>>,
    /// Its shard.
    pub shard: usize,
    /// Everything it sends; `sent` bytes of it have arrived.
    pub bytes: Vec<u8>,
    /// Bytes that the server has taken.
    pub sent: usize,
    /// Commands under way, in order.
    pub under_way: VecDeque<Asked>,
    /// It has nothing more to ask.
    pub is_done: bool,
    /// The connection has ended.
    pub is_gone: bool,
    /// It sends nothing more, and says so.
    pub hangs_up: bool,
    /// What it does.
    pub program: Box<dyn Program>,
    read: usize,
}

impl Client {
    /// A client that runs a program.
    pub fn new(connection: Connection, program: Box<dyn Program>) -> Client {
        Client {
            shard: connection.shard.local.id,
            connection: Rc::new(RefCell::new(connection)),
            bytes: Vec::new(),
            sent: 0,
            under_way: VecDeque::new(),
            is_done: false,
            is_gone: false,
            hangs_up: false,
            program,
            read: 0,
        }
    }

    /// Lets the program ask. `false`: it asked nothing.
    pub fn ask(&mut self, rng: &mut Rng) -> bool {
        match self.program.ask(rng, self.under_way.len()) {
            Ask::Commands(commands) => commands.into_iter().for_each(|command| self.send(command, rng)),
            Ask::Later => return false,
            Ask::Done => self.is_done = true,
        }
        true
    }

    fn send(&mut self, command: String, rng: &mut Rng) {
        say(|| format!("    asks {command:?}"));
        if rng.one_in(8) {
            self.bytes.extend_from_slice(command.as_bytes());
            self.bytes.extend_from_slice(b"\r\n");
        } else {
            self.bytes.extend_from_slice(format!("*{}\r\n", command.split(' ').count()).as_bytes());
            for word in command.split(' ') {
                self.bytes.extend_from_slice(format!("${}\r\n{word}\r\n", word.len()).as_bytes());
            }
        }
        let (never, end) = (u64::MAX, self.bytes.len());
        self.under_way.push_back(Asked {
            command,
            invoked: never,
            blocked: None,
            replied: never,
            invoked_ms: 0,
            replied_ms: 0,
            end,
        });
    }

    /// Whether bytes are on their way to the server.
    pub fn has_unsent(&self) -> bool {
        self.sent < self.bytes.len()
    }

    /// Notes that the server has so many more bytes.
    pub fn note_sent(&mut self, bytes: usize, step: u64, now_ms: u64) {
        self.sent += bytes;
        let sent = self.sent;
        for asked in self.under_way.iter_mut().filter(|asked| asked.end <= sent && asked.invoked == u64::MAX)
        {
            asked.invoked = step;
            asked.invoked_ms = now_ms;
        }
    }

    /// Looks at what the server has done for it. Only while its task does not run.
    pub fn look(&mut self, step: u64, now_ms: u64) -> Checked {
        let mut connection = self.connection.borrow_mut();
        let mut output = std::mem::take(&mut connection.output);
        let is_blocked = matches!(connection.turn(), Turn::Blocked(_));
        let has_ended = connection.has_ended();
        drop(connection);
        self.read = 0;
        while let Some((value, bytes)) = resp::read(&output[self.read..]) {
            self.read += bytes;
            if self.program.is_push(&value) {
                self.program.push(value, step)?;
                continue;
            }
            let Some(mut asked) = self.under_way.pop_front() else {
                return Err(format!("a reply to nothing: {value:?}"));
            };
            if asked.invoked == u64::MAX {
                return Err(format!("a reply to {:?} before it was sent: {value:?}", asked.command));
            }
            (asked.replied, asked.replied_ms) = (step, now_ms);
            say(|| format!("    {:?} => {value:?}", asked.command));
            self.program.answer(&asked, value).map_err(|error| format!("{:?}: {error}", asked.command))?;
        }
        if self.read < output.len() {
            return Err(format!("half a reply: {}", show(&output[self.read..])));
        }
        output.clear();
        if let Some(front) = self.under_way.front_mut()
            && is_blocked
        {
            front.blocked.get_or_insert(step);
        }
        if has_ended && !self.is_gone {
            self.is_gone = true;
            self.is_done = true;
            self.program.end(&self.under_way);
        }
        Ok(())
    }

    /// Checks how it stands when nothing is going on any more.
    pub fn check_quiet(&self) -> Checked {
        let connection = self.connection.borrow();
        let front = self.under_way.front().map(|asked| asked.command.as_str());
        match (connection.turn(), front) {
            _ if self.is_gone => Ok(()),
            (Turn::Read, None) | (Turn::Blocked(_), Some(_)) => Ok(()),
            (turn, front) => Err(format!("a hang: its turn is {turn:?}, it waits for {front:?}")),
        }
    }
}
