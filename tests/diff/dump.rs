//! Values that change servers by DUMP and RESTORE: both must say the same of them afterwards, and keep them in the same
//! way.
use super::generate::Generator;
use super::pair::{Mode, Pair, Words};
use super::support::{Rng, Value, show, words};
use super::{setting, waiting};

const OURS: usize = 0;
const THEIRS: usize = 1;
/// Random sequences whose values change servers.
const SEQUENCES: u64 = 300;

/// Values of all kinds and forms; keys are the second words. What a server does not know is left out.
const VALUES: &str = "\
SET string hello
SET number -70000
SET large-number 5000000000
SET empty \"\"
SETRANGE zeros 20000 x
APPEND edited abc
RPUSH list 1 a -300 5000000000 \"\"
SADD ints 5 -3 70000
SADD set a 5 bc
ZADD zset 1 a -1.5 b inf c 3.2 7 -0.0 zero
HSET hash f v n 12 \"\" \"\"
HSET dated f v g w n 1 keep 2
HPEXPIREAT dated 4000000000005 FIELDS 1 g
HPEXPIREAT dated 4000000000000 FIELDS 2 n f
HSET persisted f v g w
HPEXPIREAT persisted 4000000000000 FIELDS 1 f
HPERSIST persisted FIELDS 1 f
XADD stream 1-1 temp 1 hum x
XADD stream 2-0 temp 2 hum y
XADD stream 2-1 other 3
XADD stream 9000-0 temp 2 hum z
XDEL stream 2-0
XGROUP CREATE stream g1 0
XGROUP CREATE stream g2 2-1 ENTRIESREAD 3
XGROUP CREATECONSUMER stream g2 carol
XREADGROUP GROUP g1 alice COUNT 2 STREAMS stream >
XREADGROUP GROUP g1 bob COUNT 1 STREAMS stream >
XACK stream g1 1-1
XADD emptied 5-5 a b
XDEL emptied 5-5
PFADD hll a b c
SET expiring x PX 100000000
";

/// Payloads of the vectors for versions up to this one.
pub fn payloads(version_max: u16) -> Vec<Vec<u8>> {
    let text = include_str!("../../src/rdb/value/vectors.txt");
    let lines = text.lines().filter(|line| !line.starts_with('#')).skip(1).step_by(3);
    let payload = |line: &str| {
        let (version, hex) = line.split_once(' ').expect("version and bytes");
        let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
        let mut bytes: Vec<u8> = hex.as_bytes().chunks(2).map(byte).collect();
        let version = match bytes[0] {
            ..=19 => 10,
            20..=21 => 11,
            _ => version.parse().expect("a version"),
        };
        perigee::rdb::payload::seal(&mut bytes, version);
        (version <= version_max).then_some(bytes)
    };
    lines.filter_map(payload).collect()
}

fn version_of(payload: &[u8]) -> u16 {
    let at = payload.len() - 10;
    u16::from_le_bytes([payload[at], payload[at + 1]])
}

fn ask(pair: &mut Pair, whose: usize, question: &str, key: &[u8]) -> Value {
    let mut command = words(question);
    command.push(key.to_vec());
    pair.run_words(whose, &command)
}

fn payload(pair: &mut Pair, whose: usize, key: &[u8]) -> Option<Vec<u8>> {
    match ask(pair, whose, "DUMP", key) {
        Value::Bulk(payload) => Some(payload),
        other => {
            assert_eq!(other, Value::Null, "a reply to DUMP");
            None
        }
    }
}

/// Makes a key out of a payload.
fn restore(pair: &mut Pair, whose: usize, key: &[u8], payload: &[u8]) -> Value {
    pair.run_words(whose, &[b"RESTORE", key, b"0", payload, b"REPLACE"])
}

/// Whether both servers digest the value in a payload alike: Valkey has its own way with deadlines of fields, and
/// Redis before 7.2 prints scores with all their digits.
fn digested_alike(pair: &Pair, payload: &[u8]) -> bool {
    payload[0] != 22 && (pair.version >= (7, 2) || ![3, 5, 12, 17].contains(&payload[0]))
}

