//! `IPGWOptions(MYADDR [, OTHERS])`: handles record route and time stamp options as a router has to (RFC 791, 3.1; RFC 1812, 5.2.4)
//! with MYADDR, and computes the header's checksum again. A bad option sends the packet to output 1, with the parameter problem's
//! place in its annotation.

use super::prelude::*;
use millrace_wire::ipv4;

/// The class of this file.
pub const CLASSES: &[Class] = &[Class::new("IPGWOptions", "1/1-2", "a/ah", make)];

fn make(args: &mut Args<'_>, _: &mut Setup<'_>) -> Made {
    args.keywords("MYADDR OTHERADDRS");
    let text = args.needed("MYADDR", "MYADDR")?;
    let mine = args.ip(&text)?;
    let mut all = vec![mine];
    for text in args
        .take("OTHERADDRS")
        .iter()
        .flat_map(|t| crate::language::args::words(t))
    {
        all.push(args.ip(&text)?);
    }
    args.done()?;
    Ok(Box::new(Options(all)))
}

/// The router's addresses, the one that it writes first.
struct Options(Vec<[u8; 4]>);

impl Options {
    /// Handles the options of a header; the place of a bad byte.
    fn handle(&self, header: &mut [u8], now: u32) -> Result<(), usize> {
        let mut at = ipv4::HEADER;
        while let Some(&kind) = header.get(at) {
            match kind {
                0 => break,
                1 => {
                    at += 1;
                    continue;
                }
                _ => {}
            }
            let length = header.get(at + 1).map_or(0, |l| usize::from(*l));
            if length < 2 || at + length > header.len() {
                return Err(at + 1);
            }
            let option = header.get_mut(at..at + length).unwrap_or(&mut []);
            match kind {
                // Record route.
                7 => {
                    let pointer = option.get(2).map_or(0, |p| usize::from(*p));
                    if pointer < 4 {
                        return Err(at + 2);
                    }
                    if let Some(slot) = option.get_mut(pointer - 1..pointer + 3) {
                        slot.copy_from_slice(&self.0[0]);
                        option[2] += 4;
                    } else if pointer <= length {
                        return Err(at + 2);
                    }
                }
                // Time stamp: of all, with addresses, with prescribed addresses.
                68 => {
                    let pointer = option.get(2).map_or(0, |p| usize::from(*p));
                    let flags = option.get(3).map_or(0, |f| f & 15);
                    if pointer < 5 {
                        return Err(at + 2);
                    }
                    let stamp = now.to_be_bytes();
                    let bytes = if flags == 0 { 4 } else { 8 };
                    match option.get_mut(pointer - 1..pointer - 1 + bytes) {
                        Some(slot) if flags == 0 => slot.copy_from_slice(&stamp),
                        Some(slot) if flags == 1 => {
                            slot[..4].copy_from_slice(&self.0[0]);
                            slot[4..].copy_from_slice(&stamp);
                        }
                        Some(slot) if flags == 3 => {
                            let own = self.0.iter().any(|a| slot.get(..4) == Some(a));
                            if !own {
                                at += length;
                                continue;
                            }
                            slot[4..].copy_from_slice(&stamp);
                        }
                        Some(_) => return Err(at + 3),
                        None => {
                            // One that is full counts how often it was.
                            if option[3] >> 4 == 15 {
                                return Err(at);
                            }
                            option[3] += 16;
                            at += length;
                            continue;
                        }
                    }
                    option[2] += bytes as u8;
                }
                _ => {}
            }
            at += length;
        }
        Ok(())
    }
}

impl Element for Options {
    fn meaning(&self) -> Option<Meaning> {
        Some(Meaning::Options)
    }

    fn action(&mut self, mut packet: Packet, cx: &Context<'_>) -> Option<Packet> {
        let now = (cx.now() / 1_000_000 % 86_400_000) as u32;
        let Some(ip) = packet.ip_mut() else {
            return Some(packet);
        };
        let header = ipv4::header_bytes(ip.first().copied().unwrap_or(0)).min(ip.len());
        if header <= ipv4::HEADER {
            return Some(packet);
        }
        let bytes = ip.get_mut(..header).unwrap_or(&mut []);
        let before = bytes.to_vec();
        match self.handle(bytes, now) {
            Ok(()) => {
                if before != bytes
                    && let Ok(mut header) = ipv4::Header::new_checked(bytes)
                {
                    header.fill_checksum();
                }
                Some(packet)
            }
            Err(place) => {
                packet.anno[crate::packet::PARAMETER_PROBLEM] = place as u8;
                cx.reject(1, packet);
                None
            }
        }
    }
}
