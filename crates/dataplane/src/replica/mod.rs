//! State-compute replication on workers: each has all state, packets are sprayed, and rows carry to each worker what of the
//! packets of others reaches state (Xu et al., *State-Compute Replication*; docs/replication.md).
//!
//! This is the ring form. A [`Sequencing`] numbers packets by `millrace_steer::sequence::step`, which is the whole sequencer,
//! and writes each row once into the ring of the [`Group`]. A packet's descriptor carries its [`Place`] in the order of rows.
//! Each worker's [`Replica`] applies all rows before a packet's place, then runs the packet with its own row. So all
//! replicas do the same to their state in the same order.
//!
//! What happens without a packet has a row without content, a heartbeat: timers (`EVERY`), timers in the values of maps
//! where no row comes, and edits from outside ([`Group::edit`]). At a heartbeat each replica does what is due at its time.
//!
//! The sequencer of the ring waits for no replica. One that stalls until its next row has been overwritten stops, and the
//! run with it ([`Fault::Overrun`]).

mod batch;
mod edits;
#[allow(unsafe_code, reason = "descriptors carry addresses over the border")]
mod follow;
mod heavy;
mod listing;
#[allow(unsafe_code, reason = "descriptors carry addresses over the border")]
mod mixed;
mod moves;
mod periods;
mod rows;
mod sequencing;
#[cfg(test)]
mod tests;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use millrace_steer::Owners;
use millrace_steer::hybrid::PERIOD;
use millrace_steer::sequence::ring::Ring;
use millrace_steer::sequence::{FormError, MAX_CORES, Shape};

pub use batch::{Batch, Came, Numbered, Wait};
pub use edits::{At, Change, Edit, Effect};
pub use follow::Replica;
pub use heavy::{Choice, Elephant};
pub use listing::Listing;
pub use mixed::{Mixed, Small};
pub use moves::Heavies;
pub use periods::Counted;
pub use sequencing::{Sequencing, SequencingError};

use crate::account::Failure;
use crate::module::Module;
use crate::packet::MAX_FRAME;
use crate::runner::Timers;
use crate::worker::keep::Part;
use edits::Edits;
use moves::Moves;
use periods::Periods;

/// Rows of a ring where nobody says how many: a worker may be 65,536 rows behind, a few milliseconds at the highest rates.
pub const ROWS: usize = 1 << 16;

/// In a place: the packet's key is replicated, others are sharded. Numbers have 61 bits, which is 700 years of rows at 100 million a
/// second; the bit above belongs to descriptors of `vnic:`.
const HEAVY: u64 = 1 << 62;

/// A packet's place in the order of rows, as a descriptor carries it (`mr_packet.commit`).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Place(u64);

impl Place {
    /// With row `sequence` of its own; or without one, behind row `sequence`, which is 0 before the first row.
    #[must_use]
    pub fn new(sequence: u64, own: bool) -> Self {
        Self((sequence & ((HEAVY - 1) >> 1)) << 1 | u64::from(own))
    }

    /// The same of a packet whose key is replicated, where others are sharded.
    #[must_use]
    pub fn of_heavy(self) -> Self {
        Self(self.0 | HEAVY)
    }

    /// Whether the packet's key is replicated where others are sharded.
    #[must_use]
    pub fn heavy(self) -> bool {
        self.0 & HEAVY != 0
    }

    /// From what a descriptor carries.
    #[must_use]
    pub fn of(word: u64) -> Self {
        Self(word)
    }

    /// As a descriptor carries it.
    #[must_use]
    pub fn word(self) -> u64 {
        self.0
    }

    /// The number of its row, or of the last one before it.
    #[must_use]
    pub fn sequence(self) -> u64 {
        (self.0 & (HEAVY - 1)) >> 1
    }

    /// Whether the packet has a row.
    #[must_use]
    pub fn own(self) -> bool {
        self.0 & 1 != 0
    }
}

/// What all replicas of a function have in common.
#[derive(Debug)]
pub struct Group {
    ring: Ring,
    shape: Shape,
    workers: u32,
    /// ns since the epoch: when the state begins
    start: u64,
    /// as they are when it does
    timers: Timers,
    /// what is added to the numbers of packets: those that earlier runs had
    base: u64,
    /// packets by the last row, those of earlier runs included
    packets: AtomicU64,
    /// up to which number the descriptors of all packets have been handed to their workers
    handed: batch::Turn,
    /// a worker waits for the last row
    sealed: AtomicBool,
    /// the number of the last row and 1, once there is no other
    last: AtomicU64,
    edits: Edits,
    turns: batch::Turns,
    periods: Periods,
    moves: Moves,
    /// only some keys are replicated
    heavies: Option<Heavies>,
    /// by port, owners of the packets where workers have parts of some objects; none: packets are sprayed
    owners: Vec<Owners>,
    /// what became of these so far, for readers from outside
    told: Mutex<Vec<Elephant>>,
    /// periods of the choice of heavy keys between one and its promotion
    ahead: u32,
}

