//! Ethernet II (IEEE 802.3, 3.2.6): addresses and EtherType.

use crate::Incomplete;
use crate::bytes::{field, u16_of, whole};

/// Bytes of the header.
pub const HEADER: usize = 14;
/// Where the EtherType is.
pub const TYPE: usize = 12;

/// EtherType of IPv4
pub const IPV4: u16 = 0x0800;
/// EtherType of ARP
pub const ARP: u16 = 0x0806;
/// EtherType of a VLAN tag (IEEE 802.1Q)
pub const VLAN: u16 = 0x8100;
/// EtherType of IPv6
pub const IPV6: u16 = 0x86dd;
/// EtherType of a service VLAN tag (IEEE 802.1ad)
pub const SERVICE_VLAN: u16 = 0x88a8;
/// EtherType of the outer tag before 802.1ad
pub const OLD_VLAN: u16 = 0x9100;
/// EtherType for local experiments (IEEE 802, 9.2.4)
pub const EXPERIMENTAL: u16 = 0x88b5;

/// EtherTypes of VLAN tags, the old one last.
pub const TAGS: [u16; 3] = [VLAN, SERVICE_VLAN, OLD_VLAN];

/// Whether an EtherType is that of a VLAN tag, the old one included.
#[inline]
#[must_use]
pub fn is_tag(ethertype: u16) -> bool {
    TAGS.contains(&ethertype)
}

/// A frame, by its header.
#[derive(Clone, Copy, Debug)]
pub struct Frame<T>(T);

impl<T: AsRef<[u8]>> Frame<T> {
    /// A view.
    ///
    /// # Errors
    /// There are less than 14 bytes.
    pub fn new_checked(buffer: T) -> Result<Self, Incomplete> {
        whole(buffer, HEADER).map(Self)
    }

    /// Destination address.
    pub fn destination(&self) -> [u8; 6] {
        field(self.0.as_ref(), 0..6)
    }

    /// Source address.
    pub fn source(&self) -> [u8; 6] {
        field(self.0.as_ref(), 6..12)
    }

    /// EtherType of what follows.
    pub fn ethertype(&self) -> u16 {
        u16_of(self.0.as_ref(), TYPE..HEADER)
    }
}
