//! Members: adding, removing, moving, looking for and listing them.
use crate::base::num;
use crate::cmd::cx::{ReadCx, WriteCx};
use crate::cmd::element::{put_element, put_walk};
use crate::cmd::generic::ElementFilter;
use crate::cmd::spec::Done;
use crate::store::news::{Event, class};
use crate::types::set::{SetMut, SetRef};
use crate::wire::{Args, Error, Key, Out};

/// SADD key member [member ...]
pub fn sadd(cx: &mut WriteCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    let key = args.key()?;
    let added = cx.edit(key, |editor| Ok(SetMut::of(editor)?.add(args.rest())))?;
    out.count(added);
    Ok(())
}

/// SREM key member [member ...]
pub fn srem(cx: &mut WriteCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    let key = args.key()?;
    let removed = cx.edit(key, |editor| Ok(SetMut::of(editor)?.remove(args.rest())))?;
    out.count(removed);
    Ok(())
}

/// The set under a key that is read.
#[inline]
pub(super) fn set_at<'a>(cx: &ReadCx<'a>, key: Key<'_>) -> Result<Option<SetRef<'a>>, Error> {
    cx.find(key).map(SetRef::of).transpose()
}

/// SCARD key
pub fn scard(cx: &ReadCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    let set = set_at(cx, args.key()?)?;
    out.count(set.map_or(0, SetRef::len));
    Ok(())
}

/// SISMEMBER key member
pub fn sismember(cx: &ReadCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    let set = set_at(cx, args.key()?)?;
    let member = args.bytes()?;
    out.flag(set.is_some_and(|set| set.contains(member)));
    Ok(())
}

/// SMISMEMBER key member [member ...]
pub fn smismember(cx: &ReadCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    let set = set_at(cx, args.key()?)?;
    out.array(args.left());
    for member in args.rest() {
        out.flag(set.is_some_and(|set| set.contains(member)));
    }
    Ok(())
}

/// SMEMBERS key
pub fn smembers(cx: &ReadCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    let set = set_at(cx, args.key()?)?;
    out.set(set.map_or(0, SetRef::len));
    if let Some(set) = set {
        set.for_each(&mut |member| put_element(out, member));
    }
    Ok(())
}

/// SMOVE source destination member
pub fn smove(cx: &mut WriteCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    let (from, to, member) = (args.key()?, args.key()?, args.bytes()?);
    let Some(source) = cx.find_used(from) else {
        out.flag(false);
        return Ok(());
    };
    let is_member = SetRef::of(source)?.contains(member);
    cx.find_used(to).map(SetRef::of).transpose()?;
    if is_member && from.bytes != to.bytes {
        let member = std::iter::once(member);
        cx.stands_for(&[Event { class: class::SET, name: "srem" }]);
        cx.edit(from, |editor| SetMut::of(editor).map(|mut set| set.remove(member.clone())))?;
        cx.stands_for(&[Event { class: class::SET, name: "sadd" }]);
        cx.edit(to, |editor| SetMut::of(editor).map(|mut set| set.add(member)))?;
    }
    out.flag(is_member);
    Ok(())
}

/// SSCAN key cursor [MATCH pattern] [COUNT count]
pub fn sscan(cx: &ReadCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    let key = args.key()?;
    let cursor = num::parse_scan_cursor(args.bytes()?).ok_or(Error::Cursor)?;
    let Some(set) = set_at(cx, key)? else {
        put_walk(out, out.mark(), 0, 0);
        return Ok(());
    };
    let filter = ElementFilter::parse(args)?;
    let (mark, mut found) = (out.mark(), 0);
    let next = set.scan(cursor, filter.count, &mut |member| {
        if member.with_text(|name| filter.accepts(name)) {
            put_element(out, member);
            found += 1;
        }
    });
    put_walk(out, mark, next, found);
    Ok(())
}
