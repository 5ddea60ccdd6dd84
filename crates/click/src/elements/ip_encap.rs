//! `UDPIPEncap(SRC, SPORT, DST, DPORT [, CHECKSUM])`: puts UDP and IP headers in front. `IPEncap(PROTO, SRC, DST [, TTL, TOS, DSCP, ECT,
//! CE, DF])`: an IP header; DST is an address or `DST_ANNO`. Headers are marked and the destination annotation is set.

use super::prelude::*;
use millrace_wire::{ipv4, put};

/// The classes of this file.
pub const CLASSES: &[Class] = &[
    Class::new("UDPIPEncap", "1/1", "a/a", make),
    Class::new("IPEncap", "1/1", "a/a", ip),
];

fn make(args: &mut Args<'_>, _: &mut Setup<'_>) -> Made {
    args.keywords("SRC SPORT DST DPORT CHECKSUM");
    let (source, sport, destination, dport) = {
        let mut next = |word: &str| args.needed(word, word);
        (next("SRC")?, next("SPORT")?, next("DST")?, next("DPORT")?)
    };
    let checksum = args.flag_or_next("CHECKSUM", true)?;
    args.done()?;
    let ip = |text: &str| args.ip(text);
    let port = |text: &str| {
        let number = text.parse::<u16>().ok().or(args.names.port(text));
        number.ok_or(format!("bad port '{text}'"))
    };
    let destination = match destination.as_str() {
        "DST_ANNO" => None,
        text => Some(ip(text)?),
    };
    let ends = (ip(&source)?, port(&sport)?, destination, port(&dport)?);
    let mut upper = vec![0; 8];
    put(&mut upper, 0, ends.1);
    put(&mut upper, 2, ends.3);
    Ok(Box::new(Encap {
        source: ends.0,
        destination: ends.2,
        protocol: 17,
        service: 0,
        ttl: 250,
        whole: false,
        upper,
        checksum,
        id: 0,
    }))
}

fn ip(args: &mut Args<'_>, _: &mut Setup<'_>) -> Made {
    args.keywords("PROTO SRC DST TTL TOS DSCP ECT CE DF");
    let mut small = |word: &str, none: i64, most: i64| match args.number_word(word, none)? {
        number if (-1..=most).contains(&number) => Ok(number),
        _ => Err(format!("{word}: a number from 0 to {most}")),
    };
    let (ttl, tos) = (small("TTL", 250, 255)?, small("TOS", -1, 255)?);
    let dscp = small("DSCP", -1, 63)?;
    let ect = match args.keyword("ECT").as_deref() {
        None => 0,
        Some("2") => 2,
        Some(text) => u8::from(crate::arguments::boolean(text).ok_or(format!("bad ECT '{text}'"))?),
    };
    let (ce, df) = (args.flag("CE", false)?, args.flag("DF", false)?);
    let marked = ect > 0 || ce;
    if tos >= 0 && (dscp >= 0 || marked) || ect > 0 && ce {
        return Err("one of TOS, DSCP with ECT, DSCP with CE".into());
    }
    let (protocol, source, destination) = {
        let mut next = |word: &str| args.needed(word, word);
        (next("PROTO")?, next("SRC")?, next("DST")?)
    };
    args.done()?;
    let ip = |text: &str| args.ip(text);
    let number = crate::names::protocol(&protocol).or(protocol.parse().ok());
    // RFC 3168, section 5: 1 is ECT(1), 2 ECT(0), 3 congestion.
    let service = tos.max(0) | dscp.max(0) << 2 | i64::from(if ce { 3 } else { ect });
    Ok(Box::new(Encap {
        source: ip(&source)?,
        destination: match destination.as_str() {
            "DST_ANNO" => None,
            text => Some(ip(text)?),
        },
        protocol: number.ok_or(format!("unknown protocol '{protocol}'"))?,
        service: service as u8,
        ttl: ttl.max(0) as u8,
        whole: df,
        upper: Vec::new(),
        checksum: true,
        id: 0,
    }))
}

struct Encap {
    source: [u8; 4],
    /// none for the annotation
    destination: Option<[u8; 4]>,
    protocol: u8,
    service: u8,
    ttl: u8,
    /// Don't Fragment
    whole: bool,
    upper: Vec<u8>,
    checksum: bool,
    id: u16,
}

impl Element for Encap {
    fn meaning(&self) -> Option<Meaning> {
        Some(Meaning::Outside("the packet becomes longer"))
    }

    fn action(&mut self, mut packet: Packet, _: &Context<'_>) -> Option<Packet> {
        let mut header = vec![0; ipv4::HEADER];
        let length = packet.len() + self.upper.len();
        header[0] = 0x45;
        put(&mut header, ipv4::LENGTH, (20 + length).min(65_535) as u16);
        put(&mut header, ipv4::ID, self.id);
        self.id = self.id.wrapping_add(1);
        header[1] = self.service;
        put(&mut header, 6, u16::from(self.whole) << 14);
        (header[8], header[9]) = (self.ttl, self.protocol);
        let destination = self.destination.unwrap_or_else(|| packet.destination());
        header[12..16].copy_from_slice(&self.source);
        header[16..20].copy_from_slice(&destination);
        header.extend_from_slice(&self.upper);
        if !self.upper.is_empty() {
            put(&mut header, 24, length.min(65_535) as u16);
        }
        packet.prepend(&header);
        packet.mark(0, ipv4::HEADER);
        let bytes = packet.data_mut();
        if self.upper.is_empty() || !self.checksum {
            if let Ok(mut header) = ipv4::Header::new_checked(bytes) {
                header.fill_checksum();
            }
        } else {
            crate::summary::read::fill(bytes, ipv4::HEADER);
        }
        packet.set_destination(destination);
        Some(packet)
    }
}
