//! `MarkIPHeader([OFFSET])`: marks the network header OFFSET bytes from the front; checks nothing. `MarkEtherHeader`,
//! `MarkMACHeader([OFFSET])` mark the link header.

use super::prelude::*;

/// The classes of this file.
pub const CLASSES: &[Class] = &[
    Class::new("MarkIPHeader", "1/1", "a/a", make),
    Class::new("MarkMACHeader", "1/1", "a/a", mac),
    Class::new("MarkEtherHeader", "1/1", "a/a", mac),
];

fn make(args: &mut Args<'_>, _: &mut Setup<'_>) -> Made {
    args.keywords("OFFSET");
    let offset = args.number("OFFSET", 0)?;
    args.done()?;
    let offset = usize::try_from(offset).map_err(|_| "bad OFFSET")?;
    Ok(Box::new(Mark(offset)))
}

fn mac(args: &mut Args<'_>, _: &mut Setup<'_>) -> Made {
    let offset = args.number("OFFSET", 0)?;
    args.all();
    Ok(Box::new(Mac(
        usize::try_from(offset).map_err(|_| "bad OFFSET")?
    )))
}

struct Mark(usize);

impl Element for Mark {
    fn meaning(&self) -> Option<Meaning> {
        Some(Meaning::Mark(self.0))
    }

    fn action(&mut self, mut packet: Packet, _: &Context<'_>) -> Option<Packet> {
        let first = packet.data().get(self.0).copied().unwrap_or(0x45);
        packet.mark(self.0, millrace_wire::ipv4::header_bytes(first));
        Some(packet)
    }
}

struct Mac(usize);

impl Element for Mac {
    fn meaning(&self) -> Option<Meaning> {
        Some(Meaning::MarkLink(self.0))
    }

    fn action(&mut self, mut packet: Packet, _: &Context<'_>) -> Option<Packet> {
        packet.mark_mac(self.0);
        Some(packet)
    }
}
