//! Client-side caching: who is told that which keys have changed, when, and in which order.
use std::collections::HashMap;
use std::time::{Duration, Instant};

use super::support::{Client, Server, Value, command};
use super::{check, on_all_shards};

/// An array of keys.
fn array(keys: &[&str]) -> String {
    keys.iter()
        .fold(format!("*{}\r\n", keys.len()), |text, key| text + &format!("${}\r\n{key}\r\n", key.len()))
}

/// What a client that speaks RESP3 is told of keys; without keys: of all.
fn forget(keys: &[&str]) -> String {
    let keys = if keys.is_empty() { "_\r\n".into() } else { array(keys) };
    format!(">2\r\n$10\r\ninvalidate\r\n{keys}")
}

/// The same for a subscriber that speaks RESP2.
fn message(keys: &[&str]) -> String {
    let keys = if keys.is_empty() { "$-1\r\n".into() } else { array(keys) };
    format!("*3\r\n$7\r\nmessage\r\n$20\r\n__redis__:invalidate\r\n{keys}")
}

#[track_caller]
fn expect(client: &mut Client, want: impl AsRef<str>) {
    let got = client.read_bytes();
    assert_eq!(String::from_utf8_lossy(&got), want.as_ref());
}

/// A client that speaks RESP3 and tracks as `options` say.
fn tracker(server: &Server, options: &str) -> Client {
    let mut client = server.client();
    client.run("HELLO 3");
    client.check(&format!("CLIENT TRACKING ON {options}"), "+OK\r\n");
    client
}

/// A client that is subscribed to the messages of others, and its number.
fn subscriber(server: &Server) -> (Client, i64) {
    let mut client = server.client();
    let id = client.run("CLIENT ID").int();
    client.run("SUBSCRIBE __redis__:invalidate");
    (client, id)
}

/// A number that INFO tells.
fn told(client: &mut Client, name: &str) -> usize {
    let text = client.run("INFO").string();
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).unwrap();
    line.parse().unwrap()
}

