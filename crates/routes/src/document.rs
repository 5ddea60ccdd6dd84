//! The document as it is written: what `ip -j` prints, gathered in one object (docs/routes.md).

use std::collections::BTreeMap;
use std::net::IpAddr;

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;

use crate::Error;
use crate::prefix::{Mac, Prefix, with_length};

/// The whole. Elements of the lists are kept as text, so that what is wrong in one can be told with its
/// line.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Document<'a> {
    pub forwarding: Option<bool>,
    #[serde(borrow)]
    pub ports: Vec<&'a RawValue>,
    #[serde(borrow, default)]
    pub routes: Vec<&'a RawValue>,
    /// the same, where `default` is IPv6's
    #[serde(borrow, default)]
    pub routes6: Vec<&'a RawValue>,
    #[serde(borrow, default)]
    pub neighbours: Vec<&'a RawValue>,
}

/// An element of `ports`, as of `ip -j address` or `ip -j link`.
#[derive(Deserialize)]
pub(crate) struct Interface {
    pub ifname: String,
    pub port: Option<usize>,
    #[serde(default)]
    pub address: Mac,
    #[serde(default = "ethernet")]
    pub mtu: u32,
    pub mtu6: Option<u32>,
    pub forwarding: Option<bool>,
    pub forwarding6: Option<bool>,
    /// with subnets, from which local and subnet routes are made
    #[serde(default)]
    pub addresses: Vec<Written>,
    #[serde(default)]
    pub addr_info: Vec<AddressInfo>,
}

fn ethernet() -> u32 {
    1500
}

#[derive(Deserialize)]
pub(crate) struct AddressInfo {
    pub local: Option<IpAddr>,
    #[serde(default)]
    pub prefixlen: u8,
    #[serde(default)]
    pub scope: String,
}

/// An address and a length; without one, the address's own.
#[derive(Clone, Copy)]
pub(crate) struct Written(pub IpAddr, pub u8);

impl<'de> Deserialize<'de> for Written {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        let (address, bits) = with_length(&text).map_err(serde::de::Error::custom)?;
        Ok(Self(address, bits))
    }
}

/// Where a route leads.
#[derive(Clone, Copy)]
pub(crate) enum To {
    Default,
    Prefix(Prefix),
}

impl<'de> Deserialize<'de> for To {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        if text == "default" {
            return Ok(Self::Default);
        }
        let (address, bits) = with_length(&text).map_err(serde::de::Error::custom)?;
        let prefix = Prefix::of(address, bits).filter(|p| p.address == address);
        prefix.map(Self::Prefix).ok_or_else(|| {
            serde::de::Error::custom(format!("{text:?} has bits beyond its length; clear them"))
        })
    }
}

/// A word or a number.
#[derive(Clone, Deserialize)]
#[serde(untagged)]
pub(crate) enum Word {
    Number(u64),
    Text(String),
}

impl std::fmt::Display for Word {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Number(number) => write!(f, "{number}"),
            Self::Text(text) => write!(f, "{text:?}"),
        }
    }
}

/// An element of `routes`.
#[derive(Deserialize)]
pub(crate) struct RouteText {
    pub dst: To,
    #[serde(rename = "type")]
    pub kind: Option<String>,
    pub table: Option<Word>,
    pub metric: Option<u32>,
    pub from: Option<IgnoredAny>,
    pub tos: Option<IgnoredAny>,
    pub encap: Option<IgnoredAny>,
    pub prefsrc: Option<IpAddr>,
    #[serde(default)]
    pub metrics: Vec<Metrics>,
    pub gateway: Option<IpAddr>,
    pub via: Option<Via>,
    pub dev: Option<Word>,
    #[serde(default)]
    pub flags: Vec<String>,
    #[serde(default)]
    pub nexthops: Vec<HopText>,
}

/// One of several next hops.
#[derive(Deserialize)]
pub(crate) struct HopText {
    pub gateway: Option<IpAddr>,
    pub via: Option<Via>,
    pub dev: Option<Word>,
    pub weight: Option<u32>,
    pub encap: Option<IgnoredAny>,
    #[serde(default)]
    pub flags: Vec<String>,
}

/// A router of the other family.
#[derive(Deserialize)]
pub(crate) struct Via {
    pub host: IpAddr,
}

#[derive(Deserialize)]
pub(crate) struct Metrics {
    pub mtu: Option<u32>,
    #[serde(default)]
    pub lock: bool,
}

/// An element of `neighbours`.
#[derive(Deserialize)]
pub(crate) struct NeighbourText {
    pub dst: IpAddr,
    pub dev: Word,
    pub lladdr: Option<String>,
    #[serde(default)]
    pub state: Vec<String>,
}

/// Members of a route that `ip` prints and nothing here depends on.
const OF_NO_EFFECT: &[&str] = &[
    "protocol", "scope", "pref", "expires", "error", "nhid", "used", "age", "cache", "src", "uid",
    "iif", "realm", "family",
];

const OF_ROUTES: &[&str] = &[
    "dst", "type", "table", "metric", "from", "tos", "encap", "prefsrc", "metrics", "gateway",
    "via", "dev", "flags", "nexthops",
];

/// Members of a route that mean nothing: likely misspelt.
pub(crate) fn unknown_members(element: &RawValue) -> Vec<String> {
    let members: BTreeMap<String, IgnoredAny> =
        serde_json::from_str(element.get()).unwrap_or_default();
    let known = |name: &String| OF_NO_EFFECT.contains(&&**name) || OF_ROUTES.contains(&&**name);
    members.into_keys().filter(|name| !known(name)).collect()
}

/// The document's text, for places in it.
#[derive(Clone, Copy)]
pub(crate) struct Source<'a>(pub &'a str);

impl<'a> Source<'a> {
    /// The document.
    pub fn document(self) -> Result<Document<'a>, Error> {
        serde_json::from_str(self.0).map_err(|e| Error::At {
            line: e.line().max(1),
            what: without_place(&e),
        })
    }

    /// An element of a list.
    pub fn element<T: Deserialize<'a>>(self, element: &'a RawValue) -> Result<T, Error> {
        serde_json::from_str(element.get()).map_err(|e| Error::At {
            line: self.line(element) + e.line().saturating_sub(1),
            what: without_place(&e),
        })
    }

    /// An error in an element.
    pub fn error(self, element: &RawValue, what: impl Into<String>) -> Error {
        Error::At {
            line: self.line(element),
            what: what.into(),
        }
    }

    /// The line that an element begins on: it is a part of the text.
    fn line(self, element: &RawValue) -> usize {
        let offset = (element.get().as_ptr() as usize).wrapping_sub(self.0.as_ptr() as usize);
        let before = self.0.as_bytes().get(..offset).unwrap_or_default();
        1 + before.iter().filter(|b| **b == b'\n').count()
    }
}

/// serde_json's words without its line, which counts from an element's start.
fn without_place(error: &serde_json::Error) -> String {
    let text = error.to_string();
    match text.rfind(" at line ") {
        Some(at) => text.get(..at).unwrap_or(&text).to_owned(),
        None => text,
    }
}
