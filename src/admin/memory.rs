//! MEMORY: where the bytes are, and what to do about them.
use crate::cmd::cx::{ConnCx, ReadCx};
use crate::cmd::docs;
use crate::cmd::spec::{Done, Group::Server as S, Route, Spec, flag};
use crate::config::P;
use crate::host::{Allocated, Memory, ratio};
use crate::rt::sys;
use crate::store::count_keys;
use crate::wire::{Args, Error, Out};

const REPORT: &[&str] = &["nondeterministic_output", "request_policy:all_shards", "response_policy:special"];
const ALLOCATOR: &str = "Depends on how much memory is allocated.";

/// The rows.
pub const COMMANDS: &[Spec] =
    &[Spec::container("memory", SUBCOMMANDS).doc(S, "4.0.0", "Holds the commands about memory.")];

// memory|usage stands with the generic family: append it here.
const SUBCOMMANDS: &[Spec] = &[
    Spec::conn("memory|doctor", "", doctor)
        .doc(S, "4.0.0", "Says in words what looks wrong with the memory.")
        .without(flag::LOADING | flag::STALE)
        .tips(REPORT),
    Spec::conn("memory|help", "", help).doc(S, "4.0.0", "Tells what each subcommand does."),
    Spec::conn("memory|malloc-stats", "", malloc_stats)
        .doc(S, "4.0.0", "Returns the report of the allocator.")
        .cost(ALLOCATOR)
        .without(flag::LOADING | flag::STALE)
        .tips(REPORT),
    Spec::conn("memory|purge", "", purge)
        .doc(S, "4.0.0", "Asks the allocator to give unused pages back to the system.")
        .cost(ALLOCATOR)
        .without(flag::LOADING | flag::STALE)
        .tips(&["request_policy:all_shards", "response_policy:all_succeeded"]),
    Spec::read("memory|stats", "", stats)
        .doc(S, "4.0.0", "Tells where the memory of the process is.")
        .without(flag::READONLY | flag::NO_INTERCEPT)
        .route(Route::All)
        .tips(REPORT),
    crate::cmd::generic::MEMORY_USAGE,
];

fn help(_: &mut ConnCx<'_>, _: &mut Args<'_>, out: &mut Out) -> Done {
    docs::help("memory", out);
    Ok(())
}

fn purge(_: &mut ConnCx<'_>, _: &mut Args<'_>, out: &mut Out) -> Done {
    if !sys::purge() {
        return Err(Error::err("Error purging dirty pages"));
    }
    out.ok();
    Ok(())
}

fn malloc_stats(_: &mut ConnCx<'_>, _: &mut Args<'_>, out: &mut Out) -> Done {
    out.verbatim("txt", &sys::malloc_stats());
    Ok(())
}

fn doctor(cx: &mut ConnCx<'_>, _: &mut Args<'_>, out: &mut Out) -> Done {
    out.verbatim("txt", diagnosis(&cx.host.memory()).as_bytes());
    Ok(())
}

/// What looks wrong, in words.
fn diagnosis(memory: &Memory) -> String {
    const BYTES_MIN: u64 = 5 << 20;
    let Allocated { allocated, active, resident } = memory.allocator;
    if allocated < BYTES_MIN {
        return "There is too little data here for a diagnosis; it takes some megabytes.\n".to_string();
    }
    let signs = [
        (
            ratio(memory.peak, allocated) > 1.5,
            "Peak: much more memory was in use once than is now. What was freed may stay with the process for a \
             while; MEMORY PURGE gives it back.",
        ),
        (
            ratio(active, allocated) > 1.1 && active - allocated > 10 << 20,
            "Fragmentation: live allocations are thinly spread over their pages. Rewriting large parts of the data \
             packs them.",
        ),
        (
            ratio(resident, active) > 1.1 && resident - active > 10 << 20,
            "Unused pages: the allocator keeps pages that nothing lives in. MEMORY PURGE gives them back.",
        ),
        (
            memory.rss > resident && ratio(memory.rss, resident) > 1.1 && memory.rss - resident > 10 << 20,
            "Overhead: the process holds much memory that is not the allocator's.",
        ),
    ];
    let found: String =
        signs.iter().filter(|(present, _)| *present).map(|(_, words)| format!(" * {words}\n")).collect();
    if found.is_empty() { "Nothing looks wrong with the memory.\n".to_string() } else { found }
}

/// A number of the reply.
enum Figure {
    Int(i64),
    Float(f64),
}

