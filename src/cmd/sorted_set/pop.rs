//! Taking members from the ends: ZPOPMIN, ZPOPMAX, ZMPOP, and their kin that wait for a sorted set to have some.
use super::put_scored;
use crate::cmd::cx::{Wait, WriteCx};
use crate::cmd::element::put_element;
use crate::cmd::popping::Popping;
use crate::cmd::spec::Done;
use crate::cmd::waiting::until_of_seconds;
use crate::ds::listpack::Element;
use crate::ds::object::Kind;
use crate::store::news::{Event, class};
use crate::types::sorted_set::{SortedSetMut, Way};
use crate::wire::{Args, Error, Key, Out, Protocol};

/// Takes so many members, at most all, from the end where the way begins. What `head` is told is their number.
fn pop(
    set: &mut SortedSetMut<'_, '_>,
    way: Way,
    count: usize,
    out: &mut Out,
    head: impl FnOnce(&mut Out, usize),
    put: impl Fn(&mut Out, Element<'_>, f64),
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

/// What takes a member out at an end.
const fn pop_word(way: Way) -> &'static [u8] {
    match way {
        Way::Up => b"ZPOPMIN",
        Way::Down => b"ZPOPMAX",
    }
}

/// `MIN` or `MAX` at the cursor.
fn end(args: &mut Args<'_>) -> Result<Way, Error> {
    if args.keyword("MIN") {
        Ok(Way::Up)
    } else if args.keyword("MAX") {
        Ok(Way::Down)
    } else {
        Err(Error::Syntax)
    }
}

/// ZMPOP numkeys key [key ...] MIN|MAX [COUNT count]
pub fn zmpop(cx: &mut WriteCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    let popping = Popping::of(args, end)?;
    if !pop_first(cx, &popping, out)? {
        out.null_array();
    }
    Ok(())
}

/// BZMPOP timeout numkeys key [key ...] MIN|MAX [COUNT count]
pub fn bzmpop(cx: &mut WriteCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    let timeout = args.bytes()?;
    let popping = Popping::of(args, end)?;
    let until_ms = until_of_seconds(timeout, cx.now.ms)?;
    if !pop_first(cx, &popping, out)? && !cx.waits(Wait::for_kind(Kind::SortedSet, until_ms)) {
        out.null_array();
    }
    Ok(())
}

/// `false`: no key has members.
fn pop_first(cx: &mut WriteCx<'_>, popping: &Popping<'_, Way>, out: &mut Out) -> Result<bool, Error> {
    cx.stands_for(match popping.end {
        Way::Up => &[Event { class: class::SORTED_SET, name: "zpopmin" }],
        Way::Down => &[Event { class: class::SORTED_SET, name: "zpopmax" }],
    });
    for key in &popping.keys {
        let head = |out: &mut Out, members: usize| {
            out.array(2);
            out.bulk(key.bytes);
            out.array(members);
        };
        let mut count = 0;
        let counted = |out: &mut Out, members: usize| {
            count = members;
            head(out, members);
        };
        let popped = pop_some(cx, *key, (popping.end, popping.count), out, counted, |out, member, score| {
            out.array(2);
            put_element(out, member);
            out.double(score);
        })?;
        if popped {
            cx.log(&[pop_word(popping.end), key.bytes, itoa::Buffer::new().format(count).as_bytes()]);
            return Ok(true);
        }
    }
    Ok(false)
}

/// [`pop`] of a key that may have no members. `false`: so it is.
fn pop_some(
    cx: &mut WriteCx<'_>,
    key: Key<'_>,
    (way, count): (Way, usize),
    out: &mut Out,
    head: impl FnOnce(&mut Out, usize),
    put: impl Fn(&mut Out, Element<'_>, f64),
) -> Result<bool, Error> {
    cx.edit(key, |editor| {
        let mut set = SortedSetMut::of(editor)?;
        let has_members = set.view().is_some_and(|view| !view.is_empty());
        if has_members {
            pop(&mut set, way, count, out, head, put);
        }
        Ok(has_members)
    })
}

/// BZPOPMIN key [key ...] timeout
pub fn bzpopmin(cx: &mut WriteCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    pop_one_or_wait(cx, args, out, Way::Up)
}

/// BZPOPMAX key [key ...] timeout
pub fn bzpopmax(cx: &mut WriteCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    pop_one_or_wait(cx, args, out, Way::Down)
}

fn pop_one_or_wait(cx: &mut WriteCx<'_>, args: &mut Args<'_>, out: &mut Out, way: Way) -> Done {
    let keys = args.keys(args.left() - 1);
    let until_ms = until_of_seconds(args.bytes()?, cx.now.ms)?;
    for key in keys {
        let head = |out: &mut Out, _| {
            out.array(3);
            out.bulk(key.bytes);
        };
        let popped = pop_some(cx, key, (way, 1), out, head, |out, member, score| {
            put_element(out, member);
            out.double(score);
        })?;
        if popped {
            cx.log(&[pop_word(way), key.bytes]);
            return Ok(());
        }
    }
    if !cx.waits(Wait::for_kind(Kind::SortedSet, until_ms)) {
        out.null_array();
    }
    Ok(())
}
