//! The arguments of GEOADD, as a sorted set takes them.
//!
//! Must stay true: nothing is added before every place is known to be right.
use smallvec::SmallVec;

use super::place;
use crate::wire::{Args, Error};

/// What GEOADD asks for. It replies, notifies and propagates as ZADD with the same options.
#[derive(Clone, Debug, PartialEq)]
pub struct Addition<'a> {
    /// Members that exist stay as they are.
    pub nx: bool,
    /// Only members that exist are changed.
    pub xx: bool,
    /// Changed members count, too.
    pub ch: bool,
    /// Scores and members, at least one.
    pub members: SmallVec<[(f64, &'a [u8]); 4]>,
}

/// Reads everything behind the key. Comes before the set is looked up.
///
/// # Errors
/// A syntax error for both NX and XX, for no member and for a member without its place; else whatever is wrong with
/// the first wrong place.
pub fn parse<'a>(args: &mut Args<'a>) -> Result<Addition<'a>, Error> {
    args.seek(2);
    let (mut nx, mut xx, mut ch) = (false, false, false);
    loop {
        let option = if args.keyword("NX") {
            &mut nx
        } else if args.keyword("XX") {
            &mut xx
        } else if args.keyword("CH") {
            &mut ch
        } else {
            break;
        };
        *option = true;
    }
    if args.is_done() || !args.left().is_multiple_of(3) || nx && xx {
        return Err(Error::Syntax);
    }
    let mut members = SmallVec::new();
    while !args.is_done() {
        members.push((place(args)?.score(), args.bytes()?));
    }
    Ok(Addition { nx, xx, ch, members })
}

#[cfg(test)]
mod tests {
    use super::super::fake::Server;

    /// From a Redis 8.0.6 server.
    #[test]
    fn options_and_counts() {
        Server::with_places().check(&[
            ("geoadd g nx 1 2 Palermo 3 4 new", ":1|"),
            ("geopos g Palermo new", "*2|*2|$18|13.361389338970184|$16|38.1155563954963|*2|$18|2.9999998211860657|$18|3.9999991039325096|"),
            ("geoadd g xx 1 2 Palermo 3 4 newer", ":0|"),
            ("geopos g Palermo newer", "*2|*2|$18|0.9999999403953552|$17|2.000000185646549|*-1|"),
            ("geoadd g XX ch 1 3 Palermo 3 4 new", ":1|"),
            ("geoadd g ch 1 3 Palermo 3 5 new 3 6 newest", ":2|"),
            ("geoadd n xx 1 2 a", ":0|"),
        ]);
    }

    /// From a Redis 8.0.6 server.
    #[test]
    fn the_first_mistake_is_reported() {
        Server::default().check(&[
            ("geoadd n nx xx 1 2 a", "-ERR syntax error|"),
            ("geoadd n nx ch ch", "-ERR syntax error|"),
            ("geoadd n 1 2 a 3 4", "-ERR syntax error|"),
            ("geoadd n 1 2 a x 4 b", "-ERR value is not a valid float|"),
            ("geoadd n 1 2 a 200 4.5 b", "-ERR invalid longitude,latitude pair 200.000000,4.500000|"),
            ("geoadd n 1 inf a", "-ERR invalid longitude,latitude pair 1.000000,inf|"),
            ("geoadd n 1 -1e-9 xx ch nx x", "-ERR value is not a valid float|"),
        ]);
    }
}
