//! Whatever was run, the log makes the same data.
use perigee::base::hash::KeyHash;
use perigee::cmd::cx::Caller;
use perigee::cmd::table::table;
use perigee::host::gate;
use perigee::wire::{Args, Out, Span};
use std::sync::atomic::Ordering;

use super::rng::Rng;
use super::table::{lines, words};
use super::world::{Records, World, records};

const SEEDS: u64 = 150;
const COMMANDS: usize = 400;

/// Runs records as a loader would: on the store itself, while nothing is due.
fn load(world: &mut World, records: &Records) {
    let shard = world.shards[0].clone();
    world.host().journal.set_on(false);
    world.host().gates.fetch_or(gate::LOADING, Ordering::Relaxed);
    world.host().renew_settings();
    let mut caller = Caller::default();
    for record in records {
        match &record[0][..] {
            b"SELECT" => caller.db = String::from_utf8_lossy(&record[1]).parse().expect("a number"),
            b"MULTI" | b"EXEC" => {}
            _ => run(&shard, &caller, record),
        }
    }
    world.host().gates.fetch_and(!gate::LOADING, Ordering::Relaxed);
    world.host().renew_settings();
}

fn run(shard: &perigee::server::simulation::Shard, caller: &Caller, record: &[Vec<u8>]) {
    let (mut buf, mut spans) = (Vec::new(), Vec::new());
    for word in record {
        spans.push(Span { at: buf.len() as u32, len: word.len() as u32 });
        buf.extend_from_slice(word);
    }
    let mut args = Args::new(&buf, &spans, (0, KeyHash::of(b"")));
    let mut row = table().find(&record[0]).expect("a known command");
    if !row.spec.subs.is_empty() {
        row = table().find_sub(row, &record[1]).expect("a known subcommand");
        args.seek(2);
    }
    let mut out = Out::default();
    let mut store = shard.local.enter().expect("nobody holds it");
    let door = shard.local.door(store.now);
    door.on_one(row, &mut store, caller, &mut args, &mut out);
    let reply = String::from_utf8_lossy(&out.buf).into_owned();
    let words: Vec<_> = record.iter().map(|word| String::from_utf8_lossy(word)).collect();
    assert!(!reply.starts_with('-'), "{} is refused: {reply}", words.join(" "));
}

/// Sends what is left to send of a transaction, and what chance wants to run.
fn random_run(world: &mut World, rng: &mut Rng, table: &[Vec<Vec<u8>>]) -> Vec<String> {
    let (mut log, mut in_multi) = (Vec::new(), false);
    for _ in 0..COMMANDS {
        if rng.one_in(12) {
            let ms = *rng.pick(&[1, 5, 10, 20, 2_000, 200_000]);
            log.push(format!("later {ms}"));
            world.pass(ms);
            if rng.one_in(2) {
                log.push("tick".into());
                world.tick();
            }
        }
        let command = match rng.below(40) {
            0 if !in_multi => words("MULTI"),
            1..=3 if in_multi => words("EXEC"),
            4 => words(&format!("SELECT {}", rng.below(3))),
            5 => words(
                "EVAL \"redis.call('incr','n') redis.call('set','due',1,'PX',10) return redis.pcall('spop','st')\" 0",
            ),
            _ => rng.pick(table).clone(),
        };
        let text = command.iter().map(|word| String::from_utf8_lossy(word).into_owned()).collect::<Vec<_>>();
        log.push(text.join(" "));
        world.run(&command);
        match &command[0][..] {
            b"MULTI" => in_multi = true,
            b"EXEC" => in_multi = false,
            _ => {}
        }
    }
    if in_multi {
        world.line("EXEC");
    }
    log
}

fn check(shards: usize) {
    let mut table: Vec<Vec<Vec<u8>>> = lines().map(|(command, _)| words(command)).collect();
    table.retain(|words| ![&b"later"[..], b"select", b"flushall"].contains(&&words[0][..]));
    let first = std::env::var("LOG_SEED").ok().map(|seed| seed.parse::<u64>().expect("a number"));
    let seeds = std::env::var("LOG_SEEDS").map_or(SEEDS, |seeds| seeds.parse().expect("a number"));
    for seed in first.map_or(0..seeds, |seed| seed..seed + 1) {
        let mut rng = Rng::new(seed);
        let mut world = World::start(shards);
        world.line("DEBUG SET-ACTIVE-EXPIRE 1");
        let log = random_run(&mut world, &mut rng, &table);
        // What is due goes on both sides, or on none.
        world.tick();
        let logged = records(&world.take_log());
        let wanted = world.digest();
        let mut again = World::start(1);
        again.line("DEBUG SET-ACTIVE-EXPIRE 1");
        load(&mut again, &logged);
        again.pass(world.now_ms() - again.now_ms());
        let (digest, different) = (again.digest(), differences(&mut world, &mut again));
        if digest != wanted || !different.is_empty() {
            let show = |record: &Vec<Vec<u8>>| {
                record.iter().map(|word| word.escape_ascii().to_string()).collect::<Vec<_>>().join(" ")
            };
            let records: Vec<String> = logged.iter().map(show).collect();
            panic!(
                "LOG_SEED={seed}, {shards} shards: {different}\n{}\n---\n{}",
                log.join("\n"),
                records.join("\n")
            );
        }
    }
}

/// The keys that differ.
fn differences(one: &mut World, other: &mut World) -> String {
    let mut different = Vec::new();
    for db in 0..16 {
        let mut keys: Vec<Vec<u8>> = Vec::new();
        for world in [&mut *one, &mut *other] {
            world.line(&format!("SELECT {db}"));
            keys.extend(world.line("KEYS *").items().iter().map(|key| key.text().to_vec()));
        }
        keys.sort();
        keys.dedup();
        for key in keys {
            let mut ask = |words: [&[u8]; 3]| {
                let words: Vec<Vec<u8>> =
                    words.iter().filter(|word| !word.is_empty()).map(|word| word.to_vec()).collect();
                [format!("{:?}", one.run(&words)), format!("{:?}", other.run(&words))]
            };
            for question in [[&b"DEBUG"[..], b"DIGEST-VALUE", &key], [b"PEXPIRETIME", &key, b""]] {
                let [ours, theirs] = ask(question);
                if ours != theirs {
                    different.push(format!("{db}:{} {ours} {theirs}", key.escape_ascii()));
                }
            }
        }
    }
    different.join("\n")
}

#[test]
fn of_random_commands_on_one_shard() {
    check(1);
}

#[test]
fn of_random_commands_on_four_shards() {
    check(4);
}
