//! Packet buffers and the burst that carries them over the border.
//!
//! Every packet lies in a slot with [`HEADROOM`] before it and tailroom behind it, so that a
//! function can add headers. A slot is 2 KiB and grows to hold the packet at hand, up to
//! [`MAX_FRAME`]; a burst therefore never holds more than `capacity * (MAX_FRAME + rooms)`.

use crate::module::abi;
use crate::port::{Frame, Pool};

/// Bytes in front of a packet that a function may grow into.
pub const HEADROOM: usize = 256;
/// Bytes behind a packet that a function may grow into, at least.
pub const TAILROOM: usize = 256;
/// Bytes of a slot for packets of ordinary size.
pub const SLOT: usize = 2048;
/// Bytes between two slots that hold nothing. Caches choose a set by an address's lower twelve bits: at a distance of 2 KiB the
/// headers of all packets of a burst would share a few sets. With this and the allocator's 16 bytes the distance is an odd
/// number of cache lines.
const APART: usize = 9 * 64 - 16;
/// The longest frame that crosses the border (abi.h).
pub const MAX_FRAME: usize = 0xffff;
/// The most packets in a burst.
pub const MAX_BURST: usize = 1024;

/// How buffers are laid out.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Layout {
    /// slots that are used again
    #[default]
    Pooled,
    /// a heap allocation of the exact size for each packet, with headroom and no tailroom: under
    /// AddressSanitizer a read past the packet's end is a read past the allocation
    Exact,
}

/// Memory that packets are copied into, one after the other. Their bytes are touched here only while they are not lent.
#[derive(Debug, Default)]
pub(crate) struct Slot(Vec<u8>);

/// What is known of a packet besides its bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Arrival {
    /// ingress number from 0, over all ports
    pub number: u64,
    /// ingress port
    pub port: u32,
    /// the time that the program sees, ns since the epoch
    pub time: u64,
    /// the packet's own stamp, ns since the epoch
    pub stamp: u64,
    /// length on the wire, bytes; more than the frame has when a capture cut it
    pub wire: u32,
    /// the index of the indirection table that brings it to its worker; 0 where nobody asks
    pub home: u32,
    /// where state is replicated: its place in the order of rows ([`crate::replica::Place`]); else 0
    pub place: u64,
}

impl Slot {
    /// An empty slot for packets of ordinary size; its memory is touched, with `apart` bytes behind it that hold nothing.
    pub(crate) fn new(layout: Layout, apart: usize) -> Self {
        let mut slot = Self::default();
        if layout == Layout::Pooled {
            // Not `vec![0; n]`, whose pages need not be resident before the first packet.
            slot.0.reserve_exact(SLOT + apart);
            slot.0.resize(SLOT, 0);
        }
        slot
    }

    /// Bytes that it keeps resident.
    pub(crate) fn memory(&self) -> usize {
        self.0.capacity()
    }

    /// Makes room for a frame of this many bytes.
    #[cold]
    fn grow(&mut self, layout: Layout, length: usize) {
        match layout {
            Layout::Exact => self.0 = vec![0; HEADROOM + length],
            Layout::Pooled => self.0.resize(HEADROOM + length + TAILROOM, 0),
        }
    }

    /// Where a frame of this many bytes belongs; none when it is longer than [`MAX_FRAME`].
    ///
    /// What an earlier packet left in the headroom is cleared where one takes it (fastpath/helpers/bare.h): few do, and to
    /// touch it here would cost four cache lines a packet.
    #[inline(always)]
    pub(crate) fn place(&mut self, layout: Layout, length: usize) -> Option<&mut [u8]> {
        if length > MAX_FRAME {
            return None;
        }
        if layout == Layout::Exact || self.0.len() < HEADROOM + length + TAILROOM {
            self.grow(layout, length);
        }
        self.0.get_mut(HEADROOM..HEADROOM + length)
    }

