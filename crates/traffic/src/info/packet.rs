//! Contribution of one packet to a description: its headers are walked by [`Rule::CAPTURE`].

use std::hash::{DefaultHasher, Hash, Hasher};

use millrace_wire::checksum::Sum;
use millrace_wire::protocol::{ICMP, ICMPV6, IGMP, TCP, UDP, covers_addresses};
use millrace_wire::{
    Fragment, Ip, Rule, Upper, Version, announced, arp, ethernet, icmpv4, icmpv6, tcp, udp, walk,
    word,
};

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
        let layers = walk(frame, Rule::CAPTURE);
        let mut facts = Self {
            protocol: "other",
            vlan: layers.link.tags > 0,
            ..Self::default()
        };
        match layers.link.ethertype {
            Some(ethernet::IPV4) => (facts.ipv4, facts.protocol) = (true, "ip"),
            Some(ethernet::IPV6) => (facts.ipv6, facts.protocol) = (true, "ip6"),
            Some(ethernet::ARP) => {
                facts.protocol = "arp";
                facts.malformed = frame.len() < layers.link.at + arp::MESSAGE;
                return facts;
            }
            Some(_) => return facts,
            None => {
                facts.malformed = true;
                return facts;
            }
        }
        let ip = layers.ip.filter(|ip| ip.at + ip.header <= frame.len());
        let Some(ip) = ip else {
            facts.malformed = true;
            return facts;
        };
        let nothing = match ip.version {
            Version::V4 => ip.at,
            Version::V6 => ip.at + ip.header,
        };
        // Where the header says that the packet ends; segmentation offload leaves zero for the network card to fill in.
        let said = announced(frame, layers.link).filter(|end| *end > nothing);
        if ip.version == Version::V4 {
            let header = frame.get(ip.at..ip.at + ip.header).unwrap_or(&[]);
            facts.wrong_ipv4 = !Sum::default().bytes(header).holds();
            facts.malformed = said.is_some_and(|end| end < ip.at + ip.header);
        }
        facts.fragment = ip.fragment != Fragment::Whole;
        match ip.upper {
            Some(upper) => {
                let first = ip.fragment != Fragment::Later;
                let whole = said.is_some_and(|end| end == ip.end);
                facts.upper(frame, &ip, upper, (first, whole));
            }
            None => facts.malformed = true,
        }
        facts
    }

    /// What IP carries: whether it begins here, not in an earlier fragment, and whether all that the header announces is
    /// there.
    fn upper(&mut self, frame: &[u8], ip: &Ip, upper: Upper, (first, whole): (bool, bool)) {
        let bytes = ip.upper_bytes(frame);
        let ports = || Some((word(bytes, 0)?, word(bytes, 2)?));
        // An echo's identifier stands in place of both ports, so that request and reply are one flow.
        let both = |echo: icmpv4::Echo| (echo.identifier, echo.identifier);
        let (name, least, ports) = match upper.protocol {
            TCP => ("tcp", tcp::HEADER, ports()),
            UDP => ("udp", udp::HEADER, ports()),
            ICMP => ("icmp", icmpv4::HEADER, icmpv4::echo(bytes).map(both)),
            ICMPV6 => ("icmp6", icmpv6::HEADER, icmpv6::echo(bytes).map(both)),
            IGMP => ("igmp", 8, None),
            _ => (self.protocol, 0, None),
        };
        let ports = ports.filter(|_| first).unwrap_or((0, 0));
        let (low, high) = (
            (ip.source(frame), ports.0),
            (ip.destination(frame), ports.1),
        );
        let mut hasher = DefaultHasher::new();
        (low.min(high), low.max(high), upper.protocol).hash(&mut hasher);
        self.flow = Some(hasher.finish());
        if !first {
            return;
        }
        self.protocol = name;
        self.malformed |= bytes.len() < least;
        if whole && !self.fragment && bytes.len() >= least {
            self.wrong_transport = wrong_checksum(frame, ip, upper.protocol, bytes);
        }
    }
}

/// Whether the checksum of a transport is wrong of which all is there.
fn wrong_checksum(frame: &[u8], ip: &Ip, protocol: u8, bytes: &[u8]) -> bool {
    let wrong = |bytes: &[u8]| {
        let sum = if covers_addresses(protocol) {
            ip.pseudo(frame, protocol, bytes.len() as u32)
        } else {
            Sum::default()
        };
        !sum.bytes(bytes).holds()
    };
    match protocol {
        TCP | ICMP | ICMPV6 => wrong(bytes),
        // Its length may be less than what IP carries.
        UDP => udp::Header::new_checked(bytes).is_ok_and(|header| {
            let part = bytes.get(..usize::from(header.length()));
            let part = part.filter(|part| part.len() >= udp::HEADER);
            header.checksum() != 0 && part.is_some_and(wrong)
        }),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::language::{Packet, packet};

    /// A frame of UDP with this many VLAN tags and six bytes of padding.
    fn tagged(tags: usize) -> Vec<u8> {
        let plain = packet("eth / ip 10.0.0.1 > 10.0.0.2 / udp 1 > 2").unwrap();
        let mut frame = plain[..12].to_vec();
        frame.extend([0x81, 0, 0, 7].repeat(tags));
        frame.extend(&plain[12..]);
        frame.extend([0; 6]);
        frame
    }

    /// As many as the frame holds: a walk of its own stopped at eight here, and at twelve in the packet language.
    #[test]
    fn tags_are_stepped_over_however_many() {
        for tags in [0, 1, 8, 9, 12, 13, 40] {
            let frame = tagged(tags);
            let facts = Facts::of(&frame);
            assert_eq!((facts.protocol, facts.vlan), ("udp", tags > 0), "{tags}");
            assert!(!facts.malformed && !facts.wrong_transport);
            assert_eq!(facts.flow, Facts::of(&tagged(0)).flow);
            let text = Packet::decode(&frame).to_string();
            assert!(text.contains("trailer"), "{text}");
            assert_eq!(packet(&text).unwrap(), frame);
        }
    }
}
