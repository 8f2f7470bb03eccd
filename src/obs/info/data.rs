//! Sections about the data: memory, persistence, keyspace.
use std::sync::atomic::Ordering::Relaxed;

use super::Text;
use crate::cmd::cx::ReadCx;
use crate::config::P;
use crate::host::{Allocated, Loading, ratio};
use crate::rt::sys;
use crate::script;
use crate::store::{KeyCounts, count_keys};

/// Bytes with two decimals and a unit, as INFO prints them.
fn human_bytes(bytes: u64) -> String {
    if bytes < 1024 {
        return format!("{bytes}B");
    }
    let (mut number, mut unit) = (bytes as f64 / 1024.0, 0);
    const UNITS: &[u8] = b"KMGTP";
    while number >= 1024.0 && unit + 1 < UNITS.len() {
        number /= 1024.0;
        unit += 1;
    }
    format!("{number:.2}{}", char::from(UNITS[unit]))
}

fn bytes_and_human(text: &mut Text, name: &str, bytes: u64) {
    text.field(name, bytes);
    text.field(&format!("{name}_human"), human_bytes(bytes));
}

pub(super) fn memory(cx: &ReadCx<'_>, text: &mut Text) {
    let memory = cx.host.memory();
    let settings = cx.host.settings();
    let Allocated { allocated, active, resident } = memory.allocator;
    text.section("Memory");
    bytes_and_human(text, "used_memory", allocated);
    bytes_and_human(text, "used_memory_rss", memory.rss);
    bytes_and_human(text, "used_memory_peak", memory.peak);
    text.field("used_memory_peak_perc", format_args!("{:.2}%", 100.0 * ratio(allocated, memory.peak)));
    text.field("used_memory_overhead", memory.startup.min(allocated));
    text.field("used_memory_startup", memory.startup);
    text.field("used_memory_dataset", memory.dataset());
    let share = 100.0 * ratio(memory.dataset(), allocated.saturating_sub(memory.startup));
    text.field("used_memory_dataset_perc", format_args!("{share:.2}%"));
    text.field("allocator_allocated", allocated);
    text.field("allocator_active", active);
    text.field("allocator_resident", resident);
    text.field("allocator_muzzy", 0);
    bytes_and_human(text, "total_system_memory", sys::memory_bytes().1);
    text.zeros(&["used_memory_lua", "used_memory_vm_eval"]);
    text.field("used_memory_lua_human", "0B");
    let known = script::commands::known();
    let (libraries, functions) = known.libraries.counts();
    let (script_bytes, function_bytes) = (known.scripts.bytes(), known.libraries.bytes());
    text.field("used_memory_scripts_eval", script_bytes);
    text.field("number_of_cached_scripts", known.scripts.count());
    text.field("number_of_functions", functions);
    text.field("number_of_libraries", libraries);
    text.zeros(&["used_memory_vm_functions", "used_memory_vm_total"]);
    text.field("used_memory_vm_total_human", "0B");
    text.field("used_memory_functions", function_bytes);
    bytes_and_human(text, "used_memory_scripts", script_bytes + function_bytes as u64);
    bytes_and_human(text, "maxmemory", settings.memory(P::MAXMEMORY));
    text.field("maxmemory_policy", settings.choice(P::MAXMEMORY_POLICY));
    let mut fragmentation = |name: &str, unit: &str, outer: u64, inner: u64| {
        text.field(&format!("{name}_ratio"), format_args!("{:.2}", ratio(outer, inner)));
        text.field(&format!("{name}_{unit}"), outer as i64 - inner as i64);
    };
    fragmentation("allocator_frag", "bytes", active, allocated);
    fragmentation("allocator_rss", "bytes", resident, active);
    fragmentation("rss_overhead", "bytes", memory.rss, resident);
    fragmentation("mem_fragmentation", "bytes", memory.rss, allocated);
    text.zeros(&[
        "mem_not_counted_for_evict",
        "mem_replication_backlog",
        "mem_total_replication_buffers",
        "mem_replica_full_sync_buffer",
        "mem_clients_slaves",
    ]);
    text.field("mem_clients_normal", cx.host.sum(|c| &c.client_bytes));
    text.field("mem_cluster_links", 0);
    text.field("mem_aof_buffer", cx.host.journal.status().kept_bytes);
    text.field("mem_allocator", "jemalloc-5.3.0");
    text.zeros(&["mem_overhead_db_hashtable_rehashing", "active_defrag_running"]);
    text.field("lazyfree_pending_objects", cx.host.lazy_free.pending_objects());
    text.field("lazyfreed_objects", cx.host.lazy_free.freed_objects());
}