    /// The packet in it, of this many bytes, which came in at this port.
    #[inline(always)]
    pub(crate) fn frame(&mut self, length: usize, port: u32, pool: Pool, buffer: u64) -> Frame {
        let room = self.0.len().saturating_sub(HEADROOM);
        let range = self.0.as_mut_ptr_range();
        let data = range.start.wrapping_add(HEADROOM.min(self.0.len()));
        Frame {
            data,
            end: data.wrapping_add(length.min(room)),
            floor: range.start,
            ceiling: range.end,
            stamp: 0,
            wire: length as u32,
            port,
            class: 0,
            hops: 0,
            hash: 0,
            pool,
            buffer,
        }
    }
}

/// Copies bytes to a place of the same length. Most frames are short, and then it is over before `memcpy` would have begun.
#[inline(always)]
pub(crate) fn copy(place: &mut [u8], bytes: &[u8]) {
    const HALF: usize = 32;
    if let Some(first) = bytes.first_chunk::<HALF>()
        && let Some(last) = bytes.last_chunk::<HALF>()
        && bytes.len() <= 2 * HALF
        && place.len() == bytes.len()
    {
        if let Some(place) = place.first_chunk_mut() {
            *place = *first;
        }
        if let Some(place) = place.last_chunk_mut() {
            *place = *last;
        }
    } else {
        place.copy_from_slice(bytes);
    }
}

/// What became of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum Fate {
    /// the program aborted
    Aborted,
    /// dropped, with the reason's index
    Dropped(u32),
    /// to the host's own stack
    Passed,
    /// to a port
    Forwarded(u32),
    /// to every port but the one it came from
    Flooded,
    /// taken by the program
    Consumed,
}

impl Fate {
    /// What the verdict of a handler says (docs/dialect.md).
    #[must_use]
    pub fn of_verdict(verdict: u32) -> Self {
        match (verdict >> 24, verdict & 0xff_ffff) {
            (0, reason) => Self::Dropped(reason),
            (1, port) => Self::Forwarded(port),
            (2, 0) => Self::Flooded,
            (3, 0) => Self::Consumed,
            (4, _) => Self::Passed,
            _ => Self::Aborted,
        }
    }

    /// What a module has said of a packet.
    #[inline]
    pub(crate) fn of(packet: &abi::Packet) -> Self {
        match packet.fate {
            abi::fate::DROP => Self::Dropped(packet.out),
            abi::fate::PASS => Self::Passed,
            abi::fate::FORWARD => Self::Forwarded(packet.out),
            abi::fate::FLOOD => Self::Flooded,
            abi::fate::CONSUME => Self::Consumed,
            _ => Self::Aborted,
        }
    }
}

/// Packets that go through a module together, and after that what became of them.
///
/// From [`Burst::push`] to [`Burst::clear`], slot `i`, frame `i` and descriptor `i` belong together; each slot has
/// memory of its own, which nothing touches while a module runs, because `Instance::burst` borrows the
/// whole burst.
#[derive(Debug)]
pub struct Burst {
    slots: Vec<Slot>,
    /// packets as they came in; lent as a whole
    frames: Vec<Frame>,
    /// what the module is told of them, and says; lent with the frames
    descriptors: Vec<abi::Packet>,
    pointers: Vec<*mut abi::Packet>,
    used: usize,
    ports: u32,
    worker: u32,
    layout: Layout,
}

#[allow(unsafe_code, reason = "pointers into the burst's own memory")]
// SAFETY: the pointers are into slots and descriptors that move with the burst, and nobody follows them
// but who borrows it.
unsafe impl Send for Burst {}

impl Burst {
    /// A burst of at most `capacity` packets (clamped to 1..=[`MAX_BURST`]) for a function of `ports`
    /// ports.
    #[must_use]
    pub fn new(capacity: usize, ports: u32, layout: Layout) -> Self {
        let capacity = capacity.clamp(1, MAX_BURST);
        Self {
            slots: (0..capacity).map(|_| Slot::new(layout, APART)).collect(),
            frames: Vec::with_capacity(capacity),
            descriptors: Vec::with_capacity(capacity),
            pointers: Vec::with_capacity(capacity),
            used: 0,
            ports,
            worker: 0,
            layout,
        }
    }

    /// For the worker of this number, which its packets are told.
    #[must_use]
    pub fn of_worker(mut self, worker: u32) -> Self {
        self.worker = worker;
        self
    }

    /// Forgets the packets.
    pub fn clear(&mut self) {
        self.used = 0;
        self.frames.clear();
        self.descriptors.clear();
    }

