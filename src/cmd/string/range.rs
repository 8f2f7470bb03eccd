//! Parts of strings: APPEND, SETRANGE, GETRANGE and STRLEN.
//!
//! Must stay true: what has room is changed where it lies; a read copies only what it returns.
use super::{allowed_len, edit_bytes, encode, len_of, stored_len, with_text};
use crate::cmd::cx::{ReadCx, WriteCx};
use crate::cmd::spec::Done;
use crate::store::db::Next;
use crate::wire::{Args, Error, Out};

/// APPEND key value
pub fn append(cx: &mut WriteCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    let (key, value) = (args.key()?, args.bytes()?);
    let bytes_max = cx.string_bytes_max(key);
    let len = cx.update(key, |block| {
        let Some(block) = block else {
            return Ok((value.len(), Next::Put(encode(value), 0)));
        };
        let old_len = stored_len(&block);
        let len = allowed_len(old_len as u64 + value.len() as u64, bytes_max)?;
        Ok(edit_bytes(Some(block), len, |bytes| {
            bytes[old_len..].copy_from_slice(value);
            // Redis reports an APPEND of nothing as a change too.
            (len, true)
        }))
    })?;
    out.count(len);
    Ok(())
}

/// STRLEN key
pub fn strlen(cx: &ReadCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    out.count(cx.string(args.key()?)?.map_or(0, len_of));
    Ok(())
}

/// SETRANGE key offset value
pub fn setrange(cx: &mut WriteCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    let (key, offset, value) = (args.key()?, args.int()?, args.bytes()?);
    let offset = u64::try_from(offset).map_err(|_| Error::OutOfRange)?;
    let bytes_max = cx.string_bytes_max(key);
    let len = cx.update(key, |block| {
        if value.is_empty() {
            return Ok((block.map_or(0, |block| stored_len(&block)), Next::Same));
        }
        let end = allowed_len(offset + value.len() as u64, bytes_max)?;
        Ok(edit_bytes(block, end, |bytes| {
            bytes[end - value.len()..end].copy_from_slice(value);
            (bytes.len(), true)
        }))
    })?;
    out.count(len);
    Ok(())
}

/// GETRANGE key start end, and SUBSTR
pub fn getrange(cx: &ReadCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    let (key, start, end) = (args.key()?, args.int()?, args.int()?);
    with_text(cx.string(key)?, |text| {
        out.bulk(match clamp_range(start, end, text.len() as u64) {
            Some((first, last)) => &text[first as usize..=last as usize],
            None => &[],
        });
    });
    Ok(())
}

/// The inclusive range that `start` and `end` mean in something of length `len`, negative numbers counting from
/// its end; `None` when it is empty.
pub(in crate::cmd) fn clamp_range(start: i64, end: i64, len: u64) -> Option<(u64, u64)> {
    // Both before the beginning would otherwise be moved to the same place.
    if start < 0 && end < 0 && start > end { None } else { clamp_ends(start, end, len) }
}

/// As [`clamp_range`], but a range whose ends both lie before the beginning is always its first place.
pub(in crate::cmd) fn clamp_ends(start: i64, end: i64, len: u64) -> Option<(u64, u64)> {
    let place = |at: i64| if at < 0 { len.saturating_sub(at.unsigned_abs()) } else { at as u64 };
    let (first, last) = (place(start), place(end).min(len.checked_sub(1)?));
    (first <= last).then_some((first, last))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_clamped() {
        for (start, end, range) in [
            (0, 3, Some((0, 3))),
            (0, -1, Some((0, 4))),
            (-3, -2, Some((2, 3))),
            (-100, 100, Some((0, 4))),
            (-100, -90, Some((0, 0))),
            (-90, -100, None),
            (0, -90, Some((0, 0))),
            (3, 1, None),
            (5, 9, None),
            (i64::MIN, i64::MAX, Some((0, 4))),
            (i64::MAX, i64::MIN, None),
        ] {
            assert_eq!(clamp_range(start, end, 5), range, "{start} {end}");
        }
        assert_eq!(clamp_range(0, -1, 0), None);
        assert_eq!(clamp_ends(-90, -100, 5), Some((0, 0)));
        assert_eq!(clamp_ends(-1, -2, 5), None);
    }
}
