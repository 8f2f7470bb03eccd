//! The append-only log's files: a manifest, a base, increments. Records are written by `host::journal`; here is what
//! stands around that: which file is the one in use, rewriting, and reading back.
mod base;
pub mod commands;
pub mod encode;
pub mod files;
pub mod manifest;
pub mod reader;
pub mod rewrite;

pub use rewrite::Aof;
