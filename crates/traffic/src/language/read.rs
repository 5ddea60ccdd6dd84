//! From text to layers.

use std::str::FromStr;

use super::cursor::{Cursor, hex};
use super::encode::{self, Around};
use super::error::{Error, Fault};
use super::layer::{Ends, Kind, Layer, Leads, OUTERMOST, Packet, SPECS, Spec, Takes};
use super::lex::{self, Word};
use crate::capture::MAX_PACKET;

/// Layers of one packet. Encoding recurses once a layer.
pub(super) const MAX_LAYERS: usize = 64;

impl FromStr for Packet {
    type Err = Error;

    /// Reads a packet of one line; `$i` has no meaning here.
    fn from_str(text: &str) -> Result<Self, Error> {
        let words = lex::words(text, None).map_err(|fault| fault.at("", 1, None))?;
        read(&words, text.chars().count() + 1).map_err(|fault| fault.at("", 1, None))
    }
}

fn names(kinds: &[Kind]) -> String {
    kinds
        .iter()
        .map(|kind| kind.spec().name)
        .collect::<Vec<_>>()
        .join(", ")
}

/// Reads a packet that is all of `words`; `end` is the column after them.
pub(super) fn read(words: &[Word], end: usize) -> Result<Packet, Fault> {
    let mut cursor = Cursor { words, end };
    let mut layers: Vec<Layer> = Vec::new();
    let mut columns = Vec::new();
    let (mut trailer, mut cut) = (Vec::new(), None);
    let mut total = 0;
    loop {
        let column = cursor.column();
        let allowed = layers
            .last()
            .map_or(OUTERMOST, |layer| layer.kind.spec().inside);
        let name = cursor.peek();
        if name == Some("cut") && !layers.is_empty() {
            cursor.step();
            cut = Some((column, cursor.number("cut", 32)? as usize));
        } else if name == Some("trailer") && !layers.is_empty() {
            cursor.step();
            trailer = bytes(&mut cursor)?;
            total += trailer.len();
        } else if let Some(spec) = SPECS.iter().find(|spec| Some(spec.name) == name) {
            if !allowed.contains(&spec.kind) {
                let message = match layers.last() {
                    Some(outer) => format!(
                        "`{}` cannot be inside `{}`; there may be: {}",
                        spec.name,
                        outer.kind.spec().name,
                        names(allowed)
                    ),
                    None => format!("a packet begins with one of: {}", names(allowed)),
                };
                return Err(Fault::new(column, message));
            }
            if layers.len() == MAX_LAYERS {
                return Err(Fault::new(column, format!("more than {MAX_LAYERS} layers")));
            }
            cursor.step();
            let layer = layer(&mut cursor, spec)?;
            total += layer.bytes.len();
            layers.push(layer);
            columns.push(column);
        } else {
            let last = if layers.is_empty() {
                ""
            } else {
                ", trailer, cut"
            };
            return cursor.expected(&format!("a layer: {}{last}", names(allowed)));
        }
        if total > MAX_PACKET {
            return Err(Fault::new(
                column,
                format!("a packet has at most {MAX_PACKET} bytes"),
            ));
        }
        if cursor.words.is_empty() {
            break;
        }
        if !cursor.at_end_of_layer() || cut.is_some() {
            return cursor.expected("the end of the line");
        }
        cursor.step();
        if !trailer.is_empty() && cursor.peek() != Some("cut") {
            return cursor.expected("`cut`, which alone may follow a trailer");
        }
    }
    finish(layers, &columns, trailer, cut)
}

/// Encodes what was read.
fn finish(
    layers: Vec<Layer>,
    columns: &[usize],
    trailer: Vec<u8>,
    cut: Option<(usize, usize)>,
) -> Result<Packet, Fault> {
    let mut bytes = encode::encode(&layers, Around::NOTHING).map_err(|position| {
        let column = columns.get(position).copied().unwrap_or(1);
        Fault::new(
            column,
            "this layer is too long for its length field; give it a `len`",
        )
    })?;
    bytes.extend_from_slice(&trailer);
    if bytes.len() > MAX_PACKET {
        return Err(Fault::new(
            1,
            format!("a packet has at most {MAX_PACKET} bytes"),
        ));
    }
    if let Some((column, length)) = cut {
        if length > bytes.len() {
            let message = format!(
                "cut {length}, but the frame has only {} bytes to cut from",
                bytes.len()
            );
            return Err(Fault::new(column, message));
        }
        bytes.truncate(length);
    }
    Ok(Packet {
        layers,
        trailer,
        cut: cut.map(|(_, length)| length),
        bytes,
    })
}

