//! kill -9 at random moments: under load, while the log is rewritten, while data is loaded, while snapshots are taken.
//! Each start has another number of shards, on the same directory.
use std::thread;
use std::time::Duration;

use super::owner::{Owner, settle};
use super::support::{Client, Rng, Server, wait_until};
use super::{Data, digest, info, rounds, seed};

/// Clients at work at once.
const OWNERS: usize = 4;
/// The longest time of work before a kill, milliseconds.
const WORK_MS_MAX: usize = 300;
/// The longest time of a start before a kill, milliseconds.
const START_MS_MAX: usize = 120;
/// Keys that nobody changes, so that files have a size and loading takes a moment.
const BALLAST_KEYS: usize = 20_000;

fn pause(milliseconds: usize) {
    thread::sleep(Duration::from_millis(milliseconds as u64));
}

/// Fills a database that no client works on.
fn load_ballast(client: &mut Client) {
    client.check("SELECT 7", "+OK\r\n");
    let script = format!(
        "for n = 1, {BALLAST_KEYS} do redis.call('SET', 'k' .. n, n) redis.call('HSET', 'h', n, n) end"
    );
    client.run_words(&["EVAL", &script, "0"]);
    client.check("SELECT 0", "+OK\r\n");
}

fn check_ballast(client: &mut Client) {
    client.check("SELECT 7", "+OK\r\n");
    client.check("DBSIZE", format!(":{}\r\n", BALLAST_KEYS + 1));
    client.check("HLEN h", format!(":{BALLAST_KEYS}\r\n"));
    client.check("SELECT 0", "+OK\r\n");
}

/// Has the log rewritten again and again until the server is gone.
fn rewrite_on(mut client: Client) {
    while client.try_send("*1\r\n$12\r\nBGREWRITEAOF\r\n").is_ok() && matches!(client.try_read(), Ok(Some(_)))
    {
        pause(3);
    }
}

/// Lets all clients work, and the log be rewritten, until the server is killed after a while.
fn work_until_killed(server: Server, owners: &mut [Owner], rewrites: bool, rng: &mut Rng) {
    let work_ms = rng.below(WORK_MS_MAX);
    thread::scope(|scope| {
        for owner in owners {
            let client = server.client();
            scope.spawn(move || owner.work(client));
        }
        if rewrites {
            let client = server.client();
            scope.spawn(move || rewrite_on(client));
        }
        pause(work_ms);
        // Killed.
        drop(server);
    });
}

/// Rounds of work and kills with the log, which begin on `shards`.
fn log_survives(policy: &str, shards: usize) {
    let seed = seed();
    eprintln!("PERIGEE_SEED={seed}, appendfsync {policy}, first on {shards} shard(s)");
    let mut rng = Rng::new(seed ^ shards as u64);
    let data = Data::new();
    let args = data.args(&["--appendonly", "yes", "--appendfsync", policy, "--save", ""]);
    let mut owners: Vec<Owner> = (0..OWNERS).map(|id| Owner::new(id, seed)).collect();
    let mut shards = shards;
    for round in 0..rounds() {
        if rng.one_in(2) {
            // Killed while it starts, whatever it does by then.
            let server = Server::launch(shards, &args, &[]);
            pause(rng.below(START_MS_MAX));
            drop(server);
        }
        let server = Server::start(shards, &args);
        let mut client = server.client();
        if round == 0 {
            load_ballast(&mut client);
        }
        check_ballast(&mut client);
        settle(&mut owners, &mut client);
        work_until_killed(server, &mut owners, round % 3 > 0, &mut rng);
        shards = *rng.pick(&[1, 2, 3, 4]);
    }
    let server = Server::start(shards, &args);
    let mut client = server.client();
    settle(&mut owners, &mut client);
    let before = digest(&mut client);
    drop(server);
    let server = Server::start(5 - shards, &args);
    assert_eq!(digest(&mut server.client()), before, "a killed server that rested");
    let acknowledged: u64 = owners.iter().map(|owner| owner.acknowledged).sum();
    assert!(acknowledged > 0, "nobody worked");
}

