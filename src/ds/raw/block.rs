//! One heap block per key: header, optional deadline, key and value together.
//!
//! ```text
//! 0        4          key length code   8 (if DEADLINE)   key            value
//! [head u32][1|3|5 bytes              ][deadline u64 ms  ][key bytes    ][...]
//! value:  Tiny    [up to 7 bytes], the length in the form
//!         Inline  [1|3|5 bytes length code][bytes]
//!         Int     [i64]
//!         Heap    [ptr][len][cap], a byte vector of its own
//!         Packed  [packing u8][1|3|5 bytes length code][bytes], a small container
//!         Thin    [packing u8][ptr], packed bytes in a buffer of their own
//!         Object  [ptr], a large container
//! ```
//! head: bits 0..4 form, 4..8 marks, 8..32 access field (what it says is the store's matter). A length code is one
//! byte below 254, else 254 and a u16, or 255 and a u32. Numbers are little endian and unaligned; only the head is
//! aligned, since readers of other threads update its access field while they share the block.
//!
//! Must stay true: a block is allocated with exactly `room_for(bytes needed, head)`, so its size follows from its
//! contents; the head's form and marks change only under exclusive access, and the slack mark never.
mod edit;

use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

use super::thin::ThinBytes;
use super::{arena, heap_class, size_class};
use crate::ds::dated;
use crate::ds::listpack::Listpack;
use crate::ds::object::{Kind, Object, Packing};
use crate::ds::packed::PackedBytes;

const FORM_MASK: u32 = 0xF;
const FORM_INLINE: u32 = 0;
const FORM_INT: u32 = 1;
const FORM_HEAP: u32 = 2;
const FORM_PACKED: u32 = 3;
const FORM_THIN: u32 = 4;
const FORM_OBJECT: u32 = 5;
/// Forms from here on are inline values of 0 to 7 bytes without a length code.
const FORM_TINY: u32 = 8;
const TINY_BYTES_MAX: usize = 7;

const DEADLINE: u32 = 1 << 4;
/// Mark for the owner's use: the value was edited in place (a "raw" string in the terms of the floor above).
pub const MARK_EDITED: u32 = 1 << 5;

/// Mark for the making of a block: its value grows by edits, so it gets room to spare. Never changes afterwards.
pub const MARK_SLACK: u32 = 1 << 6;

const ACCESS_SHIFT: u32 = 8;
const HEAD_BYTES: usize = 4;
const HEAP_BYTES: usize = 24;
const POINTER_BYTES: usize = 8;
/// Above this a value always has a heap vector of its own, so that appending to it is amortised and moving the
/// key's block is cheap.
const INLINE_BYTES_MAX: usize = 16 * 1024;
/// Up to this a value is always inline.
const INLINE_BYTES_SURE: usize = 512;

/// A value to be stored.
pub enum NewValue<'a> {
    /// Bytes, copied in.
    Bytes(&'a [u8]),
    /// A number, kept as eight bytes.
    Int(i64),
    /// A vector that the block takes over without a copy when it is too large to be inline.
    Heap(Vec<u8>),
    /// A small container, copied in.
    Packed(Packing, &'a [u8]),
    /// A small container in a buffer that the block takes over where it is too large to be inline.
    Thin(Packing, ThinBytes),
    /// A large container.
    Object(Box<Object>),
}

/// A string as it is stored.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Payload<'a> {
    /// Bytes.
    Bytes(&'a [u8]),
    /// A number.
    Int(i64),
}

/// A value as it is stored.
#[derive(Clone, Copy, Debug)]
pub enum Value<'a> {
    /// A string.
    String(Payload<'a>),
    /// A small container.
    Packed(Packing, &'a [u8]),
    /// A large container.
    Object(&'a Object),
}

impl Value<'_> {
    /// What it is.
    pub fn kind(self) -> Kind {
        match self {
            Value::String(_) => Kind::String,
            Value::Packed(packing, _) => packing.kind(),
            Value::Object(object) => object.kind(),
        }
    }

    /// When its earliest part is due; `None` when no part has a deadline.
    #[inline]
    pub fn parts_wake_ms(self) -> Option<u64> {
        match self {
            Value::Packed(Packing::HashDeadlines, bytes) => dated::earliest_ms(Listpack::new(bytes)),
            Value::Object(Object::Hash(table)) => table.earliest_deadline_ms(),
            _ => None,
        }
    }
}

/// An owned block.
pub struct Block(NonNull<u8>);

/// A shared view of a block that lives in a table for `'a`.
#[derive(Clone, Copy)]
pub struct BlockRef<'a>(NonNull<u8>, PhantomData<&'a Block>);

/// An exclusive view of a block that lives in a table for `'a`. Its deadline and key cannot change here.
pub struct BlockMut<'a>(NonNull<u8>, PhantomData<&'a mut Block>);

