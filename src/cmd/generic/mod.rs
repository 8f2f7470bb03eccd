//! Keys of any type and whole databases: rows, and what the handlers of the family share.
mod debug;
mod digest;
mod dump;
mod expire;
mod keys;
mod object;
mod scan;
mod sort;

pub use digest::Digest;
pub use scan::{ElementFilter, shard_of_cursor};

use super::spec::keys::{LOOK, LOOK_ALL, OVERWRITE, READ, UPDATE};
use super::spec::{
    Group::Generic as G, Group::Server as S, KeyPart, Route, Spec, flag, key, key_behind_last, key_range,
    keys_derived,
};
use crate::base::num;
use crate::ds::object::Kind;
use crate::store::news::class;
use crate::wire::Error;

const DELETE_ALL: &[KeyPart] = &[key_range("RM delete", 1, -1, 1)];
const LOOK_SECOND: &[KeyPart] = &[key("RO", 2)];
const SUMMED: &[&str] = &["request_policy:multi_shard", "response_policy:agg_sum"];
const VARYING: &[&str] = &["nondeterministic_output"];
const FLUSHED: &[&str] = &["request_policy:all_shards", "response_policy:all_succeeded"];
/// What SORT reads; which other keys, its patterns and the data say.
const SORTED: &[KeyPart] = &[key("RO access", 1), keys_derived("RO access")];
/// And where it may store.
const SORTED_STORED: &[KeyPart] =
    &[SORTED[0], SORTED[1], key_behind_last("OW update", "STORE", &[("LIMIT", 2), ("GET", 1), ("BY", 1)])];
const SORTED_TYPES: &[&str] = &["set", "sortedset", "list", "dangerous"];
const SORT_COST: &str = "O(N+M*log(M)) where N is the number of elements and M the number of returned ones; O(N) when nothing is sorted.";
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
        .event(class::GENERIC, "copy_to")
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
        .event(class::GENERIC, "persist")
        .doc(G, "2.2.0", "Makes a key stay for ever.")
        .keys(UPDATE)
        .with(flag::FAST),
    Spec::write(
        "sort",
        "key [BY by-pattern] [LIMIT offset count] [GET get-pattern [GET get-pattern ...]] [ASC|DESC] [ALPHA] [STORE destination]",
        sort::sort,
    )
    .event(class::LIST, "sortstore")
    .doc(G, "1.0.0", "Sorts the elements of a list, a set or a sorted set, and returns or stores them.")
    .cost(SORT_COST)
    .keys(SORTED_STORED)
    .route(Route::Patterns)
    .cat(SORTED_TYPES)
    .with(flag::DENYOOM | flag::MOVABLEKEYS),
    Spec::read(
        "sort_ro",
        "key [BY by-pattern] [LIMIT offset count] [GET get-pattern [GET get-pattern ...]] [ASC|DESC] [ALPHA]",
        sort::sort_ro,
    )
    .doc(G, "7.0.0", "Sorts the elements of a list, a set or a sorted set, and returns them.")
    .cost(SORT_COST)
    .keys(SORTED)
    .route(Route::Patterns)
    .cat(SORTED_TYPES)
    .with(flag::MOVABLEKEYS),
    Spec::read("dump", "key", dump::dump)
        .doc(G, "2.6.0", "Returns the value of a key in serialized form.")
        .cost("O(N*M) where N is the number of elements of the value and M their average size.")
        .keys(READ)
        .tips(VARYING),
    Spec::write(
        "restore",
        "key ttl serialized-value [REPLACE] [ABSTTL] [IDLETIME seconds] [FREQ frequency]",
        dump::restore,
    )
    .event(class::GENERIC, "restore")
    .doc(G, "2.6.0", "Makes a key out of a serialized value.")
    .cost("O(N*M) where N is the number of elements of the value and M their average size; O(N*M*log(N)) for sorted sets.")
    .keys(OVERWRITE)
    .cat(&["dangerous"])
    .with(flag::DENYOOM),
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
pub const DEBUG_DIGEST_VALUE: Spec = debug(
    Spec::read("debug|digest-value", "[key ...]", digest::digest_value)
        .keys(&[key_range("RO", 2, -1, 1)])
        .with(flag::NO_MANDATORY_KEYS),
)
.doc(S, "1.0.0", "Returns digests of values.")
.cost("O(N) where N is the size of the values.");

