//! `FromIPSummaryDump(FILE [, STOP, TIMING, ACTIVE, CHECKSUM, PROTO, ZERO, BURST, DATA, CONTENTS])`: a packet for each line of an IP
//! summary dump (`summary.rs`), in each round one; TIMING true waits as the time stamps do. DATA is the dump itself; `-` is standard
//! input; CONTENTS names the fields where no `!data` line does. At the end STOP says whether the driver stops.
//!
//! Handlers: `active` (also written), `count`.

use super::prelude::*;
use crate::recorded::{Recorded, Records};
use crate::summary::read::Reading;

/// The class of this file.
pub const CLASSES: &[Class] = &[Class::new("FromIPSummaryDump", "0/1", "h/h", make)];

fn make(args: &mut Args<'_>, setup: &mut Setup<'_>) -> Made {
    args.keywords(
        "FILE FILENAME STOP TIMING ACTIVE CHECKSUM PROTO ZERO BURST DATA CONTENTS FIELDS \
         DEFAULT_CONTENTS DEFAULT_FIELDS SAMPLE MULTIPACKET FLOWID ALLOW_NONEXISTENT MMAP ETH",
    );
    let data = args
        .keyword("DATA")
        .map(|d| crate::language::args::text(&d));
    let recorded = Recorded::of(args)?;
    let checksum = args.flag("CHECKSUM", false)?;
    let protocol = args.keyword("PROTO");
    let fields = args
        .keyword("CONTENTS")
        .or(args.keyword("FIELDS"))
        .or(args.keyword("DEFAULT_FIELDS"));
    let file = args.keyword("FILE").or(args.take("FILENAME"));
    args.done()?;
    let text = match (data, file) {
        (Some(data), _) => data,
        (None, Some(file)) => {
            let bytes = setup.read(&crate::language::args::text(&file))?;
            String::from_utf8_lossy(&bytes).into_owned()
        }
        (None, None) => return Err("too few arguments: FILE".into()),
    };
    let mut reading = Reading {
        fields: Vec::new(),
        protocol: 6,
        checksum,
    };
    if let Some(fields) = fields {
        reading.directive(&format!("!data {fields}"));
    }
    if let Some(word) = protocol {
        reading.directive(&format!("!proto {word}"));
    }
    Ok(Box::new(recorded.with(Lines {
        text,
        at: 0,
        reading,
    })))
}

struct Lines {
    text: String,
    at: usize,
    reading: Reading,
}

impl Records for Lines {
    fn next(&mut self, cx: &Context<'_>) -> Option<Packet> {
        loop {
            let rest = self.text.get(self.at..).filter(|r| !r.is_empty())?;
            let length = rest.find('\n').unwrap_or(rest.len());
            let line = rest[..length].trim().to_owned();
            self.at += length + 1;
            if line.starts_with('!') {
                self.reading.directive(&line);
            } else if !line.is_empty() && !line.starts_with('#') {
                match self.reading.packet(&line) {
                    Some(packet) => return Some(packet),
                    None => cx.note(&format!("{}: bad line '{line}'\n", cx.title())),
                }
            }
        }
    }
}
