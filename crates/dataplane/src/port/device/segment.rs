//! Large packets cut into the segments they stand for.
//!
//! A local TCP hands the kernel packets of up to 64 KiB and leaves it to the device to cut them
//! (TSO), and receiving devices glue arriving segments together (GRO). Such a packet would not fit
//! any wire that it leaves by, so it is cut on the way in: every segment has the headers of the whole,
//! with lengths, identification, sequence number, flags and checksums of its own (RFC 9293, 3.1;
//! RFC 6864 for the identification).

use millrace_wire::checksum::nonzero;
use millrace_wire::tcp::{CWR, FIN, PSH};
use millrace_wire::{Version, ipv4, ipv6, protocol, put, tcp, udp};

use super::offload::{Header, Transport, transport};

/// VIRTIO_NET_HDR_GSO_TCPV4, _TCPV6, _UDP_L4 (linux/virtio_net.h), without the ECN bit.
const TCP4: u8 = 1;
const TCP6: u8 = 4;
const UDP: u8 = 5;
const ECN: u8 = 0x80;

/// How a large packet is cut. Each segment is a function of its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segments {
    transport: Transport,
    /// bytes of all headers
    headers: usize,
    /// payload bytes of each but the last
    size: usize,
    /// how many
    pub count: usize,
}

impl Segments {
    /// How this packet is to be cut; none when it is of a kind that cannot be.
    #[must_use]
    pub fn of(frame: &[u8], header: &Header) -> Option<Self> {
        let transport = transport(frame)?;
        let start = transport.upper.at;
        let six = transport.ip.version == Version::V6;
        let fixed = match (header.gso_type & !ECN, transport.upper.protocol, six) {
            (TCP4, protocol::TCP, false) | (TCP6, protocol::TCP, true) => {
                let header = frame
                    .get(start..)
                    .and_then(|h| tcp::Header::new_checked(h).ok());
                header?.header_length()
            }
            (UDP, protocol::UDP, _) => udp::HEADER,
            _ => return None,
        };
        let headers = start + fixed;
        let size = usize::from(header.gso_size);
        let payload = transport.ip.end.checked_sub(headers)?;
        if size == 0 {
            return None;
        }
        Some(Self {
            transport,
            headers,
            size,
            count: payload.div_ceil(size).max(1),
        })
    }

    /// Bytes of segment `index` of `frame`.
    #[must_use]
    pub fn length(&self, index: usize) -> usize {
        let from = self.headers + index * self.size;
        self.headers + self.size.min(self.transport.ip.end.saturating_sub(from))
    }

    /// Writes segment `index` into `to`, which has room for [`Segments::length`] bytes, and says how
    /// many there are.
    pub fn write(&self, frame: &[u8], index: usize, to: &mut [u8]) -> Option<usize> {
        let from = self.headers + index * self.size;
        let length = self.length(index);
        let payload = frame.get(from..from + (length - self.headers))?;
        to.get_mut(..self.headers)?
            .copy_from_slice(frame.get(..self.headers)?);
        to.get_mut(self.headers..length)?.copy_from_slice(payload);
        let to = to.get_mut(..length)?;
        let (ip, upper) = (&self.transport.ip, self.transport.upper);
        let packet = to.get_mut(ip.at..)?;
        let bytes = packet.len() as u16;
        match ip.version {
            Version::V4 => {
                let mut header = ipv4::Header::new_checked(packet).ok()?;
                header.set_total_length(bytes);
                header.set_id(header.id().wrapping_add(index as u16));
                header.fill_checksum();
            }
            Version::V6 => {
                let mut header = ipv6::Header::new_checked(packet).ok()?;
                header.set_payload_length(bytes - ipv6::HEADER as u16);
            }
        }
        let message = to.get_mut(upper.at..)?;
        let bytes = message.len();
        if upper.protocol == protocol::TCP {
            let mut header = tcp::Header::new_checked(message).ok()?;
            let first = header.sequence();
            header.set_sequence(first.wrapping_add((index * self.size) as u32));
            let mut flags = header.flags();
            if index + 1 < self.count {
                flags &= !(FIN | PSH);
            }
            if index > 0 {
                flags &= !CWR;
            }
            header.set_flags(flags);
        } else {
            udp::Header::new_checked(message)
                .ok()?
                .set_length(bytes as u16);
        }
        let place = self.transport.place;
        put(to, place, 0);
        let pseudo = self.transport.pseudo(to, bytes as u32);
        let sum = pseudo.bytes(to.get(upper.at..)?).checksum();
        put(to, place, nonzero(sum)).then_some(length)
    }
}

#[cfg(test)]
mod tests {
    use millrace_wire::checksum::Sum;

    use super::*;
    use crate::port::device::{finish, looks_unfinished};

