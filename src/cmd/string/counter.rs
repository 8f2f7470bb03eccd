//! Strings as numbers: INCR and its relatives.
//!
//! Must stay true: a counter that is stored as a number is changed where it lies, with one lookup.
use super::with_text;
use crate::base::num::{self, FloatError};
use crate::cmd::cx::WriteCx;
use crate::cmd::spec::Done;
use crate::ds::raw::block::{NewValue, Payload};
use crate::store::db::Next;
use crate::wire::{Args, Error, Key, Out};

/// The counter after a step. `value`: what is stored, `None` counts as 0.
#[inline]
fn stepped(value: Option<Payload<'_>>, by: i64) -> Result<i64, Error> {
    let now = match value {
        Some(Payload::Int(n)) => n,
        Some(Payload::Bytes(bytes)) => num::parse_i64(bytes).ok_or(Error::NotInteger)?,
        None => 0,
    };
    now.checked_add(by).ok_or(Error::Overflow)
}

#[inline]
fn step(cx: &mut WriteCx<'_>, key: Key<'_>, by: i64, out: &mut Out) -> Done {
    let value = cx.update(key, |block| {
        let value = stepped(block.as_ref().and_then(|block| block.view().string()), by)?;
        Ok((value, Next::Put(NewValue::Int(value), 0)))
    })?;
    out.int(value);
    Ok(())
}

/// INCR key
pub fn incr(cx: &mut WriteCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    step(cx, args.key()?, 1, out)
}

/// DECR key
pub fn decr(cx: &mut WriteCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    step(cx, args.key()?, -1, out)
}

/// INCRBY key increment
pub fn incrby(cx: &mut WriteCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    let (key, by) = (args.key()?, args.int()?);
    step(cx, key, by, out)
}

/// DECRBY key decrement
pub fn decrby(cx: &mut WriteCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    let (key, by) = (args.key()?, args.int()?);
    let by = by.checked_neg().ok_or_else(|| Error::err("decrement would overflow"))?;
    step(cx, key, by, out)
}

/// INCRBYFLOAT key increment
///
/// The sum is kept as text even when it is a whole number.
pub fn incrbyfloat(cx: &mut WriteCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    let (key, increment) = (args.key()?, args.bytes()?);
    let is_logged = cx.is_logged();
    let sum = cx.update(key, |block| {
        let value = block.as_ref().and_then(|block| block.view().string());
        let sum = float_sum(value, increment)?;
        out.bulk(&sum);
        let logged = if is_logged { sum.clone() } else { Vec::new() };
        Ok((logged, Next::Put(NewValue::Heap(sum), 0)))
    })?;
    // Whoever reads the log may count otherwise.
    cx.log(&[b"SET", key.bytes, &sum, b"KEEPTTL"]);
    Ok(())
}

fn float_sum(value: Option<Payload<'_>>, increment: &[u8]) -> Result<Vec<u8>, Error> {
    let value = value.unwrap_or(Payload::Int(0));
    with_text(Some(value), |current| num::incr_by_float(current, increment)).map_err(|error| match error {
        FloatError::NotAFloat => Error::NotFloat,
        FloatError::NanOrInfinity => Error::NanOrInfinity,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_stay_in_range() {
        assert_eq!(stepped(None, 5), Ok(5));
        assert_eq!(stepped(Some(Payload::Int(i64::MAX - 1)), 1), Ok(i64::MAX));
        assert_eq!(stepped(Some(Payload::Int(i64::MAX)), 1), Err(Error::Overflow));
        assert_eq!(stepped(Some(Payload::Int(i64::MIN)), -1), Err(Error::Overflow));
        assert_eq!(stepped(Some(Payload::Bytes(b"-7")), 10), Ok(3));
        for text in [&b"+5"[..], b" 5", b"5 ", b"05", b"", b"1.0", b"9223372036854775808"] {
            assert_eq!(stepped(Some(Payload::Bytes(text)), 1), Err(Error::NotInteger));
        }
    }

    #[test]
    fn float_sums() {
        assert_eq!(float_sum(None, b"0.5").as_deref(), Ok(&b"0.5"[..]));
        assert_eq!(float_sum(Some(Payload::Int(10)), b"1").as_deref(), Ok(&b"11"[..]));
        assert_eq!(float_sum(Some(Payload::Bytes(b"1e2")), b"-.5").as_deref(), Ok(&b"99.5"[..]));
        assert_eq!(float_sum(Some(Payload::Bytes(b" 1")), b"1"), Err(Error::NotFloat));
        assert_eq!(float_sum(Some(Payload::Bytes(b"")), b"1"), Err(Error::NotFloat));
        assert_eq!(float_sum(None, b"inf"), Err(Error::NanOrInfinity));
    }
}
