//! Lines of a dump to packets.

use millrace_wire::checksum::{Sum, nonzero};
use millrace_wire::{ipv4, put, tcp};

use super::{names, options};
use crate::arguments::{self, SECOND, decimal, integer};
use crate::names::{Names, protocol};
use crate::packet::{self, Packet};

/// How lines are read.
#[derive(Clone, Debug)]
pub struct Reading {
    /// fields of a line
    pub fields: Vec<String>,
    /// the protocol where no field says it
    pub protocol: u8,
    /// whether checksums are filled in
    pub checksum: bool,
}

/// What a line says.
#[derive(Default)]
struct Draft {
    time: i64,
    source: [u8; 4],
    destination: [u8; 4],
    ports: (u16, u16),
    protocol: u8,
    length: Option<u32>,
    header: Option<usize>,
    offset: Option<usize>,
    flags: u16,
    sequence: u32,
    acknowledgment: u32,
    window: u16,
    urgent: u16,
    tcp_options: Vec<u8>,
    ip_options: Vec<u8>,
    payload: Vec<u8>,
    payload_length: Option<u32>,
    paint: u8,
    aggregate: u32,
    number: u32,
    service: u8,
    ttl: u8,
    id: u16,
    fragment: u16,
    icmp: (u8, u8),
    icmp_id: u16,
    icmp_sequence: u16,
    ethernet: Option<[u8; 14]>,
}

impl Reading {
    /// Reads a line that begins with `!`: fields, protocol.
    pub fn directive(&mut self, line: &str) {
        let mut words = line.split_whitespace();
        match words.next() {
            Some("!data" | "!contents") => {
                self.fields = words
                    .map(|w| names::canonical(w.trim_matches(['\'', '"'])).to_owned())
                    .collect();
            }
            Some("!proto") => {
                if let Some(number) = words.next().and_then(proto) {
                    self.protocol = number;
                }
            }
            _ => {}
        }
    }

    /// A line as a packet; none if a value is none of its field.
    #[must_use]
    pub fn packet(&self, line: &str) -> Option<Packet> {
        let mut draft = Draft {
            protocol: self.protocol,
            ttl: 100,
            ..Draft::default()
        };
        let values = split(line);
        for (field, value) in self.fields.iter().zip(&values) {
            if value != "-" {
                draft.set(field, value)?;
            }
        }
        let mut packet = draft.packet(self.checksum);
        const ANNOTATIONS: [&str; 8] = [
            "timestamp",
            "ts_sec",
            "ts_usec",
            "link",
            "direction",
            "aggregate",
            "number",
            "count",
        ];
        if self
            .fields
            .iter()
            .all(|f| ANNOTATIONS.contains(&f.as_str()))
        {
            // Nothing says that it is an IP packet.
            packet.truncate(0);
            packet.unmark();
        }
        Some(packet)
    }
}

fn proto(word: &str) -> Option<u8> {
    match word {
        "T" => Some(6),
        "U" => Some(17),
        "I" => Some(1),
        word => match protocol(word) {
            Some(number) => Some(number),
            None => u8::try_from(integer(word)?).ok(),
        },
    }
}

/// Words of a line; one in double quotes may hold blanks.
fn split(line: &str) -> Vec<String> {
    let mut out = Vec::new();
    let mut rest = line.trim_start();
    while !rest.is_empty() && !rest.starts_with('#') {
        let mut end = 0;
        let mut quoted = false;
        let mut escaped = false;
        for c in rest.chars() {
            if c.is_whitespace() && !quoted {
                break;
            }
            if c == '"' && !escaped {
                quoted = !quoted;
            }
            escaped = c == '\\' && !escaped;
            end += c.len_utf8();
        }
        out.push(rest[..end].to_owned());
        rest = rest[end..].trim_start();
    }
    out
}

fn number<T: TryFrom<i64>>(value: &str) -> Option<T> {
    T::try_from(integer(value)?).ok()
}

