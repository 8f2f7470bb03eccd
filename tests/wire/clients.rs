//! The CLIENT family: what one connection may do to itself and to others.
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::support::{Client, Server, command, wait_until};
use super::{SHARDS, info_field, on_all_shards};

fn send_all(client: &mut Client, lines: &[&str]) {
    let bytes: Vec<u8> = lines.iter().flat_map(|l| command(&super::support::words(l))).collect();
    client.send(bytes);
}

#[test]
fn replies_may_be_turned_off_and_skipped() {
    on_all_shards(|_, client| {
        send_all(
            client,
            &[
                "CLIENT REPLY OFF",
                "SET a 1",
                "SET b 1",
                "SET c 1",
                "nosuch",
                "GET",
                "MGET a b c",
                "DEL b c",
                "CLIENT REPLY ON",
                "GET a",
            ],
        );
        assert_eq!(client.read_exact(12), b"+OK\r\n$1\r\n1\r\n");
        send_all(client, &["CLIENT REPLY SKIP", "GET a", "GET a"]);
        assert_eq!(client.read_exact(7), b"$1\r\n1\r\n");
        send_all(client, &["CLIENT REPLY SKIP", "nosuch", "GET a"]);
        assert_eq!(client.read_exact(7), b"$1\r\n1\r\n");
        send_all(client, &["CLIENT REPLY SKIP", "MGET a b c d e", "MSET x 1 y 2 z 3", "MGET x y z"]);
        assert_eq!(client.read_exact(5), b"+OK\r\n");
        assert_eq!(client.read_bytes(), b"*3\r\n$1\r\n1\r\n$1\r\n2\r\n$1\r\n3\r\n");
        send_all(client, &["CLIENT REPLY OFF", "CLIENT REPLY SKIP", "CLIENT REPLY ON", "GET b"]);
        assert_eq!(client.read_exact(10), b"+OK\r\n$-1\r\n");
        client.check("CLIENT REPLY maybe", "-ERR syntax error\r\n");
        client.expect_silence();
    });
}

#[test]
fn a_killed_client_is_gone() {
    on_all_shards(|server, client| {
        let mut victims: Vec<Client> = (0..6).map(|_| server.client()).collect();
        let ids: Vec<i64> = victims.iter_mut().map(|v| v.run("CLIENT ID").int()).collect();
        for (victim, id) in victims.iter_mut().zip(&ids) {
            client.check(&format!("CLIENT KILL ID {id}"), ":1\r\n");
            assert_eq!(victim.read_to_end(), b"");
        }
        client.check(&format!("CLIENT KILL ID {}", ids[0]), ":0\r\n");
        let mut other = server.client();
        let address = other.stream().local_addr().unwrap().to_string();
        other.run("CLIENT ID");
        client.check(&format!("CLIENT KILL {address}"), "+OK\r\n");
        assert_eq!(other.read_to_end(), b"");
        client.check("CLIENT KILL 127.0.0.1:1", "-ERR No such client\r\n");

        let mut many: Vec<Client> = (0..10).map(|_| server.client()).collect();
        many.iter_mut().for_each(|c| c.check("GET a", "$-1\r\n"));
        client.check("CLIENT KILL TYPE normal SKIPME yes", ":10\r\n");
        many.iter_mut().for_each(|c| assert_eq!(c.read_to_end(), b""));
        client.check("CLIENT KILL SKIPME no TYPE normal", ":1\r\n");
        assert_eq!(client.read_to_end(), b"");
    });
}

