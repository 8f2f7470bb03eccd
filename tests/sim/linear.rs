//! Single keys that several clients write and read: every history must be one that a plain value, changed by one command
//! after the other, could have had.
//!
//! The search is that of Wing and Gong, "Testing and verifying concurrent objects" (1993), with a memory of the states
//! that led nowhere (Lowe, 2017). It goes key by key, since keys are independent of each other. A command takes effect
//! between its arrival and its reply, and behind the earlier ones of its client; one without a reply may have had none.
use std::cell::RefCell;
use std::collections::{HashSet, VecDeque};
use std::rc::Rc;

use crate::client::{Ask, Asked, Checked, Program};
use crate::resp::Value;
use crate::rng::Rng;
use crate::world::World;
use crate::{AtEnd, Join};

const KEYS: usize = 3;
/// Commands of one key: the search is exponential in those that overlap.
const COMMANDS_MAX: usize = 60;

/// A command at one key, as its client saw it.
#[derive(Clone, Debug)]
struct Operation {
    client: usize,
    /// Its number among those of its client.
    serial: usize,
    asked: Asked,
    /// `None`: it never came.
    reply: Option<Value>,
}

/// A key's value.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
enum State {
    #[default]
    Missing,
    Text(String),
    List(VecDeque<String>),
}

fn bulk(text: &str) -> Value {
    Value::Bulk(text.as_bytes().to_vec())
}

/// The reply of a command on a key in a state, and the state behind it.
fn apply(command: &str, state: &State) -> (Value, State) {
    let words: Vec<&str> = command.split(' ').collect();
    let text = match state {
        State::Text(text) => Some(text.clone()),
        _ => None,
    };
    let value = text.as_deref().map_or(Value::Null, bulk);
    let word = words.get(2).copied().unwrap_or_default();
    let mut list = match state {
        State::List(list) => list.clone(),
        _ => VecDeque::new(),
    };
    let as_list = |list: VecDeque<String>| if list.is_empty() { State::Missing } else { State::List(list) };
    match words[0] {
        "GET" => (value, state.clone()),
        "SET" => (Value::Simple(b"OK".to_vec()), State::Text(word.into())),
        "GETSET" => (value, State::Text(word.into())),
        "GETDEL" => (value, State::Missing),
        "DEL" => (Value::Int(i64::from(*state != State::Missing)), State::Missing),
        "APPEND" => {
            let text = text.unwrap_or_default() + word;
            (Value::Int(text.len() as i64), State::Text(text))
        }
        "INCR" => match text.as_deref().unwrap_or("0").parse::<i64>() {
            Ok(n) => (Value::Int(n + 1), State::Text((n + 1).to_string())),
            Err(_) => (Value::Error(Vec::new()), state.clone()),
        },
        "RPUSH" => {
            list.push_back(word.into());
            (Value::Int(list.len() as i64), State::List(list))
        }
        "LPOP" => {
            let first = list.pop_front();
            (first.as_deref().map_or(Value::Null, bulk), as_list(list))
        }
        "LLEN" => (Value::Int(list.len() as i64), state.clone()),
        other => panic!("the model does not know {other}"),
    }
}

fn alike(a: &Value, b: &Value) -> bool {
    a == b || matches!((a, b), (Value::Error(_), Value::Error(_)))
}

/// Looks for an order of the operations that explains all replies.
struct Search<'a> {
    operations: &'a [Operation],
    /// Operations that must come before each, as bits.
    before: Vec<u64>,
    dead_ends: HashSet<(u64, State)>,
}

impl Search<'_> {
    fn new(operations: &[Operation]) -> Search<'_> {
        let comes_before = |a: &Operation, b: &Operation| {
            a.asked.replied < b.asked.invoked || a.client == b.client && a.serial < b.serial
        };
        let bits = |b: &Operation| {
            let earlier = operations.iter().enumerate().filter(|(_, a)| comes_before(a, b));
            earlier.fold(0, |bits, (n, _)| bits | 1 << n)
        };
        Search { operations, before: operations.iter().map(bits).collect(), dead_ends: HashSet::new() }
    }

    /// Whether the operations that are not `done` fit behind `state`.
    fn fits(&mut self, done: u64, state: &State) -> bool {
        let is_left = |n: &usize| done & (1 << n) == 0;
        let operations = self.operations;
        if (0..operations.len()).filter(is_left).all(|n| operations[n].reply.is_none()) {
            return true;
        }
        if self.dead_ends.contains(&(done, state.clone())) {
            return false;
        }
        for n in (0..operations.len()).filter(is_left) {
            if self.before[n] & !done != 0 {
                continue;
            }
            let (reply, next) = apply(&operations[n].asked.command, state);
            let may_be = operations[n].reply.as_ref().is_none_or(|seen| alike(seen, &reply));
            if may_be && self.fits(done | 1 << n, &next) {
                return true;
            }
        }
        self.dead_ends.insert((done, state.clone()));
        false
    }
}

fn check(operations: &[Operation]) -> Checked {
    if Search::new(operations).fits(0, &State::Missing) {
        return Ok(());
    }
    let lines = operations.iter().map(|of| {
        let (asked, reply) = (&of.asked, &of.reply);
        format!(
            "\n  {}..{} client {} {:?} => {reply:?}",
            asked.invoked, asked.replied, of.client, asked.command
        )
    });
    Err(format!("no order explains this:{}", lines.collect::<String>()))
}

