//! A snapshot file as a stream of items: what stands around the values, and where each record lies.
//!
//! Must stay true: the input is hostile. It is read piece by piece, and room is made only in proportion to bytes that have
//! come; values are not looked into here, only passed over; each refusal says where and why.
use std::io::Read;
use std::ops::Range;

use crate::host::error_text;
use crate::rdb::crc64::crc64;
use crate::rdb::file::{CHECKSUM_VERSION, HEAD_BYTES, MAGIC, VALKEY_MAGIC, op};
use crate::rdb::payload::{VALKEY_VERSION, VERSION};
use crate::rdb::{Corrupt, Reader, ValueType, skip};

/// Bytes read at a time, at least.
const PIECE_BYTES: u64 = 1 << 20;

/// Why a file cannot be loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Byte of the file.
    pub position: u64,
    /// A sentence.
    pub reason: String,
}

impl Refusal {
    /// A refusal of what stands at a byte of the file.
    pub fn new(position: u64, reason: impl Into<String>) -> Refusal {
        Refusal { position, reason: reason.into() }
    }
}

/// What stands in a file.
#[derive(Clone, Debug, PartialEq)]
pub enum Item {
    /// A fact about the writer: its name and what it says.
    Fact(Vec<u8>, Vec<u8>),
    /// A library's code.
    Library(Vec<u8>),
    /// The records that follow are of this database.
    Select(u64),
    /// The database has so many keys, it is said.
    Size(u64),
    /// A key with its value.
    Record(Record),
    /// The end was reached, and the checksum is right.
    End,
}

/// A key with its value. The ranges are those of [`Stream::bytes`], until the next item is read.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// The value's type.
    pub value_type: ValueType,
    /// The key, as a string of the format.
    pub key: Range<usize>,
    /// The value.
    pub value: Range<usize>,
    /// When its time comes, milliseconds since 1970.
    pub deadline_ms: Option<i64>,
    /// Seconds since it was used.
    pub idle_seconds: Option<u64>,
    /// How often it is used.
    pub frequency: Option<u8>,
}

/// What precedes a key.
#[derive(Clone, Copy, Default)]
struct Facts {
    deadline_ms: Option<i64>,
    idle_seconds: Option<u64>,
    frequency: Option<u8>,
}

/// What a byte announces, read.
enum Part {
    Item(Item),
    Deadline(i64),
    Idle(u64),
    Frequency(u8),
    Passed,
    End,
    Module(u64),
    Unknown(&'static str),
}

/// What is checked.
#[derive(Clone, Copy, Debug)]
pub struct Checks {
    /// Checksums.
    pub checksum: bool,
    /// Versions that nobody is known to write are refused.
    pub version: bool,
}

/// A file that is being read.
pub struct Stream<R> {
    input: R,
    window: Vec<u8>,
    /// Where the next item begins in the window.
    at: usize,
    /// So much of the window is in the sum.
    summed: usize,
    sum: u64,
    /// Byte of the file with which the window begins.
    base: u64,
    has_ended: bool,
    version: u16,
    checks: Checks,
}

impl<R: Read> Stream<R> {
    /// Reads the head.
    ///
    /// # Errors
    /// When it is none, or of a version that nobody is known to write.
    pub fn open(input: R, checks: Checks) -> Result<Stream<R>, Refusal> {
        let window = Vec::new();
        let mut stream =
            Stream { input, window, at: 0, summed: 0, sum: 0, base: 0, has_ended: false, version: 0, checks };
        let head: [u8; HEAD_BYTES] = stream.take(|reader| reader.array())?;
        let digits = |text: &[u8]| {
            let number = std::str::from_utf8(text).ok().and_then(|text| text.parse::<u16>().ok());
            number.ok_or_else(|| Refusal::new(0, "Wrong signature trying to load DB from file"))
        };
        stream.version = match (head.strip_prefix(&MAGIC[..]), head.strip_prefix(&VALKEY_MAGIC[..])) {
            (Some(text), _) | (_, Some(text)) => digits(text)?,
            _ => return Err(Refusal::new(0, "Wrong signature trying to load DB from file")),
        };
        let is_valkey = head.starts_with(VALKEY_MAGIC);
        let is_known = if is_valkey {
            stream.version == VALKEY_VERSION
        } else {
            (1..=VERSION).contains(&stream.version)
        };
        let passes = !checks.version && stream.version > 0 && (stream.version >= VALKEY_VERSION) == is_valkey;
        if !is_known && !passes {
            let version = stream.version;
            return Err(Refusal::new(0, format!("Can't handle RDB format version {version}")));
        }
        Ok(stream)
    }

    /// Byte of the file at which the next item begins.
    pub fn position(&self) -> u64 {
        self.base + self.at as u64
    }

    /// What ranges of a record are of.
    pub fn bytes(&self) -> &[u8] {
        &self.window
    }

    /// Hands back the input, and what was read of it that lies behind the end.
    pub fn into_rest(self) -> (R, Vec<u8>) {
        (self.input, self.window[self.at..].to_vec())
    }

