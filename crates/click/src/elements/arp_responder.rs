//! `ARPResponder(IP[/MASK] … ETH, …)`: answers ARP requests (RFC 826) about its addresses; what is no request for one of them goes to
//! output 1, or is dropped.

use super::prelude::*;

/// The class of this file.
pub const CLASSES: &[Class] = &[Class::new("ARPResponder", "1/1-2", "a/ah", make)];

fn make(args: &mut Args<'_>, _: &mut Setup<'_>) -> Made {
    let mut entries = Vec::new();
    for argument in args.all() {
        let words = crate::language::args::words(&argument);
        let (mut nets, mut mac) = (Vec::new(), None);
        for word in &words {
            // A name may stand for both.
            if let Some(address) = crate::arguments::ethernet(word, args.names) {
                mac = Some(address);
                if let Some(ip) = crate::arguments::ip(word, args.names) {
                    nets.push((ip, [255; 4]));
                }
            } else {
                nets.push(
                    crate::arguments::prefix(word, args.names)
                        .ok_or(format!("bad address '{word}'"))?,
                );
            }
        }
        let mac = mac.ok_or(format!("no Ethernet address in '{argument}'"))?;
        entries.extend(nets.into_iter().map(|(ip, mask)| (ip, mask, mac)));
    }
    Ok(Box::new(Responder(entries)))
}

/// Networks and the addresses that are answered.
struct Responder(Vec<([u8; 4], [u8; 4], [u8; 6])>);

impl Element for Responder {
    fn meaning(&self) -> Option<Meaning> {
        Some(Meaning::Outside("it makes ARP answers"))
    }

    fn action(&mut self, mut packet: Packet, cx: &Context<'_>) -> Option<Packet> {
        let data = packet.data();
        let request = data.get(12..22) == Some(&[8, 6, 0, 1, 8, 0, 6, 4, 0, 1]);
        let target: Option<[u8; 4]> = data.get(38..42).and_then(|b| b.try_into().ok());
        let found = target.filter(|_| request).and_then(|target| {
            let fits = |e: &&([u8; 4], [u8; 4], [u8; 6])| {
                (0..4).all(|i| (target[i] ^ e.0[i]) & e.1[i] == 0)
            };
            self.0.iter().find(fits).map(|e| (target, e.2))
        });
        let Some((target, mac)) = found else {
            cx.reject(1, packet);
            return None;
        };
        let mut frame = [0; 42];
        frame.copy_from_slice(data.get(..42)?);
        frame.copy_within(22..28, 0);
        frame[6..12].copy_from_slice(&mac);
        frame[21] = 2;
        frame.copy_within(22..32, 32);
        frame[22..28].copy_from_slice(&mac);
        frame[28..32].copy_from_slice(&target);
        packet.truncate(42);
        packet.data_mut().copy_from_slice(&frame);
        packet.missing = 0;
        Some(packet)
    }
}
