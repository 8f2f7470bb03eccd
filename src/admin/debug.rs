//! DEBUG: for developers and test suites, allowed by the setting `enable-debug-command`.
//!
//! Must stay true: every row is `PROTECTED`, so the gates ask the setting before it runs; nothing here can crash
//! the server or lose data.
use std::sync::atomic::Ordering;

use crate::base::glob;
use crate::base::num;
use crate::base::rng::Rng;
use crate::cmd::cx::{ConnCx, Wish, WriteCx};
use crate::cmd::spec::{Done, Group::Server as S, Route, Spec, flag};
use crate::cmd::{docs, generic};
use crate::rt::disk;
use crate::rt::log::{self, Level};
use crate::wire::{Args, Error, Out, Protocol};

const FLAGS: u32 = flag::ADMIN | flag::NOSCRIPT | flag::LOADING | flag::STALE | flag::PROTECTED;
const SECONDS_MAX: f64 = 1e6;
/// What DEBUG PROTOCOL double answers; cut short on purpose.
#[allow(clippy::approx_constant)]
const SAMPLE_DOUBLE: f64 = 3.141;

/// The rows.
pub const COMMANDS: &[Spec] = &[Spec::container("debug", SUBCOMMANDS)
    .doc(S, "1.0.0", "Holds the commands for developers and tests.")
    .with(FLAGS)];

type Handler = fn(&mut ConnCx<'_>, &mut Args<'_>, &mut Out) -> Done;

const fn row(name: &'static str, syntax: &'static str, handler: Handler, summary: &'static str) -> Spec {
    Spec::conn(name, syntax, handler).doc(S, "1.0.0", summary).with(FLAGS)
}

/// A switch of something this server does not have.
const fn idle(name: &'static str, syntax: &'static str) -> Spec {
    row(name, syntax, ok, "Is accepted for test suites and changes nothing.")
}

const fn refused(name: &'static str) -> Spec {
    row(name, "[argument ...]", refuse, "Is not available in this version.")
}

// Rows that look into keys stand with the generic family.
const SUBCOMMANDS: &[Spec] = &[
    idle("debug|aof-flush-sleep", "microseconds"),
    row("debug|change-repl-id", "", change_repl_id, "Draws a new replication id."),
    idle("debug|dict-resizing", "0|1"),
    generic::DEBUG_DIGEST,
    generic::DEBUG_DIGEST_VALUE,
    row(
        "debug|disk-faults",
        "[word [word ...]]",
        disk_faults,
        "Has calls of the file system fail by a plan, or by none, and tells how many the former one has failed; in \
         builds for tests only.",
    ),
    row("debug|error", "message", error, "Replies with an error of that text."),
    generic::DEBUG_HTSTATS,
    generic::DEBUG_HTSTATS_KEY,
    row("debug|help", "", help, "Tells what each subcommand does."),
    idle("debug|jmap", ""),
    crate::persist::aof::commands::DEBUG_LOADAOF,
    generic::DEBUG_LISTPACK,
    row("debug|log", "message", log, "Writes a line to the log."),
    generic::DEBUG_OBJECT,
    idle("debug|pause-cron", "0|1"),
    generic::DEBUG_POPULATE,
    row("debug|protocol", "type", protocol, "Replies with a value of that type."),
    generic::DEBUG_QUICKLIST,
    row(
        "debug|quicklist-packed-threshold",
        "size",
        packed_threshold,
        "Is accepted for test suites and changes nothing: the limit of lists says what is large.",
    ),
    crate::persist::commands::DEBUG_RELOAD,
    idle("debug|replicate", "word [word ...]"),
    idle("debug|replybuffer", "option value"),
    refused("debug|restart"),
    Spec::write("debug|set-active-expire", "0|1", set_active_expire)
        .doc(S, "1.0.0", "Stops or starts the deletion of expired keys that nobody asks for.")
        .without(flag::WRITE | flag::NO_INTERCEPT)
        .with(FLAGS)
        .route(Route::All),
    generic::DEBUG_SDSLEN,
    row(
        "debug|set-disable-deny-scripts",
        "0|1",
        set_disable_deny_scripts,
        "Lets scripts call what they otherwise may not.",
    ),
    row(
        "debug|set-skip-checksum-validation",
        "0|1",
        set_skip_checksums,
        "Has payloads restored whatever their checksums.",
    ),
    row("debug|sleep", "seconds:double", sleep, "Stops the serving thread of this connection for a time."),
    row(
        "debug|stringmatch-len",
        "pattern string",
        stringmatch_len,
        "Tells whether a pattern matches a text.",
    ),
];

