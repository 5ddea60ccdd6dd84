//! `CheckIPHeader([BADSRC, OFFSET, VERBOSE, CHECKSUM, INTERFACES])`: checks version, header length, total length, checksum and
//! source address; marks the header, cuts what is behind the packet's length, and sets the destination annotation. Bad packets go
//! to output 1, or are dropped. `CheckIPHeader2` checks no source address.
//!
//! BADSRC are source addresses that are refused: 0.0.0.0 and 255.255.255.255 unless told otherwise. Handlers: `drops`.

use crate::arguments::Args;
use crate::element::{Class, Element, Made, Read};
use crate::interpreter::{Context, Setup};
use crate::meaning::Meaning;
use crate::packet::Packet;
use millrace_wire::ipv4;

/// CheckIPHeader
pub const CLASS: Class = Class {
    name: "CheckIPHeader",
    ports: "1/1-2",
    processing: "a/ah",
    make,
};

/// CheckIPHeader2
pub const TWO: Class = Class {
    name: "CheckIPHeader2",
    ports: "1/1-2",
    processing: "a/ah",
    make: no_source,
};

fn make(args: &mut Args<'_>, _: &mut Setup<'_>) -> Made {
    args.keywords(&[
        "BADSRC",
        "OFFSET",
        "VERBOSE",
        "CHECKSUM",
        "INTERFACES",
        "DETAILS",
        "GOODDST",
        "BADSRC_OLD",
    ]);
    let verbose = args.flag("VERBOSE", false)?;
    let checksum = args.flag("CHECKSUM", true)?;
    for word in ["INTERFACES", "DETAILS", "GOODDST"] {
        args.keyword(word);
    }
    let mut offset = args.number_word("OFFSET", 0)?;
    let mut bad = vec![[0; 4], [255; 4]];
    let given = args.keyword("BADSRC").or_else(|| {
        let next = args.positional()?;
        match crate::arguments::integer(&next) {
            // An old form: the offset alone.
            Some(number) => {
                offset = number;
                None
            }
            None => Some(next),
        }
    });
    if let Some(text) = given {
        bad = crate::language::args::words(&text)
            .iter()
            .map(|w| {
                crate::arguments::ip(w, args.names).ok_or(format!("BADSRC: bad address '{w}'"))
            })
            .collect::<Result<_, _>>()?;
    }
    if let Some(text) = args.positional() {
        offset = crate::arguments::integer(&text).ok_or(format!("bad OFFSET '{text}'"))?;
    }
    args.done()?;
    Ok(Box::new(Check {
        bad,
        offset: usize::try_from(offset).map_err(|_| "bad OFFSET")?,
        checksum,
        verbose,
        drops: 0,
    }))
}

fn no_source(args: &mut Args<'_>, setup: &mut Setup<'_>) -> Made {
    let _ = setup;
    args.keywords(&["OFFSET", "VERBOSE"]);
    let offset = args.number("OFFSET", 0)?;
    let verbose = args.flag("VERBOSE", false)?;
    args.done()?;
    Ok(Box::new(Check {
        bad: Vec::new(),
        offset: usize::try_from(offset).map_err(|_| "bad OFFSET")?,
        checksum: true,
        verbose,
        drops: 0,
    }))
}

struct Check {
    bad: Vec<[u8; 4]>,
    offset: usize,
    checksum: bool,
    verbose: bool,
    drops: u64,
}

impl Check {
    /// Bytes of header and packet, or what is wrong.
    fn lengths(&self, packet: &Packet) -> Result<(usize, usize, [u8; 4]), &'static str> {
        let ip = packet.data().get(self.offset..).unwrap_or(&[]);
        let held = ip.len() as u64 + u64::from(packet.missing);
        if ip.len() < ipv4::HEADER {
            return Err("tiny packet");
        }
        if ip[0] >> 4 != 4 {
            return Err("bad IP version");
        }
        let header = ipv4::Header::new_checked(ip).map_err(|_| "bad IP header length")?;
        let total = u64::from(header.total_length());
        if total > held || total < header.header_length() as u64 {
            return Err("bad IP length");
        }
        if self.checksum && !header.sum().holds() {
            return Err("bad IP checksum");
        }
        if self.bad.contains(&header.source().octets()) {
            return Err("bad source address");
        }
        Ok((
            header.header_length(),
            total as usize,
            header.destination().octets(),
        ))
    }
}

impl Element for Check {
    fn meaning(&self) -> Option<Meaning> {
        Some(Meaning::Check {
            offset: self.offset,
            bad: self.bad.clone(),
            checksum: self.checksum,
        })
    }

    fn action(&mut self, mut packet: Packet, cx: &Context<'_>) -> Option<Packet> {
        match self.lengths(&packet) {
            Ok((header, total, destination)) => {
                packet.mark(self.offset, header);
                let end = self.offset + total;
                if packet.len() > end {
                    packet.truncate(end);
                    packet.missing = 0;
                }
                packet.set_destination(destination);
                Some(packet)
            }
            Err(why) => {
                if self.verbose || self.drops == 0 {
                    cx.note(&format!("{}: IP header check failed: {why}\n", cx.title()));
                }
                self.drops += 1;
                cx.reject(1, packet);
                None
            }
        }
    }

    fn read(&mut self, name: &str, _: &str, _: &Context<'_>) -> Read {
        (name == "drops").then(|| Ok(self.drops.to_string()))
    }
}
