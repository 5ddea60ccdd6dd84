//! Sequencer of state-compute replication: numbers packets, and carries rows of their history to all cores.
//!
//! A *row* is what of a packet reaches state: bytes of a fixed size that [`Extract`] takes from a frame, or nothing, if the
//! packet cannot touch state. Every core applies all rows in the order of their numbers to its own copy of the state, and
//! processes one packet in `k` (Xu et al., State-Compute Replication, sections 3.2 and 3.3).
//!
//! [`step`] is the whole sequencer: from a [`State`], what arrives and a time to a [`Header`] and perhaps a [`Row`]. It reads
//! no clock and keeps nothing elsewhere. Hardware and other software that sequence are held to it by sequenced captures
//! (`millrace_traffic::sequenced`). What it gives reaches the cores in one of two forms:
//!
//! - [`ring`]: each row is written once into a ring that all cores read; a packet's descriptor has the number.
//! - [`prefix`]: a packet is prefixed with its own row and those before it, for sequencers in switches. Packets may be lost
//!   between sequencer and core; `fastpath/sync/recover.h` heals that.

mod form;
pub mod prefix;
pub mod ring;
mod step;
mod tag;
#[cfg(test)]
mod tests;

pub use form::{Form, FormError, Key, Shape};
pub use prefix::{Carrier, Prefix, Refusal};
pub use step::{
    Arrival, Core, Extract, Header, Kind, Row, Sequencer, State, StepError, step, together,
};

/// The most cores that packets are sprayed to.
pub const MAX_CORES: u16 = 64;
/// The most rows that a prefix holds.
pub const MAX_SLOTS: usize = 64;
/// The largest row, bytes.
pub const MAX_ROW: usize = 64;
/// Bytes of a time in a row: its low 40 bits, big-endian.
pub const TIME_BYTES: usize = 5;
/// The longest time between two rows in succession, ns; a heartbeat's row comes where there is no other.
pub const MAX_GAP: u64 = 1 << 38;
/// The last number of a row. At 100 million rows a second it is reached after 5,800 years; the sequencer then refuses rows,
/// and no number is given twice.
pub const LAST: u64 = u64::MAX - 1;
