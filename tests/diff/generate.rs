//! Random commands from the table's own syntax lines: every row is tried as soon as it exists.
use perigee::cmd::spec::{Group, Spec};
use perigee::server::table::families;

use super::compare::NEWER_TOKENS;
use super::pair::{Pair, Words};
use super::support::{Rng, words};
use super::syntax::{self, Node};
use super::{sorted, sorting, waiting};

/// Few, so that commands meet; on four shards they live apart.
pub const KEYS: &[&str] = &["k0", "k1", "k2", "k3", "k4", "{k0}x", "k6", ""];
/// Databases in use.
const DATABASES: usize = 3;
/// Commands of a sequence at most.
const COMMANDS_MAX: usize = 40;

/// Rows that random sequences leave out, with the reason.
const LEFT_OUT: &[(&str, &str)] = &[
    ("scan", "cursors differ; scripts and the wire tests cover it"),
    (
        "dbsize",
        "counts keys whose time has come until somebody meets them; the questions ask it when all were met",
    ),
    ("object|help", "scripts compare it"),
    ("spop", "what it leaves differs; scripts cover it"),
    ("object|freq", "needs a policy that keeps frequencies; scripts cover it"),
    ("lcs", "quadratic: taken seldom, see `SELDOM`"),
    ("pfselftest", "takes a second"),
];
/// One in so many of their turns is kept.
const SELDOM: &[(&str, usize)] =
    &[("flushall", 8), ("flushdb", 6), ("swapdb", 2), ("keys", 3), ("lcs", 2), ("pfdebug", 3)];

/// Rows whose random commands have no mistakes in them, since some mistakes leave the order of elements open; scripts
/// cover them.
const UNSPOILT: &[&str] = &["sort", "sort_ro"];

/// What most sequences of a family begin with, so that the rest meets something.
const OPENINGS: &[(Group, &[&str])] = &[(
    Group::Stream,
    &[
        "XADD k0 1-1 a 1",
        "XADD k0 2-0 a x b -5",
        "XADD k0 3-5 a hello",
        "XGROUP CREATE k0 g 0",
        "XREADGROUP GROUP g c COUNT 2 STREAMS k0 >",
        "XADD k0 5-5 b 70000 a 1",
        "XGROUP CREATE k1 g 1-1 MKSTREAM",
        "XADD k1 1-2 a 1",
        "XADD k1 4-1 a 1",
        "XREADGROUP GROUP g d STREAMS k1 >",
    ],
)];
/// Such a sequence keeps to so many keys.
const OPENED_KEYS: usize = 2;

const SMALL: &[&str] =
    &["0", "1", "-1", "2", "3", "5", "7", "8", "-2", "-5", "10", "16", "31", "64", "100", "1000"];
/// None is an offset that a string can have: zeros up to there would take seconds.
const EDGES: &[&str] = &[
    "9223372036854775807",
    "-9223372036854775808",
    "9223372036854775808",
    "-9223372036854775809",
    "4294967296",
    "1.5",
    "",
    " 1",
    "1 ",
    "+1",
    "01",
    "-0",
    "abc",
    "1e3",
];
const FLOATS: &[&str] = &[
    "0.1",
    "-0.1",
    "3.0e3",
    "1e17",
    "5.0000000000000001",
    "0.00001",
    "1e400",
    "inf",
    "nan",
    "-inf",
    "0x10",
    "1e-20",
    ".5",
];
const TEXTS: &[&str] = &[
    "",
    "a",
    "hello",
    "Hello World",
    "foobar",
    "10",
    "-7",
    "012",
    "1.5",
    "3.14159",
    "9223372036854775807",
    "9223372036854775806",
    "-9223372036854775808",
    "12345678901234567890123",
    "\0\u{1}\u{7f}",
    "\r\n",
    "this text is too long for the short encoding of strings: 44",
    "exactly forty-four bytes long, no less or mo.",
];
/// Fields of hashes.
const FIELDS: &[&str] = &["f0", "f1", "f2", "f3", "f4", "1", "-7", "012", "", "f5"];
/// Short and few, so that sets have some in common; now and then too long for a listpack.
const MEMBERS: &[&str] = &[
    "0",
    "1",
    "2",
    "3",
    "5",
    "-7",
    "70000",
    "-9223372036854775808",
    "a",
    "b",
    "c",
    "hello",
    "",
    "012",
    "-0",
    "1.5",
    "sixty-four bytes, which is as long as a listpack's member can be",
    "sixty-five bytes, which is more than a listpack's member can have",
];
const PATTERNS: &[&str] =
    &["*", "k*", "k?", "k[0-3]", "k[^0]", "{k0}*", "", "\\k0", "[", "k[0-", "*x", "none"];
