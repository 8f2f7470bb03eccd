//! Moving an element from list to list.
//!
//! Must stay true: nothing changes before both keys are known to be lists; the element arrives before it leaves, which
//! is the order in which Redis tells of it.
use super::{LPOP, RPOP, popped, side};
use crate::cmd::cx::WriteCx;
use crate::cmd::element::put_element;
use crate::cmd::spec::Done;
use crate::ds::list::Side;
use crate::store::news::{Event, class};
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
        cx.stands_for(rotated(from, to));
        return cx.edit(source, |editor| {
            if ListMut::of(editor)?.rotate(from, to, |element| put_element(out, element)).is_none() {
                out.null();
            }
            Ok(())
        });
    }
    let list = cx.find_used(source).map(ListRef::of).transpose()?;
    let Some(moved) = list.and_then(|list| list.moved(from)) else {
        out.null();
        return Ok(());
    };
    cx.stands_for(pushed(to));
    cx.edit(destination, |editor| {
        ListMut::of(editor)?.push_moved(to, &moved);
        Ok::<_, Error>(())
    })?;
    cx.stands_for(popped(from));
    cx.edit(source, |editor| {
        ListMut::of(editor)?.pop(from, |_| ());
        editor.counts_with_another();
        Ok::<_, Error>(())
    })?;
    out.bulk(&moved.text);
    Ok(())
}

const LPUSH: Event = Event { class: class::LIST, name: "lpush" };
const RPUSH: Event = Event { class: class::LIST, name: "rpush" };

/// What stands for an element that arrives,
fn pushed(to: Side) -> &'static [Event] {
    match to {
        Side::Front => &[LPUSH],
        Side::Back => &[RPUSH],
    }
}

/// and for one that moves within its list.
fn rotated(from: Side, to: Side) -> &'static [Event] {
    match (from, to) {
        (Side::Front, Side::Front) => &[LPUSH, LPOP],
        (Side::Front, Side::Back) => &[RPUSH, LPOP],
        (Side::Back, Side::Front) => &[LPUSH, RPOP],
        (Side::Back, Side::Back) => &[RPUSH, RPOP],
    }
}
