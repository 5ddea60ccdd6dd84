//! Checksums of two packets that differ in some words: whether they differ as these words require.
//!
//! A checksum's message sums to the same number (in one's complement) as long as it is right, or as wrong as
//! before: so a message whose words were replaced and whose checksum was updated has the sum it had (RFC 1624).
//! This is looked at for the IPv4 header, and for TCP, UDP and ICMP with the addresses where these count, also of
//! a packet that an ICMP error carries, as far as it is there.

use millrace_wire::checksum::Sum;
use millrace_wire::protocol::{UDP, checksum_at, covers_addresses};
use millrace_wire::{Fragment, Ip, Rule, Version, ipv4, walk, word};

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
    fn sum(&self, frame: &[u8]) -> u16 {
        let parts = self.covered.iter().filter_map(|r| {
            let end = r.end.min(frame.len());
            frame.get(r.start.min(end)..end)
        });
        parts.fold(Sum::default(), Sum::bytes).residue()
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
    let layers = walk(frame, Rule::WRITTEN);
    let inner = layers.inner(frame, Rule::WRITTEN);
    for ip in [Some(layers), inner]
        .into_iter()
        .flatten()
        .filter_map(|l| l.ip)
    {
        of_packet(frame, &ip, &mut found);
    }
    found
}

fn of_packet(frame: &[u8], ip: &Ip, found: &mut Vec<Checksum>) {
    if ip.version == Version::V4 {
        let header = ip.at..ip.at + ip.header;
        found.push(Checksum {
            at: ip.at + ipv4::CHECKSUM,
            covered: vec![header],
            optional: false,
        });
    }
    let Some(upper) = ip.upper.filter(|_| ip.fragment != Fragment::Later) else {
        return;
    };
    let Some(place) = checksum_at(upper.protocol) else {
        return;
    };
    let message = upper.at..frame.len();
    // Of a packet that is carried, only what is there counts, and its checksum may not be.
    if upper.at + place + 2 <= frame.len() {
        found.push(Checksum {
            at: upper.at + place,
            covered: if covers_addresses(upper.protocol) {
                vec![ip.addresses(), message]
            } else {
                vec![message]
            },
            optional: upper.protocol == UDP,
        });
    }
}

#[cfg(test)]
mod tests {
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

    /// Where a walk of its own said otherwise.
    #[test]
    fn odd_packets_have_the_checksums_that_the_walk_finds() {
        let places = |frame: &[u8]| checksums(frame).iter().map(|s| s.at).collect::<Vec<_>>();
        let udp = packet("eth / ip 10.0.0.1 > 192.0.2.1 / udp 1 > 2").unwrap();
        assert_eq!(places(&udp), [24, 40]);
        // More tags than four.
        let mut tagged = udp[..12].to_vec();
        tagged.extend([0x81, 0, 0, 7].repeat(5));
        tagged.extend(&udp[12..]);
        assert_eq!(places(&tagged), [44, 60]);
        assert!(Places::of(&tagged).is_some());
        // More extension headers than sixteen.
        let chain = "dstopts / ".repeat(20);
        let six = format!("eth / ip6 fd00::1 > fd00::2 / {chain} udp 1 > 2");
        let at = 14 + 40 + 20 * 8 + 6;
        assert_eq!(
            places(&packet(&six.replace("dstopts / ", "dstopts 010400000000 / ")).unwrap()),
            [at]
        );
        // A header that says less than 20 bytes, and one that is cut, is none.
        let mut short = udp.clone();
        short[14] = 0x44;
        assert!(places(&short).is_empty());
        assert!(places(&udp[..30]).is_empty());
        // ICMP over IPv6 and ICMPv6 over IPv4 carry no packet.
        let inner = "ip 10.0.0.1 > 192.0.2.1 / udp 1 > 2";
        let crossed = format!("eth / ip6 fd00::1 > fd00::2 / icmp unreachable 3 / {inner}");
        assert_eq!(places(&packet(&crossed).unwrap()), [56]);
        let own = format!("eth / ip 10.0.0.9 > 10.0.0.1 / icmp unreachable 3 / {inner}");
        assert_eq!(places(&packet(&own).unwrap()), [24, 36, 52, 68]);
    }
}
