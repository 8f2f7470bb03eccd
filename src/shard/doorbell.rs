//! Sleep and wake: a shard that is about to sleep says so; only then is it worth a system call to wake it.
//!
//! Must stay true (checked by `tests/loom.rs`): whoever left work before the sleeper's last look is seen by that
//! look, whoever leaves it later sees the sleeper asleep and rings.
use super::sync::{AtomicBool, Ordering, meet};

/// What wakes the sleeper's thread.
pub type Button = Box<dyn Fn() + Send + Sync>;

/// The bell of one shard.
pub struct Doorbell {
    asleep: AtomicBool,
    button: Option<Button>,
}

impl Doorbell {
    /// A bell with a button (`None`: nobody listens, for models).
    pub fn new(button: Option<Button>) -> Doorbell {
        Doorbell { asleep: AtomicBool::new(false), button }
    }

    /// Call after leaving work. Returns whether the sleeper was woken.
    pub fn ring(&self) -> bool {
        meet();
        // The work was published before; a locked exchange orders it before this look.
        if !self.asleep.swap(false, Ordering::SeqCst) {
            return false;
        }
        if let Some(press) = &self.button {
            press();
        }
        true
    }

    /// The owner goes to sleep; it must look for work once more after this.
    pub fn fall_asleep(&self) {
        meet();
        self.asleep.swap(true, Ordering::SeqCst);
        meet();
    }

    /// The owner is awake.
    pub fn wake_up(&self) {
        meet();
        self.asleep.store(false, Ordering::SeqCst);
    }
}
