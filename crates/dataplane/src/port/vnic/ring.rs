//! Rings: what driver and device share of a queue, in the forms that a device has.
//!
//! A receive descriptor has two forms, as those of Intel's controllers have (82599 datasheet, 7.1.6).
//! The driver writes the read form, the address of an empty buffer, and rings the doorbell (the tail
//! register). The device fills the buffer and overwrites the descriptor with the write-back form:
//! hash, length, time, and last of all the status with its DONE bit, for which the driver polls. A
//! transmit descriptor holds address and length; the device sets DONE in those that ask for it
//! (REPORT), and the driver takes back all buffers up to there at once.
//!
//! Every word is an atomic: the release store of a doorbell or of a status makes the words and the
//! packet written before it visible to who has read it with acquire. Each register that one side
//! writes stands on cache lines that the other side only reads.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use super::memory::Memory;

/// Set in a status word when the device has finished with the descriptor.
pub const DONE: u64 = 1 << 63;
/// Set in a transmit descriptor whose completion the driver wants to see.
pub const REPORT: u64 = 1 << 62;
/// Set in a transmit descriptor whose bytes were copied: its buffer was not received.
pub const COPIED: u64 = 1 << 61;

/// A receive descriptor, 32 bytes, two in a cache line.
#[derive(Debug, Default)]
#[repr(align(32))]
pub struct Receive {
    /// read form: address of the buffer; write-back form: see [`Received::pack`]
    pub address: AtomicU64,
    /// write-back form: length on the wire, and the packet's number, see [`numbered`]
    pub wire: AtomicU64,
    /// write-back form: ns since the epoch, or 0
    pub stamp: AtomicU64,
    /// 0, or [`DONE`]; with it the packet's place in the order of rows, where a sequencer gives one
    pub status: AtomicU64,
}

/// What the first word of a written-back receive descriptor says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Received {
    /// hash of the packet, 0 where nothing was hashed
    pub hash: u32,
    /// bytes in the buffer
    pub length: u16,
    /// port of the function
    pub port: u16,
}

impl Received {
    /// As a word.
    #[inline]
    #[must_use]
    pub fn pack(self) -> u64 {
        u64::from(self.hash) | u64::from(self.length) << 32 | u64::from(self.port) << 48
    }

    /// From a word.
    #[inline]
    #[must_use]
    pub fn unpack(word: u64) -> Self {
        Self {
            hash: word as u32,
            length: (word >> 32) as u16,
            port: (word >> 48) as u16,
        }
    }
}

/// Bits of a length on the wire in a descriptor. No frame is longer.
const WIRE_BITS: u32 = 24;

/// Length on the wire and the low 40 bits of a packet's number, in a word.
#[inline]
#[must_use]
pub fn numbered(wire: u32, number: u64) -> u64 {
    u64::from(wire.min((1 << WIRE_BITS) - 1)) | number << WIRE_BITS
}

/// The two again; the number is the one nearest to `near`.
#[inline]
#[must_use]
pub fn unnumbered(word: u64, near: u64) -> (u32, u64) {
    let apart = (word >> WIRE_BITS).wrapping_sub(near) << WIRE_BITS;
    let number = near.wrapping_add(((apart as i64) >> WIRE_BITS) as u64);
    ((word & ((1 << WIRE_BITS) - 1)) as u32, number)
}

/// A transmit descriptor, 16 bytes.
#[derive(Debug, Default)]
#[repr(align(16))]
pub struct Transmit {
    /// address of the first byte
    pub address: AtomicU64,
    /// length in the low 32 bits, flags above; the device sets [`DONE`]
    pub command: AtomicU64,
}

/// A register, on lines of its own: two, since processors fetch them in pairs.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct Register(pub AtomicU32);

/// Counters that the device writes.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct DeviceCounts {
    /// packets written into buffers
    pub delivered: AtomicU64,
    /// packets that found no buffer
    pub missed: AtomicU64,
    /// packets that do not fit into a buffer
    pub unfit: AtomicU64,
    /// packets sent
    pub sent: AtomicU64,
    /// their bytes
    pub sent_bytes: AtomicU64,
}

/// Counters that the driver writes.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct DriverCounts {
    /// packets for which the transmit ring had no room
    pub refused: AtomicU64,
    /// becomes 1 with the first look for packets
    pub polled: AtomicU64,
}

/// What driver and device share of a queue.
#[derive(Debug)]
pub struct Rings {
    /// receive descriptors
    pub receive: Box<[Receive]>,
    /// transmit descriptors
    pub transmit: Box<[Transmit]>,
    /// driver: one past the last receive descriptor that the device may use, counted without end
    pub receive_tail: Register,
    /// driver: one past the last transmit descriptor
    pub transmit_tail: Register,
    /// device: the next transmit descriptor; drivers read it only when they wait for the end
    pub transmit_head: Register,
    /// device
    pub device: DeviceCounts,
    /// driver
    pub driver: DriverCounts,
    /// the buffers
    pub memory: Memory,
}

impl Rings {
    /// Rings of this many descriptors (powers of two), with buffers to fill both and `spare` more.
    ///
    /// # Errors
    /// As [`Memory::new`].
    pub fn new(receive: u32, transmit: u32, spare: usize) -> std::io::Result<Self> {
        let buffers = receive as usize + transmit as usize + spare;
        Ok(Self {
            receive: (0..receive).map(|_| Receive::default()).collect(),
            transmit: (0..transmit).map(|_| Transmit::default()).collect(),
            receive_tail: Register::default(),
            transmit_tail: Register::default(),
            transmit_head: Register::default(),
            device: DeviceCounts::default(),
            driver: DriverCounts::default(),
            memory: Memory::new(buffers)?,
        })
    }

    /// The receive descriptor of a position counted without end.
    #[inline]
    #[must_use]
    pub fn receive(&self, position: u32) -> Option<&Receive> {
        self.receive
            .get(position as usize & self.receive.len().wrapping_sub(1))
    }

    /// The transmit descriptor of a position counted without end.
    #[inline]
    #[must_use]
    pub fn transmit(&self, position: u32) -> Option<&Transmit> {
        self.transmit
            .get(position as usize & self.transmit.len().wrapping_sub(1))
    }
}

/// Adds to a counter that only the caller's side writes: no locked instruction.
#[inline]
pub fn add(counter: &AtomicU64, value: u64) {
    let sum = counter.load(Ordering::Relaxed).wrapping_add(value);
    counter.store(sum, Ordering::Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptors_have_a_devices_sizes() {
        assert_eq!(size_of::<Receive>(), 32);
        assert_eq!(size_of::<Transmit>(), 16);
        assert_eq!(size_of::<Register>(), 128);
    }

    #[test]
    fn a_number_is_the_nearest_one() {
        for (near, number) in [(0, 3), (1 << 40, (1 << 40) - 5), (u64::MAX - 1, u64::MAX)] {
            assert_eq!(unnumbered(numbered(1500, number), near), (1500, number));
        }
        assert_eq!(unnumbered(numbered(u32::MAX, 7), 0), ((1 << 24) - 1, 7));
    }

    #[test]
    fn a_write_back_keeps_what_it_says() {
        let received = Received {
            hash: 0xdead_beef,
            length: 0xffff,
            port: 3,
        };
        assert_eq!(Received::unpack(received.pack()), received);
    }
}
