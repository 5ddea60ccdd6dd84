//! The pcap format: a header, then packets one after the other.
//!
//! Microsecond and nanosecond stamps, either byte order, and the "modified" variant of Alexey
//! Kuznetzov's patch, whose record headers are 8 bytes longer.

use pcap_parser::pcap::{
    LegacyPcapBlock, parse_pcap_frame, parse_pcap_frame_be, parse_pcap_frame_modified,
    parse_pcap_header,
};
use pcap_parser::{PcapError, nom};

use super::source::Source;
use super::{ETHERNET, Head, Interface, MAX_PACKET, Problem};

pub(super) const HEADER: usize = 24;

const NS_PER_S: u64 = 1_000_000_000;

type Frame = fn(&[u8]) -> nom::IResult<&[u8], LegacyPcapBlock<'_>, PcapError<&[u8]>>;

pub(super) struct Pcap {
    frame: Frame,
    big_endian: bool,
    /// Bytes before a packet's data.
    record_header: usize,
    /// Nanoseconds in a unit of the fraction.
    unit_ns: u64,
    link_type: u32,
}

impl Pcap {
    /// Whether a file that begins so is a pcap file.
    pub(super) fn recognises(magic: [u8; 4]) -> bool {
        matches!(
            u32::from_le_bytes(magic),
            0xa1b2_c3d4 | 0xa1b2_3c4d | 0xa1b2_cd34 | 0xd4c3_b2a1 | 0x4d3c_b2a1
        )
    }

    /// Reads the file header, which is at the front of the source.
    pub(super) fn open(source: &mut Source) -> Result<(Self, Interface), Problem> {
        let there = source.fill(HEADER).map_err(Problem::Read)?;
        let Ok((_, header)) = parse_pcap_header(source.bytes()) else {
            return Err(Problem::Truncated {
                needed: HEADER as u64,
                there: there as u64,
            });
        };
        let (frame, record_header): (Frame, usize) = if header.is_modified_format() {
            (parse_pcap_frame_modified, 24)
        } else if header.is_bigendian() {
            (parse_pcap_frame_be, 16)
        } else {
            (parse_pcap_frame, 16)
        };
        // Above the link type stand the length of a frame check sequence and two flags.
        let link_type = header.network.0.cast_unsigned() & 0x03ff_ffff;
        source.consume(HEADER);
        let pcap = Self {
            frame,
            big_endian: header.is_bigendian(),
            record_header,
            unit_ns: if header.is_nanosecond_precision() {
                1
            } else {
                1000
            },
            link_type,
        };
        Ok((
            pcap,
            Interface {
                name: None,
                link_type,
            },
        ))
    }

    /// Finds the record at the front of the source; none at the end of the file.
    pub(super) fn advance(&mut self, source: &mut Source) -> Result<Option<Head>, Problem> {
        let there = source.fill(self.record_header).map_err(Problem::Read)?;
        if there == 0 {
            return Ok(None);
        }
        let truncated = |needed: usize, there: usize| Problem::Truncated {
            needed: needed as u64,
            there: there as u64,
        };
        let Some(&[a, b, c, d]) = source.bytes().get(8..12) else {
            return Err(truncated(self.record_header, there));
        };
        let captured = if self.big_endian {
            u32::from_be_bytes([a, b, c, d])
        } else {
            u32::from_le_bytes([a, b, c, d])
        } as usize;
        if captured > MAX_PACKET {
            return Err(Problem::TooLarge {
                what: "a packet",
                length: captured as u64,
                limit: MAX_PACKET as u64,
            });
        }
        if self.link_type != ETHERNET {
            return Err(Problem::LinkType(self.link_type));
        }
        let length = self.record_header + captured;
        let there = source.fill(length).map_err(Problem::Read)?;
        let Ok((_, block)) = (self.frame)(source.bytes()) else {
            return Err(truncated(length, there));
        };
        let time_ns = u64::from(block.ts_sec) * NS_PER_S + u64::from(block.ts_usec) * self.unit_ns;
        Ok(Some(Head {
            time_ns,
            original_length: block.origlen,
            interface: 0,
            data: self.record_header..length,
            length,
        }))
    }
}
