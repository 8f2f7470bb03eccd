//! SCAN: walking the keys of a database in many calls.
//!
//! A cursor is `shard << 40 | prefix << 16 | bits`: the shard that goes on, and the place in the hash order of its
//! table. It needs no memory on our side.
//!
//! Must stay true: a key that is there throughout a whole walk is returned at least once; a call costs as much
//! as COUNT says, or less, whatever the filters leave over.
use super::{TYPE_NAMES, type_name};
use crate::base::glob;
use crate::base::hash::PREFIX_BITS;
use crate::base::num;
use crate::cmd::cx::{Met, ReadCx, ReadStores};
use crate::cmd::element::put_walk;
use crate::cmd::spec::Done;
use crate::ds::raw::block::BlockRef;
use crate::ds::raw::dash::ScanAt;
use crate::store::Store;
use crate::wire::{Args, Error, Out};

const PREFIX_SHIFT: u32 = 16;
const SHARD_SHIFT: u32 = PREFIX_SHIFT + PREFIX_BITS;

/// A position in a walk over all shards.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Cursor {
    shard: usize,
    at: ScanAt,
}

impl Cursor {
    /// `None` where no walk leads: behind the last shard.
    fn from_number(number: u64, shards: usize) -> Option<Cursor> {
        let shard = usize::try_from(number >> SHARD_SHIFT).ok().filter(|shard| *shard < shards)?;
        let prefix = ((number >> PREFIX_SHIFT) & ((1 << PREFIX_BITS) - 1)) as u32;
        Some(Cursor { shard, at: ScanAt { prefix, bits: number as u16 } })
    }

    fn number(self) -> u64 {
        ((self.shard as u64) << SHARD_SHIFT)
            | (u64::from(self.at.prefix) << PREFIX_SHIFT)
            | u64::from(self.at.bits)
    }

    /// The number to go on with after this shard was walked up to `at`; 0 at the end.
    fn next_number(self, at: Option<ScanAt>, shards: usize) -> u64 {
        match at {
            Some(at) => Cursor { at, ..self }.number(),
            None if self.shard + 1 < shards => {
                Cursor { shard: self.shard + 1, at: ScanAt::default() }.number()
            }
            None => 0,
        }
    }
}

/// The shard that a cursor argument leads to; shard 0 for what is no cursor (the handler refuses it).
pub fn shard_of_cursor(arg: &[u8], shards: usize) -> usize {
    num::parse_scan_cursor(arg).and_then(|number| Cursor::from_number(number, shards)).map_or(0, |c| c.shard)
}

/// What SSCAN and its kin shall return.
pub struct ElementFilter<'a> {
    /// Elements to visit in one call.
    pub count: usize,
    pattern: Option<&'a [u8]>,
}

impl<'a> ElementFilter<'a> {
    /// Without options.
    pub const ALL: ElementFilter<'static> = ElementFilter { pattern: None, count: 10 };

    /// Reads one of the options that all walks have. `false`: the next argument is none of them.
    ///
    /// # Errors
    /// What is wrong with its value.
    pub fn take_option(&mut self, args: &mut Args<'a>) -> Result<bool, Error> {
        if args.keyword("COUNT") {
            let count = args.int()?;
            self.count = usize::try_from(count).ok().filter(|count| *count > 0).ok_or(Error::Syntax)?;
        } else if args.keyword("MATCH") {
            self.pattern = Some(args.bytes()?).filter(|pattern| *pattern != b"*");
        } else {
            return Ok(false);
        }
        Ok(true)
    }

    /// Reads all arguments that are left.
    ///
    /// # Errors
    /// Those of what is no option here.
    pub fn parse(args: &mut Args<'a>) -> Result<ElementFilter<'a>, Error> {
        let mut filter = ElementFilter::ALL;
        while !args.is_done() {
            if !filter.take_option(args)? {
                return Err(unknown_option(args));
            }
        }
        Ok(filter)
    }

    /// Whether a name is asked for.
    pub fn accepts(&self, name: &[u8]) -> bool {
        self.pattern.is_none_or(|pattern| glob::matches(pattern, name, false))
    }
}

fn unknown_option(args: &mut Args<'_>) -> Error {
    if args.keyword("NOVALUES") {
        return Error::err("NOVALUES option can only be used in HSCAN");
    }
    Error::Syntax
}

/// What SCAN shall return.
struct Filter<'a> {
    names: ElementFilter<'a>,
    /// `Some(None)`: a type that no key has.
    kind: Option<Option<&'static str>>,
}

