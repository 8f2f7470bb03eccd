//! What clients cost: what CLIENT LIST tells of it, and who is closed when it is too much.
use super::support::{Client, Server, wait_until};
use super::{SHARDS, on_all_shards};

/// A field of a client's line; `None`: there is no such client.
fn field(client: &mut Client, id: i64, name: &str) -> Option<u64> {
    let line = client.run(&format!("CLIENT LIST ID {id}")).string();
    line.split([' ', '\n']).find_map(|field| field.strip_prefix(name)?.strip_prefix('=')?.parse().ok())
}

/// An argument that is not complete: `sent` bytes of it are there.
fn part_of_request(sent: usize) -> Vec<u8> {
    let mut bytes = b"*2\r\n$3\r\nGET\r\n$50000000\r\n".to_vec();
    bytes.resize(bytes.len() + sent, b'x');
    bytes
}

fn stat(client: &mut Client, name: &str) -> u64 {
    let info = client.run("INFO everything").string();
    info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')?.parse().ok()).expect("a field")
}

#[test]
fn the_largest_clients_are_closed_first() {
    for shards in SHARDS {
        let server = Server::start(shards, &["--maxmemory-clients", "3mb"]);
        let mut client = server.client();
        let mut small: Vec<Client> = (0..8).map(|_| server.client()).collect();
        let ids: Vec<i64> = small.iter_mut().map(|c| c.run("CLIENT ID").int()).collect();
        small.iter_mut().for_each(|c| c.send(part_of_request(100_000)));
        for id in &ids {
            wait_until("a part is there", || field(&mut client, *id, "qbuf").is_some_and(|n| n > 100_000));
            assert!(field(&mut client, *id, "tot-mem").unwrap() > 100_000);
        }
        assert!(stat(&mut client, "mem_clients_normal") > 800_000);
        let mut large = server.client();
        let id = large.run("CLIENT ID").int();
        large.send(part_of_request(0));
        while large.try_send(vec![b'x'; 100_000]).is_ok() {
            if field(&mut client, id, "qbuf").is_none() {
                break;
            }
        }
        wait_until("the large one is gone", || field(&mut client, id, "qbuf").is_none());
        wait_until("it counts no more", || stat(&mut client, "mem_clients_normal") < 3 << 20);
        assert_eq!(stat(&mut client, "evicted_clients"), 1);
        assert!(ids.iter().all(|id| field(&mut client, *id, "qbuf").is_some()), "the small ones stay");
    }
}

#[test]
fn who_asked_for_it_is_spared() {
    for shards in SHARDS {
        let server = Server::start(shards, &["--maxmemory-clients", "1mb"]);
        let mut client = server.client();
        let mut spared = server.client();
        spared.check("CLIENT NO-EVICT ON", "+OK\r\n");
        client.check("CLIENT NO-EVICT ON", "+OK\r\n");
        spared.send(part_of_request(2_000_000));
        let mut other = server.client();
        let _ = other.try_send("GET a\r\n");
        wait_until("the client that sent nothing pays", || stat(&mut client, "evicted_clients") >= 1);
    }
}

#[test]
fn a_lower_limit_closes_clients() {
    for shards in SHARDS {
        let server = Server::start(shards, &[]);
        let mut client = server.client();
        client.check("CLIENT NO-EVICT ON", "+OK\r\n");
        let mut others: Vec<Client> = (0..6).map(|_| server.client()).collect();
        let ids: Vec<i64> = others.iter_mut().map(|c| c.run("CLIENT ID").int()).collect();
        others.iter_mut().for_each(|c| c.send(part_of_request(500_000)));
        for id in &ids {
            wait_until("a part is there", || field(&mut client, *id, "qbuf").is_some_and(|n| n > 500_000));
        }
        client.check("CONFIG SET maxmemory-clients 2mb", "+OK\r\n");
        wait_until("some are gone", || stat(&mut client, "evicted_clients") > 0);
        wait_until("few enough are left", || stat(&mut client, "mem_clients_normal") < 2 << 20);
        assert!(stat(&mut client, "connected_clients") >= 2);
        client.check("CONFIG SET maxmemory-clients 0", "+OK\r\n");
    }
}

