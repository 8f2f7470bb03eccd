//! Order and atomicity over shards: replies in order, a connection sees its own writes, commands on several keys
//! happen at once.
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

use super::support::{Client, Rng, Server, command, show};
use super::{SHARDS, on_all_shards};

/// A connection's keys and what they must hold. Connections have keys of their own, so each knows its answers.
struct Model {
    prefix: String,
    keys: BTreeMap<String, String>,
}

impl Model {
    fn new(prefix: &str) -> Model {
        Model { prefix: prefix.to_string(), keys: BTreeMap::new() }
    }

    fn key(&self, rng: &mut Rng) -> String {
        format!("{}:{}", self.prefix, rng.below(40))
    }

    fn keys(&self, rng: &mut Rng) -> Vec<String> {
        (0..1 + rng.below(6)).map(|_| self.key(rng)).collect()
    }

    fn get(&self, key: &str) -> String {
        self.keys.get(key).map_or("$-1\r\n".to_string(), |v| format!("${}\r\n{v}\r\n", v.len()))
    }

    /// A random command and the reply that it must have.
    fn step(&mut self, rng: &mut Rng) -> (Vec<String>, String) {
        let value = rng.below(1000).to_string();
        match rng.below(12) {
            0..3 => {
                let key = self.key(rng);
                self.keys.insert(key.clone(), value.clone());
                (vec!["SET".into(), key, value], "+OK\r\n".into())
            }
            3..6 => {
                let key = self.key(rng);
                let reply = self.get(&key);
                (vec!["GET".into(), key], reply)
            }
            6 => {
                let keys = self.keys(rng);
                let reply = keys.iter().fold(format!("*{}\r\n", keys.len()), |r, k| r + &self.get(k));
                ([vec!["MGET".into()], keys].concat(), reply)
            }
            7 => {
                let mut words = vec!["MSET".to_string()];
                for key in self.keys(rng) {
                    let value = rng.below(1000).to_string();
                    self.keys.insert(key.clone(), value.clone());
                    words.extend([key, value]);
                }
                (words, "+OK\r\n".into())
            }
            8 => {
                let keys = self.keys(rng);
                let gone = keys.iter().filter(|k| self.keys.remove(*k).is_some()).count();
                ([vec!["DEL".into()], keys].concat(), format!(":{gone}\r\n"))
            }
            9 => {
                let key = self.key(rng);
                let entry = self.keys.entry(key.clone()).or_default();
                entry.push_str(&value);
                (vec!["APPEND".into(), key, value], format!(":{}\r\n", entry.len()))
            }
            10 => {
                let keys = self.keys(rng);
                let found = keys.iter().filter(|k| self.keys.contains_key(*k)).count();
                ([vec!["EXISTS".into()], keys].concat(), format!(":{found}\r\n"))
            }
            _ => {
                let (from, to) = (self.key(rng), self.key(rng));
                let reply = match self.keys.remove(&from) {
                    Some(value) => {
                        self.keys.insert(to.clone(), value);
                        "+OK\r\n"
                    }
                    None => "-ERR no such key\r\n",
                };
                (vec!["RENAME".into(), from, to], reply.into())
            }
        }
    }
}

fn run_model(client: &mut Client, prefix: &str, seed: u64, rounds: usize) {
    let mut rng = Rng::new(seed);
    let mut model = Model::new(prefix);
    for round in 0..rounds {
        let steps: Vec<_> = (0..1 + rng.below(120)).map(|_| model.step(&mut rng)).collect();
        let requests: Vec<u8> = steps.iter().flat_map(|(words, _)| command(words)).collect();
        client.send(requests);
        for (words, want) in &steps {
            let got = client.read_bytes();
            assert!(
                got == want.as_bytes(),
                "seed {seed}, round {round}: {words:?}\n got: {}\nwant: {want:?}",
                show(&got)
            );
        }
    }
}

#[test]
fn pipelines_answer_as_one_thread_would() {
    on_all_shards(|server, _| {
        std::thread::scope(|scope| {
            for connection in 0..8 {
                scope.spawn(move || {
                    run_model(&mut server.client(), &format!("c{connection}"), connection, 300)
                });
            }
        });
    });
}

#[test]
fn without_the_fast_path_the_answers_are_the_same() {
    let server = Server::start(4, &["--cross-shard-fast-path", "off"]);
    std::thread::scope(|scope| {
        for connection in 0..4 {
            let server = &server;
            scope.spawn(move || {
                run_model(&mut server.client(), &format!("c{connection}"), 100 + connection, 300)
            });
        }
    });
}

/// Runs `work` on several connections until `main` is done.
fn beside(
    server: &Server,
    workers: usize,
    work: impl Fn(&mut Client, u64) + Sync,
    main: impl FnOnce(&mut Client),
) {
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for worker in 0..workers {
            let (done, work) = (&done, &work);
            scope.spawn(move || {
                let mut client = server.client();
                let mut turn = worker as u64;
                while !done.load(Ordering::Relaxed) {
                    work(&mut client, turn);
                    turn += workers as u64;
                }
            });
        }
        // Also when `main` fails the workers must end.
        struct Done<'a>(&'a AtomicBool);
        impl Drop for Done<'_> {
            fn drop(&mut self) {
                self.0.store(true, Ordering::Relaxed);
            }
        }
        let _done = Done(&done);
        main(&mut server.client());
    });
}

