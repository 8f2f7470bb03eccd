//! Commands of administrators. Floor 7.
pub mod config;
pub mod debug;
pub mod memory;
pub mod module;
pub mod server;
