//! Work that the kernel leaves to devices, done here: checksums.
//!
//! A packet that a local process sends through a veth has not been on a wire, so its sender left the
//! transport checksum to the device: the field holds the folded sum of the pseudo header only. A
//! function that updates it incrementally (RFC 1624), or a receiver that verifies it, would be
//! wrong. What a port lends must be as on a wire, so such checksums are finished on the way in.

use millrace_wire::checksum::Sum;

/// What a packet socket says of a packet: `struct virtio_net_hdr` (linux/virtio_net.h), in the
/// machine's byte order.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Header {
    /// bit 0: the checksum must be finished
    pub flags: u8,
    /// what kind of segments the packet stands for, 0 for none
    pub gso_type: u8,
    /// bytes of all headers, a hint
    pub hdr_len: u16,
    /// payload bytes of each segment
    pub gso_size: u16,
    /// where the bytes begin that the checksum is over
    pub csum_start: u16,
    /// where it is stored, from there
    pub csum_offset: u16,
}

impl Header {
    /// Whether the checksum must be finished.
    #[must_use]
    pub fn unfinished(&self) -> bool {
        self.flags & 1 != 0
    }
}

/// Finishes a checksum: the field at `start + offset` holds the sum of the pseudo header, and the
/// checksum is over everything from `start`. False when the place is outside the packet.
pub fn finish(frame: &mut [u8], start: usize, offset: usize) -> bool {
    let Some(place) = start.checked_add(offset).filter(|p| p + 2 <= frame.len()) else {
        return false;
    };
    let Some(over) = frame.get(start..) else {
        return false;
    };
    // The field itself is part of the sum, which is how the pseudo header gets in.
    store(frame, place, Sum::default().bytes(over).checksum())
}

/// Stores a checksum; one that comes out as zero becomes 0xffff, its other representation, because
/// zero says "none" in UDP (RFC 768).
pub(super) fn store(frame: &mut [u8], place: usize, checksum: u16) -> bool {
    let checksum = if checksum == 0 { 0xffff } else { checksum };
    match frame.get_mut(place..).and_then(|f| f.first_chunk_mut()) {
        Some(field) => {
            *field = checksum.to_be_bytes();
            true
        }
        None => false,
    }
}

/// Where the transport header of a packet is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transport {
    /// where the network header begins
    pub network: usize,
    /// where the transport header begins
    pub start: usize,
    /// where its packet ends, by the network header
    pub end: usize,
    /// the protocol: 6 or 17
    pub protocol: u8,
    /// IPv6
    pub six: bool,
}

/// A 16-bit number of the wire.
pub fn word(frame: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(*frame.get(at..)?.first_chunk()?))
}

/// Where the network header begins behind Ethernet and at most two VLAN tags, and its EtherType.
#[must_use]
pub fn network(frame: &[u8]) -> Option<(usize, u16)> {
    let mut network = 14;
    let mut kind = word(frame, 12)?;
    while matches!(kind, 0x8100 | 0x88a8) && network < 22 {
        kind = word(frame, network + 2)?;
        network += 4;
    }
    Some((network, kind))
}

/// Finds TCP or UDP behind Ethernet, VLAN tags and IPv4 or IPv6 without extension headers; none for
/// anything else, fragments among it.
#[must_use]
pub fn transport(frame: &[u8]) -> Option<Transport> {
    let (network, kind) = network(frame)?;
    let found = match kind {
        0x0800 => {
            let header = usize::from(frame.get(network)? & 15) * 4;
            let total = usize::from(word(frame, network + 2)?);
            // Bits of more fragments, and the offset.
            if word(frame, network + 6)? & 0x3fff != 0 || header < 20 || total < header {
                return None;
            }
            Transport {
                network,
                start: network + header,
                end: network + total,
                protocol: *frame.get(network + 9)?,
                six: false,
            }
        }
        0x86dd => Transport {
            network,
            start: network + 40,
            end: network + 40 + usize::from(word(frame, network + 4)?),
            protocol: *frame.get(network + 6)?,
            six: true,
        },
        _ => return None,
    };
    let fits = found.start < found.end && found.end <= frame.len();
    (fits && matches!(found.protocol, 6 | 17)).then_some(found)
}

impl Transport {
    /// The sum of the pseudo header for an upper-layer packet of this many bytes.
    #[must_use]
    pub fn pseudo(&self, frame: &[u8], length: u32) -> Sum {
        let (at, bytes) = if self.six { (8, 16) } else { (12, 4) };
        let address = |i: usize| {
            let from = self.network + at + i * bytes;
            frame.get(from..from + bytes).unwrap_or_default()
        };
        Sum::default().pseudo(address(0), address(1), self.protocol, length)
    }

    /// Where the checksum is stored.
    #[must_use]
    pub fn place(&self) -> usize {
        self.start + if self.protocol == 6 { 16 } else { 6 }
    }
}

/// Whether the transport checksum looks as if its sender had left it to a device: it equals the folded
/// sum of the pseudo header. Where a port gets no word from the kernel (XDP) this is all there is to
/// go by. Finishing a checksum that equals that sum by chance (one packet in 65,536) gives the
/// right one again, unless the packet was damaged on the way.
#[must_use]
pub fn looks_unfinished(frame: &[u8]) -> Option<(usize, usize)> {
    let found = transport(frame)?;
    let place = found.place();
    let stored = u16::from_be_bytes(*frame.get(place..)?.first_chunk()?);
    let length = (found.end - found.start) as u32;
    let pseudo = found.pseudo(frame, length).folded();
    (stored == pseudo).then_some((found.start, place - found.start))
}
