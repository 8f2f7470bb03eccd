//! The time of a turn, and what the 24-bit access field of a key says: when it was used last, or, under an LFU
//! policy, how often.
//!
//! A field that counts has a clock of minutes (16 bits) above a counter (8 bits). The counter is logarithmic, after
//! Morris, "Counting large numbers of events in small registers" (1978): the higher it stands, the less likely a use
//! moves it, so that 8 bits tell millions of uses apart. It sinks with the minutes that pass. The numbers are those of
//! Redis.
//!
//! Must stay true: [`Now::used`] alone decides what a use writes and [`Now::fresh`] what a new key starts with; a
//! policy that changes at run time leaves the fields as they are, and they say something odd until their next uses.
use std::sync::atomic::Ordering;

use crate::base::{clock, rng};
use crate::config::{P, Settings};
use crate::ds::raw::block::BlockRef;
use crate::host::{Host, gate};

/// The access field has 24 bits.
const ACCESS_MASK: u32 = 0xFF_FFFF;
/// The clock of minutes has 16 bits.
const MINUTES_MASK: u32 = 0xFFFF;
const COUNTER_BITS: u32 = 8;
/// Where the counter of a new key stands, so that it survives until it had a chance of being used.
const FRESH_COUNTER: u8 = 5;

/// What access fields say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Uses {
    /// The second of the last use.
    #[default]
    Timed,
    /// How often the key is used.
    Counted {
        /// How slowly the counter rises (`lfu-log-factor`).
        log_factor: u32,
        /// Minutes in which it sinks by one (`lfu-decay-time`); 0: never.
        decay_minutes: u16,
    },
}

impl Uses {
    /// What access fields say under these settings.
    pub fn under(settings: &Settings) -> Uses {
        if !settings.choice(P::MAXMEMORY_POLICY).ends_with("lfu") {
            return Uses::Timed;
        }
        Uses::Counted {
            log_factor: u32::try_from(settings.int(P::LFU_LOG_FACTOR)).unwrap_or(0),
            // More minutes than the clock can show never pass.
            decay_minutes: u16::try_from(settings.int(P::LFU_DECAY_TIME)).unwrap_or(0),
        }
    }
}

/// The time of a turn. A thread that reads another shard's data brings its own.
#[derive(Clone, Copy, Debug, Default)]
pub struct Now {
    /// Wall time, milliseconds since the epoch.
    pub ms: u64,
    /// The 24-bit access clock (seconds).
    pub access: u32,
    /// What access fields say.
    pub uses: Uses,
    /// The client wants its uses to leave no trace (CLIENT NO-TOUCH).
    pub no_touch: bool,
    /// The data is being loaded: `ms` stays 0, so that nothing is due, whatever its deadline.
    pub is_loading: bool,
}

impl Now {
    /// Reads the clock.
    #[inline]
    pub fn read(uses: Uses) -> Now {
        let mut now = Now { uses, ..Now::default() };
        now.advance();
        now
    }

    /// Reads the clock for work under what is in force.
    pub fn under(host: &Host) -> Now {
        let mut now = Now::default();
        now.heed(host, &host.settings());
        now.later()
    }

    /// Reads the clock again.
    #[inline]
    pub fn advance(&mut self) {
        self.ms = clock::wall_ms();
        self.access = (self.ms / 1000) as u32 & ACCESS_MASK;
        if self.is_loading {
            self.ms = 0;
        }
    }

    /// The same a moment later.
    pub fn later(mut self) -> Now {
        self.advance();
        self
    }

    /// Takes over what is in force.
    pub(super) fn heed(&mut self, host: &Host, settings: &Settings) {
        self.uses = Uses::under(settings);
        let is_loading = host.gates.load(Ordering::Relaxed) & gate::LOADING != 0;
        if std::mem::replace(&mut self.is_loading, is_loading) != is_loading {
            self.advance();
        }
    }

    /// The same for a client with or without NO-TOUCH.
    #[inline(always)]
    pub fn with_no_touch(self, no_touch: bool) -> Now {
        Now { no_touch, ..self }
    }

    /// Seconds since `access`, by the 24-bit clock.
    pub fn idle_seconds(self, access: u32) -> u32 {
        self.access.wrapping_sub(access) & ACCESS_MASK
    }

    /// The access field of a new key.
    #[inline(always)]
    pub fn fresh(self) -> u32 {
        match self.uses {
            Uses::Timed => self.access,
            Uses::Counted { .. } => counted(self.minutes(), FRESH_COUNTER),
        }
    }

