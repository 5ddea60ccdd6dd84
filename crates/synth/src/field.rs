//! Fields of a packet: the variables of diagrams, in their order.
//!
//! A frame's bits are divided into fields that do not overlap, so that a test of any bytes is a conjunction over fields and a
//! write of one field leaves the others alone. Fields of the transport header are counted from where the header's length puts it.

use std::fmt;

/// Where a field's bits are counted from.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Base {
    /// the first byte of the frame as it came
    Frame,
    /// the transport header behind the IP header that begins at this byte of the frame
    Upper(u16),
}

/// A variable.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Var {
    /// the port by which the packet came
    Port,
    /// bytes of the frame
    Length,
    /// whether the frame has a right IPv4 header at a byte: version, lengths, and the sum if that is asked (1: yes)
    Checked(u16, bool),
    /// bits of a header: base, first bit, how many
    Bits(Base, u32, u8),
    /// bytes from the transport header behind the IP header at a byte to the frame's end or, if it is cut, to the IP packet's
    Room(u16, bool),
    /// the destination annotation
    Destination,
    /// a byte of annotations
    Anno(u8),
    /// for whom the link received it: 0 this host, 1 all, 2 a group
    Kind,
    /// a word of what a rewriter's entry holds: hop, word ([`Word`])
    Entry(u8, Word),
    /// the answer of a list of rules to a question ([`crate::listed`]), and whether words of a flow decide it
    Listed(u32, bool),
}

/// A word of a flow.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Word {
    /// source address
    Source,
    /// destination address
    Destination,
    /// source port
    Sport,
    /// destination port
    Dport,
}

/// Fields of the IPv4 header: first bit, bits, name (RFC 791, 3.1; RFC 3168).
const IPV4: [(u32, u8, &str); 15] = [
    (0, 4, "ip vers"),
    (4, 4, "ip hl"),
    (8, 6, "ip dscp"),
    (14, 2, "ip ecn"),
    (16, 16, "ip len"),
    (32, 16, "ip id"),
    (48, 1, "ip reserved flag"),
    (49, 1, "ip df"),
    (50, 1, "ip mf"),
    (51, 13, "ip fragment offset"),
    (64, 8, "ip ttl"),
    (72, 8, "ip proto"),
    (80, 16, "ip sum"),
    (96, 32, "ip src"),
    (128, 32, "ip dst"),
];

/// Fields of the Ethernet header; the bit of groups is one (IEEE 802.3, 3.2.3).
const ETHERNET: [(u32, u8); 5] = [(0, 7), (7, 1), (8, 40), (48, 48), (96, 16)];

/// Bits of an IPv4 header without options.
const HEADER: u32 = 160;

/// A field of the IP header at a byte, by its first bit there.
#[must_use]
pub fn ip(at: u16, bit: u32) -> Var {
    let width = IPV4.iter().find(|f| f.0 == bit).map_or(8, |f| f.1);
    Var::Bits(Base::Frame, u32::from(at) * 8 + bit, width)
}

/// Whether the IP header has a field of this width at a bit of it.
#[must_use]
pub fn is_of_ip(bit: u32, width: u8) -> bool {
    IPV4.iter().any(|f| (f.0, f.1) == (bit, width))
}

/// First bits of fields of the IP header.
pub mod bit {
    /// header length in words
    pub const IHL: u32 = 4;
    /// total length
    pub const LENGTH: u32 = 16;
    /// Don't Fragment
    pub const DF: u32 = 49;
    /// more fragments
    pub const MF: u32 = 50;
    /// fragment offset
    pub const OFFSET: u32 = 51;
    /// time to live
    pub const TTL: u32 = 64;
    /// protocol
    pub const PROTOCOL: u32 = 72;
    /// header checksum
    pub const SUM: u32 = 80;
    /// source
    pub const SOURCE: u32 = 96;
    /// destination
    pub const DESTINATION: u32 = 128;
}

