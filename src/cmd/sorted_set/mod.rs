//! Sorted sets: rows, and what the handlers of the family share.
mod add;
mod algebra;
mod pop;
mod range;
mod read;

pub(super) use add::add_pairs;

use super::cx::{ReadCx, WriteCx};
use super::spec::{Group::SortedSet as S, KeyPart, Spec, flag, key, key_count, key_range, keys};
use crate::cmd::element::put_element;
use crate::ds::listpack::Element;
use crate::store::db::Ttl;
use crate::store::news::class;
use crate::types::sorted_set::{Limits, NewSortedSet, SortedSetRef};
use crate::wire::{Error, Key, Out, Protocol};

/// Takes members away.
const DELETE: &[KeyPart] = &[key("RW delete", 1)];
/// Takes members away and replies with them.
const POP: &[KeyPart] = &[key("RW access delete", 1)];
const POP_FIRST: &[KeyPart] = &[key_range("RW access delete", 1, -2, 1)];
/// A result and its source.
const STORE_ONE: &[KeyPart] = &[key("OW update", 1), key("RO access", 2)];
/// A result and its sources.
const STORE_MANY: &[KeyPart] = &[key("OW update", 1), key_count("RO access", 2)];
/// Sources.
const READ_MANY: &[KeyPart] = &[key_count("RO access", 1)];
const RANDOM: &[&str] = &["nondeterministic_output"];

const COST_OF_ONE: &str = "O(log(N)) where N is the size of the sorted set.";
const COST_OF_RANGE: &str =
    "O(log(N)+M) where N is the size of the sorted set and M the number of members returned.";
const COST_OF_REMOVAL: &str =
    "O(log(N)+M) where N is the size of the sorted set and M the number of members removed.";
const COST_OF_POP: &str =
    "O(log(N)+M) where N is the size of the sorted set and M the number of members taken.";
const COST_OF_UNION: &str =
    "O(N)+O(M*log(M)) where N is the number of members of all sources and M that of the result.";
const COST_OF_INTERSECTION: &str = "O(N*K)+O(M*log(M)) where N is the size of the smallest source, K the number of sources and M the size of the result.";
const COST_OF_DIFFERENCE: &str =
    "O(L+M*log(M)) where L is the number of members of all sources and M that of the result, or less.";

