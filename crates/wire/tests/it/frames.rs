//! Frames to walk: those of the bundled captures, and made ones.

use std::path::Path;

use etherparse::PacketBuilder;
use pcap_parser::traits::PcapReaderIterator;
use pcap_parser::{LegacyPcapReader, PcapBlockOwned};

/// Frames of every capture in `captures/`.
pub fn captured() -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../captures");
    let mut frames = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|e| e == "pcap") {
            read(&path, &mut frames);
        }
    }
    assert!(frames.len() > 100, "{} frames", frames.len());
    frames
}

fn read(path: &Path, frames: &mut Vec<Vec<u8>>) {
    let mut reader = LegacyPcapReader::new(1 << 16, std::fs::File::open(path).unwrap()).unwrap();
    loop {
        match reader.next() {
            Ok((offset, block)) => {
                if let PcapBlockOwned::Legacy(packet) = block {
                    frames.push(packet.data.to_vec());
                }
                reader.consume(offset);
            }
            Err(pcap_parser::PcapError::Incomplete(_)) => reader.refill().unwrap(),
            Err(pcap_parser::PcapError::Eof) => return,
            Err(e) => panic!("{}: {e:?}", path.display()),
        }
    }
}

/// UDP over IPv4, with right checksums and lengths.
pub fn udp4() -> Vec<u8> {
    let mut frame = Vec::new();
    PacketBuilder::ethernet2([2; 6], [4; 6])
        .ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64)
        .udp(1000, 53)
        .write(&mut frame, b"payload!")
        .unwrap();
    frame
}

/// TCP over IPv4.
pub fn tcp4() -> Vec<u8> {
    let mut frame = Vec::new();
    PacketBuilder::ethernet2([2; 6], [4; 6])
        .ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64)
        .tcp(1000, 80, 1, 1024)
        .write(&mut frame, b"payload!")
        .unwrap();
    frame
}

/// UDP over IPv6 behind these extension headers: their numbers; with a first fragment's header where 44 is said.
pub fn extended(numbers: &[u8]) -> Vec<u8> {
    let mut chain = Vec::new();
    for (i, number) in numbers.iter().enumerate() {
        let next = numbers.get(i + 1).copied().unwrap_or(17);
        // Twelve bytes of authentication data make 16 with the rest, a multiple of 8.
        match number {
            51 => chain.extend([next, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]),
            44 => chain.extend([next, 0, 0, 1, 0, 0, 0, 9]),
            _ => chain.extend([next, 0, 1, 4, 0, 0, 0, 0]),
        }
    }
    chain.extend([3, 232, 0, 53, 0, 16, 0, 0]);
    chain.extend(b"payload!");
    let mut frame = vec![2; 12];
    frame.extend([0x86, 0xdd, 0x60, 0, 0, 0]);
    frame.extend((chain.len() as u16).to_be_bytes());
    frame.extend([numbers.first().copied().unwrap_or(17), 64]);
    frame.extend([0x20; 32]);
    frame.extend(chain);
    frame
}

/// The frame with tags of these EtherTypes.
pub fn tagged(frame: &[u8], tags: &[u16]) -> Vec<u8> {
    let mut longer = frame[..12].to_vec();
    for tag in tags {
        longer.extend(tag.to_be_bytes());
        longer.extend([0, 7]);
    }
    longer.extend(&frame[12..]);
    longer
}

/// An ICMP error (destination unreachable) of IPv4 or IPv6 about a frame's packet.
pub fn error_about(frame: &[u8]) -> Vec<u8> {
    let body = &frame[14..];
    let mut error = Vec::new();
    if frame[12..14] == [8, 0] {
        let kind = etherparse::icmpv4::DestUnreachableHeader::Host;
        PacketBuilder::ethernet2([2; 6], [4; 6])
            .ipv4([10, 0, 0, 9], [10, 0, 0, 1], 64)
            .icmpv4(etherparse::Icmpv4Type::DestinationUnreachable(kind))
            .write(&mut error, body)
            .unwrap();
    } else {
        let code = etherparse::icmpv6::DestUnreachableCode::Address;
        PacketBuilder::ethernet2([2; 6], [4; 6])
            .ipv6([3; 16], [0x20; 16], 64)
            .icmpv6(etherparse::Icmpv6Type::DestinationUnreachable(code))
            .write(&mut error, body)
            .unwrap();
    }
    error
}

/// One frame of each kind that the walk tells apart.
pub fn kinds() -> Vec<Vec<u8>> {
    let mut all = vec![
        udp4(),
        tcp4(),
        extended(&[]),
        extended(&[0, 43, 44, 51, 60]),
    ];
    all.push(error_about(&udp4()));
    all.push(error_about(&extended(&[60])));
    all.push(error_about(&error_about(&tcp4())));
    let tags = all.clone();
    all.extend(tags.iter().map(|f| tagged(f, &[0x88a8, 0x8100])));
    all.extend(tags.iter().map(|f| tagged(f, &[0x9100, 0x8100, 0x8100])));
    all
}

/// Numbers that look like chance and are the same each time (Marsaglia, "Xorshift RNGs", 2003).
pub struct Chance(pub u64);

impl Chance {
    pub fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 16) as usize % n.max(1)
    }

    /// Changes up to three of the first 110 bytes, mostly to what headers hold, and cuts one frame in four.
    pub fn damage(&mut self, frame: &mut Vec<u8>) {
        const LIKELY: [u8; 14] = [0, 1, 4, 6, 17, 44, 51, 58, 60, 0x81, 0x88, 0x45, 0x60, 0x4f];
        for _ in 0..self.below(4) {
            let at = self.below(frame.len().min(110));
            let (how, any, likely) = (self.below(3), self.below(256) as u8, self.below(14));
            if let Some(byte) = frame.get_mut(at) {
                *byte = match how {
                    0 => any,
                    1 => *byte ^ (1 << (any & 7)),
                    _ => LIKELY[likely],
                };
            }
        }
        if self.below(4) == 0 {
            let length = self.below(frame.len() + 1);
            frame.truncate(length);
        }
    }
}
