//! Pipelines over keys that only one client uses: every reply is known beforehand, whatever shards the keys lie on.
//!
//! Commands on own, other and several shards' keys are mixed, with transactions, errors and commands about the
//! connection between them. So a reply that is lost, doubled, in the wrong place or computed too early shows.
use std::collections::{HashMap, VecDeque};

use crate::client::{Ask, Asked, Checked, Program};
use crate::resp::Value;
use crate::rng::Rng;
use crate::world::World;
use crate::{AtEnd, Join, show};

const KEYS: usize = 5;

/// What a client's keys hold.
#[derive(Default)]
struct Model {
    texts: HashMap<String, String>,
    lists: HashMap<String, VecDeque<String>>,
}

fn bulk(text: Option<&String>) -> Value {
    text.map_or(Value::Null, |text| Value::Bulk(text.as_bytes().to_vec()))
}

fn ok() -> Value {
    Value::Simple(b"OK".to_vec())
}

impl Model {
    /// The reply to a command.
    fn run(&mut self, command: &str) -> Value {
        let words: Vec<&str> = command.split(' ').collect();
        let key = words.get(1).copied().unwrap_or_default().to_string();
        match words[0] {
            "PING" => Value::Simple(b"PONG".to_vec()),
            "ECHO" => Value::Bulk(key.into_bytes()),
            "NONSENSE" => Value::Error(Vec::new()),
            "GET" => bulk(self.texts.get(&key)),
            "MGET" => Value::Array(words[1..].iter().map(|key| bulk(self.texts.get(*key))).collect()),
            "SET" => {
                self.texts.insert(key, words[2].into());
                ok()
            }
            "MSET" => {
                for pair in words[1..].chunks(2) {
                    self.texts.insert(pair[0].into(), pair[1].into());
                }
                ok()
            }
            "APPEND" => {
                let text = self.texts.entry(key).or_default();
                text.push_str(words[2]);
                Value::Int(text.len() as i64)
            }
            "STRLEN" => Value::Int(self.texts.get(&key).map_or(0, String::len) as i64),
            "GETDEL" => bulk(self.texts.remove(&key).as_ref()),
            "DEL" => {
                Value::Int(words[1..].iter().filter(|k| self.texts.remove(**k).is_some()).count() as i64)
            }
            "EXISTS" => {
                Value::Int(words[1..].iter().filter(|key| self.texts.contains_key(**key)).count() as i64)
            }
            "RENAME" => match self.texts.remove(&key) {
                Some(text) => {
                    self.texts.insert(words[2].into(), text);
                    ok()
                }
                None => Value::Error(Vec::new()),
            },
            _ => self.run_on_list(&words),
        }
    }

    fn run_on_list(&mut self, words: &[&str]) -> Value {
        let list = self.lists.entry(words[1].into()).or_default();
        match words[0] {
            "RPUSH" => {
                list.extend(words[2..].iter().map(|word| (*word).to_string()));
                Value::Int(list.len() as i64)
            }
            "LPOP" => bulk(list.pop_front().as_ref()),
            "LLEN" => Value::Int(list.len() as i64),
            "LRANGE" => Value::Array(list.iter().map(|text| bulk(Some(text))).collect()),
            "LMOVE" => {
                let text = list.pop_front();
                if let Some(text) = &text {
                    self.lists.entry(words[2].into()).or_default().push_back(text.clone());
                }
                bulk(text.as_ref())
            }
            other => panic!("the model does not know {other}"),
        }
    }
}

/// A client with keys of its own.
struct Pipeliner {
    name: String,
    commands_left: usize,
    model: Model,
    expected: VecDeque<Value>,
    /// Replies of a transaction so far.
    queued: Option<Vec<Value>>,
    /// To see that no two writes write the same.
    serial: usize,
}

impl Pipeliner {
    fn key(&self, rng: &mut Rng) -> String {
        format!("{}:{}", self.name, rng.below(KEYS))
    }

    fn keys(&self, rng: &mut Rng) -> String {
        let keys: Vec<String> = (0..2 + rng.below(3)).map(|_| self.key(rng)).collect();
        keys.join(" ")
    }