// SAFETY: a block owns its bytes; nothing in it refers to a thread. Shared use is read-only but for the access
// clock, which is atomic. Checked by: `shared_reads_may_touch` (Miri).
unsafe impl Send for Block {}
// SAFETY: as above.
unsafe impl Sync for Block {}

const fn code_bytes(len: usize) -> usize {
    if len < 254 {
        1
    } else if len <= u16::MAX as usize {
        3
    } else {
        5
    }
}

/// Writes a length code, returns where the next byte goes.
///
/// # Safety
/// `at` must have room for `code_bytes(len)` bytes.
unsafe fn put_code(at: *mut u8, len: usize) -> *mut u8 {
    // SAFETY: the caller's promise.
    unsafe {
        if len < 254 {
            at.write(len as u8);
            at.add(1)
        } else if len <= u16::MAX as usize {
            at.write(254);
            at.add(1).cast::<u16>().write_unaligned(len as u16);
            at.add(3)
        } else {
            at.write(255);
            at.add(1).cast::<u32>().write_unaligned(len as u32);
            at.add(5)
        }
    }
}

/// Reads a length code: the length, and where the next byte is.
///
/// # Safety
/// `at` must point at a code written by `put_code`.
#[inline]
unsafe fn get_code(at: *const u8) -> (usize, *const u8) {
    // SAFETY: the caller's promise.
    unsafe {
        match at.read() {
            254 => (at.add(1).cast::<u16>().read_unaligned() as usize, at.add(3)),
            255 => (at.add(1).cast::<u32>().read_unaligned() as usize, at.add(5)),
            small => (small as usize, at.add(1)),
        }
    }
}

/// Bytes of the length code of an inline value.
const fn inline_code_bytes(len: usize) -> usize {
    if len <= TINY_BYTES_MAX { 0 } else { code_bytes(len) }
}

const fn inline_form(len: usize) -> u32 {
    if len <= TINY_BYTES_MAX { FORM_TINY + len as u32 } else { FORM_INLINE }
}

/// Writes the length code of an inline value, where it has one; returns where its bytes go.
///
/// # Safety
/// `at` must have room for `inline_code_bytes(len)` bytes.
unsafe fn put_inline_code(at: *mut u8, len: usize) -> *mut u8 {
    // SAFETY: the caller's promise.
    if len <= TINY_BYTES_MAX { at } else { unsafe { put_code(at, len) } }
}

/// Bytes that a block is allocated with whose contents need `bytes`. With slack the steps are coarser, a quarter of the
/// next power of two, so that a value that grows by little moves seldom.
fn room_for(bytes: usize, head: u32) -> usize {
    if head & MARK_SLACK == 0 || bytes > arena::SLOT_BYTES_MAX {
        return size_class(bytes);
    }
    size_class(bytes.next_multiple_of((bytes.next_power_of_two() / 4).max(32)))
}

fn heap_is_smaller(front: usize, len: usize) -> bool {
    let inline = size_class(front + inline_code_bytes(len) + len);
    size_class(front + HEAP_BYTES) + heap_class(len) < inline
}

/// Whether `form` is that of a string stored in the block itself.
#[inline]
const fn is_inline_string(form: u32) -> bool {
    form == FORM_INLINE || form >= FORM_TINY
}

/// Bytes of a packed value with its tag.
const fn packed_bytes(len: usize) -> usize {
    1 + code_bytes(len) + len
}

fn must_be_heap(front: usize, len: usize) -> bool {
    len > INLINE_BYTES_MAX || (len > INLINE_BYTES_SURE && heap_is_smaller(front, len))
}

/// Length and place of an inline value's bytes.
///
/// # Safety
/// `form` is an inline one, and `at` is where such a value starts.
#[inline]
unsafe fn inline_span(form: u32, at: *const u8) -> (usize, *const u8) {
    if form >= FORM_TINY {
        return ((form - FORM_TINY) as usize, at);
    }
    // SAFETY: the caller's promise.
    unsafe { get_code(at) }
}

