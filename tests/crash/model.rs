//! What a client knows of its keys: what each holds by what was acknowledged, and what a lost reply leaves open.
//!
//! Must stay true: nothing here knows how the server keeps a value.
use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::support::{Client, Rng, Value, show};

type Bytes = Vec<u8>;

/// A deadline that no test sees, milliseconds since 1970; deadlines are this and a little more.
const FAR_MS: u64 = 4_102_444_800_000;
/// Names of fields and members.
const NAMES: usize = 300;

/// What a key holds.
#[derive(Clone, Debug, PartialEq)]
pub enum Content {
    /// A string, and its deadline, 0 for none.
    Text(Bytes, u64),
    /// A list.
    List(VecDeque<Bytes>),
    /// A set.
    Set(BTreeSet<Bytes>),
    /// A hash.
    Hash(BTreeMap<Bytes, Bytes>),
    /// A sorted set.
    Sorted(BTreeMap<Bytes, i64>),
    /// A stream: numbers of its entries, and what they say.
    Stream(VecDeque<(u64, Bytes)>),
}

/// A change of one key.
#[derive(Clone, Debug)]
pub enum Change {
    Set(Bytes, u64),
    Append(Bytes),
    Delete,
    Push(Vec<Bytes>),
    PushLeft(Bytes),
    Pop,
    Add(Vec<Bytes>),
    Remove(Bytes),
    Put(Vec<Bytes>, Bytes),
    Drop(Bytes),
    Score(Vec<Bytes>, i64),
    Raise(Bytes, i64),
    Leave(Bytes),
    Note(u64, Bytes),
    Trim(usize),
}

/// Kinds of keys, as their names end.
pub const KINDS: [char; 6] = ['t', 'l', 's', 'h', 'z', 'x'];

/// Text with some bytes that protocols and files care about; long now and then.
fn text(rng: &mut Rng) -> Bytes {
    let long = if rng.one_in(20) { 3000 } else { 12 };
    let mut bytes = format!("{}\r\n*1\r\n", rng.below(1000)).into_bytes();
    bytes.resize(3 + rng.below(long), b'\xff');
    bytes
}

fn names(rng: &mut Rng) -> Vec<Bytes> {
    let (first, many) = (rng.below(NAMES), if rng.one_in(8) { 40 } else { 3 });
    (0..1 + rng.below(many)).map(|n| format!("n{}", (first + n) % NAMES).into_bytes()).collect()
}

fn name(rng: &mut Rng) -> Bytes {
    format!("n{}", rng.below(NAMES)).into_bytes()
}

/// A change of a key of this kind; `number` grows from change to change.
pub fn change(kind: char, number: u64, rng: &mut Rng) -> Change {
    if rng.one_in(60) {
        return Change::Delete;
    }
    let choice = rng.below(3);
    match (kind, choice) {
        ('t', 0) => Change::Set(text(rng), 0),
        ('t', 1) => Change::Set(text(rng), FAR_MS + rng.below(1000) as u64),
        ('t', _) => Change::Append(text(rng)),
        ('l', 0) => Change::Push((0..1 + rng.below(8)).map(|_| text(rng)).collect()),
        ('l', 1) => Change::PushLeft(number.to_string().into_bytes()),
        ('l', _) => Change::Pop,
        ('s', 0 | 1) => Change::Add(names(rng)),
        ('s', _) => Change::Remove(name(rng)),
        ('h', 0 | 1) => Change::Put(names(rng), text(rng)),
        ('h', _) => Change::Drop(name(rng)),
        ('z', 0) => Change::Score(names(rng), rng.below(1000) as i64 - 500),
        ('z', 1) => Change::Raise(name(rng), rng.below(9) as i64),
        ('z', _) => Change::Leave(name(rng)),
        (_, 0 | 1) => Change::Note(number, text(rng)),
        _ => Change::Trim(30),
    }
}

