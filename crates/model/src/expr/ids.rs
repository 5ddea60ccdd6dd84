//! Maps and sets by numbers that this crate gives out: nobody outside can choose them so that they collide,
//! so one multiplication is hash enough.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};

/// A map by expression or symbol.
pub type IdMap<K, V> = HashMap<K, V, BuildHasherDefault<Spread>>;
/// A set of expressions or symbols.
pub type IdSet<K> = HashSet<K, BuildHasherDefault<Spread>>;

/// Spreads a number over 64 bits (Knuth, The Art of Computer Programming, volume 3, section 6.4).
#[derive(Clone, Copy, Default)]
pub struct Spread(u64);

impl Hasher for Spread {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for b in bytes {
            self.write_u64(u64::from(*b));
        }
    }

    fn write_u32(&mut self, n: u32) {
        self.write_u64(u64::from(n));
    }

    fn write_usize(&mut self, n: usize) {
        self.write_u64(n as u64);
    }

    fn write_u64(&mut self, n: u64) {
        let mixed = (self.0.rotate_left(5) ^ n).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = mixed ^ mixed >> 32;
    }
}
