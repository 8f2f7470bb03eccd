//! Commands that wait: whoever waits is served once, in order, by whatever makes the key ready, on whatever shards.
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::support::{Client, Rng, Server, Value, command, wait_until, words};
use super::{SHARDS, check, info_field, on_all_shards};

/// Waits until so many clients are blocked.
fn wait_blocked(client: &mut Client, count: u64) {
    wait_until("clients are blocked", || info_field(client, "clients", "blocked_clients") == count);
}

/// A client that is blocked in a command, behind `before` others.
fn blocked(server: &Server, client: &mut Client, before: u64, line: &str) -> Client {
    let mut waiter = server.client();
    waiter.send_words(&words(line));
    wait_blocked(client, before + 1);
    waiter
}

/// Sends the lines at once.
fn send(client: &mut Client, lines: &[&str]) {
    client.send(lines.iter().flat_map(|line| command(&words(line))).collect::<Vec<u8>>());
}

/// The texts of a reply, one behind the other.
fn texts(value: &Value) -> String {
    match value {
        Value::Array(items) => {
            format!("[{}]", items.iter().map(texts).collect::<Vec<_>>().join(" "))
        }
        Value::Int(n) => n.to_string(),
        Value::Null => "nil".into(),
        Value::Map(pairs) => {
            let pairs = pairs.iter().map(|(key, value)| format!("{}: {}", texts(key), texts(value)));
            format!("{{{}}}", pairs.collect::<Vec<_>>().join(" "))
        }
        other => other.string(),
    }
}

#[track_caller]
fn expect(client: &mut Client, want: &str) {
    assert_eq!(texts(&client.read()), want);
}

#[test]
fn what_is_there_is_served_at_once() {
    check(
        r#"
        RPUSH l a b c d e f                 => :6
        BLPOP none l 0                      => *2\r\n$1\r\nl\r\n$1\r\na
        BRPOP none l l 0                    => *2\r\n$1\r\nl\r\n$1\r\nf
        BLMPOP 0 3 none nil l RIGHT COUNT 2 => *2\r\n$1\r\nl\r\n*2\r\n$1\r\ne\r\n$1\r\nd
        BLMOVE l m LEFT RIGHT 0             => $1\r\nb
        BRPOPLPUSH l m 0                    => $1\r\nc
        ZADD z 1 a 2 b 3 c 4 d              => :4
        BZPOPMIN none z 0                   => *3\r\n$1\r\nz\r\n$1\r\na\r\n$1\r\n1
        BZPOPMAX none z 0                   => *3\r\n$1\r\nz\r\n$1\r\nd\r\n$1\r\n4
        BZMPOP 0 2 none z MAX COUNT 9       => *2\r\n$1\r\nz\r\n*2\r\n*2\r\n$1\r\nc\r\n$1\r\n3\r\n*2\r\n$1\r\nb\r\n$1\r\n2
        XADD x 1-1 f v                      => $3\r\n1-1
        XREAD BLOCK 0 STREAMS x 0           => *1\r\n*2\r\n$1\r\nx\r\n*1\r\n*2\r\n$3\r\n1-1\r\n*2\r\n$1\r\nf\r\n$1\r\nv
        LRANGE m 0 -1                       => *2\r\n$1\r\nc\r\n$1\r\nb
        SET s v                             => +OK
        BLPOP none s 0                      => -WRONGTYPE Operation against a key holding the wrong kind of value
        BZPOPMIN m 0                        => -WRONGTYPE Operation against a key holding the wrong kind of value
        BLMOVE m s LEFT LEFT 0              => -WRONGTYPE Operation against a key holding the wrong kind of value
        XREAD BLOCK 0 STREAMS m 0           => -WRONGTYPE Operation against a key holding the wrong kind of value
        XREADGROUP GROUP g c BLOCK 0 STREAMS x > => -NOGROUP No such key 'x' or consumer group 'g' in XREADGROUP with GROUP option
        LLEN m                              => :2
        BLPOP k -1                          => -ERR timeout is negative
        BLPOP k x                           => -ERR timeout is not a float or out of range
        BLPOP k 1e300                       => -ERR timeout is out of range
        BLMPOP x 1 k UP                     => -ERR syntax error
        BZMPOP x 0 k MIN                    => -ERR numkeys should be greater than 0
        BZMPOP x 1 k MIN                    => -ERR timeout is not a float or out of range
        XREAD BLOCK -1 STREAMS k 0          => -ERR timeout is negative
        "#,
    );
}