/// What both servers say of a restored value.
#[track_caller]
fn compare(pair: &mut Pair, key: &[u8], payload: &[u8], what: &str) {
    let mut questions = vec!["TYPE"];
    if digested_alike(pair, payload) {
        questions.push("DEBUG DIGEST-VALUE");
    }
    // Forms are those of Redis since 7.2; other houses have others.
    if pair.version >= (7, 2) && version_of_theirs(pair) < 80 {
        questions.push("OBJECT ENCODING");
    }
    for question in questions {
        let [ours, theirs] = [OURS, THEIRS].map(|whose| ask(pair, whose, question, key).string());
        let key = String::from_utf8_lossy(key);
        assert!(ours == theirs, "{what} {key}, {question}: {ours}, {theirs}; {}", show(payload));
    }
}

/// The version of the reference's own payloads.
fn version_of_theirs(pair: &mut Pair) -> u16 {
    payload(pair, THEIRS, b"version").map(|payload| version_of(&payload)).expect("a key to look at")
}

/// A value of `from` goes to both servers, and both say the same of it; from ours it goes on to theirs.
#[track_caller]
fn goes_to_both(pair: &mut Pair, from: usize, key: &[u8]) {
    let Some(payload) = payload(pair, from, key) else { return };
    let what = if from == OURS { "ours" } else { "theirs" };
    let copy = [b"copy of ", key].concat();
    for whose in [OURS, THEIRS] {
        let taken = restore(pair, whose, &copy, &payload);
        if whose == THEIRS && version_of(&payload) > 11 && version_of_theirs(pair) != version_of(&payload) {
            // They have no deadlines of fields, or their own.
            return assert!(taken.is_error());
        }
        assert_eq!(taken, Value::Simple("OK".into()), "{what}, to {whose}: {}", show(&payload));
    }
    compare(pair, &copy, &payload, what);
    let again = self::payload(pair, OURS, &copy).expect("the copy");
    let taken = restore(pair, THEIRS, b"again", &again);
    if taken.is_error() {
        return assert!(version_of(&again) == 12 && version_of_theirs(pair) != 12, "{}", show(&again));
    }
    let [once, twice] = [&copy, &b"again"[..]].map(|key| ask(pair, THEIRS, "DEBUG DIGEST-VALUE", key));
    assert_eq!(once, twice, "{what}: {}, {}", show(&payload), show(&again));
}

fn both_ways(pair: &mut Pair, key: &[u8]) {
    goes_to_both(pair, THEIRS, key);
    goes_to_both(pair, OURS, key);
}

fn mark(pair: &mut Pair) {
    for whose in [OURS, THEIRS] {
        pair.run_words(whose, &[b"SET".to_vec(), b"version".to_vec(), b"x".to_vec()]);
    }
}

fn fill(pair: &mut Pair, line: &str) -> Vec<u8> {
    let command = words(line);
    for whose in [OURS, THEIRS] {
        pair.run_words(whose, &command);
    }
    command[1].clone()
}

/// Values too large for the small forms.
fn large_values() -> Vec<String> {
    let numbered = |command: &str, count: usize, each: &dyn Fn(usize) -> String| {
        (0..count).fold(command.to_string(), |line, n| line + " " + &each(n))
    };
    let long = "x".repeat(100);
    vec![
        numbered("RPUSH long-list", 5000, &|n| format!("element-{n}")),
        format!("RPUSH list-of-large {} {} a", "y".repeat(20_000), "z".repeat(9000)),
        numbered("SADD many-ints", 600, &|n| (n * n).to_string()),
        numbered("SADD many-members", 200, &|n| format!("member-{n}")),
        format!("SADD long-member a {long}"),
        numbered("ZADD many-scores", 300, &|n| format!("{} m{n}", n as f64 / 7.0)),
        format!("ZADD long-scored 1 a inf {long} -0.0 z"),
        numbered("HSET many-fields", 600, &|n| format!("f{n} {n}")),
        format!("HSET long-field a b c {long}"),
        format!("HSET long-dated a b c {long} d e"),
        "HPEXPIREAT long-dated 4000000000000 FIELDS 1 a".to_string(),
        "HPEXPIREAT long-dated 4000000000009 FIELDS 1 c".to_string(),
        format!("SET long-string {}", long.repeat(50)),
    ]
}

