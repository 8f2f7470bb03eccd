//! LATENCY: events that held the server up, and how long commands take.
mod doctor;
mod graph;

use crate::base::clock;
use crate::cmd::cx::ConnCx;
use crate::cmd::docs;
use crate::cmd::spec::{Done, Group::Server as S, Spec, flag};
use crate::cmd::table::{Row, table};
use crate::host::{Durations, Host};
use crate::wire::{Args, Error, Out};

const ADMIN: u32 = flag::ADMIN | flag::NOSCRIPT;
const TIPS: &[&str] = &["nondeterministic_output", "request_policy:all_nodes", "response_policy:special"];

/// The rows.
pub const COMMANDS: &[Spec] = &[Spec::container("latency", SUBCOMMANDS).doc(
    S,
    "2.8.13",
    "Holds the commands about what held the server up.",
)];

const SUBCOMMANDS: &[Spec] = &[
    row("latency|doctor", "", doctor, "2.8.13", "Reports on the events that held the server up, in words."),
    row("latency|graph", "event", graph, "2.8.13", "Draws how long an event took, over time."),
    Spec::conn("latency|help", "", help).doc(S, "2.8.13", "Tells what each subcommand does."),
    row(
        "latency|histogram",
        "[command [command ...]]",
        histogram,
        "7.0.0",
        "Tells how many calls of commands took up to how long.",
    )
    .cost("O(N) where N is the number of commands told of."),
    row("latency|history", "event", history, "2.8.13", "Returns the times and durations of an event."),
    row("latency|latest", "", latest, "2.8.13", "Returns the latest and the worst duration of every event."),
    row("latency|reset", "[event [event ...]]", reset, "2.8.13", "Forgets some events, or all of them.")
        .tips(&["request_policy:all_nodes", "response_policy:agg_sum"]),
];

const fn row(
    name: &'static str,
    syntax: &'static str,
    handler: fn(&mut ConnCx<'_>, &mut Args<'_>, &mut Out) -> Done,
    since: &'static str,
    summary: &'static str,
) -> Spec {
    Spec::conn(name, syntax, handler).doc(S, since, summary).with(ADMIN).tips(TIPS)
}

fn help(_: &mut ConnCx<'_>, _: &mut Args<'_>, out: &mut Out) -> Done {
    docs::help("latency", out);
    Ok(())
}

fn latest(cx: &mut ConnCx<'_>, _: &mut Args<'_>, out: &mut Out) -> Done {
    let all = cx.host.latency.all();
    out.array(all.len());
    for (event, series) in all {
        let last = series.samples.back();
        out.array(4);
        out.bulk(event.as_bytes());
        out.int(last.map_or(0, |sample| sample.at_s as i64));
        out.int(last.map_or(0, |sample| sample.took_ms as i64));
        out.int(series.worst_ms as i64);
    }
    Ok(())
}

fn history(cx: &mut ConnCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    let series = cx.host.latency.get(args.bytes()?).map(|(_, series)| series).unwrap_or_default();
    out.array(series.samples.len());
    for sample in &series.samples {
        out.array(2);
        out.int(sample.at_s as i64);
        out.int(sample.took_ms as i64);
    }
    Ok(())
}

fn reset(cx: &mut ConnCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    let events: Vec<&[u8]> = args.rest().collect();
    let chosen = |name: &str| events.iter().any(|event| event.eq_ignore_ascii_case(name.as_bytes()));
    out.count(cx.host.latency.reset(|name| events.is_empty() || chosen(name)));
    Ok(())
}

fn graph(cx: &mut ConnCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    let event = args.bytes()?;
    let Some((name, series)) = cx.host.latency.get(event) else {
        let event = String::from_utf8_lossy(event);
        return Err(Error::err(format_args!("No samples available for event '{event}'")));
    };
    out.verbatim("txt", graph::draw(name, &series, clock::wall_ms() / 1000).as_bytes());
    Ok(())
}

fn doctor(cx: &mut ConnCx<'_>, _: &mut Args<'_>, out: &mut Out) -> Done {
    let report = doctor::report(&cx.host.latency.all(), &cx.host.settings(), clock::wall_ms() / 1000);
    out.verbatim("txt", report.as_bytes());
    Ok(())
}

/// How long the calls of a command took on all shards, if there were any.
pub(super) fn durations(host: &Host, row: &Row) -> Option<Durations> {
    let shards = host.counters.iter().filter_map(|shard| shard.commands.get(row.id as usize)?.durations());
    let durations = Durations::sum(shards, host.cycles_per_us());
    (durations.total() > 0).then_some(durations)
}

fn histogram(cx: &mut ConnCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    let rows: Vec<&Row> = if args.is_done() {
        table().rows().iter().collect()
    } else {
        args.rest().filter_map(|name| table().find_full(name)).flat_map(with_subcommands).collect()
    };
    let told: Vec<_> = rows.into_iter().filter_map(|row| Some((row, durations(cx.host, row)?))).collect();
    out.map(told.len());
    for (row, durations) in told {
        out.bulk(row.spec.name.as_bytes());
        out.map(2);
        out.bulk(b"calls");
        out.int(durations.total() as i64);
        out.bulk(b"histogram_usec");
        let steps = durations.cumulative();
        out.map(steps.len());
        for (us, calls) in steps {
            out.int(us as i64);
            out.int(calls as i64);
        }
    }
    Ok(())
}

/// A row and those of its subcommands.
fn with_subcommands(row: &'static Row) -> impl Iterator<Item = &'static Row> {
    let subs = row.spec.subs.iter().filter_map(|sub| table().find_sub(row, sub.sub_name().as_bytes()));
    std::iter::once(row).chain(subs)
}
