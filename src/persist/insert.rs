//! From the records of a file to keys of a store.
//!
//! Must stay true: whoever calls owns the store (its thread, or the shard is held); what is refused says which key.
use crate::base::hash::KeyHash;
use crate::base::num;
use crate::config::{P, Settings};
use crate::ds::raw::block::{Block, NewValue};
use crate::host::Host;
use crate::rdb::reader::Text;
use crate::rdb::value::{self, Limits};
use crate::rdb::{Corrupt, Reader, ValueType};
use crate::store::Store;
use crate::wire::Key;

/// How keys are put in.
#[derive(Clone, Debug)]
pub struct How {
    /// Limits of small forms.
    pub limits: Limits,
    /// Keys whose time has come are left out.
    pub drops_expired: bool,
    /// A key that is there is replaced; else it is refused.
    pub replaces: bool,
    /// Number of databases.
    pub databases: u64,
}

impl How {
    /// As at the start, by the settings in force.
    pub fn of(settings: &Settings) -> How {
        How {
            limits: Limits::of(settings),
            drops_expired: true,
            replaces: false,
            databases: settings.int(P::DATABASES) as u64,
        }
    }
}

/// A record that belongs to some bytes.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The key's hash.
    pub hash: KeyHash,
    /// The database.
    pub db: u32,
    /// Bytes of the key.
    pub key_bytes: usize,
    /// The value's type.
    pub value_type: ValueType,
    /// Bytes of the value, which stand behind the key.
    pub value_bytes: usize,
    /// When its time comes, milliseconds since 1970.
    pub deadline_ms: Option<i64>,
    /// Seconds since it was used.
    pub idle_seconds: Option<u64>,
    /// How often it is used.
    pub frequency: Option<u8>,
    /// Byte of the file where the value begins.
    pub position: u64,
}

/// Records for one shard.
#[derive(Debug, Default)]
pub struct Batch {
    /// Keys and values.
    pub bytes: Vec<u8>,
    /// In the same order.
    pub entries: Vec<Entry>,
}

impl Batch {
    /// Forgets everything but the buffers.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.entries.clear();
    }
}

/// What became of records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Put in.
    pub keys: u64,
    /// Left out, because their time had come.
    pub expired: u64,
    /// Left out, because they had no elements.
    pub empty: u64,
}

impl Tally {
    /// Adds another one.
    pub fn add(&mut self, other: Tally) {
        self.keys += other.keys;
        self.expired += other.expired;
        self.empty += other.empty;
    }
}

/// Why a record was refused: byte of the file, and a sentence.
pub type Refused = (u64, String);

/// Entries between asking for a bucket and using it.
const AHEAD: usize = 8;

/// Puts records in that belong to the store.
///
/// # Errors
/// A value that is none; a key that is there. What came before it stays.
pub fn insert(store: &mut Store, batch: &Batch, how: &How) -> Result<Tally, Refused> {
    let mut tally = Tally::default();
    let mut at = 0;
    for (index, entry) in batch.entries.iter().enumerate() {
        if let Some(next) = batch.entries.get(index + AHEAD) {
            store.prefetch(next.db, next.hash);
        }
        let key = Key { bytes: &batch.bytes[at..at + entry.key_bytes], hash: entry.hash };
        at += entry.key_bytes;
        let value = &batch.bytes[at..at + entry.value_bytes];
        at += entry.value_bytes;
        insert_one(store, key, value, entry, how, &mut tally)?;
    }
    Ok(tally)
}

fn insert_one(
    store: &mut Store,
    key: Key<'_>,
    value: &[u8],
    entry: &Entry,
    how: &How,
    tally: &mut Tally,
) -> Result<(), Refused> {
    if how.drops_expired && entry.deadline_ms.is_some_and(|at| at < store.now.ms as i64) {
        tally.expired += 1;
        return Ok(());
    }
    let block = match block(store, key, value, entry, how) {
        Ok(block) => block,
        Err(refusal) if refusal.reason == value::EMPTY => {
            tally.empty += 1;
            return Ok(());
        }
        Err(refusal) => {
            let key = String::from_utf8_lossy(key.bytes);
            let reason = format!("{} (key '{key}', {})", refusal.reason, entry.value_type.name());
            return Err((entry.position + refusal.position as u64, reason));
        }
    };
    if how.replaces {
        store.place(entry.db, key, block);
    } else if !store.load(entry.db, key, block) {
        let key = String::from_utf8_lossy(key.bytes);
        return Err((entry.position, format!("RDB has duplicated key '{key}' in DB {}", entry.db)));
    }
    tally.keys += 1;
    Ok(())
}

fn block(store: &Store, key: Key<'_>, value: &[u8], entry: &Entry, how: &How) -> Result<Block, Corrupt> {
    let access = store.now.fresh_with(entry.idle_seconds, entry.frequency);
    // What lies before 1970 has come as what lies at its beginning.
    let deadline_ms = entry.deadline_ms.map(|at| at.max(0) as u64);
    let new = |value: NewValue<'_>| Block::new(key.bytes, value, deadline_ms, access, 0);
    let mut reader = Reader::new(value);
    if entry.value_type == ValueType::String {
        return Ok(match reader.text()? {
            Text::Integer(int) => new(NewValue::Int(int)),
            Text::Bytes(text) => match num::parse_i64(&text) {
                Some(int) => new(NewValue::Int(int)),
                None => new(NewValue::Bytes(&text)),
            },
        });
    }
    Ok(value::read(entry.value_type, &mut reader, &how.limits)?.store(new))
}

/// Adds a library to those of the process, in the place of one of its name where keys are replaced, too.
///
/// # Errors
/// Why it is none.
pub fn add_library(code: &[u8], how: &How) -> Result<(), String> {
    use crate::script::commands::{engine, known};
    let libraries = &known().libraries;
    let library = engine().library(code, |name| libraries.check_name(name, how.replaces));
    let added = library.and_then(|library| libraries.insert(library, how.replaces));
    added.map_err(|error| format!("Failed loading library, {error}"))
}

/// Says in the log what a fact of a file means to people.
pub fn note_fact(name: &[u8], text: &[u8], host: &Host) {
    use crate::base::clock;
    use crate::rt::log::{Level, line};
    use std::sync::atomic::Ordering;
    let number = num::parse_i64(text).unwrap_or(0);
    let said = String::from_utf8_lossy(text);
    let text = match name {
        b"redis-ver" | b"valkey-ver" => format!("Loading RDB produced by version {said}"),
        b"ctime" => {
            let age_s = (clock::wall_ms() / 1000).saturating_sub(number.max(0) as u64);
            format!("RDB age {age_s} seconds")
        }
        b"used-mem" => {
            host.persistence.loading.used_memory.store(number.max(0) as u64, Ordering::Relaxed);
            format!("RDB memory usage when created {:.2} Mb", number as f64 / f64::from(1 << 20))
        }
        b"aof-preamble" if number != 0 => "RDB has an AOF tail".to_string(),
        b"aof-base" if number != 0 => "RDB is base AOF".to_string(),
        [b'%', ..] => format!("RDB '{}': {said}", String::from_utf8_lossy(name)),
        _ => return,
    };
    line(Level::Notice, &text);
}