    /// Packets in it.
    #[must_use]
    pub fn len(&self) -> usize {
        self.used
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.used == 0
    }

    /// Whether no more fit.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.used == self.slots.len()
    }

    /// Copies a packet in. False, and nothing taken, when the burst is full or the frame is longer
    /// than [`MAX_FRAME`].
    ///
    /// What the module is told is written as the packet comes, not for a whole burst just before the module runs, when it
    /// would still be in the store buffer: a load whose address looks alike in its lower twelve bits waits for such a
    /// store. Inlined, so that what is known of the packet goes from registers to its places.
    #[inline(always)]
    pub fn push(&mut self, frame: &[u8], arrival: Arrival) -> bool {
        let Some(slot) = self.slots.get_mut(self.used) else {
            return false;
        };
        let Some(place) = slot.place(self.layout, frame.len()) else {
            return false;
        };
        copy(place, frame);
        let frame = Frame {
            stamp: arrival.stamp,
            wire: arrival.wire,
            ..slot.frame(frame.len(), arrival.port, Pool::NONE, self.used as u64)
        };
        self.frames.push(frame);
        self.descriptors.push(abi::Packet {
            data: frame.data,
            end: frame.end,
            meta: frame.data,
            floor: frame.floor,
            ceiling: frame.ceiling,
            bared: frame.data,
            time: arrival.time,
            number: arrival.number,
            port: arrival.port,
            queue: self.worker,
            ports: self.ports,
            cpu: self.worker,
            home: arrival.home,
            commit: arrival.place,
            ..abi::Packet::empty()
        });
        self.used += 1;
        true
    }

    /// Says which worker the packets are on, from 0: what the program sees as its CPU and its ingress queue.
    pub fn runs_on(&mut self, worker: u32) {
        for descriptor in &mut self.descriptors {
            descriptor.cpu = worker;
            descriptor.queue = worker;
        }
    }

    /// Bytes that the buffers and descriptors of a burst of this capacity take. What a giant packet
    /// adds to its slot is not in it.
    #[must_use]
    pub fn bytes(capacity: usize) -> u64 {
        let each = SLOT
            + APART
            + size_of::<Slot>()
            + size_of::<Frame>()
            + size_of::<abi::Packet>()
            + size_of::<*mut abi::Packet>();
        (capacity.clamp(1, MAX_BURST) * each) as u64
    }

    /// The array that the module gets. The pointers are valid until the burst is touched again.
    pub(crate) fn descriptors(&mut self) -> (*const *mut abi::Packet, u32) {
        self.pointers.clear();
        let each = self.descriptors.iter_mut().map(|d| &raw mut *d);
        self.pointers.extend(each);
        (self.pointers.as_ptr(), self.pointers.len() as u32)
    }

    /// Lends the packets as a queue does, `frame.buffer` being the place in the burst, with their descriptors, or takes
    /// back those that it has lent: they are good from one call to the next, and what is handed over at the first comes
    /// back at the second.
    #[inline]
    pub(crate) fn swap(&mut self, frames: &mut Vec<Frame>, descriptors: &mut Vec<abi::Packet>) {
        std::mem::swap(frames, &mut self.frames);
        std::mem::swap(descriptors, &mut self.descriptors);
    }

    /// The ingress number of its last packet.
    pub(crate) fn last(&self) -> Option<u64> {
        self.descriptors.last().map(|d| d.number)
    }

    /// Where workers share state, the place of packet `index` in the order of packets: sorted by it, and where
    /// it is equal by number, they are as one worker could have run them. Else 0.
    #[must_use]
    pub fn commit(&self, index: usize) -> Option<u64> {
        self.descriptors.get(index).map(|d| d.commit)
    }

    /// The time (ns) that packet `index` had for the program: that of its arrival, or where workers share state that of
    /// its place in their order, if that is later.
    #[must_use]
    pub fn time(&self, index: usize) -> Option<u64> {
        self.descriptors.get(index).map(|d| d.time)
    }

    /// What became of packet `index`; none when there is no such packet. Bounds that lie outside the
    /// buffer, which no checked program can set, count as aborted, with no bytes.
    #[inline]
    #[must_use]
    pub fn outcome(&self, index: usize) -> Option<Outcome<'_>> {
        let (frame, descriptor) = (self.frames.get(index)?, self.descriptors.get(index)?);
        let Slot(memory) = self.slots.get(index)?;
        let base = memory.as_ptr().addr();
        let from = descriptor.data.addr().checked_sub(base);
        let to = descriptor.end.addr().checked_sub(base);
        let bytes = from.zip(to).and_then(|(from, to)| memory.get(from..to));
        let fate = bytes.map_or(Fate::Aborted, |_| Fate::of(descriptor));
        let bytes = bytes.unwrap_or(&[]);
        let came = frame.end.addr().saturating_sub(frame.data.addr());
        // A packet that was cut by the capture and then rewritten keeps what was cut off its end.
        let cut = frame.wire.saturating_sub(came as u32);
        let wire = cut.saturating_add(bytes.len() as u32);
        Some(Outcome {
            fate,
            purpose: match fate {
                Fate::Passed => descriptor.out,
                _ => 0,
            },
            bytes,
            wire,
            came,
            number: descriptor.number,
            port: frame.port,
            stamp: frame.stamp,
        })
    }
}

