//! Perigee: a standalone Redis-compatible key-value server, one thread per core.
//!
//! The modules in reading order, lowest floor first; a module uses only lower floors (`tests/tidy.rs` checks it).
pub mod base;
pub mod ds;
pub mod config;
