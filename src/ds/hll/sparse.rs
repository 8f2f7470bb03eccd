//! Registers as runs of equal ones.
//!
//! ```text
//! 00llllll           ZERO:  l + 1 registers are zero
//! 01llllll llllllll  XZERO: l + 1 registers are zero, the high bits of l first
//! 1vvvvvll           VAL:   l + 1 registers are v + 1
//! ```
//! Must stay true: which runs come out depends only on the runs before and the register that is raised, by the same
//! rules as elsewhere (split, then join values within five runs), so that equal histories give equal bytes.
use std::fmt::Write as _;

use smallvec::SmallVec;

use super::hash::Place;
use super::{Body, HEADER_BYTES, Invalid, REGISTERS, body};
use crate::ds::packed::PackedBytes;

/// The runs of a value without elements: one XZERO.
pub(super) const ALL_ZERO: [u8; 2] = [0x7F, 0xFF];

const XZERO_BIT: u8 = 0x40;
const VAL_BIT: u8 = 0x80;
const ZERO_LEN_MAX: usize = 64;
const VAL_LEN_MAX: usize = 4;
const VAL_MAX: u8 = 32;

/// How many runs are looked at for two that can be joined.
const JOIN_STEPS: usize = 5;
/// Bytes behind a raised register that joining may look at: two for each step, and one more.
const JOIN_BYTES: usize = 2 * JOIN_STEPS + 1;

/// Bytes in which a few runs are rewritten.
type Window = SmallVec<[u8; 24]>;

/// A run.
#[derive(Clone, Copy)]
struct Run {
    /// Number of registers.
    len: usize,
    /// Their value.
    rank: u8,
    /// Bytes it takes.
    bytes: usize,
}

impl Run {
    /// The run at `at`, which must not be the end. Where an XZERO lacks its second byte, that counts as zero.
    #[inline]
    fn at(runs: &[u8], at: usize) -> Run {
        let first = runs[at];
        let short = usize::from(first & 0x3F);
        match first & 0xC0 {
            0 => Run { len: short + 1, rank: 0, bytes: 1 },
            XZERO_BIT => {
                let second = runs.get(at + 1).copied().unwrap_or(0);
                Run { len: (short << 8 | usize::from(second)) + 1, rank: 0, bytes: 2 }
            }
            _ => Run { len: usize::from(first & 3) + 1, rank: (first >> 2 & 31) + 1, bytes: 1 },
        }
    }
}

/// Registers and bytes of the run at `at`, as [`Run::at`] has them, without a branch on the kind of run: kinds follow
/// each other at random, and each wrong guess of a branch costs as much as several runs.
#[inline(always)]
fn span(runs: &[u8], at: usize) -> (usize, usize) {
    let first = usize::from(runs[at]);
    let second = runs.get(at + 1).map_or(0, |byte| usize::from(*byte));
    let (is_val, is_xzero) = (first >> 7, first >> 6 & !(first >> 7) & 1);
    let short = first & (0x3F >> (4 * is_val));
    let len = (short << (8 * is_xzero) | second & is_xzero.wrapping_neg()) + 1;
    (len, 1 + is_xzero)
}

/// Bytes of runs that are looked at together.
const WORD_BYTES: usize = 8;

/// How many runs of one byte `word` begins with, its lowest byte first, and how many registers they have together.
#[inline(always)]
fn short_runs(word: u64) -> (usize, usize) {
    const EACH: u64 = 0x0101_0101_0101_0101;
    let vals = word >> 7 & EACH;
    let xzeros = word >> 6 & !vals & EACH;
    let runs = (xzeros.trailing_zeros() / 8) as usize;
    let wanted = if runs == WORD_BYTES { !0 } else { (1 << (8 * runs)) - 1 };
    // A zero run keeps its six low bits, a value its two.
    let lens = word & wanted & (0x3F * EACH) & !(vals * 0x3C);
    let pairs = (lens & 0x00FF_00FF_00FF_00FF) + (lens >> 8 & 0x00FF_00FF_00FF_00FF);
    (runs, (pairs.wrapping_mul(0x0001_0001_0001_0001) >> 48) as usize + runs)
}

