//! Loading: the records of a file, dealt out to the shards.
//!
//! The loading thread reads, sums, and finds where records end; the shards' threads read the values and put them in
//! ([`Dealer`]), since memory belongs to the thread that asks for it. Where all shards are held by one command, that does
//! it alone ([`Placer`]).
//!
//! Must stay true: what is under way is bounded; clients are answered in between; the first refusal ends it all.
use std::io::{self, Read};
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::insert::{self, Batch, Entry, How, Refused, Tally};
use super::rdb_stream::{Checks, Item, Record, Refusal, Stream};
use crate::base::clock;
use crate::base::hash::KeyHash;
use crate::cmd::cx::WriteStores;
use crate::cmd::spec::gate;
use crate::config::P;
use crate::host::Host;
use crate::rdb::Reader;
use crate::rt::disk::File;
use crate::rt::log::{Level, line};
use crate::shard::Shared;
use crate::shard::local::Local;
use crate::shard::msg::Control;
use crate::store::Store;

/// Bytes and records of a batch.
const BATCH_BYTES: usize = 64 * 1024;
const BATCH_ENTRIES: usize = 512;
/// Batches under way for each shard.
const BATCHES_EACH: usize = 3;
/// A record takes at least so many bytes of a file, so a file backs no more of them.
const RECORD_BYTES_MIN: u64 = 16;
/// Seconds between two lines about progress.
const LINE_S: u64 = 5;

/// Who puts records in.
pub trait Sink {
    /// A record with this key and value, of which the value begins at the byte `entry.position` of the file.
    ///
    /// # Errors
    /// When it, or one before it, was refused.
    fn put(&mut self, entry: Entry, key: &[u8], value: &[u8]) -> Result<(), Refused>;
    /// So many keys of a database are to come.
    fn expect(&mut self, db: u32, keys: usize);
    /// Waits until all is in.
    ///
    /// # Errors
    /// The first refusal.
    fn finish(&mut self) -> Result<Tally, Refused>;
}

fn refusal((position, reason): Refused) -> Refusal {
    Refusal { position, reason }
}

/// Progress of a loading, in INFO and in the log.
struct Watch<'a> {
    host: &'a Host,
    started: Instant,
    told_s: u64,
    keys: u64,
    told_keys: u64,
}