#[test]
fn queued_commands_and_watched_keys_are_told_and_cost() {
    on_all_shards(|server, client| {
        let mut other = server.client();
        let id = other.run("CLIENT ID").int();
        let flags = |client: &mut Client| {
            let line = client.run(&format!("CLIENT LIST ID {id}")).string();
            line.split(' ').find_map(|field| field.strip_prefix("flags=")).unwrap().to_string()
        };
        other.check("WATCH a b c", "+OK\r\n");
        assert_eq!((field(client, id, "watch"), flags(client).as_str()), (Some(3), "N"));
        assert_eq!((stat(client, "watching_clients"), stat(client, "total_watched_keys")), (1, 3));
        other.check("MULTI", "+OK\r\n");
        assert_eq!((field(client, id, "multi"), flags(client).as_str()), (Some(0), "x"));
        let before = field(client, id, "tot-mem").unwrap();
        other.run_words(&["SET".to_string(), "a".into(), "x".repeat(30_000)]);
        assert_eq!(field(client, id, "multi"), Some(1));
        assert!(field(client, id, "multi-mem").unwrap() >= 30_000);
        wait_until("it is accounted for", || {
            field(client, id, "tot-mem").is_some_and(|bytes| bytes >= before + 30_000)
        });
        other.run("EXEC");
        assert_eq!((field(client, id, "watch"), field(client, id, "multi-mem")), (Some(0), Some(0)));
        assert_eq!((field(client, id, "multi"), flags(client).as_str()), (None, "N"));
        other.send("BLPOP list 0\r\n");
        wait_until("it is blocked", || flags(client) == "b");
        client.check("CLIENT PAUSE 100000 WRITE", "+OK\r\n");
        let mut paused = server.client();
        paused.send("SET a 1\r\n");
        wait_until("both wait", || stat(client, "blocked_clients") == 2);
        client.check("CLIENT UNPAUSE", "+OK\r\n");
        assert_eq!(paused.read_bytes(), b"+OK\r\n");
        assert_eq!(stat(client, "blocked_clients"), 1);
    });
}

#[test]
fn requests_that_pass_their_limit_are_counted() {
    for shards in [1, 4] {
        let server = Server::start(shards, &["--client-query-buffer-limit", "1mb"]);
        let (mut client, mut other) = (server.client(), server.client());
        let _ = other.try_send(part_of_request(3_000_000));
        wait_until("it is closed", || stat(&mut client, "client_query_buffer_limit_disconnections") == 1);
        let mut queuer = server.client();
        queuer.check("MULTI", "+OK\r\n");
        let big = "x".repeat(300_000);
        while queuer.try_send(super::support::command(&["SET", "a", &big])).is_ok() {}
        assert_eq!(stat(&mut client, "client_query_buffer_limit_disconnections"), 2);
    }
}

#[test]
fn the_options_of_a_call_say_how_it_uses_keys() {
    on_all_shards(|_, client| {
        let mut uses = |call: &str| {
            let reply = client.run(&format!("COMMAND GETKEYSANDFLAGS {call}"));
            let words = |key: &super::support::Value| {
                key.items()[1].items().iter().map(|word| word.string()).collect::<Vec<_>>().join(" ")
            };
            reply.items().iter().map(words).collect::<Vec<_>>().join(", ")
        };
        assert_eq!(uses("SET k v"), "OW update");
        assert_eq!(uses("SET k v EX 5 get"), "RW access update");
        assert_eq!(uses("SET get v"), "OW update");
        assert_eq!(uses("BITFIELD k GET u8 0 OVERFLOW SAT get u8 1"), "RO access");
        assert_eq!(uses("BITFIELD k GET u8 0 SET u8 0 1"), "RW access update");
        assert_eq!(uses("BITFIELD k GET u8"), "RW access update");
        assert_eq!(uses("LMOVE a b LEFT RIGHT"), "RW access delete, RW insert");
    });
}
