//! Scripts: what runs in Lua, and what Lua is given.
//!
//! `lib` has the libraries that scripts find as globals beside Lua's own.

pub mod lib;
