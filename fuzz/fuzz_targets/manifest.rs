//! The manifest of the append-only log.
//!
//! Checked: what is accepted is written as a manifest that reads as the same; no allocation larger than what the input
//! backs; new names never meet old ones.
#![no_main]
use libfuzzer_sys::fuzz_target;
use perigee::persist::aof::manifest::Manifest;
use perigee_fuzz::allocator::{Watched, largest_request};

#[global_allocator]
static ALLOCATOR: Watched = Watched;

fuzz_target!(|input: &[u8]| {
    let (outcome, largest_bytes) = largest_request(|| Manifest::parse(input));
    assert!(largest_bytes <= 4096 + 64 * input.len(), "{largest_bytes} for {}", input.len());
    let Ok(mut manifest) = outcome else { return };
    let text = manifest.text();
    if !text.is_empty() {
        assert_eq!(Manifest::parse(&text).as_ref(), Ok(&manifest));
    }
    manifest.new_increment(b"a");
    manifest.new_base(b"a", true);
    manifest.retire_increments(1);
    // A number at the end of its range, or a negative one, is the only thing that has no successor.
    if let Ok(again) = Manifest::parse(&manifest.text()) {
        assert_eq!(again, manifest);
    }
});
