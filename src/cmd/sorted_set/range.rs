//! Ranges of places, scores and members: returned, stored, removed.
//!
//! Must stay true: a range becomes a run of places before anything is written, so that its length is known and its
//! cost is that of what it returns.
use std::ops::Range;

use super::read::{lex_range, score_range};
use super::{limits_for, put_head, put_scored, put_whole, set_at};
use crate::cmd::cx::{ReadCx, WriteCx};
use crate::cmd::element::put_element;
use crate::cmd::spec::Done;
use crate::types::sorted_set::{LexRange, NewSortedSet, ScoreRange, SortedSetMut, SortedSetRef, Way};
use crate::wire::args::option_word;
use crate::wire::{Args, Error, Out};

/// What a range counts.
#[derive(Clone, Copy, Debug, PartialEq)]
enum By {
    Rank,
    Score,
    Lex,
}

/// What a command leaves to its options.
#[derive(Clone, Copy, Debug)]
struct Form {
    /// `None`: BYSCORE and BYLEX may say.
    by: Option<By>,
    /// `None`: REV may say.
    way: Option<Way>,
    /// Takes no WITHSCORES.
    stores: bool,
}

/// The members asked for.
#[derive(Clone, Copy, Debug)]
enum Wanted<'a> {
    /// From one place to another, negative ones counted from the end.
    Ranks(i64, i64),
    Scores(ScoreRange),
    Lex(LexRange<'a>),
}

/// A range with its options.
#[derive(Clone, Copy, Debug)]
struct Query<'a> {
    wanted: Wanted<'a>,
    way: Way,
    with_scores: bool,
    /// Members to leave out, members to return at most (negative: all).
    limit: (i64, i64),
}

const LIMIT: u64 = option_word(b"LIMIT");
const REV: u64 = option_word(b"REV");
const BYLEX: u64 = option_word(b"BYLEX");
const BYSCORE: u64 = option_word(b"BYSCORE");

