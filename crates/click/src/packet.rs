//! A packet: bytes that headers are added to and taken from, and annotations.

use std::ops::Range;

/// Bytes of annotations.
pub const ANNOTATIONS: usize = 48;

/// Places of annotations that have a name: name, first byte, bytes.
pub const NAMES: [(&str, usize, usize); 9] = [
    ("DST_IP", 0, 4),
    ("PAINT", 16, 1),
    ("PAINT2", 17, 1),
    ("ICMP_PARAMPROB", 18, 1),
    ("FIX_IP_SRC", 19, 1),
    ("VLAN_TCI", 20, 2),
    ("AGGREGATE", 24, 4),
    ("SEQUENCE_NUMBER", 28, 4),
    ("EXTRA_PACKETS", 32, 4),
];

/// The annotation with the colour.
pub const PAINT: usize = 16;
/// The annotation by which ICMPError says where the faulty byte is.
pub const PARAMETER_PROBLEM: usize = 18;
/// The annotation that asks FixIPSrc for a source address.
pub const FIX_SOURCE: usize = 19;
/// Two bytes of a VLAN tag.
pub const VLAN: usize = 20;
/// Four bytes of an aggregate.
pub const AGGREGATE: usize = 24;
/// Four bytes of a number.
pub const NUMBER: usize = 28;

/// For whom a device received a packet, as the link layer says.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Kind {
    /// this host
    #[default]
    Host,
    /// all
    Broadcast,
    /// a group
    Multicast,
    /// another host
    Other,
}

/// A packet.
#[derive(Clone, Debug)]
pub struct Packet {
    buffer: Vec<u8>,
    head: usize,
    tail: usize,
    network: Option<usize>,
    transport: Option<usize>,
    mac: Option<usize>,
    /// annotations by their bytes
    pub anno: [u8; ANNOTATIONS],
    /// time stamp, nanoseconds
    pub time: i64,
    /// the time stamp of the first packet of a flow, nanoseconds
    pub first_time: i64,
    /// bytes of the packet that the buffer does not hold
    pub missing: u32,
    /// for whom it was received
    pub kind: Kind,
    /// the number under which it entered, where somebody counts
    pub number: u64,
}

impl Default for Packet {
    fn default() -> Self {
        Self::new(&[])
    }
}

/// Bytes in front of a new packet that headers may take without a copy.
const HEADROOM: usize = 64;

impl Packet {
    /// A packet of some bytes, without headers that are marked.
    #[must_use]
    pub fn new(bytes: &[u8]) -> Self {
        let mut buffer = vec![0; HEADROOM];
        buffer.extend_from_slice(bytes);
        Self {
            head: HEADROOM,
            tail: buffer.len(),
            buffer,
            network: None,
            transport: None,
            mac: None,
            anno: [0; ANNOTATIONS],
            time: 0,
            first_time: 0,
            missing: 0,
            kind: Kind::Host,
            number: 0,
        }
    }

    /// Its bytes.
    #[must_use]
    pub fn data(&self) -> &[u8] {
        self.buffer.get(self.head..self.tail).unwrap_or(&[])
    }

    /// Its bytes, to write.
    pub fn data_mut(&mut self) -> &mut [u8] {
        let range = self.head..self.tail;
        self.buffer.get_mut(range).unwrap_or(&mut [])
    }

    /// How many bytes it has.
    #[must_use]
    pub fn len(&self) -> usize {
        self.tail - self.head
    }

