//! Prefix form: each packet carries its own row and those before it.
//!
//! | byte | content |
//! | --- | --- |
//! | 0 | destination of a dummy Ethernet header, `02:4d:52:00` and the core, so that a NIC can steer by it |
//! | 6 | source, `02:4d:52:01` and the port by which the packet came |
//! | 12 | Ethernet type 0x88b5, IEEE 802 local experiments |
//! | 14 | version 1 in the upper four bits, flags below: 1 the newest row is the packet's own, 2 a heartbeat without a packet |
//! | 15 | slots |
//! | 16 | bytes of a row |
//! | 17 | index of the oldest row, which is the slot that the next row takes: sequence mod slots |
//! | 18 | sequence, 64 bits |
//! | 26 | stamp, 64 bits, ns |
//! | 34 | one bit a slot, the first slot's the lowest of the first byte: a heartbeat's row |
//! | … | slots; row `n` is in slot `(n - 1) mod slots`, a slot without a row is zero |
//! | … | with a key: eight bytes, SipHash-2-4 of all before, little-endian |
//! | … | the packet |
//!
//! Numbers are big-endian but for the tag. `fastpath/sync/carrier.h` reads the same by the same rules.
//!
//! # Panics
//! [`Carrier::new_checked`] does not panic, whatever the bytes and the form. Accessors of a carrier do not either:
//! `new_checked` has seen that the buffer holds the whole prefix. Only a buffer type whose `as_ref` becomes shorter afterwards
//! breaks this: its accessors give zeros and empty slices then.

use super::{Core, Form, Header, Kind, LAST, MAX_GAP, MAX_SLOTS, Row, TIME_BYTES, tag};

/// Bytes of a prefix before its bits and slots.
pub const FIXED: usize = 34;
/// The Ethernet type of carriers.
pub const ETHERTYPE: u16 = 0x88b5;
/// The version that is written and read.
pub const VERSION: u8 = 1;
const TOUCH: u8 = 1;
const BEAT: u8 = 2;
const LOW: u64 = (1 << (8 * TIME_BYTES)) - 1;

/// Why bytes are no carrier of a form, in the order in which it is looked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Refusal {
    /// The prefix is not whole.
    #[error("the bytes end before the prefix does")]
    Short,
    /// Something else.
    #[error("another Ethernet type than 0x88b5, or another version than 1")]
    Foreign,
    /// Another form.
    #[error("another number of slots, or another size of rows, than this side has")]
    Shaped,
    /// Made without the key, or changed on the way.
    #[error("the tag is not the one that the key gives: forged, or changed on the way")]
    Forged,
    /// No meaning.
    #[error("flags that contradict each other, the sequence or the packet")]
    Flags,
    /// A number behind the last.
    #[error("a sequence behind {LAST}")]
    Number,
    /// Slots and sequence disagree.
    #[error("the index of the oldest row does not follow from the sequence")]
    Index,
    /// A row where there can be none.
    #[error("a slot that has no row yet is not empty")]
    Slot,
    /// Times that no sequencer gives.
    #[error(
        "times of rows are more than 2^38 ns apart, before 0, or the own row's is not the stamp"
    )]
    Times,
}

impl Refusal {
    /// All, in order.
    pub const ALL: [Self; 9] = [
        Self::Short,
        Self::Foreign,
        Self::Shaped,
        Self::Forged,
        Self::Flags,
        Self::Number,
        Self::Index,
        Self::Slot,
        Self::Times,
    ];
}

/// The slots of a sequencer in the prefix form.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Prefix {
    form: Form,
    slots: Vec<u8>,
    beats: u64,
}

impl Prefix {
    /// Without rows.
    #[must_use]
    pub fn new(form: Form) -> Self {
        let slots = vec![0; form.slots() * form.shape().row_bytes()];
        Self {
            form,
            slots,
            beats: 0,
        }
    }

    /// The form.
    #[must_use]
    pub fn form(&self) -> &Form {
        &self.form
    }

    /// Puts a row in the place of the oldest one. Rows come in the order of their numbers.
    pub fn push(&mut self, row: &Row) {
        let bytes = self.form.shape().row_bytes();
        let slot = slot_of(row.number, self.form.slots());
        let place = self.slots.chunks_exact_mut(bytes).nth(slot);
        if let Some(place) = place.filter(|p| p.len() == row.bytes().len()) {
            place.copy_from_slice(row.bytes());
        }
        self.beats = self.beats & !(1 << slot) | u64::from(row.beat) << slot;
    }

    /// Writes the carriers of one step, `row` of which was pushed before, each into an emptied `to`, and hands each to `give`.
    pub fn write(
        &self,
        header: &Header,
        frame: &[u8],
        to: &mut Vec<u8>,
        mut give: impl FnMut(u16, &[u8]),
    ) {
        let cores = match header.core {
            Core::One(core) => core..core.saturating_add(1),
            Core::All => 0..self.form.cores(),
        };
        for core in cores {
            self.carrier(header, core, frame, to);
            give(core, to);
        }
    }

