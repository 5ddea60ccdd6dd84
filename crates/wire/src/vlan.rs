//! VLAN tags (IEEE 802.1Q, 9.6): what follows the tag's own EtherType.

use crate::Incomplete;
use crate::bytes::{u16_of, whole};

/// Bytes of the tag control information and the next EtherType.
pub const HEADER: usize = 4;

/// A tag.
#[derive(Clone, Copy, Debug)]
pub struct Tag<T>(T);

impl<T: AsRef<[u8]>> Tag<T> {
    /// A view.
    ///
    /// # Errors
    /// There are less than 4 bytes.
    pub fn new_checked(buffer: T) -> Result<Self, Incomplete> {
        whole(buffer, HEADER).map(Self)
    }

    /// VLAN identifier, 12 bits.
    pub fn id(&self) -> u16 {
        u16_of(self.0.as_ref(), 0..2) & 0xfff
    }

    /// Priority code point, 3 bits.
    pub fn priority(&self) -> u8 {
        (u16_of(self.0.as_ref(), 0..2) >> 13) as u8
    }

    /// EtherType of what follows.
    pub fn ethertype(&self) -> u16 {
        u16_of(self.0.as_ref(), 2..4)
    }
}
