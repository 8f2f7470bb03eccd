//! Data structures. Floor 1: knows no Redis word.
pub mod bits;
pub mod lcs;
pub mod list;
pub mod object;
pub mod packed;
pub mod raw;
