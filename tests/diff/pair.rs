//! This server and a reference server, which get the same commands.
use std::path::PathBuf;

use super::compare;
use super::support::{Client, Server, Value, command, resp, show};

/// Words of a command.
pub type Words = Vec<Vec<u8>>;

/// How commands are sent.
#[derive(Clone, Copy, Debug)]
pub struct Mode {
    /// RESP3, else RESP2.
    pub resp3: bool,
    /// All at once, else one after the other's reply.
    pub pipelined: bool,
    /// So many at a time within MULTI and EXEC; 0: none.
    pub transaction: usize,
}

/// Both servers with one connection each.
pub struct Pair {
    /// Number of ours.
    shards: usize,
    /// Owns the processes.
    servers: [Server; 2],
    /// Ours, then the reference.
    clients: [Client; 2],
    /// Version of the reference as major, minor.
    pub version: (u32, u32),
    /// Whether this server has HELLO.
    pub speaks_resp3: bool,
    /// Who hears the keyspace events of both, once [`Pair::listen`] was called.
    listeners: Option<[Client; 2]>,
}

/// The reference server's binary; `None` when there is none and that is allowed.
fn reference() -> Option<PathBuf> {
    let found = match std::env::var_os("PERIGEE_REDIS").filter(|path| !path.is_empty()) {
        Some(path) => Some(PathBuf::from(path)),
        None => std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default())
            .map(|dir| dir.join("redis-server"))
            .find(|path| path.is_file()),
    };
    if found.is_none() {
        assert!(
            std::env::var("PERIGEE_DIFF_OPTIONAL").is_ok_and(|v| v == "1"),
            "no redis-server in PATH: install it, or name one in PERIGEE_REDIS, or set PERIGEE_DIFF_OPTIONAL=1"
        );
        eprintln!("*** NO redis-server: THE DIFFERENTIAL TESTS DID NOT RUN ***");
    }
    found
}

impl Pair {
    /// Starts both; `None` when there is no reference and that is allowed.
    pub fn start(shards: usize) -> Option<Pair> {
        let reference = reference()?;
        let ours = Server::start(shards, &[]);
        let theirs = Server::of(
            &reference,
            &["--save", "", "--appendonly", "no", "--bind", "127.0.0.1", "--enable-debug-command", "yes"],
        );
        let mut clients = [ours.client(), theirs.client()];
        let info = clients[1].run("INFO server").string();
        let version =
            info.lines().find_map(|l| l.trim_end().strip_prefix("redis_version:")).expect("redis_version");
        let mut parts = version.split('.').map(|p| p.parse::<u32>().unwrap_or(0));
        let version = (parts.next().unwrap_or(0), parts.next().unwrap_or(0));
        let speaks_resp3 = !clients[0].run("HELLO 2").is_error();
        clients[1].run("HELLO 2");
        Some(Pair { shards, servers: [ours, theirs], clients, version, speaks_resp3, listeners: None })
    }

    /// From now on, keyspace events are compared, too. Keys whose time has come are deleted by those alone who meet
    /// them.
    pub fn listen(&mut self) {
        for setting in ["CONFIG SET notify-keyspace-events EAn", "DEBUG SET-ACTIVE-EXPIRE 0"] {
            for reply in self.run(setting) {
                assert!(!reply.is_error(), "{setting}: {reply:?}");
            }
        }
        let hearing = |server: &Server| {
            let mut client = server.client();
            client.run("PSUBSCRIBE __keyevent@*");
            client
        };
        self.listeners = Some([hearing(&self.servers[0]), hearing(&self.servers[1])]);
    }

    /// The events of both since the last call, one a line. Those of several shards reach the listener in any order.
    fn events(&mut self) -> [String; 2] {
        let Some(listeners) = &mut self.listeners else { return Default::default() };
        listeners.each_mut().map(|listener| {
            // Before its own command is run, a listener hears what happened before that.
            listener.send_words(&["PING"]);
            let mut events = Vec::new();
            while let [_, _, channel, key] = listener.read().items().as_slice() {
                let channel = channel.string();
                let (db, event) = channel.split_once("__:").expect("a channel of events");
                events.push((db.to_string(), show(key.text()), event.to_string()));
            }
            if self.shards > 1 {
                events.sort();
            }
            events.iter().map(|(db, key, event)| format!("  {db} {event} {key}\n")).collect()
        })
    }

