//! BGREWRITEAOF.
use crate::cmd::cx::ConnCx;
use crate::cmd::spec::{Done, Group::Server as S, Spec, flag};
use crate::host::rewrites::Stage;
use crate::persist::background::is_saving;
use crate::wire::{Args, Error, Out};

/// The rows.
pub const COMMANDS: &[Spec] = &[Spec::conn("bgrewriteaof", "", bgrewriteaof)
    .doc(S, "1.0.0", "Rewrites the append-only log in the background.")
    .without(flag::LOADING)
    .with(flag::ADMIN | flag::NOSCRIPT)];

fn bgrewriteaof(cx: &mut ConnCx<'_>, _: &mut Args<'_>, out: &mut Out) -> Done {
    let mut rewrites = cx.host.rewrites.lock();
    if rewrites.is_running() {
        return Err(Error::err("Background append only file rewriting already in progress"));
    }
    // Who asks does not wait for the end of a pause after failures.
    rewrites.failures = 0;
    if cx.client.caller.is_part || is_saving(&cx.host.persistence) {
        rewrites.is_scheduled = true;
        out.simple("Background append only file rewriting scheduled");
    } else {
        rewrites.stage = Stage::Asked;
        out.simple("Background append only file rewriting started");
    }
    Ok(())
}
