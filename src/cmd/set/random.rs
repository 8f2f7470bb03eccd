//! Random members: looked at, or taken.
use smallvec::SmallVec;

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
        return spop_many(cx, key, count, out);
    }
    let is_logged = cx.is_logged();
    let popped = cx.edit(key, |editor| {
        let mut taken = SmallVec::<[u8; 64]>::new();
        let popped = SetMut::of(editor)?.pop(|member| {
            if is_logged {
                member.with_text(|text| taken.extend_from_slice(text));
            }
            put_element(out, member);
        });
        if popped.is_none() {
            out.null();
        }
        Ok(popped.map(|_| taken))
    })?;
    if let Some(member) = popped {
        cx.log(&[b"SREM", key.bytes, &member]);
    }
    Ok(())
}

/// What was taken was chance, so the log says what it was.
fn spop_many(cx: &mut WriteCx<'_>, key: Key<'_>, count: usize, out: &mut Out) -> Done {
    let is_logged = cx.is_logged();
    let (taken, is_all) = cx.edit(key, |editor| {
        let mut set = SetMut::of(editor)?;
        let members = set.view().map_or(0, |view| view.len());
        let is_all = members > 0 && members <= count;
        out.set(members.min(count));
        let mut taken = Vec::new();
        if count > 0 {
            set.pop_many(count, &mut |member| {
                if is_logged && !is_all {
                    taken.push(member.with_text(|text| Box::<[u8]>::from(text)));
                }
                put_element(out, member);
            });
        }
        Ok::<_, Error>((taken, is_all))
    })?;
    if is_all {
        cx.log(&[b"DEL", key.bytes]);
    } else if !taken.is_empty() {
        let mut words: Vec<&[u8]> = vec![b"SREM", key.bytes];
        words.extend(taken.iter().map(|member| &member[..]));
        cx.log(&words);
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
