//! MULTI, EXEC, DISCARD, WATCH, UNWATCH: what is queued runs as a whole, on whatever shards, or not at all.
use std::sync::atomic::{AtomicBool, Ordering};

use super::support::{Client, Rng, Server, Value, command, wait_until, words};
use super::{SHARDS, check, info_field, on_all_shards};

/// Sends the lines at once.
fn send(client: &mut Client, lines: &[&str]) {
    client.send(lines.iter().flat_map(|line| command(&words(line))).collect::<Vec<u8>>());
}

/// Runs the lines at once, between MULTI and EXEC; the reply of EXEC.
fn exec(client: &mut Client, lines: &[&str]) -> Value {
    send(client, &[&["MULTI"], lines, &["EXEC"]].concat());
    assert_eq!(client.read().text(), b"OK");
    for line in lines {
        assert_eq!(client.read().text(), b"QUEUED", "{line}");
    }
    client.read()
}

#[test]
fn what_is_queued_runs_at_exec() {
    check(
        r#"
        MULTI             => +OK
        SET a 1           => +QUEUED
        INCR a            => +QUEUED
        LPUSH l x y       => +QUEUED
        MGET a b l        => +QUEUED
        GET l             => +QUEUED
        EXEC              => *5\r\n+OK\r\n:2\r\n:2\r\n*3\r\n$1\r\n2\r\n$-1\r\n$-1\r\n-WRONGTYPE Operation against a key holding the wrong kind of value
        GET a             => $1\r\n2
        MULTI             => +OK
        EXEC              => *0
        MULTI             => +OK
        SET a 5           => +QUEUED
        DISCARD           => +OK
        GET a             => $1\r\n2
        MULTI             => +OK
        SELECT 1          => +QUEUED
        SET a there       => +QUEUED
        SELECT 0          => +QUEUED
        GET a             => +QUEUED
        DBSIZE            => +QUEUED
        SWAPDB 0 1        => +QUEUED
        GET a             => +QUEUED
        PING              => +QUEUED
        EXEC              => *8\r\n+OK\r\n+OK\r\n+OK\r\n$1\r\n2\r\n:2\r\n+OK\r\n$5\r\nthere\r\n+PONG
        MULTI             => +OK
        FLUSHALL          => +QUEUED
        KEYS *            => +QUEUED
        EXEC              => *2\r\n+OK\r\n*0
        "#,
    );
}

#[test]
fn a_refused_command_spoils_the_transaction() {
    check(
        r#"
        EXEC              => -ERR EXEC without MULTI
        DISCARD           => -ERR DISCARD without MULTI
        MULTI             => +OK
        MULTI             => -ERR MULTI calls can not be nested
        WATCH a           => -ERR WATCH inside MULTI is not allowed
        SET a 1           => +QUEUED
        EXEC              => *1\r\n+OK
        MULTI             => +OK
        SET a 2           => +QUEUED
        OBJECT nosuch a   => -ERR unknown subcommand 'nosuch'. Try OBJECT HELP.
        SET a 3           => +QUEUED
        EXEC              => -EXECABORT Transaction discarded because of previous errors.
        MULTI             => +OK
        SET a 2           => +QUEUED
        GET               => -ERR wrong number of arguments for 'get' command
        DISCARD           => +OK
        MULTI             => +OK
        CONFIG nosuch     => -ERR unknown subcommand 'nosuch'. Try CONFIG HELP.
        EXEC              => -EXECABORT Transaction discarded because of previous errors.
        MULTI             => +OK
        SHUTDOWN nosave   => -ERR Command not allowed inside a transaction
        EXEC              => -EXECABORT Transaction discarded because of previous errors.
        EXEC              => -ERR EXEC without MULTI
        MULTI             => +OK
        MULTI x           => -ERR wrong number of arguments for 'multi' command
        EXEC              => -EXECABORT Transaction discarded because of previous errors.
        GET a             => $1\r\n1
        "#,
    );
}

