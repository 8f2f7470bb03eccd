//! Scripts written by hand, one per family: what random commands seldom meet.
//!
//! One command a line, quoted as in `support::words`. `#` starts a comment; `@8.0` before a command: only for
//! reference servers of at least that version; an empty line: all databases are emptied.
use super::pair::{Mode, Pair, Words};
use super::shrink;
use super::support::words;

/// Scripts that are not run within transactions: what they try has to do with the connection.
const ALONE: &[&str] = &["connection", "pubsub", "server", "transactions"];
/// RESP3, pipelined, and commands within one transaction.
const MODES: &[(bool, bool, usize)] = &[
    (false, false, 0),
    (false, true, 0),
    (true, false, 0),
    (true, true, 0),
    (false, true, 1),
    (true, true, 3),
];

fn run(name: &str, text: &str) {
    for shards in [1, 2, 4] {
        let Some(mut pair) = Pair::start(shards) else { return };
        for (resp3, pipelined, transaction) in MODES.iter().copied() {
            if resp3 && !pair.speaks_resp3 || transaction > 0 && ALONE.contains(&name) {
                continue;
            }
            for part in text.split("\n\n") {
                let commands: Vec<Words> = part.lines().filter_map(|l| command(l, pair.version)).collect();
                let mode = Mode { resp3, pipelined, transaction };
                if let Some(found) = pair.first_difference(&commands, &[], mode) {
                    let (commands, found) = shrink::shrink(&mut pair, commands, &[], mode, found);
                    panic!("{name}, {shards} shard(s), {mode:?}:\n{}{found}", shrink::listing(&commands));
                }
            }
        }
    }
}

fn command(line: &str, version: (u32, u32)) -> Option<Words> {
    let line = line.trim();
    if line.is_empty() || line.starts_with('#') {
        return None;
    }
    let Some(rest) = line.strip_prefix('@') else { return Some(words(line)) };
    let (since, rest) = rest.split_once(' ').expect("a command follows the version");
    let (major, minor) = since.split_once('.').expect("major.minor");
    let since = (major.parse().unwrap(), minor.parse().unwrap());
    (version >= since).then(|| words(rest))
}

macro_rules! scripts {
    ($($name:ident),*) => {$(
        #[test]
        fn $name() {
            run(stringify!($name), include_str!(concat!("scripts/", stringify!($name), ".txt")));
        }
    )*};
}

scripts!(
    string,
    bitmap,
    hyperloglog,
    set,
    hash,
    list,
    stream,
    sorted_set,
    geo,
    generic,
    pubsub,
    sort,
    connection,
    server,
    transactions
);
