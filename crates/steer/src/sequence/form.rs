//! What sequencer and cores agree on before the first packet.

use super::{MAX_CORES, MAX_GAP, MAX_ROW, MAX_SLOTS, TIME_BYTES};

/// Size of a row, and where its time is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shape {
    row_bytes: usize,
    time: Option<usize>,
}

impl Shape {
    /// Rows of `row_bytes` bytes, 1 to 64. `time` is the offset of [`TIME_BYTES`] bytes that the sequencer sets to the
    /// packet's time; none if the program needs no time.
    ///
    /// # Errors
    /// [`FormError::Row`], [`FormError::Time`].
    pub fn new(row_bytes: usize, time: Option<usize>) -> Result<Self, FormError> {
        if !(1..=MAX_ROW).contains(&row_bytes) {
            return Err(FormError::Row(row_bytes));
        }
        match time {
            Some(at) if at.saturating_add(TIME_BYTES) > row_bytes => {
                Err(FormError::Time { at, row_bytes })
            }
            _ => Ok(Self { row_bytes, time }),
        }
    }

    /// Bytes of a row.
    #[must_use]
    pub fn row_bytes(&self) -> usize {
        self.row_bytes
    }

    /// Offset of the time in a row.
    #[must_use]
    pub fn time(&self) -> Option<usize> {
        self.time
    }
}

/// Secret that sequencer and cores share, for the tag of a carrier.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Key(pub [u8; 16]);

impl std::fmt::Debug for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Key(…)")
    }
}

/// Prefix form: how many rows each packet carries, to how many cores.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Form {
    cores: u16,
    slots: usize,
    shape: Shape,
    key: Option<Key>,
}

impl Form {
    /// `slots` rows a packet, its own and those before it, sprayed over `cores` cores in turn.
    ///
    /// A core receives every k-th packet, so that without loss it needs k rows. With m·k it needs no other core's help after
    /// m - 1 of its packets in succession are lost. (A prefix with R rows beside the packet's own needs R ≥ mk - 1.)
    ///
    /// # Errors
    /// [`FormError::Cores`], [`FormError::Slots`], [`FormError::Few`].
    pub fn new(cores: u16, slots: usize, shape: Shape) -> Result<Self, FormError> {
        if !(1..=MAX_CORES).contains(&cores) {
            return Err(FormError::Cores(cores));
        }
        if !(1..=MAX_SLOTS).contains(&slots) {
            return Err(FormError::Slots(slots));
        }
        if slots < usize::from(cores) {
            return Err(FormError::Few { slots, cores });
        }
        Ok(Self {
            cores,
            slots,
            shape,
            key: None,
        })
    }

    /// The same with a tag on each carrier, which only holders of the key can make.
    #[must_use]
    pub fn with_key(mut self, key: Key) -> Self {
        self.key = Some(key);
        self
    }

    /// Cores that packets are sprayed to.
    #[must_use]
    pub fn cores(&self) -> u16 {
        self.cores
    }

    /// Rows of a prefix, the packet's own included.
    #[must_use]
    pub fn slots(&self) -> usize {
        self.slots
    }

    /// Size of a row.
    #[must_use]
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// Secret of the tags.
    #[must_use]
    pub fn key(&self) -> Option<Key> {
        self.key
    }

    /// How many packets in succession a core may lose and still find all rows in its next packet.
    #[must_use]
    pub fn healed(&self) -> usize {
        self.slots / usize::from(self.cores) - 1
    }

    /// Bytes in front of each packet.
    #[must_use]
    pub fn prefix_bytes(&self) -> usize {
        let tag = if self.key.is_some() { 8 } else { 0 };
        super::prefix::FIXED + self.slots.div_ceil(8) + self.slots * self.shape.row_bytes + tag
    }

    /// The most slots of a prefix of at most `bytes` bytes, 0 to 64: what fits into the headroom of a driver (XDP: 216), or
    /// beside a packet into the MTU.
    #[must_use]
    pub fn slots_within(bytes: usize, shape: Shape, keyed: bool) -> usize {
        let fixed = super::prefix::FIXED + if keyed { 8 } else { 0 };
        let fits = |slots: usize| fixed + slots.div_ceil(8) + slots * shape.row_bytes <= bytes;
        (1..=MAX_SLOTS).rev().find(|s| fits(*s)).unwrap_or(0)
    }
}

/// Settings that no sequencer can have.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum FormError {
    /// A row without bytes, or too large.
    #[error("a row has 1 to {MAX_ROW} bytes, and this one has {0}")]
    Row(usize),
    /// A time that is not inside of the row.
    #[error("a time of {TIME_BYTES} bytes at byte {at} is not inside of a row of {row_bytes}")]
    Time {
        /// its offset
        at: usize,
        /// bytes of the row
        row_bytes: usize,
    },
    /// No core, or too many.
    #[error("packets are sprayed over 1 to {MAX_CORES} cores, not {0}")]
    Cores(u16),
    /// No slot, or too many.
    #[error("a prefix has 1 to {MAX_SLOTS} slots, not {0}")]
    Slots(usize),
    /// A core would miss rows although no packet is lost.
    #[error(
        "{slots} slots are too few for {cores} cores: a core receives every {cores}th packet, so that each has to carry at \
         least {cores} rows; m times {cores} heal m - 1 packets lost in succession"
    )]
    Few {
        /// rows of a prefix
        slots: usize,
        /// cores
        cores: u16,
    },
    /// A period that is too long or none.
    #[error("heartbeats come 1 to {MAX_GAP} ns apart, not {0}")]
    Period(u64),
}
