//! When two replies count as equal: byte for byte, except for what this file declares.
use super::pair::Words;
use super::support::Value;

/// A reply with its exact bytes.
type Reply = (Value, Vec<u8>);

/// How the replies of a command are compared when not byte for byte.
#[derive(Clone, Copy, PartialEq)]
enum Rule {
    /// The elements may come in any order.
    AnyOrder,
    /// Numbers, also those in arrays, may differ by this much, for clocks that are read at different times.
    Near(i64),
    /// Equal but for the times and ages of deliveries and consumers, which may differ by [`CLOCK_SLACK_MS`].
    Deliveries,
    /// The same kind of reply.
    Kind,
    /// The same kind of reply with as many elements.
    Size,
    /// A cursor and elements in any order, which are the same when both walks were done in one call.
    Walk,
}

/// The servers are asked one after the other, on a machine that may be busy.
const CLOCK_SLACK_MS: u64 = 5000;

/// Commands whose replies depend on more than the commands before.
const RULES: &[(&str, Rule)] = &[
    ("keys", Rule::AnyOrder),
    ("hgetall", Rule::AnyOrder),
    ("hkeys", Rule::AnyOrder),
    ("hvals", Rule::AnyOrder),
    ("hscan", Rule::Walk),
    ("hrandfield", Rule::Size),
    ("smembers", Rule::AnyOrder),
    ("spop", Rule::Size),
    ("sinter", Rule::AnyOrder),
    ("sunion", Rule::AnyOrder),
    ("sdiff", Rule::AnyOrder),
    ("srandmember", Rule::Size),
    ("zrandmember", Rule::Size),
    ("sscan", Rule::Walk),
    ("zscan", Rule::Walk),
    // The servers are asked one after the other, on a machine that may be busy.
    ("ttl", Rule::Near(5)),
    ("pttl", Rule::Near(5000)),
    ("expiretime", Rule::Near(5)),
    ("pexpiretime", Rule::Near(5000)),
    ("httl", Rule::Near(5)),
    ("hpttl", Rule::Near(5000)),
    ("hexpiretime", Rule::Near(5)),
    ("hpexpiretime", Rule::Near(5000)),
    ("randomkey", Rule::Kind),
    ("time", Rule::Kind),
    ("info", Rule::Kind),
    ("lolwut", Rule::Kind),
    ("hello", Rule::Kind),
    // Small integers are shared objects there, with one access time and one count for all their users.
    ("object|idletime", Rule::Kind),
    ("object|refcount", Rule::Kind),
    ("memory|usage", Rule::Kind),
    ("xgroup|help", Rule::Kind),
    ("xinfo|help", Rule::Kind),
    ("xpending", Rule::Deliveries),
    ("xinfo|stream", Rule::Deliveries),
    ("xinfo|consumers", Rule::Deliveries),
    // Versions and types differ; `dump.rs` has both servers read them.
    ("dump", Rule::Kind),
];

/// Differences to older reference servers: first version that answers as we do, command, and a piece of the
/// older server's reply.
pub const OLDER: &[((u32, u32), &str, &str)] = &[
    // A missing key was answered before the arguments were looked at.
    ((7, 2), "bitcount", ":0\r\n"),
    ((7, 2), "bitpos", ":0\r\n"),
    ((7, 2), "bitpos", ":-1\r\n"),
];

/// Tokens that no reference server of that family understands up to a version: ours, or newer.
pub const NEWER_TOKENS: &[((u32, u32), &str, &[&str])] =
    &[((8, 4), "set", &["IFEQ"]), ((8, 2), "bitop", &["DIFF", "DIFF1", "ANDOR", "ONE"])];

/// The name of a command as a row has it: `object|encoding` for what has subcommands.
pub fn name_of(words: &Words) -> String {
    const CONTAINERS: &[&str] =
        &["object", "memory", "debug", "client", "command", "config", "xgroup", "xinfo"];
    let word =
        |i: usize| words.get(i).map(|w| String::from_utf8_lossy(w).to_ascii_lowercase()).unwrap_or_default();
    let name = word(0);
    if CONTAINERS.contains(&name.as_str()) { format!("{name}|{}", word(1)) } else { name }
}

/// Whether two replies count as equal.
pub fn same(words: &Words, ours: &Reply, theirs: &Reply, version: (u32, u32)) -> bool {
    if ours.1 == theirs.1 {
        return true;
    }
    let name = name_of(words);
    let older = |text: &str| String::from_utf8_lossy(&theirs.1).contains(text);
    if OLDER.iter().any(|(since, command, text)| version < *since && *command == name && older(text)) {
        return true;
    }
    match RULES.iter().find(|(command, _)| *command == name) {
        Some((_, rule)) => rule.allows(&ours.0, &theirs.0),
        None => false,
    }
}

