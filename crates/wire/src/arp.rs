//! ARP for IPv4 over Ethernet (RFC 826).

use std::net::Ipv4Addr;
use std::ops::Range;

use crate::Incomplete;
use crate::bytes::{field, u16_of, whole};

/// Bytes of a message with 6-byte and 4-byte addresses.
pub const MESSAGE: usize = 28;
/// How such a message begins: hardware type 1, protocol type IPv4, lengths of addresses 6 and 4.
pub const BEGINNING: [u8; 6] = [0, 1, 8, 0, 6, 4];
/// Where the sender's IPv4 address is.
pub const SENDER: Range<usize> = 14..18;

/// Operation that asks for an address
pub const REQUEST: u16 = 1;
/// Operation that answers
pub const REPLY: u16 = 2;

/// A message. That it is of IPv4 over Ethernet, [`Self::is_ipv4`] tells.
#[derive(Clone, Copy, Debug)]
pub struct Message<T>(T);

impl<T: AsRef<[u8]>> Message<T> {
    /// A view.
    ///
    /// # Errors
    /// There are less than 28 bytes.
    pub fn new_checked(buffer: T) -> Result<Self, Incomplete> {
        whole(buffer, MESSAGE).map(Self)
    }

    /// Whether types and lengths of addresses are those of IPv4 over Ethernet.
    pub fn is_ipv4(&self) -> bool {
        self.0.as_ref().starts_with(&BEGINNING)
    }

    /// The operation.
    pub fn operation(&self) -> u16 {
        u16_of(self.0.as_ref(), 6..8)
    }

    /// Hardware address of the sender.
    pub fn sender_hardware(&self) -> [u8; 6] {
        field(self.0.as_ref(), 8..14)
    }

    /// Protocol address of the sender.
    pub fn sender(&self) -> Ipv4Addr {
        field::<4>(self.0.as_ref(), SENDER).into()
    }

    /// Protocol address of the target.
    pub fn target(&self) -> Ipv4Addr {
        field::<4>(self.0.as_ref(), 24..28).into()
    }
}