/// Calls `f` with the first register, the length and the value of every run.
///
/// # Errors
/// [`Invalid::Corrupt`] when the runs are not exactly all registers; `f` saw none beyond them.
pub(super) fn for_each_run(runs: &[u8], mut f: impl FnMut(usize, usize, u8)) -> Result<(), Invalid> {
    let (mut at, mut first) = (0, 0);
    while at < runs.len() {
        let run = Run::at(runs, at);
        if first + run.len > REGISTERS {
            return Err(Invalid::Corrupt);
        }
        f(first, run.len, run.rank);
        at += run.bytes;
        first += run.len;
    }
    if first == REGISTERS { Ok(()) } else { Err(Invalid::Corrupt) }
}

/// The runs in words, whether they make sense or not: `z:` or `Z:` and a length for zeros, `v:` with value and length.
///
/// # Errors
/// [`Invalid::Foreign`]; [`Invalid::Corrupt`] for a dense value, which has no runs.
pub fn decode(value: &[u8]) -> Result<String, Invalid> {
    let Body::Sparse(runs) = body(value)? else { return Err(Invalid::Corrupt) };
    let (mut at, mut text) = (0, String::new());
    while at < runs.len() {
        let run = Run::at(runs, at);
        let space = if at > 0 { " " } else { "" };
        let _ = match (run.rank, run.bytes) {
            (0, 1) => write!(text, "{space}z:{}", run.len),
            (0, _) => write!(text, "{space}Z:{}", run.len),
            (rank, _) => write!(text, "{space}v:{rank},{}", run.len),
        };
        at += run.bytes;
    }
    Ok(text)
}

/// Appends a run of `len` registers; none when there are none.
fn push_run(window: &mut Window, rank: u8, len: usize) {
    match len.checked_sub(1) {
        None => {}
        Some(len) if rank > 0 => window.push(VAL_BIT | (rank - 1) << 2 | len as u8),
        Some(len) if len < ZERO_LEN_MAX => window.push(len as u8),
        Some(len) => window.extend_from_slice(&[XZERO_BIT | (len >> 8) as u8, len as u8]),
    }
}

/// What became of a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// It was not lower.
    Same,
    /// It was raised.
    Raised,
    /// Nothing yet: the value must become dense for it.
    Full,
}

/// The beginning of a run, to go on from there with a higher register.
#[derive(Clone, Copy)]
pub(super) struct Cursor {
    /// Where it is in the value.
    at: usize,
    /// The first register of the run.
    first: usize,
}

impl Cursor {
    /// The first run.
    pub const START: Cursor = Cursor { at: HEADER_BYTES, first: 0 };

    /// Goes on to the run that has the register `index`; also tells the run before it.
    #[inline]
    fn find(self, value: &[u8], index: usize) -> Result<(Option<Cursor>, Cursor, Run), Invalid> {
        // The run before `here` starts at `before_at`.
        let (mut before_at, mut here) = (self.at, self);
        while let Some((word, _)) = value.get(here.at..).and_then(|rest| rest.split_first_chunk()) {
            let (runs, len) = short_runs(u64::from_le_bytes(*word));
            if index < here.first + len {
                break;
            }
            if runs > 0 {
                before_at = here.at + runs - 1;
                here = Cursor { at: here.at + runs, first: here.first + len };
            }
            if runs < WORD_BYTES {
                let (len, bytes) = span(value, here.at);
                if index < here.first + len {
                    break;
                }
                before_at = here.at;
                here = Cursor { at: here.at + bytes, first: here.first + len };
            }
        }
        while here.at < value.len() {
            let (len, bytes) = span(value, here.at);
            if index < here.first + len {
                if before_at == here.at && self.at != HEADER_BYTES {
                    // The run before the cursor is not known.
                    return Cursor::START.find(value, index);
                }
                let before = (before_at < here.at)
                    .then(|| Cursor { at: before_at, first: here.first - span(value, before_at).0 });
                return Ok((before, here, Run::at(value, here.at)));
            }
            before_at = here.at;
            here = Cursor { at: here.at + bytes, first: here.first + len };
        }
        Err(Invalid::Corrupt)
    }
}