fn stats(cx: &ReadCx<'_>, _: &mut Args<'_>, out: &mut Out) -> Done {
    let memory = cx.host.memory();
    let databases: Vec<u32> = (0..cx.host.settings().int(P::DATABASES) as u32)
        .filter(|index| count_keys(cx.all(), *index).keys > 0)
        .collect();
    let keys: u64 = databases.iter().map(|index| count_keys(cx.all(), *index).keys as u64).sum();
    let figures = figures(&memory, keys);
    out.map(figures.len() + databases.len());
    let (before, after) = figures.split_at(12);
    for (name, figure) in before {
        write_figure(name, figure, out);
    }
    for index in databases {
        out.bulk(format!("db.{index}").as_bytes());
        out.map(2);
        // Entries need no table beside the keys themselves.
        for name in ["overhead.hashtable.main", "overhead.hashtable.expires"] {
            out.bulk(name.as_bytes());
            out.int(0);
        }
    }
    for (name, figure) in after {
        write_figure(name, figure, out);
    }
    Ok(())
}

fn write_figure(name: &str, figure: &Figure, out: &mut Out) {
    out.bulk(name.as_bytes());
    match figure {
        Figure::Int(number) => out.int(*number),
        Figure::Float(number) => out.double(*number),
    }
}

/// Everything but the databases, in the order of Redis; databases follow the twelfth.
fn figures(memory: &Memory, keys: u64) -> Vec<(&'static str, Figure)> {
    use Figure::{Float, Int};
    let Allocated { allocated, active, resident } = memory.allocator;
    let int = |bytes: u64| Int(bytes as i64);
    let beyond = |outer: u64, inner: u64| Int(outer as i64 - inner as i64);
    let startup = memory.startup.min(allocated);
    vec![
        ("peak.allocated", int(memory.peak)),
        ("total.allocated", int(allocated)),
        ("startup.allocated", int(memory.startup)),
        ("replication.backlog", Int(0)),
        ("replica.fullsync.buffer", Int(0)),
        ("clients.slaves", Int(0)),
        ("clients.normal", Int(0)),
        ("cluster.links", Int(0)),
        ("aof.buffer", Int(0)),
        ("lua.caches", Int(0)),
        ("functions.caches", Int(0)),
        ("script.VMs", Int(0)),
        ("overhead.db.hashtable.lut", Int(0)),
        ("overhead.db.hashtable.rehashing", Int(0)),
        ("overhead.total", int(startup)),
        ("db.dict.rehashing.count", Int(0)),
        ("keys.count", int(keys)),
        ("keys.bytes-per-key", int(memory.dataset().checked_div(keys).unwrap_or(0))),
        ("dataset.bytes", int(memory.dataset())),
        ("dataset.percentage", Float(100.0 * ratio(memory.dataset(), allocated - startup))),
        ("peak.percentage", Float(100.0 * ratio(allocated, memory.peak))),
        ("allocator.allocated", int(allocated)),
        ("allocator.active", int(active)),
        ("allocator.resident", int(resident)),
        ("allocator.muzzy", Int(0)),
        ("allocator-fragmentation.ratio", Float(ratio(active, allocated))),
        ("allocator-fragmentation.bytes", beyond(active, allocated)),
        ("allocator-rss.ratio", Float(ratio(resident, active))),
        ("allocator-rss.bytes", beyond(resident, active)),
        ("rss-overhead.ratio", Float(ratio(memory.rss, resident))),
        ("rss-overhead.bytes", beyond(memory.rss, resident)),
        ("fragmentation", Float(ratio(memory.rss, allocated))),
        ("fragmentation.bytes", beyond(memory.rss, allocated)),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn memory(allocated: u64, active: u64, resident: u64, rss: u64, peak: u64) -> Memory {
        Memory { allocator: Allocated { allocated, active, resident }, rss, peak, startup: 1000 }
    }

    #[test]
    fn the_doctor_finds_what_is_wrong() {
        const MB: u64 = 1 << 20;
        let signs = |m: Memory| diagnosis(&m).matches(" * ").count();
        assert!(diagnosis(&memory(MB, MB, MB, MB, MB)).starts_with("There is too little"));
        assert!(diagnosis(&memory(99 * MB, 99 * MB, 99 * MB, 99 * MB, 99 * MB)).starts_with("Nothing"));
        assert_eq!(signs(memory(99 * MB, 99 * MB, 99 * MB, 99 * MB, 200 * MB)), 1);
        assert_eq!(signs(memory(99 * MB, 199 * MB, 299 * MB, 399 * MB, 99 * MB)), 3);
        // Counters of different moments may contradict each other.
        assert_eq!(signs(memory(99 * MB, 98 * MB, 97 * MB, 9 * MB, 9 * MB)), 0);
    }

    #[test]
    fn databases_stand_where_redis_has_them() {
        let figures = figures(&memory(500, 0, 0, 0, 0), 0);
        assert_eq!(figures[11].0, "script.VMs");
        assert_eq!(figures[12].0, "overhead.db.hashtable.lut");
    }
}
