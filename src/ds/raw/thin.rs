//! A byte buffer of its own whose handle is one pointer: length in front of the bytes, no capacity, since room
//! follows from the length by the allocator's classes.
//!
//! ```text
//! [length u32][bytes ...]
//! ```
//! Must stay true: a buffer is allocated with exactly `size_class(HEAD_BYTES + length)`; an empty one has none.
use std::ptr::NonNull;

use super::{arena, size_class};
use crate::ds::packed::PackedBytes;

const HEAD_BYTES: usize = 4;

/// Owned bytes, up to 4 GiB.
#[derive(Default)]
pub struct ThinBytes(Option<NonNull<u8>>);

// SAFETY: a buffer owns its bytes, and nothing in it refers to a thread.
unsafe impl Send for ThinBytes {}
// SAFETY: shared use only reads.
unsafe impl Sync for ThinBytes {}

const fn room(len: usize) -> usize {
    size_class(HEAD_BYTES + len)
}

/// A buffer for `len` bytes, its length written, its bytes not.
fn allocate(len: usize) -> NonNull<u8> {
    let stored = u32::try_from(len).expect("a packed buffer stays below 4 GiB");
    let at = arena::take(HEAD_BYTES + len);
    // SAFETY: room for head and bytes was just taken, and it is aligned to 8.
    unsafe { at.cast::<u32>().write(stored) };
    at
}

impl ThinBytes {
    /// An empty buffer, without an allocation.
    pub const fn new() -> ThinBytes {
        ThinBytes(None)
    }

    /// Number of bytes.
    #[inline]
    pub fn len(&self) -> usize {
        // SAFETY: a buffer starts with its length.
        self.0.map_or(0, |at| unsafe { at.cast::<u32>().read() as usize })
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
            let (from, to) = (old.as_ptr(), next.as_ptr().add(HEAD_BYTES));
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
            Some(at) => unsafe { std::slice::from_raw_parts(at.as_ptr().add(HEAD_BYTES), self.len()) },
            None => &[],
        }
    }

    #[inline]
    fn bytes_mut(&mut self) -> &mut [u8] {
        match self.0 {
            // SAFETY: as in `bytes`, borrowed exclusively.
            Some(at) => unsafe { std::slice::from_raw_parts_mut(at.as_ptr().add(HEAD_BYTES), self.len()) },
            None => &mut [],
        }
    }

    fn splice(&mut self, at: usize, remove: usize, insert: &[u8]) {
        let old = self.len();
        let tail = old.checked_sub(at + remove).expect("a splice within the bytes");
        let len = at + insert.len() + tail;
        if len == 0 || self.0.is_none() || room(len) != room(old) {
            self.resized(len, at, tail);
        } else if let Some(start) = self.0 {
            // SAFETY: the room is that of both lengths; `tail` bytes end at `old` and will end at `len`.
            // Checked by: `thin_model` (proptest, Miri).
            unsafe {
                let bytes = start.as_ptr().add(HEAD_BYTES);
                std::ptr::copy(bytes.add(old - tail), bytes.add(len - tail), tail);
                start.cast::<u32>().write(len as u32);
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
            unsafe { arena::give(at, HEAD_BYTES + self.len()) };
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
