//! The description of a capture. Its JSON is `trace info --json`; field names stay.

use serde::Serialize;

/// A capture, described.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Description {
    /// Packets.
    pub packets: u64,
    /// Bytes on the wire, by the lengths that the capture gives, without frame check sequences.
    pub bytes: u64,
    /// Bytes that were captured of them.
    pub captured_bytes: u64,
    /// Packets that the capture cut.
    pub truncated: u64,
    /// The first packet's stamp, nanoseconds since 1970.
    pub first_ns: Option<u64>,
    /// From the earliest to the latest stamp.
    pub seconds: f64,
    /// Packets a second; 0 for a capture of one moment, as the next.
    pub packets_per_second: f64,
    /// Bits a second, of `bytes`.
    pub bits_per_second: f64,
    /// Packets stamped earlier than the one before.
    pub backwards: u64,
    /// Packets with a VLAN tag.
    pub vlan: u64,
    /// IPv4 packets.
    pub ipv4: u64,
    /// IPv6 packets.
    pub ipv6: u64,
    /// Fragments of IP packets, first ones included.
    pub fragments: u64,
    /// Packets with a header that contradicts itself or is cut short.
    pub malformed: u64,
    /// Packets whose checksum is wrong. Those of transports are checked where all of the packet is there.
    pub wrong_checksums: WrongChecksums,
    /// Protocols, most packets first.
    pub protocols: Vec<ProtocolShare>,
    /// Lengths of packets on the wire, in bytes.
    pub sizes: Sizes,
    /// Flows.
    pub flows: Flows,
    /// How evenly packets come.
    pub bursts: Bursts,
}

/// Packets whose checksum is wrong, by the header that holds it. A capture made on the sending host
/// often has many: the network card would have filled them in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct WrongChecksums {
    /// In IPv4 headers.
    pub ipv4: u64,
    /// In TCP.
    pub tcp: u64,
    /// In UDP.
    pub udp: u64,
    /// In ICMP and ICMPv6.
    pub icmp: u64,
}

/// A protocol's part of a capture.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ProtocolShare {
    /// The innermost protocol that is known: tcp, udp, icmp, icmp6, igmp, ip, ip6, arp, other.
    pub name: &'static str,
    /// Packets.
    pub packets: u64,
    /// Bytes on the wire.
    pub bytes: u64,
}

/// Points of a distribution. Values from 2048 on are exact to 3%; all are 0 where there are none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Quantiles {
    /// The least.
    pub min: u64,
    /// One in ten is not above this.
    pub p10: u64,
    /// One in four is not above this.
    pub p25: u64,
    /// Half are not above this.
    pub p50: u64,
    /// Three in four are not above this.
    pub p75: u64,
    /// Nine in ten are not above this.
    pub p90: u64,
    /// 99 in 100 are not above this.
    pub p99: u64,
    /// The greatest.
    pub max: u64,
}

/// Packets whose value is in a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Bin {
    /// The range's least value.
    pub from: u64,
    /// Its greatest; none: without end.
    pub to: Option<u64>,
    /// Packets in it.
    pub packets: u64,
}

/// Lengths of packets.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Sizes {
    /// The mean in bytes.
    pub mean: f64,
    /// The distribution in bytes.
    pub quantiles: Quantiles,
    /// The distribution in ranges.
    pub bins: Vec<Bin>,
}

/// Flows: packets between the same two addresses and ports by the same protocol, in both directions.
///
/// ICMP echoes have their identifier for ports. What has no ports (later fragments, other protocols) is
/// a flow of its addresses and protocol; what is not IP is in none.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Flows {
    /// How many there are, or were told apart.
    pub count: u64,
    /// Whether there were more than could be told apart; then all here is about those that were.
    pub exceeded: bool,
    /// Packets in flows that were told apart.
    pub packets: u64,
    /// The largest flow's share of these packets.
    pub largest_share: f64,
    /// The share of the largest hundredth of flows (at least one).
    pub top_percent_share: f64,
    /// Packets of a flow.
    pub sizes: Quantiles,
}

/// How evenly packets come.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Bursts {
    /// Nanoseconds from a packet to the next.
    pub gap_ns: Quantiles,
    /// Packets in the fullest millisecond.
    pub most_in_a_millisecond: u64,
    /// That against the mean over all milliseconds.
    pub peak_to_mean: f64,
}
