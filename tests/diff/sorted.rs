//! Arguments of sorted sets and geospatial indexes, for the random sequences.
use super::pair::Words;
use super::support::Rng;

const SCORES: &[&str] = &[
    "0",
    "1",
    "1",
    "1",
    "2",
    "2",
    "3",
    "-1",
    "-0",
    "0.1",
    "1.5",
    "-2.25",
    "10",
    "inf",
    "-inf",
    "+inf",
    "1e20",
    "3e-7",
    "0x10",
    "9007199254740993",
    "4611686018427388928",
    "1e17",
    "-1e400",
    "nan",
    "x",
    "",
];
const BOUNDS: &[&str] = &[
    "-inf", "+inf", "-inf", "+inf", "0", "1", "(1", "2", "(2", "(0", "-1", "1.5", "(inf", "(-inf", "1e400",
    "3", "(3", "", "(", "nan", "0x1", "x", " 1",
];
const LEX_BOUNDS: &[&str] = &[
    "-", "+", "-", "+", "[a", "(a", "[b", "(b", "[c", "(c", "[", "(", "[1", "(7", "[hello", "(\u{7f}", "a",
    "", "--",
];
const PLACES: &[&str] =
    &["0", "1", "2", "-1", "-1", "-2", "5", "-5", "100", "-100", "9223372036854775807", "x", "1.5"];
const WEIGHTS: &[&str] = &["1", "2", "0", "-1", "0.5", "inf", "1e300", "3", "x"];
const COUNTS: &[&str] = &["1", "2", "3", "0", "5", "10", "-1", "-3", "100", "x"];
const OFFSETS: &[&str] = &["0", "0", "1", "2", "3", "7", "-1"];

/// Whether the arguments of a command come from here.
fn is_ours(command: &str) -> bool {
    command.starts_with('z') || command.starts_with("geo")
}

fn by_lex(command: &str) -> bool {
    command.contains("lex")
}

/// A coordinate, seldom the same twice: what is equally far comes in no certain order.
fn coordinate(limit: usize, rng: &mut Rng) -> Vec<u8> {
    if rng.one_in(20) {
        return rng
            .pick(&["180", "-180", "85.05112878", "-85.05112878", "86", "181", "x", "inf"])
            .as_bytes()
            .to_vec();
    }
    // Mostly near each other.
    let spread = if rng.one_in(4) { limit } else { 3 };
    let whole = rng.below(2 * spread) as i64 - spread as i64;
    format!("{whole}.{:06}", rng.below(1_000_000)).into_bytes()
}

/// A value for a name of a syntax line of these families.
pub fn value(name: &str, command: &str, rng: &mut Rng) -> Option<Vec<u8>> {
    if !is_ours(command) {
        return None;
    }
    let from = match name {
        "dst" | "src" | "storekey" | "storedistkey" => return Some(super::generate::value("key", "", rng)),
        "member1" | "member2" => return Some(super::generate::value("member", command, rng)),
        "longitude" => return Some(coordinate(180, rng)),
        "latitude" => return Some(coordinate(85, rng)),
        "radius" | "width" | "height" => {
            return Some(format!("{}", rng.below(2_000_000) as f64 / 7.0).into_bytes());
        }
        "score:double" | "score" | "increment" => SCORES,
        "min" | "max" | "min:double" | "max:double" if by_lex(command) => LEX_BOUNDS,
        "min:double" | "max:double" | "min" | "max" if command != "zrangestore" => BOUNDS,
        "min" | "max" | "start:string" | "stop:string" if rng.one_in(2) => PLACES,
        "min" | "max" | "start:string" | "stop:string" if rng.one_in(2) => BOUNDS,
        "min" | "max" | "start:string" | "stop:string" => LEX_BOUNDS,
        "start" | "stop" => PLACES,
        "weight:integer" => WEIGHTS,
        "count" | "limit:integer" => COUNTS,
        "offset" => OFFSETS,
        _ => return None,
    };
    Some(rng.pick(from).as_bytes().to_vec())
}

/// Limits of the small form for one sequence, as commands. `true`: sorted sets become large soon.
pub fn limits(rng: &mut Rng) -> (Words, bool) {
    let large = rng.one_in(2);
    let entries = if large { *rng.pick(&["0", "1", "2", "4", "8"]) } else { "128" };
    let bytes = if large { "8" } else { "100000" };
    let words = ["CONFIG", "SET", "zset-max-listpack-entries", entries, "zset-max-listpack-value", bytes];
    (words.map(|word| word.as_bytes().to_vec()).into(), large)
}

/// Whether the reply depends on nothing but what is promised. `large`: sorted sets become large soon.
pub fn is_certain(words: &Words, large: bool) -> bool {
    let texts: Vec<String> =
        words.iter().map(|word| String::from_utf8_lossy(word).to_ascii_lowercase()).collect();
    let has = |word: &str| texts.iter().any(|text| text == word);
    if texts[0].starts_with("geo") {
        // Of members that are equally far some are cut off.
        return !has("count");
    }
    if !texts[0].starts_with('z') {
        return true;
    }
    // Where scores differ, members are in no order. A small set is walked along all the same, up to a limit.
    let lex = (by_lex(&texts[0]) || has("bylex")) && (large || has("limit"));
    // Redis takes negative offsets into large sets for offsets from the other end.
    let offset = texts.iter().position(|text| text == "limit").and_then(|at| texts.get(at + 1));
    let back = large && offset.is_some_and(|offset| offset.starts_with('-'));
    // Whoever goes on somewhere sees what the server's own order has there.
    let goes_on = large && texts[0] == "zscan" && texts.get(2).is_some_and(|cursor| cursor != "0");
    !lex && !back && !goes_on
}

/// A command that makes a sorted set.
pub fn fill(rng: &mut Rng) -> Words {
    let geo = rng.one_in(3);
    let mut words = vec![if geo { b"GEOADD".to_vec() } else { b"ZADD".to_vec() }];
    words.push(super::generate::value("key", "", rng));
    let same = rng.one_in(3);
    for _ in 0..1 + rng.below(9) {
        if geo {
            words.push(format!("{}.{:06}", rng.below(6), rng.below(1_000_000)).into_bytes());
            words.push(format!("{}.{:06}", rng.below(6), rng.below(1_000_000)).into_bytes());
        } else if same {
            words.push(b"0".to_vec());
        } else {
            words.push(rng.pick(&SCORES[..20]).as_bytes().to_vec());
        }
        words.push(super::generate::value("member", "zadd", rng));
    }
    words
}
