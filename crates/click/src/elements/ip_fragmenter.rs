//! `IPFragmenter(MTU [, HONOR_DF, VERBOSE])`: cuts packets longer than MTU into fragments (RFC 791, 3.2): the first has all options,
//! others those whose copied flag is set. With the flag Don't Fragment the packet goes to output 1, or is dropped; HONOR_DF false
//! cuts it anyway. Only the first has what is in front of the network header.
//!
//! Handlers: `drops`, `fragments`.

use super::prelude::*;
use millrace_wire::{ipv4, put};

/// The class of this file.
pub const CLASSES: &[Class] = &[Class::new("IPFragmenter", "1/1-2", "h/h", make)];

fn make(args: &mut Args<'_>, _: &mut Setup<'_>) -> Made {
    args.keywords("MTU HONOR_DF VERBOSE HEADROOM");
    let mtu = args.number("MTU", 0)?;
    let honor = args.flag_or_next("HONOR_DF", true)?;
    args.flag_or_next("VERBOSE", false)?;
    args.done()?;
    let mtu = usize::try_from(mtu)
        .ok()
        .filter(|m| *m >= 8)
        .ok_or("MTU must be at least 8")?;
    Ok(Box::new(Fragmenter {
        mtu,
        honor,
        drops: 0,
        fragments: 0,
    }))
}

struct Fragmenter {
    mtu: usize,
    honor: bool,
    drops: u64,
    fragments: u64,
}

/// Options that fragments but the first have, padded to four bytes.
fn copied(options: &[u8]) -> Vec<u8> {
    let (mut out, mut at) = (Vec::new(), 0);
    while let Some(&kind) = options.get(at) {
        if kind == 0 {
            break;
        }
        if kind == 1 {
            at += 1;
            continue;
        }
        let length = options.get(at + 1).map_or(0, |l| usize::from(*l));
        let Some(option) = options.get(at..at + length).filter(|_| length >= 2) else {
            break;
        };
        if kind & 0x80 != 0 {
            out.extend_from_slice(option);
        }
        at += length;
    }
    while out.len() % 4 != 0 {
        out.push(0);
    }
    out
}

impl Element for Fragmenter {
    fn meaning(&self) -> Option<Meaning> {
        Some(Meaning::Fragment {
            mtu: self.mtu,
            honor: self.honor,
        })
    }

    fn push(&mut self, _: usize, packet: Packet, cx: &Context<'_>) {
        let Some(ip) = packet.ip().filter(|ip| ip.len() > self.mtu) else {
            return cx.push(0, packet);
        };
        let Ok(header) = ipv4::Header::new_checked(ip) else {
            self.drops += 1;
            return cx.drop(packet);
        };
        let (length, word) = (header.header_length(), header.fragment());
        let total = usize::from(header.total_length()).min(ip.len());
        if word & 0x4000 != 0 && self.honor || self.mtu < length + 8 {
            self.drops += 1;
            return cx.reject(1, packet);
        }
        let front = packet
            .network()
            .and_then(|n| usize::try_from(n).ok())
            .unwrap_or(0);
        let front = packet.data().get(..front).unwrap_or(&[]);
        let body = ip.get(length..total).unwrap_or(&[]);
        let mut at = 0;
        while at < body.len() {
            let mut head = ip.get(..length).unwrap_or(&[]).to_vec();
            if at > 0 {
                let options = copied(head.get(ipv4::HEADER..).unwrap_or(&[]));
                head.truncate(ipv4::HEADER);
                head.extend(options);
                head[0] = head[0] & 0xf0 | (head.len() / 4) as u8;
            }
            let most = (self.mtu - head.len()) / 8 * 8;
            let end = (at + most.max(8)).min(body.len());
            // Don't Fragment is not said of parts.
            let mut fragment = ((word & !0x4000) | ipv4::MORE).wrapping_add((at / 8) as u16);
            if end == body.len() && word & ipv4::MORE == 0 {
                fragment &= !ipv4::MORE;
            }
            let count = head.len();
            put(&mut head, ipv4::LENGTH, (count + end - at) as u16);
            put(&mut head, ipv4::FRAGMENT, fragment);
            if let Ok(mut header) = ipv4::Header::new_checked(&mut head[..]) {
                header.fill_checksum();
            }
            let front = if at == 0 { front } else { &[] };
            let bytes = [front, &head, body.get(at..end).unwrap_or(&[])].concat();
            let mut fragment = Packet::new(&bytes);
            fragment.anno = packet.anno;
            (fragment.time, fragment.kind, fragment.number) =
                (packet.time, packet.kind, packet.number);
            if packet.mac().is_some() {
                fragment.mark_mac(0);
            }
            fragment.mark(front.len(), count);
            self.fragments += 1;
            cx.push(0, fragment);
            at = end;
        }
    }

    fn read(&mut self, name: &str, _: &str, _: &Context<'_>) -> Read {
        match name {
            "drops" => Some(Ok(self.drops.to_string())),
            "fragments" => Some(Ok(self.fragments.to_string())),
            _ => None,
        }
    }
}
