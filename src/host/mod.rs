//! What the whole process shares: settings in force, counters of every shard, connected clients, identity.
//! Floor 2.
//!
//! Must stay true: nothing here is written by two shards on the hot path. Counters have one writer each; settings
//! are an immutable snapshot that is republished whole.
mod claim;
mod clients;
mod counters;
mod cycle_clock;
pub mod gate;
mod gauges;
mod histogram;
pub mod hub;
pub mod journal;
mod latency;
mod lazy;
pub mod mail;
mod persistence;
pub mod queued;
pub mod rewrites;
pub mod running;
pub mod slow_log;
pub mod tracking;

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use arc_swap::ArcSwap;
use parking_lot::Mutex;

pub use claim::{Claim, Stand};
pub use clients::{ClientInfo, Clients, mark};
pub use counters::{CommandCounters, Counter, Counters, TOO_MANY_ERRORS};
pub use gauges::{Allocated, Gauges, Memory, Rates, ratio};
pub use histogram::{Durations, Histogram};
pub use latency::{LatencyEvents, Sample, Series};
pub use lazy::LazyFree;
pub use persistence::{DiskTrouble, Loading, Persistence, error_text};

use hub::Hub;

use crate::base::{clock, rng::Rng};
use crate::config::{P, Settings};
use cycle_clock::CycleClock;
use mail::Address;
use slow_log::SlowLog;
use tracking::Trackers;

/// Server-wide gate bits (see [`gate`]).
pub type Gates = AtomicU32;

/// Moves the server to other addresses; `Err`: why it cannot, in which case it stays.
pub type Listen = Box<dyn Fn(&Settings, &Settings) -> Result<(), String> + Send + Sync>;

/// Process-wide facts.
pub struct Host {
    settings: ArcSwap<Settings>,
    settings_version: AtomicU64,
    settings_writer: Mutex<()>,
    /// Counters, by shard.
    pub counters: Vec<Arc<Counters>>,
    /// Connected clients.
    pub clients: Clients,
    /// Who listens to what.
    pub hub: Hub,
    /// Who keeps what it has read.
    pub trackers: Trackers,
    /// Where large things are freed; stores hold it too.
    pub lazy_free: Arc<LazyFree>,
    /// Server-wide gate bits.
    pub gates: Gates,
    /// Until when clients are paused, milliseconds since the epoch.
    pub pause_until_ms: AtomicU64,
    /// 40 hexadecimal digits, new at every start.
    pub run_id: String,
    /// Replication id, 40 hexadecimal digits.
    pub repl_id: Mutex<String>,
    /// Payloads are restored whatever their checksums (DEBUG SET-SKIP-CHECKSUM-VALIDATION).
    pub skips_checksums: AtomicBool,
    /// Scripts may call what usually they may not (DEBUG SET-DISABLE-DENY-SCRIPTS).
    pub scripts_may_all: AtomicBool,
    /// When the process started.
    pub started: Instant,
    /// Wall clock at the start, microseconds.
    pub started_us: u64,
    /// Configuration file, if one was given.
    pub config_file: Option<std::path::PathBuf>,
    /// The I/O driver in force: `io_uring` or `epoll`.
    pub io_driver: &'static str,
    /// Listens where the second settings say, instead of where the first do.
    pub listen: OnceLock<Listen>,
    /// The process shall end.
    pub stopping: AtomicBool,
    /// What is measured from time to time.
    pub gauges: Gauges,
    /// The script that runs for a long time.
    pub scripts: running::Scripts,
    /// Commands that took long.
    pub slow_log: SlowLog,
    /// Events that held the server up.
    pub latency: LatencyEvents,
    /// Connections that watch every command. A gate bit is up while there are some; it changes under this lock.
    pub monitors: Mutex<Vec<Address>>,
    /// Snapshots, loading, trouble with the disk.
    pub persistence: Arc<Persistence>,
    /// The append-only log, as far as shards write to it.
    pub journal: journal::Journal,
    /// Rewriting it.
    pub rewrites: Mutex<rewrites::Rewrites>,
    cycle_clock: CycleClock,
}