#[test]
fn within_a_transaction_nobody_waits() {
    check(
        r#"
        XGROUP CREATE x g $ MKSTREAM             => +OK
        MULTI                                    => +OK
        BLPOP a b c 0                            => +QUEUED
        BLMOVE a b LEFT LEFT 0                   => +QUEUED
        BRPOPLPUSH a b 0                         => +QUEUED
        BLMPOP 0 2 a b LEFT                      => +QUEUED
        BZPOPMAX a b c 0                         => +QUEUED
        BZMPOP 0 2 a b MIN                       => +QUEUED
        XREAD BLOCK 0 STREAMS x y $ $            => +QUEUED
        XREADGROUP GROUP g c BLOCK 0 STREAMS x > => +QUEUED
        RPUSH b v                                => +QUEUED
        BLPOP a b c 0                            => +QUEUED
        EXEC                                     => *10\r\n*-1\r\n$-1\r\n$-1\r\n*-1\r\n*-1\r\n*-1\r\n*-1\r\n*-1\r\n:1\r\n*2\r\n$1\r\nb\r\n$1\r\nv
        "#,
    );
}

#[test]
fn waiters_at_a_key_are_served_in_their_order() {
    on_all_shards(|server, client| {
        for key in ["a", "b", "c", "d"] {
            let mut waiters: Vec<Client> =
                (0..6).map(|n| blocked(server, client, n, &format!("BLPOP other {key} 0"))).collect();
            client.run(&format!("RPUSH {key} 0 1"));
            client.run(&format!("RPUSH {key} 2"));
            send(client, &["MULTI", &format!("RPUSH {key} 3"), "INCR n", &format!("RPUSH {key} 4"), "EXEC"]);
            (0..5).for_each(|_| drop(client.read()));
            client.run(&format!("RPUSH {key} 5 6"));
            for (n, waiter) in waiters.iter_mut().enumerate() {
                expect(waiter, &format!("[{key} {n}]"));
            }
            client.check(&format!("LRANGE {key} 0 -1"), "*1\r\n$1\r\n6\r\n");
            client.run(&format!("DEL {key}"));
            wait_blocked(client, 0);
        }
    });
}

#[test]
fn everything_that_makes_a_key_ready_serves() {
    on_all_shards(|server, client| {
        client.run("SELECT 1");
        client.run("RPUSH swapped v");
        client.run("SELECT 0");
        for (wait, push, got) in [
            ("BLPOP k 0", "LPUSH k v", "[k v]"),
            ("BRPOP k 0", "RPUSH k u v", "[k v]"),
            ("BLPOP k 0", "RENAME src k", "[k v]"),
            ("BLPOP k 0", "COPY src k", "[k v]"),
            ("BLPOP k 0", "LMOVE src k LEFT LEFT", "[k v]"),
            ("BLPOP k 0", "SORT src ALPHA STORE k", "[k v]"),
            ("BLPOP swapped 0", "SWAPDB 0 1", "[swapped v]"),
            ("BLMPOP 0 2 j k LEFT COUNT 2", "RPUSH k u v w", "[k [u v]]"),
            ("BLMOVE k dst LEFT LEFT 0", "RPUSH k v", "v"),
            ("BRPOPLPUSH k dst 0", "RPUSH k v", "v"),
            ("BZPOPMIN k 0", "ZADD k 2 b 1 a", "[k a 1]"),
            ("BZPOPMAX j k 0", "ZADD k 2 b 1 a", "[k b 2]"),
            ("BZPOPMIN k 0", "ZUNIONSTORE k 1 zsrc", "[k m 1]"),
            ("BZPOPMIN k 0", "GEOADD k 0 0 m", "[k m 3377699720527872]"),
            ("BZMPOP 0 2 j k MAX COUNT 5", "ZADD k 1 a 2 b", "[k [[b 2] [a 1]]]"),
            ("XREAD BLOCK 0 STREAMS j k $ $", "XADD k 1-1 f v", "[[k [[1-1 [f v]]]]]"),
            ("XREAD BLOCK 0 COUNT 1 STREAMS k 0", "XADD k 1-1 f v", "[[k [[1-1 [f v]]]]]"),
            ("XREAD BLOCK 0 STREAMS k +", "XADD k 1-1 f v", "[[k [[1-1 [f v]]]]]"),
        ] {
            client.run("DEL k src dst zsrc");
            client.run("RPUSH src v");
            client.run("ZADD zsrc 1 m");
            let mut waiter = blocked(server, client, 0, wait);
            assert!(!client.run(push).is_error(), "{push}");
            assert_eq!(texts(&waiter.read()), got, "{wait}; {push}");
            wait_blocked(client, 0);
        }
        // RESTORE, whose payload is not known here.
        client.run("DEL k src");
        client.run("RPUSH src v");
        let dump = client.run("DUMP src");
        let mut waiter = blocked(server, client, 0, "BLPOP k 0");
        client.run_words(&[&b"RESTORE"[..], b"k", b"0", dump.text()]);
        expect(&mut waiter, "[k v]");
    });
}

