//! The pcapng format: sections of blocks, each section with its own byte order and interfaces.
//!
//! Enhanced, simple and the obsolete packet blocks carry packets; all other blocks but section headers
//! and interface descriptions are stepped over, whatever their length. Block bodies are decoded by
//! `pcap-parser`; framing, time and the obsolete packet block are done here.

use pcap_parser::pcapng::{
    InterfaceDescriptionBlock, OptionCode, parse_enhancedpacketblock_be,
    parse_enhancedpacketblock_le, parse_interfacedescriptionblock_be,
    parse_interfacedescriptionblock_le, parse_sectionheaderblock, parse_simplepacketblock_be,
    parse_simplepacketblock_le,
};

use super::source::Source;
use super::{ETHERNET, Head, Interface, MAX_PACKET, Problem};

const SECTION_HEADER: u32 = 0x0a0d_0d0a;
const INTERFACE_DESCRIPTION: u32 = 1;
const PACKET: u32 = 2;
const SIMPLE_PACKET: u32 = 3;
const ENHANCED_PACKET: u32 = 6;

/// Room in a block for headers and options beside the packet.
const MAX_BLOCK: usize = MAX_PACKET + 128 * 1024;

/// Interfaces that are kept for one capture, over all its sections.
const MAX_INTERFACES: usize = 65_536;

/// Bytes of an interface's name that are kept.
const MAX_NAME: usize = 256;

const NS_PER_S: i128 = 1_000_000_000;

/// How an interface of the current section stamps its packets.
struct Clock {
    /// `if_tsresol`: a power of ten, or of two where the highest bit is set, that divides the second.
    resolution: u8,
    /// `if_tsoffset`, seconds to add.
    offset_s: i64,
    link_type: u32,
    /// The longest packet it captures; 0: no limit.
    snap_length: u32,
}

impl Clock {
    /// Nanoseconds since 1970, never negative and within the range of i64: to programs time is a signed number.
    fn ns(&self, ticks: u64) -> u64 {
        let exponent = u32::from(self.resolution & 0x7f);
        let ticks = i128::from(ticks);
        let ns = if self.resolution & 0x80 != 0 {
            // ticks < 2^64 and 10^9 < 2^30: the product has at most 94 bits.
            (ticks * NS_PER_S) >> exponent
        } else if exponent <= 9 {
            ticks * 10_i128.pow(9 - exponent)
        } else {
            // Beyond 10^38, which no i128 holds, every u64 of ticks is less than a nanosecond.
            10_i128
                .checked_pow(exponent - 9)
                .map_or(0, |unit| ticks / unit)
        };
        let ns = ns + i128::from(self.offset_s) * NS_PER_S;
        ns.clamp(0, i128::from(i64::MAX)) as u64
    }
}

#[derive(Default)]
pub(super) struct Pcapng {
    big_endian: bool,
    /// The current section's interfaces.
    clocks: Vec<Clock>,
    /// Interfaces of the sections before.
    before: usize,
    last_ns: u64,
}

impl Pcapng {
    pub(super) fn recognises(magic: [u8; 4]) -> bool {
        u32::from_le_bytes(magic) == SECTION_HEADER
    }

    /// Finds the next packet, describing to `interfaces` those met on the way; none at the end of the file.
    pub(super) fn advance(
        &mut self,
        source: &mut Source,
        interfaces: &mut Vec<Interface>,
    ) -> Result<Option<Head>, Problem> {
        // The rest of a block that was not all there when it was stepped over.
        let missing = source.pay().map_err(Problem::Read)?;
        if missing > 0 {
            return Err(Problem::Truncated {
                needed: missing,
                there: 0,
            });
        }
        loop {
            let there = source.fill(12).map_err(Problem::Read)?;
            if there == 0 {
                return Ok(None);
            }
            let truncated = |needed: usize, there: usize| Problem::Truncated {
                needed: needed as u64,
                there: there as u64,
            };
            let (Some(kind), Some(length), Some(order)) = (
                self.word(source, 0),
                self.word(source, 4),
                self.word(source, 8),
            ) else {
                return Err(truncated(12, there));
            };
            // A section header's kind reads the same in both orders; what follows may turn the order round.
            let length = if kind == SECTION_HEADER {
                self.big_endian ^= match order {
                    0x1a2b_3c4d => false,
                    0x4d3c_2b1a => true,
                    _ => return Err(Problem::Damaged("a section header without its byte order")),
                };
                self.word(source, 4).unwrap_or(length)
            } else {
                length
            };
            if length < 12 || length % 4 != 0 {
                return Err(Problem::Damaged(
                    "a block's length is below 12 or no multiple of 4",
                ));
            }
            if !matches!(
                kind,
                SECTION_HEADER | INTERFACE_DESCRIPTION | PACKET | SIMPLE_PACKET | ENHANCED_PACKET
            ) {
                let missing = source.skip(u64::from(length)).map_err(Problem::Read)?;
                if missing > 0 {
                    return Err(Problem::Truncated {
                        needed: u64::from(length),
                        there: u64::from(length) - missing,
                    });
                }
                continue;
            }
            let length = length as usize;
            if length > MAX_BLOCK {
                return Err(Problem::TooLarge {
                    what: "a block",
                    length: length as u64,
                    limit: MAX_BLOCK as u64,
                });
            }
            let there = source.fill(length).map_err(Problem::Read)?;
            if there < length {
                return Err(truncated(length, there));
            }
            if self.word(source, length - 4) != Some(length as u32) {
                return Err(Problem::Damaged("a block's two lengths differ"));
            }
            match kind {
                SECTION_HEADER => {
                    if parse_sectionheaderblock(source.bytes()).is_err() {
                        return Err(Problem::Damaged("a section header that cannot be decoded"));
                    }
                    self.before += self.clocks.len();
                    self.clocks.clear();
                }
                INTERFACE_DESCRIPTION => self.describe(source.bytes(), interfaces)?,
                _ => return self.packet(kind, source, length).map(Some),
            }
            source.consume(length);
        }
    }