const TYPES: &[&str] = &["string", "list", "hash", "STRING", "nosuch"];
const ENCODINGS: &[&str] = &[
    "u8", "i8", "u1", "i1", "u63", "i64", "u16", "i5", "u3", "i16", "u32", "u64", "i65", "u0", "x8", "U8",
    "u", "8",
];
/// All times are far away, and no two closer than half a second, so that no clock matters.
const UNIX_SECONDS: &[&str] = &["33177117420", "5000000000", "4000000001", "1", "1000000000", "0", "-1"];
const UNIX_MILLISECONDS: &[&str] = &["33177117420000", "5000000000123", "1", "1000000000000", "0", "-1"];
/// Offsets are not larger, so that nobody makes gigabytes of zeros.
const OFFSETS: &[&str] =
    &["0", "1", "2", "7", "8", "9", "15", "63", "64", "100", "1000", "-1", "4294967296", "#1", "#0"];

/// Few, so that they are found again.
const ELEMENTS: &[&str] = &["a", "b", "c", "hello", "10", "-7", "5000000000", "010", "", "\0", "1.5"];
/// Indexes that Redis does not cut to 32 bits.
const INDEXES: &[&str] =
    &["0", "1", "-1", "2", "3", "-2", "-3", "5", "-5", "7", "100", "-100", "1.5", "", "x", "2147483647"];
/// Stands for the number of keys until they are there.
const KEY_COUNT: &str = "<numkeys>";

/// Ids of stream entries: few, so that commands meet.
const IDS: &[&str] = &[
    "1-1", "1-2", "2-0", "2-1", "2", "3", "3-5", "4-1", "5-5", "6-0", "7", "8-1", "9-9", "0", "0-0", "0-1",
    "12-3",
];
/// Where ranges of entries begin.
const STARTS: &[&str] = &["-", "-", "-", "1-1", "2-0", "(2-0", "3", "(3", "5-5", "(", "0", "9", "+"];
/// And where they end.
const ENDS: &[&str] = &["+", "+", "+", "5-5", "4-1", "(4-1", "3", "(3", "2-0", "(0-0", "9", "-"];
/// Lines that make more calls that say something than the rows' own, and none that give ids by the clock, or leave open in
/// which order equal elements come.
const LINES: &[(&str, &str)] = &[
    (
        "sort",
        "key [<BY by-pattern|ALPHA|ALPHA>] [[LIMIT offset count]] [[GET get-pattern [GET get-pattern]]] [ASC|DESC] [[STORE destination]]",
    ),
    (
        "sort_ro",
        "key [<BY by-pattern|ALPHA|ALPHA>] [[LIMIT offset count]] [[GET get-pattern [GET get-pattern]]] [ASC|DESC]",
    ),
    (
        "xadd",
        "key [[NOMKSTREAM]] [[<MAXLEN [=|~] count|MINID [=|~] id> [[LIMIT count]]]] id field value [[field value]]",
    ),
    ("xtrim", "key <MAXLEN [=|~] count|MINID [=|~] id> [[LIMIT count]]"),
    ("xread", "[COUNT count] [[BLOCK block-ms]] STREAMS <key id|key id|key key id id|key key id>"),
    (
        "xreadgroup",
        "GROUP group consumer [COUNT count] [[BLOCK block-ms]] [[NOACK]] STREAMS <key id|key id|key key id id|key key id>",
    ),
];

/// A row with its syntax.
struct Entry {
    name: &'static str,
    group: Group,
    syntax: Vec<Node>,
    forbidden: Vec<&'static str>,
    seldom: usize,
}

/// Makes sequences.
pub struct Generator {
    entries: Vec<Entry>,
    digests: bool,
    select: bool,
}

