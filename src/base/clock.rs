//! The only place that asks the time.
//!
//! Wall time drives expiry and what clients see; monotonic time drives intervals. `advance` shifts the wall
//! clock of the whole process, so that tests need not sleep; `freeze` stops it for one thread, so that a simulation has
//! a time of its own.
use std::cell::Cell;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

static SHIFT_MS: AtomicI64 = AtomicI64::new(0);

thread_local! {
    /// The wall time of this thread, milliseconds since the epoch; 0: that of the system.
    static FROZEN_MS: Cell<u64> = const { Cell::new(0) };
}

/// Milliseconds since the Unix epoch.
#[inline]
pub fn wall_ms() -> u64 {
    match FROZEN_MS.get() {
        0 => system_ms(),
        frozen_ms => frozen_ms,
    }
}

#[inline]
fn system_ms() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    (now.as_secs() * 1000 + u64::from(now.subsec_millis()))
        .saturating_add_signed(SHIFT_MS.load(Ordering::Relaxed))
}

/// Microseconds since the Unix epoch.
#[inline]
pub fn wall_us() -> u64 {
    let frozen_ms = FROZEN_MS.get();
    if frozen_ms > 0 {
        return frozen_ms * 1000;
    }
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    (now.as_micros() as u64).saturating_add_signed(SHIFT_MS.load(Ordering::Relaxed).saturating_mul(1000))
}

/// Moves the wall clock of this process by `ms`, for tests.
pub fn advance(ms: i64) {
    SHIFT_MS.fetch_add(ms, Ordering::Relaxed);
}

/// Stops the wall clock for the calling thread, at `ms` milliseconds since the epoch; 0 lets it go again. For simulations.
#[doc(hidden)]
pub fn freeze(ms: u64) {
    FROZEN_MS.set(ms);
}

/// A monotonic instant.
pub fn instant() -> Instant {
    Instant::now()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frozen_clock_stands_still_for_its_thread_only() {
        freeze(5_000);
        assert_eq!((wall_ms(), wall_us()), (5_000, 5_000_000));
        assert!(std::thread::spawn(wall_ms).join().unwrap() > 5_000);
        freeze(0);
        assert!(wall_ms() > 5_000);
    }
}
