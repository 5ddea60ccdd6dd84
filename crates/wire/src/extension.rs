//! Extension headers of IPv6 (RFC 8200, 4): options, routing, fragment; and authentication (RFC 4302).

use crate::Incomplete;
use crate::bytes::{u16_of, u32_of, whole};
use crate::protocol::{
    AUTHENTICATION, DESTINATION, FRAGMENT, HIP, HOP_BY_HOP, MOBILITY, ROUTING, SHIM6,
};

/// Bytes of the shortest extension header, and of a fragment header.
pub const LEAST: usize = 8;
/// Where a fragment header has its offset, and whether more follow.
pub const PLACE: usize = 2;
/// Bits of the fragment offset, in bytes.
pub const OFFSET: u16 = 0xfff8;
/// Bit of a fragment that others follow.
pub const MORE: u16 = 1;

/// Whether a number is that of an extension header that `include/millrace` steps over.
#[inline]
#[must_use]
pub fn is_extension(number: u8) -> bool {
    matches!(
        number,
        HOP_BY_HOP | ROUTING | FRAGMENT | AUTHENTICATION | DESTINATION
    )
}

/// Whether a number is that of another header in the format of RFC 6564, which has a next header too.
#[inline]
#[must_use]
pub fn is_rare(number: u8) -> bool {
    matches!(number, MOBILITY | HIP | SHIM6)
}

/// Bytes of the extension header of this number whose second byte is this: at least 8.
#[inline]
#[must_use]
pub fn bytes(number: u8, second: u8) -> usize {
    match number {
        FRAGMENT => LEAST,
        // In units of four, without the first two (RFC 4302, 2.2).
        AUTHENTICATION => (usize::from(second) + 2) * 4,
        _ => (usize::from(second) + 1) * 8,
    }
}

/// Options or a routing header.
#[derive(Clone, Copy, Debug)]
pub struct Header<T>(T);

impl<T: AsRef<[u8]>> Header<T> {
    /// A view.
    ///
    /// # Errors
    /// There are less bytes than the header says.
    pub fn new_checked(buffer: T) -> Result<Self, Incomplete> {
        let second = buffer.as_ref().get(1).ok_or(Incomplete)?;
        let length = bytes(DESTINATION, *second);
        whole(buffer, length).map(Self)
    }

    /// Number of the next header.
    pub fn next(&self) -> u8 {
        self.0.as_ref()[0]
    }

    /// Bytes of the header, a multiple of 8.
    pub fn header_length(&self) -> usize {
        bytes(DESTINATION, self.0.as_ref()[1])
    }

    /// Fields after next header and length.
    pub fn body(&self) -> &[u8] {
        &self.0.as_ref()[2..self.header_length()]
    }
}

/// A fragment header.
#[derive(Clone, Copy, Debug)]
pub struct Fragment<T>(T);

impl<T: AsRef<[u8]>> Fragment<T> {
    /// A view.
    ///
    /// # Errors
    /// There are less than 8 bytes.
    pub fn new_checked(buffer: T) -> Result<Self, Incomplete> {
        whole(buffer, LEAST).map(Self)
    }

    /// Number of the next header.
    pub fn next(&self) -> u8 {
        self.0.as_ref()[0]
    }

    /// Offset, reserved bits and whether more follow, as one number.
    pub fn place(&self) -> u16 {
        u16_of(self.0.as_ref(), PLACE..PLACE + 2)
    }

    /// Identification.
    pub fn id(&self) -> u32 {
        u32_of(self.0.as_ref(), 4..8)
    }
}