#[track_caller]
fn await_told(client: &mut Client, name: &str, want: usize) {
    let end = Instant::now() + Duration::from_secs(10);
    loop {
        let got = told(client, name);
        if got == want {
            return;
        }
        assert!(Instant::now() < end, "{name} is {got}, not {want}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Enough keys for some to lie on every shard.
fn keys() -> Vec<String> {
    (0..16).map(|number| format!("key{number}")).collect()
}

#[test]
fn replies_are_those_of_the_reference() {
    check(
        r#"
        CLIENT TRACKING                => -ERR wrong number of arguments for 'client|tracking' command
        CLIENT TRACKING maybe          => -ERR syntax error
        CLIENT TRACKING ON what        => -ERR syntax error
        CLIENT TRACKING ON REDIRECT    => -ERR syntax error
        CLIENT TRACKING ON PREFIX      => -ERR syntax error
        CLIENT TRACKING ON REDIRECT x  => -ERR value is not an integer or out of range
        CLIENT TRACKING ON REDIRECT 0  => -ERR The client ID you want redirect to does not exist
        CLIENT TRACKING OFF REDIRECT 99999 => -ERR The client ID you want redirect to does not exist
        CLIENT TRACKING ON PREFIX a    => -ERR PREFIX option requires BCAST mode to be enabled
        CLIENT TRACKING ON BCAST OPTIN => -ERR OPTIN and OPTOUT are not compatible with BCAST
        CLIENT TRACKING ON OPTIN OPTOUT => -ERR You can't specify both OPTIN mode and OPTOUT mode
        CLIENT TRACKING ON BCAST PREFIX foo PREFIX a PREFIX fo => -ERR Prefix 'foo' overlaps with another provided prefix 'fo'. Prefixes for a single client must not overlap.
        CLIENT CACHING YES             => -ERR CLIENT CACHING can be called only when the client is in tracking mode with OPTIN or OPTOUT mode enabled
        CLIENT GETREDIR                => :-1
        CLIENT TRACKINGINFO            => *6\r\n$5\r\nflags\r\n*1\r\n$3\r\noff\r\n$8\r\nredirect\r\n:-1\r\n$8\r\nprefixes\r\n*0
        CLIENT TRACKING OFF            => +OK
        CLIENT TRACKING on noloop      => +OK
        CLIENT GETREDIR                => :0
        CLIENT TRACKINGINFO            => *6\r\n$5\r\nflags\r\n*2\r\n$2\r\non\r\n$6\r\nnoloop\r\n$8\r\nredirect\r\n:0\r\n$8\r\nprefixes\r\n*0
        CLIENT TRACKING ON BCAST       => -ERR You can't switch BCAST mode on/off before disabling tracking for this client, and then re-enabling it with a different mode.
        CLIENT CACHING maybe           => -ERR syntax error
        CLIENT CACHING YES             => -ERR CLIENT CACHING YES is only valid when tracking is enabled in OPTIN mode.
        CLIENT CACHING NO              => -ERR CLIENT CACHING NO is only valid when tracking is enabled in OPTOUT mode.
        CLIENT TRACKING ON OPTIN       => +OK
        CLIENT TRACKING ON OPTOUT      => -ERR You can't switch OPTIN/OPTOUT mode before disabling tracking for this client, and then re-enabling it with a different mode.
        CLIENT CACHING yes             => +OK
        CLIENT TRACKINGINFO            => *6\r\n$5\r\nflags\r\n*3\r\n$2\r\non\r\n$5\r\noptin\r\n$11\r\ncaching-yes\r\n$8\r\nredirect\r\n:0\r\n$8\r\nprefixes\r\n*0
        PING                           => +PONG
        CLIENT TRACKINGINFO            => *6\r\n$5\r\nflags\r\n*2\r\n$2\r\non\r\n$5\r\noptin\r\n$8\r\nredirect\r\n:0\r\n$8\r\nprefixes\r\n*0
        CLIENT TRACKING OFF            => +OK
        CLIENT TRACKING ON BCAST PREFIX foo PREFIX bar => +OK
        CLIENT TRACKING ON BCAST PREFIX fo => -ERR Prefix 'fo' overlaps with an existing prefix 'foo'. Prefixes for a single client must not overlap.
        CLIENT TRACKING ON BCAST       => +OK
        CLIENT TRACKINGINFO            => *6\r\n$5\r\nflags\r\n*2\r\n$2\r\non\r\n$5\r\nbcast\r\n$8\r\nredirect\r\n:0\r\n$8\r\nprefixes\r\n*3\r\n$0\r\n\r\n$3\r\nbar\r\n$3\r\nfoo
        RESET                          => +RESET
        CLIENT TRACKINGINFO            => *6\r\n$5\r\nflags\r\n*1\r\n$3\r\noff\r\n$8\r\nredirect\r\n:-1\r\n$8\r\nprefixes\r\n*0
        "#,
    );
}

#[test]
fn readers_hear_once_of_what_they_have_read() {
    on_all_shards(|server, client| {
        let mut reader = tracker(server, "");
        for key in keys() {
            client.run(&format!("SET {key} 1"));
            reader.check(&format!("GET {key}"), "$1\r\n1\r\n");
            reader.check(&format!("TTL {key}"), ":-1\r\n");
            client.run(&format!("SET {key} 2"));
            expect(&mut reader, forget(&[&key]));
            client.run(&format!("SET {key} 3"));
            // Of a key that is not there, too; and whatever the command is called.
            reader.check(&format!("EXISTS {key}x"), ":0\r\n");
            client.run(&format!("RENAME {key} {key}x"));
            expect(&mut reader, forget(&[&format!("{key}x")]));
        }
        // Writing is no reading.
        reader.run("SET a 1");
        reader.run("INCR a");
        reader.run("GETSET a 5");
        client.run("SET a 2");
        reader.expect_silence();
        assert_eq!(told(client, "tracking_total_keys"), 0);
    });
}

#[test]
fn reads_over_several_shards_are_entered() {
    on_all_shards(|server, client| {
        let (mut reader, mut other) = (tracker(server, ""), tracker(server, ""));
        let keys = keys();
        let all = keys.join(" ");
        reader.run(&format!("MGET {all}"));
        reader.run("MULTI");
        reader.run(&format!("EXISTS {all}"));
        reader.run("GET a");
        reader.run("EXEC");
        other.run(&format!("PFCOUNT {} {}", keys[0], keys[1]));
        assert_eq!(told(client, "tracking_total_keys"), keys.len() + 1);
        assert_eq!(told(client, "tracking_total_items"), keys.len() + 3);
        client.run(&format!("DEL {all}"));
        reader.expect_silence();
        let pairs: Vec<String> = keys.iter().map(|key| format!("{key} x")).collect();
        client.run(&format!("MSET {}", pairs.join(" ")));
        // In the order of the changes, each on its own.
        keys.iter().for_each(|key| expect(&mut reader, forget(&[key])));
        keys[..2].iter().for_each(|key| expect(&mut other, forget(&[key])));
        client.run("SET a x");
        expect(&mut reader, forget(&["a"]));
        reader.expect_silence();
        other.expect_silence();
    });
}

#[test]
fn ones_own_changes_are_told_behind_the_reply() {
    on_all_shards(|server, _| {
        let mut client = tracker(server, "");
        for key in keys() {
            client.run(&format!("HSET {key} f 1"));
            client.run(&format!("HGET {key} f"));
            client.check(&format!("HDEL {key} f"), ":1\r\n");
            expect(&mut client, forget(&[&key]));
        }
        client.run("MSET a 1 b 2");
        client.run("GET a");
        client.run("MULTI");
        client.run("INCR a");
        client.run("GET b");
        client.check("EXEC", "*2\r\n:2\r\n$1\r\n2\r\n");
        expect(&mut client, forget(&["a"]));
        // A client that waits: the reply first.
        client.run("RPUSH to x");
        client.run("LRANGE to 0 -1");
        client.send(command(&["BLMOVE", "from", "to", "LEFT", "LEFT", "0"]));
        let mut other = server.client();
        await_told(&mut other, "blocked_clients", 1);
        other.check("RPUSH from y", ":1\r\n");
        expect(&mut client, "$1\r\ny\r\n");
        expect(&mut client, forget(&["to"]));
        // And what it waited for is entered.
        client.send(command(&["XREAD", "BLOCK", "0", "STREAMS", "s", "0"]));
        await_told(&mut other, "blocked_clients", 1);
        other.run("XADD s 1-1 f v");
        assert!(matches!(client.read(), Value::Map(_)));
        // It was entered when it began to wait, and again when it was served.
        expect(&mut client, forget(&["s"]));
        other.run("XADD s 1-2 f v");
        expect(&mut client, forget(&["s"]));
        client.expect_silence();
    });
}

#[test]
fn messages_are_redirected() {
    on_all_shards(|server, client| {
        let (mut old, old_id) = subscriber(server);
        let mut new = server.client();
        new.run("HELLO 3");
        let new_id = new.run("CLIENT ID").int();
        let mut silent = server.client();
        let silent_id = silent.run("CLIENT ID").int();
        let mut readers = [old_id, new_id, silent_id].map(|id| tracker(server, &format!("REDIRECT {id}")));
        readers[0].run("HELLO 2");
        readers[0].check("CLIENT GETREDIR", format!(":{old_id}\r\n"));
        for key in keys() {
            readers.iter_mut().for_each(|reader| drop(reader.run(&format!("GET {key}"))));
            client.run(&format!("SET {key} 1"));
            expect(&mut old, message(&[&key]));
            expect(&mut new, forget(&[&key]));
        }
        silent.check("PING", "+PONG\r\n");
        client.run("FLUSHALL");
        expect(&mut old, message(&[]));
        expect(&mut new, forget(&[]));
        let list = client.run("CLIENT LIST").string();
        assert!(list.contains(&format!(" redir={new_id} resp=3 ")), "{list}");
        // Who listens is gone: the client itself hears of it.
        for (reader, target) in readers.iter_mut().zip([&mut old, &mut new]) {
            reader.run("GET a");
            target.check("QUIT", "+OK\r\n");
        }
        client.run("SET a 1");
        expect(&mut readers[1], format!(">2\r\n$21\r\ntracking-redir-broken\r\n:{new_id}\r\n"));
        let flags = readers[1].run("CLIENT TRACKINGINFO").items()[1].items();
        assert_eq!(flags.iter().map(Value::string).collect::<Vec<_>>(), ["on", "broken_redirect"]);
        assert!(client.run("CLIENT LIST").string().contains(" flags=tR "));
        readers.iter_mut().for_each(|reader| reader.expect_silence());
        readers[1].run("CLIENT TRACKING ON");
        readers[1].run("GET a");
        client.run("SET a 2");
        expect(&mut readers[1], forget(&["a"]));
    });
}

#[test]
fn reads_are_entered_as_asked_for() {
    on_all_shards(|server, client| {
        let (mut opt_in, mut opt_out) = (tracker(server, "OPTIN"), tracker(server, "OPTOUT"));
        for key in keys() {
            let get = format!("GET {key}");
            opt_in.run(&get);
            opt_in.check("CLIENT CACHING YES", "+OK\r\n");
            opt_in.run("CLIENT ID");
            opt_in.run(&format!("GET {key}a"));
            opt_in.run(&format!("GET {key}b"));
            opt_out.run(&format!("GET {key}b"));
            opt_out.check("CLIENT CACHING NO", "+OK\r\n");
            opt_out.run(&format!("GET {key}a"));
            for suffix in ["", "a", "b"] {
                client.run(&format!("SET {key}{suffix} x"));
            }
            expect(&mut opt_in, forget(&[&format!("{key}a")]));
            expect(&mut opt_out, forget(&[&format!("{key}b")]));
        }
        // For a transaction as a whole.
        opt_in.run("CLIENT CACHING YES");
        for line in ["MULTI", "GET a", "MGET b c", "EXEC", "GET d"] {
            opt_in.run(line);
        }
        // Pipelined, too.
        opt_out.send([&["CLIENT", "CACHING", "NO"][..], &["GET", "a"], &["GET", "d"]].map(command).concat());
        (0..3).for_each(|_| drop(opt_out.read()));
        client.run("MSET a 1 b 1 c 1 d 1");
        ["a", "b", "c"].iter().for_each(|key| expect(&mut opt_in, forget(&[key])));
        expect(&mut opt_out, forget(&["d"]));
        opt_in.expect_silence();
        opt_out.expect_silence();
    });
}

#[test]
fn who_skips_its_own_changes_hears_of_others() {
    on_all_shards(|server, client| {
        let (mut reader, mut all) = (tracker(server, "NOLOOP"), tracker(server, "BCAST NOLOOP"));
        for key in keys() {
            reader.run(&format!("GET {key}"));
            reader.run(&format!("SET {key} 1"));
            client.run(&format!("SET {key} 2"));
            expect(&mut all, forget(&[&key]));
            expect(&mut all, forget(&[&key]));
            reader.run(&format!("GET {key}"));
            client.run(&format!("SET {key} 2"));
            expect(&mut reader, forget(&[&key]));
            expect(&mut all, forget(&[&key]));
            all.run(&format!("SET {key} 3"));
        }
        // Expiry is nobody's change.
        all.run("CLIENT TRACKING ON BCAST NOLOOP");
        client.run("DEBUG SET-ACTIVE-EXPIRE 0");
        all.run("PSETEX a 1 x");
        std::thread::sleep(Duration::from_millis(5));
        all.check("GET a", "_\r\n");
        expect(&mut all, forget(&["a"]));
        reader.expect_silence();
        all.expect_silence();
    });
}

#[test]
fn prefixes_are_told_together() {
    on_all_shards(|server, client| {
        let mut one = tracker(server, "BCAST PREFIX a: PREFIX b:");
        let mut every = tracker(server, "BCAST");
        assert_eq!(told(client, "tracking_total_prefixes"), 3);
        client.run("MSET b:2 x a:1 x c:1 x b:1 x a:2 x");
        expect(&mut one, forget(&["a:1", "a:2"]));
        expect(&mut one, forget(&["b:1", "b:2"]));
        expect(&mut every, forget(&["a:1", "a:2", "b:1", "b:2", "c:1"]));
        for line in ["MULTI", "INCR a:3", "DEL b:1", "INCR a:3", "GET c:1", "EXEC"] {
            client.run(line);
        }
        expect(&mut one, forget(&["a:3"]));
        expect(&mut one, forget(&["b:1"]));
        expect(&mut every, forget(&["a:3", "b:1"]));
        one.check("CLIENT TRACKING ON BCAST PREFIX c:", "+OK\r\n");
        client.run("DEL c:1");
        expect(&mut one, forget(&["c:1"]));
        expect(&mut every, forget(&["c:1"]));
        // Reads of such a client are not entered, and its own changes are told behind the reply.
        every.run("GET a:1");
        every.check("SET a:1 y", "+OK\r\n");
        expect(&mut every, forget(&["a:1"]));
        expect(&mut one, forget(&["a:1"]));
        // The commands behind it in a pipeline count already.
        let mut late = server.client();
        late.run("HELLO 3");
        late.send([&["CLIENT", "TRACKING", "ON", "BCAST"][..], &["SET", "late", "x"]].map(command).concat());
        assert_eq!((late.read_bytes(), late.read_bytes()), (b"+OK\r\n".to_vec(), b"+OK\r\n".to_vec()));
        expect(&mut late, forget(&["late"]));
        expect(&mut every, forget(&["late"]));
        for client in [&mut one, &mut every, &mut late] {
            client.check("CLIENT TRACKING OFF", "+OK\r\n");
        }
        client.run("SET a:1 z");
        [&mut one, &mut every, &mut late].into_iter().for_each(|client| client.expect_silence());
        assert_eq!(told(client, "tracking_total_prefixes"), 0);
    });
}

#[test]
fn expired_keys_are_told() {
    on_all_shards(|server, client| {
        let mut reader = tracker(server, "");
        for key in keys() {
            client.run(&format!("PSETEX {key} 30 x"));
            reader.run(&format!("GET {key}"));
        }
        let mut left = keys();
        while !left.is_empty() {
            let told = reader.read().items()[1].items()[0].string();
            left.remove(left.iter().position(|key| *key == told).unwrap());
        }
        client.run("DEBUG SET-ACTIVE-EXPIRE 0");
        client.run("PSETEX a 30 x");
        client.run("SET b x");
        reader.run("MGET a b");
        std::thread::sleep(Duration::from_millis(40));
        reader.check("MGET a b", "*2\r\n_\r\n$1\r\nx\r\n");
        expect(&mut reader, forget(&["a"]));
        client.run("HSET h f v");
        client.run("HPEXPIRE h 20 FIELDS 1 f");
        reader.run("HGET h f");
        client.run("DEBUG SET-ACTIVE-EXPIRE 1");
        expect(&mut reader, forget(&["h"]));
        // A new deadline is a change.
        client.run("EXPIRE b 100");
        expect(&mut reader, forget(&["b"]));
        reader.expect_silence();
    });
}

#[test]
fn emptied_databases_are_told() {
    on_all_shards(|server, client| {
        let (mut reader, mut all) = (tracker(server, ""), tracker(server, "BCAST PREFIX x"));
        reader.run("MGET a b c d e");
        // A client does not say which database it means.
        client.run("SELECT 3");
        client.run("SET a x");
        expect(&mut reader, forget(&["a"]));
        client.run("FLUSHDB");
        expect(&mut reader, forget(&[]));
        expect(&mut all, forget(&[]));
        assert_eq!(told(client, "tracking_total_keys"), 0);
        client.run("FLUSHALL ASYNC");
        expect(&mut reader, forget(&[]));
        expect(&mut all, forget(&[]));
        for line in ["MULTI", "FLUSHDB", "PING"] {
            reader.run(line);
        }
        reader.check("EXEC", "*2\r\n+OK\r\n+PONG\r\n");
        expect(&mut reader, forget(&[]));
        reader.expect_silence();
    });
}

#[test]
fn who_stops_or_leaves_hears_nothing() {
    on_all_shards(|server, client| {
        let (mut off, mut reset, mut old) = (tracker(server, ""), tracker(server, ""), tracker(server, ""));
        let gone = [tracker(server, ""), tracker(server, "BCAST")];
        let all = keys().join(" ");
        for client in [&mut off, &mut reset, &mut old] {
            client.run(&format!("MGET {all}"));
        }
        assert_eq!(told(client, "tracking_clients"), 5);
        let list = client.run("CLIENT LIST").string();
        assert_eq!(list.matches(" flags=t ").count(), 4, "{list}");
        assert_eq!(list.matches(" flags=tB ").count(), 1, "{list}");
        off.check("CLIENT TRACKING OFF", "+OK\r\n");
        reset.check("RESET", "+RESET\r\n");
        old.run("HELLO 2");
        drop(gone);
        await_told(client, "tracking_clients", 1);
        client.run(&format!("DEL {all}"));
        for key in keys() {
            client.run(&format!("SET {key} x"));
        }
        [&mut off, &mut reset, &mut old].into_iter().for_each(|client| client.expect_silence());
        // What is left of an earlier time holds when the client comes back to it.
        off.run("CLIENT TRACKING ON");
        off.run("GET a");
        off.run("CLIENT TRACKING OFF");
        off.run("CLIENT TRACKING ON");
        client.run("SET a x");
        expect(&mut off, forget(&["a"]));
        assert_eq!(told(client, "tracking_total_items"), 0);
    });
}

#[test]
fn client_reply_does_not_hold_messages_back() {
    on_all_shards(|server, client| {
        let mut reader = tracker(server, "");
        for key in keys() {
            reader.run(&format!("GET {key}"));
            reader.send(command(&["CLIENT", "REPLY", "OFF"]));
            client.run(&format!("SET {key} x"));
            expect(&mut reader, forget(&[&key]));
            reader.check("CLIENT REPLY ON", "+OK\r\n");
        }
    });
}

#[test]
fn the_number_of_keys_is_limited() {
    const KEYS: usize = 3000;
    on_all_shards(|server, client| {
        let mut reader = tracker(server, "");
        let read = |reader: &mut Client, range: std::ops::Range<usize>| {
            let commands: Vec<_> =
                range.clone().map(|n| command(&["GET".into(), format!("key{n}")])).collect();
            reader.send(commands.concat());
            // Behind the replies, not behind each of them: the commands went to several shards at once.
            let (mut forgotten, mut replies) = (0, 0);
            loop {
                match reader.read() {
                    Value::Null => replies += 1,
                    Value::Push(_) => forgotten += 1,
                    _ => return forgotten,
                }
                if replies == range.len() {
                    replies = 0;
                    reader.send(command(&["PING"]));
                }
            }
        };
        assert_eq!(read(&mut reader, 0..KEYS), 0);
        client.check("CONFIG SET tracking-table-max-keys 100", "+OK\r\n");
        let forgotten = (0..KEYS - 100).map(|_| reader.read().items()[1].items()[0].string());
        let forgotten: std::collections::HashSet<String> = forgotten.collect();
        assert_eq!(forgotten.len(), KEYS - 100);
        reader.expect_silence();
        assert_eq!(told(client, "tracking_total_keys"), 100);
        // From now on one goes for each that comes.
        let again = read(&mut reader, KEYS..KEYS + 500);
        let all = told(client, "tracking_total_keys");
        assert!(all <= 100 && all + again == 600, "{again} {all}");
        client.run("CONFIG SET tracking-table-max-keys 0");
        assert_eq!(read(&mut reader, 0..KEYS), 0);
        assert!(told(client, "tracking_total_keys") >= KEYS);
    });
}

/// Clients keep what they read, others write: whatever is kept at the end is what is there.
#[test]
fn nothing_stale_is_kept() {
    const ROUNDS: usize = 300;
    on_all_shards(|server, client| {
        let keys = keys();
        let writers: Vec<_> = (0..2)
            .map(|seed: usize| {
                let (mut writer, keys) = (server.client(), keys.clone());
                std::thread::spawn(move || {
                    for round in 0..ROUNDS {
                        let key = &keys[(round * 7 + seed * 3) % keys.len()];
                        let other = &keys[(round * 5 + seed) % keys.len()];
                        match round % 3 {
                            0 => drop(writer.run(&format!("INCR {key}"))),
                            1 => drop(writer.run(&format!("MSET {key} {round} {other} {round}"))),
                            _ => {
                                writer.run("MULTI");
                                writer.run(&format!("INCR {key}"));
                                writer.run(&format!("DEL {other}"));
                                writer.run("EXEC");
                            }
                        }
                    }
                })
            })
            .collect();
        let readers: Vec<_> = (0..3)
            .map(|seed: usize| {
                let (mut reader, keys) = (tracker(server, ""), keys.clone());
                std::thread::spawn(move || {
                    let mut kept: HashMap<String, Value> = HashMap::new();
                    for round in 0..ROUNDS {
                        let asked: Vec<&String> = keys
                            .iter()
                            .cycle()
                            .skip(round * 3 + seed)
                            .filter(|key| !kept.contains_key(*key))
                            .take(4.min(keys.len() - kept.len()))
                            .collect();
                        reader.send(
                            asked.iter().map(|key| command(&["GET", key])).collect::<Vec<_>>().concat(),
                        );
                        for key in asked {
                            let value = hear(&mut reader, &mut kept);
                            kept.insert(key.clone(), value);
                        }
                        reader.send(command(&["PING"]));
                        hear(&mut reader, &mut kept);
                    }
                    (reader, kept)
                })
            })
            .collect();
        writers.into_iter().for_each(|writer| writer.join().unwrap());
        for reader in readers {
            let (mut reader, mut kept) = reader.join().unwrap();
            reader.send(command(&["PING"]));
            hear(&mut reader, &mut kept);
            for (key, value) in kept {
                let now = client.run(&format!("GET {key}"));
                assert_eq!(value, now, "{key}");
            }
        }
    });
}

/// The next reply; what is told before it is forgotten.
fn hear(reader: &mut Client, kept: &mut HashMap<String, Value>) -> Value {
    loop {
        match reader.read() {
            Value::Push(told) => {
                told[1].items().iter().for_each(|key| drop(kept.remove(&key.string())));
            }
            reply => return reply,
        }
    }
}
