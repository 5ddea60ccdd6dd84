//! Which worker has an entry of a divided object.

/// Which worker has an entry, under the steering that packets are dealt out by at first.
pub trait Owning: Send + Sync {
    /// The worker of the packets that make the entry under `key` of an object that workers divide, by its index in the program; none where the key
    /// does not tell.
    fn owner(&self, object: usize, key: &[u8]) -> Option<u32>;

    /// Whether entries of the object may be with one worker alone before `ON_START` runs: not where that works on it.
    fn begins(&self, object: usize) -> bool;
}

impl std::fmt::Debug for dyn Owning {
    /// Without that from which the key of the hash can be worked out.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Owning").finish_non_exhaustive()
    }
}
