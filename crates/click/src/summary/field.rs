//! Fields of a packet as text.

use millrace_wire::ethernet::IPV4;
use millrace_wire::{ipv4, word};

use super::{names, options};
use crate::arguments::{SECOND, dots};
use crate::packet::{self, Packet};

/// A time stamp with six digits.
#[must_use]
pub fn time(time: i64) -> String {
    let sign = if time < 0 { "-" } else { "" };
    let time = time.unsigned_abs();
    let micro = time / 1000 % 1_000_000;
    format!("{sign}{}.{micro:06}", time / SECOND as u64)
}

/// Bytes in double quotes, with escapes as C has them.
#[must_use]
pub fn quoted(bytes: &[u8]) -> String {
    let mut out = String::from("\"");
    for b in bytes {
        match b {
            b'"' | b'\\' => out.extend(['\\', *b as char]),
            b'\n' => out.push_str("\\n"),
            b'\t' => out.push_str("\\t"),
            b'\r' => out.push_str("\\r"),
            32..=126 => out.push(*b as char),
            b => out.push_str(&format!("\\{b:03o}")),
        }
    }
    out.push('"');
    out
}

/// The IPv4 packet at the network header: its bytes as far as it says that they go, and those of its header.
struct Ip<'a> {
    bytes: &'a [u8],
    header: usize,
}

impl<'a> Ip<'a> {
    fn of(packet: &'a Packet) -> Option<Self> {
        let bytes = packet.ip()?;
        let first = *bytes.first()?;
        if first >> 4 != 4 || bytes.len() < ipv4::HEADER {
            return None;
        }
        let header = ipv4::header_bytes(first).max(ipv4::HEADER);
        Some(Self { bytes, header })
    }

    fn word(&self, at: usize) -> Option<u16> {
        word(self.bytes, at)
    }

    /// The transport header of a first fragment with one of the protocols.
    fn upper(&self, protocols: &[u8]) -> Option<&'a [u8]> {
        let first = self.word(ipv4::FRAGMENT)? & ipv4::OFFSET == 0;
        let known = protocols.contains(self.bytes.get(ipv4::PROTOCOL)?);
        (first && known).then(|| self.bytes.get(self.header..))?
    }

    fn double(&self, protocols: &[u8], at: usize) -> Option<u32> {
        let four = self.upper(protocols)?.get(at..at + 4)?;
        Some(u32::from_be_bytes(four.try_into().ok()?))
    }

    /// What is behind the transport header.
    fn payload(&self) -> Option<&'a [u8]> {
        let length = usize::from(self.word(ipv4::LENGTH)?);
        let end = self.bytes.len().min(length.max(self.header));
        let more = match self.bytes.get(ipv4::PROTOCOL)? {
            _ if self.word(ipv4::FRAGMENT)? & ipv4::OFFSET != 0 => 0,
            6 => usize::from(self.bytes.get(self.header + 12)? >> 4) * 4,
            17 => 8,
            1 => 8,
            _ => 0,
        };
        self.bytes.get((self.header + more).min(end)..end)
    }
}