    /// Writes one carrier.
    fn carrier(&self, header: &Header, core: u16, frame: &[u8], to: &mut Vec<u8>) {
        let (form, slots) = (&self.form, self.form.slots());
        let flags = match header.kind {
            Kind::Plain => 0,
            Kind::Touch => TOUCH,
            Kind::Beat => BEAT,
        };
        let index = header.sequence % slots as u64;
        to.clear();
        to.extend_from_slice(&[0x02, 0x4d, 0x52, 0]);
        to.extend_from_slice(&core.to_be_bytes());
        to.extend_from_slice(&[0x02, 0x4d, 0x52, 1]);
        to.extend_from_slice(&header.port.to_be_bytes());
        to.extend_from_slice(&ETHERTYPE.to_be_bytes());
        let row_bytes = form.shape().row_bytes();
        to.extend_from_slice(&[
            VERSION << 4 | flags,
            slots as u8,
            row_bytes as u8,
            index as u8,
        ]);
        to.extend_from_slice(&header.sequence.to_be_bytes());
        to.extend_from_slice(&header.stamp.to_be_bytes());
        let beats = self.beats.to_le_bytes();
        to.extend(beats.iter().take(slots.div_ceil(8)));
        to.extend_from_slice(&self.slots);
        if let Some(key) = form.key() {
            to.extend_from_slice(&tag::tag(&key.0, to).to_le_bytes());
        }
        if header.kind != Kind::Beat {
            to.extend_from_slice(frame);
        }
    }
}

/// The slot of row `number`, from 1.
fn slot_of(number: u64, slots: usize) -> usize {
    (number.wrapping_sub(1) % slots.max(1) as u64) as usize
}

/// A packet with its prefix, as a core receives it.
#[derive(Clone, Copy, Debug)]
pub struct Carrier<'f, T> {
    buffer: T,
    form: &'f Form,
    times: [u64; MAX_SLOTS],
}

impl<'f, T: AsRef<[u8]>> Carrier<'f, T> {
    /// A view of bytes that came over a network.
    ///
    /// # Errors
    /// A [`Refusal`]. Without a key, forged rows of the right shape are taken: then only the sequencer may reach the link.
    pub fn new_checked(buffer: T, form: &'f Form) -> Result<Self, Refusal> {
        let mut carrier = Self {
            buffer,
            form,
            times: [0; MAX_SLOTS],
        };
        carrier.check()?;
        Ok(carrier)
    }

    fn check(&mut self) -> Result<(), Refusal> {
        let (form, bytes) = (self.form, self.buffer.as_ref());
        if bytes.len() < form.prefix_bytes() {
            return Err(Refusal::Short);
        }
        let (version, flags) = (self.byte(14) >> 4, self.byte(14) & 15);
        if millrace_wire::word(bytes, 12) != Some(ETHERTYPE) || version != VERSION {
            return Err(Refusal::Foreign);
        }
        let shape = (form.slots(), form.shape().row_bytes());
        if (usize::from(self.byte(15)), usize::from(self.byte(16))) != shape {
            return Err(Refusal::Shaped);
        }
        if let Some(key) = form.key() {
            let (before, rest) = bytes.split_at(form.prefix_bytes() - 8);
            if rest.first_chunk() != Some(&tag::tag(&key.0, before).to_le_bytes()) {
                return Err(Refusal::Forged);
            }
        }
        let sequence = self.sequence();
        let empty = flags != 0 && sequence == 0;
        if flags > BEAT || empty || flags == BEAT && !self.packet().is_empty() {
            return Err(Refusal::Flags);
        }
        if sequence > LAST {
            return Err(Refusal::Number);
        }
        if u64::from(self.byte(17)) != sequence % form.slots() as u64 {
            return Err(Refusal::Index);
        }
        let held = self.held();
        let beyond = |slot: usize| self.beats().checked_shr(slot as u32).unwrap_or(0) != 0;
        let unused = self.slots().get(held * form.shape().row_bytes()..);
        if beyond(held) || unused.is_some_and(|u| u.iter().any(|b| *b != 0)) {
            return Err(Refusal::Slot);
        }
        let own_beat = self.beats() >> slot_of(sequence, form.slots()) & 1 == 1;
        if flags != 0 && own_beat != (flags == BEAT) {
            return Err(Refusal::Flags);
        }
        self.times()
    }

