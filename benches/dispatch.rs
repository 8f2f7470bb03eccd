//! Bytes in, replies out, in process: parser, dispatch, handler, table and reply of one shard, without any socket.
mod support;

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use perigee::server::in_process::InProcess;
use support::{jump, key, request};

#[global_allocator]
static ALLOCATOR: perigee::rt::sys::Allocator = perigee::rt::sys::Allocator;

const KEYS: usize = 1 << 17;
/// Commands that a measurement walks through before it starts over.
const WALK: usize = 1 << 13;
const VALUE: &[u8] = b"value-of-16-byte";

/// A command on the key of a number.
type Command = fn(usize) -> Vec<u8>;

const COMMANDS: [(&str, Command); 10] = [
    ("get", |n| request(&[b"GET", &key(n)])),
    ("get_miss", |n| request(&[b"GET", &key(n + KEYS)])),
    ("set", |n| request(&[b"SET", &key(n), VALUE])),
    ("set_ex", |n| request(&[b"SET", &key(n), VALUE, b"EX", b"1000"])),
    ("incr", |n| request(&[b"INCR", &[b"n:", &key(n)[..]].concat()])),
    ("exists", |n| request(&[b"EXISTS", &key(n)])),
    ("expire", |n| request(&[b"EXPIRE", &key(n), b"1000"])),
    ("mget_10", |n| ten(b"MGET", n, None)),
    ("mset_10", |n| ten(b"MSET", n, Some(VALUE))),
    ("ping", |_| request(&[b"PING"])),
];

/// A command on ten keys that lie far apart, each followed by `value`.
fn ten(name: &[u8], number: usize, value: Option<&[u8]>) -> Vec<u8> {
    let keys: Vec<Vec<u8>> = (0..10).map(|i| key((number + i * 7919) & (KEYS - 1))).collect();
    let mut words = vec![name];
    for key in &keys {
        words.push(key);
        words.extend(value);
    }
    request(&words)
}

fn filled() -> InProcess {
    let mut server = InProcess::new().expect("a socket pair");
    for number in 0..KEYS {
        assert_eq!(server.exchange(&request(&[b"SET", &key(number), VALUE])), b"+OK\r\n");
    }
    server
}

fn commands(c: &mut Criterion) {
    let mut server = filled();
    for (name, command) in COMMANDS {
        for depth in [1, 8, 64] {
            let steps: Vec<usize> = (0..WALK).map(|step| jump(step, KEYS)).collect();
            let batches: Vec<Vec<u8>> = steps
                .chunks(depth)
                .map(|numbers| numbers.iter().flat_map(|n| command(*n)).collect())
                .collect();
            let mut group = c.benchmark_group("dispatch");
            group.throughput(Throughput::Elements(depth as u64));
            group.bench_function(BenchmarkId::new(name, depth), |b| {
                let mut walk = batches.iter().cycle();
                b.iter(|| {
                    let batch = walk.next().expect("a cycle has no end");
                    black_box(server.exchange(black_box(batch)));
                });
            });
        }
    }
}

criterion_group!(benches, commands);
criterion_main!(benches);