#[test]
fn a_transaction_serves_when_it_is_done() {
    on_all_shards(|server, client| {
        let exec = |client: &mut Client, lines: &[&str]| {
            send(client, &[&["MULTI"], lines, &["EXEC"]].concat());
            (0..=lines.len()).for_each(|_| drop(client.read()));
            texts(&client.read())
        };
        // What comes and goes within is seen by nobody.
        let mut waiter = blocked(server, client, 0, "BLPOP a b c 0");
        assert_eq!(exec(client, &["RPUSH a 1", "DEL a"]), "[1 1]");
        assert_eq!(exec(client, &["RPUSH b 1", "DEL b", "SET b x"]), "[1 1 OK]");
        assert_eq!(info_field(client, "clients", "blocked_clients"), 1);
        client.run("DEL b");
        // The list is complete when it is looked at, and the first change comes first.
        assert_eq!(exec(client, &["RPUSH c 1", "RPUSH a 2", "LPUSH c 0", "LLEN c", "LLEN a"]), "[1 1 2 2 1]");
        let got = texts(&waiter.read());
        assert!(["[c 0]", "[a 2]"].contains(&got.as_str()), "{got}");
        client.run("FLUSHALL");
        // Several waiters of several shards, one transaction.
        let mut waiters: Vec<Client> =
            (0..8).map(|n| blocked(server, client, n, &format!("BLPOP k{n} 0"))).collect();
        let pushes: Vec<String> = (0..8).map(|n| format!("RPUSH k{n} {n}")).collect();
        exec(client, &pushes.iter().map(String::as_str).collect::<Vec<_>>());
        for (n, waiter) in waiters.iter_mut().enumerate() {
            expect(waiter, &format!("[k{n} {n}]"));
        }
        client.check("DBSIZE", ":0\r\n");
        // A stream: all entries at once.
        let mut waiter = blocked(server, client, 0, "XREAD BLOCK 0 STREAMS x $");
        exec(client, &["XADD x 1-1 a 1", "XADD x 2-1 b 2"]);
        expect(&mut waiter, "[[x [[1-1 [a 1]] [2-1 [b 2]]]]]");
    });
}

#[test]
fn keys_over_several_shards() {
    on_all_shards(|server, client| {
        for key in 0..12 {
            let wait = format!("BLPOP {} 0", (0..12).map(|n| format!("k{n}")).collect::<Vec<_>>().join(" "));
            let (mut one, mut other) = (blocked(server, client, 0, &wait), blocked(server, client, 1, &wait));
            client.run(&format!("RPUSH k{key} a"));
            expect(&mut one, &format!("[k{key} a]"));
            wait_blocked(client, 1);
            client.run(&format!("RPUSH k{} b", (key + 1) % 12));
            expect(&mut other, &format!("[k{} b]", (key + 1) % 12));
            wait_blocked(client, 0);
            client.check("DBSIZE", ":0\r\n");
        }
        assert_eq!(info_field(client, "clients", "total_blocking_keys"), 0);
        // What one connection pushes and reads in one go is as on one shard.
        for key in 0..12 {
            let mut waiter = blocked(server, client, 0, &format!("BLMOVE k{key} to RIGHT LEFT 0"));
            client.run(&format!("RPUSH k{key} a"));
            expect(&mut waiter, "a");
        }
        client.check("LLEN to", ":12\r\n");
    });
}

