//! The reader of the append-only log.
//!
//! Checked: it finds the same commands and the same end however the file arrives; what it hands out reads as itself; what
//! it keeps of a file that was cut off is a log; no allocation larger than what the input backs.
#![no_main]
use std::io::Read;

use libfuzzer_sys::fuzz_target;
use perigee::persist::aof::reader::{Fault, Reader};
use perigee_fuzz::Drops;
use perigee_fuzz::allocator::{Watched, largest_request};

#[global_allocator]
static ALLOCATOR: Watched = Watched;

fn read(source: impl Read) -> (Vec<u8>, Result<(), Fault>) {
    let mut reader = Reader::new(source, 0, |name| !name.starts_with(b"no"));
    let mut all = Vec::new();
    loop {
        match reader.next_commands() {
            Ok(Some(commands)) => all.extend_from_slice(commands),
            Ok(None) => return (all, Ok(())),
            Err(fault) => return (all, Err(fault)),
        }
    }
}

fuzz_target!(|input: &[u8]| {
    let ((commands, end), largest_bytes) = largest_request(|| read(input));
    assert!(largest_bytes <= 4096 + 4 * input.len(), "{largest_bytes} for {}", input.len());
    let (dropped, dropped_end) = read(Drops(input));
    assert_eq!(commands, dropped);
    assert_eq!(format!("{end:?}"), format!("{dropped_end:?}"));
    assert_eq!(read(&commands[..]).0, commands);
    if let Err(Fault::CutOff { valid_up_to, .. }) = end {
        assert!(valid_up_to <= input.len() as u64);
        assert!(read(&input[..valid_up_to as usize]).1.is_ok());
    }
});
