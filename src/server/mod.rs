//! Wiring: from settings to running shards, and to their end. Floor 9.
pub mod boot;
#[doc(hidden)]
pub mod in_process;
mod listen;
mod replay;
#[doc(hidden)]
pub mod simulation;
pub mod table;
