//! `Print([LABEL, MAXLENGTH, CONTENTS, TIMESTAMP, PRINTANNO, ACTIVE])`: prints each packet's label, length and bytes on standard
//! error and passes it on. CONTENTS is `hex` (24 bytes in groups of four), `ascii` or `none`; MAXLENGTH is how many bytes.
//!
//! Handlers: `active`.

use super::prelude::*;

/// The class of this file.
pub const CLASSES: &[Class] = &[Class::new("Print", "1/1", "a/a", make)];

fn make(args: &mut Args<'_>, _: &mut Setup<'_>) -> Made {
    args.keywords(
        "LABEL MAXLENGTH LENGTH NBYTES CONTENTS TIMESTAMP PRINTANNO ACTIVE CPU HEADROOM BCAST",
    );
    let contents = args.keyword("CONTENTS").map(|c| c.to_ascii_lowercase());
    let time = args.flag("TIMESTAMP", false)?;
    let active = args.flag("ACTIVE", true)?;
    let most = args
        .number_word("MAXLENGTH", -2)?
        .max(args.number_word("LENGTH", -2)?);
    let most = most.max(args.number_word("NBYTES", -2)?);
    let label = args
        .take("LABEL")
        .map(|l| crate::language::args::text(&l))
        .unwrap_or_default();
    let most = if most == -2 {
        args.number("MAXLENGTH", 24)?
    } else {
        most
    };
    args.done()?;
    let contents = match contents.as_deref() {
        None | Some("hex" | "true" | "yes") => Contents::Hex,
        Some("ascii") => Contents::Ascii,
        Some("none" | "false" | "no") => Contents::None,
        Some(other) => return Err(format!("CONTENTS: '{other}' is not hex, ascii or none")),
    };
    Ok(Box::new(Print {
        label,
        most: usize::try_from(most).unwrap_or(usize::MAX),
        contents,
        time,
        active,
    }))
}

enum Contents {
    Hex,
    Ascii,
    None,
}

struct Print {
    label: String,
    most: usize,
    contents: Contents,
    time: bool,
    active: bool,
}

impl Element for Print {
    fn meaning(&self) -> Option<Meaning> {
        Some(match self.active {
            true => Meaning::Shows,
            false => Meaning::Pass,
        })
    }

    fn action(&mut self, packet: Packet, cx: &Context<'_>) -> Option<Packet> {
        if !self.active {
            return Some(packet);
        }
        let mut line = String::new();
        if !self.label.is_empty() {
            line += &format!("{}: ", self.label);
        }
        if self.time {
            line += &format!("{}: ", crate::summary::field::time(packet.time));
        }
        line += &format!("{:4}", packet.len());
        let shown = packet
            .data()
            .get(..packet.len().min(self.most))
            .unwrap_or(&[]);
        match self.contents {
            _ if shown.is_empty() => {}
            Contents::Hex => {
                line += " |";
                for (at, b) in shown.iter().enumerate() {
                    if at % 4 == 0 {
                        line.push(' ');
                    }
                    line += &format!("{b:02x}");
                }
            }
            Contents::Ascii => {
                line += " | ";
                for (at, b) in shown.iter().enumerate() {
                    if at % 8 == 0 {
                        line.push(' ');
                    }
                    line.push(if (32..127).contains(b) {
                        *b as char
                    } else {
                        '.'
                    });
                }
            }
            Contents::None => {}
        }
        line.push('\n');
        cx.note(&line);
        Some(packet)
    }

    fn read(&mut self, name: &str, _: &str, _: &Context<'_>) -> Read {
        (name == "active").then(|| Ok(self.active.to_string()))
    }

    fn write(&mut self, name: &str, value: &str, _: &Context<'_>) -> Written {
        (name == "active").then(|| {
            self.active = crate::arguments::boolean(value) != Some(false);
            Ok(())
        })
    }
}
