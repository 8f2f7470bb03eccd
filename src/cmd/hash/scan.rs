//! HSCAN: walking the fields of a hash in many calls.
//!
//! Must stay true: a field that is there throughout a whole walk is returned at least once.
use super::look;
use crate::base::num;
use crate::cmd::cx::ReadCx;
use crate::cmd::element::{put_element, put_walk};
use crate::cmd::generic::ElementFilter;
use crate::cmd::spec::Done;
use crate::wire::{Args, Error, Out};

/// HSCAN key cursor [MATCH pattern] [COUNT count] [NOVALUES]
pub fn hscan(cx: &ReadCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    let key = args.key()?;
    let cursor = num::parse_scan_cursor(args.bytes()?).ok_or(Error::Cursor)?;
    let Some(hash) = look(cx, key)? else {
        put_walk(out, out.mark(), 0, 0);
        return Ok(());
    };
    let (mut filter, mut with_values) = (ElementFilter::ALL, true);
    while !args.is_done() {
        if args.keyword("NOVALUES") {
            with_values = false;
        } else if !filter.take_option(args)? {
            return Err(Error::Syntax);
        }
    }
    let (mark, mut elements) = (out.mark(), 0);
    let next = hash.scan(cursor, filter.count, |field| {
        if field.is_due(cx.now.ms) || !field.name.with_text(|name| filter.accepts(name)) {
            return;
        }
        put_element(out, field.name);
        elements += 1;
        if with_values {
            put_element(out, field.value);
            elements += 1;
        }
    });
    put_walk(out, mark, next, elements);
    Ok(())
}
