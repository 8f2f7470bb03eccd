//! Bits and small integers inside strings: rows, and what the handlers of the family share.
//!
//! Must stay true: a bitmap that has room is changed where it lies; reads work on a number's text and never
//! change how it is stored.
mod bit;
mod count;
mod field;
mod op;

use super::spec::{Group::Bitmap as B, Spec, flag, key, key_range, keys};
use crate::base::num;
use crate::store::news::class;
use crate::wire::{Args, Error};

/// The rows.
pub const COMMANDS: &[Spec] = &[
    Spec::write("setbit", "key offset value:integer", bit::setbit)
        .event(class::STRING, "setbit")
        .doc(B, "2.2.0", "Sets or clears a bit of a string; makes the key when it does not exist.")
        .keys(keys::READ_UPDATE)
        .with(flag::DENYOOM),
    Spec::read("getbit", "key offset", bit::getbit)
        .doc(B, "2.2.0", "Returns a bit of a string.")
        .keys(keys::READ)
        .with(flag::FAST),
    Spec::read("bitcount", "key [start end [BYTE|BIT]]", count::bitcount)
        .doc(B, "2.6.0", "Counts the set bits of a string.")
        .cost("O(N)")
        .keys(keys::READ),
    Spec::read("bitpos", "key bit [start [end [BYTE|BIT]]]", count::bitpos)
        .doc(B, "2.8.7", "Finds the first set or clear bit of a string.")
        .cost("O(N)")
        .keys(keys::READ),
    Spec::write("bitop", "AND|OR|XOR|NOT|DIFF|DIFF1|ANDOR|ONE destkey key [key ...]", op::bitop)
        .event(class::STRING, "set")
        .doc(B, "2.6.0", "Joins strings bit by bit and stores the result.")
        .cost("O(N)")
        .keys(&[key("OW update", 2), key_range("RO access", 3, -1, 1)])
        .with(flag::DENYOOM),
    Spec::write(
        "bitfield",
        "key [GET encoding offset|[OVERFLOW WRAP|SAT|FAIL] SET encoding offset value|INCRBY encoding offset increment ...]",
        field::bitfield,
    )
    .doc(B, "3.2.0", "Reads and changes integers of any width inside a string.")
    .cost("O(1) for each subcommand.")
    .keys(&[key("RW access update variable_flags", 1)])
    .key_use(field::key_use)
    .with(flag::DENYOOM),
    Spec::read("bitfield_ro", "key [GET encoding offset [GET encoding offset ...]]", field::bitfield_ro)
        .doc(B, "6.0.0", "Reads integers of any width inside a string.")
        .cost("O(1) for each subcommand.")
        .keys(keys::READ)
        .with(flag::FAST),
];

/// A bit offset in a string that may take `bytes_max` bytes. With `width`, an offset behind `#` counts in fields
/// of that many bits.
fn bit_offset(arg: &[u8], width: Option<u32>, bytes_max: u64) -> Result<u64, Error> {
    let (digits, scale) = match (width, arg.strip_prefix(b"#")) {
        (Some(width), Some(digits)) => (digits, u64::from(width)),
        _ => (arg, 1),
    };
    num::parse_i64(digits)
        .and_then(|offset| u64::try_from(offset).ok()?.checked_mul(scale))
        .filter(|offset| offset / 8 < bytes_max)
        .ok_or(Error::BitOffset)
}

/// `BIT` or `BYTE` at the cursor: whether positions count in bits.
fn counts_bits(args: &mut Args<'_>) -> Result<bool, Error> {
    let bits = args.keyword("BIT");
    if bits || args.keyword("BYTE") { Ok(bits) } else { Err(Error::Syntax) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_are_bounded() {
        for (arg, width, offset) in [
            (&b"0"[..], None, Some(0)),
            (b"799", None, Some(799)),
            (b"800", None, None),
            (b"-1", None, None),
            (b"#1", None, None),
            (b"#1", Some(8), Some(8)),
            (b"#99", Some(8), Some(792)),
            (b"#100", Some(8), None),
            (b"#", Some(8), None),
            (b"#-1", Some(8), None),
            (b"", Some(8), None),
            // 2^58 fields of 64 bits: a product that wraps around to 0.
            (b"#288230376151711744", Some(64), None),
        ] {
            assert_eq!(bit_offset(arg, width, 100).ok(), offset, "{}", arg.escape_ascii());
        }
    }
}
