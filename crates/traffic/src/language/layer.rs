//! The layers of a packet and the words that each of them knows.
//!
//! One table says all of it: what stands between `SRC > DST`, which words follow, how wide their
//! numbers are and what may come inside. Reading, showing and decoding work from the table; only
//! encoding knows where a number lies in the header.

use std::net::{Ipv4Addr, Ipv6Addr};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Eth,
    Vlan,
    Ip,
    Ip6,
    HopOpts,
    DstOpts,
    Routing,
    Frag6,
    Tcp,
    Udp,
    Icmp,
    Icmp6,
    Arp,
    Sctp,
    Gre,
    Mpls,
    Vxlan,
    Geneve,
    Payload,
    Raw,
}

/// Between whom a layer passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ends {
    None,
    Mac([u8; 6], [u8; 6]),
    V4(Ipv4Addr, Ipv4Addr),
    V6(Ipv6Addr, Ipv6Addr),
    Ports(u16, u16),
    /// `who-has TARGET tell SENDER`.
    WhoHas(Ipv4Addr, Ipv4Addr),
    /// `reply SENDER is-at MAC`.
    IsAt(Ipv4Addr, [u8; 6]),
}

/// What follows a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Takes {
    /// A number of this many bits.
    Number(u32),
    /// A number of bytes below 65536 that eight divides.
    Eights,
    /// Nothing: the word is a flag.
    Nothing,
    /// Bytes in hex, at most this many: the layer's own (`options`).
    Hex(usize),
    /// Bytes in hex that follow ICMP's checksum: four as one number, further ones as the layer's own.
    Rest,
    /// An ICMP message of this type; two numbers of 16 bits follow, identifier and sequence number.
    Echo(u64),
    /// An ICMP message of this type; its code follows.
    Code(u64),
    /// An ICMP message of this type; a number of 32 bits follows.
    Wide(u64),
}

#[derive(Debug)]
pub(super) struct Field {
    pub(super) word: &'static str,
    pub(super) takes: Takes,
}

/// What stands right after a layer's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Leads {
    Nothing,
    /// `[SRC > DST]`, MAC addresses.
    Macs,
    V4,
    V6,
    Ports,
    /// A number, kept under this word.
    Number(&'static str, u32),
    Arp,
    /// Bytes in hex, perhaps none.
    Body(usize),
    /// A text, zeros, or bytes in hex.
    Bytes,
}

pub(super) struct Spec {
    pub(super) kind: Kind,
    pub(super) name: &'static str,
    pub(super) leads: Leads,
    pub(super) fields: &'static [Field],
    pub(super) inside: &'static [Kind],
}

const fn number(word: &'static str, bits: u32) -> Field {
    Field {
        word,
        takes: Takes::Number(bits),
    }
}

const fn flag(word: &'static str) -> Field {
    Field {
        word,
        takes: Takes::Nothing,
    }
}

const fn takes(word: &'static str, takes: Takes) -> Field {
    Field { word, takes }
}

use Kind::{
    Arp, DstOpts, Eth, Frag6, Geneve, Gre, HopOpts, Icmp, Icmp6, Ip, Ip6, Mpls, Payload, Raw,
    Routing, Sctp, Tcp, Udp, Vlan, Vxlan,
};

const ON_LINK: &[Kind] = &[Vlan, Ip, Ip6, Arp, Mpls, Payload, Raw];
const IN_IP: &[Kind] = &[
    Tcp, Udp, Icmp, Icmp6, Ip, Ip6, Sctp, Gre, Mpls, Payload, Raw,
];
const IN_IP6: &[Kind] = &[
    Tcp, Udp, Icmp6, HopOpts, DstOpts, Routing, Frag6, Icmp, Ip, Ip6, Sctp, Gre, Mpls, Payload, Raw,
];
const IN_UDP: &[Kind] = &[Vxlan, Geneve, Mpls, Eth, Payload, Raw];
const IN_TUNNEL: &[Kind] = &[Eth, Ip, Ip6, Mpls, Payload, Raw];
const IN_LABEL: &[Kind] = &[Mpls, Ip, Ip6, Eth, Payload, Raw];
const IN_ERROR: &[Kind] = &[Ip, Ip6, Payload, Raw];
const BYTES: &[Kind] = &[Payload, Raw];

/// The outermost layers.
pub(super) const OUTERMOST: &[Kind] = &[Eth, Raw];

