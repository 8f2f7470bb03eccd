//! At the ends of a list: pushing and popping.
use super::{pop_word, popped, side};
use crate::cmd::cx::WriteCx;
use crate::cmd::element::put_element;
use crate::cmd::popping::Popping;
use crate::cmd::spec::Done;
use crate::ds::list::Side;
use crate::store::edit::Editor;
use crate::types::list::{ListMut, ListRef};
use crate::wire::{Args, Error, Out};

/// LPUSH key element [element ...]
pub fn lpush(cx: &mut WriteCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    push(cx, args, out, Side::Front, false)
}

/// RPUSH key element [element ...]
pub fn rpush(cx: &mut WriteCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    push(cx, args, out, Side::Back, false)
}

/// LPUSHX key element [element ...]
pub fn lpushx(cx: &mut WriteCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    push(cx, args, out, Side::Front, true)
}

/// RPUSHX key element [element ...]
pub fn rpushx(cx: &mut WriteCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    push(cx, args, out, Side::Back, true)
}

#[inline]
fn push(cx: &mut WriteCx<'_>, args: &mut Args<'_>, out: &mut Out, side: Side, only_if_present: bool) -> Done {
    let key = args.key()?;
    let len = cx.edit(key, |editor| {
        let mut list = ListMut::of(editor)?;
        if only_if_present && list.view().is_none() {
            return Ok::<_, Error>(0);
        }
        Ok(list.push(side, args.rest()))
    })?;
    out.count(len);
    Ok(())
}

/// LPOP key [count]
pub fn lpop(cx: &mut WriteCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    pop(cx, args, out, Side::Front, "lpop")
}

/// RPOP key [count]
pub fn rpop(cx: &mut WriteCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    pop(cx, args, out, Side::Back, "rpop")
}

#[inline]
fn pop(cx: &mut WriteCx<'_>, args: &mut Args<'_>, out: &mut Out, side: Side, command: &'static str) -> Done {
    let key = args.key()?;
    if args.is_done() {
        return cx.edit(key, |editor| {
            if ListMut::of(editor)?.pop(side, |element| put_element(out, element)).is_none() {
                out.null();
            }
            Ok(())
        });
    }
    if args.left() > 1 {
        return Err(Error::Arity(command));
    }
    let count = args.int_from(0, "value is out of range, must be positive")?;
    cx.edit(key, |editor| {
        if ListMut::of(editor)?.view().is_some() {
            pop_some(editor, count, side, out).map(drop)
        } else {
            out.null_array();
            Ok(())
        }
    })
}

/// Takes up to `count` elements out at an end and writes them as an array; returns how many. The list exists.
fn pop_some(editor: &mut Editor<'_>, count: usize, side: Side, out: &mut Out) -> Result<usize, Error> {
    let mut list = ListMut::of(editor)?;
    let len = list.view().map_or(0, ListRef::len);
    let count = count.min(len);
    out.array(count);
    let first = if side == Side::Front { 0 } else { len.saturating_sub(1) };
    if let Some(view) = list.view() {
        view.for_some(first, count, side, |element| put_element(out, element));
    }
    list.keep(if side == Side::Front { count } else { 0 }, len - count);
    Ok(count)
}

/// LMPOP numkeys key [key ...] LEFT|RIGHT [COUNT count]
pub fn lmpop(cx: &mut WriteCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    let popping = Popping::of(args, side)?;
    if !pop_first(cx, &popping, out)? {
        out.null_array();
    }
    Ok(())
}

/// Does what LMPOP does. `false`: none of the lists exists.
pub(super) fn pop_first(
    cx: &mut WriteCx<'_>,
    popping: &Popping<'_, Side>,
    out: &mut Out,
) -> Result<bool, Error> {
    for key in &popping.keys {
        let Some(block) = cx.find(*key) else { continue };
        ListRef::of(block)?;
        out.array(2);
        out.bulk(key.bytes);
        cx.stands_for(popped(popping.end));
        let count = cx.edit(*key, |editor| pop_some(editor, popping.count, popping.end, out))?;
        cx.log(&[pop_word(popping.end), key.bytes, itoa::Buffer::new().format(count).as_bytes()]);
        return Ok(true);
    }
    Ok(false)
}
