//! What commands leave for those who watch the server: SLOWLOG, LATENCY, MONITOR.
//!
//! Must stay true: a command that took no longer than usual, while nobody monitors, pays one comparison.
use std::cell::Cell as StdCell;
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::exec::Door;
use crate::base::clock;
use crate::cmd::cx::Caller;
use crate::cmd::spec::{Spec, flag, gate};
use crate::cmd::table::RowRef;
use crate::config::{MemoryBound, P, Settings, words};
use crate::host::mail::{Address, Letter, Mail};
use crate::host::slow_log::{SlowCommand, shorten};
use crate::host::{ClientInfo, Host};
use crate::wire::Args;

/// The settings of this file as commands need them, on one shard's thread.
pub struct Watch {
    version: StdCell<u64>,
    /// Commands that take so many cycles are looked at; `u64::MAX`: none are.
    pub slow_cycles: StdCell<u64>,
    /// Bytes that all clients together may cost.
    pub clients_bytes_max: StdCell<u64>,
    /// That became less, and clients may have to go.
    pub clients_bytes_fell: StdCell<bool>,
    /// Durations of commands are kept (`latency-tracking`).
    pub tracks: StdCell<bool>,
}

impl Watch {
    /// Follows no settings yet.
    pub fn new() -> Watch {
        Watch {
            version: StdCell::new(0),
            slow_cycles: StdCell::new(u64::MAX),
            clients_bytes_max: StdCell::new(u64::MAX),
            clients_bytes_fell: StdCell::new(false),
            tracks: StdCell::new(false),
        }
    }

    /// Follows the settings in force.
    #[inline]
    pub fn heed_settings(&self, host: &Host) {
        if self.version.get() != host.settings_version() {
            self.follow(host);
        }
    }

    #[cold]
    fn follow(&self, host: &Host) {
        self.version.set(host.settings_version());
        let settings = host.settings();
        self.tracks.set(settings.bool(P::LATENCY_TRACKING));
        let max_bytes = clients_bytes_max(&settings);
        self.clients_bytes_fell.set(max_bytes < self.clients_bytes_max.replace(max_bytes));
        let log_us = u64::try_from(settings.int(P::SLOWLOG_LOG_SLOWER_THAN)).ok();
        let monitor_ms = settings.int(P::LATENCY_MONITOR_THRESHOLD).max(0) as u64;
        let monitor_us = (monitor_ms > 0).then(|| monitor_ms.saturating_mul(1000));
        let slow_us = log_us.into_iter().chain(monitor_us).min();
        // A little less, since how fast cycles go by is known better later on; whoever is slow is looked at exactly.
        let cycles = |us| (us as f64 * host.cycles_per_us() * 0.99) as u64;
        self.slow_cycles.set(slow_us.map_or(u64::MAX, cycles));
    }
}

/// Less than this is no limit that one could live with.
const CLIENTS_BYTES_MIN: u64 = 128 * 1024;

/// What `maxmemory-clients` says; a part of no limit is none.
fn clients_bytes_max(settings: &Settings) -> u64 {
    let bytes = match settings.bound(P::MAXMEMORY_CLIENTS) {
        MemoryBound::Bytes(bytes) => bytes,
        MemoryBound::Percent(part) => {
            (u128::from(settings.memory(P::MAXMEMORY)) * u128::from(part) / 100) as u64
        }
    };
    if bytes == 0 { u64::MAX } else { bytes.max(CLIENTS_BYTES_MIN) }
}

impl Default for Watch {
    fn default() -> Watch {
        Watch::new()
    }
}

impl Door<'_> {
    /// Whether a command that took so many cycles must be handed to [`Door::note_slow`].
    #[inline(always)]
    pub fn is_slow(&self, cycles: u64) -> bool {
        cycles >= self.local.watch.slow_cycles.get()
    }

    /// Enters a command that took so many cycles into SLOWLOG and LATENCY, where it belongs there.
    #[cold]
    #[inline(never)]
    pub fn note_slow(&self, row: RowRef, caller: &Caller, args: &Args<'_>, cycles: u64) {
        let took_us = (cycles as f64 / self.host.cycles_per_us()).round() as u64;
        let fast = row.spec.flags & flag::FAST != 0;
        self.host.note_latency(if fast { "fast-command" } else { "command" }, took_us / 1000);
        log_slow(self.host, row.spec, caller.client_id, args, took_us);
    }

    /// Whether anybody monitors.
    #[inline]
    pub fn is_monitored(&self) -> bool {
        self.host.gates.load(Ordering::Relaxed) & gate::MONITORED != 0
    }

    /// Shows a command to everybody who monitors. Not those of administrators, nor those whose parts are shown.
    #[inline]
    pub fn feed_monitors(&self, spec: &Spec, origin: Origin<'_>, db: u32, args: &Args<'_>) {
        let is_shown = spec.flags & (flag::SKIP_MONITOR | flag::ADMIN) == 0;
        if is_shown && self.is_monitored() {
            self.show_monitors(origin, db, &spec.shown(args));
        }
    }

    /// Shows any words to everybody who monitors, if anybody does.
    #[cold]
    pub fn show_monitors(&self, origin: Origin<'_>, db: u32, shown: &[&[u8]]) {
        if !self.is_monitored() {
            return;
        }
        let all: Vec<Address> = self.host.monitors.lock().clone();
        let line: Arc<[u8]> = monitor_line(clock::wall_us(), origin, db, shown).into();
        let mut mail: Mail = all.into_iter().map(|address| (address, Letter::Line(line.clone()))).collect();
        self.local.send_mail(&mut mail);
    }
}

