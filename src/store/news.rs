//! What others want to hear of changes, and what they shall hear once the command that made them is done.
//!
//! Must stay true: a store that nobody listens to pays one load per change; news leave the store when the command, the
//! transaction or the script as a whole is done, never in between.
use std::cell::Cell;
use std::collections::VecDeque;

use super::db::Found;
use super::track::Readers;
use super::{Effect, Store};
use crate::config::{P, Settings};
use crate::wire::Key;

/// Who listens: bits of [`Store::listens`].
pub mod listen {
    /// Keyspace notifications are on.
    pub const EVENTS: u32 = 1;
    /// Somebody watches keys.
    pub const WATCHES: u32 = 2;
    /// Somebody waits for keys.
    pub const WAITERS: u32 = 4;
    /// Some clients keep keys that they have read.
    pub const READERS: u32 = 8;
    /// Some clients want to hear of all keys with some prefixes.
    pub const BROADCASTS: u32 = 16;
    /// They tell of reads that find nothing, too.
    pub const MISSES: u32 = 1 << 16;
    /// The append-only log gets what changes.
    pub const LOG: u32 = 1 << 17;
}

/// A keyspace event as notifications name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// One bit of [`class`].
    pub class: u32,
    /// Such as `lpush`.
    pub name: &'static str,
}

/// Classes of events: the letters of `notify-keyspace-events`, by the bits that the setting has.
pub mod class {
    use crate::config::event_bit;

    /// `g`: commands about keys of any type.
    pub const GENERIC: u32 = event_bit(b'g') as u32;
    /// `$`
    pub const STRING: u32 = event_bit(b'$') as u32;
    /// `l`
    pub const LIST: u32 = event_bit(b'l') as u32;
    /// `s`
    pub const SET: u32 = event_bit(b's') as u32;
    /// `h`
    pub const HASH: u32 = event_bit(b'h') as u32;
    /// `z`
    pub const SORTED_SET: u32 = event_bit(b'z') as u32;
    /// `x`: keys whose deadlines had come.
    pub const EXPIRED: u32 = event_bit(b'x') as u32;
    /// `e`
    pub const EVICTED: u32 = event_bit(b'e') as u32;
    /// `t`
    pub const STREAM: u32 = event_bit(b't') as u32;
    /// `m`: reads that found nothing.
    pub const KEY_MISS: u32 = event_bit(b'm') as u32;
    /// `n`: new keys.
    pub const NEW: u32 = event_bit(b'n') as u32;
    /// `K`: events are published under the names of keys.
    pub const BY_KEY: u32 = event_bit(b'K') as u32;
    /// `E`: events are published under their own names.
    pub const BY_EVENT: u32 = event_bit(b'E') as u32;
}

/// The classes of events that are published, and how: bits of [`class`]. 0 where it takes one to mean anything.
pub fn published(settings: &Settings) -> u32 {
    let ways = class::BY_KEY | class::BY_EVENT;
    let classes = settings.int(P::NOTIFY_KEYSPACE_EVENTS) as u32;
    if classes & ways == 0 || classes & !ways == 0 { 0 } else { classes }
}

impl Event {
    /// Made.
    pub const NEW: Event = Event { class: class::NEW, name: "new" };
    /// Deleted by a command, or empty.
    pub const DEL: Event = Event { class: class::GENERIC, name: "del" };
    /// Got a deadline.
    pub const EXPIRE: Event = Event { class: class::GENERIC, name: "expire" };
    /// Lost its deadline.
    pub const PERSIST: Event = Event { class: class::GENERIC, name: "persist" };
    /// The deadline had come.
    pub const EXPIRED: Event = Event { class: class::EXPIRED, name: "expired" };
    /// The deadlines of fields had come.
    pub const FIELDS_EXPIRED: Event = Event { class: class::HASH, name: "hexpired" };
    /// A read found nothing.
    pub const KEY_MISS: Event = Event { class: class::KEY_MISS, name: "keymiss" };
}

thread_local! {
    /// The number of this thread's next news.
    static NEXT_NUMBER: Cell<u64> = const { Cell::new(0) };
}

/// An event of a key.
#[derive(Debug)]
pub struct KeyEvent {
    /// Ascends among the events of one thread: it orders those of a command over several stores.
    pub number: u64,
    /// Its database.
    pub db: u32,
    /// What happened.
    pub event: Event,
    /// The key.
    pub key: Box<[u8]>,
}

/// The number of this thread's next news.
pub(super) fn next_number() -> u64 {
    let number = NEXT_NUMBER.get();
    NEXT_NUMBER.set(number + 1);
    number
}

/// A key that somebody waits at and that has changed.
#[derive(Debug)]
pub struct Ready {
    /// Ascends among the news of one thread: those who wait at several keys are served in the order of the changes.
    pub number: u64,
    /// Its database.
    pub db: u32,
    /// The key.
    pub key: Box<[u8]>,
}

/// A key that some clients have read and that has changed.
#[derive(Debug)]
pub struct Stale {
    /// Ascends among the news of one thread.
    pub number: u64,
    /// The key.
    pub key: Box<[u8]>,
    /// The numbers of these clients.
    pub readers: Readers,
    /// Whose command changed it: the client's number; 0: nobody's.
    pub by: u64,
}

/// A key that has changed.
#[derive(Debug)]
pub struct Changed {
    /// The key.
    pub key: Box<[u8]>,
    /// Whose command changed it: the client's number; 0: nobody's.
    pub by: u64,
}

