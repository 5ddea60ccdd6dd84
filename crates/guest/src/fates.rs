//! Fates of a burst's packets in a polling guest, collected when it asks for more.

use crate::hosted::Hosted;
use crate::port::{DROP, KEEP, ON, OUT, Packet};

impl Hosted {
    /// What it has made of the packets.
    pub(crate) fn take_back(&mut self, packets: &mut [Packet], count: usize) {
        let port = self.port();
        let Some(polling) = &mut self.polling else {
            return;
        };
        let packets = packets.get_mut(..count).unwrap_or(&mut []);
        // SAFETY: an address within the port, which is mapped as long as the slot is. No reference is made.
        let told = unsafe { (&raw const (*port).packets).cast::<Packet>() };
        let Some(room) = &self.room else {
            for (index, packet) in packets.iter_mut().enumerate() {
                let most = packet.room;
                // SAFETY: there are no more packets than the port has places.
                polling.untaken += u64::from(unsafe { decided(packet, told.add(index), most) });
            }
            return;
        };
        // As they were, which says where their copies lie.
        let before = packets.to_vec();
        for (index, packet) in packets.iter_mut().enumerate() {
            let most = room.most(packet) as u32;
            // SAFETY: as above.
            polling.untaken += u64::from(unsafe { decided(packet, told.add(index), most) });
        }
        let now = |index: usize, _: &Packet| match packets.get(index) {
            Some(packet) if packet.fate >= OUT => packet.length,
            _ => 0,
        };
        // SAFETY: the packets that were copied in.
        unsafe { room.back(&before, now) };
    }
}

/// What a guest says of a packet, which is not trusted: it may become `most` bytes long. Threads of the guest's may
/// change what they say between two looks: there is one. True when it has not received it at all.
///
/// # Safety
/// `told` is mapped.
#[inline(always)]
unsafe fn decided(packet: &mut Packet, told: *const Packet, most: u32) -> bool {
    // SAFETY: as the caller promises; no reference is made, because others may write to it.
    let (fate, length, wire) = unsafe {
        (
            (&raw const (*told).fate).read_volatile(),
            (&raw const (*told).length).read_volatile(),
            (&raw const (*told).wire).read_volatile(),
        )
    };
    if (OUT..OUT + 2).contains(&fate) && length <= most {
        packet.fate = fate;
        packet.length = length;
        packet.wire = wire.max(length);
        return false;
    }
    // What nobody has received a device would have lost.
    packet.fate = if fate == KEEP { KEEP } else { DROP };
    fate == ON
}
