//! ICMP (RFC 792).

use crate::Incomplete;
use crate::bytes::{u16_of, u32_of, whole, word};

/// Bytes of the header, behind which an error carries the packet that it is about.
pub const HEADER: usize = 8;
/// Where an echo's identifier is.
pub const IDENTIFIER: usize = 4;

/// Type of an echo reply
pub const REPLY: u8 = 0;
/// Type of an echo request
pub const REQUEST: u8 = 8;

/// Whether a type is that of an error: destination unreachable, source quench, redirect, time exceeded, parameter
/// problem (RFC 1812, 4.3.2.3).
#[inline]
#[must_use]
pub fn is_error(kind: u8) -> bool {
    matches!(kind, 3 | 4 | 5 | 11 | 12)
}

/// An echo.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Echo {
    /// a request, not a reply
    pub request: bool,
    /// its identifier
    pub identifier: u16,
}

/// The echo at the beginning of some bytes; none where there is no echo or less than six bytes of it.
#[inline]
#[must_use]
pub fn echo(bytes: &[u8]) -> Option<Echo> {
    echo_of(bytes, (REQUEST, REPLY))
}

/// The same for these types of request and reply.
#[inline]
pub(crate) fn echo_of(bytes: &[u8], (request, reply): (u8, u8)) -> Option<Echo> {
    let kind = *bytes.first()?;
    (kind == request || kind == reply).then_some(())?;
    Some(Echo {
        request: kind == request,
        identifier: word(bytes, IDENTIFIER)?,
    })
}

/// A message, by its header; ICMPv6 has the same (RFC 4443, 2.1).
#[derive(Clone, Copy, Debug)]
pub struct Message<T>(T);

impl<T: AsRef<[u8]>> Message<T> {
    /// A view.
    ///
    /// # Errors
    /// There are less than 8 bytes.
    pub fn new_checked(buffer: T) -> Result<Self, Incomplete> {
        whole(buffer, HEADER).map(Self)
    }

    /// Type.
    pub fn kind(&self) -> u8 {
        self.0.as_ref()[0]
    }

    /// Code.
    pub fn code(&self) -> u8 {
        self.0.as_ref()[1]
    }

    /// Checksum.
    pub fn checksum(&self) -> u16 {
        u16_of(self.0.as_ref(), 2..4)
    }

    /// The last four bytes of the header: an echo's identifier and sequence number.
    pub fn rest(&self) -> u32 {
        u32_of(self.0.as_ref(), 4..8)
    }
}
