//! Rings of keys over which values travel: as strings by RENAME and MSET, as members by SMOVE, as elements by LMOVE.
//! Whoever looks at all keys at once must find every value once; any fault of isolation breaks that.
//!
//! Moving by scripts belongs here, too, as another way in [`Mover::command`].
use crate::client::{Ask, Asked, Checked, Program};
use crate::resp::Value;
use crate::rng::Rng;
use crate::world::World;
use crate::{AtEnd, Join, run_commands};

/// The keys of a ring and their values.
#[derive(Clone)]
struct Ring {
    /// What tells the rings of seeds apart, so that they lie on other shards.
    salt: usize,
    keys: usize,
}

impl Ring {
    fn key(&self, kind: &str, n: usize) -> String {
        format!("{kind}{}:{}", self.salt, n % self.keys)
    }

    fn all(&self, kind: &str) -> String {
        (0..self.keys).map(|n| self.key(kind, n)).collect::<Vec<_>>().join(" ")
    }

    fn values(&self) -> Vec<String> {
        (0..self.keys).map(|n| format!("v{n}")).collect()
    }

    /// MSET of all keys with all values in some order.
    fn mset(&self, rng: &mut Rng) -> String {
        let mut values = self.values();
        for n in (1..values.len()).rev() {
            values.swap(n, rng.below(n + 1));
        }
        let pairs = values.iter().enumerate().map(|(n, value)| format!(" {} {value}", self.key("r", n)));
        format!("MSET{}", pairs.collect::<String>())
    }

    fn each(&self, command: &str, kind: &str, rest: &str) -> Vec<String> {
        (0..self.keys).map(|n| format!("{command} {}{rest}", self.key(kind, n))).collect()
    }

    /// Checks that all values are in a reply, once each; empty places do not count.
    fn check(&self, reply: &Value) -> Checked {
        let mut found = Vec::new();
        leaves(reply, &mut found);
        found.sort();
        if found == self.values() { Ok(()) } else { Err(format!("the ring is broken: {reply:?}")) }
    }
}

/// All texts in a reply.
fn leaves(reply: &Value, found: &mut Vec<String>) {
    match reply {
        Value::Array(items) | Value::Set(items) => items.iter().for_each(|item| leaves(item, found)),
        Value::Null => {}
        other => found.push(other.string()),
    }
}

fn whole(commands: Vec<String>) -> Vec<String> {
    let ends = |word: &str| std::iter::once(word.to_string());
    ends("MULTI").chain(commands).chain(ends("EXEC")).collect()
}

/// Moves values on.
struct Mover {
    ring: Ring,
    moves_left: usize,
    name: usize,
}

impl Mover {
    fn rename_all(&self, rng: &mut Rng) -> Vec<String> {
        let (ring, start) = (&self.ring, rng.below(self.ring.keys));
        let aside = format!("t{}:{}", self.name, ring.salt);
        let mut commands = vec![format!("RENAME {} {aside}", ring.key("r", start))];
        for n in 1..ring.keys {
            commands.push(format!("RENAME {} {}", ring.key("r", start + n), ring.key("r", start + n - 1)));
        }
        commands.push(format!("RENAME {aside} {}", ring.key("r", start + ring.keys - 1)));
        whole(commands)
    }

    fn command(&self, rng: &mut Rng) -> Vec<String> {
        let ring = &self.ring;
        let (from, to) = (rng.below(ring.keys), rng.below(ring.keys));
        let smove = format!("SMOVE {} {} v{}", ring.key("s", from), ring.key("s", to), rng.below(ring.keys));
        let side = |rng: &mut Rng| *rng.pick(&["LEFT", "RIGHT"]);
        let (a, b) = (side(rng), side(rng));
        let lmove = format!("LMOVE {} {} {a} {b}", ring.key("l", from), ring.key("l", to));
        match rng.below(8) {
            0 | 1 => self.rename_all(rng),
            2 => vec![ring.mset(rng)],
            3 => whole(vec![format!("DEL {}", ring.all("r")), ring.mset(rng)]),
            4 => vec![smove],
            5 => vec![lmove],
            6 => vec![smove, format!("RPOPLPUSH {} {}", ring.key("l", from), ring.key("l", to))],
            _ => whole(vec![smove, lmove]),
        }
    }
}

