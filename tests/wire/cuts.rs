//! Snapshots beside writers of every kind: the file is the data of one moment, the cut, whatever was changed, moved or
//! emptied while it was written.
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use super::support::server::fresh_dir;
use super::support::{Client, Rng, Server, wait_until};
use super::{SHARDS, info_field};

/// Elements of each large container.
const ELEMENTS: usize = 100_000;
/// Small keys in each of the databases 0 to 3.
const SMALL_KEYS: usize = 3000;
/// Snapshots under writes.
const SNAPSHOTS: usize = 2;

fn fill(client: &mut Client) {
    let containers = format!(
        "for n = 1, {ELEMENTS} do local name = 'n' .. n \
         redis.call('HSET', 'hash', name, n) redis.call('RPUSH', 'list', name) redis.call('SADD', 'set', name) \
         redis.call('ZADD', 'sorted', n, name) if n % 2 == 0 then redis.call('XADD', 'stream', n .. '-1', 'f', name) end \
         end redis.call('SET', 'text', string.rep('text', 1000000))"
    );
    assert!(!client.run_words(&["EVAL", &containers, "0"]).is_error());
    for db in 0..4 {
        client.check(&format!("SELECT {db}"), "+OK\r\n");
        let small = format!(
            "for n = 1, {SMALL_KEYS} do redis.call('SET', 's' .. n, n) redis.call('RPUSH', 'l' .. n % 100, n) end"
        );
        client.run_words(&["EVAL", &small, "0"]);
    }
    client.check("SELECT 0", "+OK\r\n");
}

/// A change of anything; many find nothing to change.
fn change(rng: &mut Rng) -> String {
    let name = format!("n{}", rng.below(ELEMENTS));
    let (key, other) = (format!("s{}", rng.below(SMALL_KEYS)), format!("s{}", rng.below(SMALL_KEYS)));
    let number = rng.bits();
    match rng.below(30) {
        0 => format!("HSET hash {name} {number}"),
        1 => format!("HDEL hash {name}"),
        2 => format!("HPEXPIREAT hash 4102444800000 FIELDS 1 {name}"),
        3 => format!("RPUSH list {number}"),
        4 => "LPOP list 20".to_string(),
        5 => format!("LSET list {} {number}", rng.below(ELEMENTS / 2)),
        6 => format!("SADD set {number}"),
        7 => format!("SREM set {name}"),
        8 => format!("ZADD sorted {} {name}", rng.below(ELEMENTS)),
        9 => format!("ZREM sorted {name}"),
        10 => format!("XADD stream * f {number}"),
        11 => format!("XTRIM stream MAXLEN {}", ELEMENTS / 3 + rng.below(ELEMENTS / 10)),
        12 => format!("SETRANGE text {} {number}", rng.below(4_000_000)),
        13 => format!("APPEND text {number}"),
        14 => format!("MOVE {key} {}", rng.below(4)),
        15 => format!("RENAME {key} {other}"),
        16 if rng.one_in(4) => format!("SWAPDB {} {}", rng.below(4), rng.below(4)),
        17 if rng.one_in(20) => format!("SELECT {}", rng.below(4)),
        18 if rng.one_in(40) => "FLUSHDB".to_string(),
        19 if rng.one_in(10) => {
            format!("RENAME {} big{}", *rng.pick(&["hash", "list", "set", "sorted"]), rng.below(9))
        }
        20 if rng.one_in(10) => {
            format!("RENAME big{} {}", rng.below(9), *rng.pick(&["hash", "list", "set", "sorted"]))
        }
        21 if rng.one_in(10) => {
            format!("COPY {} copy REPLACE", *rng.pick(&["hash", "list", "stream", "text"]))
        }
        22 if rng.one_in(10) => "UNLINK copy".to_string(),
        23 => format!("PEXPIREAT {key} 4102444800000"),
        24 => format!("RPUSH l{} {number}", rng.below(100)),
        25 => format!("DEL {key} {other}"),
        26 => format!("MSET {key} 1 {other} 2"),
        27 => format!("HINCRBY hash count:{} 1", rng.below(10)),
        _ => format!("SET {key} {number}"),
    }
}

