//! Events that held the server up: the samples behind LATENCY.
//!
//! Must stay true: of each event the worst sample of a second is kept, and a bounded number of seconds.
use std::collections::{BTreeMap, VecDeque};

use parking_lot::Mutex;

use crate::base::clock;

/// Samples kept of an event.
const SAMPLES_MAX: usize = 160;

/// The worst of one second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// Wall clock, seconds.
    pub at_s: u64,
    /// How long it took, milliseconds.
    pub took_ms: u64,
}

/// What is known of an event.
#[derive(Clone, Debug, Default)]
pub struct Series {
    /// Oldest first; never empty.
    pub samples: VecDeque<Sample>,
    /// The worst that ever was, milliseconds.
    pub worst_ms: u64,
}

impl Series {
    fn add(&mut self, sample: Sample) {
        self.worst_ms = self.worst_ms.max(sample.took_ms);
        match self.samples.back_mut() {
            Some(last) if last.at_s == sample.at_s => last.took_ms = last.took_ms.max(sample.took_ms),
            _ => {
                if self.samples.len() == SAMPLES_MAX {
                    self.samples.pop_front();
                }
                self.samples.push_back(sample);
            }
        }
    }
}

/// All events.
#[derive(Debug, Default)]
pub struct LatencyEvents {
    series: Mutex<BTreeMap<&'static str, Series>>,
}

impl LatencyEvents {
    /// Notes how long an event lasted, if that is as much as the threshold; a threshold of 0 keeps nothing.
    pub fn note(&self, event: &'static str, took_ms: u64, threshold_ms: u64) {
        if threshold_ms != 0 && took_ms >= threshold_ms {
            self.keep(event, took_ms);
        }
    }

    fn keep(&self, event: &'static str, took_ms: u64) {
        let sample = Sample { at_s: clock::wall_ms() / 1000, took_ms };
        self.series.lock().entry(event).or_default().add(sample);
    }

    /// All events, by name.
    pub fn all(&self) -> BTreeMap<&'static str, Series> {
        self.series.lock().clone()
    }

    /// One event.
    pub fn get(&self, event: &[u8]) -> Option<(&'static str, Series)> {
        let series = self.series.lock();
        series.iter().find(|(name, _)| name.as_bytes() == event).map(|(name, series)| (*name, series.clone()))
    }

    /// Forgets the events whose names `chosen` chooses; returns how many there were.
    pub fn reset(&self, chosen: impl Fn(&str) -> bool) -> usize {
        let mut series = self.series.lock();
        let before = series.len();
        series.retain(|name, _| !chosen(name));
        before - series.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_of_each_second_is_kept() {
        let mut series = Series::default();
        for (at_s, took_ms) in [(1, 5), (1, 9), (1, 7), (2, 3)] {
            series.add(Sample { at_s, took_ms });
        }
        let kept: Vec<_> = series.samples.iter().map(|s| (s.at_s, s.took_ms)).collect();
        assert_eq!((kept, series.worst_ms), (vec![(1, 9), (2, 3)], 9));
        for at_s in 3..500 {
            series.add(Sample { at_s, took_ms: 1 });
        }
        assert_eq!((series.samples.len(), series.samples[0].at_s, series.worst_ms), (160, 340, 9));
    }

    #[test]
    fn a_threshold_decides() {
        let events = LatencyEvents::default();
        events.note("a", 1000, 0);
        assert!(events.all().is_empty());
        events.note("a", 9, 10);
        assert!(events.all().is_empty());
        events.note("a", 10, 10);
        events.note("b", 20, 10);
        assert_eq!(events.all().keys().copied().collect::<Vec<_>>(), ["a", "b"]);
        assert_eq!(events.get(b"b").unwrap().1.worst_ms, 20);
        assert!(events.get(b"c").is_none());
        assert_eq!((events.reset(|name| name == "b"), events.reset(|_| true)), (1, 1));
    }
}
