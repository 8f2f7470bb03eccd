//! The sorted table alone: insertion in random and in ascending order, lookups, ranks, walks, and its memory.
mod support;

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use perigee::base::rng::Rng;
use perigee::ds::sorted::SortedTable;
use support::{jump, key};

#[global_allocator]
static ALLOCATOR: perigee::rt::sys::Allocator = perigee::rt::sys::Allocator;

/// 1k and 1M, as powers of two.
const SIZES: [usize; 2] = [1 << 10, 1 << 20];
/// Operations that are timed together; their members differ.
const OPERATIONS: usize = 1024;

/// What scores the members get.
type Score = fn(usize) -> f64;

/// Members in an order that has nothing to do with that of their scores.
fn filled(members: usize, score: Score) -> SortedTable {
    let mut table = SortedTable::new();
    for step in 0..members {
        let number = jump(step, members);
        table.insert(&key(number), score(number));
    }
    table
}

/// Scores that need all their bytes.
fn fraction(number: usize) -> f64 {
    number as f64 * std::f64::consts::PI
}

/// Bytes of memory that this process holds, in pages; zero where the system does not tell.
fn resident_bytes() -> usize {
    let pages = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    pages.split_whitespace().nth(1).and_then(|n| n.parse::<usize>().ok()).unwrap_or(0) * 4096
}

/// Says what a member takes, by the table's own count and by the system's.
fn memory(members: usize) {
    let mut rng = Rng::seeded(1);
    for name in ["fraction", "whole", "equal"] {
        let before = resident_bytes();
        let mut table = SortedTable::new();
        for number in 0..members {
            let score = match name {
                "fraction" => rng.next_u64() as f64 * std::f64::consts::PI,
                "whole" => rng.below(members as u64) as f64,
                _ => 0.0,
            };
            table.insert(&key(jump(number, members)), score);
        }
        let resident = resident_bytes().saturating_sub(before) as f64 / members as f64;
        let counted = table.heap_bytes() as f64 / members as f64;
        println!("sorted/memory/{name}: {resident:.1} resident, {counted:.1} counted bytes a member");
        std::mem::forget(table);
    }
}

fn growth(c: &mut Criterion, members: usize) {
    let mut group = c.benchmark_group("sorted");
    group.throughput(Throughput::Elements(members as u64)).sample_size(10);
    for (name, score) in [("grow_random", fraction as Score), ("grow_equal", |_| 0.0)] {
        group.bench_function(BenchmarkId::new(name, members), |b| b.iter(|| filled(members, score)));
    }
    group.bench_function(BenchmarkId::new("grow_ascending", members), |b| {
        b.iter(|| {
            let mut table = SortedTable::new();
            (0..members).for_each(|number| assert!(table.insert(&key(number), number as f64).is_none()));
            table
        });
    });
}

fn reads(c: &mut Criterion, members: usize, table: &SortedTable) {
    let mut group = c.benchmark_group("sorted");
    group.throughput(Throughput::Elements(OPERATIONS as u64));
    let numbers: Vec<usize> = (0..OPERATIONS).map(|step| jump(step, members)).collect();
    let keys: Vec<Vec<u8>> = numbers.iter().map(|number| key(*number)).collect();
    let absent: Vec<Vec<u8>> = numbers.iter().map(|number| key(number + members)).collect();
    for (name, keys) in [("score_hit", &keys), ("score_miss", &absent)] {
        group.bench_function(BenchmarkId::new(name, members), |b| {
            b.iter(|| keys.iter().filter(|key| table.score(black_box(key)).is_some()).count());
        });
    }
    group.bench_function(BenchmarkId::new("rank", members), |b| {
        b.iter(|| {
            keys.iter().filter_map(|key| table.rank(black_box(key))).map(|(rank, _)| rank).sum::<usize>()
        });
    });
    group.bench_function(BenchmarkId::new("at_rank", members), |b| {
        b.iter(|| numbers.iter().filter(|rank| table.at_rank(black_box(**rank)).is_some()).count());
    });
    group.bench_function(BenchmarkId::new("seek_score", members), |b| {
        b.iter(|| {
            numbers.iter().map(|number| table.seek_score(black_box(fraction(*number)), true)).sum::<usize>()
        });
    });
    group.bench_function(BenchmarkId::new("ascend", members), |b| {
        b.iter(|| table.iter_from(members / 4).take(OPERATIONS / 2).map(|(_, score)| score).sum::<f64>());
    });
    group.bench_function(BenchmarkId::new("descend", members), |b| {
        b.iter(|| {
            table.iter_back_from(members * 3 / 4).take(OPERATIONS / 2).map(|(_, score)| score).sum::<f64>()
        });
    });
}

fn changes(c: &mut Criterion, members: usize, table: &mut SortedTable) {
    let mut group = c.benchmark_group("sorted");
    group.throughput(Throughput::Elements(OPERATIONS as u64));
    let keys: Vec<Vec<u8>> = (0..OPERATIONS).map(|step| key(jump(step, members))).collect();
    let mut turn = 0;
    group.bench_function(BenchmarkId::new("move_far", members), |b| {
        b.iter(|| {
            turn += 1;
            for (step, key) in keys.iter().enumerate() {
                table.insert(key, fraction(jump(step + turn * OPERATIONS, members)));
            }
        });
    });
    group.bench_function(BenchmarkId::new("move_near", members), |b| {
        b.iter(|| {
            for key in &keys {
                let score = table.score(key).unwrap_or_default();
                table.insert(key, score + 1e-6);
            }
        });
    });
    group.bench_function(BenchmarkId::new("pop_first_insert", members), |b| {
        b.iter(|| {
            for _ in 0..OPERATIONS {
                if let Some((member, score)) = table.pop_first() {
                    table.insert(&member, score + members as f64 * std::f64::consts::PI);
                }
            }
        });
    });
}

fn all(c: &mut Criterion) {
    memory(SIZES[1]);
    for members in SIZES {
        let mut table = filled(members, fraction);
        reads(c, members, &table);
        changes(c, members, &mut table);
        drop(table);
        growth(c, members);
    }
}

criterion_group!(benches, all);
criterion_main!(benches);
