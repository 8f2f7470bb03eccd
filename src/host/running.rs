//! The script that runs for a long time, as far as others may know of it and end it. There is one at most: scripts hold
//! all shards.
use std::time::Instant;

use parking_lot::Mutex;

use crate::wire::Error;

/// A script or function that runs.
#[derive(Debug)]
pub struct Running {
    /// A function and not a script.
    pub is_function: bool,
    /// The script's digest, or the function's name.
    pub name: String,
    /// The command that runs it.
    pub command: Vec<Vec<u8>>,
    /// When it began.
    pub started: Instant,
    /// It has written: it must not be ended any more.
    pub has_written: bool,
    /// Somebody wants it to end.
    pub is_killed: bool,
}

/// Why a script cannot be ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unkillable {
    /// None runs.
    NotRunning,
    /// One of the other kind runs.
    OtherKind,
    /// It has written.
    HasWritten,
}

/// Holds the script that runs, once it has run for some time.
#[derive(Debug, Default)]
pub struct Scripts(Mutex<Option<Running>>);

impl Scripts {
    /// Looks at, or changes, what is known of the running script.
    pub fn with<T>(&self, f: impl FnOnce(&mut Option<Running>) -> T) -> T {
        f(&mut self.0.lock())
    }

    /// Asks the running script, or function, to end.
    ///
    /// # Errors
    /// Why it cannot.
    pub fn kill(&self, is_function: bool) -> Result<(), Unkillable> {
        match &mut *self.0.lock() {
            None => Err(Unkillable::NotRunning),
            Some(running) if running.has_written => Err(Unkillable::HasWritten),
            Some(running) if running.is_function != is_function => Err(Unkillable::OtherKind),
            Some(running) => {
                running.is_killed = true;
                Ok(())
            }
        }
    }

    /// What clients hear while the script has the data for too long.
    pub fn busy(&self) -> Error {
        let kill = match &*self.0.lock() {
            Some(running) if running.is_function => "FUNCTION KILL",
            _ => "SCRIPT KILL",
        };
        Error::line(format!(
            "BUSY Redis is busy running a script. You can only call {kill} or SHUTDOWN NOSAVE."
        ))
    }
}
