//! `UDPIPEncap(SRC, SPORT, DST, DPORT [, CHECKSUM])`: puts UDP and IP headers in front. `IPEncap(PROTO, SRC, DST)`: an IP header.
//! Headers are marked and the destination annotation is set.

use crate::arguments::Args;
use crate::element::{Class, Element, Made};
use crate::interpreter::{Context, Setup};
use crate::meaning::Meaning;
use crate::packet::Packet;
use millrace_wire::{ipv4, put};

/// UDPIPEncap
pub const CLASS: Class = Class {
    name: "UDPIPEncap",
    ports: "1/1",
    processing: "a/a",
    make,
};

/// IPEncap
pub const IP: Class = Class {
    name: "IPEncap",
    ports: "1/1",
    processing: "a/a",
    make: ip,
};

fn make(args: &mut Args<'_>, _: &mut Setup<'_>) -> Made {
    args.keywords(&["SRC", "SPORT", "DST", "DPORT", "CHECKSUM"]);
    let checksum = args.flag("CHECKSUM", true)?;
    let (source, sport, destination, dport) = {
        let mut next = |word: &str| args.take(word).ok_or(format!("too few arguments: {word}"));
        (next("SRC")?, next("SPORT")?, next("DST")?, next("DPORT")?)
    };
    let ip =
        |text: &str| crate::arguments::ip(text, args.names).ok_or(format!("bad address '{text}'"));
    let port = |text: &str| {
        let number = text.parse::<u16>().ok().or(args.names.port(text));
        number.ok_or(format!("bad port '{text}'"))
    };
    let ends = (
        ip(&source)?,
        port(&sport)?,
        ip(&destination)?,
        port(&dport)?,
    );
    args.all();
    let mut upper = vec![0; 8];
    put(&mut upper, 0, ends.1);
    put(&mut upper, 2, ends.3);
    Ok(Box::new(Encap {
        source: ends.0,
        destination: ends.2,
        protocol: 17,
        upper,
        checksum,
        id: 0,
    }))
}

fn ip(args: &mut Args<'_>, _: &mut Setup<'_>) -> Made {
    args.keywords(&["PROTO", "SRC", "DST"]);
    let (protocol, source, destination) = {
        let mut next = |word: &str| args.take(word).ok_or(format!("too few arguments: {word}"));
        (next("PROTO")?, next("SRC")?, next("DST")?)
    };
    args.done()?;
    let ip =
        |text: &str| crate::arguments::ip(text, args.names).ok_or(format!("bad address '{text}'"));
    let number = crate::names::protocol(&protocol).or(protocol.parse().ok());
    Ok(Box::new(Encap {
        source: ip(&source)?,
        destination: ip(&destination)?,
        protocol: number.ok_or(format!("unknown protocol '{protocol}'"))?,
        upper: Vec::new(),
        checksum: true,
        id: 0,
    }))
}

struct Encap {
    source: [u8; 4],
    destination: [u8; 4],
    protocol: u8,
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
        (header[8], header[9]) = (250, self.protocol);
        header[12..16].copy_from_slice(&self.source);
        header[16..20].copy_from_slice(&self.destination);
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
        packet.set_destination(self.destination);
        Some(packet)
    }
}
