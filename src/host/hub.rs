//! Who listens to what: the subscribers of channels, patterns and shard channels, of all shards.
//!
//! Must stay true: a subscriber stands under a subject once, and a subject without subscribers is gone; only the thread
//! of a subscriber's shard enters it and takes it out. A message travels once to each shard that has subscribers and
//! finds them when it arrives, so it reaches nobody who gave the subject up meanwhile.
use std::cell::RefCell;
use std::collections::hash_map::Entry;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::RwLock;
use rapidhash::{RapidHashMap, RapidHashSet};
use smallvec::SmallVec;

use super::mail::{Address, Letter, Mail, Token};
use crate::base::glob;
use crate::wire::{Out, Protocol};

/// What a subscription names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A channel.
    Channel,
    /// All channels that a glob pattern matches.
    Pattern,
    /// A channel of the shard that a cluster would give it to; patterns do not reach it.
    ShardChannel,
}

const KINDS: usize = 3;

impl Kind {
    /// All kinds.
    pub const ALL: [Kind; KINDS] = [Kind::Channel, Kind::Pattern, Kind::ShardChannel];
}

/// A published message, encoded once for all its receivers.
#[derive(Clone, Debug)]
pub struct Message {
    kind: Kind,
    /// Where the subject stands in `push`.
    subject: Range<u32>,
    push: Arc<[u8]>,
}

/// An encoding buffer larger than this is not kept.
const SCRATCH_BYTES_KEEP: usize = 64 * 1024;

thread_local! {
    static SCRATCH: RefCell<Vec<u8>> = RefCell::default();
}

impl Message {
    /// Encodes the words, of which the second is the subject.
    fn new(kind: Kind, words: &[&[u8]]) -> Message {
        let mut out = Out { buf: SCRATCH.take(), protocol: Protocol::Resp3 };
        out.buf.clear();
        out.push(words.len());
        let mut subject = 0..0;
        for (number, word) in words.iter().enumerate() {
            out.bulk(word);
            if number == 1 {
                let end = (out.buf.len() - LINE_END_BYTES) as u32;
                subject = end - word.len() as u32..end;
            }
        }
        let push = Arc::from(&out.buf[..]);
        if out.buf.capacity() <= SCRATCH_BYTES_KEEP {
            SCRATCH.set(out.buf);
        }
        Message { kind, subject, push }
    }

    /// The channel or pattern whose subscribers get it.
    pub fn subject(&self) -> &[u8] {
        &self.push[self.subject.start as usize..self.subject.end as usize]
    }

    /// The bytes, as a push of RESP3.
    pub fn push(&self) -> &[u8] {
        &self.push
    }
}

const LINE_END_BYTES: usize = 2;

/// The subscribers of one subject, by shard.
#[derive(Debug, Default)]
struct Subscribers(SmallVec<[(u16, Vec<Token>); 1]>);

impl Subscribers {
    fn len(&self) -> usize {
        self.0.iter().map(|(_, tokens)| tokens.len()).sum()
    }

    fn of(&self, shard: u16) -> &[Token] {
        self.0.iter().find(|(of, _)| *of == shard).map_or(&[], |(_, tokens)| tokens)
    }

    fn add(&mut self, Address { shard, token }: Address) {
        match self.0.iter_mut().find(|(of, _)| *of == shard) {
            Some((_, tokens)) => tokens.push(token),
            None => self.0.push((shard, vec![token])),
        }
    }

    /// `true`: nobody is left.
    fn remove(&mut self, Address { shard, token }: Address) -> bool {
        if let Some(at) = self.0.iter().position(|(of, _)| *of == shard) {
            let tokens = &mut self.0[at].1;
            if let Some(place) = tokens.iter().position(|other| *other == token) {
                tokens.swap_remove(place);
            }
            if tokens.is_empty() {
                self.0.swap_remove(at);
            }
        }
        self.0.is_empty()
    }

    /// Leaves the message for the shards that have subscribers; returns the number of these.
    fn post(&self, kind: Kind, words: &[&[u8]], mail: &mut Mail) -> usize {
        let message = Message::new(kind, words);
        for (shard, _) in &self.0 {
            let address = Address { shard: *shard, token: Token::default() };
            mail.push((address, Letter::Published(message.clone())));
        }
        self.len()
    }
}

type Subjects = RapidHashMap<Arc<[u8]>, Subscribers>;

/// The registry.
#[derive(Debug, Default)]
pub struct Hub {
    subjects: [RwLock<Subjects>; KINDS],
    /// How many of each kind: publishing takes no lock for a kind without any.
    counts: [AtomicUsize; KINDS],
}

impl Hub {
    /// Whether nobody listens to anything.
    #[inline]
    pub fn is_empty(&self) -> bool {
        Kind::ALL.into_iter().all(|kind| self.has_none(kind))
    }

