//! Taking members from the ends: ZPOPMIN, ZPOPMAX, ZMPOP.
use super::put_scored;
use crate::cmd::cx::WriteCx;
use crate::cmd::element::put_element;
use crate::cmd::spec::Done;
use crate::store::news::{Event, class};
use crate::types::sorted_set::{SortedSetMut, SortedSetRef, Way};
use crate::wire::{Args, Error, Out, Protocol};

/// Takes so many members, at most all, from the end where the way begins. What `head` is told is their number.
fn pop(
    set: &mut SortedSetMut<'_, '_>,
    way: Way,
    count: usize,
    out: &mut Out,
    head: impl FnOnce(&mut Out, usize),
    put: impl Fn(&mut Out, crate::ds::listpack::Element<'_>, f64),
) {
    let Some(view) = set.view() else { return head(out, 0) };
    let len = view.len();
    let count = count.min(len);
    let run = if way == Way::Up { 0..count } else { len - count..len };
    head(out, count);
    view.for_run(run.clone(), way, |member, score| put(out, member, score.value()));
    set.remove_run(run);
}

/// ZPOPMIN key [count]
pub fn zpopmin(cx: &mut WriteCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    pop_one_key(cx, args, out, Way::Up)
}

/// ZPOPMAX key [count]
pub fn zpopmax(cx: &mut WriteCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    pop_one_key(cx, args, out, Way::Down)
}

fn pop_one_key(cx: &mut WriteCx<'_>, args: &mut Args<'_>, out: &mut Out, way: Way) -> Done {
    let key = args.key()?;
    if args.left() > 1 {
        return Err(Error::Syntax);
    }
    let (mut count, mut pairs) = (1, false);
    if !args.is_done() {
        count = args.int_from(0, "value is out of range, must be positive")?;
        // Only who asks for a number of members gets them in pairs.
        pairs = out.protocol == Protocol::Resp3;
    }
    cx.edit(key, |editor| {
        let mut set = SortedSetMut::of(editor)?;
        let head = |out: &mut Out, members: usize| out.array(if pairs { members } else { 2 * members });
        pop(&mut set, way, count, out, head, |out, member, score| {
            if pairs {
                return put_scored(out, member, score);
            }
            put_element(out, member);
            out.double(score);
        });
        Ok(())
    })
}

/// ZMPOP numkeys key [key ...] MIN|MAX [COUNT count]
pub fn zmpop(cx: &mut WriteCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    let numkeys = args.int_from(1, "numkeys should be greater than 0")?;
    if numkeys >= args.left() {
        return Err(Error::Syntax);
    }
    let keys = args.keys(numkeys);
    let way = if args.keyword("MIN") {
        Way::Up
    } else if args.keyword("MAX") {
        Way::Down
    } else {
        return Err(Error::Syntax);
    };
    let mut count = None;
    while !args.is_done() {
        if count.is_some() || !args.keyword("COUNT") || args.is_done() {
            return Err(Error::Syntax);
        }
        count = Some(args.int_from(1, "count should be greater than 0")?);
    }
    cx.stands_for(match way {
        Way::Up => &[Event { class: class::SORTED_SET, name: "zpopmin" }],
        Way::Down => &[Event { class: class::SORTED_SET, name: "zpopmax" }],
    });
    for key in keys {
        let popped = cx.edit(key, |editor| {
            let mut set = SortedSetMut::of(editor)?;
            if set.view().is_none_or(SortedSetRef::is_empty) {
                return Ok(false);
            }
            out.array(2);
            out.bulk(key.bytes);
            pop(&mut set, way, count.unwrap_or(1), out, Out::array, |out, member, score| {
                out.array(2);
                put_element(out, member);
                out.double(score);
            });
            Ok(true)
        })?;
        if popped {
            return Ok(());
        }
    }
    out.null_array();
    Ok(())
}
