//! The table alone: lookups, insertion with all the splits on the way, scan.
mod support;

use std::hint::black_box;

use criterion::{BatchSize, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use perigee::base::hash::KeyHash;
use perigee::ds::raw::block::{Block, NewValue};
use perigee::ds::raw::dash::{Dash, ScanAt};
use support::{jump, key};

#[global_allocator]
static ALLOCATOR: perigee::rt::sys::Allocator = perigee::rt::sys::Allocator;

/// 1k, 100k and 1M, as powers of two.
const SIZES: [usize; 3] = [1 << 10, 1 << 17, 1 << 20];
/// Lookups that are timed together; their keys differ.
const LOOKUPS: usize = 1024;

fn entry(number: usize) -> (KeyHash, Block) {
    let key = key(number);
    (KeyHash::of(&key), Block::new(&key, NewValue::Bytes(b"value-of-16-byte"), None, 0, 0))
}

fn filled(entries: usize) -> Dash<Block> {
    let mut table = Dash::new();
    for number in 0..entries {
        let (hash, block) = entry(number);
        table.insert(hash, block);
    }
    table
}

/// Keys that lie far apart, hashed beforehand.
fn sample(from: usize, entries: usize) -> Vec<(KeyHash, Vec<u8>)> {
    let numbers = (0..LOOKUPS).map(|step| from + jump(step, entries));
    numbers.map(key).map(|key| (KeyHash::of(&key), key)).collect()
}

fn lookups(c: &mut Criterion, entries: usize, table: &Dash<Block>) {
    let mut group = c.benchmark_group("dash");
    group.throughput(Throughput::Elements(LOOKUPS as u64));
    for (name, from) in [("get_hit", 0), ("get_miss", entries)] {
        let keys = sample(from, entries);
        let found = keys.iter().filter(|(hash, key)| table.get(*hash, key).is_some()).count();
        assert_eq!(found, if from == 0 { LOOKUPS } else { 0 });
        group.bench_with_input(BenchmarkId::new(name, entries), &keys, |b, keys| {
            b.iter(|| {
                for (hash, key) in keys {
                    black_box(table.get(*hash, black_box(key)));
                }
            });
        });
    }
}

/// New keys into a table that has `entries` already, and out again.
fn insertion(c: &mut Criterion, entries: usize, table: &mut Dash<Block>) {
    let mut group = c.benchmark_group("dash");
    group.throughput(Throughput::Elements(LOOKUPS as u64));
    let keys = sample(entries, entries);
    group.bench_function(BenchmarkId::new("insert_remove", entries), |b| {
        b.iter(|| {
            for (hash, key) in &keys {
                table.insert(*hash, Block::new(key, NewValue::Bytes(b"value-of-16-byte"), None, 0, 0));
            }
            for (hash, key) in &keys {
                black_box(table.slot(*hash, key).expect("just inserted").remove());
            }
        });
    });
}

/// From nothing to `entries`: every split and every doubling of the directory on the way.
fn growth(c: &mut Criterion, entries: usize) {
    let mut group = c.benchmark_group("dash");
    group.throughput(Throughput::Elements(entries as u64)).sample_size(10);
    group.bench_function(BenchmarkId::new("grow", entries), |b| {
        let blocks = || (0..entries).map(entry).collect::<Vec<_>>();
        b.iter_batched(
            blocks,
            |blocks| {
                let mut table = Dash::new();
                for (hash, block) in blocks {
                    table.insert(hash, block);
                }
                table
            },
            BatchSize::PerIteration,
        );
    });
}

fn scan(c: &mut Criterion, entries: usize, table: &Dash<Block>) {
    let mut group = c.benchmark_group("dash");
    group.throughput(Throughput::Elements(entries as u64)).sample_size(10);
    group.bench_function(BenchmarkId::new("scan_by_10", entries), |b| {
        b.iter(|| {
            let (mut at, mut seen) = (Some(ScanAt::default()), 0);
            while let Some(from) = at {
                at = table.scan(from, 10, &mut |block| {
                    black_box(block);
                    seen += 1;
                });
            }
            assert_eq!(seen, entries);
        });
    });
}

fn all(c: &mut Criterion) {
    for entries in SIZES {
        let mut table = filled(entries);
        lookups(c, entries, &table);
        scan(c, entries, &table);
        insertion(c, entries, &mut table);
        drop(table);
        growth(c, entries);
    }
}

criterion_group!(benches, all);
criterion_main!(benches);
