//! Connections: a state machine without I/O, and the loop that feeds it. Floor 8.
mod blocked;
mod fibers;
mod gates;
mod gather;
mod hearing;
mod holding;
mod in_place;
mod limits;
pub mod memory;

pub mod client_commands;
pub mod commands;
pub mod serve;
pub mod session;
pub mod tracking;
