//! The only floor that names a runtime or a system call. Floor 0.
//!
//! The data plane runs on monoio, over io_uring or epoll. Buffers are handed over and given back, as completions
//! require; a read that was begun is never dropped while its connection lives.
mod data_plane;
pub mod disk;
pub mod log;
pub mod meet;
pub mod sys;

pub use data_plane::{
    Driver, ReadHalf, Sleeper, WriteHalf, next_turn, received, run, sleep_ms, spawn, split, uring_usable,
    yield_now,
};
