//! What a running script asks of the server, answered: commands run as parts of the script's whole, on the shards that it
//! holds.
//!
//! Must stay true: a command of a script never waits, and passes the same checks whoever calls the script; a script that
//! has written is not ended.
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::engine::Ready;
use super::flags::Flags;
use super::{Bridge, Words};
use crate::base::clock;
use crate::base::hash::KeyHash;
use crate::cmd::cx::{Caller, Client, WholeCx};
use crate::cmd::spec::{Handler, flag, gate};
use crate::cmd::table::{RowRef, table};
use crate::config::P;
use crate::host::running::Running;
use crate::rt::log::{self, Level};
use crate::rt::sys::{cycles, fiber};
use crate::wire::{Args, Error, Out};

/// What a script may do.
#[derive(Clone, Copy, Debug)]
pub struct Rights {
    /// Nothing that writes.
    pub only_reads: bool,
}

/// A script that runs for a client.
pub struct Run<'r, 'a> {
    cx: &'r mut WholeCx<'a>,
    /// In whose name the script's commands run: the client's, but for what the script changes for itself.
    caller: Caller,
    /// What commands about the connection see of it. Most scripts call none.
    client: Option<Box<Client>>,
    rights: Rights,
    is_function: bool,
    name: &'r str,
    command: Args<'r>,
    started_cycles: u64,
    has_written: bool,
    /// Others may know of it.
    is_known: bool,
}

impl<'r, 'a> Run<'r, 'a> {
    /// A run of `ready` by the command `args`.
    pub fn new(
        cx: &'r mut WholeCx<'a>,
        ready: &'r Ready,
        is_function: bool,
        rights: Rights,
        command: Args<'r>,
    ) -> Run<'r, 'a> {
        let caller = Caller { is_part: true, is_script: true, ..cx.client.caller };
        let (name, started_cycles) = (&ready.name, cx.parts.clock());
        let (client, has_written, is_known) = (None, false, false);
        Run { cx, caller, client, rights, is_function, name, command, started_cycles, has_written, is_known }
    }

    /// How long it has run. Counted in cycles, since most scripts end before anybody asks.
    fn elapsed(&self) -> Duration {
        let cycles = cycles().wrapping_sub(self.started_cycles);
        Duration::from_micros((cycles as f64 / self.cx.host.cycles_per_us()) as u64)
    }

    /// The row of a command that the script may call now.
    fn row(&self, args: &mut Args<'_>) -> Result<RowRef, Error> {
        let unknown = || Error::err("Unknown Redis command called from script");
        let mut row = table().find(args.get(0)).ok_or_else(unknown)?;
        if !row.spec.subs.is_empty() && args.count() > 1 {
            row = table().find_sub(row, args.get(1)).ok_or_else(unknown)?;
            args.seek(2);
        }
        if !row.spec.accepts(args.count()) {
            return Err(Error::err("Wrong number of args calling Redis command from script"));
        }
        let may_all = self.cx.host.scripts_may_all.load(Ordering::Relaxed);
        if row.spec.flags & flag::NOSCRIPT != 0 && !may_all {
            return Err(Error::err("This Redis command is not allowed from script"));
        }
        if self.rights.only_reads && row.spec.flags & (flag::WRITE | flag::MAY_REPLICATE) != 0 {
            return Err(Error::err("Write commands are not allowed from read-only scripts."));
        }
        if row.spec.flags & flag::WRITE != 0
            && self.cx.host.gates.load(Ordering::Relaxed) & gate::DISK_TROUBLE != 0
            && let Some(trouble) = self.cx.host.persistence.refusal(&self.cx.host.settings())
        {
            return Err(Error::line(trouble.text()));
        }
        Ok(row)
    }

    /// Runs a command that needs a connection.
    fn call_as_client(&mut self, row: RowRef, args: &mut Args<'_>, out: &mut Out) {
        let client = self.client.get_or_insert_with(|| Box::new(self.cx.client.stand_in()));
        client.caller = self.caller;
        self.cx.parts.run(row, client, self.cx.stores.reborrow(), args, out);
        self.caller = client.caller;
    }