impl Generator {
    /// For what both servers of the pair know.
    pub fn new(pair: &mut Pair) -> Generator {
        let mut entries = Vec::new();
        for spec in families().iter().flat_map(|family| family.iter()) {
            let rows = if spec.subs.is_empty() { std::slice::from_ref(spec) } else { spec.subs };
            entries.extend(rows.iter().filter_map(|row| entry(row, pair)));
        }
        assert!(entries.len() > 20, "the table has rows");
        let digests = !pair.run("DEBUG DIGEST-VALUE k0")[0].is_error();
        let select = pair.speaks_resp3;
        Generator { entries, digests, select }
    }

    /// A sequence, and questions about everything that it may have changed, to be asked behind it.
    pub fn sequence(&self, rng: &mut Rng) -> (Vec<Words>, Vec<Words>) {
        if rng.one_in(15) {
            return (self.sorts(rng), self.questions());
        }
        let mut commands = Vec::new();
        let count = 2 + rng.below(COMMANDS_MAX - 1);
        // Most commands are of one family, so that they meet.
        let focus = rng.pick(&self.entries).group;
        if focus == Group::List {
            let size = rng.pick(&["-2", "-1", "1", "2", "3", "5", "8"]);
            commands.push(
                ["CONFIG", "SET", "list-max-listpack-size", size].map(|w| w.as_bytes().to_vec()).into(),
            );
        }
        let (limits, large) = sorted::limits(rng);
        let always_large = limits[3] == b"0";
        commands.push(limits);
        let opening = OPENINGS.iter().filter(|(group, _)| *group == focus).flat_map(|(_, lines)| *lines);
        let opened = opening.clone().next().is_some();
        commands.extend(opening.filter(|_| !rng.one_in(8)).map(|line| words(line)));
        let end = commands.len() + count;
        while commands.len() < end {
            let entry = rng.pick(&self.entries);
            if rng.one_in(if entry.group == focus { entry.seldom } else { 8 * entry.seldom }) {
                let words = self.command(entry, rng);
                if sorted::is_certain(&words, large) {
                    commands.push(words);
                }
            }
            if matches!(focus, Group::SortedSet | Group::Geo) && rng.one_in(5) {
                commands.push(sorted::fill(rng));
            }
            if rng.one_in(if matches!(focus, Group::String | Group::Bitmap | Group::Generic) {
                4
            } else {
                100
            }) {
                // Without values there is little to see.
                commands.push(fill(rng));
            }
            if self.select && rng.one_in(12) {
                commands.push(vec![b"SELECT".to_vec(), rng.below(DATABASES).to_string().into_bytes()]);
            }
        }
        // SORT gives a sorted set its large form there.
        let is_sorted_set = |words: &Words| is_named(words, b"z") || is_named(words, b"geo");
        if !always_large && commands.iter().any(is_sorted_set) {
            commands.retain(|words| !is_named(words, b"sort"));
        }
        if opened {
            commands.iter_mut().flatten().for_each(keep_few_keys);
        }
        (commands, self.questions())
    }

    /// A sequence for SORT, which would seldom meet what it can sort.
    fn sorts(&self, rng: &mut Rng) -> Vec<Words> {
        let rows: Vec<&Entry> = self.entries.iter().filter(|entry| UNSPOILT.contains(&entry.name)).collect();
        let mut commands = Vec::new();
        for _ in 0..4 + rng.below(COMMANDS_MAX) {
            let sorts = !rows.is_empty() && rng.one_in(2);
            commands.push(if sorts {
                self.command(rng.pick::<&Entry>(&rows), rng)
            } else {
                sorting::fill(rng)
            });
        }
        commands
    }

