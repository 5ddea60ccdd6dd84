//! Work that the kernel leaves to devices, done here: checksums.
//!
//! A packet that a local process sends through a veth has not been on a wire, so its sender left the
//! transport checksum to the device: the field holds the folded sum of the pseudo header only. A
//! function that updates it incrementally (RFC 1624), or a receiver that verifies it, would be
//! wrong. What a port lends must be as on a wire, so such checksums are finished on the way in.

use millrace_wire::checksum::Sum;
use millrace_wire::protocol::{TCP, UDP, checksum_at};
use millrace_wire::{Fragment, Ip, Rule, Upper, walk, word};

pub use millrace_wire::checksum::finish;

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

/// Where the transport header of a packet is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transport {
    /// its header of IP
    pub ip: Ip,
    /// the transport header
    pub upper: Upper,
    /// where its checksum is stored
    pub place: usize,
}

/// Finds TCP or UDP behind Ethernet, at most two VLAN tags and IPv4 or IPv6 without extension headers; none for
/// anything else, fragments among it, and where there is not a byte of it.
#[must_use]
pub fn transport(frame: &[u8]) -> Option<Transport> {
    let whole = |ip: &Ip| ip.fragment == Fragment::Whole && ip.extensions == 0;
    let ip = walk(frame, Rule::DEVICE).ip.filter(whole)?;
    let upper = ip.upper.filter(|upper| upper.at < ip.end)?;
    let place = match upper.protocol {
        TCP | UDP => upper.at + checksum_at(upper.protocol)?,
        _ => return None,
    };
    Some(Transport { ip, upper, place })
}

impl Transport {
    /// The sum of the pseudo header for an upper-layer packet of this many bytes.
    #[must_use]
    pub fn pseudo(&self, frame: &[u8], bytes: u32) -> Sum {
        self.ip.pseudo(frame, self.upper.protocol, bytes)
    }
}

/// Whether the transport checksum looks as if its sender had left it to a device: it equals the folded
/// sum of the pseudo header. Where a port gets no word from the kernel (XDP) this is all there is to
/// go by. Finishing a checksum that equals that sum by chance (one packet in 65,536) gives the
/// right one again, unless the packet was damaged on the way.
#[must_use]
pub fn looks_unfinished(frame: &[u8]) -> Option<(usize, usize)> {
    let found = transport(frame)?;
    let stored = word(frame, found.place)?;
    let bytes = (found.ip.end - found.upper.at) as u32;
    let pseudo = found.pseudo(frame, bytes).folded();
    (stored == pseudo).then_some((found.upper.at, found.place - found.upper.at))
}

#[cfg(test)]
mod tests {
    use super::{looks_unfinished, transport};

    /// UDP over IPv4 whose checksum is left to a device.
    fn unfinished() -> Vec<u8> {
        let mut frame = vec![2; 12];
        frame.extend([
            8, 0, 0x45, 0, 0, 28, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2,
        ]);
        // The sum of the pseudo header: the addresses, the protocol and eight bytes.
        frame.extend([0, 1, 0, 2, 0, 8, 0x14, 0x1c]);
        frame
    }

    /// The version in the header counts, not the EtherType alone: whose version is another one is not finished.
    #[test]
    fn of_a_header_of_another_version_nothing_is_finished() {
        let mut frame = unfinished();
        assert_eq!(looks_unfinished(&frame), Some((34, 6)));
        frame[14] = 0x65;
        assert_eq!((transport(&frame), looks_unfinished(&frame)), (None, None));
    }
}
