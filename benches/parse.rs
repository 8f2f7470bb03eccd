//! The parser alone, over pipelined batches as they lie in a read buffer.
mod support;

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use perigee::wire::parse::{Limits, Parsed, Parser};
use support::{jump, key, request};

const LIMITS: Limits = Limits { bulk_bytes_max: 512 << 20, unauthenticated: false };
const KEYS: usize = 1 << 16;

/// Parses all of `buf`; returns how many arguments there were.
fn parse_all(buf: &[u8]) -> usize {
    let (mut parser, mut spans, mut at, mut words) = (Parser::default(), Vec::with_capacity(64), 0, 0);
    while let Parsed::Command { end } = parser.next(buf, at, &mut spans, LIMITS) {
        words += spans.len();
        spans.clear();
        at = end;
    }
    assert_eq!(at, buf.len(), "the batch is whole");
    words
}

fn batch(depth: usize, command: impl Fn(usize) -> Vec<u8>) -> Vec<u8> {
    (0..depth).flat_map(|step| command(jump(step, KEYS))).collect()
}

fn batches(c: &mut Criterion) {
    let long = vec![b'v'; 1024];
    for depth in [1, 16, 128] {
        let cases = [
            ("get", batch(depth, |n| request(&[b"GET", &key(n)]))),
            ("set", batch(depth, |n| request(&[b"SET", &key(n), b"value-of-16-byte"]))),
            ("set_1k", batch(depth, |n| request(&[b"SET", &key(n), &long]))),
            (
                "mget_10",
                batch(depth, |n| {
                    let keys: Vec<Vec<u8>> = (n..n + 10).map(key).collect();
                    let words: Vec<&[u8]> =
                        [&b"MGET"[..]].into_iter().chain(keys.iter().map(Vec::as_slice)).collect();
                    request(&words)
                }),
            ),
        ];
        let mut group = c.benchmark_group("parse");
        group.throughput(Throughput::Elements(depth as u64));
        for (name, buf) in cases {
            let id = BenchmarkId::new(name, depth);
            group.bench_with_input(id, &buf, |b, buf| b.iter(|| parse_all(black_box(buf))));
        }
    }
}

criterion_group!(benches, batches);
criterion_main!(benches);
