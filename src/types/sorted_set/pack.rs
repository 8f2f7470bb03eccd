//! The small form: a listpack of members and scores in turns, in the order of the scores, equal scores in the order of
//! their members' texts.
//!
//! Must stay true: a score is an integer where Redis writes it without a point, else the text that Redis writes, so
//! the bytes are those of a dump. Minus zero becomes zero that way, as it does in Redis.
use std::ops::Range;

use super::range::{LexRange, ScoreRange, compare_text};
use crate::base::num;
use crate::ds::listpack::{self, Element, Entries, HEAD_BYTES, Listpack, Probe, Sink};
use crate::ds::packed::PackedBytes;

/// The score that an element says.
#[inline]
pub(super) fn score_of(element: Element<'_>) -> f64 {
    match element {
        Element::Int(score) => score as f64,
        Element::Bytes(text) => num::parse_f64(text).unwrap_or(0.0),
    }
}

/// Appends the entry of a score.
#[inline]
pub(super) fn encode_score(score: f64, out: &mut impl Sink) {
    match num::integer_of(score) {
        Some(integer) => listpack::encode(Element::Int(integer), out),
        None => listpack::encode(Element::Bytes(&num::f64_text(score)), out),
    }
}

/// Appends the entries of a member and its score.
#[inline]
pub(super) fn encode_pair(member: Element<'_>, score: f64, out: &mut impl Sink) {
    listpack::encode(member, out);
    encode_score(score, out);
}

/// Members.
#[inline]
pub(super) fn len(pack: Listpack<'_>) -> usize {
    pack.len() / 2
}

/// Offset of the score of a member.
#[inline]
fn score_at(pack: Listpack<'_>, member: usize) -> usize {
    pack.skip(member, 1)
}

/// Offset and score of a member.
#[inline]
pub(super) fn find(pack: Listpack<'_>, probe: &Probe<'_>) -> Option<(usize, f64)> {
    let at = pack.find(probe, HEAD_BYTES, 2)?;
    Some((at, score_of(pack.get(score_at(pack, at)))))
}

/// Rank of the member at an offset.
pub(super) fn rank_at(pack: Listpack<'_>, offset: usize) -> usize {
    let (mut at, mut rank) = (HEAD_BYTES, 0);
    while at < offset {
        at = pack.skip(at, 2);
        rank += 1;
    }
    rank
}

/// Offset of the member with a rank; the end, if there is none.
#[inline]
pub(super) fn offset_of(pack: Listpack<'_>, rank: usize) -> usize {
    match rank {
        0 => HEAD_BYTES,
        rank => pack.nth(2 * rank as i64).unwrap_or(pack.end()),
    }
}

/// Offsets, members and scores, from either end.
#[derive(Clone, Debug)]
pub(super) struct Pairs<'a>(listpack::Iter<'a>);

impl<'a> Pairs<'a> {
    /// From a rank on.
    pub(super) fn from_rank(pack: Listpack<'a>, rank: usize) -> Pairs<'a> {
        Pairs(pack.iter_from(offset_of(pack, rank)))
    }

    /// Those before a rank.
    pub(super) fn before_rank(pack: Listpack<'a>, rank: usize) -> Pairs<'a> {
        Pairs(pack.iter_until(offset_of(pack, rank)))
    }
}

/// Offset of the member, the member, its score.
type Pair<'a> = (usize, Element<'a>, Element<'a>);

impl<'a> Iterator for Pairs<'a> {
    type Item = Pair<'a>;

    #[inline]
    fn next(&mut self) -> Option<Pair<'a>> {
        let (at, member) = self.0.next()?;
        let (_, score) = self.0.next()?;
        Some((at, member, score))
    }
}

impl DoubleEndedIterator for Pairs<'_> {
    #[inline]
    fn next_back(&mut self) -> Option<Self::Item> {
        let (_, score) = self.0.next_back()?;
        let (at, member) = self.0.next_back()?;
        Some((at, member, score))
    }
}