fn layer(cursor: &mut Cursor<'_>, spec: &'static Spec) -> Result<Layer, Fault> {
    let begun = cursor.column();
    let mut layer = Layer::new(spec.kind, Ends::None, &[]);
    match spec.leads {
        Leads::Nothing => {}
        Leads::Macs => {
            // The addresses may be left out; no word of the layer holds a colon.
            if cursor.peek().is_some_and(|word| word.contains(':')) {
                let source = cursor.mac()?;
                cursor.literal(">")?;
                layer.ends = Ends::Mac(source, cursor.mac()?);
            }
        }
        Leads::V4 => {
            let source = cursor.v4()?;
            cursor.literal(">")?;
            layer.ends = Ends::V4(source, cursor.v4()?);
        }
        Leads::V6 => {
            let source = cursor.v6()?;
            cursor.literal(">")?;
            layer.ends = Ends::V6(source, cursor.v6()?);
        }
        Leads::Ports => {
            let source = cursor.port()?;
            cursor.literal(">")?;
            layer.ends = Ends::Ports(source, cursor.port()?);
        }
        Leads::Number(word, bits) => {
            layer.numbers.push((word, cursor.number(word, bits)?));
        }
        Leads::Arp => layer.ends = arp(cursor)?,
        Leads::Body(most) => {
            if cursor.peek().is_some_and(|word| hex(word).is_some()) {
                layer.bytes = cursor.hex("the body", most)?;
            }
        }
        Leads::Bytes => layer.bytes = bytes(cursor)?,
    }
    while !cursor.at_end_of_layer() {
        field(cursor, spec, &mut layer)?;
    }
    let icmp = matches!(spec.kind, Kind::Icmp | Kind::Icmp6);
    if icmp && layer.get("type").is_none() {
        return Err(Fault::new(
            begun,
            format!("which message? expected one of: {}", words_of(spec)),
        ));
    }
    Ok(layer)
}

fn arp(cursor: &mut Cursor<'_>) -> Result<Ends, Fault> {
    match cursor.peek() {
        Some("who-has") => {
            cursor.step();
            let target = cursor.v4()?;
            cursor.literal("tell")?;
            Ok(Ends::WhoHas(target, cursor.v4()?))
        }
        Some("reply") => {
            cursor.step();
            let sender = cursor.v4()?;
            cursor.literal("is-at")?;
            Ok(Ends::IsAt(sender, cursor.mac()?))
        }
        _ => cursor.expected("`who-has IP tell IP` or `reply IP is-at MAC`"),
    }
}

/// A text, zeros, or bytes in hex, perhaps in several words.
fn bytes(cursor: &mut Cursor<'_>) -> Result<Vec<u8>, Fault> {
    if let Some(word) = cursor.words.first().filter(|word| word.quoted) {
        cursor.step();
        return Ok(word.text.clone().into_bytes());
    }
    if cursor.peek() == Some("zeros") {
        cursor.step();
        return Ok(vec![0; cursor.number("zeros", 16)? as usize]);
    }
    let mut bytes = Vec::new();
    loop {
        if cursor.peek().is_none_or(|word| hex(word).is_none()) {
            return cursor.expected("\"text\", `zeros N`, or bytes in hex, two digits a byte");
        }
        bytes.extend(cursor.hex("bytes", MAX_PACKET)?);
        if cursor.at_end_of_layer() {
            return Ok(bytes);
        }
    }
}

fn words_of(spec: &Spec) -> String {
    spec.fields
        .iter()
        .map(|field| field.word)
        .collect::<Vec<_>>()
        .join(", ")
}

/// One word after a layer's beginning, with what it takes.
fn field(cursor: &mut Cursor<'_>, spec: &'static Spec, layer: &mut Layer) -> Result<(), Fault> {
    let column = cursor.column();
    let Some(field) = cursor
        .peek()
        .and_then(|word| spec.fields.iter().find(|f| f.word == word))
    else {
        let what = match spec.fields {
            [] => "` / ` and the next layer, or the end of the line".to_owned(),
            _ => format!("a word of `{}`: {}", spec.name, words_of(spec)),
        };
        return cursor.expected(&what);
    };
    cursor.step();
    let mut give = |word: &'static str, value: u64| {
        if layer.get(word).is_some() {
            let twice = format!("`{}` gives what was given before", field.word);
            return Err(Fault::new(column, twice));
        }
        layer.numbers.push((word, value));
        Ok(())
    };
    match field.takes {
        Takes::Number(bits) => give(field.word, cursor.number(field.word, bits)?),
        Takes::Eights => {
            let at = cursor.column();
            let value = cursor.number(field.word, 16)?;
            if value % 8 != 0 {
                let message = format!("{value} bytes; an offset is a multiple of 8");
                return Err(Fault::new(at, message));
            }
            give(field.word, value)
        }
        Takes::Nothing => give(field.word, 1),
        Takes::Rest => {
            let bytes = cursor.hex("what follows the checksum", MAX_PACKET)?;
            let mut rest = [0; 4];
            for (to, from) in rest.iter_mut().zip(&bytes) {
                *to = *from;
            }
            give("rest", u32::from_be_bytes(rest).into())?;
            layer.bytes = bytes.get(4..).unwrap_or(&[]).to_vec();
            Ok(())
        }
        Takes::Echo(kind) => {
            give("type", kind)?;
            let identifier = cursor.number("the identifier", 16)?;
            let sequence = cursor.number("the sequence number", 16)?;
            give("rest", identifier << 16 | sequence)
        }
        Takes::Code(kind) => {
            give("type", kind)?;
            give("code", cursor.number("the code", 8)?)
        }
        Takes::Wide(kind) => {
            give("type", kind)?;
            give("rest", cursor.number("the MTU", 32)?)
        }
        Takes::Hex(most) => {
            let bytes = cursor.hex(field.word, most)?;
            if !layer.bytes.is_empty() {
                return Err(Fault::new(
                    column,
                    format!("`{}` was given before", field.word),
                ));
            }
            layer.bytes = bytes;
            Ok(())
        }
    }
}