/// The rows.
pub const COMMANDS: &[Spec] = &[
    Spec::write("zadd", "key [NX|XX] [GT|LT] [CH] [INCR] score member [score member ...]", add::zadd)
        .event(class::SORTED_SET, "zadd")
        .doc(S, "1.2.0", "Adds members with their scores to a sorted set, or changes their scores; makes the key when it does not exist.")
        .cost("O(log(N)) for each member, where N is the size of the sorted set.")
        .keys(keys::UPDATE)
        .with(flag::DENYOOM | flag::FAST),
    Spec::write("zincrby", "key increment member", add::zincrby)
        .event(class::SORTED_SET, "zincr")
        .doc(S, "1.2.0", "Adds to the score of a member of a sorted set; a missing member has the score 0.")
        .cost(COST_OF_ONE)
        .keys(keys::READ_UPDATE)
        .with(flag::DENYOOM | flag::FAST),
    Spec::write("zrem", "key member [member ...]", add::zrem)
        .event(class::SORTED_SET, "zrem")
        .doc(S, "1.2.0", "Removes members from a sorted set, and the key with the last one.")
        .cost("O(log(N)) for each member, where N is the size of the sorted set.")
        .keys(DELETE)
        .with(flag::FAST),
    Spec::read("zcard", "key", read::zcard)
        .doc(S, "1.2.0", "Counts the members of a sorted set.")
        .keys(keys::LOOK)
        .with(flag::FAST),
    Spec::read("zscore", "key member", read::zscore)
        .doc(S, "1.2.0", "Returns the score of a member of a sorted set.")
        .keys(keys::READ)
        .with(flag::FAST),
    Spec::read("zmscore", "key member [member ...]", read::zmscore)
        .doc(S, "6.2.0", "Returns the scores of several members of a sorted set.")
        .cost("O(N) where N is the number of members asked for.")
        .keys(keys::READ)
        .with(flag::FAST),
    Spec::read("zrank", "key member [WITHSCORE]", read::zrank)
        .doc(S, "2.0.0", "Returns the place of a member in a sorted set, counted from the lowest score.")
        .cost(COST_OF_ONE)
        .keys(keys::READ)
        .with(flag::FAST),
    Spec::read("zrevrank", "key member [WITHSCORE]", read::zrevrank)
        .doc(S, "2.0.0", "Returns the place of a member in a sorted set, counted from the highest score.")
        .cost(COST_OF_ONE)
        .keys(keys::READ)
        .with(flag::FAST),
    Spec::read("zcount", "key min:double max:double", read::zcount)
        .doc(S, "2.0.0", "Counts the members of a sorted set with scores in a range.")
        .cost(COST_OF_ONE)
        .keys(keys::READ)
        .with(flag::FAST),
    Spec::read("zlexcount", "key min max", read::zlexcount)
        .doc(S, "2.8.9", "Counts the members of a sorted set in a range of their bytes, where all scores are equal.")
        .cost(COST_OF_ONE)
        .keys(keys::READ)
        .with(flag::FAST),
    Spec::read("zrandmember", "key [count [WITHSCORES]]", read::zrandmember)
        .doc(S, "6.2.0", "Returns random members of a sorted set.")
        .cost("O(N) where N is the number of members returned.")
        .keys(keys::READ)
        .tips(RANDOM),
    Spec::read("zscan", "key cursor [MATCH pattern] [COUNT count]", read::zscan)
        .doc(S, "2.8.0", "Returns some members of a sorted set with their scores, and where to go on.")
        .cost("O(1) for a call, O(N) for a whole walk over N members.")
        .keys(keys::READ)
        .tips(RANDOM),
    Spec::read(
        "zrange",
        "key start:string stop:string [BYSCORE|BYLEX] [REV] [LIMIT offset count] [WITHSCORES]",
        range::zrange,
    )
    .doc(S, "1.2.0", "Returns the members of a sorted set in a range of places, scores or bytes.")
    .cost(COST_OF_RANGE)
    .keys(keys::READ),
    Spec::write("zrangestore", "dst src min max [BYSCORE|BYLEX] [REV] [LIMIT offset count]", range::zrangestore)
        .event(class::SORTED_SET, "zrangestore")
        .doc(S, "6.2.0", "Stores the members of a sorted set in a range of places, scores or bytes.")
        .cost("O(log(N)+M) where N is the size of the sorted set and M the number of members stored.")
        .keys(STORE_ONE)
        .with(flag::DENYOOM),
    Spec::read("zrevrange", "key start stop [WITHSCORES]", range::zrevrange)
        .doc(S, "1.2.0", "Returns the members of a sorted set in a range of places from the highest score down; superseded by ZRANGE.")
        .cost(COST_OF_RANGE)
        .keys(keys::READ),
    Spec::read("zrangebyscore", "key min:double max:double [WITHSCORES] [LIMIT offset count]", range::zrangebyscore)
        .doc(S, "1.0.5", "Returns the members of a sorted set with scores in a range; superseded by ZRANGE.")
        .cost(COST_OF_RANGE)
        .keys(keys::READ),
    Spec::read(
        "zrevrangebyscore",
        "key max:double min:double [WITHSCORES] [LIMIT offset count]",
        range::zrevrangebyscore,
    )
    .doc(S, "2.2.0", "Returns the members of a sorted set with scores in a range from the highest down; superseded by ZRANGE.")
    .cost(COST_OF_RANGE)
    .keys(keys::READ),
    Spec::read("zrangebylex", "key min max [LIMIT offset count]", range::zrangebylex)
        .doc(S, "2.8.9", "Returns the members of a sorted set in a range of their bytes; superseded by ZRANGE.")
        .cost(COST_OF_RANGE)
        .keys(keys::READ),
    Spec::read("zrevrangebylex", "key max min [LIMIT offset count]", range::zrevrangebylex)
        .doc(S, "2.8.9", "Returns the members of a sorted set in a range of their bytes, last first; superseded by ZRANGE.")
        .cost(COST_OF_RANGE)
        .keys(keys::READ),
    Spec::write("zremrangebyrank", "key start stop", range::zremrangebyrank)
        .event(class::SORTED_SET, "zremrangebyrank")
        .doc(S, "2.0.0", "Removes the members of a sorted set in a range of places, and the key with the last one.")
        .cost(COST_OF_REMOVAL)
        .keys(DELETE),
    Spec::write("zremrangebyscore", "key min:double max:double", range::zremrangebyscore)
        .event(class::SORTED_SET, "zremrangebyscore")
        .doc(S, "1.2.0", "Removes the members of a sorted set with scores in a range, and the key with the last one.")
        .cost(COST_OF_REMOVAL)
        .keys(DELETE),
    Spec::write("zremrangebylex", "key min max", range::zremrangebylex)
        .event(class::SORTED_SET, "zremrangebylex")
        .doc(S, "2.8.9", "Removes the members of a sorted set in a range of their bytes, and the key with the last one.")
        .cost(COST_OF_REMOVAL)
        .keys(DELETE),
    Spec::write("zpopmin", "key [count]", pop::zpopmin)
        .event(class::SORTED_SET, "zpopmin")
        .doc(S, "5.0.0", "Takes the members with the lowest scores from a sorted set and returns them; removes the key with the last one.")
        .cost(COST_OF_POP)
        .keys(POP)
        .with(flag::FAST),
    Spec::write("zpopmax", "key [count]", pop::zpopmax)
        .event(class::SORTED_SET, "zpopmax")
        .doc(S, "5.0.0", "Takes the members with the highest scores from a sorted set and returns them; removes the key with the last one.")
        .cost(COST_OF_POP)
        .keys(POP)
        .with(flag::FAST),
    Spec::write("zmpop", "numkeys key [key ...] MIN|MAX [COUNT count]", pop::zmpop)
        .doc(S, "7.0.0", "Takes the members with the lowest or highest scores from the first sorted set that has any.")
        .cost("O(K)+O(log(N)+M) where K is the number of keys, N the size of the sorted set and M the number of members taken.")
        .keys(&[key_count("RW access delete", 1)])
        .with(flag::MOVABLEKEYS),
    Spec::write("bzpopmin", "key [key ...] timeout:double", pop::bzpopmin)
        .event(class::SORTED_SET, "zpopmin")
        .doc(S, "5.0.0", "Takes the member with the lowest score from the first of several sorted sets that has one; waits for one.")
        .cost(COST_OF_ONE)
        .keys(POP_FIRST)
        .with(flag::FAST | flag::BLOCKING),
    Spec::write("bzpopmax", "key [key ...] timeout:double", pop::bzpopmax)
        .event(class::SORTED_SET, "zpopmax")
        .doc(S, "5.0.0", "Takes the member with the highest score from the first of several sorted sets that has one; waits for one.")
        .cost(COST_OF_ONE)
        .keys(POP_FIRST)
        .with(flag::FAST | flag::BLOCKING),
    Spec::write("bzmpop", "timeout:double numkeys key [key ...] MIN|MAX [COUNT count]", pop::bzmpop)
        .doc(S, "7.0.0", "Takes the members with the lowest or highest scores from the first sorted set that has any; waits for one.")
        .cost("O(K)+O(log(N)+M) where K is the number of keys, N the size of the sorted set and M the number of members taken.")
        .keys(&[key_count("RW access delete", 2)])
        .with(flag::BLOCKING | flag::MOVABLEKEYS),
    Spec::read(
        "zunion",
        "numkeys key [key ...] [WEIGHTS weight:integer [weight:integer ...]] [AGGREGATE SUM|MIN|MAX] [WITHSCORES]",
        algebra::zunion,
    )
    .doc(S, "6.2.0", "Returns the members of all sorted sets and sets.")
    .cost(COST_OF_UNION)
    .keys(READ_MANY)
        .with(flag::MOVABLEKEYS),
    Spec::read(
        "zinter",
        "numkeys key [key ...] [WEIGHTS weight:integer [weight:integer ...]] [AGGREGATE SUM|MIN|MAX] [WITHSCORES]",
        algebra::zinter,
    )
    .doc(S, "6.2.0", "Returns the members that all sorted sets and sets have.")
    .cost(COST_OF_INTERSECTION)
    .keys(READ_MANY)
        .with(flag::MOVABLEKEYS),
    Spec::read("zdiff", "numkeys key [key ...] [WITHSCORES]", algebra::zdiff)
        .doc(S, "6.2.0", "Returns the members of the first sorted set or set that no other has.")
        .cost(COST_OF_DIFFERENCE)
        .keys(READ_MANY)
        .with(flag::MOVABLEKEYS),
    Spec::read("zintercard", "numkeys key [key ...] [LIMIT limit:integer]", algebra::zintercard)
        .doc(S, "7.0.0", "Counts the members that all sorted sets and sets have.")
        .cost("O(N*K) where N is the size of the smallest source and K the number of sources.")
        .keys(READ_MANY)
        .with(flag::MOVABLEKEYS),
    Spec::write(
        "zunionstore",
        "destination numkeys key [key ...] [WEIGHTS weight:integer [weight:integer ...]] [AGGREGATE SUM|MIN|MAX]",
        algebra::zunionstore,
    )
    .event(class::SORTED_SET, "zunionstore")
    .doc(S, "2.0.0", "Stores the members of all sorted sets and sets.")
    .cost(COST_OF_UNION)
    .keys(STORE_MANY)
    .with(flag::DENYOOM | flag::MOVABLEKEYS),
    Spec::write(
        "zinterstore",
        "destination numkeys key [key ...] [WEIGHTS weight:integer [weight:integer ...]] [AGGREGATE SUM|MIN|MAX]",
        algebra::zinterstore,
    )
    .event(class::SORTED_SET, "zinterstore")
    .doc(S, "2.0.0", "Stores the members that all sorted sets and sets have.")
    .cost(COST_OF_INTERSECTION)
    .keys(STORE_MANY)
    .with(flag::DENYOOM | flag::MOVABLEKEYS),
    Spec::write("zdiffstore", "destination numkeys key [key ...]", algebra::zdiffstore)
        .event(class::SORTED_SET, "zdiffstore")
        .doc(S, "6.2.0", "Stores the members of the first sorted set or set that no other has.")
        .cost(COST_OF_DIFFERENCE)
        .keys(STORE_MANY)
        .with(flag::DENYOOM | flag::MOVABLEKEYS),
];

