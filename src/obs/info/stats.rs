//! Sections of counters: stats, commandstats, errorstats, latencystats.
use std::collections::BTreeMap;

use super::Text;
use crate::cmd::cx::ReadCx;
use crate::cmd::table::table;
use crate::config::P;
use crate::host::hub::Kind;
use crate::host::{CommandCounters, Host, TOO_MANY_ERRORS};
use crate::obs::latency;
use crate::rt::sys;

pub(super) fn stats(cx: &ReadCx<'_>, text: &mut Text) {
    let host = cx.host;
    host.sample();
    text.section("Stats");
    traffic(host, text);
    text.field("rejected_connections", host.sum(|c| &c.refused_connections));
    text.zeros(&["sync_full", "sync_partial_ok", "sync_partial_err"]);
    text.field("expired_subkeys", host.sum(|c| &c.expired_subkeys));
    // The same by its name in Valkey.
    text.field("expired_fields", host.sum(|c| &c.expired_subkeys));
    text.field("expired_keys", host.sum(|c| &c.expired_keys));
    text.field("expired_stale_perc", "0.00");
    text.zeros(&["expired_time_cap_reached_count", "expire_cycle_cpu_milliseconds", "evicted_keys"]);
    text.field("evicted_clients", host.sum(|c| &c.evicted_clients));
    text.zeros(&["evicted_scripts", "total_eviction_exceeded_time", "current_eviction_exceeded_time"]);
    text.field("keyspace_hits", host.sum(|c| &c.hits));
    text.field("keyspace_misses", host.sum(|c| &c.misses));
    text.field("pubsub_channels", host.hub.subjects(Kind::Channel));
    text.field("pubsub_patterns", host.hub.subjects(Kind::Pattern));
    text.field("pubsubshard_channels", host.hub.subjects(Kind::ShardChannel));
    text.zeros(&[
        "latest_fork_usec",
        "total_forks",
        "migrate_cached_sockets",
        "slave_expires_tracked_keys",
        "active_defrag_hits",
        "active_defrag_misses",
        "active_defrag_key_hits",
        "active_defrag_key_misses",
        "total_active_defrag_time",
        "current_active_defrag_time",
    ]);
    text.field("tracking_total_keys", host.sum(|c| &c.tracked_keys));
    text.field("tracking_total_items", host.sum(|c| &c.tracked_reads));
    text.field("tracking_total_prefixes", host.trackers.prefixes());
    text.field("unexpected_error_replies", 0);
    text.field("total_error_replies", host.sum(|c| &c.error_replies));
    text.field("dump_payload_sanitizations", 0);
    text.field("total_reads_processed", host.sum(|c| &c.reads));
    text.field("total_writes_processed", host.sum(|c| &c.writes));
    text.zeros(&["io_threaded_reads_processed", "io_threaded_writes_processed"]);
    text.field("client_query_buffer_limit_disconnections", host.sum(|c| &c.query_limit_closed));
    text.field("client_output_buffer_limit_disconnections", host.sum(|c| &c.output_limit_closed));
    text.zeros(&["reply_buffer_shrinks", "reply_buffer_expands"]);
    text.zeros(&[
        "acl_access_denied_auth",
        "acl_access_denied_cmd",
        "acl_access_denied_key",
        "acl_access_denied_channel",
    ]);
    event_loop(host, text);
    shards(host, text);
}

/// What Redis tells of its event loop: here turns of connections, and the time that the process has spent.
fn event_loop(host: &Host, text: &mut Text) {
    let rates = host.gauges.rates();
    let cycles: u64 = host.counters.iter().flat_map(|shard| &shard.commands).map(|c| c.cycles.get()).sum();
    let [(user, system), _] = sys::cpu_seconds();
    text.field("eventloop_cycles", host.sum(|c| &c.reads));
    text.field("eventloop_duration_sum", format_args!("{:.0}", (user + system) * 1e6));
    text.field("eventloop_duration_cmd_sum", format_args!("{:.0}", cycles as f64 / host.cycles_per_us()));
    text.field("instantaneous_eventloop_cycles_per_sec", format_args!("{:.0}", rates.reads));
    let us = if rates.reads > 0.0 { rates.cpu * 1e6 / rates.reads } else { 0.0 };
    text.field("instantaneous_eventloop_duration_usec", format_args!("{us:.0}"));
}

/// What each shard's thread reads and writes.
pub(super) fn threads(cx: &ReadCx<'_>, text: &mut Text) {
    text.section("Threads");
    for (number, shard) in cx.host.counters.iter().enumerate() {
        let (clients, reads, writes) = (shard.clients.get(), shard.reads.get(), shard.writes.get());
        text.line(format_args!("io_thread_{number}:clients={clients},reads={reads},writes={writes}"));
    }
}

