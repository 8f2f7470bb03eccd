//! What is measured from time to time rather than counted: rates, the peak of memory.
//!
//! [`Host::sample`] takes a sample; a tick of one shard calls it (INFO does too). Cheap enough for once a second.
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use parking_lot::Mutex;
use tikv_jemalloc_ctl::{epoch, stats};

use super::Host;
use crate::base::clock;
use crate::rt::sys;

/// A rate is an average over at least so long.
const RATE_MS_MIN: u128 = 500;

/// Bytes as the allocator counts them.
#[derive(Clone, Copy, Debug, Default)]
pub struct Allocated {
    /// In live allocations.
    pub allocated: u64,
    /// In pages that hold some.
    pub active: u64,
    /// Mapped and present.
    pub resident: u64,
}

impl Allocated {
    /// Asks the allocator.
    pub fn read() -> Allocated {
        // Statistics stand still until the epoch moves; without them all is 0.
        let _ = epoch::advance();
        Allocated {
            allocated: stats::allocated::read().unwrap_or(0) as u64,
            active: stats::active::read().unwrap_or(0) as u64,
            resident: stats::resident::read().unwrap_or(0) as u64,
        }
    }
}

/// The memory of the process; bytes.
#[derive(Clone, Copy, Debug)]
pub struct Memory {
    /// What the allocator says.
    pub allocator: Allocated,
    /// Present in memory, by the operating system.
    pub rss: u64,
    /// The most that was ever allocated.
    pub peak: u64,
    /// Allocated before there was any data.
    pub startup: u64,
}

impl Memory {
    /// Bytes beyond what an empty server takes.
    pub fn dataset(&self) -> u64 {
        self.allocator.allocated.saturating_sub(self.startup)
    }
}

/// `a / b`, 0 when there is nothing to divide by.
pub fn ratio(a: u64, b: u64) -> f64 {
    if b == 0 { 0.0 } else { a as f64 / b as f64 }
}

/// Resident pages are the second number of the file.
fn rss_bytes() -> Option<u64> {
    let statm = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = statm.split(' ').nth(1)?.parse().ok()?;
    Some(pages * sys::memory_bytes().0)
}

/// Rates per second.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rates {
    /// Commands.
    pub commands: f64,
    /// Bytes read from clients.
    pub net_in: f64,
    /// Bytes written to clients.
    pub net_out: f64,
    /// Reads from sockets.
    pub reads: f64,
    /// Seconds of processor time.
    pub cpu: f64,
}

#[derive(Debug)]
struct Last {
    at: Instant,
    totals: [u64; 5],
    rates: Rates,
}

/// The measured part of a [`Host`].
#[derive(Debug)]
pub struct Gauges {
    last: Mutex<Last>,
    peak_bytes: AtomicU64,
    /// Bytes allocated when the host was made.
    pub startup_bytes: u64,
}

impl Gauges {
    pub(super) fn new() -> Gauges {
        let bytes = Allocated::read().allocated;
        let last = Last { at: clock::instant(), totals: [0; 5], rates: Rates::default() };
        Gauges { last: Mutex::new(last), peak_bytes: AtomicU64::new(bytes), startup_bytes: bytes }
    }

    /// The most bytes that any sample found allocated.
    pub fn peak_bytes(&self) -> u64 {
        self.peak_bytes.load(Ordering::Relaxed)
    }

    /// Rates of the latest period.
    pub fn rates(&self) -> Rates {
        self.last.lock().rates
    }
}

impl Host {
    /// Takes a sample of everything measured, and returns what the allocator said.
    pub fn sample(&self) -> Allocated {
        let memory = Allocated::read();
        self.gauges.peak_bytes.fetch_max(memory.allocated, Ordering::Relaxed);
        let mut last = self.gauges.last.lock();
        let elapsed = last.at.elapsed();
        if elapsed.as_millis() >= RATE_MS_MIN {
            let [(user, system), _] = sys::cpu_seconds();
            let totals = [
                self.processed(),
                self.sum(|c| &c.net_in),
                self.sum(|c| &c.net_out),
                self.sum(|c| &c.reads),
                ((user + system) * 1e6) as u64,
            ];
            // Totals that fell were reset meanwhile.
            let rate = |i: usize| totals[i].saturating_sub(last.totals[i]) as f64 / elapsed.as_secs_f64();
            let rates = Rates {
                commands: rate(0),
                net_in: rate(1),
                net_out: rate(2),
                reads: rate(3),
                cpu: rate(4) / 1e6,
            };
            *last = Last { at: clock::instant(), totals, rates };
        }
        memory
    }

    /// Measures the memory of the process.
    pub fn memory(&self) -> Memory {
        let allocator = self.sample();
        let rss = rss_bytes().unwrap_or(allocator.resident);
        Memory { allocator, rss, peak: self.gauges.peak_bytes(), startup: self.gauges.startup_bytes }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_process_has_pages() {
        assert!(rss_bytes().unwrap() > 100_000);
        assert_eq!((ratio(1, 0), ratio(1, 2)), (0.0, 0.5));
    }
}
