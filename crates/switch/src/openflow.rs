//! OpenFlow 1.3: rows, tables, groups, as values, as text for `ovs-ofctl` and as JSON.

use std::fmt::{self, Write as _};
use std::net::Ipv4Addr;

use serde::Serialize;
use serde_json::{Value, json};

/// A field that a row matches (OpenFlow 1.3.5, 7.2.3.7).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Field {
    /// the port by which the frame came
    InPort,
    /// what earlier tables wrote
    Metadata,
    /// whether the frame has a VLAN tag: 1 yes
    Tagged,
    /// Ethernet destination
    EthDst,
    /// Ethernet source
    EthSrc,
    /// Ethernet type
    EthType,
    /// protocol
    IpProto,
    /// source address
    Ipv4Src,
    /// destination address
    Ipv4Dst,
    /// source port of TCP or UDP, by the row's protocol
    PortSrc,
    /// destination port
    PortDst,
    /// Differentiated Services code point
    IpDscp,
    /// congestion notification
    IpEcn,
    /// time to live; an extension of Open vSwitch
    Ttl,
}

impl Field {
    /// Bits.
    #[must_use]
    pub fn width(self) -> u32 {
        match self {
            Self::InPort | Self::Ipv4Src | Self::Ipv4Dst => 32,
            Self::Metadata => 64,
            Self::Tagged => 1,
            Self::EthDst | Self::EthSrc => 48,
            Self::EthType | Self::PortSrc | Self::PortDst => 16,
            Self::IpProto | Self::Ttl => 8,
            Self::IpDscp => 6,
            Self::IpEcn => 2,
        }
    }

    /// A mask of all its bits.
    #[must_use]
    pub fn all(self) -> u64 {
        u64::MAX >> (64 - self.width())
    }
}

/// A field whose masked bits have a value.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Match {
    /// the field
    pub field: Field,
    /// the bits' value
    pub value: u64,
    /// bits that count
    pub mask: u64,
}

impl Match {
    /// A field that has a value.
    #[must_use]
    pub fn exact(field: Field, value: u64) -> Self {
        Self {
            field,
            value,
            mask: field.all(),
        }
    }
}

/// What a row does, in order.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Do {
    /// a field gets a value; sums follow
    Set(Field, u64),
    /// the time to live is lowered by one; the header's sum follows
    LowerTtl,
    /// the frame leaves by a port
    Output(u32),
    /// the frame leaves by the port by which it came
    Back,
    /// a group decides
    Group(u32),
    /// metadata gets a value under a mask
    Write(u64, u64),
    /// a later table decides
    Goto(u8),
}

/// A row of a table.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Row {
    /// the table's number
    pub table: u8,
    /// rows of a higher one come first
    pub priority: u16,
    /// fields, each once
    pub matches: Vec<Match>,
    /// nothing: the frame is dropped
    pub does: Vec<Do>,
    /// the rule of the chain that it comes from
    pub from: Option<String>,
}

/// A table.
#[derive(Clone, Debug)]
pub struct Table {
    /// its number
    pub number: u8,
    /// what it decides
    pub name: &'static str,
    /// rows, the highest priority first
    pub rows: Vec<Row>,
}

impl Table {
    pub(crate) fn new(number: u8, name: &'static str) -> Self {
        Self {
            number,
            name,
            rows: Vec::new(),
        }
    }
}

/// A select group: each flow goes to one of its buckets.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Group {
    /// its number
    pub id: u32,
    /// the field by whose hash the bucket is chosen
    pub by: Field,
    /// weights, and the ports by which frames leave
    pub buckets: Vec<(u16, u32)>,
}

fn mac(value: u64) -> String {
    let bytes = value.to_be_bytes();
    let words: Vec<String> = bytes.iter().skip(2).map(|b| format!("{b:02x}")).collect();
    words.join(":")
}

impl Match {
    fn text(self, protocol: Option<u64>, out: &mut String) {
        let Self { field, value, mask } = self;
        let whole = mask == field.all();
        let upper = if protocol == Some(17) { "udp" } else { "tcp" };
        let _ = match field {
            Field::InPort => write!(out, "in_port={value}"),
            Field::Metadata if whole => write!(out, "metadata={value:#x}"),
            Field::Metadata => write!(out, "metadata={value:#x}/{mask:#x}"),
            Field::Tagged if value == 1 => write!(out, "vlan_tci=0x1000/0x1000"),
            Field::Tagged => write!(out, "vlan_tci=0x0000/0x1000"),
            Field::EthDst | Field::EthSrc => {
                let name = if field == Field::EthDst {
                    "dl_dst"
                } else {
                    "dl_src"
                };
                match whole {
                    true => write!(out, "{name}={}", mac(value)),
                    false => write!(out, "{name}={}/{}", mac(value), mac(mask)),
                }
            }
            Field::EthType => write!(out, "dl_type={value:#06x}"),
            Field::IpProto => write!(out, "nw_proto={value}"),
            Field::Ipv4Src | Field::Ipv4Dst => {
                let name = if field == Field::Ipv4Src {
                    "nw_src"
                } else {
                    "nw_dst"
                };
                let address = Ipv4Addr::from(value as u32);
                match whole {
                    true => write!(out, "{name}={address}"),
                    false => write!(out, "{name}={address}/{}", Ipv4Addr::from(mask as u32)),
                }
            }
            Field::PortSrc | Field::PortDst => {
                let side = if field == Field::PortSrc {
                    "src"
                } else {
                    "dst"
                };
                match whole {
                    true => write!(out, "{upper}_{side}={value}"),
                    false => write!(out, "{upper}_{side}={value:#x}/{mask:#x}"),
                }
            }
            Field::IpDscp => write!(out, "ip_dscp={value}"),
            Field::IpEcn => write!(out, "nw_ecn={value}"),
            Field::Ttl => write!(out, "nw_ttl={value}"),
        };
    }
}

