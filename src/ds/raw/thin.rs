//! A byte buffer of its own whose handle is one pointer: length in front of the bytes, no capacity, since room
//! follows from the length by the allocator's classes.
//!
//! ```text
//! [length u32][bytes ...]                        shorter ones
//! [LONG u32][0 u32][length u64][bytes ...]       from LONG bytes on
//! ```
//! Must stay true: a buffer is allocated with exactly `size_class(head_bytes(length) + length)`; an empty one has none.
use std::ptr::NonNull;

use super::{arena, size_class};
use crate::ds::packed::PackedBytes;

/// Length from which a buffer has a long head. Tests have it low, so that they see both.
const LONG: usize = if cfg!(test) { 1_500 } else { u32::MAX as usize };

const fn head_bytes(len: usize) -> usize {
    if len < LONG { 4 } else { 16 }
}

/// Owned bytes.
#[derive(Default)]
pub struct ThinBytes(Option<NonNull<u8>>);

// SAFETY: a buffer owns its bytes, and nothing in it refers to a thread.
unsafe impl Send for ThinBytes {}
// SAFETY: shared use only reads.
unsafe impl Sync for ThinBytes {}

const fn room(len: usize) -> usize {
    size_class(head_bytes(len) + len)
}

/// A buffer for `len` bytes, its length written, its bytes not.
fn allocate(len: usize) -> NonNull<u8> {
    let at = arena::take(head_bytes(len) + len);
    // SAFETY: room for head and bytes was just taken, and it is aligned to 8.
    unsafe { write_len(at, len) };
    at
}

/// # Safety
/// `at` has room for the head of a buffer of `len` bytes.
#[inline]
unsafe fn write_len(at: NonNull<u8>, len: usize) {
    // SAFETY: the caller's promise.
    unsafe {
        at.cast::<u32>().write(len.min(LONG) as u32);
        if len >= LONG {
            at.cast::<u64>().add(1).write(len as u64);
        }
    }
}

impl ThinBytes {
    /// An empty buffer, without an allocation.
    pub const fn new() -> ThinBytes {
        ThinBytes(None)
    }

    /// Number of bytes.
    #[inline]
    pub fn len(&self) -> usize {
        let Some(at) = self.0 else { return 0 };
        // SAFETY: a buffer starts with its length, a long one's stands behind the mark.
        unsafe {
            match at.cast::<u32>().read() as usize {
                LONG => at.cast::<u64>().add(1).read() as usize,
                len => len,
            }
        }
    }

    /// Whether there is no byte.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// Heap bytes taken.
    pub fn heap_bytes(&self) -> usize {
        if self.0.is_some() { room(self.len()) } else { 0 }
    }

    /// Gives up ownership; null for an empty buffer. [`ThinBytes::from_raw`] undoes it.
    pub(super) fn into_raw(self) -> *mut u8 {
        std::mem::ManuallyDrop::new(self).0.map_or(std::ptr::null_mut(), NonNull::as_ptr)
    }

    /// Takes ownership back.
    ///
    /// # Safety
    /// `at` comes from `into_raw` and was not taken back yet.
    pub(super) unsafe fn from_raw(at: *mut u8) -> ThinBytes {
        ThinBytes(NonNull::new(at))
    }

    /// Moves the bytes to a buffer of another size: `keep` at the front, `tail` at the end.
    fn resized(&mut self, len: usize, keep: usize, tail: usize) {
        if len == 0 {
            *self = ThinBytes(None);
            return;
        }
        let next = allocate(len);
        let old = self.bytes();
        // SAFETY: `keep + tail` is at most both lengths, and the buffers do not overlap.
        unsafe {
            let (from, to) = (old.as_ptr(), next.as_ptr().add(head_bytes(len)));
            to.copy_from_nonoverlapping(from, keep);
            to.add(len - tail).copy_from_nonoverlapping(from.add(old.len() - tail), tail);
        }
        *self = ThinBytes(Some(next));
    }
}

impl PackedBytes for ThinBytes {
    #[inline]
    fn bytes(&self) -> &[u8] {
        match self.0 {
            // SAFETY: the bytes behind the head are ours and written.
            Some(at) => unsafe {
                let len = self.len();
                std::slice::from_raw_parts(at.as_ptr().add(head_bytes(len)), len)
            },
            None => &[],
        }
    }

    #[inline]
    fn bytes_mut(&mut self) -> &mut [u8] {
        match self.0 {
            // SAFETY: as in `bytes`, borrowed exclusively.
            Some(at) => unsafe {
                let len = self.len();
                std::slice::from_raw_parts_mut(at.as_ptr().add(head_bytes(len)), len)
            },
            None => &mut [],
        }
    }

    fn splice(&mut self, at: usize, remove: usize, insert: &[u8]) {
        let old = self.len();
        let tail = old.checked_sub(at + remove).expect("a splice within the bytes");
        let len = at + insert.len() + tail;
        let same_head = head_bytes(len) == head_bytes(old);
        if len == 0 || self.0.is_none() || !same_head || room(len) != room(old) {
            self.resized(len, at, tail);
        } else if let Some(start) = self.0 {
            // SAFETY: the room is that of both lengths; `tail` bytes end at `old` and will end at `len`.
            // Checked by: `thin_model` (proptest, Miri).
            unsafe {
                let bytes = start.as_ptr().add(head_bytes(len));
                std::ptr::copy(bytes.add(old - tail), bytes.add(len - tail), tail);
                write_len(start, len);
            }
        }
        self.bytes_mut()[at..at + insert.len()].copy_from_slice(insert);
    }
}

impl From<&[u8]> for ThinBytes {
    fn from(bytes: &[u8]) -> ThinBytes {
        let mut thin = ThinBytes::new();
        thin.append(bytes);
        thin
    }
}

impl Clone for ThinBytes {
    fn clone(&self) -> ThinBytes {
        ThinBytes::from(self.bytes())
    }
}

impl std::fmt::Debug for ThinBytes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.bytes().fmt(f)
    }
}

impl Drop for ThinBytes {
    fn drop(&mut self) {
        if let Some(at) = self.0 {
            // SAFETY: we own the buffer, and its size follows from its length.
            unsafe { arena::give(at, head_bytes(self.len()) + self.len()) };
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn thin_model(steps in proptest::collection::vec((any::<u16>(), any::<u16>(), 0usize..600), 1..60)) {
            let (mut thin, mut model) = (ThinBytes::new(), Vec::new());
            for (n, (at, remove, insert)) in steps.into_iter().enumerate() {
                let at = usize::from(at) % (model.len() + 1);
                let remove = usize::from(remove) % (model.len() - at + 1);
                let insert = vec![n as u8; insert];
                thin.splice(at, remove, &insert);
                PackedBytes::splice(&mut model, at, remove, &insert);
                prop_assert_eq!(thin.bytes(), &model[..]);
                let copy = thin.clone();
                prop_assert_eq!(copy.bytes(), &model[..]);
                prop_assert_eq!(thin.is_empty(), model.is_empty());
            }
            // SAFETY: the pointer comes from `into_raw`.
            let back = unsafe { ThinBytes::from_raw(thin.into_raw()) };
            prop_assert_eq!(back.bytes(), &model[..]);
        }
    }
}
