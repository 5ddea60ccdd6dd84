//! A switch in software: rules applied to a frame, as Open vSwitch reads frames.

use std::collections::BTreeMap;

use millrace_wire::checksum::{replace, replace_udp};
use millrace_wire::{ethernet, ipv4, put, word};

use crate::compile::Rules;
use crate::openflow::{Do, Field, Row};

/// What became of a frame.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Fate {
    /// no port gets it
    Dropped,
    /// it leaves by a port of the switch
    Left(u32, Vec<u8>),
    /// a group of servers gets it
    Group(u32, Vec<u8>),
}

/// Frames of a trace by where they went.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, serde::Serialize)]
pub struct Share {
    /// all of them
    pub packets: u64,
    /// dropped by the switch
    pub dropped: u64,
    /// forwarded by the switch
    pub forwarded: u64,
    /// sent to servers
    pub to_servers: u64,
}

impl Share {
    /// Counts a frame.
    pub fn count(&mut self, rules: &Rules, fate: &Fate) {
        self.packets += 1;
        match fate {
            Fate::Dropped => self.dropped += 1,
            Fate::Left(port, _) if !rules.to_servers.contains(port) => self.forwarded += 1,
            Fate::Left(..) | Fate::Group(..) => self.to_servers += 1,
        }
    }

    /// The part that servers see, of 1.
    #[must_use]
    pub fn of_servers(&self) -> f64 {
        self.to_servers as f64 / self.packets.max(1) as f64
    }
}

/// What a switch reads of a frame. A header that it cannot read has zeros in its place.
#[derive(Clone, Debug, Default)]
struct Key {
    port: u64,
    metadata: u64,
    fields: BTreeMap<Field, u64>,
    /// where the IP header and the one behind it are, if they were read
    ip: Option<usize>,
    upper: Option<usize>,
}

fn number(frame: &[u8], at: usize, bytes: usize) -> u64 {
    let part = frame.get(at..at + bytes).unwrap_or(&[]);
    part.iter().fold(0, |n, b| n << 8 | u64::from(*b))
}

impl Key {
    fn read(frame: &[u8], port: u32) -> Self {
        let mut key = Self {
            port: u64::from(port),
            ..Self::default()
        };
        let fields = &mut key.fields;
        fields.insert(Field::EthDst, number(frame, 0, 6));
        fields.insert(Field::EthSrc, number(frame, 6, 6));
        let mut at = 12;
        // Two tags are read at most.
        for _ in 0..2 {
            let tagged = matches!(
                word(frame, at),
                Some(ethernet::VLAN | ethernet::SERVICE_VLAN)
            );
            if tagged && frame.len() >= at + 6 {
                fields.insert(Field::Tagged, 1);
                at += 4;
            }
        }
        let kind = number(frame, at, 2);
        at += 2;
        let snap = number(frame, at, 6) == 0xaaaa_0300_0000 && frame.len() >= at + 8;
        let kind = match kind {
            0x600.. => kind,
            _ if snap && number(frame, at + 6, 2) >= 0x600 => {
                at += 8;
                number(frame, at - 2, 2)
            }
            _ => 0x05ff,
        };
        fields.insert(Field::EthType, kind);
        if kind != 0x0800 {
            return key;
        }
        let ip = frame.get(at..).unwrap_or(&[]);
        let long = ipv4::header_bytes(ip.first().copied().unwrap_or(0));
        let total = number(ip, 2, 2) as usize;
        if ip.len() < 20 || long < 20 || long > total || total > ip.len() {
            return key;
        }
        key.ip = Some(at);
        let protocol = number(ip, 9, 1);
        fields.insert(Field::IpDscp, number(ip, 1, 1) >> 2);
        fields.insert(Field::IpEcn, number(ip, 1, 1) & 3);
        fields.insert(Field::Ttl, number(ip, 8, 1));
        fields.insert(Field::IpProto, protocol);
        fields.insert(Field::Ipv4Src, number(ip, 12, 4));
        fields.insert(Field::Ipv4Dst, number(ip, 16, 4));
        // A header of TCP has to be whole by its own length, too.
        let least = match protocol {
            6 => ((number(ip, long + 12, 1) >> 4) as usize * 4).max(20),
            17 => 8,
            _ => return key,
        };
        let short = protocol == 6 && number(ip, long + 12, 1) >> 4 < 5;
        if number(ip, 6, 2) & 0x1fff != 0 || total - long < least || short {
            return key;
        }
        key.upper = Some(at + long);
        fields.insert(Field::PortSrc, number(ip, long, 2));
        fields.insert(Field::PortDst, number(ip, long + 2, 2));
        key
    }

