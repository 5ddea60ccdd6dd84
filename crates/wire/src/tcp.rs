//! TCP (RFC 9293, 3.1).

use crate::Incomplete;
use crate::bytes::{u16_of, u32_of, whole};

/// Bytes of a header without options.
pub const HEADER: usize = 20;
/// Where the sequence number is.
pub const SEQUENCE: usize = 4;
/// Where the header's length is, in the upper four bits.
pub const OFFSET: usize = 12;
/// Where the flags are.
pub const FLAGS: usize = 13;

/// No more data from the sender
pub const FIN: u8 = 0x01;
/// Push
pub const PSH: u8 = 0x08;
/// Congestion window reduced (RFC 3168)
pub const CWR: u8 = 0x80;

/// Bytes of a header whose byte at [`OFFSET`] is this: 0 to 60; less than 20 is malformed.
#[inline]
#[must_use]
pub fn header_bytes(offset: u8) -> usize {
    usize::from(offset >> 4) * 4
}

/// A header with its options.
#[derive(Clone, Copy, Debug)]
pub struct Header<T>(T);

impl<T: AsRef<[u8]>> Header<T> {
    /// A view.
    ///
    /// # Errors
    /// The header says that it has less than 20 bytes, or there are less than it says.
    pub fn new_checked(buffer: T) -> Result<Self, Incomplete> {
        let offset = buffer.as_ref().get(OFFSET).ok_or(Incomplete)?;
        let length = header_bytes(*offset);
        if length < HEADER {
            return Err(Incomplete);
        }
        whole(buffer, length).map(Self)
    }

    /// Source port.
    pub fn source(&self) -> u16 {
        u16_of(self.0.as_ref(), 0..2)
    }

    /// Destination port.
    pub fn destination(&self) -> u16 {
        u16_of(self.0.as_ref(), 2..4)
    }

    /// Sequence number.
    pub fn sequence(&self) -> u32 {
        u32_of(self.0.as_ref(), SEQUENCE..SEQUENCE + 4)
    }

    /// Acknowledgment number.
    pub fn acknowledgment(&self) -> u32 {
        u32_of(self.0.as_ref(), 8..12)
    }

    /// Bytes of the header with its options, 20 to 60.
    pub fn header_length(&self) -> usize {
        header_bytes(self.0.as_ref()[OFFSET])
    }

    /// Flags, FIN in the lowest bit.
    pub fn flags(&self) -> u8 {
        self.0.as_ref()[FLAGS]
    }

    /// Window.
    pub fn window(&self) -> u16 {
        u16_of(self.0.as_ref(), 14..16)
    }

    /// Checksum.
    pub fn checksum(&self) -> u16 {
        u16_of(self.0.as_ref(), 16..18)
    }

    /// Urgent pointer.
    pub fn urgent(&self) -> u16 {
        u16_of(self.0.as_ref(), 18..20)
    }

    /// Options, 0 to 40 bytes.
    pub fn options(&self) -> &[u8] {
        &self.0.as_ref()[HEADER..self.header_length()]
    }
}

impl<T: AsRef<[u8]> + AsMut<[u8]>> Header<T> {
    /// Sets the sequence number.
    pub fn set_sequence(&mut self, sequence: u32) {
        self.0.as_mut()[SEQUENCE..SEQUENCE + 4].copy_from_slice(&sequence.to_be_bytes());
    }

    /// Sets the flags.
    pub fn set_flags(&mut self, flags: u8) {
        self.0.as_mut()[FLAGS] = flags;
    }
}