    fn questions(&self) -> Vec<Words> {
        let mut commands = Vec::new();
        let databases = if self.select { DATABASES } else { 1 };
        for database in 0..databases {
            if self.select {
                commands.push(vec![b"SELECT".to_vec(), database.to_string().into_bytes()]);
            }
            for key in KEYS {
                let key = key.as_bytes().to_vec();
                commands.push(vec![b"GET".to_vec(), key.clone()]);
                commands.push(vec![b"OBJECT".to_vec(), b"ENCODING".to_vec(), key.clone()]);
                commands.push(vec![b"PTTL".to_vec(), key.clone()]);
                commands.push(vec![b"XINFO".to_vec(), b"STREAM".to_vec(), key, b"FULL".to_vec()]);
            }
            commands.push(vec![b"DBSIZE".to_vec()]);
            if self.digests {
                let mut words = vec![b"DEBUG".to_vec(), b"DIGEST-VALUE".to_vec()];
                words.extend(KEYS.iter().map(|k| k.as_bytes().to_vec()));
                commands.push(words);
            }
        }
        commands
    }

    fn command(&self, entry: &Entry, rng: &mut Rng) -> Words {
        let mut words: Words = entry.name.split('|').map(|w| w.as_bytes().to_vec()).collect();
        let names = words.len();
        emit(&entry.syntax, entry, rng, &mut words);
        count_keys(&mut words, rng);
        if !rng.one_in(8) {
            fit_count(&mut words, entry.name);
        }
        if rng.one_in(15) && !UNSPOILT.contains(&entry.name) {
            spoil(&mut words, names, rng);
        }
        if rng.one_in(4) {
            words[0].make_ascii_uppercase();
        }
        words.retain(|w| !entry.forbidden.iter().any(|f| w.eq_ignore_ascii_case(f.as_bytes())));
        words
    }
}

/// Whether the name of a command begins so.
fn is_named(words: &Words, start: &[u8]) -> bool {
    words[0].to_ascii_lowercase().starts_with(start)
}

/// A command that gives a key a value.
fn fill(rng: &mut Rng) -> Words {
    let key = value("key", "", rng);
    if rng.one_in(3) {
        return vec![b"SET".to_vec(), key, value("value", "set", rng)];
    }
    if rng.one_in(4) {
        return sorted::fill(rng);
    }
    if rng.one_in(3) {
        let mut words = vec![b"RPUSH".to_vec(), key];
        words.extend((0..1 + rng.below(12)).map(|_| rng.below(20).to_string().into_bytes()));
        return words;
    }
    if rng.one_in(2) {
        let mut words = vec![b"HSET".to_vec(), key];
        for _ in 0..1 + rng.below(6) {
            words.extend([value("field", "hset", rng), value("value", "hset", rng)]);
        }
        return words;
    }
    let mut words = vec![b"SADD".to_vec(), key];
    // Mostly integers, or all of them.
    let numbers = rng.one_in(2);
    for _ in 0..1 + rng.below(12) {
        words.push(if numbers {
            rng.below(20).to_string().into_bytes()
        } else {
            value("member", "sadd", rng)
        });
    }
    words
}

fn entry(row: &'static Spec, pair: &mut Pair) -> Option<Entry> {
    // Scripts and the wire tests cover what needs more than one connection.
    if matches!(
        row.group,
        Group::Connection | Group::Server | Group::Scripting | Group::PubSub | Group::Transactions
    ) {
        return None;
    }
    let line = LINES.iter().find(|(name, _)| *name == row.name);
    if LEFT_OUT.iter().any(|(name, reason)| *name == row.name && !reason.contains("SELDOM")) {
        return None;
    }
    let known = pair.run(&format!("COMMAND INFO {}", row.name))[1].items();
    if known.first().is_none_or(|row| *row == super::support::Value::Null) {
        eprintln!("the reference does not know {}", row.name);
        return None;
    }
    let newer = NEWER_TOKENS.iter().filter(|(since, name, _)| pair.version < *since && *name == row.name);
    let seldom = SELDOM.iter().find(|(name, _)| *name == row.name).map_or(1, |(_, n)| *n);
    Some(Entry {
        name: row.name,
        group: row.group,
        syntax: syntax::parse(line.map_or(row.syntax, |(_, line)| line)),
        forbidden: newer.flat_map(|(_, _, tokens)| tokens.iter().copied()).collect(),
        seldom,
    })
}

