//! ZADD, ZINCRBY and ZREM.
//!
//! Must stay true: nothing is added before every score is known to be a number.
use smallvec::SmallVec;

use crate::base::num;
use crate::cmd::cx::WriteCx;
use crate::cmd::spec::Done;
use crate::store::news::{Event, class};
use crate::types::sorted_set::{Outcome, Rules, SortedSetMut};
use crate::wire::args::option_word;
use crate::wire::{Args, Error, Key, Out};

const NX: u64 = option_word(b"NX");
const XX: u64 = option_word(b"XX");
const GT: u64 = option_word(b"GT");
const LT: u64 = option_word(b"LT");
const CH: u64 = option_word(b"CH");
const INCR: u64 = option_word(b"INCR");

/// Scores and members.
type Pairs<'a> = SmallVec<[(f64, &'a [u8]); 4]>;

/// ZADD key [NX|XX] [GT|LT] [CH] [INCR] score member [score member ...]
pub fn zadd(cx: &mut WriteCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    add(cx, args, Rules::default(), out)
}

/// ZINCRBY key increment member
pub fn zincrby(cx: &mut WriteCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    add(cx, args, Rules { incr: true, ..Rules::default() }, out)
}

fn add(cx: &mut WriteCx<'_>, args: &mut Args<'_>, mut rules: Rules, out: &mut Out) -> Done {
    let (key, mut count_changed) = (args.key()?, false);
    loop {
        match args.option() {
            NX => rules.nx = true,
            XX => rules.xx = true,
            GT => rules.gt = true,
            LT => rules.lt = true,
            CH => count_changed = true,
            INCR => {
                rules.incr = true;
                cx.stands_for(&[Event { class: class::SORTED_SET, name: "zincr" }]);
            }
            _ => break,
        }
        args.skip();
    }
    if args.is_done() || !args.left().is_multiple_of(2) {
        return Err(Error::Syntax);
    }
    check_options(rules, args.left() / 2)?;
    let mut pairs = Pairs::new();
    while !args.is_done() {
        pairs.push((num::parse_f64(args.bytes()?).ok_or(Error::NotFloat)?, args.bytes()?));
    }
    let (counts, last) = add_pairs(cx, key, &pairs, rules)?;
    match last {
        Outcome::Refused if rules.incr => out.null(),
        Outcome::Added(score) | Outcome::Changed(score) | Outcome::Same(score) if rules.incr => {
            out.double(score);
        }
        _ => out.count(if count_changed { counts.added + counts.changed } else { counts.added }),
    }
    Ok(())
}

fn check_options(rules: Rules, pairs: usize) -> Done {
    let Rules { nx, xx, gt, lt, incr } = rules;
    if nx && xx {
        return Err(Error::err("XX and NX options at the same time are not compatible"));
    }
    if nx && (gt || lt) || gt && lt {
        return Err(Error::err("GT, LT, and/or NX options at the same time are not compatible"));
    }
    if incr && pairs > 1 {
        return Err(Error::err("INCR option supports a single increment-element pair"));
    }
    Ok(())
}

/// What additions did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::cmd) struct Counts {
    /// New members.
    pub added: usize,
    /// Members with another score.
    pub changed: usize,
}

/// Adds scores and members; also tells what the last addition did.
#[inline]
pub(in crate::cmd) fn add_pairs(
    cx: &mut WriteCx<'_>,
    key: Key<'_>,
    pairs: &[(f64, &[u8])],
    rules: Rules,
) -> Result<(Counts, Outcome), Error> {
    cx.edit(key, |editor| {
        let mut set = SortedSetMut::of(editor)?;
        set.expect(pairs.len());
        let (mut counts, mut last) = (Counts::default(), Outcome::Refused);
        for &(score, member) in pairs {
            last = set
                .add(member, score, rules)
                .map_err(|_| Error::err("resulting score is not a number (NaN)"))?;
            counts.added += usize::from(matches!(last, Outcome::Added(_)));
            counts.changed += usize::from(matches!(last, Outcome::Changed(_)));
        }
        Ok((counts, last))
    })
}

/// ZREM key member [member ...]
pub fn zrem(cx: &mut WriteCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    let key = args.key()?;
    let removed = cx.edit(key, |editor| {
        let mut set = SortedSetMut::of(editor)?;
        Ok(args.rest().filter(|member| set.remove(member)).count())
    })?;
    out.count(removed);
    Ok(())
}
