//! How the data stands to the disk: the last snapshots, what is being loaded, whether writes can be kept. INFO shows it,
//! the gates ask it.
//!
//! Must stay true: the numbers are for people, so they may be a moment old; whether writes are refused is decided in
//! [`Persistence::refusal`] alone.
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicI64, AtomicU64, Ordering::Relaxed};

use crate::config::{P, Settings};

/// What is known of snapshots, of loading and of the log's trouble.
#[derive(Debug)]
pub struct Persistence {
    /// When the last snapshot was complete, or the start; seconds since 1970.
    pub saved_s: AtomicU64,
    /// The last snapshot in the background failed.
    pub save_failed: AtomicBool,
    /// Seconds that the last one in the background took; -1: there was none.
    pub save_took_s: AtomicI64,
    /// When the one under way began, seconds since 1970; -1: none is.
    pub save_began_s: AtomicI64,
    /// When the last one in the background was tried, seconds since 1970.
    pub tried_s: AtomicU64,
    /// One shall begin as soon as nothing else goes on.
    pub is_scheduled: AtomicBool,
    /// Snapshots begun.
    pub saves: AtomicU64,
    /// Changes, as the shards count them, that are in the last snapshot.
    pub saved_changes: AtomicU64,
    /// Keys written by the snapshot or rewriting under way.
    pub keys_done: AtomicU64,
    /// Keys that it had at its cut.
    pub keys_total: AtomicU64,
    /// Error number of the log's last write; 0: it is fine.
    pub log_errno: AtomicI32,
    /// What is being loaded.
    pub loading: Loading,
    /// Who is told at once when trouble begins or ends.
    pub watcher: Watcher,
}

/// Somebody who is told of trouble, if there is anybody.
#[derive(Default)]
pub struct Watcher(OnceLock<Box<dyn Fn() + Send + Sync>>);

impl Watcher {
    /// Says what to do. The first to say it stays.
    pub fn set(&self, tell: impl Fn() + Send + Sync + 'static) {
        let _ = self.0.set(Box::new(tell));
    }

    /// Trouble has begun or ended.
    pub fn tell(&self) {
        if let Some(tell) = self.0.get() {
            tell();
        }
    }
}

impl std::fmt::Debug for Watcher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Watcher")
    }
}

/// Progress of loading.
#[derive(Debug, Default)]
pub struct Loading {
    /// Since when, seconds since 1970; 0: nothing is being loaded.
    pub since_s: AtomicU64,
    /// Bytes of the files.
    pub total_bytes: AtomicU64,
    /// Bytes that were read.
    pub loaded_bytes: AtomicU64,
    /// Bytes of memory that the writer of the snapshot used.
    pub used_memory: AtomicU64,
    /// Keys put in by the last loading.
    pub keys: AtomicU64,
    /// Keys left out by the last loading because their time had come.
    pub expired: AtomicU64,
}

impl Loading {
    /// Percent that are read, and seconds that it may still take; `now_s` is the time.
    pub fn progress(&self, now_s: u64) -> (f64, u64) {
        let (total, loaded) = (self.total_bytes.load(Relaxed), self.loaded_bytes.load(Relaxed));
        let percent = 100.0 * loaded as f64 / total.max(1) as f64;
        let elapsed_s = now_s.saturating_sub(self.since_s.load(Relaxed));
        // In the first second too little is known.
        let left_s = if elapsed_s == 0 { 1 } else { elapsed_s * total.saturating_sub(loaded) / (loaded + 1) };
        (percent.min(100.0), left_s)
    }
}

/// Why writes are refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiskTrouble {
    /// The last snapshot failed.
    Snapshot,
    /// The log cannot be written: an error number.
    Log(i32),
}

