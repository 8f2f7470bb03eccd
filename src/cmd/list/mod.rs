//! Lists: rows, and what the handlers of the family share.
mod blocking;
mod ends;
mod inner;
mod moving;
mod read;

use super::spec::keys::{LOOK, READ, UPDATE};
use super::spec::{Group::List as L, KeyPart, Spec, flag, key, key_count, key_range};
use crate::ds::list::Side;
use crate::store::news::{Event, class};
use crate::wire::args::option_word;
use crate::wire::{Args, Error};

const INSERT: &[KeyPart] = &[key("RW insert", 1)];
const DELETE: &[KeyPart] = &[key("RW delete", 1)];
const POP: &[KeyPart] = &[key("RW access delete", 1)];
const MOVE: &[KeyPart] = &[key("RW access delete", 1), key("RW insert", 2)];
const POP_SOME: &[KeyPart] = &[key_range("RW access delete", 1, -2, 1)];
const EACH_KEY: &str = "O(N) where N is the number of provided keys.";
const EACH_ADDED: &str = "O(N) where N is the number of elements added.";

/// The rows.
pub const COMMANDS: &[Spec] = &[
    Spec::write("lpush", "key element [element ...]", ends::lpush)
        .event(class::LIST, "lpush")
        .doc(L, "1.0.0", "Puts elements in front of a list; makes the key when it does not exist.")
        .cost(EACH_ADDED)
        .keys(INSERT)
        .with(flag::DENYOOM | flag::FAST),
    Spec::write("rpush", "key element [element ...]", ends::rpush)
        .event(class::LIST, "rpush")
        .doc(L, "1.0.0", "Puts elements at the end of a list; makes the key when it does not exist.")
        .cost(EACH_ADDED)
        .keys(INSERT)
        .with(flag::DENYOOM | flag::FAST),
    Spec::write("lpushx", "key element [element ...]", ends::lpushx)
        .event(class::LIST, "lpush")
        .doc(L, "2.2.0", "Puts elements in front of a list, only when the list exists.")
        .cost(EACH_ADDED)
        .keys(INSERT)
        .with(flag::DENYOOM | flag::FAST),
    Spec::write("rpushx", "key element [element ...]", ends::rpushx)
        .event(class::LIST, "rpush")
        .doc(L, "2.2.0", "Puts elements at the end of a list, only when the list exists.")
        .cost(EACH_ADDED)
        .keys(INSERT)
        .with(flag::DENYOOM | flag::FAST),
    Spec::write("lpop", "key [count]", ends::lpop)
        .event(class::LIST, "lpop")
        .doc(L, "1.0.0", "Takes the first elements out of a list and returns them.")
        .cost("O(N) where N is the number of elements returned.")
        .keys(POP)
        .with(flag::FAST),
    Spec::write("rpop", "key [count]", ends::rpop)
        .event(class::LIST, "rpop")
        .doc(L, "1.0.0", "Takes the last elements out of a list and returns them, the last one first.")
        .cost("O(N) where N is the number of elements returned.")
        .keys(POP)
        .with(flag::FAST),
    Spec::write("lmpop", "numkeys key [key ...] LEFT|RIGHT [COUNT count]", ends::lmpop)
        .doc(L, "7.0.0", "Takes elements out of the first of several lists that exists and returns them.")
        .cost("O(N+M) where N is the number of keys and M is the number of elements returned.")
        .keys(&[key_count("RW access delete", 1)])
        .with(flag::MOVABLEKEYS),
    Spec::read("llen", "key", read::llen)
        .doc(L, "1.0.0", "Returns the length of a list.")
        .keys(LOOK)
        .with(flag::FAST),
    Spec::read("lindex", "key index", read::lindex)
        .doc(L, "1.0.0", "Returns an element of a list by its index.")
        .cost("O(N) where N is the distance to the nearer end: elements for short lists, nodes for long ones.")
        .keys(READ),
    Spec::read("lrange", "key start stop", read::lrange)
        .doc(L, "1.0.0", "Returns a part of a list.")
        .cost("O(S+N) where S is the distance of the start to the nearer end and N is the number of elements returned.")
        .keys(READ),
    Spec::read("lpos", "key element [RANK rank] [COUNT num-matches:integer] [MAXLEN len]", read::lpos)
        .doc(L, "6.0.6", "Returns the indexes of the elements that equal the given one.")
        .cost("O(N) where N is the number of elements looked at.")
        .keys(READ),
    Spec::write("lset", "key index element", inner::lset)
        .event(class::LIST, "lset")
        .doc(L, "1.0.0", "Replaces an element of a list by its index.")
        .cost("O(N) where N is the distance to the nearer end: elements for short lists, nodes for long ones.")
        .keys(UPDATE)
        .with(flag::DENYOOM),
    Spec::write("linsert", "key BEFORE|AFTER pivot element", inner::linsert)
        .event(class::LIST, "linsert")
        .doc(L, "2.2.0", "Puts an element beside another element of a list.")
        .cost("O(N) where N is the number of elements before the other one.")
        .keys(INSERT)
        .with(flag::DENYOOM),
    Spec::write("lrem", "key count element", inner::lrem)
        .event(class::LIST, "lrem")
        .doc(L, "1.0.0", "Takes elements that equal the given one out of a list.")
        .cost("O(N+M) where N is the length of the list and M is the number of elements taken out.")
        .keys(DELETE),
    Spec::write("ltrim", "key start stop", inner::ltrim)
        .event(class::LIST, "ltrim")
        .doc(L, "1.0.0", "Leaves only a part of a list.")
        .cost("O(N) where N is the number of elements taken out.")
        .keys(DELETE),
    Spec::write("lmove", "source destination LEFT|RIGHT LEFT|RIGHT", moving::lmove)
        .doc(L, "6.2.0", "Takes an element out at an end of a list, puts it at an end of another and returns it.")
        .keys(MOVE)
        .with(flag::DENYOOM),
    Spec::write("rpoplpush", "source destination", moving::rpoplpush)
        .doc(L, "1.2.0", "Takes the last element out of a list, puts it in front of another and returns it.")
        .keys(MOVE)
        .with(flag::DENYOOM),
    Spec::write("blpop", "key [key ...] timeout:double", blocking::blpop)
        .event(class::LIST, "lpop")
        .doc(L, "2.0.0", "Takes the first element out of the first of several lists that has one; waits for one.")
        .cost(EACH_KEY)
        .keys(POP_SOME)
        .with(flag::BLOCKING),
    Spec::write("brpop", "key [key ...] timeout:double", blocking::brpop)
        .event(class::LIST, "rpop")
        .doc(L, "2.0.0", "Takes the last element out of the first of several lists that has one; waits for one.")
        .cost(EACH_KEY)
        .keys(POP_SOME)
        .with(flag::BLOCKING),
    Spec::write("blmpop", "timeout:double numkeys key [key ...] LEFT|RIGHT [COUNT count]", blocking::blmpop)
        .doc(L, "7.0.0", "Takes elements out of the first of several lists that has some; waits for some.")
        .cost("O(N+M) where N is the number of keys and M is the number of elements returned.")
        .keys(&[key_count("RW access delete", 2)])
        .with(flag::BLOCKING | flag::MOVABLEKEYS),
    Spec::write("blmove", "source destination LEFT|RIGHT LEFT|RIGHT timeout:double", blocking::blmove)
        .doc(L, "6.2.0", "Moves an element from an end of a list to an end of another and returns it; waits for one.")
        .keys(MOVE)
        .with(flag::DENYOOM | flag::BLOCKING),
    Spec::write("brpoplpush", "source destination timeout:double", blocking::brpoplpush)
        .doc(L, "2.2.0", "Moves the last element of a list to the front of another and returns it; waits for one.")
        .keys(MOVE)
        .with(flag::DENYOOM | flag::BLOCKING),
];

