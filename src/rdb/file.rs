//! What stands around values in a snapshot file: the head, facts about the writer, libraries of functions, the records of
//! keys, the end.
//!
//! Must stay true: a file is its head, then whole records in any order, each behind the selection of its database, then
//! the end; the version is the oldest that holds the values ([`ValueType::version`]).
use super::value::steps::Steps;
use super::{ValueType, Writer, value};
use crate::config::{P, REDIS_VERSION, Settings};
use crate::ds::raw::block::{BlockRef, Payload, Value};
use crate::store::Now;
use crate::store::snapshot::Encode;

/// First bytes of a file of Redis; four digits of version follow.
pub const MAGIC: &[u8; 5] = b"REDIS";
/// First bytes of a file of Valkey since 9.0; three digits of version follow.
pub const VALKEY_MAGIC: &[u8; 6] = b"VALKEY";
/// Bytes of the magic and the version, both ways.
pub const HEAD_BYTES: usize = 9;
/// The first version with a checksum behind the end.
pub const CHECKSUM_VERSION: u16 = 5;

/// Bytes that announce what is no value.
pub mod op {
    /// Valkey's: a slot that is moving in (since 9.0): two strings.
    pub const SLOT_IMPORT: u8 = 243;
    /// Sizes of a cluster's slot: three lengths.
    pub const SLOT_INFO: u8 = 244;
    /// A library: its code, a string.
    pub const FUNCTION: u8 = 245;
    /// A library of the candidates of Redis 7.0.
    pub const FUNCTION_PRE_GA: u8 = 246;
    /// What a module keeps beside keys: as in [`crate::rdb::ValueType::Module2`], with a length of 2 and the time when it
    /// is to be loaded ahead.
    pub const MODULE_AUX: u8 = 247;
    /// Seconds since the next key was used: a length.
    pub const IDLE: u8 = 248;
    /// How often the next key is used: a byte.
    pub const FREQ: u8 = 249;
    /// A fact: its name and what it says, strings.
    pub const AUX: u8 = 250;
    /// Keys of the database, and keys with a deadline: lengths.
    pub const RESIZE_DB: u8 = 251;
    /// The next key's deadline: a time in milliseconds.
    pub const EXPIRE_MS: u8 = 252;
    /// The next key's deadline: a time in seconds.
    pub const EXPIRE_S: u8 = 253;
    /// The database of the records that follow: a length.
    pub const SELECT_DB: u8 = 254;
    /// The end; since version 5 the checksum of all before it follows in eight bytes, 0 for none.
    pub const END: u8 = 255;
}

/// How many keys a database has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DbSize {
    /// The database.
    pub db: u32,
    /// Its keys.
    pub keys: u64,
    /// Those with a deadline.
    pub deadlines: u64,
}

/// What stands at the head of a file.
#[derive(Clone, Debug, Default)]
pub struct Head<'a> {
    /// There are hashes whose fields have deadlines, in some database.
    pub has_field_deadlines: bool,
    /// Seconds since 1970.
    pub time_s: u64,
    /// Bytes of memory in use.
    pub used_memory: u64,
    /// It is the base of an append-only log.
    pub is_base: bool,
    /// Codes of the libraries.
    pub libraries: Vec<&'a [u8]>,
    /// Sizes of the databases that have keys: hints for whoever loads them.
    pub sizes: Vec<DbSize>,
}

fn aux(name: &str, text: &str, writer: &mut Writer) {
    writer.u8(op::AUX);
    writer.string(name.as_bytes());
    writer.string(text.as_bytes());
}

impl Head<'_> {
    /// The version that the file has.
    pub fn version(&self) -> u16 {
        if self.has_field_deadlines { ValueType::HashMetadata.version() } else { ValueType::String.version() }
    }

    /// The bytes of the head.
    pub fn write(&self, compress: bool) -> Vec<u8> {
        let mut writer = Writer::new(compress);
        writer.raw(MAGIC);
        writer.raw(format!("{:04}", self.version()).as_bytes());
        aux("redis-ver", REDIS_VERSION, &mut writer);
        aux("redis-bits", "64", &mut writer);
        aux("ctime", &self.time_s.to_string(), &mut writer);
        aux("used-mem", &self.used_memory.to_string(), &mut writer);
        aux("aof-base", if self.is_base { "1" } else { "0" }, &mut writer);
        for code in &self.libraries {
            write_library(code, &mut writer);
        }
        for size in &self.sizes {
            writer.u8(op::SELECT_DB);
            writer.length(size.db.into());
            writer.u8(op::RESIZE_DB);
            writer.length(size.keys);
            writer.length(size.deadlines);
        }
        writer.into_bytes()
    }
}

/// Writes a library, in a file as in a dump of libraries.
pub fn write_library(code: &[u8], writer: &mut Writer) {
    writer.u8(op::FUNCTION);
    writer.string(code);
}

/// What is written of the use of keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Uses {
    None,
    Idle,
    Frequency,
}

/// Strings of more bytes than this are not compressed when they are written in steps: compression is one step.
const COMPRESSED_BYTES_MAX: usize = 512 * 1024;

/// How far a large record is written.
#[derive(Clone, Copy, Debug)]
enum Large {
    Parts(Steps),
    /// Bytes of a string.
    Text(usize),
    /// It was written at once.
    Done,
}

/// Turns keys into records.
pub struct Encoder {
    writer: Writer,
    uses: Uses,
    now: Now,
    large: Large,
}

