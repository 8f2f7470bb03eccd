//! Large sets, and what they have in common with tiny ones.
use super::super::verdict::Order::Constant;
use super::{Case, Family, Fill, MILLION};

/// Sets.
pub static SETS: Family = Family {
    name: "sets",
    sizes: MILLION,
    fills: &[
        Fill::many("SADD set", "m{next}"),
        Fill::once("COPY set twin"),
        Fill::once(
            "SADD tiny m{next-1} m{next-2} m{next-3} m{next-4} m{next-5} m{next-6} m{next-7} m{next-8} a b",
        ),
    ],
    cases: &[
        Case::new(Constant, "SCARD set"),
        Case::new(Constant, "SISMEMBER set m{any}"),
        Case::new(Constant, "SMISMEMBER set m{any} m{any-1} x{any}").visits(3),
        Case::new(Constant, "SRANDMEMBER set").visits(2),
        Case::new(Constant, "SRANDMEMBER set 10").visits(20),
        Case::new(Constant, "SRANDMEMBER set -10").visits(20),
        Case::new(Constant, "SINTER tiny set").visits(10),
        Case::new(Constant, "SINTER set tiny").visits(10),
        Case::new(Constant, "SINTERSTORE stored set tiny").visits(10),
        Case::new(Constant, "SINTERCARD 2 set tiny").visits(10),
        Case::new(Constant, "SINTERCARD 2 set twin LIMIT 10").visits(10),
        Case::new(Constant, "SDIFF tiny set").visits(10),
        Case::new(Constant, "SSCAN set {cursor}").visits(10).or_nothing(),
        Case::new(Constant, "SSCAN set {cursor} COUNT 10")
            .visits(10)
            .after("SADD set m{next}; SREM set m{mid}")
            .or_nothing(),
        Case::new(Constant, "SADD set m{next}").after("SREM set m{mid}"),
        Case::new(Constant, "SREM set m{mid}").after("SADD set m{next}"),
        Case::new(Constant, "SMOVE set moved m{mid}").after("SADD set m{next}"),
        Case::new(Constant, "SPOP set").visits(2).after("SADD set m{next}"),
        Case::new(Constant, "SPOP set 3").visits(6).after("SADD set m{next} a{next} b{next}"),
    ],
};