/// A field's text; none where the packet does not have it.
#[must_use]
pub fn show(field: &str, packet: &Packet) -> Option<String> {
    const PORTS: [u8; 2] = [6, 17];
    let ip = Ip::of(packet);
    let text = match field {
        "timestamp" => time(packet.time),
        "ntimestamp" => format!("{}.{:09}", packet.time / SECOND, packet.time % SECOND),
        "first_timestamp" => time(packet.first_time),
        "ts_sec" => (packet.time / SECOND).to_string(),
        "ts_usec" => (packet.time % SECOND / 1000).to_string(),
        "link" => packet.anno[packet::PAINT].to_string(),
        "direction" => match packet.anno[packet::PAINT] {
            0 => ">".into(),
            1 => "<".into(),
            other => other.to_string(),
        },
        "aggregate" => u32::from_be_bytes(packet.quad(packet::AGGREGATE)).to_string(),
        "number" => u32::from_be_bytes(packet.quad(packet::NUMBER)).to_string(),
        "count" => "1".into(),
        "thread" => "0".into(),
        "wire_len" => (packet.len() as u64 + u64::from(packet.missing)).to_string(),
        "eth_src" | "eth_dst" | "eth_type" => {
            let at = usize::try_from(packet.mac().unwrap_or(0)).ok()?;
            let header = packet.data().get(at..at + 14)?;
            let address = |b: &[u8]| {
                b.iter()
                    .map(|b| format!("{b:02X}"))
                    .collect::<Vec<_>>()
                    .join("-")
            };
            match field {
                "eth_dst" => address(&header[..6]),
                "eth_src" => address(&header[6..12]),
                _ => format!("{:04x}", word(header, 12).unwrap_or(IPV4)),
            }
        }
        "ip_src" => dots(ip?.bytes.get(ipv4::SOURCE)?.try_into().ok()?),
        "ip_dst" => dots(ip?.bytes.get(ipv4::DESTINATION)?.try_into().ok()?),
        "ip_proto" => match ip?.bytes.get(ipv4::PROTOCOL)? {
            6 => "T".into(),
            17 => "U".into(),
            1 => "I".into(),
            other => other.to_string(),
        },
        "ip_len" => {
            let ip = ip?;
            ip.word(ipv4::LENGTH)?.to_string()
        }
        "ip_capture_len" => {
            let ip = ip?;
            ip.bytes
                .len()
                .min(usize::from(ip.word(ipv4::LENGTH)?))
                .to_string()
        }
        "ip_hl" => ip?.header.to_string(),
        "ip_tos" => ip?.bytes.get(1)?.to_string(),
        "ip_dscp" => (ip?.bytes.get(1)? >> 2).to_string(),
        "ip_ecn" => ["no", "ect1", "ect2", "ce"][usize::from(ip?.bytes.get(1)? & 3)].into(),
        "ip_ttl" => ip?.bytes.get(8)?.to_string(),
        "ip_id" => ip?.word(ipv4::ID)?.to_string(),
        "ip_sum" => ip?.word(ipv4::CHECKSUM)?.to_string(),
        "ip_frag" => {
            let fragment = ip?.word(ipv4::FRAGMENT)?;
            match (fragment & ipv4::OFFSET, fragment & ipv4::MORE) {
                (0, 0) if fragment & 0x4000 != 0 => "!".into(),
                (0, 0) => ".".into(),
                (0, _) => "F".into(),
                _ => "f".into(),
            }
        }
        "ip_fragoff" => {
            let fragment = ip?.word(ipv4::FRAGMENT)?;
            let more = if fragment & ipv4::MORE != 0 { "+" } else { "" };
            format!("{}{more}", (fragment & ipv4::OFFSET) << 3)
        }
        "ip_opt" => {
            let ip = ip?;
            match ip.header {
                ipv4::HEADER => ".".into(),
                header => quoted(ip.bytes.get(ipv4::HEADER..header)?),
            }
        }
        "sport" => word(ip?.upper(&PORTS)?, 0)?.to_string(),
        "dport" => word(ip?.upper(&PORTS)?, 2)?.to_string(),
        "tcp_seq" => ip?.double(&[6], 4)?.to_string(),
        "tcp_ack" => ip?.double(&[6], 8)?.to_string(),
        "tcp_off" => (u32::from(ip?.upper(&[6])?.get(12)? >> 4) * 4).to_string(),
        "tcp_flags" => flags(word(ip?.upper(&[6])?, 12)?),
        "tcp_win" => word(ip?.upper(&[6])?, 14)?.to_string(),
        "tcp_sum" => word(ip?.upper(&[6])?, 16)?.to_string(),
        "tcp_urp" => word(ip?.upper(&[6])?, 18)?.to_string(),
        "tcp_opt" => {
            let upper = ip?.upper(&[6])?;
            let length = usize::from(upper.get(12)? >> 4) * 4;
            options::show(upper.get(20..length.max(20))?)
        }
        "udp_len" => word(ip?.upper(&[17])?, 4)?.to_string(),
        "icmp_type" => ip?.upper(&[1])?.first()?.to_string(),
        "icmp_type_name" => names::icmp(*ip?.upper(&[1])?.first()?),
        "icmp_code" | "icmp_code_name" => ip?.upper(&[1])?.get(1)?.to_string(),
        "icmp_flowid" => word(ip?.upper(&[1])?, 4)?.to_string(),
        "icmp_seq" => word(ip?.upper(&[1])?, 6)?.to_string(),
        "payload" => quoted(ip?.payload()?),
        "payload_len" => {
            let held = ip?.payload()?.len() as u64;
            (held + u64::from(packet.missing)).to_string()
        }
        _ => return None,
    };
    Some(text)
}

/// The letters of the flags in the word with the data offset.
#[must_use]
pub fn flags(word: u16) -> String {
    let letters = names::FLAGS.iter().enumerate();
    let set = letters.filter(|(bit, _)| word >> bit & 1 != 0);
    let text: String = set.map(|(_, l)| *l as char).collect();
    if text.is_empty() { ".".into() } else { text }
}
