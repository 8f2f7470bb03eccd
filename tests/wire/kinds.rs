//! What holds for keys of every type, small and large: deadlines, copies, names, databases.
use super::support::{Client, Value, command};
use super::{check, on_all_shards};

/// Name of the type, what makes a key of it, and what changes such a key. `%` counts up.
const KINDS: &[(&str, &str, &str)] = &[
    ("string", "APPEND key value%", "APPEND key x"),
    ("list", "RPUSH key element%", "RPUSH key x"),
    ("hash", "HSET key field% value%", "HSET key x y"),
    ("set", "SADD key member%", "SADD key x"),
    ("zset", "ZADD key % member%", "ZADD key 1 x"),
    ("stream", "XADD key %-1 field value%", "XADD key * field x"),
];
/// Small forms, and large ones.
const SIZES: [usize; 2] = [3, 3000];

fn fill(client: &mut Client, line: &str, size: usize) {
    for n in 1..=size {
        let line = line.replace('%', &n.to_string());
        client.send(command(&line.split(' ').collect::<Vec<_>>()));
    }
    (0..size).for_each(|_| assert!(!client.read().is_error()));
}

/// Runs a test for a fresh key of each type and size, with its value's digest.
fn for_kinds(client: &mut Client, test: impl Fn(&mut Client, &str, &str, usize)) {
    for (kind, line, change) in KINDS {
        for size in SIZES {
            eprintln!("{kind} of {size}");
            client.check("FLUSHALL", "+OK\r\n");
            fill(client, line, size);
            test(client, kind, change, size);
        }
    }
}

fn facts(client: &mut Client, key: &str) -> [String; 3] {
    let digest = client.run(&format!("DEBUG DIGEST-VALUE {key}")).items()[0].string();
    [
        digest,
        client.run(&format!("OBJECT ENCODING {key}")).string(),
        client.run(&format!("TYPE {key}")).string(),
    ]
}

#[test]
fn copies_are_whole_and_apart() {
    on_all_shards(|_, client| {
        for_kinds(client, |client, kind, change, _| {
            // The digest takes the deadline in.
            client.check("EXPIRE key 1000", ":1\r\n");
            let before = facts(client, "key");
            assert_eq!(before[2], kind);
            for i in 0..4 {
                client.check(&format!("COPY key copy{i}"), ":1\r\n");
                client.check(&format!("COPY key copy{i}"), ":0\r\n");
                client.check(&format!("COPY key copy{i} REPLACE"), ":1\r\n");
                assert_eq!(facts(client, &format!("copy{i}")), before);
                assert!(client.run(&format!("TTL copy{i}")).int() > 900);
            }
            assert!(!client.run(change).is_error());
            assert_ne!(facts(client, "key")[0], before[0], "the change shows");
            assert!(client.run("TTL key").int() > 900, "a change keeps the deadline");
            assert!(!client.run(&change.replace("key", "copy1")).is_error());
            client.check("DEL key copy1", ":2\r\n");
            for i in [0, 2, 3] {
                assert_eq!(facts(client, &format!("copy{i}")), before, "copy{i} is on its own");
            }
            client.check("UNLINK copy0 copy2 copy3", ":3\r\n");
            client.check("DBSIZE", ":0\r\n");
        });
    });
}

#[test]
fn keys_move_between_names_and_databases() {
    on_all_shards(|_, client| {
        for_kinds(client, |client, _, change, _| {
            client.check("PEXPIRE key 1000000", ":1\r\n");
            let before = facts(client, "key");
            for i in 0..6 {
                let (from, to) = (format!("name{i}"), format!("name{}", i + 1));
                client.check(&format!("RENAME {} {to}", if i == 0 { "key" } else { &from }), "+OK\r\n");
                assert_eq!(facts(client, &to), before);
            }
            client.check("RENAMENX name6 key", ":1\r\n");
            client.check("MOVE key 3", ":1\r\n");
            client.check("EXISTS key", ":0\r\n");
            client.check("SELECT 3", "+OK\r\n");
            assert_eq!(facts(client, "key"), before);
            client.check("COPY key key DB 0", ":1\r\n");
            assert!(!client.run(change).is_error());
            assert!(client.run("TTL key").int() > 900);
            client.check("DEL key", ":1\r\n");
            client.check("SELECT 0", "+OK\r\n");
            assert_eq!(facts(client, "key"), before);
            assert!(client.run("TTL key").int() > 900);
            client.check("PERSIST key", ":1\r\n");
            client.check("TTL key", ":-1\r\n");
        });
    });
}