impl Group {
    /// For `workers` replicas of a module whose state is replicated, with a ring of `rows` rows. `start` (ns since the
    /// epoch) is when the state begins.
    ///
    /// # Errors
    /// More workers than a sequencer sprays over, or a module without rows.
    pub fn new(
        module: &Module,
        workers: usize,
        rows: usize,
        start: u64,
    ) -> Result<Arc<Self>, FormError> {
        Self::made(module, (workers, rows), start, (None, Vec::new()))
    }

    /// The same for workers that have parts of some objects, which are beside those that are replicated: packets go to their owners, by
    /// port (the last one's for ports behind it).
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn of_parts(
        module: &Module,
        (workers, rows): (usize, usize),
        start: u64,
        owners: Vec<Owners>,
    ) -> Result<Arc<Self>, FormError> {
        Self::made(module, (workers, rows), start, (None, owners))
    }

    /// The same for workers that have replicas of a few heavy keys, and parts of the rest; the module is that of the replicas.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn of_heavies(
        small: &Small,
        workers: usize,
        rows: usize,
        start: u64,
    ) -> Result<Arc<Self>, FormError> {
        let heavies = Some(small.heavies.clone());
        Self::made(&small.module, (workers, rows), start, (heavies, Vec::new()))
    }

    fn made(
        module: &Module,
        (workers, rows): (usize, usize),
        start: u64,
        (heavies, owners): (Option<Heavies>, Vec<Owners>),
    ) -> Result<Arc<Self>, FormError> {
        let shape = Shape::new(module.row_bytes().unwrap_or(0), None)?;
        let cores = u16::try_from(workers).unwrap_or(u16::MAX);
        if !(1..=MAX_CORES).contains(&cores) {
            return Err(FormError::Cores(cores));
        }
        Ok(Arc::new(Self {
            ring: Ring::new(rows, shape),
            shape,
            workers: u32::from(cores),
            start,
            timers: Timers::new(module.timers(), start),
            base: 0,
            packets: AtomicU64::new(0),
            handed: batch::Turn::default(),
            sealed: AtomicBool::new(false),
            last: AtomicU64::new(0),
            edits: Edits::new(workers),
            turns: batch::Turns::default(),
            periods: Periods::default(),
            moves: Moves::new(workers),
            ahead: ahead(module, heavies.as_ref(), cores),
            heavies,
            owners,
            told: Mutex::default(),
        }))
    }

    /// Goes on where an earlier run was, whose workers left `begin`, with timers of these periods. `numbered`: the packets come with
    /// numbers behind those of the earlier run, as captures' do. Before anybody else has the group.
    pub fn go_on(group: &mut Arc<Self>, begin: &[Part], numbered: bool, periods: &[u64]) {
        let (Some(group), Some(part)) = (Arc::get_mut(group), begin.first()) else {
            return;
        };
        let packets = begin.iter().fold(0_u64, |n, p| n.wrapping_add(p.packets));
        group.base = if numbered { 0 } else { packets };
        group.packets = AtomicU64::new(packets);
        if let Some(stage) = part.stages.first() {
            let shift = part.time.saturating_sub(group.start);
            let (since, past) = &stage.timers;
            group.timers = Timers::resumed(periods, since.saturating_sub(shift), past, group.start);
        }
    }

    /// Timers (`EVERY`) as they are when the state begins.
    #[must_use]
    pub fn timers(&self) -> &Timers {
        &self.timers
    }

    /// Packets by the last row, those of earlier runs included, once there is no other row.
    #[must_use]
    pub fn packets(&self) -> u64 {
        self.packets.load(Ordering::Acquire)
    }

    /// How many replicas there are.
    #[must_use]
    pub fn workers(&self) -> u32 {
        self.workers
    }

    /// Who gets a packet that comes in at a port; none where packets are sprayed.
    #[must_use]
    pub fn owner(&self, port: u32, frame: &[u8]) -> Option<u32> {
        let owners = self.owners.get(port as usize).or(self.owners.last())?;
        let frame = frame.get(..MAX_FRAME).unwrap_or(frame);
        Some(owners.owner(frame).min(self.workers - 1))
    }

    /// Whether the sequencer says of each packet who gets it.
    #[must_use]
    pub fn directs(&self) -> bool {
        self.heavies.is_some() || !self.owners.is_empty()
    }

    /// The heavy keys' part, where only these are replicated.
    #[must_use]
    pub fn heavies(&self) -> Option<&Heavies> {
        self.heavies.as_ref()
    }

    /// The number of the last row that replicas may have seen.
    #[must_use]
    pub fn rows(&self) -> u64 {
        self.ring.head()
    }

    /// What became of heavy keys by now, some thousands of packets late; none where all are replicated.
    #[must_use]
    pub fn elephants(&self) -> Option<Vec<Elephant>> {
        self.heavies.as_ref()?;
        let told = self.told.lock();
        Some(told.unwrap_or_else(PoisonError::into_inner).clone())
    }

    /// Tells readers what became of heavy keys.
    fn tell(&self, told: &[Elephant]) {
        let mut place = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        place.clear();
        place.extend_from_slice(told);
    }

    /// Promotions of heavy keys whose entries were looked for ahead, and those that walked whole tables.
    #[must_use]
    pub fn looks(&self) -> (u64, u64) {
        self.moves.looks()
    }

    /// Entries that were moved and found no room.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.moves.all_lost()
    }

    /// When the state begins, ns since the epoch.
    #[must_use]
    pub fn start(&self) -> u64 {
        self.start
    }

    /// The row up to which all descriptors have been handed to their workers: a worker that reads this and then finds no
    /// packet may apply all rows up to it.
    #[inline]
    #[must_use]
    pub fn handed(&self) -> u64 {
        self.handed.0.load(Ordering::Acquire)
    }

    /// Bytes of the ring.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        (self.ring.places() * self.ring.place_bytes()) as u64
    }

    /// Asks for an edit: the sequencer gives it a number, and all replicas make it at that place in the order. By what it
    /// can be withdrawn; none where the run has ended.
    #[must_use]
    pub fn edit(&self, edit: Edit) -> Option<u64> {
        self.edits.ask(edit)
    }

    /// Takes an edit back that has no number yet; false where it has one, and is made.
    #[must_use]
    pub fn withdraw(&self, edit: u64) -> bool {
        self.edits.withdraw(edit)
    }

    /// No edit is taken any more; those without a number are dropped, which whoever waits for their results notices.
    pub fn close(&self) {
        self.edits.close();
    }

    /// The same once no replica applies rows any more: all are dropped.
    pub fn end(&self) {
        self.edits.forget();
    }

    /// A worker's ports have ended: the sequencer makes no row any more once it has no packets, see [`Self::last`].
    pub fn seal(&self) {
        self.close();
        self.sealed.store(true, Ordering::Release);
    }

    /// Whether a worker waits for the last row.
    #[must_use]
    pub fn sealed(&self) -> bool {
        self.sealed.load(Ordering::Acquire)
    }

    /// Row `number` was the last one.
    fn end_at(&self, number: u64) {
        self.last.store(number.saturating_add(1), Ordering::Release);
    }

    /// The last row there is; none while there may be more.
    #[must_use]
    pub fn last(&self) -> Option<u64> {
        self.last.load(Ordering::Acquire).checked_sub(1)
    }
}

