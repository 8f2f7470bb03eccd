//! Commands on lists that wait for one to have elements.
use super::{ends, moving, pop_word, side, side_word};
use crate::cmd::cx::{Wait, WriteCx};
use crate::cmd::element::put_element;
use crate::cmd::popping::Popping;
use crate::cmd::spec::Done;
use crate::cmd::waiting::{Until, until_of_seconds};
use crate::ds::list::Side;
use crate::ds::object::Kind;
use crate::types::list::{ListMut, ListRef};
use crate::wire::{Args, Error, Key, Out};

/// BLPOP key [key ...] timeout
pub fn blpop(cx: &mut WriteCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    pop(cx, args, out, Side::Front)
}

/// BRPOP key [key ...] timeout
pub fn brpop(cx: &mut WriteCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    pop(cx, args, out, Side::Back)
}

fn pop(cx: &mut WriteCx<'_>, args: &mut Args<'_>, out: &mut Out, side: Side) -> Done {
    let keys = args.keys(args.left() - 1);
    let until_ms = until_of_seconds(args.bytes()?, cx.now.ms)?;
    for key in keys {
        let popped = cx.edit(key, |editor| {
            let mark = out.mark();
            let popped = ListMut::of(editor)?.pop(side, |element| put_element(out, element)).is_some();
            if popped {
                out.insert_at(mark, |out| {
                    out.array(2);
                    out.bulk(key.bytes);
                });
            }
            Ok::<_, Error>(popped)
        })?;
        if popped {
            cx.log(&[pop_word(side), key.bytes]);
            return Ok(());
        }
    }
    if !cx.waits(Wait::for_kind(Kind::List, until_ms)) {
        out.null_array();
    }
    Ok(())
}

/// BLMPOP timeout numkeys key [key ...] LEFT|RIGHT [COUNT count]
pub fn blmpop(cx: &mut WriteCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    let timeout = args.bytes()?;
    let popping = Popping::of(args, side)?;
    let until_ms = until_of_seconds(timeout, cx.now.ms)?;
    if !ends::pop_first(cx, &popping, out)? && !cx.waits(Wait::for_kind(Kind::List, until_ms)) {
        out.null_array();
    }
    Ok(())
}

/// BLMOVE source destination LEFT|RIGHT LEFT|RIGHT timeout
pub fn blmove(cx: &mut WriteCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    let (source, destination) = (args.key()?, args.key()?);
    let (from, to) = (side(args)?, side(args)?);
    let until_ms = until_of_seconds(args.bytes()?, cx.now.ms)?;
    let words = [b"LMOVE", source.bytes, destination.bytes, side_word(from), side_word(to)];
    move_or_wait(cx, (source, from), (destination, to), until_ms, &words, out)
}

/// BRPOPLPUSH source destination timeout
pub fn brpoplpush(cx: &mut WriteCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    let (source, destination) = (args.key()?, args.key()?);
    let until_ms = until_of_seconds(args.bytes()?, cx.now.ms)?;
    let words = [b"RPOPLPUSH", source.bytes, destination.bytes];
    move_or_wait(cx, (source, Side::Back), (destination, Side::Front), until_ms, &words, out)
}

/// `words` say the same without waiting.
fn move_or_wait(
    cx: &mut WriteCx<'_>,
    source: (Key<'_>, Side),
    destination: (Key<'_>, Side),
    until_ms: Until,
    words: &[&[u8]],
    out: &mut Out,
) -> Done {
    let is_there = cx.find(source.0).map(ListRef::of).transpose()?.is_some();
    if is_there {
        moving::move_element(cx, source, destination, out)?;
        cx.log(words);
        return Ok(());
    }
    if !cx.waits(Wait::for_kind(Kind::List, until_ms)) {
        out.null();
    }
    Ok(())
}
