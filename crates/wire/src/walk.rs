//! The walk from header to header.
//!
//! It goes over VLAN tags, IPv4 or IPv6 with its extension headers, to the transport header, whose presence it checks.
//! Where it stops it says why. The packet that an ICMP error carries is a second walk, [`Layers::inner`].

use crate::checksum::Sum;
use crate::protocol::{FRAGMENT, ICMP, ICMPV6, TCP, UDP};
use crate::{Lengths, Rule, ethernet, extension, icmpv4, icmpv6, ipv4, ipv6, tcp, udp, vlan, word};

/// Bytes of a transport header that an ICMP error carries at least (RFC 792).
const CARRIED: usize = 8;

/// The headers of the link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Link {
    /// VLAN tags, one that is cut short included
    pub tags: usize,
    /// the EtherType behind them; none where the frame ends before
    pub ethertype: Option<u16>,
    /// where what it says begins
    pub at: usize,
}

/// A version of IP.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Version {
    /// RFC 791
    V4,
    /// RFC 8200
    V6,
}

/// The part of a packet that a frame holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fragment {
    /// all of it; of IPv6 atomic fragments too (RFC 6946)
    Whole,
    /// the first fragment, which has the transport header
    First,
    /// another one, which has not
    Later,
}

/// A header of IP that is all there, options of IPv4 excepted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ip {
    /// its version
    pub version: Version,
    /// where it begins
    pub at: usize,
    /// its bytes with options, without extension headers
    pub header: usize,
    /// where its packet ends, by the rule
    pub end: usize,
    /// what of a packet it is
    pub fragment: Fragment,
    /// extension headers that were stepped over, a fragment header included
    pub extensions: usize,
    /// what follows them; none where the walk did not get there
    pub upper: Option<Upper>,
}

/// Payload of IP.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Upper {
    /// its number; of a later fragment that of the packet
    pub protocol: u8,
    /// where it begins, at most where the packet ends
    pub at: usize,
}

/// Why a walk stopped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stop {
    /// at a header of TCP, UDP or ICMP that is whole; of a packet in an ICMP error its first eight bytes are
    Transport,
    /// at an ICMP error, which has another packet in it
    Error,
    /// at a later fragment
    Fragment,
    /// at an EtherType or a protocol without a reader here
    Unknown,
    /// in a header of which the frame or the packet holds a part
    Short,
    /// at a header that contradicts itself, or an ICMP error within one
    Malformed,
}

/// Where the headers of a frame are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Layers {
    /// the link's; of a packet in an ICMP error those of its frame
    pub link: Link,
    /// IP; none where there is none, or the rule refuses it
    pub ip: Option<Ip>,
    /// why it goes no further
    pub stop: Stop,
}

/// The headers of the link alone.
#[inline(always)]
#[must_use]
pub fn link(frame: &[u8], rule: Rule) -> Link {
    let mut tags = 0;
    let mut at = ethernet::HEADER;
    // Each tag is four bytes, so the frame's length bounds this.
    loop {
        let ethertype = word(frame, at - 2);
        let tag = match ethertype {
            Some(ethernet::VLAN | ethernet::SERVICE_VLAN) => true,
            Some(ethernet::OLD_VLAN) => rule.old_tags,
            _ => false,
        };
        if !tag || tags >= rule.tags {
            return Link {
                tags,
                ethertype,
                at,
            };
        }
        tags += 1;
        at += vlan::HEADER;
    }
}

/// Where the packet ends that an EtherType says begins at an offset, as its header says; none where that is not IP, or
/// too short to say. Nothing is checked.
#[must_use]
pub fn announced(frame: &[u8], link: Link) -> Option<usize> {
    let at = link.at;
    match link.ethertype? {
        ethernet::IPV4 => Some(at + usize::from(word(frame, at + ipv4::LENGTH)?)),
        ethernet::IPV6 => Some(at + ipv6::HEADER + usize::from(word(frame, at + ipv6::LENGTH)?)),
        _ => None,
    }
}

