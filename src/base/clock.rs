//! The only place that asks the time.
//!
//! Wall time drives expiry and what clients see; monotonic time drives intervals. `advance` shifts the wall
//! clock of the whole process, so that tests need not sleep.
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

static SHIFT_MS: AtomicI64 = AtomicI64::new(0);

/// Milliseconds since the Unix epoch.
#[inline]
pub fn wall_ms() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    (now.as_secs() * 1000 + u64::from(now.subsec_millis()))
        .saturating_add_signed(SHIFT_MS.load(Ordering::Relaxed))
}

/// Microseconds since the Unix epoch.
#[inline]
pub fn wall_us() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    (now.as_micros() as u64).saturating_add_signed(SHIFT_MS.load(Ordering::Relaxed).saturating_mul(1000))
}

/// Moves the wall clock of this process by `ms`, for tests.
pub fn advance(ms: i64) {
    SHIFT_MS.fetch_add(ms, Ordering::Relaxed);
}

/// A monotonic instant.
pub fn instant() -> Instant {
    Instant::now()
}
