//! The only floor that names a runtime or a system call. Floor 0.
pub mod sys;
