//! `ICMPError(SRC, TYPE [, CODE, BADADDRS, MTU, PMTU, USE_FIX_ANNO, SET_FIX_ANNO])`: an ICMP error (RFC 792, 1122) about each packet, from
//! SRC, with the packet's header and 8 bytes or as many as 576 bytes hold; the annotation asks FixIPSrc for the source address. None
//! about errors, fragments but the first, broadcasts, or packets with a source that is no host's.

use super::prelude::*;
use crate::packet::{FIX_SOURCE, Kind, PARAMETER_PROBLEM};
use millrace_wire::{ipv4, put, word};

/// The class of this file.
pub const CLASSES: &[Class] = &[Class::new("ICMPError", "1/1", "a/a", make)];

fn make(args: &mut Args<'_>, _: &mut Setup<'_>) -> Made {
    args.keywords("SRC TYPE CODE BADADDRS MTU PMTU USE_FIX_ANNO SET_FIX_ANNO");
    let fix = args.flag("SET_FIX_ANNO", true)? & args.flag("USE_FIX_ANNO", true)?;
    let mtu = args.number_word("MTU", 576)?;
    let pmtu = args.number_word("PMTU", 0)?;
    let bad = args.keyword("BADADDRS");
    let text = args.needed("SRC", "SRC, TYPE")?;
    let source = args.ip(&text)?;
    let kind = args.needed("TYPE", "TYPE")?;
    let code = args.take("CODE").unwrap_or_else(|| "0".into());
    let bad = bad.or_else(|| args.positional());
    args.done()?;
    let named = crate::summary::names::ICMP_TYPES
        .iter()
        .find(|t| t.0 == kind)
        .map(|t| t.1);
    let kind = named
        .or(kind.parse().ok())
        .ok_or(format!("unknown type '{kind}'"))?;
    let named = CODES.iter().find(|c| c.0 == kind && c.1 == code);
    let code = named
        .map(|c| c.2)
        .or(code.parse().ok())
        .ok_or(format!("unknown code '{code}'"))?;
    let mut refused = Vec::new();
    for word in bad.iter().flat_map(|t| crate::language::args::words(t)) {
        refused.push(args.ip(&word)?);
    }
    let mtu = usize::try_from(mtu)
        .ok()
        .filter(|m| *m >= 56)
        .ok_or("MTU must be at least 56")?;
    Ok(Box::new(IcmpError {
        source,
        kind,
        code,
        refused,
        mtu,
        pmtu: pmtu as u16,
        fix,
        id: 1,
    }))
}

/// Names of codes, by type (RFC 792, 1122, 1812).
const CODES: [(u8, &str, u8); 25] = [
    (3, "net", 0),
    (3, "host", 1),
    (3, "protocol", 2),
    (3, "port", 3),
    (3, "needfrag", 4),
    (3, "srcroutefail", 5),
    (3, "netunknown", 6),
    (3, "hostunknown", 7),
    (3, "isolated", 8),
    (3, "netprohibited", 9),
    (3, "hostprohibited", 10),
    (3, "tosnet", 11),
    (3, "toshost", 12),
    (3, "filterprohibited", 13),
    (3, "hostprecedence", 14),
    (3, "precedencecutoff", 15),
    (5, "net", 0),
    (5, "host", 1),
    (5, "tosnet", 2),
    (5, "toshost", 3),
    (11, "transit", 0),
    (11, "reassembly", 1),
    (12, "erroratptr", 0),
    (12, "missingopt", 1),
    (12, "length", 2),
];

struct IcmpError {
    source: [u8; 4],
    kind: u8,
    code: u8,
    refused: Vec<[u8; 4]>,
    mtu: usize,
    pmtu: u16,
    fix: bool,
    id: u16,
}

impl IcmpError {
    /// Whether there may be an error about a packet (RFC 1122, 3.2.2; RFC 1812, 4.3.2.7).
    fn may(&self, packet: &Packet) -> bool {
        let Some(ip) = packet.ip().filter(|ip| ip.len() >= ipv4::HEADER) else {
            return false;
        };
        let header = ipv4::header_bytes(ip[0]);
        let first = word(ip, ipv4::FRAGMENT).unwrap_or(0) & ipv4::OFFSET == 0;
        let error = ip[ipv4::PROTOCOL] == 1
            && (header + 4 > ip.len() || matches!(ip.get(header), Some(3..=5 | 11 | 12)));
        let one = |a: &[u8]| {
            a[0] >> 4 != 14 && a != [255; 4] && !self.refused.iter().any(|refused| refused == a)
        };
        let (source, destination) = (&ip[12..16], &ip[16..20]);
        let host = one(source) && !matches!(source[0], 0 | 127 | 240..);
        let spread = packet.kind == Kind::Broadcast || packet.kind == Kind::Multicast;
        header >= ipv4::HEADER && first && !error && host && one(destination) && !spread
    }
}

impl Element for IcmpError {
    fn meaning(&self) -> Option<Meaning> {
        Some(Meaning::Outside("it makes ICMP errors"))
    }

    fn action(&mut self, packet: Packet, cx: &Context<'_>) -> Option<Packet> {
        if !self.may(&packet) {
            cx.drop(packet);
            return None;
        }
        let ip = packet.ip().unwrap_or(&[]);
        let carried = ip.len().min(self.mtu - 28).min(60_000);
        let mut bytes = vec![0; 28];
        bytes[0] = 0x45;
        put(&mut bytes, ipv4::LENGTH, 28 + carried as u16);
        put(&mut bytes, ipv4::ID, self.id);
        self.id = self.id.wrapping_add(1);
        bytes[8] = 200;
        bytes[9] = 1;
        bytes[12..16].copy_from_slice(&self.source);
        let to: [u8; 4] = ip
            .get(12..16)
            .and_then(|b| b.try_into().ok())
            .unwrap_or_default();
        bytes[16..20].copy_from_slice(&to);
        (bytes[20], bytes[21]) = (self.kind, self.code);
        match (self.kind, self.code) {
            (3, 4) => {
                put(&mut bytes, 26, self.pmtu);
            }
            (12, 0) => bytes[24] = packet.anno[PARAMETER_PROBLEM],
            (5, _) => bytes[24..28].copy_from_slice(&packet.destination()),
            _ => {}
        }
        bytes.extend_from_slice(ip.get(..carried).unwrap_or(&[]));
        crate::summary::read::fill(&mut bytes, ipv4::HEADER);
        let mut error = Packet::new(&bytes);
        error.mark(0, ipv4::HEADER);
        error.set_destination(to);
        error.time = cx.now();
        error.number = packet.number;
        error.anno[FIX_SOURCE] = u8::from(self.fix);
        cx.drop(packet);
        Some(error)
    }
}
