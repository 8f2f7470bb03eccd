//! Sections about the process: server, clients, replication, cpu, modules, cluster.
use std::sync::atomic::Ordering;

use super::Text;
use crate::base::clock;
use crate::cmd::cx::ReadCx;
use crate::config::{P, REDIS_VERSION, VERSION};
use crate::host::{ClientInfo, mark};
use crate::rt::sys;
use crate::store::Store;

/// The operating system as `uname` tells it.
fn os() -> String {
    let read = |what: &str| {
        let text = std::fs::read_to_string(format!("/proc/sys/kernel/{what}")).unwrap_or_default();
        text.trim().to_string()
    };
    format!("{} {} {}", read("ostype"), read("osrelease"), std::env::consts::ARCH)
}

fn path_text(path: std::io::Result<std::path::PathBuf>) -> String {
    path.map(|path| path.display().to_string()).unwrap_or_default()
}

pub(super) fn server(cx: &ReadCx<'_>, text: &mut Text) {
    let (host, settings) = (cx.host, cx.host.settings());
    let uptime_seconds = host.started.elapsed().as_secs();
    text.section("Server");
    text.field("redis_version", REDIS_VERSION);
    text.field("perigee_version", VERSION);
    text.field("redis_git_sha1", "00000000");
    text.field("redis_git_dirty", 0);
    text.field("redis_build_id", 0);
    text.field("redis_mode", "standalone");
    text.field("os", os());
    text.field("arch_bits", usize::BITS);
    text.field("multiplexing_api", host.io_driver);
    text.field("process_id", std::process::id());
    text.field("process_supervised", "no");
    text.field("run_id", &host.run_id);
    text.field("tcp_port", settings.int(P::PORT));
    text.field("server_time_usec", clock::wall_us());
    text.field("uptime_in_seconds", uptime_seconds);
    text.field("uptime_in_days", uptime_seconds / 86_400);
    text.field("hz", settings.int(P::HZ));
    text.field("configured_hz", settings.int(P::HZ));
    text.field("lru_clock", cx.now.access);
    text.field("executable", path_text(std::env::current_exe()));
    let config_file =
        host.config_file.as_ref().map(|file| path_text(file.canonicalize())).unwrap_or_default();
    text.field("config_file", config_file);
    text.field("io_threads_active", 0);
    text.field("shards", host.shards());
    text.field("io_driver", host.io_driver);
}

pub(super) fn clients(cx: &ReadCx<'_>, text: &mut Text) {
    let all = cx.host.clients.all();
    let largest = |pick: fn(&ClientInfo) -> u64| all.iter().map(|info| pick(info)).max().unwrap_or(0);
    text.section("Clients");
    text.field("connected_clients", all.len());
    text.field("cluster_connections", 0);
    text.field("maxclients", cx.host.settings().int(P::MAXCLIENTS));
    text.field("client_recent_max_input_buffer", largest(|info| info.query_capacity.load(Ordering::Relaxed)));
    text.field("client_recent_max_output_buffer", largest(|info| info.output_bytes.load(Ordering::Relaxed)));
    let count = |is: &dyn Fn(&ClientInfo) -> bool| all.iter().filter(|info| is(info)).count();
    let paused = count(&|info| info.has(mark::PAUSED)) as u64;
    text.field("blocked_clients", cx.host.sum(|c| &c.blocked_clients) + paused);
    text.field("tracking_clients", cx.host.trackers.len());
    text.field("pubsub_clients", count(&|info| info.is_subscriber()));
    text.field("watching_clients", count(&|info| info.watched.load(Ordering::Relaxed) > 0));
    text.field("clients_in_timeout_table", cx.host.sum(|c| &c.timed_waits));
    let keys = |count: fn(&Store) -> usize| cx.all().map(count).sum::<usize>();
    text.field("total_watched_keys", keys(Store::watched_keys));
    text.field("total_blocking_keys", keys(|store| store.waited_keys(false)));
    text.field("total_blocking_keys_on_nokey", keys(|store| store.waited_keys(true)));
}

pub(super) fn replication(cx: &ReadCx<'_>, text: &mut Text) {
    text.section("Replication");
    text.field("role", "master");
    text.field("connected_slaves", 0);
    text.field("master_failover_state", "no-failover");
    text.field("master_replid", cx.host.repl_id.lock());
    text.field("master_replid2", "0".repeat(40));
    text.field("master_repl_offset", 0);
    text.field("second_repl_offset", -1);
    text.field("repl_backlog_active", 0);
    text.field("repl_backlog_size", cx.host.settings().memory(P::REPL_BACKLOG_SIZE));
    text.field("repl_backlog_first_byte_offset", 0);
    text.field("repl_backlog_histlen", 0);
}

pub(super) fn cpu(_: &ReadCx<'_>, text: &mut Text) {
    let [(user, system), (thread_user, thread_system)] = sys::cpu_seconds();
    text.section("CPU");
    text.field("used_cpu_sys", format_args!("{system:.6}"));
    text.field("used_cpu_user", format_args!("{user:.6}"));
    text.field("used_cpu_sys_children", "0.000000");
    text.field("used_cpu_user_children", "0.000000");
    text.field("used_cpu_sys_main_thread", format_args!("{thread_system:.6}"));
    text.field("used_cpu_user_main_thread", format_args!("{thread_user:.6}"));
}

pub(super) fn modules(_: &ReadCx<'_>, text: &mut Text) {
    text.section("Modules");
}

pub(super) fn cluster(cx: &ReadCx<'_>, text: &mut Text) {
    text.section("Cluster");
    text.field("cluster_enabled", u8::from(cx.host.settings().bool(P::CLUSTER_ENABLED)));
}