fn ok(_: &mut ConnCx<'_>, _: &mut Args<'_>, out: &mut Out) -> Done {
    out.ok();
    Ok(())
}

fn packed_threshold(_: &mut ConnCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    const BYTES_MAX: u64 = (1 << 32) - (1 << 20);
    if num::parse_memory(args.bytes()?).is_none_or(|bytes| bytes > BYTES_MAX) {
        return Err(Error::err("argument must be a memory value bigger than 1 and smaller than 4gb"));
    }
    out.ok();
    Ok(())
}

fn refuse(_: &mut ConnCx<'_>, args: &mut Args<'_>, _: &mut Out) -> Done {
    let name = String::from_utf8_lossy(args.get(1)).to_ascii_uppercase();
    Err(Error::err(format_args!("DEBUG {name} is not available in this version of Perigee")))
}

fn log(_: &mut ConnCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    log::line(Level::Warning, &format!("DEBUG LOG: {}", String::from_utf8_lossy(args.bytes()?)));
    out.ok();
    Ok(())
}

/// The words of a plan of faults.
fn disk_faults(_: &mut ConnCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    let words: Vec<_> = args.rest().map(String::from_utf8_lossy).collect();
    let plan = disk::Plan::parse(&words.join(" ")).ok_or(Error::Syntax)?;
    let failed = disk::plan_faults(Some(plan).filter(|_| !words.is_empty()));
    out.int(failed as i64);
    Ok(())
}

fn help(_: &mut ConnCx<'_>, _: &mut Args<'_>, out: &mut Out) -> Done {
    docs::help("debug", out);
    Ok(())
}

fn change_repl_id(cx: &mut ConnCx<'_>, _: &mut Args<'_>, out: &mut Out) -> Done {
    *cx.host.repl_id.lock() = Rng::from_entropy().hex(40);
    out.ok();
    Ok(())
}

/// The text is the whole line, code included.
fn error(_: &mut ConnCx<'_>, args: &mut Args<'_>, _: &mut Out) -> Done {
    Err(Error::line(String::from_utf8_lossy(args.bytes()?).into_owned()))
}

/// Seconds as milliseconds; what is no number counts as 0, as `strtod` has it.
fn sleep_ms(arg: &[u8]) -> u64 {
    let seconds = num::parse_f64(arg).filter(|seconds| *seconds > 0.0).unwrap_or(0.0);
    (seconds.min(SECONDS_MAX) * 1000.0) as u64
}

fn sleep(cx: &mut ConnCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    let ms = sleep_ms(args.bytes()?);
    if cx.client.caller.is_part {
        // What comes behind it in the transaction or script shall run later.
        std::thread::sleep(std::time::Duration::from_millis(ms));
    } else {
        cx.client.wish = Wish::SleepMs(ms);
    }
    out.ok();
    Ok(())
}

/// Any number but 0 switches on, anything else off, as `atoi` has it.
fn is_on(arg: &[u8]) -> bool {
    num::parse_i64(arg).is_some_and(|number| number != 0)
}

fn set_skip_checksums(cx: &mut ConnCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    cx.host.skips_checksums.store(is_on(args.bytes()?), Ordering::Relaxed);
    out.ok();
    Ok(())
}

