//! Connections that go away with work in flight harm nobody.
use super::on_all_shards;
use super::support::{Rng, command, wait_until};

#[test]
fn thousands_of_clients_send_and_leave() {
    const ROUNDS: usize = 1000;
    on_all_shards(|server, client| {
        std::thread::scope(|scope| {
            for worker in 0..3 {
                scope.spawn(move || {
                    let mut rng = Rng::new(worker);
                    for _ in 0..ROUNDS {
                        let mut requests = Vec::new();
                        for _ in 0..rng.below(30) {
                            let key = |rng: &mut Rng| format!("k{}", rng.below(50));
                            requests.extend(match rng.below(4) {
                                0 => command(&["SET".to_string(), key(&mut rng), "v".into()]),
                                1 => command(&["GET".to_string(), key(&mut rng)]),
                                2 => command(&[
                                    "MSET".to_string(),
                                    key(&mut rng),
                                    "a".into(),
                                    key(&mut rng),
                                    "b".into(),
                                ]),
                                _ => command(&[
                                    "MGET".to_string(),
                                    key(&mut rng),
                                    key(&mut rng),
                                    key(&mut rng),
                                ]),
                            });
                        }
                        // Cut somewhere, so that some leave in the middle of a command.
                        if !requests.is_empty() && rng.one_in(3) {
                            requests.truncate(rng.below(requests.len()));
                        }
                        let mut client = server.client();
                        let _ = client.try_send(&requests);
                        if rng.one_in(4) {
                            let _ = client.try_read_some();
                        }
                    }
                });
            }
            let mut steady = server.client();
            for i in 0..500 {
                steady.check(&format!("SET mine {i}"), "+OK\r\n");
                steady.check("GET mine", format!("${}\r\n{i}\r\n", i.to_string().len()));
                assert_eq!(steady.run("MSET m1 a m2 b m3 c").text(), b"OK");
            }
        });
        wait_until("all of them are gone", || {
            let info = client.run("INFO clients").string();
            info.lines().any(|l| l.trim_end() == "connected_clients:1")
        });
        client.check("MSET m1 x m2 y m3 z", "+OK\r\n");
    });
}

#[test]
fn a_half_closed_client_gets_what_it_is_owed() {
    on_all_shards(|server, _| {
        for _ in 0..50 {
            let mut client = server.client();
            let requests: Vec<u8> =
                (0..100).flat_map(|i| command(&["SET".to_string(), format!("k{i}"), "v".into()])).collect();
            client.send(&requests);
            client.finish();
            assert_eq!(client.read_to_end(), b"+OK\r\n".repeat(100));
        }
    });
}
