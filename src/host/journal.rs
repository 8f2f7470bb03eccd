//! The append-only log, as far as shards write to it: one ordered stream of what all of them changed.
//!
//! Must stay true: pieces of one [`Journal::write`] stand together and in their order; a write that has returned is in
//! the file (and on the disk, where `appendfsync` says `always`), or the journal keeps it and goes on trying.
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;

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

/// The append-only log.
#[derive(Default)]
pub struct Journal {
    is_on: AtomicBool,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// What is selected behind all that was written; `None`: nothing yet.
    selected: Option<u32>,
    /// Where tests read what was written.
    captured: Vec<u8>,
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

    /// Writes pieces, with one call of the system.
    pub fn write(&self, pieces: &[Piece<'_>]) {
        let mut state = self.state.lock();
        for piece in pieces {
            if let Some(db) = piece.first_db
                && state.selected != Some(db)
            {
                let digits = db.to_string();
                let select = format!("*2\r\n$6\r\nSELECT\r\n${}\r\n{digits}\r\n", digits.len());
                state.captured.extend_from_slice(select.as_bytes());
            }
            state.captured.extend_from_slice(piece.bytes);
            state.selected = piece.last_db.or(state.selected);
        }
    }

    /// Takes out what was written, in tests.
    pub fn take_captured(&self) -> Vec<u8> {
        std::mem::take(&mut self.state.lock().captured)
    }
}