#[test]
fn the_protocol_may_change_within() {
    check(
        r#"
        HSET h f v        => :1
        MULTI             => +OK
        HGETALL h         => +QUEUED
        HELLO 3 SETNAME n => +QUEUED
        HGETALL h         => +QUEUED
        GET missing       => +QUEUED
        RESET             => +RESET
        GET h             => -WRONGTYPE Operation against a key holding the wrong kind of value
        EXEC              => -ERR EXEC without MULTI
        "#,
    );
    on_all_shards(|_, client| {
        client.run("HSET h f v");
        let Value::Array(replies) = exec(client, &["HGETALL h", "HELLO 3", "HGETALL h", "GET none"]) else {
            panic!("an array was expected");
        };
        assert!(matches!((&replies[0], &replies[2]), (Value::Array(_), Value::Map(_))), "{replies:?}");
        client.check("GET none", "_\r\n");
        client.run("WATCH h");
        client.run("HSET h f w");
        send(client, &["MULTI", "PING", "EXEC"]);
        assert_eq!(client.read_exact(17), b"+OK\r\n+QUEUED\r\n_\r\n");
    });
}

#[test]
fn replies_may_be_off_and_pipelines_go_on() {
    on_all_shards(|_, client| {
        send(
            client,
            &["CLIENT REPLY OFF", "MULTI", "SET a 1", "MSET b 2 c 3 d 4", "EXEC", "CLIENT REPLY ON"],
        );
        assert_eq!(client.read_exact(5), b"+OK\r\n");
        client.check("MGET a b c d", "*4\r\n$1\r\n1\r\n$1\r\n2\r\n$1\r\n3\r\n$1\r\n4\r\n");
        send(client, &["MULTI", "GET a", "CLIENT REPLY SKIP", "GET b", "EXEC", "GET c", "GET d"]);
        assert_eq!(client.read_exact(5 + 3 * 9), b"+OK\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n");
        // What SKIP leaves out is open; the connection must go on.
        client.send_words(&["ECHO", "end"]);
        while client.read().text() != b"end" {}

        // Transactions between other commands over all shards, all in one pipeline.
        let mut lines = Vec::new();
        for i in 0..40 {
            lines.extend([format!("INCR n{i}"), "MULTI".into(), format!("INCR n{i}"), format!("INCR m{i}")]);
            lines.extend(["EXEC".to_string(), format!("MGET n{i} m{i}")]);
        }
        client.send(lines.iter().flat_map(|line| command(&words(line))).collect::<Vec<u8>>());
        for _ in 0..40 {
            let want = "*2\r\n$1\r\n2\r\n$1\r\n1\r\n";
            let got = client.read_exact(4 + 5 + 2 * 9 + 4 + 2 * 4 + want.len());
            let want = format!(":1\r\n+OK\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n:2\r\n:1\r\n{want}");
            assert_eq!(String::from_utf8_lossy(&got), want);
        }
    });
}

/// Runs `work` on several connections until `main` is done.
fn beside(
    server: &Server,
    workers: u64,
    work: impl Fn(&mut Client, &mut Rng) + Sync,
    main: impl FnOnce(&mut Client),
) {
    struct Done<'a>(&'a AtomicBool);
    impl Drop for Done<'_> {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for worker in 0..workers {
            let (done, work) = (&done, &work);
            scope.spawn(move || {
                let (mut client, mut rng) = (server.client(), Rng::new(worker));
                while !done.load(Ordering::Relaxed) {
                    work(&mut client, &mut rng);
                }
            });
        }
        let _done = Done(&done);
        main(&mut server.client());
    });
}

