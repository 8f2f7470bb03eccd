//! What the server tells of itself: COMMAND, INFO, LATENCY, SLOWLOG. Floor 7.
pub mod command;
pub mod info;
pub mod latency;
pub mod slow_log;
