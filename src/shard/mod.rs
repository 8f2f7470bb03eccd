//! The shard.
pub mod cell;
pub mod doorbell;
mod sync;