#[test]
fn nobody_sees_a_part_of_a_transaction() {
    const KEYS: usize = 8;
    const TOTAL: i64 = 8000;
    for shards in SHARDS {
        let server = Server::start(shards, &[]);
        let mut client = server.client();
        (0..KEYS).for_each(|i| client.check(&format!("SET ring:{i} 1000"), "+OK\r\n"));
        // Moves an amount on, round the ring, through one key or several.
        let rotate = |client: &mut Client, rng: &mut Rng| {
            let (start, steps, amount) = (rng.below(KEYS), 1 + rng.below(KEYS - 1), 1 + rng.below(50));
            let moves = (start..start + steps).flat_map(|at| {
                [("DECRBY", at % KEYS), ("INCRBY", (at + 1) % KEYS)]
                    .map(|(name, key)| format!("{name} ring:{key} {amount}"))
            });
            let moves: Vec<String> = moves.collect();
            let lines: Vec<&str> = moves.iter().map(String::as_str).collect();
            assert_eq!(exec(client, &lines).items().len(), 2 * steps);
        };
        beside(&server, 4, rotate, |reader| {
            let gets: Vec<String> = (0..KEYS).map(|i| format!("GET ring:{i}")).collect();
            let gets: Vec<&str> = gets.iter().map(String::as_str).collect();
            let mget = [vec!["MGET".to_string()], (0..KEYS).map(|i| format!("ring:{i}")).collect()].concat();
            let sum = |values: Vec<Value>| -> i64 {
                values.iter().map(|value| value.string().parse::<i64>().unwrap()).sum()
            };
            for _ in 0..300 {
                assert_eq!(sum(exec(reader, &gets).items()), TOTAL, "on {shards} shard(s)");
                assert_eq!(sum(reader.run_words(&mget).items()), TOTAL, "on {shards} shard(s)");
            }
        });
    }
}

#[test]
fn with_watch_no_increment_is_lost() {
    const ROUNDS: usize = 60;
    for shards in SHARDS {
        let server = Server::start(shards, &[]);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let mut client = server.client();
                    let mut won = 0;
                    while won < ROUNDS {
                        send(&mut client, &["WATCH x y z", "GET x"]);
                        client.read();
                        let next = client.read().string().parse::<i64>().unwrap_or(0) + 1;
                        let sets = ["x", "y", "z"].map(|key| format!("SET {key} {next}"));
                        won += usize::from(
                            exec(&mut client, &sets.each_ref().map(String::as_str)) != Value::Null,
                        );
                    }
                });
            }
        });
        let want = (4 * ROUNDS).to_string();
        let values = server.client().run("MGET x y z").items();
        assert!(values.iter().all(|value| value.string() == want), "on {shards} shard(s): {values:?}");
    }
}

/// Watches keys on all shards, has `changes` made by another connection, and says whether EXEC ran.
fn survives(client: &mut Client, other: &mut Client, before: &[&str], changes: &[&str]) -> bool {
    client.run("FLUSHALL");
    other.run("SELECT 0");
    before.iter().for_each(|line| assert!(!other.run(line).is_error(), "{line}"));
    client.check("WATCH w0 w1 w2 w3 w4 w5", "+OK\r\n");
    changes.iter().for_each(|line| assert!(!other.run(line).is_error(), "{line}"));
    exec(client, &["PING"]) != Value::Null
}

