//! Lua scripts: the engine that runs them, what they may touch, and the registries that all shards share.
//!
//! An [`Engine`] belongs to one shard's thread and knows no connection: a running script asks for everything through
//! its [`Bridge`]. Scripts and libraries themselves are process-wide ([`Scripts`], [`Libraries`]): what one shard has
//! accepted, the others compile when they first need it. Must stay true: a script sees what a script of Redis 8.0
//! sees (globals, texts of errors, conversions), and can change nothing that outlives it but the data.
pub mod answer;
pub mod bridge;
pub mod commands;
pub mod engine;
pub mod flags;
pub mod functions;
pub mod host;
mod lent;
pub mod lib;
pub mod libraries;
pub mod load;
pub mod raise;
pub mod random;
pub mod reply;
pub mod scripts;
pub mod vm;

pub use engine::{Engine, Options, Ready};
pub use flags::Flags;
pub use libraries::{Libraries, Library, Restore};
pub use scripts::{Script, Scripts, Sha};

use crate::rt::log::Level;
use crate::wire::{Out, Span};

/// The words of a command that a script calls.
#[derive(Clone, Copy, Debug)]
pub struct Words<'a> {
    /// Holds the words.
    pub buf: &'a [u8],
    /// Where they are; at least one.
    pub spans: &'a [Span],
}

impl<'a> Words<'a> {
    /// Word `index`; empty beyond the end.
    pub fn get(&self, index: usize) -> &'a [u8] {
        self.spans.get(index).map_or(&[][..], |span| span.of(self.buf))
    }
}

/// What a running script may ask of the server. One call at a time, made on the script's own stack.
pub trait Bridge {
    /// Runs a command: appends exactly one reply to `out`, in the protocol that `out` names. A refusal is an error
    /// reply.
    fn call(&mut self, words: Words<'_>, out: &mut Out);

    /// Called about every 100,000 instructions. May take long: the script's stack may be set aside meanwhile.
    ///
    /// # Errors
    /// The script must end, with this text (without a code word).
    fn pulse(&mut self) -> Result<(), String>;

    /// `redis.log`.
    fn log(&mut self, level: Level, text: &[u8]);

    /// `redis.set_repl`: what is to become of the writes from now on, a sum of [`REPL_AOF`] and [`REPL_REPLICA`].
    fn set_repl(&mut self, _flags: u8) {}

    /// `redis.acl_check_cmd`: whether the caller may run this command; `None` when there is no such command.
    fn may_call(&mut self, words: Words<'_>) -> Option<bool>;

    /// An error went into the script's answer. It was `counted` when a command of the script replied it.
    fn failed(&mut self, _line: &[u8], _counted: bool) {}
}

/// Writes go to the append-only file.
pub const REPL_AOF: u8 = 1;
/// Writes go to replicas.
pub const REPL_REPLICA: u8 = 2;

#[cfg(test)]
mod tests;
