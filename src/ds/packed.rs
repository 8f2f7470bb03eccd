//! Bytes that hold many small values back to back, and the one way to change them: a splice.
//!
//! Listpacks, integer sets and the buckets of packed tables are all such bytes. Where they lie (in a key's block,
//! in a buffer of their own) is the business of whoever implements [`PackedBytes`].

use smallvec::SmallVec;

/// Bytes that can be changed in the middle.
pub trait PackedBytes {
    /// The bytes.
    fn bytes(&self) -> &[u8];
    /// The bytes, to overwrite some of them.
    fn bytes_mut(&mut self) -> &mut [u8];
    /// Puts `insert` in the place of the `remove` bytes at `at`; what follows moves.
    ///
    /// # Panics
    /// When `at + remove` lies beyond the end.
    fn splice(&mut self, at: usize, remove: usize, insert: &[u8]);

    /// Appends bytes.
    fn append(&mut self, bytes: &[u8]) {
        self.splice(self.bytes().len(), 0, bytes);
    }
}

impl PackedBytes for Vec<u8> {
    fn bytes(&self) -> &[u8] {
        self
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        self
    }

    fn splice(&mut self, at: usize, remove: usize, insert: &[u8]) {
        if remove == insert.len() {
            self[at..at + remove].copy_from_slice(insert);
        } else {
            drop(Vec::splice(self, at..at + remove, insert.iter().copied()));
        }
    }

    fn append(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }
}

impl<const N: usize> PackedBytes for SmallVec<[u8; N]> {
    fn bytes(&self) -> &[u8] {
        self
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        self
    }

    fn splice(&mut self, at: usize, remove: usize, insert: &[u8]) {
        drop(self.drain(at..at + remove));
        self.insert_from_slice(at, insert);
    }
}
