//! Inline commands: the words are those of a second implementation, and the array form that replaces the line parses
//! into the same words.
#![no_main]
use libfuzzer_sys::fuzz_target;
use perigee::wire::inline::{as_array, split_words};
use perigee::wire::parse::{Limits, Parsed, Parser};
use perigee_fuzz::words::split_plainly;

fuzz_target!(|line: &[u8]| {
    let words = split_words(line);
    assert_eq!(words, split_plainly(line));
    let Some(words) = words else { return };
    let array = as_array(&words);
    let (mut spans, limits) = (Vec::new(), Limits { bulk_bytes_max: 1 << 20, unauthenticated: false });
    let step = Parser::default().next(&array, 0, &mut spans, limits);
    assert_eq!(step, Parsed::Command { end: array.len() });
    let again: Vec<Vec<u8>> = spans.iter().map(|span| span.of(&array).to_vec()).collect();
    assert_eq!(again, words);
});
