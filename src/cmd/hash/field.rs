//! Fields one by one: HSET, HGET and their relatives.
use super::{change, live, look, reply_value};
use crate::base::num::LongDouble;
use crate::cmd::cx::{ReadCx, WriteCx};
use crate::cmd::spec::Done;
use crate::types::hash::{Field, HashRef};
use crate::wire::{Args, Error, Out};

/// Sets all fields of the arguments; returns how many are new.
#[inline]
fn set(cx: &mut WriteCx<'_>, args: &mut Args<'_>, command: &'static str) -> Result<usize, Error> {
    let key = args.key()?;
    let fields = args.left() / 2;
    if !args.left().is_multiple_of(2) {
        return Err(Error::Arity(command));
    }
    let first = args.position();
    let pairs = (0..fields).map(|i| (args.get(first + 2 * i), args.get(first + 2 * i + 1)));
    change(cx, key, |hash| Ok(hash.set_all(fields, pairs)))
}

/// HSET key field value [field value ...]
pub fn hset(cx: &mut WriteCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    let new = set(cx, args, "hset")?;
    out.count(new);
    Ok(())
}

/// HMSET key field value [field value ...]
pub fn hmset(cx: &mut WriteCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    set(cx, args, "hmset")?;
    out.ok();
    Ok(())
}

/// HSETNX key field value
pub fn hsetnx(cx: &mut WriteCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    let (key, name, value) = (args.key()?, args.bytes()?, args.bytes()?);
    let new = change(cx, key, |hash| {
        hash.replace_due(name);
        let new = hash.find(name).is_none();
        if new {
            hash.make_room(1, [name, value].into_iter());
            hash.put(name, value, false);
            hash.changed(1);
        }
        Ok(new)
    })?;
    out.flag(new);
    Ok(())
}

/// HGET key field
pub fn hget(cx: &ReadCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    let hash = look(cx, args.key()?)?;
    let name = args.bytes()?;
    reply_value(out, live(cx, hash.and_then(|hash| hash.find(name))));
    Ok(())
}

/// HMGET key field [field ...]
pub fn hmget(cx: &ReadCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    let hash = look(cx, args.key()?)?;
    out.array(args.left());
    while let Some(name) = args.take() {
        reply_value(out, live(cx, hash.and_then(|hash| hash.find(name))));
    }
    Ok(())
}

/// HDEL key field [field ...]
pub fn hdel(cx: &mut WriteCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    let key = args.key()?;
    let deleted = change(cx, key, |hash| {
        let deleted = args.rest().filter(|name| hash.remove(name)).count();
        hash.changed(deleted);
        Ok(deleted)
    })?;
    out.count(deleted);
    Ok(())
}

/// HLEN key
pub fn hlen(cx: &ReadCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    out.count(look(cx, args.key()?)?.map_or(0, HashRef::len));
    Ok(())
}

/// The field that the arguments name.
fn named<'a>(cx: &ReadCx<'a>, args: &mut Args<'_>) -> Result<Option<Field<'a>>, Error> {
    let hash = look(cx, args.key()?)?;
    let name = args.bytes()?;
    Ok(live(cx, hash.and_then(|hash| hash.find(name))))
}

/// HSTRLEN key field
pub fn hstrlen(cx: &ReadCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    out.count(named(cx, args)?.map_or(0, |field| field.value.text_len()));
    Ok(())
}

/// HEXISTS key field
pub fn hexists(cx: &ReadCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    out.flag(named(cx, args)?.is_some());
    Ok(())
}

/// HINCRBY key field increment
pub fn hincrby(cx: &mut WriteCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    let (key, name, by) = (args.key()?, args.bytes()?, args.int()?);
    let value = change(cx, key, |hash| hash.increment(name, by))?;
    out.int(value);
    Ok(())
}

/// HINCRBYFLOAT key field increment
pub fn hincrbyfloat(cx: &mut WriteCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    let (key, name, by) = (args.key()?, args.bytes()?, args.bytes()?);
    let by = LongDouble::parse(by).ok_or(Error::NotFloat)?;
    if by.is_infinite() {
        return Err(Error::err("value is NaN or Infinity"));
    }
    let text = change(cx, key, |hash| {
        hash.replace_due(name);
        let sum = match hash.find(name) {
            Some(field) => {
                let value = field.value.with_text(LongDouble::parse);
                let value = value.ok_or_else(|| Error::err("hash value is not a float"))?;
                value.checked_add(by).ok_or(Error::NanOrInfinity)?
            }
            None => by,
        };
        let mut text = Vec::with_capacity(40);
        sum.format(&mut text);
        hash.put(name, &text, true);
        hash.changed(1);
        out.bulk(&text);
        Ok(text)
    })?;
    // Whoever reads the log may count otherwise.
    cx.log(&[b"HSETEX", key.bytes, b"KEEPTTL", b"FIELDS", b"1", name, &text]);
    Ok(())
}
