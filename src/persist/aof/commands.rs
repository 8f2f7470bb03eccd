//! BGREWRITEAOF, DEBUG LOADAOF.
use crate::cmd::cx::{ConnCx, Wish};
use crate::cmd::spec::{Done, Group::Server as S, Spec, flag};
use crate::host::rewrites::Stage;
use crate::persist::background::is_saving;
use crate::rt;
use crate::shard::local::Local;
use crate::wire::{Args, Error, Out};

/// The rows.
pub const COMMANDS: &[Spec] = &[Spec::conn("bgrewriteaof", "", bgrewriteaof)
    .doc(S, "1.0.0", "Rewrites the append-only log in the background.")
    .without(flag::LOADING | flag::STALE)
    .with(flag::ADMIN | flag::NOSCRIPT | flag::NO_ASYNC_LOADING)];

/// The row of a subcommand of DEBUG.
pub const DEBUG_LOADAOF: Spec = Spec::conn("debug|loadaof", "", loadaof)
    .doc(S, "1.0.0", "Empties all databases and loads the append-only log again.")
    .with(flag::ADMIN | flag::NOSCRIPT | flag::STALE | flag::PROTECTED);

fn loadaof(cx: &mut ConnCx<'_>, _: &mut Args<'_>, _: &mut Out) -> Done {
    cx.client.wish = Wish::ReloadLog;
    Ok(())
}

/// Has the first shard's thread empty all databases and load the log again, and waits for that.
///
/// # Errors
/// When it could not be loaded.
pub async fn ask_reload(local: &Local) -> Done {
    let (sender, receiver) = flume::bounded(1);
    local.shared.host.rewrites.lock().reloads.push(sender);
    match rt::received(&receiver).await {
        Some(true) => Ok(()),
        _ => Err(Error::err("Error trying to load the AOF files, check server logs.")),
    }
}

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