/// All pairs.
pub(super) fn pairs(pack: Listpack<'_>) -> Pairs<'_> {
    Pairs(pack.iter())
}

/// Whether a pair of the listpack comes before a member with a score.
#[inline]
fn is_before((_, own, own_score): Pair<'_>, score: f64, member: &[u8]) -> bool {
    let own_score = score_of(own_score);
    own_score < score || own_score == score && compare_text(own, member).is_lt()
}

/// Offset of the pair before which a member with a score belongs. Members often come in order, so the end is tried
/// first.
fn place(pack: Listpack<'_>, score: f64, member: &[u8]) -> usize {
    match pairs(pack).next_back() {
        Some(last) if !is_before(last, score, member) => {}
        _ => return pack.end(),
    }
    // Members are looked at only where scores are equal.
    let mut at = listpack::HEAD_BYTES;
    while at < pack.end() {
        let score_at = pack.skip(at, 1);
        let here = pack.get(score_at);
        let own = score_of(here);
        if own > score || own == score && !is_before((at, pack.get(at), here), score, member) {
            break;
        }
        at = pack.skip(score_at, 1);
    }
    at
}

/// Puts a member that is not there yet in its place.
pub(super) fn insert(pack: &mut impl PackedBytes, member: &[u8], score: f64) {
    let mut entries = Entries::new();
    encode_pair(Element::Bytes(member), score, &mut entries);
    let at = place(Listpack::new(pack.bytes()), score, member);
    listpack::insert_encoded(pack, at, &entries, 2);
}

/// Gives the member at an offset another score.
pub(super) fn rescore(pack: &mut impl PackedBytes, at: usize, member: &[u8], score: f64) {
    let view = Listpack::new(pack.bytes());
    let score_at = score_at(view, at);
    let mut before = Pairs(view.iter_until(at));
    let mut behind = Pairs(view.iter_from(view.skip(score_at, 1)));
    let stays = before.next_back().is_none_or(|pair| is_before(pair, score, member))
        && behind.next().is_none_or(|pair| !is_before(pair, score, member));
    let mut entries = Entries::new();
    if stays {
        encode_score(score, &mut entries);
        let old_bytes = view.skip(score_at, 1) - score_at;
        pack.splice(score_at, old_bytes, &entries);
        return;
    }
    entries.extend_from_slice(&view.bytes()[at..score_at]);
    encode_score(score, &mut entries);
    listpack::remove(pack, at, 2);
    let at = place(Listpack::new(pack.bytes()), score, member);
    listpack::insert_encoded(pack, at, &entries, 2);
}

/// Ranks of the members with scores in a range.
pub(super) fn score_run(pack: Listpack<'_>, range: &ScoreRange) -> Range<usize> {
    let mut scores = pairs(pack).map(|(.., score)| score_of(score)).peekable();
    let mut start = 0;
    while scores.next_if(|score| !range.is_above_min(*score)).is_some() {
        start += 1;
    }
    start..start + scores.take_while(|score| range.is_below_max(*score)).count()
}

/// Ranks of the members in a range. Where scores differ, members are in no order of their own; then the run begins at
/// the first member (from the end: the last one) that lies beyond the near end, and goes on up to the far one, as in
/// Redis.
pub(super) fn lex_run(pack: Listpack<'_>, range: &LexRange<'_>, from_end: bool) -> Range<usize> {
    let mut all = pairs(pack).map(|(_, member, _)| member);
    let (Some(first), last) = (all.next(), all.next_back()) else { return 0..0 };
    if !range.is_below_max(first) || !range.is_above_min(last.unwrap_or(first)) {
        return 0..0;
    }
    let members = pairs(pack).map(|(_, member, _)| member);
    if from_end {
        let mut back = members.rev().peekable();
        let mut end = len(pack);
        while back.next_if(|member| !range.is_below_max(*member)).is_some() {
            end -= 1;
        }
        return end - back.take_while(|member| range.is_above_min(*member)).count()..end;
    }
    let mut forth = members.peekable();
    let mut start = 0;
    while forth.next_if(|member| !range.is_above_min(*member)).is_some() {
        start += 1;
    }
    start..start + forth.take_while(|member| range.is_below_max(*member)).count()
}