/// Walks a frame. A call with a constant rule is compiled for it.
#[inline(always)]
#[must_use]
pub fn walk(frame: &[u8], rule: Rule) -> Layers {
    let link = link(frame, rule);
    let version = match link.ethertype {
        Some(ethernet::IPV4) => Version::V4,
        Some(ethernet::IPV6) => Version::V6,
        Some(_) => return Layers::without_ip(link, Stop::Unknown),
        None => return Layers::without_ip(link, Stop::Short),
    };
    match ip(frame, link.at, version, rule) {
        Ok(ip) => upward(frame, link, ip, rule, false),
        Err(stop) => Layers::without_ip(link, stop),
    }
}

/// The header of IP at an offset.
#[inline(always)]
fn ip(packet: &[u8], at: usize, version: Version, rule: Rule) -> Result<Ip, Stop> {
    match version {
        Version::V4 => v4(packet, at, rule),
        Version::V6 => v6(packet, at, rule),
    }
}

#[inline(always)]
fn v4(frame: &[u8], at: usize, rule: Rule) -> Result<Ip, Stop> {
    let rest = frame.get(at..).unwrap_or(&[]);
    let fixed = rest.first_chunk::<{ ipv4::HEADER }>().ok_or(Stop::Short)?;
    let header = ipv4::header_bytes(fixed[0]);
    if fixed[0] >> 4 != 4 || header < ipv4::HEADER {
        return Err(Stop::Malformed);
    }
    let total = usize::from(u16::from_be_bytes([fixed[2], fixed[3]]));
    let end = end(frame.len(), at, (header, total), rule.lengths)?;
    if rule.header_sum && !rest.get(..header).is_some_and(sums_right) {
        return Err(Stop::Malformed);
    }
    let place = u16::from_be_bytes([fixed[6], fixed[7]]);
    Ok(Ip {
        version: Version::V4,
        at,
        header,
        end,
        fragment: fragment(place & ipv4::OFFSET != 0, place & ipv4::MORE != 0),
        extensions: 0,
        upper: (at + header <= end).then_some(Upper {
            protocol: fixed[ipv4::PROTOCOL],
            at: at + header,
        }),
    })
}

/// Whether a header's checksum is right. Its first byte is not zero, so its sum is not.
fn sums_right(header: &[u8]) -> bool {
    Sum::default().bytes(header).holds()
}

#[inline(always)]
fn v6(frame: &[u8], at: usize, rule: Rule) -> Result<Ip, Stop> {
    let rest = frame.get(at..).unwrap_or(&[]);
    let fixed = rest.first_chunk::<{ ipv6::HEADER }>().ok_or(Stop::Short)?;
    if fixed[0] >> 4 != 6 {
        return Err(Stop::Malformed);
    }
    let payload = usize::from(u16::from_be_bytes([fixed[4], fixed[5]]));
    // Of Loose, zero says that nothing is said.
    let total = match (rule.lengths, payload) {
        (Lengths::Loose, 0) => 0,
        _ => ipv6::HEADER + payload,
    };
    Ok(Ip {
        version: Version::V6,
        at,
        header: ipv6::HEADER,
        end: end(frame.len(), at, (ipv6::HEADER, total), rule.lengths)?,
        fragment: Fragment::Whole,
        extensions: 0,
        upper: Some(Upper {
            protocol: fixed[ipv6::NEXT],
            at: at + ipv6::HEADER,
        }),
    })
}

/// Where a packet ends whose header says this many bytes of header, and of all.
#[inline(always)]
fn end(
    frame: usize,
    at: usize,
    (header, total): (usize, usize),
    rule: Lengths,
) -> Result<usize, Stop> {
    match rule {
        Lengths::Ignored => Ok(frame),
        Lengths::Loose if total < header => Ok(frame),
        Lengths::Loose => Ok(frame.min(at + total)),
        Lengths::Held if total < header => Err(Stop::Malformed),
        Lengths::Held if at + total > frame => Err(Stop::Short),
        Lengths::Held => Ok(at + total),
    }
}

