//! Looking into one stream: XLEN, XRANGE, XREVRANGE.
use super::id::{parse_end, parse_start};
use super::{count_or_all, reply_entries};
use crate::cmd::cx::ReadCx;
use crate::cmd::spec::Done;
use crate::types::stream;
use crate::wire::{Args, Error, Key, Out};

/// XLEN key
pub fn xlen(cx: &ReadCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    let length = match cx.find(args.key()?) {
        Some(block) => stream::of(block)?.log.len(),
        None => 0,
    };
    out.int(length as i64);
    Ok(())
}

/// COUNT, if anything follows; 0 for negative ones.
fn count_option(args: &mut Args<'_>) -> Result<Option<i64>, Error> {
    let mut count = None;
    while !args.is_done() {
        if args.left() < 2 || !args.keyword("COUNT") {
            return Err(Error::Syntax);
        }
        count = Some(args.int()?.max(0));
    }
    Ok(count)
}

/// The stream under a key, if it is there and something is wanted of it; else the reply is written.
fn wanted<'a>(
    cx: &ReadCx<'a>,
    key: Key<'_>,
    count: Option<i64>,
    out: &mut Out,
) -> Result<Option<&'a crate::ds::stream::Log>, Error> {
    let Some(block) = cx.find(key) else {
        out.array(0);
        return Ok(None);
    };
    let log = &stream::of(block)?.log;
    if count == Some(0) {
        out.null_array();
        return Ok(None);
    }
    Ok(Some(log))
}

/// XRANGE key start end [COUNT count]
pub fn xrange(cx: &ReadCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    let key = args.key()?;
    let (start, end) = (parse_start(args.bytes()?)?, parse_end(args.bytes()?)?);
    let count = count_option(args)?;
    if let Some(log) = wanted(cx, key, count, out)? {
        reply_entries(out, log.range(start, end), count_or_all(count.unwrap_or(0)));
    }
    Ok(())
}

/// XREVRANGE key end start [COUNT count]
pub fn xrevrange(cx: &ReadCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    let key = args.key()?;
    let end = args.bytes()?;
    let (start, end) = (parse_start(args.bytes()?)?, parse_end(end)?);
    let count = count_option(args)?;
    if let Some(log) = wanted(cx, key, count, out)? {
        reply_entries(out, log.range_back(start, end), count_or_all(count.unwrap_or(0)));
    }
    Ok(())
}
