//! Chance. (Replaced by the seeded generator.)
/// Entropy.
pub fn entropy_u64() -> u64 { use std::hash::{BuildHasher, Hasher}; std::collections::hash_map::RandomState::new().build_hasher().finish() }