    /// The times of all rows, newest first: each is the last moment at or before the one behind it that has its 40 bits.
    fn times(&mut self) -> Result<(), Refusal> {
        let Some(at) = self.form.shape().time() else {
            return Ok(());
        };
        let (newest, mut behind) = (self.sequence(), self.stamp());
        for number in (self.oldest()..=newest).rev() {
            let slot = slot_of(number, self.form.slots());
            let mut wide = [0; 8];
            let place = self.slot(slot).get(at..).unwrap_or(&[]);
            let low = wide.iter_mut().skip(8 - TIME_BYTES);
            low.zip(place).for_each(|(w, b)| *w = *b);
            let gap = behind.wrapping_sub(u64::from_be_bytes(wide)) & LOW;
            let own = number == newest && self.kind() != Kind::Plain;
            if gap > MAX_GAP || gap > behind || own && gap > 0 {
                return Err(Refusal::Times);
            }
            behind -= gap;
            if let Some(time) = self.times.get_mut(slot) {
                *time = behind;
            }
        }
        Ok(())
    }

    fn byte(&self, at: usize) -> u8 {
        self.buffer.as_ref().get(at).copied().unwrap_or(0)
    }

    fn wide(&self, at: usize) -> u64 {
        let eight = self.buffer.as_ref().get(at..).and_then(|b| b.first_chunk());
        u64::from_be_bytes(eight.copied().unwrap_or([0; 8]))
    }

    fn slots(&self) -> &[u8] {
        let (slots, row) = (self.form.slots(), self.form.shape().row_bytes());
        let from = FIXED + slots.div_ceil(8);
        let bytes = self.buffer.as_ref().get(from..from + slots * row);
        bytes.unwrap_or(&[])
    }

    fn slot(&self, slot: usize) -> &[u8] {
        let row = self.form.shape().row_bytes();
        let bytes = self.slots().get(slot * row..(slot + 1) * row);
        bytes.unwrap_or(&[])
    }

    fn beats(&self) -> u64 {
        let bits = self.buffer.as_ref().get(FIXED..).unwrap_or(&[]);
        let mut wide = [0; 8];
        let count = self.form.slots().div_ceil(8);
        wide.iter_mut()
            .zip(bits.iter().take(count))
            .for_each(|(w, b)| *w = *b);
        u64::from_le_bytes(wide)
    }

    /// How many rows it holds, its own included.
    #[must_use]
    pub fn held(&self) -> usize {
        self.sequence().min(self.form.slots() as u64) as usize
    }

    /// The number of the newest row; 0: it holds none.
    #[must_use]
    pub fn sequence(&self) -> u64 {
        self.wide(18)
    }

    /// The number of the oldest row that it holds; the sequence and 1, if it holds none.
    #[must_use]
    pub fn oldest(&self) -> u64 {
        self.sequence() - self.held() as u64 + 1
    }

    /// Time of the packet, ns.
    #[must_use]
    pub fn stamp(&self) -> u64 {
        self.wide(26)
    }

    /// The core that it was sent to.
    #[must_use]
    pub fn core(&self) -> u16 {
        millrace_wire::word(self.buffer.as_ref(), 4).unwrap_or(0)
    }

    /// The port by which the packet came.
    #[must_use]
    pub fn port(&self) -> u16 {
        millrace_wire::word(self.buffer.as_ref(), 10).unwrap_or(0)
    }

    /// What the packet is to the history.
    #[must_use]
    pub fn kind(&self) -> Kind {
        match self.byte(14) & 15 {
            TOUCH => Kind::Touch,
            BEAT => Kind::Beat,
            _ => Kind::Plain,
        }
    }

    /// What the sequencer said. A heartbeat's carrier is one of those for all cores.
    #[must_use]
    pub fn header(&self) -> Header {
        Header {
            sequence: self.sequence(),
            stamp: self.stamp(),
            core: match self.kind() {
                Kind::Beat => Core::All,
                _ => Core::One(self.core()),
            },
            port: self.port(),
            kind: self.kind(),
        }
    }

    /// The row with a number; none if it does not hold that one.
    #[must_use]
    pub fn row(&self, number: u64) -> Option<Row> {
        if !(self.oldest()..=self.sequence()).contains(&number) {
            return None;
        }
        let slot = slot_of(number, self.form.slots());
        let beat = self.beats() >> slot & 1 == 1;
        let time = self.times.get(slot).copied().unwrap_or(0);
        let mut row = Row::empty(self.form.shape(), number, time, beat);
        let bytes = row.bytes_mut().iter_mut();
        bytes.zip(self.slot(slot)).for_each(|(r, b)| *r = *b);
        Some(row)
    }

    /// The rows that it holds, oldest first. Times are 0 where rows have none.
    pub fn rows(&self) -> impl Iterator<Item = Row> {
        (self.oldest()..=self.sequence()).filter_map(|number| self.row(number))
    }

    /// The packet itself; empty in a heartbeat.
    #[must_use]
    pub fn packet(&self) -> &[u8] {
        let bytes = self.buffer.as_ref().get(self.form.prefix_bytes()..);
        bytes.unwrap_or(&[])
    }
}
