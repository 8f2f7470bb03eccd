//! The table of commands and records (`src/cmd/records.txt`, recorded by `scripts/record-log.py`), held against what
//! this server logs.
use super::world::{World, records};

const TABLE: &str = include_str!("../../src/cmd/records.txt");

/// Commands whose outcome is chance: what they leave must only have the right form.
const CHANCE: &[&str] = &["spop"];

/// Where this server logs something else, on purpose.
const OTHERWISE: &[(&str, &str, &str)] = &[
    ("bitfield bf OVERFLOW FAIL INCRBY u2 100 9", "", "the string grows, which Redis forgets"),
    (
        "bitfield bf OVERFLOW FAIL INCRBY u2 100 9",
        "bitfield bf OVERFLOW FAIL INCRBY u2 100 9",
        "the string grows, which Redis forgets",
    ),
    ("bitfield bf2 OVERFLOW FAIL INCRBY u2 0 9", "bitfield bf2 OVERFLOW FAIL INCRBY u2 0 9", "the same"),
    (
        "xadd y MINID ~ 1-3 1-* a 1 b 2",
        "xadd y MINID = 1-3 1-5 a 1 b 2",
        "the first entry that is there, instead of one that was",
    ),
    ("swapdb 1 1", "", "nothing changes"),
    ("flushdb", "", "nothing changes"),
    ("flushdb ASYNC", "", "nothing changes"),
    ("flushall", "", "nothing changes"),
];

/// The words of a line.
pub fn words(line: &str) -> Vec<Vec<u8>> {
    let (mut words, mut rest) = (Vec::new(), line.trim_start());
    while !rest.is_empty() {
        let quoted = rest.strip_prefix('"').and_then(|rest| rest.split_once('"'));
        let (word, behind) = quoted.unwrap_or_else(|| rest.split_once(' ').unwrap_or((rest, "")));
        let mut pieces = word.split("\\x");
        let mut bytes = pieces.next().unwrap_or_default().as_bytes().to_vec();
        for piece in pieces {
            bytes.push(u8::from_str_radix(&piece[..2], 16).unwrap());
            bytes.extend_from_slice(&piece.as_bytes()[2..]);
        }
        words.push(bytes);
        rest = behind.trim_start();
    }
    words
}

/// Lines of the table: the command, and what Redis logs of it.
pub fn lines() -> impl Iterator<Item = (&'static str, &'static str)> {
    let lines = TABLE.lines().filter(|line| !line.starts_with('#'));
    lines.map(|line| line.split_once(" =>").map_or((line, ""), |(command, wanted)| (command, wanted.trim())))
}

/// A word of the log as the table has it.
fn show(word: &[u8], now_ms: u64) -> String {
    let text = String::from_utf8_lossy(word);
    if let Ok(time) = text.parse::<i64>()
        && text.len() == 13
        && (time - now_ms as i64).abs() < 10_000_000
    {
        return format!("<{}>", (time - now_ms as i64).div_euclid(10) * 10);
    }
    let is_plain = |byte: &u8| byte.is_ascii_graphic() && !b"\"\\;".contains(byte);
    if word.iter().all(is_plain) && !word.is_empty() {
        return text.into_owned();
    }
    let escaped = |byte: &u8| match byte {
        b' ' => " ".to_string(),
        byte if is_plain(byte) => char::from(*byte).to_string(),
        byte => format!("\\x{byte:02x}"),
    };
    format!("\"{}\"", word.iter().map(escaped).collect::<String>())
}

fn shown(world: &mut World, db: &mut u32) -> String {
    let now_ms = world.now_ms();
    let mut shown = Vec::new();
    for record in records(&world.take_log()) {
        if record[0] == b"SELECT" {
            *db = String::from_utf8_lossy(&record[1]).parse().expect("a number");
            continue;
        }
        let is_mark = record.len() == 1 && [&b"MULTI"[..], b"EXEC"].contains(&&record[0][..]);
        let prefix = if *db == 0 || is_mark { String::new() } else { format!("{db}:") };
        let words: Vec<String> = record.iter().map(|word| show(word, now_ms)).collect();
        shown.push(format!("{prefix}{}", words.join(" ")));
    }
    shown.join("; ")
}

fn check(shards: usize) {
    let (mut world, mut wrong, mut db) = (World::start(shards), Vec::new(), 0);
    for (command, wanted) in lines() {
        let words = words(command);
        if words[0] == b"later" {
            world.pass(String::from_utf8_lossy(&words[1]).parse().expect("a number"));
            continue;
        }
        let reply = world.run(&words);
        let logged = shown(&mut world, &mut db);
        let is_chance = CHANCE.contains(&String::from_utf8_lossy(&words[0]).as_ref());
        let same = |text: &str| text.split(' ').take(2).map(str::to_string).collect::<Vec<_>>();
        let is_otherwise = OTHERWISE.iter().any(|(line, ours, _)| *line == command && *ours == logged);
        let is_right = if is_chance { same(&logged) == same(wanted) } else { logged == wanted };
        if !is_right && !is_otherwise {
            wrong.push(format!("{command} => {logged}\n    wanted {wanted}\n    {reply:?}"));
        }
    }
    assert!(wrong.is_empty(), "{shards} shards, {} lines:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn on_one_shard() {
    check(1);
}

#[test]
fn on_three_shards() {
    check(3);
}
