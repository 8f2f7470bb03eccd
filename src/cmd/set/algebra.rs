//! Unions, intersections and differences, replied or stored.
//!
//! Must stay true: every key is looked at before anything is computed, so that one of another type is an error even
//! where the result would be empty without it.
use std::ops::ControlFlow;

use smallvec::SmallVec;

use super::members::set_at;
use crate::cmd::cx::{ReadCx, WriteCx};
use crate::cmd::element::put_element;
use crate::cmd::spec::Done;
use crate::ds::listpack::Element;
use crate::store::db::Ttl;
use crate::types::set::algebra::{self, Sets};
use crate::types::set::{Limits, NewSet, SetRef};
use crate::wire::{Args, Error, Key, Out};

/// Sets by key; `None` for a missing one.
type Sources<'a> = SmallVec<[Option<SetRef<'a>>; 8]>;

/// The sets under the next `n` keys.
fn sources<'a>(cx: &ReadCx<'a>, args: &mut Args<'_>, n: usize) -> Result<Sources<'a>, Error> {
    args.keys(n).map(|key| set_at(cx, key)).collect()
}

/// The sets that are there.
fn present<'a>(sources: &[Option<SetRef<'a>>]) -> Sets<'a> {
    sources.iter().copied().flatten().collect()
}

/// All sets; none if one is missing, which is an empty one.
fn all<'a>(sources: &[Option<SetRef<'a>>]) -> Sets<'a> {
    sources.iter().copied().collect::<Option<_>>().unwrap_or_default()
}

/// Replies with the members that `visit` visits.
fn reply_members(out: &mut Out, visit: impl FnOnce(&mut dyn FnMut(Element<'_>))) {
    let (mark, mut count) = (out.mark(), 0);
    visit(&mut |member| {
        put_element(out, member);
        count += 1;
    });
    out.insert_at(mark, |out| out.set(count));
}

/// SINTER key [key ...]
pub fn sinter(cx: &ReadCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    let sources = sources(cx, args, args.left())?;
    reply_members(out, |f| {
        algebra::intersect(all(&sources), &mut |member| {
            f(member);
            ControlFlow::Continue(())
        });
    });
    Ok(())
}

/// SUNION key [key ...]
pub fn sunion(cx: &ReadCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    let sources = sources(cx, args, args.left())?;
    reply_members(out, |f| algebra::unite(present(&sources), f));
    Ok(())
}

/// SDIFF key [key ...]
pub fn sdiff(cx: &ReadCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    let sources = sources(cx, args, args.left())?;
    reply_members(out, |f| {
        if let [Some(first), others @ ..] = &sources[..] {
            algebra::subtract(*first, &present(others), f);
        }
    });
    Ok(())
}

/// SINTERCARD numkeys key [key ...] [LIMIT limit]
pub fn sintercard(cx: &ReadCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    let numkeys = args.int_from(1, "numkeys should be greater than 0")?;
    if numkeys > args.left() {
        return Err(Error::err("Number of keys can't be greater than number of args"));
    }
    let mut options = args.clone();
    options.seek(args.position() + numkeys);
    let limit = limit_option(&mut options)?;
    let (sources, mut count) = (sources(cx, args, numkeys)?, 0);
    algebra::intersect(all(&sources), &mut |_| {
        count += 1;
        if count == limit { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    out.count(count);
    Ok(())
}

/// The last of any LIMIT options; 0: none.
fn limit_option(args: &mut Args<'_>) -> Result<usize, Error> {
    let mut limit = 0;
    while !args.is_done() {
        if !args.keyword("LIMIT") || args.is_done() {
            return Err(Error::Syntax);
        }
        limit = args.int_from(0, "LIMIT can't be negative")?;
    }
    Ok(limit)
}

/// Stores what `compute` makes of the sets, or deletes the destination where that is empty.
fn store(
    cx: &mut WriteCx<'_>,
    args: &mut Args<'_>,
    out: &mut Out,
    compute: impl FnOnce(&[Option<SetRef<'_>>], &Limits) -> NewSet,
) -> Done {
    let to = args.key()?;
    let keys: SmallVec<[Key<'_>; 8]> = args.keys(args.left()).collect();
    for key in &keys {
        cx.find_counted(*key).map(SetRef::of).transpose()?;
    }
    let limits = Limits::of(&cx.store(to.hash).settings);
    let sources = keys.iter().map(|key| cx.peek(*key).map(SetRef::of).transpose());
    let result = compute(&sources.collect::<Result<Sources<'_>, Error>>()?, &limits);
    let count = result.view().len();
    if count == 0 {
        cx.remove(to);
    } else {
        result.store(|value| cx.put(to, value, Ttl::Clear, 0));
    }
    out.count(count);
    Ok(())
}

/// SINTERSTORE destination key [key ...]
pub fn sinterstore(cx: &mut WriteCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    store(cx, args, out, |sources, limits| algebra::intersection_of(all(sources), limits))
}

/// SUNIONSTORE destination key [key ...]
pub fn sunionstore(cx: &mut WriteCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    store(cx, args, out, |sources, limits| algebra::union_of(&present(sources), limits))
}

/// SDIFFSTORE destination key [key ...]
pub fn sdiffstore(cx: &mut WriteCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    store(cx, args, out, |sources, limits| match sources {
        [Some(first), others @ ..] => algebra::difference_of(*first, &present(others), limits),
        _ => NewSet::of_ints(),
    })
}
