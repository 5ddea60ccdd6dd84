//! Words of the filter language.

use super::Base;
use crate::names::{Names, protocol};

/// What is compared.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum What {
    Host,
    Net,
    Ethernet,
    Port,
    Protocol,
    TcpOption,
    Fragment,
    Unfragmented,
    /// ECN: any mark, or the number that follows
    Marked,
    /// ECN: congestion experienced
    Congested,
    Field(Field),
}

/// Bits of a header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Field {
    pub(super) base: Base,
    pub(super) offset: usize,
    pub(super) bytes: usize,
    pub(super) mask: u64,
    pub(super) shift: u32,
    /// the protocol that has it
    pub(super) protocol: Option<u16>,
}

/// TCP or UDP, in the place of a protocol's number.
pub(super) const TCP_OR_UDP: u16 = 256;
/// Any protocol: what follows is counted from the transport header.
pub(super) const TRANSPORT: u16 = 258;
pub(super) const ICMP: u16 = 1;
pub(super) const TCP: u16 = 6;
pub(super) const UDP: u16 = 17;
pub(super) const DCCP: u16 = 33;

const fn of_ip(offset: usize, bytes: usize, mask: u64, shift: u32) -> Field {
    Field {
        base: Base::Network,
        offset,
        bytes,
        mask,
        shift,
        protocol: None,
    }
}

pub(super) const TOS: Field = of_ip(1, 1, 0xff, 0);

const WINDOW: Field = Field {
    base: Base::Transport,
    protocol: Some(TCP),
    ..of_ip(14, 2, 0xffff, 0)
};

pub(super) const ICMP_TYPE: Field = Field {
    base: Base::Transport,
    protocol: Some(ICMP),
    ..of_ip(0, 1, 0xff, 0)
};

const SIGNS: [&str; 19] = [
    "&&", "||", "==", "!=", "<=", ">=", "(", ")", "!", "&", "=", "<", ">", "?", "|", ",", "[", "]",
    ";",
];

/// Words and signs. A colon within a word belongs to it, as in Ethernet addresses.
pub(super) fn words(text: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut rest = text;
    loop {
        rest = rest.trim_start();
        if rest.is_empty() {
            return words;
        }
        if let Some(sign) = SIGNS.iter().find(|s| rest.starts_with(**s)) {
            words.push((*sign).to_owned());
            rest = &rest[sign.len()..];
            continue;
        }
        let inside = |c: char| !(c.is_whitespace() || "()[]!&=<>?|,;".contains(c));
        let end = rest.find(|c| !inside(c)).unwrap_or(rest.len());
        let end = end.max(rest.chars().next().map_or(1, char::len_utf8));
        words.push(rest[..end].to_owned());
        rest = &rest[end..];
    }
}

/// Words that say what is compared.
pub(super) fn what(word: &str) -> Option<What> {
    Some(match word {
        "host" => What::Host,
        "net" => What::Net,
        "port" => What::Port,
        "proto" => What::Protocol,
        "type" => What::Field(ICMP_TYPE),
        "opt" => What::TcpOption,
        "frag" => What::Fragment,
        "unfrag" => What::Unfragmented,
        "ect" => What::Marked,
        "ce" => What::Congested,
        "vers" => What::Field(of_ip(0, 1, 0xf0, 4)),
        "hl" => What::Field(of_ip(0, 1, 0x0f, 0)),
        "tos" => What::Field(TOS),
        "dscp" => What::Field(of_ip(1, 1, 0xfc, 2)),
        "len" => What::Field(of_ip(2, 2, 0xffff, 0)),
        "id" => What::Field(of_ip(4, 2, 0xffff, 0)),
        "ttl" => What::Field(of_ip(8, 1, 0xff, 0)),
        "win" => What::Field(WINDOW),
        _ => return None,
    })
}

/// Values that a word may stand for, by what they are values of.
pub(super) fn named(word: &str, names: &Names) -> Vec<(What, u64)> {
    let protocol = match word {
        "tcpudp" => Some(TCP_OR_UDP),
        "transp" => Some(TRANSPORT),
        _ => protocol(word).map(u16::from),
    };
    let types = crate::summary::names::ICMP_TYPES.iter();
    let icmp = types.clone().find(|t| t.0 == word).map(|t| u64::from(t.1));
    let all = [
        (What::Protocol, protocol.map(u64::from)),
        (What::Port, names.port(word).map(u64::from)),
        (What::TcpOption, tcp_flag(word)),
        (What::Field(ICMP_TYPE), icmp),
    ];
    let one = |(what, value): (What, Option<u64>)| value.map(|value| (what, value));
    all.into_iter().filter_map(one).collect()
}

fn tcp_flag(word: &str) -> Option<u64> {
    const FLAGS: [&str; 8] = ["fin", "syn", "rst", "psh", "ack", "urg", "ece", "cwr"];
    FLAGS.iter().position(|f| *f == word).map(|n| 1 << n)
}