impl Draft {
    fn set(&mut self, field: &str, value: &str) -> Option<()> {
        let address = |value: &str| arguments::ip(value, &Names::default());
        match field {
            "timestamp" => self.time = decimal(value, SECOND)?,
            "ts_sec" | "ts_sec1" => {
                let more = integer(value)?.checked_mul(SECOND)?;
                self.time = self.time.checked_add(more)?;
            }
            "ts_usec" => {
                let more = integer(value)?.checked_mul(1000)?;
                self.time = self.time.checked_add(more)?;
            }
            "ip_src" => self.source = address(value)?,
            "ip_dst" => self.destination = address(value)?,
            "sport" => self.ports.0 = number(value)?,
            "dport" => self.ports.1 = number(value)?,
            "ip_proto" => self.protocol = proto(value)?,
            "ip_len" => self.length = Some(number(value)?),
            "ip_hl" => self.header = Some(number::<usize>(value)?.min(60)),
            "ip_opt" => {
                self.ip_options = if value == "." {
                    Vec::new()
                } else {
                    return None;
                }
            }
            "tcp_off" => self.offset = Some(number::<usize>(value)?.min(60)),
            "tcp_flags" => self.flags = flags(value)?,
            "tcp_seq" => self.sequence = number(value)?,
            "tcp_ack" => self.acknowledgment = number(value)?,
            "tcp_win" => self.window = number(value)?,
            "tcp_urp" => self.urgent = number(value)?,
            "tcp_opt" => self.tcp_options = options::read(value)?,
            "payload" => self.payload = crate::language::args::unquote(value),
            "payload_len" => self.payload_length = Some(number(value)?),
            "link" => self.paint = number(value)?,
            "direction" => {
                self.paint = match value {
                    ">" | "L" => 0,
                    "<" | "R" => 1,
                    other => number(other)?,
                }
            }
            "aggregate" => self.aggregate = number(value)?,
            "number" => self.number = number(value)?,
            "ip_tos" => self.service = number(value)?,
            "ip_dscp" => self.service = self.service & 3 | number::<u8>(value)? << 2,
            "ip_ecn" => {
                self.service = self.service & !3
                    | match value {
                        "no" => 0,
                        "ect1" => 1,
                        "ect2" => 2,
                        "ce" => 3,
                        other => number(other)?,
                    }
            }
            "ip_ttl" => self.ttl = number(value)?,
            "ip_id" => self.id = number(value)?,
            "ip_fragoff" => {
                let (offset, more) = match value.strip_suffix('+') {
                    Some(offset) => (offset, ipv4::MORE),
                    None => (value, 0),
                };
                self.fragment = self.fragment & !ipv4::OFFSET | number::<u16>(offset)? >> 3 | more;
            }
            "ip_frag" => match value {
                "F" => self.fragment |= ipv4::MORE,
                "f" => self.fragment |= 100,
                "." | "!" => {}
                _ => return None,
            },
            "icmp_type" | "icmp_type_name" => {
                let named = names::ICMP_TYPES.iter().find(|t| t.0 == value);
                self.icmp.0 = match named {
                    Some(found) => found.1,
                    None => number(value)?,
                };
            }
            "icmp_code" | "icmp_code_name" => self.icmp.1 = number(value)?,
            "icmp_flowid" => self.icmp_id = number(value)?,
            "icmp_seq" => self.icmp_sequence = number(value)?,
            "eth_src" | "eth_dst" => {
                let address = arguments::plain_ethernet(value)?;
                let at = if field == "eth_src" { 6 } else { 0 };
                let header = self.ethernet.get_or_insert([0; 14]);
                header.get_mut(at..at + 6)?.copy_from_slice(&address);
                header[12] = 8;
            }
            // What has no place in a packet is read over.
            _ => {}
        }
        Some(())
    }

    fn upper(&self) -> Vec<u8> {
        match self.protocol {
            6 => {
                let least = tcp::HEADER + self.tcp_options.len();
                let length = self.offset.unwrap_or(least).max(least) / 4 * 4;
                let mut header = vec![0; length];
                put(&mut header, 0, self.ports.0);
                put(&mut header, 2, self.ports.1);
                header[4..8].copy_from_slice(&self.sequence.to_be_bytes());
                header[8..12].copy_from_slice(&self.acknowledgment.to_be_bytes());
                put(&mut header, 12, (length as u16 / 4) << 12 | self.flags);
                put(&mut header, 14, self.window);
                put(&mut header, 18, self.urgent);
                header[20..20 + self.tcp_options.len()].copy_from_slice(&self.tcp_options);
                header
            }
            17 => {
                let mut header = vec![0; 8];
                put(&mut header, 0, self.ports.0);
                put(&mut header, 2, self.ports.1);
                header
            }
            1 => {
                let mut header = vec![self.icmp.0, self.icmp.1, 0, 0, 0, 0, 0, 0];
                put(&mut header, 4, self.icmp_id);
                put(&mut header, 6, self.icmp_sequence);
                header
            }
            _ => Vec::new(),
        }
    }