/// A packet after the burst.
#[derive(Clone, Copy, Debug)]
pub struct Outcome<'a> {
    /// what became of it
    pub fate: Fate,
    /// of one that was passed, the number with which it was handed over; else 0
    pub purpose: u32,
    /// its bytes now
    pub bytes: &'a [u8],
    /// its length on the wire now
    pub wire: u32,
    /// bytes that it had when it came in
    pub came: usize,
    /// its ingress number
    pub number: u64,
    /// the port that it came in at
    pub port: u32,
    /// its own stamp, ns since the epoch
    pub stamp: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_holds_what_fits_and_refuses_what_does_not() {
        for layout in [Layout::Pooled, Layout::Exact] {
            let mut slot = Slot::new(layout, 0);
            for length in [0, 1, 31, 32, 60, 64, 65, 1514, 1536, 1537, 9000, MAX_FRAME] {
                let frame: Vec<u8> = (1..=length).map(|i| i as u8).collect();
                copy(slot.place(layout, length).unwrap(), &frame);
                assert_eq!(slot.0[HEADROOM..HEADROOM + length], frame);
            }
            assert!(slot.place(layout, MAX_FRAME + 1).is_none());
            assert!(slot.0.len() >= HEADROOM + MAX_FRAME);
        }
    }

    #[test]
    fn a_burst_never_takes_more_than_its_capacity() {
        let mut burst = Burst::new(2, 1, Layout::Pooled);
        assert!(burst.push(&[1], Arrival::default()) && burst.push(&[2], Arrival::default()));
        assert!(burst.is_full() && !burst.push(&[3], Arrival::default()));
        assert_eq!(Burst::new(0, 1, Layout::Pooled).slots.len(), 1);
        assert_eq!(
            Burst::new(1 << 20, 1, Layout::Pooled).slots.len(),
            MAX_BURST
        );
    }

    #[test]
    fn what_the_capture_cut_off_stays_cut_off() {
        let mut burst = Burst::new(1, 1, Layout::Pooled);
        burst.push(
            &[0; 60],
            Arrival {
                wire: 1500,
                ..Arrival::default()
            },
        );
        burst.descriptors();
        let descriptor = &mut burst.descriptors[0];
        descriptor.data = descriptor.data.wrapping_sub(4);
        assert_eq!(burst.outcome(0).unwrap().wire, 1504);
        assert_eq!(burst.outcome(0).unwrap().bytes.len(), 64);
    }

    #[test]
    fn bounds_outside_the_buffer_abort() {
        let mut burst = Burst::new(1, 1, Layout::Pooled);
        burst.push(&[0; 60], Arrival::default());
        burst.descriptors();
        burst.descriptors[0].fate = abi::fate::FORWARD;
        burst.descriptors[0].end = burst.descriptors[0].ceiling.wrapping_add(1);
        let outcome = burst.outcome(0).unwrap();
        assert_eq!((outcome.fate, outcome.bytes.len()), (Fate::Aborted, 0));
    }
}