/// The form of a value that lies where it is to lie, and the bytes that it takes in the block.
fn form_of(value: &NewValue<'_>) -> (u32, usize) {
    match value {
        NewValue::Bytes(b) => (inline_form(b.len()), inline_code_bytes(b.len()) + b.len()),
        NewValue::Int(_) => (FORM_INT, 8),
        NewValue::Heap(_) => (FORM_HEAP, HEAP_BYTES),
        NewValue::Packed(_, b) => (FORM_PACKED, packed_bytes(b.len())),
        NewValue::Thin(..) => (FORM_THIN, 1 + POINTER_BYTES),
        NewValue::Object(_) => (FORM_OBJECT, POINTER_BYTES),
    }
}

/// Writes a value in its form.
///
/// # Safety
/// `at` must have room for as many bytes as [`form_of`] says.
unsafe fn put_value(at: *mut u8, value: NewValue<'_>) {
    // SAFETY: the caller's promise.
    unsafe {
        match value {
            NewValue::Bytes(b) => put_inline_code(at, b.len()).copy_from_nonoverlapping(b.as_ptr(), b.len()),
            NewValue::Int(v) => at.cast::<i64>().write_unaligned(v),
            NewValue::Heap(v) => write_vec(at, v),
            NewValue::Packed(packing, b) => {
                at.write(packing as u8);
                put_code(at.add(1), b.len()).copy_from_nonoverlapping(b.as_ptr(), b.len());
            }
            NewValue::Thin(packing, b) => {
                at.write(packing as u8);
                at.add(1).cast::<*mut u8>().write_unaligned(b.into_raw());
            }
            NewValue::Object(object) => at.cast::<*mut Object>().write_unaligned(Box::into_raw(object)),
        }
    }
}

impl Block {
    /// Allocates a block for `key` with `value`; `access` is its 24-bit access field.
    ///
    /// # Panics
    /// When the key's length does not fit 32 bits (the protocol's limits are far below).
    pub fn new(key: &[u8], value: NewValue<'_>, deadline_ms: Option<u64>, access: u32, marks: u32) -> Block {
        assert!(key.len() <= u32::MAX as usize);
        let front =
            HEAD_BYTES + code_bytes(key.len()) + if deadline_ms.is_some() { 8 } else { 0 } + key.len();
        let mut head = marks | (access << ACCESS_SHIFT) | if deadline_ms.is_some() { DEADLINE } else { 0 };
        let (small, thin);
        let value = match value {
            NewValue::Bytes(b) if must_be_heap(front, b.len()) => NewValue::Heap(b.to_vec()),
            NewValue::Heap(v) if !must_be_heap(front, v.len()) => {
                small = v;
                NewValue::Bytes(&small)
            }
            NewValue::Packed(packing, b) if b.len() > INLINE_BYTES_MAX => NewValue::Thin(packing, b.into()),
            NewValue::Thin(packing, b) if b.len() <= INLINE_BYTES_MAX => {
                thin = b;
                NewValue::Packed(packing, thin.bytes())
            }
            other => other,
        };
        let (form, value_bytes) = form_of(&value);
        head |= form;
        // SAFETY: every write stays inside the `front + value_bytes` bytes that were taken.
        // Checked by: `round_trips` (proptest, Miri).
        unsafe {
            let start = arena::take(room_for(front + value_bytes, head));
            start.as_ptr().cast::<u32>().write(head);
            let mut at = put_code(start.as_ptr().add(HEAD_BYTES), key.len());
            if let Some(ms) = deadline_ms {
                at.cast::<u64>().write_unaligned(ms);
                at = at.add(8);
            }
            at.copy_from_nonoverlapping(key.as_ptr(), key.len());
            put_value(at.add(key.len()), value);
            Block(start)
        }
    }

    /// The same key and value with another deadline; a heap vector moves along without a copy.
    pub fn with_deadline(self, deadline_ms: Option<u64>) -> Block {
        self.rebuilt(None, deadline_ms)
    }

    /// The same value and deadline under another key; a heap vector moves along without a copy.
    pub fn with_key(self, key: &[u8]) -> Block {
        let deadline_ms = self.view().deadline_ms();
        self.rebuilt(Some(key), deadline_ms)
    }

