//! Differential tests: the same commands to this server, on 1, 2 and 4 shards, and to a real redis-server; the bytes
//! of the replies must be equal, except where `compare.rs` declares a difference.
//!
//! `PERIGEE_REDIS` names the redis-server, else the first in PATH is taken. Without one the tests fail, or are
//! skipped when `PERIGEE_DIFF_OPTIONAL=1`. `PERIGEE_SEED` starts other random sequences, `PERIGEE_SEQUENCES` says
//! how many.
#[path = "../support/mod.rs"]
mod support;

mod compare;
mod dump;
mod events;
mod generate;
mod pair;
mod scripts;
mod shrink;
mod sorted;
mod sorting;
mod syntax;
mod table;
mod waiting;

use generate::Generator;
use pair::{Mode, Pair, Words};
use support::Rng;

/// Random sequences per number of shards.
const SEQUENCES: u64 = 1500;
/// The seed that random sequences start from.
const SEED: u64 = 1;

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name)
        .ok()
        .map_or(default, |v| v.parse().unwrap_or_else(|_| panic!("{name} must be a number")))
}

fn random_sequences(shards: usize) {
    if let Some(mut pair) = Pair::start(shards) {
        compare_sequences(&mut pair, shards, setting("PERIGEE_SEQUENCES", SEQUENCES), |_| true);
    }
}

/// Says which sequence it was when a test fails that gets no reply.
struct Told(u64, Mode);

impl Drop for Told {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("with PERIGEE_SEED={}, {:?}", self.0, self.1);
        }
    }
}

/// Compares so many random sequences of those commands that `takes` takes.
fn compare_sequences(pair: &mut Pair, shards: usize, count: u64, takes: impl Fn(&Words) -> bool) {
    let generator = Generator::new(pair);
    let first = setting("PERIGEE_SEED", SEED);
    for seed in first..first + count {
        let mut rng = Rng::new(seed.wrapping_mul(0x1000) + shards as u64);
        let mode = Mode {
            resp3: pair.speaks_resp3 && rng.one_in(2),
            pipelined: !rng.one_in(3),
            transaction: if rng.one_in(3) { *rng.pick(&[1, 2, 5, 40]) } else { 0 },
        };
        let (mut commands, questions) = generator.sequence(&mut rng);
        commands.retain(&takes);
        if mode.transaction == 0 {
            commands.retain(|words| !waiting::waits(words));
            if rng.one_in(6) {
                commands = waiting::watched(commands, &mut rng);
            }
        }
        let _told = Told(seed, mode);
        if let Some(found) = pair.first_difference(&commands, &questions, mode) {
            let (commands, found) = shrink::shrink(pair, commands, &questions, mode, found);
            panic!(
                "PERIGEE_SEED={seed}, {shards} shard(s), {mode:?}: these commands tell the servers apart:\n{}{found}",
                shrink::listing(&commands)
            );
        }
    }
}

#[test]
fn random_on_1_shard() {
    random_sequences(1);
}

#[test]
fn random_on_2_shards() {
    random_sequences(2);
}

#[test]
fn random_on_4_shards() {
    random_sequences(4);
}
