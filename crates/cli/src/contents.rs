//! `--map NAME=FILE`: what a state object holds at start, from a file, in place of the user-space program
//! that fills the maps of an XDP program.
//!
//! A file that ends in `.json` is an array of `{"key": …, "value": …}`; any other has a line `KEY,VALUE`
//! an entry, and may have empty lines and lines that begin with `#`. A field is
//!
//! - a number, decimal or `0x…`, stored least significant byte first, as this machine has it;
//! - an address, IPv4, IPv6 or MAC, stored in network order;
//! - a prefix, `10.0.0.0/8`: its length as a `__u32`, and the address, as tries want it;
//! - `hex:` and two digits a byte;
//! - for a program array, the name of a program.

use std::net::IpAddr;
use std::path::Path;

use millrace_dataplane::module::Content;
use millrace_object::program::{Program, StateObject};
use serde::Deserialize;

use crate::failure::Failure;

/// The largest file that is read, bytes.
const MAX_FILE: u64 = 1 << 30;

/// Entries of all files.
pub fn read(program: Option<&Program>, given: &[String]) -> Result<Vec<Content>, Failure> {
    let mut contents = Vec::new();
    for text in given {
        let program = program.ok_or_else(|| {
            Failure::wrong("a module alone has no --map").help("give its source or its object")
        })?;
        let (name, file) = text
            .split_once('=')
            .filter(|(name, file)| !name.is_empty() && !file.is_empty())
            .ok_or_else(|| {
                Failure::wrong(format!("--map {text}: no map and file"))
                    .help("write --map OBJECT=FILE")
            })?;
        let index = program.objects.iter().position(|o| o.name == name);
        let object = index.and_then(|at| program.objects.get(at));
        let (Some(index), Some(object)) = (index, object) else {
            return Err(
                Failure::wrong(format!("--map {text}: there is no state object `{name}`"))
                    .help("`millrace check` lists the objects"),
            );
        };
        for (place, key, value) in entries(Path::new(file))? {
            let wrong = |what: String| Failure::wrong(format!("{place}: {what}")).help(HELP);
            contents.push(Content {
                object: index,
                key: bytes(&key, object.key_bytes).map_err(wrong)?,
                value: value_bytes(program, object, &value).map_err(wrong)?,
            });
        }
    }
    Ok(contents)
}