    fn value(&self, field: Field) -> u64 {
        match field {
            Field::InPort => self.port,
            Field::Metadata => self.metadata,
            field => self.fields.get(&field).copied().unwrap_or(0),
        }
    }

    /// Writes a field of the frame; sums follow.
    fn write(&mut self, frame: &mut [u8], field: Field, value: u64) {
        self.fields.insert(field, value);
        let bytes = value.to_be_bytes();
        let (start, width) = match (field, self.ip, self.upper) {
            (Field::EthDst, ..) => (0, 6),
            (Field::EthSrc, ..) => (6, 6),
            (Field::Ipv4Src, Some(ip), _) => (ip + 12, 4),
            (Field::Ipv4Dst, Some(ip), _) => (ip + 16, 4),
            (Field::PortSrc, _, Some(upper)) => (upper, 2),
            (Field::PortDst, _, Some(upper)) => (upper + 2, 2),
            (Field::Ttl, Some(ip), _) => (ip + 8, 1),
            (Field::IpDscp | Field::IpEcn, Some(ip), _) => (ip + 1, 1),
            _ => return,
        };
        let old: Vec<(usize, u16)> = (start / 2 * 2..start + width)
            .step_by(2)
            .map(|at| (at, word(frame, at).unwrap_or(0)))
            .collect();
        if let (Some(to), Some(from)) =
            (frame.get_mut(start..start + width), bytes.get(8 - width..))
        {
            match field {
                Field::IpDscp | Field::IpEcn => {
                    let dscp = self.value(Field::IpDscp) << 2;
                    to.fill((dscp | self.value(Field::IpEcn)) as u8);
                }
                _ => to.copy_from_slice(from),
            }
        }
        let Some(ip) = self.ip.filter(|ip| start >= *ip) else {
            return;
        };
        for (at, before) in old {
            let after = word(frame, at).unwrap_or(0);
            if start < ip + 20
                && let Some(sum) = word(frame, ip + ipv4::CHECKSUM)
            {
                put(frame, ip + ipv4::CHECKSUM, replace(sum, before, after));
            }
            let Some(upper) = self.upper.filter(|_| start >= ip + 12) else {
                continue;
            };
            if self.value(Field::IpProto) == 6 {
                let sum = word(frame, upper + 16).unwrap_or(0);
                put(frame, upper + 16, replace(sum, before, after));
            } else {
                let sum = word(frame, upper + 6).unwrap_or(0);
                put(frame, upper + 6, replace_udp(sum, before, after));
            }
        }
    }
}

/// A switch that has rules.
pub struct Switch<'a> {
    rules: &'a Rules,

    tables: BTreeMap<u8, &'a [Row]>,
}

impl<'a> Switch<'a> {
    /// A switch with these rules.
    #[must_use]
    pub fn new(rules: &'a Rules) -> Self {
        let tables = rules.tables.iter();
        Self {
            rules,
            tables: tables.map(|t| (t.number, t.rows.as_slice())).collect(),
        }
    }

    /// The rules.
    #[must_use]
    pub fn rules(&self) -> &Rules {
        self.rules
    }

    /// What becomes of a frame that comes by a port of the switch. A frame that no row takes is dropped.
    #[must_use]
    pub fn pass(&self, frame: &[u8], port: u32) -> Fate {
        let mut frame = frame.to_vec();
        let mut key = Key::read(&frame, port);
        let mut table = Some(0);
        // Tables are gone through upwards.
        while let Some(number) = table.take() {
            let rows = self.tables.get(&number).copied().unwrap_or(&[]);
            let Some(row) = rows.iter().find(|r| r.takes(&|f| key.value(f))) else {
                return Fate::Dropped;
            };
            for one in &row.does {
                match one {
                    Do::Set(field, value) => key.write(&mut frame, *field, *value),
                    Do::LowerTtl => {
                        let ttl = key.value(Field::Ttl);
                        if ttl < 2 {
                            return Fate::Dropped;
                        }
                        key.write(&mut frame, Field::Ttl, ttl - 1);
                    }
                    // A frame does not go back unless that is said.
                    Do::Output(to) if *to == port => return Fate::Dropped,
                    Do::Output(to) => return Fate::Left(*to, frame),
                    Do::Back => return Fate::Left(port, frame),
                    Do::Group(group) => return Fate::Group(*group, frame),
                    Do::Write(value, mask) => key.metadata = key.metadata & !mask | value & mask,
                    Do::Goto(next) if *next > number => table = Some(*next),
                    Do::Goto(_) => return Fate::Dropped,
                }
            }
        }
        Fate::Dropped
    }
}