    /// Whether it has none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.head == self.tail
    }

    /// Takes bytes from its front; at most all.
    pub fn strip(&mut self, bytes: usize) {
        self.head += bytes.min(self.len());
    }

    /// Adds bytes at its front: those that were stripped there, or zeros.
    pub fn push(&mut self, bytes: usize) {
        if bytes > self.head {
            let more = bytes - self.head + HEADROOM;
            self.buffer.splice(0..0, std::iter::repeat_n(0, more));
            self.head += more;
            self.tail += more;
            for mark in [&mut self.network, &mut self.transport, &mut self.mac] {
                *mark = mark.map(|at| at + more);
            }
        }
        self.head -= bytes;
    }

    /// Adds a header at its front.
    pub fn prepend(&mut self, header: &[u8]) {
        self.push(header.len());
        self.data_mut()[..header.len()].copy_from_slice(header);
    }

    /// Takes bytes from its end; at most all.
    pub fn truncate(&mut self, to: usize) {
        self.tail = self.tail.min(self.head + to);
    }

    /// Adds zeros at its end.
    pub fn extend(&mut self, bytes: usize) {
        self.buffer.truncate(self.tail);
        self.tail += bytes;
        self.buffer.resize(self.tail, 0);
    }

    /// Replaces the bytes from a place on.
    pub fn replace(&mut self, range: Range<usize>, with: &[u8]) {
        let (from, to) = (range.start.min(self.len()), range.end.min(self.len()));
        self.buffer.truncate(self.tail);
        let (from, to) = (self.head + from, self.head + to.max(from));
        self.buffer.splice(from..to, with.iter().copied());
        self.tail = self.buffer.len();
    }

    fn relative(&self, at: Option<usize>) -> Option<isize> {
        at.map(|at| at as isize - self.head as isize)
    }

    /// Where the network header is, in bytes from the front; negative if it was stripped.
    #[must_use]
    pub fn network(&self) -> Option<isize> {
        self.relative(self.network)
    }

    /// Where the transport header is.
    #[must_use]
    pub fn transport(&self) -> Option<isize> {
        self.relative(self.transport)
    }

    /// Where the link header is.
    #[must_use]
    pub fn mac(&self) -> Option<isize> {
        self.relative(self.mac)
    }

    /// Marks the network header, and the transport header some bytes behind it.
    pub fn mark(&mut self, network: usize, length: usize) {
        self.network = Some(self.head + network);
        self.transport = Some(self.head + network + length);
    }

    /// Marks the link header.
    pub fn mark_mac(&mut self, at: usize) {
        self.mac = Some(self.head + at);
    }

    /// The bytes from the link header to the end, also where they were stripped; none if it is not marked.
    #[must_use]
    pub fn link(&self) -> Option<&[u8]> {
        self.buffer.get(self.mac?..self.tail)
    }

    /// The same, to write.
    pub fn link_mut(&mut self) -> Option<&mut [u8]> {
        self.buffer.get_mut(self.mac?..self.tail)
    }

    /// Forgets all marks.
    pub fn unmark(&mut self) {
        (self.network, self.transport, self.mac) = (None, None, None);
    }

    /// The bytes from the network header to the end; none if nothing is marked, or what is marked was stripped.
    #[must_use]
    pub fn ip(&self) -> Option<&[u8]> {
        self.buffer
            .get(self.network.filter(|n| *n >= self.head)?..self.tail)
    }

    /// The same, to write.
    pub fn ip_mut(&mut self) -> Option<&mut [u8]> {
        let from = self.network.filter(|n| *n >= self.head)?;
        self.buffer.get_mut(from..self.tail)
    }

    /// The bytes from the transport header to the end.
    #[must_use]
    pub fn upper(&self) -> Option<&[u8]> {
        self.buffer
            .get(self.transport.filter(|n| *n >= self.head)?..self.tail)
    }

    /// The same, to write.
    pub fn upper_mut(&mut self) -> Option<&mut [u8]> {
        let from = self.transport.filter(|n| *n >= self.head)?;
        self.buffer.get_mut(from..self.tail)
    }

    /// The destination annotation.
    #[must_use]
    pub fn destination(&self) -> [u8; 4] {
        self.quad(0)
    }

    /// Sets the destination annotation.
    pub fn set_destination(&mut self, address: [u8; 4]) {
        self.set_quad(0, address);
    }

    /// Four bytes of annotations.
    #[must_use]
    pub fn quad(&self, at: usize) -> [u8; 4] {
        let bytes = self.anno.get(at..at + 4);
        bytes.and_then(|b| b.try_into().ok()).unwrap_or_default()
    }

    /// Sets four bytes of annotations.
    pub fn set_quad(&mut self, at: usize, bytes: [u8; 4]) {
        if let Some(to) = self.anno.get_mut(at..at + 4) {
            to.copy_from_slice(&bytes);
        }
    }
}