    #[inline]
    fn has_none(&self, kind: Kind) -> bool {
        self.counts[kind as usize].load(Ordering::Relaxed) == 0
    }

    /// Subscribes the connection at `address`, whose subscriptions are `own`. `false`: it was subscribed.
    pub fn subscribe(&self, own: &mut Subscriptions, kind: Kind, name: &[u8], address: Address) -> bool {
        if own.has(kind, name) {
            return false;
        }
        let name: Arc<[u8]> = Arc::from(name);
        let mut subjects = self.subjects[kind as usize].write();
        let entry = subjects.entry(name);
        let shared = entry.key().clone();
        if matches!(entry, Entry::Vacant(_)) {
            self.counts[kind as usize].fetch_add(1, Ordering::Relaxed);
        }
        entry.or_default().add(address);
        drop(subjects);
        own.names_mut(kind).insert(shared);
        true
    }

    /// Takes a subscription back. `false`: there was none.
    pub fn unsubscribe(&self, own: &mut Subscriptions, kind: Kind, name: &[u8], address: Address) -> bool {
        let had = own.has(kind, name) && own.names_mut(kind).remove(name);
        if had {
            self.take_out(kind, name, address);
        }
        had
    }

    /// Takes all subscriptions back.
    pub fn leave(&self, own: &mut Subscriptions, address: Address) {
        for (kind, names) in Kind::ALL.into_iter().zip(std::mem::take(own).0.into_iter().flat_map(|all| *all))
        {
            for name in names {
                self.take_out(kind, &name, address);
            }
        }
    }

    fn take_out(&self, kind: Kind, name: &[u8], address: Address) {
        let mut subjects = self.subjects[kind as usize].write();
        if subjects.get_mut(name).is_some_and(|subscribers| subscribers.remove(address)) {
            subjects.remove(name);
            self.counts[kind as usize].fetch_sub(1, Ordering::Relaxed);
            let few = subjects.len() * 8 < subjects.capacity();
            if few && subjects.capacity() > SUBJECTS_KEEP {
                subjects.shrink_to_fit();
            }
        }
    }

    /// Leaves a message for all who listen to a channel, or to a pattern that matches it; returns how many receive
    /// it. Who does both receives it twice.
    pub fn publish(&self, channel: &[u8], text: &[u8], mail: &mut Mail) -> usize {
        let mut receivers = self.post(Kind::Channel, b"message", channel, text, mail);
        if self.has_none(Kind::Pattern) {
            return receivers;
        }
        for (pattern, subscribers) in self.subjects[Kind::Pattern as usize].read().iter() {
            if glob::matches(pattern, channel, false) {
                receivers += subscribers.post(Kind::Pattern, &[b"pmessage", pattern, channel, text], mail);
            }
        }
        receivers
    }

    /// Leaves a message for all who listen to a shard channel; returns how many these are.
    pub fn publish_to_shard(&self, channel: &[u8], text: &[u8], mail: &mut Mail) -> usize {
        self.post(Kind::ShardChannel, b"smessage", channel, text, mail)
    }

    fn post(&self, kind: Kind, word: &[u8], channel: &[u8], text: &[u8], mail: &mut Mail) -> usize {
        if self.has_none(kind) {
            return 0;
        }
        let subjects = self.subjects[kind as usize].read();
        subjects.get(channel).map_or(0, |subscribers| subscribers.post(kind, &[word, channel, text], mail))
    }

    /// Calls `f` with all connections of a shard that a message is for.
    #[inline]
    pub fn for_each_receiver(&self, message: &Message, shard: usize, f: impl FnMut(Token)) {
        let subjects = self.subjects[message.kind as usize].read();
        if let Some(subscribers) = subjects.get(message.subject()) {
            subscribers.of(shard as u16).iter().copied().for_each(f);
        }
    }

    /// Number of subjects that have subscribers.
    pub fn subjects(&self, kind: Kind) -> usize {
        self.subjects[kind as usize].read().len()
    }

    /// Number of subscribers of a subject.
    pub fn subscribers(&self, kind: Kind, name: &[u8]) -> usize {
        self.subjects[kind as usize].read().get(name).map_or(0, Subscribers::len)
    }

    /// The subjects that have subscribers, of those that match `pattern`.
    pub fn names(&self, kind: Kind, pattern: Option<&[u8]>) -> Vec<Arc<[u8]>> {
        let matches = |name: &&Arc<[u8]>| pattern.is_none_or(|pattern| glob::matches(pattern, name, false));
        self.subjects[kind as usize].read().keys().filter(matches).cloned().collect()
    }
}

/// A registry with room for so many subjects keeps it.
const SUBJECTS_KEEP: usize = 1024;

type Names = RapidHashSet<Arc<[u8]>>;

