//! LCS: the longest common subsequence of two strings.
use std::borrow::Cow;

use super::text;
use crate::cmd::cx::ReadCx;
use crate::cmd::spec::Done;
use crate::config::P;
use crate::ds::lcs::{self, Match, TooLarge};
use crate::wire::{Args, Error, Key, Out};

#[derive(Default)]
struct Options {
    len: bool,
    idx: bool,
    with_match_len: bool,
    match_len_min: u64,
}

fn options(args: &mut Args<'_>) -> Result<Options, Error> {
    let mut options = Options::default();
    while !args.is_done() {
        if args.keyword("IDX") {
            options.idx = true;
        } else if args.keyword("LEN") {
            options.len = true;
        } else if args.keyword("WITHMATCHLEN") {
            options.with_match_len = true;
        } else if args.keyword("MINMATCHLEN") {
            options.match_len_min = args.int()?.max(0) as u64;
        } else {
            return Err(Error::Syntax);
        }
    }
    if options.len && options.idx {
        return Err(Error::err("If you want both the length and indexes, please just use IDX."));
    }
    Ok(options)
}

fn refusal(reason: TooLarge) -> Error {
    Error::err(match reason {
        TooLarge::Strings => "String too long for LCS",
        TooLarge::Table => "Insufficient memory, transient memory for LCS exceeds proto-max-bulk-len",
    })
}

/// LCS key1 key2 [LEN] [IDX] [MINMATCHLEN min-match-len] [WITHMATCHLEN]
pub fn lcs(cx: &ReadCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    let (a, b) = (string(cx, args.key()?)?, string(cx, args.key()?)?);
    let options = options(args)?;
    let table_bytes_max = cx.host.settings().memory(P::PROTO_MAX_BULK_LEN);
    if options.len {
        lcs::check_size(a.len(), b.len(), table_bytes_max).map_err(refusal)?;
        out.int(lcs::length(&a, &b) as i64);
        return Ok(());
    }
    let (found, mut matches) = lcs::subsequence(&a, &b, table_bytes_max).map_err(refusal)?;
    if options.idx {
        matches.retain(|range| range.len >= options.match_len_min);
        reply_ranges(&matches, found.len(), options.with_match_len, out);
    } else {
        out.bulk(&found);
    }
    Ok(())
}

fn string<'a>(cx: &ReadCx<'a>, key: Key<'_>) -> Result<Cow<'a, [u8]>, Error> {
    match cx.string(key) {
        Ok(value) => Ok(value.map_or(Cow::Borrowed(&[]), text)),
        Err(_) => Err(Error::err("The specified keys must contain string values")),
    }
}

fn reply_ranges(matches: &[Match], len: usize, with_match_len: bool, out: &mut Out) {
    out.map(2);
    out.bulk(b"matches");
    out.array(matches.len());
    for range in matches {
        out.array(2 + usize::from(with_match_len));
        for (first, last) in [range.a, range.b] {
            out.array(2);
            out.int(first as i64);
            out.int(last as i64);
        }
        if with_match_len {
            out.int(range.len as i64);
        }
    }
    out.bulk(b"len");
    out.count(len);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::Protocol;

    #[test]
    fn ranges_as_redis_writes_them() {
        let matches = [Match { a: (4, 7), b: (5, 8), len: 4 }];
        let mut out = Out::new(Protocol::Resp3);
        reply_ranges(&matches, 6, true, &mut out);
        let want = "%2|$7|matches|*1|*3|*2|:4|:7|*2|:5|:8|:4|$3|len|:6|";
        assert_eq!(String::from_utf8(out.buf).unwrap().replace("\r\n", "|"), want);
    }
}
