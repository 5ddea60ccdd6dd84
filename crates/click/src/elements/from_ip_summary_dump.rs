//! `FromIPSummaryDump(FILE [, STOP, TIMING, ACTIVE, CHECKSUM, PROTO, ZERO, BURST, DATA, CONTENTS])`: a packet for each line of an IP
//! summary dump (`summary.rs`), in each round one; TIMING true waits as the time stamps do. DATA is the dump itself; `-` is standard
//! input; CONTENTS names the fields where no `!data` line does. At the end STOP says whether the driver stops.
//!
//! Handlers: `active` (also written), `count`.

use crate::arguments::Args;
use crate::element::{Class, Element, Made, Read, Written};
use crate::interpreter::{Context, Setup};
use crate::packet::Packet;
use crate::summary::read::Reading;

/// FromIPSummaryDump
pub const CLASS: Class = Class {
    name: "FromIPSummaryDump",
    ports: "0/1",
    processing: "h/h",
    make,
};

fn make(args: &mut Args<'_>, setup: &mut Setup<'_>) -> Made {
    args.keywords(&[
        "FILE",
        "FILENAME",
        "STOP",
        "TIMING",
        "ACTIVE",
        "CHECKSUM",
        "PROTO",
        "ZERO",
        "BURST",
        "DATA",
        "CONTENTS",
        "FIELDS",
        "DEFAULT_CONTENTS",
        "DEFAULT_FIELDS",
        "SAMPLE",
        "MULTIPACKET",
        "FLOWID",
        "ALLOW_NONEXISTENT",
        "MMAP",
        "ETH",
    ]);
    let data = args
        .keyword("DATA")
        .map(|d| crate::language::args::text(&d));
    let stop = args.flag("STOP", false)?;
    let timing = args.flag("TIMING", false)?;
    let active = args.flag("ACTIVE", true)?;
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
    Ok(Box::new(Source {
        text,
        at: 0,
        reading,
        stop,
        timing,
        active,
        first: None,
        ended: false,
        count: 0,
        next: None,
    }))
}

struct Source {
    text: String,
    at: usize,
    reading: Reading,
    stop: bool,
    timing: bool,
    active: bool,
    /// time stamp of the first packet, and when it came
    first: Option<(i64, i64)>,
    ended: bool,
    count: u64,
    /// one whose time has not come
    next: Option<Packet>,
}

impl Source {
    fn line(&mut self, cx: &Context<'_>) -> Option<Packet> {
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

impl Element for Source {
    fn task(&mut self, cx: &Context<'_>) -> Option<bool> {
        if !self.active || self.ended || self.next.is_some() || cx.blocked() {
            return Some(false);
        }
        let Some(packet) = self.line(cx) else {
            self.ended = true;
            if self.stop {
                cx.stop();
            }
            return Some(true);
        };
        self.count += 1;
        if self.timing {
            let (stamp, begin) = *self.first.get_or_insert((packet.time, cx.now()));
            let due = begin.saturating_add(packet.time.saturating_sub(stamp));
            if due > cx.now() {
                self.next = Some(packet);
                cx.wake_at(due);
                return Some(true);
            }
        }
        cx.push(0, packet);
        Some(true)
    }

    fn timer(&mut self, cx: &Context<'_>) {
        if let Some(packet) = self.next.take() {
            cx.push(0, packet);
        }
    }

    fn read(&mut self, name: &str, _: &str, _: &Context<'_>) -> Read {
        match name {
            "active" => Some(Ok(self.active.to_string())),
            "count" => Some(Ok(self.count.to_string())),
            _ => None,
        }
    }

    fn write(&mut self, name: &str, value: &str, _: &Context<'_>) -> Written {
        (name == "active").then(|| {
            self.active = crate::arguments::boolean(value) != Some(false);
            Ok(())
        })
    }
}
