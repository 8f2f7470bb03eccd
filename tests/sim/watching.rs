//! Counters that clients raise by WATCH, GET, MULTI, SET, EXEC: no EXEC may succeed when somebody else was there
//! meanwhile, so each counter ends at the number of raises that succeeded. Two counters that are always raised together
//! must always be equal.
use std::cell::Cell;
use std::collections::VecDeque;
use std::rc::Rc;

use crate::client::{Ask, Asked, Checked, Program};
use crate::resp::Value;
use crate::rng::Rng;
use crate::world::World;
use crate::{AtEnd, Join, run_commands};

/// How often the counters were raised.
#[derive(Default)]
struct Raises {
    surely: Cell<i64>,
    /// Raises whose client went before it knew.
    perhaps: Cell<i64>,
}

/// Where a raise stands.
enum Stage {
    Idle,
    /// What the counters are was asked for.
    Reads,
    /// It was seen, of both.
    Knows(i64),
    /// EXEC is under way.
    Executes,
}

/// Raises both counters as a whole.
struct Raiser {
    keys: [String; 2],
    raises: Rc<Raises>,
    tries_left: usize,
    stage: Stage,
}

impl Raiser {
    fn transaction(&self, rng: &mut Rng, seen: i64) -> Vec<String> {
        let [a, b] = &self.keys;
        let next = seen + 1;
        let writes = match rng.below(3) {
            0 => vec![format!("SET {a} {next}"), format!("SET {b} {next}")],
            1 => vec![format!("MSET {a} {next} {b} {next}")],
            _ => vec![format!("INCR {b}"), format!("INCR {a}")],
        };
        let ends = |word: &str| std::iter::once(word.to_string());
        ends("MULTI").chain(writes).chain(ends("EXEC")).collect()
    }
}

impl Program for Raiser {
    fn ask(&mut self, rng: &mut Rng, _: usize) -> Ask {
        let [a, b] = &self.keys;
        match self.stage {
            Stage::Idle if self.tries_left == 0 => Ask::Done,
            Stage::Idle => {
                self.tries_left -= 1;
                if rng.one_in(6) {
                    // Without looking first: always succeeds.
                    self.stage = Stage::Executes;
                    let raise = ["MULTI".into(), format!("INCR {a}"), format!("INCR {b}"), "EXEC".into()];
                    return Ask::Commands(raise.to_vec());
                }
                self.stage = Stage::Reads;
                let watch = match rng.below(3) {
                    0 => vec![format!("WATCH {a} {b}")],
                    1 => vec![format!("WATCH {a}")],
                    _ => vec![format!("WATCH {b}"), format!("WATCH {a}")],
                };
                let read = format!("MGET {a} {b}");
                Ask::Commands(watch.into_iter().chain(std::iter::once(read)).collect())
            }
            Stage::Knows(seen) => {
                self.stage = Stage::Executes;
                Ask::Commands(self.transaction(rng, seen))
            }
            Stage::Reads | Stage::Executes => Ask::Later,
        }
    }

    fn answer(&mut self, asked: &Asked, reply: Value) -> Checked {
        match (&reply, asked.command.split(' ').next()) {
            (Value::Array(both), Some("MGET")) => {
                if both[0] != both[1] {
                    return Err(format!("they differ: {both:?}"));
                }
                self.stage = Stage::Knows(both[0].string().parse().map_err(|_| format!("{both:?}"))?);
                Ok(())
            }
            (Value::Array(_) | Value::Null, Some("EXEC")) => {
                self.stage = Stage::Idle;
                if reply != Value::Null {
                    self.raises.surely.set(self.raises.surely.get() + 1);
                }
                Ok(())
            }
            (Value::Simple(_), _) => Ok(()),
            _ => Err(format!("{reply:?}")),
        }
    }

    fn end(&mut self, under_way: &VecDeque<Asked>) {
        if under_way.iter().any(|asked| asked.command == "EXEC") {
            self.raises.perhaps.set(self.raises.perhaps.get() + 1);
        }
    }
}

/// Clients that raise two counters.
pub fn setting(world: &mut World) -> (Vec<String>, Join) {
    let salt = world.rng.below(1000);
    let keys = [format!("c{salt}:0"), format!("c{salt}:1")];
    (vec![format!("MSET {} 0 {} 0", keys[0], keys[1])], Box::new(|world| join(world, keys)))
}

fn join(world: &mut World, keys: [String; 2]) -> AtEnd {
    let raises = Rc::<Raises>::default();
    for _ in 0..2 + world.rng.below(2) {
        let tries_left = 2 + world.rng.below(8);
        let (keys, raises) = (keys.clone(), raises.clone());
        world.connect(Box::new(Raiser { keys, raises, tries_left, stage: Stage::Idle }));
    }
    Box::new(move |world| {
        let counters = run_commands(world, keys.iter().map(|key| format!("GET {key}")).collect())?;
        let ends: Vec<i64> = counters.iter().map(|value| value.string().parse().unwrap_or(-1)).collect();
        let (surely, perhaps) = (raises.surely.get(), raises.perhaps.get());
        match ends[..] {
            [a, b] if a == b && (surely..=surely + perhaps).contains(&a) => Ok(()),
            _ => Err(format!("{ends:?} after {surely} raises, perhaps {perhaps} more")),
        }
    })
}