    /// Adds what was consumed to the sum, and reads more.
    fn fill(&mut self) -> Result<(), Refusal> {
        self.sum_up();
        self.window.drain(..self.at);
        self.base += self.at as u64;
        (self.at, self.summed) = (0, 0);
        let bytes = PIECE_BYTES.max(self.window.len() as u64);
        let read = (&mut self.input).take(bytes).read_to_end(&mut self.window);
        let read = read.map_err(|error| Refusal::new(self.base, error_text(&error)))?;
        self.has_ended = read == 0;
        Ok(())
    }

    fn sum_up(&mut self) {
        if self.checks.checksum {
            self.sum = crc64(self.sum, &self.window[self.summed..self.at]);
            self.summed = self.at;
        }
    }

    /// Reads with `read`, as soon as the window has enough for it.
    fn take<T>(&mut self, read: impl Fn(&mut Reader<'_>) -> Result<T, Corrupt>) -> Result<T, Refusal> {
        loop {
            let mut reader = Reader::new(&self.window[self.at..]);
            match read(&mut reader) {
                Ok(found) => {
                    self.at += reader.position();
                    return Ok(found);
                }
                Err(refusal) if skip::wants_more(&refusal) && !self.has_ended => self.fill()?,
                Err(refusal) => {
                    let position = self.position() + refusal.position as u64;
                    return Err(Refusal::new(position, refusal.reason));
                }
            }
        }
    }

    /// Reads the next item.
    ///
    /// # Errors
    /// What is none, with position and reason; a checksum that is another.
    pub fn item(&mut self) -> Result<Item, Refusal> {
        let mut facts = Facts::default();
        loop {
            let (start, version) = (self.position(), self.version);
            let part = self.take(|reader| part(reader, version))?;
            match part {
                Part::Item(Item::Record(record)) => {
                    return Ok(Item::Record(self.located(record, start, facts)));
                }
                Part::Item(item) => return Ok(item),
                Part::Deadline(ms) => facts.deadline_ms = Some(ms),
                Part::Idle(seconds) => facts.idle_seconds = Some(seconds),
                Part::Frequency(number) => facts.frequency = Some(number),
                Part::Passed => {}
                Part::End => {
                    self.check_sum()?;
                    return Ok(Item::End);
                }
                Part::Module(id) => {
                    let reason = format!("data of the module '{}', which is not there", module_name(id));
                    return Err(Refusal::new(start, reason));
                }
                Part::Unknown(reason) => {
                    let number = self.window[(start - self.base) as usize];
                    return Err(Refusal::new(start, format!("{reason} ({number})")));
                }
            }
        }
    }

    /// The record, by places in the window.
    fn located(&self, record: Record, start: u64, facts: Facts) -> Record {
        let start = (start - self.base) as usize;
        let moved = |range: Range<usize>| range.start + start..range.end + start;
        Record {
            key: moved(record.key),
            value: moved(record.value),
            deadline_ms: facts.deadline_ms,
            idle_seconds: facts.idle_seconds,
            frequency: facts.frequency,
            ..record
        }
    }

    fn check_sum(&mut self) -> Result<(), Refusal> {
        if self.version < CHECKSUM_VERSION {
            return Ok(());
        }
        self.sum_up();
        let (position, sum) = (self.position(), self.sum);
        let said = self.take(|reader| reader.u64_le())?;
        if self.checks.checksum && said != 0 && said != sum {
            let reason = format!("Wrong RDB checksum expected: ({sum:x}) but got ({said:x}). RDB CRC error");
            return Err(Refusal::new(position, reason));
        }
        Ok(())
    }
}

/// Reads what the next byte announces.
fn part(reader: &mut Reader<'_>, version: u16) -> Result<Part, Corrupt> {
    let number = reader.u8()?;
    Ok(match number {
        op::EXPIRE_MS => Part::Deadline(reader.time_ms()?),
        op::EXPIRE_S => Part::Deadline(i64::from(reader.time_s()?) * 1000),
        op::IDLE => Part::Idle(reader.length()?),
        op::FREQ => Part::Frequency(reader.u8()?),
        op::SELECT_DB => Part::Item(Item::Select(reader.length()?)),
        op::RESIZE_DB => {
            let keys = reader.length()?;
            reader.length()?;
            Part::Item(Item::Size(keys))
        }
        op::AUX => Part::Item(Item::Fact(whole_string(reader)?, whole_string(reader)?)),
        op::FUNCTION => Part::Item(Item::Library(whole_string(reader)?)),
        op::SLOT_INFO => {
            (0..3).try_for_each(|_| reader.length().map(|_| ()))?;
            Part::Passed
        }
        op::END => Part::End,
        op::MODULE_AUX => Part::Module(reader.length()?),
        op::FUNCTION_PRE_GA => Part::Unknown("Pre-release function format not supported."),
        op::SLOT_IMPORT if version >= VALKEY_VERSION => Part::Unknown("a slot of a cluster that is moving"),
        _ => match ValueType::of(number, version) {
            Some(value_type) => record(value_type, reader)?,
            None => Part::Unknown("a type or opcode that nobody knows"),
        },
    })
}

/// A string, which must be there as a whole before any of it is unpacked.
fn whole_string(reader: &mut Reader<'_>) -> Result<Vec<u8>, Corrupt> {
    reader.clone().skip_string()?;
    reader.string().map(|text| text.into_owned())
}

fn record(value_type: ValueType, reader: &mut Reader<'_>) -> Result<Part, Corrupt> {
    let key = reader.position();
    reader.skip_string()?;
    let value = reader.position();
    if value_type == ValueType::Module2 {
        return Ok(Part::Module(reader.length()?));
    }
    if value_type == ValueType::ModulePreGa {
        return Ok(Part::Unknown("a module's value of a candidate of Redis 4.0"));
    }
    skip::value(value_type, reader)?;
    let (key, value) = (key..value, value..reader.position());
    let facts = Facts::default();
    Ok(Part::Item(Item::Record(Record {
        value_type,
        key,
        value,
        deadline_ms: facts.deadline_ms,
        idle_seconds: facts.idle_seconds,
        frequency: facts.frequency,
    })))
}

/// Nine letters of six bits each, above ten bits of a version.
fn module_name(id: u64) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    (0..9).map(|at| char::from(LETTERS[(id >> (58 - 6 * at)) as usize & 63])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rdb::Writer;
    use crate::rdb::file::Head;

    const CHECKS: Checks = Checks { checksum: true, version: true };

    /// Gives one byte at a time.
    struct Drips<'a>(&'a [u8]);