impl Program for Mover {
    fn ask(&mut self, rng: &mut Rng, under_way: usize) -> Ask {
        match self.moves_left {
            0 => Ask::Done,
            _ if under_way > 20 => Ask::Later,
            _ => {
                self.moves_left -= 1;
                Ask::Commands(self.command(rng))
            }
        }
    }

    fn answer(&mut self, _: &Asked, reply: Value) -> Checked {
        let failed = |reply: &Value| matches!(reply, Value::Error(_));
        match &reply {
            Value::Array(items) if items.iter().any(failed) => Err(format!("{reply:?}")),
            reply if failed(reply) => Err(format!("{reply:?}")),
            _ => Ok(()),
        }
    }
}

/// Looks at all keys at once.
struct Looker {
    ring: Ring,
    looks_left: usize,
}

impl Program for Looker {
    fn ask(&mut self, rng: &mut Rng, under_way: usize) -> Ask {
        let ring = &self.ring;
        if self.looks_left == 0 {
            return Ask::Done;
        }
        if under_way > 20 {
            return Ask::Later;
        }
        self.looks_left -= 1;
        Ask::Commands(match rng.below(8) {
            0 => vec![format!("MGET {}", ring.all("r"))],
            1 => whole(ring.each("GET", "r", "")),
            2 => vec![format!("EXISTS {}", ring.all("r"))],
            3 => vec![format!("SUNION {}", ring.all("s"))],
            4 => whole(ring.each("SMEMBERS", "s", "")),
            5 => whole(ring.each("LRANGE", "l", " 0 -1")),
            6 => whole(ring.each("LLEN", "l", "")),
            // Of no use by themselves: what lies in a batch beside the looks.
            _ => vec![format!("GET {}", ring.key("r", 0)), format!("LLEN {}", ring.key("l", 1))],
        })
    }

    fn answer(&mut self, asked: &Asked, reply: Value) -> Checked {
        let name = asked.command.split(' ').next().unwrap_or_default();
        match (&reply, name) {
            (Value::Int(n), "EXISTS") if *n as usize != self.ring.keys => {
                Err(format!("{n} of {} keys", self.ring.keys))
            }
            (Value::Array(items), _) if items.iter().all(|item| matches!(item, Value::Int(_))) => {
                let sum: i64 = items.iter().map(Value::int).sum();
                if sum as usize == self.ring.keys {
                    Ok(())
                } else {
                    Err(format!("{sum} elements: {reply:?}"))
                }
            }
            (Value::Array(_) | Value::Set(_), _) => self.ring.check(&reply),
            (Value::Error(_), _) => Err(format!("{reply:?}")),
            _ => Ok(()),
        }
    }
}

/// Movers and lookers around one ring.
pub fn setting(world: &mut World) -> (Vec<String>, Join) {
    let ring = Ring { salt: world.rng.below(1000), keys: 2 + world.rng.below(4) };
    let mut begin = vec![ring.mset(&mut world.rng)];
    for (n, value) in ring.values().iter().enumerate() {
        begin.push(format!("SADD {} {value}", ring.key("s", n)));
        begin.push(format!("RPUSH {} {value}", ring.key("l", n)));
    }
    (begin, Box::new(|world| join(world, ring)))
}

fn join(world: &mut World, ring: Ring) -> AtEnd {
    for name in 0..1 + world.rng.below(3) {
        let moves_left = 2 + world.rng.below(12);
        world.connect(Box::new(Mover { ring: ring.clone(), moves_left, name }));
    }
    for _ in 0..1 + world.rng.below(2) {
        let looks_left = 2 + world.rng.below(12);
        world.connect(Box::new(Looker { ring: ring.clone(), looks_left }));
    }
    Box::new(move |world| {
        for (kind, rest) in [("GET r", ""), ("SMEMBERS s", ""), ("LRANGE l", " 0 -1")] {
            let (command, kind) = kind.split_once(' ').unwrap_or_default();
            let replies = run_commands(world, ring.each(command, kind, rest))?;
            ring.check(&Value::Array(replies))?;
        }
        Ok(())
    })
}