/// What a store has to tell.
#[derive(Debug, Default)]
pub struct News {
    /// The classes of events that are published: bits of [`class`].
    pub classes: u32,
    /// For subscribers of keyspace notifications.
    pub events: Vec<KeyEvent>,
    /// Keys that somebody waits at and that have changed, by database.
    pub ready: VecDeque<Ready>,
    /// For clients that have read these keys.
    pub stale: Vec<Stale>,
    /// For clients that want to hear of keys by their prefixes, in the order of the changes.
    pub changed: Vec<Changed>,
    /// For clients that track keys: all of them are gone.
    pub all_stale: bool,
    /// A snapshot has begun: the shard's thread shall walk.
    pub has_cut: bool,
}

impl Store {
    /// Listens to the events that the settings ask for.
    pub(super) fn heed_events(&mut self) {
        let classes = published(&self.settings);
        self.news.classes = classes;
        self.listens &= !(listen::EVENTS | listen::MISSES);
        if classes != 0 {
            self.listens |= listen::EVENTS;
        }
        if classes & class::KEY_MISS != 0 {
            self.listens |= listen::MISSES;
        }
    }

    /// Notes a change for whoever listens.
    #[cold]
    #[inline(never)]
    pub(super) fn note_change(&mut self, db: u32, key: Key<'_>, effect: Effect) {
        if effect != Effect::Beside {
            self.note_new_value(db, key, effect);
        }
        if self.listens & listen::EVENTS != 0 {
            self.note_effect(db, key, effect);
        }
    }

    /// Notes a change of the value, of its deadline, or of whether there is one.
    fn note_new_value(&mut self, db: u32, key: Key<'_>, effect: Effect) {
        if self.listens & listen::WATCHES != 0 {
            self.raise_watches(db, key, effect);
        }
        if self.listens & listen::WAITERS != 0 && effect != Effect::Deadline {
            self.note_ready(db, key);
        }
        if self.listens & listen::READERS != 0 {
            self.note_readers(key);
        }
        if self.listens & listen::BROADCASTS != 0 {
            let on_its_own = matches!(effect, Effect::Expired | Effect::PartsExpired);
            self.note_broadcast(key, if on_its_own { 0 } else { self.actor });
        }
    }

    /// Notes that a database is emptied; it still has its keys.
    pub(super) fn note_flush(&mut self, db: u32) {
        self.raise_watches_of_db(db, None);
        self.note_ready_db(db);
    }

    /// Notes that two databases take each other's places.
    pub(super) fn note_swap(&mut self, a: u32, b: u32) {
        for (db, other) in [(a, b), (b, a)] {
            self.raise_watches_of_db(db, Some(other));
            self.note_ready_db(db);
        }
    }

    /// Takes out what others have left here and do not need any more.
    pub fn sweep_listeners(&mut self) {
        if self.listens & listen::WATCHES != 0 {
            self.sweep_watches();
        }
        if self.listens & listen::WAITERS != 0 {
            self.sweep_waiters();
        }
    }

    /// The events that an effect stands for: those of the command, and what follows from how it began and ended.
    fn note_effect(&mut self, db: u32, key: Key<'_>, effect: Effect) {
        let (before, own, after) = match effect {
            Effect::Made => (Some(Event::NEW), self.events, None),
            Effect::Written | Effect::Beside => (None, self.events, None),
            Effect::Emptied => (None, self.events, Some(Event::DEL)),
            Effect::Deleted => (None, &[][..], Some(Event::DEL)),
            // Whoever puts it elsewhere names both places.
            Effect::Taken => (None, &[][..], None),
            Effect::Deadline if self.events.is_empty() => (None, &[Event::EXPIRE][..], None),
            Effect::Deadline => (None, self.events, None),
            Effect::Expired => (None, &[][..], Some(Event::EXPIRED)),
            Effect::PartsExpired => (None, &[][..], Some(Event::FIELDS_EXPIRED)),
        };
        for event in before.iter().chain(own).chain(&after) {
            self.note_event(db, key, *event);
        }
    }

    /// Notes that a read did not find a key, if it is not there.
    #[cold]
    pub fn note_miss(&mut self, db: u32, key: Key<'_>) {
        if !matches!(self.find(db, key, self.now.ms), Found::Live(_)) {
            self.note_event(db, key, Event::KEY_MISS);
        }
    }

    /// Notes an event of a key beside those that follow from its changes. Costs one load while nobody listens.
    #[inline]
    pub fn note_event(&mut self, db: u32, key: Key<'_>, event: Event) {
        if self.listens & listen::EVENTS != 0 && self.news.classes & event.class != 0 {
            self.has_news = true;
            let number = next_number();
            self.news.events.push(KeyEvent { number, db, event, key: key.bytes.into() });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::Counters;
    use std::sync::Arc;

    #[test]
    fn only_what_is_asked_for_is_noted() {
        let with = |letters: &str| {
            let mut settings = Settings::default();
            settings.set(b"notify-keyspace-events", &[letters.as_bytes()]).unwrap();
            let mut store = Store::new(Arc::new(settings), Arc::new(Counters::new(0)));
            for event in [Event::DEL, Event::EXPIRED, Event::FIELDS_EXPIRED] {
                store.note_event(0, Key::new(b"key"), event);
            }
            store.note_miss(0, Key::new(b"key"));
            let names: Vec<&str> = store.news.events.iter().map(|noted| noted.event.name).collect();
            assert_eq!((store.has_news, store.listens != 0), (!names.is_empty(), store.news.classes != 0));
            names.join(" ")
        };
        assert_eq!(with(""), "");
        assert_eq!(with("A"), "");
        assert_eq!(with("KE"), "");
        assert_eq!(with("KA"), "del expired hexpired");
        assert_eq!(with("Ex"), "expired");
        assert_eq!(with("Km"), "keymiss");
    }
}
