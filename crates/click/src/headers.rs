//! Fields of IPv4 and of what it carries, written with their checksums updated (RFC 1624): a sum that was wrong stays
//! wrong.

use millrace_wire::checksum::{replace, replace_udp};
use millrace_wire::{ipv4, put, tcp, word};

use crate::packet::Packet;
use crate::rewriter::Key;

/// Bytes of the header, the protocol, and whether it is a first fragment, of the marked IPv4 packet.
fn outline(packet: &Packet) -> Option<(usize, u8, bool)> {
    let ip = packet.ip()?;
    let header = ipv4::header_bytes(*ip.first()?);
    let first = word(ip, ipv4::FRAGMENT)? & ipv4::OFFSET == 0;
    (header >= ipv4::HEADER && ip.len() >= ipv4::HEADER).then_some(())?;
    Some((header, *ip.get(ipv4::PROTOCOL)?, first))
}

/// Where a protocol's checksum is behind the IP header, and whether a zero is none.
fn checksum(protocol: u8) -> Option<(usize, bool)> {
    match protocol {
        6 => Some((16, false)),
        17 => Some((6, true)),
        _ => None,
    }
}

/// Replaces a word of the packet, and what it does to the sums at some places.
fn change(ip: &mut [u8], at: usize, to: u16, sums: &[(usize, bool)]) {
    let Some(from) = word(ip, at) else {
        return;
    };
    put(ip, at, to);
    for (place, udp) in sums {
        if let Some(sum) = word(ip, *place) {
            let new = if *udp {
                replace_udp(sum, from, to)
            } else {
                replace(sum, from, to)
            };
            put(ip, *place, new);
        }
    }
}

/// A message of zeros alone has the checksum of all ones: an update cannot tell (RFC 1624, section 3).
pub fn nonzero(icmp: &mut [u8]) {
    if icmp.iter().all(|b| *b == 0) {
        put(icmp, 2, 0xffff);
    }
}

/// Writes an address of the IP header, at 12 or 16; false where there is no header.
pub fn write(packet: &mut Packet, at: usize, address: &[u8; 4]) -> bool {
    let Some((header, protocol, first)) = outline(packet) else {
        return false;
    };
    let Some(ip) = packet.ip_mut() else {
        return false;
    };
    let mut sums = vec![(ipv4::CHECKSUM, false)];
    if let (Some((place, udp)), true) = (checksum(protocol), first) {
        sums.push((header + place, udp));
    }
    change(ip, at, u16::from_be_bytes([address[0], address[1]]), &sums);
    change(
        ip,
        at + 2,
        u16::from_be_bytes([address[2], address[3]]),
        &sums,
    );
    true
}

/// Writes a byte pair of the IP header, with the header's checksum.
pub fn write_word(packet: &mut Packet, at: usize, number: u16) {
    if let Some(ip) = packet.ip_mut() {
        change(ip, at, number, &[(ipv4::CHECKSUM, false)]);
    }
}

/// The words of a packet's flow: TCP and UDP, first fragments with their ports.
#[must_use]
pub fn key(packet: &Packet) -> Option<Key> {
    let (header, protocol, first) = outline(packet)?;
    checksum(protocol).filter(|_| first)?;
    let ip = packet.ip()?;
    ip.get(header..header + 8)?;
    Some(Key {
        source: ip.get(ipv4::SOURCE)?.try_into().ok()?,
        sport: word(ip, header)?,
        destination: ip.get(ipv4::DESTINATION)?.try_into().ok()?,
        dport: word(ip, header + 2)?,
        protocol,
    })
}

/// The same of an echo request or answer: the identifier is the source port of a request, the destination port of an
/// answer.
#[must_use]
pub fn echo_key(packet: &Packet) -> Option<Key> {
    let (header, protocol, first) = outline(packet)?;
    let ip = packet.ip()?;
    let id = word(ip, header + 4)?;
    let (sport, dport) = match *ip.get(header)? {
        8 => (id, 0),
        0 => (0, id),
        _ => return None,
    };
    (protocol == 1 && first).then_some(())?;
    Some(Key {
        source: ip.get(ipv4::SOURCE)?.try_into().ok()?,
        sport,
        destination: ip.get(ipv4::DESTINATION)?.try_into().ok()?,
        dport,
        protocol,
    })
}

/// Addresses alone.
#[must_use]
pub fn addresses(packet: &Packet) -> Option<([u8; 4], [u8; 4])> {
    outline(packet)?;
    let ip = packet.ip()?;
    let source = ip.get(ipv4::SOURCE)?.try_into().ok()?;
    Some((source, ip.get(ipv4::DESTINATION)?.try_into().ok()?))
}

/// Gives a packet the words of a key: addresses, and ports or the echo's identifier if it has them.
pub fn apply(packet: &mut Packet, key: Key, ports: bool) {
    write(packet, 12, &key.source);
    write(packet, 16, &key.destination);
    let Some((header, protocol, true)) = outline(packet) else {
        return;
    };
    let Some(ip) = packet.ip_mut().filter(|_| ports) else {
        return;
    };
    if let Some((place, udp)) = checksum(protocol) {
        let sums = [(header + place, udp)];
        change(ip, header, key.sport, &sums);
        change(ip, header + 2, key.dport, &sums);
    } else if protocol == 1 {
        let id = if ip.get(header) == Some(&8) {
            key.sport
        } else {
            key.dport
        };
        change(ip, header + 4, id, &[(header + 2, false)]);
        nonzero(ip.get_mut(header..).unwrap_or(&mut []));
    }
}

/// Flags of TCP, and whether data follow.
#[must_use]
pub fn tcp_state(packet: &Packet) -> Option<(u8, bool)> {
    let (header, protocol, first) = outline(packet)?;
    let ip = packet.ip()?;
    (protocol == 6 && first).then_some(())?;
    let total = usize::from(word(ip, ipv4::LENGTH)?);
    let offset = tcp::header_bytes(*ip.get(header + tcp::OFFSET)?);
    Some((*ip.get(header + tcp::FLAGS)?, total > header + offset))
}
