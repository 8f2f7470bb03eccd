//! Looking members up, counting them, walking over them, choosing some by chance.
use super::{put_head, put_scored, set_at};
use crate::base::num;
use crate::cmd::cx::ReadCx;
use crate::cmd::element::{put_element, put_walk};
use crate::cmd::generic::ElementFilter;
use crate::cmd::spec::Done;
use crate::types::sorted_set::{LexRange, ScoreRange, SortedSetRef, Way};
use crate::wire::{Args, Error, Key, Out};

/// ZCARD key
pub fn zcard(cx: &ReadCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    let set = set_at(cx, args.key()?)?;
    out.count(set.map_or(0, SortedSetRef::len));
    Ok(())
}

#[inline]
fn put_score(out: &mut Out, score: Option<f64>) {
    match score {
        Some(score) => out.double(score),
        None => out.null(),
    }
}

/// ZSCORE key member
pub fn zscore(cx: &ReadCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    let (set, member) = (set_at(cx, args.key()?)?, args.bytes()?);
    put_score(out, set.and_then(|set| set.score(member)));
    Ok(())
}

/// ZMSCORE key member [member ...]
pub fn zmscore(cx: &ReadCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    let set = set_at(cx, args.key()?)?;
    out.array(args.left());
    for member in args.rest() {
        put_score(out, set.and_then(|set| set.score(member)));
    }
    Ok(())
}

/// ZRANK key member [WITHSCORE]
pub fn zrank(cx: &ReadCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    rank(cx, args, out, Way::Up, "zrank")
}

/// ZREVRANK key member [WITHSCORE]
pub fn zrevrank(cx: &ReadCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    rank(cx, args, out, Way::Down, "zrevrank")
}

fn rank(cx: &ReadCx<'_>, args: &mut Args<'_>, out: &mut Out, way: Way, name: &'static str) -> Done {
    let (key, member) = (args.key()?, args.bytes()?);
    if args.left() > 1 {
        return Err(Error::Arity(name));
    }
    let with_score = !args.is_done();
    if with_score && !args.keyword("WITHSCORE") {
        return Err(Error::Syntax);
    }
    let set = set_at(cx, key)?;
    let found = set.and_then(|set| {
        let (rank, score) = set.rank(member)?;
        Some((if way == Way::Up { rank } else { set.len() - 1 - rank }, score))
    });
    match found {
        Some((rank, score)) if with_score => {
            out.array(2);
            out.count(rank);
            out.double(score);
        }
        Some((rank, _)) => out.count(rank),
        None if with_score => out.null_array(),
        None => out.null(),
    }
    Ok(())
}

/// Two ends of scores at the cursor.
pub(super) fn score_range(min: &[u8], max: &[u8]) -> Result<ScoreRange, Error> {
    ScoreRange::parse(min, max).ok_or_else(|| Error::err("min or max is not a float"))
}

/// Two ends of members at the cursor.
pub(super) fn lex_range<'a>(min: &'a [u8], max: &'a [u8]) -> Result<LexRange<'a>, Error> {
    LexRange::parse(min, max).ok_or_else(|| Error::err("min or max not valid string range item"))
}

/// ZCOUNT key min max
pub fn zcount(cx: &ReadCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    let (key, range) = (args.key()?, score_range(args.bytes()?, args.bytes()?)?);
    out.count(set_at(cx, key)?.map_or(0, |set| set.score_run(&range).len()));
    Ok(())
}

/// ZLEXCOUNT key min max
pub fn zlexcount(cx: &ReadCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    let (key, range) = (args.key()?, lex_range(args.bytes()?, args.bytes()?)?);
    out.count(set_at(cx, key)?.map_or(0, |set| set.lex_run(&range, Way::Up).len()));
    Ok(())
}

/// ZSCAN key cursor [MATCH pattern] [COUNT count]
pub fn zscan(cx: &ReadCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    let key = args.key()?;
    let cursor = num::parse_scan_cursor(args.bytes()?).ok_or(Error::Cursor)?;
    let Some(set) = set_at(cx, key)? else {
        put_walk(out, out.mark(), 0, 0);
        return Ok(());
    };
    let filter = ElementFilter::parse(args)?;
    let is_small = matches!(set, SortedSetRef::Pack(_));
    let (mark, mut found) = (out.mark(), 0);
    let next = set.scan(cursor, filter.count, &mut |member, score| {
        if member.with_text(|name| filter.accepts(name)) {
            put_element(out, member);
            // Scores are strings here in both protocols. Redis has those of large sets in seventeen digits.
            let score = score.value();
            out.bulk(&if is_small { num::f64_text(score) } else { num::f64_text_17(score) });
            found += 2;
        }
    });
    put_walk(out, mark, next, found);
    Ok(())
}

/// ZRANDMEMBER key [count [WITHSCORES]]
pub fn zrandmember(cx: &ReadCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    let key = args.key()?;
    if args.is_done() {
        match set_at(cx, key)? {
            Some(set) => set.random_repeated(1, &mut |member, _| put_element(out, member)),
            None => out.null(),
        }
        return Ok(());
    }
    let count = args.signed()?;
    let with_scores = args.keyword("WITHSCORES");
    if !args.is_done() {
        return Err(Error::Syntax);
    }
    if with_scores && count.unsigned_abs() > i64::MAX as u64 / 2 {
        return Err(too_many());
    }
    some_members(cx, key, count, with_scores, out)
}

fn too_many() -> Error {
    Error::err("value is out of range")
}

/// `count` different members; a negative count asks for as many that may be the same.
fn some_members(cx: &ReadCx<'_>, key: Key<'_>, count: i64, with_scores: bool, out: &mut Out) -> Done {
    let Some(set) = set_at(cx, key)? else {
        out.array(0);
        return Ok(());
    };
    let draws = count.unsigned_abs();
    let replies = if count < 0 {
        // Nobody could read more replies, and no machine could hold them.
        u32::try_from(draws).map_err(|_| too_many())? as usize
    } else {
        usize::try_from(count).unwrap_or(usize::MAX).min(set.len())
    };
    put_head(out, replies, with_scores);
    let mut put = |member, score: crate::types::sorted_set::Score<'_>| {
        if with_scores {
            put_scored(out, member, score.value());
        } else {
            put_element(out, member);
        }
    };
    if count < 0 || count == 1 {
        set.random_repeated(draws, &mut put);
    } else {
        set.random_distinct(replies, &mut put);
    }
    Ok(())
}
