//! Keys of any type and whole databases: rows, and what the handlers of the family share.
mod digest;
mod expire;
mod keys;
mod object;
mod scan;

pub use digest::Digest;
pub use scan::shard_of_cursor;

use super::cx::Caller;
use super::spec::keys::{LOOK, LOOK_ALL, READ, UPDATE};
use super::spec::{Group::Generic as G, Group::Server as S, KeyPart, Route, Spec, flag, key, key_range};
use crate::base::num;
use crate::ds::raw::block::{BlockRef, Payload};
use crate::store::Now;
use crate::wire::Error;

const DELETE_ALL: &[KeyPart] = &[key_range("RM delete", 1, -1, 1)];
const LOOK_SECOND: &[KeyPart] = &[key("RO", 2)];
const SUMMED: &[&str] = &["request_policy:multi_shard", "response_policy:agg_sum"];
const VARYING: &[&str] = &["nondeterministic_output"];
const FLUSHED: &[&str] = &["request_policy:all_shards", "response_policy:all_succeeded"];
const KEYSPACE: &[&str] = &["keyspace"];
const KEYSPACE_DANGEROUS: &[&str] = &["keyspace", "dangerous"];

/// The rows.
pub const COMMANDS: &[Spec] = &[
    Spec::write("del", "key [key ...]", keys::del)
        .doc(G, "1.0.0", "Deletes keys.")
        .cost("O(N) where N is the number of keys.")
        .keys(DELETE_ALL)
        .tips(SUMMED),
    Spec::write("unlink", "key [key ...]", keys::del)
        .doc(G, "4.0.0", "Deletes keys; what takes long to free is freed in the background.")
        .cost("O(1) for each key; freeing goes on in another thread.")
        .keys(DELETE_ALL)
        .tips(SUMMED)
        .with(flag::FAST),
    Spec::read("exists", "key [key ...]", keys::exists)
        .doc(G, "1.0.0", "Counts how many of the given keys exist.")
        .cost("O(N) where N is the number of keys.")
        .keys(LOOK_ALL)
        .tips(SUMMED)
        .with(flag::FAST),
    Spec::read("touch", "key [key ...]", keys::touch_keys)
        .doc(G, "3.2.1", "Marks keys as used now and counts those that exist.")
        .cost("O(N) where N is the number of keys.")
        .keys(LOOK_ALL)
        .tips(SUMMED)
        .with(flag::FAST),
    Spec::read("type", "key", keys::type_of)
        .doc(G, "1.0.0", "Tells the type of the value under a key.")
        .keys(LOOK)
        .with(flag::FAST),
    Spec::write("rename", "key newkey", keys::rename)
        .doc(G, "1.0.0", "Gives a key another name, in place of the key that has it.")
        .keys(&[key("RW access delete", 1), key("OW update", 2)]),
    Spec::write("renamenx", "key newkey", keys::renamenx)
        .doc(G, "1.0.0", "Gives a key another name, only when no key has it.")
        .keys(&[key("RW access delete", 1), key("OW insert", 2)])
        .with(flag::FAST),
    Spec::write("copy", "source destination [DB destination-db] [REPLACE]", keys::copy)
        .doc(G, "6.2.0", "Copies a value to another key, in this or another database.")
        .cost("O(N) where N is the size of the value.")
        .keys(&[key("RO access", 1), key("OW update", 2)])
        .with(flag::DENYOOM),
    Spec::write("move", "key db", keys::move_key)
        .doc(G, "1.0.0", "Moves a key to another database.")
        .keys(&[key("RW access update", 1)])
        .with(flag::FAST),
    Spec::read("randomkey", "", keys::randomkey)
        .doc(G, "1.0.0", "Returns the name of some key.")
        .route(Route::All)
        .tips(&["request_policy:all_shards", "response_policy:special", "nondeterministic_output"]),
    Spec::read("keys", "pattern", keys::keys)
        .doc(G, "1.0.0", "Returns the names of all keys that match a pattern.")
        .cost("O(N) where N is the number of keys in the database; O(1) for a pattern without special characters.")
        .route(Route::All)
        .cat(&["dangerous"])
        .tips(&["request_policy:all_shards", "nondeterministic_output_order"]),
    Spec::read("scan", "cursor [MATCH pattern] [COUNT count] [TYPE type]", scan::scan)
        .doc(G, "2.8.0", "Returns the names of some keys, and where to go on.")
        .cost("O(1) for a call, O(N) for a whole walk over N keys.")
        .route(Route::Cursor)
        .tips(&["nondeterministic_output", "request_policy:special", "response_policy:special"]),
    Spec::read("dbsize", "", keys::dbsize)
        .doc(S, "1.0.0", "Counts the keys of the database.")
        .route(Route::All)
        .cat(KEYSPACE)
        .tips(&["request_policy:all_shards", "response_policy:agg_sum"])
        .with(flag::FAST),
    Spec::write("flushdb", "[ASYNC|SYNC]", keys::flushdb)
        .doc(S, "1.0.0", "Deletes all keys of the database.")
        .cost("O(1); freeing goes on in another thread.")
        .route(Route::All)
        .cat(KEYSPACE_DANGEROUS)
        .tips(FLUSHED),
    Spec::write("flushall", "[ASYNC|SYNC]", keys::flushall)
        .doc(S, "1.0.0", "Deletes all keys of all databases.")
        .cost("O(N) where N is the number of databases; freeing goes on in another thread.")
        .route(Route::All)
        .cat(KEYSPACE_DANGEROUS)
        .tips(FLUSHED),
    Spec::write("swapdb", "index1 index2", keys::swapdb)
        .doc(S, "4.0.0", "Exchanges two databases.")
        .route(Route::All)
        .cat(KEYSPACE_DANGEROUS)
        .with(flag::FAST),
    Spec::write("expire", "key seconds [NX|XX|GT|LT]", expire::expire)
        .doc(G, "1.0.0", "Sets after how many seconds a key expires.")
        .keys(UPDATE)
        .with(flag::FAST),
    Spec::write("pexpire", "key milliseconds [NX|XX|GT|LT]", expire::pexpire)
        .doc(G, "2.6.0", "Sets after how many milliseconds a key expires.")
        .keys(UPDATE)
        .with(flag::FAST),
    Spec::write("expireat", "key unix-time-seconds [NX|XX|GT|LT]", expire::expireat)
        .doc(G, "1.2.0", "Sets when a key expires, as a Unix time in seconds.")
        .keys(UPDATE)
        .with(flag::FAST),
    Spec::write("pexpireat", "key unix-time-milliseconds [NX|XX|GT|LT]", expire::pexpireat)
        .doc(G, "2.6.0", "Sets when a key expires, as a Unix time in milliseconds.")
        .keys(UPDATE)
        .with(flag::FAST),
    Spec::read("ttl", "key", expire::ttl)
        .doc(G, "1.0.0", "Tells after how many seconds a key expires.")
        .keys(READ)
        .tips(VARYING)
        .with(flag::FAST),
    Spec::read("pttl", "key", expire::pttl)
        .doc(G, "2.6.0", "Tells after how many milliseconds a key expires.")
        .keys(READ)
        .tips(VARYING)
        .with(flag::FAST),
    Spec::read("expiretime", "key", expire::expiretime)
        .doc(G, "7.0.0", "Tells when a key expires, as a Unix time in seconds.")
        .keys(READ)
        .with(flag::FAST),
    Spec::read("pexpiretime", "key", expire::pexpiretime)
        .doc(G, "7.0.0", "Tells when a key expires, as a Unix time in milliseconds.")
        .keys(READ)
        .with(flag::FAST),
    Spec::write("persist", "key", expire::persist)
        .doc(G, "2.2.0", "Makes a key stay for ever.")
        .keys(UPDATE)
        .with(flag::FAST),
    Spec::container("object", OBJECT_ROWS).doc(G, "2.2.3", "Looks at how a value is kept."),
];