#[test]
fn with_flushes_before_each_reply_all_that_was_acknowledged_is_there() {
    [1, 4].into_iter().for_each(|shards| log_survives("always", shards));
}

#[test]
fn with_flushes_every_second_all_that_was_acknowledged_is_there() {
    [1, 4].into_iter().for_each(|shards| log_survives("everysec", shards));
}

#[test]
fn without_flushes_all_that_was_acknowledged_is_there() {
    [1, 4].into_iter().for_each(|shards| log_survives("no", shards));
}

/// Begins a snapshot: the digest of all data at its cut; `None`: another goes on, or the server is gone.
fn begin_snapshot(client: &mut Client) -> Option<String> {
    client.try_send("MULTI\r\nDEBUG DIGEST\r\nBGSAVE\r\nEXEC\r\n").ok()?;
    let mut last = None;
    for _ in 0..4 {
        last = client.try_read().ok()?;
        last.as_ref()?;
    }
    let [digest, began] = &last?.0.items()[..] else { panic!("two replies were expected") };
    (!began.is_error()).then(|| digest.string())
}

/// Takes snapshots until the server is gone; `known` ends as the digests that the file may have: of the last one that
/// is known to be complete, and of the one under way.
fn snapshot_on(mut client: Client, known: &mut Vec<String>) {
    loop {
        let Some(digest) = begin_snapshot(&mut client) else { return };
        known.push(digest);
        loop {
            if client.try_send("INFO persistence\r\n").is_err() {
                return;
            }
            let Ok(Some((reply, _))) = client.try_read() else { return };
            if reply.string().contains("rdb_bgsave_in_progress:0") {
                assert!(reply.string().contains("rdb_last_bgsave_status:ok"));
                break;
            }
        }
        known.drain(..known.len() - 1);
    }
}

#[test]
fn snapshots_alone_bring_back_the_last_complete_one() {
    let seed = seed();
    eprintln!("PERIGEE_SEED={seed}, snapshots");
    let mut rng = Rng::new(seed);
    for first in [1, 4] {
        let data = Data::new();
        let args = data.args(&["--save", ""]);
        let (mut shards, mut known) = (first, Vec::new());
        for round in 0..rounds() {
            let server = Server::start(shards, &args);
            let mut client = server.client();
            if round == 0 {
                load_ballast(&mut client);
                known = vec![digest(&mut client)];
                client.check("SAVE", "+OK\r\n");
            }
            check_ballast(&mut client);
            let found = digest(&mut client);
            assert!(known.contains(&found), "round {round}: {found} is none of {known:?}");
            known = vec![found];
            let work_ms = rng.below(2 * WORK_MS_MAX);
            thread::scope(|scope| {
                // They know nothing of what is there, and need not.
                client.check("FLUSHDB", "+OK\r\n");
                let mut owners: Vec<Owner> =
                    (0..OWNERS).map(|id| Owner::new(id, seed + round as u64)).collect();
                for db in 1..3 {
                    client.check(&format!("SELECT {db}"), "+OK\r\n");
                    client.check("FLUSHDB", "+OK\r\n");
                }
                for mut owner in owners.drain(..) {
                    let client = server.client();
                    scope.spawn(move || owner.work(client));
                }
                let snapshots = server.client();
                let known = &mut known;
                scope.spawn(move || snapshot_on(snapshots, known));
                pause(work_ms);
                drop(server);
            });
            shards = *rng.pick(&[1, 2, 3, 4]);
        }
    }
}

#[test]
fn nothing_is_left_of_files_that_were_not_finished() {
    let data = Data::new();
    let args = data.args(&["--appendonly", "yes", "--save", ""]);
    let server = Server::start(2, &args);
    load_ballast(&mut server.client());
    server.client().run("BGREWRITEAOF");
    drop(server);
    let server = Server::start(1, &args);
    let mut client = server.client();
    check_ballast(&mut client);
    client.run("BGREWRITEAOF");
    wait_until("the rewrite ends", || info(&mut client, "aof_rewrite_in_progress") == "0");
    wait_until("old files go", || data.files("appendonlydir").len() == 3);
}
