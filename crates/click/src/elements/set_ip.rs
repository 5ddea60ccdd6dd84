//! `SetIPDSCP(DSCP)`: writes the differentiated services code point. `MarkIPCE([FORCE])`: marks congestion (RFC 3168); a packet whose
//! transport does not know it is dropped, with FORCE marked. `SetIPChecksum`, `SetTCPChecksum`, `SetUDPChecksum`, `ResetIPChecksum`:
//! compute checksums again; packets whose lengths are wrong, and fragments where the whole packet is needed, are dropped, or go to
//! output 1 of `SetUDPChecksum`.
//!
//! Handlers of SetIPDSCP: `dscp` (also written); of MarkIPCE: `drops`.

use super::prelude::*;
use millrace_wire::checksum::{Sum, nonzero};
use millrace_wire::{ipv4, put, word};

/// The classes of this file.
pub const CLASSES: &[Class] = &[
    Class::new("SetIPDSCP", "1/1", "a/a", make),
    Class::new("MarkIPCE", "1/1", "a/a", congestion),
    Class::new("SetIPChecksum", "1/1", "a/a", header),
    Class::new("ResetIPChecksum", "1/1", "a/a", header),
    Class::new("SetTCPChecksum", "1/1", "a/a", tcp),
    Class::new("SetUDPChecksum", "1/1-2", "a/ah", udp),
];

fn make(args: &mut Args<'_>, _: &mut Setup<'_>) -> Made {
    args.keywords("DSCP");
    let dscp = args.number("DSCP", 0)?;
    args.done()?;
    let dscp = u8::try_from(dscp)
        .ok()
        .filter(|d| *d < 64)
        .ok_or("DSCP: a number from 0 to 63")?;
    Ok(Box::new(Dscp(dscp)))
}

fn congestion(args: &mut Args<'_>, _: &mut Setup<'_>) -> Made {
    args.keywords("FORCE");
    let force = args.flag_or_next("FORCE", false)?;
    args.done()?;
    Ok(Box::new(Congestion { force, drops: 0 }))
}

fn header(args: &mut Args<'_>, _: &mut Setup<'_>) -> Made {
    args.all();
    Ok(Box::new(Checksum(Sums::Header)))
}

fn tcp(args: &mut Args<'_>, _: &mut Setup<'_>) -> Made {
    args.keywords("FIXOFF");
    match args.flag_or_next("FIXOFF", false)? {
        true => return Err("FIXOFF is not supported".into()),
        false => args.done()?,
    }
    Ok(Box::new(Checksum(Sums::Tcp)))
}

fn udp(args: &mut Args<'_>, _: &mut Setup<'_>) -> Made {
    args.done()?;
    Ok(Box::new(Checksum(Sums::Udp)))
}

struct Dscp(u8);

impl Element for Dscp {
    fn meaning(&self) -> Option<Meaning> {
        Some(Meaning::Service {
            mask: 0xfc,
            value: self.0 << 2,
        })
    }

    fn action(&mut self, mut packet: Packet, _: &Context<'_>) -> Option<Packet> {
        if let Some(from) = packet.ip().and_then(|ip| word(ip, 0)) {
            crate::headers::write_word(&mut packet, 0, from & 0xff03 | u16::from(self.0) << 2);
        }
        Some(packet)
    }

    fn read(&mut self, name: &str, _: &str, _: &Context<'_>) -> Read {
        (name == "dscp").then(|| Ok(self.0.to_string()))
    }

    fn write(&mut self, name: &str, value: &str, _: &Context<'_>) -> Written {
        (name == "dscp").then(|| match value.trim().parse() {
            Ok(dscp) if dscp < 64 => {
                self.0 = dscp;
                Ok(())
            }
            _ => Err(format!("bad DSCP '{value}'")),
        })
    }
}

struct Congestion {
    force: bool,
    drops: u64,
}

impl Element for Congestion {
    fn meaning(&self) -> Option<Meaning> {
        Some(Meaning::Outside("it marks congestion"))
    }

    fn action(&mut self, mut packet: Packet, cx: &Context<'_>) -> Option<Packet> {
        let Some(from) = packet.ip().and_then(|ip| word(ip, 0)) else {
            return Some(packet);
        };
        if from & 3 == 0 && !self.force {
            self.drops += 1;
            cx.drop(packet);
            return None;
        }
        if from & 3 < 3 {
            crate::headers::write_word(&mut packet, 0, from | 3);
        }
        Some(packet)
    }

    fn read(&mut self, name: &str, _: &str, _: &Context<'_>) -> Read {
        (name == "drops").then(|| Ok(self.drops.to_string()))
    }
}

/// Which sum is computed.
#[derive(Clone, Copy)]
enum Sums {
    Header,
    Tcp,
    Udp,
}

struct Checksum(Sums);

impl Checksum {
    /// Computes it; none where the packet's lengths are wrong.
    fn fill(&self, packet: &mut Packet) -> Option<()> {
        if let Sums::Header = self.0 {
            let ip = match packet.network() {
                Some(_) => packet.ip_mut()?,
                None => packet.data_mut(),
            };
            ipv4::Header::new_checked(ip).ok()?.fill_checksum();
            return Some(());
        }
        let ip = packet.ip()?;
        let (length, fragment) = (word(ip, ipv4::LENGTH)?, word(ip, ipv4::FRAGMENT)?);
        let (source, destination) = crate::headers::addresses(packet)?;
        let protocol = *packet.ip()?.get(ipv4::PROTOCOL)?;
        let header = ipv4::header_bytes(*packet.ip()?.first()?);
        let upper = packet.upper_mut()?;
        let (place, length) = match self.0 {
            Sums::Udp if fragment & (ipv4::OFFSET | ipv4::MORE) != 0 => return None,
            Sums::Udp if upper.len() < 8 => return None,
            Sums::Udp => (6, usize::from(word(upper, 4)?)),
            _ => (
                16,
                usize::from(length)
                    .checked_sub(header)
                    .filter(|l| *l >= 20)?,
            ),
        };
        if length > upper.len() {
            return None;
        }
        put(upper, place, 0);
        let sum = Sum::default().bytes(upper.get(..length)?);
        let sum = Sum::pseudo(sum, &source, &destination, protocol, length as u32).checksum();
        put(upper, place, if place == 6 { nonzero(sum) } else { sum });
        Some(())
    }
}

impl Element for Checksum {
    fn meaning(&self) -> Option<Meaning> {
        Some(Meaning::Outside("it computes a sum again"))
    }

    fn action(&mut self, mut packet: Packet, cx: &Context<'_>) -> Option<Packet> {
        if self.fill(&mut packet).is_none() {
            cx.reject(1, packet);
            return None;
        }
        Some(packet)
    }
}
