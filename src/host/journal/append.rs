//! The writing side of the journal: records go to the file, or are kept while it refuses them.
use std::io::{self, IoSlice};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use smallvec::SmallVec;

use super::disk::{LogFile, joined};
use super::{Core, Piece, Policy, Status};
use crate::base::clock;
use crate::host::error_text;
use crate::rt::log::{Level, line};

/// Seconds between two lines about writes that fail.
const LOG_SECONDS: u64 = 30;
/// A flush that takes longer delays writes, milliseconds.
const LONG_FLUSH_MS: u64 = 2000;

/// What the lock of the journal guards.
#[derive(Default)]
pub(super) struct State {
    /// What is selected behind all that was written; `None`: nothing yet.
    selected: Option<u32>,
    /// The second of the last annotation.
    stamped_s: u64,
    file: Option<Arc<LogFile>>,
    /// Bytes of the file that are whole writes.
    file_bytes: u64,
    /// Files that were written before this one and wait to be flushed.
    former: Vec<Arc<LogFile>>,
    /// Bytes written to all files, ever.
    written: u64,
    /// What the file refused.
    kept: Vec<u8>,
    error: Option<io::Error>,
    logged_s: u64,
    current_bytes: u64,
    base_bytes: u64,
    delayed: u64,
    /// The flush that delayed a write last.
    delayed_by_ms: u64,
    /// Where tests read what was written.
    captured: Vec<u8>,
    /// What comes before pieces; reused.
    heads: Vec<u8>,
}

/// What a flush is about.
pub(super) struct Unsynced {
    /// In the order in which they were written.
    pub files: Vec<Arc<LogFile>>,
    /// What is on the disk when all of them are flushed.
    pub up_to: u64,
}

impl State {
    pub(super) fn status(&self) -> Status {
        Status {
            current_bytes: self.current_bytes,
            base_bytes: self.base_bytes,
            kept_bytes: self.kept.len() as u64,
            flushes_under_way: 0,
            delayed: self.delayed,
            is_well: self.error.is_none(),
        }
    }

    pub(super) fn set_sizes(&mut self, current_bytes: u64, base_bytes: u64) {
        (self.current_bytes, self.base_bytes) = (current_bytes, base_bytes);
    }

    pub(super) fn written(&self) -> u64 {
        self.written
    }

    pub(super) fn file_bytes(&self) -> u64 {
        self.file_bytes
    }

    pub(super) fn error(&self) -> Option<&io::Error> {
        self.error.as_ref()
    }

    #[cfg(test)]
    pub(super) fn put_file(&mut self, file: LogFile) {
        self.file = Some(Arc::new(file));
    }

    pub(super) fn is_all_written(&self) -> bool {
        self.kept.is_empty()
    }

    pub(super) fn take_captured(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.captured)
    }

    /// What was written and is not known to be on the disk beyond `synced`; `None`: nothing.
    pub(super) fn unsynced(&mut self, synced: u64) -> Option<Unsynced> {
        if self.written == synced && self.former.is_empty() {
            return None;
        }
        let mut files = std::mem::take(&mut self.former);
        files.extend(self.file.clone());
        Some(Unsynced { files, up_to: self.written })
    }

    /// A flush failed: the files before the last wait for the next one.
    pub(super) fn flush_failed(&mut self, mut files: Vec<Arc<LogFile>>) {
        if let Some(current) = &self.file {
            files.retain(|file| !Arc::ptr_eq(file, current));
        }
        files.append(&mut self.former);
        self.former = files;
    }

    /// Writes what stands before each piece to `heads`; returns where each ends.
    fn prepare(&mut self, pieces: &[Piece<'_>], now_s: Option<u64>) -> SmallVec<[usize; 8]> {
        self.heads.clear();
        if let Some(now_s) = now_s.filter(|now_s| *now_s > self.stamped_s) {
            self.stamped_s = now_s;
            self.heads.extend_from_slice(format!("#TS:{now_s}\r\n").as_bytes());
        }
        let mut ends = SmallVec::new();
        for piece in pieces {
            if let Some(db) = piece.first_db
                && self.selected != Some(db)
            {
                let digits = db.to_string();
                let select = format!("*2\r\n$6\r\nSELECT\r\n${}\r\n{digits}\r\n", digits.len());
                self.heads.extend_from_slice(select.as_bytes());
            }
            self.selected = piece.last_db.or(self.selected);
            ends.push(self.heads.len());
        }
        ends
    }
}