#[test]
fn a_pause_holds_commands_back_and_loses_none() {
    on_all_shards(|server, client| {
        client.check("CLIENT PAUSE 100000 WRITE", "+OK\r\n");
        let mut other = server.client();
        other.check("GET a", "$-1\r\n");
        send_all(&mut other, &["GET a", "SET a 1", "GET a", "MSET b 1 c 2 d 3 e 4", "MGET a b c d e"]);
        assert_eq!(other.read_bytes(), b"$-1\r\n");
        other.expect_silence();
        client.check("GET a", "$-1\r\n");
        client.check("CLIENT UNPAUSE", "+OK\r\n");
        assert_eq!(other.read_exact(17), b"+OK\r\n$1\r\n1\r\n+OK\r\n");
        assert_eq!(other.read().items().len(), 5);

        client.check("CLIENT PAUSE 60 ALL", "+OK\r\n");
        let start = Instant::now();
        other.check("GET a", "$1\r\n1\r\n");
        assert!(
            start.elapsed() >= Duration::from_millis(40),
            "a pause of 60 ms ended after {:?}",
            start.elapsed()
        );
        client.check("CLIENT PAUSE x", "-ERR timeout is not an integer or out of range\r\n");
        client.check("CLIENT PAUSE -1", "-ERR timeout is negative\r\n");
    });
}

#[test]
fn a_pause_of_writes_heeds_what_scripts_say_about_themselves() {
    const READS: &str = "#!lua flags=no-writes\nreturn 7";
    on_all_shards(|server, client| {
        let library = "#!lua name=lib\nredis.register_function{function_name='reads', callback=function() return 7 end, \
             flags={'no-writes'}}\nredis.register_function('writes', function() return 7 end)";
        assert_eq!(client.run_words(&["FUNCTION", "LOAD", library]).text(), b"lib");
        let sha = client.run_words(&["SCRIPT", "LOAD", READS]).string();
        client.check("CLIENT PAUSE 100000 WRITE", "+OK\r\n");
        let mut other = server.client();
        let reading = [["EVAL", READS, "0"], ["EVALSHA", &sha, "0"], ["FCALL", "reads", "0"]];
        for words in &reading {
            assert_eq!(other.run_words(words).int(), 7, "{words:?}");
        }
        other.check("MULTI", "+OK\r\n");
        for words in &reading {
            assert_eq!(other.run_words(words).text(), b"QUEUED");
        }
        other.check("EXEC", "*3\r\n:7\r\n:7\r\n:7\r\n");
        client.check("CLIENT UNPAUSE", "+OK\r\n");
        for words in [["EVAL", "return 7", "0"], ["EVAL", "#!lua\nreturn 7", "0"], ["FCALL", "writes", "0"]] {
            let (mut alone, mut queued) = (server.client(), server.client());
            queued.check("MULTI", "+OK\r\n");
            assert_eq!(queued.run_words(&words).text(), b"QUEUED");
            client.check("CLIENT PAUSE 100000 WRITE", "+OK\r\n");
            alone.send_words(&words);
            queued.send_words(&["EXEC"]);
            alone.expect_silence();
            queued.expect_silence();
            client.check("CLIENT UNPAUSE", "+OK\r\n");
            assert_eq!(alone.read().int(), 7);
            assert_eq!(queued.read_bytes(), b"*1\r\n:7\r\n");
        }
    });
}

#[test]
fn a_pause_deletes_nothing_whose_time_has_come() {
    on_all_shards(|server, client| {
        let expired = |client: &mut Client, what: &str| info_field(client, "stats", what);
        client.check("MULTI", "+OK\r\n");
        for i in 0..8 {
            client.check(&format!("SET key{i} v PX 20"), "+QUEUED\r\n");
        }
        client.check("HSETEX hash PX 20 FIELDS 1 gone v", "+QUEUED\r\n");
        client.check("HSET hash stays v", "+QUEUED\r\n");
        client.check("CLIENT PAUSE 100000 WRITE", "+QUEUED\r\n");
        assert_eq!(client.run("EXEC").items().len(), 11);
        for mut other in (0..4).map(|_| server.client()) {
            wait_until("keys are absent", || {
                (0..8).all(|i| other.bytes(&format!("GET key{i}")) == b"$-1\r\n")
            });
            wait_until("a field is absent", || other.bytes("HGET hash gone") == b"$-1\r\n");
            other.check("SCAN 0 COUNT 1000", "*2\r\n$1\r\n0\r\n*1\r\n$4\r\nhash\r\n");
        }
        client.check("DBSIZE", ":9\r\n");
        assert_eq!(expired(client, "expired_keys"), 0);
        assert_eq!(expired(client, "expired_subkeys"), 0);
        client.check("CLIENT UNPAUSE", "+OK\r\n");
        wait_until("keys are deleted", || client.bytes("DBSIZE") == b":1\r\n");
        wait_until("a field is deleted", || expired(client, "expired_subkeys") == 1);
        assert_eq!(expired(client, "expired_keys"), 8);
    });
}