impl<'a> Watch<'a> {
    fn new(host: &'a Host) -> Watch<'a> {
        Watch { host, started: clock::instant(), told_s: 0, keys: 0, told_keys: 0 }
    }

    fn note(&mut self, position: u64, offset: u64) {
        let loading = &self.host.persistence.loading;
        loading.loaded_bytes.store(offset + position, Ordering::Relaxed);
        let elapsed_s = self.started.elapsed().as_secs();
        if elapsed_s < self.told_s + LINE_S {
            return;
        }
        let (percent, left_s) = loading.progress(clock::wall_ms() / 1000);
        let each_s = (self.keys - self.told_keys) / (elapsed_s - self.told_s);
        line(
            Level::Notice,
            &format!(
                "Loading: {percent:.1}%, {} keys, {each_s} keys per second, {left_s} seconds to go",
                self.keys
            ),
        );
        (self.told_s, self.told_keys) = (elapsed_s, self.keys);
    }
}

/// What was loaded, and the input behind its end, with what was already read of it.
pub struct Loaded<R> {
    /// What became of the keys.
    pub tally: Tally,
    /// The input.
    pub input: R,
    /// Bytes read beyond the end.
    pub rest: Vec<u8>,
    /// Bytes of the snapshot.
    pub bytes: u64,
}

/// Loads a snapshot from an input of `total_bytes`, of which `offset` are other files'.
///
/// # Errors
/// The first thing that cannot be loaded; what came before it is in.
pub fn read<R: Read>(
    input: R,
    (total_bytes, offset): (u64, u64),
    host: &Host,
    how: &How,
    sink: &mut dyn Sink,
) -> Result<Loaded<R>, Refusal> {
    let settings = host.settings();
    let lenient = settings.choice(P::RDB_VERSION_CHECK) == "relaxed";
    let checksum = settings.bool(P::RDBCHECKSUM) && !host.skips_checksums.load(Ordering::Relaxed);
    let mut stream = Stream::open(input, Checks { checksum, version: !lenient })?;
    let (mut db, mut watch) = (0, Watch::new(host));
    let is_slow = settings.int(P::KEY_LOAD_DELAY) > 0;
    loop {
        let start = stream.position();
        match stream.item()? {
            Item::Record(record) => {
                watch.keys += 1;
                if is_slow {
                    // For tests that want to find it under way, and end it then.
                    let delay_us = host.settings().int(P::KEY_LOAD_DELAY).max(0) as u64;
                    std::thread::sleep(Duration::from_micros(delay_us));
                }
                if watch.keys.is_multiple_of(4096) {
                    watch.note(start, offset);
                }
                put(&stream, record, db, start, sink)?;
            }
            Item::Select(index) => {
                if index >= how.databases {
                    let reason = format!(
                        "FATAL: Data file was created with a Redis server configured to handle more than {} databases.",
                        how.databases
                    );
                    return Err(Refusal::new(start, reason));
                }
                db = index as u32;
            }
            Item::Size(keys) => {
                let backed = total_bytes.saturating_sub(start) / RECORD_BYTES_MIN;
                sink.expect(db, keys.min(backed) as usize);
            }
            Item::Library(code) => {
                insert::add_library(&code, how).map_err(|reason| Refusal::new(start, reason))?;
            }
            Item::Fact(name, text) => insert::note_fact(&name, &text, host),
            Item::End => break,
        }
    }
    let tally = sink.finish().map_err(refusal)?;
    let loading = &host.persistence.loading;
    loading.loaded_bytes.store(offset + stream.position(), Ordering::Relaxed);
    loading.keys.store(tally.keys, Ordering::Relaxed);
    loading.expired.store(tally.expired, Ordering::Relaxed);
    let mut text = format!("Done loading RDB, keys loaded: {}, keys expired: {}", tally.keys, tally.expired);
    if tally.empty > 0 {
        text += &format!(", empty keys skipped: {}", tally.empty);
    }
    line(Level::Notice, &(text + "."));
    let bytes = stream.position();
    let (input, rest) = stream.into_rest();
    Ok(Loaded { tally, input, rest, bytes })
}

fn put<R: Read>(
    stream: &Stream<R>,
    record: Record,
    db: u32,
    start: u64,
    sink: &mut dyn Sink,
) -> Result<(), Refusal> {
    let text = &stream.bytes()[record.key.clone()];
    let key = Reader::new(text).string().map_err(|e| Refusal::new(start, e.reason))?;
    let value = &stream.bytes()[record.value.clone()];
    let entry = Entry {
        hash: KeyHash::of(&key),
        db,
        key_bytes: key.len(),
        value_type: record.value_type,
        value_bytes: value.len(),
        deadline_ms: record.deadline_ms,
        idle_seconds: record.idle_seconds,
        frequency: record.frequency,
        position: stream.position() - record.value.len() as u64,
    };
    sink.put(entry, &key, value).map_err(refusal)
}

/// A batch on its way back from a shard.
type Returned = (Batch, Result<Tally, Refused>);

/// Deals records out to the shards' threads.
pub struct Dealer {
    shared: Arc<Shared>,
    how: Arc<How>,
    filling: Vec<Batch>,
    spares: Vec<Batch>,
    under_way: usize,
    sender: flume::Sender<Returned>,
    receiver: flume::Receiver<Returned>,
    tally: Tally,
}

impl Dealer {
    /// For a server whose threads run; not to be used on one of them.
    pub fn new(shared: Arc<Shared>, how: How) -> Dealer {
        let (sender, receiver) = flume::unbounded();
        let shards = shared.shards();
        Dealer {
            shared,
            how: Arc::new(how),
            filling: (0..shards).map(|_| Batch::default()).collect(),
            spares: (0..shards * BATCHES_EACH).map(|_| Batch::default()).collect(),
            under_way: 0,
            sender,
            receiver,
            tally: Tally::default(),
        }
    }

