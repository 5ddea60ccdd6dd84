//! `ICMPRewriter(REWRITERS [, REPLY_ANNO, DST_ANNO])`: an ICMP error about a packet that one of the rewriters has rewritten gets the words
//! that the packet had before: the header that it carries, and its destination, with all checksums computed again (RFC 5508,
//! section 4.2). Other packets go to output 1, or are dropped.

use millrace_wire::ipv4;

use super::prelude::*;
use crate::headers;
use crate::rewriter::Key;

/// The class of this file.
pub const CLASSES: &[Class] = &[Class::new("ICMPRewriter", "1/1-2", "h/h", make)];

fn make(args: &mut Args<'_>, setup: &mut Setup<'_>) -> Made {
    args.keywords("REPLY_ANNO DST_ANNO MAPS");
    let annotation = args.annotation_word("REPLY_ANNO", 1)?;
    let maps = args.needed("MAPS", "REWRITERS")?;
    args.done()?;
    let mut rewriters = Vec::new();
    for name in crate::language::args::words(&maps) {
        rewriters.push(
            setup
                .find(&name)
                .ok_or(format!("no element named '{name}'"))?,
        );
    }
    Ok(Box::new(Rewriter {
        rewriters,
        annotation,
    }))
}

struct Rewriter {
    rewriters: Vec<usize>,
    annotation: Option<usize>,
}

/// The carried packet of an error: where it begins behind the network header, and its flow's words.
fn carried(packet: &Packet) -> Option<(usize, Packet, Key)> {
    let ip = packet.ip()?;
    let header = ipv4::header_bytes(*ip.first()?);
    let error = matches!(ip.get(header)?, 3 | 4 | 5 | 11 | 12);
    if ip.get(ipv4::PROTOCOL) != Some(&1) || !error || header < ipv4::HEADER {
        return None;
    }
    let inner = ip.get(header + 8..)?;
    let mut packet = Packet::new(inner);
    packet.mark(0, ipv4::header_bytes(*inner.first()?));
    let key = headers::key(&packet).or_else(|| headers::echo_key(&packet))?;
    Some((header + 8, packet, key))
}

impl Element for Rewriter {
    fn push(&mut self, _: usize, mut packet: Packet, cx: &Context<'_>) {
        let Some((at, mut inner, key)) = carried(&packet) else {
            return cx.reject(1, packet);
        };
        let now = cx.now();
        // The carried packet was sent with the flow's new words: its answer's key is known.
        let found = self.rewriters.iter().find_map(|id| {
            let find = |e: &mut dyn Element| {
                let (flow, direction) = e.rewriter()?.find(key.reverse(), now)?;
                Some((flow.words(direction).reverse(), flow.annotation))
            };
            cx.with(*id, |e, _| find(e)).flatten()
        });
        let Some((words, annotation)) = found else {
            return cx.reject(1, packet);
        };
        headers::apply(&mut inner, words, true);
        if let Some(ip) = packet.ip_mut() {
            if let Some(to) = ip.get_mut(at..at + inner.len()) {
                to.copy_from_slice(inner.data());
            }
            if let Some(destination) = ip.get_mut(ipv4::DESTINATION) {
                destination.copy_from_slice(&words.source);
            }
            crate::summary::read::fill(ip, at - 8);
        }
        packet.set_destination(words.source);
        if let Some(slot) = self.annotation.and_then(|at| packet.anno.get_mut(at)) {
            *slot = annotation;
        }
        cx.push(0, packet);
    }
}