/// The field that a bit of the frame is in, where an IP header begins at byte `at`.
#[must_use]
pub fn of_frame(at: u16, bit: u32) -> Var {
    let start = u32::from(at) * 8;
    if bit < 112 {
        let field = ETHERNET.iter().rev().find(|f| f.0 <= bit);
        let (first, width) = field.copied().unwrap_or((0, 7));
        return Var::Bits(Base::Frame, first, width);
    }
    if bit >= start && bit < start + HEADER {
        let field = IPV4.iter().rev().find(|f| f.0 <= bit - start);
        let (first, width, _) = field.copied().unwrap_or((0, 4, ""));
        return Var::Bits(Base::Frame, start + first, width);
    }
    // A byte each: a packet may end with the first of two.
    Var::Bits(Base::Frame, bit / 8 * 8, 8)
}

/// The field that a bit of the transport header is in: 16 bits, the flags of TCP one by one, and behind TCP's header a byte each.
#[must_use]
pub fn of_upper(at: u16, bit: u32) -> Var {
    let (first, width) = match bit {
        96..100 => (96, 4),
        100..104 => (100, 4),
        104..112 => (bit, 1),
        ..160 => (bit / 16 * 16, 16),
        bit => (bit / 8 * 8, 8),
    };
    Var::Bits(Base::Upper(at), first, width)
}

impl Var {
    /// The highest value.
    #[must_use]
    pub fn most(self) -> u64 {
        match self {
            Self::Port | Self::Anno(_) => 255,
            Self::Length | Self::Room(..) | Self::Listed(..) => 65_535,
            Self::Checked(..) => 1,
            Self::Kind => 2,
            Self::Destination => u64::from(u32::MAX),
            Self::Bits(_, _, width) => u64::MAX >> (64 - u32::from(width)),
            Self::Entry(_, Word::Source | Word::Destination) => u64::from(u32::MAX),
            Self::Entry(..) => 65_535,
        }
    }

    /// The place in the order: what proves that later ones exist comes first, then what names a flow, last what differs
    /// between the packets of a flow. So all that a flow decides is decided above what its packets decide.
    fn rank(self) -> (u8, u32, u32) {
        match self {
            Self::Port => (0, 0, 0),
            Self::Length => (1, 0, 0),
            Self::Bits(Base::Frame, 96, _) => (2, 0, 0),
            Self::Bits(Base::Frame, bit, _) if bit < 112 => (2, 1 + bit, 0),
            Self::Kind => (3, 0, 0),
            Self::Checked(at, sum) => (4, u32::from(at), u32::from(sum)),
            Self::Bits(Base::Frame, bit, width) => match (width, Self::header_bit(bit)) {
                (4, Some(0 | bit::IHL)) => (5, bit, 0),
                (_, Some(bit::MF | bit::OFFSET)) => (6, bit, 0),
                (8, Some(bit::PROTOCOL)) => (7, bit, 0),
                (32, _) => (10, u32::MAX - bit, 0),
                _ => (14, bit, 0),
            },
            Self::Room(at, cut) => (8, u32::from(at), u32::from(cut)),
            Self::Destination => (9, 0, 0),
            Self::Anno(at) => (9, 1, u32::from(at)),
            Self::Bits(Base::Upper(at), bit, _) if bit < 32 => (11, u32::from(at), 32 - bit),
            Self::Entry(hop, word) => (12, u32::from(hop), word as u32),
            Self::Listed(number, true) => (13, number, 0),
            Self::Listed(number, false) => (16, number, 0),
            Self::Bits(Base::Upper(at), bit, _) => (15, u32::from(at), bit),
        }
    }

    /// The bit of an IP header at one of the usual places that a bit of the frame is.
    fn header_bit(bit: u32) -> Option<u32> {
        [14 * 8, 18 * 8, 22 * 8]
            .into_iter()
            .filter_map(|start| bit.checked_sub(start))
            .find(|b| IPV4.iter().any(|f| f.0 == *b))
    }

