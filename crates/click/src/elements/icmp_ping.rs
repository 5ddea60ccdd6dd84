//! `ICMPPingResponder`: turns echo requests into answers; other packets go to output 1, or are dropped. `ICMPPingEncap(SRC, DST [,
//! IDENTIFIER])` puts an echo request's headers in front of each packet.

use super::prelude::*;
use crate::headers;
use crate::packet::PAINT;
use millrace_wire::checksum::replace;
use millrace_wire::{ipv4, put, word};

/// The classes of this file.
pub const CLASSES: &[Class] = &[
    Class::new("ICMPPingResponder", "1/1-2", "a/ah", make),
    Class::new("ICMPPingEncap", "1/1", "a/a", encap),
];

fn make(args: &mut Args<'_>, _: &mut Setup<'_>) -> Made {
    args.all();
    Ok(Box::new(Responder))
}

fn encap(args: &mut Args<'_>, _: &mut Setup<'_>) -> Made {
    args.keywords("SRC DST IDENTIFIER");
    let id = args.number_word("IDENTIFIER", 0)?;
    let mut next = |word: &str| {
        let text = args.needed(word, word)?;
        crate::arguments::ip(&text, args.names).ok_or(format!("{word}: bad address '{text}'"))
    };
    let (source, destination) = (next("SRC")?, next("DST")?);
    args.done()?;
    Ok(Box::new(Encap {
        source,
        destination,
        id: id as u16,
        count: 1,
    }))
}

struct Responder;

impl Element for Responder {
    fn meaning(&self) -> Option<Meaning> {
        Some(Meaning::Outside("it makes ICMP messages"))
    }

    fn action(&mut self, mut packet: Packet, cx: &Context<'_>) -> Option<Packet> {
        let ip = packet.ip().filter(|ip| ip.len() >= ipv4::HEADER);
        let ends = ip.filter(|ip| ip[ipv4::PROTOCOL] == 1).and_then(|ip| {
            let source: [u8; 4] = ip.get(12..16)?.try_into().ok()?;
            let destination: [u8; 4] = ip.get(16..20)?.try_into().ok()?;
            Some((source, destination))
        });
        let echo = packet.upper().is_some_and(|u| u.len() >= 8 && u[0] == 8);
        let Some((source, destination)) = ends.filter(|_| echo) else {
            cx.reject(1, packet);
            return None;
        };
        headers::write(&mut packet, 12, &destination);
        headers::write(&mut packet, 16, &source);
        headers::write_word(&mut packet, ipv4::FRAGMENT, 0);
        headers::write_word(&mut packet, 8, 0xff01);
        packet.set_destination(source);
        packet.anno[PAINT] = 0;
        if let Some(upper) = packet.upper_mut()
            && let (Some(from), Some(sum)) = (word(upper, 0), word(upper, 2))
        {
            put(upper, 0, 0);
            put(upper, 2, replace(sum, from, 0));
            headers::nonzero(upper);
        }
        Some(packet)
    }
}

struct Encap {
    source: [u8; 4],
    destination: [u8; 4],
    id: u16,
    count: u16,
}

impl Element for Encap {
    fn meaning(&self) -> Option<Meaning> {
        Some(Meaning::Outside("it makes ICMP messages"))
    }

    fn action(&mut self, mut packet: Packet, _: &Context<'_>) -> Option<Packet> {
        let mut header = vec![0; 28];
        header[0] = 0x45;
        put(
            &mut header,
            ipv4::LENGTH,
            (28 + packet.len()).min(65_535) as u16,
        );
        put(&mut header, ipv4::ID, self.count);
        (header[8], header[9], header[20]) = (255, 1, 8);
        header[12..16].copy_from_slice(&self.source);
        header[16..20].copy_from_slice(&self.destination);
        put(&mut header, 24, self.id);
        put(&mut header, 26, self.count);
        // 0 is none.
        self.count = self.count.wrapping_add(1).max(1);
        packet.prepend(&header);
        packet.mark(0, ipv4::HEADER);
        crate::summary::read::fill(packet.data_mut(), ipv4::HEADER);
        packet.set_destination(self.destination);
        Some(packet)
    }
}