#[test]
fn whatever_changes_a_watched_key_stops_exec() {
    on_all_shards(|server, client| {
        let mut other = server.client();
        for key in 0..6 {
            let line = |text: &str| text.replace('@', &format!("w{key}"));
            let mut stops = |before: &str, change: &str| {
                let (before, change) = (line(before), line(change));
                let before: Vec<&str> = before.split("; ").filter(|line| !line.is_empty()).collect();
                !survives(client, &mut other, &before, &change.split("; ").collect::<Vec<_>>())
            };
            for (before, change) in [
                ("", "SET @ 1"),
                ("SET @ 1", "SET @ 1"),
                ("SET @ 1", "DEL @"),
                ("SET @ 1", "UNLINK @ x y"),
                ("SET @ 1", "EXPIRE @ 100"),
                ("SET @ 1 EX 100", "PERSIST @"),
                ("SET @ 1", "EXPIRE @ -1"),
                ("SET @ 1", "RENAME @ other"),
                ("SET other 1", "RENAME other @"),
                ("SET other 1", "COPY other @"),
                ("SET @ 1", "MOVE @ 1"),
                ("RPUSH @ a b", "LPOP @"),
                ("RPUSH other a", "LMOVE other @ LEFT LEFT"),
                ("", "HSET @ f v"),
                ("SADD @ a", "SINTERSTORE @ none nil"),
                ("ZADD @ 1 a", "ZPOPMIN @"),
                ("", "XADD @ * f v"),
                ("", "MSET a 1 b 2 @ 3"),
                ("", "SETBIT @ 1 1"),
                ("SET @ 1", "FLUSHDB"),
                ("SET @ 1", "FLUSHALL"),
                ("SET @ 1", "SELECT 3; FLUSHALL"),
                ("SET @ 1", "SWAPDB 0 1"),
                ("SELECT 1; SET @ 1; SELECT 0", "SWAPDB 1 0"),
                ("", "MULTI; SET @ 1; EXEC"),
                ("SET @ 1", "MULTI; DEL @; SET @ 1; EXEC"),
                ("SET @ 1", "GETDEL @"),
                ("SET @ 1", "GETEX @ EX 100"),
            ] {
                assert!(stops(before, change), "{} after {} of w{key}", change, before);
            }
            for (before, change) in [
                ("SET @ 1", "GET @"),
                ("", "DEL @"),
                ("SET @ 1", "SETNX @ 2"),
                ("SADD @ a", "SADD @ a; SREM @ b; SISMEMBER @ a"),
                ("SET @ 1", "TOUCH @; OBJECT ENCODING @; TYPE @"),
                ("SET @ 1", "SELECT 1; SET @ 2; DEL @"),
                ("SET @ 1", "SELECT 5; FLUSHDB"),
                ("SET @ 1", "SWAPDB 2 3"),
                ("SELECT 1; SET x 1; SELECT 0", "SWAPDB 0 1"),
                ("SET @ 1", "SET other 1"),
                ("", "FLUSHALL"),
                ("", "SETRANGE @ 0 \"\""),
            ] {
                assert!(!stops(before, change), "{} after {} of w{key}", change, before);
            }
        }
    });
}

#[test]
fn a_watched_key_whose_time_comes_stops_exec() {
    on_all_shards(|server, client| {
        let mut other = server.client();
        client.run("DEBUG SET-ACTIVE-EXPIRE 0");
        for active in ["0", "1"] {
            client.check(&format!("DEBUG SET-ACTIVE-EXPIRE {active}"), "+OK\r\n");
            other.run("SET w1 v PX 20");
            client.run("WATCH w0 w1 w2");
            wait_until("the time of w1 has come", || other.run("EXISTS w1").int() == 0);
            assert_eq!(exec(client, &["PING"]), Value::Null, "met by another, active expiry {active}");
            // Nobody but EXEC itself meets it.
            other.run("SET w1 v PX 20");
            client.run("WATCH w0 w1 w2");
            let due = other.run("PEXPIRETIME w1").int();
            if due > 0 {
                let time = |client: &mut Client| {
                    let time = client.run("TIME").items();
                    let part = |at: usize| time[at].string().parse::<i64>().unwrap();
                    part(0) * 1000 + part(1) / 1000
                };
                wait_until("the clock has passed it", || time(&mut other) > due);
                assert_eq!(exec(client, &["PING"]), Value::Null, "met by nobody, active expiry {active}");
            } else {
                // This was too slow: the time may have come before the watch began.
                client.run("UNWATCH");
            }
        }
        // It was due before it was watched: nothing changes any more.
        client.run("DEBUG SET-ACTIVE-EXPIRE 0");
        other.run("SET w1 v PX 1");
        wait_until("it is due", || other.run("EXISTS w1").int() == 0);
        client.run("WATCH w0 w1 w2");
        assert_ne!(exec(client, &["PING"]), Value::Null);
        client.run("DEBUG SET-ACTIVE-EXPIRE 1");
    });
}

