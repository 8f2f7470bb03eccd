//! Rewriting the log and loading it again, as far as settings and commands meet them on the way.
use std::path::{Path, PathBuf};

use super::SHARDS;
use super::support::server::fresh_dir;
use super::support::{Client, Server, wait_until};

fn start(shards: usize, dir: &Path, more: &[&str]) -> (Server, Client) {
    let mut args = vec!["--dir", dir.to_str().unwrap(), "--aof-use-rdb-preamble", "no"];
    args.extend_from_slice(more);
    let server = Server::start(shards, &args);
    let client = server.client();
    (server, client)
}

fn info(client: &mut Client, field: &str) -> String {
    let info = client.run("INFO persistence").string();
    let value = info.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
    value.unwrap_or_else(|| panic!("no {field} in {info}")).trim().to_string()
}

/// A data directory that goes away with this value.
struct Data(PathBuf);

impl Drop for Data {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

impl Data {
    fn new() -> Data {
        Data(fresh_dir())
    }

    fn read(&self, name: &str) -> Option<String> {
        std::fs::read(self.0.join("appendonlydir").join(name))
            .ok()
            .map(|b| String::from_utf8_lossy(&b).into())
    }
}

const SLOW: &str = "CONFIG SET rdb-key-save-delay 1000000000";
const QUICK: &str = "CONFIG SET rdb-key-save-delay 0";

#[test]
fn the_log_is_loaded_again_and_goes_on() {
    for shards in SHARDS {
        let data = Data::new();
        let (server, mut client) = start(shards, &data.0, &["--appendonly", "yes"]);
        client.run("DEBUG POPULATE 200 some 30");
        for line in ["SET a 1", "RPUSH list x y", "SELECT 3", "SET there 1 EX 1000", "SELECT 0"] {
            client.run(line);
        }
        client.check("DBSIZE", ":202\r\n");
        // Of the keys that DEBUG made the log knows nothing, as in Redis.
        client.check("DEBUG LOADAOF", "+OK\r\n");
        client.check("DBSIZE", ":2\r\n");
        client.check("LRANGE list 0 -1", "*2\r\n$1\r\nx\r\n$1\r\ny\r\n");
        client.check("INCR a", ":2\r\n");
        client.check("DEBUG LOADAOF", "+OK\r\n");
        client.check("GET a", "$1\r\n2\r\n");
        client.run("BGREWRITEAOF");
        wait_until("the rewrite ends", || info(&mut client, "aof_rewrite_in_progress") == "0");
        client.run("INCR a");
        client.check("DEBUG LOADAOF", "+OK\r\n");
        client.check("INCR a", ":4\r\n");
        let digest = client.run("DEBUG DIGEST").string();
        drop(server);
        let (_server, mut client) = start(shards, &data.0, &["--appendonly", "yes"]);
        assert_eq!(client.run("DEBUG DIGEST").string(), digest, "{shards} shard(s)");
    }
}

#[test]
fn a_log_that_cannot_be_loaded_again_is_told_and_the_server_goes_on() {
    let data = Data::new();
    let (_server, mut client) = start(2, &data.0, &["--appendonly", "yes"]);
    client.run("SET a 1");
    std::fs::write(data.0.join("appendonlydir/appendonly.aof.manifest"), "nonsense\n").unwrap();
    client.check("DEBUG LOADAOF", "-ERR Error trying to load the AOF files, check server logs.\r\n");
    client.check("SET b 1", "+OK\r\n");
    client.check("DBSIZE", ":1\r\n");
    assert!(data.read("appendonly.aof.1.incr.aof").unwrap().ends_with("SET\r\n$1\r\nb\r\n$1\r\n1\r\n"));
}

#[test]
fn emptying_is_logged_even_if_nothing_was_there() {
    for shards in SHARDS {
        let data = Data::new();
        let (_server, mut client) = start(shards, &data.0, &["--appendonly", "yes"]);
        for line in ["FLUSHDB", "FLUSHALL ASYNC", "SET a 1", "FLUSHDB"] {
            client.check(line, "+OK\r\n");
        }
        let log = data.read("appendonly.aof.1.incr.aof").unwrap();
        assert_eq!((log.matches("FLUSHDB").count(), log.matches("FLUSHALL").count()), (2, 1), "{log}");
    }
}

#[test]
fn switching_the_log_off_ends_its_rewrite() {
    for shards in SHARDS {
        let data = Data::new();
        let (_server, mut client) = start(shards, &data.0, &["--appendonly", "yes"]);
        client.run("DEBUG POPULATE 50");
        client.run(SLOW);
        client.check("BGREWRITEAOF", "+Background append only file rewriting started\r\n");
        wait_until("the base is begun", || data.0.join("appendonlydir/appendonly.aof.2.incr.aof").exists());
        client.check("CONFIG SET appendonly no", "+OK\r\n");
        wait_until("the rewrite ends", || info(&mut client, "aof_rewrite_in_progress") == "0");
        assert_eq!(info(&mut client, "aof_last_bgrewrite_status"), "ok");
        // One that was only asked for ends with it as well.
        client.run("CONFIG SET appendonly yes");
        client.run("CONFIG SET appendonly no");
        wait_until("no rewrite is left", || info(&mut client, "aof_rewrite_in_progress") == "0");
        client.check("BGSAVE", "+Background saving started\r\n");
        client.run(QUICK);
        wait_until("the snapshot ends", || info(&mut client, "rdb_bgsave_in_progress") == "0");
        assert_eq!(info(&mut client, "rdb_last_bgsave_status"), "ok");
    }
}

#[test]
fn the_server_does_not_end_before_the_first_base() {
    let data = Data::new();
    let (mut server, mut client) = start(2, &data.0, &[]);
    client.run("DEBUG POPULATE 50");
    client.run(SLOW);
    client.run("CONFIG SET appendonly yes");
    client.check("SHUTDOWN", "-ERR Errors trying to SHUTDOWN. Check logs.\r\n");
    client.run(QUICK);
    wait_until("the base is there", || info(&mut client, "aof_rewrite_in_progress") == "0");
    client.send("SHUTDOWN NOSAVE\r\n");
    assert_eq!(server.wait_for_end().code(), Some(0));
    let (_server, mut client) = start(1, &data.0, &["--appendonly", "yes"]);
    client.check("DBSIZE", ":50\r\n");
}

#[test]
fn a_base_is_named_by_what_it_is() {
    let data = Data::new();
    let (_server, mut client) = start(2, &data.0, &["--appendonly", "yes"]);
    client.run("SET a 1");
    client.run(SLOW);
    client.run("BGREWRITEAOF");
    wait_until("the base is begun", || data.0.join("appendonlydir/appendonly.aof.2.incr.aof").exists());
    client.run("CONFIG SET aof-use-rdb-preamble yes");
    client.run(QUICK);
    wait_until("the rewrite ends", || info(&mut client, "aof_rewrite_in_progress") == "0");
    assert!(data.read("appendonly.aof.2.base.aof").is_some_and(|base| base.contains("SET")));
}

#[test]
fn a_log_that_is_switched_on_waits_for_the_snapshot_under_way() {
    let data = Data::new();
    let (_server, mut client) = start(2, &data.0, &[]);
    client.run("SET a 1");
    client.run(SLOW);
    client.check("BGSAVE", "+Background saving started\r\n");
    client.run("CONFIG SET appendonly yes");
    assert_eq!(info(&mut client, "aof_rewrite_in_progress"), "0");
    assert_eq!(info(&mut client, "aof_rewrite_scheduled"), "1");
    client.run(QUICK);
    wait_until("the base is there", || data.read("appendonly.aof.1.base.aof").is_some());
}
