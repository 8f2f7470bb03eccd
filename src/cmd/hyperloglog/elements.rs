//! Adding, counting and merging: PFADD, PFCOUNT and PFMERGE.
use super::{Stored, read, refusal, sparse_bytes_max};
use crate::cmd::cx::WriteCx;
use crate::cmd::spec::Done;
use crate::ds::hll::{self, Encoding, Union};
use crate::ds::packed::PackedBytes;
use crate::ds::raw::block::MARK_EDITED;
use crate::wire::{Args, Error, Key, Out};

/// PFADD key [element [element ...]]
pub fn pfadd(cx: &mut WriteCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    let key = args.key()?;
    let bytes_max = sparse_bytes_max(cx, key);
    let changed = cx.update(key, |block| {
        let is_new = block.is_none();
        let mut value = Stored::of(block);
        hll::encoding(value.bytes()).map_err(refusal)?;
        if is_new {
            hll::forget_count(value.bytes_mut());
        }
        let (changed, refused) = add_all(&mut value, args.rest(), bytes_max);
        let changed = changed || is_new;
        // Elements in front of the one that met corruption stay added.
        Ok((refused.map_or(Ok(changed), Err), value.finish(changed)))
    })??;
    out.flag(changed);
    Ok(())
}

/// Adds elements up to the first one that is refused; tells whether any changed the value.
fn add_all<'e>(
    value: &mut Stored<'_>,
    elements: impl Iterator<Item = &'e [u8]>,
    bytes_max: u64,
) -> (bool, Option<Error>) {
    let mut changed = false;
    for element in elements {
        match hll::add(value, element, bytes_max) {
            Ok(raised) => changed |= raised,
            Err(why) => return (changed, Some(refusal(why))),
        }
    }
    (changed, None)
}

/// PFCOUNT key [key ...]
pub fn pfcount(cx: &mut WriteCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    let count = if args.left() == 1 {
        count_one(cx, args.key()?)?
    } else {
        union_of(cx, args.keys(args.left()))?.0.count()
    };
    // A remembered count may be any number that a client wrote there.
    out.int(count as i64);
    Ok(())
}

/// The count of one key, remembered by its value. A string that nobody edited counts as edited from now on.
fn count_one(cx: &mut WriteCx<'_>, key: Key<'_>) -> Result<u64, Error> {
    let Some(block) = cx.find_counted(key) else { return Ok(0) };
    let is_edited = block.marks() & MARK_EDITED != 0;
    let value = read(block)?;
    let remembered = hll::cached_count(value).map_err(refusal)?;
    let count = match remembered {
        Some(count) if is_edited => return Ok(count),
        Some(count) => count,
        None => hll::count(value).map_err(refusal)?,
    };
    cx.update(key, |block| {
        let mut value = Stored::of(block);
        if remembered.is_none() {
            hll::cache_count(value.bytes_mut(), count);
        }
        Ok((count, value.finish(remembered.is_none())))
    })
}

/// All elements of some keys, and whether any of them is dense.
fn union_of<'k>(cx: &mut WriteCx<'_>, keys: impl Iterator<Item = Key<'k>>) -> Result<(Union, bool), Error> {
    let (mut union, mut any_dense) = (Union::default(), false);
    for key in keys {
        if let Some(block) = cx.find_counted(key) {
            any_dense |= union.merge(read(block)?).map_err(refusal)? == Encoding::Dense;
        }
    }
    Ok((union, any_dense))
}

/// PFMERGE destkey [sourcekey [sourcekey ...]]
pub fn pfmerge(cx: &mut WriteCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    let (union, any_dense) = union_of(cx, args.clone().keys(args.left()))?;
    let target = args.key()?;
    let bytes_max = sparse_bytes_max(cx, target);
    cx.update(target, |block| {
        let mut value = Stored::of(block);
        union.store(&mut value, any_dense, bytes_max).map_err(refusal)?;
        Ok(((), value.finish(true)))
    })?;
    out.ok();
    Ok(())
}
