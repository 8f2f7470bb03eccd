//! Perigee: a standalone Redis-compatible key-value server, one thread per core.
//!
//! The modules stand in reading order, lowest floor first; a module uses only lower floors (`tests/tidy.rs`
//! checks it). `docs/ARCHITECTURE.md` has the map.

pub mod base;

pub mod rt;

pub mod wire;

pub mod ds;

pub mod config;

pub mod host;

pub mod store;

pub mod types;

pub mod rdb;

pub mod cmd;

pub mod shard;

pub mod persist;

pub mod pubsub;

pub mod script;

pub mod obs;

pub mod admin;

pub mod conn;

pub mod server;
