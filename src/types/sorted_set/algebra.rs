//! Unions, intersections and differences of sets and sorted sets. The members of a set have the score 1.
//!
//! Results are members as the sources have them, without copies, in the order of a sorted set.
//!
//! Must stay true: an intersection costs the smallest source, a difference the cheaper of two ways; scores are summed
//! in the order of Redis, smallest source first, for sums of doubles depend on it.
use std::cmp::Ordering;
use std::ops::ControlFlow;

use rapidhash::RapidHashMap;
use smallvec::SmallVec;

use super::SortedSetRef;
use crate::ds::listpack::Element;
use crate::ds::raw::block::Value;
use crate::types::set::SetRef;
use crate::wire::Error;

/// A source.
#[derive(Clone, Copy, Debug)]
pub enum Source<'a> {
    /// No such key.
    Missing,
    /// A sorted set.
    Sorted(SortedSetRef<'a>),
    /// A set.
    Set(SetRef<'a>),
}

impl<'a> Source<'a> {
    /// The source under a key.
    ///
    /// # Errors
    /// [`Error::WrongType`] when it is neither a set nor a sorted set.
    pub fn of(value: Option<Value<'a>>) -> Result<Source<'a>, Error> {
        let Some(value) = value else { return Ok(Source::Missing) };
        match SortedSetRef::of_value(value) {
            Some(sorted) => Ok(Source::Sorted(sorted)),
            None => SetRef::of_value(value).map(Source::Set),
        }
    }

    /// Number of members.
    pub fn len(self) -> usize {
        match self {
            Source::Missing => 0,
            Source::Sorted(sorted) => sorted.len(),
            Source::Set(set) => set.len(),
        }
    }

    /// Whether there is no member.
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// The score of a member of another source.
    fn score(self, member: Element<'_>) -> Option<f64> {
        match self {
            Source::Missing => None,
            Source::Sorted(sorted) => sorted.score_of_element(member),
            Source::Set(set) => set.contains_element(member).then_some(1.0),
        }
    }

    /// Visits members and scores until `f` breaks.
    fn walk(self, f: &mut dyn FnMut(Element<'a>, f64) -> ControlFlow<()>) {
        let _ = match self {
            Source::Missing => ControlFlow::Continue(()),
            Source::Sorted(sorted) => sorted.iter().try_for_each(|(member, score)| f(member, score)),
            Source::Set(set) => set.iter().try_for_each(|member| f(member, 1.0)),
        };
    }

    /// Visits all members and scores.
    fn for_each(self, f: &mut dyn FnMut(Element<'a>, f64)) {
        self.walk(&mut |member, score| {
            f(member, score);
            ControlFlow::Continue(())
        });
    }
}

/// A source and what its scores are multiplied with.
#[derive(Clone, Copy, Debug)]
pub struct Weighted<'a> {
    /// The source.
    pub source: Source<'a>,
    /// The factor.
    pub weight: f64,
}

/// The sources of one command.
pub type Sources<'a> = SmallVec<[Weighted<'a>; 8]>;

/// How the scores of a member that several sources have become one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Aggregate {
    /// Their sum.
    #[default]
    Sum,
    /// The lowest.
    Min,
    /// The highest.
    Max,
}

impl Aggregate {
    fn join(self, so_far: f64, score: f64) -> f64 {
        match self {
            Aggregate::Sum => number(so_far + score),
            Aggregate::Min if score < so_far => score,
            Aggregate::Max if score > so_far => score,
            Aggregate::Min | Aggregate::Max => so_far,
        }
    }
}

/// Zero for what has no value: a sum of different infinities, an infinity taken no times.
fn number(score: f64) -> f64 {
    if score.is_nan() { 0.0 } else { score }
}

/// Members and scores.
pub type Scored<'a> = Vec<(Element<'a>, f64)>;

fn compare(a: &(Element<'_>, f64), b: &(Element<'_>, f64)) -> Ordering {
    let by_member = || a.0.with_text(|a| b.0.with_text(|b| a.cmp(b)));
    a.1.partial_cmp(&b.1).filter(|order| order.is_ne()).unwrap_or_else(by_member)
}

