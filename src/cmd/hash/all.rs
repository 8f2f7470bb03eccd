//! Whole hashes: HGETALL, HKEYS, HVALS.
use super::look;
use crate::cmd::cx::ReadCx;
use crate::cmd::element::put_element;
use crate::cmd::spec::Done;
use crate::types::hash::Field;
use crate::wire::{Args, Out};

/// Writes every field by `write`, behind a head for their number.
#[inline]
fn each(
    cx: &ReadCx<'_>,
    args: &mut Args<'_>,
    out: &mut Out,
    head: impl Fn(&mut Out, usize),
    write: impl Fn(&mut Out, Field<'_>),
) -> Done {
    let Some(hash) = look(cx, args.key()?)? else {
        head(out, 0);
        return Ok(());
    };
    let now_ms = cx.now.ms;
    if hash.has_due(now_ms) {
        head(out, hash.live_len(now_ms));
        hash.for_each_live(now_ms, |field| write(out, field));
    } else {
        head(out, hash.len());
        hash.for_each(|field| write(out, field));
    }
    Ok(())
}

/// HGETALL key
pub fn hgetall(cx: &ReadCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    each(cx, args, out, Out::map, |out, field| {
        put_element(out, field.name);
        put_element(out, field.value);
    })
}

/// HKEYS key
pub fn hkeys(cx: &ReadCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    each(cx, args, out, Out::array, |out, field| put_element(out, field.name))
}

/// HVALS key
pub fn hvals(cx: &ReadCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    each(cx, args, out, Out::array, |out, field| put_element(out, field.value))
}
