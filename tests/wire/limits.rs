//! Limits that protect the server from its clients.
use super::SHARDS;
use super::support::{Client, Server, command, wait_until};

#[test]
fn a_reader_that_never_reads_is_closed_and_costs_little() {
    for shards in SHARDS {
        let server = Server::start(shards, &["--client-output-buffer-limit", "normal 1mb 0 0"]);
        let mut client = server.client();
        // Several keys, so that replies come from every shard.
        for i in 0..8 {
            client.run_words(&["SET".to_string(), format!("big{i}"), "x".repeat(100_000)]);
        }
        let before_bytes = server.rss_bytes();
        let mut silent = server.client();
        let mut peak_bytes = 0;
        let mut closed = false;
        for i in 0..20_000 {
            let batch: Vec<u8> =
                (0..8).flat_map(|k| command(&["GET".to_string(), format!("big{}", (i + k) % 8)])).collect();
            if silent.try_send(batch).is_err() {
                closed = true;
                break;
            }
            if i % 50 == 0 {
                peak_bytes = peak_bytes.max(server.rss_bytes());
            }
        }
        assert!(closed, "16 GB of replies were promised on {shards} shards");
        let grown_bytes = peak_bytes.saturating_sub(before_bytes);
        assert!(
            grown_bytes < 64 << 20,
            "a limit of 1 MB let memory grow by {grown_bytes} on {shards} shards"
        );
        client.check("STRLEN big0", ":100000\r\n");
    }
}

#[test]
fn a_slow_reader_within_its_limit_gets_everything() {
    for shards in SHARDS {
        let server = Server::start(shards, &["--client-output-buffer-limit", "normal 0 0 0"]);
        let mut client = server.client();
        client.run_words(&["SET".to_string(), "big".into(), "x".repeat(100_000)]);
        for _ in 0..300 {
            client.send(command(&["GET", "big"]));
        }
        for _ in 0..300 {
            assert_eq!(client.read().text().len(), 100_000);
        }
    }
}

#[test]
fn a_query_buffer_has_a_limit() {
    let server = Server::start(1, &["--client-query-buffer-limit", "2mb"]);
    let mut client = server.client();
    client.send(b"*3\r\n$3\r\nSET\r\n$1\r\na\r\n$104857600\r\n");
    let mut sent_bytes = 0;
    while client.try_send([b'x'; 65536]).is_ok() {
        sent_bytes += 65536;
        assert!(sent_bytes < 90 << 20, "the limit of 2 MB has no effect");
    }
    server.client().check("GET a", "$-1\r\n");
}

#[test]
fn there_are_as_many_clients_as_allowed() {
    for shards in SHARDS {
        let server = Server::start(shards, &["--maxclients", "5"]);
        let mut clients: Vec<Client> = (0..5).map(|_| server.client()).collect();
        clients.iter_mut().for_each(|c| c.check("GET a", "$-1\r\n"));
        assert_eq!(server.client().read_to_end(), b"-ERR max number of clients reached\r\n");
        clients.pop();
        wait_until("room for one more", || {
            let mut client = server.client();
            client.try_send("GET a\r\n").is_ok()
                && matches!(client.try_read(), Ok(Some((value, _))) if !value.is_error())
        });
    }
}

#[test]
fn an_empty_server_is_small() {
    let server = Server::start(8, &["--databases", "16"]);
    server.client().check("GET a", "$-1\r\n");
    let rss_bytes = server.rss_bytes();
    // The promise (12 MB) is for the release build.
    let limit_bytes = if cfg!(debug_assertions) { 24 << 20 } else { 12 << 20 };
    assert!(rss_bytes < limit_bytes, "{rss_bytes} bytes");
}