pub(super) const SPECS: &[Spec] = &[
    Spec {
        kind: Eth,
        name: "eth",
        leads: Leads::Macs,
        fields: &[number("type", 16)],
        inside: ON_LINK,
    },
    Spec {
        kind: Vlan,
        name: "vlan",
        leads: Leads::Number("ID", 12),
        fields: &[number("pcp", 3), number("tpid", 16), number("type", 16)],
        inside: ON_LINK,
    },
    Spec {
        kind: Ip,
        name: "ip",
        leads: Leads::V4,
        fields: &[
            number("ttl", 8),
            number("id", 16),
            number("tos", 8),
            flag("df"),
            takes("frag", Takes::Eights),
            flag("more"),
            takes("options", Takes::Hex(40)),
            number("proto", 8),
            number("len", 16),
            number("ihl", 4),
            number("version", 4),
            number("checksum", 16),
        ],
        inside: IN_IP,
    },
    Spec {
        kind: Ip6,
        name: "ip6",
        leads: Leads::V6,
        fields: &[
            number("hop", 8),
            number("class", 8),
            number("label", 20),
            number("next", 8),
            number("len", 16),
            number("version", 4),
        ],
        inside: IN_IP6,
    },
    // 255 units of eight bytes follow the first, less the two bytes that are not the body's.
    Spec {
        kind: HopOpts,
        name: "hopopts",
        leads: Leads::Body(2046),
        fields: &[number("next", 8)],
        inside: IN_IP6,
    },
    Spec {
        kind: DstOpts,
        name: "dstopts",
        leads: Leads::Body(2046),
        fields: &[number("next", 8)],
        inside: IN_IP6,
    },
    Spec {
        kind: Routing,
        name: "routing",
        leads: Leads::Body(2046),
        fields: &[number("next", 8)],
        inside: IN_IP6,
    },
    Spec {
        kind: Frag6,
        name: "frag6",
        leads: Leads::Nothing,
        fields: &[
            takes("offset", Takes::Eights),
            flag("more"),
            number("id", 32),
            number("next", 8),
        ],
        inside: IN_IP6,
    },
    Spec {
        kind: Tcp,
        name: "tcp",
        leads: Leads::Ports,
        fields: &[
            flag("fin"),
            flag("syn"),
            flag("rst"),
            flag("psh"),
            flag("ack"),
            flag("urg"),
            flag("ece"),
            flag("cwr"),
            number("seq", 32),
            number("ackno", 32),
            number("win", 16),
            number("urgent", 16),
            takes("options", Takes::Hex(40)),
            number("off", 4),
            number("checksum", 16),
        ],
        inside: BYTES,
    },
    Spec {
        kind: Udp,
        name: "udp",
        leads: Leads::Ports,
        fields: &[number("len", 16), number("checksum", 16)],
        inside: IN_UDP,
    },
    Spec {
        kind: Sctp,
        name: "sctp",
        leads: Leads::Ports,
        fields: &[number("tag", 32), number("checksum", 32)],
        inside: BYTES,
    },
    Spec {
        kind: Gre,
        name: "gre",
        leads: Leads::Nothing,
        fields: &[
            flag("sum"),
            number("key", 32),
            number("seq", 32),
            number("version", 3),
            number("type", 16),
            number("checksum", 16),
        ],
        inside: IN_TUNNEL,
    },
    Spec {
        kind: Mpls,
        name: "mpls",
        leads: Leads::Number("LABEL", 20),
        fields: &[number("tc", 3), number("bottom", 1), number("ttl", 8)],
        inside: IN_LABEL,
    },
    Spec {
        kind: Vxlan,
        name: "vxlan",
        leads: Leads::Number("VNI", 24),
        fields: &[number("flags", 8)],
        inside: &[Eth, Payload, Raw],
    },
    Spec {
        kind: Geneve,
        name: "geneve",
        leads: Leads::Number("VNI", 24),
        fields: &[
            flag("oam"),
            flag("critical"),
            takes("options", Takes::Hex(252)),
            number("version", 2),
            number("type", 16),
        ],
        inside: IN_TUNNEL,
    },
    Spec {
        kind: Icmp,
        name: "icmp",
        leads: Leads::Nothing,
        fields: &[
            takes("echo", Takes::Echo(8)),
            takes("reply", Takes::Echo(0)),
            takes("unreachable", Takes::Code(3)),
            takes("exceeded", Takes::Code(11)),
            number("type", 8),
            number("code", 8),
            takes("rest", Takes::Rest),
            number("checksum", 16),
        ],
        inside: IN_ERROR,
    },
    Spec {
        kind: Icmp6,
        name: "icmp6",
        leads: Leads::Nothing,
        fields: &[
            takes("echo", Takes::Echo(128)),
            takes("reply", Takes::Echo(129)),
            takes("unreachable", Takes::Code(1)),
            takes("exceeded", Takes::Code(3)),
            takes("toobig", Takes::Wide(2)),
            number("type", 8),
            number("code", 8),
            takes("rest", Takes::Rest),
            number("checksum", 16),
        ],
        inside: IN_ERROR,
    },
    Spec {
        kind: Arp,
        name: "arp",
        leads: Leads::Arp,
        fields: &[],
        inside: BYTES,
    },
    Spec {
        kind: Payload,
        name: "payload",
        leads: Leads::Bytes,
        fields: &[],
        inside: BYTES,
    },
    Spec {
        kind: Raw,
        name: "raw",
        leads: Leads::Bytes,
        fields: &[],
        inside: BYTES,
    },
];

impl Kind {
    pub(super) fn spec(self) -> &'static Spec {
        // Every kind has its row (a test walks them); the first stands in so that none is needed here.
        SPECS
            .iter()
            .find(|spec| spec.kind == self)
            .unwrap_or(&SPECS[0])
    }
}

/// A layer: what was given of it. What was not is computed when it is encoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Layer {
    pub(super) kind: Kind,
    pub(super) ends: Ends,
    /// Numbers and flags that were given, by their word.
    pub(super) numbers: Vec<(&'static str, u64)>,
    /// Options, body or payload.
    pub(super) bytes: Vec<u8>,
}

impl Layer {
    pub(super) fn new(kind: Kind, ends: Ends, bytes: &[u8]) -> Self {
        Self {
            kind,
            ends,
            numbers: Vec::new(),
            bytes: bytes.to_vec(),
        }
    }

    pub(super) fn get(&self, word: &str) -> Option<u64> {
        self.numbers
            .iter()
            .find(|(name, _)| *name == word)
            .map(|(_, value)| *value)
    }

    /// The number given, or this one.
    pub(super) fn or(&self, word: &str, otherwise: u64) -> u64 {
        self.get(word).unwrap_or(otherwise)
    }
}

/// A packet as the language sees it: layers, trailer and cut, and the bytes that they give.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packet {
    pub(super) layers: Vec<Layer>,
    pub(super) trailer: Vec<u8>,
    pub(super) cut: Option<usize>,
    pub(super) bytes: Vec<u8>,
}

impl Packet {
    /// The frame.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The frame, no longer a packet of the language.
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}
