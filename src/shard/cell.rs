//! The owner-biased latch around one shard's data.
//!
//! Three ways in: the owning thread enters once per batch; other threads read in place while the owner is out;
//! anybody holds the data alone while nobody else is in. Nobody spins for long: who does not get in asks the owner
//! by message, or (the owner) is rung when the guests have left.
//!
//! Must stay true (checked by `tests/loom.rs`, which runs this code): an owner or holder never meets anybody
//! else; when the owner said that it waits, the guest that leaves last rings it.
#![allow(unsafe_code)]
use std::ops::{Deref, DerefMut};

use super::sync::{AtomicBool, AtomicU32, ConstPtr, MutPtr, Ordering, UnsafeCell, fence, meet};

/// Set in `guests` while somebody holds the data alone.
const HELD: u32 = 1 << 31;
/// How often the owner looks again for readers to leave (a read of one key takes less).
const PATIENCE: u32 = if cfg!(loom) { 1 } else { 200 };

/// One shard's data and its latch.
pub struct Cell<T> {
    /// Whether only one thread exists; then the latch costs nothing.
    alone: bool,
    owner_in: AtomicU32,
    guests: AtomicU32,
    owner_waits: AtomicBool,
    ring: Box<dyn Fn() + Send + Sync>,
    data: UnsafeCell<T>,
}

// SAFETY: the latch gives out either one exclusive guard or shared ones. Checked by: tests/loom.rs.
unsafe impl<T: Send + Sync> Sync for Cell<T> {}
// SAFETY: a cell owns its data.
unsafe impl<T: Send> Send for Cell<T> {}

/// The owner is in. (The pointer comes before the exit: it must be gone when the way is free.)
pub struct Owner<'a, T> {
    data: MutPtr<T>,
    _exit: OwnerExit<'a, T>,
}

/// A reader of another thread is in.
pub struct Reader<'a, T> {
    data: ConstPtr<T>,
    _exit: GuestExit<'a, T, 1>,
}

/// Somebody holds the data alone.
pub struct Holder<'a, T> {
    data: MutPtr<T>,
    exit: GuestExit<'a, T, HELD>,
}

struct OwnerExit<'a, T>(&'a Cell<T>);
struct GuestExit<'a, T, const GUEST: u32>(&'a Cell<T>);

impl<T> Cell<T> {
    /// A cell; `ring` wakes the owner's thread. `alone`: no other thread will ever use it.
    pub fn new(data: T, alone: bool, ring: Box<dyn Fn() + Send + Sync>) -> Cell<T> {
        Cell {
            alone,
            owner_in: AtomicU32::new(0),
            guests: AtomicU32::new(0),
            owner_waits: AtomicBool::new(false),
            ring,
            data: UnsafeCell::new(data),
        }
    }

    /// The owner goes in. Only the owning thread may call this, and not while it is in. `None`: somebody holds the
    /// data; call [`Cell::wait`], then try again when rung.
    #[inline]
    pub fn enter(&self) -> Option<Owner<'_, T>> {
        if self.alone {
            return Some(Owner { data: self.data.get_mut(), _exit: OwnerExit(self) });
        }
        meet();
        self.owner_in.store(1, Ordering::Relaxed);
        // Orders this store before the look at the guests; theirs is ordered likewise, so one side sees the other.
        fence(Ordering::SeqCst);
        for _ in 0..PATIENCE {
            let guests = self.guests.load(Ordering::Acquire);
            if guests == 0 {
                return Some(Owner { data: self.data.get_mut(), _exit: OwnerExit(self) });
            }
            if guests & HELD != 0 {
                break;
            }
            std::hint::spin_loop();
        }
        self.owner_in.store(0, Ordering::Release);
        None
    }

    /// The owner says that it wants to be rung. `true`: the guests have just left, try again at once.
    pub fn wait(&self) -> bool {
        self.owner_waits.store(true, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        self.guests.load(Ordering::Acquire) == 0
    }

    /// A reader of another thread goes in, if the owner is out and nobody holds the data.
    #[inline]
    pub fn read(&self) -> Option<Reader<'_, T>> {
        meet();
        let before = self.guests.fetch_add(1, Ordering::AcqRel);
        fence(Ordering::SeqCst);
        if before & HELD != 0 || self.owner_in.load(Ordering::Acquire) != 0 {
            self.leave(1);
            return None;
        }
        Some(Reader { data: self.data.get(), _exit: GuestExit(self) })
    }

    /// Holds the data alone, if nobody is in.
    pub fn hold(&self) -> Option<Holder<'_, T>> {
        meet();
        self.guests.compare_exchange(0, HELD, Ordering::AcqRel, Ordering::Relaxed).ok()?;
        fence(Ordering::SeqCst);
        if self.owner_in.load(Ordering::Acquire) != 0 {
            self.leave(HELD);
            return None;
        }
        Some(Holder { data: self.data.get_mut(), exit: GuestExit(self) })
    }

    /// Takes over a hold that [`Holder::pass_on`] left behind.
    pub fn adopt(&self) -> Holder<'_, T> {
        debug_assert!(self.guests.load(Ordering::Acquire) & HELD != 0);
        Holder { data: self.data.get_mut(), exit: GuestExit(self) }
    }

    #[inline]
    fn leave(&self, guest: u32) {
        meet();
        self.guests.fetch_sub(guest, Ordering::AcqRel);
        fence(Ordering::SeqCst);
        if self.owner_waits.load(Ordering::Relaxed) {
            self.ring_owner();
        }
    }

    #[cold]
    fn ring_owner(&self) {
        meet();
        if self.owner_waits.swap(false, Ordering::AcqRel) {
            (self.ring)();
        }
    }
}

