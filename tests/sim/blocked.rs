//! Clients that wait for elements of lists, and those that push them.
//!
//! Every element that was pushed is taken once or lies in a list at the end; only a client that went away while it
//! waited may have taken one with it. Where clients wait at one key only, those who came first are served first. Nobody
//! waits at a key that has elements (the world looks at that whenever everything is at rest).
use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

use crate::client::{Ask, Asked, Checked, Program};
use crate::resp::Value;
use crate::rng::Rng;
use crate::world::World;
use crate::{AtEnd, Join, run_commands};

/// Lists that everybody uses in any way, and lists that are only pushed to by one and waited at by BLPOP.
const LISTS: usize = 4;
const QUEUES: usize = 2;

/// A client's wait at a queue.
struct Wait {
    asked: Asked,
    queue: String,
    /// The element that it got; `None`: none yet.
    got: Option<usize>,
    /// It timed out, or its client is gone.
    is_void: bool,
}

/// Who pushed and took what.
#[derive(Default)]
struct Ledger {
    /// Whether the push of an element is known to have happened.
    pushed: BTreeMap<usize, bool>,
    taken: BTreeMap<usize, String>,
    /// Elements that clients may have taken with them.
    may_be_lost: usize,
    waits: Vec<Wait>,
}

impl Ledger {
    fn element(&mut self) -> usize {
        let element = self.pushed.len();
        self.pushed.insert(element, false);
        element
    }

    fn take(&mut self, element: &Value, by: &str) -> Result<usize, String> {
        let number = element.string().parse().map_err(|_| format!("{element:?} is no element"))?;
        if !self.pushed.contains_key(&number) {
            return Err(format!("{number} was never pushed"));
        }
        match self.taken.insert(number, by.into()) {
            Some(other) => Err(format!("{number} was taken before, by {other:?}")),
            None => Ok(number),
        }
    }
}

type Shared = Rc<RefCell<Ledger>>;

/// Names of keys of this seed.
#[derive(Clone)]
struct Names(usize);

impl Names {
    fn list(&self, rng: &mut Rng) -> String {
        format!("b{}:{}", self.0, rng.below(LISTS))
    }

    fn lists(&self) -> impl Iterator<Item = String> {
        (0..LISTS).map(|n| format!("b{}:{n}", self.0))
    }

    fn queues(&self) -> impl Iterator<Item = String> {
        (0..QUEUES).map(|n| format!("q{}:{n}", self.0))
    }
}

/// Pushes elements.
struct Producer {
    names: Names,
    ledger: Shared,
    pushes_left: usize,
    /// The one queue that it pushes to; `None`: all lists.
    queue: Option<String>,
}

impl Producer {
    fn push_some(&self, rng: &mut Rng) -> String {
        let (word, key) = match &self.queue {
            Some(queue) => ("RPUSH", queue.clone()),
            None => (*rng.pick(&["RPUSH", "LPUSH"]), self.names.list(rng)),
        };
        let mut command = format!("{word} {key}");
        for _ in 0..1 + rng.below(3) / 2 {
            command += &format!(" {}", self.ledger.borrow_mut().element());
        }
        command
    }
}

/// Elements in a pushing command.
fn elements(command: &str) -> impl Iterator<Item = usize> {
    let is_push = command.starts_with("RPUSH") || command.starts_with("LPUSH");
    command.split(' ').skip(2).filter(move |_| is_push).filter_map(|word| word.parse().ok())
}

impl Program for Producer {
    fn ask(&mut self, rng: &mut Rng, under_way: usize) -> Ask {
        match self.pushes_left {
            0 => return Ask::Done,
            _ if under_way > 8 => return Ask::Later,
            _ => self.pushes_left -= 1,
        }
        let mut commands = vec![self.push_some(rng)];
        if rng.one_in(4) {
            let more = self.push_some(rng);
            commands = vec!["MULTI".into(), commands.remove(0), more, "EXEC".into()];
        } else if self.queue.is_none() && rng.one_in(3) {
            commands.push(format!("LMOVE {} {} RIGHT LEFT", self.names.list(rng), self.names.list(rng)));
        }
        Ask::Commands(commands)
    }

