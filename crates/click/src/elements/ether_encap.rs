//! `EtherEncap(TYPE, SRC, DST)`: puts an Ethernet header in front. `VLANEncap(TCI | VLAN_TCI, …)` is another element;
//! `EtherRewrite(SRC, DST)` writes the addresses of the link header, where it is marked, or of the first bytes.

use super::prelude::*;

/// The classes of this file.
pub const CLASSES: &[Class] = &[
    Class::new("EtherEncap", "1/1", "a/a", make),
    Class::new("EtherRewrite", "1/1", "a/a", rewrite),
];

fn make(args: &mut Args<'_>, _: &mut Setup<'_>) -> Made {
    args.keywords("ETHERTYPE SRC DST");
    let kind = args.needed("ETHERTYPE", "TYPE, SRC, DST")?;
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
        let text = args.needed(word, word)?;
        crate::arguments::ethernet(&text, args.names).ok_or(format!("{word}: bad address '{text}'"))
    };
    let pair = (next("SRC")?, next("DST")?);
    args.done()?;
    Ok(pair)
}

fn rewrite(args: &mut Args<'_>, _: &mut Setup<'_>) -> Made {
    args.keywords("SRC DST");
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