#[test]
fn everything_is_delivered_exactly_once() {
    const QUEUES: usize = 6;
    const WAITERS: usize = 8;
    const PUSHERS: usize = 4;
    const PUSHES: usize = 250;
    for shards in SHARDS {
        let server = Server::start(shards, &[]);
        let queues: Vec<String> = (0..QUEUES).map(|n| format!("q{n}")).collect();
        let got: Vec<String> = std::thread::scope(|scope| {
            let waiters: Vec<_> = (0..WAITERS)
                .map(|waiter| {
                    let (server, queues) = (&server, &queues);
                    scope.spawn(move || {
                        let (mut client, mut rng, mut got) =
                            (server.client(), Rng::new(waiter as u64), Vec::new());
                        loop {
                            // Some keys in any order, and the one at which the end is told.
                            let keys = (0..1 + rng.below(4)).map(|_| rng.pick(queues).clone());
                            let keys: Vec<String> = keys.chain(["end".to_string()]).collect();
                            let words = match rng.below(3) {
                                0 => [vec!["BLPOP".to_string()], keys, vec!["0".into()]].concat(),
                                1 => [vec!["BRPOP".to_string()], keys, vec!["0".into()]].concat(),
                                _ => {
                                    let head = vec!["BLMPOP".to_string(), "0".into(), keys.len().to_string()];
                                    [head, keys, vec!["LEFT".into(), "COUNT".into(), "1".into()]].concat()
                                }
                            };
                            let reply = client.run_words(&words).items();
                            let element = match &reply[1] {
                                Value::Array(items) => items[0].string(),
                                other => other.string(),
                            };
                            if reply[0].text() == b"end" {
                                return got;
                            }
                            got.push(element);
                        }
                    })
                })
                .collect();
            let pushers: Vec<_> = (0..PUSHERS)
                .map(|pusher| {
                    let (server, queues) = (&server, &queues);
                    scope.spawn(move || {
                        let (mut client, mut rng) = (server.client(), Rng::new(100 + pusher as u64));
                        for n in 0..PUSHES {
                            let (queue, element) = (rng.pick(queues), format!("{pusher}-{n}"));
                            if rng.one_in(3) {
                                let other = rng.pick(queues);
                                send(
                                    &mut client,
                                    &[
                                        "MULTI",
                                        &format!("RPUSH tmp {element}"),
                                        &format!("RPOPLPUSH tmp {queue}"),
                                    ],
                                );
                                send(&mut client, &[&format!("LLEN {other}"), "EXEC"]);
                                (0..4).for_each(|_| drop(client.read()));
                                assert_eq!(client.read().items().len(), 3);
                            } else {
                                assert!(client.run(&format!("LPUSH {queue} {element}")).int() > 0);
                            }
                        }
                    })
                })
                .collect();
            pushers.into_iter().for_each(|pusher| pusher.join().unwrap());
            // What is left is in queues that nobody asks for any more.
            let mut client = server.client();
            let left = queues.iter().flat_map(|queue| match client.run(&format!("LPOP {queue} 10000")) {
                Value::Null => Vec::new(),
                elements => elements.items().iter().map(Value::string).collect(),
            });
            let mut got: Vec<String> = left.collect();
            (0..WAITERS).for_each(|_| drop(client.run("RPUSH end x")));
            got.extend(waiters.into_iter().flat_map(|waiter| waiter.join().unwrap()));
            got
        });
        let mut counts = BTreeMap::new();
        got.iter().for_each(|element| *counts.entry(element).or_insert(0) += 1);
        assert!(counts.values().all(|count| *count == 1), "twice on {shards} shard(s)");
        assert_eq!(counts.len(), PUSHERS * PUSHES, "lost on {shards} shard(s)");
        assert_eq!(info_field(&mut server.client(), "clients", "blocked_clients"), 0);
    }
}

#[test]
fn moves_that_wait_for_each_other() {
    on_all_shards(|server, client| {
        // A chain: what the first gets, all pass on.
        let mut chain: Vec<Client> = (0..7)
            .map(|n| blocked(server, client, n, &format!("BLMOVE c{} c{n} LEFT RIGHT 0", n + 1)))
            .collect();
        chain.push(blocked(server, client, 7, "BLPOP c0 0"));
        client.run("RPUSH c7 v");
        chain.iter_mut().take(7).for_each(|waiter| expect(waiter, "v"));
        expect(&mut chain[7], "[c0 v]");
        client.check("DBSIZE", ":0\r\n");
        // To itself, and in a circle.
        let mut turn = blocked(server, client, 0, "BLMOVE self self LEFT RIGHT 0");
        client.run("RPUSH self a b");
        expect(&mut turn, "a");
        client.check("LRANGE self 0 -1", "*2\r\n$1\r\nb\r\n$1\r\na\r\n");
        client.run("FLUSHALL");
        let mut there = blocked(server, client, 0, "BRPOPLPUSH l1 l2 0");
        let mut back = blocked(server, client, 1, "BRPOPLPUSH l2 l1 0");
        client.run("RPUSH l1 v");
        expect(&mut there, "v");
        expect(&mut back, "v");
        wait_blocked(client, 0);
        client.check("LRANGE l1 0 -1", "*1\r\n$1\r\nv\r\n");
        client.check("EXISTS l2", ":0\r\n");
    });
}

