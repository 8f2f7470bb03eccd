//! HRANDFIELD.
use super::look;
use crate::cmd::cx::{Met, ReadCx};
use crate::cmd::element::put_element;
use crate::cmd::spec::Done;
use crate::types::hash::{Field, HashRef};
use crate::wire::{Args, Error, Key, Out, Protocol};

/// A reply that repeats fields is given up beyond this.
const REPLY_BYTES_MAX: usize = 512 << 20;

/// Looks a hash up; due fields that are met on the way are cleared away by its owner.
fn find<'a>(cx: &ReadCx<'a>, key: Key<'_>) -> Result<Option<HashRef<'a>>, Error> {
    let hash = look(cx, key)?;
    if hash.is_some_and(|hash| hash.has_due(cx.now.ms)) {
        cx.met.set(Met::Parts);
    }
    Ok(hash)
}

/// HRANDFIELD key [count [WITHVALUES]]
pub fn hrandfield(cx: &ReadCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    let key = args.key()?;
    if args.is_done() {
        return one(cx, key, out);
    }
    let count = args.signed()?;
    let with_values = match args.left() {
        0 => false,
        1 if args.keyword("WITHVALUES") => true,
        _ => return Err(Error::Syntax),
    };
    if with_values && count.unsigned_abs() > i64::MAX as u64 / 2 {
        return Err(Error::err("value is out of range"));
    }
    let Some(hash) = find(cx, key)?.filter(|hash| count != 0 && hash.live_len(cx.now.ms) > 0) else {
        out.array(0);
        return Ok(());
    };
    let writer = Writer { with_values };
    if count < 0 {
        writer.repeated(hash, cx.now.ms, count.unsigned_abs(), out)
    } else {
        writer.distinct(hash, cx.now.ms, count as usize, out)
    }
}

/// One field, by its name.
fn one(cx: &ReadCx<'_>, key: Key<'_>, out: &mut Out) -> Done {
    let mut picked = None;
    if let Some(hash) = find(cx, key)? {
        hash.random(cx.now.ms, 1, |field| {
            picked = Some(field);
            false
        });
    }
    match picked {
        Some(field) => put_element(out, field.name),
        None => out.null(),
    }
    Ok(())
}

/// Writes fields with or without their values: pairs in RESP3, in turns in RESP2.
struct Writer {
    with_values: bool,
}

impl Writer {
    fn head(&self, out: &mut Out, fields: usize) {
        let flat = self.with_values && out.protocol == Protocol::Resp2;
        out.array(if flat { 2 * fields } else { fields });
    }

    fn field(&self, out: &mut Out, field: Field<'_>) {
        if self.with_values && out.protocol == Protocol::Resp3 {
            out.array(2);
        }
        put_element(out, field.name);
        if self.with_values {
            put_element(out, field.value);
        }
    }

    /// `count` fields, some perhaps several times.
    fn repeated(&self, hash: HashRef<'_>, now_ms: u64, count: u64, out: &mut Out) -> Done {
        let start = out.mark();
        self.head(out, count as usize);
        hash.random(now_ms, count, |field| {
            self.field(out, field);
            out.mark() - start <= REPLY_BYTES_MAX
        });
        if out.mark() - start > REPLY_BYTES_MAX {
            return Err(Error::err("the reply would be too long"));
        }
        Ok(())
    }

    /// `count` different fields, or all if there are no more.
    fn distinct(&self, hash: HashRef<'_>, now_ms: u64, count: usize, out: &mut Out) -> Done {
        self.head(out, count.min(hash.live_len(now_ms)));
        hash.random_distinct(now_ms, count, |field| self.field(out, field));
        Ok(())
    }
}