fn emit(nodes: &[Node], entry: &Entry, rng: &mut Rng, words: &mut Words) {
    for node in nodes {
        match node {
            Node::Token(token) => words.push(token.as_bytes().to_vec()),
            Node::Value(name) => words.push(value(name, entry.name, rng)),
            Node::Optional(inner) => {
                if rng.one_in(2) {
                    emit(inner, entry, rng, words);
                }
            }
            Node::Repeat(inner) => {
                for _ in 0..1 + rng.below(4) {
                    emit(inner, entry, rng, words);
                }
            }
            Node::Choice(ways) => {
                let allowed: Vec<_> = ways
                    .iter()
                    .filter(|way| {
                        !way.iter()
                            .any(|n| matches!(n, Node::Token(t) if entry.forbidden.contains(&t.as_str())))
                    })
                    .collect();
                emit(rng.pick::<&Vec<Node>>(&allowed), entry, rng, words);
            }
        }
    }
}

/// Says how many keys there are where a command wants to know.
fn count_keys(words: &mut Words, rng: &mut Rng) {
    let Some(at) = words.iter().position(|word| word == KEY_COUNT.as_bytes()) else { return };
    let is_key = |word: &&Vec<u8>| KEYS.iter().any(|key| key.as_bytes() == word.as_slice());
    let count = words[at + 1..].iter().take_while(is_key).count();
    words[at] = if rng.one_in(12) { value("count", "", rng) } else { count.to_string().into_bytes() };
}

/// Makes the number behind FIELDS that of the fields that follow.
fn fit_count(words: &mut Words, command: &str) {
    if let Some(at) = words.iter().position(|word| word == b"FIELDS") {
        let step = if command == "hsetex" { 2 } else { 1 };
        let fields = words.len().saturating_sub(at + 2) / step;
        words[at + 1] = fields.to_string().into_bytes();
    }
}

/// Puts one of the first keys in the place of another.
fn keep_few_keys(word: &mut Vec<u8>) {
    if let Some(at) = KEYS.iter().position(|key| !key.is_empty() && key.as_bytes() == word) {
        *word = KEYS[at % OPENED_KEYS].as_bytes().to_vec();
    }
}

/// Makes a mistake in the arguments.
fn spoil(words: &mut Words, names: usize, rng: &mut Rng) {
    let at = names + rng.below(words.len() - names + 1);
    match rng.below(4) {
        0 if at < words.len() => drop(words.remove(at)),
        1 if at < words.len() => words[at] = rng.pick(EDGES).as_bytes().to_vec(),
        2 if at < words.len() => {
            let word = words[at].clone();
            words.push(word);
        }
        _ => words.insert(at, rng.pick(SMALL).as_bytes().to_vec()),
    }
}

