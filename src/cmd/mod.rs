//! The commands: a row each, and their handlers, family by family. Floor 4.
pub mod bitmap;
pub mod cx;
pub mod docs;
mod element;
#[cfg(test)]
mod event_tests;
pub mod generic;
pub mod geo;
pub mod hash;
pub mod hyperloglog;
mod key_part;
#[cfg(test)]
pub(crate) mod laws;
pub mod list;
mod popping;
pub mod set;
pub mod sorted_set;
pub mod spec;
pub mod stream;
pub mod string;
pub mod table;
pub mod tracking;
pub mod transaction;
pub mod waiting;
