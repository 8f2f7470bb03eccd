//! How fast the processor's time stamp counter goes by, measured against the clock since the start.
//!
//! Must stay true: a thread that is held up between its looks at the two does not spoil the measure.
use std::time::Instant;

use crate::base::clock;
use crate::rt::sys::cycles;

/// Looks at both clocks, to find one that nothing came between.
const LOOKS: usize = 8;

/// A moment on both clocks.
#[derive(Clone, Copy, Debug)]
struct Moment {
    at: Instant,
    cycles: u64,
}

impl Moment {
    fn now() -> Moment {
        let look = || {
            let before = cycles();
            let at = clock::instant();
            let took = cycles().wrapping_sub(before);
            (took, Moment { at, cycles: before.wrapping_add(took / 2) })
        };
        let mut best = look();
        for _ in 1..LOOKS {
            let other = look();
            if other.0 < best.0 {
                best = other;
            }
        }
        best.1
    }
}

/// The measure.
#[derive(Debug)]
pub struct CycleClock {
    start: Moment,
}

impl CycleClock {
    /// Starts to measure.
    pub fn start() -> CycleClock {
        CycleClock { start: Moment::now() }
    }

    /// Cycles in a microsecond.
    pub fn per_us(&self) -> f64 {
        let now = Moment::now();
        let us = now.at.duration_since(self.start.at).as_secs_f64() * 1e6;
        (now.cycles.wrapping_sub(self.start.cycles) as f64 / us.max(1.0)).max(1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_measure_is_steady() {
        let clock = CycleClock::start();
        std::thread::sleep(std::time::Duration::from_millis(5));
        let early = clock.per_us();
        std::thread::sleep(std::time::Duration::from_millis(50));
        let late = clock.per_us();
        assert!((early / late - 1.0).abs() < 0.005, "{early} {late}");
    }
}
