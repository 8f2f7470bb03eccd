//! Data structures. Floor 1: knows no Redis word.
pub mod bits;
pub mod hll;
pub mod lcs;
pub mod packed;
pub mod raw;
