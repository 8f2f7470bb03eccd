//! Runs one path through parser, dispatch and reply a given number of times, for `scripts/perf-ir`, which counts the
//! instructions of two such runs and divides the difference by the number of commands between them.
//!
//! usage: `ir --list`, or `ir PATH COMMANDS`
//!
//! Must stay true: whatever is not the path itself is the same for every COMMANDS up to [`COMMANDS_MAX`]: the keys
//! that are there, the requests that are made, the seed of the hash.
mod support;

use perigee::base::hash::KeyHash;
use perigee::server::in_process::InProcess;
use support::{jump, key, request};

#[global_allocator]
static ALLOCATOR: perigee::rt::sys::Allocator = perigee::rt::sys::Allocator;

/// The most commands of a run; as many keys are there at the start.
const COMMANDS_MAX: usize = 1 << 13;
/// Commands that arrive in one read.
const DEPTH: usize = 8;
const SEED: u64 = 0x5EED;
const VALUE: &[u8] = b"value-of-16-byte";
const LONGER: &[u8] = b"a value that needs a block of another size class";

/// One path.
struct Path {
    name: &'static str,
    /// What every key holds at the start.
    start: Start,
    /// What the connection sends ahead, and what another one does that stays there idle.
    ahead: (&'static [u8], &'static [u8]),
    /// Commands that arrive in one read.
    depth: usize,
    /// The command for the key of a number.
    command: fn(usize) -> Vec<u8>,
    /// How the first reply must begin: a path that ends in an error is not the path.
    reply: &'static [u8],
}

/// What is there at the start.
#[derive(Clone, Copy)]
enum Start {
    Value,
    Number,
    Deadline,
}

const fn path(name: &'static str, start: Start, command: fn(usize) -> Vec<u8>, reply: &'static [u8]) -> Path {
    Path { name, start, ahead: (b"", b""), depth: DEPTH, command, reply }
}

const fn get(name: &'static str, ahead: (&'static [u8], &'static [u8])) -> Path {
    Path { ahead, ..path(name, Start::Value, |n| request(&[b"GET", &key(n)]), b"$16") }
}

/// What EVALSHA and EVAL run, and the former's name for it.
const SCRIPT: &[u8] = b"return redis.call('INCR',KEYS[1])";
const SCRIPT_SHA: &[u8] = b"da8455f0535fd532821b3713a4eccd80fc4b8457";

const PATHS: &[Path] = &[
    path("ping", Start::Value, |_| request(&[b"PING"]), b"+PONG"),
    path("ping_inline", Start::Value, |_| b"PING\r\n".to_vec(), b"+PONG"),
    path("get_hit", Start::Value, |n| request(&[b"GET", &key(n)]), b"$16"),
    Path { depth: 1, ..path("get_hit_alone", Start::Value, |n| request(&[b"GET", &key(n)]), b"$16") },
    path("get_hit_number", Start::Number, |n| request(&[b"GET", &key(n)]), b"$"),
    path("get_hit_deadline", Start::Deadline, |n| request(&[b"GET", &key(n)]), b"$16"),
    path("get_miss", Start::Value, |n| request(&[b"GET", &key(n + COMMANDS_MAX)]), b"$-1"),
    path("set_new", Start::Value, |n| request(&[b"SET", &key(n + COMMANDS_MAX), VALUE]), b"+OK"),
    path("set_same_size", Start::Value, |n| request(&[b"SET", &key(n), b"16-bytes-as-well"]), b"+OK"),
    path("set_other_size", Start::Value, |n| request(&[b"SET", &key(n), LONGER]), b"+OK"),
    path("set_ex", Start::Deadline, |n| request(&[b"SET", &key(n), VALUE, b"EX", b"1000"]), b"+OK"),
    path("incr", Start::Number, |n| request(&[b"INCR", &key(n)]), b":"),
    path("append", Start::Value, |n| request(&[b"APPEND", &key(n), b"ab"]), b":18"),
    path("getrange", Start::Value, |n| request(&[b"GETRANGE", &key(n), b"2", b"-3"]), b"$12"),
    path("setbit", Start::Value, |n| request(&[b"SETBIT", &key(n), b"77", b"1"]), b":"),
    path("exists", Start::Value, |n| request(&[b"EXISTS", &key(n)]), b":1"),
    path("expire", Start::Deadline, |n| request(&[b"EXPIRE", &key(n), b"1000"]), b":1"),
    path("del", Start::Value, |n| request(&[b"DEL", &key(n)]), b":1"),
    path("mget_10", Start::Value, |n| ten(b"MGET", n, None), b"*10"),
    path("mset_10", Start::Value, |n| ten(b"MSET", n, Some(VALUE)), b"+OK"),
    path("scan_10", Start::Value, |_| request(&[b"SCAN", b"0"]), b"*2"),
    get("get_while_other_tracks", (b"", b"HELLO 3\r\nCLIENT TRACKING ON\r\n")),
    get(
        "get_after_events_off",
        (b"CONFIG SET notify-keyspace-events KEA\r\nCONFIG SET notify-keyspace-events ''\r\n", b""),
    ),
    get("get_without_histograms", (b"CONFIG SET latency-tracking no\r\n", b"")),
    path("eval_incr", Start::Number, |n| request(&[b"EVAL", SCRIPT, b"1", &key(n)]), b":"),
    Path {
        ahead: (b"SCRIPT LOAD \"return redis.call('INCR',KEYS[1])\"\r\n", b""),
        ..path("evalsha_incr", Start::Number, |n| request(&[b"EVALSHA", SCRIPT_SHA, b"1", &key(n)]), b":")
    },
    path("multi_4", Start::Number, multi, b"+OK\r\n+QUEUED"),
    path("publish_to_nobody", Start::Value, |_| request(&[b"PUBLISH", b"news", VALUE]), b":0"),
    Path {
        ahead: (b"HELLO 3\r\nSUBSCRIBE news\r\n", b""),
        ..path("publish_to_itself", Start::Value, |_| request(&[b"PUBLISH", b"news", VALUE]), b":1")
    },
];