/// DEBUG OBJECT.
pub const DEBUG_OBJECT: Spec = debug(
    Spec::read("debug|object", "key", debug::debug_object).keys(LOOK_SECOND),
)
.doc(S, "1.0.0", "Tells low-level facts about a key.");

/// DEBUG POPULATE.
pub const DEBUG_POPULATE: Spec =
    Spec::write("debug|populate", "count [prefix [bytes]]", debug::debug_populate)
        .doc(S, "1.0.0", "Makes keys that hold strings.")
        .cost("O(N) where N is the number of keys.")
        .without(flag::WRITE | flag::NO_INTERCEPT)
        .with(flag::ADMIN | flag::NOSCRIPT | flag::PROTECTED)
        .route(Route::All);

/// DEBUG SDSLEN.
pub const DEBUG_SDSLEN: Spec = debug(
    Spec::read("debug|sdslen", "key", debug::debug_sdslen).keys(LOOK_SECOND),
)
.doc(S, "1.0.0", "Tells the lengths of a key and its string.");

/// DEBUG LISTPACK.
pub const DEBUG_LISTPACK: Spec = debug(
    Spec::read("debug|listpack", "key", debug::debug_listpack).keys(LOOK_SECOND),
)
.doc(S, "1.0.0", "Shows the structure of a packed value.");

/// DEBUG QUICKLIST.
pub const DEBUG_QUICKLIST: Spec = debug(
    Spec::read("debug|quicklist", "key [full]", debug::debug_quicklist).keys(LOOK_SECOND),
)
.doc(S, "1.0.0", "Shows the structure of a long list.");

/// DEBUG HTSTATS.
pub const DEBUG_HTSTATS: Spec = debug(
    Spec::read("debug|htstats", "index [full]", debug::debug_htstats).route(Route::All),
)
.doc(S, "1.0.0", "Tells the size of the table of a database.");

/// DEBUG HTSTATS-KEY.
pub const DEBUG_HTSTATS_KEY: Spec = debug(
    Spec::read("debug|htstats-key", "key [full]", debug::debug_htstats_key).keys(LOOK_SECOND),
)
.doc(S, "1.0.0", "Tells the size of the table that a value is.");

/// A row of the DEBUG container: for administrators, and never on the fast way.
const fn debug(spec: Spec) -> Spec {
    spec.without(flag::READONLY | flag::NO_INTERCEPT)
        .with(flag::ADMIN | flag::NOSCRIPT | flag::LOADING | flag::STALE | flag::PROTECTED)
}

/// The types that a key can have.
const TYPE_NAMES: &[&str] = &["string", "list", "set", "zset", "hash", "stream"];

/// The type of a value, as TYPE names it.
fn type_name(kind: Kind) -> &'static str {
    TYPE_NAMES[match kind {
        Kind::String => 0,
        Kind::List => 1,
        Kind::Set => 2,
        Kind::SortedSet => 3,
        Kind::Hash => 4,
        Kind::Stream => 5,
    }]
}