    /// Takes a batch back.
    fn take_back(&mut self) -> Result<(), Refused> {
        // We have a sender, so somebody sends.
        let Ok((mut batch, result)) = self.receiver.recv() else { return Ok(()) };
        self.under_way -= 1;
        self.tally.add(result?);
        batch.clear();
        self.spares.push(batch);
        Ok(())
    }

    fn send(&mut self, shard: usize) -> Result<(), Refused> {
        while self.spares.is_empty() {
            self.take_back()?;
        }
        let spare = self.spares.pop().unwrap_or_default();
        let batch = std::mem::replace(&mut self.filling[shard], spare);
        let (how, sender) = (self.how.clone(), self.sender.clone());
        self.under_way += 1;
        // A task of its own, so that others come in between.
        let job = move |local: &Rc<Local>| crate::rt::spawn(take_in(local.clone(), batch, how, sender));
        self.shared.control(shard, Control::Job(Box::new(job)));
        Ok(())
    }
}

async fn take_in(local: Rc<Local>, batch: Batch, how: Arc<How>, sender: flume::Sender<Returned>) {
    let result = loop {
        if let Some(mut store) = local.enter() {
            break insert::insert(&mut store, &batch, &how);
        }
        // Somebody reads all shards at once; INFO does.
        crate::rt::sleep_ms(1).await;
    };
    // A loading that has failed wants nothing back.
    let _ = sender.send((batch, result));
}

impl Sink for Dealer {
    fn put(&mut self, entry: Entry, key: &[u8], value: &[u8]) -> Result<(), Refused> {
        let shard = entry.hash.shard(self.filling.len());
        let batch = &mut self.filling[shard];
        batch.bytes.extend_from_slice(key);
        batch.bytes.extend_from_slice(value);
        batch.entries.push(entry);
        if batch.bytes.len() >= BATCH_BYTES || batch.entries.len() >= BATCH_ENTRIES {
            self.send(shard)?;
        }
        Ok(())
    }

    fn expect(&mut self, db: u32, keys: usize) {
        let shards = self.filling.len();
        // The hash does not deal out evenly to the last key.
        let keys = if shards == 1 { keys } else { keys / shards + keys / shards / 64 };
        for shard in 0..shards {
            let job = move |local: &Rc<Local>| {
                if let Some(mut store) = local.enter() {
                    store.make_room(db, keys);
                }
            };
            self.shared.control(shard, Control::Job(Box::new(job)));
        }
    }

    fn finish(&mut self) -> Result<Tally, Refused> {
        for shard in 0..self.filling.len() {
            self.send(shard)?;
        }
        while self.under_way > 0 {
            self.take_back()?;
        }
        Ok(self.tally)
    }
}

/// Puts records into shards that are held.
pub struct Placer<'a, 's> {
    stores: &'a mut WriteStores<'s>,
    how: &'a How,
    batch: Batch,
    tally: Tally,
}

impl<'a, 's> Placer<'a, 's> {
    /// For the shards that a command over all of them holds.
    pub fn new(stores: &'a mut WriteStores<'s>, how: &'a How) -> Placer<'a, 's> {
        Placer { stores, how, batch: Batch::default(), tally: Tally::default() }
    }
}

impl Sink for Placer<'_, '_> {
    fn put(&mut self, entry: Entry, key: &[u8], value: &[u8]) -> Result<(), Refused> {
        let store: &mut Store = self.stores.of(entry.hash);
        self.batch.clear();
        self.batch.bytes.extend_from_slice(key);
        self.batch.bytes.extend_from_slice(value);
        self.batch.entries.push(entry);
        self.tally.add(insert::insert(store, &self.batch, self.how)?);
        Ok(())
    }

    fn expect(&mut self, _: u32, _: usize) {}