#[test]
fn values_of_all_forms_change_servers() {
    let Some(mut pair) = Pair::start(2) else { return };
    mark(&mut pair);
    let mut keys = Vec::new();
    for line in VALUES.lines().map(str::to_string).chain(large_values()) {
        keys.push(fill(&mut pair, &line));
    }
    for entry in 0..250 {
        fill(&mut pair, &format!("XADD long-stream {}-0 name {entry} other x", 1 + entry / 3));
    }
    keys.push(b"long-stream".to_vec());
    keys.extend([b"stream".to_vec(), b"emptied".to_vec()]);
    for key in &keys {
        both_ways(&mut pair, key);
    }
    // Groups are not in the digest: what comes back from us is what went.
    let Some(payload) = payload(&mut pair, THEIRS, b"stream") else { return };
    restore(&mut pair, OURS, b"stream", &payload);
    let ours = self::payload(&mut pair, OURS, b"stream").unwrap();
    restore(&mut pair, THEIRS, b"returned", &ours);
    let [before, after] = [&b"stream"[..], b"returned"]
        .map(|key| pair.run_words(THEIRS, &[b"XINFO", &b"STREAM"[..], key, b"FULL", b"COUNT", b"0"]));
    assert_eq!(without_active_times(&before), without_active_times(&after));
}

/// The texts and numbers of a reply, without what follows `active-time`, which older formats lack.
fn without_active_times(reply: &Value) -> Vec<String> {
    let mut flat = Vec::new();
    flatten(reply, &mut flat);
    let active: Vec<usize> = (0..flat.len()).filter(|at| flat[*at] == "active-time").collect();
    active.iter().for_each(|at| flat[at + 1].clear());
    flat
}

fn flatten(reply: &Value, flat: &mut Vec<String>) {
    match reply {
        Value::Array(items) => items.iter().for_each(|item| flatten(item, flat)),
        Value::Bulk(bytes) => flat.push(String::from_utf8_lossy(bytes).into_owned()),
        other => flat.push(format!("{other:?}")),
    }
}

#[test]
fn random_values_change_servers() {
    let Some(mut pair) = Pair::start(1) else { return };
    let generator = Generator::new(&mut pair);
    let (mut alike, sequences) = (0, setting("PERIGEE_SEQUENCES", SEQUENCES));
    for seed in 0..sequences {
        let mut rng = Rng::new(seed.wrapping_mul(0x1000) + 77);
        let (mut commands, _): (Vec<Words>, _) = generator.sequence(&mut rng);
        commands.retain(|words| !waiting::waits(words));
        let mode = Mode { resp3: false, pipelined: true, transaction: 0 };
        if pair.first_difference(&commands, &[], mode).is_some() {
            // The other tests tell.
            continue;
        }
        alike += 1;
        pair.run("SELECT 0");
        mark(&mut pair);
        for key in super::generate::KEYS {
            both_ways(&mut pair, key.as_bytes());
        }
    }
    assert!(alike > sequences / 4, "{alike} of {sequences}");
}

#[test]
fn old_payloads_are_read_alike() {
    let Some(mut pair) = Pair::start(1) else { return };
    mark(&mut pair);
    let known = version_of_theirs(&mut pair);
    for payload in payloads(if known < 80 { known } else { 11 }) {
        for whose in [OURS, THEIRS] {
            let taken = restore(&mut pair, whose, b"k", &payload);
            assert_eq!(taken, Value::Simple("OK".into()), "{whose}: {}", show(&payload));
        }
        compare(&mut pair, b"k", &payload, "vector");
    }
}
