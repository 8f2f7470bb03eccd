//! The synchronisation primitives of this floor, so that loom runs the real code.
#[cfg(not(loom))]
mod real {
    pub use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

    pub use crate::rt::meet::meet;

    /// A fence stands between what a thread says and its look at what others say: there they meet.
    #[inline(always)]
    pub fn fence(order: Ordering) {
        meet();
        std::sync::atomic::fence(order);
    }

    /// A cell whose contents the latch guards.
    #[derive(Debug)]
    pub struct UnsafeCell<T>(std::cell::UnsafeCell<T>);

    impl<T> UnsafeCell<T> {
        pub fn new(value: T) -> Self {
            UnsafeCell(std::cell::UnsafeCell::new(value))
        }
        pub fn get(&self) -> *const T {
            self.0.get()
        }
        pub fn get_mut(&self) -> *mut T {
            self.0.get()
        }
    }
    pub type ConstPtr<T> = *const T;
    pub type MutPtr<T> = *mut T;
}

#[cfg(loom)]
mod real {
    pub use loom::cell::{ConstPtr, MutPtr, UnsafeCell};
    pub use loom::sync::atomic::{AtomicBool, AtomicU32, Ordering, fence};

    /// Loom switches wherever an atomic is used.
    pub fn meet() {}
}

pub use real::*;
