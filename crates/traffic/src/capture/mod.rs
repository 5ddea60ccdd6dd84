//! Capture files: pcap and pcapng, read from and written to anything that streams.
//!
//! [`Reader`] takes both formats, told apart by their first bytes; [`Merge`] interleaves several of
//! them by time stamp; [`Writer`] produces either. Times are nanoseconds since 1970 throughout.
//!
//! Formats: draft-ietf-opsawg-pcap and draft-ietf-opsawg-pcapng.

mod error;
mod merge;
mod pcap;
mod pcapng;
mod reader;
mod source;
mod writer;

pub use error::{Error, Problem};
pub use merge::Merge;
pub use reader::Reader;
pub use writer::{Format, WriteError, WriteProblem, Writer, Written};

/// The longest packet that is read or written, in bytes: what libpcap calls the maximum snapshot
/// length. A longer one is an error, since in practice it is a sign of a damaged file, and accepting
/// it would let a capture choose how much memory its reader needs.
pub const MAX_PACKET: usize = 256 * 1024;

/// The link type of Ethernet, the only one that can be read or written.
pub const ETHERNET: u32 = 1;

/// One packet of a capture, borrowed from the reader until the next one is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    /// When it was captured: nanoseconds since 1970. A stamp before 1970 reads as 0, one after 2262 as
    /// `i64::MAX`; a pcapng simple packet, which has none, takes that of the packet before it.
    pub time_ns: u64,
    /// Its length on the wire in bytes; `data` is shorter where the capture cut it.
    pub original_length: u32,
    /// Which interface saw it: an index into [`Reader::interfaces`], 0 in pcap.
    pub interface: u32,
    /// The frame from the Ethernet header on, at most [`MAX_PACKET`] bytes, perhaps none.
    pub data: &'a [u8],
}

/// An interface that a capture describes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// Its name, where the capture gives one.
    pub name: Option<String>,
    /// Its link type, a number of the LINKTYPE_ registry.
    pub link_type: u32,
}

/// What a decoder found: the record's values, and where its bytes lie in the source's buffer.
struct Head {
    time_ns: u64,
    original_length: u32,
    interface: u32,
    data: std::ops::Range<usize>,
    /// Bytes of the source up to the record's end, to be consumed before the next one is read.
    length: usize,
}
