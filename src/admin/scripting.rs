//! What can be said about scripts and functions while there are none: flushing them, and that there are none.
//!
//! Clients and test suites flush both before they begin; everything else about them is an unknown subcommand.
use crate::cmd::cx::ConnCx;
use crate::cmd::spec::{Done, Group::Scripting as S, Spec, flag};
use crate::wire::{Args, Error, Out};

/// The rows.
pub const COMMANDS: &[Spec] = &[Spec::container(
    "function",
    &[Spec::conn("function|flush", "[ASYNC|SYNC]", flush)
        .doc(S, "7.0.0", "Deletes all libraries and functions.")
        .cost("O(N) where N is the number of functions.")
        .with(flag::WRITE | flag::NOSCRIPT)
        .without(flag::LOADING | flag::STALE)
        .cat(&["scripting"])
        .tips(&["request_policy:all_shards", "response_policy:all_succeeded"])],
)
.doc(S, "7.0.0", "Holds the commands about functions.")];

fn flush(_: &mut ConnCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    let named = args.keyword("ASYNC") || args.keyword("SYNC");
    if !named && !args.is_done() {
        let container = String::from_utf8_lossy(args.get(0)).to_ascii_uppercase();
        return Err(Error::err(format_args!("{container} FLUSH only supports SYNC|ASYNC option")));
    }
    out.ok();
    Ok(())
}
