//! A disk that fails: the n-th call of the file system, or all from the n-th on, for every n until there is none left.
//!
//! The server may refuse to start and, with `appendfsync always`, may end, both with 1; else it goes on, tells clients,
//! and recovers. Whatever happened, the next start finds what was acknowledged.
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use super::support::{Client, Server, wait_until};
use super::{Data, info};

/// Runs at once: most of their time they wait.
const WORKERS: usize = 8;
/// Calls that a run makes at least.
const CALLS_MIN: usize = 30;

/// What was acknowledged.
type Known = BTreeMap<String, String>;

/// How calls fail.
#[derive(Clone, Copy, Debug)]
struct Plan {
    policy: &'static str,
    /// The rest of the plan.
    how: &'static str,
    /// All calls fail from the n-th on.
    lasts: bool,
}

fn copy(from: &Path, to: &Path) {
    for entry in std::fs::read_dir(from).unwrap().map(Result::unwrap) {
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            std::fs::create_dir_all(&target).unwrap();
            copy(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}

fn arguments<'a>(data: &'a Data, policy: &'a str) -> Vec<&'a str> {
    data.args(&["--appendonly", "yes", "--appendfsync", policy, "--save", "3600 1"])
}

/// A directory as a kill leaves it: a snapshot, a rewritten log, and half a command behind it.
fn template() -> (Data, Known) {
    let data = Data::new();
    let server = Server::start(2, &arguments(&data, "everysec"));
    let mut client = server.client();
    let mut known = Known::new();
    set(&mut client, "old", &mut known);
    client.check("SAVE", "+OK\r\n");
    client.run("BGREWRITEAOF");
    wait_until("the rewrite ends", || info(&mut client, "aof_rewrite_in_progress") == "0");
    wait_until("old files go", || data.files("appendonlydir").len() == 3);
    set(&mut client, "newer", &mut known);
    drop(server);
    let last = data.path().join("appendonlydir/appendonly.aof.2.incr.aof");
    let torn = [&std::fs::read(&last).unwrap()[..], b"*3\r\n$3\r\nSET\r\n$1"].concat();
    std::fs::write(last, torn).unwrap();
    (data, known)
}

/// Sets a few keys. `false`: the server is gone.
fn set(client: &mut Client, name: &str, known: &mut Known) -> bool {
    for n in 0..3 {
        let (key, value) = (format!("{name}{n}"), format!("{name}{}", "v".repeat(100 * n)));
        if client.try_send(format!("SET {key} {value}\r\n")).is_err() {
            return false;
        }
        let Ok(Some((reply, _))) = client.try_read() else { return false };
        if !reply.is_error() {
            known.insert(key, value);
        } else {
            assert!(reply.string().starts_with("MISCONF "), "{reply:?}");
        }
    }
    true
}

/// Begins something in the background, and waits for its end. `false`: the server is gone.
fn run_beside(client: &mut Client, command: &str) -> bool {
    if client.try_send(format!("{command}\r\n")).is_err() || !matches!(client.try_read(), Ok(Some(_))) {
        return false;
    }
    let mut is_there = true;
    wait_until("the background is quiet", || {
        let reply = client.try_send("INFO persistence\r\n").ok().and_then(|()| client.try_read().ok()?);
        is_there = reply.is_some();
        let text = reply.map_or_else(String::new, |reply| reply.0.string());
        let quiet = ["rdb_bgsave_in_progress:0", "aof_rewrite_in_progress:0"];
        !is_there || quiet.iter().all(|line| text.contains(line))
    });
    is_there
}

/// What clients do while the disk fails. `false`: the server is gone.
fn work(client: &mut Client, plan: Plan, known: &mut Known) -> bool {
    for (turn, command) in ["BGSAVE", "BGREWRITEAOF", "BGSAVE"].iter().enumerate() {
        if !set(client, &format!("turn{turn}:"), known) || !run_beside(client, command) {
            return false;
        }
        if plan.lasts && turn != 1 && info(client, "rdb_last_bgsave_status") == "err" {
            let reply = client.run("SET refused 1").string();
            assert!(reply.starts_with("MISCONF "), "{command}: {reply}");
            assert_eq!(client.run("GET old0").string(), "old");
        }
    }
    set(client, "last", known)
}

/// Waits until the disk is well again for the server.
fn recover(client: &mut Client, known: &mut Known) {
    wait_until("a snapshot succeeds", || {
        client.run("BGSAVE");
        info(client, "rdb_last_bgsave_status") == "ok" && info(client, "rdb_bgsave_in_progress") == "0"
    });
    wait_until("the log is well", || {
        info(client, "aof_last_write_status") == "ok" && info(client, "aof_buffer_length") == "0"
    });
    let before = known.len();
    wait_until("writes are taken", || !client.run("SET recovered yes").is_error());
    assert!(set(client, "healed", known) && known.len() == before + 3, "{known:?}");
    assert!(run_beside(client, "BGREWRITEAOF"));
    assert_eq!(info(client, "aof_last_bgrewrite_status"), "ok");
}

/// One run. `false`: no call was left to fail.
fn run(template: &(Data, Known), plan: Plan, at: usize) -> bool {
    let (data, mut known) = (Data::new(), template.1.clone());
    copy(template.0.path(), data.path());
    let args = arguments(&data, plan.policy);
    let faults = format!("at={at} {}", plan.how);
    let mut server = Server::launch(1 + at % 3, &args, &[("PERIGEE_DISK_FAULTS", &faults)]);
    let mut has_failed = true;
    if server.wait_for_line("Ready to accept connections") {
        let mut client = server.client();
        if work(&mut client, plan, &mut known) {
            has_failed = client.run("DEBUG DISK-FAULTS").int() > 0;
            recover(&mut client, &mut known);
        } else {
            assert_eq!(server.wait_for_end().code(), Some(1), "{}", server.log());
            assert_eq!(plan.policy, "always", "{}", server.log());
        }
    } else {
        assert_eq!(server.wait_for_end().code(), Some(1), "{}", server.log());
    }
    assert!(!server.log().contains("panicked"), "{}", server.log());
    drop(server);
    let server = Server::start(1 + (at + 1) % 3, &args);
    let mut client = server.client();
    for (key, value) in &known {
        assert_eq!(
            client.run(&format!("GET {key}")).string(),
            *value,
            "{key} after a failure at {at} of {plan:?}"
        );
    }
    assert!(!data.files("appendonlydir").iter().any(|name| name.starts_with("temp-")));
    // The snapshot is whole, too.
    client.check("DEBUG RELOAD NOSAVE", "+OK\r\n");
    client.check("GET old0", "$3\r\nold\r\n");
    has_failed
}

/// Runs with a failure at each call.
fn at_each_call(plan: Plan) {
    let template = template();
    let (next, end) = (AtomicUsize::new(1), AtomicUsize::new(usize::MAX));
    let failures: Mutex<Vec<usize>> = Mutex::default();
    thread::scope(|scope| {
        for _ in 0..WORKERS {
            scope.spawn(|| {
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    if at >= end.load(Ordering::Relaxed) {
                        return;
                    }
                    match std::panic::catch_unwind(|| run(&template, plan, at)) {
                        Ok(true) => {}
                        Ok(false) => drop(end.fetch_min(at, Ordering::Relaxed)),
                        Err(_) => failures.lock().unwrap_or_else(PoisonError::into_inner).push(at),
                    }
                }
            });
        }
    });
    let failures = failures.into_inner().unwrap();
    assert!(failures.is_empty(), "{plan:?}: failures at {failures:?}");
    let calls = end.load(Ordering::Relaxed) - 1;
    eprintln!("{plan:?}: {calls} calls");
    assert!(calls >= CALLS_MIN, "{calls}");
}

#[test]
fn one_call_fails_and_half_of_a_write_is_done() {
    at_each_call(Plan { policy: "everysec", how: "for=1 cut errno=5", lasts: false });
}

#[test]
fn one_call_fails_while_each_reply_promises_all() {
    at_each_call(Plan { policy: "always", how: "for=1 cut", lasts: false });
}

#[test]
fn all_calls_fail_until_the_disk_is_well_again() {
    at_each_call(Plan { policy: "everysec", how: "cut", lasts: true });
}
