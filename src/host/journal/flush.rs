//! The flushing side of the journal: one flush at a time, shared by all who wait for it, and the thread that flushes
//! once a second and runs errands.
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use super::append::{Unsynced, errno, fatal};
use super::{Core, Policy};
use crate::base::clock;
use crate::host::error_text;
use crate::rt::disk;
use crate::rt::log::{Level, line};

/// How often the thread flushes and tries again.
const PERIOD: Duration = Duration::from_secs(1);

/// What is known about flushes.
#[derive(Default)]
pub(super) struct Syncs {
    /// Bytes written to all files that are on the disk.
    pub(super) synced: u64,
    pub(super) is_running: bool,
    /// Flushes so far.
    #[cfg(test)]
    pub(super) flushes: u64,
    error: Option<io::Error>,
}

impl Syncs {
    pub(super) fn is_running(&self) -> bool {
        self.is_running
    }

    pub(super) fn error(&self) -> Option<&io::Error> {
        self.error.as_ref()
    }

    pub(super) fn forget_error(&mut self) {
        self.error = None;
    }
}

/// What the thread does besides.
pub(super) enum Errand {
    /// Removes a file.
    Remove(PathBuf),
}

/// What the thread is asked for.
#[derive(Default)]
pub(super) struct Helper {
    pub(super) errands: Vec<Errand>,
    /// The journal is gone.
    pub(super) ends: bool,
}

impl Core {
    /// Waits until what was written up to `position` is on the disk. `false`: a flush failed.
    pub(super) fn flush_to(&self, position: u64) -> bool {
        let mut syncs = self.syncs.lock();
        while syncs.synced < position {
            if syncs.is_running {
                self.synced.wait(&mut syncs);
                continue;
            }
            syncs.is_running = true;
            let synced = syncs.synced;
            drop(syncs);
            if !self.flush(synced) {
                return false;
            }
            syncs = self.syncs.lock();
        }
        true
    }

    /// Flushes all that was written. `false`: that failed.
    pub(super) fn flush_all(&self) -> bool {
        let written = self.state.lock().written();
        self.flush_to(written)
    }

    /// Flushes what was written beyond `synced`. Only for who has noted that a flush is under way.
    fn flush(&self, synced: u64) -> bool {
        self.flush_began_ms.store(clock::wall_ms(), Ordering::Relaxed);
        let work = self.state.lock().unsynced(synced);
        let outcome = work.map(|work| self.sync(work));
        self.flush_began_ms.store(0, Ordering::Relaxed);
        let mut syncs = self.syncs.lock();
        syncs.is_running = false;
        #[cfg(test)]
        {
            syncs.flushes += 1;
        }
        let was_troubled = syncs.error.is_some();
        match outcome {
            None => {}
            Some(Ok(up_to)) => {
                syncs.synced = up_to;
                syncs.error = None;
            }
            Some(Err(error)) => syncs.error = Some(error),
        }
        let is_troubled = syncs.error.is_some();
        let number = syncs.error.as_ref().map(errno);
        drop(syncs);
        self.synced.notify_all();
        if is_troubled != was_troubled {
            let number = number.or_else(|| self.state.lock().error().map(errno));
            self.tell_trouble(number.unwrap_or(0));
        }
        !is_troubled
    }

    fn sync(&self, work: Unsynced) -> Result<u64, io::Error> {
        let outcome = work.files.iter().try_for_each(|file| file.sync());
        let Err(error) = outcome else { return Ok(work.up_to) };
        if self.policy() == Policy::Always {
            fatal(&format!(
                "Can't persist AOF for fsync error when the AOF fsync policy is 'always': {}. Exiting...",
                error_text(&error)
            ));
        }
        line(Level::Warning, &format!("Fail to fsync the AOF file: {}", error_text(&error)));
        self.state.lock().flush_failed(work.files);
        Err(error)
    }

    /// What the thread does once a second.
    fn each_second(&self) {
        self.retry(true);
        let spares =
            self.spares_busy_disk.load(Ordering::Relaxed) && self.is_disk_busy.load(Ordering::Relaxed);
        let is_troubled = self.syncs.lock().error.is_some();
        if is_troubled || self.policy() == Policy::EverySecond && !spares {
            self.flush_all();
        }
    }

    fn help(&self) {
        let mut next = clock::instant() + PERIOD;
        loop {
            let mut helper = self.helper.lock();
            if helper.errands.is_empty() && !helper.ends {
                self.bell.wait_until(&mut helper, next);
            }
            if helper.ends {
                return;
            }
            let errands = std::mem::take(&mut helper.errands);
            drop(helper);
            for Errand::Remove(path) in errands {
                // What is left over is removed at the next start.
                let _ = disk::remove(&path);
            }
            let now = clock::instant();
            if now >= next {
                next = now + PERIOD;
                self.each_second();
            }
        }
    }
}

/// Starts the thread. Without it nothing is flushed in the background, so a process that cannot have it ends.
pub(super) fn start_thread(core: &Arc<Core>) {
    let core = core.clone();
    let thread = thread::Builder::new().name("aof".into()).stack_size(256 * 1024);
    if let Err(error) = thread.spawn(move || core.help()) {
        fatal(&format!("Fatal: Can't initialize Background Jobs. Error message: {}", error_text(&error)));
    }
}