fn int_arg(arg: &[u8]) -> Result<i64, Error> {
    num::parse_i64(arg).ok_or(Error::NotInteger)
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::sync::Arc;

    use super::*;
    use crate::base::hash::KeyHash;
    use crate::cmd::cx::{Caller, ReadCx, ReadStores, WriteCx, WriteStores};
    use crate::cmd::spec::Handler;
    use crate::cmd::string;
    use crate::config::Settings;
    use crate::host::{Counters, Facts, Host};
    use crate::store::Store;
    use crate::wire::{Args, Out, Span};

    /// Some shards without threads: every command sees all of them.
    struct Shards {
        host: Host,
        stores: Vec<Store>,
        caller: Caller,
    }

    impl Shards {
        fn new(shards: usize) -> Shards {
            let settings = Settings::default();
            let facts = Facts {
                settings: settings.clone(),
                shards,
                commands: 0,
                config_file: None,
                io_driver: "none",
            };
            let host = Host::new(facts);
            let settings = Arc::new(settings);
            let store = |counters: &Arc<Counters>| {
                let mut store = Store::new(settings.clone(), counters.clone());
                store.lazy_free = Some(host.lazy_free.clone());
                store
            };
            let stores = host.counters.iter().map(store).collect();
            Shards { host, stores, caller: Caller::default() }
        }

        /// Moves every shard's clock.
        fn later(&mut self, ms: u64) {
            self.stores.iter_mut().for_each(|store| store.now.ms += ms);
        }

        /// Executes a command of words (`''`: an empty one) and returns its reply, line ends shown as blanks.
        fn run(&mut self, line: &str) -> String {
            let words: Vec<&str> = line.split(' ').map(|word| if word == "''" { "" } else { word }).collect();
            if words[0] == "select" {
                self.caller.db = words[1].parse().unwrap();
                return "+OK".into();
            }
            let (mut buf, mut spans) = (Vec::new(), Vec::new());
            for word in &words {
                spans.push(Span { at: buf.len() as u32, len: word.len() as u32 });
                buf.extend_from_slice(word.as_bytes());
            }
            let mut args = Args::new(&buf, &spans, (0, KeyHash::of(b"")));
            let both = words.iter().take(2).copied().collect::<Vec<_>>().join("|");
            let extra =
                [MEMORY_USAGE, DEBUG_DIGEST, DEBUG_DIGEST_VALUE, DEBUG_OBJECT, DEBUG_SDSLEN, DEBUG_LISTPACK];
            let mut rows = COMMANDS.iter().chain(string::COMMANDS).chain(OBJECT_ROWS).chain(&extra);
            let row = rows.rfind(|row| row.name == words[0] || row.name == both).expect(line);
            assert!(row.accepts(words.len()), "{line}");
            args.seek(1 + usize::from(row.name == both));
            let mut out = Out::default();
            if let Err(error) = self.call(row.handler, &mut args, &mut out) {
                assert!(out.buf.is_empty(), "{line}");
                out.error(&error);
            }
            String::from_utf8(out.buf).unwrap().trim_end().replace("\r\n", " ")
        }

        fn call(&mut self, handler: Handler, args: &mut Args<'_>, out: &mut Out) -> Result<(), Error> {
            let (host, caller, now) = (&self.host, &self.caller, self.stores[0].now);
            let counters = &*host.counters[0];
            match handler {
                Handler::Read(f) => {
                    let stores: Vec<_> = self.stores.iter().map(Some).collect();
                    let stores = ReadStores::Many(&stores);
                    let now = now.with_no_touch(caller.no_touch);
                    f(
                        &ReadCx {
                            stores,
                            caller,
                            host,
                            counters,
                            now,
                            met: Cell::default(),
                            wait: Cell::default(),
                        },
                        args,
                        out,
                    )
                }
                Handler::Write(f) => {
                    let stores = WriteStores::Many(&mut self.stores);
                    f(&mut WriteCx::new(stores, caller, host, counters, now, &[]), args, out)
                }
                Handler::Conn(_) | Handler::Whole(_) | Handler::Container => unreachable!(),
            }
        }
    }

    /// Commands and the replies of Redis 8.0.6 to them.
    const REPLIES: &str = "\
set a 1 => +OK
set b two => +OK
set c -77 EX 5000 => +OK
select 3 => +OK
set d x PX 100000 => +OK
set '' '' => +OK
select 15 => +OK
set e 012 => +OK
debug digest => +da565bc951d72671ef3fafb02eabfc25f8688d15
debug digest-value a e '' nokey => *4 +0000000000000000000000000000000000000000 +baf361afd23f2728edc67cf49c8002712883a1ec +0000000000000000000000000000000000000000 +0000000000000000000000000000000000000000
select 0 => +OK
move a 99999999999 => -ERR value is out of range, value must between -2147483648 and 2147483647
move a abc => -ERR value is not an integer or out of range
move a 16 => -ERR DB index is out of range
move a 0 => -ERR source and destination objects are the same
copy a a => -ERR source and destination objects are the same
copy a b => :0
copy a b db 99999999999999 => -ERR value is out of range, value must between -2147483648 and 2147483647
copy a b db => -ERR syntax error
copy a b db 3 replace => :1
copy a b replace => :1
copy a a db 5 => :1
copy a a db 5 => :0
copy a a db 5 replace => :1
copy nokey b replace => :0
copy c c2 => :1
debug digest => +9c5699ce5a13ddecd60cbd5e90a7b7428934fe54
ttl c2 => :5000
swapdb 99999999999 0 => -ERR invalid first DB index
swapdb 0 a => -ERR invalid second DB index
swapdb 0 16 => -ERR DB index is out of range
swapdb 0 0 => +OK
swapdb 0 3 => +OK
debug digest => +d5678f3ba1795fbeaf712e962460dc54d95c24ab
dbsize => :3
exists '' '' d e => :3
type d => +string
type nokey => +none
swapdb 3 0 => +OK
flushdb foo => -ERR syntax error
flushdb sync async => -ERR syntax error
scan abc foo => -ERR invalid cursor
scan 0 count 0 => -ERR syntax error
scan 0 count a => -ERR value is not an integer or out of range
scan 0 novalues => -ERR NOVALUES option can only be used in HSCAN
scan 99999999999999999999 => -ERR invalid cursor
scan -5 => -ERR invalid cursor
expire a 1x => -ERR value is not an integer or out of range
expire a 1 foo => -ERR Unsupported option foo
expire a 1 nx xx => -ERR NX and XX, GT or LT options at the same time are not compatible
expire a 1 gt lt => -ERR GT and LT options at the same time are not compatible
expire a 1x foo => -ERR Unsupported option foo
expire a 9223372036854775807 => -ERR invalid expire time in 'expire' command
expire a 9223372036854775 => -ERR invalid expire time in 'expire' command
expire a -9223372036854775807 => -ERR invalid expire time in 'expire' command
pexpireat a -9223372036854775807 => :1
exists a => :0
expire nokey 5 => :0
set a 1 => +OK
expire a 100 gt => :0
expire a 100 xx => :0
expire a 100 lt => :1
expire a 200 lt => :0
expire a 50 gt => :0
expire a 200 gt => :1
expire a 100 xx gt => :0
expire a 100 nx => :0
ttl a => :200
persist a => :1
persist a => :0
persist nokey => :0
ttl a => :-1
pttl a => :-1
pttl nokey => :-2
expireat a 99999999999 => :1
expiretime a => :99999999999
pexpiretime a => :99999999999000
expiretime nokey => :-2
pexpireat a 99999999999999 xx => :1
pexpiretime a => :99999999999999
set n 1 => +OK
object refcount a => :2147483647
object encoding a => $3 int
object encoding b => $3 int
object encoding c => $3 int
object refcount nokey => $-1
object freq a => -ERR An LFU maxmemory policy is not selected, access frequency not tracked. Please note that when switching between policies at runtime LRU and LFU data will take some time to adjust.
object freq nokey => $-1
memory usage a samples -1 => -ERR syntax error
memory usage a samples => -ERR syntax error
memory usage a samples x => -ERR value is not an integer or out of range
memory usage a foo 1 => -ERR syntax error
debug object nokey => -ERR no such key
rename nokey a => -ERR no such key
rename a a => +OK
renamenx a a => :0
rename nokey nokey => -ERR no such key
renamenx a b => :0
rename c a => +OK
ttl a => :5000
exists c => :0
renamenx a zz => :1
exists a => :0
set a1 1 => +OK
set a2 1 => +OK
set a3 1 => +OK
renamenx a1 a4 => :1
rename a2 a5 => +OK
del a1 a2 a3 a3 a4 a5 => :3
keys zz => *1 $2 zz
keys nokey => *0
keys z? => *1 $2 zz
keys [z]z => *1 $2 zz
move zz 9 => :1
exists zz => :0
select 9 => +OK
ttl zz => :5000
keys * => *1 $2 zz
keys '' => *0
set zz 1 => +OK
select 0 => +OK
set zz 2 => +OK
move zz 9 => :0
debug digest => +fdbf5621241964c787a1f2cac2d12ef3f290e4eb
expire zz 0 => :1
exists zz => :0
pexpire b -1 => :1
get b => $-1
unlink n n nokey => :1
flushdb => +OK
dbsize => :0
debug digest => +84c4853e62cee402e7b8ae9947a9e582b3d30401
flushall async => +OK
debug digest => +0000000000000000000000000000000000000000
keys * => *0
set '' 1 => +OK
keys '' => *1 $0
keys * => *1 $0";

    #[test]
    fn replies_are_those_of_redis() {
        for count in [1, 3] {
            let mut shards = Shards::new(count);
            for line in REPLIES.lines() {
                let (command, reply) = line.split_once(" => ").unwrap();
                assert_eq!(shards.run(command), reply, "{command}");
            }
        }
    }

    #[test]
    fn scans_see_every_live_key_once() {
        let mut shards = Shards::new(3);
        for i in 0..2_000 {
            shards.run(&format!("set key:{i} {i}"));
        }
        for i in 2_000..2_100 {
            shards.run(&format!("set key:{i} {i} PX 10"));
        }
        shards.later(10);
        for (options, wanted) in
            [("", 2_000), (" COUNT 9223372036854775807", 2_000), (" MATCH key:1?", 10), (" TYPE x", 0)]
        {
            let (mut cursor, mut seen, mut calls) = ("0".to_string(), Vec::new(), 0);
            loop {
                let reply = shards.run(&format!("scan {cursor}{options}"));
                let words: Vec<&str> = reply.split(' ').collect();
                seen.extend(words[4..].iter().skip(1).step_by(2).map(|key| key.to_string()));
                calls += 1;
                cursor = words[2].to_string();
                if cursor == "0" {
                    break;
                }
            }
            seen.sort();
            assert!(seen.windows(2).all(|pair| pair[0] != pair[1]), "no table grew meanwhile");
            assert_eq!(seen.len(), wanted, "{options}");
            assert_eq!(calls == 1, options.contains("9223372036854775807"), "{options}: {calls}");
        }
        assert_eq!(shards.run("dbsize"), ":2100");
    }

    #[test]
    fn expired_keys_are_gone_for_everybody() {
        let mut shards = Shards::new(2);
        for i in 0..50 {
            shards.run(&format!("set due:{i} v PX 5"));
        }
        shards.run("set stays v PX 6");
        shards.later(5);
        assert_eq!(shards.run("keys *"), "*1 $5 stays");
        assert_eq!(shards.run("keys due:1"), "*0");
        assert_eq!(shards.run("randomkey"), "$5 stays");
        assert_eq!(shards.run("rename due:1 x"), "-ERR no such key");
        assert_eq!(shards.run("copy due:2 x"), ":0");
        assert_eq!(shards.run("copy stays due:3"), ":1");
        assert_eq!(shards.run("renamenx stays due:4"), ":1");
        assert_eq!(shards.run("pttl due:4"), ":1");
        assert_eq!(shards.run("del due:5 due:6 due:4"), ":1");
        assert_eq!(shards.run("expire due:7 10"), ":0");
        assert_eq!(shards.run("persist due:8"), ":0");
        shards.later(1);
        assert_eq!((shards.run("randomkey"), shards.run("keys *")), ("$-1".into(), "*0".into()));
    }

    #[test]
    fn looking_is_no_use() {
        let mut shards = Shards::new(1);
        shards.run("set a 1");
        shards.stores[0].now.access += 7;
        for command in
            ["exists a", "type a", "ttl a", "object encoding a", "keys a", "debug object a", "memory usage a"]
        {
            shards.run(command);
            assert_eq!(shards.run("object idletime a"), ":7", "{command}");
        }
        for command in ["touch a", "expire a 100", "copy a b", "persist a", "rename a a"] {
            shards.stores[0].now.access += 5;
            shards.run(command);
            assert_eq!(shards.run("object idletime a"), ":0", "{command}");
        }
        shards.caller.no_touch = true;
        shards.stores[0].now.access += 3;
        for command in ["expire a 100", "set a 1", "set a longer-than-it-was", "append a x", "get a"] {
            shards.run(command);
            assert_eq!(shards.run("object idletime a"), ":3", "{command}");
        }
        shards.run("touch a");
        assert_eq!(shards.run("object idletime a"), ":0");
    }

    #[test]
    fn flushed_keys_are_freed_in_the_background() {
        let mut shards = Shards::new(2);
        for i in 0..100 {
            shards.run(&format!("set key:{i} {i}"));
        }
        shards.run(&format!("set large {}", "x".repeat(2 << 20)));
        shards.run("set large small");
        shards.run("flushall sync");
        let lazy = &shards.host.lazy_free;
        assert_eq!(lazy.pending_objects() + lazy.freed_objects(), 102);
    }
}