fn traffic(host: &Host, text: &mut Text) {
    let rates = host.gauges.rates();
    text.field("total_connections_received", host.sum(|c| &c.connections));
    text.field("total_commands_processed", host.processed());
    text.field("instantaneous_ops_per_sec", rates.commands.round());
    text.field("total_net_input_bytes", host.sum(|c| &c.net_in));
    text.field("total_net_output_bytes", host.sum(|c| &c.net_out));
    text.zeros(&["total_net_repl_input_bytes", "total_net_repl_output_bytes"]);
    text.field("instantaneous_input_kbps", format_args!("{:.2}", rates.net_in / 1024.0));
    text.field("instantaneous_output_kbps", format_args!("{:.2}", rates.net_out / 1024.0));
    text.field("instantaneous_input_repl_kbps", "0.00");
    text.field("instantaneous_output_repl_kbps", "0.00");
}

/// What working together costs the shards.
fn shards(host: &Host, text: &mut Text) {
    text.field("in_place_reads", host.sum(|c| &c.in_place_reads));
    text.field("mesh_messages", host.sum(|c| &c.mesh_messages));
    text.field("mesh_commands", host.sum(|c| &c.mesh_commands));
    text.field("parks", host.sum(|c| &c.parks));
    text.field("holds", host.sum(|c| &c.holds));
    text.field("hold_waits", host.sum(|c| &c.hold_waits));
}

/// One command's counters, summed over the shards.
fn command_line(
    name: &str,
    sum: impl Fn(fn(&CommandCounters) -> u64) -> u64,
    cycles_per_us: f64,
) -> Option<String> {
    let (calls, rejected, failed) = (sum(|c| c.calls()), sum(|c| c.rejected.get()), sum(|c| c.failed.get()));
    if calls + rejected + failed == 0 {
        return None;
    }
    let us = sum(|c| c.cycles.get()) as f64 / cycles_per_us;
    let us_per_call = if calls == 0 { 0.0 } else { us / calls as f64 };
    Some(format!(
        "cmdstat_{name}:calls={calls},usec={us:.0},usec_per_call={us_per_call:.2},\
         rejected_calls={rejected},failed_calls={failed}"
    ))
}

pub(super) fn commandstats(cx: &ReadCx<'_>, text: &mut Text) {
    text.section("Commandstats");
    let (host, cycles_per_us) = (cx.host, cx.host.cycles_per_us());
    for row in table().rows() {
        let sum = |pick: fn(&CommandCounters) -> u64| {
            host.counters.iter().filter_map(|shard| shard.commands.get(row.id as usize)).map(pick).sum()
        };
        if let Some(line) = command_line(row.spec.name, sum, cycles_per_us) {
            text.line(line);
        }
    }
}

pub(super) fn errorstats(cx: &ReadCx<'_>, text: &mut Text) {
    text.section("Errorstats");
    let mut all: BTreeMap<String, u64> = BTreeMap::new();
    for shard in &cx.host.counters {
        for (code, count) in shard.errors.lock().iter() {
            *all.entry(code.clone()).or_default() += count;
        }
    }
    if all.contains_key(TOO_MANY_ERRORS) {
        all = BTreeMap::from([(TOO_MANY_ERRORS.to_string(), 1)]);
    }
    for (code, count) in all {
        text.line(format_args!("errorstat_{code}:count={count}"));
    }
}

pub(super) fn latencystats(cx: &ReadCx<'_>, text: &mut Text) {
    text.section("Latencystats");
    let settings = cx.host.settings();
    if !settings.bool(P::LATENCY_TRACKING) {
        return;
    }
    for row in table().rows() {
        if let Some(durations) = latency::durations(cx.host, row) {
            let percentile = |p: &f64| format!("p{p}={:.3}", durations.percentile_us(*p));
            let list: Vec<String> = settings.percentiles().iter().map(percentile).collect();
            text.line(format_args!("latency_percentiles_usec_{}:{}", row.spec.name, list.join(",")));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_commandstats() {
        let counters = CommandCounters::default();
        let line = |counters: &CommandCounters| command_line("get", |pick| pick(counters), 1000.0);
        assert_eq!(line(&counters), None);
        (0..4).for_each(|_| counters.add_call(2500, true));
        counters.failed.add(1);
        let want = "cmdstat_get:calls=4,usec=10,usec_per_call=2.50,rejected_calls=0,failed_calls=1";
        assert_eq!(line(&counters).unwrap(), want);
        let rejected = CommandCounters::default();
        rejected.rejected.add(1);
        assert!(line(&rejected).unwrap().contains("usec_per_call=0.00,rejected_calls=1"));
    }
}
