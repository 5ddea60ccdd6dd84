//! What a person reads of keys, objects and places in the source.

use millrace_model::report::clean;
use millrace_object::program::Line;
use millrace_steer::Field;

use crate::key::{Bit, Key};

/// FILE:LINE
pub(crate) fn place(line: &Line) -> String {
    let file = std::path::Path::new(&*line.file);
    let name = file.file_name().map_or_else(
        || line.file.to_string(),
        |f| f.to_string_lossy().into_owned(),
    );
    format!("{}:{}", clean(&name), line.line)
}

/// A field as people call it.
pub(crate) fn field(field: Field) -> &'static str {
    match field {
        Field::SourceAddress => "source address",
        Field::DestinationAddress => "destination address",
        Field::SourcePort => "source port",
        Field::DestinationPort => "destination port",
    }
}

/// One and another and a third.
pub(crate) fn listed(all: &[String]) -> String {
    match all {
        [one] => one.clone(),
        [rest @ .., last] => format!("{} and {last}", rest.join(", ")),
        [] => String::new(),
    }
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
            n if whole.contains(&n) => parts.push(field(f).to_owned()),
            n if bits.last().is_some_and(|b| usize::from(*b) == n - 1) => {
                parts.push(format!("first {n} bits of the {}", field(f)));
            }
            n => parts.push(format!("{n} bits of the {}", field(f))),
        }
    }
    listed(&parts)
}
