//! OBJECT FREQ: what counts as a use under an LFU policy, and how often.
use super::support::{Client, Server};
use super::{check, on_all_shards};

const LFU_NEEDED: &str = "An LFU maxmemory policy is not selected, access frequency not tracked. Please note that when \
                          switching between policies at runtime LRU and LFU data will take some time to adjust.";

fn frequency(client: &mut Client, key: &str) -> i64 {
    client.run(&format!("OBJECT FREQ {key}")).int()
}

/// The raw access field, as DEBUG OBJECT shows it.
fn access(client: &mut Client, key: &str) -> i64 {
    let facts = client.run(&format!("DEBUG OBJECT {key}")).string();
    let lru = facts.split(' ').find_map(|fact| fact.strip_prefix("lru:")).expect("an access field");
    lru.parse().expect("a number")
}

/// With these settings every use counts and nothing fades.
const EXACT: &str = "CONFIG SET maxmemory-policy allkeys-lfu lfu-log-factor 0 lfu-decay-time 0";

/// Runs commands under [`EXACT`] and compares the frequency of a key after each: `command => key frequency`. The right
/// numbers are those of Redis 8.0.6.
fn check_frequencies(script: &str) {
    on_all_shards(|_, client| {
        client.check(EXACT, "+OK\r\n");
        for line in script.lines().map(str::trim).filter(|line| !line.is_empty()) {
            let (command, want) = line.split_once("=>").expect("a frequency");
            client.run(command.trim());
            for (key, want) in
                want.split(',').map(|pair| pair.trim().split_once(' ').expect("key and number"))
            {
                assert_eq!(frequency(client, key).to_string(), want, "{line}");
            }
        }
    });
}

#[test]
fn reads_and_writes_of_strings_count() {
    check_frequencies(
        r#"
        SET k x               => k 5
        GET k                 => k 6
        SET k y               => k 7
        SET k longer-than-any-block-has-room-for-without-a-move => k 8
        SET k 12              => k 9
        INCR k                => k 10
        INCRBYFLOAT k 1.5     => k 11
        APPEND k x            => k 12
        GETSET k x            => k 14
        SET k x GET           => k 16
        SET k x NX            => k 17
        SET k x NX GET        => k 19
        SETNX k x             => k 20
        MSET k x k y          => k 22
        MSETNX other x k y    => k 23
        SETEX k 100 x         => k 24
        GETEX k PERSIST       => k 25
        STRLEN k              => k 26
        GETRANGE k 0 1        => k 27
        SETRANGE k 0 a        => k 28
        SETRANGE k 0 ""       => k 29
        MGET k other k        => k 31
        LCS k k               => k 33
        SETBIT k 1 1          => k 34
        GETBIT k 1            => k 35
        BITCOUNT k            => k 36
        BITFIELD k SET u8 0 1 => k 37
        BITFIELD k GET u8 0   => k 38
        BITOP NOT k k         => k 40
        "#,
    );
}

#[test]
fn keys_that_move_are_fresh_and_looks_do_not_count() {
    check_frequencies(
        r#"
        SET k text            => k 5
        EXPIRE k 100          => k 6
        EXPIRE k 1 NX         => k 7
        TTL k                 => k 7
        PERSIST k             => k 8
        TOUCH k k             => k 10
        EXISTS k              => k 10
        TYPE k                => k 10
        MEMORY USAGE k        => k 10
        OBJECT ENCODING k     => k 10
        RENAME k k            => k 11
        SET other text        => other 5
        RENAMENX k other      => k 12, other 6
        COPY k other          => k 13, other 7
        COPY k other REPLACE  => k 14, other 5
        COPY k new            => k 15, new 5
        COPY k new DB 1       => k 16
        MOVE new 1            => new 6
        MOVE k 2              => other 5
        RENAME other k        => k 5
        TOUCH k               => k 6
        RENAMENX k again      => again 5
        CLIENT NO-TOUCH ON    => again 5
        GET again             => again 5
        SET again another     => again 5
        SET again a-value-that-makes-its-block-move => again 5
        APPEND again x        => again 5
        EXPIRE again 100      => again 5
        TOUCH again           => again 6
        "#,
    );
}