/// Raises a register of a sparse value, looking for it from `from` on. The cursor that comes back serves for the next
/// register above it.
///
/// # Errors
/// [`Invalid::Corrupt`] when no run has the register; then nothing changed.
pub(super) fn raise(
    value: &mut impl PackedBytes,
    from: Cursor,
    place: Place,
    bytes_max: u64,
) -> Result<(Outcome, Cursor), Invalid> {
    if place.rank > VAL_MAX {
        return Ok((Outcome::Full, from));
    }
    let bytes = value.bytes();
    let (before, here, run) = from.find(bytes, place.index)?;
    let start = before.unwrap_or(here);
    if run.rank >= place.rank {
        return Ok((Outcome::Same, start));
    }
    let mut window = Window::from_slice(&bytes[start.at..here.at]);
    push_run(&mut window, run.rank, place.index - here.first);
    push_run(&mut window, place.rank, 1);
    push_run(&mut window, run.rank, here.first + run.len - 1 - place.index);
    let end = (here.at + run.bytes).min(bytes.len());
    if end < here.at + run.bytes {
        // The second byte of an XZERO is cut off. What takes its place is cut, too, and so of the same length as
        // elsewhere.
        window.pop();
    }
    let replaced = end - start.at;
    let len = bytes.len() + window.len() - replaced;
    if window.len() > replaced && len as u64 > bytes_max {
        return Ok((Outcome::Full, from));
    }
    let tail = &bytes[start.at + replaced..];
    let tail = &tail[..tail.len().min(JOIN_BYTES)];
    window.extend_from_slice(tail);
    let replaced = replaced + tail.len();
    join(&mut window);
    value.splice(start.at, replaced, &window);
    Ok((Outcome::Raised, start))
}

/// Joins neighbours of the same value, as far as one run can hold both.
fn join(window: &mut Window) {
    let mut at = 0;
    for _ in 0..JOIN_STEPS {
        let Some(&first) = window.get(at) else { return };
        if first & VAL_BIT == 0 {
            at += Run::at(window, at).bytes;
            continue;
        }
        let next = window.get(at + 1).copied().filter(|next| next & !3 == first & !3);
        let len = next.map_or(usize::MAX, |next| usize::from(first & 3) + usize::from(next & 3) + 2);
        if len <= VAL_LEN_MAX {
            window.remove(at);
            window[at] = first & !3 | (len - 1) as u8;
        } else {
            at += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_runs_are_counted() {
        let words: [[u8; 8]; 5] = [
            [0x3F; 8],
            [0x80, 0x83, 0xFF, 0x00, 0x3F, 0x05, 0xFC, 0x01],
            [0x00, 0x82, 0x7F, 0xFF, 0x00, 0x40, 0x80, 0x81],
            [0x40; 8],
            [0x81, 0x3E, 0x80, 0x3E, 0x80, 0x3E, 0x80, 0x41],
        ];
        for word in words {
            let (mut runs, mut len) = (0, 0);
            while runs < 8 && Run::at(&word, runs).bytes == 1 {
                len += Run::at(&word, runs).len;
                runs += 1;
            }
            assert_eq!(short_runs(u64::from_le_bytes(word)), (runs, len), "{word:x?}");
        }
    }

    #[test]
    fn spans_are_those_of_runs() {
        for first in 0..=u8::MAX {
            for runs in [&[first, 0][..], &[first, 0xA5], &[first, 0xFF], &[first]] {
                let run = Run::at(runs, 0);
                assert_eq!(span(runs, 0), (run.len, run.bytes), "{runs:?}");
            }
        }
    }
}