    /// A block made of this one's value; `key: None` keeps the key.
    fn rebuilt(self, key: Option<&[u8]>, deadline_ms: Option<u64>) -> Block {
        let old = ManuallyDrop::new(self);
        let view = old.view();
        // SAFETY: what is taken out changes hands: `old` is freed below without it.
        let value = match unsafe { view.take_owned() } {
            Some(owned) => owned,
            None => match view.value() {
                Value::String(Payload::Int(v)) => NewValue::Int(v),
                Value::String(Payload::Bytes(b)) => NewValue::Bytes(b),
                Value::Packed(packing, b) => NewValue::Packed(packing, b),
                Value::Object(_) => unreachable!("objects are owned"),
            },
        };
        let next = Block::new(key.unwrap_or(view.key()), value, deadline_ms, view.access(), view.marks());
        // SAFETY: we own the old block; only its shell is left.
        // Checked by: `deadlines_come_and_go`, `keys_change` (Miri).
        unsafe { arena::give(old.0, view.room()) };
        next
    }

    /// A shared view.
    pub fn view(&self) -> BlockRef<'_> {
        BlockRef(self.0, PhantomData)
    }

    /// An exclusive view.
    pub fn view_mut(&mut self) -> BlockMut<'_> {
        BlockMut(self.0, PhantomData)
    }
}

/// # Safety
/// `at` must have room for `HEAP_BYTES` bytes.
unsafe fn write_vec(at: *mut u8, v: Vec<u8>) {
    let mut v = ManuallyDrop::new(v);
    // SAFETY: the caller's promise.
    unsafe { at.cast::<[usize; 3]>().write_unaligned([v.as_mut_ptr() as usize, v.len(), v.capacity()]) }
}

/// # Safety
/// `at` must hold what `write_vec` wrote; the caller takes over (or must give back, with `write_vec`) the vector.
unsafe fn read_vec(at: *const u8) -> Vec<u8> {
    // SAFETY: the caller's promise; the parts come from one live vector.
    unsafe {
        let [ptr, len, cap] = at.cast::<[usize; 3]>().read_unaligned();
        Vec::from_raw_parts(ptr as *mut u8, len, cap)
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        // SAFETY: we own the block; its size follows from its contents.
        // Checked by: `round_trips` (Miri finds leaks and wrong layouts).
        unsafe {
            let view = BlockRef(self.0, PhantomData);
            let bytes = view.room();
            drop(view.take_owned());
            arena::give(self.0, bytes);
        }
    }
}

