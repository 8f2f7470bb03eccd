//! MessagePack as scripts unpack it: the decoder that goes over a document once against the plain one in two passes.
//!
//! Checked: the same values and the same refusal; a value that was read and is written again stays what it is; no
//! allocation larger than what the input backs.
#![no_main]
use libfuzzer_sys::fuzz_target;
use perigee::script::lib::msgpack::reference::{Plain, decode_all, encode, fused};
use perigee_fuzz::allocator::{Watched, largest_request};

#[global_allocator]
static ALLOCATOR: Watched = Watched;

/// A value takes so many bytes of memory for each of its own at most; lists of values double.
const EXPANSION_MAX: usize = 4 * size_of::<Plain>();

fn written(values: &[Plain]) -> Vec<u8> {
    let mut bytes = Vec::new();
    values.iter().for_each(|value| encode(value, &mut bytes));
    bytes
}

fuzz_target!(|input: &[u8]| {
    let (found, largest_bytes) = largest_request(|| fused(input));
    assert!(largest_bytes <= 1024 + EXPANSION_MAX * input.len(), "{largest_bytes} for {}", input.len());
    assert_eq!(found, decode_all(input));
    let bytes = written(&found.0);
    let (again, refusal) = fused(&bytes);
    assert_eq!(refusal, None);
    assert_eq!(written(&again), bytes);
});
