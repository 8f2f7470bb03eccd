//! Commands of administrators. Floor 5.
pub mod config;
pub mod debug;
pub mod memory;
pub mod server;