/// Processor seconds that the server has used.
fn used_cpu(client: &mut Client) -> f64 {
    let info = client.run("INFO cpu").string();
    let field =
        |name: &str| info.lines().find_map(|line| line.strip_prefix(name)).expect("a field of INFO cpu");
    ["used_cpu_user:", "used_cpu_sys:"].into_iter().map(|name| field(name).parse::<f64>().unwrap()).sum()
}

#[test]
fn a_paused_server_is_idle() {
    for shards in SHARDS {
        let server = Server::start(shards, &[]);
        let mut waiting: Vec<Client> = (0..8).map(|_| server.client()).collect();
        let mut client = server.client();
        let before = used_cpu(&mut client);
        client.check("CLIENT PAUSE 500 ALL", "+OK\r\n");
        waiting.iter_mut().for_each(|c| c.send("GET a\r\n"));
        waiting.iter_mut().for_each(|c| assert_eq!(c.read_bytes(), b"$-1\r\n"));
        let used = used_cpu(&mut client) - before;
        assert!(used < 0.2, "{used} s of processor time in a pause of 0.5 s on {shards} shards");
    }
}

#[test]
fn connections_are_spread_evenly() {
    const CONNECTIONS: usize = 40;
    for shards in SHARDS {
        let server = Server::start(shards, &[]);
        let mut clients: Vec<Client> = (0..CONNECTIONS).map(|_| server.client()).collect();
        clients.iter_mut().for_each(|c| c.check("GET a", "$-1\r\n"));
        let list = clients[0].run("CLIENT LIST").string();
        let mut per_shard: BTreeMap<&str, usize> = BTreeMap::new();
        for line in list.lines() {
            // Redis's name for the thread that serves a connection.
            let thread = line.split(' ').find_map(|f| f.strip_prefix("io-thread=")).expect("io-thread");
            *per_shard.entry(thread).or_default() += 1;
        }
        assert_eq!(per_shard.len(), shards, "{per_shard:?}");
        assert!(per_shard.values().all(|n| *n == CONNECTIONS / shards), "{per_shard:?}");
    }
}

#[test]
fn a_client_is_listed_with_its_name_and_library() {
    on_all_shards(|server, client| {
        let mut other = server.client();
        other.check("CLIENT SETNAME worker", "+OK\r\n");
        other.check("CLIENT SETINFO lib-name mylib", "+OK\r\n");
        other.check("CLIENT SETINFO lib-ver 1.2", "+OK\r\n");
        other.check(
            "CLIENT SETNAME \"a b\"",
            "-ERR Client names cannot contain spaces, newlines or special characters.\r\n",
        );
        other.check("SELECT 3", "+OK\r\n");
        let id = other.run("CLIENT ID").int();
        let list = client.run(&format!("CLIENT LIST ID {id}")).string();
        for field in ["name=worker", "lib-name=mylib", "lib-ver=1.2", "db=3", "resp=2", "cmd=client|id"] {
            assert!(list.split([' ', '\n']).any(|f| f == field), "{field} is missing in {list}");
        }
        drop(other);
        wait_until("a closed connection leaves the list", || {
            client.run(&format!("CLIENT LIST ID {id}")).text().is_empty()
        });
    });
}

#[test]
fn quit_and_reset() {
    on_all_shards(|server, client| {
        client.check("SELECT 2", "+OK\r\n");
        client.check("CLIENT SETNAME me", "+OK\r\n");
        client.check("RESET", "+RESET\r\n");
        client.check("CLIENT GETNAME", "$-1\r\n");
        client.check("SET where zero", "+OK\r\n");
        server.client().check("GET where", "$4\r\nzero\r\n");
        send_all(client, &["SET x 1", "QUIT", "SET x 2"]);
        assert_eq!(client.read_to_end(), b"+OK\r\n+OK\r\n");
        server.client().check("GET x", "$1\r\n1\r\n");
    });
}
