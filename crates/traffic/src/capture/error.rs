//! Errors of captures that are read.

use std::{fmt, io};

/// A capture could not be read further. Everything before [`Error::offset`] has been delivered.
#[derive(Debug)]
pub struct Error {
    /// The capture, as it was named on opening.
    pub capture: String,
    /// The byte at which the record or block with the problem begins, from the start of the file.
    pub offset: u64,
    /// Packets delivered before it.
    pub packets: u64,
    /// What is wrong.
    pub problem: Problem,
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.problem {
            Problem::Open(error) | Problem::Read(error) => Some(error),
            _ => None,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.problem {
            Problem::Open(_) | Problem::Empty | Problem::Compressed(_) | Problem::NotACapture => {
                write!(f, "{}: {}", self.capture, self.problem)
            }
            problem => write!(
                f,
                "{}: byte {}, after {} packets: {problem}",
                self.capture, self.offset, self.packets
            ),
        }
    }
}

/// What is wrong with a capture.
#[derive(Debug, thiserror::Error)]
pub enum Problem {
    /// It cannot be opened.
    #[error("cannot be opened: {0}")]
    Open(io::Error),
    /// A read failed.
    #[error("cannot be read: {0}")]
    Read(io::Error),
    /// There is not one byte.
    #[error("is empty: a capture has at least a header")]
    Empty,
    /// It is compressed, by the program named.
    #[error("is compressed; unpack it first: `{0} -dc FILE | millrace … --in -`")]
    Compressed(&'static str),
    /// The first bytes are those of neither format.
    #[error("is neither pcap nor pcapng; tcpdump, dumpcap and `millrace trace gen` write both")]
    NotACapture,
    /// The file ends inside a record.
    #[error("the capture is truncated: {needed} bytes begin here and only {there} are there")]
    Truncated {
        /// Bytes that the record or block needs.
        needed: u64,
        /// Bytes left in the file.
        there: u64,
    },
    /// A packet or block beyond the limit.
    #[error(
        "{what} of {length} bytes; at most {limit} are read, so either the file is damaged here or \
         the capture must be made again with a smaller snapshot length"
    )]
    TooLarge {
        /// Packet or block.
        what: &'static str,
        /// Its length in bytes.
        length: u64,
        /// The longest that is accepted.
        limit: u64,
    },
    /// A structure contradicts itself.
    #[error("damaged: {0}")]
    Damaged(&'static str),
    /// A packet that is not an Ethernet frame.
    #[error(
        "link type {0} ({name}); only Ethernet (1) can be processed: capture on an Ethernet interface \
         (not on `any` or a tunnel), or put an Ethernet header before each packet with \
         `tcprewrite --dlt=enet`", name = link_type_name(*.0)
    )]
    LinkType(u32),
    /// A packet of an interface that no block described.
    #[error("a packet of interface {0}, which the capture does not describe")]
    UnknownInterface(u32),
    /// More interfaces than are kept.
    #[error("more than {0} interfaces")]
    TooManyInterfaces(usize),
}

/// The registry's name of the link types that are met in practice.
fn link_type_name(number: u32) -> &'static str {
    match number {
        0 => "NULL, BSD loopback",
        1 => "ETHERNET",
        9 => "PPP",
        12 | 14 | 101 => "RAW, IP without a link header",
        105 => "IEEE802_11, Wi-Fi",
        108 => "LOOP, OpenBSD loopback",
        113 => "LINUX_SLL, the interface `any`",
        127 => "IEEE802_11_RADIOTAP, Wi-Fi",
        192 => "PPI",
        220 => "USB_LINUX_MMAPPED",
        228 => "IPV4 without a link header",
        229 => "IPV6 without a link header",
        239 => "NFLOG",
        249 => "USBPCAP",
        252 => "WIRESHARK_UPPER_PDU",
        253 => "NETLINK",
        276 => "LINUX_SLL2, the interface `any`",
        _ => "see tcpdump.org/linktypes.html",
    }
}
