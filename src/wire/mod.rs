//! The protocol: bytes to arguments, replies to bytes, and the error texts clients rely on. Floor 1.
pub mod args;
pub mod error;
pub mod inline;
pub mod out;
pub mod parse;

pub use args::{Args, Key};
pub use error::Error;
pub use out::{Out, Protocol};
pub use parse::Span;