/// Periods in which an owner has listed all places of its part, if it has its share of the packets in bursts of 32: that long before its
/// row a key is announced.
fn ahead(module: &Module, heavies: Option<&Heavies>, cores: u16) -> u32 {
    let Some(heavies) = heavies else { return 0 };
    let all = module.objects();
    let places = heavies.objects.iter().filter_map(|o| all.get(*o));
    let places = places.fold(0_u64, |n, o| n.saturating_add(o.capacity));
    let bursts = (u64::from(PERIOD) / (32 * u64::from(cores.max(1)))).max(1);
    let periods = places.div_ceil(bursts.saturating_mul(listing::STEP));
    periods.clamp(1, MOST_AHEAD) as u32
}

/// Periods between a choice and its promotion at most: what is not listed by then is listed at the row.
const MOST_AHEAD: u64 = 64;

/// Why a replica cannot go on.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Fault {
    /// It stalled while the ring went round.
    #[error(
        "replica {worker} has stalled: row {row} was overwritten before it was applied, the ring holds {rows} rows"
    )]
    Overrun {
        /// its worker
        worker: u32,
        /// the row that is gone
        row: u64,
        /// rows of the ring
        rows: u64,
    },
    /// A descriptor came before its row.
    #[error(
        "replica {worker} was given a packet behind row {row}, which the sequencer has not written"
    )]
    Ahead {
        /// its worker
        worker: u32,
        /// the row
        row: u64,
    },
    /// A descriptor came behind one with a later row.
    #[error("replica {worker} was given a packet of row {row} when it had applied row {applied}")]
    Late {
        /// its worker
        worker: u32,
        /// the packet's row
        row: u64,
        /// the last row that was applied
        applied: u64,
    },
    /// A worker that it waited for is gone.
    #[error("replica {worker} waits at row {row} for a worker that has ended")]
    Gone {
        /// its worker
        worker: u32,
        /// the row
        row: u64,
    },
    /// A row that is none.
    #[error("replica {worker} was given row {row}, which is no row of this function")]
    Malformed {
        /// its worker
        worker: u32,
        /// the row
        row: u64,
    },
}

impl From<Fault> for Failure {
    fn from(fault: Fault) -> Self {
        let help = match fault {
            Fault::Overrun { .. } => {
                "its state would differ from that of the others from there on, so the run has ended: give each worker a \
                 processor of its own (--cpus), fewer packets a second, or a longer ring (--history-rows)"
            }
            Fault::Gone { .. } => {
                "the fault of that worker, which is told beside this one, ended the run"
            }
            _ => "this is a defect of the sequencer: please report it with the command",
        };
        Self {
            error: fault.to_string(),
            help: help.into(),
        }
    }
}
