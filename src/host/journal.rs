//! The append-only log, as far as shards write to it: one ordered stream of what all of them changed.
//!
//! A write is one call of the system under one lock, so the order of the log is the order of the calls. Under
//! `appendfsync always` a write returns when it is on the disk: who finds no flush under way does one for all that was
//! written by then, the others wait for it or for the next. Under `everysec` a thread flushes once a second.
//!
//! Must stay true: pieces of one [`Journal::write`] stand together and in their order; a write that has returned is in
//! the file (and on the disk, where `appendfsync` says `always`), or the journal keeps it and goes on trying; the file
//! holds whole writes only, unless the system refuses to cut a torn one off.
mod append;
mod disk;
mod flush;

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use parking_lot::{Condvar, Mutex};

use super::error_text;
use crate::config::{P, Settings};
use append::State;
pub use disk::LogFile;
use flush::{Errand, Helper, Syncs};

/// Records that one shard, or one command over several shards, has noted: commands in the protocol's encoding. The first
/// is about `first_db`; where the database changes, a SELECT stands among them.
#[derive(Clone, Copy, Debug)]
pub struct Piece<'a> {
    /// The database that must be selected before the first record; `None`: the records need none.
    pub first_db: Option<u32>,
    /// The database that is selected after the last one.
    pub last_db: Option<u32>,
    /// The records.
    pub bytes: &'a [u8],
}

/// When the log is flushed to the disk: `appendfsync`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Policy {
    /// Once a second, by a thread of its own.
    EverySecond = 0,
    /// Before a write returns.
    Always = 1,
    /// When the system pleases.
    Never = 2,
}

/// What INFO tells of the log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Status {
    /// Bytes of all files in use.
    pub current_bytes: u64,
    /// Bytes of all files when they were last rewritten, or of the base at the start.
    pub base_bytes: u64,
    /// Bytes that are kept because they could not be written.
    pub kept_bytes: u64,
    /// Flushes by the thread that are under way.
    pub flushes_under_way: u64,
    /// Writes that met a flush of more than two seconds.
    pub delayed: u64,
    /// The last write and the last flush went well.
    pub is_well: bool,
}

/// Told the system's error number when the log cannot be written, 0 when it can again.
pub type OnTrouble = Box<dyn Fn(i32) + Send + Sync>;

/// The append-only log.
#[derive(Default)]
pub struct Journal {
    is_on: AtomicBool,
    core: Arc<Core>,
    has_helper: OnceLock<()>,
}

/// What the journal shares with its thread.
#[derive(Default)]
struct Core {
    policy: AtomicU8,
    has_timestamps: AtomicBool,
    spares_busy_disk: AtomicBool,
    is_disk_busy: AtomicBool,
    state: Mutex<State>,
    syncs: Mutex<Syncs>,
    synced: Condvar,
    /// When the flush under way began, milliseconds since the epoch; 0: there is none.
    flush_began_ms: AtomicU64,
    helper: Mutex<Helper>,
    bell: Condvar,
    on_trouble: OnceLock<OnTrouble>,
}

impl Core {
    fn policy(&self) -> Policy {
        match self.policy.load(Ordering::Relaxed) {
            1 => Policy::Always,
            2 => Policy::Never,
            _ => Policy::EverySecond,
        }
    }

    fn tell_trouble(&self, errno: i32) {
        if let Some(tell) = self.on_trouble.get() {
            tell(errno);
        }
    }
}

impl Journal {
    /// Whether changes are logged. Stores take it over with the settings, so whoever switches it does that while all
    /// shards are held, and has the settings renewed.
    pub fn is_on(&self) -> bool {
        self.is_on.load(Ordering::Relaxed)
    }

    /// Switches the log on or off.
    pub fn set_on(&self, is_on: bool) {
        self.is_on.store(is_on, Ordering::Relaxed);
    }

    /// Takes over what of the settings it follows.
    pub fn heed(&self, settings: &Settings) {
        let policy = match settings.choice(P::APPENDFSYNC) {
            "always" => Policy::Always,
            "no" => Policy::Never,
            _ => Policy::EverySecond,
        };
        self.core.policy.store(policy as u8, Ordering::Relaxed);
        let put = |to: &AtomicBool, id| to.store(settings.bool(id), Ordering::Relaxed);
        put(&self.core.has_timestamps, P::AOF_TIMESTAMP_ENABLED);
        put(&self.core.spares_busy_disk, P::NO_APPENDFSYNC_ON_REWRITE);
    }

    /// Notes that a rewrite or a snapshot keeps the disk busy, or has ended: `no-appendfsync-on-rewrite` spares the disk
    /// flushes meanwhile.
    pub fn set_disk_busy(&self, is_busy: bool) {
        self.core.is_disk_busy.store(is_busy, Ordering::Relaxed);
    }

    /// Who is told of trouble. The first to be set stays.
    pub fn on_trouble(&self, tell: OnTrouble) {
        let _ = self.core.on_trouble.set(tell);
    }

    /// Writes pieces, with one call of the system.
    pub fn write(&self, pieces: &[Piece<'_>]) {
        let _ = self.core.write(pieces);
    }

    /// Writes to `file` from now on, which holds `file_bytes`. What was written before is flushed before what comes now.
    /// A SELECT comes first. `false`: it does not, since the file before it refuses what belongs there.
    #[must_use]
    pub fn switch(&self, file: LogFile, file_bytes: u64) -> bool {
        self.start_helper();
        self.core.switch(file, file_bytes)
    }

    /// Writes what is kept, flushes, and closes the file. Writes are let go from now on.
    pub fn close(&self) {
        self.core.close();
    }

    /// Writes what is kept and flushes, for the end of the process. `false`: that failed.
    pub fn finish(&self) -> bool {
        self.core.retry(false);
        self.core.flush_all() && self.core.state.lock().is_all_written()
    }

    /// Sets the sizes that growth is measured by: of all files, and at the last rewrite.
    pub fn set_sizes(&self, current_bytes: u64, base_bytes: u64) {
        self.core.state.lock().set_sizes(current_bytes, base_bytes);
    }

    /// Bytes written to the file in use.
    pub fn file_bytes(&self) -> u64 {
        self.core.state.lock().file_bytes()
    }

    /// What INFO tells.
    pub fn status(&self) -> Status {
        let mut status = self.core.state.lock().status();
        let syncs = self.core.syncs.lock();
        status.flushes_under_way = u64::from(syncs.is_running());
        status.is_well &= syncs.error().is_none();
        status
    }

    /// Why the log cannot be written, in the system's words; `None`: it can.
    pub fn trouble(&self) -> Option<String> {
        let written = self.core.state.lock().error().map(error_text);
        written.or_else(|| self.core.syncs.lock().error().map(error_text))
    }

    /// Removes a file on the thread of the journal.
    pub fn remove_later(&self, path: std::path::PathBuf) {
        self.start_helper();
        self.core.helper.lock().errands.push(Errand::Remove(path));
        self.core.bell.notify_one();
    }

    /// Takes out what was written while there was no file, in tests.
    pub fn take_captured(&self) -> Vec<u8> {
        self.core.state.lock().take_captured()
    }

    fn start_helper(&self) {
        self.has_helper.get_or_init(|| flush::start_thread(&self.core));
    }
}

impl Drop for Journal {
    fn drop(&mut self) {
        self.core.helper.lock().ends = true;
        self.core.bell.notify_one();
    }
}

#[cfg(test)]
mod tests;
