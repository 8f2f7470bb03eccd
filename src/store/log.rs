//! What a shard has changed and the append-only log has not got yet: commands in the protocol's encoding.
//!
//! Records of one command, one transaction or one script are a *unit*: they take effect together or not at all, so a
//! unit of several stands between MULTI and EXEC.
//!
//! Must stay true: what is noted here has happened, in this order; nobody hears a reply that came after it before it has
//! been handed to the journal (`shard/logged.rs`); a store that is not logged pays one load per command.
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::news::{listen, next_number};
use super::{Effect, Store};
use crate::host::journal::Piece;
use crate::wire::{Key, Out};

/// A buffer above this is not kept once it is written.
const BYTES_KEEP: usize = 256 * 1024;
/// Nor is a list of more records.
const RECORDS_KEEP: usize = 1024;

/// Whether a shard has records that are not written: its thread asks before replies leave, others clear it while they
/// hold the shard.
#[derive(Debug, Default)]
#[repr(align(64))]
pub struct Unwritten(AtomicBool);

impl Unwritten {
    /// Whether there are some.
    #[inline]
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }

    fn set(&self, is_set: bool) {
        self.0.store(is_set, Ordering::Release);
    }
}

/// A record of the running unit.
#[derive(Debug)]
struct Record {
    /// Ascends among the news of one thread: it orders the records of a unit over several stores.
    number: u64,
    db: Option<u32>,
    /// Where it begins in the buffer, with the SELECT in front of it,
    at: usize,
    /// and without.
    text_at: usize,
}

/// The records of a shard.
#[derive(Debug, Default)]
pub struct Log {
    out: Out,
    first_db: Option<u32>,
    last_db: Option<u32>,
    unit: Vec<Record>,
    /// What the two databases were before the unit.
    dbs_before: (Option<u32>, Option<u32>),
    /// Records of units that are over wait to be written.
    pub unwritten: Arc<Unwritten>,
}

/// Writes a command.
#[inline]
pub fn encode<'w>(out: &mut Out, words: impl ExactSizeIterator<Item = &'w [u8]>) {
    out.array(words.len());
    words.for_each(|word| out.bulk(word));
}

fn select(out: &mut Out, db: u32) {
    out.array(2);
    out.bulk(b"SELECT");
    out.bulk_int(db.into());
}

impl Log {
    /// Notes a command about database `db` (`None`: about none).
    #[inline]
    fn note<'w>(&mut self, db: Option<u32>, words: impl ExactSizeIterator<Item = &'w [u8]>) {
        let at = self.out.buf.len();
        if self.unit.is_empty() {
            self.dbs_before = (self.first_db, self.last_db);
        }
        if self.last_db != db && db.is_some() {
            self.turn_to(db);
        }
        self.unit.push(Record { number: next_number(), db, at, text_at: self.out.buf.len() });
        encode(&mut self.out, words);
    }

    /// Notes that a part of a value is gone though no command deleted it.
    #[cold]
    pub(super) fn note_part_gone(&mut self, db: u32, key: Key<'_>, part: &[u8]) {
        self.note(Some(db), [&b"HDEL"[..], key.bytes, part].into_iter());
    }

    #[cold]
    fn turn_to(&mut self, db: Option<u32>) {
        match (self.first_db, db) {
            (Some(_), Some(db)) => select(&mut self.out, db),
            _ => self.first_db = db,
        }
        self.last_db = db;
    }

    /// The unit is over; it is whole in this store.
    #[inline]
    fn end_unit(&mut self, is_whole: bool) {
        if self.unit.len() > 1 && is_whole {
            self.wrap_unit();
        }
        self.unit.clear();
        self.unwritten.set(true);
    }

    #[cold]
    fn wrap_unit(&mut self) {
        let at = self.unit[0].at;
        let mut multi = Out::default();
        encode(&mut multi, [&b"MULTI"[..]].into_iter());
        self.out.buf.splice(at..at, multi.buf);
        encode(&mut self.out, [&b"EXEC"[..]].into_iter());
        self.unit.shrink_to(RECORDS_KEEP);
    }

    /// What waits to be written, without the running unit.
    pub fn piece(&self) -> Option<Piece<'_>> {
        let (end, (first_db, last_db)) = match self.unit.first() {
            Some(first) => (first.at, self.dbs_before),
            None => (self.out.buf.len(), (self.first_db, self.last_db)),
        };
        (end > 0).then(|| Piece { first_db, last_db, bytes: &self.out.buf[..end] })
    }

    /// Whether anything waits to be written, or belongs to the running unit.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.out.buf.is_empty()
    }

    /// Everything was written, the running unit too.
    pub fn clear(&mut self) {
        self.unit.clear();
        self.unit.shrink_to(RECORDS_KEEP);
        self.out.buf.clear();
        self.out.buf.shrink_to(BYTES_KEEP);
        (self.first_db, self.last_db) = (None, None);
        self.unwritten.set(false);
    }
}

/// The records of a unit over several stores, in their order.
#[derive(Default)]
pub struct Unit<'s>(Vec<(&'s Record, &'s [u8])>);

impl<'s> Unit<'s> {
    /// Takes a store's part in.
    pub fn add(&mut self, log: &'s Log) {
        let ends = log.unit.iter().skip(1).map(|next| next.at).chain([log.out.buf.len()]);
        self.0.extend(
            log.unit.iter().zip(ends).map(|(record, end)| (record, &log.out.buf[record.text_at..end])),
        );
    }

