//! `IPPrint([LABEL, CONTENTS, PAYLOAD, TIMESTAMP, LENGTH, ID, TTL, TOS, PAINT, ACTIVE])`: prints a line about each packet's IP and
//! transport header on standard error and passes it on. PAYLOAD and CONTENTS are `no`, `hex` or `ascii`.

use super::prelude::*;
use crate::arguments::dots;
use crate::packet::PAINT;
use crate::summary::field::time;
use millrace_wire::{ipv4, word};

/// The class of this file.
pub const CLASSES: &[Class] = &[Class::new("IPPrint", "1/1", "a/a", make)];

fn make(args: &mut Args<'_>, _: &mut Setup<'_>) -> Made {
    args.keywords(
        "LABEL CONTENTS PAYLOAD TIMESTAMP LENGTH ID TTL TOS PAINT AGGREGATE ACTIVE MAXLENGTH \
         NBYTES SWAP OUTFILE",
    );
    let form = |text: Option<String>| match text.map(|t| t.to_ascii_lowercase()).as_deref() {
        None | Some("no" | "false" | "none") => Ok(Form::None),
        Some("hex") => Ok(Form::Hex),
        Some("ascii") => Ok(Form::Ascii),
        Some(other) => Err(format!("'{other}' is not no, hex or ascii")),
    };
    let contents = form(args.keyword("CONTENTS"))?;
    let payload = form(args.keyword("PAYLOAD"))?;
    let time = args.flag("TIMESTAMP", true)?;
    let length = args.flag("LENGTH", false)?;
    let id = args.flag("ID", false)?;
    let ttl = args.flag("TTL", false)?;
    let tos = args.flag("TOS", false)?;
    let paint = args.flag("PAINT", false)?;
    args.flag("AGGREGATE", false)?;
    let active = args.flag("ACTIVE", true)?;
    let most = args
        .number_word("MAXLENGTH", args_most())?
        .max(args.number_word("NBYTES", 0)?);
    let label = args
        .take("LABEL")
        .map(|l| crate::language::args::text(&l))
        .unwrap_or_default();
    args.all();
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    Ok(Box::new(Print {
        label,
        contents,
        payload,
        time,
        length,
        id,
        ttl,
        tos,
        paint,
        active,
        most,
    }))
}

fn args_most() -> i64 {
    1500
}

#[derive(PartialEq, Eq, Clone, Copy)]
enum Form {
    None,
    Hex,
    Ascii,
}

struct Print {
    label: String,
    contents: Form,
    payload: Form,
    time: bool,
    length: bool,
    id: bool,
    ttl: bool,
    tos: bool,
    paint: bool,
    active: bool,
    most: usize,
}

impl Print {
    fn line(&self, packet: &Packet) -> String {
        let mut line = String::new();
        if !self.label.is_empty() {
            line += &format!("{}: ", self.label);
        }
        if self.time {
            line += &format!("{}: ", time(packet.time));
        }
        if self.paint {
            line += &format!("paint {}: ", packet.anno[PAINT]);
        }
        let Some(ip) = packet.ip().filter(|ip| ip.len() >= ipv4::HEADER) else {
            return line + "(Not an IP packet)";
        };
        let length = usize::from(word(ip, ipv4::LENGTH).unwrap_or(0));
        let header = ipv4::header_bytes(ip[0]).max(ipv4::HEADER);
        let fragment = word(ip, ipv4::FRAGMENT).unwrap_or(0);
        let (offset, more) = (fragment & ipv4::OFFSET, fragment & ipv4::MORE != 0);
        if self.id {
            line += &format!("id {} ", word(ip, ipv4::ID).unwrap_or(0));
        }
        if self.ttl {
            line += &format!("ttl {} ", ip[8]);
        }
        if self.tos {
            line += &format!("tos {} ", ip[1]);
        }
        if self.length {
            line += &format!("length {length} ");
        }
        let address = |at: usize| {
            let bytes = ip.get(at..at + 4).and_then(|b| b.try_into().ok());
            dots(bytes.unwrap_or_default())
        };
        let upper = ip.get(header..).unwrap_or(&[]);
        let (source, destination) = (address(12), address(16));
        let protocol = ip[ipv4::PROTOCOL];
        let first = offset == 0;
        let body = length.saturating_sub(header);
        match protocol {
            6 | 17 if first && upper.len() >= 4 => {
                let port = |at| word(upper, at).unwrap_or(0);
                line += &format!("{source}.{} > {destination}.{}: ", port(0), port(2));
            }
            _ => line += &format!("{source} > {destination}: "),
        }
        match protocol {
            6 if first => line += &tcp(upper, body, length),
            17 if first => line += &format!("udp {}", word(upper, 4).unwrap_or(0)),
            1 if first => line += &icmp(upper),
            6 => line += "tcp",
            17 => line += "udp",
            1 => line += "icmp",
            other => match crate::names::protocol_name(other) {
                Some(name) => line += name,
                None => line += &format!("protocol {other}"),
            },
        }
        if more || offset > 0 {
            let id = word(ip, ipv4::ID).unwrap_or(0);
            let plus = if more { "+" } else { "" };
            // The first fragment says how much of the transport's bytes it has.
            let body = if first && protocol == 17 {
                body.saturating_sub(8).max(body)
            } else {
                body
            };
            line += &format!(" (frag {id}:{body}@{}{plus})", offset * 8);
        }
        line
    }