    /// Lets others know of the script, and of what it has done meanwhile. `Err`: somebody wants it to end.
    fn tell(&mut self) -> Result<(), String> {
        let host = self.cx.host;
        let (has_written, is_function) = (self.has_written, self.is_function);
        if !self.is_known {
            self.is_known = true;
            let command = (0..self.command.count()).map(|at| self.command.get(at).to_vec()).collect();
            let now = clock::instant();
            let started = now.checked_sub(self.elapsed()).unwrap_or(now);
            let name = self.name.to_string();
            let running = Running { is_function, name, command, started, has_written, is_killed: false };
            host.scripts.with(|place| *place = Some(running));
        }
        host.scripts.with(|running| match running {
            Some(running) if running.is_killed => {
                log::line(Level::Notice, "Lua script killed by user with SCRIPT KILL.");
                Err("Script killed by user with SCRIPT KILL...".into())
            }
            Some(running) => {
                running.has_written = has_written;
                Ok(())
            }
            None => Ok(()),
        })
    }
}

impl Drop for Run<'_, '_> {
    fn drop(&mut self) {
        if self.is_known {
            self.cx.host.gates.fetch_and(!gate::BUSY, Ordering::Relaxed);
            self.cx.host.scripts.with(|place| *place = None);
        }
    }
}

impl Bridge for Run<'_, '_> {
    fn call(&mut self, words: Words<'_>, out: &mut Out) {
        let mut args = Args::new(words.buf, words.spans, (0, KeyHash::from_bits(0)));
        let row = match self.row(&mut args) {
            Ok(row) => row,
            Err(error) => return self.cx.parts.refuse(&error, out),
        };
        self.has_written |= row.spec.flags & flag::WRITE != 0;
        self.caller.protocol = out.protocol;
        match row.spec.handler {
            Handler::Conn(_) | Handler::Whole(_) => self.call_as_client(row, &mut args, out),
            _ => {
                let stores = self.cx.stores.reborrow();
                self.cx.parts.run_for_script(row, &self.caller, stores, &mut args, out);
            }
        }
    }

    fn pulse(&mut self) -> Result<(), String> {
        self.tell()?;
        let host = self.cx.host;
        let threshold_ms = host.settings().int(P::BUSY_REPLY_THRESHOLD);
        let elapsed_ms = self.elapsed().as_millis() as i64;
        if threshold_ms <= 0 || elapsed_ms < threshold_ms {
            return Ok(());
        }
        if host.gates.fetch_or(gate::BUSY, Ordering::Relaxed) & gate::BUSY == 0 {
            let kill = if self.is_function { "FUNCTION KILL" } else { "SCRIPT KILL" };
            log::line(
                Level::Warning,
                &format!(
                    "Slow script detected: still in execution after {elapsed_ms} milliseconds. You can try killing \
                     the script using the {kill} command. Script name is: {}.",
                    self.name
                ),
            );
        }
        fiber::set_aside();
        self.tell()
    }

    fn log(&mut self, level: Level, text: &[u8]) {
        log::line(level, &String::from_utf8_lossy(text));
    }

    fn failed(&mut self, line: &[u8], counted: bool) {
        if !counted {
            let line = String::from_utf8_lossy(line);
            let code = line.trim_start_matches('-').split([' ', '\r', '\n']).next().unwrap_or_default();
            self.cx.parts.count_error(code);
        }
    }

    fn may_call(&mut self, words: Words<'_>) -> Option<bool> {
        let row = table().find(words.get(0))?;
        if !row.spec.subs.is_empty() && words.spans.len() > 1 {
            table().find_sub(row, words.get(1))?;
        }
        Some(true)
    }
}

/// What a script may do that says this of itself, called by a command that only reads or not.
///
/// # Errors
/// When it says that it writes and the command only reads.
pub fn rights(flags: Flags, by_reader: bool) -> Result<Rights, Error> {
    let declared = !flags.has(Flags::UNDECLARED);
    if declared && !flags.has(Flags::NO_WRITES) && by_reader {
        return Err(Error::err("Can not execute a script with write flag using *_ro command."));
    }
    Ok(Rights { only_reads: by_reader || declared && flags.has(Flags::NO_WRITES) })
}
