//! Long strings, many keys, and HyperLogLogs.
use super::super::verdict::Order::Constant;
use super::{Case, Family, Fill, MILLION};

/// One long string.
pub static STRINGS: Family = Family {
    name: "strings",
    sizes: MILLION,
    fills: &[Fill::single("APPEND text", "0123456789abcdef"), Fill::once("SETRANGE bits {bytes} x")],
    cases: &[
        Case::new(Constant, "STRLEN text"),
        Case::new(Constant, "GETRANGE text {byte} {byte+9}"),
        Case::new(Constant, "GETRANGE text -10 -1"),
        Case::new(Constant, "SETRANGE text {byte} y"),
        Case::new(Constant, "APPEND text z"),
        Case::new(Constant, "GETBIT text {byte}").or_nothing(),
        Case::new(Constant, "SETBIT bits {byte} 1").or_nothing(),
        Case::new(Constant, "BITCOUNT text {byte} {byte+99}"),
        Case::new(Constant, "BITPOS text 1 {byte} {byte+99}"),
        Case::new(Constant, "BITFIELD bits INCRBY u8 {byte} 1").or_nothing(),
    ],
};

/// Many keys.
pub static KEYSPACE: Family = Family {
    name: "keyspace",
    sizes: MILLION,
    fills: &[Fill::many("MSET", "k{next} v")],
    cases: &[
        Case::new(Constant, "DBSIZE"),
        Case::new(Constant, "GET k{any}"),
        Case::new(Constant, "SET k{any} w"),
        Case::new(Constant, "SET k{next} v").after("DEL k{mid}"),
        Case::new(Constant, "EXISTS k{any}"),
        Case::new(Constant, "TYPE k{any}"),
        Case::new(Constant, "SCAN {cursor}").visits(10).or_nothing(),
        Case::new(Constant, "SCAN {cursor} COUNT 10")
            .visits(10)
            .after("SET k{next} v; DEL k{mid}")
            .or_nothing(),
        Case::new(Constant, "RANDOMKEY").visits(2),
        Case::new(Constant, "EXPIRE k{any} 100000"),
        Case::new(Constant, "TTL k{any}"),
        Case::new(Constant, "PERSIST k{any}").after("EXPIRE k{any} 100000").or_nothing(),
        Case::new(Constant, "RENAME k{mid} renamed").after("SET k{next} v"),
        Case::new(Constant, "COPY k{any} copied REPLACE"),
        Case::new(Constant, "DEL k{mid}").after("SET k{next} v"),
        Case::new(Constant, "UNLINK k{mid}").after("SET k{next} v"),
        Case::new(Constant, "GETDEL k{mid}").after("SET k{next} v"),
    ],
};

/// HyperLogLogs. They begin with so many elements that all of them are dense.
pub static HYPERLOGLOGS: Family = Family {
    name: "HyperLogLogs",
    sizes: [32_000, 128_000, 512_000],
    fills: &[Fill::many("PFADD hll", "e{next}"), Fill::once("PFADD other e")],
    cases: &[
        Case::new(Constant, "PFADD hll e{next}").or_nothing(),
        Case::new(Constant, "PFCOUNT hll"),
        Case::new(Constant, "PFCOUNT hll other"),
        Case::new(Constant, "PFMERGE merged hll other"),
    ],
};
