//! Files: snapshots and the append-only log, written and loaded. Floor 7.
pub mod aof;
