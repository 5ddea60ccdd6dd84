//! Identity of a key that may be replicated, of packets and of entries of state.

/// A key that may be replicated. Packets that must meet have equal keys.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Key(pub u128);

/// The key of packets, and of what they leave in state. Both are one function of the fields by which packets are sharded, so that
/// all state of a key can be found and moved.
pub trait Keys: Send + Sync {
    /// The key of a frame that comes in at a port, and the core that owns it while it is sharded.
    fn packet(&self, port: u32, frame: &[u8]) -> (Key, u32);

    /// That owner alone, which takes less time.
    fn owner(&self, port: u32, frame: &[u8]) -> u32;

    /// Whether packets of this key make the entry under `bytes` of a sharded object, by its index in the program.
    fn belongs(&self, object: usize, bytes: &[u8], key: Key) -> bool;

    /// The only key for which [`Self::belongs`] holds of an entry, or that there is none; nothing where that is not known without asking for each.
    fn only(&self, object: usize, bytes: &[u8]) -> Option<Option<Key>> {
        let _ = (object, bytes);
        None
    }
}
