//! UDP (RFC 768).

use crate::Incomplete;
use crate::bytes::{u16_of, whole};

/// Bytes of the header.
pub const HEADER: usize = 8;
/// Where the length is.
pub const LENGTH: usize = 4;

/// A header.
#[derive(Clone, Copy, Debug)]
pub struct Header<T>(T);

impl<T: AsRef<[u8]>> Header<T> {
    /// A view.
    ///
    /// # Errors
    /// There are less than 8 bytes.
    pub fn new_checked(buffer: T) -> Result<Self, Incomplete> {
        whole(buffer, HEADER).map(Self)
    }

    /// Source port.
    pub fn source(&self) -> u16 {
        u16_of(self.0.as_ref(), 0..2)
    }

    /// Destination port.
    pub fn destination(&self) -> u16 {
        u16_of(self.0.as_ref(), 2..4)
    }

    /// Bytes of header and payload, as the header says.
    pub fn length(&self) -> u16 {
        u16_of(self.0.as_ref(), LENGTH..LENGTH + 2)
    }

    /// Checksum; 0: there is none.
    pub fn checksum(&self) -> u16 {
        u16_of(self.0.as_ref(), 6..8)
    }
}

impl<T: AsRef<[u8]> + AsMut<[u8]>> Header<T> {
    /// Sets the length.
    pub fn set_length(&mut self, bytes: u16) {
        crate::put(self.0.as_mut(), LENGTH, bytes);
    }
}