    /// The 32-bit number at `at` in the section's byte order.
    fn word(&self, source: &Source, at: usize) -> Option<u32> {
        let bytes = *source.bytes().get(at..)?.first_chunk::<4>()?;
        Some(if self.big_endian {
            u32::from_be_bytes(bytes)
        } else {
            u32::from_le_bytes(bytes)
        })
    }

    fn describe(&mut self, bytes: &[u8], interfaces: &mut Vec<Interface>) -> Result<(), Problem> {
        if interfaces.len() >= MAX_INTERFACES {
            return Err(Problem::TooManyInterfaces(MAX_INTERFACES));
        }
        let parsed = if self.big_endian {
            parse_interfacedescriptionblock_be(bytes)
        } else {
            parse_interfacedescriptionblock_le(bytes)
        };
        let Ok((_, block)) = parsed else {
            return Err(Problem::Damaged(
                "an interface description that cannot be decoded",
            ));
        };
        // A link type has 16 bits here.
        let link_type = block.linktype.0.cast_unsigned() & 0xffff;
        // The crate reads the offset in little endian whatever the section says, hence the option itself.
        let offset_s = option(&block, OptionCode::IfTsoffset)
            .and_then(|value| value.first_chunk::<8>())
            .map_or(0, |value| {
                if self.big_endian {
                    i64::from_be_bytes(*value)
                } else {
                    i64::from_le_bytes(*value)
                }
            });
        let name = option(&block, OptionCode::IfName).map(|name| {
            let name = name.get(..MAX_NAME).unwrap_or(name);
            String::from_utf8_lossy(name)
                .trim_end_matches('\0')
                .to_owned()
        });
        let resolution = option(&block, OptionCode::IfTsresol)
            .and_then(|value| value.first().copied())
            .unwrap_or(6);
        self.clocks.push(Clock {
            resolution,
            offset_s,
            link_type,
            snap_length: block.snaplen,
        });
        interfaces.push(Interface { name, link_type });
        Ok(())
    }

    /// Decodes the packet block of `length` bytes at the front of the source.
    fn packet(&mut self, kind: u32, source: &Source, length: usize) -> Result<Head, Problem> {
        let bytes = source.bytes();
        let damaged = Problem::Damaged("a packet block that is too short for its packet");
        // In each kind: the interface, the stamp in ticks, both lengths, and where the data begins.
        let (interface, ticks, captured, original, start) = match kind {
            ENHANCED_PACKET => {
                let parsed = if self.big_endian {
                    parse_enhancedpacketblock_be(bytes)
                } else {
                    parse_enhancedpacketblock_le(bytes)
                };
                let Ok((_, block)) = parsed else {
                    return Err(damaged);
                };
                let ticks = u64::from(block.ts_high) << 32 | u64::from(block.ts_low);
                (block.if_id, Some(ticks), block.caplen, block.origlen, 28)
            }
            SIMPLE_PACKET => {
                let parsed = if self.big_endian {
                    parse_simplepacketblock_be(bytes)
                } else {
                    parse_simplepacketblock_le(bytes)
                };
                let Ok((_, block)) = parsed else {
                    return Err(damaged);
                };
                let limit = self.clocks.first().map_or(0, |clock| clock.snap_length);
                let captured = if limit == 0 {
                    block.origlen
                } else {
                    block.origlen.min(limit)
                };
                (0, None, captured, block.origlen, 12)
            }
            _ => {
                let word = |at| self.word(source, at).unwrap_or(0);
                if length < 32 {
                    return Err(damaged);
                }
                // Two 16-bit fields share the first word; the interface comes first in the file.
                let first = word(8);
                let interface = if self.big_endian {
                    first >> 16
                } else {
                    first & 0xffff
                };
                let ticks = u64::from(word(12)) << 32 | u64::from(word(16));
                (interface, Some(ticks), word(20), word(24), 28)
            }
        };
        let Some(clock) = self.clocks.get(interface as usize) else {
            return Err(Problem::UnknownInterface(interface));
        };
        if clock.link_type != ETHERNET {
            return Err(Problem::LinkType(clock.link_type));
        }
        let captured = captured as usize;
        if captured > MAX_PACKET {
            return Err(Problem::TooLarge {
                what: "a packet",
                length: captured as u64,
                limit: MAX_PACKET as u64,
            });
        }
        // Four bytes at the end are the block's second length.
        if start + captured + 4 > length {
            return Err(damaged);
        }
        if let Some(ticks) = ticks {
            self.last_ns = clock.ns(ticks);
        }
        Ok(Head {
            time_ns: self.last_ns,
            original_length: original,
            interface: (self.before as u64 + u64::from(interface)) as u32,
            data: start..start + captured,
            length,
        })
    }
}

/// The value of a block's first option of that code, without padding.
fn option<'a>(block: &'a InterfaceDescriptionBlock<'_>, code: OptionCode) -> Option<&'a [u8]> {
    let option = block.options.iter().find(|option| option.code == code)?;
    option.value.get(..usize::from(option.len))
}
