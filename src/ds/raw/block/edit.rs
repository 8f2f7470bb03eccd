//! Changing a block in place: storing over its value, growing and cutting it, splicing bytes into it.
//!
//! Must stay true: what changes the bytes needed keeps the room that the block was allocated with, else it refuses or
//! hands out another block.
use std::marker::PhantomData;
use std::sync::atomic::Ordering;

use super::{
    Block, BlockMut, BlockRef, FORM_HEAP, FORM_INT, FORM_MASK, FORM_OBJECT, FORM_THIN, INLINE_BYTES_MAX,
    MARK_EDITED, MARK_SLACK, NewValue, Value, code_bytes, inline_code_bytes, inline_form, inline_span,
    is_inline_string, must_be_heap, packed_bytes, put_code, put_inline_code, read_vec, room_for, write_vec,
};
use crate::ds::object::{Object, Packing};
use crate::ds::packed::PackedBytes;
use crate::ds::raw::arena;
use crate::ds::raw::thin::ThinBytes;

impl<'a> BlockMut<'a> {
    /// A shared view for as long as this one is not used.
    pub fn view(&self) -> BlockRef<'_> {
        BlockRef(self.0, PhantomData)
    }

    fn set_head(&mut self, clear: u32, set: u32) {
        let view = self.view();
        view.head_cell().store((view.head() & !clear) | set, Ordering::Relaxed);
    }

    /// Sets the owner's marks to `marks`.
    pub fn set_marks(&mut self, marks: u32) {
        self.set_head(MARK_EDITED, marks & MARK_EDITED);
    }

    /// Stores `value` without moving the block, where its size class and form allow. `false`: nothing changed.
    #[inline]
    pub fn store(&mut self, value: &NewValue<'_>) -> bool {
        let view = self.view();
        match (value, view.form()) {
            (NewValue::Int(v), FORM_INT) => {
                // SAFETY: an Int block has eight bytes here, and the view is exclusive.
                unsafe { view.value_at().cast_mut().cast::<i64>().write_unaligned(*v) };
                true
            }
            (NewValue::Bytes(b), form) if is_inline_string(form) => self.store_inline(b),
            (NewValue::Heap(v), form) if is_inline_string(form) => self.store_inline(v),
            _ => false,
        }
    }

    /// Stores bytes over the bytes of an inline block.
    fn store_inline(&mut self, b: &[u8]) -> bool {
        let view = self.view();
        let value_at = view.value_at().cast_mut();
        let front = value_at as usize - self.0.as_ptr() as usize;
        let need = front + inline_code_bytes(b.len()) + b.len();
        if room_for(need, view.head()) != view.room() || must_be_heap(front, b.len()) {
            return false;
        }
        // SAFETY: the block is inline, the class has room for `need` bytes, and the view is exclusive.
        // Checked by: `stores_in_place` (proptest, Miri).
        unsafe { put_inline_code(value_at, b.len()).copy_from_nonoverlapping(b.as_ptr(), b.len()) };
        self.set_head(FORM_MASK, inline_form(b.len()));
        true
    }

    /// The value's bytes for editing in place, when it is stored as bytes.
    pub fn bytes_mut(&mut self) -> Option<&mut [u8]> {
        let view = self.view();
        // SAFETY: as in `BlockRef::value`; the view is exclusive.
        unsafe {
            let at = view.value_at();
            match view.form() {
                FORM_HEAP => {
                    let [ptr, len, _] = at.cast::<[usize; 3]>().read_unaligned();
                    Some(std::slice::from_raw_parts_mut(ptr as *mut u8, len))
                }
                form if is_inline_string(form) => {
                    let (len, at) = inline_span(form, at);
                    Some(std::slice::from_raw_parts_mut(at.cast_mut(), len))
                }
                _ => None,
            }
        }
    }

    /// Puts `insert` in the place of the `remove` bytes at `at` of a value stored as bytes, without moving the block.
    /// `false`: there is no room for that in its place, or the value is no bytes; nothing changed.
    ///
    /// # Panics
    /// When `at + remove` lies beyond the end.
    pub fn splice_in_place(&mut self, at: usize, remove: usize, insert: &[u8]) -> bool {
        let Some(bytes) = self.bytes_mut() else { return false };
        let old = bytes.len();
        let tail = old.checked_sub(at + remove).expect("a splice within the bytes");
        let len = at + insert.len() + tail;
        let fits = if len < old { self.may_shrink(len) } else { self.grow_in_place(len) };
        let Some(bytes) = self.bytes_mut().filter(|_| fits) else { return false };
        bytes.copy_within(at + remove..old, at + insert.len());
        bytes[at..at + insert.len()].copy_from_slice(insert);
        if len < old {
            self.shrink_in_place(len);
        }
        true
    }

    /// Whether a value of bytes can become `len` bytes, which is less, in its place.
    fn may_shrink(&self, len: usize) -> bool {
        let view = self.view();
        match view.form() {
            FORM_HEAP => true,
            FORM_INT => false,
            form => {
                // SAFETY: the form is an inline one.
                let (old, _) = unsafe { inline_span(form, view.value_at()) };
                let need = view.bytes_needed() - (old - len);
                inline_code_bytes(len) == inline_code_bytes(old) && room_for(need, view.head()) == view.room()
            }
        }
    }

    /// Cuts a value of bytes to `len`, which [`BlockMut::may_shrink`] allowed.
    fn shrink_in_place(&mut self, len: usize) {
        let view = self.view();
        let at = view.value_at().cast_mut();
        if view.form() == FORM_HEAP {
            // SAFETY: the vector is taken out, cut and written back before anything can observe it.
            unsafe {
                let mut v = read_vec(at);
                v.truncate(len);
                write_vec(at, v);
            }
        } else {
            // SAFETY: the code keeps its width, so bytes stay in place. Checked by: `splices_in_place` (Miri).
            unsafe { put_inline_code(at, len) };
            self.set_head(FORM_MASK, inline_form(len));
        }
    }

    /// Grows a value stored as bytes to `len` bytes (new ones zero) without moving the block, where that is
    /// possible: always for heap vectors, for inline values while their size class has room.
    pub fn grow_in_place(&mut self, len: usize) -> bool {
        let view = self.view();
        let at = view.value_at().cast_mut();
        match view.form() {
            FORM_HEAP => {
                // SAFETY: the vector is taken out, grown and written back before anything can observe it.
                unsafe {
                    let mut v = read_vec(at);
                    if len > v.len() {
                        grow_vec(&mut v, len);
                    }
                    write_vec(at, v);
                }
                true
            }
            form if !is_inline_string(form) => false,
            form => {
                // SAFETY: the form is an inline one.
                let (old, bytes_at) = unsafe { inline_span(form, at) };
                if len <= old {
                    return true;
                }
                let front = at as usize - self.0.as_ptr() as usize;
                let need = front + inline_code_bytes(len) + len;
                let same_code = inline_code_bytes(len) == inline_code_bytes(old);
                if !same_code || room_for(need, view.head()) != view.room() || must_be_heap(front, len) {
                    return false;
                }
                // SAFETY: the class has room for `need` bytes; the code keeps its width, so bytes stay in place.
                unsafe {
                    bytes_at.cast_mut().add(old).write_bytes(0, len - old);
                    put_inline_code(at, len);
                }
                self.set_head(FORM_MASK, inline_form(len));
                true
            }
        }
    }

    /// The object, when the value is one.
    #[inline]
    pub fn into_object(self) -> Option<&'a mut Object> {
        if self.view().form() != FORM_OBJECT {
            return None;
        }
        // SAFETY: the form says that a box's pointer is here; the view is exclusive for 'a, and ends.
        Some(unsafe { &mut *self.view().value_at().cast::<*mut Object>().read_unaligned() })
    }

    /// The bytes of a packed value, to overwrite some of them. Empty for other values.
    #[inline]
    pub fn into_packed(self) -> &'a mut [u8] {
        let Value::Packed(_, bytes) = self.view().value() else { return &mut [] };
        // SAFETY: the bytes are the block's or its buffer's; the view is exclusive for 'a, and ends.
        unsafe { std::slice::from_raw_parts_mut(bytes.as_ptr().cast_mut(), bytes.len()) }
    }

    /// Says how the packed bytes are to be read from now on. Only for packed values.
    pub fn set_packing(&mut self, packing: Packing) {
        if let Value::Packed(..) = self.view().value() {
            // SAFETY: the tag is the first byte of such a value, and the view is exclusive.
            unsafe { self.view().value_at().cast_mut().write(packing as u8) };
        }
    }

    /// Puts `insert` in the place of the `remove` bytes at `at` of a packed value, without moving the block where that
    /// is possible. `Some` is the block that must take this one's place.
    ///
    /// # Panics
    /// When the value is not packed, or has no bytes at `at..at + remove`.
    #[must_use]
    pub fn splice_packed(&mut self, at: usize, remove: usize, insert: &[u8]) -> Option<Block> {
        let view = self.view();
        let (value_at, form) = (view.value_at(), view.form());
        let Value::Packed(packing, old) = view.value() else { panic!("only packed values are spliced") };
        let tail = old.len().checked_sub(at + remove).expect("a splice within the bytes");
        let len = at + insert.len() + tail;
        if form == FORM_THIN {
            let place = value_at.cast_mut();
            // SAFETY: the buffer is taken out, changed and written back before anything can observe it.
            unsafe {
                let pointer = place.add(1).cast::<*mut u8>();
                let mut thin = ThinBytes::from_raw(pointer.read_unaligned());
                thin.splice(at, remove, insert);
                pointer.write_unaligned(thin.into_raw());
            }
            return None;
        }
        let front = value_at as usize - self.0.as_ptr() as usize;
        let same_room = room_for(front + packed_bytes(len), view.head()) == view.room();
        if len > INLINE_BYTES_MAX || !same_room || code_bytes(len) != code_bytes(old.len()) {
            return Some(view.spliced(packing, [&old[..at], insert, &old[at + remove..]], len));
        }
        // SAFETY: the block has room for `len` bytes, and the length code keeps its width.
        // Checked by: `splices` (proptest, Miri).
        unsafe {
            let bytes = put_code(value_at.cast_mut().add(1), len);
            std::ptr::copy(bytes.add(at + remove), bytes.add(len - tail), tail);
            bytes.add(at).copy_from_nonoverlapping(insert.as_ptr(), insert.len());
        }
        None
    }
}

