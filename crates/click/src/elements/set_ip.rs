//! `SetIPDSCP(DSCP)`: writes the differentiated services code point. `MarkIPCE([FORCE])`: marks congestion (RFC 3168); a packet whose
//! transport does not know it is dropped, with FORCE marked. `SetIPChecksum`, `SetTCPChecksum`, `SetUDPChecksum`, `ResetIPChecksum`:
//! compute checksums again.
//!
//! Handlers of SetIPDSCP: `dscp` (also written); of MarkIPCE: `drops`.

use crate::arguments::Args;
use crate::element::{Class, Element, Made, Read, Written};
use crate::interpreter::{Context, Setup};
use crate::meaning::Meaning;
use crate::packet::Packet;
use millrace_wire::{ipv4, put, word};

/// SetIPDSCP
pub const CLASS: Class = Class {
    name: "SetIPDSCP",
    ports: "1/1",
    processing: "a/a",
    make,
};

/// MarkIPCE
pub const CONGESTION: Class = Class {
    name: "MarkIPCE",
    ports: "1/1",
    processing: "a/a",
    make: congestion,
};

/// SetIPChecksum
pub const CHECKSUM: Class = Class {
    name: "SetIPChecksum",
    ports: "1/1",
    processing: "a/a",
    make: header,
};

/// ResetIPChecksum
pub const RESET: Class = Class {
    name: "ResetIPChecksum",
    ports: "1/1",
    processing: "a/a",
    make: header,
};

/// SetTCPChecksum
pub const TCP: Class = Class {
    name: "SetTCPChecksum",
    ports: "1/1",
    processing: "a/a",
    make: upper,
};

/// SetUDPChecksum
pub const UDP: Class = Class {
    name: "SetUDPChecksum",
    ports: "1/1",
    processing: "a/a",
    make: upper,
};

fn make(args: &mut Args<'_>, _: &mut Setup<'_>) -> Made {
    args.keywords(&["DSCP"]);
    let dscp = args.number("DSCP", 0)?;
    args.done()?;
    let dscp = u8::try_from(dscp)
        .ok()
        .filter(|d| *d < 64)
        .ok_or("DSCP: a number from 0 to 63")?;
    Ok(Box::new(Dscp(dscp)))
}

fn congestion(args: &mut Args<'_>, _: &mut Setup<'_>) -> Made {
    args.keywords(&["FORCE"]);
    let force = args.flag_or_next("FORCE", false)?;
    args.done()?;
    Ok(Box::new(Congestion { force, drops: 0 }))
}

fn header(args: &mut Args<'_>, _: &mut Setup<'_>) -> Made {
    args.all();
    Ok(Box::new(Checksum(false)))
}

fn upper(args: &mut Args<'_>, _: &mut Setup<'_>) -> Made {
    args.all();
    Ok(Box::new(Checksum(true)))
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
    fn action(&mut self, mut packet: Packet, cx: &Context<'_>) -> Option<Packet> {
        let Some(from) = packet.ip().and_then(|ip| word(ip, 0)) else {
            return Some(packet);
        };
        if from & 3 == 0 && !self.force {
            self.drops += 1;
            cx.drop(packet);
            return None;
        }
        crate::headers::write_word(&mut packet, 0, from | 3);
        Some(packet)
    }

    fn read(&mut self, name: &str, _: &str, _: &Context<'_>) -> Read {
        (name == "drops").then(|| Ok(self.drops.to_string()))
    }
}

/// Whether the transport's is computed, or the header's.
struct Checksum(bool);

impl Element for Checksum {
    fn action(&mut self, mut packet: Packet, _: &Context<'_>) -> Option<Packet> {
        if let Some(ip) = packet.ip_mut() {
            let header = ipv4::header_bytes(ip.first().copied().unwrap_or(0));
            match self.0 {
                true if header >= ipv4::HEADER => {
                    let sum = word(ip, ipv4::CHECKSUM);
                    crate::summary::read::fill(ip, header);
                    put(ip, ipv4::CHECKSUM, sum.unwrap_or(0));
                }
                _ => {
                    if let Ok(mut header) = ipv4::Header::new_checked(ip) {
                        header.fill_checksum();
                    }
                }
            }
        }
        Some(packet)
    }
}
