//! The allocator of blocks and buckets: size classes every 8 bytes up to 256 (then 16, then 32 up to 2048), which
//! jemalloc has only up to 64, and two or three nanoseconds a call.
//!
//! A chunk is 64 KiB, aligned to its size, and holds slots of one class; its pages become resident as slots are
//! first used. Each thread allocates from chunks of its own. A slot that another thread frees (a command that held
//! this shard, the lazy-free thread) goes to the owner's mailbox, and the owner takes it back a few at a time.
//!
//! Must stay true: only the owning thread touches a chunk's header and free list; a freed slot's first eight bytes
//! are its link and nobody else's; an arena's shared part lives for ever, since slots may outlive their thread.
//! Checked by: `arena_model`, `slots_come_home` below.
use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::cell::UnsafeCell;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicPtr, Ordering};

use super::heap_class;

/// Bytes of the largest slot; what is larger comes from the global allocator.
pub const SLOT_BYTES_MAX: usize = 2048;
const CHUNK_BYTES: usize = 64 * 1024;
/// Room for the chunk's header; a multiple of 64, so that slots whose size is one are aligned to cache lines.
const HEADER_BYTES: usize = 64;
const CLASSES: usize = 96;
/// Slots taken from the mailbox when a class runs dry.
const MAIL_BATCH: usize = 256;

/// A freed slot.
struct Free {
    next: *mut Free,
}

/// What other threads see of an arena.
struct Mailbox {
    returned: AtomicPtr<Free>,
}

#[repr(C)]
struct Chunk {
    owner: *const Mailbox,
    /// Freed slots of this chunk.
    free: *mut Free,
    /// Neighbours in the list of chunks with room.
    next: *mut Chunk,
    previous: *mut Chunk,
    /// Bytes of a slot.
    slot_bytes: u32,
    /// Slots from here on were never used.
    fresh: u32,
    /// Slots in use.
    live: u32,
    listed: bool,
}

const _: () = assert!(size_of::<Chunk>() <= HEADER_BYTES);

struct Arena {
    mailbox: *const Mailbox,
    /// Chunks with room, by class.
    room: [*mut Chunk; CLASSES],
    /// Slots taken out of the mailbox and not sorted in yet.
    mail: *mut Free,
}

thread_local! {
    static ARENA: UnsafeCell<Arena> =
        const { UnsafeCell::new(Arena { mailbox: ptr::null(), room: [ptr::null_mut(); CLASSES], mail: ptr::null_mut() }) };
}

/// Bytes that a request really takes: whole slots up to [`SLOT_BYTES_MAX`], jemalloc's classes above.
///
/// Asking for whole classes makes "does it still fit?" a comparison of classes and lets a value grow into the slack
/// that it pays for anyway.
#[inline]
pub const fn size_class(bytes: usize) -> usize {
    let spacing = match bytes {
        0..=256 => 8,
        257..=512 => 16,
        513..=SLOT_BYTES_MAX => 32,
        _ => return heap_class(bytes),
    };
    let rounded = (bytes + spacing - 1) & !(spacing - 1);
    if rounded == 0 { 8 } else { rounded }
}

/// Number of a class, from its size.
#[inline]
const fn class_of(slot_bytes: usize) -> usize {
    match slot_bytes {
        0..=256 => slot_bytes / 8 - 1,
        257..=512 => 32 + (slot_bytes - 256) / 16 - 1,
        _ => 48 + (slot_bytes - 512) / 32 - 1,
    }
}

const _: () = assert!(class_of(SLOT_BYTES_MAX) == CLASSES - 1 && class_of(8) == 0 && class_of(272) == 32);

/// Allocates `bytes` (not zero), 8-aligned; 64-aligned when `bytes` is a multiple of 64 up to [`SLOT_BYTES_MAX`].
#[inline]
pub fn take(bytes: usize) -> NonNull<u8> {
    let bytes = size_class(bytes);
    if bytes > SLOT_BYTES_MAX {
        return from_heap(bytes);
    }
    ARENA.with(|arena| {
        // SAFETY: the arena is this thread's alone, and nothing below calls back into it.
        let arena = unsafe { &mut *arena.get() };
        arena.take(class_of(bytes), bytes)
    })
}

/// Frees what [`take`] gave for `bytes`.
///
/// # Safety
/// `at` came from `take(bytes)` (of any thread), was not freed yet, and nobody uses it any more.
#[inline]
pub unsafe fn give(at: NonNull<u8>, bytes: usize) {
    let bytes = size_class(bytes);
    if bytes > SLOT_BYTES_MAX {
        // SAFETY: it came from `from_heap` with this size.
        return unsafe { dealloc(at.as_ptr(), heap_layout(bytes)) };
    }
    ARENA.with(|arena| {
        // SAFETY: as in `take`; the chunk of a slot is found by its alignment.
        unsafe { (*arena.get()).give(at) }
    });
}