/// What `Host::new` must be told.
pub struct Facts {
    /// Settings at the start.
    pub settings: Settings,
    /// Number of shards in force.
    pub shards: usize,
    /// Rows of the command table.
    pub commands: usize,
    /// Configuration file.
    pub config_file: Option<std::path::PathBuf>,
    /// The I/O driver in force.
    pub io_driver: &'static str,
}

impl Host {
    /// Makes the shared part of a server.
    pub fn new(facts: Facts) -> Host {
        let mut rng = Rng::from_entropy();
        let journal = journal::Journal::default();
        journal.heed(&facts.settings);
        Host {
            settings: ArcSwap::from_pointee(facts.settings),
            settings_version: AtomicU64::new(1),
            settings_writer: Mutex::new(()),
            counters: (0..facts.shards).map(|_| Arc::new(Counters::new(facts.commands))).collect(),
            clients: Clients::default(),
            hub: Hub::default(),
            trackers: Trackers::default(),
            lazy_free: Arc::default(),
            gates: AtomicU32::new(0),
            pause_until_ms: AtomicU64::new(0),
            run_id: rng.hex(40),
            repl_id: Mutex::new(rng.hex(40)),
            skips_checksums: AtomicBool::new(false),
            scripts_may_all: AtomicBool::new(false),
            started: clock::instant(),
            started_us: clock::wall_us(),
            config_file: facts.config_file,
            io_driver: facts.io_driver,
            listen: OnceLock::new(),
            stopping: AtomicBool::new(false),
            gauges: Gauges::new(),
            scripts: running::Scripts::default(),
            slow_log: SlowLog::default(),
            latency: LatencyEvents::default(),
            monitors: Mutex::default(),
            journal,
            rewrites: Mutex::default(),
            persistence: Arc::new(Persistence::new(clock::wall_us() / 1_000_000)),
            cycle_clock: CycleClock::start(),
        }
    }

    /// The settings in force.
    pub fn settings(&self) -> Arc<Settings> {
        self.settings.load_full()
    }

    /// Changes with every publication of settings; one relaxed load tells a shard to look again.
    #[inline]
    pub fn settings_version(&self) -> u64 {
        self.settings_version.load(Ordering::Acquire)
    }

    /// Publishes settings made from those in force. `change` runs alone.
    ///
    /// # Errors
    /// What `change` returns; nothing is published then.
    pub fn change_settings<E>(&self, change: impl FnOnce(&Settings) -> Result<Settings, E>) -> Result<(), E> {
        let _alone = self.settings_writer.lock();
        let next = change(&self.settings.load())?;
        self.journal.heed(&next);
        self.settings.store(Arc::new(next));
        self.settings_version.fetch_add(1, Ordering::Release);
        Ok(())
    }

    /// Has every shard look again at what it takes over with the settings.
    pub fn renew_settings(&self) {
        self.settings_version.fetch_add(1, Ordering::Release);
    }

    /// Whether CLIENT PAUSE is in force. Nothing is deleted then because its time has come.
    pub fn is_paused(&self, now_ms: u64) -> bool {
        now_ms < self.pause_until_ms.load(Ordering::Relaxed)
    }

    /// Cycles of the time stamp counter in a microsecond, measured since the start.
    pub fn cycles_per_us(&self) -> f64 {
        self.cycle_clock.per_us()
    }

    /// Number of shards.
    pub fn shards(&self) -> usize {
        self.counters.len()
    }

    /// Commands executed, by all shards.
    pub fn processed(&self) -> u64 {
        self.counters.iter().map(|shard| shard.processed()).sum()
    }

    /// Notes an event that may have held the server up, by the setting `latency-monitor-threshold`.
    pub fn note_latency(&self, event: &'static str, took_ms: u64) {
        self.latency.note(
            event,
            took_ms,
            self.settings.load().int(P::LATENCY_MONITOR_THRESHOLD).max(0) as u64,
        );
    }

    /// A counter summed over all shards.
    pub fn sum(&self, pick: impl Fn(&Counters) -> &Counter) -> u64 {
        self.counters.iter().map(|c| pick(c).get()).sum()
    }
}
