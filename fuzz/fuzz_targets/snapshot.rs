//! Snapshot files as a whole: whatever the bytes are, they are refused at a place within them, or give keys; it makes no
//! difference how the file arrives; nothing is reserved that the input does not back.
//!
//! Input: a byte of switches (keys that come twice, checksums), then the file.
#![no_main]
use std::io::Read;
use std::sync::atomic::Ordering;
use std::sync::{Arc, LazyLock};

use libfuzzer_sys::fuzz_target;
use perigee::cmd::cx::WriteStores;
use perigee::config::Settings;
use perigee::host::{Counters, Facts, Host};
use perigee::persist::insert::{How, Tally};
use perigee::persist::load::{self, Placer};
use perigee::persist::rdb_stream::Refusal;
use perigee::rdb::crc64::crc64;
use perigee::rdb::file::{Encoder, Head, op};
use perigee::store::Store;
use perigee::store::snapshot::Encode;
use perigee_fuzz::allocator::{Watched, largest_request};
use perigee_fuzz::{Choices, Drops};

#[global_allocator]
static ALLOCATOR: Watched = Watched;

const SWITCH_REPLACE: u8 = 1;
const SWITCH_SUM: u8 = 2;
/// A compressed string grows to so many times its bytes at most, and what is made of it to a few times that.
const EXPANSION_MAX: usize = 88 * 8;
/// What a load needs whatever its input is: a table's first segments, buffers.
const BYTES_MIN: usize = 256 * 1024;

static HOST: LazyLock<Host> = LazyLock::new(|| {
    let settings = Settings::default();
    Host::new(Facts { settings, shards: 1, commands: 0, config_file: None, io_driver: "none" })
});

fn load(input: impl Read, bytes: usize, how: &How) -> (Result<Tally, Refusal>, Store) {
    perigee::script::commands::known().libraries.flush();
    let mut store = Store::new(Arc::default(), Arc::new(Counters::new(0)));
    let mut stores = WriteStores::One(&mut store);
    let loaded = load::read(input, (bytes as u64, 0), &HOST, how, &mut Placer::new(&mut stores, how));
    (loaded.map(|loaded| loaded.tally), store)
}

fn keys(store: &Store) -> usize {
    (0..store.databases() as u32).map(|db| store.key_count(db)).sum()
}

fn save(store: &Store) -> Vec<u8> {
    let mut bytes = Head::default().write(true);
    let mut encoder = Encoder::new(&Settings::default(), store.now);
    for index in 0..store.databases() as u32 {
        let Some(db) = store.db(index) else { continue };
        encoder.select(index, &mut bytes);
        db.table.for_each(|block| encoder.key(block, &mut bytes));
    }
    bytes.push(op::END);
    let sum = crc64(0, &bytes);
    bytes.extend_from_slice(&sum.to_le_bytes());
    bytes
}

fuzz_target!(|input: &[u8]| {
    let mut choices = Choices::new(input);
    let switches = choices.byte();
    let bytes = choices.rest();
    HOST.skips_checksums.store(switches & SWITCH_SUM == 0, Ordering::Relaxed);
    let how = How {
        replaces: switches & SWITCH_REPLACE != 0,
        expired_before_ms: 0,
        ..How::of(&Settings::default())
    };
    let ((outcome, store), largest_bytes) = largest_request(|| load(bytes, bytes.len(), &how));
    assert!(largest_bytes <= BYTES_MIN + EXPANSION_MAX * bytes.len(), "{largest_bytes} for {}", bytes.len());
    let (dropped, dropped_store) = load(Drops(bytes), bytes.len(), &how);
    assert_eq!(outcome, dropped);
    assert_eq!(keys(&store), keys(&dropped_store));
    match outcome {
        Err(refusal) => assert!(refusal.position <= bytes.len() as u64, "{refusal:?}"),
        Ok(_) => {
            let again = save(&store);
            let (loaded, other) = load(&again[..], again.len(), &how);
            assert_eq!(loaded.map(|tally| tally.keys as usize), Ok(keys(&store)));
            assert_eq!(keys(&other), keys(&store));
        }
    }
});