impl DiskTrouble {
    /// As clients are told, without the dash.
    pub fn text(self) -> String {
        match self {
            DiskTrouble::Snapshot => "MISCONF Redis is configured to save RDB snapshots, but it's currently unable to \
                 persist to disk. Commands that may modify the data set are disabled, because this instance is \
                 configured to report errors during writes if RDB snapshotting fails (stop-writes-on-bgsave-error \
                 option). Please check the Redis logs for details about the RDB error."
                .into(),
            DiskTrouble::Log(errno) => {
                let error = std::io::Error::from_raw_os_error(errno);
                format!("MISCONF Errors writing to the AOF file: {}", error_text(&error))
            }
        }
    }
}

/// What the system says of an error, without its number.
pub fn error_text(error: &std::io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or_default().to_string()
}

impl Persistence {
    /// At the start of a server, `now_s` seconds since 1970.
    pub fn new(now_s: u64) -> Persistence {
        Persistence {
            saved_s: AtomicU64::new(now_s),
            save_failed: AtomicBool::new(false),
            save_took_s: AtomicI64::new(-1),
            save_began_s: AtomicI64::new(-1),
            tried_s: AtomicU64::new(0),
            is_scheduled: AtomicBool::new(false),
            saves: AtomicU64::new(0),
            saved_changes: AtomicU64::new(0),
            keys_done: AtomicU64::new(0),
            keys_total: AtomicU64::new(0),
            log_errno: AtomicI32::new(0),
            loading: Loading::default(),
            watcher: Watcher::default(),
        }
    }

    /// Whether there is trouble, whatever the settings make of it.
    pub fn is_troubled(&self) -> bool {
        self.save_failed.load(Relaxed) || self.log_errno.load(Relaxed) != 0
    }

    /// Why writes are refused under these settings, if they are.
    pub fn refusal(&self, settings: &Settings) -> Option<DiskTrouble> {
        if settings.bool(P::STOP_WRITES_ON_BGSAVE_ERROR)
            && self.save_failed.load(Relaxed)
            && !settings.save_rules().is_empty()
        {
            return Some(DiskTrouble::Snapshot);
        }
        match self.log_errno.load(Relaxed) {
            0 => None,
            errno => Some(DiskTrouble::Log(errno)),
        }
    }

    /// A snapshot is complete that has `changes` changes.
    pub fn note_saved(&self, now_s: u64, changes: u64) {
        self.saved_s.store(now_s, Relaxed);
        self.saved_changes.store(changes, Relaxed);
        self.save_failed.store(false, Relaxed);
    }

    /// Changes since the last snapshot, of `changes` that shards have counted.
    pub fn unsaved(&self, changes: u64) -> u64 {
        changes.saturating_sub(self.saved_changes.load(Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_are_refused_where_the_settings_say_so() {
        let state = Persistence::new(1);
        let mut settings = Settings::default();
        assert_eq!((state.is_troubled(), state.refusal(&settings)), (false, None));
        state.save_failed.store(true, Relaxed);
        settings.set(b"save", &[b""]).unwrap();
        assert_eq!((state.is_troubled(), state.refusal(&settings)), (true, None));
        settings.set(b"save", &[b"10", b"1"]).unwrap();
        assert_eq!(state.refusal(&settings), Some(DiskTrouble::Snapshot));
        settings.set(b"stop-writes-on-bgsave-error", &[b"no"]).unwrap();
        assert_eq!(state.refusal(&settings), None);
        state.log_errno.store(28, Relaxed);
        let log = state.refusal(&settings).unwrap();
        assert_eq!(log.text(), "MISCONF Errors writing to the AOF file: No space left on device");
        state.note_saved(2, 7);
        assert_eq!((state.unsaved(9), state.unsaved(3), state.save_failed.load(Relaxed)), (2, 0, false));
    }

    #[test]
    fn progress_is_told_in_percent_and_seconds() {
        let loading = Loading::default();
        loading.since_s.store(100, Relaxed);
        loading.total_bytes.store(1000, Relaxed);
        loading.loaded_bytes.store(249, Relaxed);
        assert_eq!(loading.progress(100), (24.9, 1));
        assert_eq!(loading.progress(102), (24.9, 6));
    }
}
