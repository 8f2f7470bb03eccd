//! Sorted sets: distinct members in the order of their scores, equal scores in the order of the members' bytes.
//!
//! A small one is a listpack of members and scores in turns, a large one a sorted table.
//!
//! Must stay true: an edit makes a sorted set large as soon as it has too many members or one that is too long, and
//! never small again; what a command stores as a whole is as small as it can be. Scores are never NaN.
//!
//! Inside: `range` what commands search by, `pack` the small form, `edit` changes, `build` whole results, `algebra`
//! unions and kin.
pub mod algebra;
mod build;
mod edit;
mod pack;
mod range;

use std::ops::{ControlFlow, Range};

use rapidhash::RapidHashSet;

use crate::base::rng;
use crate::config::{P, Settings};
use crate::ds::listpack::{Element, Listpack, Probe};
use crate::ds::object::{Object, Packing};
use crate::ds::raw::block::{BlockRef, Value};
use crate::ds::sorted::{Ascending, SortedTable};
use crate::types::PACK_BYTES_MAX;
use crate::wire::Error;

pub use build::NewSortedSet;
pub use edit::{NotANumber, Outcome, Rules, SortedSetMut};
pub use range::{LexEnd, LexRange, ScoreRange};

/// A choice of more than one in so many members goes through all of them.
const SPARSE_CHOICE: usize = 3;

/// Up to where a sorted set stays small.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Members (`zset-max-listpack-entries`).
    pub entries: usize,
    /// Bytes of a member (`zset-max-listpack-value`).
    pub value_bytes: usize,
}

impl Limits {
    /// Those in force.
    #[inline]
    pub fn of(settings: &Settings) -> Limits {
        Limits {
            entries: usize::try_from(settings.int(P::ZSET_MAX_LISTPACK_ENTRIES)).unwrap_or(0),
            value_bytes: usize::try_from(settings.memory(P::ZSET_MAX_LISTPACK_VALUE)).unwrap_or(usize::MAX),
        }
    }

    /// Whether a small set of so many members and bytes can take another member.
    #[inline]
    fn fit(&self, members: usize, pack_bytes: usize, member_bytes: usize) -> bool {
        members < self.entries
            && member_bytes <= self.value_bytes
            && pack_bytes + member_bytes <= PACK_BYTES_MAX
    }
}

/// A score on its way out. It is read only where somebody asks for it.
#[derive(Clone, Copy, Debug)]
pub enum Score<'a> {
    /// At hand.
    Number(f64),
    /// As a small set has it.
    Packed(Element<'a>),
}

impl Score<'_> {
    /// The number.
    #[inline]
    pub fn value(self) -> f64 {
        match self {
            Score::Number(score) => score,
            Score::Packed(element) => pack::score_of(element),
        }
    }
}

/// A direction along the order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// Lowest first.
    Up,
    /// Highest first.
    Down,
}

