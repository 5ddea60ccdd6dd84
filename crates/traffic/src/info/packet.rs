//! What one packet adds to a description.

use std::hash::{DefaultHasher, Hash, Hasher};

use etherparse::{
    EtherType, Icmpv4Slice, Icmpv6Slice, Ipv6ExtensionSlice, LaxIpPayloadSlice, LaxNetSlice,
    LaxSlicedPacket, LenSource, TransportSlice,
};

use crate::checksum::Sum;

#[derive(Default)]
pub(super) struct Facts {
    pub(super) protocol: &'static str,
    pub(super) vlan: bool,
    pub(super) ipv4: bool,
    pub(super) ipv6: bool,
    pub(super) fragment: bool,
    pub(super) malformed: bool,
    pub(super) wrong_ipv4: bool,
    pub(super) wrong_transport: bool,
    /// What the flow hashes to, for IP.
    pub(super) flow: Option<u64>,
}

impl Facts {
    pub(super) fn of(frame: &[u8]) -> Self {
        let mut facts = Self {
            protocol: "other",
            ..Self::default()
        };
        let Ok(packet) = LaxSlicedPacket::from_ethernet(frame) else {
            facts.malformed = true;
            return facts;
        };
        facts.malformed = packet.stop_err.is_some();
        facts.vlan =
            !packet.link_exts.is_empty() || first_type(frame) == Some(EtherType::VLAN_TAGGED_FRAME);
        let transport = packet.transport.as_ref();
        match &packet.net {
            None => {}
            Some(LaxNetSlice::Arp(_)) => facts.protocol = "arp",
            Some(LaxNetSlice::Ipv4(ip)) => {
                facts.ipv4 = true;
                facts.protocol = "ip";
                let header = ip.header();
                facts.wrong_ipv4 = Sum::default().bytes(header.slice()).folded() != 0xffff;
                let first = header.fragments_offset().value() == 0;
                let (source, destination) = (header.source(), header.destination());
                facts.of_ip([&source, &destination], ip.payload(), transport, first);
            }
            Some(LaxNetSlice::Ipv6(ip)) => {
                facts.ipv6 = true;
                facts.protocol = "ip6";
                let header = ip.header();
                let later = |extension: Ipv6ExtensionSlice<'_>| {
                    matches!(extension, Ipv6ExtensionSlice::Fragment(fragment)
                        if fragment.fragment_offset().value() > 0)
                };
                let first = !ip.extensions().clone().into_iter().any(later);
                let (source, destination) = (header.source(), header.destination());
                facts.of_ip([&source, &destination], ip.payload(), transport, first);
            }
        }
        facts
    }

    fn of_ip(
        &mut self,
        [source, destination]: [&[u8]; 2],
        payload: &LaxIpPayloadSlice<'_>,
        transport: Option<&TransportSlice<'_>>,
        first_fragment: bool,
    ) {
        self.fragment = payload.fragmented;
        let number = payload.ip_number.0;
        let (name, ports) = match transport {
            Some(TransportSlice::Tcp(tcp)) => ("tcp", (tcp.source_port(), tcp.destination_port())),
            Some(TransportSlice::Udp(udp)) => ("udp", (udp.source_port(), udp.destination_port())),
            Some(TransportSlice::Icmpv4(icmp)) => ("icmp", echo4(icmp)),
            Some(TransportSlice::Icmpv6(icmp)) => ("icmp6", echo6(icmp)),
            Some(TransportSlice::Igmp(_)) => ("igmp", (0, 0)),
            None if first_fragment => match (number, ports(payload.payload)) {
                (6, Some(ports)) => ("tcp", ports),
                (17, Some(ports)) => ("udp", ports),
                _ => (self.protocol, (0, 0)),
            },
            None => (self.protocol, (0, 0)),
        };
        self.protocol = name;
        let (low, high) = ((source, ports.0), (destination, ports.1));
        let mut hasher = DefaultHasher::new();
        (low.min(high), low.max(high), number).hash(&mut hasher);
        self.flow = Some(hasher.finish());

        // A length that came from the capture and not from the header is no basis for a checksum.
        let whole =
            !payload.incomplete && !payload.fragmented && payload.len_source != LenSource::Slice;
        if !whole {
            return;
        }
        let pseudo = |bytes: &[u8]| {
            let length = bytes.len() as u32;
            Sum::default()
                .pseudo(source, destination, number, length)
                .bytes(bytes)
                .folded()
        };
        let bytes = payload.payload;
        self.wrong_transport = match transport {
            Some(TransportSlice::Tcp(_) | TransportSlice::Icmpv6(_)) => pseudo(bytes) != 0xffff,
            Some(TransportSlice::Udp(udp)) => {
                // Its length may be less than what IP carries; zero for a checksum is none.
                let part = bytes.get(..usize::from(udp.length()));
                udp.checksum() != 0 && part.is_some_and(|part| pseudo(part) != 0xffff)
            }
            Some(TransportSlice::Icmpv4(_)) => Sum::default().bytes(bytes).folded() != 0xffff,
            Some(TransportSlice::Igmp(_)) | None => false,
        };
    }
}

fn first_type(frame: &[u8]) -> Option<EtherType> {
    Some(EtherType(u16::from_be_bytes(
        *frame.get(12..)?.first_chunk()?,
    )))
}

/// The ports that TCP and UDP begin with; a first fragment has them, whatever it lacks otherwise.
fn ports(payload: &[u8]) -> Option<(u16, u16)> {
    let &[a, b, c, d] = payload.first_chunk()?;
    Some((u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d])))
}

/// An echo's identifier in place of both ports, so that request and reply are one flow.
fn echo4(icmp: &Icmpv4Slice<'_>) -> (u16, u16) {
    match (icmp.type_u8(), icmp.bytes5to8()) {
        (0 | 8, [high, low, ..]) => (
            u16::from_be_bytes([high, low]),
            u16::from_be_bytes([high, low]),
        ),
        _ => (0, 0),
    }
}

fn echo6(icmp: &Icmpv6Slice<'_>) -> (u16, u16) {
    match (icmp.type_u8(), icmp.bytes5to8()) {
        (128 | 129, [high, low, ..]) => (
            u16::from_be_bytes([high, low]),
            u16::from_be_bytes([high, low]),
        ),
        _ => (0, 0),
    }
}
