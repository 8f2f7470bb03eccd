//! What the operating system and the allocator know of this process.
//!
//! Must stay true: every function here is safe to call with any argument.

/// Shuts both directions of a socket down; whoever reads from it meets its end. The caller makes sure that `fd`
/// is still the socket it means: a closed number may already name something else.
pub fn shutdown_fd(fd: i32) {
    // SAFETY: the call takes plain numbers, touches no memory of ours, and fails on what is no open socket.
    unsafe {
        libc::shutdown(fd, libc::SHUT_RDWR);
    }
}

/// User and system CPU seconds of the process, and of the calling thread.
pub fn cpu_seconds() -> [(f64, f64); 2] {
    [libc::RUSAGE_SELF, libc::RUSAGE_THREAD].map(|who| {
        // SAFETY: the structure consists of numbers, for which all zeros are valid; the call fills it.
        let usage = unsafe {
            let mut usage: libc::rusage = std::mem::zeroed();
            libc::getrusage(who, &mut usage);
            usage
        };
        let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
        (seconds(usage.ru_utime), seconds(usage.ru_stime))
    })
}

/// Bytes of a page and of the memory of this machine.
pub fn memory_bytes() -> (u64, u64) {
    // SAFETY: plain queries.
    let (page, pages) = unsafe { (libc::sysconf(libc::_SC_PAGESIZE), libc::sysconf(libc::_SC_PHYS_PAGES)) };
    let page = u64::try_from(page).unwrap_or(4096);
    (page, page * u64::try_from(pages).unwrap_or(0))
}

/// Asks the allocator to give unused pages of all arenas back to the system. `false`: it refused.
pub fn purge() -> bool {
    // 4096 means every arena (MALLCTL_ARENAS_ALL).
    let name = c"arena.4096.purge".as_ptr();
    let (old, old_bytes, new) = (std::ptr::null_mut(), std::ptr::null_mut(), std::ptr::null_mut());
    // SAFETY: the name ends in a zero byte; this control takes and gives no value.
    unsafe { tikv_jemalloc_sys::mallctl(name, old, old_bytes, new, 0) == 0 }
}

/// Sends what the socket `fd` takes without waiting.
///
/// # Errors
/// `WouldBlock` when it takes nothing now; anything else when the connection is broken.
pub fn send_now(fd: i32, bytes: &[u8]) -> std::io::Result<usize> {
    let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
    // SAFETY: the pointer and length are those of `bytes`; a descriptor that is not a socket gives an error.
    let sent = unsafe { libc::send(fd, bytes.as_ptr().cast(), bytes.len(), flags) };
    usize::try_from(sent).map_err(|_| std::io::Error::last_os_error())
}

/// The allocator's own report, for people.
pub fn malloc_stats() -> Vec<u8> {
    unsafe extern "C" fn append(text: *mut libc::c_void, piece: *const libc::c_char) {
        // SAFETY: jemalloc hands back the pointer it was given below, and a C string.
        unsafe {
            let text = &mut *text.cast::<Vec<u8>>();
            text.extend_from_slice(std::ffi::CStr::from_ptr(piece).to_bytes());
        }
    }
    let mut text: Vec<u8> = Vec::with_capacity(64 * 1024);
    // SAFETY: `text` outlives the call, and nothing else reaches it meanwhile.
    unsafe {
        tikv_jemalloc_sys::malloc_stats_print(Some(append), (&raw mut text).cast(), std::ptr::null());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::AsRawFd;

    #[test]
    fn a_shut_down_socket_ends() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let ours = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut theirs, _) = listener.accept().unwrap();
        shutdown_fd(ours.as_raw_fd());
        assert_eq!(theirs.read(&mut [0; 1]).unwrap(), 0);
        shutdown_fd(-1);
    }

    #[test]
    fn the_system_tells_sizes() {
        let (page, memory) = memory_bytes();
        assert!(page.is_power_of_two() && memory > page);
        let [(user, system), _] = cpu_seconds();
        assert!(user + system > 0.0);
    }

    #[test]
    fn the_allocator_reports() {
        assert!(malloc_stats().starts_with(b"___ Begin jemalloc"));
        assert!(purge());
    }
}
