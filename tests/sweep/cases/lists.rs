//! One long list. Its middle is documented to be linear, but nodes of many elements lie between.
use super::super::verdict::Order::{Constant, Nodes};
use super::{Case, Family, Fill, MILLION};

/// Lists.
pub static LISTS: Family = Family {
    name: "lists",
    sizes: MILLION,
    fills: &[Fill::many("RPUSH list", "{next}")],
    cases: &[
        Case::new(Constant, "LLEN list"),
        Case::new(Constant, "LINDEX list 3"),
        Case::new(Constant, "LINDEX list -3"),
        Case::new(Nodes, "LINDEX list {pos}"),
        Case::new(Nodes, "LINDEX list {half}"),
        Case::new(Constant, "LRANGE list 0 9"),
        Case::new(Constant, "LRANGE list -10 -1"),
        Case::new(Nodes, "LRANGE list {half} {half+9}"),
        Case::new(Constant, "LSET list 3 x"),
        Case::new(Constant, "LSET list -3 x"),
        Case::new(Nodes, "LSET list {pos} x"),
        Case::new(Constant, "LPUSH list {next}").after("RPOP list"),
        Case::new(Constant, "RPUSH list {next}").after("LPOP list"),
        Case::new(Constant, "LPOP list").after("RPUSH list {next}"),
        Case::new(Constant, "RPOP list").after("LPUSH list {next}"),
        Case::new(Constant, "LMOVE list list LEFT RIGHT"),
        Case::new(Constant, "RPOPLPUSH list list"),
        Case::new(Constant, "LTRIM list 1 -1").after("RPUSH list {next}"),
        Case::new(Constant, "LTRIM list 0 -2").after("LPUSH list {next}"),
        Case::new(Constant, "LINSERT list AFTER p{next} q").after("LPUSH list p{next}; RPOP list; RPOP list"),
        Case::new(Constant, "LPOS list p{next}").after("RPOP list; LPUSH list p{next} b").or_nothing(),
        Case::new(Constant, "LREM list 1 p{next}").after("LPUSH list p{next}"),
        Case::new(Constant, "LREM list -1 p{next}").after("RPUSH list p{next}"),
    ],
};
