//! HSCAN: walking the fields of a hash in many calls.
//!
//! Must stay true: a field that is there throughout a whole walk is returned at least once.
use super::{look, reply};
use crate::base::{glob, num};
use crate::cmd::cx::ReadCx;
use crate::cmd::spec::Done;
use crate::types::hash::Field;
use crate::wire::{Args, Error, Out};

/// What HSCAN shall return.
struct Options<'a> {
    pattern: Option<&'a [u8]>,
    count: usize,
    with_values: bool,
}

impl<'a> Options<'a> {
    fn parse(args: &mut Args<'a>) -> Result<Options<'a>, Error> {
        let mut options = Options { pattern: None, count: 10, with_values: true };
        while !args.is_done() {
            if args.keyword("COUNT") {
                let count = args.int()?;
                options.count =
                    usize::try_from(count).ok().filter(|count| *count > 0).ok_or(Error::Syntax)?;
            } else if args.keyword("MATCH") {
                options.pattern = Some(args.bytes()?).filter(|pattern| *pattern != b"*");
            } else if args.keyword("NOVALUES") {
                options.with_values = false;
            } else {
                return Err(Error::Syntax);
            }
        }
        Ok(options)
    }

    fn accepts(&self, field: &Field<'_>, now_ms: u64) -> bool {
        !field.is_due(now_ms)
            && self
                .pattern
                .is_none_or(|pattern| field.name.with_text(|name| glob::matches(pattern, name, false)))
    }
}

fn head(out: &mut Out, cursor: u64, elements: usize) {
    out.array(2);
    out.bulk(itoa::Buffer::new().format(cursor).as_bytes());
    out.array(elements);
}

/// HSCAN key cursor [MATCH pattern] [COUNT count] [NOVALUES]
pub fn hscan(cx: &ReadCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    let key = args.key()?;
    let cursor = num::parse_scan_cursor(args.bytes()?).ok_or(Error::Cursor)?;
    let Some(hash) = look(cx, key)? else {
        head(out, 0, 0);
        return Ok(());
    };
    let options = Options::parse(args)?;
    let (mark, mut elements) = (out.mark(), 0);
    let next = hash.scan(cursor, options.count, |field| {
        if options.accepts(&field, cx.now.ms) {
            reply(out, field.name);
            elements += 1;
            if options.with_values {
                reply(out, field.value);
                elements += 1;
            }
        }
    });
    out.insert_at(mark, |out| head(out, next, elements));
    Ok(())
}
