//! `FromDump(FILE [, STOP, TIMING, ACTIVE, FORCE_IP, FILEPOS])`: packets of a capture (pcap, pcapng), one in each round; IP packets are
//! marked with FORCE_IP. `ToDump(FILE [, SNAPLEN, ENCAP])`: writes a capture; packets are passed on where output 0 is connected.
//!
//! Handlers of FromDump: `active`, `count`.

use super::prelude::*;
use crate::recorded::{Recorded, Records};
use millrace_traffic::capture::Reader;
use std::io::Cursor;

/// The classes of this file.
pub const CLASSES: &[Class] = &[
    Class::new("FromDump", "0/1", "h/h", make),
    Class::new("ToDump", "1/0-1", "a/a", to),
];

fn make(args: &mut Args<'_>, setup: &mut Setup<'_>) -> Made {
    args.keywords(
        "FILE FILENAME STOP TIMING ACTIVE FORCE_IP FILEPOS START END INTERVAL SAMPLE MMAP \
         BURST END_CALL COUNT",
    );
    let recorded = Recorded::of(args)?;
    let force = args.flag("FORCE_IP", false)?;
    let file = args
        .keyword("FILE")
        .or(args.take("FILENAME"))
        .ok_or("too few arguments: FILE")?;
    args.all();
    let file = crate::language::args::text(&file);
    let bytes = setup.read(&file)?;
    let reader = Reader::new(file, Cursor::new(bytes)).map_err(|e| e.to_string())?;
    Ok(Box::new(recorded.with(From { reader, force })))
}

fn to(args: &mut Args<'_>, setup: &mut Setup<'_>) -> Made {
    args.keywords("FILE FILENAME SNAPLEN ENCAP USE_ENCAP_FROM EXTRA_LENGTH UNBUFFERED NANO");
    let length = args.number_word("SNAPLEN", 0)?;
    let encap = args.keyword("ENCAP");
    let file = args
        .keyword("FILE")
        .or(args.take("FILENAME"))
        .ok_or("too few arguments: FILE")?;
    args.all();
    let link = match encap.as_deref() {
        None | Some("ETHER") => 1_u32,
        Some("IP") => 101,
        Some(other) => return Err(format!("ENCAP: '{other}' is not ETHER or IP")),
    };
    let mut bytes = Vec::new();
    // The header of pcap in nanoseconds (draft-ietf-opsawg-pcap), little endian.
    for word in [0xa1b2_3c4d_u32, 4 << 16 | 2, 0, 0, 65_535, link] {
        bytes.extend(word.to_le_bytes());
    }
    Ok(Box::new(To {
        file: crate::language::args::text(&file),
        most: usize::try_from(length)
            .ok()
            .filter(|l| *l > 0)
            .unwrap_or(usize::MAX),
        bytes,
        began: false,
        pulls: setup.pulls(),
        passes: setup.ports.1 > 0,
    }))
}

struct From {
    reader: Reader,
    force: bool,
}

impl Records for From {
    fn next(&mut self, cx: &Context<'_>) -> Option<Packet> {
        let record = match self.reader.next() {
            Ok(record) => record?,
            Err(why) => {
                cx.note(&format!("{}: {why}\n", cx.title()));
                return None;
            }
        };
        let mut packet = Packet::new(record.data);
        packet.time = i64::try_from(record.time_ns).unwrap_or(i64::MAX);
        packet.missing = record
            .original_length
            .saturating_sub(record.data.len() as u32);
        packet.mark_mac(0);
        let kind = millrace_wire::word(record.data, 12);
        if self.force && kind == Some(millrace_wire::ethernet::IPV4) {
            let first = record.data.get(14).copied().unwrap_or(0x45);
            packet.mark(14, millrace_wire::ipv4::header_bytes(first));
        }
        Some(packet)
    }
}

struct To {
    file: String,
    most: usize,
    bytes: Vec<u8>,
    began: bool,
    pulls: bool,
    passes: bool,
}

impl To {
    fn flush(&mut self, cx: &Context<'_>) {
        if let Err(why) = cx.file(&self.file, &self.bytes, self.began) {
            cx.note(&format!("{}: {why}\n", cx.title()));
        }
        self.bytes.clear();
        self.began = true;
    }
}

impl Element for To {
    fn meaning(&self) -> Option<Meaning> {
        Some(Meaning::Shows)
    }

    fn action(&mut self, packet: Packet, cx: &Context<'_>) -> Option<Packet> {
        let held = packet
            .data()
            .get(..packet.len().min(self.most))
            .unwrap_or(&[]);
        let time = packet.time.max(0);
        let seconds = (time / crate::arguments::SECOND) as u32;
        let nanoseconds = (time % crate::arguments::SECOND) as u32;
        let length = (packet.len() as u32).saturating_add(packet.missing);
        for word in [seconds, nanoseconds, held.len() as u32, length] {
            self.bytes.extend(word.to_le_bytes());
        }
        self.bytes.extend_from_slice(held);
        if self.bytes.len() > 1 << 16 {
            self.flush(cx);
        }
        if self.passes {
            return Some(packet);
        }
        cx.leave(packet);
        None
    }

    fn task(&mut self, cx: &Context<'_>) -> Option<bool> {
        let ends = self.pulls && !self.passes;
        ends.then(|| cx.pull_into(|packet| drop(self.action(packet, cx))))
    }

    fn finish(&mut self, cx: &Context<'_>) {
        self.flush(cx);
    }
}
