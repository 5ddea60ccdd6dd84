//! Secrets that are fresh at each start.

use std::hash::{BuildHasher, Hasher, RandomState};

/// A seed of hash tables that nobody outside can guess, so that nobody can aim packets at one bucket
/// (Crosby and Wallach, USENIX Security 2003). It comes from the system's random numbers.
#[must_use]
pub fn secret() -> u64 {
    RandomState::new().build_hasher().finish()
}

/// A secret for the keys of steering, so that nobody outside can aim packets at one worker.
#[must_use]
pub fn keys() -> [u8; 32] {
    let mut bytes = [0; 32];
    for eight in bytes.chunks_exact_mut(8) {
        eight.copy_from_slice(&secret().to_ne_bytes());
    }
    bytes
}
