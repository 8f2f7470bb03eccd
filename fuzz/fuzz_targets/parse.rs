//! The fused parser, fed as a connection feeds it, against the plain one that sees everything at once.
//!
//! Input: one byte of switches, one byte with the number of cuts (at most 15), two bytes for each cut, then the
//! stream. Checked: the same commands, bytes used and violation at every way to cut; no allocation larger than what
//! was received backs.
#![no_main]
use libfuzzer_sys::fuzz_target;
use perigee::wire::Span;
use perigee::wire::parse::{Limits, Parsed, Parser, Violation, reference};
use perigee_fuzz::Choices;
use perigee_fuzz::allocator::{Watched, largest_request};

#[global_allocator]
static ALLOCATOR: Watched = Watched;

const LIMITS: Limits = Limits { bulk_bytes_max: 1 << 20, unauthenticated: false };
/// The spans of several commands are kept together, as a batch keeps them.
const SWITCH_BATCH: u8 = 1;
/// What was used is removed from the buffer before more comes.
const SWITCH_DRAIN: u8 = 2;

/// Commands, bytes used, and what ended it.
type Outcome = (Vec<Vec<Vec<u8>>>, usize, Option<Violation>);

/// One connection.
struct Feed {
    parser: Parser,
    switches: u8,
    buf: Vec<u8>,
    at: usize,
    /// Bytes removed from the buffer so far.
    drained: usize,
    spans: Vec<Span>,
    commands: Vec<Vec<Vec<u8>>>,
}

impl Feed {
    /// Takes `bytes` in and parses as far as it goes.
    fn take(&mut self, bytes: &[u8]) -> Result<(), Violation> {
        if self.switches & SWITCH_DRAIN != 0 {
            self.buf.drain(..self.at);
            self.parser.moved(self.at);
            self.drained += self.at;
            self.at = 0;
        }
        self.buf.extend_from_slice(bytes);
        self.spans.clear();
        loop {
            if self.switches & SWITCH_BATCH == 0 {
                self.spans.clear();
            }
            let first = self.spans.len();
            let (step, largest_bytes) =
                largest_request(|| self.parser.next(&self.buf, self.at, &mut self.spans, LIMITS));
            // An argument is six bytes or more and its span eight; vectors double.
            assert!(
                largest_bytes <= 64 + 4 * self.buf.len(),
                "{largest_bytes} bytes for {} received",
                self.buf.len()
            );
            match step {
                Parsed::Command { end } => {
                    let words = self.spans[first..].iter().map(|span| span.of(&self.buf).to_vec());
                    self.commands.push(words.collect());
                    self.at = end;
                }
                Parsed::Inline { line, end } => {
                    self.commands.push(vec![[b"inline:", line.of(&self.buf)].concat()]);
                    self.at = end;
                }
                Parsed::Incomplete => {
                    assert_eq!(self.spans.len(), first, "a cut command leaves no spans behind");
                    return Ok(());
                }
                Parsed::Violation(violation) => return Err(violation),
            }
        }
    }
}

fn fused(stream: &[u8], cuts: &[usize], switches: u8) -> Outcome {
    let mut feed = Feed {
        parser: Parser::default(),
        switches,
        buf: Vec::new(),
        at: 0,
        drained: 0,
        spans: Vec::new(),
        commands: Vec::new(),
    };
    let (mut from, mut violation) = (0, None);
    for end in cuts.iter().copied().chain([stream.len()]) {
        if let Err(found) = feed.take(&stream[from..end]) {
            violation = Some(found);
            break;
        }
        from = end;
    }
    (feed.commands, feed.drained + feed.at, violation)
}

fuzz_target!(|input: &[u8]| {
    let mut choices = Choices::new(input);
    let switches = choices.byte();
    let count = usize::from(choices.byte() % 16);
    let mut cuts: Vec<usize> =
        (0..count).map(|_| usize::from(u16::from_le_bytes([choices.byte(), choices.byte()]))).collect();
    let stream = choices.rest();
    for cut in &mut cuts {
        *cut %= stream.len() + 1;
    }
    cuts.sort_unstable();
    let plain = reference::parse_all(stream, LIMITS.bulk_bytes_max);
    assert_eq!(fused(stream, &cuts, switches), plain, "cut at {cuts:?}, switches {switches}");
});
