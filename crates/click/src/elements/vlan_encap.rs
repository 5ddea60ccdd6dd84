//! `VLANEncap(TCI [, ID, PCP, NATIVE_VLAN])`: puts a VLAN tag behind the Ethernet addresses; `VLAN_ANNO` takes it from the annotation.
//! `VLANDecap([ANNO])` takes the tag away. `EtherVLANEncap(TYPE, SRC, DST, TCI)`: an Ethernet header with a tag.
//!
//! Handlers: `vlan_tci`.

use super::prelude::*;
use crate::packet::VLAN;

/// The classes of this file.
pub const CLASSES: &[Class] = &[
    Class::new("VLANEncap", "1/1", "a/a", make),
    Class::new("EtherVLANEncap", "1/1", "a/a", ether),
    Class::new("VLANDecap", "1/1", "a/a", decap),
];

fn make(args: &mut Args<'_>, _: &mut Setup<'_>) -> Made {
    args.keywords("VLAN_TCI VLAN_ID VLAN_PCP NATIVE_VLAN ETHERTYPE");
    let native = args.number_word("NATIVE_VLAN", 0)?;
    let tag = tag(args)?;
    args.done()?;
    Ok(Box::new(Encap {
        header: None,
        tag,
        native: u16::try_from(native).ok(),
    }))
}

/// The tag, or none for the annotation's.
fn tag(args: &mut Args<'_>) -> Result<Option<u16>, String> {
    let pcp = args.number_word("VLAN_PCP", 0)?;
    let id = args.keyword("VLAN_ID");
    let text = match id.or_else(|| args.take("VLAN_TCI")) {
        Some(text) => text,
        None => return Err("too few arguments: VLAN_TCI".into()),
    };
    if text.eq_ignore_ascii_case("anno") {
        return Ok(None);
    }
    let number = crate::arguments::integer(&text).and_then(|n| u16::try_from(n).ok());
    let number = number.ok_or(format!("bad VLAN '{text}'"))?;
    Ok(Some(number | (pcp as u16 & 7) << 13))
}

fn ether(args: &mut Args<'_>, _: &mut Setup<'_>) -> Made {
    args.keywords("ETHERTYPE SRC DST VLAN_TCI VLAN_ID VLAN_PCP NATIVE_VLAN");
    let native = args.number_word("NATIVE_VLAN", 0)?;
    let kind = args.needed("ETHERTYPE", "TYPE")?;
    let kind = super::ether_encap::ether_type(&kind).ok_or(format!("bad type '{kind}'"))?;
    let mut header = [0; 14];
    for (word, at) in [("SRC", 6), ("DST", 0)] {
        let text = args.needed(word, word)?;
        let address = args.ethernet(&text)?;
        header[at..at + 6].copy_from_slice(&address);
    }
    header[12..].copy_from_slice(&kind.to_be_bytes());
    let tag = tag(args)?;
    args.done()?;
    Ok(Box::new(Encap {
        header: Some(header),
        tag,
        native: u16::try_from(native).ok(),
    }))
}

fn decap(args: &mut Args<'_>, _: &mut Setup<'_>) -> Made {
    args.keywords("ANNO");
    let set = args.flag_or_next("ANNO", true)?;
    args.done()?;
    Ok(Box::new(Decap(set)))
}

struct Encap {
    header: Option<[u8; 14]>,
    tag: Option<u16>,
    /// packets of this VLAN have no tag
    native: Option<u16>,
}

impl Element for Encap {
    fn meaning(&self) -> Option<Meaning> {
        Some(Meaning::Outside("the packet becomes longer or shorter"))
    }

    fn action(&mut self, mut packet: Packet, _: &Context<'_>) -> Option<Packet> {
        if let Some(header) = &self.header {
            packet.prepend(header);
            packet.mark_mac(0);
        }
        let noted = u16::from_be_bytes([packet.anno[VLAN], packet.anno[VLAN + 1]]);
        let tag = self.tag.unwrap_or(noted);
        if self.native == Some(tag & 0xfff) || packet.len() < 14 {
            return Some(packet);
        }
        let mut addresses = [0; 12];
        addresses.copy_from_slice(&packet.data()[..12]);
        packet.push(4);
        let data = packet.data_mut();
        data[..12].copy_from_slice(&addresses);
        data[12..14].copy_from_slice(&millrace_wire::ethernet::VLAN.to_be_bytes());
        data[14..16].copy_from_slice(&tag.to_be_bytes());
        packet.mark_mac(0);
        Some(packet)
    }

    fn read(&mut self, name: &str, _: &str, _: &Context<'_>) -> Read {
        (name == "vlan_tci").then(|| Ok(self.tag.map_or("ANNO".into(), |t| t.to_string())))
    }

    fn write(&mut self, name: &str, value: &str, _: &Context<'_>) -> Written {
        (name == "vlan_tci").then(
            || match crate::arguments::integer(value).map(u16::try_from) {
                Some(Ok(tag)) => {
                    self.tag = Some(tag);
                    Ok(())
                }
                _ => Err(format!("bad VLAN '{value}'")),
            },
        )
    }
}

/// Whether the annotation gets the tag.
struct Decap(bool);

impl Element for Decap {
    fn meaning(&self) -> Option<Meaning> {
        Some(Meaning::Outside("the packet becomes longer or shorter"))
    }

    fn action(&mut self, mut packet: Packet, _: &Context<'_>) -> Option<Packet> {
        let mut tag = [0; 2];
        if packet.data().get(12..14) == Some(&[0x81, 0]) && packet.len() >= 18 {
            tag.copy_from_slice(&packet.data()[14..16]);
            packet.data_mut().copy_within(0..12, 4);
            packet.strip(4);
            packet.mark_mac(0);
        }
        if self.0 {
            packet.anno[VLAN..VLAN + 2].copy_from_slice(&tag);
        }
        Some(packet)
    }
}
