//! From layers to text.

use std::fmt::{self, Write};

use super::layer::{Ends, Field, Kind, Layer, Leads, Packet, Takes};

/// Bytes of a payload that a shortened text shows.
const SHOWN: usize = 24;

/// The packet in the language; with `{:#}` long payloads are cut short.
impl fmt::Display for Packet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (depth, layer) in self.layers.iter().enumerate() {
            if depth > 0 {
                f.write_str(" / ")?;
            }
            show(f, layer)?;
        }
        if !self.trailer.is_empty() {
            f.write_str(" / trailer")?;
            bytes(f, &self.trailer)?;
        }
        match self.cut {
            Some(length) => write!(f, " / cut {length}"),
            None => Ok(()),
        }
    }
}

struct Mac([u8; 6]);

impl fmt::Display for Mac {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

fn show(f: &mut fmt::Formatter<'_>, layer: &Layer) -> fmt::Result {
    let spec = layer.kind.spec();
    f.write_str(spec.name)?;
    match layer.ends {
        Ends::None => {}
        Ends::Mac(source, destination) => write!(f, " {} > {}", Mac(source), Mac(destination))?,
        Ends::V4(source, destination) => write!(f, " {source} > {destination}")?,
        Ends::V6(source, destination) => write!(f, " {source} > {destination}")?,
        Ends::Ports(source, destination) => write!(f, " {source} > {destination}")?,
        Ends::WhoHas(target, sender) => write!(f, " who-has {target} tell {sender}")?,
        Ends::IsAt(sender, mac) => write!(f, " reply {sender} is-at {}", Mac(mac))?,
    }
    match spec.leads {
        Leads::Number(word, _) => write!(f, " {}", layer.or(word, 0))?,
        Leads::Bytes => bytes(f, &layer.bytes)?,
        Leads::Body(_) if !layer.bytes.is_empty() => {
            f.write_char(' ')?;
            hex(f, &layer.bytes)?;
        }
        _ => {}
    }
    // A message's own word says its type, and some say their code or the rest as well.
    let mut said: &[&str] = &[];
    if let Some(kind) = layer.get("type").filter(|_| is_icmp(layer.kind)) {
        said = message(f, layer, spec.fields, kind)?;
    }
    for field in spec.fields {
        if let Takes::Hex(_) = field.takes {
            if !layer.bytes.is_empty() {
                write!(f, " {} ", field.word)?;
                hex(f, &layer.bytes)?;
            }
            continue;
        }
        let Some(value) = layer
            .get(field.word)
            .filter(|_| !said.contains(&field.word))
        else {
            continue;
        };
        match field.takes {
            Takes::Nothing => write!(f, " {}", field.word)?,
            Takes::Rest => {
                write!(f, " rest {value:08x}")?;
                hex(f, &layer.bytes)?;
            }
            _ if matches!(field.word, "checksum" | "type" | "tpid") && !is_code(layer, field) => {
                write!(f, " {} {value:#06x}", field.word)?;
            }
            _ => write!(f, " {} {value}", field.word)?,
        }
    }
    Ok(())
}

fn is_icmp(kind: Kind) -> bool {
    matches!(kind, Kind::Icmp | Kind::Icmp6)
}

/// ICMP types are small numbers that people know in decimal; Ethernet types are not.
fn is_code(layer: &Layer, field: &Field) -> bool {
    is_icmp(layer.kind) && field.word == "type"
}

/// Shows an ICMP message by its own word, where one says exactly this; the words that it stands for.
fn message(
    f: &mut fmt::Formatter<'_>,
    layer: &Layer,
    fields: &[Field],
    kind: u64,
) -> Result<&'static [&'static str], fmt::Error> {
    let (code, rest) = (layer.get("code"), layer.get("rest"));
    let alone = code.unwrap_or(0) == 0 && layer.bytes.is_empty();
    for field in fields {
        match field.takes {
            Takes::Echo(number) if number == kind && alone => {
                let rest = rest.unwrap_or(0);
                write!(f, " {} {} {}", field.word, rest >> 16, rest & 0xffff)?;
                return Ok(&["type", "code", "rest"]);
            }
            Takes::Code(number) if number == kind => {
                write!(f, " {} {}", field.word, code.unwrap_or(0))?;
                return Ok(&["type", "code"]);
            }
            Takes::Wide(number) if number == kind && alone => {
                write!(f, " {} {}", field.word, rest.unwrap_or(0))?;
                return Ok(&["type", "code", "rest"]);
            }
            _ => {}
        }
    }
    Ok(&[])
}

fn hex(f: &mut fmt::Formatter<'_>, bytes: &[u8]) -> fmt::Result {
    bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
}

/// Bytes in the shortest of the forms that give them again.
fn bytes(f: &mut fmt::Formatter<'_>, bytes: &[u8]) -> fmt::Result {
    let printable = |byte: &u8| matches!(byte, b' '..=b'~' | b'\n' | b'\r' | b'\t');
    if u16::try_from(bytes.len()).is_ok() && bytes.iter().all(|byte| *byte == 0) {
        return write!(f, " zeros {}", bytes.len());
    }
    let shown = match bytes.get(..SHOWN) {
        Some(first) if f.alternate() => first,
        _ => bytes,
    };
    if bytes.len() >= 4 && bytes.iter().all(printable) {
        f.write_str(" \"")?;
        for byte in shown {
            match byte {
                b'\n' => f.write_str("\\n")?,
                b'\r' => f.write_str("\\r")?,
                b'\t' => f.write_str("\\t")?,
                b'"' | b'\\' => write!(f, "\\{}", char::from(*byte))?,
                byte => f.write_char(char::from(*byte))?,
            }
        }
        f.write_char('"')?;
    } else {
        f.write_char(' ')?;
        hex(f, shown)?;
    }
    if shown.len() < bytes.len() {
        write!(f, "… ({} bytes)", bytes.len())?;
    }
    Ok(())
}
