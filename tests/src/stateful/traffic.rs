//! Packets drawn from a seed: a few hosts and ports, so that flows share parts of their keys, in both directions, with
//! odd packets between them.

use rand::{Rng, RngExt};

/// A packet that comes in.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Packet {
    /// ns
    pub stamp: u64,
    /// 0 or 1
    pub port: u32,
    /// the frame
    pub bytes: Vec<u8>,
}

/// When the first packet comes, ns.
const BEGIN: u64 = (1_700_000_000_000_000_000 / UNIT) * UNIT;

/// What stamps are multiples of, ns.
const UNIT: u64 = 1024;

/// What packets a program gets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Traffic {
    /// those of flows, mostly
    Mixed,
    /// those of port 1 come from addresses and ports that nobody sends to
    Strangers,
    /// half of them are odd
    Odd,
}

/// One flow: addresses, ports, protocol, and whether it is of IPv6.
#[derive(Clone, Copy)]
struct Flow {
    inside: u8,
    outside: u8,
    sport: u16,
    dport: u16,
    protocol: u8,
    six: bool,
}

const TCP: u8 = 6;
const UDP: u8 = 17;
const ICMP: u8 = 1;

fn pick<T: Copy>(random: &mut impl Rng, of: &[T]) -> T {
    of[random.random_range(0..of.len())]
}

/// 200 to 900 packets; those of port 1 answer flows, or come from strangers.
pub fn packets(random: &mut impl Rng, kind: Traffic) -> Vec<Packet> {
    let count = pick(random, &[200, 300, 300, 450, 900]);
    let hosts = random.random_range(3..=12_u8);
    let flows: Vec<Flow> = (0..random.random_range(6..40))
        .map(|_| Flow {
            inside: random.random_range(1..=hosts),
            outside: random.random_range(1..=hosts),
            sport: pick(random, &[1000, 1001, 2000, 40000, 53]),
            dport: pick(random, &[53, 80, 443, 443, 5000]),
            protocol: pick(random, &[TCP, UDP, UDP, UDP, ICMP]),
            six: random.random_range(0..5) == 0,
        })
        .collect();
    // One in four traces has odd packets only now and then, one in four none.
    let odd = match pick(random, &[0, 40, 8, 8]) {
        _ if kind == Traffic::Odd => 2,
        one_in => one_in,
    };
    // Some traces have few packets to each moment, so that windows of time end.
    let slow = pick(random, &[1_u64, 1, 20]);
    let mut stamp = BEGIN;
    let mut all = Vec::new();
    for number in 0..count {
        stamp += UNIT
            * slow
            * match random.random_range(0..60) {
                0 => random.random_range(100_000..1_500_000),
                1..20 => random.random_range(500..20_000),
                _ => random.random_range(1..300),
            };
        // The first flows have most of the packets.
        let first = random.random_range(0..flows.len());
        let at = if random.random() { first / 4 } else { first };
        let Some(flow) = flows.get(at).copied() else {
            continue;
        };
        let back = random.random_range(0..3) == 0;
        let mut bytes = frame(random, flow, back, number);
        if kind == Traffic::Strangers && back && !flow.six {
            stranger(&mut bytes, number);
        }
        if odd > 0 && random.random_range(0..odd) == 0 {
            strange(random, &mut bytes);
        }
        all.push(Packet {
            stamp,
            port: u32::from(back),
            bytes,
        });
    }
    all
}

