//! Publishers and subscribers: what was published while somebody was surely subscribed arrives, once, and in the order
//! of its publisher.
use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

use crate::client::{Ask, Asked, Checked, Program};
use crate::resp::Value;
use crate::rng::Rng;
use crate::world::World;
use crate::{AtEnd, Join};

const CHANNELS: usize = 2;

/// A message: its channel, its publisher, and its number among those of the publisher.
type Message = (String, usize, usize);

/// What was published, from when to when.
type Published = Rc<RefCell<BTreeMap<Message, (u64, u64)>>>;

struct Publisher {
    number: usize,
    salt: usize,
    messages_left: usize,
    sent: usize,
    published: Published,
}

fn message(command: &str) -> Option<Message> {
    let words: Vec<&str> = command.split(' ').collect();
    let ["PUBLISH", channel, text] = words[..] else { return None };
    let (publisher, number) = text.split_once('-')?;
    Some((channel.into(), publisher.parse().ok()?, number.parse().ok()?))
}

impl Program for Publisher {
    fn ask(&mut self, rng: &mut Rng, under_way: usize) -> Ask {
        if self.messages_left == 0 {
            return Ask::Done;
        }
        if under_way > 12 {
            return Ask::Later;
        }
        let count = (1 + rng.below(4)).min(self.messages_left);
        self.messages_left -= count;
        let mut commands: Vec<String> = (0..count)
            .map(|_| {
                self.sent += 1;
                let channel = rng.below(CHANNELS);
                format!("PUBLISH ch{}:{channel} {}-{}", self.salt, self.number, self.sent)
            })
            .collect();
        if rng.one_in(4) {
            commands.insert(0, "MULTI".into());
            commands.push("EXEC".into());
        } else if rng.one_in(3) {
            // So that the batch has something to wait for.
            commands.insert(rng.below(count), format!("INCR hits{}:{}", self.salt, rng.below(5)));
        }
        Ask::Commands(commands)
    }

    fn answer(&mut self, asked: &Asked, reply: Value) -> Checked {
        if matches!(reply, Value::Error(_)) {
            return Err(format!("{reply:?}"));
        }
        if let Some(message) = message(&asked.command) {
            let ended = if matches!(reply, Value::Int(_)) { asked.replied } else { u64::MAX };
            self.published.borrow_mut().insert(message, (asked.invoked, ended));
        }
        Ok(())
    }
}

/// A subscription, by steps of the simulation.
#[derive(Clone, Copy)]
struct Span {
    /// Subscribed for sure from here.
    from: u64,
    /// To here; `None`: it still is.
    to: Option<u64>,
}

#[derive(Default)]
struct Heard {
    spans: BTreeMap<String, Vec<Span>>,
    messages: Vec<(Message, u64)>,
}

struct Subscriber {
    salt: usize,
    is_resp3: bool,
    has_greeted: bool,
    changes_left: usize,
    /// It may unsubscribe.
    may_leave: bool,
    heard: Rc<RefCell<Heard>>,
    /// Channels that it has, or has asked for.
    wants: Vec<String>,
}

impl Program for Subscriber {
    fn ask(&mut self, rng: &mut Rng, under_way: usize) -> Ask {
        if !self.has_greeted {
            self.has_greeted = true;
            if self.is_resp3 {
                return Ask::Commands(vec!["HELLO 3".into()]);
            }
        }
        if self.changes_left == 0 {
            return Ask::Done;
        }
        if under_way > 4 {
            return Ask::Later;
        }
        self.changes_left -= 1;
        let channel = format!("ch{}:{}", self.salt, rng.below(CHANNELS));
        if let Some(at) = self.wants.iter().position(|wanted| *wanted == channel) {
            if self.may_leave && rng.one_in(3) {
                self.wants.remove(at);
                return Ask::Commands(vec![format!("UNSUBSCRIBE {channel}")]);
            }
            return Ask::Commands(vec!["PING".into()]);
        }
        self.wants.push(channel.clone());
        Ask::Commands(vec![format!("SUBSCRIBE {channel}")])
    }

