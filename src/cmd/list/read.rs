//! Reading lists.
use std::ops::ControlFlow;

use super::places;
use crate::cmd::cx::ReadCx;
use crate::cmd::element::put_element;
use crate::cmd::spec::Done;
use crate::ds::list::Side;
use crate::ds::listpack::Element;
use crate::types::list::ListRef;
use crate::wire::args::option_word;
use crate::wire::{Args, Error, Key, Out};

/// The list under a key, for a read.
#[inline]
fn list<'a>(cx: &ReadCx<'a>, key: Key<'_>) -> Result<Option<ListRef<'a>>, Error> {
    cx.find(key).map(ListRef::of).transpose()
}

/// LLEN key
pub fn llen(cx: &ReadCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    out.count(list(cx, args.key()?)?.map_or(0, ListRef::len));
    Ok(())
}

/// LINDEX key index. The index is looked at only when there is a list.
pub fn lindex(cx: &ReadCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    let found = match list(cx, args.key()?)? {
        Some(list) => list.get(args.int()?, |element| put_element(out, element)),
        None => None,
    };
    if found.is_none() {
        out.null();
    }
    Ok(())
}

/// LRANGE key start stop
pub fn lrange(cx: &ReadCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    let (key, start, stop) = (args.key()?, args.int()?, args.int()?);
    let Some(list) = list(cx, key)? else {
        out.array(0);
        return Ok(());
    };
    let (first, count) = places(start, stop, list.len());
    out.array(count);
    list.for_some(first, count, Side::Front, |element| put_element(out, element));
    Ok(())
}

/// Which of the equal elements LPOS is to find.
struct Wanted {
    /// How many equal ones come before, counted from `from`.
    skipped: usize,
    from: Side,
    /// How many to find; `None`: one, which is not to be put in an array.
    count: Option<usize>,
    /// How many elements to look at.
    looks: usize,
}

const RANK: u64 = option_word(b"RANK");
const COUNT: u64 = option_word(b"COUNT");
const MAXLEN: u64 = option_word(b"MAXLEN");

fn wanted(args: &mut Args<'_>) -> Result<Wanted, Error> {
    let (mut rank, mut count, mut looks) = (1, None, 0);
    while !args.is_done() {
        let option = args.option();
        args.skip();
        match option {
            _ if args.is_done() => return Err(Error::Syntax),
            RANK => rank = args.signed()?,
            COUNT => count = Some(args.int_from(0, "COUNT can't be negative")?),
            MAXLEN => looks = args.int_from(0, "MAXLEN can't be negative")?,
            _ => return Err(Error::Syntax),
        }
        if rank == 0 {
            return Err(Error::err(
                "RANK can't be zero: use 1 to start from the first match, 2 from the second ... or use negative to \
                 start from the end of the list",
            ));
        }
    }
    // Nought means all.
    let or_all = |number: usize| if number == 0 { usize::MAX } else { number };
    Ok(Wanted {
        skipped: usize::try_from(rank.unsigned_abs() - 1).unwrap_or(usize::MAX),
        from: if rank < 0 { Side::Back } else { Side::Front },
        count: count.map(or_all),
        looks: or_all(looks),
    })
}

/// Calls `f` with the index of each element that is wanted.
fn positions(list: ListRef<'_>, text: &[u8], wanted: &Wanted, mut f: impl FnMut(usize)) {
    let len = list.len();
    let target = Element::of(text);
    // A large element that is a number in its text is compared as a text.
    let equals = |element: Element<'_>| element == target || element == Element::Bytes(text);
    let (mut looked, mut skipped, mut left) = (0, 0, wanted.count.unwrap_or(1));
    let first = if wanted.from == Side::Front { 0 } else { len.saturating_sub(1) };
    list.walk(first, wanted.from, |element| {
        if looked == wanted.looks || left == 0 {
            return ControlFlow::Break(());
        }
        let index = if wanted.from == Side::Front { looked } else { len - 1 - looked };
        looked += 1;
        if equals(element) {
            if skipped == wanted.skipped {
                f(index);
                left -= 1;
            } else {
                skipped += 1;
            }
        }
        ControlFlow::Continue(())
    });
}

/// LPOS key element [RANK rank] [COUNT num-matches] [MAXLEN len]
pub fn lpos(cx: &ReadCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    let (key, text) = (args.key()?, args.bytes()?);
    let wanted = wanted(args)?;
    let list = list(cx, key)?;
    let (mark, mut found) = (out.mark(), 0);
    if let Some(list) = list {
        positions(list, text, &wanted, |index| {
            out.count(index);
            found += 1;
        });
    }
    match wanted.count {
        Some(_) => out.insert_at(mark, |out| out.array(found)),
        None if found == 0 => out.null(),
        None => {}
    }
    Ok(())
}
