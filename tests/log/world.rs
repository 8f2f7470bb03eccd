//! A server without threads whose log is captured.
use std::rc::Rc;

use perigee::base::clock;
use perigee::host::Host;
use perigee::server::simulation::{self, Connection, Shard};

use super::resp::{self, Value};

/// When the clocks of all servers begin.
pub const START_MS: u64 = 1_700_000_000_000;

/// Commands that the log has, word by word.
pub type Records = Vec<Vec<Vec<u8>>>;

/// A server and a client of its first shard.
pub struct World {
    pub shards: Vec<Rc<Shard>>,
    client: Connection,
    now_ms: u64,
}

/// The bytes of a command.
pub fn encode(words: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        bytes.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
        bytes.extend_from_slice(word);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes
}

/// The commands in bytes of the log.
pub fn records(bytes: &[u8]) -> Records {
    let (mut at, mut records) = (0, Vec::new());
    while at < bytes.len() {
        let (value, length) = resp::read(&bytes[at..]).expect("whole records");
        records.push(value.items().iter().map(|word| word.text().to_vec()).collect());
        at += length;
    }
    records
}

impl World {
    /// An empty server that logs.
    pub fn start(shards: usize) -> World {
        clock::freeze(START_MS);
        let shards = simulation::start(shards, 16);
        let client = shards[0].connect();
        let mut world = World { shards, client, now_ms: START_MS };
        world.settle();
        let allow = |settings: &perigee::config::Settings| {
            let mut settings = settings.clone();
            settings.set(b"enable-debug-command", &[b"yes"]).map_err(|_| ())?;
            Ok::<_, ()>(settings)
        };
        world.host().change_settings(allow).expect("a known setting");
        world.run(&[b"DEBUG".to_vec(), b"SET-ACTIVE-EXPIRE".to_vec(), b"0".to_vec()]);
        world.host().journal.set_on(true);
        world.host().renew_settings();
        world
    }

    pub fn host(&self) -> &Host {
        &self.shards[0].shared().host
    }

    /// Lets time pass.
    pub fn pass(&mut self, ms: u64) {
        self.now_ms += ms;
        clock::freeze(self.now_ms);
    }

    pub fn now_ms(&self) -> u64 {
        self.now_ms
    }

    /// Lets everything run that was woken.
    fn settle(&mut self) {
        self.settle_watched(&mut |_, _| ());
    }

    /// [`World::settle`], with another connection.
    pub fn settle_with(&mut self, other: &mut Connection) {
        loop {
            self.settle();
            if !other.is_woken() {
                return;
            }
            other.run(None);
        }
    }

    /// Sends bytes and runs nothing but the connection's own task.
    pub fn post(&mut self, bytes: &[u8]) {
        assert_eq!(self.client.run(Some(bytes)), bytes.len());
    }

    /// Sends bytes and runs all they ask for; `watch` looks at the log and the replies after every step.
    pub fn send_watched(&mut self, bytes: &[u8], mut watch: impl FnMut(&Host, &[u8])) {
        let mut sent = 0;
        while sent < bytes.len() {
            sent += self.client.run(Some(&bytes[sent..]));
            watch(&self.shards[0].shared().host, &self.client.output);
            self.settle_watched(&mut watch);
        }
    }

    fn settle_watched(&mut self, watch: &mut dyn FnMut(&Host, &[u8])) {
        loop {
            let mut any = false;
            for shard in &self.shards {
                if shard.is_pump_woken() {
                    shard.pump();
                    watch(&shard.shared().host, &self.client.output);
                    any = true;
                }
            }
            if self.client.is_woken() {
                self.client.run(None);
                watch(&self.shards[0].shared().host, &self.client.output);
                any = true;
            }
            if !any {
                return;
            }
        }
    }

    /// Sends bytes and runs all they ask for.
    pub fn send(&mut self, bytes: &[u8]) {
        let mut sent = 0;
        while sent < bytes.len() {
            sent += self.client.run(Some(&bytes[sent..]));
            self.settle();
        }
    }

    /// Runs a command; a wait that finds nothing ends by time.
    pub fn run(&mut self, words: &[Vec<u8>]) -> Value {
        self.send(&encode(words));
        loop {
            if let Some((value, length)) = resp::read(&self.client.output) {
                self.client.output.drain(..length);
                return value;
            }
            let alarm_ms = self.client.alarm_ms().expect("it waits for time to pass");
            self.now_ms = self.now_ms.max(alarm_ms);
            clock::freeze(self.now_ms);
            self.settle();
        }
    }

    /// [`World::run`] of words between spaces.
    pub fn line(&mut self, line: &str) -> Value {
        self.run(&line.split(' ').map(|word| word.as_bytes().to_vec()).collect::<Vec<_>>())
    }

    /// The chores of all shards.
    pub fn tick(&mut self) {
        self.shards.iter().for_each(|shard| shard.tick());
        self.settle();
    }

    /// What the log has got since the last call, when all that is noted is written.
    pub fn take_log(&mut self) -> Vec<u8> {
        self.host().journal.take_captured()
    }

    /// A digest of all data.
    pub fn digest(&mut self) -> String {
        self.line("DEBUG DIGEST").string()
    }
}
