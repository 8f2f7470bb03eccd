//! Glob patterns.