fn log_slow(host: &Host, spec: &Spec, client_id: u64, args: &Args<'_>, took_us: u64) {
    let settings = host.settings();
    let keep = settings.int(P::SLOWLOG_MAX_LEN).max(0) as usize;
    let slower_than = u64::try_from(settings.int(P::SLOWLOG_LOG_SLOWER_THAN));
    let logged = slower_than.is_ok_and(|us| took_us >= us) && keep > 0;
    if !logged || spec.flags & flag::SKIP_SLOWLOG != 0 {
        return;
    }
    let client = host.clients.get(client_id);
    let name = client.as_ref().map(|info| info.name.lock().clone()).unwrap_or_default();
    let addr = client.map(|info| info.addr.clone()).unwrap_or_default();
    let args = shorten(spec.shown(args).into_iter());
    host.slow_log.push(SlowCommand { id: 0, at_s: clock::wall_ms() / 1000, took_us, args, addr, name }, keep);
}

/// Where a command comes from.
#[derive(Clone, Copy, Debug)]
pub enum Origin<'a> {
    /// From a client.
    Client(&'a ClientInfo),
    /// From a script.
    Script,
}

/// A line of MONITOR, with the type byte and the line end of a status reply.
fn monitor_line(at_us: u64, origin: Origin<'_>, db: u32, shown: &[&[u8]]) -> Vec<u8> {
    let mut line = Vec::with_capacity(64);
    // Writing to a vector cannot fail.
    let _ = write!(line, "+{}.{:06} [{db} ", at_us / 1_000_000, at_us % 1_000_000);
    let _ = match origin {
        Origin::Client(info) if info.addr.starts_with('/') => {
            write!(line, "unix:{}]", info.addr.strip_suffix(":0").unwrap_or(&info.addr))
        }
        Origin::Client(info) => write!(line, "{}]", info.addr),
        Origin::Script => write!(line, "lua]"),
    };
    for word in shown {
        line.push(b' ');
        line.extend_from_slice(&words::quote(word));
    }
    line.extend_from_slice(b"\r\n");
    line
}

/// The connection at `address` watches every command from now on.
pub fn start_monitoring(host: &Host, address: Address) {
    let mut monitors = host.monitors.lock();
    monitors.push(address);
    host.gates.fetch_or(gate::MONITORED, Ordering::Relaxed);
}

/// It does no more.
pub fn stop_monitoring(host: &Host, address: Address) {
    let mut monitors = host.monitors.lock();
    monitors.retain(|known| *known != address);
    if monitors.is_empty() {
        host.gates.fetch_and(!gate::MONITORED, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_may_cost_a_part_of_the_memory() {
        let max = |pairs: &[(&str, &str)]| {
            let mut settings = Settings::default();
            for (name, value) in pairs {
                settings.set(name.as_bytes(), &[value.as_bytes()]).unwrap();
            }
            clients_bytes_max(&settings)
        };
        assert_eq!(max(&[]), u64::MAX);
        assert_eq!(max(&[("maxmemory-clients", "1mb")]), 1 << 20);
        assert_eq!(max(&[("maxmemory-clients", "1kb")]), CLIENTS_BYTES_MIN);
        assert_eq!(max(&[("maxmemory-clients", "5%")]), u64::MAX);
        assert_eq!(max(&[("maxmemory-clients", "5%"), ("maxmemory", "100mb")]), 5 << 20);
    }

    #[test]
    fn lines_of_monitor() {
        let line = |addr: &str, shown: &[&[u8]]| {
            let info = ClientInfo::new(1, addr.into(), String::new(), -1, 0);
            let line = monitor_line(1_700_000_000_000_042, Origin::Client(&info), 3, shown);
            String::from_utf8(line).unwrap()
        };
        assert_eq!(
            line("127.0.0.1:5", &[b"set", b"a\"\\", b"\r\n\x00\xff"]),
            "+1700000000.000042 [3 127.0.0.1:5] \"set\" \"a\\\"\\\\\" \"\\r\\n\\x00\\xff\"\r\n"
        );
        assert_eq!(line("/tmp/s:0", &[b"x"]), "+1700000000.000042 [3 unix:/tmp/s] \"x\"\r\n");
        assert_eq!(monitor_line(5, Origin::Script, 0, &[]), b"+0.000005 [0 lua]\r\n");
    }
}
