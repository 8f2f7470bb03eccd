//! Counters with one writer each: the shard they belong to. Readers of other threads see them a moment late.
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

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

/// What is counted for each command.
#[derive(Debug, Default)]
pub struct CommandCounters {
    /// Calls.
    pub calls: Counter,
    /// Time stamp counter cycles spent.
    pub cycles: Counter,
    /// Refused before they ran.
    pub rejected: Counter,
    /// Answered with an error.
    pub failed: Counter,
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

            /// CONFIG RESETSTAT.
            pub fn reset(&self) {
                $(if !matches!(stringify!($name), "dirty" | "clients" | "blocked_clients") { self.$name.set(0); })*
                for command in &self.commands {
                    command.calls.set(0);
                    command.cycles.set(0);
                    command.rejected.set(0);
                    command.failed.set(0);
                }
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
    /// Commands executed.
    processed,
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
    /// Holds that had to wait for an owner.
    hold_waits,
    /// Read system calls or completions.
    reads,
    /// Write system calls or completions.
    writes,
}
