//! Gate bits: why a command may not run at once. A row of the command table keeps the bits it cares about, connection and
//! server keep the bits in force.
//!
//! Must stay true: every bit has one meaning, for connections and server alike.

/// Always set on connections: a row that keeps it goes the slow way. Rows without `NO_INTERCEPT` do.
pub const ALWAYS: u32 = 1;
/// CLIENT REPLY OFF or SKIP.
pub const REPLY_MODE: u32 = 2;
/// CLIENT PAUSE WRITE.
pub const PAUSE_WRITE: u32 = 4;
/// CLIENT PAUSE ALL.
pub const PAUSE_ALL: u32 = 8;
/// Inside MULTI.
pub const MULTI: u32 = 16;
/// Subscribed to something, under RESP2.
pub const SUBSCRIBER: u32 = 32;
/// CLIENT TRACKING: what a command changed of the client's own keys is told behind its reply.
pub const TRACKING: u32 = 64;
/// Somebody runs MONITOR.
pub const MONITORED: u32 = 128;
/// A script runs for longer than `busy-reply-threshold`.
pub const BUSY: u32 = 256;
/// Letters may come at any time: subscribed, tracking or monitoring. No row keeps it.
pub const LISTENER: u32 = 512;
/// Subscribed to something, under any protocol. No row keeps it.
pub const SUBSCRIBED: u32 = 1024;
/// The data is being loaded.
pub const LOADING: u32 = 2048;
/// What is written cannot be kept: the last snapshot failed, or the log cannot be written.
pub const DISK_TROUBLE: u32 = 4096;