#[test]
fn an_element_that_goes_round_is_never_lost() {
    const PLACES: usize = 6;
    const ROUNDS: usize = 60;
    for shards in SHARDS {
        let server = Server::start(shards, &[]);
        std::thread::scope(|scope| {
            for place in 0..PLACES {
                let server = &server;
                scope.spawn(move || {
                    let mut client = server.client();
                    let line = format!("BLMOVE r{place} r{} LEFT RIGHT 0", (place + 1) % PLACES);
                    (0..ROUNDS).for_each(|_| assert_eq!(client.run(&line).text(), b"token"));
                });
            }
            server.client().run("RPUSH r0 token");
        });
        let mut client = server.client();
        client.check("LRANGE r0 0 -1", "*1\r\n$5\r\ntoken\r\n");
        client.check("DBSIZE", ":1\r\n");
    }
}

#[test]
fn what_does_not_fit_leaves_the_client_waiting() {
    on_all_shards(|server, client| {
        let mut lists = blocked(server, client, 0, "BLPOP k other 0");
        let mut sets = blocked(server, client, 1, "BZPOPMIN k other 0");
        let mut entries = blocked(server, client, 2, "XREAD BLOCK 0 STREAMS k other $ $");
        for line in
            ["SET k v", "DEL k", "HSET k f v", "DEL k", "SADD k m", "RENAME k j", "DEL j", "EXPIRE k 1"]
        {
            client.run(line);
        }
        assert_eq!(info_field(client, "clients", "blocked_clients"), 3);
        client.run("XADD k 1-1 f v");
        expect(&mut entries, "[[k [[1-1 [f v]]]]]");
        client.run("DEL k");
        client.run("ZADD k 1 m");
        expect(&mut sets, "[k m 1]");
        client.run("RPUSH k v");
        expect(&mut lists, "[k v]");
        // The target became something else meanwhile: the refusal, and the element stays.
        let mut mover = blocked(server, client, 0, "BLMOVE k target LEFT LEFT 0");
        let mut popper = blocked(server, client, 1, "BLPOP k 0");
        client.run("SET target v");
        client.run("RPUSH k v");
        expect(&mut mover, "WRONGTYPE Operation against a key holding the wrong kind of value");
        expect(&mut popper, "[k v]");
        // An entry that is not new, or gone before anybody looked.
        client.run("XADD x 5-0 f v");
        let mut reader = blocked(server, client, 0, "XREAD BLOCK 0 STREAMS x $");
        client.run("XDEL x 5-0");
        client.run("XADD x 6-0 f v");
        expect(&mut reader, "[[x [[6-0 [f v]]]]]");
        let mut reader = blocked(server, client, 0, "XREAD BLOCK 0 STREAMS x 7");
        client.run("XADD x 7-0 f v");
        client.run("XADD x 8-0 f v");
        expect(&mut reader, "[[x [[8-0 [f v]]]]]");
    });
}

#[test]
fn readers_of_a_group_hear_that_it_is_gone() {
    on_all_shards(|server, client| {
        let gone = "NOGROUP No such key 'x' or consumer group 'g' in XREADGROUP with GROUP option";
        let other = "WRONGTYPE Operation against a key holding the wrong kind of value";
        for (change, want) in [
            ("DEL x", gone),
            ("UNLINK x", gone),
            ("FLUSHDB", gone),
            ("FLUSHALL", gone),
            ("SWAPDB 0 1", gone),
            ("RENAME x y", gone),
            ("MOVE x 2", gone),
            ("PEXPIRE x -1", gone),
            ("PEXPIRE x 20", gone),
            ("XGROUP DESTROY x g", gone),
            ("SET x v", other),
            ("RENAME l x", other),
        ] {
            client.run("FLUSHALL");
            client.run("RPUSH l a");
            client.run("XGROUP CREATE x g $ MKSTREAM");
            client.run("XGROUP CREATE z g $ MKSTREAM");
            let mut plain = blocked(server, client, 0, "XREAD BLOCK 0 STREAMS x z $ $");
            let mut reader = blocked(server, client, 1, "XREADGROUP GROUP g c BLOCK 0 STREAMS z x > >");
            client.run(change);
            let got = texts(&reader.read());
            let swapped = change.contains("SWAPDB") || change.contains("FLUSH");
            assert!(
                got == want || swapped && got == gone.replace('x', "z").replace("ezists", "exists"),
                "{change}: {got}"
            );
            wait_blocked(client, 1);
            client.run("DEL x z");
            client.run("XADD x 9-9 f v");
            expect(&mut plain, "[[x [[9-9 [f v]]]]]");
        }
    });
}

