//! Changes inside a list.
use super::places;
use crate::cmd::cx::WriteCx;
use crate::cmd::spec::Done;
use crate::ds::list::Side;
use crate::types::list::{ListMut, ListRef};
use crate::wire::args::option_word;
use crate::wire::{Args, Error, Out};

/// LSET key index element. The index is looked at only when there is a list.
pub fn lset(cx: &mut WriteCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    let key = args.key()?;
    cx.edit(key, |editor| {
        let mut list = ListMut::of(editor)?;
        if list.view().is_none() {
            return Err(Error::NoSuchKey);
        }
        let (index, text) = (args.int()?, args.bytes()?);
        if list.set(index, text) { Ok(()) } else { Err(Error::err("index out of range")) }
    })?;
    out.ok();
    Ok(())
}

/// LINSERT key BEFORE|AFTER pivot element
pub fn linsert(cx: &mut WriteCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    const BEFORE: u64 = option_word(b"BEFORE");
    const AFTER: u64 = option_word(b"AFTER");
    let key = args.key()?;
    let side = match args.option() {
        BEFORE => Side::Front,
        AFTER => Side::Back,
        _ => return Err(Error::Syntax),
    };
    args.skip();
    let (pivot, text) = (args.bytes()?, args.bytes()?);
    let len = cx.edit(key, |editor| {
        let mut list = ListMut::of(editor)?;
        if list.view().is_none() {
            return Ok::<_, Error>(Some(0));
        }
        Ok(list.insert(pivot, side, text))
    })?;
    match len {
        Some(len) => out.count(len),
        None => out.int(-1),
    }
    Ok(())
}

/// LREM key count element
pub fn lrem(cx: &mut WriteCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    let (key, count, text) = (args.key()?, args.signed()?, args.bytes()?);
    let (from, max) = match count {
        0 => (Side::Front, usize::MAX),
        ..0 => (Side::Back, usize::try_from(count.unsigned_abs()).unwrap_or(usize::MAX)),
        _ => (Side::Front, usize::try_from(count).unwrap_or(usize::MAX)),
    };
    let removed =
        cx.edit(key, |editor| Ok::<_, Error>(ListMut::of(editor)?.remove_equal(text, max, from)))?;
    out.count(removed);
    Ok(())
}

/// LTRIM key start stop
pub fn ltrim(cx: &mut WriteCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    let (key, start, stop) = (args.key()?, args.int()?, args.int()?);
    cx.edit(key, |editor| {
        let mut list = ListMut::of(editor)?;
        if let Some(len) = list.view().map(ListRef::len) {
            let (first, count) = places(start, stop, len);
            list.keep(first, count);
            editor.counts_as_change();
        }
        Ok::<_, Error>(())
    })?;
    out.ok();
    Ok(())
}
