//! The writes of a class as C: each field once, each sum once.

use std::collections::BTreeMap;

use super::{Emitter, Known};
use crate::action::{Action, Value, Write};
use crate::field::{Base, Var, bit};

impl Emitter<'_> {
    /// Writes of a packet that leaves, and its new ends.
    pub(super) fn writes(&mut self, action: &Action, known: Known, depth: usize) {
        self.link(action, depth);
        let header = action
            .writes
            .values()
            .find_map(|w| w.sums.header)
            .or(action.cut);
        if let Some(at) = header {
            self.lead_to_header(at, known, depth);
        }
        self.transport(action, depth);
        if let Some(at) = action.writes.values().find_map(|w| w.sums.header) {
            self.header_of(action, at, depth);
        }
        if let Some(at) = action.cut {
            self.needs.adjust = true;
            self.say(depth, &format!("packet_trim(p, {at} + ntohs(ip->length));"));
        }
        if action.head > 0 {
            self.needs.adjust = true;
            self.say(depth, &format!("packet_pull(p, {});", action.head));
        }
    }

    /// Bytes of the link header, which no sum covers: as few stores as possible.
    fn link(&mut self, action: &Action, depth: usize) {
        let mut bytes: BTreeMap<u32, (u8, u8)> = BTreeMap::new();
        for (var, write) in &action.writes {
            let (Var::Bits(Base::Frame, first, width), Value::Constant(value)) =
                (*var, write.value)
            else {
                continue;
            };
            if write.sums.header.is_some() {
                continue;
            }
            for n in 0..u32::from(width) {
                let one = (value >> (u32::from(width) - 1 - n) & 1) as u8;
                let place = first + n;
                let byte = bytes.entry(place / 8).or_default();
                byte.0 |= one << (7 - place % 8);
                byte.1 |= 1 << (7 - place % 8);
            }
        }
        let mut rest: Vec<(u32, u8)> = bytes
            .iter()
            .filter(|(_, b)| b.1 == 0xff)
            .map(|(at, b)| (*at, b.0))
            .collect();
        while let Some((at, _)) = rest.first().copied() {
            let run = rest
                .iter()
                .zip(at..)
                .take_while(|((a, _), want)| a == want)
                .count();
            let size = [8, 4, 2, 1].into_iter().find(|s| *s <= run).unwrap_or(1);
            let bytes: Vec<u8> = rest.drain(..size).map(|b| b.1).collect();
            // The words of the dialect are little-endian.
            let number = bytes
                .iter()
                .rev()
                .fold(0_u64, |n, b| n << 8 | u64::from(*b));
            let text: Vec<String> = bytes.iter().map(|b| format!("{b:02x}")).collect();
            let place = match at {
                0 => "frame".to_owned(),
                at => format!("frame + {at}"),
            };
            let store = match size {
                1 => format!("*({place}) = {number:#x};"),
                size => format!(
                    "store{}({place}, {number:#x}{}); /* {} */",
                    size * 8,
                    if size == 8 { "ULL" } else { "" },
                    text.join(":")
                ),
            };
            self.say(depth, &store);
        }
    }

    /// Ports, and the sum of TCP or UDP.
    fn transport(&mut self, action: &Action, depth: usize) {
        let covered: Vec<(&Var, &Write)> = action
            .writes
            .iter()
            .filter(|(_, w)| w.sums.upper != 0)
            .collect();
        let ports = action
            .writes
            .iter()
            .filter(|(v, _)| matches!(v, Var::Bits(Base::Upper(_), ..)));
        if let Some(protocol) = covered.first().map(|c| c.1.sums.upper) {
            let at = if protocol == 6 { 16 } else { 6 };
            let mut delta = Vec::new();
            let mut twice = false;
            for (var, write) in &covered {
                twice |= write.again || matches!(write.value, Value::Field(Var::Entry(..), _));
                delta.push(difference(**var, write.value));
            }
            if twice {
                delta.push("0xffff".into());
            }
            self.locals.insert("sum".into(), "__u64");
            self.say(
                depth,
                &format!(
                    "sum = (__u64)(__u16)~load16(upper + {at}) + {};",
                    delta.join(" + ")
                ),
            );
            match protocol {
                6 => self.say(
                    depth,
                    &format!("store16(upper + {at}, (__u16)~checksum_fold(sum));"),
                ),
                _ => {
                    self.locals.insert("check".into(), "__u16");
                    self.say(depth, "check = (__u16)~checksum_fold(sum);");
                    self.say(depth, &format!("if (load16(upper + {at}))"));
                    self.say(
                        depth + 1,
                        &format!("store16(upper + {at}, check ? check : 0xffff);"),
                    );
                }
            }
        }
        let stores: Vec<String> = ports
            .map(|(var, write)| {
                let place = if *var == first_port(*var) { 0 } else { 2 };
                format!("store16(upper + {place}, {});", in_order(*var, write.value))
            })
            .collect();
        stores.iter().for_each(|s| self.say(depth, s));
    }

    /// Fields of the IP header, and its sum.
    fn header_of(&mut self, action: &Action, at: u16, depth: usize) {
        let start = u32::from(at) * 8;
        let mut delta = Vec::new();
        let mut stores = Vec::new();
        let mut twice = false;
        for (var, write) in &action.writes {
            let Var::Bits(Base::Frame, first, _) = *var else {
                continue;
            };
            if write.sums.header != Some(at) {
                continue;
            }
            let word = first - start;
            match word {
                bit::SOURCE | bit::DESTINATION => {
                    twice |= write.again || matches!(write.value, Value::Field(Var::Entry(..), _));
                    delta.push(difference(*var, write.value));
                    let name = if word == bit::SOURCE { "src" } else { "dst" };
                    stores.push(format!("ip->{name} = {};", in_order(*var, write.value)));
                }
                bit::TTL => {
                    // The word's first byte is its lower one. Lowered packets have one to spare, so nothing is borrowed.
                    let Value::Field(_, less) = write.value else {
                        continue;
                    };
                    let less = -less;
                    self.locals.insert("hops".into(), "__u16");
                    self.say(depth, "hops = load16(&ip->ttl);");
                    delta.push(format!("(__u16)~hops + (__u16)(hops - {less})"));
                    stores.push(format!("ip->ttl -= {less};"));
                }
                _ => {
                    let Value::Constant(value) = write.value else {
                        continue;
                    };
                    twice |= write.again;
                    self.locals.insert("service".into(), "__u8");
                    self.locals.insert("first".into(), "__u16");
                    self.say(depth, "first = load16(ip);");
                    self.say(depth, &format!("service = (ip->tos & 3) | {};", value << 2));
                    delta.push("(__u16)~first + (__u16)((first & 0xff) | service << 8)".to_owned());
                    stores.push("ip->tos = service;".to_owned());
                }
            }
        }
        if twice {
            delta.push("0xffff".into());
        }
        self.say(
            depth,
            &format!(
                "ip->checksum = (__u16)~checksum_fold((__u64)(__u16)~ip->checksum + {});",
                delta.join(" + ")
            ),
        );
        stores.iter().for_each(|s| self.say(depth, s));
    }
}