fn set_disable_deny_scripts(cx: &mut ConnCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    cx.host.scripts_may_all.store(is_on(args.bytes()?), Ordering::Relaxed);
    out.ok();
    Ok(())
}

fn set_active_expire(cx: &mut WriteCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    let on = is_on(args.bytes()?);
    cx.for_all(|store| store.active_expiry = on);
    out.ok();
    Ok(())
}

fn stringmatch_len(_: &mut ConnCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    let (pattern, text) = (args.bytes()?, args.bytes()?);
    out.flag(glob::matches(pattern, text, false));
    Ok(())
}

fn protocol(_: &mut ConnCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    write_sample(&String::from_utf8_lossy(args.bytes()?).to_ascii_lowercase(), out)
}

/// The same values as Redis, so that the tests of clients pass.
fn write_sample(kind: &str, out: &mut Out) -> Done {
    match kind {
        "string" => out.bulk(b"Hello World"),
        "integer" => out.int(12345),
        "double" => out.double(SAMPLE_DOUBLE),
        "bignum" => out.big_number("1234567999999999999999999999999999999"),
        "null" => out.null(),
        "array" | "set" => {
            if kind == "set" {
                out.set(3)
            } else {
                out.array(3)
            }
            (0..3).for_each(|number| out.int(number));
        }
        "map" => {
            out.map(3);
            for number in 0..3 {
                out.int(number);
                out.boolean(number == 1);
            }
        }
        "attrib" => {
            if out.protocol == Protocol::Resp3 {
                out.attribute(1);
                out.bulk(b"key-popularity");
                out.array(2);
                out.bulk(b"key:123");
                out.int(90);
            }
            out.bulk(b"Some real reply following the attribute");
        }
        "push" if out.protocol == Protocol::Resp2 => {
            return Err(Error::err("RESP2 is not supported by this command"));
        }
        "push" => {
            // A push caused by a command of the same connection follows the reply.
            out.bulk(b"Some real reply following the push reply");
            out.push(2);
            out.bulk(b"server-cpu-usage");
            out.int(42);
        }
        "true" | "false" => out.boolean(kind == "true"),
        "verbatim" => out.verbatim("txt", b"This is a verbatim\nstring"),
        _ => {
            return Err(Error::err(
                "Wrong protocol type name. Please use one of the following: \
                 string|integer|double|bignum|null|array|set|map|attrib|push|verbatim|true|false",
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_read_leniently() {
        let times =
            [("0.5", 500), ("2", 2000), ("0", 0), ("-1", 0), ("x", 0), ("nan", 0), ("1e300", 1_000_000_000)];
        for (text, ms) in times {
            assert_eq!(sleep_ms(text.as_bytes()), ms, "{text}");
        }
        assert!(is_on(b"1") && is_on(b"-2") && !is_on(b"0") && !is_on(b"no"));
    }

    #[test]
    fn samples_in_both_protocols() {
        let sample = |kind, protocol| {
            let mut out = Out::new(protocol);
            write_sample(kind, &mut out)
                .map(|()| String::from_utf8(out.buf).unwrap())
                .map_err(|e| e.to_string())
        };
        assert_eq!(sample("map", Protocol::Resp3).unwrap(), "%3\r\n:0\r\n#f\r\n:1\r\n#t\r\n:2\r\n#f\r\n");
        assert_eq!(sample("map", Protocol::Resp2).unwrap(), "*6\r\n:0\r\n:0\r\n:1\r\n:1\r\n:2\r\n:0\r\n");
        assert_eq!(sample("double", Protocol::Resp3).unwrap(), ",3.141\r\n");
        assert!(sample("attrib", Protocol::Resp2).unwrap().starts_with("$39\r\n"));
        assert!(sample("attrib", Protocol::Resp3).unwrap().starts_with("|1\r\n"));
        assert!(sample("push", Protocol::Resp2).unwrap_err().starts_with("ERR RESP2"));
        assert!(sample("x", Protocol::Resp3).unwrap_err().starts_with("ERR Wrong protocol type"));
    }
}