    fn command(&mut self, rng: &mut Rng) -> String {
        self.serial += 1;
        let (serial, key, other) = (self.serial, self.key(rng), self.key(rng));
        match rng.below(22) {
            0 => "PING".into(),
            1 => format!("ECHO {serial}"),
            2 => format!("NONSENSE {serial}"),
            3..=5 => format!("GET {key}"),
            6 | 7 => format!("SET {key} {serial}"),
            8 => format!("APPEND {key} +{serial}"),
            9 => format!("STRLEN {key}"),
            10 | 11 => format!("MGET {}", self.keys(rng)),
            12 => format!("MSET {key} {serial} {other} -{serial}"),
            13 => format!("DEL {}", self.keys(rng)).split(' ').fold(String::new(), distinct),
            14 => format!("EXISTS {}", self.keys(rng)),
            15 => format!("GETDEL {key}"),
            16 => format!("RENAME {key} {other}"),
            17 | 18 => format!("RPUSH l{key} {serial}"),
            19 => format!("LPOP l{key}"),
            20 => format!("LMOVE l{key} l{other} LEFT RIGHT"),
            _ => format!("LRANGE l{key} 0 -1"),
        }
    }

    /// Notes what the reply must be.
    fn expect(&mut self, command: &str) {
        let reply = match (command, &mut self.queued) {
            ("MULTI", _) => {
                self.queued = Some(Vec::new());
                ok()
            }
            ("EXEC", queued) => queued.take().map_or(Value::Error(Vec::new()), Value::Array),
            ("DISCARD", queued) => {
                *queued = None;
                ok()
            }
            (command, Some(_)) => {
                let reply = self.model.run(command);
                if let Some(queued) = &mut self.queued {
                    queued.push(reply);
                }
                Value::Simple(b"QUEUED".to_vec())
            }
            (command, None) => self.model.run(command),
        };
        self.expected.push_back(reply);
    }
}

/// Adds a word to a line unless it stands there.
fn distinct(line: String, word: &str) -> String {
    if line.is_empty() {
        return word.into();
    }
    if line.split(' ').any(|known| known == word) { line } else { line + " " + word }
}

/// Whether a reply is what was expected; errors count as alike.
fn alike(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Error(_), Value::Error(_)) => true,
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| alike(a, b)),
        (a, b) => a == b,
    }
}

impl Program for Pipeliner {
    fn ask(&mut self, rng: &mut Rng, under_way: usize) -> Ask {
        if self.commands_left == 0 {
            return Ask::Done;
        }
        if under_way > 40 {
            return Ask::Later;
        }
        let count = (1 + rng.below(12)).min(self.commands_left);
        self.commands_left -= count;
        let mut commands = Vec::new();
        let is_whole = rng.one_in(5);
        if is_whole {
            commands.push("MULTI".to_string());
        }
        for _ in 0..count {
            // What is refused when it is queued would spoil the transaction.
            let command = loop {
                let command = self.command(rng);
                if !(is_whole && command.starts_with("NONSENSE")) {
                    break command;
                }
            };
            commands.push(command);
        }
        if is_whole {
            commands.push("EXEC".into());
        }
        for command in &commands {
            self.expect(command);
        }
        Ask::Commands(commands)
    }

    fn answer(&mut self, _: &Asked, reply: Value) -> Checked {
        let expected = self.expected.pop_front().ok_or("nothing was expected")?;
        if alike(&expected, &reply) { Ok(()) } else { Err(format!("{reply:?} instead of {expected:?}")) }
    }
}

/// Some clients with keys of their own.
pub fn setting(_: &mut World) -> (Vec<String>, Join) {
    let join = |world: &mut World| {
        for number in 0..1 + world.rng.below(3) {
            let name = format!("own{}{number}", show(&[b'a' + world.rng.below(26) as u8]));
            let commands_left = 10 + world.rng.below(60);
            world.connect(Box::new(Pipeliner {
                name,
                commands_left,
                model: Model::default(),
                expected: VecDeque::new(),
                queued: None,
                serial: 0,
            }));
        }
        Box::new(|_: &mut World| Ok(())) as AtEnd
    };
    (Vec::new(), Box::new(join))
}
