//! Data structures. Floor 1: knows no Redis word.
pub mod bits;
pub mod intset;
pub mod lcs;
pub mod listpack;
pub mod packed;
pub mod raw;