/// Begins a snapshot; returns the digest of what it is of.
fn begin(client: &mut Client) -> String {
    for line in ["MULTI", "DEBUG DIGEST", "BGSAVE"] {
        client.run(line);
    }
    let [digest, began] = &client.run("EXEC").items()[..] else { panic!("two replies were expected") };
    assert_eq!(began.string(), "Background saving started");
    digest.string()
}

fn wait_for_the_end(client: &mut Client) {
    wait_until("the snapshot ends", || info_field(client, "persistence", "rdb_bgsave_in_progress") == 0);
    let info = client.run("INFO persistence").string();
    assert!(info.contains("rdb_last_bgsave_status:ok"), "{info}");
}

#[test]
fn a_snapshot_is_the_data_of_one_moment() {
    for shards in SHARDS {
        let dir = fresh_dir();
        let args = ["--dir", dir.to_str().unwrap(), "--save", ""];
        let server = Server::start(shards, &args);
        let mut client = server.client();
        for snapshot in 0..SNAPSHOTS {
            client.check("FLUSHALL", "+OK\r\n");
            fill(&mut client);
            let stop = AtomicBool::new(false);
            let digest = thread::scope(|scope| {
                for id in 0..3 {
                    let (mut client, stop) = (server.client(), &stop);
                    scope.spawn(move || {
                        let mut rng = Rng::new((snapshot * 10 + id) as u64);
                        while !stop.load(Ordering::Relaxed) {
                            let lines: Vec<String> = (0..8).map(|_| change(&mut rng)).collect();
                            client.send(lines.join("\r\n") + "\r\n");
                            lines.iter().for_each(|_| drop(client.read()));
                        }
                    });
                }
                let digest = begin(&mut client);
                wait_for_the_end(&mut client);
                stop.store(true, Ordering::Relaxed);
                digest
            });
            let other = Server::start(5 - shards, &args);
            assert_eq!(
                other.client().run("DEBUG DIGEST").string(),
                digest,
                "{shards} shards, snapshot {snapshot}"
            );
        }
        let _ = std::fs::remove_dir_all(dir);
    }
}

#[test]
fn emptying_everything_gives_a_snapshot_up() {
    for shards in SHARDS {
        let dir = fresh_dir();
        let server = Server::start(shards, &["--dir", dir.to_str().unwrap(), "--save", ""]);
        let mut client = server.client();
        fill(&mut client);
        client.check("SAVE", "+OK\r\n");
        let old = std::fs::read(dir.join("dump.rdb")).unwrap();
        client.check("SET more 1", "+OK\r\n");
        for line in ["MULTI", "BGSAVE", "FLUSHALL"] {
            client.run(line);
        }
        client.check("EXEC", "*2\r\n+Background saving started\r\n+OK\r\n");
        wait_until("the snapshot ends", || {
            info_field(&mut client, "persistence", "rdb_bgsave_in_progress") == 0
        });
        assert!(server.wait_for_line("Background saving terminated by"), "{}", server.log());
        assert!(std::fs::read(dir.join("dump.rdb")).unwrap() == old, "the file is what it was");
        wait_until("nothing is left over", || std::fs::read_dir(&dir).unwrap().count() == 1);
        // Neither is it a failure, nor in the way of the next one.
        client.check("SET new 1", "+OK\r\n");
        wait_until("another begins", || client.run("BGSAVE").string() == "Background saving started");
        wait_for_the_end(&mut client);
        client.check("DEBUG RELOAD NOSAVE", "+OK\r\n");
        client.check("DBSIZE", ":1\r\n");
        let _ = std::fs::remove_dir_all(dir);
    }
}

#[test]
fn what_was_emptied_does_not_come_back_with_a_restart() {
    for shards in SHARDS {
        let dir = fresh_dir();
        let args = ["--dir", dir.to_str().unwrap(), "--save", "3600 1"];
        let server = Server::start(shards, &args);
        let mut client = server.client();
        fill(&mut client);
        client.check("SAVE", "+OK\r\n");
        client.check("FLUSHALL", "+OK\r\n");
        wait_until("an empty snapshot is there", || info_field(&mut client, "persistence", "rdb_saves") == 2);
        wait_for_the_end(&mut client);
        server.signal("KILL");
        drop(server);
        Server::start(shards, &args).client().check("DBSIZE", ":0\r\n");
        let _ = std::fs::remove_dir_all(dir);
    }
}
