//! What the server tells of itself: COMMAND and INFO. Floor 5.
pub mod command;
pub mod info;