#[test]
fn groups_deliver_to_one_reader_each() {
    on_all_shards(|server, client| {
        client.run("XGROUP CREATE x g $ MKSTREAM");
        client.run("XGROUP CREATE x h $");
        let wait = |group: &str, consumer: &str| {
            format!("XREADGROUP GROUP {group} {consumer} BLOCK 0 COUNT 1 STREAMS x >")
        };
        let mut one = blocked(server, client, 0, &wait("g", "one"));
        let mut two = blocked(server, client, 1, &wait("g", "two"));
        let mut three = blocked(server, client, 2, &wait("h", "three"));
        client.run("XADD x 1-1 a 1");
        expect(&mut one, "[[x [[1-1 [a 1]]]]]");
        expect(&mut three, "[[x [[1-1 [a 1]]]]]");
        wait_blocked(client, 1);
        client.run("XADD x 2-1 b 2");
        expect(&mut two, "[[x [[2-1 [b 2]]]]]");
        client.check("XLEN x", ":2\r\n");
        assert_eq!(client.run("XPENDING x g").items()[0].int(), 2);
        // What is pending is told at once, nothing new is waited for.
        let mut again = server.client();
        let got = again.run("XREADGROUP GROUP g one BLOCK 0 STREAMS x 0");
        assert_eq!(texts(&got), "[[x [[1-1 [a 1]]]]]");
    });
}

#[test]
fn others_may_end_a_wait() {
    on_all_shards(|server, client| {
        let count = |client: &mut Client| -> (String, String) {
            let info = client.run("INFO commandstats").string();
            let line =
                info.lines().find_map(|line| line.strip_prefix("cmdstat_bzpopmin:")).unwrap_or_default();
            let field = |name: &str| {
                line.split(',').find_map(|f| f.strip_prefix(name)).unwrap_or_default().to_string()
            };
            (field("calls="), field("failed_calls="))
        };
        let mut free = server.client();
        let free_id = free.run("CLIENT ID").int();
        client.check(&format!("CLIENT UNBLOCK {free_id}"), ":0\r\n");
        for (wait, nil) in [
            ("BLPOP a b c d 0", "*-1\r\n"),
            ("BLMOVE a b LEFT LEFT 0", "*-1\r\n"),
            ("BZPOPMIN a b c d 0", "*-1\r\n"),
            ("XREAD BLOCK 0 STREAMS a b $ $", "*-1\r\n"),
            ("WAIT 1 0", ":0\r\n"),
        ] {
            for (how, want) in
                [("", nil), ("TIMEOUT", nil), ("ERROR", "-UNBLOCKED client unblocked via CLIENT UNBLOCK\r\n")]
            {
                let mut waiter = server.client();
                let id = waiter.run("CLIENT ID").int();
                waiter.send_words(&words(wait));
                waiter.send_words(&words("PING"));
                wait_blocked(client, 1);
                let list = client.run(&format!("CLIENT LIST ID {id}")).string();
                assert!(list.contains(" flags=b "), "{list}");
                client.check(&format!("CLIENT UNBLOCK {id} {how}"), ":1\r\n");
                client.check(&format!("CLIENT UNBLOCK {id} {how}"), ":0\r\n");
                assert_eq!(waiter.read_bytes(), want.as_bytes(), "{wait} {how}");
                assert_eq!(waiter.read_bytes(), b"+PONG\r\n");
                wait_blocked(client, 0);
                // It waits no more.
                client.check("RPUSH a v", ":1\r\n");
                client.check("LPOP a", "$1\r\nv\r\n");
            }
        }
        // An end with an error counts as a failure.
        assert_eq!(count(client), ("3".to_string(), "1".to_string()));
    });
}