impl Do {
    fn text(&self, protocol: Option<u64>, out: &mut String) {
        let upper = if protocol == Some(17) { "udp" } else { "tcp" };
        let _ = match self {
            Self::Set(field, value) => match field {
                Field::EthDst => write!(out, "set_field:{}->eth_dst", mac(*value)),
                Field::EthSrc => write!(out, "set_field:{}->eth_src", mac(*value)),
                Field::Ipv4Src => {
                    write!(out, "set_field:{}->ip_src", Ipv4Addr::from(*value as u32))
                }
                Field::Ipv4Dst => {
                    write!(out, "set_field:{}->ip_dst", Ipv4Addr::from(*value as u32))
                }
                Field::PortSrc => write!(out, "set_field:{value}->{upper}_src"),
                Field::PortDst => write!(out, "set_field:{value}->{upper}_dst"),
                Field::IpDscp => write!(out, "set_field:{value}->ip_dscp"),
                _ => write!(out, "set_field:{value}->nw_ecn"),
            },
            Self::LowerTtl => write!(out, "dec_ttl"),
            Self::Output(port) => write!(out, "output:{port}"),
            Self::Back => write!(out, "in_port"),
            Self::Group(id) => write!(out, "group:{id}"),
            Self::Write(value, mask) => write!(out, "write_metadata:{value:#x}/{mask:#x}"),
            Self::Goto(table) => write!(out, "goto_table:{table}"),
        };
    }
}

impl Row {
    fn protocol(&self) -> Option<u64> {
        let found = self.matches.iter().find(|m| m.field == Field::IpProto);
        found.map(|m| m.value)
    }

    /// Whether a packet that has such fields takes it.
    #[must_use]
    pub fn takes(&self, value: &dyn Fn(Field) -> u64) -> bool {
        self.matches
            .iter()
            .all(|m| value(m.field) & m.mask == m.value)
    }

    /// Whether it needs the older protocol of Open vSwitch: OpenFlow 1.3 has no word for a field of it.
    #[must_use]
    pub fn extended(&self) -> bool {
        self.matches.iter().any(|m| m.field == Field::Ttl)
    }

    /// The row as JSON.
    #[must_use]
    pub fn json(&self) -> Value {
        let protocol = self.protocol();
        let matches: Vec<_> = self
            .matches
            .iter()
            .map(|m| match m.mask == m.field.all() {
                true => json!({ "field": m.field, "value": m.value }),
                false => json!({ "field": m.field, "value": m.value, "mask": m.mask }),
            })
            .collect();
        let does: Vec<String> = self
            .does
            .iter()
            .map(|d| {
                let mut text = String::new();
                d.text(protocol, &mut text);
                text
            })
            .collect();
        json!({
            "table": self.table,
            "priority": self.priority,
            "match": matches,
            "actions": does,
            "from": self.from,
        })
    }
}

/// A line of `ovs-ofctl add-flows`.
impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let protocol = self.protocol();
        let mut out = format!("table={},priority={}", self.table, self.priority);
        for one in &self.matches {
            out.push(',');
            one.text(protocol, &mut out);
        }
        out.push_str(",actions=");
        for (n, one) in self.does.iter().enumerate() {
            if n > 0 {
                out.push(',');
            }
            match one {
                // OpenFlow 1.0 has no instructions.
                Do::Goto(table) if self.extended() => {
                    let _ = write!(out, "resubmit(,{table})");
                }
                one => one.text(protocol, &mut out),
            }
        }
        if self.does.is_empty() {
            out.push_str("drop");
        }
        f.write_str(&out)
    }
}

/// A line of `ovs-ofctl add-groups`.
impl fmt::Display for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let by = if self.by == Field::Ipv4Dst {
            "ip_dst"
        } else {
            "ip_src"
        };
        write!(
            f,
            "group_id={},type=select,selection_method=hash,fields({by})",
            self.id
        )?;
        for (n, (weight, port)) in self.buckets.iter().enumerate() {
            write!(
                f,
                ",bucket=bucket_id:{n},weight:{weight},actions=output:{port}"
            )?;
        }
        Ok(())
    }
}

impl Group {
    /// The group as JSON.
    #[must_use]
    pub fn json(&self) -> Value {
        let buckets: Vec<_> = self
            .buckets
            .iter()
            .map(|(weight, port)| json!({ "weight": weight, "port": port }))
            .collect();
        json!({ "id": self.id, "by": self.by, "buckets": buckets })
    }
}
