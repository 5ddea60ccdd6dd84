//! `ToIPSummaryDump(FILE [, FIELDS, HEADER, VERBOSE])`: a line for each packet with FIELDS (`timestamp ip_src` unless told otherwise);
//! `-` is standard output. Packets are passed on where output 0 is connected. Fields that a packet does not have are `-`.

use super::prelude::*;
use crate::summary::field::show;
use crate::summary::names::canonical;

/// The class of this file.
pub const CLASSES: &[Class] = &[Class::new("ToIPSummaryDump", "1/0-1", "a/a", make)];

fn make(args: &mut Args<'_>, setup: &mut Setup<'_>) -> Made {
    args.keywords(
        "FILE FILENAME FIELDS CONTENTS DATA HEADER VERBOSE BANNER MULTIPACKET BAD_PACKETS \
         CAREFUL_TRUNC BINARY UNBUFFERED EXTRA_LENGTH",
    );
    let fields = args
        .keyword("FIELDS")
        .or(args.keyword("CONTENTS"))
        .or(args.keyword("DATA"));
    let header = args.flag("HEADER", true)?;
    let file = args
        .keyword("FILE")
        .or(args.take("FILENAME"))
        .ok_or("too few arguments: FILE")?;
    args.done()?;
    let fields = fields.unwrap_or_else(|| "timestamp ip_src".into());
    let fields = crate::language::args::words(&fields);
    let fields: Vec<String> = fields
        .iter()
        .map(|f| canonical(&crate::language::args::text(f)).to_owned())
        .collect();
    let mut text = String::new();
    if header {
        text = format!("!IPSummaryDump 1.3\n!data {}\n", fields.join(" "));
    }
    Ok(Box::new(Sink {
        file: crate::language::args::text(&file),
        fields,
        text,
        pulls: setup.pulls(),
        passes: setup.ports.1 > 0,
        began: false,
    }))
}

struct Sink {
    file: String,
    fields: Vec<String>,
    /// what is not written yet
    text: String,
    pulls: bool,
    passes: bool,
    began: bool,
}

impl Sink {
    fn flush(&mut self, cx: &Context<'_>) {
        let done = cx.file(&self.file, self.text.as_bytes(), self.began);
        self.began = true;
        self.text.clear();
        if let Err(why) = done {
            cx.note(&format!("{}: {why}\n", cx.title()));
        }
    }
}

impl Element for Sink {
    fn meaning(&self) -> Option<Meaning> {
        Some(Meaning::Shows)
    }

    fn start(&mut self, cx: &Context<'_>) -> Result<(), String> {
        self.flush(cx);
        Ok(())
    }

    fn action(&mut self, packet: Packet, cx: &Context<'_>) -> Option<Packet> {
        let values = self
            .fields
            .iter()
            .map(|f| show(f, &packet).unwrap_or_else(|| "-".into()));
        self.text += &values.collect::<Vec<_>>().join(" ");
        self.text.push('\n');
        // Standard output is shared with print: lines come in their order.
        if self.text.len() > 1 << 16 || self.file == "-" {
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