#[test]
fn waits_end_with_their_time() {
    on_all_shards(|_, client| {
        for (wait, ms, nil) in [
            ("BLPOP a b c d 0.1", 100, "*-1\r\n"),
            ("BRPOP a .05", 50, "*-1\r\n"),
            ("BLPOP a 0.0001", 1, "*-1\r\n"),
            ("BLMPOP 0.03 2 a b LEFT", 30, "*-1\r\n"),
            ("BLMOVE a b LEFT LEFT 0.03", 30, "*-1\r\n"),
            ("BRPOPLPUSH a b 0.03", 30, "*-1\r\n"),
            ("BZPOPMIN a b 0.03", 30, "*-1\r\n"),
            ("BZMPOP 0.03 2 a b MIN", 30, "*-1\r\n"),
            ("XREAD BLOCK 30 STREAMS a b $ 0", 30, "*-1\r\n"),
            ("WAIT 1 30", 30, ":0\r\n"),
        ] {
            let start = Instant::now();
            client.check(wait, nil);
            // The clock that ends it counts whole milliseconds.
            let ms_passed = start.elapsed() + Duration::from_millis(1);
            assert!(ms_passed >= Duration::from_millis(ms), "{wait}: {ms_passed:?}");
        }
        client.check("DBSIZE", ":0\r\n");
        assert_eq!(info_field(client, "clients", "blocked_clients"), 0);
        client.run("HELLO 3");
        for wait in
            ["BLPOP a 0.01", "BLMOVE a b LEFT LEFT 0.01", "BZMPOP 0.01 1 a MIN", "XREAD BLOCK 5 STREAMS a $"]
        {
            client.check(wait, "_\r\n");
        }
    });
}

#[test]
fn who_is_gone_takes_nothing() {
    on_all_shards(|server, client| {
        for round in 0..4 {
            let waits =
                ["BLPOP a b c 0", "BLMOVE b to LEFT LEFT 0", "BZPOPMIN z 0", "XREAD BLOCK 0 STREAMS x $"];
            let mut gone: Vec<Client> =
                waits.iter().enumerate().map(|(n, wait)| blocked(server, client, n as u64, wait)).collect();
            let mut live = blocked(server, client, 4, "BLPOP c b a 0");
            if round % 2 == 0 {
                gone.clear();
            } else {
                let list = client.run("CLIENT LIST").string();
                let ids =
                    list.lines().filter(|line| !line.contains("cmd=client") && !line.contains("idle=-"));
                let ids: Vec<&str> = ids
                    .filter(|line| line.contains(" flags=b "))
                    .filter_map(|line| line.strip_prefix("id=")?.split(' ').next())
                    .collect();
                ids[..4].iter().for_each(|id| client.check(&format!("CLIENT KILL ID {id}"), ":1\r\n"));
            }
            wait_blocked(client, 1);
            client.run("RPUSH a v");
            expect(&mut live, "[a v]");
            assert_eq!(client.run("RPUSH b v").int(), 1);
            assert_eq!(client.run("ZADD z 1 m").int(), 1);
            client.check("EXISTS a b to z", ":2\r\n");
            client.run("DEL b z");
        }
    });
}

#[test]
fn what_is_sent_behind_a_wait_runs_behind_it() {
    on_all_shards(|server, client| {
        let mut waiter = server.client();
        send(
            &mut waiter,
            &["SET n 1", "INCR n", "BLPOP a b c 0", "INCR n", "BLPOP a 0", "MGET n m", "ECHO end"],
        );
        assert_eq!(waiter.read_exact(9), b"+OK\r\n:2\r\n");
        wait_blocked(client, 1);
        // More comes, in pieces.
        waiter.send("*2\r\n$4\r\nINCR\r\n$1");
        client.check("GET n", "$1\r\n2\r\n");
        waiter.send("\r\nn\r\n");
        client.check("GET n", "$1\r\n2\r\n");
        client.run("RPUSH b v");
        expect(&mut waiter, "[b v]");
        expect(&mut waiter, "3");
        wait_blocked(client, 1);
        waiter.expect_silence();
        client.run("RPUSH a w");
        expect(&mut waiter, "[a w]");
        expect(&mut waiter, "[3 nil]");
        expect(&mut waiter, "end");
        expect(&mut waiter, "4");
        // A list that it pushes itself is no wait at all.
        send(&mut waiter, &["RPUSH l a b", "BLPOP l 0", "BRPOP l 0", "RPUSH l c", "BLMOVE l m LEFT LEFT 0"]);
        for want in ["2", "[l a]", "[l b]", "1", "c"] {
            expect(&mut waiter, want);
        }
    });
}

