//! Moving an element from list to list.
//!
//! Must stay true: nothing changes before both keys are known to be lists.
use super::side;
use crate::cmd::cx::WriteCx;
use crate::cmd::element::put_element;
use crate::cmd::spec::Done;
use crate::ds::list::Side;
use crate::types::list::{ListMut, ListRef};
use crate::wire::{Args, Error, Key, Out};

/// LMOVE source destination LEFT|RIGHT LEFT|RIGHT
pub fn lmove(cx: &mut WriteCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    let (source, destination) = (args.key()?, args.key()?);
    let (from, to) = (side(args)?, side(args)?);
    move_element(cx, (source, from), (destination, to), out)
}

/// RPOPLPUSH source destination
pub fn rpoplpush(cx: &mut WriteCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    let (source, destination) = (args.key()?, args.key()?);
    move_element(cx, (source, Side::Back), (destination, Side::Front), out)
}

/// Moves an element from one list to another, or within one.
pub(super) fn move_element(
    cx: &mut WriteCx<'_>,
    (source, from): (Key<'_>, Side),
    (destination, to): (Key<'_>, Side),
    out: &mut Out,
) -> Done {
    if source.bytes == destination.bytes {
        return cx.edit(source, |editor| {
            if ListMut::of(editor)?.rotate(from, to, |element| put_element(out, element)).is_none() {
                out.null();
            }
            Ok(())
        });
    }
    let receivable = match cx.peek(destination) {
        Some(block) => ListRef::of(block).map(drop),
        None => Ok(()),
    };
    let moved = cx.edit(source, |editor| {
        let mut list = ListMut::of(editor)?;
        if list.view().is_some() {
            receivable?;
        }
        Ok::<_, Error>(list.pop_moved(from))
    })?;
    let Some(moved) = moved else {
        out.null();
        return Ok(());
    };
    cx.edit(destination, |editor| {
        ListMut::of(editor)?.push_moved(to, &moved);
        Ok::<_, Error>(())
    })?;
    out.bulk(&moved.text);
    Ok(())
}
