//! Lists of names, each ended by a zero byte: ports and drop reasons.

use std::collections::{BTreeMap, HashMap};

use crate::bytes::until_zero;
use crate::elf::{Elf, Section};
use crate::error::LoadError;

const PORTS: &str = "millrace/ports";
pub(crate) const REASONS: &str = "millrace/reasons";

/// Most ports: what every table of them is sized for.
const MAX_PORTS: usize = 1024;
/// Most reasons; each is a counter of every worker. A verdict has 24 bits for the index.
const MAX_REASONS: usize = 65_536;

/// Where each name begins, and the name. Zero bytes between names are alignment.
fn list<'a>(section: &Section<'a>) -> Result<Vec<(u64, &'a str)>, LoadError> {
    let mut names = Vec::new();
    let mut at = 0;
    while at < section.data.len() {
        let bytes = until_zero(section.data, at).ok_or_else(|| {
            LoadError::malformed("the last name has no end").in_section(section.name)
        })?;
        if !bytes.is_empty() {
            let name = std::str::from_utf8(bytes).ok().filter(|n| is_name(n));
            let name = name.ok_or_else(|| {
                let shown = crate::error::printable(&String::from_utf8_lossy(bytes));
                LoadError::new(
                    "bad-name",
                    format!("`{shown}` is no name"),
                    "use at most 64 letters, digits and underscores",
                )
                .in_section(section.name)
            })?;
            names.push((at as u64, name));
        }
        at += bytes.len() + 1;
    }
    Ok(names)
}

fn is_name(name: &str) -> bool {
    name.len() <= 64 && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// The names of `PORTS`, in order.
pub(crate) fn ports(elf: &Elf<'_>) -> Result<Vec<String>, LoadError> {
    let Some((_, section)) = elf.section_named(PORTS) else {
        return Ok(Vec::new());
    };
    let mut seen = std::collections::HashSet::new();
    let mut ports = Vec::new();
    for (_, name) in list(section)? {
        if !seen.insert(name) || ports.len() == MAX_PORTS {
            return Err(LoadError::new(
                "bad-name",
                format!("port `{name}` is named twice, or there are more than {MAX_PORTS}"),
                "give PORTS different names",
            )
            .in_section(PORTS));
        }
        ports.push(name.to_owned());
    }
    Ok(ports)
}

/// The names of drop reasons by index, and the index of the name that begins at each offset. Equal
/// names are one reason; index 0 is the unnamed one.
pub(crate) fn reasons(
    section: &Section<'_>,
) -> Result<(Vec<String>, BTreeMap<u64, u32>), LoadError> {
    let mut names = vec!["dropped".to_owned()];
    let mut starts = BTreeMap::new();
    let mut known = HashMap::from([("dropped", 0)]);
    for (start, name) in list(section)? {
        let index = *known.entry(name).or_insert_with(|| {
            names.push(name.to_owned());
            names.len() as u32 - 1
        });
        if names.len() > MAX_REASONS {
            return Err(LoadError::new(
                "too-many-reasons",
                format!("more than {MAX_REASONS} drop reasons"),
                "give fewer",
            )
            .in_section(section.name));
        }
        starts.insert(start, index);
    }
    Ok((names, starts))
}
