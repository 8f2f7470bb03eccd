//! Single bits: SETBIT and GETBIT.
use super::bit_offset;
use crate::base::num;
use crate::cmd::cx::{ReadCx, WriteCx};
use crate::cmd::spec::Done;
use crate::cmd::string::{edit_bytes, with_text};
use crate::ds::bits;
use crate::wire::{Args, Error, Out};

/// SETBIT key offset value
pub fn setbit(cx: &mut WriteCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    let key = args.key()?;
    let offset = bit_offset(args.bytes()?, None, cx.string_bytes_max(key))?;
    let on = bit_value(args.bytes()?)?;
    let len = (offset / 8) as usize + 1;
    let was = cx.update(key, |block| {
        Ok(edit_bytes(block, len, |bytes| {
            let was = bits::set_bit(bytes, offset, on);
            (was, was != on)
        }))
    })?;
    out.flag(was);
    Ok(())
}

fn bit_value(arg: &[u8]) -> Result<bool, Error> {
    match num::parse_i64(arg) {
        Some(0) => Ok(false),
        Some(1) => Ok(true),
        _ => Err(Error::BitValue),
    }
}

/// GETBIT key offset
pub fn getbit(cx: &ReadCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    let key = args.key()?;
    let offset = bit_offset(args.bytes()?, None, cx.string_bytes_max(key))?;
    out.flag(with_text(cx.string(key)?, |bytes| bits::get_bit(bytes, offset)));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_are_zero_or_one() {
        assert_eq!((bit_value(b"0"), bit_value(b"1")), (Ok(false), Ok(true)));
        for arg in [&b"2"[..], b"-1", b"", b"x", b"01", b"4294967296"] {
            assert_eq!(bit_value(arg), Err(Error::BitValue));
        }
    }
}
