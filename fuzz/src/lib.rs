//! What the fuzz targets share: plain models to compare with, and an allocator that remembers the largest request.
//!
//! Must stay true: nothing here calls the code that it is compared with.
pub mod allocator;
pub mod words;

use std::io::Read;

/// Reads choices from the front of a fuzzer's input; what is left is the data.
pub struct Choices<'a>(&'a [u8]);

impl<'a> Choices<'a> {
    /// Choices from `input`.
    pub fn new(input: &'a [u8]) -> Choices<'a> {
        Choices(input)
    }

    /// The next byte, zero when there is none.
    pub fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        *first
    }

    /// All that was not read.
    pub fn rest(self) -> &'a [u8] {
        self.0
    }
}

/// Hands an input out byte by byte.
pub struct Drops<'a>(pub &'a [u8]);

impl Read for Drops<'_> {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        let bytes = into.len().min(1).min(self.0.len());
        into[..bytes].copy_from_slice(&self.0[..bytes]);
        self.0 = &self.0[bytes..];
        Ok(bytes)
    }
}
