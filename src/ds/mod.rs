//! Data structures. Floor 1: knows no Redis word.
pub mod bits;
pub mod dated;
pub mod geo;
pub mod hll;
pub mod intset;
pub mod lcs;
pub mod list;
pub mod listpack;
pub mod lzf;
pub mod object;
pub mod packed;
pub mod raw;
pub mod sorted;
pub mod stream;
pub mod table;
