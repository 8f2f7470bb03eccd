//! The handlers: geospatial indexes are the sorted sets under keys.
use std::ops::ControlFlow;

use super::query::{self, Form};
use super::{Places, add, search};
use crate::cmd::cx::{ReadCx, WriteCx};
use crate::cmd::sorted_set::{add_pairs, limits_for, put_whole, set_at};
use crate::cmd::spec::Done;
use crate::ds::listpack::Element;
use crate::types::sorted_set::{NewSortedSet, Rules, SortedSetRef, algebra};
use crate::wire::{Args, Key, Out};

impl Places for SortedSetRef<'_> {
    fn score(&self, member: &[u8]) -> Option<f64> {
        SortedSetRef::score(*self, member)
    }

    fn range(
        &self,
        first: f64,
        end: f64,
        visit: &mut dyn FnMut(&[u8], f64) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        // The walk has two reasons to end, of which only the visitor's is told.
        let mut broken = ControlFlow::Continue(());
        let _ = self.walk_from_score(first, &mut |member, score| {
            if score >= end {
                return ControlFlow::Break(());
            }
            broken = member.with_text(|text| visit(text, score));
            broken
        });
        broken
    }
}

/// A set as this family sees it.
fn places<'s>(set: &'s Option<SortedSetRef<'_>>) -> Option<&'s dyn Places> {
    set.as_ref().map(|set| set as &dyn Places)
}

/// GEOADD key [NX|XX] [CH] longitude latitude member [longitude latitude member ...]
pub fn geoadd(cx: &mut WriteCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    let key = args.key()?;
    let add::Addition { nx, xx, ch, members } = add::parse(args)?;
    let (counts, _) = add_pairs(cx, key, &members, Rules { nx, xx, ..Rules::default() })?;
    if cx.is_logged() && counts.added + counts.changed > 0 {
        log_as_zadd(cx, args, &members);
    }
    out.count(if ch { counts.added + counts.changed } else { counts.added });
    Ok(())
}

/// Logs a GEOADD as Redis does: with the scores.
fn log_as_zadd(cx: &mut WriteCx<'_>, args: &Args<'_>, members: &[(f64, &[u8])]) {
    let options = args.count() - 3 * members.len();
    let mut scores: Vec<itoa::Buffer> = members.iter().map(|_| itoa::Buffer::new()).collect();
    let mut words: Vec<&[u8]> = (0..options).map(|at| args.get(at)).collect();
    words[0] = b"zadd";
    for (score, (value, member)) in scores.iter_mut().zip(members) {
        words.extend([score.format(*value as u64).as_bytes(), member]);
    }
    cx.log(&words);
}

/// GEODIST key member1 member2 [M|KM|FT|MI]
pub fn geodist(cx: &ReadCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    let unit = super::geodist_unit(args)?;
    let set = set_at(cx, args.key()?)?;
    super::geodist(places(&set), args, unit, out);
    Ok(())
}

/// GEOHASH key [member [member ...]]
pub fn geohash(cx: &ReadCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    let set = set_at(cx, args.key()?)?;
    super::geohash(places(&set), args, out);
    Ok(())
}

/// GEOPOS key [member [member ...]]
pub fn geopos(cx: &ReadCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    let set = set_at(cx, args.key()?)?;
    super::geopos(places(&set), args, out);
    Ok(())
}

/// A search that only reads.
fn read(cx: &ReadCx<'_>, args: &mut Args<'_>, out: &mut Out, form: Form) -> Done {
    let set = set_at(cx, args.key()?)?;
    let query = query::parse(form, args, places(&set))?;
    search::reply(places(&set), &query, out);
    Ok(())
}

/// A search that may store what it finds.
fn store(cx: &mut WriteCx<'_>, args: &mut Args<'_>, out: &mut Out, form: Form) -> Done {
    args.seek(form.source_index());
    let source = cx.find_counted(args.key()?);
    let set = source.map(SortedSetRef::of).transpose()?;
    let query = query::parse(form, args, places(&set))?;
    let Some(target) = query.target else {
        search::reply(places(&set), &query, out);
        return Ok(());
    };
    let hits = search::search(places(&set), &query);
    put_hits(cx, target.key, hits.scored(&query), out);
    Ok(())
}

/// Stores members and scores, which come in any order, and replies with their number.
fn put_hits<'h>(
    cx: &mut WriteCx<'_>,
    to: Key<'_>,
    hits: impl Iterator<Item = (&'h [u8], f64)>,
    out: &mut Out,
) {
    let mut members: algebra::Scored<'h> =
        hits.map(|(member, score)| (Element::Bytes(member), score)).collect();
    algebra::sort(&mut members);
    let result = NewSortedSet::of(&members, limits_for(cx, to));
    put_whole(cx, to, result, out);
}

/// GEORADIUS key longitude latitude radius M|KM|FT|MI [option ...]
pub fn georadius(cx: &mut WriteCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    store(cx, args, out, Form::Radius)
}

/// GEORADIUS_RO key longitude latitude radius M|KM|FT|MI [option ...]
pub fn georadius_ro(cx: &ReadCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    read(cx, args, out, Form::RadiusRo)
}

/// GEORADIUSBYMEMBER key member radius M|KM|FT|MI [option ...]
pub fn georadiusbymember(cx: &mut WriteCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    store(cx, args, out, Form::ByMember)
}

/// GEORADIUSBYMEMBER_RO key member radius M|KM|FT|MI [option ...]
pub fn georadiusbymember_ro(cx: &ReadCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    read(cx, args, out, Form::ByMemberRo)
}

/// GEOSEARCH key area [option ...]
pub fn geosearch(cx: &ReadCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    read(cx, args, out, Form::Search)
}

/// GEOSEARCHSTORE destination source area [option ...]
pub fn geosearchstore(cx: &mut WriteCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    store(cx, args, out, Form::SearchStore)
}