#[test]
fn a_policy_that_changes_takes_effect_within_a_pipeline() {
    on_all_shards(|_, client| {
        client.send(format!("{EXACT}\r\nSET a x\r\nGET a\r\nSET b x\r\nOBJECT FREQ a\r\nOBJECT FREQ b\r\n"));
        let replies: Vec<Vec<u8>> = (0..6).map(|_| client.read_bytes()).collect();
        assert_eq!(replies.concat(), b"+OK\r\n+OK\r\n$1\r\nx\r\n+OK\r\n:6\r\n:5\r\n");
    });
}

#[test]
fn many_uses_count_less_and_less() {
    on_all_shards(|_, client| {
        client.check("CONFIG SET maxmemory-policy volatile-lfu", "+OK\r\n");
        client.check("SET hot text", "+OK\r\n");
        client.check("OBJECT FREQ hot", ":5\r\n");
        client.send("GET hot\r\n".repeat(1000));
        (0..1000).for_each(|_| drop(client.read()));
        // About 18 at a factor of 10; the run may meet the turn of a minute.
        let count = frequency(client, "hot");
        assert!((10..30).contains(&count), "{count} after a thousand uses");
    });
}

#[test]
fn counters_fade_by_the_minute() {
    let server = Server::start(1, &["--lfu-decay-time", "0"]);
    let client = &mut server.client();
    // A clock of seconds, read as minutes and a counter: the minutes lie far from those of today.
    client.check("SET k text", "+OK\r\n");
    let field = access(client, "k");
    client.check("CONFIG SET maxmemory-policy allkeys-lfu", "+OK\r\n");
    assert_eq!((access(client, "k"), frequency(client, "k")), (field, field & 255));
    client.check("SET fresh text", "+OK\r\n");
    let today = access(client, "fresh") >> 8;
    let elapsed = (today - (field >> 8)).rem_euclid(65_535);
    for decay in [1, 100, 1000, 60_000, 65_536] {
        client.check(&format!("CONFIG SET lfu-decay-time {decay}"), "+OK\r\n");
        let (now, want) = (frequency(client, "k"), (field & 255) - elapsed / decay);
        // A minute may turn meanwhile.
        assert!(now == want.max(0) || now == (want - 1).max(0), "{now}, not {want}, at {decay}");
    }
    client.check("CONFIG SET lfu-decay-time 1000 lfu-log-factor 1000000", "+OK\r\n");
    let faded = frequency(client, "k");
    client.run("GET k");
    client.check("CONFIG SET lfu-decay-time 1", "+OK\r\n");
    assert!(
        (faded - 1..=faded + 1).contains(&frequency(client, "k")),
        "a use keeps what is left from fading"
    );
}

#[test]
fn frequencies_need_an_lfu_policy() {
    check(&format!(
        r#"
        SET a x                                           => +OK
        OBJECT FREQ a                                     => -ERR {LFU_NEEDED}
        OBJECT FREQ none                                  => $-1
        CONFIG SET maxmemory-policy allkeys-lru           => +OK
        OBJECT FREQ a                                     => -ERR {LFU_NEEDED}
        OBJECT IDLETIME a                                 => :0
        CONFIG SET maxmemory-policy volatile-lfu          => +OK
        OBJECT FREQ none                                  => $-1
        OBJECT IDLETIME a => -ERR {}
        SET b x                                           => +OK
        OBJECT FREQ b                                     => :5
        CONFIG SET maxmemory-policy noeviction            => +OK
        GET b                                             => $1\r\nx
        OBJECT IDLETIME b                                 => :0
        "#,
        LFU_NEEDED.replace("not selected, access frequency", "selected, idle time"),
    ));
}
