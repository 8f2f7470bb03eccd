//! Wiring: from settings to running shards, and to their end. Floor 7.
pub mod boot;
mod listen;
pub mod table;