impl<'a> BlockRef<'a> {
    #[inline]
    fn head_cell(self) -> &'a AtomicU32 {
        // SAFETY: the head is four aligned bytes at the start of a live block, only used atomically once shared.
        unsafe { AtomicU32::from_ptr(self.0.as_ptr().cast::<u32>()) }
    }

    #[inline]
    fn head(self) -> u32 {
        self.head_cell().load(Ordering::Relaxed)
    }

    #[inline]
    fn form(self) -> u32 {
        self.head() & FORM_MASK
    }

    /// The key's parts: where it starts, its length.
    #[inline]
    fn key_span(self) -> (*const u8, usize) {
        // SAFETY: a block starts with head and key code. Checked by: `round_trips`.
        unsafe {
            let (len, at) = get_code(self.0.as_ptr().add(HEAD_BYTES));
            (at.add(if self.head() & DEADLINE != 0 { 8 } else { 0 }), len)
        }
    }

    #[inline]
    fn value_at(self) -> *const u8 {
        let (at, len) = self.key_span();
        // SAFETY: the value follows the key.
        unsafe { at.add(len) }
    }

    /// The key.
    #[inline]
    pub fn key(self) -> &'a [u8] {
        let (at, len) = self.key_span();
        // SAFETY: the block lives for 'a and keys never change.
        unsafe { std::slice::from_raw_parts(at, len) }
    }

    /// When the key expires, in milliseconds since the epoch.
    #[inline]
    pub fn deadline_ms(self) -> Option<u64> {
        if self.head() & DEADLINE == 0 {
            return None;
        }
        // SAFETY: the mark says that eight bytes precede the key.
        unsafe { Some(self.key_span().0.sub(8).cast::<u64>().read_unaligned()) }
    }

    /// When the earliest part of the value is due; `None` when no part has a deadline.
    #[inline]
    pub fn parts_wake_ms(self) -> Option<u64> {
        if self.is_string() { None } else { self.value().parts_wake_ms() }
    }

    /// When the key, or the earliest part of its value, is due.
    #[inline]
    pub fn wake_ms(self) -> Option<u64> {
        let key_ms = self.deadline_ms();
        match self.parts_wake_ms() {
            None => key_ms,
            Some(parts_ms) => Some(key_ms.map_or(parts_ms, |key_ms| key_ms.min(parts_ms))),
        }
    }

    /// The value.
    #[inline]
    pub fn value(self) -> Value<'a> {
        // SAFETY: the form says what the value's bytes are; they live for 'a. Checked by: `round_trips`.
        unsafe {
            let at = self.value_at();
            match self.form() {
                FORM_PACKED => {
                    let (len, bytes_at) = get_code(at.add(1));
                    let bytes = std::slice::from_raw_parts(bytes_at, len);
                    Value::Packed(Packing::from_number(at.read()), bytes)
                }
                FORM_THIN => {
                    // A buffer's handle is its pointer, and the one in the block lives for 'a.
                    let thin = at.add(1).cast::<ManuallyDrop<ThinBytes>>().read_unaligned();
                    let bytes: &'a [u8] = &*std::ptr::from_ref(thin.bytes());
                    Value::Packed(Packing::from_number(at.read()), bytes)
                }
                FORM_OBJECT => Value::Object(&*at.cast::<*const Object>().read_unaligned()),
                form => Value::String(self.string_at(form, at)),
            }
        }
    }

    /// The value of a string; `None` for a container.
    #[inline(always)]
    pub fn string(self) -> Option<Payload<'a>> {
        let form = self.form();
        if (FORM_PACKED..=FORM_OBJECT).contains(&form) {
            return None;
        }
        // SAFETY: as in `value`.
        Some(unsafe { self.string_at(form, self.value_at()) })
    }

    /// # Safety
    /// `form` is this block's and that of a string, and `at` is where its value starts.
    #[inline(always)]
    unsafe fn string_at(self, form: u32, at: *const u8) -> Payload<'a> {
        // SAFETY: the caller's promise.
        unsafe {
            match form {
                FORM_INT => Payload::Int(at.cast::<i64>().read_unaligned()),
                FORM_HEAP => {
                    let [ptr, len, _] = at.cast::<[usize; 3]>().read_unaligned();
                    Payload::Bytes(std::slice::from_raw_parts(ptr as *const u8, len))
                }
                form => {
                    let (len, at) = inline_span(form, at);
                    Payload::Bytes(std::slice::from_raw_parts(at, len))
                }
            }
        }
    }

    /// Whether the value is a string.
    #[inline(always)]
    pub fn is_string(self) -> bool {
        !(FORM_PACKED..=FORM_OBJECT).contains(&self.form())
    }

    /// What the value is.
    pub fn kind(self) -> Kind {
        self.value().kind()
    }

    /// Takes out what the value owns beside the block.
    ///
    /// # Safety
    /// Afterwards nobody may use the value, nor free it again with the block.
    unsafe fn take_owned(self) -> Option<NewValue<'static>> {
        let at = self.value_at();
        // SAFETY: the form says what lies here, written by `Block::new`; the caller takes it over.
        unsafe {
            match self.form() {
                FORM_HEAP => Some(NewValue::Heap(read_vec(at))),
                FORM_THIN => {
                    let thin = ThinBytes::from_raw(at.add(1).cast::<*mut u8>().read_unaligned());
                    Some(NewValue::Thin(Packing::from_number(at.read()), thin))
                }
                FORM_OBJECT => {
                    let object = Box::from_raw(at.cast::<*mut Object>().read_unaligned());
                    Some(NewValue::Object(object))
                }
                _ => None,
            }
        }
    }

    /// The owner's marks.
    pub fn marks(self) -> u32 {
        self.head() & MARK_EDITED
    }

    /// The 24-bit access field.
    pub fn access(self) -> u32 {
        self.head() >> ACCESS_SHIFT
    }

    /// Sets the access field. Allowed through a shared view: any number of readers may race, and one of their
    /// values wins. Writes only when it changes, so that hot keys stay in shared cache lines.
    #[inline]
    pub fn touch(self, access: u32) {
        let head = self.head();
        let next = (head & ((1 << ACCESS_SHIFT) - 1)) | (access << ACCESS_SHIFT);
        if next != head {
            self.head_cell().store(next, Ordering::Relaxed);
        }
    }

    /// A block of its own with a copy of the value, the same deadline and marks, under another key.
    pub fn copy_as(self, key: &[u8], access: u32) -> Block {
        let value = match self.value() {
            Value::String(Payload::Bytes(bytes)) => NewValue::Bytes(bytes),
            Value::String(Payload::Int(v)) => NewValue::Int(v),
            Value::Packed(packing, bytes) => NewValue::Packed(packing, bytes),
            Value::Object(object) => NewValue::Object(Box::new(object.clone())),
        };
        Block::new(key, value, self.deadline_ms(), access, self.marks())
    }

    /// Bytes of the block that its contents need.
    fn bytes_needed(self) -> usize {
        let value_at = self.value_at();
        let front = value_at as usize - self.0.as_ptr() as usize;
        front
            + match self.form() {
                FORM_INT => 8,
                FORM_HEAP => HEAP_BYTES,
                // SAFETY: the form says that a length code stands behind the tag.
                FORM_PACKED => packed_bytes(unsafe { get_code(value_at.add(1)).0 }),
                FORM_THIN => 1 + POINTER_BYTES,
                FORM_OBJECT => POINTER_BYTES,
                // SAFETY: the form is an inline one.
                form => unsafe {
                    let (len, at) = inline_span(form, value_at);
                    (at as usize - value_at as usize) + len
                },
            }
    }

    /// Bytes that the block was allocated with.
    fn room(self) -> usize {
        room_for(self.bytes_needed(), self.head())
    }

    /// Heap bytes that this key takes, without its slot in the table.
    pub fn heap_bytes(self) -> usize {
        let own = self.room();
        match (self.form(), self.value()) {
            (FORM_THIN, Value::Packed(_, bytes)) => own + heap_class(bytes.len()),
            (_, Value::Object(object)) => own + object.heap_bytes(),
            _ => match self.vector_bytes() {
                0 => own,
                cap => own + heap_class(cap),
            },
        }
    }

    /// Capacity of the value's own heap vector; 0 where the value lies in the block.
    pub fn vector_bytes(self) -> usize {
        if self.form() != FORM_HEAP {
            return 0;
        }
        // SAFETY: the form says that a vector's parts are here.
        unsafe { self.value_at().cast::<[usize; 3]>().read_unaligned()[2] }
    }
}