    /// The access field of a new key of which it is known when it was used last, or how often ([`Now::frequency`]); what
    /// the policy does not keep does not matter.
    pub fn fresh_with(self, idle_seconds: Option<u64>, frequency: Option<u8>) -> u32 {
        match (self.uses, idle_seconds, frequency) {
            (Uses::Timed, Some(idle), _) => self.access.wrapping_sub(idle as u32) & ACCESS_MASK,
            (Uses::Counted { .. }, _, Some(counter)) => counted(self.minutes(), counter),
            _ => self.fresh(),
        }
    }

    /// The access field of a key after a use, reading or writing.
    #[inline(always)]
    pub fn used(self, block: BlockRef<'_>) -> u32 {
        if self.no_touch {
            return block.access();
        }
        match self.uses {
            Uses::Timed => self.access,
            Uses::Counted { log_factor, decay_minutes } => self.count_use(block, log_factor, decay_minutes),
        }
    }

    /// Out of the way of those who do not count.
    #[cold]
    #[inline(never)]
    fn count_use(self, block: BlockRef<'_>, log_factor: u32, decay_minutes: u16) -> u32 {
        used_once(block.access(), self.minutes(), (log_factor, decay_minutes), rng::below)
    }

    /// Marks a use. Allowed through a shared view: of uses that race, one may be lost.
    #[inline(always)]
    pub fn mark_use(self, block: BlockRef<'_>) {
        block.touch(self.used(block));
    }

    /// How often a key with this access field is used, on a logarithmic scale. `None`: uses are not counted.
    pub fn frequency(self, access: u32) -> Option<u8> {
        match self.uses {
            Uses::Timed => None,
            Uses::Counted { decay_minutes, .. } => Some(decayed(access, self.minutes(), decay_minutes)),
        }
    }

    fn minutes(self) -> u32 {
        let ms = if self.is_loading { clock::wall_ms() } else { self.ms };
        (ms / 60_000) as u32 & MINUTES_MASK
    }
}

/// An access field that counts.
fn counted(minutes: u32, counter: u8) -> u32 {
    (minutes << COUNTER_BITS) | u32::from(counter)
}

/// The counter at `minutes`: one less for every whole `decay_minutes` since the last use.
fn decayed(access: u32, minutes: u32, decay_minutes: u16) -> u8 {
    let (last, counter) = (access >> COUNTER_BITS, access as u8);
    // Redis takes a clock that wrapped to have 65535 minutes.
    let elapsed = if minutes >= last { minutes - last } else { minutes + MINUTES_MASK - last };
    let periods = elapsed.checked_div(decay_minutes.into()).unwrap_or(0);
    counter.saturating_sub(u8::try_from(periods).unwrap_or(u8::MAX))
}

