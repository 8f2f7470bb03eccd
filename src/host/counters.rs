//! Counters with one writer each: the shard they belong to. Readers of other threads see them a moment late.
use std::collections::BTreeMap;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use super::Histogram;
use crate::rt::log::{self, Level};

/// A counter that only one thread writes: adding is a plain load and store, no locked instruction.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// Adds; only the owning thread may.
    #[inline]
    pub fn add(&self, n: u64) {
        self.0.store(self.0.load(Ordering::Relaxed).wrapping_add(n), Ordering::Relaxed);
    }

    /// Sets.
    #[inline]
    pub fn set(&self, n: u64) {
        self.0.store(n, Ordering::Relaxed);
    }

    /// Reads.
    #[inline]
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Kinds of errors that are told apart. Scripts make up their own; more of them than this are a mistake.
const ERROR_KINDS_MAX: usize = 128;
/// What stands for all kinds once there were too many, until they are reset.
pub const TOO_MANY_ERRORS: &str = "ERRORSTATS_DISABLED";

/// Counts an error by its first word. `false`: there are too many kinds, from now on.
fn count_error(errors: &mut BTreeMap<String, u64>, code: String) -> bool {
    if errors.contains_key(TOO_MANY_ERRORS) {
        return true;
    }
    let is_known = errors.contains_key(&code);
    if !is_known && errors.len() >= ERROR_KINDS_MAX {
        errors.clear();
        errors.insert(TOO_MANY_ERRORS.to_string(), 1);
        return false;
    }
    *errors.entry(code).or_default() += 1;
    true
}

/// What is counted for each command.
#[derive(Debug, Default)]
pub struct CommandCounters {
    /// Calls whose durations are not in `durations`: `latency-tracking` was off.
    untracked: Counter,
    /// How long calls took; made at the first one. Its counts are the number of calls, which then needs no counter.
    durations: OnceLock<Box<Histogram>>,
    /// Time stamp counter cycles spent.
    pub cycles: Counter,
    /// Refused before they ran.
    pub rejected: Counter,
    /// Answered with an error.
    pub failed: Counter,
}

impl CommandCounters {
    /// Counts a call that took so many cycles; `tracked`: its duration is kept, too.
    #[inline(always)]
    pub fn add_call(&self, cycles: u64, tracked: bool) {
        self.cycles.add(cycles);
        if tracked {
            self.durations.get_or_init(Box::default).add(cycles);
        } else {
            self.untracked.add(1);
        }
    }

    /// Number of calls.
    pub fn calls(&self) -> u64 {
        self.untracked.get() + self.durations.get().map_or(0, |durations| durations.total())
    }

    /// How long calls took, if that was ever kept.
    pub fn durations(&self) -> Option<&Histogram> {
        self.durations.get().map(|durations| &**durations)
    }

    fn reset(&self) {
        if let Some(durations) = self.durations.get() {
            durations.reset();
        }
        for counter in [&self.untracked, &self.cycles, &self.rejected, &self.failed] {
            counter.set(0);
        }
    }
}

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident),* $(,)?) => {
        /// One shard's counters.
        #[derive(Debug)]
        pub struct Counters {
            $($(#[$doc])* pub $name: Counter,)*
            /// By row of the command table.
            pub commands: Vec<CommandCounters>,
            /// Errors by their first word.
            pub errors: Mutex<BTreeMap<String, u64>>,
        }

        impl Counters {
            /// All zero, for a table of `commands` rows.
            pub fn new(commands: usize) -> Counters {
                Counters {
                    $($name: Counter::default(),)*
                    commands: (0..commands).map(|_| CommandCounters::default()).collect(),
                    errors: Mutex::default(),
                }
            }

            /// Counts an error reply by its first word.
            pub fn count_error(&self, code: String) {
                self.error_replies.add(1);
                if !count_error(&mut self.errors.lock(), code) {
                    log::line(Level::Warning, "Too many kinds of errors: they are told apart no more until CONFIG RESETSTAT.");
                }
            }

            /// Commands executed.
            pub fn processed(&self) -> u64 {
                self.commands.iter().map(CommandCounters::calls).sum()
            }

            /// CONFIG RESETSTAT.
            pub fn reset(&self) {
                const NOW: &[&str] = &[
                    "dirty", "clients", "blocked_clients", "timed_waits", "tracked_keys", "tracked_reads",
                    "client_bytes",
                ];
                $(if !NOW.contains(&stringify!($name)) { self.$name.set(0); })*
                self.commands.iter().for_each(CommandCounters::reset);
                self.errors.lock().clear();
            }
        }
    };
}

counters! {
    /// Connections accepted.
    connections,
    /// Connections refused because of maxclients.
    refused_connections,
    /// Clients connected to this shard.
    clients,
    /// Bytes read from clients.
    net_in,
    /// Bytes written to clients.
    net_out,
    /// Reads that found their key.
    hits,
    /// Reads that did not.
    misses,
    /// Keys deleted by expiry.
    expired_keys,
    /// Parts of values (fields of hashes) deleted because their deadlines had come.
    expired_subkeys,
    /// Changes since the last save.
    dirty,
    /// Error replies.
    error_replies,
    /// Protocol violations and other reasons to close a client at once.
    protocol_errors,
    /// Clients closed because their output buffer passed its limit.
    output_limit_closed,
    /// Clients closed because their requests passed the limit of the query buffer.
    query_limit_closed,
    /// Bytes that the shard's clients cost.
    client_bytes,
    /// Clients closed because all clients together cost too much.
    evicted_clients,
    /// Reads of another shard's keys served in place.
    in_place_reads,
    /// Messages sent to other shards.
    mesh_messages,
    /// Commands that went to another shard by message.
    mesh_commands,
    /// Wake-ups of sleeping shards.
    parks,
    /// Commands that held several shards.
    holds,
    /// Clients blocked in a command, now.
    blocked_clients,
    /// Those of them whose wait has an end.
    timed_waits,
    /// Keys that some client keeps, now.
    tracked_keys,
    /// Clients that keep them, each counted for every key, now.
    tracked_reads,
    /// Holds that had to wait for an owner.
    hold_waits,
    /// Read system calls or completions.
    reads,
    /// Write system calls or completions.
    writes,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_of_errors_are_bounded() {
        let mut errors = BTreeMap::new();
        for n in 0..ERROR_KINDS_MAX {
            assert!(count_error(&mut errors, format!("E{n}")));
        }
        assert!(count_error(&mut errors, "E5".into()));
        assert_eq!((errors.len(), errors["E5"]), (ERROR_KINDS_MAX, 2));
        assert!(!count_error(&mut errors, "more".into()));
        assert!(count_error(&mut errors, "E5".into()));
        assert_eq!(errors, BTreeMap::from([(TOO_MANY_ERRORS.to_string(), 1)]));
    }

    #[test]
    fn calls_are_counted_with_and_without_durations() {
        let counters = CommandCounters::default();
        counters.add_call(100, true);
        counters.add_call(50, false);
        assert_eq!((counters.calls(), counters.cycles.get()), (2, 150));
        assert_eq!(counters.durations().unwrap().total(), 1);
        counters.reset();
        assert_eq!((counters.calls(), counters.cycles.get()), (0, 0));
    }
}
