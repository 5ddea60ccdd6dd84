//! Models of NICs: what their receive side scaling can be told. One TOML file a device in `nics/`,
//! each fact with its source; a new device is a file and a line in `FILES`.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::fields::{Field, Kind};

/// The devices' names and files.
const FILES: &[(&str, &str)] = &[
    ("generic", include_str!("../nics/generic.toml")),
    ("82599", include_str!("../nics/82599.toml")),
    ("e810", include_str!("../nics/e810.toml")),
    ("connectx5", include_str!("../nics/connectx5.toml")),
    ("connectx6", include_str!("../nics/connectx6.toml")),
    ("ena", include_str!("../nics/ena.toml")),
    ("virtio-net", include_str!("../nics/virtio-net.toml")),
    ("software", include_str!("../nics/software.toml")),
];

/// How a device makes both directions of a flow hash alike.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Symmetry {
    /// It cannot.
    None,
    /// Source and destination are both replaced by source XOR destination (Linux: `RXH_XFRM_SYM_XOR`).
    Xor,
    /// Source is replaced by source OR destination, destination by source XOR destination (Linux:
    /// `RXH_XFRM_SYM_OR_XOR`).
    OrXor,
    /// The smaller of source and destination comes first, addresses and ports each for themselves.
    Sort,
}

/// How the fields of a kind may be chosen.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Choice {
    /// any of them
    Any,
    /// all of them or none
    All,
}

/// Hashable fields of one kind of packet.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// the fields, in the order in which they enter the hash
    pub fields: Vec<Field>,
    /// how they may be chosen
    pub choice: Choice,
    /// whether the driver turns this on when nobody says anything
    pub on: bool,
}

/// A model of a NIC.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Nic {
    /// the device as its maker calls it
    pub title: String,
    /// where each fact was read
    pub sources: Vec<String>,
    /// bytes of the hash key
    pub key_bytes: usize,
    /// entries of the indirection table, the usual size first; each a power of two. The low bits of the
    /// hash are the index
    pub table_sizes: Vec<usize>,
    /// queues that a table's entry can name, where that is fewer than a table has entries
    #[serde(default)]
    pub queues: Option<u32>,
    /// how it hashes both directions alike
    pub symmetry: Symmetry,
    /// per kind of packet; a kind without a rule is hashed as the coarser kind, or not at all
    pub kinds: BTreeMap<Kind, Rule>,
}

/// A model that cannot be used.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum NicError {
    /// Nobody wrote this model.
    #[error("there is no model of a NIC called `{name}`; there are {}", names().join(", "))]
    Unknown {
        /// the name
        name: String,
    },
    /// A file that is no model.
    #[error("the model of a NIC `{name}` cannot be read: {what}")]
    Damaged {
        /// the name
        name: String,
        /// what is wrong
        what: String,
    },
}

/// The names of all models.
#[must_use]
pub fn names() -> Vec<&'static str> {
    FILES.iter().map(|(name, _)| *name).collect()
}

/// The model of this name.
///
/// # Errors
/// [`NicError::Unknown`] when there is none.
pub fn named(name: &str) -> Result<Nic, NicError> {
    let file = FILES.iter().find(|(n, _)| *n == name);
    let (name, text) = file.ok_or_else(|| NicError::Unknown {
        name: name.to_owned(),
    })?;
    parse(name, text)
}

/// Reads a model; `name` is for errors.
///
/// # Errors
/// [`NicError::Damaged`] when it is not TOML of this form, or its sizes are not those of a device.
pub fn parse(name: &str, text: &str) -> Result<Nic, NicError> {
    let damaged = |what: String| NicError::Damaged {
        name: name.to_owned(),
        what,
    };
    let nic: Nic = toml::from_str(text).map_err(|e| damaged(e.to_string()))?;
    // The longest input, IPv6 addresses with ports, takes 36 bytes, and the hash 4 more.
    if !(40..=256).contains(&nic.key_bytes) {
        return Err(damaged(format!("a key of {} bytes", nic.key_bytes)));
    }
    let sane = |size: &usize| size.is_power_of_two() && *size <= 1 << 16;
    if nic.table_sizes.is_empty() || !nic.table_sizes.iter().all(sane) {
        return Err(damaged(format!("tables of {:?} entries", nic.table_sizes)));
    }
    if nic.queues == Some(0) {
        return Err(damaged("no queues".to_owned()));
    }
    if let Some((kind, _)) = nic.kinds.iter().find(|(_, rule)| rule.fields.is_empty()) {
        return Err(damaged(format!("no fields for {}", kind.name())));
    }
    Ok(nic)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_model_can_be_read_and_names_its_sources() {
        for name in names() {
            let nic = named(name).unwrap();
            assert!(!nic.title.is_empty() && !nic.sources.is_empty(), "{name}");
            for (kind, rule) in &nic.kinds {
                assert!(!kind.is_odd() || name == "software", "{name}");
                let ports = rule.fields.contains(&Field::SourcePort);
                let has = (kind.coarser().is_some() || kind.is_odd())
                    && !matches!(kind, Kind::Ipv4Fragment | Kind::Ipv6Fragment);
                assert!(has || !ports, "{name} hashes ports of {}", kind.name());
            }
        }
    }

    #[test]
    fn what_is_no_model_is_refused() {
        assert!(matches!(named("e1000"), Err(NicError::Unknown { .. })));
        let good = include_str!("../nics/generic.toml");
        for (from, to) in [
            ("key-bytes = 40", "key-bytes = 39"),
            ("table-sizes = [128]", "table-sizes = [100]"),
            ("table-sizes = [128]", "table-sizes = []"),
            ("symmetry", "symetry"),
            ("symmetry", "queues = 0\nsymmetry"),
        ] {
            assert!(good.contains(from), "{from}");
            let bad = parse("generic", &good.replace(from, to));
            assert!(
                matches!(bad, Err(NicError::Damaged { .. })),
                "{from} -> {to}"
            );
        }
    }
}