    /// The bit of the IP header that it begins with.
    #[must_use]
    pub fn of_header(self) -> Option<u32> {
        match self {
            Self::Bits(Base::Frame, bit, _) => Self::header_bit(bit),
            _ => None,
        }
    }

    /// Whether it is known from a flow's words and the shape of its packets, rather than from each packet.
    #[must_use]
    pub fn of_flow(self) -> bool {
        self.rank().0 < 14
    }

    /// Whether it is known before a flow's words are: what headers there are.
    #[must_use]
    pub fn of_shape(self) -> bool {
        self.rank().0 < 9
    }

    /// Whether it is a word of a flow: an address or a port.
    #[must_use]
    pub fn names_flow(self) -> bool {
        matches!(self.rank().0, 10 | 11)
    }

    /// Whether two fields share bits of the frame. Fields of the transport header overlap none of the IP header: where a
    /// header is shorter than 20 bytes nothing that was written is read behind it.
    #[must_use]
    pub fn overlaps(self, other: Self) -> bool {
        match (self, other) {
            (Self::Bits(a, first, width), Self::Bits(b, start, wide)) => {
                a == b && first < start + u32::from(wide) && start < first + u32::from(width)
            }
            (a, b) => a == b,
        }
    }

    /// The byte behind the field's last, from its base.
    #[must_use]
    pub fn end(self) -> u32 {
        match self {
            Self::Bits(_, bit, width) => (bit + u32::from(width)).div_ceil(8),
            _ => 0,
        }
    }

    /// Whether it is an IPv4 address.
    #[must_use]
    pub fn is_address(self) -> bool {
        matches!(
            self,
            Self::Destination
                | Self::Bits(_, _, 32)
                | Self::Entry(_, Word::Source | Word::Destination)
        )
    }
}

impl PartialOrd for Var {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Var {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.rank().cmp(&other.rank())
    }
}

impl fmt::Display for Var {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Port => write!(f, "port"),
            Self::Length => write!(f, "frame length"),
            Self::Checked(at, true) => write!(f, "IP header at {at} right"),
            Self::Checked(at, false) => write!(f, "IP header at {at} right but for its sum"),
            Self::Room(_, true) => write!(f, "transport bytes"),
            Self::Room(_, false) => write!(f, "transport bytes in the frame"),
            Self::Destination => write!(f, "destination annotation"),
            Self::Anno(at) => write!(f, "annotation {at}"),
            Self::Kind => write!(f, "kind"),
            Self::Entry(hop, word) => write!(f, "entry {hop} {word:?}"),
            Self::Listed(number, _) => write!(f, "answer {number}"),
            Self::Bits(Base::Upper(_), bit, width) => match (bit, width) {
                (0, 16) => write!(f, "src port"),
                (16, 16) => write!(f, "dst port"),
                (104..112, 1) => {
                    const FLAGS: [&str; 8] =
                        ["cwr", "ece", "urg", "ack", "psh", "rst", "syn", "fin"];
                    let name = FLAGS.get(bit as usize - 104).copied().unwrap_or("flag");
                    write!(f, "tcp {name}")
                }
                _ => write!(f, "transp bits {bit}+{width}"),
            },
            Self::Bits(Base::Frame, bit, width) => match (bit, width) {
                (96, 16) => write!(f, "ether type"),
                (7, 1) => write!(f, "ether dst group"),
                (0 | 8, _) => write!(f, "ether dst bits {bit}+{width}"),
                (48, 48) => write!(f, "ether src"),
                _ => {
                    // The header is at 14, or behind tags.
                    let known = |at: u32| {
                        let from = bit.checked_sub(at * 8)?;
                        let field = IPV4.iter().find(|i| (i.0, i.1) == (from, width))?;
                        Some(field.2)
                    };
                    match [14, 18, 22].into_iter().find_map(known) {
                        Some(name) => write!(f, "{name}"),
                        None => write!(f, "bits {bit}+{width}"),
                    }
                }
            },
        }
    }
}