/// What one connection is subscribed to. Nothing is allocated for one that is not.
#[derive(Debug, Default)]
pub struct Subscriptions(Option<Box<[Names; KINDS]>>);

impl Subscriptions {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        Kind::ALL.into_iter().all(|kind| self.count(kind) == 0)
    }

    /// How many of a kind.
    pub fn count(&self, kind: Kind) -> usize {
        self.0.as_ref().map_or(0, |names| names[kind as usize].len())
    }

    /// The names of a kind.
    pub fn names(&self, kind: Kind) -> Vec<Arc<[u8]>> {
        self.0.as_ref().map_or_else(Vec::new, |names| names[kind as usize].iter().cloned().collect())
    }

    fn has(&self, kind: Kind, name: &[u8]) -> bool {
        self.0.as_ref().is_some_and(|names| names[kind as usize].contains(name))
    }

    fn names_mut(&mut self, kind: Kind) -> &mut Names {
        &mut self.0.get_or_insert_default()[kind as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(shard: u16, slot: u32) -> Address {
        Address { shard, token: Token { slot, generation: 0 } }
    }

    /// The shards that a message goes to with its texts, and its receivers there.
    fn published(hub: &Hub, channel: &[u8]) -> (usize, Vec<(u16, String, Vec<u32>)>) {
        let mut mail = Mail::new();
        let receivers = hub.publish(channel, b"hi", &mut mail);
        let mut letters: Vec<_> = mail
            .into_iter()
            .map(|(to, letter)| {
                let Letter::Published(message) = letter else { panic!("{letter:?}") };
                let mut slots = Vec::new();
                hub.for_each_receiver(&message, to.shard.into(), |token| slots.push(token.slot));
                slots.sort();
                (to.shard, String::from_utf8(message.push().to_vec()).unwrap().replace("\r\n", " "), slots)
            })
            .collect();
        letters.sort();
        (receivers, letters)
    }

    #[test]
    fn a_message_goes_once_to_each_shard() {
        let hub = Hub::default();
        assert!(hub.is_empty());
        assert_eq!(published(&hub, b"news").0, 0);
        let mut own = [(); 4].map(|()| Subscriptions::default());
        for (number, own) in own.iter_mut().enumerate() {
            let at = address(number as u16 % 2, number as u32);
            assert!(hub.subscribe(own, Kind::Channel, b"news", at));
            assert!(!hub.subscribe(own, Kind::Channel, b"news", at));
        }
        assert!(hub.subscribe(&mut own[0], Kind::Pattern, b"n*", address(0, 0)));
        let (receivers, letters) = published(&hub, b"news");
        assert_eq!(receivers, 5);
        let message = ">3 $7 message $4 news $2 hi ".to_string();
        let pmessage = ">4 $8 pmessage $2 n* $4 news $2 hi ".to_string();
        let want =
            [(0, message.clone(), vec![0, 2]), (0, pmessage.clone(), vec![0]), (1, message, vec![1, 3])];
        assert_eq!(letters, want);
        assert_eq!(published(&hub, b"new"), (1, vec![(0, pmessage.replace("$4 news", "$3 new"), vec![0])]));
        assert_eq!(hub.publish_to_shard(b"news", b"hi", &mut Mail::new()), 0);
        assert_eq!((hub.subscribers(Kind::Channel, b"news"), hub.subjects(Kind::Pattern)), (4, 1));
        assert_eq!(hub.names(Kind::Channel, Some(b"x*")).len(), 0);
        assert_eq!(hub.names(Kind::Channel, None)[0][..], b"news"[..]);
    }

    #[test]
    fn messages_miss_who_has_left() {
        let hub = Hub::default();
        let (mut one, mut two) = (Subscriptions::default(), Subscriptions::default());
        hub.subscribe(&mut one, Kind::Channel, b"a", address(0, 1));
        hub.subscribe(&mut two, Kind::Channel, b"a", address(0, 2));
        hub.subscribe(&mut two, Kind::ShardChannel, b"a", address(0, 2));
        let mut mail = Mail::new();
        assert_eq!(hub.publish(b"a", b"", &mut mail), 2);
        let receivers = |mail: &Mail| {
            let Letter::Published(message) = &mail[0].1 else { panic!() };
            let mut slots = Vec::new();
            hub.for_each_receiver(message, 0, |token| slots.push(token.slot));
            slots
        };
        assert!(hub.unsubscribe(&mut one, Kind::Channel, b"a", address(0, 1)));
        assert!(!hub.unsubscribe(&mut one, Kind::Channel, b"a", address(0, 1)));
        assert_eq!(receivers(&mail), [2]);
        hub.leave(&mut two, address(0, 2));
        assert!(receivers(&mail).is_empty());
        assert!(hub.is_empty() && one.is_empty() && two.is_empty());
        assert!(hub.names(Kind::ShardChannel, None).is_empty());
    }
}