type History = Rc<RefCell<Vec<Vec<Operation>>>>;

/// Writes and reads the keys.
struct Worker {
    number: usize,
    salt: usize,
    commands_left: usize,
    serial: usize,
    sent: usize,
    history: History,
}

impl Worker {
    fn command(&mut self, rng: &mut Rng) -> String {
        self.sent += 1;
        let (kind, key) = (rng.below(2), rng.below(KEYS));
        let word = format!("{}{}", self.number + 1, self.sent);
        let command = match (kind, rng.below(8)) {
            (0, 0 | 1) => "GET",
            (0, 2) => "SET",
            (0, 3) => "GETSET",
            (0, 4) => "APPEND",
            (0, 5) => "DEL",
            (0, 6) => "GETDEL",
            (0, _) => "INCR",
            (_, 0..=2) => "RPUSH",
            (_, 3..=5) => "LPOP",
            _ => "LLEN",
        };
        let word =
            if matches!(command, "SET" | "GETSET" | "APPEND" | "RPUSH") { word } else { String::new() };
        format!("{command} {}{}:{key} {word}", ["x", "y"][kind], self.salt).trim_end().into()
    }

    fn note(&mut self, asked: &Asked, reply: Option<Value>) {
        let mut words = asked.command.split(' ');
        let (Some(_), Some(key)) = (words.next(), words.next()) else { return };
        let number: usize = key.rsplit(':').next().and_then(|text| text.parse().ok()).unwrap_or(0);
        let place = number + if key.starts_with('x') { 0 } else { KEYS };
        self.serial += 1;
        let operation = Operation { client: self.number, serial: self.serial, asked: asked.clone(), reply };
        self.history.borrow_mut()[place].push(operation);
    }
}

impl Program for Worker {
    fn ask(&mut self, rng: &mut Rng, under_way: usize) -> Ask {
        match self.commands_left {
            0 => return Ask::Done,
            _ if under_way > 6 => return Ask::Later,
            _ => {}
        }
        let count = (1 + rng.below(5)).min(self.commands_left);
        self.commands_left -= count;
        Ask::Commands((0..count).map(|_| self.command(rng)).collect())
    }

    fn answer(&mut self, asked: &Asked, reply: Value) -> Checked {
        self.note(asked, Some(reply));
        Ok(())
    }

    fn end(&mut self, under_way: &VecDeque<Asked>) {
        for asked in under_way.iter().filter(|asked| asked.invoked != u64::MAX) {
            self.note(asked, None);
        }
    }
}

/// Clients that write and read the same keys.
pub fn setting(_: &mut World) -> (Vec<String>, Join) {
    (Vec::new(), Box::new(join))
}

fn join(world: &mut World) -> AtEnd {
    let history: History = Rc::new(RefCell::new(vec![Vec::new(); 2 * KEYS]));
    let (salt, workers) = (world.rng.below(1000), 2 + world.rng.below(3));
    for number in 0..workers {
        let commands_left = 4 + world.rng.below(24);
        let history = history.clone();
        world.connect(Box::new(Worker { number, salt, commands_left, serial: 0, sent: 0, history }));
    }
    Box::new(move |_| {
        history.borrow().iter().filter(|of| of.len() <= COMMANDS_MAX).try_for_each(|of| check(of))
    })
}

#[test]
fn the_search_finds_what_does_not_fit() {
    let operation = |client, (invoked, replied), command: &str, reply| Operation {
        client,
        serial: invoked as usize,
        asked: Asked { command: command.into(), invoked, replied, ..Asked::default() },
        reply,
    };
    let set = |client, at, word: &str| {
        operation(client, at, &format!("SET x {word}"), Some(Value::Simple(b"OK".to_vec())))
    };
    let get = |client, at, word: &str| operation(client, at, "GET x", Some(bulk(word)));
    let overlap = [set(0, (1, 9), "a"), set(1, (2, 8), "b"), get(2, (3, 4), "b"), get(2, (10, 11), "a")];
    assert!(check(&overlap).is_ok());
    let mut stale = overlap.to_vec();
    stale[3] = get(2, (10, 11), "c");
    assert!(check(&stale).is_err(), "nobody wrote it");
    assert!(
        check(&[set(0, (1, 2), "a"), set(1, (3, 4), "b"), get(2, (5, 6), "a")]).is_err(),
        "it was overwritten"
    );
    let flips = [
        set(0, (1, 9), "a"),
        set(1, (1, 9), "b"),
        get(2, (2, 3), "a"),
        get(2, (4, 5), "b"),
        get(2, (6, 7), "a"),
    ];
    assert!(check(&flips).is_err(), "it was written once");
    let unknown = [operation(0, (1, u64::MAX), "SET x a", None), get(1, (5, 6), "a")];
    assert!(check(&unknown).is_ok(), "it may have happened");
    let own = [set(0, (1, 9), "a"), operation(0, (2, 9), "GET x", Some(Value::Null))];
    assert!(check(&own).is_err(), "clients see what they wrote");
}
