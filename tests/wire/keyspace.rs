//! SCAN's guarantee, expiry, databases.
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};

use super::support::{Client, Rng, Server, command, wait_until};
use super::{SHARDS, check, on_all_shards};

fn fill(client: &mut Client, prefix: &str, n: usize) {
    for chunk in (0..n).collect::<Vec<_>>().chunks(500) {
        let words: Vec<String> = chunk.iter().flat_map(|i| [format!("{prefix}{i}"), i.to_string()]).collect();
        assert_eq!(client.run_words(&[vec!["MSET".to_string()], words].concat()).text(), b"OK");
    }
}

/// A whole scan; `between` runs between two calls. Returns the elements and the number of calls.
fn scan(client: &mut Client, options: &str, mut between: impl FnMut()) -> (Vec<String>, usize) {
    let (mut cursor, mut found, mut calls) = ("0".to_string(), Vec::new(), 0);
    loop {
        let reply = client.run(&format!("SCAN {cursor} {options}")).items();
        calls += 1;
        cursor = reply[0].string();
        found.extend(reply[1].items().iter().map(|v| v.string()));
        if cursor == "0" {
            return (found, calls);
        }
        assert!(calls < 1_000_000, "a scan does not end");
        between();
    }
}

#[test]
fn scan_returns_what_was_there_throughout() {
    const STAY: usize = 3000;
    for shards in SHARDS {
        let server = Server::start(shards, &[]);
        let mut client = server.client();
        fill(&mut client, "stay:", STAY);
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let (mut client, mut rng, mut n) = (server.client(), Rng::new(1), 0);
                while !done.load(Ordering::Relaxed) {
                    let batch: Vec<u8> = (0..50)
                        .flat_map(|_| {
                            n += 1;
                            match rng.below(4) {
                                0 => command(&["DEL".to_string(), format!("new:{}", rng.below(n))]),
                                1 => command(&[
                                    "SET".to_string(),
                                    format!("stay:{}", rng.below(STAY)),
                                    "x".repeat(rng.below(90)),
                                ]),
                                _ => command(&["SET".to_string(), format!("new:{n}"), "v".into()]),
                            }
                        })
                        .collect();
                    client.send(batch);
                    (0..50).for_each(|_| drop(client.read()));
                }
            });
            for count in [1, 10, 100, 1000] {
                let (found, _) = scan(&mut client, &format!("COUNT {count}"), || {});
                let found: BTreeSet<String> = found.into_iter().collect();
                let missing = (0..STAY).filter(|i| !found.contains(&format!("stay:{i}"))).count();
                if missing > 0 {
                    done.store(true, Ordering::Relaxed);
                }
                assert_eq!(missing, 0, "COUNT {count} on {shards} shards missed elements");
            }
            done.store(true, Ordering::Relaxed);
        });
    }
}

#[test]
fn scan_survives_growth_and_shrinking_between_calls() {
    const STAY: usize = 400;
    for shards in [1, 4] {
        let server = Server::start(shards, &[]);
        let (mut client, mut other) = (server.client(), server.client());
        fill(&mut client, "stay:", STAY);
        let mut round = 0;
        let (found, _) = scan(&mut client, "COUNT 7", || {
            round += 1;
            match round % 3 {
                0 => fill(&mut other, "extra:", 2000),
                1 => {
                    let words: Vec<String> = (0..2000).map(|i| format!("extra:{i}")).collect();
                    other.run_words(&[vec!["DEL".to_string()], words].concat());
                }
                _ => {}
            }
        });
        let found: BTreeSet<String> = found.into_iter().collect();
        for i in 0..STAY {
            assert!(found.contains(&format!("stay:{i}")), "stay:{i} was missed on {shards} shards");
        }
    }
}

#[test]
fn a_quiet_scan_returns_each_element_once() {
    on_all_shards(|_, client| {
        fill(client, "key:", 2000);
        let (mut found, calls) = scan(client, "COUNT 10", || {});
        assert!((100..=600).contains(&calls), "{calls} calls for 2000 keys in tens");
        found.sort();
        let whole = found.len();
        found.dedup();
        assert_eq!((whole, found.len()), (2000, 2000));
        assert_eq!(scan(client, "MATCH key:1??? COUNT 100", || {}).0.len(), 1000);
        assert_eq!(scan(client, "TYPE string COUNT 1000", || {}).0.len(), 2000);
        assert_eq!(client.run("KEYS key:12*").items().len(), 111);
        client.check("DBSIZE", ":2000\r\n");
        client.check("SCAN x", "-ERR invalid cursor\r\n");
        client.check("SCAN 0 COUNT 0", "-ERR syntax error\r\n");
    });
}