/// Takes back up to `limit` slots that other threads freed. `true`: there may be more.
pub fn collect(limit: usize) -> bool {
    ARENA.with(|arena| {
        // SAFETY: as in `take`.
        unsafe { (*arena.get()).collect(limit) }
    })
}

fn heap_layout(bytes: usize) -> Layout {
    Layout::from_size_align(bytes, 8).expect("a block's size")
}

#[cold]
fn from_heap(bytes: usize) -> NonNull<u8> {
    let layout = heap_layout(bytes);
    // SAFETY: the layout is not empty.
    NonNull::new(unsafe { alloc(layout) }).unwrap_or_else(|| handle_alloc_error(layout))
}

fn chunk_layout() -> Layout {
    Layout::from_size_align(CHUNK_BYTES, CHUNK_BYTES).expect("a power of two")
}

#[inline]
fn chunk_of(at: NonNull<u8>) -> *mut Chunk {
    at.as_ptr().map_addr(|address| address & !(CHUNK_BYTES - 1)).cast()
}

impl Arena {
    #[inline]
    fn take(&mut self, class: usize, bytes: usize) -> NonNull<u8> {
        loop {
            let chunk = self.room[class];
            if chunk.is_null() {
                self.make_room(class, bytes);
                continue;
            }
            // SAFETY: listed chunks are live and ours. A free slot holds a link; a fresh one lies inside the chunk.
            unsafe {
                let slot = (*chunk).free;
                if !slot.is_null() {
                    (*chunk).free = (*slot).next;
                    (*chunk).live += 1;
                    return NonNull::new_unchecked(slot.cast());
                }
                let fresh = (*chunk).fresh as usize;
                if fresh + bytes <= CHUNK_BYTES {
                    (*chunk).fresh = (fresh + bytes) as u32;
                    (*chunk).live += 1;
                    return NonNull::new_unchecked(chunk.cast::<u8>().add(fresh));
                }
                self.unlist(chunk);
            }
        }
    }

    #[cold]
    fn make_room(&mut self, class: usize, bytes: usize) {
        self.collect(MAIL_BATCH);
        if !self.room[class].is_null() {
            return;
        }
        if self.mailbox.is_null() {
            self.mailbox = Box::leak(Box::new(Mailbox { returned: AtomicPtr::new(ptr::null_mut()) }));
        }
        // SAFETY: the layout is not empty; the header is written before anybody reads it.
        unsafe {
            let chunk = alloc(chunk_layout()).cast::<Chunk>();
            if chunk.is_null() {
                handle_alloc_error(chunk_layout());
            }
            chunk.write(Chunk {
                owner: self.mailbox,
                free: ptr::null_mut(),
                next: ptr::null_mut(),
                previous: ptr::null_mut(),
                slot_bytes: bytes as u32,
                fresh: HEADER_BYTES as u32,
                live: 0,
                listed: false,
            });
            self.list(chunk);
        }
    }

    /// # Safety
    /// As [`give`].
    #[inline]
    unsafe fn give(&mut self, at: NonNull<u8>) {
        let chunk = chunk_of(at);
        // SAFETY: a slot in use keeps its chunk alive; its owner never changes.
        unsafe {
            if (*chunk).owner == self.mailbox {
                self.give_own(chunk, at.as_ptr().cast());
            } else {
                give_foreign(&*(*chunk).owner, at.as_ptr().cast());
            }
        }
    }

    /// # Safety
    /// `slot` is a slot of `chunk`, which is ours, and nobody uses it any more.
    #[inline]
    unsafe fn give_own(&mut self, chunk: *mut Chunk, slot: *mut Free) {
        // SAFETY: the caller's promise; slots have at least eight bytes.
        unsafe {
            (*slot).next = (*chunk).free;
            (*chunk).free = slot;
            (*chunk).live -= 1;
            if !(*chunk).listed {
                self.list(chunk);
            } else if (*chunk).live == 0 {
                self.let_go(chunk);
            }
        }
    }

    /// An empty chunk goes back, unless it is the only one of its class with room: a class in use would otherwise
    /// ask for it again at once.
    ///
    /// # Safety
    /// `chunk` is ours, listed and has no live slot.
    #[cold]
    unsafe fn let_go(&mut self, chunk: *mut Chunk) {
        // SAFETY: the caller's promise.
        unsafe {
            if (*chunk).next.is_null() && (*chunk).previous.is_null() {
                return;
            }
            self.unlist(chunk);
            dealloc(chunk.cast(), chunk_layout());
        }
    }

    /// # Safety
    /// `chunk` is ours and not listed.
    unsafe fn list(&mut self, chunk: *mut Chunk) {
        // SAFETY: the caller's promise; listed chunks are live.
        unsafe {
            let head = &mut self.room[class_of((*chunk).slot_bytes as usize)];
            (*chunk).next = *head;
            (*chunk).previous = ptr::null_mut();
            (*chunk).listed = true;
            if !head.is_null() {
                (**head).previous = chunk;
            }
            *head = chunk;
        }
    }

