//! A whole server on one thread, under interleavings that a seed chooses: shards, mesh, sessions, clients, the clock,
//! and what can go wrong between them.
//!
//! A seed that fails is named, and `SIM_SEED=<seed> cargo test --test sim <name of the test>` runs it alone; with
//! `SIM_TRACE=1` every step is printed. `SIM_SEEDS=<number>` runs so many seeds instead of the usual number.
#[path = "../support/resp.rs"]
#[allow(dead_code)]
mod resp;
#[path = "../support/rng.rs"]
mod rng;

mod blocked;
mod client;
mod hearing;
mod linear;
mod replies;
mod rings;
mod watching;
mod world;

use std::panic::{AssertUnwindSafe, catch_unwind};

use client::{Ask, Asked, Checked, Program};
use resp::Value;
use rng::Rng;
use world::World;

/// Seeds of a test.
const SEEDS: u64 = 400;

/// Bytes for the eyes of a reader.
fn show(bytes: &[u8]) -> String {
    bytes.escape_ascii().to_string()
}

/// What is checked at a seed's end.
type AtEnd = Box<dyn FnOnce(&mut World) -> Checked>;
/// Chooses what clients a world gets; returns the commands that come before them.
type Setting = fn(&mut World) -> (Vec<String>, Join);
/// Puts the clients into the world; returns what must hold when they are done.
type Join = Box<dyn FnOnce(&mut World) -> AtEnd>;

fn run_seed(seed: u64, settings: &[Setting]) -> Result<u64, String> {
    let mut world = World::new(seed);
    let (mut begin, mut joins) = (Vec::new(), Vec::new());
    for setting in settings {
        let (commands, join) = setting(&mut world);
        begin.extend(commands);
        joins.push(join);
    }
    run_commands(&mut world, begin)?;
    let ends: Vec<AtEnd> = joins.into_iter().map(|join| join(&mut world)).collect();
    world.run()?;
    for end in ends {
        end(&mut world)?;
    }
    world.end()?;
    Ok(world.trace)
}

/// Runs all seeds, or the one asked for.
#[track_caller]
fn run_seeds(settings: &[Setting]) {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let seeds = match number("SIM_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("SIM_SEEDS").unwrap_or(SEEDS),
    };
    for seed in seeds {
        match catch_unwind(AssertUnwindSafe(|| run_seed(seed, settings))) {
            Ok(Ok(_)) => {}
            Ok(Err(error)) => panic!("SIM_SEED={seed}: {error}"),
            Err(_) => panic!("SIM_SEED={seed}: it panicked"),
        }
    }
}

/// A program of fixed commands, for what comes before and after; all replies must be as expected.
struct Fixed {
    commands: Vec<String>,
    replies: std::rc::Rc<std::cell::RefCell<Vec<Value>>>,
}

impl Program for Fixed {
    fn ask(&mut self, _: &mut Rng, _: usize) -> Ask {
        match std::mem::take(&mut self.commands) {
            commands if commands.is_empty() => Ask::Done,
            commands => Ask::Commands(commands),
        }
    }

    fn answer(&mut self, _: &Asked, reply: Value) -> Checked {
        if let Value::Error(error) = &reply {
            return Err(show(error));
        }
        self.replies.borrow_mut().push(reply);
        Ok(())
    }

    fn is_mortal(&self) -> bool {
        false
    }
}

/// Runs commands by a client of their own, and returns their replies.
fn run_commands(world: &mut World, commands: Vec<String>) -> Result<Vec<Value>, String> {
    let replies = std::rc::Rc::default();
    world.connect(Box::new(Fixed { commands, replies: std::rc::Rc::clone(&replies) }));
    world.run()?;
    let replies = replies.take();
    Ok(replies)
}

#[test]
fn pipelines_are_answered_in_order() {
    run_seeds(&[replies::setting]);
}

#[test]
fn rings_of_keys_stay_whole() {
    run_seeds(&[rings::setting]);
}

#[test]
fn blocked_clients_are_served_once_and_in_order() {
    run_seeds(&[blocked::setting]);
}

#[test]
fn single_keys_are_linearizable() {
    run_seeds(&[linear::setting]);
}

#[test]
fn watched_keys_do_not_change_unseen() {
    run_seeds(&[watching::setting]);
}

#[test]
fn subscribers_hear_everything_in_order() {
    run_seeds(&[hearing::setting]);
}

const EVERYTHING: &[Setting] = &[
    replies::setting,
    rings::setting,
    blocked::setting,
    linear::setting,
    watching::setting,
    hearing::setting,
];

#[test]
fn everything_at_once() {
    run_seeds(EVERYTHING);
}

#[test]
fn a_seed_repeats() {
    for seed in 0..20 {
        assert_eq!(run_seed(seed, EVERYTHING), run_seed(seed, EVERYTHING), "seed {seed}");
    }
}