    impl Read for Drips<'_> {
        fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
            let bytes = self.0.len().min(1).min(into.len());
            into[..bytes].copy_from_slice(&self.0[..bytes]);
            self.0 = &self.0[bytes..];
            Ok(bytes)
        }
    }

    fn all(file: &[u8]) -> Result<Vec<Item>, Refusal> {
        let mut stream = Stream::open(Drips(file), CHECKS)?;
        let mut items = Vec::new();
        loop {
            let item = stream.item()?;
            items.push(item.clone());
            if item == Item::End {
                let (_, rest) = stream.into_rest();
                assert!(rest.is_empty());
                return Ok(items);
            }
        }
    }

    fn sealed(body: &[u8]) -> Vec<u8> {
        let mut file = body.to_vec();
        file.push(op::END);
        let sum = crc64(0, &file);
        file.extend_from_slice(&sum.to_le_bytes());
        file
    }

    #[test]
    fn a_file_is_read_and_its_sum_is_compared() {
        let mut writer = Writer::over(Head::default().write(true), true);
        writer.u8(op::SELECT_DB);
        writer.length(5);
        writer.u8(op::EXPIRE_S);
        writer.u32_le(7);
        writer.u8(op::FREQ);
        writer.u8(9);
        writer.u8(0);
        writer.string(b"key");
        writer.string(b"value");
        let file = sealed(writer.as_bytes());
        let items = all(&file).unwrap();
        let Item::Record(record) = &items[items.len() - 2] else { panic!("{items:?}") };
        assert_eq!((record.deadline_ms, record.frequency, record.idle_seconds), (Some(7000), Some(9), None));
        assert_eq!((record.key.len(), record.value.len()), (4, 6));
        assert!(matches!(&items[0], Item::Fact(name, _) if name == b"redis-ver"));
        let mut bad = file.clone();
        bad[file.len() - 1] ^= 1;
        assert!(all(&bad).unwrap_err().reason.starts_with("Wrong RDB checksum"));
        bad[file.len() - 8..].fill(0);
        assert!(all(&bad).is_ok());
        for end in 0..file.len() {
            let refusal = all(&file[..end]).unwrap_err();
            assert!(
                refusal.position <= end as u64 && refusal.reason == "the input ends early",
                "{refusal:?}"
            );
        }
    }

    #[test]
    fn what_cannot_be_loaded_is_named() {
        let refused = |body: &[u8]| all(&sealed(body)).unwrap_err();
        assert_eq!(refused(b"REDIS0099").reason, "Can't handle RDB format version 99");
        assert_eq!(refused(b"VALKEY012").reason, "Can't handle RDB format version 12");
        assert_eq!(refused(b"PERIG0012").reason, "Wrong signature trying to load DB from file");
        assert_eq!(refused(b"REDIS0010\x1e\x01k").reason, "a type or opcode that nobody knows (30)");
        assert_eq!(refused(b"REDIS0010\xf6").reason, "Pre-release function format not supported. (246)");
        assert_eq!(refused(b"REDIS0010\xf6").position, 9);
        let mut module = b"REDIS0010\x07\x01k".to_vec();
        let id = b"ReJSON-RL".iter().fold(0_u64, |id, letter| {
            let letters = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
            id << 6 | letters.iter().position(|known| known == letter).unwrap() as u64
        });
        module.push(0x81);
        module.extend_from_slice(&(id << 10 | 3).to_be_bytes());
        assert_eq!(refused(&module).reason, "data of the module 'ReJSON-RL', which is not there");
    }
}