const OBJECT_ROWS: &[Spec] = &[
    Spec::read("object|encoding", "key", object::object_encoding)
        .doc(G, "2.2.3", "Tells how the value of a key is represented.")
        .keys(LOOK_SECOND)
        .tips(VARYING),
    Spec::read("object|freq", "key", object::object_freq)
        .doc(G, "4.0.0", "Tells how often a key is used, on a logarithmic scale.")
        .keys(LOOK_SECOND)
        .tips(VARYING),
    Spec::conn("object|help", "", object::help).doc(G, "6.2.0", "Explains the subcommands."),
    Spec::read("object|idletime", "key", object::object_idletime)
        .doc(G, "2.2.3", "Tells for how many seconds a key was not used.")
        .keys(LOOK_SECOND)
        .tips(VARYING),
    Spec::read("object|refcount", "key", object::object_refcount)
        .doc(G, "2.2.3", "Tells how many references the value of a key has.")
        .keys(LOOK_SECOND)
        .tips(VARYING),
];

/// MEMORY USAGE, for the container that the server's own commands have.
pub const MEMORY_USAGE: Spec = Spec::read("memory|usage", "key [SAMPLES count]", object::memory_usage)
    .doc(S, "4.0.0", "Tells how many bytes a key takes.")
    .keys(LOOK_SECOND);

