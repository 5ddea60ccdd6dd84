//! `SetVLANAnno(VLAN_ID [, VLAN_PCP])`: sets the annotation that `VLANEncap(ANNO)` takes.

use super::prelude::*;
use crate::packet::VLAN;

/// The class of this file.
pub const CLASSES: &[Class] = &[Class::new("SetVLANAnno", "1/1", "a/a", make)];

fn make(args: &mut Args<'_>, _: &mut Setup<'_>) -> Made {
    args.keywords("VLAN_ID VLAN_PCP VLAN_TCI");
    let whole = args.number_word("VLAN_TCI", -1)?;
    let id = args.number("VLAN_ID", 0)?;
    let priority = args.number("VLAN_PCP", 0)?;
    args.done()?;
    let tag = match u16::try_from(whole) {
        Ok(tag) => tag,
        Err(_) if (0..4096).contains(&id) && (0..8).contains(&priority) => {
            id as u16 | (priority as u16) << 13
        }
        Err(_) => return Err("VLAN_ID is below 4096, VLAN_PCP below 8".into()),
    };
    Ok(Box::new(Set(tag)))
}

struct Set(u16);

impl Element for Set {
    fn meaning(&self) -> Option<Meaning> {
        Some(Meaning::Outside("it writes a VLAN tag"))
    }

    fn action(&mut self, mut packet: Packet, _: &Context<'_>) -> Option<Packet> {
        packet.anno[VLAN..VLAN + 2].copy_from_slice(&self.0.to_be_bytes());
        Some(packet)
    }
}
