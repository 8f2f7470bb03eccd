//! Keyspace events: what subscribers of both servers hear of the same random commands; in order on one shard.
//!
//! For a reference server of version 8.0 and up; older ones know fewer events.
use super::compare::name_of;
use super::pair::{Pair, Words};
use super::{compare_sequences, setting};

/// Sequences of random commands per number of shards.
const SEQUENCES: u64 = 300;

/// Rows that leave open which key they meet.
const OPEN: &[&str] = &["randomkey"];

fn of_random_commands(shards: usize) {
    let Some(mut pair) = Pair::start(shards).filter(|pair| pair.version >= (8, 0)) else { return };
    pair.listen();
    let takes = |words: &Words| !OPEN.contains(&name_of(words).as_str());
    compare_sequences(&mut pair, shards, setting("PERIGEE_SEQUENCES", SEQUENCES), takes);
}

#[test]
fn of_random_commands_on_1_shard() {
    of_random_commands(1);
}

#[test]
fn of_random_commands_on_3_shards() {
    of_random_commands(3);
}
