//! Behaviour over the wire: the real binary on a free port, on 1, 2 and 4 shards.
#[path = "../support/mod.rs"]
mod support;

mod aof;
mod blocking;
mod client_memory;
mod clients;
mod closing;
mod cuts;
mod events;
mod frequency;
mod keyspace;
mod kinds;
mod limits;
mod monitor;
mod ordering;
mod process;
mod protocol;
mod pubsub;
mod rewrites;
mod slow_log;
mod snapshots;
mod tracking;
mod transactions;

use support::{Client, Server};

/// Numbers of shards that everything is tried on.
const SHARDS: [usize; 3] = [1, 2, 4];

/// Runs a test on a fresh server of each number of shards.
fn on_all_shards(test: impl Fn(&Server, &mut Client)) {
    for shards in SHARDS {
        let server = Server::start(shards, &[]);
        let mut client = server.client();
        eprintln!("on {shards} shard(s)");
        test(&server, &mut client);
    }
}

/// A number of INFO.
fn info_field(client: &mut Client, section: &str, field: &str) -> u64 {
    let info = client.run(&format!("INFO {section}")).string();
    let value = info.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
    value.and_then(|value| value.trim().parse().ok()).unwrap_or_else(|| panic!("no {field} in {info}"))
}

/// Runs commands in order and compares the exact bytes of their replies, on every number of shards: one command a
/// line and its reply behind `=>`, in which `\r\n` stands for itself and ends every reply.
#[track_caller]
fn check(script: &str) {
    on_all_shards(|_, client| {
        for line in script.lines().map(str::trim).filter(|l| !l.is_empty() && !l.starts_with('#')) {
            let (command, reply) = line.split_once("=>").unwrap_or_else(|| panic!("no reply for {line}"));
            let reply = format!("{}\r\n", reply.trim().replace("\\r\\n", "\r\n"));
            client.check(command.trim(), reply);
        }
        client.expect_silence();
    });
}

#[test]
fn the_door_of_checks_works() {
    check(
        r#"
        SET a b             => +OK
        GET a               => $1\r\nb
        GET missing         => $-1
        SET "two words" "\x00\r\n" => +OK
        STRLEN "two words"  => :3
        MGET a missing      => *2\r\n$1\r\nb\r\n$-1
        GET                 => -ERR wrong number of arguments for 'get' command
        "#,
    );
}
