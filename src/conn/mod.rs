//! Connections: a state machine without I/O, and the loop that feeds it. Floor 6.
mod blocked;
mod fibers;
mod gates;
mod gather;
mod hearing;
mod holding;
mod in_place;
mod limits;

pub mod client_commands;
pub mod commands;
pub mod serve;
pub mod session;
pub mod tracking;
