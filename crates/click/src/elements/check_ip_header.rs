//! `CheckIPHeader([OFFSET, BADSRC, GOODDST, INTERFACES, CHECKSUM, VERBOSE])`: checks version, header length, total length, checksum and
//! source address; marks the header, cuts what is behind the packet's length, and sets the destination annotation. Bad packets go
//! to output 1, or are dropped. `CheckIPHeader2` does not check the checksum unless told so.
//!
//! BADSRC are source addresses that are refused, but in packets to GOODDST; there are none unless they are given. INTERFACES are the
//! router's addresses with their prefixes: packets to them are good, and bad sources are their networks' broadcast addresses, 0.0.0.0
//! and 255.255.255.255. An older form, `CheckIPHeader(BADSRC, OFFSET)`, refuses the last two besides. Handlers: `drops`.

use super::prelude::*;
use millrace_wire::ipv4;

/// The classes of this file.
pub const CLASSES: &[Class] = &[
    Class::new("CheckIPHeader", "1/1-2", "a/ah", |args, _| {
        check(args, true)
    }),
    Class::new("CheckIPHeader2", "1/1-2", "a/ah", |args, _| {
        check(args, false)
    }),
];

/// Sources that no host has.
const NOBODY: [[u8; 4]; 2] = [[0; 4], [255; 4]];

fn check(args: &mut Args<'_>, sum: bool) -> Made {
    args.keywords("BADSRC OFFSET VERBOSE CHECKSUM INTERFACES DETAILS GOODDST");
    let verbose = args.flag("VERBOSE", false)?;
    let checksum = args.flag("CHECKSUM", sum)?;
    let names = args.names;
    let list = |what: &str, text: Option<String>| -> Result<Vec<[u8; 4]>, String> {
        let words = crate::language::args::words(&text.unwrap_or_default());
        let address = |word: &String| {
            crate::arguments::ip(word, names).ok_or(format!("{what}: bad address '{word}'"))
        };
        words.iter().map(address).collect()
    };
    let mut offset = args.number_word("OFFSET", 0)?;
    let mut bad = list("BADSRC", args.keyword("BADSRC"))?;
    let mut good = list("GOODDST", args.keyword("GOODDST"))?;
    if let Some(text) = args.keyword("INTERFACES") {
        for word in crate::language::args::words(&text) {
            let (address, mask) = crate::arguments::prefix(&word, names)
                .ok_or(format!("INTERFACES: bad address '{word}'"))?;
            good.push(address);
            bad.push(std::array::from_fn(|i| address[i] | !mask[i]));
        }
        bad.extend(NOBODY);
    }
    let older: Vec<String> = args.all();
    match older.as_slice() {
        [] => {}
        [one] if crate::arguments::integer(one).is_some() => {
            offset = crate::arguments::integer(one).unwrap_or(0);
        }
        [sources, rest @ ..] => {
            bad.extend(list("BADSRC", Some(sources.clone()))?);
            bad.extend(NOBODY);
            match rest {
                [] => {}
                [text] => {
                    let number = crate::arguments::integer(text);
                    offset = number.ok_or(format!("bad OFFSET '{text}'"))?;
                }
                [_, more, ..] => return Err(format!("too many arguments: `{more}`")),
            }
        }
    }
    Ok(Box::new(Check {
        bad,
        good,
        offset: usize::try_from(offset).map_err(|_| "bad OFFSET")?,
        checksum,
        verbose,
        drops: 0,
    }))
}

struct Check {
    bad: Vec<[u8; 4]>,
    good: Vec<[u8; 4]>,
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
        if self.bad.contains(&header.source().octets())
            && !self.good.contains(&header.destination().octets())
        {
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
            good: self.good.clone(),
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