impl<'a> Query<'a> {
    /// Reads both ends, which the cursor is at, and the options behind them.
    fn parse(args: &mut Args<'a>, form: Form) -> Result<Query<'a>, Error> {
        let (first, second) = (args.bytes()?, args.bytes()?);
        let (mut by, mut way) = (form.by, form.way);
        let (mut limit, mut with_scores) = ((0, -1), false);
        while !args.is_done() {
            // Too long for an option word.
            if !form.stores && args.keyword("WITHSCORES") {
                with_scores = true;
                continue;
            }
            let option = args.option();
            args.skip();
            match option {
                LIMIT if args.left() >= 2 => limit = (args.int()?, args.int()?),
                REV if way.is_none() => way = Some(Way::Down),
                BYLEX if by.is_none() => by = Some(By::Lex),
                BYSCORE if by.is_none() => by = Some(By::Score),
                _ => return Err(Error::Syntax),
            }
        }
        let (by, way) = (by.unwrap_or(By::Rank), way.unwrap_or(Way::Up));
        if by == By::Rank && limit.1 != -1 {
            return Err(Error::err(
                "syntax error, LIMIT is only supported in combination with either BYSCORE or BYLEX",
            ));
        }
        if by == By::Lex && with_scores {
            return Err(Error::err("syntax error, WITHSCORES not supported in combination with BYLEX"));
        }
        let (min, max) = if way == Way::Down { (second, first) } else { (first, second) };
        let wanted = match by {
            By::Rank => ranks(first, second)?,
            By::Score => Wanted::Scores(score_range(min, max)?),
            By::Lex => Wanted::Lex(lex_range(min, max)?),
        };
        Ok(Query { wanted, way, with_scores, limit })
    }

    /// The ranks of what is asked for.
    fn run(&self, set: SortedSetRef<'_>) -> Range<usize> {
        match self.wanted {
            Wanted::Ranks(start, stop) => rank_run(start, stop, set.len(), self.way),
            Wanted::Scores(range) => limited(set.score_run(&range), self.way, self.limit),
            Wanted::Lex(range) => limited(set.lex_run(&range, self.way), self.way, self.limit),
        }
    }
}

fn ranks<'a>(start: &[u8], stop: &[u8]) -> Result<Wanted<'a>, Error> {
    let int = |text| crate::base::num::parse_i64(text).ok_or(Error::NotInteger);
    Ok(Wanted::Ranks(int(start)?, int(stop)?))
}

/// The ranks from one place to another, both counted along the way, negative ones from its end.
fn rank_run(start: i64, stop: i64, len: usize, way: Way) -> Range<usize> {
    let from_end = |place: i64| if place < 0 { place.saturating_add(len as i64) } else { place };
    let (start, stop) = (from_end(start).max(0), from_end(stop).min(len as i64 - 1));
    if start > stop {
        return 0..0;
    }
    let (start, end) = (start as usize, stop as usize + 1);
    match way {
        Way::Up => start..end,
        Way::Down => len - end..len - start,
    }
}

/// What LIMIT leaves of a run, counted along the way. A negative offset leaves nothing.
fn limited(run: Range<usize>, way: Way, (offset, count): (i64, i64)) -> Range<usize> {
    let Ok(offset) = usize::try_from(offset) else { return 0..0 };
    let skipped = offset.min(run.len());
    let count = usize::try_from(count).unwrap_or(usize::MAX).min(run.len() - skipped);
    match way {
        Way::Up => run.start + skipped..run.start + skipped + count,
        Way::Down => run.end - skipped - count..run.end - skipped,
    }
}

fn reply(cx: &ReadCx<'_>, args: &mut Args<'_>, out: &mut Out, form: Form) -> Done {
    let key = args.key()?;
    let query = Query::parse(args, form)?;
    let Some(set) = set_at(cx, key)? else {
        out.array(0);
        return Ok(());
    };
    let run = query.run(set);
    put_head(out, run.len(), query.with_scores);
    if query.with_scores {
        set.for_run(run, query.way, |member, score| put_scored(out, member, score.value()));
    } else {
        set.for_run(run, query.way, |member, _| put_element(out, member));
    }
    Ok(())
}

/// ZRANGE key start stop [BYSCORE|BYLEX] [REV] [LIMIT offset count] [WITHSCORES]
pub fn zrange(cx: &ReadCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    reply(cx, args, out, Form { by: None, way: None, stores: false })
}

/// ZREVRANGE key start stop [WITHSCORES]
pub fn zrevrange(cx: &ReadCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    reply(cx, args, out, Form { by: Some(By::Rank), way: Some(Way::Down), stores: false })
}

/// ZRANGEBYSCORE key min max [WITHSCORES] [LIMIT offset count]
pub fn zrangebyscore(cx: &ReadCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    reply(cx, args, out, Form { by: Some(By::Score), way: Some(Way::Up), stores: false })
}

/// ZREVRANGEBYSCORE key max min [WITHSCORES] [LIMIT offset count]
pub fn zrevrangebyscore(cx: &ReadCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    reply(cx, args, out, Form { by: Some(By::Score), way: Some(Way::Down), stores: false })
}

/// ZRANGEBYLEX key min max [LIMIT offset count]
pub fn zrangebylex(cx: &ReadCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    reply(cx, args, out, Form { by: Some(By::Lex), way: Some(Way::Up), stores: false })
}

/// ZREVRANGEBYLEX key max min [LIMIT offset count]
pub fn zrevrangebylex(cx: &ReadCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    reply(cx, args, out, Form { by: Some(By::Lex), way: Some(Way::Down), stores: false })
}

/// ZRANGESTORE dst src min max [BYSCORE|BYLEX] [REV] [LIMIT offset count]
pub fn zrangestore(cx: &mut WriteCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    let (to, from) = (args.key()?, args.key()?);
    let query = Query::parse(args, Form { by: None, way: None, stores: true })?;
    let limits = limits_for(cx, to);
    let result = match cx.find_counted(from).map(SortedSetRef::of).transpose()? {
        Some(set) => {
            let run = query.run(set);
            // Redis knows the length of a range of places alone.
            let expected = if matches!(query.wanted, Wanted::Ranks(..)) { run.len() } else { 0 };
            let mut result = NewSortedSet::new(limits, expected);
            set.for_run(run, Way::Up, |member, score| result.push(member, score.value()));
            result
        }
        None => NewSortedSet::new(limits, 0),
    };
    put_whole(cx, to, result, out);
    Ok(())
}

/// Removes what is wanted of the sorted set under the first argument.
fn remove(cx: &mut WriteCx<'_>, args: &mut Args<'_>, out: &mut Out, by: By) -> Done {
    let key = args.key()?;
    let query = Query::parse(args, Form { by: Some(by), way: Some(Way::Up), stores: true })?;
    let removed = cx.edit(key, |editor| {
        let mut set = SortedSetMut::of(editor)?;
        let run = set.view().map_or(0..0, |view| query.run(view));
        let count = run.len();
        set.remove_run(run);
        Ok(count)
    })?;
    out.count(removed);
    Ok(())
}

/// ZREMRANGEBYRANK key start stop
pub fn zremrangebyrank(cx: &mut WriteCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    remove(cx, args, out, By::Rank)
}

/// ZREMRANGEBYSCORE key min max
pub fn zremrangebyscore(cx: &mut WriteCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    remove(cx, args, out, By::Score)
}

/// ZREMRANGEBYLEX key min max
pub fn zremrangebylex(cx: &mut WriteCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    remove(cx, args, out, By::Lex)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_become_ranks() {
        for (start, stop, up, down) in [
            (0, -1, 0..5, 0..5),
            (0, 0, 0..1, 4..5),
            (1, 2, 1..3, 2..4),
            (-2, -1, 3..5, 0..2),
            (-100, 100, 0..5, 0..5),
            (3, 1, 0..0, 0..0),
            (5, 9, 0..0, 0..0),
            (0, -6, 0..0, 0..0),
            (i64::MIN, i64::MAX, 0..5, 0..5),
            (i64::MAX, i64::MIN, 0..0, 0..0),
        ] {
            assert_eq!(rank_run(start, stop, 5, Way::Up), up, "{start} {stop}");
            assert_eq!(rank_run(start, stop, 5, Way::Down), down, "{start} {stop}");
        }
        assert_eq!(rank_run(0, -1, 0, Way::Up), 0..0);
    }

    #[test]
    fn limits_cut_runs() {
        for (limit, up, down) in [
            ((0, -1), 10..15, 10..15),
            ((1, 2), 11..13, 12..14),
            ((3, 100), 13..15, 10..12),
            ((4, -5), 14..15, 10..11),
            ((0, 0), 10..10, 15..15),
            ((5, 1), 15..15, 10..10),
            ((i64::MAX, i64::MAX), 15..15, 10..10),
            ((-1, 3), 0..0, 0..0),
        ] {
            assert_eq!(limited(10..15, Way::Up, limit), up, "{limit:?}");
            assert_eq!(limited(10..15, Way::Down, limit), down, "{limit:?}");
        }
    }
}
