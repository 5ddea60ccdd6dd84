//! Words for keys and fields in the reasons of a plan.

use millrace_steer::Field;

use crate::key::{Bit, Key};

pub(crate) use millrace_report::{listed, place};

/// A field as people call it.
pub(crate) fn field(field: Field) -> String {
    spaced(field.name())
}

/// The name of a field in a document as people call it.
pub(crate) fn spaced(name: &str) -> String {
    name.replace('-', " ")
}

/// A port as its author calls it; `*` where the program names no ports.
pub(crate) fn port(ports: &[String], port: usize) -> &str {
    ports.get(port).map_or("*", String::as_str)
}

/// The fields of a key, and of which of them it has the first bits only.
pub(crate) fn key(key: &Key) -> String {
    let mut parts = Vec::new();
    for f in Field::ALL {
        let mut bits: Vec<u16> = key
            .iter()
            .filter_map(|b| match b {
                Bit::Field(other, at) if *other == f => Some(*at),
                _ => None,
            })
            .collect();
        bits.sort_unstable();
        bits.dedup();
        let whole: &[usize] = match f {
            Field::SourceAddress | Field::DestinationAddress => &[32, 128],
            Field::SourcePort | Field::DestinationPort => &[16],
        };
        match bits.len() {
            0 => {}
            n if whole.contains(&n) => parts.push(field(f)),
            n if bits.last().is_some_and(|b| usize::from(*b) == n - 1) => {
                parts.push(format!("first {n} bits of the {}", field(f)));
            }
            n => parts.push(format!("{n} bits of the {}", field(f))),
        }
    }
    listed(&parts)
}