#[test]
fn keys_tell_their_kind_and_size() {
    on_all_shards(|_, client| {
        for_kinds(client, |client, kind, _, size| {
            client.check(&format!("SCAN 0 COUNT 100 TYPE {kind}"), "*2\r\n$1\r\n0\r\n*1\r\n$3\r\nkey\r\n");
            for (other, ..) in KINDS.iter().filter(|(other, ..)| *other != kind) {
                client.check(&format!("SCAN 0 COUNT 100 TYPE {other}"), "*2\r\n$1\r\n0\r\n*0\r\n");
            }
            let used = client.run("MEMORY USAGE key").int();
            assert!(
                used as usize >= size * 4 && (used as usize) < 1000 + size * 100,
                "{kind} of {size}: {used}"
            );
            assert_eq!(client.run("MEMORY USAGE key SAMPLES 0").int(), used);
            assert_eq!(client.run("MEMORY USAGE key SAMPLES 1000000").int(), used);
            client.check("OBJECT IDLETIME key", ":0\r\n");
            client.check("OBJECT REFCOUNT key", ":1\r\n");
            let object = client.run("DEBUG OBJECT key").string();
            let encoding = client.run("OBJECT ENCODING key").string();
            assert!(object.contains(&format!(" encoding:{encoding} ")), "{object}");
            assert_eq!(object.contains(" ql_nodes:"), encoding == "quicklist", "{object}");
            let is_table = ["hashtable", "skiplist"].contains(&encoding.as_str());
            let stats = client.run("DEBUG HTSTATS-KEY key").string();
            assert_eq!(stats.contains(&format!(" number of elements: {size}")), is_table, "{stats}");
        });
    });
}

#[test]
fn large_lists_tell_of_their_nodes() {
    on_all_shards(|_, client| {
        client.check("CONFIG SET list-max-listpack-size 4 list-compress-depth 1", "+OK\r\n");
        fill(client, "RPUSH key element%", 10);
        let object = client.run("DEBUG OBJECT key").string();
        let facts = " ql_nodes:3 ql_avg_node:3.33 ql_listpack_max:4 ql_compressed:1 ql_uncompressed_size:122";
        assert!(object.ends_with(facts), "{object}");
        client.check("DEBUG QUICKLIST key", "+Quicklist structure printed on stdout\r\n");
        client.check("DEBUG LISTPACK key", "-ERR Not a listpack encoded object.\r\n");
        let stats = client.run("DEBUG HTSTATS 0").string();
        assert!(stats.contains(" number of elements: 1\n[Expires HT]\n"), "{stats}");
        client.check("DEBUG HTSTATS 16", "-ERR Out of range database\r\n");
    });
}

