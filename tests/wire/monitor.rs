//! MONITOR: who watches sees every command, of every shard, once.
use super::on_all_shards;
use super::support::{Client, Server, wait_until};

/// A connection that monitors.
fn monitor(server: &Server) -> Client {
    let mut client = server.client();
    client.check("MONITOR", "+OK\r\n");
    client
}

/// The next line without its time.
fn next(client: &mut Client) -> String {
    let value = client.read();
    let line = value.string();
    let (at, rest) = line.split_once(' ').expect("a time and the rest");
    let (seconds, micros) = at.split_once('.').expect("seconds and microseconds");
    assert!(seconds.parse::<u64>().unwrap() > 1_600_000_000 && micros.len() == 6, "{line}");
    rest.to_string()
}

fn address(client: &Client) -> String {
    client.stream().local_addr().unwrap().to_string()
}

#[test]
fn every_command_is_shown_once() {
    on_all_shards(|server, client| {
        let mut watchers: Vec<Client> = (0..3).map(|_| monitor(server)).collect();
        let from = address(client);
        client.check("SELECT 2", "+OK\r\n");
        for i in 0..8 {
            client.check(&format!("SET key{i} \"a\\r\\n\\x00\\\"\""), "+OK\r\n");
            client.check(&format!("STRLEN key{i}"), ":5\r\n");
        }
        client.run("MGET key0 key1 key2 key3 key4 key5 key6 key7");
        client.run("MSET key0 1 key1 2 key2 3 key3 4 key4 5");
        for watcher in &mut watchers {
            assert_eq!(next(watcher), format!("[2 {from}] \"SELECT\" \"2\""));
            for i in 0..8 {
                let set = format!("[2 {from}] \"SET\" \"key{i}\" \"a\\r\\n\\x00\\\"\"");
                assert_eq!(next(watcher), set);
                assert_eq!(next(watcher), format!("[2 {from}] \"STRLEN\" \"key{i}\""));
            }
            assert!(next(watcher).contains("\"MGET\" \"key0\""));
            assert!(next(watcher).contains("\"MSET\" \"key0\" \"1\""));
            watcher.expect_silence();
        }
    });
}

#[test]
fn pipelines_are_shown_in_order() {
    on_all_shards(|server, client| {
        let mut watcher = monitor(server);
        let batch: String =
            (0..100).map(|i| format!("SET k{i} {i}\r\nGET k{i}\r\nDEL k{i} k{}\r\n", i + 1)).collect();
        client.send(batch);
        for _ in 0..300 {
            client.read();
        }
        let from = address(client);
        for i in 0..100 {
            assert_eq!(next(&mut watcher), format!("[0 {from}] \"SET\" \"k{i}\" \"{i}\""));
            assert_eq!(next(&mut watcher), format!("[0 {from}] \"GET\" \"k{i}\""));
            assert_eq!(next(&mut watcher), format!("[0 {from}] \"DEL\" \"k{i}\" \"k{}\"", i + 1));
        }
        watcher.expect_silence();
    });
}

#[test]
fn what_must_not_be_seen_is_not() {
    on_all_shards(|server, client| {
        let mut watcher = monitor(server);
        let from = address(client);
        let silent =
            ["CONFIG GET port", "SLOWLOG LEN", "NOSUCH a", "GET", "CLIENT KILL ID 99999", "MONITOR x"];
        silent.iter().for_each(|line| drop(client.run(line)));
        client.run("AUTH secret");
        client.run("AUTH someone secret");
        client.run("HELLO 3 SETNAME me AUTH default secret");
        client.run("HELLO 2 AUTH default secret");
        client.run("PING");
        for shown in [
            "\"AUTH\" \"(redacted)\"",
            "\"AUTH\" \"(redacted)\" \"(redacted)\"",
            "\"HELLO\" \"3\" \"SETNAME\" \"me\" \"AUTH\" \"(redacted)\" \"(redacted)\"",
            "\"HELLO\" \"2\" \"AUTH\" \"(redacted)\" \"(redacted)\"",
            "\"PING\"",
        ] {
            assert_eq!(next(&mut watcher), format!("[0 {from}] {shown}"));
        }
        watcher.expect_silence();
    });
}

#[test]
fn watching_ends_with_reset_and_with_the_connection() {
    on_all_shards(|server, client| {
        let flags = |client: &mut Client| {
            let list = client.run("CLIENT LIST").string();
            list.lines().filter(|line| line.contains(" flags=O ")).count()
        };
        let mut one = monitor(server);
        let two = monitor(server);
        assert_eq!(flags(client), 2);
        one.check("RESET", "+RESET\r\n");
        assert_eq!(flags(client), 1);
        drop(two);
        wait_until("the other one is gone", || flags(client) == 0);
        client.check("PING", "+PONG\r\n");
        one.check("PING", "+PONG\r\n");
        one.expect_silence();
    });
}

#[test]
fn a_watcher_that_never_reads_is_closed() {
    for shards in [1, 4] {
        let server = Server::start(shards, &["--client-output-buffer-limit", "normal 1mb 0 0"]);
        let _watcher = monitor(&server);
        let mut client = server.client();
        let big = "x".repeat(100_000);
        for _ in 0..400 {
            client.run_words(&["SET", "a", &big]);
        }
        let list = client.run("CLIENT LIST").string();
        assert!(!list.contains(" flags=O "), "{list}");
        assert!(
            client.run("INFO stats").string().contains("client_output_buffer_limit_disconnections:1\r\n")
        );
    }
}
