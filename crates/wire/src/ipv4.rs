//! IPv4 (RFC 791, 3.1).

use std::net::Ipv4Addr;
use std::ops::Range;

use crate::Incomplete;
use crate::bytes::{field, u16_of, whole};
use crate::checksum::Sum;

/// Bytes of a header without options.
pub const HEADER: usize = 20;
/// Where the total length is.
pub const LENGTH: usize = 2;
/// Where the identification is.
pub const ID: usize = 4;
/// Where flags and fragment offset are.
pub const FRAGMENT: usize = 6;
/// Where the protocol is.
pub const PROTOCOL: usize = 9;
/// Where the header's checksum is.
pub const CHECKSUM: usize = 10;
/// Where the source address is.
pub const SOURCE: Range<usize> = 12..16;
/// Where the destination address is.
pub const DESTINATION: Range<usize> = 16..20;

/// Flag of a fragment that others follow.
pub const MORE: u16 = 0x2000;
/// Bits of the fragment offset, in units of 8 bytes.
pub const OFFSET: u16 = 0x1fff;

/// Bytes of a header that begins with this byte, with its options: 0 to 60; less than 20 is malformed.
#[inline]
#[must_use]
pub fn header_bytes(first: u8) -> usize {
    usize::from(first & 15) * 4
}

/// A header with its options. Its version is the caller's to look at.
#[derive(Clone, Copy, Debug)]
pub struct Header<T>(T);

impl<T: AsRef<[u8]>> Header<T> {
    /// A view.
    ///
    /// # Errors
    /// The header says that it has less than 20 bytes, or there are less than it says.
    pub fn new_checked(buffer: T) -> Result<Self, Incomplete> {
        let length = buffer.as_ref().first().map_or(0, |b| header_bytes(*b));
        if length < HEADER {
            return Err(Incomplete);
        }
        whole(buffer, length).map(Self)
    }

    /// 4 in a header that is one.
    pub fn version(&self) -> u8 {
        self.0.as_ref()[0] >> 4
    }

    /// Bytes of the header with its options, 20 to 60.
    pub fn header_length(&self) -> usize {
        header_bytes(self.0.as_ref()[0])
    }

    /// Type of service.
    pub fn service(&self) -> u8 {
        self.0.as_ref()[1]
    }

    /// Bytes of header and payload, as the header says; segmentation offload leaves 0.
    pub fn total_length(&self) -> u16 {
        u16_of(self.0.as_ref(), LENGTH..LENGTH + 2)
    }

    /// Identification.
    pub fn id(&self) -> u16 {
        u16_of(self.0.as_ref(), ID..ID + 2)
    }

    /// Flags in the upper three bits, and the fragment offset in units of 8 bytes.
    pub fn fragment(&self) -> u16 {
        u16_of(self.0.as_ref(), FRAGMENT..FRAGMENT + 2)
    }

    /// Time to live.
    pub fn ttl(&self) -> u8 {
        self.0.as_ref()[8]
    }

    /// Protocol of the payload.
    pub fn protocol(&self) -> u8 {
        self.0.as_ref()[PROTOCOL]
    }

    /// The header's checksum.
    pub fn checksum(&self) -> u16 {
        u16_of(self.0.as_ref(), CHECKSUM..CHECKSUM + 2)
    }

    /// Source address.
    pub fn source(&self) -> Ipv4Addr {
        field::<4>(self.0.as_ref(), SOURCE).into()
    }

    /// Destination address.
    pub fn destination(&self) -> Ipv4Addr {
        field::<4>(self.0.as_ref(), DESTINATION).into()
    }

    /// Options, 0 to 40 bytes.
    pub fn options(&self) -> &[u8] {
        &self.0.as_ref()[HEADER..self.header_length()]
    }

    /// The sum over the header.
    pub fn sum(&self) -> Sum {
        Sum::default().bytes(&self.0.as_ref()[..self.header_length()])
    }
}

impl<T: AsRef<[u8]> + AsMut<[u8]>> Header<T> {
    /// Sets the total length.
    pub fn set_total_length(&mut self, bytes: u16) {
        crate::put(self.0.as_mut(), LENGTH, bytes);
    }

    /// Sets the identification.
    pub fn set_id(&mut self, id: u16) {
        crate::put(self.0.as_mut(), ID, id);
    }

    /// Computes the header's checksum anew and stores it.
    pub fn fill_checksum(&mut self) {
        crate::put(self.0.as_mut(), CHECKSUM, 0);
        let checksum = self.sum().checksum();
        crate::put(self.0.as_mut(), CHECKSUM, checksum);
    }
}