impl Change {
    /// The command.
    pub fn words(&self, key: &[u8]) -> Vec<Bytes> {
        let line =
            |name: &str, rest: Vec<Bytes>| [vec![name.as_bytes().to_vec(), key.to_vec()], rest].concat();
        let number = |n: &dyn std::fmt::Display| n.to_string().into_bytes();
        match self {
            Change::Set(value, 0) => line("SET", vec![value.clone()]),
            Change::Set(value, at_ms) => line("SET", vec![value.clone(), b"PXAT".to_vec(), number(at_ms)]),
            Change::Append(value) => line("APPEND", vec![value.clone()]),
            Change::Delete => line("DEL", vec![]),
            Change::Push(values) => line("RPUSH", values.clone()),
            Change::PushLeft(value) => line("LPUSH", vec![value.clone()]),
            Change::Pop => line("LPOP", vec![]),
            Change::Add(names) => line("SADD", names.clone()),
            Change::Remove(name) => line("SREM", vec![name.clone()]),
            Change::Put(names, value) => {
                line("HSET", names.iter().flat_map(|name| [name.clone(), value.clone()]).collect())
            }
            Change::Drop(name) => line("HDEL", vec![name.clone()]),
            Change::Score(names, score) => {
                line("ZADD", names.iter().flat_map(|name| [number(score), name.clone()]).collect())
            }
            Change::Raise(name, by) => line("ZINCRBY", vec![number(by), name.clone()]),
            Change::Leave(name) => line("ZREM", vec![name.clone()]),
            Change::Note(id, value) => {
                line("XADD", vec![format!("{id}-1").into_bytes(), b"f".to_vec(), value.clone()])
            }
            Change::Trim(left) => line("XTRIM", vec![b"MAXLEN".to_vec(), number(left)]),
        }
    }

    /// What it makes of what a key holds.
    pub fn apply(&self, content: Option<Content>) -> Option<Content> {
        use Content::{Hash, List, Set, Sorted, Stream, Text};
        let content = match (self, content) {
            (Change::Delete, _) => return None,
            (Change::Set(value, at_ms), _) => Text(value.clone(), *at_ms),
            (Change::Append(value), None) => Text(value.clone(), 0),
            (Change::Append(value), Some(Text(old, at_ms))) => Text([&old[..], value].concat(), at_ms),
            (Change::Push(_) | Change::PushLeft(_) | Change::Pop, old) => {
                let Some(List(mut list)) = old.or(Some(List(VecDeque::new()))) else { panic!("no list") };
                match self {
                    Change::Push(values) => list.extend(values.iter().cloned()),
                    Change::PushLeft(value) => list.push_front(value.clone()),
                    _ => drop(list.pop_front()),
                }
                List(list)
            }
            (Change::Add(_) | Change::Remove(_), old) => {
                let Some(Set(mut set)) = old.or(Some(Set(BTreeSet::new()))) else { panic!("no set") };
                match self {
                    Change::Add(names) => set.extend(names.iter().cloned()),
                    Change::Remove(name) => drop(set.remove(name)),
                    _ => unreachable!(),
                }
                Set(set)
            }
            (Change::Put(..) | Change::Drop(_), old) => {
                let Some(Hash(mut hash)) = old.or(Some(Hash(BTreeMap::new()))) else { panic!("no hash") };
                match self {
                    Change::Put(names, value) => {
                        hash.extend(names.iter().map(|name| (name.clone(), value.clone())))
                    }
                    Change::Drop(name) => drop(hash.remove(name)),
                    _ => unreachable!(),
                }
                Hash(hash)
            }
            (Change::Score(..) | Change::Raise(..) | Change::Leave(_), old) => {
                let Some(Sorted(mut sorted)) = old.or(Some(Sorted(BTreeMap::new()))) else {
                    panic!("no set")
                };
                match self {
                    Change::Score(names, score) => {
                        sorted.extend(names.iter().map(|name| (name.clone(), *score)))
                    }
                    Change::Raise(name, by) => *sorted.entry(name.clone()).or_default() += by,
                    Change::Leave(name) => drop(sorted.remove(name)),
                    _ => unreachable!(),
                }
                Sorted(sorted)
            }
            (Change::Note(..) | Change::Trim(_), old) => {
                if old.is_none() && matches!(self, Change::Trim(_)) {
                    return None;
                }
                let Some(Stream(mut stream)) = old.or(Some(Stream(VecDeque::new()))) else {
                    panic!("no stream")
                };
                match self {
                    Change::Note(id, value) => stream.push_back((*id, value.clone())),
                    Change::Trim(left) => drop(stream.drain(..stream.len().saturating_sub(*left))),
                    _ => unreachable!(),
                }
                Stream(stream)
            }
            (change, content) => panic!("{change:?} of {content:?}"),
        };
        Some(content).filter(|content| !content.is_gone())
    }
}

