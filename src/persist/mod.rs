//! Files: snapshots and the append-only log, written and loaded. Floor 7.
pub mod aof;
pub mod background;
pub mod commands;
pub mod insert;
pub mod load;
pub mod rdb_stream;
pub mod rdb_target;
pub mod shutdown;
pub mod snapshot;
