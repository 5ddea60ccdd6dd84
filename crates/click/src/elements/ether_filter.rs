//! `HostEtherFilter(ETHER [, DROP_OWN, DROP_OTHER])`: a frame to ETHER, to all or to a group goes to output 0; one to another host, and
//! one from ETHER with DROP_OWN (false), goes to output 1, or is dropped; DROP_OTHER (true) says whether another's does. The packet's
//! type is set by the destination.

use super::prelude::*;
use crate::packet::Kind;

/// The class of this file.
pub const CLASSES: &[Class] = &[Class::new("HostEtherFilter", "1/1-2", "a/ah", make)];

fn make(args: &mut Args<'_>, _: &mut Setup<'_>) -> Made {
    args.keywords("ETHER DROP_OWN DROP_OTHER OFFSET");
    let text = args.needed("ETHER", "ETHER")?;
    let mine = crate::arguments::ethernet(&text, args.names);
    let mine = mine.ok_or(format!("bad address '{text}'"))?;
    let own = args.flag_or_next("DROP_OWN", false)?;
    let other = args.flag_or_next("DROP_OTHER", true)?;
    args.done()?;
    Ok(Box::new(Filter { mine, own, other }))
}

struct Filter {
    mine: [u8; 6],
    own: bool,
    other: bool,
}

impl Element for Filter {
    fn meaning(&self) -> Option<Meaning> {
        Some(Meaning::Addressed {
            mine: self.mine,
            own: self.own,
            other: self.other,
        })
    }

    fn action(&mut self, mut packet: Packet, cx: &Context<'_>) -> Option<Packet> {
        let address = |at: usize| -> [u8; 6] {
            let bytes = packet
                .data()
                .get(at..at + 6)
                .and_then(|b| b.try_into().ok());
            bytes.unwrap_or_default()
        };
        let (to, from) = (address(0), address(6));
        let kind = match to {
            [255, 255, 255, 255, 255, 255] => Kind::Broadcast,
            to if to[0] & 1 != 0 => Kind::Multicast,
            to if to == self.mine => Kind::Host,
            _ => Kind::Other,
        };
        packet.kind = kind;
        if self.own && from == self.mine || self.other && kind == Kind::Other {
            cx.reject(1, packet);
            return None;
        }
        Some(packet)
    }
}