/// Bytes from which packed values that are edited get room to spare.
const SLACK_FROM: usize = 512;

impl BlockRef<'_> {
    /// A block like this one whose packed bytes are `parts` in a row, `len` together.
    fn spliced(self, packing: Packing, parts: [&[u8]; 3], len: usize) -> Block {
        if len > INLINE_BYTES_MAX {
            let mut thin = ThinBytes::from(parts[0]);
            parts[1..].iter().for_each(|part| thin.append(part));
            return Block::new(
                self.key(),
                NewValue::Thin(packing, thin),
                self.deadline_ms(),
                self.access(),
                self.marks(),
            );
        }
        let value_at = self.value_at();
        let front = value_at as usize - self.0.as_ptr() as usize;
        // What is edited at this size mostly goes on growing or shrinking, and moving it costs more the longer it is.
        let slack = if len >= SLACK_FROM { MARK_SLACK } else { 0 };
        let head = (self.head() & !MARK_SLACK) | slack;
        // SAFETY: every write stays inside the `front + packed_bytes(len)` bytes that are taken; the front is this
        // block's, but for the slack mark, which is the new block's own. Checked by: `splices` (proptest, Miri).
        unsafe {
            let start = arena::take(room_for(front + packed_bytes(len), head));
            start.as_ptr().copy_from_nonoverlapping(self.0.as_ptr(), front);
            start.as_ptr().cast::<u32>().write(head);
            let at = start.as_ptr().add(front);
            at.write(packing as u8);
            let mut at = put_code(at.add(1), len);
            for part in parts {
                at.copy_from_nonoverlapping(part.as_ptr(), part.len());
                at = at.add(part.len());
            }
            Block(start)
        }
    }
}

/// Grows with room to spare below 1 MiB (doubling) and an eighth above it: amortised, and bounded in waste.
fn grow_vec(v: &mut Vec<u8>, len: usize) {
    if len > v.capacity() {
        let spare = if len < (1 << 20) { len } else { len / 8 };
        v.reserve_exact(len - v.len() + spare);
    }
    v.resize(len, 0);
}
