//! IPv6 (RFC 8200, 3): the fixed header. What may follow it is in [`crate::extension`].

use std::net::Ipv6Addr;
use std::ops::Range;

use crate::Incomplete;
use crate::bytes::{field, u16_of, u32_of, whole};

/// Bytes of the header.
pub const HEADER: usize = 40;
/// Where the payload's length is.
pub const LENGTH: usize = 4;
/// Where the number of the next header is.
pub const NEXT: usize = 6;
/// Where the source address is.
pub const SOURCE: Range<usize> = 8..24;
/// Where the destination address is.
pub const DESTINATION: Range<usize> = 24..40;

/// A header. Its version is the caller's to look at.
#[derive(Clone, Copy, Debug)]
pub struct Header<T>(T);

impl<T: AsRef<[u8]>> Header<T> {
    /// A view.
    ///
    /// # Errors
    /// There are less than 40 bytes.
    pub fn new_checked(buffer: T) -> Result<Self, Incomplete> {
        whole(buffer, HEADER).map(Self)
    }

    /// 6 in a header that is one.
    pub fn version(&self) -> u8 {
        self.0.as_ref()[0] >> 4
    }

    /// Traffic class.
    pub fn class(&self) -> u8 {
        (u32_of(self.0.as_ref(), 0..4) >> 20) as u8
    }

    /// Flow label, 20 bits.
    pub fn label(&self) -> u32 {
        u32_of(self.0.as_ref(), 0..4) & 0xf_ffff
    }

    /// Bytes behind the header, as it says; 0 for a jumbogram (RFC 2675), and where segmentation offload left it.
    pub fn payload_length(&self) -> u16 {
        u16_of(self.0.as_ref(), LENGTH..LENGTH + 2)
    }

    /// Number of the next header.
    pub fn next(&self) -> u8 {
        self.0.as_ref()[NEXT]
    }

    /// Hop limit.
    pub fn hop_limit(&self) -> u8 {
        self.0.as_ref()[7]
    }

    /// Source address.
    pub fn source(&self) -> Ipv6Addr {
        field::<16>(self.0.as_ref(), SOURCE).into()
    }

    /// Destination address.
    pub fn destination(&self) -> Ipv6Addr {
        field::<16>(self.0.as_ref(), DESTINATION).into()
    }
}

impl<T: AsRef<[u8]> + AsMut<[u8]>> Header<T> {
    /// Sets the payload's length.
    pub fn set_payload_length(&mut self, bytes: u16) {
        crate::put(self.0.as_mut(), LENGTH, bytes);
    }
}
