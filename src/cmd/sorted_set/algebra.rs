//! Unions, intersections and differences, replied, counted or stored.
//!
//! Must stay true: every key is looked at before options are read, so that one of another type is the first mistake.
use smallvec::SmallVec;

use super::{limits_for, put_head, put_scored, put_whole};
use crate::base::num;
use crate::cmd::cx::{ReadCx, WriteCx};
use crate::cmd::element::put_element;
use crate::cmd::spec::Done;
use crate::ds::raw::block::BlockRef;
use crate::types::sorted_set::NewSortedSet;
use crate::types::sorted_set::algebra::{self, Aggregate, Scored, Source, Sources, Weighted};
use crate::wire::{Args, Error, Key, Out};

/// What is to be done with the sources.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operation {
    Union,
    Intersection,
    Difference,
    /// ZINTERCARD.
    Count,
}

/// A command of this file.
#[derive(Clone, Copy, Debug)]
struct Form {
    name: &'static str,
    operation: Operation,
    stores: bool,
}

impl Form {
    const fn reply(name: &'static str, operation: Operation) -> Form {
        Form { name, operation, stores: false }
    }

    const fn store(name: &'static str, operation: Operation) -> Form {
        Form { name, operation, stores: true }
    }

    /// Whether scores may be weighted and aggregated.
    fn has_weights(self) -> bool {
        matches!(self.operation, Operation::Union | Operation::Intersection)
    }

    fn compute<'a>(self, sources: Sources<'a>, aggregate: Aggregate) -> Scored<'a> {
        match self.operation {
            Operation::Union => algebra::union(sources, aggregate),
            Operation::Intersection | Operation::Count => algebra::intersection(sources, aggregate),
            Operation::Difference => algebra::difference(&sources),
        }
    }
}

type Keys<'a> = SmallVec<[Key<'a>; 8]>;

/// The keys, behind the number at the cursor that says how many they are.
fn keys<'a>(args: &mut Args<'a>, form: Form) -> Result<Keys<'a>, Error> {
    let numkeys = args.int()?;
    if numkeys < 1 {
        return Err(Error::err(format_args!("at least 1 input key is needed for '{}' command", form.name)));
    }
    match usize::try_from(numkeys) {
        Ok(numkeys) if numkeys <= args.left() => Ok(args.keys(numkeys).collect()),
        _ => Err(Error::Syntax),
    }
}

/// What options say.
#[derive(Clone, Debug, Default)]
struct Options {
    /// Empty: all are 1.
    weights: SmallVec<[f64; 8]>,
    aggregate: Aggregate,
    with_scores: bool,
    /// 0: none.
    limit: usize,
}

impl Options {
    /// Reads everything that is left. `keys`: how many keys there are.
    fn parse(args: &mut Args<'_>, form: Form, keys: usize) -> Result<Options, Error> {
        let mut options = Options::default();
        while !args.is_done() {
            let behind = args.left() - 1;
            if form.has_weights() && behind >= keys && args.keyword("WEIGHTS") {
                options.weights = (0..keys).map(|_| weight(args)).collect::<Result<_, _>>()?;
            } else if form.has_weights() && behind >= 1 && args.keyword("AGGREGATE") {
                options.aggregate = aggregate(args)?;
            } else if !form.stores && form.operation != Operation::Count && args.keyword("WITHSCORES") {
                options.with_scores = true;
            } else if form.operation == Operation::Count && behind >= 1 && args.keyword("LIMIT") {
                let limit = args.int().ok().and_then(|limit| usize::try_from(limit).ok());
                options.limit = limit.ok_or_else(|| Error::err("LIMIT can't be negative"))?;
            } else {
                return Err(Error::Syntax);
            }
        }
        Ok(options)
    }

    /// The sources, weighted.
    fn weigh<'a>(&self, sources: impl Iterator<Item = Source<'a>>) -> Sources<'a> {
        let weight = |at: usize| self.weights.get(at).copied().unwrap_or(1.0);
        sources.enumerate().map(|(at, source)| Weighted { source, weight: weight(at) }).collect()
    }
}

