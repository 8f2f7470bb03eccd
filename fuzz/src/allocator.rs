//! An allocator that remembers the largest request of the current thread, so that a target can assert that nothing
//! is reserved for what a client merely claims.
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    static LARGEST_BYTES: Cell<usize> = const { Cell::new(0) };
}

/// The system's allocator, watched.
pub struct Watched;

fn note(bytes: usize) {
    // A thread that is ending has no such variable any more; its requests do not matter.
    let _ = LARGEST_BYTES.try_with(|largest| largest.set(largest.get().max(bytes)));
}

// SAFETY: every call is passed on as it is.
unsafe impl GlobalAlloc for Watched {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        note(layout.size());
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(at, layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        note(bytes);
        // SAFETY: the caller's promise.
        unsafe { System.realloc(at, layout, bytes) }
    }
}

/// Runs `f`; returns what it returns and the size of its largest request, bytes. Needs [`Watched`] as the global
/// allocator of the binary.
pub fn largest_request<T>(f: impl FnOnce() -> T) -> (T, usize) {
    LARGEST_BYTES.set(0);
    let result = f();
    (result, LARGEST_BYTES.get())
}
