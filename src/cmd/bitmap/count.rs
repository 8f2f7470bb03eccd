//! Counting and finding bits: BITCOUNT and BITPOS.
use super::counts_bits;
use crate::cmd::cx::ReadCx;
use crate::cmd::spec::Done;
use crate::cmd::string::{clamp_ends, clamp_range, with_text};
use crate::ds::bits;
use crate::wire::{Args, Error, Out};

/// Arguments `start end [BYTE|BIT]` as they were given.
#[derive(Clone, Copy)]
struct Range {
    start: i64,
    end: i64,
    in_bits: bool,
}

type Clamp = fn(i64, i64, u64) -> Option<(u64, u64)>;

impl Range {
    /// First and last bit in a string of `len` bytes; `None` when the range is empty there.
    fn bits(self, len: usize, clamp: Clamp) -> Option<(u64, u64)> {
        let len = len as u64;
        if self.in_bits {
            return clamp(self.start, self.end, len * 8);
        }
        clamp(self.start, self.end, len).map(|(first, last)| (first * 8, last * 8 + 7))
    }
}

/// BITCOUNT key [start end [BYTE|BIT]]
pub fn bitcount(cx: &ReadCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    let key = args.key()?;
    let range = match args.left() {
        0 => Range { start: 0, end: -1, in_bits: false },
        left @ (2 | 3) => {
            let (start, end) = (args.int()?, args.int()?);
            Range { start, end, in_bits: left == 3 && counts_bits(args)? }
        }
        _ => return Err(Error::Syntax),
    };
    let count = with_text(cx.string(key)?, |bytes| {
        let range = range.bits(bytes.len(), clamp_range);
        range.map_or(0, |(first, last)| bits::popcount_bits(bytes, first, last))
    });
    out.int(count as i64);
    Ok(())
}

/// Arguments `[start [end [BYTE|BIT]]]`. An unknown unit is noticed before an `end` that is no number.
fn find_range(args: &mut Args<'_>) -> Result<(Range, bool), Error> {
    let left = args.left();
    if left > 3 {
        return Err(Error::Syntax);
    }
    let start = if left >= 1 { args.int()? } else { 0 };
    let mut unit = args.clone();
    let in_bits = left == 3 && {
        unit.seek(args.position() + 1);
        counts_bits(&mut unit)?
    };
    let end = if left >= 2 { args.int()? } else { -1 };
    Ok((Range { start, end, in_bits }, left >= 2))
}

/// BITPOS key bit [start [end [BYTE|BIT]]]
pub fn bitpos(cx: &ReadCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    let (key, bit) = (args.key()?, args.int()?);
    if bit != 0 && bit != 1 {
        return Err(Error::err("The bit argument must be 1 or 0."));
    }
    let (range, end_given) = find_range(args)?;
    let position = match cx.string(key)? {
        // A missing key is endless zeros, whatever the range.
        None => (bit == 0).then_some(0),
        value => with_text(value, |bytes| find(bytes, bit == 1, range, end_given)),
    };
    out.int(position.map_or(-1, |position| position as i64));
    Ok(())
}

fn find(bytes: &[u8], bit: bool, range: Range, end_given: bool) -> Option<u64> {
    let (first, last) = range.bits(bytes.len(), clamp_ends)?;
    let found = bits::find_bit(bytes, bit, first, last);
    // Without an end, zeros follow the string.
    let behind = (!bit && !end_given).then_some(bytes.len() as u64 * 8);
    found.or(behind)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(start: i64, end: i64, in_bits: bool) -> Range {
        Range { start, end, in_bits }
    }

    #[test]
    fn ranges_in_bytes_and_bits() {
        assert_eq!(range(0, -1, false).bits(3, clamp_range), Some((0, 23)));
        assert_eq!(range(-2, 1, false).bits(3, clamp_range), Some((8, 15)));
        assert_eq!(range(-2, -1, true).bits(3, clamp_range), Some((22, 23)));
        assert_eq!(range(5, 30, true).bits(3, clamp_range), Some((5, 23)));
        assert_eq!(range(0, -1, true).bits(0, clamp_range), None);
        assert_eq!(range(-90, -100, true).bits(3, clamp_range), None);
        assert_eq!(range(-90, -100, true).bits(3, clamp_ends), Some((0, 0)));
    }

    #[test]
    fn zeros_follow_where_no_end_is_given() {
        assert_eq!(find(b"\xff\xff", false, range(0, -1, false), false), Some(16));
        assert_eq!(find(b"\xff\xff", false, range(1, -1, false), false), Some(16));
        assert_eq!(find(b"\xff\xff", false, range(2, -1, false), false), None);
        assert_eq!(find(b"\xff\xff", false, range(0, -1, false), true), None);
        assert_eq!(find(b"\x00\x00", true, range(0, -1, false), false), None);
        assert_eq!(find(b"\xff\x0f", false, range(3, 8, true), true), Some(8));
        assert_eq!(find(b"", false, range(0, -1, false), false), None);
    }
}