    fn answer(&mut self, asked: &Asked, reply: Value) -> Checked {
        match reply {
            Value::Error(error) => return Err(crate::show(&error)),
            // What was queued has surely happened when the client lives on: EXEC cannot fail.
            Value::Int(_) | Value::Simple(_) => {
                let mut ledger = self.ledger.borrow_mut();
                let is_sure = matches!(reply, Value::Int(_));
                ledger.pushed.extend(elements(&asked.command).map(|element| (element, is_sure)));
            }
            _ => {}
        }
        Ok(())
    }
}

/// Takes elements, and waits for them.
struct Consumer {
    names: Names,
    ledger: Shared,
    takes_left: usize,
    /// The one queue that it waits at; `None`: all lists.
    queue: Option<String>,
    /// The command that was queued last.
    queued: Asked,
}

fn timeout(rng: &mut Rng) -> String {
    if rng.one_in(2) { "0".into() } else { format!("0.0{}", 1 + rng.below(9)) }
}

/// The timeout of a waiting command, milliseconds; `None`: it has none.
fn timeout_ms(command: &str) -> Option<u64> {
    let words: Vec<&str> = command.split(' ').collect();
    let word = if words[0] == "BLMPOP" { words[1] } else { words[words.len() - 1] };
    let seconds: f64 = word.parse().ok()?;
    (seconds > 0.0).then(|| (seconds * 1000.0).round() as u64)
}

impl Consumer {
    fn command(&self, rng: &mut Rng) -> String {
        if let Some(queue) = &self.queue {
            return format!("BLPOP {queue} {}", timeout(rng));
        }
        let (a, b, time) = (self.names.list(rng), self.names.list(rng), timeout(rng));
        match rng.below(11) {
            0..=2 => format!("BLPOP {a} {time}"),
            3 => format!("BRPOP {a} {time}"),
            4 | 5 => format!("BLPOP {a} {b} {time}"),
            6 => format!("BLMPOP {time} 2 {a} {b} LEFT COUNT 2"),
            7 | 8 => format!("BLMOVE {a} {b} LEFT RIGHT {time}"),
            9 => format!("BRPOPLPUSH {a} {b} {time}"),
            _ => format!("LPOP {a}"),
        }
    }

    fn took(&mut self, asked: &Asked, reply: &Value) -> Checked {
        let mut ledger = self.ledger.borrow_mut();
        let command = asked.command.as_str();
        let mut got = None;
        match reply {
            _ if command.starts_with("BLMOVE") || command.starts_with("BRPOPLPUSH") => {}
            Value::Bulk(_) => got = Some(ledger.take(reply, command)?),
            Value::Array(items) => {
                let [key, elements] = items.as_slice() else { return Err(format!("{reply:?}")) };
                if !command.split(' ').any(|word| word.as_bytes() == key.text()) {
                    return Err(format!("{key:?} was not asked for"));
                }
                match elements {
                    Value::Array(elements) => {
                        for element in elements {
                            ledger.take(element, command)?;
                        }
                    }
                    element => got = Some(ledger.take(element, command)?),
                }
            }
            other => return Err(format!("{other:?}")),
        }
        if let Some(queue) = &self.queue {
            ledger.waits.push(Wait { asked: asked.clone(), queue: queue.clone(), got, is_void: false });
        }
        Ok(())
    }
}

impl Program for Consumer {
    fn ask(&mut self, rng: &mut Rng, under_way: usize) -> Ask {
        match self.takes_left {
            0 => return Ask::Done,
            _ if under_way > 2 => return Ask::Later,
            _ => self.takes_left -= 1,
        }
        let mut commands = vec![self.command(rng)];
        if self.queue.is_none() && rng.one_in(5) {
            commands = vec!["MULTI".into(), commands.remove(0), "EXEC".into()];
        } else if rng.one_in(3) {
            commands.push("PING".into());
        }
        Ask::Commands(commands)
    }

