//! Seeds: one that is recorded, one that is secret.

use std::hash::{BuildHasher, Hasher, RandomState};

/// A seed of hash tables that nobody outside can guess, so that nobody can aim packets at one bucket
/// (Crosby and Wallach, USENIX Security 2003). It comes from the system's random numbers.
pub fn secret() -> u64 {
    RandomState::new().build_hasher().finish()
}
