//! Long streams, and groups with many pending entries.
use super::super::verdict::Order::{Constant, Log};
use super::{Case, Family, Fill, QUARTER};

/// Streams.
pub static STREAMS: Family = Family {
    name: "streams",
    sizes: QUARTER,
    fills: &[Fill::single("XADD stream", "{next}-1 f v")],
    cases: &[
        Case::new(Constant, "XLEN stream"),
        Case::new(Log, "XRANGE stream - + COUNT 10"),
        Case::new(Log, "XRANGE stream {any}-1 + COUNT 10"),
        Case::new(Log, "XRANGE stream {any}-1 {any}-1"),
        Case::new(Log, "XREVRANGE stream + - COUNT 10"),
        Case::new(Log, "XREVRANGE stream {any}-1 - COUNT 10"),
        Case::new(Log, "XREAD COUNT 10 STREAMS stream {any-9}-1"),
        Case::new(Log, "XADD stream {next}-1 f v").after("XDEL stream {mid}-1"),
        Case::new(Log, "XADD stream MAXLEN = {n} {next}-1 f v"),
        Case::new(Log, "XADD stream MAXLEN ~ {n} {next}-1 f v"),
        Case::new(Log, "XDEL stream {mid}-1").after("XADD stream {next}-1 f v"),
        Case::new(Log, "XTRIM stream MAXLEN {n}").after("XADD stream {next}-1 f v").or_nothing(),
        Case::new(Log, "XTRIM stream MINID {mid-99}-1").after("XADD stream {next}-1 f v").or_nothing(),
    ],
};

/// Groups. All entries of the stream are pending.
pub static GROUPS: Family = Family {
    name: "groups",
    sizes: QUARTER,
    fills: &[
        Fill::single("XADD jobs", "{next}-1 f v"),
        Fill::once("XGROUP CREATE jobs group 0"),
        Fill::many("XREADGROUP GROUP group one COUNT {count} STREAMS jobs >", ""),
    ],
    cases: &[
        Case::new(Constant, "XPENDING jobs group"),
        Case::new(Log, "XPENDING jobs group - + 10"),
        Case::new(Log, "XPENDING jobs group {any-9}-1 + 10"),
        Case::new(Log, "XPENDING jobs group {any-9}-1 + 10 one"),
        Case::new(Log, "XREADGROUP GROUP group one COUNT 10 STREAMS jobs {any-9}-1"),
        Case::new(Log, "XCLAIM jobs group one 0 {any}-1"),
        Case::new(Log, "XCLAIM jobs group two 0 {any}-1 JUSTID"),
        Case::new(Log, "XAUTOCLAIM jobs group one 0 {any-9}-1 COUNT 10"),
        Case::new(Log, "XREADGROUP GROUP group one COUNT 1 STREAMS jobs >")
            .after("XADD jobs {next}-1 f v; XDEL jobs {mid}-1; XACK jobs group {mid}-1"),
        Case::new(Log, "XACK jobs group {mid}-1").after(
            "XADD jobs {next}-1 f v; XREADGROUP GROUP group one COUNT 1 STREAMS jobs >; XDEL jobs {mid}-1",
        ),
    ],
};
