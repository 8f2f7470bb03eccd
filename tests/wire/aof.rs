//! The append-only log as a client and an operator see it: what is there after a kill, what refuses a start, rewriting.
//! Bases are commands here, so that a test can read and spoil them.
use std::path::{Path, PathBuf};

use super::SHARDS;
use super::support::server::{fresh_dir, run_to_end};
use super::support::{Client, Server, wait_until as wait_for};

/// A data directory that goes away with this value.
struct Data(PathBuf);

impl Drop for Data {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

const INCREMENT: &str = "appendonlydir/appendonly.aof.1.incr.aof";
const MANIFEST: &str = "appendonlydir/appendonly.aof.manifest";

impl Data {
    fn new() -> Data {
        Data(fresh_dir())
    }

    fn args<'a>(&'a self, more: &[&'a str]) -> Vec<&'a str> {
        let dir = self.0.to_str().unwrap();
        let mut args = vec!["--dir", dir, "--appendonly", "yes", "--aof-use-rdb-preamble", "no"];
        args.extend_from_slice(more);
        args
    }

    fn start(&self, shards: usize, more: &[&str]) -> (Server, Client) {
        let server = Server::start(shards, &self.args(more));
        let client = server.client();
        (server, client)
    }

    /// What a server says that does not start.
    #[track_caller]
    fn refusal(&self, more: &[&str]) -> String {
        let mut args = self.args(more);
        args.extend(["--port", "0"]);
        let (code, log) = run_to_end(&args);
        assert_eq!(code, Some(1), "{log}");
        log
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    fn read(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.path(name)).unwrap()
    }

    fn write(&self, name: &str, bytes: &[u8]) {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    }

    /// The files of the log, sorted.
    fn files(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.path("appendonlydir")).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

fn info(client: &mut Client, field: &str) -> String {
    let info = client.run("INFO persistence").string();
    let value = info.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
    value.unwrap_or_else(|| panic!("no {field} in {info}")).trim().to_string()
}

/// Rewrites, and waits for the end of that.
fn rewrite(client: &mut Client) {
    client.check("BGREWRITEAOF", "+Background append only file rewriting started\r\n");
    assert_eq!(info(client, "aof_rewrite_in_progress"), "1");
    wait_for("the rewrite ends", || info(client, "aof_rewrite_in_progress") == "0");
    assert_eq!(info(client, "aof_last_bgrewrite_status"), "ok");
}

fn digest(client: &mut Client) -> String {
    client.run("DEBUG DIGEST").string()
}

/// Something of every type, in two databases, with deadlines.
const FILL: &str = r#"
    SET string text
    SET number 12345
    SET "\x00\r\n\xff" "\r\n*1\r\n"
    INCRBY number 5
    RPUSH list a b c 1 2 3
    LPOP list
    SADD ints 1 2 3
    SADD set a b c
    ZADD sorted 1 a 2.5 b inf c -inf d 1e300 e
    HSET hash f v g 2 h x
    HPEXPIRE hash 10000000 FIELDS 2 f g
    XADD stream 1-1 a b
    XADD stream 2-1 a b c d
    XDEL stream 1-1
    XGROUP CREATE stream group 0
    XREADGROUP GROUP group one COUNT 1 STREAMS stream >
    XGROUP CREATECONSUMER stream group two
    XADD emptied MAXLEN 0 5-5 a b
    PFADD hll a b c
    SETBIT bits 1000 1
    PEXPIRE string 10000000
    SET gone x PX 1
    SELECT 9
    SET other 1
    EVAL "redis.call('set', KEYS[1], 1) redis.call('incr', KEYS[2])" 2 one two
    MULTI
    INCR n
    RPUSH l x
    EXEC
"#;

fn fill(client: &mut Client) {
    for line in FILL.lines().map(str::trim).filter(|line| !line.is_empty()) {
        client.run(line);
    }
    // Enough that commands of many elements are split.
    for n in 0..300 {
        client.run(&format!("RPUSH long {n}"));
        client.run(&format!("SADD members {n} m{n}"));
        client.run(&format!("HSET fields {n} v{n}"));
        client.run(&format!("ZADD scores {n} {n}"));
    }
    client.run("SELECT 0");
    // Met, so that it is stored no more: digests count what is stored.
    wait_for("a key expires", || client.bytes("GET gone") == b"$-1\r\n");
}

#[test]
fn all_that_was_acknowledged_survives_a_kill_and_other_shards() {
    for policy in ["everysec", "always", "no"] {
        let data = Data::new();
        let mut expected = None;
        for (round, shards) in [1, 4, 2, 1].into_iter().enumerate() {
            let (server, mut client) = data.start(shards, &["--appendfsync", policy]);
            if let Some(expected) = &expected {
                assert_eq!(digest(&mut client), *expected, "{policy}, {shards} shard(s)");
                assert_eq!(client.run("XPENDING stream group").items()[0].int(), 1);
            }
            fill(&mut client);
            if round == 1 {
                rewrite(&mut client);
                fill(&mut client);
            }
            expected = Some(digest(&mut client));
            // Killed.
            drop(server);
        }
    }
}

#[test]
fn a_rewritten_log_is_as_good_as_the_log() {
    for shards in SHARDS {
        let data = Data::new();
        let (server, mut client) = data.start(shards, &[]);
        fill(&mut client);
        client.run(
            r##"FUNCTION LOAD "#!lua name=lib\nredis.register_function('f', function() return 7 end)""##,
        );
        let expected = digest(&mut client);
        rewrite(&mut client);
        wait_for("old files go", || data.files().len() == 3);
        assert_eq!(
            data.files(),
            ["appendonly.aof.2.base.aof", "appendonly.aof.2.incr.aof", "appendonly.aof.manifest"]
        );
        let manifest =
            "file appendonly.aof.2.base.aof seq 2 type b\nfile appendonly.aof.2.incr.aof seq 2 type i\n";
        assert_eq!(String::from_utf8(data.read(MANIFEST)).unwrap(), manifest);
        drop(server);
        let (_server, mut client) = data.start(shards, &[]);
        assert_eq!(digest(&mut client), expected);
        client.check("FCALL f 0", ":7\r\n");
        client.check(
            "XPENDING stream group",
            "*4\r\n:1\r\n$3\r\n2-1\r\n$3\r\n2-1\r\n*1\r\n*2\r\n$3\r\none\r\n$1\r\n1\r\n",
        );
    }
}

#[test]
fn rewriting_under_writes_loses_nothing_and_repeats_nothing() {
    for shards in SHARDS {
        let data = Data::new();
        let (server, mut client) = data.start(shards, &[]);
        let port = server.port;
        let stop = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
        let load: Vec<_> = (0..3)
            .map(|id| {
                let stop = stop.clone();
                std::thread::spawn(move || {
                    let mut client = Client::connect(port);
                    let mut rounds = 0;
                    while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                        rounds += 1;
                        client.check(&format!("INCR {id}"), format!(":{rounds}\r\n"));
                    }
                    rounds
                })
            })
            .collect();
        for _ in 0..5 {
            rewrite(&mut client);
        }
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
        let rounds: Vec<u64> = load.into_iter().map(|thread| thread.join().unwrap()).collect();
        drop(server);
        let (_server, mut client) = data.start(3 - shards.min(2), &[]);
        for (id, rounds) in rounds.iter().enumerate() {
            client.check(&format!("GET {id}"), format!("${}\r\n{rounds}\r\n", rounds.to_string().len()));
        }
    }
}

#[test]
fn the_log_is_switched_at_run_time() {
    for shards in SHARDS {
        let data = Data::new();
        let off = ["--appendonly", "no"];
        let (server, mut client) = data.start(shards, &off);
        client.check("SET before 1", "+OK\r\n");
        assert!(!data.path("appendonlydir").exists());
        client.check("CONFIG SET appendonly yes", "+OK\r\n");
        assert_eq!(info(&mut client, "aof_rewrite_in_progress"), "1");
        wait_for("the first base is there", || info(&mut client, "aof_rewrite_in_progress") == "0");
        assert_eq!(info(&mut client, "aof_enabled"), "1");
        client.check("INCR n", ":1\r\n");
        drop(server);
        let (server, mut client) = data.start(shards, &[]);
        client.check("MGET before n", "*2\r\n$1\r\n1\r\n$1\r\n1\r\n");
        client.check("CONFIG SET appendonly no", "+OK\r\n");
        assert_eq!(info(&mut client, "aof_enabled"), "0");
        let line = data.read(MANIFEST);
        let mut runs = 1;
        // Soon nothing is logged any more.
        wait_for("the log is off", || {
            let before =
                data.files().iter().map(|name| size(&data.path("appendonlydir").join(name))).sum::<u64>();
            runs += 1;
            client.check("INCR n", format!(":{runs}\r\n"));
            before
                == data.files().iter().map(|name| size(&data.path("appendonlydir").join(name))).sum::<u64>()
        });
        client.check("CONFIG SET appendonly yes", "+OK\r\n");
        wait_for("the next base is there", || info(&mut client, "aof_rewrite_in_progress") == "0");
        assert_ne!(data.read(MANIFEST), line);
        drop(server);
        let (_server, mut client) = data.start(shards, &[]);
        client.check("INCR n", format!(":{}\r\n", runs + 1));
    }
}

fn size(path: &Path) -> u64 {
    std::fs::metadata(path).map_or(0, |facts| facts.len())
}

#[test]
fn a_grown_log_is_rewritten_by_itself() {
    let data = Data::new();
    let args = ["--auto-aof-rewrite-percentage", "100", "--auto-aof-rewrite-min-size", "1000"];
    let (server, mut client) = data.start(2, &args);
    for _ in 0..100 {
        client.run("SET k v");
    }
    wait_for("a rewrite begins", || info(&mut client, "aof_rewrites") != "0");
    assert!(server.wait_for_line("Starting automatic rewriting of AOF on"), "{}", server.log());
    wait_for("the rewrite ends", || info(&mut client, "aof_rewrite_in_progress") == "0");
    assert!(info(&mut client, "aof_base_size").parse::<u64>().unwrap() < 1000);
}

const RECORDS: &str = "*2\r\n$6\r\nSELECT\r\n$1\r\n0\r\n*3\r\n$3\r\nSET\r\n$1\r\na\r\n$1\r\n1\r\n";
const TAIL: &[&str] = &["*1\r\n$5\r\nMULTI\r\n", "*2\r\n$4\r\nINCR\r\n$1\r\na\r\n", "*1\r\n$4\r\nEXEC\r\n"];

fn one_increment(data: &Data, bytes: &[u8]) {
    data.write(MANIFEST, b"file appendonly.aof.1.incr.aof seq 1 type i\n");
    data.write(INCREMENT, bytes);
}

#[test]
fn a_torn_tail_is_cut_off_at_every_byte() {
    let whole = format!("{RECORDS}{}", TAIL.concat());
    for cut in RECORDS.len()..=whole.len() {
        let data = Data::new();
        one_increment(&data, &whole.as_bytes()[..cut]);
        let is_whole = cut == whole.len();
        let (server, mut client) = data.start(1 + cut % 2, &[]);
        client.check("GET a", if is_whole { "$1\r\n2\r\n" } else { "$1\r\n1\r\n" });
        let kept = if is_whole { cut } else { RECORDS.len() };
        assert_eq!(data.read(INCREMENT).len(), kept, "cut at {cut}");
        let is_told =
            server.log().contains(&format!("Truncating the AOF appendonly.aof.1.incr.aof at offset {kept}"));
        assert_eq!(is_told, kept < cut, "cut at {cut}: {}", server.log());
        // What is logged behind the cut is read by the next start.
        client.run("INCR a");
        drop(server);
        let (_server, mut client) = data.start(1, &[]);
        client.check("GET a", if is_whole { "$1\r\n3\r\n" } else { "$1\r\n2\r\n" });
    }
}

#[test]
fn what_is_damaged_refuses_the_start() {
    let refusal = |bytes: &[u8], args: &[&str]| {
        let data = Data::new();
        one_increment(&data, bytes);
        let log = data.refusal(args);
        assert_eq!(data.read(INCREMENT), bytes, "the file is left alone");
        log
    };
    let torn = &RECORDS.as_bytes()[..RECORDS.len() - 3];
    let log = refusal(torn, &["--aof-load-truncated", "no"]);
    assert!(
        log.contains("Unexpected end of file reading the append only file appendonly.aof.1.incr.aof"),
        "{log}"
    );
    let middle = [torn, RECORDS.as_bytes()].concat();
    let log = refusal(&middle, &[]);
    assert!(log.contains("Bad file format reading the append only file appendonly.aof.1.incr.aof"), "{log}");
    let unknown = format!("{RECORDS}*1\r\n$4\r\nnope\r\n{RECORDS}");
    let log = refusal(unknown.as_bytes(), &[]);
    assert!(
        log.contains("Unknown command 'nope' reading the append only file appendonly.aof.1.incr.aof"),
        "{log}"
    );
    for odd in
        ["*1\r\n$4\r\nQUIT\r\n", "*3\r\n$5\r\nBLPOP\r\n$1\r\nx\r\n$1\r\n0\r\n", "*1\r\n$8\r\nSHUTDOWN\r\n"]
    {
        let log = refusal(format!("{RECORDS}{odd}").as_bytes(), &[]);
        assert!(log.contains("Bad file format"), "{odd} {log}");
    }
}

#[test]
fn only_the_last_file_may_be_torn() {
    let data = Data::new();
    let second = "appendonlydir/appendonly.aof.2.incr.aof";
    let torn = &RECORDS.as_bytes()[..RECORDS.len() - 3];
    one_increment(&data, torn);
    data.write(
        MANIFEST,
        b"file appendonly.aof.1.incr.aof seq 1 type i\nfile appendonly.aof.2.incr.aof seq 2 type i\n",
    );
    data.write(second, RECORDS.as_bytes());
    let log = data.refusal(&[]);
    assert!(log.contains("Fatal error: the truncated file is not the last file"), "{log}");
    // A file without anything was opened by a rewrite that a crash cut short.
    data.write(second, b"");
    let (server, mut client) = data.start(2, &[]);
    client.check("DBSIZE", ":0\r\n");
    client.check("SET b 1", "+OK\r\n");
    drop(server);
    assert!(!data.read(second).is_empty());
    let (_server, mut client) = data.start(2, &[]);
    client.check("GET b", "$1\r\n1\r\n");
}

#[test]
fn manifests_are_read_strictly() {
    let data = Data::new();
    data.write(MANIFEST, b"file appendonly.aof.1.incr.aof seq 1 type x\n");
    let log = data.refusal(&[]);
    assert!(log.contains("*** FATAL AOF MANIFEST FILE ERROR ***"), "{log}");
    assert!(log.contains("Reading the manifest file, at line 1"), "{log}");
    assert!(log.contains("Unknown AOF file type"), "{log}");
    data.write(MANIFEST, b"file appendonly.aof.1.incr.aof seq 1 type i\n");
    let log = data.refusal(&[]);
    assert!(
        log.contains("Unable to obtain the AOF file appendonly.aof.1.incr.aof length. stat: No such file"),
        "{log}"
    );
}

#[test]
fn an_old_log_of_one_file_becomes_the_base() {
    for shards in SHARDS {
        let data = Data::new();
        data.write("appendonly.aof", RECORDS.as_bytes());
        data.write("appendonlydir/temp-rewriteaof-bg-1.aof", b"left over");
        let (server, mut client) = data.start(shards, &[]);
        assert!(server.log().contains("Successfully migrated an old-style AOF file (appendonly.aof)"));
        client.check("INCR a", ":2\r\n");
        drop(server);
        assert_eq!(data.files(), ["appendonly.aof", "appendonly.aof.1.incr.aof", "appendonly.aof.manifest"]);
        assert!(!data.path("appendonly.aof").exists());
        let (_server, mut client) = data.start(shards, &[]);
        client.check("GET a", "$1\r\n2\r\n");
        rewrite(&mut client);
        wait_for("old files go", || data.files().len() == 3);
        assert!(data.files().contains(&"appendonly.aof.2.base.aof".to_string()));
    }
}

/// A log on a disk without room.
fn full() -> Data {
    let data = Data::new();
    data.write(MANIFEST, b"file appendonly.aof.1.incr.aof seq 1 type i\n");
    std::os::unix::fs::symlink("/dev/full", data.path(INCREMENT)).unwrap();
    data
}

#[test]
fn without_room_always_ends_the_server_before_it_answers() {
    for shards in SHARDS {
        let data = full();
        let (mut server, mut client) = data.start(shards, &["--appendfsync", "always"]);
        client.send(b"SET a 1\r\n");
        assert_eq!(client.read_to_end(), b"");
        assert_eq!(server.wait_for_end().code(), Some(1));
        let log = server.log();
        assert!(log.contains("Error writing to the AOF file: No space left on device"), "{log}");
        assert!(
            log.contains("Can't recover from AOF write error when the AOF fsync policy is 'always'. Exiting"),
            "{log}"
        );
    }
}

#[test]
fn without_room_what_is_not_written_is_kept() {
    for shards in SHARDS {
        let data = full();
        let (server, mut client) = data.start(shards, &[]);
        assert_eq!(info(&mut client, "aof_last_write_status"), "ok");
        client.run("SET a 1");
        assert_eq!(info(&mut client, "aof_last_write_status"), "err");
        assert_ne!(info(&mut client, "aof_buffer_length"), "0");
        client.check("GET a", "$1\r\n1\r\n");
        // A rewrite cannot cut where records are missing.
        client.run("BGREWRITEAOF");
        wait_for("the rewrite fails", || info(&mut client, "aof_rewrite_in_progress") == "0");
        assert_eq!(info(&mut client, "aof_last_bgrewrite_status"), "err");
        assert_ne!(info(&mut client, "aof_buffer_length"), "0");
        // Whoever begins anew has all.
        client.check("CONFIG SET appendonly no", "+OK\r\n");
        wait_for("it is off", || info(&mut client, "aof_last_write_status") == "ok");
        client.check("CONFIG SET appendonly yes", "+OK\r\n");
        wait_for("there is a base", || info(&mut client, "aof_rewrite_in_progress") == "0");
        assert_eq!(info(&mut client, "aof_buffer_length"), "0");
        client.check("APPEND a 2", ":2\r\n");
        drop(server);
        let (_server, mut client) = data.start(shards, &[]);
        client.check("GET a", "$2\r\n12\r\n");
    }
}