/// A value for a name of a syntax line.
pub fn value(name: &str, command: &str, rng: &mut Rng) -> Vec<u8> {
    if let Some(value) = sorted::value(name, command, rng).or_else(|| sorting::value(name, rng)) {
        return value;
    }
    let from = match name {
        "id" | "lastid" | "last-id" | "max-deleted-id" | "start" | "end" | "group" | "consumer" | "field"
        | "min-idle-time" | "ms" | "count"
            if command.starts_with('x') =>
        {
            return stream_value(name, command, rng);
        }
        "key" | "newkey" | "source" | "destination" | "destkey" | "sourcekey" | "key1" | "key2" => KEYS,
        "element" if command.starts_with("pf") && rng.one_in(2) => {
            return rng.below(3000).to_string().into_bytes();
        }
        "subcommand" => &["GETREG", "decode", "DECODE", "encoding", "ENCODING", "todense", "nosuch"],
        "seconds" if !rng.one_in(3) => return (1000 + rng.below(10_000_000)).to_string().into_bytes(),
        "milliseconds" if !rng.one_in(3) => {
            return format!("{}500", 1000 + rng.below(10_000_000)).into_bytes();
        }
        // Two that are the same would be told apart by a clock that went on.
        "seconds" | "milliseconds" if rng.one_in(3) => {
            return (10_000_000_000_000 + rng.bits() % 1_000_000 * 1_000_500).to_string().into_bytes();
        }
        "seconds" | "milliseconds" => &["0", "-1", "-100"],
        "unix-time-seconds" => UNIX_SECONDS,
        "unix-time-milliseconds" => UNIX_MILLISECONDS,
        "field" if rng.one_in(20) => return long_text(rng),
        "field" => FIELDS,
        "serialized-value" => return payload(rng),
        "ttl" if rng.one_in(2) => return format!("{}500", 1000 + rng.below(10_000_000)).into_bytes(),
        "ttl" => return rng.pick(&["0", "0", "0", "-1", "x", "10000000000000"]).as_bytes().to_vec(),
        "frequency" => &["0", "7", "255", "256", "-1"],
        "pattern" if command == "hscan" => &["*", "f*", "f[0-2]", "1", "none"],
        "pattern" => PATTERNS,
        "type" => TYPES,
        "encoding" => ENCODINGS,
        "db" | "destination-db" | "index1" | "index2" => &["0", "1", "2", "2", "1", "15", "16", "-1", "x"],
        "timeout" if command == "wait" => return waiting::milliseconds(rng),
        "timeout" => return waiting::seconds(rng),
        "block-ms" => return waiting::milliseconds(rng),
        "numkeys" => return KEY_COUNT.as_bytes().to_vec(),
        "index" => return rng.pick(INDEXES).as_bytes().to_vec(),
        "element" | "pivot" if rng.one_in(12) => return long_text(rng),
        "element" | "pivot" => return rng.pick(ELEMENTS).as_bytes().to_vec(),
        "bit" => &["0", "1", "0", "1", "2", "-1", "x"],
        "offset" => OFFSETS,
        "increment" if command.ends_with("incrbyfloat") && rng.one_in(2) => FLOATS,
        "member" if rng.one_in(40) => return long_text(rng),
        "member" => MEMBERS,
        // Whoever goes on somewhere sees what the server's own order has there.
        "cursor" => &["0", "0", "0", "x", "-1", ""],
        "value" if command == "setbit" => &["0", "1", "1", "2", "-1", "x"],
        "value" | "comparison-value" | "message" if rng.one_in(6) => return long_text(rng),
        "value" | "comparison-value" | "message" => TEXTS,
        _ => SMALL,
    };
    let number = ![KEYS, TEXTS, MEMBERS].iter().any(|texts| std::ptr::eq(from, *texts));
    let from = if number && rng.one_in(20) { EDGES } else { from };
    // A new size of the value, which the lists do not have, and an old text cut.
    let text = rng.pick(from);
    text.as_bytes().to_vec()
}

/// A payload of DUMP that all references read, or take for spoilt.
fn payload(rng: &mut Rng) -> Vec<u8> {
    let payloads = super::dump::payloads(10);
    let mut payload = rng.pick(&payloads).clone();
    if rng.one_in(10) {
        let at = rng.below(payload.len());
        payload[at] ^= 0x10;
    }
    payload
}

/// A value for a name of a syntax line of a stream command.
fn stream_value(name: &str, command: &str, rng: &mut Rng) -> Vec<u8> {
    let from = match name {
        "start" => STARTS,
        "end" => ENDS,
        "group" => &["g", "g", "g", "g", "g", "h", ""],
        "consumer" => &["c", "d", "c", "e"],
        "field" => &["a", "b", "a", "17", ""],
        // Far from each other, so that no clock matters.
        "min-idle-time" => &["0", "0", "1000000", "50000000", "-5"],
        "ms" => &["0", "5000000", "100000000", "-1"],
        // The reference reserves memory for it.
        "count" if command == "xautoclaim" => return rng.pick(SMALL).as_bytes().to_vec(),
        "count" => SMALL,
        "id" if command.starts_with("xread") => &[">", ">", ">", "0", "1-1", "2", "$", "+", "0-0"],
        "id" if command == "xadd" && rng.one_in(2) => return format!("{}-*", rng.below(60)).into_bytes(),
        _ => IDS,
    };
    let from = if rng.one_in(30) { EDGES } else { from };
    rng.pick(from).as_bytes().to_vec()
}

fn long_text(rng: &mut Rng) -> Vec<u8> {
    const SIZES: &[usize] = &[20, 43, 44, 45, 63, 64, 100, 128, 255, 256, 1000, 4096, 8100, 20_000, 33_000];
    let letter = b'a' + rng.below(26) as u8;
    let size = *rng.pick(SIZES);
    (0..size).map(|i| letter ^ (i % 7) as u8).collect()
}
