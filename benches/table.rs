//! The packed table alone: lookups, updates, insertion with all the expansions on the way, random records, scan.
mod support;

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use perigee::base::hash::KeyHash;
use perigee::base::rng::Rng;
use perigee::ds::table::{Deadline, Layout, PackedTable};
use support::{jump, key};

#[global_allocator]
static ALLOCATOR: perigee::rt::sys::Allocator = perigee::rt::sys::Allocator;

/// 1k, 100k and 1M, as powers of two.
const SIZES: [usize; 3] = [1 << 10, 1 << 17, 1 << 20];
/// Operations that are timed together; their keys differ.
const BATCH: usize = 1024;
const VALUE: &[u8] = b"01234567890";

fn filled(layout: Layout, records: usize) -> PackedTable {
    let mut table = PackedTable::new(layout);
    for number in 0..records {
        let key = key(number);
        table.insert(KeyHash::of(&key), &key, VALUE, Deadline::Keep);
    }
    table
}

/// Keys that lie far apart, hashed beforehand.
fn sample(from: usize, records: usize) -> Vec<(KeyHash, Vec<u8>)> {
    let numbers = (0..BATCH).map(|step| from + jump(step, records));
    numbers.map(key).map(|key| (KeyHash::of(&key), key)).collect()
}

fn lookups(c: &mut Criterion, name: &str, records: usize, table: &PackedTable) {
    let mut group = c.benchmark_group(name);
    group.throughput(Throughput::Elements(BATCH as u64));
    for (name, from) in [("get_hit", 0), ("get_miss", records)] {
        let keys = sample(from, records);
        group.bench_with_input(BenchmarkId::new(name, records), &keys, |b, keys| {
            b.iter(|| {
                for (hash, key) in keys {
                    black_box(table.get(*hash, black_box(key)));
                }
            });
        });
    }
    let mut rng = Rng::seeded(1);
    group.bench_function(BenchmarkId::new("random", records), |b| {
        b.iter(|| {
            for _ in 0..BATCH {
                black_box(table.random(&mut || rng.next_u64()));
            }
        });
    });
}

fn changes(c: &mut Criterion, name: &str, records: usize, table: &mut PackedTable) {
    let mut group = c.benchmark_group(name);
    group.throughput(Throughput::Elements(BATCH as u64));
    let old = sample(0, records);
    group.bench_function(BenchmarkId::new("update", records), |b| {
        b.iter(|| {
            for (hash, key) in &old {
                black_box(table.insert(*hash, key, VALUE, Deadline::Keep));
            }
        });
    });
    let new = sample(records, records);
    group.bench_function(BenchmarkId::new("insert_remove", records), |b| {
        b.iter(|| {
            for (hash, key) in &new {
                table.insert(*hash, key, VALUE, Deadline::Keep);
            }
            for (hash, key) in &new {
                assert!(table.remove(*hash, key));
            }
        });
    });
}

fn whole(c: &mut Criterion, name: &str, layout: Layout, records: usize, table: &PackedTable) {
    let mut group = c.benchmark_group(name);
    group.throughput(Throughput::Elements(records as u64)).sample_size(10);
    group.bench_function(BenchmarkId::new("grow", records), |b| b.iter(|| filled(layout, records)));
    group.bench_function(BenchmarkId::new("scan_by_10", records), |b| {
        b.iter(|| {
            let (mut cursor, mut seen) = (0, 0);
            loop {
                cursor = table.scan(cursor, 10, |record| {
                    black_box(record);
                    seen += 1;
                });
                if cursor == 0 {
                    break;
                }
            }
            assert_eq!(seen, records);
        });
    });
}

fn all(c: &mut Criterion) {
    for (name, layout) in [("table_keys", Layout::Keys), ("table_values", Layout::KeysAndValues)] {
        for records in SIZES {
            let mut table = filled(layout, records);
            lookups(c, name, records, &table);
            changes(c, name, records, &mut table);
            whole(c, name, layout, records, &table);
        }
    }
}

criterion_group!(benches, all);
criterion_main!(benches);
