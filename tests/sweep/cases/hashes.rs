//! Large hashes, without and with deadlines of their fields.
use super::super::verdict::Order::{Constant, Log};
use super::{Case, Family, Fill, MILLION, QUARTER};

/// Hashes.
pub static HASHES: Family = Family {
    name: "hashes",
    sizes: MILLION,
    fills: &[Fill::many("HSET hash", "f{next} 1")],
    cases: &[
        Case::new(Constant, "HLEN hash"),
        Case::new(Constant, "HGET hash f{any}"),
        Case::new(Constant, "HMGET hash f{any} f{any-1} f{any-2}").visits(3),
        Case::new(Constant, "HEXISTS hash f{any}"),
        Case::new(Constant, "HEXISTS hash g{any}").or_nothing(),
        Case::new(Constant, "HSTRLEN hash f{any}"),
        Case::new(Constant, "HINCRBY hash f{any} 1").visits(2),
        Case::new(Constant, "HSET hash f{any} 2").or_nothing(),
        Case::new(Constant, "HSET hash f{next} 1").after("HDEL hash f{mid}"),
        Case::new(Constant, "HDEL hash f{mid}").after("HSET hash f{next} 1"),
        Case::new(Constant, "HRANDFIELD hash").visits(2),
        Case::new(Constant, "HRANDFIELD hash 10").visits(20),
        Case::new(Constant, "HRANDFIELD hash -10").visits(20),
        Case::new(Constant, "HSCAN hash {cursor}").visits(10).or_nothing(),
        Case::new(Constant, "HSCAN hash {cursor} COUNT 10")
            .visits(10)
            .after("HSET hash f{next} 1; HDEL hash f{mid}")
            .or_nothing(),
        Case::new(Log, "HEXPIRE hash 100000 FIELDS 1 f{any}"),
        Case::new(Constant, "HTTL hash FIELDS 1 f{any}"),
    ],
};

/// Hashes all of whose fields have a deadline.
pub static EXPIRING: Family = Family {
    name: "hashes whose fields expire",
    sizes: QUARTER,
    fills: &[
        Fill::many("HSET hash", "f{next} 1"),
        Fill::many("HEXPIRE hash 100000 FIELDS {count}", "f{next}").of(Log),
    ],
    cases: &[
        Case::new(Constant, "HGET hash f{any}"),
        Case::new(Constant, "HTTL hash FIELDS 1 f{any}"),
        Case::new(Log, "HEXPIRE hash {any} FIELDS 1 f{any}"),
        Case::new(Log, "HPERSIST hash FIELDS 1 f{any}")
            .after("HEXPIRE hash 100000 FIELDS 1 f{any}")
            .or_nothing(),
        Case::new(Log, "HSET hash f{any} 2").after("HEXPIRE hash 100000 FIELDS 1 f{any}").or_nothing(),
        Case::new(Log, "HDEL hash f{mid}").after("HSET hash f{next} 1; HEXPIRE hash 100000 FIELDS 1 f{next}"),
        Case::new(Constant, "HRANDFIELD hash 10").visits(20),
        Case::new(Constant, "HSCAN hash {cursor}").visits(10).or_nothing(),
    ],
};
