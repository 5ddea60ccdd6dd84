//! `StoreEtherAddress(ETHER, OFFSET)`: writes an Ethernet address at OFFSET bytes from the front; `dst` is 0 and `src` is 6. Packets that do not
//! have the place go to output 1, or are dropped.

use super::prelude::*;

/// The class of this file.
pub const CLASSES: &[Class] = &[Class::new("StoreEtherAddress", "1/1-2", "a/ah", make)];

fn make(args: &mut Args<'_>, _: &mut Setup<'_>) -> Made {
    args.keywords("ADDR ETH OFFSET");
    let text = args
        .keyword("ETH")
        .or_else(|| args.take("ADDR"))
        .ok_or("too few arguments: ADDR, OFFSET")?;
    let address = crate::arguments::ethernet(&text, args.names);
    let address = address.ok_or(format!("bad address '{text}'"))?;
    let offset = args.needed("OFFSET", "ADDR, OFFSET")?;
    args.done()?;
    let offset = match offset.trim() {
        "dst" => 0,
        "src" => 6,
        text => crate::arguments::integer(text)
            .and_then(|n| usize::try_from(n).ok())
            .filter(|n| *n < 1 << 16)
            .ok_or(format!("bad offset '{text}'"))?,
    };
    Ok(Box::new(Store { address, offset }))
}

struct Store {
    address: [u8; 6],
    offset: usize,
}

impl Element for Store {
    fn meaning(&self) -> Option<Meaning> {
        Some(Meaning::Write {
            at: self.offset,
            bytes: self.address.to_vec(),
        })
    }

    fn action(&mut self, mut packet: Packet, cx: &Context<'_>) -> Option<Packet> {
        let place = self.offset..self.offset + 6;
        match packet.data_mut().get_mut(place) {
            Some(bytes) => bytes.copy_from_slice(&self.address),
            None => {
                cx.reject(1, packet);
                return None;
            }
        }
        Some(packet)
    }
}