impl Content {
    /// Containers without elements do not stay; streams do.
    fn is_gone(&self) -> bool {
        match self {
            Content::List(list) => list.is_empty(),
            Content::Set(set) => set.is_empty(),
            Content::Hash(hash) => hash.is_empty(),
            Content::Sorted(sorted) => sorted.is_empty(),
            Content::Text(..) | Content::Stream(_) => false,
        }
    }
}

fn texts(value: &Value) -> Vec<Bytes> {
    value.items().iter().map(|item| item.text().to_vec()).collect()
}

fn pairs(value: &Value) -> Vec<(Bytes, Bytes)> {
    texts(value).chunks(2).map(|pair| (pair[0].clone(), pair[1].clone())).collect()
}

fn parse<T: std::str::FromStr>(text: &[u8]) -> T {
    String::from_utf8_lossy(text).parse().unwrap_or_else(|_| panic!("no number: {}", show(text)))
}

/// What the server says that a key holds.
pub fn read(client: &mut Client, key: &[u8]) -> Option<Content> {
    let mut ask = |name: &str, rest: &[&str]| {
        let mut words = vec![name.as_bytes(), key];
        words.extend(rest.iter().map(|word| word.as_bytes()));
        client.run_words(&words)
    };
    if ask("EXISTS", &[]) == Value::Int(0) {
        return None;
    }
    Some(match char::from(*key.last().unwrap()) {
        'l' => Content::List(texts(&ask("LRANGE", &["0", "-1"])).into()),
        's' => Content::Set(texts(&ask("SMEMBERS", &[])).into_iter().collect()),
        'h' => Content::Hash(pairs(&ask("HGETALL", &[])).into_iter().collect()),
        'z' => {
            let all = pairs(&ask("ZRANGE", &["0", "-1", "WITHSCORES"]));
            Content::Sorted(all.into_iter().map(|(name, score)| (name, parse(&score))).collect())
        }
        'x' => {
            let entry = |entry: &Value| {
                let [id, fields] = &entry.items()[..] else { panic!("an entry has two parts") };
                (parse(id.text().split(|byte| *byte == b'-').next().unwrap()), texts(fields)[1].clone())
            };
            Content::Stream(ask("XRANGE", &["-", "+"]).items().iter().map(entry).collect())
        }
        _ => {
            let at_ms = ask("PEXPIRETIME", &[]).int().max(0) as u64;
            Content::Text(ask("GET", &[]).text().to_vec(), at_ms)
        }
    })
}

#[test]
fn the_model_tells_contents_apart() {
    let one = Change::Push(vec![b"a".to_vec()]).apply(None);
    assert_eq!(one, Some(Content::List([b"a".to_vec()].into())));
    assert_eq!(Change::Pop.apply(one.clone()), None);
    assert_ne!(Change::PushLeft(b"b".to_vec()).apply(one.clone()), one);
    let stream = Change::Note(7, b"v".to_vec()).apply(None);
    assert_eq!(Change::Trim(0).apply(stream), Some(Content::Stream(VecDeque::new())));
}
