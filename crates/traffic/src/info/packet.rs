//! What one packet adds to a description.
//!
//! A walk over headers that trusts no length. A library was tried first: etherparse 0.21 reads outside
//! of the packet when the extension headers of a truncated IPv6 packet are iterated, which damaged
//! captures do bring about.

use std::hash::{DefaultHasher, Hash, Hasher};

use crate::checksum::Sum;

/// VLAN tags that are stepped over.
const MAX_TAGS: usize = 8;

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

fn byte(bytes: &[u8], at: usize) -> Option<u8> {
    bytes.get(at).copied()
}

fn word(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(*bytes.get(at..)?.first_chunk()?))
}

impl Facts {
    pub(super) fn of(frame: &[u8]) -> Self {
        let mut facts = Self {
            protocol: "other",
            ..Self::default()
        };
        facts.malformed |= facts.link(frame).is_none();
        facts
    }

    /// Each of the steps gives nothing where a header is not whole or contradicts itself.
    fn link(&mut self, frame: &[u8]) -> Option<()> {
        let mut at = 12;
        let mut kind = word(frame, at)?;
        for _ in 0..MAX_TAGS {
            if !matches!(kind, 0x8100 | 0x88a8 | 0x9100) {
                break;
            }
            self.vlan = true;
            at += 4;
            kind = word(frame, at)?;
        }
        let packet = frame.get(at + 2..)?;
        match kind {
            0x0800 => self.v4(packet),
            0x86dd => self.v6(packet),
            0x0806 => {
                self.protocol = "arp";
                packet.get(..28).map(drop)
            }
            _ => Some(()),
        }
    }

    fn v4(&mut self, packet: &[u8]) -> Option<()> {
        self.ipv4 = true;
        self.protocol = "ip";
        let first = byte(packet, 0).filter(|first| first >> 4 == 4)?;
        let header = packet.get(..usize::from(first & 15) * 4)?;
        let number = byte(header, 9)?;
        let (source, destination) = (header.get(12..16)?, header.get(16..20)?);
        self.wrong_ipv4 = Sum::default().bytes(header).folded() != 0xffff;
        let place = word(header, 6)?;
        self.fragment = place & 0x3fff != 0;
        // Zero is what segmentation offload leaves for the network card to fill in.
        let total = match word(header, 2)? {
            0 => None,
            total => {
                let total = usize::from(total).checked_sub(header.len());
                self.malformed |= total.is_none();
                total
            }
        };
        let rest = packet.get(header.len()..)?;
        self.transport(&Upper {
            ends: [source, destination],
            number,
            first: place & 0x1fff == 0,
            bytes: total.and_then(|total| rest.get(..total)).unwrap_or(rest),
            whole: total.is_some_and(|total| total <= rest.len()),
        });
        Some(())
    }

    fn v6(&mut self, packet: &[u8]) -> Option<()> {
        self.ipv6 = true;
        self.protocol = "ip6";
        let header = packet
            .get(..40)
            .filter(|header| byte(header, 0).is_some_and(|first| first >> 4 == 6))?;
        let (source, destination) = (header.get(8..24)?, header.get(24..40)?);
        let rest = packet.get(40..)?;
        // Zero: a jumbogram (RFC 2675) or, here too, segmentation offload.
        let total = Some(usize::from(word(header, 4)?)).filter(|total| *total > 0);
        let whole = total.is_some_and(|total| total <= rest.len());
        let mut bytes = total.and_then(|total| rest.get(..total)).unwrap_or(rest);
        let mut number = byte(header, 6)?;
        let mut first = true;
        // Each header has eight bytes at least, so the packet's length bounds this.
        while first && matches!(number, 0 | 43 | 44 | 51 | 60) {
            let length = match number {
                44 => {
                    let place = word(bytes, 2)?;
                    first = place & 0xfff8 == 0;
                    self.fragment |= place & 0xfff9 != 0;
                    8
                }
                // The authentication header counts in units of four, without its first two (RFC 4302, 2.2).
                51 => (usize::from(byte(bytes, 1)?) + 2) * 4,
                _ => (usize::from(byte(bytes, 1)?) + 1) * 8,
            };
            number = byte(bytes, 0)?;
            bytes = bytes.get(length..)?;
        }
        self.transport(&Upper {
            ends: [source, destination],
            number,
            first,
            bytes,
            whole,
        });
        (byte(packet, 0)? >> 4 == 6).then_some(())
    }

    fn transport(&mut self, upper: &Upper<'_>) {
        let ports = || Some((word(upper.bytes, 0)?, word(upper.bytes, 2)?));
        // An echo's identifier stands in place of both ports, so that request and reply are one flow.
        let echo = |request: u8, reply: u8| {
            let kind = byte(upper.bytes, 0)?;
            (kind == request || kind == reply).then_some(())?;
            let identifier = word(upper.bytes, 4)?;
            Some((identifier, identifier))
        };
        let (name, least, ports) = match upper.number {
            6 => ("tcp", 20, ports()),
            17 => ("udp", 8, ports()),
            1 => ("icmp", 8, echo(8, 0)),
            58 => ("icmp6", 8, echo(128, 129)),
            2 => ("igmp", 8, None),
            _ => (self.protocol, 0, None),
        };
        let ports = ports.filter(|_| upper.first).unwrap_or((0, 0));
        let [source, destination] = upper.ends;
        let (low, high) = ((source, ports.0), (destination, ports.1));
        let mut hasher = DefaultHasher::new();
        (low.min(high), low.max(high), upper.number).hash(&mut hasher);
        self.flow = Some(hasher.finish());
        if !upper.first {
            return;
        }
        self.protocol = name;
        self.malformed |= upper.bytes.len() < least;
        if upper.whole && !self.fragment && upper.bytes.len() >= least {
            self.wrong_transport = upper.wrong_checksum();
        }
    }
}

/// What IP carries.
struct Upper<'a> {
    ends: [&'a [u8]; 2],
    number: u8,
    /// Whether it begins here, not in an earlier fragment.
    first: bool,
    bytes: &'a [u8],
    /// Whether all that the header announces is there.
    whole: bool,
}

impl Upper<'_> {
    fn wrong_checksum(&self) -> bool {
        let pseudo = |bytes: &[u8]| {
            let [source, destination] = self.ends;
            let sum = Sum::default().pseudo(source, destination, self.number, bytes.len() as u32);
            sum.bytes(bytes).folded() != 0xffff
        };
        match self.number {
            6 | 58 => pseudo(self.bytes),
            17 => {
                // Its length may be less than what IP carries; zero for a checksum is none.
                let length = word(self.bytes, 4).map_or(0, usize::from);
                let part = self.bytes.get(..length).filter(|part| part.len() >= 8);
                word(self.bytes, 6) != Some(0) && part.is_some_and(pseudo)
            }
            1 => Sum::default().bytes(self.bytes).folded() != 0xffff,
            _ => false,
        }
    }
}