    /// # Safety
    /// `chunk` is ours and listed.
    unsafe fn unlist(&mut self, chunk: *mut Chunk) {
        // SAFETY: the caller's promise; its neighbours are live.
        unsafe {
            let (next, previous) = ((*chunk).next, (*chunk).previous);
            if previous.is_null() {
                self.room[class_of((*chunk).slot_bytes as usize)] = next;
            } else {
                (*previous).next = next;
            }
            if !next.is_null() {
                (*next).previous = previous;
            }
            (*chunk).next = ptr::null_mut();
            (*chunk).previous = ptr::null_mut();
            (*chunk).listed = false;
        }
    }

    fn collect(&mut self, limit: usize) -> bool {
        if self.mailbox.is_null() {
            return false;
        }
        for _ in 0..limit {
            // SAFETY: the mailbox lives for ever; what was swapped out of it is ours, and links were written before
            // they were published.
            unsafe {
                if self.mail.is_null() {
                    let returned = &(*self.mailbox).returned;
                    if returned.load(Ordering::Relaxed).is_null() {
                        return false;
                    }
                    self.mail = returned.swap(ptr::null_mut(), Ordering::Acquire);
                }
                let slot = self.mail;
                self.mail = (*slot).next;
                self.give_own(chunk_of(NonNull::new_unchecked(slot.cast())), slot);
            }
        }
        true
    }
}

/// Leaves a slot of another thread's chunk in that thread's mailbox.
///
/// # Safety
/// Nobody uses the slot any more.
#[cold]
unsafe fn give_foreign(mailbox: &Mailbox, slot: *mut Free) {
    let mut head = mailbox.returned.load(Ordering::Relaxed);
    loop {
        // SAFETY: the slot is ours until it is published.
        unsafe { (*slot).next = head };
        // The owner takes the whole list at once, so a head that comes back is still the right one.
        match mailbox.returned.compare_exchange_weak(head, slot, Ordering::Release, Ordering::Relaxed) {
            Ok(_) => return,
            Err(now) => head = now,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    struct Slot(NonNull<u8>, usize);
    // SAFETY: a test's slot is used by one thread at a time.
    unsafe impl Send for Slot {}

    fn filled(bytes: usize, with: u8) -> Slot {
        let at = take(bytes);
        // SAFETY: `take` gave that many bytes.
        unsafe { at.as_ptr().write_bytes(with, bytes) };
        Slot(at, bytes)
    }

    fn check_and_give(slot: Slot, with: u8) {
        // SAFETY: the slot is live until it is given back.
        unsafe {
            let bytes = std::slice::from_raw_parts(slot.0.as_ptr(), slot.1);
            assert!(bytes.iter().all(|b| *b == with), "a slot overlaps another");
            give(slot.0, slot.1);
        }
    }

    #[test]
    fn classes_waste_little() {
        for bytes in 1..4096 {
            let class = size_class(bytes);
            assert!(class >= bytes && size_class(class) == class);
            if bytes <= SLOT_BYTES_MAX {
                assert!(class - bytes < 32 && (bytes > 256 || class - bytes < 8));
            }
        }
        assert_eq!([size_class(1), size_class(86), size_class(278), size_class(722)], [8, 88, 288, 736]);
    }

    proptest! {
        #[test]
        fn arena_model(steps in proptest::collection::vec((any::<bool>(), 1usize..2500, any::<u8>()), 1..600)) {
            let mut live: Vec<(Slot, u8)> = Vec::new();
            for (grow, bytes, with) in steps {
                if grow || live.is_empty() {
                    live.push((filled(bytes, with), with));
                } else {
                    let (slot, with) = live.swap_remove(bytes % live.len());
                    check_and_give(slot, with);
                }
            }
            live.into_iter().for_each(|(slot, with)| check_and_give(slot, with));
        }
    }

    #[test]
    fn lines_are_aligned() {
        for bytes in [64, 128, 512, 1024, 2048] {
            let slots: Vec<Slot> = (0..100).map(|_| filled(bytes, 1)).collect();
            assert!(slots.iter().all(|s| (s.0.as_ptr() as usize).is_multiple_of(64)));
            slots.into_iter().for_each(|slot| check_and_give(slot, 1));
        }
    }

    #[test]
    fn slots_come_home() {
        let slots: Vec<Slot> = (0..5_000).map(|i| filled(100, i as u8)).collect();
        let addresses: std::collections::BTreeSet<usize> =
            slots.iter().map(|s| s.0.as_ptr() as usize).collect();
        std::thread::spawn(move || {
            slots.into_iter().enumerate().for_each(|(i, slot)| check_and_give(slot, i as u8));
        })
        .join()
        .unwrap();
        assert!(collect(1_000), "more has come back");
        assert!(!collect(10_000));
        let again: Vec<Slot> = (0..500).map(|_| filled(100, 7)).collect();
        assert!(again.iter().all(|slot| addresses.contains(&(slot.0.as_ptr() as usize))));
        again.into_iter().for_each(|slot| check_and_give(slot, 7));
    }
}