/// `LEFT` or `RIGHT` at the cursor.
fn side(args: &mut Args<'_>) -> Result<Side, Error> {
    const LEFT: u64 = option_word(b"LEFT");
    const RIGHT: u64 = option_word(b"RIGHT");
    let side = match args.option() {
        LEFT => Side::Front,
        RIGHT => Side::Back,
        _ => return Err(Error::Syntax),
    };
    args.skip();
    Ok(side)
}

const LPOP: Event = Event { class: class::LIST, name: "lpop" };
const RPOP: Event = Event { class: class::LIST, name: "rpop" };

/// What stands for elements taken out at an end.
fn popped(side: Side) -> &'static [Event] {
    match side {
        Side::Front => &[LPOP],
        Side::Back => &[RPOP],
    }
}

/// First place and number of places that `start` and `stop` mean in a list of `len`, negative ones counted from the
/// end. A stop before the list is no place.
#[inline]
fn places(start: i64, stop: i64, len: usize) -> (usize, usize) {
    let end = len as i64;
    let first = if start < 0 { (end + start).max(0) } else { start };
    let last = if stop < 0 { end + stop } else { stop.min(end - 1) };
    if first > last || first >= end { (0, 0) } else { (first as usize, (last - first) as usize + 1) }
}

/// What takes an element out at an end,
const fn pop_word(side: Side) -> &'static [u8] {
    match side {
        Side::Front => b"LPOP",
        Side::Back => b"RPOP",
    }
}

/// and the word for that end.
const fn side_word(side: Side) -> &'static [u8] {
    match side {
        Side::Front => b"LEFT",
        Side::Back => b"RIGHT",
    }
}

#[cfg(test)]
mod tests {
    use super::places;

    #[test]
    fn ranges() {
        for (start, stop, found) in [
            (0, -1, (0, 5)),
            (1, 2, (1, 2)),
            (-2, -1, (3, 2)),
            (-100, 1, (0, 2)),
            (-100, 100, (0, 5)),
            (0, -6, (0, 0)),
            (-100, -90, (0, 0)),
            (3, 2, (0, 0)),
            (5, 9, (0, 0)),
            (4, 4, (4, 1)),
            (i64::MIN, i64::MAX, (0, 5)),
            (i64::MAX, i64::MIN, (0, 0)),
        ] {
            assert_eq!(places(start, stop, 5), found, "{start} {stop}");
        }
    }
}
