//! `EtherEncap(TYPE, SRC, DST)`: puts an Ethernet header in front. `VLANEncap(TCI | VLAN_TCI, …)` is another element;
//! `EtherRewrite(SRC, DST)` writes the addresses of the link header, where it is marked, or of the first bytes.

use crate::arguments::Args;
use crate::element::{Class, Element, Made};
use crate::interpreter::{Context, Setup};
use crate::meaning::Meaning;
use crate::packet::Packet;

/// EtherEncap
pub const CLASS: Class = Class {
    name: "EtherEncap",
    ports: "1/1",
    processing: "a/a",
    make,
};

/// EtherRewrite
pub const REWRITE: Class = Class {
    name: "EtherRewrite",
    ports: "1/1",
    processing: "a/a",
    make: rewrite,
};

fn make(args: &mut Args<'_>, _: &mut Setup<'_>) -> Made {
    args.keywords(&["ETHERTYPE", "SRC", "DST"]);
    let kind = args
        .take("ETHERTYPE")
        .ok_or("too few arguments: TYPE, SRC, DST")?;
    let kind = ether_type(&kind).ok_or(format!("bad type '{kind}'"))?;
    let (source, destination) = addresses(args)?;
    let mut header = [0; 14];
    header[..6].copy_from_slice(&destination);
    header[6..12].copy_from_slice(&source);
    header[12..].copy_from_slice(&kind.to_be_bytes());
    Ok(Box::new(Encap(header)))
}

/// A type is a number; what is none in decimal or octal is hexadecimal.
pub(super) fn ether_type(text: &str) -> Option<u16> {
    match crate::arguments::integer(text) {
        Some(number) => u16::try_from(number).ok(),
        None => u16::from_str_radix(text.trim(), 16).ok(),
    }
}

fn addresses(args: &mut Args<'_>) -> Result<([u8; 6], [u8; 6]), String> {
    let mut next = |word: &str| {
        let text = args
            .take(word)
            .ok_or(format!("too few arguments: {word}"))?;
        crate::arguments::ethernet(&text, args.names).ok_or(format!("{word}: bad address '{text}'"))
    };
    let pair = (next("SRC")?, next("DST")?);
    args.done()?;
    Ok(pair)
}

fn rewrite(args: &mut Args<'_>, _: &mut Setup<'_>) -> Made {
    args.keywords(&["SRC", "DST"]);
    let (source, destination) = addresses(args)?;
    let mut header = [0; 12];
    header[..6].copy_from_slice(&destination);
    header[6..].copy_from_slice(&source);
    Ok(Box::new(Rewrite(header)))
}

struct Encap([u8; 14]);

impl Element for Encap {
    fn meaning(&self) -> Option<Meaning> {
        Some(Meaning::Prepend(self.0.to_vec()))
    }

    fn action(&mut self, mut packet: Packet, _: &Context<'_>) -> Option<Packet> {
        packet.prepend(&self.0);
        packet.mark_mac(0);
        Some(packet)
    }
}

struct Rewrite([u8; 12]);

impl Element for Rewrite {
    fn meaning(&self) -> Option<Meaning> {
        Some(Meaning::OverwriteLink(self.0.to_vec()))
    }

    fn action(&mut self, mut packet: Packet, _: &Context<'_>) -> Option<Packet> {
        let header = match packet.mac() {
            Some(_) => packet.link_mut(),
            None => Some(packet.data_mut()),
        };
        if let Some(header) = header.and_then(|bytes| bytes.get_mut(..12)) {
            header.copy_from_slice(&self.0);
        }
        Some(packet)
    }
}