    fn bytes(&self, form: Form, bytes: &[u8]) -> String {
        let bytes = bytes.get(..bytes.len().min(self.most)).unwrap_or(&[]);
        let mut text = String::new();
        for (at, b) in bytes.iter().enumerate() {
            match (form, at) {
                (Form::Ascii, at) if at % 40 == 0 => text += "\n  ",
                (Form::Hex, at) if at % 20 == 0 => text += "\n  ",
                (Form::Ascii, at) if at % 8 == 0 => text.push(' '),
                (Form::Hex, at) if at % 4 == 0 => text.push(' '),
                _ => {}
            }
            match form {
                Form::Ascii => text.push(if (32..127).contains(b) {
                    *b as char
                } else {
                    '.'
                }),
                _ => text += &format!("{b:02x}"),
            }
        }
        text
    }
}

fn tcp(upper: &[u8], body: usize, length: usize) -> String {
    let four = |at: usize| {
        let four = upper.get(at..at + 4).and_then(|b| b.try_into().ok());
        u32::from_be_bytes(four.unwrap_or_default())
    };
    let header = upper.get(12).map_or(0, |o| usize::from(o >> 4) * 4);
    let flags = upper.get(13).copied().unwrap_or(0);
    let letters = [
        (2, 'S'),
        (1, 'F'),
        (4, 'R'),
        (8, 'P'),
        (32, 'U'),
        (64, 'E'),
        (128, 'W'),
    ];
    let text: String = letters
        .iter()
        .filter(|(bit, _)| flags & bit != 0)
        .map(|(_, l)| *l)
        .collect();
    let text = if text.is_empty() {
        ".".to_owned()
    } else {
        text
    };
    let sequence = four(4);
    let mut data = body.saturating_sub(header) as u32;
    let payload = data;
    if flags & 2 != 0 {
        data += 1;
    }
    if flags & 1 != 0 {
        data += 1;
    }
    let headers = length.saturating_sub(payload as usize);
    let end = sequence.wrapping_add(data);
    let mut line = format!("{text} {sequence}:{end}({data},{headers},{length})");
    if flags & 16 != 0 {
        line += &format!(" ack {}", four(8));
    }
    line + &format!(" win {}", word(upper, 14).unwrap_or(0))
}

fn icmp(upper: &[u8]) -> String {
    let (kind, code) = (
        upper.first().copied().unwrap_or(0),
        upper.get(1).copied().unwrap_or(0),
    );
    let inner = upper.get(24..28).and_then(|b| b.try_into().ok()).map(dots);
    let name = crate::summary::names::icmp(kind);
    match kind {
        0 | 8 => {
            let field = |at| word(upper, at).unwrap_or(0);
            format!("icmp {name} ({}, {})", field(4), field(6))
        }
        3 => {
            const CODES: [&str; 5] = ["net", "host", "protocol", "port", "needfrag"];
            let code = CODES
                .get(usize::from(code))
                .map_or(code.to_string(), |c| (*c).to_owned());
            format!("icmp {} unreachable {code}", inner.unwrap_or_default())
        }
        11 => format!(
            "icmp timeexceeded {}",
            if code == 0 { "transit" } else { "reassembly" }
        ),
        _ => format!("icmp {name}"),
    }
}

impl Element for Print {
    fn meaning(&self) -> Option<Meaning> {
        Some(match self.active {
            true => Meaning::Shows,
            false => Meaning::Pass,
        })
    }

    fn action(&mut self, packet: Packet, cx: &Context<'_>) -> Option<Packet> {
        if self.active {
            let mut line = self.line(&packet);
            let ip = packet.ip().unwrap_or(&[]);
            if self.contents != Form::None {
                line += &self.bytes(self.contents, ip);
            }
            if self.payload != Form::None {
                let header = ip.first().map_or(0, |b| ipv4::header_bytes(*b));
                let more = match ip.get(ipv4::PROTOCOL) {
                    Some(6) => ip.get(header + 12).map_or(0, |o| usize::from(o >> 4) * 4),
                    Some(17 | 1) => 8,
                    _ => 0,
                };
                line += &self.bytes(self.payload, ip.get(header + more..).unwrap_or(&[]));
            }
            cx.note(&(line + "\n"));
        }
        Some(packet)
    }
}
