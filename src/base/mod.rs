//! Small facts about numbers, patterns, time and chance. Floor 0: knows nothing of the rest.
pub mod clock;
pub mod glob;
pub mod hash;
pub mod num;
pub mod rng;