/// DEBUG DIGEST, for the container that the server's own commands have; so are the following.
pub const DEBUG_DIGEST: Spec = debug(Spec::read("debug|digest", "", digest::digest).route(Route::All))
    .doc(S, "1.0.0", "Returns a digest of all data.")
    .cost("O(N) where N is the size of the data.");

/// DEBUG DIGEST-VALUE.
pub const DEBUG_DIGEST_VALUE: Spec =
    debug(Spec::read("debug|digest-value", "[key ...]", digest::digest_value).keys(&[key_range("RO", 2, -1, 1)]))
        .doc(S, "1.0.0", "Returns digests of values.")
        .cost("O(N) where N is the size of the values.");

/// DEBUG OBJECT.
pub const DEBUG_OBJECT: Spec =
    debug(Spec::read("debug|object", "key", object::debug_object).keys(LOOK_SECOND)).doc(
        S,
        "1.0.0",
        "Tells low-level facts about a key.",
    );

/// DEBUG SDSLEN.
pub const DEBUG_SDSLEN: Spec =
    debug(Spec::read("debug|sdslen", "key", object::debug_sdslen).keys(LOOK_SECOND)).doc(
        S,
        "1.0.0",
        "Tells the lengths of a key and its string.",
    );

/// DEBUG LISTPACK.
pub const DEBUG_LISTPACK: Spec =
    debug(Spec::read("debug|listpack", "key", object::debug_listpack).keys(LOOK_SECOND)).doc(
        S,
        "1.0.0",
        "Shows the structure of a packed value.",
    );

/// A row of the DEBUG container: for administrators, and never on the fast way.
const fn debug(spec: Spec) -> Spec {
    spec.without(flag::READONLY | flag::NO_INTERCEPT)
        .with(flag::ADMIN | flag::NOSCRIPT | flag::LOADING | flag::STALE | flag::PROTECTED)
}

/// The types that a key can have.
const TYPE_NAMES: &[&str] = &["string"];

/// The type of a value, as TYPE names it.
fn type_name(value: Payload<'_>) -> &'static str {
    match value {
        Payload::Bytes(_) | Payload::Int(_) => TYPE_NAMES[0],
    }
}

fn int_arg(arg: &[u8]) -> Result<i64, Error> {
    num::parse_i64(arg).ok_or(Error::NotInteger)
}

/// Marks a use by a command that writes.
fn touch(block: BlockRef<'_>, now: Now, caller: &Caller) {
    if !caller.no_touch {
        block.touch(now.access);
    }
}