/// A command on ten keys that lie far apart, each followed by `value`.
fn ten(name: &[u8], number: usize, value: Option<&[u8]>) -> Vec<u8> {
    let keys: Vec<Vec<u8>> = (0..10).map(|i| key((number + i * 797) % COMMANDS_MAX)).collect();
    let mut words = vec![name];
    for key in &keys {
        words.push(key);
        words.extend(value);
    }
    request(&words)
}

/// A transaction of four commands.
fn multi(number: usize) -> Vec<u8> {
    let key = key(number);
    let commands: [&[&[u8]]; 6] = [
        &[b"MULTI"],
        &[b"INCR", &key],
        &[b"GET", &key],
        &[b"SET", &key, b"1000"],
        &[b"EXISTS", &key],
        &[b"EXEC"],
    ];
    commands.map(request).concat()
}

fn fill(server: &mut InProcess, start: Start) {
    for number in 0..COMMANDS_MAX {
        let (key, digits) = (key(number), (number + 100_000).to_string());
        let words: &[&[u8]] = match start {
            Start::Value => &[b"SET", &key, VALUE],
            Start::Number => &[b"SET", &key, digits.as_bytes()],
            Start::Deadline => &[b"SET", &key, VALUE, b"EX", b"5000"],
        };
        assert_eq!(server.exchange(&request(words)), b"+OK\r\n");
    }
}

fn run(path: &Path, commands: usize) -> Result<(), String> {
    if commands > COMMANDS_MAX || !commands.is_multiple_of(DEPTH) {
        return Err(format!("COMMANDS must be a multiple of {DEPTH}, at most {COMMANDS_MAX}"));
    }
    if !KeyHash::seed_for_measurement(SEED) {
        return Err("a key was hashed before the seed was fixed".into());
    }
    let mut server = InProcess::new()?;
    fill(&mut server, path.start);
    server.exchange(path.ahead.0);
    server.beside(path.ahead.1);
    let requests: Vec<Vec<u8>> =
        (0..COMMANDS_MAX).map(|step| (path.command)(jump(step, COMMANDS_MAX))).collect();
    // Every batch is made, whether it runs or not.
    let batches: Vec<Vec<u8>> = requests.chunks(path.depth).map(<[Vec<u8>]>::concat).collect();
    for batch in &batches[..commands / path.depth] {
        let replies = server.exchange(batch);
        if !replies.starts_with(path.reply) {
            return Err(format!("{}: unexpected reply {}", path.name, String::from_utf8_lossy(replies)));
        }
    }
    Ok(())
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).filter(|arg| arg != "--bench").collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    let done = match words[..] {
        ["--list"] => {
            PATHS.iter().for_each(|path| println!("{}", path.name));
            Ok(())
        }
        [name, commands] => match (PATHS.iter().find(|path| path.name == name), commands.parse()) {
            (Some(path), Ok(commands)) => run(path, commands),
            _ => Err("no such path, or not a number of commands".into()),
        },
        // `cargo bench` runs every benchmark; this one only counts under callgrind.
        _ => {
            println!("usage: ir --list | ir PATH COMMANDS (see scripts/perf-ir)");
            Ok(())
        }
    };
    if let Err(error) = done {
        eprintln!("{error}");
        std::process::exit(1);
    }
}