pub(super) fn persistence(cx: &ReadCx<'_>, text: &mut Text) {
    let (state, loading) = (&cx.host.persistence, &cx.host.persistence.loading);
    let (is_loading, now_s) = (loading.since_s.load(Relaxed) > 0, cx.now.ms / 1000);
    text.section("Persistence");
    text.field("loading", u8::from(is_loading));
    text.zeros(&["async_loading", "current_cow_peak", "current_cow_size", "current_cow_size_age"]);
    let (done, total) = (state.keys_done.load(Relaxed), state.keys_total.load(Relaxed));
    text.field("current_fork_perc", format_args!("{:.2}", 100.0 * ratio(done, total)));
    text.field("current_save_keys_processed", done);
    text.field("current_save_keys_total", total);
    text.field("rdb_changes_since_last_save", state.unsaved(cx.host.sum(|c| &c.dirty)));
    let began_s = state.save_began_s.load(Relaxed);
    text.field("rdb_bgsave_in_progress", u8::from(began_s >= 0));
    text.field("rdb_last_save_time", state.saved_s.load(Relaxed));
    text.field("rdb_last_bgsave_status", if state.save_failed.load(Relaxed) { "err" } else { "ok" });
    text.field("rdb_last_bgsave_time_sec", state.save_took_s.load(Relaxed));
    let current_s = if began_s >= 0 { (now_s as i64 - began_s).max(0) } else { -1 };
    text.field("rdb_current_bgsave_time_sec", current_s);
    text.field("rdb_saves", state.saves.load(Relaxed));
    text.zeros(&["rdb_last_cow_size"]);
    text.field("rdb_last_load_keys_expired", loading.expired.load(Relaxed));
    text.field("rdb_last_load_keys_loaded", loading.keys.load(Relaxed));
    let status = cx.host.journal.status();
    let settings = cx.host.settings();
    let ok = |is_ok: bool| if is_ok { "ok" } else { "err" };
    let is_scheduled = {
        let rewrites = cx.host.rewrites.lock();
        let seconds = |seconds: Option<u64>| seconds.map_or(-1, |seconds| seconds as i64);
        text.field("aof_enabled", u8::from(settings.bool(P::APPENDONLY)));
        text.field("aof_rewrite_in_progress", u8::from(rewrites.is_running()));
        text.field("aof_rewrite_scheduled", u8::from(rewrites.is_scheduled));
        text.field("aof_last_rewrite_time_sec", seconds(rewrites.last_seconds));
        text.field("aof_current_rewrite_time_sec", seconds(rewrites.seconds()));
        text.field("aof_last_bgrewrite_status", ok(!rewrites.has_failed));
        text.field("aof_rewrites", rewrites.count);
        text.field("aof_rewrites_consecutive_failures", rewrites.failures);
        rewrites.is_scheduled
    };
    text.field("aof_last_write_status", ok(status.is_well));
    text.zeros(&["aof_last_cow_size", "module_fork_in_progress", "module_fork_last_cow_size"]);
    if settings.bool(P::APPENDONLY) {
        text.field("aof_current_size", status.current_bytes);
        text.field("aof_base_size", status.base_bytes);
        text.field("aof_pending_rewrite", u8::from(is_scheduled));
        text.field("aof_buffer_length", status.kept_bytes);
        text.field("aof_pending_bio_fsync", status.flushes_under_way);
        text.field("aof_delayed_fsync", status.delayed);
    }
    if is_loading {
        self::loading(loading, now_s, text);
    }
}

fn loading(loading: &Loading, now_s: u64, text: &mut Text) {
    let (percent, left_s) = loading.progress(now_s);
    text.field("loading_start_time", loading.since_s.load(Relaxed));
    text.field("loading_total_bytes", loading.total_bytes.load(Relaxed));
    text.field("loading_rdb_used_mem", loading.used_memory.load(Relaxed));
    text.field("loading_loaded_bytes", loading.loaded_bytes.load(Relaxed));
    text.field("loading_loaded_perc", format_args!("{percent:.2}"));
    text.field("loading_eta_seconds", left_s);
}

pub(super) fn keyspace(cx: &ReadCx<'_>, text: &mut Text) {
    text.section("Keyspace");
    for index in 0..cx.host.settings().int(P::DATABASES) as u32 {
        let KeyCounts { keys, deadlines, dated_parts } = count_keys(cx.all(), index);
        if keys > 0 {
            // These four and no more: there are readers that count them.
            text.line(format_args!(
                "db{index}:keys={keys},expires={deadlines},avg_ttl=0,subexpiry={dated_parts}"
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_for_people() {
        let cases = [
            (0, "0B"),
            (1023, "1023B"),
            (1024, "1.00K"),
            (692_952, "676.71K"),
            (25_276_510_208, "23.54G"),
            (1 << 20, "1.00M"),
            (u64::MAX, "16384.00P"),
        ];
        for (bytes, text) in cases {
            assert_eq!(human_bytes(bytes), text);
        }
    }
}