/// The field after a use at `minutes`: the counter sinks first, then rises with a probability of one to the distance
/// from a fresh key's, times the factor, plus one. `below(n)` draws a number from 0 up to but not including `n`.
fn used_once(
    access: u32,
    minutes: u32,
    (log_factor, decay_minutes): (u32, u16),
    below: impl FnOnce(u64) -> u64,
) -> u32 {
    let counter = decayed(access, minutes, decay_minutes);
    let chances = u64::from(counter.saturating_sub(FRESH_COUNTER)) * u64::from(log_factor) + 1;
    let rises = chances == 1 || below(chances) == 0;
    counted(minutes, counter.saturating_add(u8::from(rises)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::rng::Rng;
    use crate::ds::raw::block::{Block, NewValue};

    const HOUR_MS: u64 = 3_600_000;

    fn lfu(log_factor: u32, decay_minutes: u16) -> Now {
        let uses = Uses::Counted { log_factor, decay_minutes };
        Now { ms: 100 * HOUR_MS, access: 7, uses, ..Now::default() }
    }

    #[test]
    fn settings_decide_what_fields_say() {
        let under = |pairs: &[(&str, &str)]| {
            let mut settings = Settings::default();
            for (name, value) in pairs {
                settings.set(name.as_bytes(), &[value.as_bytes()]).unwrap();
            }
            Uses::under(&settings)
        };
        assert_eq!(under(&[]), Uses::Timed);
        assert_eq!(under(&[("maxmemory-policy", "allkeys-lru")]), Uses::Timed);
        let default = Uses::Counted { log_factor: 10, decay_minutes: 1 };
        assert_eq!(under(&[("maxmemory-policy", "volatile-lfu")]), default);
        let set =
            |decay| [("maxmemory-policy", "allkeys-lfu"), ("lfu-log-factor", "3"), ("lfu-decay-time", decay)];
        for (decay, decay_minutes) in [("9", 9), ("65535", 65_535), ("65536", 0), ("0", 0)] {
            assert_eq!(under(&set(decay)), Uses::Counted { log_factor: 3, decay_minutes });
        }
    }

    #[test]
    fn new_keys_may_have_a_past() {
        let timed = Now { access: 100, ..Now::default() };
        assert_eq!(timed.fresh_with(Some(30), Some(9)), 70);
        assert_eq!(timed.idle_seconds(timed.fresh_with(Some(1000), None)), 1000);
        assert_eq!(timed.fresh_with(None, Some(9)), timed.fresh());
        let counted = lfu(10, 1);
        assert_eq!(counted.frequency(counted.fresh_with(Some(30), Some(200))), Some(200));
        assert_eq!(counted.fresh_with(Some(30), None), counted.fresh());
    }

    #[test]
    fn counters_sink_with_the_minutes() {
        // Last use, now, minutes to sink by one; from 100.
        let cases = [
            ((50, 50, 1), 100),
            ((50, 57, 1), 93),
            ((50, 57, 4), 99),
            ((50, 53, 4), 100),
            ((50, 200, 1), 0),
            ((50, 60_000, 1), 0),
            ((50, 60_000, 0), 100),
            ((0, 65_535, 65_535), 99),
            // The clock wrapped.
            ((65_530, 5, 1), 90),
            ((65_535, 0, 1), 100),
            ((51, 50, 1), 0),
        ];
        for ((last, now, decay), counter) in cases {
            assert_eq!(decayed(counted(last, 100), now, decay), counter, "{last} {now} {decay}");
        }
    }

    #[test]
    fn a_use_sinks_then_rises_by_chance() {
        // Counter, log factor, chances, number drawn, counter then.
        let cases: [(u8, u32, u64, u64, u8); 8] = [
            (6, 10, 11, 0, 7),
            (6, 10, 11, 1, 6),
            (6, 10, 11, 10, 6),
            (7, 10, 21, 0, 8),
            (100, 1, 96, 0, 101),
            (254, 10, 2491, 0, 255),
            (255, 10, 2501, 0, 255),
            (255, i32::MAX as u32, 250 * 2_147_483_647 + 1, 0, 255),
        ];
        for (counter, factor, chances, drawn, want) in cases {
            let next = used_once(counted(3, counter), 3, (factor, 1), |n| {
                assert_eq!(n, chances);
                drawn
            });
            assert_eq!(next, counted(3, want), "{counter}");
        }
        // 110 sinks by 10 in 20 minutes of 2, and the minute is written in any case.
        assert_eq!(used_once(counted(3, 110), 23, (1, 2), |n| n - 1), counted(23, 100));
    }

    #[test]
    fn low_counters_rise_without_a_draw() {
        for (counter, factor) in [(0, 10), (4, 10), (5, 10), (9, 0), (254, 0)] {
            let next = used_once(counted(3, counter), 3, (factor, 1), |_| panic!("nothing to draw"));
            assert_eq!(next, counted(3, counter + 1));
        }
        assert_eq!(used_once(counted(3, 255), 3, (0, 1), |_| panic!()), counted(3, 255));
    }

    #[test]
    fn the_counter_grows_as_the_logarithm_of_uses() {
        // Redis documents about 18 after a thousand uses, 142 after a hundred thousand and 255 after a million, at a
        // factor of 10; the bounds are three standard deviations wide.
        let mut rng = Rng::seeded(5);
        let mut field = counted(0, FRESH_COUNTER);
        for (uses, low, high) in [(1000, 12, 26), (99_000, 125, 167), (900_000, 255, 255)] {
            for _ in 0..uses {
                field = used_once(field, 0, (10, 1), |n| rng.below(n));
            }
            assert!((low..=high).contains(&field), "{field} after {uses} more");
        }
    }

    #[test]
    fn one_function_decides_what_a_use_writes() {
        let mut now = lfu(0, 1);
        let block = Block::new(b"k", NewValue::Int(1), None, now.fresh(), 0);
        let block = block.view();
        assert_eq!(now.frequency(block.access()), Some(5));
        now.mark_use(block);
        now.mark_use(block);
        assert_eq!(now.frequency(block.access()), Some(7));
        now.with_no_touch(true).mark_use(block);
        assert_eq!(now.frequency(block.access()), Some(7));
        now.ms += 2 * 60_000;
        assert_eq!(now.frequency(block.access()), Some(5));
        assert_eq!(now.used(block), counted(6002, 6));
        now.uses = Uses::Timed;
        now.mark_use(block);
        assert_eq!((block.access(), now.fresh(), now.frequency(block.access())), (7, 7, None));
        now.access = 9;
        now.with_no_touch(true).mark_use(block);
        assert_eq!((block.access(), now.idle_seconds(block.access())), (7, 2));
    }

    #[test]
    fn the_clock_is_that_of_the_wall() {
        let now = Now::read(Uses::Timed);
        assert_eq!(u64::from(now.access), now.ms / 1000 % (1 << 24));
        assert!(now.ms > 1_500_000_000_000);
    }
}
