//! Keyspace events: what subscribers hear of commands, in order.
use std::time::Duration;

use super::support::{Client, Server, words};

/// Commands and what Redis tells of them; the unit test of the events has them, too.
const WRITES: &str = include_str!("../../src/cmd/events.txt");

/// The same for reads, which tell of keys and fields whose time has come, and of keys that are not there. From a
/// Redis 8.0.6 server (`KEAnm`).
const READS: &str = "\
get nokey => keymiss nokey
mget nokey nokey => keymiss nokey, keymiss nokey
exists nokey nokey => keymiss nokey, keymiss nokey
ttl nokey => keymiss nokey
type nokey => keymiss nokey
set a 1 PX 10 => new a, set a, expire a
later 20
get a => expired a, keymiss a
get a => keymiss a
set a 1 PX 10 => new a, set a, expire a
set b 1 => new b, set b
later 20
mget b a nokey => expired a, keymiss a, keymiss nokey
set a 1 PX 10 => new a, set a, expire a
later 20
exists a => expired a, keymiss a
rpush l a => new l, rpush l
pexpire l 10 => expire l
later 20
lrange l 0 -1 => expired l, keymiss l
hset h f v g v => new h, hset h
hpexpire h 10 FIELDS 1 f => hexpire h
later 20
hget h f => hexpired h
hset h f v => hset h
hpexpire h 10 FIELDS 2 f g => hexpire h
later 20
hmget h f g => hexpired h, del h
hget h f => keymiss h
hset h f v => new h, hset h
hpexpire h 10 FIELDS 1 f => hexpire h
later 20
hget h f => hexpired h, del h
hset h f v => new h, hset h
hpexpire h 10 FIELDS 1 f => hexpire h
later 20
hexists h f => hexpired h, del h
hset h f v g v => new h, hset h
hpexpire h 10 FIELDS 1 f => hexpire h
later 20
hstrlen h f => hexpired h
hpexpire h 10 FIELDS 1 g => hexpire h
later 20
hgetall h =>
hlen h =>
hkeys h =>
llen nokey => keymiss nokey
zscore nokey m => keymiss nokey
getex nokey => keymiss nokey
set s 1 GET => keymiss s, new s, set s
set nokey 1 XX =>
sunion nokey a => keymiss nokey, keymiss a
object encoding nokey =>
dump nokey => keymiss nokey
strlen nokey => keymiss nokey
append nokey2 x => new nokey2, append nokey2
del nokey =>
rename nokey a =>
expire nokey 5 =>
copy nokey a => keymiss nokey
sort nokey => keymiss nokey
pfcount nokey => keymiss nokey
xlen nokey => keymiss nokey
bitcount nokey => keymiss nokey
bitfield nokey GET u8 0 => keymiss nokey
lmove nokey nokey2 LEFT LEFT =>
spop nokey =>
sinterstore a nokey nokey => keymiss nokey, keymiss nokey
zunionstore a 1 nokey => keymiss nokey
geosearchstore a nokey FROMLONLAT 0 0 BYRADIUS 1 km => keymiss nokey
bitop AND a nokey nokey => keymiss nokey, keymiss nokey
pfmerge hll nokey => keymiss hll, keymiss nokey, new hll, pfadd hll";

/// The events since the last call, as the table shows them. Before its own command is run, a listener hears what
/// happened before that.
fn events(listener: &mut Client) -> String {
    listener.send_words(&["PING"]);
    let mut events = Vec::new();
    loop {
        let message = listener.read().items();
        let [_, _, channel, key] = message.as_slice() else { return events.join(", ") };
        let channel = channel.string();
        let (db, event) =
            channel.strip_prefix("__keyevent@").and_then(|rest| rest.split_once("__:")).unwrap();
        let db = if db == "0" { String::new() } else { format!("{db}:") };
        events.push(format!("{db}{event} {}", key.string()));
    }
}

fn check(table: &str, setting: &str) {
    for shards in [1, 3] {
        let server = Server::start(shards, &["--notify-keyspace-events", setting]);
        let [mut client, mut listener] = [server.client(), server.client()];
        client.run("DEBUG SET-ACTIVE-EXPIRE 0");
        listener.run("PSUBSCRIBE __keyevent@*");
        for line in table.lines().filter(|line| !line.starts_with('#')) {
            let (command, wanted) = line.split_once(" =>").unwrap_or((line, ""));
            if let Some(ms) = command.strip_prefix("later ") {
                std::thread::sleep(Duration::from_millis(ms.parse().unwrap()));
                continue;
            }
            let reply = client.run_words(&words(command));
            let told = events(&mut listener);
            assert_eq!(told, wanted.trim_start(), "{command}, {shards} shards, {reply:?}");
        }
    }
}

#[test]
fn of_writes() {
    check(WRITES, "KEAn");
}

#[test]
fn of_reads() {
    check(READS, "KEAnm");
}
