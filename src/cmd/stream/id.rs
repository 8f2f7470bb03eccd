//! Ids as arguments: `ms`, `ms-seq`, and the special forms of some commands.
//!
//! The parts are read as leniently as C's `strtoull` reads numbers, since Redis does.
use smallvec::SmallVec;

use crate::base::num;
use crate::ds::stream::{NewId, StreamId};
use crate::wire::{Args, Error};

/// Ids of a command, usually without an allocation.
pub type Ids = SmallVec<[StreamId; 8]>;

/// Longer texts are no ids.
const TEXT_BYTES_MAX: usize = 127;

#[cold]
fn invalid() -> Error {
    Error::err("Invalid stream ID specified as stream command argument")
}

/// The number of an entry within its millisecond, as an argument says it.
enum Number<'a> {
    Missing,
    Text(&'a [u8]),
}

/// Time and number of an id; the text ends at its first NUL byte.
fn parts(arg: &[u8]) -> Result<(u64, Number<'_>), Error> {
    if arg.len() > TEXT_BYTES_MAX {
        return Err(invalid());
    }
    let (ms, number) = match memchr::memchr2(b'-', 0, arg) {
        Some(at) if arg[at] == b'-' => (&arg[..at], Number::Text(&arg[at + 1..])),
        Some(at) => (&arg[..at], Number::Missing),
        None => (arg, Number::Missing),
    };
    Ok((num::parse_scan_cursor(ms).ok_or_else(invalid)?, number))
}

/// An id; `missing_seq` is the number where only the time is given.
#[inline]
pub fn parse(arg: &[u8], missing_seq: u64) -> Result<StreamId, Error> {
    let (ms, number) = parts(arg)?;
    let seq = match number {
        Number::Missing => missing_seq,
        Number::Text(text) => num::parse_scan_cursor(text).ok_or_else(invalid)?,
    };
    Ok(StreamId::new(ms, seq))
}

/// An id, or `-` for the lowest and `+` for the highest.
pub fn parse_or_end(arg: &[u8], missing_seq: u64) -> Result<StreamId, Error> {
    match arg {
        b"-" | [b'-', 0, ..] => Ok(StreamId::MIN),
        b"+" | [b'+', 0, ..] => Ok(StreamId::MAX),
        _ => parse(arg, missing_seq),
    }
}

/// The id of a new entry: also `ms-*`.
pub fn parse_new(arg: &[u8]) -> Result<NewId, Error> {
    match parts(arg)? {
        (ms, Number::Text(b"*" | [b'*', 0, ..])) => Ok(NewId::In(ms)),
        _ => parse(arg, 0).map(NewId::Exactly),
    }
}

/// The beginning of a range: `(` before an id leaves it out.
pub fn parse_start(arg: &[u8]) -> Result<StreamId, Error> {
    match arg {
        [b'(', id @ ..] if !id.is_empty() => {
            parse(id, 0)?.next().ok_or_else(|| Error::err("invalid start ID for the interval"))
        }
        _ => parse_or_end(arg, 0),
    }
}

/// The end of a range: `(` before an id leaves it out.
pub fn parse_end(arg: &[u8]) -> Result<StreamId, Error> {
    match arg {
        [b'(', id @ ..] if !id.is_empty() => {
            parse(id, u64::MAX)?.previous().ok_or_else(|| Error::err("invalid end ID for the interval"))
        }
        _ => parse_or_end(arg, u64::MAX),
    }
}

/// All arguments that are left, as ids.
pub fn parse_all(args: &Args<'_>) -> Result<Ids, Error> {
    args.rest().map(|arg| parse(arg, 0)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Found on a Redis 8.0.6 server.
    #[test]
    fn ids_are_read_as_in_redis() {
        for (text, ms, seq) in [
            ("5", 5, 9),
            ("5-6", 5, 6),
            ("0", 0, 9),
            ("18446744073709551615-18446744073709551615", u64::MAX, u64::MAX),
            ("007-+08", 7, 8),
            (" 5- 6", 5, 6),
            ("5--07", 5, 7_u64.wrapping_neg()),
            ("5\0-junk", 5, 9),
            ("5-6\0junk", 5, 6),
        ] {
            assert_eq!(parse(text.as_bytes(), 9), Ok(StreamId::new(ms, seq)), "{text:?}");
        }
        for text in
            ["", "-", "+", "5-", "-5", "5-6-7", "5--6", "x", "5-x", "5-*", "18446744073709551616", "5 "]
        {
            assert_eq!(parse(text.as_bytes(), 9), Err(invalid()), "{text:?}");
        }
        assert_eq!(parse(&[b'0'; 128], 9), Err(invalid()));
    }

    #[test]
    fn special_forms() {
        assert_eq!((parse_or_end(b"-", 0), parse_or_end(b"+\0x", 0)), (Ok(StreamId::MIN), Ok(StreamId::MAX)));
        assert!(matches!(parse_new(b"7-*"), Ok(NewId::In(7))));
        assert!(matches!(parse_new(b"7"), Ok(NewId::Exactly(StreamId { ms: 7, seq: 0 }))));
        assert!(parse_new(b"7-**").is_err() && parse_new(b"+").is_err());
        let id = StreamId::new;
        assert_eq!((parse_start(b"(5-6"), parse_end(b"(5-6")), (Ok(id(5, 7)), Ok(id(5, 5))));
        assert_eq!((parse_start(b"(5"), parse_end(b"(5")), (Ok(id(5, 1)), Ok(id(5, u64::MAX - 1))));
        assert_eq!((parse_start(b"5"), parse_end(b"5")), (Ok(id(5, 0)), Ok(id(5, u64::MAX))));
        let max = b"(18446744073709551615-18446744073709551615";
        assert_eq!(parse_start(max), Err(Error::err("invalid start ID for the interval")));
        assert_eq!(parse_end(b"(0-0"), Err(Error::err("invalid end ID for the interval")));
        assert!(parse_start(b"(").is_err() && parse_start(b"(-").is_err());
    }
}
