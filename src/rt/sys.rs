//! The room for system calls that need unsafe code.
#![allow(unsafe_code)]
mod process;

pub use process::{cpu_seconds, malloc_stats, memory_bytes, purge, shutdown_fd};

/// The processor's time stamp counter; cheap, monotonic on one core, in units of [`cycles_per_us`].
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