impl<T> Holder<'_, T> {
    /// Leaves the data held, for another thread to [`Cell::adopt`].
    pub fn pass_on(self) {
        std::mem::forget(self.exit);
    }
}

impl<T> Drop for OwnerExit<'_, T> {
    #[inline]
    fn drop(&mut self) {
        if !self.0.alone {
            self.0.owner_in.store(0, Ordering::Release);
        }
    }
}

impl<T, const GUEST: u32> Drop for GuestExit<'_, T, GUEST> {
    #[inline]
    fn drop(&mut self) {
        self.0.leave(GUEST);
    }
}

#[cfg(not(loom))]
mod access {
    use super::{ConstPtr, MutPtr};
    pub unsafe fn shared<T>(at: &ConstPtr<T>) -> &T {
        // SAFETY: the caller's promise.
        unsafe { &**at }
    }
    pub unsafe fn shared_mut<T>(at: &MutPtr<T>) -> &T {
        // SAFETY: the caller's promise.
        unsafe { &**at }
    }
    #[allow(clippy::mut_from_ref)]
    pub unsafe fn exclusive<T>(at: &MutPtr<T>) -> &mut T {
        // SAFETY: the caller's promise.
        unsafe { &mut **at }
    }
}

#[cfg(loom)]
mod access {
    use super::{ConstPtr, MutPtr};
    pub unsafe fn shared<T>(at: &ConstPtr<T>) -> &T {
        // SAFETY: the caller's promise.
        unsafe { at.deref() }
    }
    pub unsafe fn shared_mut<T>(at: &MutPtr<T>) -> &T {
        // SAFETY: the caller's promise.
        unsafe { at.deref() }
    }
    #[allow(clippy::mut_from_ref)]
    pub unsafe fn exclusive<T>(at: &MutPtr<T>) -> &mut T {
        // SAFETY: the caller's promise.
        unsafe { at.deref() }
    }
}

impl<T> Deref for Owner<'_, T> {
    type Target = T;
    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: while this guard lives nobody else is in. Checked by: tests/loom.rs.
        unsafe { access::shared_mut(&self.data) }
    }
}

impl<T> DerefMut for Owner<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as above, and the guard is borrowed exclusively.
        unsafe { access::exclusive(&self.data) }
    }
}

impl<T> Deref for Reader<'_, T> {
    type Target = T;
    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: while this guard lives only readers are in.
        unsafe { access::shared(&self.data) }
    }
}

impl<T> Deref for Holder<'_, T> {
    type Target = T;
    fn deref(&self) -> &T {
        // SAFETY: while this guard lives nobody else is in.
        unsafe { access::shared_mut(&self.data) }
    }
}

impl<T> DerefMut for Holder<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as above, and the guard is borrowed exclusively.
        unsafe { access::exclusive(&self.data) }
    }
}
