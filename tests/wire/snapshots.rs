//! Snapshot files: saved, loaded at the next start under any number of shards, reloaded, refused when broken; a disk that
//! fails leaves the old file.
use super::support::server::{fresh_dir, run_to_end};
use super::support::{Client, Server, wait_until};
use super::{SHARDS, info_field};

fn fill(client: &mut Client) {
    let lines = [
        "SET text hello",
        "SET number 12345",
        "SET later x PXAT 4102444800000",
        "RPUSH list a b 3",
        "SADD ints 1 2 300000",
        "SADD words a b c",
        "HSET hash f v g 5",
        "HPEXPIREAT hash 4102444800000 FIELDS 1 f",
        "ZADD scores 1 a 2.5 b -inf c",
        "XADD log 1-1 f v",
        "XGROUP CREATE log group 0",
        "XREADGROUP GROUP group me STREAMS log >",
    ];
    for db in [0, 9] {
        client.check(&format!("SELECT {db}"), "+OK\r\n");
        lines.iter().for_each(|line| drop(client.run(line)));
        for n in 0..2000 {
            client.run(&format!("SADD many member:{n}"));
            client.run(&format!("SET key:{n} {n}"));
        }
    }
    client.check("SELECT 0", "+OK\r\n");
}

fn digest(client: &mut Client) -> String {
    client.run("DEBUG DIGEST").string()
}

#[test]
fn a_snapshot_is_loaded_under_any_number_of_shards() {
    for (shards, then) in [(1, 4), (4, 1), (2, 2)] {
        let dir = fresh_dir();
        let dir_text = dir.to_str().unwrap();
        let server = Server::start(shards, &["--dir", dir_text]);
        let mut client = server.client();
        fill(&mut client);
        let before = digest(&mut client);
        let keys = client.run("DBSIZE").int() as u64;
        assert!(info_field(&mut client, "persistence", "rdb_changes_since_last_save") > 0);
        client.check("SAVE", "+OK\r\n");
        assert_eq!(info_field(&mut client, "persistence", "rdb_changes_since_last_save"), 0);
        drop(server);
        let server = Server::start(then, &["--dir", dir_text]);
        let mut client = server.client();
        assert_eq!(digest(&mut client), before);
        assert_eq!(info_field(&mut client, "persistence", "rdb_last_load_keys_loaded"), 2 * keys);
        assert!(server.wait_for_line("DB loaded from disk"));
    }
}

#[test]
fn reloading_changes_nothing() {
    for shards in SHARDS {
        let dir = fresh_dir();
        let server = Server::start(shards, &["--dir", dir.to_str().unwrap()]);
        let mut client = server.client();
        fill(&mut client);
        let before = digest(&mut client);
        client.check("DEBUG RELOAD", "+OK\r\n");
        assert_eq!(digest(&mut client), before);
        client.check("SET new 1", "+OK\r\n");
        client.check("DEBUG RELOAD NOSAVE NOFLUSH MERGE", "+OK\r\n");
        client.check("DEL new", ":1\r\n");
        assert_eq!(digest(&mut client), before);
        client.check(
            "DEBUG RELOAD NOSAVE NOFLUSH",
            "-ERR Error trying to load the RDB dump, check server logs.\r\n",
        );
        client.check("DEBUG RELOAD NOSAVE", "+OK\r\n");
        assert_eq!(digest(&mut client), before);
    }
}

#[test]
fn a_disk_that_fails_leaves_the_old_file() {
    let dir = fresh_dir();
    let server = Server::start(2, &["--dir", dir.to_str().unwrap()]);
    let mut client = server.client();
    fill(&mut client);
    client.check("SAVE", "+OK\r\n");
    let old = std::fs::read(dir.join("dump.rdb")).unwrap();
    client.check("SET more 1", "+OK\r\n");
    let mut failures = 0;
    for n in 1.. {
        client.check(
            &format!("DEBUG DISK-FAULTS create write sync rename at={n} for=1 cut"),
            format!(":{}\r\n", i32::from(n > 1)),
        );
        let reply = client.bytes("SAVE");
        let now = std::fs::read(dir.join("dump.rdb")).unwrap();
        if reply == b"+OK\r\n" {
            assert_ne!(now, old);
            break;
        }
        failures += 1;
        assert!(
            !std::fs::read_dir(&dir)
                .unwrap()
                .any(|e| { e.unwrap().file_name().to_string_lossy().starts_with("temp-") })
        );
        // The last call has the new name reach the disk: the file is in its place by then.
        assert!(now == old || client.bytes("DEBUG RELOAD NOSAVE") == b"+OK\r\n");
    }
    assert!(failures >= 5, "{failures}");
    client.check("DEBUG DISK-FAULTS", ":0\r\n");
}

#[test]
fn a_broken_file_ends_the_start() {
    for bytes in [&b"REDIS0011\xfe\x00\x00\x01k\x05val"[..], b"PERIGEE99", b"", b"REDIS0012\xfe\x63\xff"] {
        let dir = fresh_dir();
        std::fs::write(dir.join("dump.rdb"), bytes).unwrap();
        let (code, output) = run_to_end(&["--dir", dir.to_str().unwrap(), "--port", "0"]);
        assert_eq!(code, Some(1), "{output}");
        assert!(output.contains("Fatal error loading the DB, check server logs. Exiting."), "{output}");
    }
}

#[test]
fn scripts_write_nothing_that_cannot_be_kept() {
    for shards in SHARDS {
        let dir = fresh_dir();
        let args = ["--dir", dir.to_str().unwrap(), "--save", "3600 1"];
        let server = Server::start(shards, &args);
        let mut client = server.client();
        let refused = |client: &mut Client, line: &str| client.run(line).string().starts_with("MISCONF");
        client.check("EVAL return(redis.call('set','k','v')) 0", "+OK\r\n");
        client.run("DEBUG DISK-FAULTS create at=1 for=9");
        client.run("BGSAVE");
        wait_until("writes are refused", || refused(&mut client, "SET k v"));
        assert!(refused(&mut client, "EVAL return(redis.call('set','k','w')) 0"));
        client.check("EVAL return(redis.call('get','k')) 0", "$1\r\nv\r\n");
        client.run("DEBUG DISK-FAULTS");
        client.check("SAVE", "+OK\r\n");
        client.check("EVAL return(redis.call('set','k','w')) 0", "+OK\r\n");
        let _ = std::fs::remove_dir_all(dir);
    }
}
