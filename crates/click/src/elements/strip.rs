//! `Strip(N)`: takes N bytes from the front. `Unstrip(N)` puts them back; `StripToNetworkHeader` takes all in front of the
//! network header; `StripIPHeader` takes the IP header.

use super::prelude::*;

/// The classes of this file.
pub const CLASSES: &[Class] = &[
    Class::new("Strip", "1/1", "a/a", make),
    Class::new("Unstrip", "1/1", "a/a", unstrip),
    Class::new("StripToNetworkHeader", "1/1", "a/a", to_network),
    Class::new("StripIPHeader", "1/1", "a/a", ip_header),
];

fn make(args: &mut Args<'_>, _: &mut Setup<'_>) -> Made {
    bytes(args).map(|n| Box::new(Strip(Some(n))) as Box<dyn Element>)
}

fn bytes(args: &mut Args<'_>) -> Result<usize, String> {
    args.keywords("LENGTH");
    let text = args.needed("LENGTH", "the number of bytes")?;
    args.done()?;
    let bytes = crate::arguments::integer(&text).and_then(|n| usize::try_from(n).ok());
    bytes
        .filter(|n| *n <= 1 << 16)
        .ok_or_else(|| format!("bad number of bytes '{text}'"))
}

fn unstrip(args: &mut Args<'_>, _: &mut Setup<'_>) -> Made {
    bytes(args).map(|n| Box::new(Unstrip(n)) as Box<dyn Element>)
}

fn to_network(args: &mut Args<'_>, _: &mut Setup<'_>) -> Made {
    args.done()?;
    Ok(Box::new(Strip(None)))
}

fn ip_header(args: &mut Args<'_>, _: &mut Setup<'_>) -> Made {
    args.done()?;
    Ok(Box::new(IpHeader))
}

/// A number of bytes, or all before the network header.
struct Strip(Option<usize>);

impl Element for Strip {
    fn meaning(&self) -> Option<Meaning> {
        Some(self.0.map_or(Meaning::StripToNetwork, Meaning::Strip))
    }

    fn action(&mut self, mut packet: Packet, _: &Context<'_>) -> Option<Packet> {
        match (self.0, packet.network()) {
            (Some(bytes), _) => packet.strip(bytes),
            (None, Some(at)) if at >= 0 => packet.strip(at as usize),
            (None, Some(at)) => packet.push(at.unsigned_abs()),
            (None, None) => {}
        }
        Some(packet)
    }
}

struct Unstrip(usize);

impl Element for Unstrip {
    fn meaning(&self) -> Option<Meaning> {
        Some(Meaning::Unstrip(self.0))
    }

    fn action(&mut self, mut packet: Packet, _: &Context<'_>) -> Option<Packet> {
        packet.push(self.0);
        Some(packet)
    }
}

struct IpHeader;

impl Element for IpHeader {
    fn meaning(&self) -> Option<Meaning> {
        Some(Meaning::Outside(
            "how much it takes is in the packet's header",
        ))
    }

    fn action(&mut self, mut packet: Packet, _: &Context<'_>) -> Option<Packet> {
        if let Some(at) = packet.transport().and_then(|t| usize::try_from(t).ok()) {
            packet.strip(at);
        }
        Some(packet)
    }
}
