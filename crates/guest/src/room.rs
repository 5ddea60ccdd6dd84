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
    /// bytes behind each packet that its guest may let it grow into, where it can
    growth: u32,
}

impl Room {
    /// Of [`ROOM`] bytes that are mapped in a slot and writable.
    #[must_use]
    pub fn new(start: usize) -> Self {
        Self {
            start,
            used: 0,
            growth: 0,
        }
    }

    /// Leaves this many bytes behind each packet.
    pub fn grow(&mut self, growth: u32) {
        self.growth = growth;
    }

    /// How long a packet may become here.
    #[must_use]
    pub fn most(&self, packet: &Packet) -> usize {
        let grown = packet.length.saturating_add(self.growth).min(packet.room);
        grown.max(packet.length) as usize
    }

    /// Where it begins.
    #[must_use]
    pub fn start(&self) -> usize {
        self.start
    }

    /// How many of the packets have room at once; at least one, if there is one.
    #[must_use]
    pub fn fits(&self, packets: &[Packet]) -> usize {
        let mut used = 0;
        let fitting = packets.iter().take_while(|packet| {
            used += self.most(packet).next_multiple_of(ALIGN);
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
            let most = self.most(packet);
            if at + most > ROOM {
                break;
            }
            // SAFETY: as the caller promises; the copy ends within the room, and `index` is below the port's burst.
            unsafe {
                let to = (self.start + at) as *mut u8;
                std::ptr::copy_nonoverlapping(packet.data, to, length);
                // Up to the next packet, where one of an earlier burst may have left something.
                to.add(length)
                    .write_bytes(0, most.next_multiple_of(ALIGN) - length);
                let place = (&raw mut (*port).packets).cast::<Packet>().add(index);
                (&raw mut (*place).data).write(to);
                (&raw mut (*place).room).write(most as u32);
            }
            at += most.next_multiple_of(ALIGN);
        }
        if let Some(rest) = self.used.min(ROOM).checked_sub(at) {
            // SAFETY: within the room, which is the guest's.
            unsafe { std::ptr::write_bytes((self.start + at) as *mut u8, 0, rest) };
        }
        self.used = at;
    }

    /// Copies them back, as the guest has left them; `length` says of each, by its place in the burst, how long it
    /// is now. What that says is held to what there is room for.
    ///
    /// # Safety
    /// As [`Room::fill`], with the same packets; of each as many bytes as its `room` says may be written.
    pub unsafe fn back(&self, packets: &[Packet], length: impl Fn(usize, &Packet) -> u32) {
        let mut at = 0;
        for (index, packet) in packets.iter().enumerate() {
            let most = self.most(packet);
            if at + most > ROOM {
                break;
            }
            let length = (length(index, packet) as usize).min(most);
            // SAFETY: as the caller promises; addresses and lengths are those of `fill`, not what the guest says.
            unsafe {
                std::ptr::copy_nonoverlapping((self.start + at) as *const u8, packet.data, length);
            }
            at += most.next_multiple_of(ALIGN);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(bytes: &mut [u8]) -> Packet {
        let wire = bytes.len() as u32;
        Packet::of(bytes, 0, wire)
    }

    /// What the guest does to the copies comes back; what an earlier burst left is gone.
    #[test]
    fn copies_are_of_this_burst_alone() {
        let mut memory = vec![0_u8; ROOM];
        // SAFETY: zeroes are a valid port, which is numbers and null pointers.
        let mut port: Box<Port> = unsafe { Box::new(std::mem::zeroed()) };
        let mut room = Room::new(memory.as_mut_ptr().addr());
        let (mut first, mut second) = (vec![7_u8; 1500], vec![9_u8; 60]);
        let long = [packet(&mut first), packet(&mut second)];
        let short = [packet(&mut second)];
        // SAFETY: all lies in vectors of this test's.
        unsafe {
            room.fill(&long, &raw mut *port);
            assert_eq!(port.packets[1].data.addr(), memory.as_ptr().addr() + 1536);
            memory[1536] = 1;
            room.back(&long, |_, p| p.length);
            assert_eq!((first[0], second[0], second[1]), (7, 1, 9));
            room.fill(&short, &raw mut *port);
            room.back(&short, |_, p| p.length);
        }
        assert_eq!(memory[..60], second[..]);
        assert!(memory[60..].iter().all(|b| *b == 0));
    }

    #[test]
    fn a_burst_that_does_not_fit_comes_in_parts() {
        let mut long = vec![0_u8; 65535];
        let packets = vec![packet(&mut long); 40];
        let room = Room::new(0);
        assert_eq!(room.fits(&packets), 16);
        assert_eq!(room.fits(&[]), 0);
    }

    /// What may grow gets room for it, and what it has become comes back, but never more than where it lies can take.
    #[test]
    fn a_packet_grows_as_far_as_both_sides_have_room() {
        let mut memory = vec![0_u8; ROOM];
        // SAFETY: zeroes are a valid port, which is numbers and null pointers.
        let mut port: Box<Port> = unsafe { Box::new(std::mem::zeroed()) };
        let mut room = Room::new(memory.as_mut_ptr().addr());
        room.grow(128);
        let (mut first, mut second) = (vec![7_u8; 100], vec![9_u8; 300]);
        let mut packets = [packet(&mut first), packet(&mut second)];
        (packets[0].length, packets[1].length) = (60, 60);
        // SAFETY: all lies in vectors of this test's.
        unsafe {
            room.fill(&packets, &raw mut *port);
            assert_eq!((port.packets[0].room, port.packets[1].room), (100, 188));
            let at = port.packets[1].data.addr() - memory.as_ptr().addr();
            memory[..at + 188].fill(1);
            room.back(&packets, |_, _| u32::MAX);
        }
        assert!(first.iter().all(|b| *b == 1));
        assert_eq!((second[187], second[188]), (1, 9));
    }
}
