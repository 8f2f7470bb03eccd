//! What stands between a command and its handler when a gate bit is in force. The fast path skips this file.
use std::sync::atomic::Ordering;

use crate::cmd::cx::{Caller, Client, ReplyMode};
use crate::cmd::spec::{Route, flag, gate};
use crate::cmd::table::{RowRef, table};
use crate::config::P;
use crate::host::Host;
use crate::script;
use crate::store::Now;
use crate::wire::{Args, Error};

/// Whether the command must wait for CLIENT PAUSE to end. An elapsed pause is cleared on the way.
pub fn is_paused(row: RowRef, args: &Args<'_>, client: &Client, host: &Host, now: Now) -> bool {
    let bits = host.gates.load(Ordering::Relaxed);
    let paused = bits & gate::PAUSE_ALL != 0 || bits & gate::PAUSE_WRITE != 0 && may_write(row, args, client);
    if !paused {
        return false;
    }
    if !host.is_paused(now.ms) {
        host.gates.fetch_and(!(gate::PAUSE_ALL | gate::PAUSE_WRITE), Ordering::Relaxed);
        return false;
    }
    true
}

/// Whether a command, or one of those that EXEC would run, may write.
fn may_write(row: RowRef, args: &Args<'_>, client: &Client) -> bool {
    let writes = |row: RowRef, args: &Args<'_>| {
        script::commands::flags_of(row.spec, args) & (flag::WRITE | flag::MAY_REPLICATE) != 0
    };
    match (row.spec.route, &client.multi) {
        (Route::Transaction, Some(multi)) => {
            let queued = &multi.queued;
            queued.commands.iter().any(|command| writes(table().row(command.row), &queued.args(*command)))
        }
        _ => writes(row, args),
    }
}

/// Whether a caller may run a command for developers, by the setting `enable-debug-command`, or one about modules, by
/// `enable-module-command`.
///
/// # Errors
/// The refusal, when it may not.
pub fn allowed(row: RowRef, host: &Host, caller: &Caller) -> Result<(), Error> {
    if row.spec.flags & flag::PROTECTED == 0 {
        return Ok(());
    }
    let (setting, shown) = match row.spec.name.split('|').next() {
        Some("module") => (P::ENABLE_MODULE_COMMAND, "MODULE"),
        _ => (P::ENABLE_DEBUG_COMMAND, "DEBUG"),
    };
    match host.settings().choice(setting) {
        "yes" => Ok(()),
        "local" if caller.local => Ok(()),
        _ => Err(Error::err(format_args!(
            "{shown} command not allowed. If the {} option is set to \"local\", you can run it from a local \
             connection, otherwise you need to set this option in the configuration file, and then restart the server.",
            setting.row().name
        ))),
    }
}

/// Whether a command may run as far as the data is concerned: not while it is being loaded; not if it writes what cannot
/// be kept.
///
/// # Errors
/// The refusal, when it may not.
pub fn data_allows(row: RowRef, client: &Client, host: &Host) -> Result<(), Error> {
    let bits = host.gates.load(Ordering::Relaxed);
    if bits & gate::LOADING != 0 && row.spec.flags & flag::LOADING == 0 {
        return Err(Error::line("LOADING Redis is loading the dataset in memory".into()));
    }
    if bits & gate::DISK_TROUBLE != 0
        && flags_of(row, client) & (flag::WRITE | flag::NEEDS_DISK) != 0
        && let Some(trouble) = host.persistence.refusal(&host.settings())
    {
        return Err(Error::line(trouble.text()));
    }
    Ok(())
}

/// The flags of a command; of EXEC those of all that is queued.
fn flags_of(row: RowRef, client: &Client) -> u32 {
    match row.spec.route {
        Route::Transaction => client.multi.as_ref().map_or(0, |multi| multi.flags),
        _ => row.spec.flags,
    }
}

/// Whether a subscriber may run a command: under RESP2 it cannot tell replies from messages.
///
/// # Errors
/// The refusal, when it may not.
pub fn subscriber_may(row: RowRef, client: &Client) -> Result<(), Error> {
    if client.gates & gate::SUBSCRIBER == 0 || row.spec.flags & flag::SUBSCRIBERS != 0 {
        return Ok(());
    }
    Err(Error::err(format_args!(
        "Can't execute '{}': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this context",
        row.spec.name
    )))
}

/// Whether the reply of the command that comes now shall be dropped.
pub fn is_silent(row: RowRef, client: &Client) -> bool {
    row.spec.flags & flag::PUSHES == 0 && matches!(client.reply_mode, ReplyMode::Off | ReplyMode::Skip)
}

/// After a command: moves the reply mode on. `true`: the reply must be dropped after all.
pub fn after(client: &mut Client) -> bool {
    match client.reply_mode {
        ReplyMode::On => false,
        ReplyMode::Off => true,
        ReplyMode::SkipNext => {
            client.set_reply_mode(ReplyMode::Skip);
            true
        }
        ReplyMode::Skip => {
            client.set_reply_mode(ReplyMode::On);
            true
        }
    }
}
