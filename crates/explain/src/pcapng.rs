//! One packet with an explanation as comments, as a capture that Wireshark and tshark show: pcapng
//! (draft-ietf-opsawg-pcapng), an enhanced packet block with `opt_comment`s.

const SECTION_HEADER: u32 = 0x0a0d_0d0a;
const INTERFACE: u32 = 1;
const ENHANCED_PACKET: u32 = 6;
const ORDER: u32 = 0x1a2b_3c4d;
const ETHERNET: u16 = 1;
const OPT_END: u16 = 0;
const OPT_COMMENT: u16 = 1;
const IF_NAME: u16 = 2;
const IF_TSRESOL: u16 = 9;
/// Stamps are 10^-9 s.
const NANOSECONDS: u8 = 9;
/// Most bytes of one comment: an option's length has 16 bits.
const LONGEST: usize = 0xfff0;

/// A packet and what is said of it.
#[derive(Clone, Debug)]
pub struct Comments<'c> {
    /// the name of its interface
    pub interface: &'c str,
    /// its time, ns since the epoch
    pub time: u64,
    /// its length on the wire, bytes
    pub wire: u32,
    /// its bytes
    pub frame: &'c [u8],
    /// the lines, each a comment
    pub lines: &'c [String],
}

/// The capture.
#[must_use]
pub fn write(packets: &[Comments<'_>]) -> Vec<u8> {
    let mut out = Vec::new();
    block(&mut out, SECTION_HEADER, |body| {
        body.extend(ORDER.to_le_bytes());
        body.extend([1, 0, 0, 0]);
        body.extend(u64::MAX.to_le_bytes());
    });
    let mut names: Vec<&str> = Vec::new();
    for packet in packets {
        let at = names.iter().position(|n| *n == packet.interface);
        let at = at.unwrap_or_else(|| {
            block(&mut out, INTERFACE, |body| {
                body.extend(ETHERNET.to_le_bytes());
                body.extend([0; 2]);
                body.extend(0_u32.to_le_bytes());
                option(body, IF_NAME, packet.interface.as_bytes());
                option(body, IF_TSRESOL, &[NANOSECONDS]);
                option(body, OPT_END, &[]);
            });
            names.push(packet.interface);
            names.len() - 1
        });
        block(&mut out, ENHANCED_PACKET, |body| {
            body.extend((at as u32).to_le_bytes());
            body.extend(((packet.time >> 32) as u32).to_le_bytes());
            body.extend((packet.time as u32).to_le_bytes());
            body.extend((packet.frame.len() as u32).to_le_bytes());
            body.extend(packet.wire.max(packet.frame.len() as u32).to_le_bytes());
            body.extend(packet.frame);
            pad(body);
            for line in packet.lines {
                option(body, OPT_COMMENT, line.as_bytes());
            }
            option(body, OPT_END, &[]);
        });
    }
    out
}

fn block(out: &mut Vec<u8>, kind: u32, fill: impl FnOnce(&mut Vec<u8>)) {
    let mut body = Vec::new();
    fill(&mut body);
    pad(&mut body);
    let length = (body.len() as u32 + 12).to_le_bytes();
    out.extend(kind.to_le_bytes());
    out.extend(length);
    out.extend(body);
    out.extend(length);
}

fn option(body: &mut Vec<u8>, code: u16, value: &[u8]) {
    // Of text no character is cut in two.
    let mut end = value.len().min(LONGEST);
    while end < value.len() && value.get(end).is_some_and(|b| b & 0xc0 == 0x80) {
        end -= 1;
    }
    let value = value.get(..end).unwrap_or_default();
    body.extend(code.to_le_bytes());
    body.extend((value.len() as u16).to_le_bytes());
    body.extend(value);
    pad(body);
}

fn pad(body: &mut Vec<u8>) {
    body.resize(body.len().next_multiple_of(4), 0);
}
