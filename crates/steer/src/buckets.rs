//! Buckets of the indirection table: the parts of the traffic that go from one worker to another, with their state.
//!
//! An indirection table (Microsoft: RSS, 2000; notes of every NIC's data sheet) leads from the low bits of a packet's hash to a queue. One of
//! its places is a bucket. Packets that must meet have one bucket under every key that a plan draws, so all state of a bucket can be found
//! by looking at the keys of its entries, and moved to another worker by changing one number.

use std::sync::Arc;

use crate::Steering;
use crate::hybrid::{Key, Keys};

/// Which bucket packets and entries of state have, under one key of the hash.
pub trait Buckets: Send + Sync {
    /// How many there are, a power of two.
    fn count(&self) -> u32;

    /// The bucket of a frame that comes in at a port, below [`Self::count`].
    fn packet(&self, port: u32, frame: &[u8]) -> u32;

    /// The same of a frame of which a device gave this hash, which was told how to hash packets of this port when these buckets were made; none where
    /// that is not how the bucket is found now.
    fn hashed(&self, port: u32, hash: u32, frame: &[u8]) -> Option<u32> {
        let _ = (port, hash, frame);
        None
    }

    /// The bucket of the packets that make the entry under `key` of an object that workers divide, by its index in the program; none where no
    /// packets make such an entry.
    fn entry(&self, object: usize, key: &[u8]) -> Option<u32>;

    /// The same under another key of the hash, drawn from `secret`; none where no other key may take its place.
    fn draw(&self, secret: [u8; 32]) -> Option<Drawn>;
}

/// A steering that was drawn, and its buckets.
pub struct Drawn {
    /// by port; their tables lead to the workers that were there when it was planned
    pub steering: Vec<Steering>,
    /// its buckets
    pub buckets: Arc<dyn Buckets>,
}

impl std::fmt::Debug for dyn Buckets {
    /// Without that from which the key of the hash can be worked out.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Buckets")
            .field("count", &self.count())
            .finish_non_exhaustive()
    }
}

/// Buckets as keys of which entries are looked for: the key of a bucket is its number.
pub struct Numbered<'a>(pub &'a dyn Buckets);

impl Numbered<'_> {
    /// The key of a bucket.
    #[must_use]
    pub fn key(bucket: u32) -> Key {
        Key(bucket.into())
    }
}

impl Keys for Numbered<'_> {
    fn packet(&self, port: u32, frame: &[u8]) -> (Key, u32) {
        (Self::key(self.0.packet(port, frame)), 0)
    }

    fn owner(&self, _: u32, _: &[u8]) -> u32 {
        0
    }

    fn belongs(&self, object: usize, bytes: &[u8], key: Key) -> bool {
        self.0.entry(object, bytes).map(Self::key) == Some(key)
    }

    fn only(&self, object: usize, bytes: &[u8]) -> Option<Option<Key>> {
        Some(self.0.entry(object, bytes).map(Self::key))
    }
}