impl Encoder {
    /// An encoder by the settings in force; what it says of uses is as of `now`.
    pub fn new(settings: &Settings, now: Now) -> Encoder {
        let policy = settings.choice(P::MAXMEMORY_POLICY);
        let uses = if policy.ends_with("lru") {
            Uses::Idle
        } else if policy.ends_with("lfu") {
            Uses::Frequency
        } else {
            Uses::None
        };
        let writer = Writer::new(settings.bool(P::RDBCOMPRESSION));
        Encoder { writer, uses, now, large: Large::Done }
    }

    /// Writes what stands before a value.
    fn head(&mut self, block: BlockRef<'_>) {
        let writer = &mut self.writer;
        if let Some(ms) = block.deadline_ms() {
            writer.u8(op::EXPIRE_MS);
            writer.u64_le(ms);
        }
        match self.uses {
            Uses::None => {}
            Uses::Idle => {
                writer.u8(op::IDLE);
                writer.length(self.now.idle_seconds(block.access()).into());
            }
            Uses::Frequency => {
                if let Some(frequency) = self.now.frequency(block.access()) {
                    writer.u8(op::FREQ);
                    writer.u8(frequency);
                }
            }
        }
        writer.u8(value::type_of(block.value()).number());
        writer.string(block.key());
    }
}

impl Encode for Encoder {
    fn select(&mut self, db: u32, out: &mut Vec<u8>) {
        self.writer.exchange(out);
        self.writer.u8(op::SELECT_DB);
        self.writer.length(db.into());
        self.writer.exchange(out);
    }

    fn key(&mut self, block: BlockRef<'_>, out: &mut Vec<u8>) {
        self.writer.exchange(out);
        self.head(block);
        value::write(block.value(), &mut self.writer);
        self.writer.exchange(out);
    }

    fn begin(&mut self, block: BlockRef<'_>, out: &mut Vec<u8>) {
        self.writer.exchange(out);
        self.head(block);
        let writer = &mut self.writer;
        self.large = match block.value() {
            Value::Object(object) => Large::Parts(Steps::begin(object, writer)),
            Value::String(Payload::Bytes(bytes))
                if !writer.compresses() || bytes.len() > COMPRESSED_BYTES_MAX =>
            {
                writer.length(bytes.len() as u64);
                Large::Text(0)
            }
            value => {
                value::write(value, writer);
                Large::Done
            }
        };
        self.writer.exchange(out);
    }

    fn go_on(&mut self, block: BlockRef<'_>, bytes: usize, out: &mut Vec<u8>) -> bool {
        self.writer.exchange(out);
        let is_complete = match (&mut self.large, block.value()) {
            (Large::Parts(steps), Value::Object(object)) => steps.go_on(object, bytes, &mut self.writer),
            (Large::Text(at), Value::String(Payload::Bytes(text))) => {
                let end = at.saturating_add(bytes.max(1)).min(text.len());
                self.writer.raw(&text[*at..end]);
                *at = end;
                end == text.len()
            }
            _ => true,
        };
        self.writer.exchange(out);
        is_complete
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ds::raw::block::{Block, NewValue};

    #[test]
    fn the_head_is_redis_s() {
        let size = DbSize { db: 3, keys: 7, deadlines: 2 };
        let head = Head { time_s: 5, used_memory: 100_000, sizes: vec![size], ..Head::default() };
        let bytes = head.write(true);
        assert!(bytes.starts_with(b"REDIS0010\xfa\x09redis-ver\x05"));
        assert!(bytes.ends_with(b"\xfa\x08aof-base\xc0\x00\xfe\x03\xfb\x07\x02"));
        let head = Head { has_field_deadlines: true, libraries: vec![b"#!lua name=x"], ..head };
        let bytes = head.write(true);
        assert!(bytes.starts_with(b"REDIS0012"));
        assert!(bytes.ends_with(b"\xf5\x0c#!lua name=x\xfe\x03\xfb\x07\x02"));
    }

    #[test]
    fn records_say_what_the_policy_asks_for() {
        let mut settings = Settings::default();
        let now = Now { ms: 60_000_000, access: 100, ..Now::default() };
        let block = Block::new(b"k", NewValue::Int(7), Some(0x0102), 90, 0);
        let record = |settings: &Settings, now| {
            let mut out = b"-".to_vec();
            Encoder::new(settings, now).key(block.view(), &mut out);
            out
        };
        assert_eq!(record(&settings, now), b"-\xfc\x02\x01\0\0\0\0\0\0\0\x01k\xc0\x07");
        settings.set(b"maxmemory-policy", &[b"allkeys-lru"]).unwrap();
        assert_eq!(record(&settings, now), b"-\xfc\x02\x01\0\0\0\0\0\0\xf8\x0a\0\x01k\xc0\x07");
        settings.set(b"maxmemory-policy", &[b"volatile-lfu"]).unwrap();
        let now = Now { uses: crate::store::Uses::under(&settings), ..now };
        assert_eq!(record(&settings, now), b"-\xfc\x02\x01\0\0\0\0\0\0\xf9\0\0\x01k\xc0\x07");
    }

    #[test]
    fn a_string_in_steps_is_the_string() {
        let text = vec![b'x'; 100_000];
        let block = Block::new(b"k", NewValue::Bytes(&text), None, 0, 0);
        let mut settings = Settings::default();
        settings.set(b"rdbcompression", &[b"no"]).unwrap();
        let mut encoder = Encoder::new(&settings, Now::default());
        let (mut whole, mut pieces) = (Vec::new(), Vec::new());
        encoder.key(block.view(), &mut whole);
        encoder.begin(block.view(), &mut pieces);
        while !encoder.go_on(block.view(), 30_000, &mut pieces) {}
        assert_eq!(whole, pieces);
    }
}