/// A sorted set to read.
///
/// Ranks count from 0, lowest score first. Members come as [`Element`]s; a large set does not tell integers apart.
#[derive(Clone, Copy, Debug)]
pub enum SortedSetRef<'a> {
    /// A small one.
    Pack(Listpack<'a>),
    /// A large one.
    Table(&'a SortedTable),
}

impl<'a> SortedSetRef<'a> {
    /// The sorted set in a block.
    ///
    /// # Errors
    /// [`Error::WrongType`] when it holds something else.
    #[inline]
    pub fn of(block: BlockRef<'a>) -> Result<SortedSetRef<'a>, Error> {
        SortedSetRef::of_value(block.value()).ok_or(Error::WrongType)
    }

    /// The sorted set that a value is.
    #[inline]
    pub fn of_value(value: Value<'a>) -> Option<SortedSetRef<'a>> {
        match value {
            Value::Packed(Packing::SortedSet, stored) => Some(SortedSetRef::Pack(Listpack::new(stored))),
            Value::Object(Object::SortedSet(table)) => Some(SortedSetRef::Table(table)),
            _ => None,
        }
    }

    /// Number of members.
    #[inline]
    pub fn len(self) -> usize {
        match self {
            SortedSetRef::Pack(pack) => pack::len(pack),
            SortedSetRef::Table(table) => table.len(),
        }
    }

    /// Whether there is no member. Sorted sets under keys always have some.
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// The score of a member.
    #[inline]
    pub fn score(self, member: &[u8]) -> Option<f64> {
        match self {
            SortedSetRef::Pack(pack) => pack::find(pack, &Probe::new(member)).map(|(_, score)| score),
            SortedSetRef::Table(table) => table.score(member),
        }
    }

    /// The score of a member of another set.
    pub fn score_of_element(self, member: Element<'_>) -> Option<f64> {
        match self {
            SortedSetRef::Pack(pack) => pack::find(pack, &Probe::of(member)).map(|(_, score)| score),
            SortedSetRef::Table(table) => member.with_text(|text| table.score(text)),
        }
    }

    /// Rank and score of a member.
    pub fn rank(self, member: &[u8]) -> Option<(usize, f64)> {
        match self {
            SortedSetRef::Pack(pack) => {
                pack::find(pack, &Probe::new(member)).map(|(at, score)| (pack::rank_at(pack, at), score))
            }
            SortedSetRef::Table(table) => table.rank(member),
        }
    }

    /// Ranks of the members with scores in a range.
    pub fn score_run(self, range: &ScoreRange) -> Range<usize> {
        match self {
            SortedSetRef::Pack(pack) => pack::score_run(pack, range),
            SortedSetRef::Table(table) => {
                let start = table.seek_score(range.min, range.min_open);
                let end = table.seek_score(range.max, !range.max_open);
                start..end.max(start)
            }
        }
    }

    /// Ranks of the members in a range, for a walk that goes this way. Means something where all scores are equal.
    pub fn lex_run(self, range: &LexRange<'_>, way: Way) -> Range<usize> {
        match self {
            SortedSetRef::Pack(pack) => pack::lex_run(pack, range, way == Way::Down),
            SortedSetRef::Table(table) => {
                let rank = |end, behind| match end {
                    LexEnd::Lowest => 0,
                    LexEnd::Highest => table.len(),
                    LexEnd::At { text, open } => table.seek_lex(text, open == behind),
                };
                // An open low end lies behind its text, an open high end before it.
                let start = rank(range.min, true);
                let end = rank(range.max, false);
                start..end.max(start)
            }
        }
    }

    /// Calls `f` with the members and scores of a run of ranks, all of which there must be.
    #[inline]
    pub fn for_run(self, run: Range<usize>, way: Way, mut f: impl FnMut(Element<'a>, Score<'a>)) {
        let count = run.len();
        if count == 0 {
            return;
        }
        let mut packed = |(_, member, score)| f(member, Score::Packed(score));
        match (self, way) {
            (SortedSetRef::Pack(pack), Way::Up) => {
                pack::Pairs::from_rank(pack, run.start).take(count).for_each(&mut packed);
            }
            (SortedSetRef::Pack(pack), Way::Down) => {
                pack::Pairs::before_rank(pack, run.end).rev().take(count).for_each(&mut packed);
            }
            (SortedSetRef::Table(table), Way::Up) => table
                .iter_from(run.start)
                .take(count)
                .for_each(|(member, score)| f(Element::Bytes(member), Score::Number(score))),
            (SortedSetRef::Table(table), Way::Down) => table
                .iter_back_from(run.end - 1)
                .take(count)
                .for_each(|(member, score)| f(Element::Bytes(member), Score::Number(score))),
        }
    }

    /// Calls `f` with members and scores, ascending from a score on, until it breaks.
    pub fn walk_from_score(
        self,
        score: f64,
        f: &mut dyn FnMut(Element<'a>, f64) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        match self {
            SortedSetRef::Pack(pack) => pack::pairs(pack)
                .map(|(_, member, own)| (member, pack::score_of(own)))
                .skip_while(|(_, own)| *own < score)
                .try_for_each(|(member, own)| f(member, own)),
            SortedSetRef::Table(table) => table
                .iter_from(table.seek_score(score, false))
                .try_for_each(|(member, own)| f(Element::Bytes(member), own)),
        }
    }

    /// All members and scores, ascending.
    pub fn iter(self) -> Iter<'a> {
        match self {
            SortedSetRef::Pack(pack) => Iter::Pack(PackIter(pack::pairs(pack))),
            SortedSetRef::Table(table) => Iter::Table(table.iter()),
        }
    }

    /// Shows members from `cursor` on to `f` and gives the cursor to go on from, 0 at the end. A large set is shown
    /// about `count` members at a time, a small one at once.
    pub fn scan(self, cursor: u64, count: usize, f: &mut dyn FnMut(Element<'_>, Score<'_>)) -> u64 {
        match self {
            SortedSetRef::Pack(_) => {
                self.for_run(0..self.len(), Way::Up, f);
                0
            }
            SortedSetRef::Table(table) => {
                table.scan(cursor, count, |member, score| f(Element::Bytes(member), Score::Number(score)))
            }
        }
    }

    /// Calls `f` with `count` random members; one may come several times.
    pub fn random_repeated(self, count: u64, f: &mut dyn FnMut(Element<'a>, Score<'a>)) {
        match self {
            SortedSetRef::Pack(pack) => {
                // Measured once, for a listpack has no way to a rank but along its entries.
                let offsets: Vec<usize> = if count == 1 {
                    vec![pack::offset_of(pack, rng::index_below(self.len()))]
                } else {
                    pack::pairs(pack).map(|(at, ..)| at).collect()
                };
                for _ in 0..count {
                    let at = offsets[rng::index_below(offsets.len())];
                    f(pack.get(at), Score::Packed(pack.get(pack.skip(at, 1))));
                }
            }
            SortedSetRef::Table(table) => {
                for _ in 0..count {
                    let Some((member, score)) = table.random(&mut rng::next_u64) else { return };
                    f(Element::Bytes(member), Score::Number(score));
                }
            }
        }
    }

    /// Calls `f` with `count` different random members, or with all if there are no more.
    pub fn random_distinct(self, count: usize, f: &mut dyn FnMut(Element<'a>, Score<'a>)) {
        let len = self.len();
        match self {
            SortedSetRef::Table(table) if count < len / SPARSE_CHOICE => {
                for rank in distinct_ranks(count, len) {
                    if let Some((member, score)) = table.at_rank(rank) {
                        f(Element::Bytes(member), Score::Number(score));
                    }
                }
            }
            _ => {
                // One pass that takes each member with the odds of what is wanted to what is left (D. Knuth, "The Art
                // of Computer Programming", 3.4.2, algorithm S).
                let (mut wanted, mut left) = (count.min(len), len);
                self.for_run(0..len, Way::Up, |member, score| {
                    if rng::index_below(left) < wanted {
                        wanted -= 1;
                        f(member, score);
                    }
                    left -= 1;
                });
            }
        }
    }
}

/// `count` different numbers below `len`, every choice equally likely (R. Floyd, in J. Bentley, "Programming pearls: a
/// sample of brilliance", 1987).
fn distinct_ranks(count: usize, len: usize) -> RapidHashSet<usize> {
    let mut chosen = RapidHashSet::default();
    for last in len - count..len {
        let rank = rng::index_below(last + 1);
        if !chosen.insert(rank) {
            chosen.insert(last);
        }
    }
    chosen
}

/// Members and scores, ascending.
#[derive(Clone)]
pub enum Iter<'a> {
    /// Of a small set.
    Pack(PackIter<'a>),
    /// Of a large one.
    Table(Ascending<'a>),
}

/// Members and scores of a small set.
#[derive(Clone)]
pub struct PackIter<'a>(pack::Pairs<'a>);

impl<'a> Iterator for Iter<'a> {
    type Item = (Element<'a>, f64);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        match self {
            Iter::Pack(PackIter(pairs)) => {
                pairs.next().map(|(_, member, score)| (member, pack::score_of(score)))
            }
            Iter::Table(table) => table.next().map(|(member, score)| (Element::Bytes(member), score)),
        }
    }
}

#[cfg(test)]
mod tests;
