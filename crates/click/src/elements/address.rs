//! `GetIPAddress(OFFSET)`: the destination annotation becomes four bytes of the packet, counted from its front; `GetIPAddress(IP src)`,
//! `GetIPAddress(IP dst)`: an address of the IP header. `SetIPAddress(ADDRESS)`: it becomes ADDRESS. `StoreIPAddress([ADDRESS,] OFFSET)`: writes the annotation, or
//! ADDRESS, to a place; `src` and `dst` are the fields of the IP header, whose checksums are updated. Packets that do not have the place
//! go to output 1, or are dropped.

use super::prelude::*;
use crate::meaning::Address;

/// The classes of this file.
pub const CLASSES: &[Class] = &[
    Class::new("GetIPAddress", "1/1", "a/a", make),
    Class::new("SetIPAddress", "1/1", "a/a", set),
    Class::new("StoreIPAddress", "1/1-2", "a/ah", store),
];

fn make(args: &mut Args<'_>, _: &mut Setup<'_>) -> Made {
    args.keywords("OFFSET ANNO IP");
    let place = match args.keyword("IP").as_deref() {
        Some("src") => Place::Source,
        Some("dst") => Place::Destination,
        Some(_) => return Err("bad IP: src or dst".into()),
        None => place(&args.needed("OFFSET", "OFFSET or IP")?)?,
    };
    annotation(args)?;
    args.done()?;
    Ok(Box::new(Get(place)))
}

/// The destination annotation is the only one that addresses are put into here.
fn annotation(args: &mut Args<'_>) -> Result<(), String> {
    match args.annotation("ANNO", 0, 4)? {
        0 => Ok(()),
        _ => Err("ANNO: only the destination annotation is supported".into()),
    }
}

fn set(args: &mut Args<'_>, _: &mut Setup<'_>) -> Made {
    args.keywords("IPADDR ANNO");
    let text = args.needed("IPADDR", "ADDRESS")?;
    annotation(args)?;
    args.done()?;
    let address = args.ip(&text)?;
    Ok(Box::new(Set(address)))
}

fn store(args: &mut Args<'_>, _: &mut Setup<'_>) -> Made {
    args.keywords("ANNO");
    if args.keyword("ANNO").is_some() {
        return Err("ANNO: only the destination annotation is supported".into());
    }
    let all = args.all();
    let (address, at) = match all.as_slice() {
        [at] => (None, at),
        [address, at] => {
            let found = crate::arguments::ip(address, args.names);
            (Some(found.ok_or(format!("bad address '{address}'"))?), at)
        }
        _ => return Err("arguments: [ADDRESS,] OFFSET".into()),
    };
    Ok(Box::new(Store {
        address,
        at: place(at)?,
    }))
}

#[derive(Clone, Copy)]
enum Place {
    Offset(usize),
    Source,
    Destination,
}

fn place(text: &str) -> Result<Place, String> {
    match text.to_ascii_lowercase().as_str() {
        "src" | "ip src" => Ok(Place::Source),
        "dst" | "ip dst" => Ok(Place::Destination),
        text => {
            let number = crate::arguments::integer(text).and_then(|n| usize::try_from(n).ok());
            number
                .map(Place::Offset)
                .ok_or(format!("bad offset '{text}'"))
        }
    }
}

struct Get(Place);

impl Element for Get {
    fn meaning(&self) -> Option<Meaning> {
        Some(Meaning::GetDestination(match self.0 {
            Place::Offset(at) => Address::Front(at),
            Place::Source => Address::Network(12),
            Place::Destination => Address::Network(16),
        }))
    }

    fn action(&mut self, mut packet: Packet, _: &Context<'_>) -> Option<Packet> {
        let bytes = match self.0 {
            Place::Offset(at) => packet.data().get(at..at + 4),
            Place::Source => packet.ip().and_then(|ip| ip.get(12..16)),
            Place::Destination => packet.ip().and_then(|ip| ip.get(16..20)),
        };
        if let Some(bytes) = bytes.and_then(|b| b.try_into().ok()) {
            packet.set_destination(bytes);
        }
        Some(packet)
    }
}

struct Set([u8; 4]);

impl Element for Set {
    fn meaning(&self) -> Option<Meaning> {
        Some(Meaning::SetDestination(self.0))
    }

    fn action(&mut self, mut packet: Packet, _: &Context<'_>) -> Option<Packet> {
        packet.set_destination(self.0);
        Some(packet)
    }
}

struct Store {
    address: Option<[u8; 4]>,
    at: Place,
}

impl Element for Store {
    fn meaning(&self) -> Option<Meaning> {
        match self.at {
            Place::Offset(_) => Some(Meaning::Outside("it writes bytes without their sums")),
            Place::Source => Some(Meaning::StoreAddress(12, self.address)),
            Place::Destination => Some(Meaning::StoreAddress(16, self.address)),
        }
    }

    fn action(&mut self, mut packet: Packet, cx: &Context<'_>) -> Option<Packet> {
        let address = self.address.unwrap_or_else(|| packet.destination());
        let at = match self.at {
            Place::Source => 12,
            Place::Destination => 16,
            Place::Offset(at) => {
                let Some(bytes) = packet.data_mut().get_mut(at..at + 4) else {
                    cx.reject(1, packet);
                    return None;
                };
                bytes.copy_from_slice(&address);
                return Some(packet);
            }
        };
        if !crate::headers::write(&mut packet, at, &address) {
            cx.reject(1, packet);
            return None;
        }
        Some(packet)
    }
}
