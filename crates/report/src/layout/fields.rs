//! Fields of headers (IEEE 802.3, 802.1Q; RFC 791, 8200, 9293, 768, 792, 4443).

use std::fmt;

/// Name of a field in a packet.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Name {
    /// of the inner packet of an ICMP error
    pub inner: bool,
    /// of the first, second … extension header behind IPv6; 0 for all other headers
    pub extension: usize,
    /// the name in the tables of this file
    pub field: &'static str,
}

/// Meaning of a field that headers of several protocols have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    /// where the packet comes from
    Source(End),
    /// where it goes
    Destination(End),
    /// which protocol comes next
    Protocol,
}

/// Kind of a source or destination.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End {
    /// an address
    Address,
    /// a port
    Port,
}

/// Fields of the source and their counterparts of the destination.
const PAIRS: &[(&str, &str, End)] = &[
    ("eth.src", "eth.dst", End::Address),
    ("ip.src", "ip.dst", End::Address),
    ("ip6.src", "ip6.dst", End::Address),
    ("tcp.sport", "tcp.dport", End::Port),
    ("udp.sport", "udp.dport", End::Port),
    ("l4.sport", "l4.dport", End::Port),
];

impl Name {
    /// The name of a field in one of the tables.
    pub(super) fn of(inner: bool, field: &'static str) -> Self {
        Self {
            inner,
            extension: 0,
            field,
        }
    }

    /// The meaning of the field, if other headers have a field of the same meaning.
    #[must_use]
    pub fn role(self) -> Option<Role> {
        if self.field == "ip.protocol" {
            return Some(Role::Protocol);
        }
        PAIRS.iter().find_map(|(source, destination, end)| {
            if self.field == *source {
                Some(Role::Source(*end))
            } else {
                (self.field == *destination).then_some(Role::Destination(*end))
            }
        })
    }

    /// The name with source and destination exchanged; the same for a field of neither.
    #[must_use]
    pub fn exchanged(self) -> Self {
        let field = PAIRS.iter().find_map(|(source, destination, _)| {
            if self.field == *source {
                Some(*destination)
            } else {
                (self.field == *destination).then_some(*source)
            }
        });
        Self {
            field: field.unwrap_or(self.field),
            ..self
        }
    }

    /// The header that the field is of; all headers of an inner packet count as one.
    #[must_use]
    pub fn header(self) -> (bool, usize, &'static str) {
        if self.inner {
            return (true, 0, "");
        }
        let protocol = self.field.split('.').next().unwrap_or_default();
        let own = if self.extension > 0 { "" } else { protocol };
        (false, self.extension, own)
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.inner {
            f.write_str("inner.")?;
        }
        if self.extension > 0 {
            write!(f, "ext{}.", self.extension)?;
        }
        f.write_str(self.field)
    }
}

/// A field: name, first byte from the header's, bytes.
pub(super) type Field = (&'static str, i64, i64);

pub(super) const ETHERNET: &[Field] = &[("eth.dst", 0, 6), ("eth.src", 6, 6), ("eth.type", 12, 2)];
pub(super) const TAG: &[Field] = &[("vlan.tci", 0, 2), ("vlan.type", 2, 2)];
pub(super) const IPV4: &[Field] = &[
    ("ip.version_ihl", 0, 1),
    ("ip.tos", 1, 1),
    ("ip.length", 2, 2),
    ("ip.id", 4, 2),
    ("ip.fragment", 6, 2),
    ("ip.ttl", 8, 1),
    ("ip.protocol", 9, 1),
    ("ip.checksum", 10, 2),
    ("ip.src", 12, 4),
    ("ip.dst", 16, 4),
];
pub(super) const IPV6: &[Field] = &[
    ("ip6.version_class_label", 0, 4),
    ("ip6.length", 4, 2),
    ("ip6.next", 6, 1),
    ("ip6.hops", 7, 1),
    ("ip6.src", 8, 16),
    ("ip6.dst", 24, 16),
];
pub(super) const TCP: &[Field] = &[
    ("tcp.sport", 0, 2),
    ("tcp.dport", 2, 2),
    ("tcp.seq", 4, 4),
    ("tcp.ack", 8, 4),
    ("tcp.offset", 12, 1),
    ("tcp.flags", 13, 1),
    ("tcp.window", 14, 2),
    ("tcp.checksum", 16, 2),
];
pub(super) const UDP: &[Field] = &[
    ("udp.sport", 0, 2),
    ("udp.dport", 2, 2),
    ("udp.length", 4, 2),
    ("udp.checksum", 6, 2),
];
pub(super) const ICMP: &[Field] = &[
    ("icmp.type", 0, 1),
    ("icmp.code", 1, 1),
    ("icmp.checksum", 2, 2),
    ("icmp.id", 4, 2),
    ("icmp.seq", 6, 2),
];
pub(super) const ICMPV6: &[Field] = &[
    ("icmp6.type", 0, 1),
    ("icmp6.code", 1, 1),
    ("icmp6.checksum", 2, 2),
    ("icmp6.id", 4, 2),
    ("icmp6.seq", 6, 2),
];
/// An extension header of IPv6, without its own name.
pub(super) const EXTENSION: &[Field] = &[("next", 0, 1), ("length", 1, 1), ("data", 2, 6)];
/// The same, if it may be a fragment header.
pub(super) const FRAGMENT: &[Field] = &[
    ("next", 0, 1),
    ("length", 1, 1),
    ("fragment", 2, 2),
    ("id", 4, 4),
];
/// TCP or UDP, the guard says not which.
pub(super) const EITHER: &[Field] = &[("l4.sport", 0, 2), ("l4.dport", 2, 2)];

/// Bytes before the packet that an ICMP error carries.
pub(super) const ICMP_BYTES: i64 = 8;

/// The fields of a transport header behind IPv4, or behind IPv6.
pub(super) fn transport(protocol: Option<u8>, six: bool) -> &'static [Field] {
    match protocol {
        Some(6) => TCP,
        Some(17) => UDP,
        Some(1) if !six => ICMP,
        Some(58) if six => ICMPV6,
        _ => EITHER,
    }
}

/// Fields within a byte: the byte's field, its index there, lowest bit, bits, name.
const PARTS: &[(&str, i64, u32, u32, &str)] = &[
    ("ip.version_ihl", 0, 4, 4, "ip.version"),
    ("ip.version_ihl", 0, 0, 4, "ip.ihl"),
    ("ip6.version_class_label", 0, 4, 4, "ip6.version"),
    ("tcp.offset", 0, 4, 4, "tcp.words"),
    ("eth.src", 0, 0, 1, "eth.src.group"),
    ("eth.dst", 0, 0, 1, "eth.dst.group"),
];

/// The name of bits within a byte of a field.
#[must_use]
pub fn part(field: &str, byte: i64, low: u32, width: u32) -> Option<String> {
    let (prefix, bare) = match field.strip_prefix("inner.") {
        Some(rest) => ("inner.", rest),
        None => ("", field),
    };
    let hit = PARTS
        .iter()
        .find(|p| (p.0, p.1, p.2, p.3) == (bare, byte, low, width));
    hit.map(|p| format!("{prefix}{}", p.4))
}