#[test]
fn mset_is_seen_whole_or_not_at_all() {
    const KEYS: [&str; 6] = ["g1", "g2", "g3", "g4", "g5", "g6"];
    for shards in SHARDS {
        let server = Server::start(shards, &[]);
        let write = |client: &mut Client, turn: u64| {
            let value = turn.to_string();
            let mut words = vec!["MSET"];
            // Different orders of keys must not block each other.
            for i in 0..KEYS.len() {
                words.extend([KEYS[(i + turn as usize) % KEYS.len()], &value]);
            }
            assert_eq!(client.run_words(&words).text(), b"OK");
        };
        write(&mut server.client(), 0);
        beside(&server, 3, write, |reader| {
            let ask = [vec!["MGET"], KEYS.to_vec()].concat();
            for _ in 0..200 {
                reader.send(command(&ask).repeat(5));
                for _ in 0..5 {
                    let got = reader.read().items();
                    assert!(got.iter().all(|v| *v == got[0]), "torn on {shards} shards: {got:?}");
                }
            }
        });
    }
}

#[test]
fn msetnx_sets_all_or_nothing() {
    on_all_shards(|server, client| {
        let keys: Vec<String> = (0..5).map(|i| format!("n{i}")).collect();
        for round in 0..40 {
            client.run_words(&[vec!["DEL".to_string()], keys.clone()].concat());
            let wins: usize = std::thread::scope(|scope| {
                let tries: Vec<_> = (0..4)
                    .map(|me: usize| {
                        let keys = &keys;
                        scope.spawn(move || {
                            let mut words = vec!["MSETNX".to_string()];
                            for i in 0..keys.len() {
                                words.extend([keys[(i + me) % keys.len()].clone(), me.to_string()]);
                            }
                            server.client().run_words(&words).int() as usize
                        })
                    })
                    .collect();
                tries.into_iter().map(|t| t.join().unwrap()).sum()
            });
            assert_eq!(wins, 1, "round {round}");
            let got = client.run_words(&[vec!["MGET".to_string()], keys.clone()].concat()).items();
            assert!(got.iter().all(|v| *v == got[0]), "{got:?}");
        }
    });
}

#[test]
fn values_that_go_round_in_a_ring_of_renames_are_never_lost() {
    const PLACES: usize = 8;
    for shards in SHARDS {
        let server = Server::start(shards, &[]);
        server.client().run("SET ring:0 token");
        // Each worker moves the one value on from wherever it is; RENAMENX of a missing key is refused.
        let go_on = |client: &mut Client, turn: u64| {
            let from = turn as usize % PLACES;
            let reply = client.run_words(&[
                "RENAMENX".to_string(),
                format!("ring:{from}"),
                format!("ring:{}", (from + 1) % PLACES),
            ]);
            assert!(!reply.is_error() || reply.text() == b"ERR no such key", "{reply:?}");
        };
        beside(&server, 4, go_on, |reader| {
            let places: Vec<String> = (0..PLACES).map(|i| format!("ring:{i}")).collect();
            let exists = [vec!["EXISTS".to_string()], places.clone()].concat();
            let mget = [vec!["MGET".to_string()], places].concat();
            for _ in 0..300 {
                assert_eq!(reader.run_words(&exists).int(), 1, "on {shards} shards");
                let values: Vec<_> = reader.run_words(&mget).items();
                assert_eq!(values.iter().filter(|v| v.text() == b"token").count(), 1, "{values:?}");
            }
        });
    }
}

#[test]
fn counters_lose_nothing() {
    on_all_shards(|server, client| {
        std::thread::scope(|scope| {
            for _ in 0..6 {
                scope.spawn(|| {
                    let mut client = server.client();
                    let pipeline: Vec<u8> =
                        (0..50).flat_map(|i| command(&["INCR".to_string(), format!("n{}", i % 5)])).collect();
                    for _ in 0..20 {
                        client.send(&pipeline);
                        for _ in 0..50 {
                            client.read().int();
                        }
                    }
                });
            }
        });
        for i in 0..5 {
            client.check(&format!("GET n{i}"), "$4\r\n1200\r\n");
        }
    });
}

#[test]
fn whole_databases_are_swapped_and_emptied_at_once() {
    for shards in [1, 4] {
        let server = Server::start(shards, &[]);
        let mut client = server.client();
        let fill = |client: &mut Client, value: &str| {
            let words: Vec<String> = (0..20).flat_map(|i| [format!("k{i}"), value.to_string()]).collect();
            client.run_words(&[vec!["MSET".to_string()], words].concat());
        };
        fill(&mut client, "zero");
        client.run("SELECT 1");
        fill(&mut client, "one");
        let mget = [vec!["MGET".to_string()], (0..20).map(|i| format!("k{i}")).collect()].concat();
        let swap = |client: &mut Client, _| assert_eq!(client.run("SWAPDB 0 1").text(), b"OK");
        beside(&server, 2, swap, |reader| {
            for _ in 0..200 {
                let got = reader.run_words(&mget).items();
                assert!(got.iter().all(|v| *v == got[0]), "{got:?}");
            }
        });
        let flush = |client: &mut Client, turn: u64| {
            if turn.is_multiple_of(3) {
                client.run("FLUSHALL");
            } else {
                fill(client, "again");
            }
        };
        beside(&server, 3, flush, |reader| {
            for _ in 0..200 {
                let got = reader.run_words(&mget).items();
                assert!(got.iter().all(|v| *v == got[0]), "{got:?}");
            }
        });
    }
}
