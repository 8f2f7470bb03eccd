//! What the benchmarks share: requests in the array form, and numbered keys.
//!
//! Must stay true: requests are the same at every run, so that two revisions do the same work.
#![allow(dead_code, reason = "each benchmark uses its part")]

/// A request in the array form.
pub fn request(words: &[&[u8]]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        bytes.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
        bytes.extend_from_slice(word);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes
}

/// The 16-byte key of a number.
pub fn key(number: usize) -> Vec<u8> {
    format!("key:{number:012}").into_bytes()
}

/// The `step`-th number of a fixed walk over all of `0..count` (a power of two) that jumps about.
pub fn jump(step: usize, count: usize) -> usize {
    debug_assert!(count.is_power_of_two());
    // An odd multiplier is a bijection modulo a power of two.
    step.wrapping_mul(0x9E37_79B1) & (count - 1)
}