    fn is_push(&self, value: &Value) -> bool {
        match value {
            Value::Push(items) | Value::Array(items) => {
                items.first().is_some_and(|kind| kind.text() == b"message")
            }
            _ => false,
        }
    }

    fn push(&mut self, value: Value, step: u64) -> Checked {
        if matches!(value, Value::Push(_)) != self.is_resp3 {
            return Err(format!("the wrong protocol: {value:?}"));
        }
        let words: Vec<String> = value.items().iter().map(Value::string).collect();
        let [_, channel, text] = &words[..] else { return Err(format!("{words:?}")) };
        let message = message(&format!("PUBLISH {channel} {text}")).ok_or("no message of ours")?;
        let mut heard = self.heard.borrow_mut();
        let of_same = |(other, _): &&(Message, u64)| other.1 == message.1 && other.0 == message.0;
        if let Some((last, _)) = heard.messages.iter().rev().find(of_same)
            && last.2 >= message.2
        {
            return Err(format!("{message:?} came behind {last:?}"));
        }
        heard.messages.push((message, step));
        Ok(())
    }

    fn answer(&mut self, asked: &Asked, reply: Value) -> Checked {
        let (command, channel) = asked.command.split_once(' ').unwrap_or((&asked.command, ""));
        let mut heard = self.heard.borrow_mut();
        match command {
            "SUBSCRIBE" | "UNSUBSCRIBE" => {
                let items = reply.items();
                if items[0].string() != command.to_lowercase() || items[1].string() != channel {
                    return Err(format!("{reply:?}"));
                }
                let spans = heard.spans.entry(channel.into()).or_default();
                match (command, spans.last_mut()) {
                    ("SUBSCRIBE", _) => spans.push(Span { from: asked.replied, to: None }),
                    (_, Some(last)) => last.to = Some(asked.invoked),
                    _ => return Err("there was nothing to give up".into()),
                }
            }
            _ if matches!(reply, Value::Error(_)) => return Err(format!("{reply:?}")),
            _ => {}
        }
        Ok(())
    }

    fn end(&mut self, _: &VecDeque<Asked>) {
        // What was on its way when it went did not arrive, and nobody knows what that was.
        self.heard.borrow_mut().spans.clear();
    }
}

fn check(heard: &Heard, published: &BTreeMap<Message, (u64, u64)>) -> Checked {
    for (channel, spans) in &heard.spans {
        for (message, (from, to)) in published.iter().filter(|(message, _)| message.0 == *channel) {
            let surely =
                |span: &Span| span.from < *from && span.to.is_none_or(|end| *to < end) && *to != u64::MAX;
            let times = heard.messages.iter().filter(|(other, _)| other == message).count();
            if times > 1 || times == 0 && spans.iter().any(surely) {
                return Err(format!("{message:?}, published from {from} to {to}, came {times} times"));
            }
        }
    }
    Ok(())
}

/// Publishers and subscribers of a few channels.
pub fn setting(_: &mut World) -> (Vec<String>, Join) {
    (Vec::new(), Box::new(join))
}

fn join(world: &mut World) -> AtEnd {
    let salt = world.rng.below(1000);
    let published = Published::default();
    let mut ears = Vec::new();
    for _ in 0..1 + world.rng.below(3) {
        let heard = Rc::<RefCell<Heard>>::default();
        ears.push(heard.clone());
        let (is_resp3, changes_left) = (world.rng.one_in(2), 2 + world.rng.below(8));
        // What a full ring keeps from arriving reaches nobody who gives the channel up meanwhile.
        let may_leave = world.style.ring_messages >= 256;
        let (has_greeted, wants) = (false, Vec::new());
        let ears = Subscriber { salt, is_resp3, has_greeted, changes_left, may_leave, heard, wants };
        world.connect(Box::new(ears));
    }
    for number in 0..1 + world.rng.below(2) {
        let messages_left = 2 + world.rng.below(20);
        let published = published.clone();
        world.connect(Box::new(Publisher { number, salt, messages_left, sent: 0, published }));
    }
    Box::new(move |_| ears.iter().try_for_each(|heard| check(&heard.borrow(), &published.borrow())))
}