    fn finish(&mut self) -> Result<Tally, Refused> {
        Ok(self.tally)
    }
}

/// Begins loading from files of `total_bytes`: INFO shows it, and clients are told to wait.
pub fn begin(host: &Host, total_bytes: u64) {
    let loading = &host.persistence.loading;
    loading.total_bytes.store(total_bytes, Ordering::Relaxed);
    loading.loaded_bytes.store(0, Ordering::Relaxed);
    loading.used_memory.store(0, Ordering::Relaxed);
    loading.since_s.store(clock::wall_ms() / 1000, Ordering::Relaxed);
    host.gates.fetch_or(gate::LOADING, Ordering::SeqCst);
    host.renew_settings();
}

/// Ends loading.
pub fn end(host: &Host) {
    host.gates.fetch_and(!gate::LOADING, Ordering::SeqCst);
    host.persistence.loading.since_s.store(0, Ordering::Relaxed);
    host.renew_settings();
}

/// Writes the lines that say why a file was not loaded.
pub fn log_refusal(path: &Path, refusal: &Refusal) {
    if refusal.reason == crate::rdb::reader::SHORT {
        line(Level::Warning, "Short read or OOM loading DB. Unrecoverable error, aborting now.");
    }
    let (position, reason) = (refusal.position, &refusal.reason);
    let text = format!("Error in RDB reading offset {position} of {}: {reason}", path.display());
    line(Level::Warning, &text);
}

/// What the server begins with.
pub enum Start {
    /// Nothing.
    Empty,
    /// A snapshot.
    Snapshot(File, u64),
    /// The append-only log.
    Log,
}

/// Looks for data in the working directory. Clients wait from now on, if there may be any.
///
/// # Errors
/// When there is some that cannot be opened.
pub fn at_start(host: &Host) -> Result<Start, String> {
    let settings = host.settings();
    if settings.bool(P::APPENDONLY) {
        begin(host, 0);
        return Ok(Start::Log);
    }
    let path = settings.path(P::DBFILENAME);
    let opened = File::open(path).and_then(|file| file.len().map(|bytes| (file, bytes)));
    match opened {
        Ok((file, bytes)) => {
            begin(host, bytes);
            Ok(Start::Snapshot(file, bytes))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Start::Empty),
        Err(error) => {
            let error = crate::host::error_text(&error);
            Err(format!("Fatal error: can't open the RDB file {} for reading: {error}", path.display()))
        }
    }
}

/// Reads a snapshot on a thread of its own, which deals its records out, while this shard and the others work.
///
/// # Errors
/// The first thing that cannot be loaded.
pub async fn read_beside<R: Read + Send + 'static>(
    shared: &Arc<Shared>,
    input: R,
    sizes: (u64, u64),
    how: How,
) -> Result<Loaded<R>, Refusal> {
    let (sender, receiver) = flume::bounded(1);
    let shared = shared.clone();
    let work = move || {
        let mut dealer = Dealer::new(shared.clone(), how.clone());
        // Nobody waits for it any more when the server ends.
        let _ = sender.send(read(input, sizes, &shared.host, &how, &mut dealer));
    };
    let thread = std::thread::Builder::new().name("loader".into()).spawn(work);
    thread.map_err(|error| Refusal::new(0, format!("can't start a thread: {error}")))?;
    let ended = || Err(Refusal::new(0, "the loading thread has ended".to_string()));
    crate::rt::received(&receiver).await.unwrap_or_else(ended)
}