// SAFETY: the pointer is 8-aligned (arena), `from_raw` undoes `into_raw`.
unsafe impl super::dash::Entry for Block {
    type Ref<'a> = BlockRef<'a>;
    type Mut<'a> = BlockMut<'a>;

    fn into_raw(self) -> NonNull<u8> {
        ManuallyDrop::new(self).0
    }
    unsafe fn from_raw(at: NonNull<u8>) -> Self {
        Block(at)
    }
    unsafe fn view_at<'a>(at: NonNull<u8>) -> BlockRef<'a> {
        BlockRef(at, PhantomData)
    }
    unsafe fn view_mut_at<'a>(at: NonNull<u8>) -> BlockMut<'a> {
        BlockMut(at, PhantomData)
    }
}

impl<'a> super::dash::View<'a> for BlockRef<'a> {
    fn key(self) -> &'a [u8] {
        BlockRef::key(self)
    }
    fn deadline_ms(self) -> Option<u64> {
        BlockRef::deadline_ms(self)
    }
    fn wake_ms(self) -> Option<u64> {
        BlockRef::wake_ms(self)
    }
}

impl super::dash::ViewMut for BlockMut<'_> {
    fn move_deadline(&mut self, deadline_ms: u64) -> bool {
        let view = self.view();
        if view.deadline_ms().is_none() {
            return false;
        }
        // SAFETY: the mark says that eight bytes precede the key, and the view is exclusive.
        unsafe { view.key_span().0.cast_mut().sub(8).cast::<u64>().write_unaligned(deadline_ms) };
        true
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn value_of(view: BlockRef<'_>) -> Vec<u8> {
        match view.value() {
            Value::String(Payload::Bytes(b)) => b.to_vec(),
            Value::String(Payload::Int(v)) => v.to_string().into_bytes(),
            Value::Packed(packing, b) => [&[packing as u8], b].concat(),
            Value::Object(object) => format!("{object:?}").into_bytes(),
        }
    }

    impl BlockRef<'_> {
        fn heap_at(self) -> Option<*const u8> {
            match self.string() {
                Some(Payload::Bytes(b)) if self.form() == FORM_HEAP => Some(b.as_ptr()),
                _ => None,
            }
        }
    }

    #[test]
    fn round_trips() {
        for key_len in [0, 1, 16, 253, 254, 255, 70_000] {
            for value_len in [0, 1, 3, 64, 253, 254, 512, 1024, 1500, 20_000, 70_000] {
                for deadline in [None, Some(u64::MAX - 3)] {
                    let (key, value) = (vec![b'k'; key_len], vec![b'v'; value_len]);
                    let block = Block::new(&key, NewValue::Bytes(&value), deadline, 0xABCDEF, MARK_EDITED);
                    let view = block.view();
                    assert_eq!((view.key(), view.deadline_ms()), (&key[..], deadline));
                    assert_eq!(value_of(view), value);
                    assert_eq!((view.access(), view.marks()), (0xABCDEF, MARK_EDITED));
                }
            }
        }
        for len in [0, 700, 20_000] {
            let (taken, copied) = (NewValue::Heap(vec![b'v'; len]), vec![b'v'; len]);
            let taken = Block::new(b"key", taken, None, 0, 0);
            let copied = Block::new(b"key", NewValue::Bytes(&copied), None, 0, 0);
            assert_eq!(value_of(taken.view()), value_of(copied.view()));
            assert_eq!(taken.view().heap_bytes(), copied.view().heap_bytes());
        }
        let block = Block::new(b"n", NewValue::Int(-7), Some(5), 0, 0);
        assert_eq!((block.view().string(), block.view().deadline_ms()), (Some(Payload::Int(-7)), Some(5)));
    }

    #[test]
    fn deadlines_come_and_go() {
        for len in [3, 300, 40_000] {
            let value = vec![7; len];
            let block = Block::new(b"key", NewValue::Bytes(&value), None, 1, MARK_EDITED);
            let block = block.with_deadline(Some(99)).with_deadline(Some(100));
            assert_eq!((block.view().deadline_ms(), value_of(block.view())), (Some(100), value.clone()));
            let block = block.with_deadline(None);
            assert_eq!((block.view().deadline_ms(), value_of(block.view())), (None, value));
            assert_eq!((block.view().key(), block.view().marks()), (&b"key"[..], MARK_EDITED));
        }
    }

    #[test]
    fn keys_change() {
        for len in [3, 300, 40_000] {
            for (old, new) in [(3, 9), (9, 3), (3, 300), (300, 0)] {
                let (old, new, value) = (vec![b'o'; old], vec![b'n'; new], vec![7; len]);
                let block = Block::new(&old, NewValue::Bytes(&value), Some(77), 5, MARK_EDITED);
                let at = block.view().heap_at();
                let copy = block.view().copy_as(&new, 6);
                let block = block.with_key(&new);
                assert_eq!(block.view().heap_at(), at, "a heap vector is not copied");
                for (view, access) in [(block.view(), 5), (copy.view(), 6)] {
                    assert_eq!((view.key(), value_of(view)), (&new[..], value.clone()));
                    assert_eq!(
                        (view.deadline_ms(), view.access(), view.marks()),
                        (Some(77), access, MARK_EDITED)
                    );
                }
            }
        }
        let block = Block::new(b"n", NewValue::Int(-7), None, 0, 0).with_key(b"other");
        assert_eq!((block.view().key(), block.view().string()), (&b"other"[..], Some(Payload::Int(-7))));
    }

    #[test]
    fn awkward_sizes_waste_little() {
        // 1024 bytes would fall into the 1280 class together with their key.
        let block = Block::new(&[b'k'; 16], NewValue::Bytes(&[0; 1024]), None, 0, 0);
        assert!(block.view().heap_bytes() <= 1024 + 48);
        let block = Block::new(&[b'k'; 16], NewValue::Bytes(&[0; 1500]), None, 0, 0);
        assert!(block.view().heap_bytes() <= 1536);
    }

    #[test]
    fn shared_reads_may_touch() {
        let block = Block::new(b"k", NewValue::Int(1), None, 1, 0);
        std::thread::scope(|s| {
            for clock in 0..4 {
                let block = &block;
                s.spawn(move || {
                    block.view().touch(clock);
                    assert_eq!(block.view().key(), b"k");
                });
            }
        });
    }

    #[test]
    fn slack_spares_moves() {
        let mut block = Block::new(b"key", NewValue::Bytes(b"0123456789"), None, 0, MARK_EDITED | MARK_SLACK);
        let steps = (11..500).filter(|len| {
            let stays = block.view_mut().grow_in_place(*len);
            if !stays {
                let longer = vec![1; *len];
                block = Block::new(b"key", NewValue::Bytes(&longer), None, 0, MARK_EDITED | MARK_SLACK);
            }
            assert_eq!(value_of(block.view()).len(), *len);
            !stays
        });
        assert!(steps.count() < 14);
    }

    #[test]
    fn containers_move_with_their_block() {
        let values: [fn() -> NewValue<'static>; 3] = [
            || NewValue::Packed(Packing::IntSet, b"0123456789"),
            || NewValue::Thin(Packing::Hash, ThinBytes::from(&[7; 20_000][..])),
            || NewValue::Object(Box::new(Object::List(Default::default()))),
        ];
        for value in values {
            let block = Block::new(b"key", value(), None, 3, 0);
            let want = (block.view().kind(), value_of(block.view()));
            let copy = block.view().copy_as(b"copy", 4);
            let block = block.with_deadline(Some(9)).with_key(b"another");
            for view in [block.view(), copy.view()] {
                assert_eq!((view.kind(), value_of(view)), want);
                assert!(view.string().is_none() && view.heap_bytes() > 0);
            }
            let mut block = block;
            assert!(block.view_mut().bytes_mut().is_none() && !block.view_mut().grow_in_place(100));
            assert!(
                !block.view_mut().store(&NewValue::Bytes(b"x")) && !block.view_mut().store(&NewValue::Int(1))
            );
        }
    }

    proptest! {
        #[test]
        fn splices(
            start in 0usize..300,
            steps in proptest::collection::vec((any::<u16>(), any::<u16>(), 0usize..9_000), 1..12),
            small in any::<bool>(),
        ) {
            let mut model = vec![9u8; start];
            let mut block = Block::new(b"key", NewValue::Packed(Packing::Set, &model), Some(5), 3, 0);
            for (n, (at, remove, insert)) in steps.into_iter().enumerate() {
                let at = usize::from(at) % (model.len() + 1);
                let remove = usize::from(remove) % (model.len() - at + 1);
                let insert = vec![n as u8; if small { insert % 9 } else { insert }];
                PackedBytes::splice(&mut model, at, remove, &insert);
                if let Some(next) = block.view_mut().splice_packed(at, remove, &insert) {
                    block = next;
                }
                let view = block.view();
                prop_assert!(matches!(view.value(), Value::Packed(Packing::Set, bytes) if bytes == model));
                prop_assert_eq!((view.key(), view.deadline_ms(), view.access()), (&b"key"[..], Some(5), 3));
            }
            block.view_mut().set_packing(Packing::List);
            block.view_mut().into_packed().fill(1);
            model.fill(1);
            prop_assert!(matches!(block.view().value(), Value::Packed(Packing::List, bytes) if bytes == model));
        }

        #[test]
        fn stores_in_place(first in 0usize..700, second in 0usize..700, grow in 0usize..300, slack in any::<bool>()) {
            let (a, b) = (vec![1u8; first], vec![2u8; second]);
            let marks = if slack { MARK_SLACK } else { 0 };
            let mut block = Block::new(b"some key", NewValue::Bytes(&a), Some(9), 3, marks);
            let mut now = a;
            if block.view_mut().store(&NewValue::Bytes(&b)) {
                now = b;
            }
            prop_assert_eq!(value_of(block.view()), now.clone());
            if block.view_mut().grow_in_place(now.len() + grow) {
                now.resize(now.len() + grow, 0);
            }
            prop_assert_eq!(value_of(block.view()), now);
            prop_assert_eq!(block.view().deadline_ms(), Some(9));
            prop_assert_eq!(block.view().key(), b"some key");
        }

        #[test]
        fn splices_in_place(
            sizes in (0usize..900, prop_oneof![Just(0usize), Just(20_000)]),
            slack in any::<bool>(),
            steps in proptest::collection::vec((any::<u16>(), any::<u16>(), 0usize..40), 1..30),
        ) {
            let mut model = vec![1u8; sizes.0 + sizes.1];
            let marks = if slack { MARK_SLACK } else { 0 };
            let mut block = Block::new(b"some key", NewValue::Bytes(&model), Some(9), 3, marks);
            for (n, (at, remove, insert)) in steps.into_iter().enumerate() {
                let at = usize::from(at) % (model.len() + 1);
                let remove = usize::from(remove % 50) % (model.len() - at + 1);
                let insert = vec![n as u8; insert];
                let same = remove == insert.len();
                let spliced = block.view_mut().splice_in_place(at, remove, &insert);
                prop_assert!(spliced || !same);
                if spliced {
                    drop(model.splice(at..at + remove, insert));
                }
                prop_assert_eq!(value_of(block.view()), model.clone());
                prop_assert_eq!((block.view().key(), block.view().deadline_ms()), (&b"some key"[..], Some(9)));
            }
        }
    }

    #[test]
    fn numbers_are_not_spliced() {
        let mut block = Block::new(b"key", NewValue::Int(5), None, 0, 0);
        assert!(!block.view_mut().splice_in_place(0, 0, b"x"));
    }
}