fn first_port(var: Var) -> Var {
    match var {
        Var::Bits(base, ..) => Var::Bits(base, 0, 16),
        var => var,
    }
}

/// A field's old value in network order.
fn old(var: Var) -> String {
    match var {
        Var::Bits(Base::Upper(_), 0, _) => "load16(upper)".into(),
        Var::Bits(Base::Upper(_), ..) => "load16(upper + 2)".into(),
        Var::Bits(..) if var.of_header() == Some(bit::SOURCE) => "ip->src".into(),
        _ => "ip->dst".into(),
    }
}

/// What a field becomes, in network order.
fn in_order(var: Var, value: Value) -> String {
    let wide = var.most() > 65_535;
    match value {
        Value::Constant(number) if wide => {
            let [a, b, c, d] = (number as u32).to_be_bytes();
            format!("htonl(IPV4({a}, {b}, {c}, {d}))")
        }
        Value::Constant(number) => format!("htons({number})"),
        Value::Field(Var::Entry(_, word), _) => format!("to.{word:?}").to_lowercase(),
        Value::Field(from, _) => old(from),
    }
}

/// What a sum has to be changed by: the complement of the old value, and the new one (RFC 1624, equation 3).
fn difference(var: Var, value: Value) -> String {
    let wide = if var.most() > 65_535 {
        "__u32"
    } else {
        "__u16"
    };
    format!("({wide})~{} + {}", old(var), in_order(var, value))
}