impl<'a> Filter<'a> {
    fn parse(args: &mut Args<'a>) -> Result<Filter<'a>, Error> {
        let mut filter = Filter { names: ElementFilter::ALL, kind: None };
        while !args.is_done() {
            if args.keyword("TYPE") {
                let name = args.bytes()?;
                filter.kind =
                    Some(TYPE_NAMES.iter().copied().find(|n| n.as_bytes().eq_ignore_ascii_case(name)));
            } else if !filter.names.take_option(args)? {
                return Err(unknown_option(args));
            }
        }
        Ok(filter)
    }

    /// Whether the key is asked for and there.
    fn accepts(&self, block: BlockRef<'_>, cx: &ReadCx<'_>) -> bool {
        if !self.names.accepts(block.key()) {
            return false;
        }
        if block.deadline_ms().is_some_and(|at| at <= cx.now.ms) {
            cx.met.set(Met::Walked);
            return false;
        }
        self.kind.is_none_or(|kind| kind == Some(type_name(block.kind())))
    }
}

/// The store of `shard`: the only one at hand, or one of all.
fn store_of<'a>(cx: &ReadCx<'a>, shard: usize) -> Option<&'a Store> {
    match cx.stores {
        ReadStores::One(store) => Some(store),
        ReadStores::Many(stores) => stores.get(shard).copied().flatten(),
    }
}

/// SCAN cursor [MATCH pattern] [COUNT count] [TYPE type]
pub fn scan(cx: &ReadCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    let number = num::parse_scan_cursor(args.bytes()?).ok_or(Error::Cursor)?;
    let filter = Filter::parse(args)?;
    let shards = cx.host.shards();
    let (mark, mut found, mut visited, mut next) = (out.mark(), 0, 0, 0);
    let mut cursor = Cursor::from_number(number, shards);
    while let Some(here) = cursor {
        let table = store_of(cx, here.shard).and_then(|store| store.db(cx.caller.db)).map(|db| &db.table);
        let at = table.and_then(|table| {
            table.scan(here.at, filter.names.count - visited, &mut |block| {
                visited += 1;
                if filter.accepts(block, cx) {
                    out.bulk(block.key());
                    found += 1;
                }
            })
        });
        next = here.next_number(at, shards);
        // A shard that ends early leaves the rest of the count to the next one, as if there were one table.
        let goes_on = at.is_none() && next != 0 && visited < filter.names.count;
        cursor = if goes_on { Cursor::from_number(next, shards) } else { None };
    }
    put_walk(out, mark, next, found);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cursors_survive_the_trip() {
        let cursor = Cursor { shard: 3, at: ScanAt { prefix: 0xAB_CDEF, bits: 0x1234 } };
        assert_eq!(cursor.number(), 0x03_AB_CD_EF_12_34);
        assert_eq!(Cursor::from_number(cursor.number(), 4), Some(cursor));
        assert_eq!(Cursor::from_number(cursor.number(), 3), None);
        assert_eq!(Cursor::from_number(u64::MAX, 4), None);
    }

    #[test]
    fn shards_follow_each_other() {
        let cursor = Cursor::from_number(0, 2).unwrap();
        let next = cursor.next_number(None, 2);
        assert_eq!(next, 1 << 40);
        assert_eq!(Cursor::from_number(next, 2).unwrap().next_number(None, 2), 0);
        assert_eq!(cursor.next_number(Some(ScanAt { prefix: 0, bits: 9 }), 2), 9);
    }

    #[test]
    fn bad_cursors_lead_to_the_first_shard() {
        assert_eq!(shard_of_cursor(b"1099511627776", 2), 1);
        for bad in [&b"1099511627776"[..], b"abc", b"", b"99999999999999999999999"] {
            assert_eq!(shard_of_cursor(bad, 1), 0);
        }
    }
}