    /// The whole: its bytes, the database that must be selected before them, and the one that is then.
    pub fn assemble(mut self) -> (Vec<u8>, Option<u32>, Option<u32>) {
        self.0.sort_unstable_by_key(|(record, _)| record.number);
        let first_db = self.0.iter().find_map(|(record, _)| record.db);
        let (mut out, mut last_db) = (Out::default(), first_db);
        let is_wrapped = self.0.len() > 1;
        if is_wrapped {
            encode(&mut out, [&b"MULTI"[..]].into_iter());
        }
        for (record, bytes) in &self.0 {
            if let Some(db) = record.db
                && last_db != Some(db)
            {
                select(&mut out, db);
                last_db = Some(db);
            }
            out.buf.extend_from_slice(bytes);
        }
        if is_wrapped {
            encode(&mut out, [&b"EXEC"[..]].into_iter());
        }
        (out.buf, first_db, last_db)
    }
}

impl Store {
    /// Whether what changes here is logged.
    #[inline]
    pub fn is_logged(&self) -> bool {
        self.listens & listen::LOG != 0
    }

    /// Records a command about database `db` as a part of what the running command did.
    #[inline]
    pub fn record<'w>(&mut self, db: u32, words: impl ExactSizeIterator<Item = &'w [u8]>) {
        self.has_records = true;
        self.log.note(Some(db), words);
    }

    /// Records that a key is gone though no command deleted it.
    #[cold]
    pub(super) fn record_gone(&mut self, db: u32, key: Key<'_>, effect: Effect) {
        debug_assert_eq!(effect, Effect::Expired);
        self.record(db, [&b"DEL"[..], key.bytes].into_iter());
    }

    /// What was recorded since the last call is a unit.
    #[inline]
    pub fn end_unit(&mut self) {
        if self.has_records {
            self.has_records = false;
            self.log.end_unit(true);
        }
    }

    /// Each record since the last call is a unit of its own.
    pub(super) fn end_units(&mut self) {
        if self.has_records {
            self.has_records = false;
            self.log.end_unit(false);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::Counters;
    use crate::host::journal::Journal;

    fn store() -> Store {
        Store::new(Arc::default(), Arc::new(Counters::new(0)))
    }

    fn record(store: &mut Store, db: u32, line: &str) {
        let words: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
        store.record(db, words.into_iter());
    }

    /// The words of what was written.
    fn words(bytes: &[u8]) -> String {
        let text = String::from_utf8_lossy(bytes);
        let words = text.split("\r\n").filter(|word| !word.is_empty() && !word.starts_with('$'));
        words.map(|word| if word.starts_with('*') { "|" } else { word }).collect::<Vec<_>>().join(" ")
    }

    fn write(store: &mut Store, journal: &Journal) -> String {
        journal.write(store.log.piece().as_slice());
        store.log.clear();
        words(&journal.take_captured())
    }

    #[test]
    fn units_of_several_are_wrapped() {
        let (mut store, journal) = (store(), Journal::default());
        assert!(store.log.piece().is_none() && !store.log.unwritten.is_set());
        record(&mut store, 0, "SET a 1");
        assert!(store.log.piece().is_none() && !store.log.unwritten.is_set());
        store.end_unit();
        assert!(store.log.unwritten.is_set());
        for line in ["SET b 1", "DEL a"] {
            record(&mut store, 0, line);
        }
        store.end_unit();
        record(&mut store, 3, "SET c 1");
        record(&mut store, 0, "SET d 1");
        store.end_unit();
        store.end_unit();
        let wanted = "| SELECT 0 | SET a 1 | MULTI | SET b 1 | DEL a | EXEC | MULTI | SELECT 3 | SET c 1 \
                      | SELECT 0 | SET d 1 | EXEC";
        assert_eq!(write(&mut store, &journal), wanted);
        assert!(store.log.is_empty() && store.log.piece().is_none() && !store.log.unwritten.is_set());
        record(&mut store, 0, "SET a 2");
        store.end_unit();
        assert_eq!(write(&mut store, &journal), "| SET a 2");
        record(&mut store, 1, "SET a 3");
        store.end_unit();
        assert_eq!(write(&mut store, &journal), "| SELECT 1 | SET a 3");
    }

    #[test]
    fn a_unit_over_several_stores_keeps_its_order() {
        let mut stores = [store(), store()];
        for (at, db, line) in [(1, 0, "SET a 1"), (0, 0, "SET b 2"), (0, 1, "SET c 3"), (1, 0, "SET d 4")] {
            record(&mut stores[at], db, line);
        }
        let assembled = |stores: &[Store]| {
            let mut unit = Unit::default();
            stores.iter().for_each(|store| unit.add(&store.log));
            let (bytes, first_db, last_db) = unit.assemble();
            (words(&bytes), first_db, last_db)
        };
        let wanted = "| MULTI | SET a 1 | SET b 2 | SELECT 1 | SET c 3 | SELECT 0 | SET d 4 | EXEC";
        assert_eq!(assembled(&stores), (wanted.into(), Some(0), Some(0)));
        stores[0].log.clear();
        stores[1].log.clear();
        record(&mut stores[1], 5, "SET e 5");
        assert_eq!(assembled(&stores), ("| SET e 5".into(), Some(5), Some(5)));
    }
}
