//! What others want to hear of changes, and what they shall hear once the command that made them is done.
//!
//! Must stay true: a store that nobody listens to pays one load per change; news leave the store when the command, the
//! transaction or the script as a whole is done, never in between.
use std::collections::VecDeque;

use super::{Effect, Store};
use crate::wire::Key;

/// Who listens: bits of [`Store::listens`].
pub mod listen {
    /// Keyspace notifications are on.
    pub const EVENTS: u32 = 1;
    /// Somebody watches keys.
    pub const WATCHES: u32 = 2;
    /// Somebody waits for keys.
    pub const WAITERS: u32 = 4;
}

/// A keyspace event as notifications name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// One bit of [`class`].
    pub class: u32,
    /// Such as `lpush`.
    pub name: &'static str,
}

/// Classes of events: the letters of `notify-keyspace-events`.
pub mod class {
    /// `g`: commands about keys of any type.
    pub const GENERIC: u32 = 1;
    /// `$`
    pub const STRING: u32 = 1 << 1;
    /// `l`
    pub const LIST: u32 = 1 << 2;
    /// `s`
    pub const SET: u32 = 1 << 3;
    /// `h`
    pub const HASH: u32 = 1 << 4;
    /// `z`
    pub const SORTED_SET: u32 = 1 << 5;
    /// `x`: keys whose deadlines had come.
    pub const EXPIRED: u32 = 1 << 6;
    /// `e`
    pub const EVICTED: u32 = 1 << 7;
    /// `t`
    pub const STREAM: u32 = 1 << 8;
    /// `m`: reads that found nothing.
    pub const KEY_MISS: u32 = 1 << 9;
    /// `n`: new keys.
    pub const NEW: u32 = 1 << 10;
}

impl Event {
    /// Deleted by a command, or empty.
    pub const DEL: Event = Event { class: class::GENERIC, name: "del" };
    /// Got a deadline.
    pub const EXPIRE: Event = Event { class: class::GENERIC, name: "expire" };
    /// The deadline had come.
    pub const EXPIRED: Event = Event { class: class::EXPIRED, name: "expired" };
    /// The deadlines of fields had come.
    pub const FIELDS_EXPIRED: Event = Event { class: class::HASH, name: "hexpired" };
}

/// An event of a key.
#[derive(Debug)]
pub struct KeyEvent {
    /// Its database.
    pub db: u32,
    /// What happened.
    pub event: Event,
    /// The key.
    pub key: Box<[u8]>,
}

/// What a store has to tell.
#[derive(Debug, Default)]
pub struct News {
    /// For subscribers of keyspace notifications.
    pub events: Vec<KeyEvent>,
    /// Keys that somebody waits at and that have changed, by database.
    pub ready: VecDeque<(u32, Box<[u8]>)>,
}

impl Store {
    /// Notes a change for whoever listens.
    #[cold]
    #[inline(never)]
    pub(super) fn note_change(&mut self, db: u32, key: Key<'_>, effect: Effect) {
        if self.listens & listen::WATCHES != 0 {
            self.raise_watches(db, key, effect);
        }
        if self.listens & listen::WAITERS != 0 && effect != Effect::Deadline {
            self.note_ready(db, key);
        }
        if self.listens & listen::EVENTS != 0 {
            self.note_effect(db, key, effect);
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

    /// The events that an effect stands for: that of the command, and what follows from how it ended.
    fn note_effect(&mut self, db: u32, key: Key<'_>, effect: Effect) {
        match effect {
            Effect::Written => self.note_own_event(db, key),
            Effect::Deleted => self.note_event(db, key, Event::DEL),
            Effect::Emptied => {
                self.note_own_event(db, key);
                self.note_event(db, key, Event::DEL);
            }
            Effect::Deadline => self.note_event(db, key, self.event.copied().unwrap_or(Event::EXPIRE)),
            Effect::Expired => self.note_event(db, key, Event::EXPIRED),
            Effect::PartsExpired => self.note_event(db, key, Event::FIELDS_EXPIRED),
        }
    }

    fn note_own_event(&mut self, db: u32, key: Key<'_>) {
        if let Some(event) = self.event {
            self.note_event(db, key, *event);
        }
    }

    /// Notes an event of a key beside those that follow from its changes. Costs one load while nobody listens.
    #[inline]
    pub fn note_event(&mut self, db: u32, key: Key<'_>, event: Event) {
        if self.listens & listen::EVENTS != 0 {
            self.has_news = true;
            self.news.events.push(KeyEvent { db, event, key: key.bytes.into() });
        }
    }
}
