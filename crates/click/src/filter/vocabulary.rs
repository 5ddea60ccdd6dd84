//! Words of the filter language.

use super::Base;
use crate::arguments::integer;
use crate::names::protocol;

/// What is compared.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum What {
    Host,
    Net,
    Port,
    Protocol,
    IcmpType,
    TcpOption,
    Field(Field),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Field {
    pub(super) base: Base,
    pub(super) offset: usize,
    pub(super) bytes: usize,
    pub(super) mask: u64,
    pub(super) shift: u32,
    pub(super) protocol: Option<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Transport {
    One(u8),
    TcpOrUdp,
}

const SIGNS: [&str; 17] = [
    "&&", "||", "==", "!=", "<=", ">=", "(", ")", "!", "&", "=", "<", ">", "?", ":", "|", ",",
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
        let inside = |c: char| !(c.is_whitespace() || "()!&=<>?|,".contains(c));
        let end = rest.find(|c| !inside(c)).unwrap_or(rest.len());
        // The byte's number and length in brackets may have blanks.
        let end = match rest[..end].find('[') {
            Some(open) if !rest[open..end].contains(']') => {
                rest.find(']').map_or(end, |close| close + 1)
            }
            _ => end,
        };
        let end = end.max(rest.chars().next().map_or(1, char::len_utf8));
        let word: String = rest[..end].split_whitespace().collect();
        words.push(crate::language::args::text(&word));
        rest = &rest[end..];
    }
}

pub(super) fn transport(word: &str) -> Option<Transport> {
    match word {
        "tcpudp" => Some(Transport::TcpOrUdp),
        _ => protocol(word).map(Transport::One),
    }
}

pub(super) fn what(word: &str) -> Result<Option<What>, String> {
    let field = |offset, bytes, mask, shift| {
        Some(What::Field(Field {
            base: Base::Network,
            offset,
            bytes,
            mask,
            shift,
            protocol: None,
        }))
    };
    Ok(match word {
        "host" => Some(What::Host),
        "net" => Some(What::Net),
        "port" => Some(What::Port),
        "proto" => Some(What::Protocol),
        "type" => Some(What::IcmpType),
        "opt" => Some(What::TcpOption),
        "vers" => field(0, 1, 0xf0, 4),
        "hl" => field(0, 1, 0x0f, 0),
        "tos" => field(1, 1, 0xff, 0),
        "dscp" => field(1, 1, 0xfc, 2),
        "len" => field(2, 2, 0xffff, 0),
        "id" => field(4, 2, 0xffff, 0),
        "ttl" => field(8, 1, 0xff, 0),
        "win" => Some(What::Field(Field {
            base: Base::Transport,
            offset: 14,
            bytes: 2,
            mask: 0xffff,
            shift: 0,
            protocol: Some(6),
        })),
        _ => return bytes_of(word),
    })
}

/// `ip[offset:length]` and `transp[…]`.
fn bytes_of(word: &str) -> Result<Option<What>, String> {
    let Some((name, rest)) = word.split_once('[') else {
        return Ok(None);
    };
    let (base, protocol) = match name {
        "ip" => (Base::Network, None),
        "transp" => (Base::Transport, None),
        "ether" | "eth" => (Base::Link, None),
        "tcp" => (Base::Transport, Some(6)),
        "udp" => (Base::Transport, Some(17)),
        "icmp" => (Base::Transport, Some(1)),
        _ => return Ok(None),
    };
    let wrong = || format!("bad bytes '{word}': write ip[OFFSET] or ip[OFFSET:LENGTH]");
    let inside = rest.strip_suffix(']').ok_or_else(wrong)?;
    let (offset, length) = inside.split_once(':').unwrap_or((inside, "1"));
    let offset = integer(offset).ok_or_else(wrong)?;
    let bytes = integer(length).ok_or_else(wrong)?;
    if !(0..=65_535).contains(&offset) || !(1..=4).contains(&bytes) {
        return Err(wrong());
    }
    Ok(Some(What::Field(Field {
        base,
        offset: offset as usize,
        bytes: bytes as usize,
        mask: u64::MAX >> (64 - 8 * bytes as u32),
        shift: 0,
        protocol,
    })))
}

pub(super) fn icmp_type(word: &str) -> Option<u64> {
    let known = crate::summary::names::ICMP_TYPES.iter();
    let named = known.clone().find(|t| t.0 == word).map(|t| u64::from(t.1));
    named.or(integer(word).and_then(|n| u64::try_from(n).ok()))
}

pub(super) fn tcp_flag(word: &str) -> Option<u64> {
    const FLAGS: [&str; 8] = ["fin", "syn", "rst", "psh", "ack", "urg", "ece", "cwr"];
    FLAGS.iter().position(|f| *f == word).map(|n| 1 << n)
}