/// A frame of a flow, with the packet's number at its end.
fn frame(random: &mut impl Rng, flow: Flow, back: bool, number: u32) -> Vec<u8> {
    let (near, far) = (
        [10, 0, flow.inside % 2, flow.inside],
        [192, 0, 2, flow.outside],
    );
    let (src, dst) = if back { (far, near) } else { (near, far) };
    let (sport, dport) = if back {
        (flow.dport, flow.sport)
    } else {
        (flow.sport, flow.dport)
    };
    let mac = |last: u8| [2, 0, 0, 0, 0, last];
    let mut out = Vec::new();
    out.extend(mac(dst[3]));
    out.extend(mac(src[3]));
    let payload = random.random_range(8..40_usize);
    let mut l4 = Vec::new();
    match flow.protocol {
        TCP => {
            l4.extend(sport.to_be_bytes());
            l4.extend(dport.to_be_bytes());
            l4.extend(number.to_be_bytes());
            l4.extend([0; 4]);
            l4.extend([
                0x50,
                pick(random, &[0x02, 0x10, 0x18, 0x11]),
                1,
                0,
                0,
                0,
                0,
                0,
            ]);
        }
        UDP => {
            l4.extend(sport.to_be_bytes());
            l4.extend(dport.to_be_bytes());
            l4.extend((8 + payload as u16).to_be_bytes());
            let checksum: u16 = if random.random() { 0 } else { random.random() };
            l4.extend(checksum.to_be_bytes());
        }
        _ => {
            l4.extend([if back { 0 } else { 8 }, 0, 0, 0]);
            l4.extend(sport.to_be_bytes());
            l4.extend([0, 1]);
        }
    }
    l4.extend((0..payload - 4).map(|i| i as u8));
    l4.extend(number.to_be_bytes());
    if flow.six {
        out.extend([0x86, 0xdd, 0x60, 0, 0, 0]);
        out.extend((l4.len() as u16).to_be_bytes());
        let next = if flow.protocol == ICMP {
            58
        } else {
            flow.protocol
        };
        if next == 58
            && let Some(kind) = l4.first_mut()
        {
            *kind = if back { 129 } else { 128 };
        }
        out.extend([next, 64]);
        for address in [src, dst] {
            out.extend([0xfd, 0, 0, 0, 0, 0, 0, address[2], 0, 0, 0, 0]);
            out.extend(address);
        }
    } else {
        out.extend([8, 0]);
        let mut ip = vec![0x45, 0];
        ip.extend((20 + l4.len() as u16).to_be_bytes());
        ip.extend([0, number as u8, 0x40, 0]);
        ip.extend([pick(random, &[64, 63, 1]), flow.protocol, 0, 0]);
        ip.extend(src);
        ip.extend(dst);
        checksum(&mut ip);
        out.extend(ip);
    }
    out.extend(l4);
    out
}

/// Lets a packet of IPv4 come from an address and a port that nobody sends to, to a port of a range.
fn stranger(frame: &mut [u8], number: u32) {
    let mut put = |at: usize, bytes: &[u8]| {
        if let Some(there) = frame.get_mut(at..at + bytes.len()) {
            there.copy_from_slice(bytes);
        }
    };
    put(26, &[198, 51, 100]);
    put(34, &9999_u16.to_be_bytes());
    put(36, &(1000 + (number % 40) as u16).to_be_bytes());
    if let Some(header) = frame.get_mut(14..34) {
        checksum(header);
    }
}

/// Writes the checksum of an IPv4 header (RFC 1071).
fn checksum(header: &mut [u8]) {
    if let Some(field) = header.get_mut(10..12) {
        field.fill(0);
    }
    let words = header.chunks(2).map(|w| {
        let low = w.get(1).copied().unwrap_or(0);
        u32::from(w[0]) << 8 | u32::from(low)
    });
    let sum: u32 = words.sum();
    let sum = (sum & 0xffff) + (sum >> 16);
    let sum = (sum & 0xffff) + (sum >> 16);
    if let Some(field) = header.get_mut(10..12) {
        field.copy_from_slice(&(!(sum as u16)).to_be_bytes());
    }
}

