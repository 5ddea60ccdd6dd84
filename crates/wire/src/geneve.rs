//! Geneve (RFC 8926) as it goes between machines of a cluster: an Ethernet frame behind one option of this project.
//!
//! The option has a class of the range for experiments (0xff00 to 0xffff, RFC 8926, section 10.2) and is critical (bit 7 of its type): an end that
//! does not know it drops the packet. Its 32 bytes, each number in network order:
//!
//! | bytes | what |
//! | --- | --- |
//! | 0 to 1 | bucket |
//! | 2 to 3 | port of the function at which the packet came in |
//! | 4 to 11 | version of the table by which it was sent |
//! | 12 | how many machines have sent it on, from 1 |
//! | 13 | what it carries: 0 a packet, 1 a mark, 2 the answer to one; behind a mark and its answer stand 10 bytes in place of a frame |
//! | 14 to 15 | reserved, 0 |
//! | 16 to 31 | what only a member of the cluster can say of all other bytes of the datagram ([`Forwarded::signed`]) |

use crate::bytes::{u16_of, whole};

/// The port of UDP that is assigned to it.
pub const PORT: u16 = 6081;
/// Bytes before options.
pub const HEADER: usize = 8;
/// Bytes of header and the option of [`Forwarded`].
pub const WHOLE: usize = HEADER + OPTION + DATA;
/// The class of the option.
pub const CLASS: u16 = 0xff4d;
/// The type of the option, critical.
pub const TYPE: u8 = 0x81;

const OPTION: usize = 4;
const DATA: usize = 16 + TAG;
/// Bytes of the signature.
pub const TAG: usize = 16;
/// Transparent Ethernet bridging (RFC 1701): an Ethernet frame follows.
const ETHERNET: u16 = 0x6558;
/// An option that may not be passed over is there.
const CRITICAL: u8 = 0x40;
/// A control message, which carries no packet.
const CONTROL: u8 = 0x80;

/// Why a datagram is no packet that a peer sent on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Malformed {
    /// its bytes end before its headers do
    Short,
    /// it is of another version of Geneve, a control message, or carries no Ethernet frame
    Other,
    /// it has an option that this end does not know and may not pass over, or has not the one that it needs
    Options,
    /// a number in the option is out of range
    Range,
}

/// What a datagram carries.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Carries {
    /// a packet
    #[default]
    Packet,
    /// a mark, which follows the last packet of a bucket on the way that its packets took
    Mark,
    /// the answer to a mark: it has come to where packets of the bucket are worked on
    Through,
}

/// What a peer says of a packet that it sends on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Forwarded {
    /// the bucket of the indirection table
    pub bucket: u16,
    /// the port of the function at which it came in
    pub port: u16,
    /// the version of the table by which it was sent
    pub version: u64,
    /// how many machines have sent it on, at least 1
    pub hops: u8,
    /// what follows
    pub carries: Carries,
}

impl Forwarded {
    /// The header, to be followed by the frame, with a signature of zeros. `network`, of which 24 bits go, tells clusters apart.
    #[must_use]
    pub fn header(&self, network: u32) -> [u8; WHOLE] {
        let mut bytes = [0; WHOLE];
        let parts: [&[u8]; 11] = [
            &[((OPTION + DATA) / 4) as u8, CRITICAL],
            &ETHERNET.to_be_bytes(),
            &(network << 8).to_be_bytes(),
            &CLASS.to_be_bytes(),
            &[TYPE, (DATA / 4) as u8],
            &self.bucket.to_be_bytes(),
            &self.port.to_be_bytes(),
            &self.version.to_be_bytes(),
            &[self.hops, self.carries as u8],
            &[0; 2],
            &[0; TAG],
        ];
        for (to, from) in bytes.iter_mut().zip(parts.into_iter().flatten()) {
            *to = *from;
        }
        bytes
    }

    /// Reads a datagram: what is said of the packet, the network, and the frame. Options of others are passed over where they are not critical.
    ///
    /// # Errors
    /// It is not one of ours.
    pub fn read(datagram: &[u8]) -> Result<(Self, u32, &[u8]), Malformed> {
        let header = whole(datagram, HEADER).map_err(|_| Malformed::Short)?;
        let (length, flags) = (usize::from(header[0] & 0x3f) * 4, header[1]);
        let other = header[0] >> 6 != 0 || flags & CONTROL != 0;
        if other || u16_of(header, 2..4) != ETHERNET {
            return Err(Malformed::Other);
        }
        let network = crate::bytes::u32_of(header, 4..8) >> 8;
        let end = HEADER + length;
        let mut options = datagram.get(HEADER..end).ok_or(Malformed::Short)?;
        let frame = datagram.get(end..).ok_or(Malformed::Short)?;
        let mut found = None;
        while !options.is_empty() {
            let head = whole(options, OPTION).map_err(|_| Malformed::Options)?;
            let (class, kind) = (u16_of(head, 0..2), head[2]);
            let next = OPTION + usize::from(head[3] & 0x1f) * 4;
            let data = options.get(OPTION..next).ok_or(Malformed::Options)?;
            if (class, kind) == (CLASS, TYPE) {
                // One, of its length.
                if data.len() != DATA || found.is_some() {
                    return Err(Malformed::Options);
                }
                found = Some(Self::option(data)?);
            } else if kind & 0x80 != 0 {
                return Err(Malformed::Options);
            }
            options = options.get(next..).ok_or(Malformed::Options)?;
        }
        let found = found.ok_or(Malformed::Options)?;
        Ok((found, network, frame))
    }

    /// The parts of a datagram that are signed, and the signature; none where it is not one of ours, or others' options are in it.
    #[must_use]
    pub fn signed(datagram: &[u8]) -> Option<([&[u8]; 2], &[u8; TAG])> {
        // Where `header` writes it.
        let (head, rest) = datagram.split_at_checked(WHOLE - TAG)?;
        let (tag, frame) = rest.split_first_chunk()?;
        let own = usize::from(head.first()? & 0x3f) * 4 == OPTION + DATA;
        own.then_some(([head, frame], tag))
    }

    fn option(data: &[u8]) -> Result<Self, Malformed> {
        let own = Self {
            bucket: u16_of(data, 0..2),
            port: u16_of(data, 2..4),
            version: u64::from_be_bytes(crate::bytes::field(data, 4..12)),
            hops: data[12],
            carries: match data[13] {
                0 => Carries::Packet,
                1 => Carries::Mark,
                2 => Carries::Through,
                _ => return Err(Malformed::Range),
            },
        };
        match own.hops {
            0 => Err(Malformed::Range),
            _ => Ok(own),
        }
    }
}