/// Loads the snapshot that the server begins with. `false`: it could not be loaded, and the log says why.
pub async fn load_snapshot(shared: &Arc<Shared>, file: File, bytes: u64) -> bool {
    let (started, settings) = (clock::instant(), shared.host.settings());
    match read_beside(shared, file, (bytes, 0), How::of(&settings)).await {
        Ok(_) => {
            let seconds = started.elapsed().as_secs_f64();
            line(Level::Notice, &format!("DB loaded from disk: {seconds:.3} seconds"));
            true
        }
        Err(refusal) => {
            log_refusal(settings.path(P::DBFILENAME), &refusal);
            line(Level::Warning, "Fatal error loading the DB, check server logs. Exiting.");
            false
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proptest::prelude::*;

    use super::*;
    use crate::config::Settings;
    use crate::ds::raw::block::NewValue;
    use crate::host::{Counters, Facts};
    use crate::rdb::crc64::crc64;
    use crate::rdb::file::{Encoder, Head, op};
    use crate::store::db::Ttl;
    use crate::store::snapshot::Encode;
    use crate::wire::Key;

    fn host() -> Host {
        let settings = Settings::default();
        let io_driver = "none";
        Host::new(Facts { settings, shards: 2, commands: 0, config_file: None, io_driver })
    }

    fn stores() -> Vec<Store> {
        (0..2).map(|_| Store::new(Arc::default(), Arc::new(Counters::new(0)))).collect()
    }

    /// A file with some strings in two databases, one of them twice as often as `twice` says.
    fn file(twice: bool) -> Vec<u8> {
        let mut store = stores().remove(0);
        for n in 0..40_u32 {
            let (key, value) = (format!("key:{n}"), format!("a value that says {n} {n} {n} {n}"));
            let ttl = if n % 3 == 0 { Ttl::At(u64::MAX >> 8) } else { Ttl::Clear };
            store.put(n % 2, Key::new(key.as_bytes()), NewValue::Bytes(value.as_bytes()), ttl, 0);
        }
        let mut bytes = Head::default().write(true);
        let mut encoder = Encoder::new(&Settings::default(), store.now);
        for index in [0, 1, 0].into_iter().take(2 + usize::from(twice)) {
            encoder.select(index, &mut bytes);
            store.db(index).unwrap().table.for_each(|block| encoder.key(block, &mut bytes));
        }
        bytes.push(op::END);
        let sum = crc64(0, &bytes);
        bytes.extend_from_slice(&sum.to_le_bytes());
        bytes
    }

    fn load(bytes: &[u8], host: &Host, how: &How) -> (Result<Tally, Refusal>, Vec<Store>) {
        let mut stores = stores();
        let mut held = WriteStores::Many(&mut stores);
        let loaded = read(bytes, (bytes.len() as u64, 0), host, how, &mut Placer::new(&mut held, how));
        (loaded.map(|loaded| loaded.tally), stores)
    }

    #[test]
    fn what_is_written_is_loaded_and_a_key_comes_once() {
        let host = host();
        let how = How::of(&Settings::default());
        let (loaded, stores) = load(&file(false), &host, &how);
        assert_eq!(loaded.unwrap(), Tally { keys: 40, ..Tally::default() });
        assert_eq!(stores.iter().map(|store| store.key_count(0)).sum::<usize>(), 20);
        assert!(stores.iter().all(|store| store.key_count(1) > 0 && store.counters.dirty.get() == 0));
        let refusal = load(&file(true), &host, &how).0.unwrap_err();
        assert!(refusal.reason.starts_with("RDB has duplicated key 'key:"), "{}", refusal.reason);
        assert!(load(&file(true), &host, &How { replaces: true, ..how.clone() }).0.is_ok());
        let refusal = load(&file(false), &host, &How { databases: 1, ..how }).0.unwrap_err();
        assert!(refusal.reason.starts_with("FATAL: Data file was created"));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(400))]

        #[test]
        fn edited_and_cut_files_are_refused_or_loaded(
            edits in proptest::collection::vec((any::<proptest::sample::Index>(), any::<u8>()), 1..5),
            cut in any::<proptest::sample::Index>(),
        ) {
            let (host, how) = (host(), How::of(&Settings::default()));
            // Without sums, so that edits get behind the gate.
            host.skips_checksums.store(true, Ordering::Relaxed);
            let mut bytes = file(false);
            prop_assert!(load(&bytes[..cut.index(bytes.len())], &host, &how).0.is_err());
            for (at, value) in edits {
                let at = at.index(bytes.len());
                bytes[at] = value;
            }
            if let Err(refusal) = load(&bytes, &host, &how).0 {
                prop_assert!(refusal.position <= bytes.len() as u64);
            }
        }
    }
}