#[inline(always)]
fn fragment(later: bool, more: bool) -> Fragment {
    match (later, more) {
        (true, _) => Fragment::Later,
        (false, true) => Fragment::First,
        (false, false) => Fragment::Whole,
    }
}

/// On from a header of IP: over extension headers, to what is behind.
#[inline(always)]
fn upward(frame: &[u8], link: Link, mut ip: Ip, rule: Rule, inner: bool) -> Layers {
    let packet = frame.get(..ip.end).unwrap_or(frame);
    let mut refused = None;
    if let (Version::V6, Some(upper)) = (ip.version, ip.upper)
        && (extension::is_extension(upper.protocol)
            || rule.rare_extensions && extension::is_rare(upper.protocol))
    {
        let chain = extensions(packet, upper, rule.extensions, rule.rare_extensions);
        ip.fragment = chain.fragment;
        ip.extensions = chain.extensions;
        (ip.upper, refused) = match chain.end {
            Ok(upper) => (Some(upper), None),
            Err(stop) => (None, Some(stop)),
        };
    }
    let stop = match (refused, ip.upper) {
        (Some(stop), _) => stop,
        _ if ip.fragment == Fragment::Later => Stop::Fragment,
        (None, Some(upper)) => transport(packet, ip.version, upper, inner),
        (None, None) => Stop::Short,
    };
    Layers {
        link,
        ip: Some(ip),
        stop,
    }
}

/// Result of a walk over extension headers.
struct Chain {
    fragment: Fragment,
    extensions: usize,
    end: Result<Upper, Stop>,
}

/// Steps over extension headers. Encrypted payload (ESP) and "no next header" are where this ends, like a transport.
///
/// Out of line: few packets have any, and the loop's registers would be saved and restored for all of them.
#[inline(never)]
fn extensions(packet: &[u8], first: Upper, most: usize, rare: bool) -> Chain {
    let Upper {
        mut protocol,
        mut at,
    } = first;
    let mut chain = Chain {
        fragment: Fragment::Whole,
        extensions: 0,
        end: Err(Stop::Malformed),
    };
    while extension::is_extension(protocol) || rare && extension::is_rare(protocol) {
        if chain.extensions == most {
            return chain;
        }
        chain.extensions += 1;
        if protocol == FRAGMENT
            && let Some(place) = word(packet, at + extension::PLACE)
        {
            let here = fragment(place & extension::OFFSET != 0, place & extension::MORE != 0);
            // A second fragment header does not make the packet whole again.
            if here != Fragment::Whole {
                chain.fragment = here;
            }
        }
        let header = packet
            .get(at..)
            .and_then(|h| h.first_chunk::<{ extension::LEAST }>());
        let Some(header) = header else {
            chain.end = Err(Stop::Short);
            return chain;
        };
        at += extension::bytes(protocol, header[1]);
        protocol = header[0];
        if chain.fragment == Fragment::Later {
            break;
        }
        if at > packet.len() {
            chain.end = Err(Stop::Short);
            return chain;
        }
    }
    chain.end = Ok(Upper { protocol, at });
    chain
}

