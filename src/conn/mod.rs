//! Connections. Floor 6.
pub mod client_commands;
pub mod commands;
