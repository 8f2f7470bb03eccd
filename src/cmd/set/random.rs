//! Random members: looked at, or taken.
use super::members::set_at;
use crate::cmd::cx::{ReadCx, WriteCx};
use crate::cmd::element::put_element;
use crate::cmd::spec::Done;
use crate::types::set::SetMut;
use crate::wire::{Args, Error, Key, Out};

/// SPOP key [count]
pub fn spop(cx: &mut WriteCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    let key = args.key()?;
    if !args.is_done() {
        let count = count_arg(args, |args| args.int_from(0, "value is out of range, must be positive"))?;
        return cx.edit(key, |editor| pop_many(&mut SetMut::of(editor)?, count, out));
    }
    cx.edit(key, |editor| {
        let popped = SetMut::of(editor)?.pop(|member| put_element(out, member));
        if popped.is_none() {
            out.null();
        }
        Ok(())
    })
}

fn pop_many(set: &mut SetMut<'_, '_>, count: usize, out: &mut Out) -> Done {
    out.set(set.view().map_or(0, |view| view.len().min(count)));
    if count > 0 {
        set.pop_many(count, &mut |member| put_element(out, member));
    }
    Ok(())
}

/// The last argument, read by `parse`.
fn count_arg<T>(
    args: &mut Args<'_>,
    parse: impl FnOnce(&mut Args<'_>) -> Result<T, Error>,
) -> Result<T, Error> {
    if args.left() > 1 { Err(Error::Syntax) } else { parse(args) }
}

/// SRANDMEMBER key [count]
pub fn srandmember(cx: &ReadCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    let key = args.key()?;
    if !args.is_done() {
        let count = count_arg(args, |args| args.signed())?;
        return some_members(cx, key, count, out);
    }
    match set_at(cx, key)?.and_then(|set| set.random()) {
        Some(member) => put_element(out, member),
        None => out.null(),
    }
    Ok(())
}

/// `count` different members; a negative count asks for as many that may be the same.
fn some_members(cx: &ReadCx<'_>, key: Key<'_>, count: i64, out: &mut Out) -> Done {
    let Some(set) = set_at(cx, key)? else {
        out.array(0);
        return Ok(());
    };
    if count < 0 {
        let draws = count.unsigned_abs();
        // Nobody could read more replies, and no machine could hold them.
        let replies = u32::try_from(draws).map_err(|_| Error::not_between(-i64::MAX, i64::MAX))?;
        out.array(replies as usize);
        set.random_repeated(draws, &mut |member| put_element(out, member));
    } else {
        let count = usize::try_from(count).unwrap_or(usize::MAX).min(set.len());
        out.array(count);
        set.random_distinct(count, &mut |member| put_element(out, member));
    }
    Ok(())
}
