//! Sleep and wake: a shard that is about to sleep says so; only then is it worth a system call to wake it.
//!
//! Must stay true (checked by `tests/loom.rs`): whoever left work before the sleeper's last look is seen by that
//! look, whoever leaves it later sees the sleeper asleep and rings.
use std::io::Write;
use std::os::unix::net::UnixStream;

use super::sync::{AtomicBool, Ordering};

/// The bell of one shard.
pub struct Doorbell {
    asleep: AtomicBool,
    button: Option<UnixStream>,
}

impl Doorbell {
    /// A bell that rings by a byte through `button` (`None`: nobody listens, for models).
    pub fn new(button: Option<UnixStream>) -> Doorbell {
        Doorbell { asleep: AtomicBool::new(false), button }
    }

    /// Call after leaving work. Returns whether the sleeper was woken.
    pub fn ring(&self) -> bool {
        // The work was published before; a locked exchange orders it before this look.
        if !self.asleep.swap(false, Ordering::SeqCst) {
            return false;
        }
        if let Some(mut button) = self.button.as_ref() {
            // A full pipe means that the sleeper has bytes to wake up for.
            let _ = button.write(&[1]);
        }
        true
    }

    /// The owner goes to sleep; it must look for work once more after this.
    pub fn fall_asleep(&self) {
        self.asleep.swap(true, Ordering::SeqCst);
    }

    /// The owner is awake.
    pub fn wake_up(&self) {
        self.asleep.store(false, Ordering::SeqCst);
    }
}