#[test]
fn sort_reads_the_keys_of_all_shards() {
    on_all_shards(|server, client| {
        client.check("DEBUG SET-ACTIVE-EXPIRE 0", "+OK\r\n");
        client.check("RPUSH list 0 1 2 3 4 5 6 7", ":8\r\n");
        for i in 0..8 {
            client.check(&format!("SET weight{i} {}", 10 - i), "+OK\r\n");
            client.check(&format!("HSET hash{i} field {i}{i}"), ":1\r\n");
        }
        for i in [2, 5] {
            client.check(&format!("PEXPIRE weight{i} 1"), ":1\r\n");
            client.check(&format!("PEXPIRE hash{i} 1"), ":1\r\n");
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
        let texts = |client: &mut Client, line: &str| -> String {
            client.run(line).items().iter().map(|v| v.string() + " ").collect()
        };
        // From connections of every shard; what has expired weighs nothing.
        for mut other in (0..4).map(|_| server.client()) {
            for command in ["SORT_RO", "SORT"] {
                let line = format!("{command} list BY weight*");
                assert_eq!(texts(&mut other, &line), "2 5 7 6 4 3 1 0 ");
                let line = format!("{command} list BY weight* LIMIT 1 3 GET # GET hash*->field");
                let reply = other.run(&line).items();
                assert_eq!(reply.len(), 6);
                assert!(reply[1] == Value::Null, "{reply:?}");
                let found: Vec<_> = [0, 2, 3, 4, 5].iter().map(|at| reply[*at].string()).collect();
                assert_eq!(found, ["5", "7", "77", "6", "66"]);
            }
        }
        for i in 0..8 {
            client.check(&format!("SORT list BY weight* DESC GET hash*->field STORE to{i}"), ":8\r\n");
            assert_eq!(texts(client, &format!("LRANGE to{i} 0 -1")), "00 11 33 44 66 77   ");
        }
    });
}

#[test]
fn refusals_of_trimming_come_in_order() {
    check(
        r#"
        XTRIM s LIMIT 0             => -ERR syntax error, XTRIM must be called with a trimming strategy
        XTRIM s LIMIT 1             => -ERR syntax error, LIMIT cannot be used without specifying a trimming strategy
        XTRIM s MAXLEN 3 LIMIT 0    => -ERR syntax error, LIMIT cannot be used without the special ~ option
        XADD s LIMIT 0 * f v        => -ERR syntax error, LIMIT cannot be used without the special ~ option
        "#,
    );
}

#[test]
fn what_a_script_gets_of_an_unsorted_set_is_in_order() {
    on_all_shards(|_, client| {
        client.check("SADD set beta 3 alpha 20 delta 1 gamma 100", ":8\r\n");
        const ORDERED: &str = "*8\r\n$1\r\n1\r\n$3\r\n100\r\n$2\r\n20\r\n$1\r\n3\r\n$5\r\nalpha\r\n$4\r\nbeta\r\n$5\r\ndelta\r\n$5\r\ngamma\r\n";
        for command in ["SORT", "SORT_RO"] {
            let call = format!("return redis.call('{command}',KEYS[1],'BY','nosort')");
            client.check(&format!("EVAL \"{call}\" 1 set"), ORDERED);
        }
        client.check("RPUSH list 3 1 2", ":3\r\n");
        client.check(
            "EVAL \"return redis.call('SORT',KEYS[1],'BY','nosort')\" 1 list",
            "*3\r\n$1\r\n3\r\n$1\r\n1\r\n$1\r\n2\r\n",
        );
    });
}

#[test]
fn walks_clear_expired_keys_away() {
    on_all_shards(|_, client| {
        client.check("DEBUG SET-ACTIVE-EXPIRE 0", "+OK\r\n");
        for i in 0..50 {
            client.check(&format!("SET gone{i} v PX 1"), "+OK\r\n");
        }
        client.check("SET stays v", "+OK\r\n");
        std::thread::sleep(std::time::Duration::from_millis(5));
        client.check("DBSIZE", ":51\r\n");
        client.check("KEYS *", "*1\r\n$5\r\nstays\r\n");
        client.check("SCAN 0 MATCH s* COUNT 1000", "*2\r\n$1\r\n0\r\n*1\r\n$5\r\nstays\r\n");
        client.check("DBSIZE", ":51\r\n");
        client.check("SCAN 0 COUNT 1000", "*2\r\n$1\r\n0\r\n*1\r\n$5\r\nstays\r\n");
        client.check("DBSIZE", ":1\r\n");
        client.check("SET gone v PX 1", "+OK\r\n");
        client.check("DEL stays", ":1\r\n");
        std::thread::sleep(std::time::Duration::from_millis(5));
        client.check("RANDOMKEY", "$-1\r\n");
        client.check("DBSIZE", ":0\r\n");
    });
}
