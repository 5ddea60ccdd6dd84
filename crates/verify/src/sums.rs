//! Whether two packets that differ in some words differ rightly in their checksums.
//!
//! A checksum's message sums to the same number (in one's complement) as long as it is right, or as wrong as
//! before: so a message whose words were replaced and whose checksum was mended has the sum it had (RFC 1624).
//! This is looked at for the IPv4 header, and for TCP, UDP and ICMP with the addresses where these count, also of
//! a packet that an ICMP error carries, as far as it is there.

use crate::tuple::{network, word};

const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;
const ICMP: u8 = 1;
const TCP: u8 = 6;
const UDP: u8 = 17;
const ICMP6: u8 = 58;
const HOP_BY_HOP: u8 = 0;
const ROUTING: u8 = 43;
const FRAGMENT: u8 = 44;
const AUTHENTICATION: u8 = 51;
const DESTINATION: u8 = 60;
/// Extension headers that are stepped over.
const MAX_EXTENSIONS: usize = 16;
/// Bytes of an ICMP header before the packet that an error carries.
const ICMP_HEADER: usize = 8;

/// A checksum: where it stands, and which bytes it is of.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Checksum {
    /// offset of its two bytes
    pub at: usize,
    covered: Vec<std::ops::Range<usize>>,
    /// zero says that there is none (UDP, RFC 768; over IPv6 in tunnels, RFC 6935)
    optional: bool,
}

impl Checksum {
    /// The sum of all that it covers, itself included; the two representations of zero are one.
    fn sum(&self, frame: &[u8]) -> u64 {
        let parts = self.covered.iter().filter_map(|r| {
            let end = r.end.min(frame.len());
            frame.get(r.start.min(end)..end)
        });
        let words = parts.flat_map(|bytes| bytes.chunks(2));
        let sum: u64 = words
            .map(|w| u64::from(w[0]) << 8 | w.get(1).map_or(0, |b| u64::from(*b)))
            .sum();
        sum % 0xffff
    }

    /// Whether it is as right in one packet as in the other. One that is not there is not there in both: a sum that
    /// comes out as zero is written as all ones where zero says that there is none.
    #[must_use]
    pub fn agrees(&self, one: &[u8], other: &[u8]) -> bool {
        let none = |frame: &[u8]| self.optional && word(frame, self.at) == Some(0);
        match (none(one), none(other)) {
            (true, true) => true,
            (false, false) => self.sum(one) == self.sum(other),
            _ => false,
        }
    }
}

/// The checksums of a frame.
#[must_use]
pub fn checksums(frame: &[u8]) -> Vec<Checksum> {
    let mut found = Vec::new();
    if let Some((at, kind)) = network(frame) {
        packet(frame, at, kind, true, &mut found);
    }
    found
}

fn packet(frame: &[u8], at: usize, kind: u16, outer: bool, found: &mut Vec<Checksum>) {
    let Some(first) = frame.get(at) else {
        return;
    };
    let (protocol, addresses, transport) = match (kind, first >> 4) {
        (IPV4, 4) => {
            let length = usize::from(first & 15) * 4;
            let (Some(protocol), Some(piece)) = (frame.get(at + 9), word(frame, at + 6)) else {
                return;
            };
            let header = at..at + length;
            found.push(Checksum {
                at: at + 10,
                covered: vec![header],
                optional: false,
            });
            if length < 20 || piece & 0x1fff != 0 {
                return;
            }
            (*protocol, at + 12..at + 20, at + length)
        }
        (IPV6, 6) => match behind(frame, at) {
            Some((next, transport)) => (next, at + 8..at + 40, transport),
            None => return,
        },
        _ => return,
    };
    let message = transport..frame.len();
    let sum = match protocol {
        TCP => (transport + 16, vec![addresses, message]),
        UDP => (transport + 6, vec![addresses, message]),
        ICMP => (transport + 2, vec![message]),
        ICMP6 => (transport + 2, vec![addresses, message]),
        _ => return,
    };
    // Of a packet that is carried, only what is there counts, and its checksum may not be.
    if sum.0 + 2 <= frame.len() {
        found.push(Checksum {
            at: sum.0,
            covered: sum.1,
            optional: protocol == UDP,
        });
    }
    // RFC 792 and RFC 4443: errors carry the packet that they are about.
    let inner = match (protocol, frame.get(transport)) {
        (ICMP, Some(3 | 4 | 5 | 11 | 12)) => IPV4,
        (ICMP6, Some(1..=4)) => IPV6,
        _ => return,
    };
    if outer {
        packet(frame, transport + ICMP_HEADER, inner, false, found);
    }
}

/// The protocol behind a header of IPv6 and its extension headers (RFC 8200, section 4), and where it begins; none of a
/// fragment that is not the first.
fn behind(frame: &[u8], at: usize) -> Option<(u8, usize)> {
    let (mut next, mut at) = (*frame.get(at + 6)?, at + 40);
    for _ in 0..MAX_EXTENSIONS {
        let length = match next {
            HOP_BY_HOP | ROUTING | DESTINATION => 8 * (usize::from(*frame.get(at + 1)?) + 1),
            FRAGMENT if word(frame, at + 2)? >> 3 != 0 => return None,
            FRAGMENT => 8,
            AUTHENTICATION => 4 * (usize::from(*frame.get(at + 1)?) + 2),
            _ => return Some((next, at)),
        };
        next = *frame.get(at)?;
        at += length;
    }
    None
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::tuple::Places;
    use millrace_traffic::language::packet;

    #[test]
    fn a_packet_rewritten_rightly_agrees_and_a_wrong_checksum_does_not() {
        for text in [
            "eth / ip 10.0.0.1 > 192.0.2.1 / udp 1000 > 53 / payload \"abc\"",
            "eth / ip 10.0.0.1 > 192.0.2.1 / tcp 1000 > 80 / payload \"abcd\"",
            "eth / ip6 fd00::1 > 2001:db8::1 / udp 1000 > 53 / payload \"x\"",
        ] {
            let one = packet(text).unwrap();
            let mut other = one.clone();
            let places = Places::of(&one).unwrap();
            let mut tuple = places.tuple(&one).unwrap();
            tuple.source.port = 0x1234;
            places.write(&mut other, &tuple);
            let sums = checksums(&one);
            assert!(sums.iter().all(|s| s.agrees(&one, &other)), "{text}");
            let last = sums.last().unwrap();
            other[last.at] ^= 1;
            assert!(!last.agrees(&one, &other), "{text}");
        }
    }

    #[test]
    fn a_datagram_without_a_checksum_agrees_with_one_without_only() {
        let mut one =
            packet("eth / ip 10.0.0.1 > 192.0.2.1 / udp 1000 > 53 / payload \"abc\"").unwrap();
        one[40..42].fill(0);
        let mut other = one.clone();
        other[35] ^= 3;
        let sums = checksums(&one);
        assert!(sums.iter().all(|s| s.agrees(&one, &other)));
        other[41] = 1;
        assert!(!sums.last().unwrap().agrees(&one, &other));
        // All ones is a sum.
        other[40..42].fill(0xff);
        assert!(!sums.last().unwrap().agrees(&one, &other));
    }

    #[test]
    fn every_frame_can_be_looked_at() {
        let whole = packet("eth / ip 10.0.0.1 > 192.0.2.1 / tcp 1000 > 80").unwrap();
        for length in 0..whole.len() {
            let cut = &whole[..length];
            for sum in checksums(cut) {
                assert!(sum.agrees(cut, cut));
            }
        }
    }
}
