//! Packets whose paths are written as straight code: what most traffic is made of.

use super::Packet;

/// Destination and source address, EtherType of IPv4.
const ETHERNET: [u8; 14] = [2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0];
/// Bytes of a frame, more than functions look at.
const LENGTH: usize = 128;
const TCP: u8 = 6;
const UDP: u8 = 17;

/// They: TCP and UDP over IPv4 without options or VLAN tags, into each of the first two ports.
pub fn all() -> Vec<Packet> {
    let tcp = {
        let mut segment = vec![0; 20];
        (segment[12], segment[13]) = (5 << 4, 1 << 4);
        segment
    };
    let bytes = (LENGTH - ETHERNET.len() - 20) as u8;
    let udp = vec![0, 0, 0, 0, 0, bytes, 0, 0];
    let ports = |(protocol, header): (u8, &[u8])| [0, 1].map(|port| frame(port, protocol, header));
    [(UDP, udp.as_slice()), (TCP, tcp.as_slice())]
        .into_iter()
        .flat_map(ports)
        .collect()
}

/// A frame with this header behind that of IPv4.
fn frame(port: u32, protocol: u8, header: &[u8]) -> Packet {
    let mut bytes = ETHERNET.to_vec();
    let length = (LENGTH - ETHERNET.len()) as u16;
    let mut ip = vec![
        0x45, 0, 0, 0, 0, 1, 0, 0, 64, protocol, 0, 0, 10, 0, 0, 1, 198, 51, 100, 1,
    ];
    ip[2..4].copy_from_slice(&length.to_be_bytes());
    let sum: u32 = ip
        .chunks(2)
        .map(|w| u32::from(u16::from_be_bytes([w[0], w[1]])))
        .sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    let checksum = !(((folded & 0xffff) + (folded >> 16)) as u16);
    ip[10..12].copy_from_slice(&checksum.to_be_bytes());
    bytes.extend(ip);
    let begin = bytes.len();
    bytes.extend(header);
    bytes.resize(LENGTH, 0);
    // From a port of a client to one of a server.
    bytes[begin..begin + 4].copy_from_slice(&[0x9c, 0x40, 0, 53]);
    Packet { port, bytes }
}
