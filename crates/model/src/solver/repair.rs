//! Assignments made into packets with the right checksums. What comes of it is only a proposal: it is
//! taken if it satisfies the whole guard.

use crate::expr::eval::Assignment;

/// Where the network header stands behind no, one or two tags.
const NETWORK: [u64; 3] = [14, 18, 22];

/// The same with the checksum of what looks like an IPv4 header put right (RFC 791).
pub(super) fn checksums(from: &Assignment) -> Assignment {
    let mut packet = from.packet.clone();
    let Some(at) = NETWORK.into_iter().find(|at| {
        let kind = [at - 2, at - 1].map(|i| packet.get(&i).copied().unwrap_or(0));
        kind == [8, 0]
    }) else {
        return from.clone();
    };
    let length = u64::from(packet.get(&at).copied().unwrap_or(0) & 15) * 4;
    packet.remove(&(at + 10));
    packet.remove(&(at + 11));
    let mut sum = 0_u32;
    for i in (at..at + length).step_by(2) {
        let byte = |i| packet.get(&i).copied().unwrap_or(0);
        sum += u32::from(u16::from_be_bytes([byte(i), byte(i + 1)]));
    }
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    let [high, low] = (!(sum as u16)).to_be_bytes();
    packet.insert(at + 10, high);
    packet.insert(at + 11, low);
    Assignment::new(from.symbols.clone(), packet)
}