    fn packet(&self, checksum: bool) -> Packet {
        let least = ipv4::HEADER + self.ip_options.len();
        let header = self.header.unwrap_or(least).max(least) / 4 * 4;
        let mut bytes = vec![0; header];
        bytes[0] = 0x40 | (header / 4) as u8;
        bytes[1] = self.service;
        put(&mut bytes, ipv4::ID, self.id);
        put(&mut bytes, ipv4::FRAGMENT, self.fragment);
        bytes[8] = self.ttl;
        bytes[ipv4::PROTOCOL] = self.protocol;
        bytes[ipv4::SOURCE].copy_from_slice(&self.source);
        bytes[ipv4::DESTINATION].copy_from_slice(&self.destination);
        if self.fragment & ipv4::OFFSET == 0 {
            bytes.extend(self.upper());
        }
        bytes.extend(&self.payload);
        let held = bytes.len() as u32;
        let length = match (self.length, self.payload_length) {
            (Some(length), _) => length,
            (None, Some(payload)) => (held - self.payload.len() as u32).saturating_add(payload),
            (None, None) => held,
        };
        put(&mut bytes, ipv4::LENGTH, length.min(65_535) as u16);
        bytes.truncate((length as usize).max(ipv4::HEADER.min(header)));
        if self.protocol == 17 && bytes.len() >= header + 8 {
            put(
                &mut bytes,
                header + 4,
                length.saturating_sub(header as u32) as u16,
            );
        }
        if checksum {
            fill(&mut bytes, header);
        }
        let front = self.ethernet.map_or(0, |_| 14);
        let mut packet = Packet::new(&bytes);
        if let Some(ethernet) = &self.ethernet {
            packet.prepend(ethernet);
            packet.mark_mac(0);
        }
        packet.mark(front, header);
        packet.missing = length.saturating_sub(held);
        packet.time = self.time;
        packet.anno[packet::PAINT] = self.paint;
        packet.set_quad(packet::AGGREGATE, self.aggregate.to_be_bytes());
        packet.set_quad(packet::NUMBER, self.number.to_be_bytes());
        packet.set_destination(self.destination);
        packet
    }
}

/// Flags from letters, or a number.
#[must_use]
pub fn flags(value: &str) -> Option<u16> {
    if value == "." {
        return Some(0);
    }
    if value.starts_with(|c: char| c.is_ascii_digit()) {
        return number::<u16>(value).map(|n| n & 0x1ff);
    }
    let mut flags = 0;
    for letter in value.bytes() {
        flags |= 1 << names::FLAGS.iter().position(|f| *f == letter)?;
    }
    Some(flags)
}

/// Fills in the checksums of an IPv4 packet whose header has some bytes.
pub fn fill(bytes: &mut [u8], header: usize) {
    put(bytes, ipv4::CHECKSUM, 0);
    let sum = Sum::default()
        .bytes(bytes.get(..header).unwrap_or(&[]))
        .checksum();
    put(bytes, ipv4::CHECKSUM, sum);
    let Some((head, upper)) = bytes.split_at_mut_checked(header) else {
        return;
    };
    let (Some(source), Some(destination)) = (head.get(ipv4::SOURCE), head.get(ipv4::DESTINATION))
    else {
        return;
    };
    let (place, udp) = match head.get(ipv4::PROTOCOL) {
        Some(6) => (16, false),
        Some(17) => (6, true),
        Some(1) => (2, false),
        _ => return,
    };
    if !put(upper, place, 0) {
        return;
    }
    let sum = Sum::default().bytes(upper);
    let length = upper.len() as u32;
    let sum = match place {
        2 => sum.checksum(),
        _ => {
            let number = if udp { 17 } else { 6 };
            Sum::pseudo(sum, source, destination, number, length).checksum()
        }
    };
    put(upper, place, if udp { nonzero(sum) } else { sum });
}
