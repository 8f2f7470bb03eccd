//! Data structures. Floor 1: knows no Redis word.
pub mod bits;
pub mod geo;
pub mod lcs;
pub mod packed;
pub mod raw;
