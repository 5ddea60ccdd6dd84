//! Numbers of protocols over IP (IANA, "Assigned Internet Protocol Numbers").

/// Hop-by-hop options of IPv6 (RFC 8200, 4.3)
pub const HOP_BY_HOP: u8 = 0;
/// ICMP (RFC 792)
pub const ICMP: u8 = 1;
/// IGMP (RFC 3376)
pub const IGMP: u8 = 2;
/// IPv4 in IP (RFC 2003)
pub const IPV4: u8 = 4;
/// TCP (RFC 9293)
pub const TCP: u8 = 6;
/// UDP (RFC 768)
pub const UDP: u8 = 17;
/// IPv6 in IP (RFC 2473)
pub const IPV6: u8 = 41;
/// Routing header of IPv6 (RFC 8200, 4.4)
pub const ROUTING: u8 = 43;
/// Fragment header of IPv6 (RFC 8200, 4.5)
pub const FRAGMENT: u8 = 44;
/// Authentication header (RFC 4302)
pub const AUTHENTICATION: u8 = 51;
/// ICMPv6 (RFC 4443)
pub const ICMPV6: u8 = 58;
/// No next header (RFC 8200, 4.7)
pub const NONE: u8 = 59;
/// Destination options of IPv6 (RFC 8200, 4.6)
pub const DESTINATION: u8 = 60;
/// SCTP (RFC 9260)
pub const SCTP: u8 = 132;
/// Mobility header (RFC 6275)
pub const MOBILITY: u8 = 135;
/// Host Identity Protocol (RFC 7401)
pub const HIP: u8 = 139;
/// Shim6 (RFC 5533)
pub const SHIM6: u8 = 140;

/// Where the header of a protocol holds its checksum, from the header's beginning; none of protocols whose checksum is
/// none of this kind.
#[must_use]
pub fn checksum_at(protocol: u8) -> Option<usize> {
    match protocol {
        TCP => Some(16),
        UDP => Some(6),
        ICMP | ICMPV6 => Some(2),
        _ => None,
    }
}

/// Whether the checksum of a protocol covers the pseudo header: all but that of ICMP.
#[must_use]
pub fn covers_addresses(protocol: u8) -> bool {
    matches!(protocol, TCP | UDP | ICMPV6)
}