#[test]
fn own_writes_count_before_multi_and_not_within() {
    on_all_shards(|_, client| {
        client.run("WATCH a b c");
        assert_eq!(exec(client, &["SET a 1", "SET b 2", "SET c 3"]).items().len(), 3);
        client.run("WATCH a b c");
        client.run("SET b 2");
        assert_eq!(exec(client, &["PING"]), Value::Null);
        // That EXEC has forgotten the keys.
        client.run("SET b 3");
        assert_eq!(exec(client, &["GET b"]).items()[0].text(), b"3");
    });
}

#[test]
fn watches_end_with_their_reason() {
    on_all_shards(|server, client| {
        let mut other = server.client();
        let keys = |client: &mut Client| info_field(client, "clients", "total_watched_keys");
        let clients = |client: &mut Client| info_field(client, "clients", "watching_clients");
        for end in ["UNWATCH", "RESET", "DISCARD", "EXEC", "EXEC failed"] {
            client.run("WATCH a b c d e f");
            client.run("WATCH a");
            assert_eq!((keys(&mut other), clients(&mut other)), (6, 1), "{end}");
            let list = other.run("CLIENT LIST").string();
            assert!(list.lines().any(|line| line.contains(" watch=6 ")), "{list}");
            match end {
                "DISCARD" => send(client, &["MULTI", end, "PING"]),
                "EXEC" => send(client, &["MULTI", end, "PING"]),
                "EXEC failed" => send(client, &["MULTI", "nosuch", "EXEC", "PING"]),
                _ => send(client, &[end, "PING"]),
            }
            while client.read().text() != b"PONG" {}
            assert_eq!((keys(&mut other), clients(&mut other)), (0, 0), "{end}");
            other.run("SET a 1");
            assert_ne!(exec(client, &["PING"]), Value::Null, "{end}");
        }
        let mut gone = server.client();
        gone.run("WATCH a b c d e f");
        assert_eq!(keys(&mut other), 6);
        drop(gone);
        wait_until("the watches of a client that is gone are gone", || keys(&mut other) == 0);
        // The same key twice, and in two databases.
        client.run("WATCH a a");
        client.run("SELECT 1");
        client.run("WATCH a");
        assert_eq!(keys(&mut other), 2);
        other.run("SET a 1");
        assert_eq!(exec(client, &["PING"]), Value::Null);
    });
}

#[test]
fn a_transaction_ends_with_its_connection() {
    on_all_shards(|server, client| {
        let mut gone = server.client();
        send(&mut gone, &["MULTI", "SET a 1", "SET b 2"]);
        (0..3).for_each(|_| drop(gone.read()));
        let list = client.run("CLIENT LIST").string();
        let line = list.lines().find(|line| line.contains(" multi=2 ")).unwrap_or_else(|| panic!("{list}"));
        assert!(line.contains(" flags=x "), "{line}");
        drop(gone);
        wait_until("it is gone", || client.run("CLIENT LIST").string().lines().count() == 1);
        client.check("EXISTS a b", ":0\r\n");
        // Cut off in the middle of EXEC: nothing ran.
        let mut gone = server.client();
        send(&mut gone, &["MULTI", "SET a 1"]);
        gone.send("*1\r\n$4\r\nEXE");
        gone.finish();
        gone.read_to_end();
        client.check("EXISTS a", ":0\r\n");
    });
}

#[test]
fn the_list_of_clients_tells_that_a_watched_key_has_changed() {
    on_all_shards(|server, client| {
        let id = client.run("CLIENT ID").int();
        let mut other = server.client();
        let mut has_flags = |flags: &str| {
            let list = other.run(&format!("CLIENT LIST ID {id}")).string();
            assert!(list.contains(&format!(" flags={flags} ")), "{list}");
        };
        client.check("WATCH key", "+OK\r\n");
        has_flags("N");
        server.client().check("SET key v", "+OK\r\n");
        has_flags("d");
        client.check("MULTI", "+OK\r\n");
        has_flags("xd");
        client.check("EXEC", "*-1\r\n");
        has_flags("N");
    });
}