#[test]
fn an_expired_key_is_gone_for_everyone() {
    on_all_shards(|server, client| {
        client.check("DEBUG SET-ACTIVE-EXPIRE 0", "+OK\r\n");
        for i in 0..20 {
            client.check(&format!("SET gone:{i} v PX 5"), "+OK\r\n");
            client.check(&format!("SET stay:{i} v PX 500000"), "+OK\r\n");
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
        // Reads come from connections of every shard.
        for mut other in (0..4).map(|_| server.client()) {
            for i in 0..20 {
                other.check(&format!("GET gone:{i}"), "$-1\r\n");
                other.check(&format!("MGET gone:{i} stay:{i}"), "*2\r\n$-1\r\n$1\r\nv\r\n");
                other.check(&format!("EXISTS gone:{i} stay:{i}"), ":1\r\n");
                other.check(&format!("TTL gone:{i}"), ":-2\r\n");
                other.check(&format!("TYPE gone:{i}"), "+none\r\n");
            }
        }
        client.check("DBSIZE", ":20\r\n");
        client.check("DEL gone:0 stay:0", ":1\r\n");
        client.check("SETNX gone:1 new", ":1\r\n");
        client.check("TTL gone:1", ":-1\r\n");
    });
}

#[test]
fn expired_keys_are_removed_without_being_asked_for() {
    on_all_shards(|_, client| {
        for i in 0..2000 {
            client.send(command(&[
                "SET".to_string(),
                format!("k{i}"),
                "v".into(),
                "PX".into(),
                (20 + i % 30).to_string(),
            ]));
        }
        (0..2000).for_each(|_| drop(client.read()));
        client.check("SET stays v", "+OK\r\n");
        wait_until("active expiry", || client.run("DBSIZE").int() == 1);
        let stats = client.run("INFO stats").string();
        assert!(stats.lines().any(|l| l.trim_end() == "expired_keys:2000"), "{stats}");
    });
}

#[test]
fn an_expired_field_is_gone_for_everyone() {
    on_all_shards(|server, client| {
        client.check("DEBUG SET-ACTIVE-EXPIRE 0", "+OK\r\n");
        for i in 0..20 {
            client.check(&format!("HSET h{i} stays v"), ":1\r\n");
            client.check(&format!("HSETEX h{i} PX 5 FIELDS 4 a v b v c v d v"), ":1\r\n");
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
        // Reads come from connections of every shard.
        for mut other in (0..4).map(|_| server.client()) {
            for i in 0..20 {
                other.check(&format!("HGETALL h{i}"), "*2\r\n$5\r\nstays\r\n$1\r\nv\r\n");
                other.check(&format!("HSCAN h{i} 0 NOVALUES"), "*2\r\n$1\r\n0\r\n*1\r\n$5\r\nstays\r\n");
                other.check(&format!("HTTL h{i} FIELDS 2 a stays"), "*2\r\n:-2\r\n:-1\r\n");
            }
        }
        // Fields are there until they are met; then they are deleted by their owner, before the next command.
        for i in 0..20 {
            client.check(&format!("HLEN h{i}"), ":5\r\n");
            client.check(&format!("HGET h{i} a"), "$-1\r\n");
            client.check(&format!("HLEN h{i}"), ":4\r\n");
            client.check(&format!("HMGET h{i} b stays"), "*2\r\n$-1\r\n$1\r\nv\r\n");
            client.check(&format!("HLEN h{i}"), ":3\r\n");
            client.check(&format!("HRANDFIELD h{i}"), "$5\r\nstays\r\n");
            client.check(&format!("HLEN h{i}"), ":1\r\n");
            client.check(&format!("HDEL h{i} stays"), ":1\r\n");
        }
        client.check("DBSIZE", ":0\r\n");
        let stats = client.run("INFO stats").string();
        assert!(stats.lines().any(|l| l.trim_end() == "expired_subkeys:80"), "{stats}");
    });
}

#[test]
fn expired_fields_are_removed_without_being_asked_for() {
    on_all_shards(|_, client| {
        let many: String = (0..600).map(|n| format!(" f{n} v")).collect();
        for i in 0..40 {
            client.check(&format!("HSET stays{i} small v"), ":1\r\n");
            client.check(&format!("HSETEX stays{i} PX {} FIELDS 3 a v b v c v", 20 + i), ":1\r\n");
            client.check(&format!("HSETEX goes{i} PX {} FIELDS 600{many}", 20 + i), ":1\r\n");
        }
        client.check("HEXPIRE stays0 1000 FIELDS 1 small", "*1\r\n:1\r\n");
        wait_until("active expiry", || client.run("DBSIZE").int() == 40);
        wait_until("active expiry", || (0..40).all(|i| client.run(&format!("HLEN stays{i}")).int() == 1));
        let stats = client.run("INFO stats").string();
        assert!(stats.lines().any(|l| l.trim_end() == "expired_subkeys:24120"), "{stats}");
        let info = client.run("INFO keyspace").string();
        assert!(info.contains("db0:keys=40,expires=0,avg_ttl=0,subexpiry=1\r\n"), "{info}");
    });
}

#[test]
fn databases_are_apart() {
    check(
        r#"
        SET a zero              => +OK
        SELECT 1                => +OK
        GET a                   => $-1
        SET a one               => +OK
        SELECT 16               => -ERR DB index is out of range
        SELECT x                => -ERR value is not an integer or out of range
        MOVE a 0                => :0
        SET b one               => +OK
        MOVE b 0                => :1
        EXISTS b                => :0
        SWAPDB 0 1              => +OK
        GET a                   => $4\r\nzero
        DBSIZE                  => :2
        FLUSHDB                 => +OK
        DBSIZE                  => :0
        SELECT 0                => +OK
        GET a                   => $3\r\none
        COPY a c DB 5           => :1
        FLUSHALL                => +OK
        DBSIZE                  => :0
        SELECT 5                => +OK
        DBSIZE                  => :0
        "#,
    );
}

#[test]
fn a_key_survives_a_rename_with_value_and_deadline() {
    on_all_shards(|_, client| {
        for i in 0..30 {
            client.check(&format!("SET from{i} {i} EX 1000"), "+OK\r\n");
            client.check(&format!("RENAME from{i} to{i}"), "+OK\r\n");
            client.check(&format!("EXISTS from{i}"), ":0\r\n");
            let ttl = client.run(&format!("TTL to{i}")).int();
            assert!((990..=1000).contains(&ttl), "{ttl}");
            client.check(&format!("COPY to{i} copy{i}"), ":1\r\n");
            client.check(&format!("COPY to{i} copy{i}"), ":0\r\n");
            client.check(&format!("PERSIST copy{i}"), ":1\r\n");
            client.check(&format!("RENAMENX to{i} copy{i}"), ":0\r\n");
            client.check(&format!("RENAME to{i} copy{i}"), "+OK\r\n");
            let ttl = client.run(&format!("TTL copy{i}")).int();
            assert!((990..=1000).contains(&ttl), "{ttl}");
        }
        client.check("RENAME none x", "-ERR no such key\r\n");
        client.check("DBSIZE", ":30\r\n");
    });
}

#[test]
fn sizes_of_keys_are_counted_for_who_asks() {
    on_all_shards(|_, client| {
        for line in [
            "MSET a 1 b 22 c 333 d 4444 e 12345678",
            "SET empty \"\"",
            "RPUSH list 1 2 3",
            "SADD ints 1 2 3 4",
            "SADD texts a",
            "ZADD zset 1 a 2 b",
            "HSET hash f v g w",
            "XADD stream * f v",
        ] {
            assert!(!client.run(line).is_error(), "{line}");
        }
        client.check("SELECT 3", "+OK\r\n");
        client.check("SETRANGE big 1023 x", ":1024\r\n");
        let want = "# Keysizes\r\n\
                    db0_distrib_strings_sizes:0=1,1=1,2=2,4=1,8=1\r\n\
                    db0_distrib_lists_items:2=1\r\n\
                    db0_distrib_sets_items:1=1,4=1\r\n\
                    db0_distrib_zsets_items:2=1\r\n\
                    db0_distrib_hashes_items:2=1\r\n\
                    db3_distrib_strings_sizes:1K=1\r\n";
        assert_eq!(client.run("INFO keysizes").string(), want);
        assert!(!client.run("INFO all").string().contains("Keysizes"));
    });
}
