//! What the append-only log gets: of every command what Redis writes, in an order that makes the same data again, and
//! before the reply leaves.
//!
//! Servers here have no threads, no sockets and a clock that stands still (`server/simulation.rs`); the log is the
//! journal that captures.
#[path = "../support/resp.rs"]
#[allow(dead_code)]
mod resp;
#[path = "../support/rng.rs"]
mod rng;

mod order;
mod replay;
mod table;
mod world;

/// Bytes for the eyes of a reader.
fn show(bytes: &[u8]) -> String {
    bytes.escape_ascii().to_string()
}