    fn answer(&mut self, asked: &Asked, reply: Value) -> Checked {
        match &reply {
            Value::Error(error) => Err(crate::show(error)),
            Value::Simple(_) => {
                // When it was queued EXEC will say what it took.
                self.queued = asked.clone();
                Ok(())
            }
            Value::Array(parts) if asked.command == "EXEC" => match parts.first() {
                None | Some(Value::Null) => Ok(()),
                Some(part) => self.took(&self.queued.clone(), part),
            },
            Value::Null if !asked.command.starts_with('B') => Ok(()),
            Value::Null if self.queue.is_some() && timeout_ms(&asked.command).is_none() => {
                Err("it waits for ever, and ended".into())
            }
            Value::Null => match timeout_ms(&asked.command) {
                Some(ms) if asked.replied_ms >= asked.invoked_ms + ms => Ok(()),
                _ => Err(format!("a wait ended after {} ms", asked.replied_ms - asked.invoked_ms)),
            },
            reply => self.took(asked, reply),
        }
    }

    fn report(&self, under_way: &VecDeque<Asked>) {
        if let (Some(queue), Some(asked)) = (&self.queue, under_way.front()) {
            let (asked, queue) = (asked.clone(), queue.clone());
            self.ledger.borrow_mut().waits.push(Wait { asked, queue, got: None, is_void: false });
        }
    }

    fn end(&mut self, under_way: &VecDeque<Asked>) {
        let mut ledger = self.ledger.borrow_mut();
        for asked in under_way {
            ledger.may_be_lost += if asked.command.starts_with("BLMPOP") { 2 } else { 1 };
            if let Some(queue) = &self.queue {
                let (asked, queue) = (asked.clone(), queue.clone());
                ledger.waits.push(Wait { asked, queue, got: None, is_void: true });
            }
        }
    }
}

/// Checks what became of all elements, which lie in `left` lists at the end.
fn check_elements(ledger: &mut Ledger, left: &[Value]) -> Checked {
    for list in left {
        for element in list.items() {
            ledger.take(&element, "nobody")?;
        }
    }
    let is_lost = |(element, is_sure): &(&usize, &bool)| **is_sure && !ledger.taken.contains_key(*element);
    let lost: Vec<usize> = ledger.pushed.iter().filter(is_lost).map(|(element, _)| *element).collect();
    if lost.len() <= ledger.may_be_lost { Ok(()) } else { Err(format!("lost: {lost:?}")) }
}

/// Checks that those who came first to a queue got what was pushed first.
fn check_order(ledger: &Ledger) -> Checked {
    for first in ledger.waits.iter().filter(|wait| !wait.is_void) {
        let there = first.asked.blocked.unwrap_or(first.asked.replied).min(first.asked.replied);
        for second in ledger.waits.iter().filter(|wait| wait.queue == first.queue) {
            let is_behind = second.asked.invoked != u64::MAX && there < second.asked.invoked;
            let (Some(a), Some(b)) = (first.got.or(Some(usize::MAX)), second.got) else { continue };
            if is_behind && a > b {
                return Err(format!(
                    "{:?} got {:?}, but later {:?} got {b}",
                    first.asked, first.got, second.asked
                ));
            }
        }
    }
    Ok(())
}

/// Consumers and producers.
pub fn setting(_: &mut World) -> (Vec<String>, Join) {
    (Vec::new(), Box::new(join))
}

fn join(world: &mut World) -> AtEnd {
    let names = Names(world.rng.below(1000));
    let ledger = Shared::default();
    world.waited_keys.extend(names.lists().chain(names.queues()));
    let mut queues: Vec<Option<String>> = vec![None, None];
    queues.extend(names.queues().map(Some).filter(|_| world.rng.one_in(2)));
    for queue in queues {
        for _ in 0..1 + world.rng.below(3) {
            let (names, ledger, queue) = (names.clone(), ledger.clone(), queue.clone());
            let takes_left = 1 + world.rng.below(8);
            world.connect(Box::new(Consumer { names, ledger, takes_left, queue, queued: Asked::default() }));
        }
        let (names, ledger) = (names.clone(), ledger.clone());
        let pushes_left = 1 + world.rng.below(16);
        world.connect(Box::new(Producer { names, ledger, pushes_left, queue }));
    }
    Box::new(move |world| {
        for client in world.clients.iter().filter(|client| !client.is_gone) {
            client.program.report(&client.under_way);
        }
        let lists = names.lists().chain(names.queues()).map(|list| format!("LRANGE {list} 0 -1")).collect();
        let left = run_commands(world, lists)?;
        let mut ledger = ledger.borrow_mut();
        check_order(&ledger)?;
        check_elements(&mut ledger, &left)
    })
}