#[test]
fn pushes_and_looks_in_one_pipeline() {
    const ROUNDS: usize = 40;
    on_all_shards(|server, client| {
        // Who waits at keys of several shards is served on the spot, as long as these shards are free: mostly.
        let mut on_the_spot = 0;
        for n in 0..ROUNDS {
            let mut waiter = blocked(server, client, 0, &format!("BLPOP x k{n} y z 0"));
            send(client, &[&format!("RPUSH k{n} a b"), &format!("LRANGE k{n} 0 -1")]);
            expect(client, "2");
            on_the_spot += usize::from(texts(&client.read()) == "[b]");
            expect(&mut waiter, &format!("[k{n} a]"));
            wait_blocked(client, 0);
        }
        assert!(on_the_spot > ROUNDS / 2, "{on_the_spot} of {ROUNDS}");
    });
}

#[test]
fn replies_may_be_off_or_of_the_new_protocol() {
    on_all_shards(|server, client| {
        let mut silent = server.client();
        send(&mut silent, &["CLIENT REPLY OFF", "BLPOP a b c 0", "SET done 1", "CLIENT REPLY ON"]);
        wait_blocked(client, 1);
        client.run("RPUSH b v");
        assert_eq!(silent.read_exact(5), b"+OK\r\n");
        client.check("GET done", "$1\r\n1\r\n");
        send(&mut silent, &["CLIENT REPLY SKIP", "BLPOP a b c 0", "ECHO x"]);
        wait_blocked(client, 1);
        client.run("RPUSH c v");
        assert_eq!(silent.read_bytes(), b"$1\r\nx\r\n");

        let mut modern = server.client();
        modern.run("HELLO 3");
        for (wait, push, want) in [
            ("BZPOPMIN j z 0", "ZADD z 1.5 m", "*3\r\n$1\r\nz\r\n$1\r\nm\r\n,1.5\r\n"),
            ("BZMPOP 0 2 j z MIN", "ZADD z 1 m", "*2\r\n$1\r\nz\r\n*1\r\n*2\r\n$1\r\nm\r\n,1\r\n"),
            (
                "XREAD BLOCK 0 STREAMS j x $ $",
                "XADD x 1-1 f v",
                "%1\r\n$1\r\nx\r\n*1\r\n*2\r\n$3\r\n1-1\r\n*2\r\n$1\r\nf\r\n$1\r\nv\r\n",
            ),
        ] {
            modern.send_words(&words(wait));
            wait_blocked(client, 1);
            client.run(push);
            assert_eq!(String::from_utf8_lossy(&modern.read_bytes()), want, "{wait}");
        }
    });
}

#[test]
fn a_wait_counts_once_and_by_its_name() {
    on_all_shards(|server, client| {
        client.run("CONFIG RESETSTAT");
        let mut waiter = blocked(server, client, 0, "BLPOP a b c d 0");
        let mut reader = blocked(server, client, 1, "XREAD BLOCK 0 STREAMS p q r s $ $ $ $");
        let stats = client.run("INFO commandstats").string();
        assert!(!stats.contains("cmdstat_blpop") && !stats.contains("cmdstat_xread"), "{stats}");
        client.run("SET a x");
        client.run("DEL a");
        client.run("RPUSH c v");
        client.run("XADD q 1-1 f v");
        expect(&mut waiter, "[c v]");
        drop(reader.read());
        let stats = client.run("INFO commandstats").string();
        for name in ["blpop", "xread"] {
            assert!(stats.contains(&format!("cmdstat_{name}:calls=1,")), "{stats}");
        }
    });
}

#[test]
fn keys_are_looked_at_in_the_order_in_which_they_changed() {
    for shards in SHARDS {
        let server = Server::start(shards, &[]);
        let mut client = server.client();
        for round in 0..12 {
            // Other names, other shards.
            let [one, two, three] = ["a", "b", "c"].map(|name| format!("{name}{round}"));
            let mut mover = blocked(&server, &mut client, 0, &format!("BRPOPLPUSH {one} {three} 0"));
            let mut first = blocked(&server, &mut client, 1, &format!("BLPOP {two} 0"));
            let mut second = blocked(&server, &mut client, 2, &format!("BLMPOP 0 2 {two} {three} LEFT"));
            send(&mut client, &["MULTI", &format!("LPUSH {one} 1"), &format!("LPUSH {two} 2"), "EXEC"]);
            for want in ["OK", "QUEUED", "QUEUED", "[1 1]"] {
                expect(&mut client, want);
            }
            expect(&mut mover, "1");
            expect(&mut first, &format!("[{two} 2]"));
            expect(&mut second, &format!("[{three} [1]]"));
        }
    }
}