    /// Ethernet, IPv4 or IPv6, TCP or UDP, a payload; the transport checksum left to the device.
    fn packet(six: bool, protocol: u8, payload: usize) -> Vec<u8> {
        let transport = if protocol == 6 { 20 } else { 8 };
        let mut p = vec![2; 12];
        p.extend(if six { [0x86, 0xdd] } else { [8, 0] });
        let length = (transport + payload) as u16;
        if six {
            p.extend([0x60, 0, 0, 0]);
            p.extend(length.to_be_bytes());
            p.extend([protocol, 64]);
            p.extend([0x20; 32]);
        } else {
            p.extend([0x45, 0]);
            p.extend((length + 20).to_be_bytes());
            p.extend([
                0xff, 0xff, 0, 0, 64, protocol, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2,
            ]);
        }
        let start = p.len();
        p.extend([0x12, 0x34, 0, 80]);
        if protocol == 6 {
            p.extend([
                0xff, 0xff, 0xff, 0xf0, 0, 0, 0, 1, 0x50, 0x99, 1, 0, 0, 0, 0, 0,
            ]);
        } else {
            p.extend(length.to_be_bytes());
            p.extend([0, 0]);
        }
        p.extend((0..payload).map(|i| i as u8));
        let t = transport_of(&p);
        let pseudo = t.pseudo(&p, (p.len() - start) as u32).folded();
        assert!(put(&mut p, t.place, pseudo));
        p
    }

    fn transport_of(p: &[u8]) -> Transport {
        transport(p).unwrap()
    }

    fn right(p: &[u8]) -> bool {
        let t = transport_of(p);
        let network = (t.ip.version == Version::V6)
            || Sum::default().bytes(&p[t.ip.at..t.upper.at]).folded() == 0xffff;
        let sum = t
            .pseudo(p, (p.len() - t.upper.at) as u32)
            .bytes(&p[t.upper.at..]);
        network && sum.folded() == 0xffff
    }

    #[test]
    fn a_checksum_left_to_the_device_is_found_and_finished() {
        for (six, protocol) in [(false, 6), (false, 17), (true, 6), (true, 17)] {
            let mut p = packet(six, protocol, 33);
            let (start, offset) = looks_unfinished(&p).unwrap();
            assert!(finish(&mut p, start, offset));
            let t = transport_of(&p);
            let sum = t
                .pseudo(&p, (p.len() - t.upper.at) as u32)
                .bytes(&p[t.upper.at..]);
            assert_eq!(sum.folded(), 0xffff, "{six} {protocol}");
            assert_eq!(looks_unfinished(&p), None);
        }
        assert!(!finish(&mut [0; 20], 19, 1));
        assert!(!finish(&mut [0; 20], usize::MAX, 1));
    }

    #[test]
    fn segments_are_right_packets_that_carry_the_whole() {
        for (six, protocol, kind) in [(false, 6, TCP4), (true, 6, TCP6 | ECN), (false, 17, UDP)] {
            let whole = packet(six, protocol, 3500);
            let header = Header {
                flags: 1,
                gso_type: kind,
                gso_size: 1400,
                ..Header::default()
            };
            let cut = Segments::of(&whole, &header).unwrap();
            assert_eq!(cut.count, 3);
            let mut payload = Vec::new();
            for index in 0..cut.count {
                let mut to = vec![0; cut.length(index)];
                assert_eq!(cut.write(&whole, index, &mut to), Some(to.len()));
                assert!(right(&to), "{six} {protocol} {index}");
                if protocol == 6 {
                    let t = transport_of(&to);
                    let sequence = u32::from_be_bytes(*to[t.upper.at + 4..].first_chunk().unwrap());
                    let expected = 0xffff_fff0_u32.wrapping_add(1400 * index as u32);
                    assert_eq!(sequence, expected);
                    let last = index == 2;
                    let flags = to[t.upper.at + 13];
                    assert_eq!(flags & (FIN | PSH) != 0, last);
                    assert_eq!(flags & CWR != 0, index == 0);
                }
                payload.extend_from_slice(&to[cut.headers..]);
            }
            assert_eq!(payload, whole[cut.headers..]);
        }
    }

    #[test]
    fn what_cannot_be_cut_is_refused() {
        let whole = packet(false, 6, 3000);
        let with = |gso_type, gso_size| {
            Segments::of(
                &whole,
                &Header {
                    gso_type,
                    gso_size,
                    ..Header::default()
                },
            )
        };
        assert!(with(TCP4, 0).is_none() && with(TCP6, 1400).is_none() && with(3, 1400).is_none());
        for length in 0..whole.len() {
            // A packet cut anywhere is no such packet, and nothing panics.
            let header = Header {
                gso_type: TCP4,
                gso_size: 1400,
                ..Header::default()
            };
            assert!(Segments::of(&whole[..length], &header).is_none());
        }
    }
}