const HELP: &str =
    "a field is a number, an address, a prefix, or hex: and bytes; see docs/support.md";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Pair {
    key: Field,
    value: Field,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Field {
    Number(u64),
    Text(String),
}

impl Field {
    fn text(self) -> String {
        match self {
            Self::Number(n) => n.to_string(),
            Self::Text(text) => text,
        }
    }
}

/// Place, key and value of each entry, as written.
fn entries(file: &Path) -> Result<Vec<(String, String, String)>, Failure> {
    let shown = file.display();
    let unreadable = |e: std::io::Error| {
        Failure::wrong(format!("{shown}: {e}")).help("make it readable, or name another file")
    };
    let length = std::fs::metadata(file).map_err(unreadable)?.len();
    if length > MAX_FILE {
        return Err(Failure::wrong(format!("{shown}: {length} bytes"))
            .help(format!("at most {MAX_FILE} are read")));
    }
    let text = std::fs::read_to_string(file).map_err(unreadable)?;
    if file.extension().is_some_and(|e| e == "json") {
        let pairs: Vec<Pair> = serde_json::from_str(&text).map_err(|e| {
            Failure::wrong(format!("{shown}: {e}"))
                .help("write an array of {\"key\": …, \"value\": …}")
        })?;
        let numbered = (1..).zip(pairs);
        return Ok(numbered
            .map(|(n, p)| (format!("{shown}, entry {n}"), p.key.text(), p.value.text()))
            .collect());
    }
    let lines = (1..).zip(text.lines()).map(|(n, line)| (n, line.trim()));
    lines
        .filter(|(_, line)| !line.is_empty() && !line.starts_with('#'))
        .map(|(n, line)| {
            let place = format!("{shown}:{n}");
            let (key, value) = line.split_once(',').ok_or_else(|| {
                Failure::wrong(format!("{place}: no comma")).help("write KEY,VALUE on each line")
            })?;
            Ok((place, key.trim().to_owned(), value.trim().to_owned()))
        })
        .collect()
}

/// A value; in program arrays, the number of the program of that name, from 1.
fn value_bytes(program: &Program, object: &StateObject, text: &str) -> Result<Vec<u8>, String> {
    if object.kind.name != "prog_array" {
        return bytes(text, object.value_bytes);
    }
    let name = |e: &millrace_object::program::Entry| program.functions.get(e.function.0);
    let found = program
        .entries
        .iter()
        .position(|e| name(e).is_some_and(|f| f.name == text));
    let number = found.and_then(|at| u32::try_from(at + 1).ok());
    number
        .map(|n| n.to_le_bytes().to_vec())
        .ok_or_else(|| format!("there is no program `{text}`"))
}

/// A field of so many bytes.
fn bytes(text: &str, length: u32) -> Result<Vec<u8>, String> {
    let length = length as usize;
    let found = if let Some(digits) = text.strip_prefix("hex:") {
        hex(digits)?
    } else if let Some((address, prefix)) = text.split_once('/') {
        let address = address
            .parse::<IpAddr>()
            .map_err(|e| format!("{text}: {e}"))?;
        let prefix: u32 = prefix.parse().map_err(|e| format!("{text}: {e}"))?;
        [prefix.to_le_bytes().to_vec(), octets(address)].concat()
    } else if let Ok(address) = text.parse::<IpAddr>() {
        octets(address)
    } else if text.split(':').count() == 6 {
        hex(&text.replace(':', ""))?
    } else {
        return number(text, length);
    };
    if found.len() != length {
        return Err(format!("`{text}` has {} bytes, not {length}", found.len()));
    }
    Ok(found)
}

fn octets(address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(a) => a.octets().to_vec(),
        IpAddr::V6(a) => a.octets().to_vec(),
    }
}

fn hex(digits: &str) -> Result<Vec<u8>, String> {
    let wrong = || format!("`{digits}` is not two hexadecimal digits a byte");
    let pairs = digits.as_bytes().chunks(2);
    pairs
        .map(|pair| {
            let text = std::str::from_utf8(pair).ok().filter(|t| t.len() == 2);
            let text = text.filter(|t| t.bytes().all(|b| b.is_ascii_hexdigit()));
            text.and_then(|t| u8::from_str_radix(t, 16).ok())
                .ok_or_else(wrong)
        })
        .collect()
}

fn number(text: &str, length: usize) -> Result<Vec<u8>, String> {
    let parsed = match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16),
        None => text.parse(),
    };
    let number = parsed.map_err(|_| format!("`{text}` is not a field"))?;
    let mut bytes = number.to_le_bytes().to_vec();
    if bytes.iter().skip(length).any(|b| *b != 0) {
        return Err(format!("{text} does not fit {length} bytes"));
    }
    bytes.resize(length, 0);
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_bytes() {
        for (text, length, expected) in [
            ("258", 4, Some(vec![2, 1, 0, 0])),
            ("0xff", 1, Some(vec![255])),
            ("256", 1, None),
            ("10.0.0.1", 4, Some(vec![10, 0, 0, 1])),
            ("10.0.0.0/8", 8, Some(vec![8, 0, 0, 0, 10, 0, 0, 0])),
            ("10.0.0.1", 8, None),
            ("02:00:00:00:00:01", 6, Some(vec![2, 0, 0, 0, 0, 1])),
            ("hex:0a0B", 2, Some(vec![10, 11])),
            ("hex:0a0", 2, None),
            ("hex:é", 2, None),
            ("", 4, None),
            ("-1", 4, None),
            ("1", 12, Some([&[1][..], &[0; 11]].concat())),
        ] {
            assert_eq!(bytes(text, length).ok(), expected, "{text}");
        }
        assert_eq!(bytes("::1", 16).map(|b| b.len()), Ok(16));
    }
}