    /// Runs a command on both and returns both replies.
    pub fn run(&mut self, line: &str) -> [Value; 2] {
        [self.clients[0].run(line), self.clients[1].run(line)]
    }

    /// Runs a command on one of them: 0 is ours, 1 the reference.
    pub fn run_words<W: AsRef<[u8]>>(&mut self, whose: usize, words: &[W]) -> Value {
        self.clients[whose].run_words(words)
    }

    /// Empties both, runs the commands and then the questions on both, and says where the replies differ first, if
    /// they do: the index of the command and a text.
    pub fn first_difference(
        &mut self,
        commands: &[Words],
        questions: &[Words],
        mode: Mode,
    ) -> Option<(usize, String)> {
        self.reset(mode);
        let commands = [commands, questions].concat();
        let mut replies = Vec::new();
        for (client, whose) in self.clients.iter_mut().zip(["this server", "the reference"]) {
            replies.push(match mode.transaction {
                0 => send_all(client, &commands, mode.pipelined, whose),
                length => send_transactions(client, &commands, length, mode.pipelined, whose),
            });
        }
        for (at, command) in commands.iter().enumerate() {
            let (ours, theirs) = (&replies[0][at], &replies[1][at]);
            if !compare::same(command, ours, theirs, self.version) {
                let text = format!(
                    "   at: {}\n ours: {}\ntheirs: {}",
                    super::shrink::line(command),
                    show(&ours.1),
                    show(&theirs.1)
                );
                return Some((at, text));
            }
        }
        let [mut ours, mut theirs] = self.events();
        if mode.pipelined {
            // Commands of one pipeline on different shards run side by side.
            [&mut ours, &mut theirs].into_iter().for_each(order_by_key);
        }
        (ours != theirs).then(|| (commands.len() - 1, format!("events\n ours:\n{ours}theirs:\n{theirs}")))
    }

    fn reset(&mut self, mode: Mode) {
        for client in &mut self.clients {
            client.run("DISCARD");
            client.run("FLUSHALL");
            if self.speaks_resp3 {
                client.run("SELECT 0");
                client.run(if mode.resp3 { "HELLO 3" } else { "HELLO 2" });
            }
        }
    }
}

/// Puts events of the same key together, in their order.
fn order_by_key(events: &mut String) {
    let mut lines: Vec<&str> = events.lines().collect();
    lines.sort_by_key(|line| line.trim_start().split_once(' ').map(|(_, key)| key));
    *events = lines.iter().map(|line| format!("{line}\n")).collect();
}

fn send_all(client: &mut Client, commands: &[Words], pipelined: bool, whose: &str) -> Vec<(Value, Vec<u8>)> {
    let read = |client: &mut Client, words: &Words| match client.try_read() {
        Ok(Some(reply)) => reply,
        other => panic!("no reply of {whose} to {}: {other:?}", super::shrink::line(words)),
    };
    if !pipelined {
        return commands
            .iter()
            .map(|words| {
                client.send(command(words));
                read(client, words)
            })
            .collect();
    }
    let bytes: Vec<u8> = commands.iter().flat_map(|words| command(words)).collect();
    client.send(bytes);
    commands.iter().map(|words| read(client, words)).collect()
}

/// Sends the commands within transactions of `length` commands. The replies of those that ran are those within EXEC's;
/// where EXEC refused, those that queueing had.
fn send_transactions(
    client: &mut Client,
    commands: &[Words],
    length: usize,
    pipelined: bool,
    whose: &str,
) -> Vec<(Value, Vec<u8>)> {
    let mut all = Vec::new();
    for some in commands.chunks(length) {
        let word = |word: &str| vec![word.as_bytes().to_vec()];
        let whole = [vec![word("MULTI")], some.to_vec(), vec![word("EXEC")]].concat();
        let mut replies = send_all(client, &whole, pipelined, whose);
        let (done, bytes) = replies.pop().expect("a reply of EXEC");
        let within = match &done {
            Value::Array(values) => values_of(&bytes, values.len()),
            _ => replies.drain(1..).collect(),
        };
        all.extend(within);
    }
    all
}

/// The elements of an array, with the bytes of each.
fn values_of(array: &[u8], count: usize) -> Vec<(Value, Vec<u8>)> {
    let head = array.iter().position(|byte| *byte == b'\n').expect("a line end");
    let mut at = head + 1;
    (0..count)
        .map(|_| {
            let (value, len) = resp::read(&array[at..]).expect("an element");
            at += len;
            (value, array[at - len..at].to_vec())
        })
        .collect()
}