fn weight(args: &mut Args<'_>) -> Result<f64, Error> {
    num::parse_f64(args.bytes()?).ok_or_else(|| Error::err("weight value is not a float"))
}

fn aggregate(args: &mut Args<'_>) -> Result<Aggregate, Error> {
    if args.keyword("SUM") {
        Ok(Aggregate::Sum)
    } else if args.keyword("MIN") {
        Ok(Aggregate::Min)
    } else if args.keyword("MAX") {
        Ok(Aggregate::Max)
    } else {
        Err(Error::Syntax)
    }
}

/// The source that a key holds.
fn source(block: Option<BlockRef<'_>>) -> Result<Source<'_>, Error> {
    Source::of(block.map(BlockRef::value))
}

/// Sources and options of a command that only reads.
fn read<'a>(cx: &ReadCx<'a>, args: &mut Args<'_>, form: Form) -> Result<(Sources<'a>, Options), Error> {
    let keys = keys(args, form)?;
    let sources: SmallVec<[Source<'a>; 8]> =
        keys.iter().map(|key| source(cx.find(*key))).collect::<Result<_, _>>()?;
    let options = Options::parse(args, form, keys.len())?;
    Ok((options.weigh(sources.into_iter()), options))
}

fn reply(cx: &ReadCx<'_>, args: &mut Args<'_>, out: &mut Out, form: Form) -> Done {
    let (sources, options) = read(cx, args, form)?;
    let members = form.compute(sources, options.aggregate);
    put_head(out, members.len(), options.with_scores);
    for (member, score) in members {
        if options.with_scores {
            put_scored(out, member, score);
        } else {
            put_element(out, member);
        }
    }
    Ok(())
}

fn store(cx: &mut WriteCx<'_>, args: &mut Args<'_>, out: &mut Out, form: Form) -> Done {
    let to = args.key()?;
    let keys = keys(args, form)?;
    for key in &keys {
        source(cx.find_counted(*key))?;
    }
    let options = Options::parse(args, form, keys.len())?;
    let limits = limits_for(cx, to);
    let sources: SmallVec<[Source<'_>; 8]> =
        keys.iter().map(|key| source(cx.peek(*key))).collect::<Result<_, _>>()?;
    let members = form.compute(options.weigh(sources.into_iter()), options.aggregate);
    let result = NewSortedSet::of(&members, limits);
    put_whole(cx, to, result, out);
    Ok(())
}

/// ZUNION numkeys key [key ...] [WEIGHTS weight [weight ...]] [AGGREGATE SUM|MIN|MAX] [WITHSCORES]
pub fn zunion(cx: &ReadCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    reply(cx, args, out, Form::reply("zunion", Operation::Union))
}

/// ZINTER numkeys key [key ...] [WEIGHTS weight [weight ...]] [AGGREGATE SUM|MIN|MAX] [WITHSCORES]
pub fn zinter(cx: &ReadCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    reply(cx, args, out, Form::reply("zinter", Operation::Intersection))
}

/// ZDIFF numkeys key [key ...] [WITHSCORES]
pub fn zdiff(cx: &ReadCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    reply(cx, args, out, Form::reply("zdiff", Operation::Difference))
}

/// ZINTERCARD numkeys key [key ...] [LIMIT limit]
pub fn zintercard(cx: &ReadCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    let (sources, options) = read(cx, args, Form::reply("zintercard", Operation::Count))?;
    out.count(algebra::intersection_len(sources, options.limit));
    Ok(())
}

/// ZUNIONSTORE destination numkeys key [key ...] [WEIGHTS weight [weight ...]] [AGGREGATE SUM|MIN|MAX]
pub fn zunionstore(cx: &mut WriteCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    store(cx, args, out, Form::store("zunionstore", Operation::Union))
}

/// ZINTERSTORE destination numkeys key [key ...] [WEIGHTS weight [weight ...]] [AGGREGATE SUM|MIN|MAX]
pub fn zinterstore(cx: &mut WriteCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    store(cx, args, out, Form::store("zinterstore", Operation::Intersection))
}

/// ZDIFFSTORE destination numkeys key [key ...]
pub fn zdiffstore(cx: &mut WriteCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    store(cx, args, out, Form::store("zdiffstore", Operation::Difference))
}
