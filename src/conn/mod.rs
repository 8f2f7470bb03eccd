//! Connections: a state machine without I/O, and the loop that feeds it. Floor 6.
mod gates;
mod gather;
mod limits;

pub mod client_commands;
pub mod commands;
pub mod serve;
pub mod session;