/// The sorted set under a key that is read.
#[inline]
pub(super) fn set_at<'a>(cx: &ReadCx<'a>, key: Key<'_>) -> Result<Option<SortedSetRef<'a>>, Error> {
    cx.find(key).map(SortedSetRef::of).transpose()
}

/// The head of a reply of so many members: with scores these are pairs in RESP3, and all in one row in RESP2.
#[inline]
fn put_head(out: &mut Out, members: usize, with_scores: bool) {
    out.array(if with_scores && out.protocol == Protocol::Resp2 { 2 * members } else { members });
}

/// A member and its score below such a head.
#[inline]
fn put_scored(out: &mut Out, member: Element<'_>, score: f64) {
    if out.protocol == Protocol::Resp3 {
        out.array(2);
    }
    put_element(out, member);
    out.double(score);
}

/// The limits for what is stored under a key.
pub(super) fn limits_for(cx: &mut WriteCx<'_>, to: Key<'_>) -> Limits {
    Limits::of(&cx.store(to.hash).settings)
}

/// Stores a whole sorted set and replies with its size; an empty one deletes the key.
pub(super) fn put_whole(cx: &mut WriteCx<'_>, to: Key<'_>, set: NewSortedSet, out: &mut Out) {
    let count = set.view().len();
    if count == 0 {
        cx.remove(to);
    } else {
        set.store(|value| cx.put(to, value, Ttl::Clear, 0));
    }
    out.count(count);
}
