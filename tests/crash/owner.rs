//! Clients that change keys of their own as fast as they can until the server is gone, and know afterwards what must be
//! there.
//!
//! Must stay true: what was acknowledged counts; of what was not, each key may have any number of changes, in order; a
//! unit of several keys happened whole or not at all.
use std::collections::{BTreeMap, VecDeque};
use std::io::ErrorKind;

use super::model::{Change, Content, KINDS, change, read};
use super::support::{Client, Rng, Value, command};

/// Keys of each kind.
const KEYS_EACH: usize = 4;
/// Commands in flight at most.
const DEPTH_MAX: usize = 12;

/// What is sent as one.
#[derive(Clone, Debug)]
enum Step {
    One(Vec<u8>, Change),
    /// Two keys get the same, in a transaction or by a script.
    Both([Vec<u8>; 2], Change, bool),
}

impl Step {
    fn bytes(&self) -> Vec<u8> {
        match self {
            Step::One(key, change) => command(&change.words(key)),
            Step::Both(keys, change, false) => {
                let [one, other] = keys.each_ref().map(|key| command(&change.words(key)));
                [command(&["MULTI"]), one, other, command(&["EXEC"])].concat()
            }
            Step::Both(keys, change, true) => {
                let script = "for n = 1, 2 do redis.call('SET', KEYS[n], ARGV[1]) end return 1";
                let Change::Set(value, _) = change else { panic!("scripts set") };
                command(&[b"EVAL", script.as_bytes(), b"2", &keys[0], &keys[1], value])
            }
        }
    }

    fn replies(&self) -> usize {
        if matches!(self, Step::Both(_, _, false)) { 4 } else { 1 }
    }

    fn parts(&self) -> Vec<(&Vec<u8>, &Change)> {
        match self {
            Step::One(key, change) => vec![(key, change)],
            Step::Both(keys, change, _) => keys.iter().map(|key| (key, change)).collect(),
        }
    }
}

/// One client, and what it knows.
pub struct Owner {
    id: usize,
    db: usize,
    rng: Rng,
    number: u64,
    known: BTreeMap<Vec<u8>, Content>,
    /// Sent and not acknowledged.
    open: VecDeque<Step>,
    /// Steps that were acknowledged, ever.
    pub acknowledged: u64,
}

impl Owner {
    /// A client of this number.
    pub fn new(id: usize, seed: u64) -> Owner {
        let rng = Rng::new(seed.wrapping_add(id as u64));
        Owner {
            id,
            db: id % 3,
            rng,
            number: 0,
            known: BTreeMap::new(),
            open: VecDeque::new(),
            acknowledged: 0,
        }
    }

    fn step(&mut self) -> Step {
        self.number += 1;
        let rng = &mut self.rng;
        if rng.one_in(6) {
            let pair = rng.below(KEYS_EACH);
            let keys = ["one", "other"].map(|side| format!("{}:{side}:{pair}:t", self.id).into_bytes());
            let value = Change::Set(self.number.to_string().into_bytes(), 0);
            return Step::Both(keys, value, rng.one_in(2));
        }
        let kind = *rng.pick(&KINDS);
        let key = format!("{}:{}:{kind}", self.id, rng.below(KEYS_EACH)).into_bytes();
        Step::One(key, change(kind, self.number, rng))
    }

    fn acknowledge(&mut self, step: Step) {
        self.acknowledged += 1;
        for (key, change) in step.parts() {
            if let Some(content) = change.apply(self.known.remove(key)) {
                self.known.insert(key.clone(), content);
            }
        }
    }

    fn select(&self, client: &mut Client) {
        client.check(&format!("SELECT {}", self.db), "+OK\r\n");
    }

    /// Works until the server is gone.
    pub fn work(&mut self, mut client: Client) {
        if client.try_send(format!("SELECT {}\r\n", self.db)).is_err()
            || !matches!(client.try_read(), Ok(Some(_)))
        {
            return;
        }
        loop {
            let steps: Vec<Step> = (0..1 + self.rng.below(DEPTH_MAX)).map(|_| self.step()).collect();
            let bytes: Vec<u8> = steps.iter().flat_map(Step::bytes).collect();
            let count = steps.len();
            self.open.extend(steps);
            if client.try_send(bytes).is_err() {
                return;
            }
            for _ in 0..count {
                let replies = self.open[0].replies();
                for _ in 0..replies {
                    let reply = match client.try_read() {
                        Ok(Some((reply, _))) => reply,
                        Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                            panic!("no reply to {:?}", self.open[0])
                        }
                        Ok(None) | Err(_) => return,
                    };
                    assert!(!reply.is_error(), "{reply:?} to {:?}", self.open[0]);
                }
                let step = self.open.pop_front().unwrap();
                self.acknowledge(step);
            }
        }
    }

    /// What a key may hold.
    fn candidates(&self, key: &Vec<u8>) -> Vec<Option<Content>> {
        let mut candidates = vec![self.known.get(key).cloned()];
        for (_, change) in self.open.iter().flat_map(Step::parts).filter(|part| part.0 == key) {
            candidates.push(change.apply(candidates.last().unwrap().clone()));
        }
        candidates
    }

    /// Looks whether all is there that must be, and takes over what is.
    pub fn settle(&mut self, client: &mut Client) {
        self.select(client);
        let mut keys: Vec<Vec<u8>> = self.known.keys().cloned().collect();
        keys.extend(self.open.iter().flat_map(Step::parts).map(|part| part.0.clone()));
        keys.sort();
        keys.dedup();
        let mut found = BTreeMap::new();
        for key in &keys {
            let candidates = self.candidates(key);
            let content = read(client, key);
            assert!(
                candidates.contains(&content),
                "{}, {} acknowledged, {} open\n is: {content:?}\n may be: {candidates:?}",
                key.escape_ascii(),
                self.acknowledged,
                self.open.len(),
            );
            if let Some(content) = content {
                found.insert(key.clone(), content);
            }
        }
        for (key, content) in &found {
            let text = String::from_utf8_lossy(key);
            if text.contains(":one:") {
                let other = text.replace(":one:", ":other:").into_bytes();
                assert_eq!(found.get(&other), Some(content), "a part of a unit: {text}");
            }
        }
        // What was open and did not happen never will.
        self.open.clear();
        self.known = found;
    }

    /// Its database.
    pub fn db(&self) -> usize {
        self.db
    }

    /// How many keys it has.
    pub fn keys(&self) -> usize {
        self.known.len()
    }
}

/// Looks whether all of them find what must be there, and whether there is anything else.
pub fn settle(owners: &mut [Owner], client: &mut Client) {
    for owner in owners.iter_mut() {
        owner.settle(client);
    }
    for db in 0..3 {
        client.check(&format!("SELECT {db}"), "+OK\r\n");
        let keys: usize = owners.iter().filter(|owner| owner.db() == db).map(Owner::keys).sum();
        assert_eq!(client.run("DBSIZE"), Value::Int(keys as i64), "keys of database {db}");
    }
    client.check("SELECT 0", "+OK\r\n");
}
