//! How long commands took: counts in buckets whose widths grow with the durations.
//!
//! Eight buckets an octave, so a duration is known to an eighth of itself. Durations are in cycles of the time stamp
//! counter, as they were measured; whoever reads turns them into time.
//!
//! Must stay true: one thread adds; adding is a look at the leading bits, a load and a store.
use super::Counter;

/// Bits of a duration that are not told apart: what is shorter takes no command.
const UNIT_BITS: u32 = 4;
/// Buckets of an octave, as a power of two.
const SUB_BITS: u32 = 3;
const SUB: u64 = 1 << SUB_BITS;
/// The longest duration told apart, in cycles; some minutes.
const CYCLES_MAX: u64 = (1 << 40) - 1;
/// Number of buckets.
const BUCKETS: usize = bucket(CYCLES_MAX) + 1;

/// The bucket of a duration. Below 16 units each has a bucket of its own.
#[inline(always)]
const fn bucket(cycles: u64) -> usize {
    let units = cycles >> UNIT_BITS;
    let shift = (u64::BITS - 1 - (units | SUB).leading_zeros()) - SUB_BITS;
    ((units >> shift) + ((shift as u64) << SUB_BITS)) as usize
}

/// The shortest duration of a bucket, in cycles.
const fn lower_bound(bucket: usize) -> u64 {
    let bucket = bucket as u64;
    let units = if bucket < 2 * SUB { bucket } else { (bucket % SUB + SUB) << (bucket / SUB - 1) };
    units << UNIT_BITS
}

/// Durations of one command on one shard.
#[derive(Debug)]
pub struct Histogram {
    counts: [Counter; BUCKETS],
}

impl Default for Histogram {
    fn default() -> Histogram {
        Histogram { counts: std::array::from_fn(|_| Counter::default()) }
    }
}

impl Histogram {
    /// Counts a duration; only the owning thread may.
    #[inline(always)]
    pub fn add(&self, cycles: u64) {
        self.counts[bucket(cycles.min(CYCLES_MAX))].add(1);
    }

    /// How many durations were counted.
    pub fn total(&self) -> u64 {
        self.counts.iter().map(Counter::get).sum()
    }

    /// Forgets all.
    pub fn reset(&self) {
        self.counts.iter().for_each(|count| count.set(0));
    }
}

/// Histograms added up, to be read.
#[derive(Clone, Debug)]
pub struct Durations {
    counts: Vec<u64>,
    cycles_per_us: f64,
}

impl Durations {
    /// The sum of some histograms; durations are told by so many cycles in a microsecond.
    pub fn sum<'a>(histograms: impl Iterator<Item = &'a Histogram>, cycles_per_us: f64) -> Durations {
        let mut counts = vec![0; BUCKETS];
        for histogram in histograms {
            for (sum, count) in counts.iter_mut().zip(&histogram.counts) {
                *sum += count.get();
            }
        }
        Durations { counts, cycles_per_us }
    }

    /// How many there are.
    pub fn total(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// The longest duration that a bucket stands for, in microseconds.
    fn upper_us(&self, bucket: usize) -> f64 {
        lower_bound(bucket + 1) as f64 / self.cycles_per_us
    }

    /// The duration in microseconds that so many percent of all do not exceed; 0 when there are none.
    pub fn percentile_us(&self, percent: f64) -> f64 {
        let wanted = (self.total() as f64 * percent / 100.0).ceil().max(1.0) as u64;
        let mut seen = 0;
        for (bucket, count) in self.counts.iter().enumerate() {
            seen += count;
            if seen >= wanted {
                return self.upper_us(bucket);
            }
        }
        0.0
    }

    /// How many did not exceed each bound, for bounds of 1.024 microseconds times powers of two: in whole microseconds,
    /// and only where the number grows.
    pub fn cumulative(&self) -> Vec<(u64, u64)> {
        let (mut steps, mut seen, mut bound_ns) = (Vec::new(), 0, 1024u64);
        for (bucket, count) in self.counts.iter().enumerate().filter(|(_, count)| **count > 0) {
            let middle_ns =
                1000.0 * (lower_bound(bucket) + lower_bound(bucket + 1)) as f64 / (2.0 * self.cycles_per_us);
            while middle_ns > bound_ns as f64 {
                bound_ns *= 2;
            }
            seen += count;
            match steps.last_mut() {
                Some((us, total)) if *us == bound_ns / 1000 => *total = seen,
                _ => steps.push((bound_ns / 1000, seen)),
            }
        }
        steps
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_follow_each_other_without_gaps() {
        assert_eq!((lower_bound(0), bucket(0), bucket(15), bucket(16)), (0, 0, 0, 1));
        for index in 1..BUCKETS {
            assert_eq!(bucket(lower_bound(index)), index);
            assert_eq!(bucket(lower_bound(index) - 1), index - 1);
        }
        // An eighth at most, beyond the smallest.
        for index in 16..BUCKETS {
            let (low, high) = (lower_bound(index), lower_bound(index + 1));
            assert!((high - low) * 8 <= low, "{index}");
        }
    }

    #[test]
    fn percentiles_and_steps() {
        let (one, two) = (Histogram::default(), Histogram::default());
        // A thousand cycles are a microsecond here.
        for _ in 0..98 {
            one.add(900);
        }
        two.add(3000);
        two.add(u64::MAX);
        let all = Durations::sum([&one, &two].into_iter(), 1000.0);
        assert_eq!((all.total(), one.total(), two.total()), (100, 98, 2));
        let near = |percent: f64, us: f64| (all.percentile_us(percent) / us - 1.0).abs() < 0.13;
        assert!(near(0.0, 0.9) && near(50.0, 0.9) && near(98.0, 0.9) && near(99.0, 3.0));
        assert!(all.percentile_us(100.0) > 1e9);
        assert_eq!(all.cumulative()[..2], [(1, 98), (4, 99)]);
        assert_eq!(all.cumulative().last().unwrap().1, 100);
        one.reset();
        assert_eq!(one.total(), 0);
        let none = Durations::sum([&one].into_iter(), 1000.0);
        assert_eq!((none.percentile_us(50.0), none.cumulative().len()), (0.0, 0));
    }
}
