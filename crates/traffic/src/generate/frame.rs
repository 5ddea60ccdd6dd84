//! Frames with right lengths and checksums, quickly: payloads are zeros, so that a checksum is that of
//! the headers alone.

use millrace_wire::checksum::{Sum, nonzero};
use millrace_wire::{ethernet, icmpv4, icmpv6, protocol};

use super::flow::{Addresses, Identity, Protocol};

const LAN_MAC: [u8; 6] = [2, 0, 0, 0, 0, 1];
const WAN_MAC: [u8; 6] = [2, 0, 0, 0, 0, 2];

/// Bytes that headers can take: Ethernet, IPv6, TCP with one option.
const HEADERS: usize = 14 + 40 + 24;

pub(super) const FIN: u8 = 1;
pub(super) const SYN: u8 = 2;
pub(super) const PSH: u8 = 8;
pub(super) const ACK: u8 = 16;

/// What a packet says beyond who it is from.
#[derive(Clone, Copy, Default)]
pub(super) struct Saying {
    /// Whether the server in the WAN sends it.
    pub(super) answer: bool,
    pub(super) sequence: u32,
    pub(super) acknowledgement: u32,
    pub(super) flags: u8,
    /// The IPv4 identification.
    pub(super) number: u16,
}

/// A buffer whose bytes after the headers are always zero.
pub(super) struct Frame {
    buffer: Box<[u8]>,
}

/// Writes into a buffer from the front; what does not fit is dropped, and the buffer is made so that
/// all headers fit.
struct Put<'a> {
    buffer: &'a mut [u8],
    at: usize,
}

impl Put<'_> {
    #[inline]
    fn bytes<const N: usize>(&mut self, bytes: [u8; N]) {
        if let Some(place) = self.buffer.get_mut(self.at..self.at + N) {
            place.copy_from_slice(&bytes);
        }
        self.at += N;
    }

    #[inline]
    fn half(&mut self, number: u16) {
        self.bytes(number.to_be_bytes());
    }

    fn patch(&mut self, at: usize, number: u16) {
        if let Some(place) = self.buffer.get_mut(at..at + 2) {
            place.copy_from_slice(&number.to_be_bytes());
        }
    }

    fn sum(&self, from: usize) -> Sum {
        Sum::default().bytes(self.buffer.get(from..self.at).unwrap_or(&[]))
    }
}

impl Frame {
    pub(super) fn new(longest: usize) -> Self {
        Self {
            buffer: vec![0; longest.max(HEADERS)].into_boxed_slice(),
        }
    }

    /// Bytes before the payload.
    pub(super) fn headers(identity: &Identity, syn: bool) -> usize {
        let network = if matches!(identity.addresses, Addresses::V4(..)) {
            20
        } else {
            40
        };
        let transport = match identity.protocol {
            Protocol::Tcp if syn => 24,
            Protocol::Tcp => 20,
            Protocol::Udp | Protocol::Icmp => 8,
        };
        14 + network + transport
    }

    /// Makes a frame of `length` bytes, at least as long as its headers.
    pub(super) fn make(&mut self, identity: &Identity, saying: Saying, length: usize) -> &[u8] {
        let length = length.max(Self::headers(identity, saying.flags & SYN != 0));
        if let Some(headers) = self.buffer.get_mut(..HEADERS) {
            headers.fill(0);
        }
        let mut put = Put {
            buffer: &mut self.buffer,
            at: 0,
        };
        let (from, to) = if saying.answer {
            (WAN_MAC, LAN_MAC)
        } else {
            (LAN_MAC, WAN_MAC)
        };
        put.bytes(to);
        put.bytes(from);
        let pseudo = network(&mut put, identity, saying, length);
        transport(&mut put, identity, saying, length, pseudo);
        self.buffer.get(..length).unwrap_or(&[])
    }
}

/// Writes the Ethernet type and the network header; the sum of the pseudo header.
fn network(put: &mut Put<'_>, identity: &Identity, saying: Saying, length: usize) -> Sum {
    let six = matches!(identity.addresses, Addresses::V6(..));
    let number = match identity.protocol {
        Protocol::Tcp => protocol::TCP,
        Protocol::Udp => protocol::UDP,
        Protocol::Icmp if six => protocol::ICMPV6,
        Protocol::Icmp => protocol::ICMP,
    };
    match identity.addresses {
        Addresses::V4(lan, wan) => {
            let (source, destination) = if saying.answer {
                (wan, lan)
            } else {
                (lan, wan)
            };
            put.half(ethernet::IPV4);
            put.bytes([0x45, 0]);
            put.half((length - 14) as u16);
            put.half(saying.number);
            // Do not fragment, as hosts that discover the path's MTU say (RFC 1191).
            put.half(0x4000);
            put.bytes([64, number, 0, 0]);
            put.bytes(source.octets());
            put.bytes(destination.octets());
            let checksum = put.sum(14).checksum();
            put.patch(24, checksum);
            let upper = (length - 34) as u32;
            Sum::default().pseudo(&source.octets(), &destination.octets(), number, upper)
        }
        Addresses::V6(lan, wan) => {
            let (source, destination) = if saying.answer {
                (wan, lan)
            } else {
                (lan, wan)
            };
            put.half(ethernet::IPV6);
            put.bytes([0x60, 0, 0, 0]);
            put.half((length - 54) as u16);
            put.bytes([number, 64]);
            put.bytes(source.octets());
            put.bytes(destination.octets());
            let upper = (length - 54) as u32;
            Sum::default().pseudo(&source.octets(), &destination.octets(), number, upper)
        }
    }
}

fn transport(put: &mut Put<'_>, identity: &Identity, saying: Saying, length: usize, pseudo: Sum) {
    let (lan, wan) = (identity.source_port, identity.destination_port);
    let (source, destination) = if saying.answer {
        (wan, lan)
    } else {
        (lan, wan)
    };
    let begun = put.at;
    let (checksum_at, pseudo) = match identity.protocol {
        Protocol::Tcp => {
            let syn = saying.flags & SYN != 0;
            put.half(source);
            put.half(destination);
            put.bytes(saying.sequence.to_be_bytes());
            put.bytes(saying.acknowledgement.to_be_bytes());
            put.bytes([if syn { 0x60 } else { 0x50 }, saying.flags]);
            put.half(65_535);
            put.bytes([0; 4]);
            if syn {
                // The maximum segment size: 1460 bytes, or 1440 over IPv6.
                put.bytes([2, 4]);
                put.half(if begun == 34 { 1460 } else { 1440 });
            }
            (begun + 16, pseudo)
        }
        Protocol::Udp => {
            put.half(source);
            put.half(destination);
            put.half((length - begun) as u16);
            put.half(0);
            (begun + 6, pseudo)
        }
        Protocol::Icmp => {
            let v4 = begun == 34;
            let kind = match (v4, saying.answer) {
                (true, false) => icmpv4::REQUEST,
                (true, true) => icmpv4::REPLY,
                (false, false) => icmpv6::REQUEST,
                (false, true) => icmpv6::REPLY,
            };
            put.bytes([kind, 0, 0, 0]);
            // The identifier is the flow's; the sequence counts its echoes.
            put.half(lan);
            put.half(saying.sequence as u16);
            // ICMPv4 has no pseudo header.
            (begun + 2, if v4 { Sum::default() } else { pseudo })
        }
    };
    let headers = put.buffer.get(begun..put.at).unwrap_or(&[]);
    let mut checksum = pseudo.bytes(headers).checksum();
    if identity.protocol == Protocol::Udp {
        checksum = nonzero(checksum);
    }
    put.patch(checksum_at, checksum);
}