/// The upper layer of a packet, the last bytes of which are the packet's last.
#[inline(always)]
fn transport(packet: &[u8], version: Version, upper: Upper, inner: bool) -> Stop {
    let header = packet.get(upper.at..).unwrap_or(&[]);
    // Of a carried packet so much is there of whatever it carries, or it is not whole (RFC 792).
    if inner && header.len() < CARRIED {
        return Stop::Short;
    }
    let short = |bytes: usize| !inner && header.len() < bytes;
    match (upper.protocol, version) {
        (TCP, _) => match header.get(tcp::OFFSET).map(|b| tcp::header_bytes(*b)) {
            _ if inner => Stop::Transport,
            Some(bytes) if header.len() >= tcp::HEADER && bytes < tcp::HEADER => Stop::Malformed,
            Some(bytes) if bytes.max(tcp::HEADER) <= header.len() => Stop::Transport,
            _ => Stop::Short,
        },
        (UDP, _) if short(udp::HEADER) => Stop::Short,
        (UDP, _) => Stop::Transport,
        (ICMP, Version::V4) | (ICMPV6, Version::V6) => {
            let Some(kind) = header.first().filter(|_| !short(icmpv4::HEADER)) else {
                return Stop::Short;
            };
            let error = match version {
                Version::V4 => icmpv4::is_error(*kind),
                Version::V6 => icmpv6::is_error(*kind),
            };
            match (error, inner) {
                (false, _) => Stop::Transport,
                (true, false) => Stop::Error,
                // Nobody answers an error with an error (RFC 1122, 3.2.2; RFC 4443, 2.4).
                (true, true) => Stop::Malformed,
            }
        }
        _ => Stop::Unknown,
    }
}

impl Layers {
    #[inline(always)]
    fn without_ip(link: Link, stop: Stop) -> Self {
        Self {
            link,
            ip: None,
            stop,
        }
    }

    /// The headers of the packet that an ICMP error carries, by the same rule; none of anything else. It ends where the
    /// error ends: its own length, and the checksum of its header, are those of the packet before it was cut.
    #[inline(always)]
    #[must_use]
    pub fn inner(&self, frame: &[u8], rule: Rule) -> Option<Self> {
        let outer = self.ip.filter(|_| self.stop == Stop::Error)?;
        let at = outer.upper?.at + icmpv4::HEADER;
        let rule = Rule {
            lengths: Lengths::Ignored,
            header_sum: false,
            ..rule
        };
        let frame = frame.get(..outer.end).unwrap_or(frame);
        Some(match ip(frame, at, outer.version, rule) {
            Ok(ip) => upward(frame, self.link, ip, rule, true),
            Err(stop) => Self::without_ip(self.link, stop),
        })
    }
}

impl Ip {
    /// Source address, 4 or 16 bytes; none where this is not the frame that was walked.
    #[inline]
    #[must_use]
    pub fn source<'a>(&self, frame: &'a [u8]) -> &'a [u8] {
        self.part(frame, ipv4::SOURCE, ipv6::SOURCE)
    }

    /// Destination address, as [`Self::source`].
    #[inline]
    #[must_use]
    pub fn destination<'a>(&self, frame: &'a [u8]) -> &'a [u8] {
        self.part(frame, ipv4::DESTINATION, ipv6::DESTINATION)
    }

    #[inline]
    fn part<'a>(
        &self,
        frame: &'a [u8],
        four: std::ops::Range<usize>,
        six: std::ops::Range<usize>,
    ) -> &'a [u8] {
        let field = match self.version {
            Version::V4 => four,
            Version::V6 => six,
        };
        let packet = frame.get(self.at..).unwrap_or(&[]);
        packet.get(field).unwrap_or(&[])
    }

    /// Where both addresses are, one behind the other.
    #[must_use]
    pub fn addresses(&self) -> std::ops::Range<usize> {
        match self.version {
            Version::V4 => self.at + ipv4::SOURCE.start..self.at + ipv4::DESTINATION.end,
            Version::V6 => self.at + ipv6::SOURCE.start..self.at + ipv6::DESTINATION.end,
        }
    }

    /// The sum of the pseudo header for an upper layer of this protocol and this many bytes.
    #[must_use]
    pub fn pseudo(&self, frame: &[u8], protocol: u8, bytes: u32) -> Sum {
        Sum::default().pseudo(self.source(frame), self.destination(frame), protocol, bytes)
    }

    /// The frame's part of the upper layer, as far as the packet reaches.
    #[must_use]
    pub fn upper_bytes<'a>(&self, frame: &'a [u8]) -> &'a [u8] {
        let from = self.upper.map_or(self.end, |upper| upper.at);
        frame.get(from..self.end).unwrap_or(&[])
    }
}
