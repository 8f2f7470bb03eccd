//! Data and patterns for SORT in the random sequences.
use super::pair::Words;
use super::support::Rng;

/// Patterns of BY, all with a place for the element: without one, sets come in an order of their own.
const BY: &[&str] = &["k*", "k*", "k*->f0", "k*->1", "*", "none_*"];
/// Patterns of GET.
const GET: &[&str] = &["#", "k*", "k*->f0", "k*->f1", "*", "k*->1", "none_*", "k0"];
const NUMBERS: &[&str] =
    &["0", "1", "2", "3", "4", "6", "10", "-7", "1.5", "-0", "1e2", "+3", "", "inf", "07"];
/// None has a zero byte: there the reference stops to compare when nothing is stored.
const TEXTS: &[&str] =
    &["a", "b", "aa", "B", "", "1", "2", "10", "x y", "\u{1}", "0x1", "nan", "k0", "{k0}x"];

/// A value for a name of a syntax line of SORT.
pub fn value(name: &str, rng: &mut Rng) -> Option<Vec<u8>> {
    let from = match name {
        "by-pattern" => BY,
        "get-pattern" => GET,
        _ => return None,
    };
    Some(rng.pick(from).as_bytes().to_vec())
}

/// A command that makes something to sort, or to sort by; or takes it away, or gives it another form.
pub fn fill(rng: &mut Rng) -> Words {
    let key = super::generate::value("key", "sort", rng);
    let texts = if rng.one_in(3) { TEXTS } else { NUMBERS };
    let text = |rng: &mut Rng| rng.pick(texts).as_bytes().to_vec();
    let command = |name: &str| vec![name.as_bytes().to_vec(), key.clone()];
    let (mut words, count) = match rng.below(12) {
        0 => return command("DEL"),
        1 => {
            return [command("PEXPIRE"), vec![rng.pick(&["0", "5000000"]).as_bytes().to_vec()]].concat();
        }
        // Too long for a listpack.
        2 => return [command("SADD"), vec![vec![b'm'; 65]]].concat(),
        3 | 4 => (command("SET"), 1),
        5 | 6 => {
            let fields = ["f0", "f1", "1"].map(|field| [field.as_bytes().to_vec(), text(rng)]);
            return [command("HSET"), fields.concat()].concat();
        }
        7 | 8 => (command("SADD"), 1 + rng.below(12)),
        _ => (command("RPUSH"), 1 + rng.below(12)),
    };
    words.extend((0..count).map(|_| text(rng)));
    words
}
