//! Commands that wait, and transactions, among random commands.
use super::generate::KEYS;
use super::pair::Words;
use super::support::{Rng, words};

/// Waits are as short as this, since nobody but the clock ends them.
const WAIT_SECONDS_MAX: f64 = 0.005;

/// The argument that says how long a command waits, and how many of its units a second has.
fn timeout(command: &Words) -> Option<(&[u8], f64)> {
    let at = |index: usize| command.get(index).map(Vec::as_slice);
    match command[0].to_ascii_lowercase().as_slice() {
        b"blpop" | b"brpop" | b"bzpopmin" | b"bzpopmax" | b"blmove" | b"brpoplpush" => {
            Some((command.last()?, 1.0))
        }
        b"blmpop" | b"bzmpop" => Some((at(1)?, 1.0)),
        b"wait" => Some((at(2)?, 1000.0)),
        b"xread" | b"xreadgroup" => {
            let block = command.iter().position(|word| word.eq_ignore_ascii_case(b"block"))?;
            Some((at(block + 1)?, 1000.0))
        }
        _ => None,
    }
}

/// Whether a command may wait for longer than a moment.
pub fn waits(command: &Words) -> bool {
    let Some((timeout, per_second)) = timeout(command) else { return false };
    let number = std::str::from_utf8(timeout).ok().and_then(|text| text.parse::<f64>().ok());
    number.is_some_and(|number| number == 0.0 || number / per_second > WAIT_SECONDS_MAX)
}

/// Has keys watched before a command and a transaction tried behind it, for most commands: EXEC tells whether the command
/// counts as a change of one of the keys.
pub fn watched(commands: Vec<Words>, rng: &mut Rng) -> Vec<Words> {
    let mut all = Vec::new();
    for command in commands {
        let watches = !rng.one_in(4);
        if watches {
            let mut watch = vec![b"WATCH".to_vec()];
            watch.extend((0..1 + rng.below(2)).map(|_| rng.pick(KEYS).as_bytes().to_vec()));
            all.push(watch);
        }
        all.push(command);
        if watches {
            all.extend(["MULTI", "EXEC"].map(words));
        }
    }
    all
}

/// A timeout in seconds.
pub fn seconds(rng: &mut Rng) -> Vec<u8> {
    const SECONDS: &[&str] =
        &["0.001", "0.001", ".002", "1e-3", "0.0001", "0", "0", "-1", "x", "", "1e300", "-0.1"];
    rng.pick(SECONDS).as_bytes().to_vec()
}

/// A timeout in milliseconds.
pub fn milliseconds(rng: &mut Rng) -> Vec<u8> {
    const MILLISECONDS: &[&str] = &["1", "1", "2", "0", "0", "-1", "x", "", "1.5", "9223372036854775807"];
    rng.pick(MILLISECONDS).as_bytes().to_vec()
}

#[test]
fn only_short_waits_are_let_through() {
    let waits = |line: &str| waits(&words(line));
    assert!(waits("BLPOP a b 0") && waits("blmove a b LEFT LEFT 1") && waits("BLMPOP 0 1 a LEFT"));
    assert!(
        !waits("BLPOP a b 0.001") && !waits("BLPOP a x") && !waits("BLMPOP -1 1 a LEFT") && !waits("BLPOP")
    );
    assert!(waits("XREAD BLOCK 0 STREAMS a 0") && waits("XREAD COUNT 1 block 100 STREAMS a 0"));
    assert!(!waits("XREAD BLOCK 1 STREAMS a 0") && !waits("XREAD STREAMS a 0") && !waits("GET a"));
}
