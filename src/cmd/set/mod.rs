//! Sets: rows, and what the handlers of the family share.
mod algebra;
mod members;
mod random;

use super::spec::{Group::Set as S, KeyPart, Spec, flag, key, key_count, key_range, keys};
use crate::store::news::class;

/// A result and its sources.
const STORE: &[KeyPart] = &[key("OW update", 1), key_range("RO access", 2, -1, 1)];
const ANY_ORDER: &[&str] = &["nondeterministic_output_order"];
const RANDOM: &[&str] = &["nondeterministic_output"];
const COST_OF_SMALLEST: &str = "O(N*M) where N is the size of the smallest set and M the number of sets.";
const COST_OF_ALL: &str = "O(N) where N is the number of members of all sets.";

/// The rows.
pub const COMMANDS: &[Spec] = &[
    Spec::write("sadd", "key member [member ...]", members::sadd)
        .event(class::SET, "sadd")
        .doc(S, "1.0.0", "Adds members to a set; makes the key when it does not exist.")
        .cost("O(1) for each member.")
        .keys(&[key("RW insert", 1)])
        .with(flag::DENYOOM | flag::FAST),
    Spec::write("srem", "key member [member ...]", members::srem)
        .event(class::SET, "srem")
        .doc(S, "1.0.0", "Removes members from a set, and the key with the last one.")
        .cost("O(1) for each member.")
        .keys(&[key("RW delete", 1)])
        .with(flag::FAST),
    Spec::read("scard", "key", members::scard)
        .doc(S, "1.0.0", "Counts the members of a set.")
        .keys(keys::LOOK)
        .with(flag::FAST),
    Spec::read("sismember", "key member", members::sismember)
        .doc(S, "1.0.0", "Tells whether something is a member of a set.")
        .keys(keys::LOOK)
        .with(flag::FAST),
    Spec::read("smismember", "key member [member ...]", members::smismember)
        .doc(S, "6.2.0", "Tells which of several things are members of a set.")
        .cost("O(1) for each of them.")
        .keys(keys::READ)
        .with(flag::FAST),
    Spec::read("smembers", "key", members::smembers)
        .doc(S, "1.0.0", "Returns all members of a set.")
        .cost("O(N) where N is the size of the set.")
        .keys(keys::READ)
        .tips(ANY_ORDER),
    Spec::write("smove", "source destination member", members::smove)
        .doc(S, "1.0.0", "Takes a member from one set and adds it to another.")
        .keys(&[key("RW access delete", 1), key("RW insert", 2)])
        .with(flag::FAST),
    Spec::read("sscan", "key cursor [MATCH pattern] [COUNT count]", members::sscan)
        .doc(S, "2.8.0", "Returns some members of a set, and where to go on.")
        .cost("O(1) for a call, O(N) for a whole walk over N members.")
        .keys(keys::READ)
        .tips(RANDOM),
    Spec::write("spop", "key [count]", random::spop)
        .event(class::SET, "spop")
        .doc(
            S,
            "1.0.0",
            "Takes random members from a set and returns them; removes the key with the last one.",
        )
        .cost("O(1) for each member.")
        .keys(&[key("RW access delete", 1)])
        .tips(RANDOM)
        .with(flag::FAST),
    Spec::read("srandmember", "key [count]", random::srandmember)
        .doc(S, "1.0.0", "Returns random members of a set.")
        .cost("O(1) for each member.")
        .keys(keys::READ)
        .tips(RANDOM),
    Spec::read("sinter", "key [key ...]", algebra::sinter)
        .doc(S, "1.0.0", "Returns the members that all sets have.")
        .cost(COST_OF_SMALLEST)
        .keys(keys::READ_ALL)
        .tips(ANY_ORDER),
    Spec::read("sintercard", "numkeys key [key ...] [LIMIT limit]", algebra::sintercard)
        .doc(S, "7.0.0", "Counts the members that all sets have.")
        .cost(COST_OF_SMALLEST)
        .keys(&[key_count("RO access", 1)])
        .with(flag::MOVABLEKEYS),
    Spec::write("sinterstore", "destination key [key ...]", algebra::sinterstore)
        .event(class::SET, "sinterstore")
        .doc(S, "1.0.0", "Stores the members that all sets have as a new set.")
        .cost(COST_OF_SMALLEST)
        .keys(STORE)
        .with(flag::DENYOOM),
    Spec::read("sunion", "key [key ...]", algebra::sunion)
        .doc(S, "1.0.0", "Returns the members that any of the sets has.")
        .cost(COST_OF_ALL)
        .keys(keys::READ_ALL)
        .tips(ANY_ORDER),
    Spec::write("sunionstore", "destination key [key ...]", algebra::sunionstore)
        .event(class::SET, "sunionstore")
        .doc(S, "1.0.0", "Stores the members that any of the sets has as a new set.")
        .cost(COST_OF_ALL)
        .keys(STORE)
        .with(flag::DENYOOM),
    Spec::read("sdiff", "key [key ...]", algebra::sdiff)
        .doc(S, "1.0.0", "Returns the members of the first set that no other one has.")
        .cost(COST_OF_ALL)
        .keys(keys::READ_ALL)
        .tips(ANY_ORDER),
    Spec::write("sdiffstore", "destination key [key ...]", algebra::sdiffstore)
        .event(class::SET, "sdiffstore")
        .doc(S, "1.0.0", "Stores the members of the first set that no other one has as a new set.")
        .cost(COST_OF_ALL)
        .keys(STORE)
        .with(flag::DENYOOM),
];