impl Rule {
    fn allows(self, ours: &Value, theirs: &Value) -> bool {
        let same_kind = std::mem::discriminant(ours) == std::mem::discriminant(theirs);
        match (self, ours, theirs) {
            (
                Rule::AnyOrder,
                Value::Array(ours) | Value::Set(ours),
                Value::Array(theirs) | Value::Set(theirs),
            ) => {
                let sorted = |values: &[Value]| {
                    let mut texts: Vec<_> = values.iter().map(|v| v.text().to_vec()).collect();
                    texts.sort();
                    texts
                };
                same_kind && sorted(ours) == sorted(theirs)
            }
            (Rule::Walk, Value::Array(ours), Value::Array(theirs)) => {
                let ([ours_next, ours], [theirs_next, theirs]) = (&ours[..], &theirs[..]) else {
                    return false;
                };
                let done = |next: &Value| next.text() == b"0";
                !done(ours_next) || !done(theirs_next) || Rule::AnyOrder.allows(ours, theirs)
            }
            (
                Rule::Size,
                Value::Array(ours) | Value::Set(ours),
                Value::Array(theirs) | Value::Set(theirs),
            ) => same_kind && ours.len() == theirs.len(),
            // The negative ones mean something.
            (Rule::Near(much), Value::Int(ours), Value::Int(theirs)) => {
                ours == theirs || *ours >= 0 && *theirs >= 0 && ours.abs_diff(*theirs) <= much as u64
            }
            (Rule::Near(_), Value::Array(ours), Value::Array(theirs)) => {
                ours.len() == theirs.len() && ours.iter().zip(theirs).all(|(a, b)| self.allows(a, b))
            }
            (Rule::AnyOrder, Value::Map(ours), Value::Map(theirs)) => {
                let sorted = |pairs: &[(Value, Value)]| {
                    let mut texts: Vec<_> =
                        pairs.iter().map(|(k, v)| (k.text().to_vec(), v.text().to_vec())).collect();
                    texts.sort();
                    texts
                };
                sorted(ours) == sorted(theirs)
            }
            (Rule::Deliveries, ours, theirs) => same_deliveries(ours, theirs, false),
            (Rule::Kind | Rule::Size, ours, _) => !ours.is_error() && same_kind,
            _ => false,
        }
    }
}

/// Equal replies, as far as clocks allow; `is_clock`: what is compared is read from one. Negative ones mean something.
fn same_deliveries(ours: &Value, theirs: &Value, is_clock: bool) -> bool {
    const CLOCKS: &[&[u8]] = &[b"idle", b"inactive", b"seen-time", b"active-time"];
    let all = |ours: &[Value], theirs: &[Value]| {
        // Id, perhaps a consumer, a time, a count.
        let delivery = matches!(ours, [Value::Bulk(_), .., Value::Int(_), Value::Int(_)] if ours.len() <= 4);
        ours.len() == theirs.len()
            && ours.iter().zip(theirs).enumerate().all(|(at, (one, other))| {
                let named = at > 0 && CLOCKS.contains(&ours[at - 1].text());
                same_deliveries(one, other, named || delivery && at == ours.len() - 2)
            })
    };
    match (ours, theirs) {
        (Value::Int(ours), Value::Int(theirs)) if is_clock && *ours >= 0 && *theirs >= 0 => {
            ours.abs_diff(*theirs) <= CLOCK_SLACK_MS
        }
        (Value::Array(ours), Value::Array(theirs)) => all(ours, theirs),
        (Value::Map(..), Value::Map(..)) => all(&ours.items(), &theirs.items()),
        _ => ours == theirs,
    }
}

#[test]
fn rules_allow_what_they_say_and_no_more() {
    let bulks =
        |texts: &[&str]| Value::Array(texts.iter().map(|t| Value::Bulk(t.as_bytes().to_vec())).collect());
    assert!(Rule::AnyOrder.allows(&bulks(&["a", "b"]), &bulks(&["b", "a"])));
    assert!(!Rule::AnyOrder.allows(&bulks(&["a", "b"]), &bulks(&["b", "b"])));
    let set = |texts: &[&str]| Value::Set(bulks(texts).items().to_vec());
    assert!(Rule::AnyOrder.allows(&set(&["a", "b"]), &set(&["b", "a"])));
    assert!(!Rule::AnyOrder.allows(&set(&["a", "b"]), &bulks(&["b", "a"])));
    assert!(Rule::Size.allows(&bulks(&["a", "b"]), &bulks(&["c", "c"])));
    assert!(!Rule::Size.allows(&bulks(&["a", "b"]), &bulks(&["a"])));
    assert!(!Rule::Size.allows(&Value::Null, &bulks(&["a"])));
    let walk =
        |next: &str, texts: &[&str]| Value::Array(vec![Value::Bulk(next.as_bytes().to_vec()), bulks(texts)]);
    assert!(Rule::Walk.allows(&walk("0", &["a", "b"]), &walk("0", &["b", "a"])));
    assert!(Rule::Walk.allows(&walk("0", &["a", "b"]), &walk("4", &["b"])));
    assert!(!Rule::Walk.allows(&walk("0", &["a", "b"]), &walk("0", &["b"])));
    assert!(Rule::Near(1).allows(&Value::Int(7), &Value::Int(8)));
    assert!(!Rule::Near(1).allows(&Value::Int(7), &Value::Int(9)));
    assert!(!Rule::Near(1).allows(&Value::Int(-1), &Value::Int(-2)));
    let ints = |ints: &[i64]| Value::Array(ints.iter().map(|n| Value::Int(*n)).collect());
    assert!(Rule::Near(1).allows(&ints(&[-2, 7]), &ints(&[-2, 8])));
    assert!(!Rule::Near(1).allows(&ints(&[-2, 7]), &ints(&[-1, 7])));
    assert!(!Rule::Kind.allows(&Value::Null, &Value::Int(1)));
    let delivery = |name: &str, time, count| {
        let entry = vec![Value::Bulk(b"1-1".to_vec()), Value::Int(time), Value::Int(count)];
        Value::Array(vec![Value::Bulk(name.into()), Value::Int(time), Value::Array(entry)])
    };
    assert!(Rule::Deliveries.allows(&delivery("idle", 5, 1), &delivery("idle", 7, 1)));
    assert!(!Rule::Deliveries.allows(&delivery("idle", 5, 1), &delivery("idle", 7, 2)));
    assert!(!Rule::Deliveries.allows(&delivery("idle", 5, 1), &delivery("idle", -1, 1)));
    assert!(!Rule::Deliveries.allows(&delivery("lag", 5, 1), &delivery("lag", 7, 1)));
}