/// Brings members into the order of a sorted set.
pub fn sort(members: &mut Scored<'_>) {
    members.sort_unstable_by(compare);
}

fn smallest_first(sources: &mut Sources<'_>) {
    sources.sort_by_key(|weighted| weighted.source.len());
}

/// All members of all sources.
pub fn union<'a>(mut sources: Sources<'a>, aggregate: Aggregate) -> Scored<'a> {
    smallest_first(&mut sources);
    let mut scores: RapidHashMap<Element<'a>, f64> = RapidHashMap::default();
    scores.reserve(sources.last().map_or(0, |largest| largest.source.len()));
    for Weighted { source, weight } in sources {
        source.for_each(&mut |member, score| {
            let score = number(score * weight);
            scores
                .entry(member.canonical())
                .and_modify(|so_far| *so_far = aggregate.join(*so_far, score))
                .or_insert(score);
        });
    }
    let mut members: Scored<'a> = scores.into_iter().collect();
    sort(&mut members);
    members
}

/// Visits the members that all sources have, in no order, until `f` breaks.
fn common<'a>(
    mut sources: Sources<'a>,
    aggregate: Aggregate,
    f: &mut dyn FnMut(Element<'a>, f64) -> ControlFlow<()>,
) {
    smallest_first(&mut sources);
    let Some((smallest, others)) = sources.split_first() else { return };
    smallest.source.walk(&mut |member, score| {
        let mut joined = number(score * smallest.weight);
        for other in others {
            let Some(score) = other.source.score(member) else { return ControlFlow::Continue(()) };
            joined = aggregate.join(joined, score * other.weight);
        }
        f(member, joined)
    });
}

/// The members that all sources have.
pub fn intersection<'a>(sources: Sources<'a>, aggregate: Aggregate) -> Scored<'a> {
    let mut members = Scored::new();
    common(sources, aggregate, &mut |member, score| {
        members.push((member, score));
        ControlFlow::Continue(())
    });
    sort(&mut members);
    members
}

/// The number of members that all sources have, up to a limit.
pub fn intersection_len(sources: Sources<'_>, limit: usize) -> usize {
    let mut count = 0;
    common(sources, Aggregate::Sum, &mut |_, _| {
        count += 1;
        if count == limit { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    count
}

/// The members of the first source that no other has.
pub fn difference<'a>(sources: &[Weighted<'a>]) -> Scored<'a> {
    let Some((Weighted { source: first, .. }, others)) = sources.split_first() else { return Scored::new() };
    let all: usize = sources.iter().map(|weighted| weighted.source.len()).sum();
    // Looking every member up in all other sources mostly ends early, so it counts half.
    let mut members = if first.len() * sources.len() / 2 <= all {
        difference_by_looking(*first, others)
    } else {
        difference_by_removing(*first, others)
    };
    sort(&mut members);
    members
}

fn difference_by_looking<'a>(first: Source<'a>, others: &[Weighted<'_>]) -> Scored<'a> {
    // A large source is the likeliest to have a member.
    let mut others: SmallVec<[Source<'_>; 8]> = others.iter().map(|weighted| weighted.source).collect();
    others.sort_by_key(|source| std::cmp::Reverse(source.len()));
    let mut members = Scored::new();
    first.for_each(&mut |member, score| {
        if !others.iter().any(|other| other.score(member).is_some()) {
            members.push((member, score));
        }
    });
    members
}

fn difference_by_removing<'a>(first: Source<'a>, others: &[Weighted<'a>]) -> Scored<'a> {
    let mut left: RapidHashMap<Element<'_>, f64> = RapidHashMap::default();
    left.reserve(first.len());
    first.for_each(&mut |member, score| {
        left.insert(member.canonical(), score);
    });
    for Weighted { source, .. } in others {
        source.walk(&mut |member, _| {
            left.remove(&member.canonical());
            if left.is_empty() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
    }
    left.into_iter().collect()
}