/// Makes a frame odd in one way.
fn strange(random: &mut impl Rng, frame: &mut Vec<u8>) {
    let four = frame.get(12..14) == Some(&[8, 0]);
    let set = |frame: &mut Vec<u8>, at: usize, byte: u8| {
        if let Some(there) = frame.get_mut(at) {
            *there = byte;
        }
    };
    let header = |frame: &mut Vec<u8>| {
        let bytes = frame.get(14).map_or(20, |b| usize::from(b & 15) * 4);
        if let Some(header) = frame.get_mut(14..14 + bytes) {
            checksum(header);
        }
    };
    match random.random_range(0..12) {
        // Another version than the EtherType says.
        0 => set(frame, 14, pick(random, &[0x55, 0x65, 0x05, 0x46 ^ 0x20])),
        // A header that is longer, or shorter, than it can be.
        1 if four => set(frame, 14, pick(random, &[0x44, 0x40, 0x4f, 0x4a])),
        // Options.
        2 | 3 if four => {
            frame.splice(34..34, [1, 1, 1, 0]);
            set(frame, 14, 0x46);
            let length = (frame.len() - 14) as u16;
            frame.splice(16..18, length.to_be_bytes());
            header(frame);
        }
        // The first fragment, and a later one.
        4 if four => {
            set(frame, 20, 0x20);
            header(frame);
        }
        5 if four => {
            set(frame, 20, 0);
            set(frame, 21, 9);
            header(frame);
        }
        // An end that is missing.
        6 => {
            let keep = random.random_range(0..=frame.len().min(60));
            frame.truncate(keep);
        }
        // A VLAN tag.
        7 => drop(frame.splice(12..12, [0x81, 0, 0, random.random_range(1..4)])),
        // An ICMP error that carries another packet.
        8 if four => {
            let carried: Vec<u8> = frame.get(14..42).unwrap_or_default().to_vec();
            frame.truncate(34);
            set(frame, 23, ICMP);
            frame.extend([3, 3, 0, 0, 0, 0, 0, 0]);
            frame.extend(carried);
            frame.extend(random.random::<u32>().to_be_bytes());
            let length = (frame.len() - 14) as u16;
            frame.splice(16..18, length.to_be_bytes());
            header(frame);
        }
        // Another protocol.
        9 if four => {
            set(frame, 23, pick(random, &[2, 47, 50, 132]));
            header(frame);
        }
        // A hop-by-hop header.
        9 => {
            let next = frame.get(20).copied().unwrap_or(0);
            if frame.len() >= 54 {
                frame.splice(54..54, [next, 0, 1, 4, 0, 0, 0, 0]);
                let length = (frame.len() - 54) as u16;
                frame.splice(18..20, length.to_be_bytes());
                set(frame, 20, 0);
            }
        }
        // What is not IP.
        10 => {
            set(frame, 12, 8);
            set(frame, 13, 6);
        }
        // A wrong checksum.
        _ => set(frame, 24, 0x11),
    }
}

/// What tells flows apart, for the order that a run must keep: the port that a packet came in by, its addresses, ports
/// and protocol. None for packets that are not whole, well-formed TCP or UDP: what a NIC takes them for is its own
/// business. Packets with options of IPv4 are told from those without: where a program takes their ports from the usual
/// place, so does who steers them, and they come to another worker than the rest of the flow.
#[must_use]
pub fn flow(packet: &Packet) -> Option<Vec<u8>> {
    let b = &packet.bytes;
    let word = |at: usize| Some(usize::from(*b.get(at)?) << 8 | usize::from(*b.get(at + 1)?));
    let (addresses, transport, protocol, end) = match word(12)? {
        0x0800 => {
            let first = *b.get(14)?;
            let header = usize::from(first & 15) * 4;
            let whole = first >> 4 == 4 && header >= 20 && word(20)? & 0x3fff == 0;
            let end = word(16)?;
            (26..34, 14 + header, *b.get(23).filter(|_| whole)?, 14 + end)
        }
        0x86dd => {
            let end = 54 + word(18)?;
            let whole = b.get(14)? >> 4 == 6;
            (22..54, 54, *b.get(20).filter(|_| whole)?, end)
        }
        _ => return None,
    };
    let least = match protocol {
        TCP => 20,
        UDP => 8,
        _ => return None,
    };
    if end > b.len() || transport + least > end {
        return None;
    }
    let mut out = vec![packet.port as u8, protocol, *b.get(14)?];
    out.extend(b.get(addresses)?);
    out.extend(b.get(transport..transport + 4)?);
    Some(out)
}
