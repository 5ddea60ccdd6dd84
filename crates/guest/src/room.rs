//! Packets copied into a guest's slot and back: it sees those of the current burst and no other.
//!
//! What the option `isolate` asks for; and with protection keys the way in which a guest may change packets at all,
//! because their memory is the host's, which it can only read.

use crate::port::{Packet, Port};

/// Bytes of the room: of the longest packets (65535 bytes) 16, of ordinary ones a burst of 1024 of 1 KiB.
pub const ROOM: usize = 1 << 20;
/// Copies begin at multiples of this, as buffers of packets usually do.
const ALIGN: usize = 64;

/// A range of a guest's slot that holds copies of a burst's packets.
#[derive(Debug)]
pub struct Room {
    start: usize,
    /// bytes that hold something of the burst before
    used: usize,
}

impl Room {
    /// Of [`ROOM`] bytes that are mapped in a slot and writable.
    #[must_use]
    pub fn new(start: usize) -> Self {
        Self { start, used: 0 }
    }

    /// Where it begins.
    #[must_use]
    pub fn start(&self) -> usize {
        self.start
    }

    /// How many of the packets have room at once; at least one, if there is one.
    #[must_use]
    pub fn fits(packets: &[Packet]) -> usize {
        let mut used = 0;
        let fitting = packets.iter().take_while(|packet| {
            used += (packet.length as usize).next_multiple_of(ALIGN);
            used <= ROOM
        });
        fitting.count()
    }

    /// Copies packets in, and has the port's point to the copies.
    ///
    /// # Safety
    /// The packets' bytes are valid; `port` is the guest's, with these packets in it; the guest does not run.
    pub unsafe fn fill(&mut self, packets: &[Packet], port: *mut Port) {
        let mut at = 0;
        for (index, packet) in packets.iter().enumerate() {
            let length = packet.length as usize;
            if at + length > ROOM {
                break;
            }
            // SAFETY: as the caller promises; the copy ends within the room, and `index` is below the port's burst.
            unsafe {
                let to = (self.start + at) as *mut u8;
                std::ptr::copy_nonoverlapping(packet.data, to, length);
                // Up to the next packet, where one of an earlier burst may have left something.
                to.add(length)
                    .write_bytes(0, length.next_multiple_of(ALIGN) - length);
                let place = (&raw mut (*port).packets).cast::<Packet>().add(index);
                (&raw mut (*place).data).write(to);
            }
            at += length.next_multiple_of(ALIGN);
        }
        if let Some(rest) = self.used.min(ROOM).checked_sub(at) {
            // SAFETY: within the room, which is the guest's.
            unsafe { std::ptr::write_bytes((self.start + at) as *mut u8, 0, rest) };
        }
        self.used = at;
    }

    /// Copies them back, as the guest has left them.
    ///
    /// # Safety
    /// As [`Room::fill`], with the same packets.
    pub unsafe fn back(&self, packets: &mut [Packet]) {
        let mut at = 0;
        for packet in packets {
            let length = packet.length as usize;
            if at + length > ROOM {
                break;
            }
            // SAFETY: as the caller promises; addresses and lengths are those of `fill`, not what the guest says.
            unsafe {
                std::ptr::copy_nonoverlapping((self.start + at) as *const u8, packet.data, length);
            }
            at += length.next_multiple_of(ALIGN);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn packet(bytes: &mut [u8]) -> Packet {
        Packet {
            data: bytes.as_mut_ptr(),
            time: 0,
            length: bytes.len() as u32,
            wire: bytes.len() as u32,
            port: 0,
            fate: 0,
        }
    }

    /// What the guest does to the copies comes back; what an earlier burst left is gone.
    #[test]
    fn copies_are_of_this_burst_alone() {
        let mut memory = vec![0_u8; ROOM];
        // SAFETY: zeroes are a valid port, which is numbers and null pointers.
        let mut port: Box<Port> = unsafe { Box::new(std::mem::zeroed()) };
        let mut room = Room::new(memory.as_mut_ptr().addr());
        let (mut first, mut second) = (vec![7_u8; 1500], vec![9_u8; 60]);
        let mut long = [packet(&mut first), packet(&mut second)];
        let mut short = [packet(&mut second)];
        // SAFETY: all lies in vectors of this test's.
        unsafe {
            room.fill(&long, &raw mut *port);
            assert_eq!(port.packets[1].data.addr(), memory.as_ptr().addr() + 1536);
            memory[1536] = 1;
            room.back(&mut long);
            assert_eq!((first[0], second[0], second[1]), (7, 1, 9));
            room.fill(&short, &raw mut *port);
            room.back(&mut short);
        }
        assert_eq!(memory[..60], second[..]);
        assert!(memory[60..].iter().all(|b| *b == 0));
    }

    #[test]
    fn a_burst_that_does_not_fit_comes_in_parts() {
        let mut long = vec![0_u8; 65535];
        let packets = vec![packet(&mut long); 40];
        assert_eq!(Room::fits(&packets), 16);
        assert_eq!(Room::fits(&[]), 0);
    }
}
