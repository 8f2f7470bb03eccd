//! The room for system calls and allocator calls that need unsafe code.
#![allow(unsafe_code)]
pub mod fiber;
pub mod lua;
mod process;

use std::alloc::{GlobalAlloc, Layout};

pub use process::{cpu_seconds, malloc_stats, memory_bytes, purge, send_now, shutdown_fd};

use tikv_jemalloc_sys as jemalloc;

/// jemalloc with an 8-byte quantum.
///
/// Its 24, 40 and 56 byte classes are only 8-aligned, so every request for more alignment says so; the ready-made
/// `tikv_jemallocator::Jemalloc` takes 16 for granted.
pub struct Allocator;

/// Alignment that every size class has.
const QUANTUM: usize = 8;
const TWO_QUANTA: usize = 2 * QUANTUM;

/// The size to ask for, and the flags. A class whose size is a multiple of 16 is aligned to that, and asking for one is
/// much quicker than asking for an alignment: Lua wants 16 for everything.
#[inline]
fn request(layout: Layout, bytes: usize) -> (usize, i32) {
    match layout.align() {
        ..=QUANTUM => (bytes, 0),
        TWO_QUANTA => (bytes.saturating_add(TWO_QUANTA - 1) & !(TWO_QUANTA - 1), 0),
        align => (bytes, jemalloc::MALLOCX_ALIGN(align)),
    }
}

// SAFETY: jemalloc's calls keep the contract of GlobalAlloc when size and alignment are passed on as they are.
// Checked by: `alignment_holds`.
unsafe impl GlobalAlloc for Allocator {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the size is not zero (the caller's promise).
        unsafe {
            match request(layout, layout.size()) {
                (bytes, 0) => jemalloc::malloc(bytes).cast(),
                (bytes, flags) => jemalloc::mallocx(bytes, flags).cast(),
            }
        }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        let (bytes, flags) = request(layout, layout.size());
        // SAFETY: as above.
        unsafe { jemalloc::mallocx(bytes, flags | jemalloc::MALLOCX_ZERO).cast() }
    }

    #[inline]
    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        let (bytes, flags) = request(layout, layout.size());
        // SAFETY: `at` came from here with this layout.
        unsafe { jemalloc::sdallocx(at.cast(), bytes, flags) }
    }

    #[inline]
    unsafe fn realloc(&self, at: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        let (bytes, flags) = request(layout, bytes);
        // SAFETY: `at` came from here with this layout, and `bytes` is not zero.
        unsafe { jemalloc::rallocx(at.cast(), bytes, flags).cast() }
    }
}

/// What jemalloc reads before anything is allocated: no transparent huge pages; memory goes back to the system soon,
/// on a thread of jemalloc's own, since giving back much at once would hold up a shard.
#[unsafe(export_name = "_rjem_malloc_conf")]
pub static MALLOC_CONF: Option<&'static std::ffi::c_char> = Some(conf());

const fn conf() -> &'static std::ffi::c_char {
    // SAFETY: a C string has a first byte, and it lives for ever.
    unsafe {
        &*c"background_thread:true,max_background_threads:1,thp:never,dirty_decay_ms:1000,muzzy_decay_ms:0,abort_conf:false".as_ptr()
    }
}

/// The processor's time stamp counter; cheap, and steady on the processors we run on.
#[inline]
pub fn cycles() -> u64 {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every x86-64 processor has the instruction.
    unsafe {
        std::arch::x86_64::_rdtsc()
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        crate::base::clock::wall_us() * 1000
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alignment_holds() {
        for align in [1, 8, 16, 64] {
            for bytes in [1, 17, 24, 40, 52, 56, 100, 5000] {
                let layout = Layout::from_size_align(bytes, align).unwrap();
                // SAFETY: the layout is not empty; the memory is given back with its layout.
                unsafe {
                    let all: Vec<*mut u8> = (0..32).map(|_| Allocator.alloc(layout)).collect();
                    assert!(
                        all.iter().all(|at| (*at as usize).is_multiple_of(align)),
                        "{bytes} bytes, {align}-aligned"
                    );
                    all.into_iter().for_each(|at| Allocator.dealloc(at, layout));
                }
            }
        }
    }
}
