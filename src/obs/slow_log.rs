//! SLOWLOG: the commands that took long.
use crate::cmd::cx::ConnCx;
use crate::cmd::docs;
use crate::cmd::spec::{Done, Group::Server as S, Spec, flag};
use crate::host::slow_log::SlowCommand;
use crate::wire::{Args, Error, Out};

const OF_ENTRIES: &str = "O(N) where N is the number of entries.";

/// The rows.
pub const COMMANDS: &[Spec] =
    &[Spec::container("slowlog", SUBCOMMANDS).doc(S, "2.2.12", "Holds the commands about the slow log.")];

const SUBCOMMANDS: &[Spec] = &[
    Spec::conn("slowlog|get", "[count]", get)
        .doc(S, "2.2.12", "Returns the newest entries of the slow log: ten, so many, or (-1) all.")
        .cost("O(N) where N is the number of entries returned.")
        .with(flag::ADMIN)
        .tips(&["request_policy:all_nodes", "nondeterministic_output"]),
    Spec::conn("slowlog|help", "", help).doc(S, "6.2.0", "Tells what each subcommand does."),
    Spec::conn("slowlog|len", "", len)
        .doc(S, "2.2.12", "Returns the number of entries in the slow log.")
        .with(flag::ADMIN)
        .tips(&["request_policy:all_nodes", "response_policy:agg_sum", "nondeterministic_output"]),
    Spec::conn("slowlog|reset", "", reset)
        .doc(S, "2.2.12", "Empties the slow log.")
        .cost(OF_ENTRIES)
        .with(flag::ADMIN)
        .tips(&["request_policy:all_nodes", "response_policy:all_succeeded"]),
];

/// Entries returned when nobody says how many.
const COUNT_DEFAULT: usize = 10;

fn help(_: &mut ConnCx<'_>, _: &mut Args<'_>, out: &mut Out) -> Done {
    docs::help("slowlog", out);
    Ok(())
}

fn len(cx: &mut ConnCx<'_>, _: &mut Args<'_>, out: &mut Out) -> Done {
    out.count(cx.host.slow_log.len());
    Ok(())
}

fn reset(cx: &mut ConnCx<'_>, _: &mut Args<'_>, out: &mut Out) -> Done {
    cx.host.slow_log.reset();
    out.ok();
    Ok(())
}

/// How many entries an argument asks for.
fn count(arg: &[u8]) -> Result<usize, Error> {
    match crate::base::num::parse_i64(arg) {
        Some(-1) => Ok(usize::MAX),
        Some(count) if count >= 0 => Ok(count as usize),
        _ => Err(Error::err("count should be greater than or equal to -1")),
    }
}

fn get(cx: &mut ConnCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    let count = args.take().map_or(Ok(COUNT_DEFAULT), count)?;
    // The syntax line cannot say that there is one at most.
    if !args.is_done() {
        return Err(crate::wire::error::subcommand_syntax(args.get(1), "SLOWLOG"));
    }
    let entries = cx.host.slow_log.newest(count);
    out.array(entries.len());
    for SlowCommand { id, at_s, took_us, args, addr, name } in entries {
        out.array(6);
        for number in [id, at_s, took_us] {
            out.int(number as i64);
        }
        out.array(args.len());
        args.iter().for_each(|arg| out.bulk(arg));
        out.bulk(addr.as_bytes());
        out.bulk(name.as_bytes());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts() {
        assert_eq!((count(b"0"), count(b"7"), count(b"-1")), (Ok(0), Ok(7), Ok(usize::MAX)));
        for wrong in [&b"-2"[..], b"x", b"9223372036854775808"] {
            assert!(count(wrong).unwrap_err().to_string().contains("greater than or equal to -1"));
        }
    }
}