impl Core {
    /// Returns the position behind what was written.
    pub(super) fn write(&self, pieces: &[Piece<'_>]) -> u64 {
        let now_s = self.has_timestamps.load(Ordering::Relaxed).then(|| clock::wall_ms() / 1000);
        let mut state = self.state.lock();
        let ends = state.prepare(pieces, now_s);
        let heads = std::mem::take(&mut state.heads);
        let mut parts: SmallVec<[IoSlice<'_>; 16]> = SmallVec::new();
        let mut from = 0;
        for (piece, end) in pieces.iter().zip(ends) {
            let both = [&heads[from..end], piece.bytes];
            parts.extend(both.into_iter().filter(|part| !part.is_empty()).map(IoSlice::new));
            from = end;
        }
        self.append(&mut state, &parts);
        drop(parts);
        state.heads = heads;
        let written = state.written;
        drop(state);
        if self.policy() == Policy::Always {
            self.flush_to(written);
        }
        written
    }

    fn append(&self, state: &mut State, parts: &[IoSlice<'_>]) {
        let Some(file) = state.file.clone() else {
            parts.iter().for_each(|part| state.captured.extend_from_slice(part));
            return;
        };
        if !state.kept.is_empty() {
            // Later records must not overtake earlier ones.
            parts.iter().for_each(|part| state.kept.extend_from_slice(part));
            if self.policy() == Policy::Always {
                self.write_kept(state, &file);
            }
            return;
        }
        let bytes: u64 = parts.iter().map(|part| part.len() as u64).sum();
        self.count_delay(state);
        match file.write_all(parts) {
            Ok(()) => state.wrote(bytes),
            Err((done, error)) => {
                let kept = joined(parts);
                self.failed(state, &file, kept, done, error);
            }
        }
    }

    /// Counts writes that meet a long flush.
    fn count_delay(&self, state: &mut State) {
        let began_ms = self.flush_began_ms.load(Ordering::Relaxed);
        if began_ms == 0 || began_ms == state.delayed_by_ms || self.policy() != Policy::EverySecond {
            return;
        }
        if clock::wall_ms().saturating_sub(began_ms) > LONG_FLUSH_MS {
            state.delayed_by_ms = began_ms;
            state.delayed += 1;
            line(
                Level::Notice,
                "Asynchronous AOF fsync is taking too long (disk is busy?). Writing the AOF buffer without waiting for \
                 fsync to complete, this may slow down Redis.",
            );
        }
    }

    /// Deals with a write of `bytes` that failed behind the first `done` of them.
    fn failed(&self, state: &mut State, file: &LogFile, bytes: Vec<u8>, done: u64, error: io::Error) {
        let now_s = clock::wall_ms() / 1000;
        let logs = now_s.saturating_sub(state.logged_s) > LOG_SECONDS;
        if logs {
            state.logged_s = now_s;
        }
        let log = |text: String| {
            if logs {
                line(Level::Warning, &text)
            }
        };
        let mut kept = bytes;
        if done == 0 {
            log(format!("Error writing to the AOF file: {}", error_text(&error)));
        } else {
            log(format!(
                "Short write while writing to the AOF file: (nwritten={done}, expected={})",
                kept.len()
            ));
            if let Err(error) = file.cut(state.file_bytes) {
                log(format!(
                    "Could not remove short write from the append-only file.  Redis may refuse to load the AOF the \
                     next time it starts.  ftruncate: {}",
                    error_text(&error)
                ));
                kept.drain(..done as usize);
                state.wrote(done);
            }
        }
        if self.policy() == Policy::Always {
            fatal("Can't recover from AOF write error when the AOF fsync policy is 'always'. Exiting...");
        }
        state.kept = kept;
        self.tell_trouble(errno(&error));
        state.error = Some(error);
    }

    /// Tries again to write what is kept.
    fn write_kept(&self, state: &mut State, file: &LogFile) {
        let kept = std::mem::take(&mut state.kept);
        match file.write_all(&[IoSlice::new(&kept)]) {
            Ok(()) => {
                state.wrote(kept.len() as u64);
                state.error = None;
                line(Level::Notice, "AOF write error looks solved, Redis can write again.");
            }
            Err((done, error)) => self.failed(state, file, kept, done, error),
        }
    }

    /// Writes what is kept, if anything is; tells when that ends the trouble.
    pub(super) fn retry(&self, tells: bool) {
        let mut state = self.state.lock();
        let Some(file) = state.file.clone() else { return };
        if state.kept.is_empty() {
            return;
        }
        self.write_kept(&mut state, &file);
        let is_well = state.error.is_none();
        drop(state);
        if tells && is_well && self.syncs.lock().error().is_none() {
            self.tell_trouble(0);
        }
    }

    pub(super) fn switch(&self, file: LogFile, file_bytes: u64) -> bool {
        self.retry(true);
        let mut state = self.state.lock();
        if !state.is_all_written() {
            return false;
        }
        let former = state.file.replace(Arc::new(file));
        state.former.extend(former);
        state.file_bytes = file_bytes;
        state.selected = None;
        state.stamped_s = 0;
        drop(state);
        self.bell.notify_one();
        true
    }

    pub(super) fn close(&self) {
        self.retry(true);
        self.flush_all();
        let mut state = self.state.lock();
        state.file = None;
        state.former.clear();
        state.kept = Vec::new();
        state.error = None;
        state.selected = None;
        (state.file_bytes, state.current_bytes, state.base_bytes) = (0, 0, 0);
        drop(state);
        self.syncs.lock().forget_error();
        self.tell_trouble(0);
    }
}

impl State {
    fn wrote(&mut self, bytes: u64) {
        self.file_bytes += bytes;
        self.written += bytes;
        self.current_bytes += bytes;
    }
}

/// The system's number of an error. A write that took nothing has none, and means that there is no room.
pub(super) fn errno(error: &io::Error) -> i32 {
    error.raw_os_error().unwrap_or(libc::ENOSPC)
}

/// Ends the process: what was promised cannot be kept.
pub(super) fn fatal(text: &str) -> ! {
    line(Level::Warning, text);
    std::process::exit(1)
}
