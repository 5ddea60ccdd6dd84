//! Classes of other machines: where their packets go, and a class that goes to another machine or comes from one.
//!
//! A class that no worker of this machine has is *away*: its packets are sent on to the machine that has it ([`Elsewhere`]). Between the two
//! it *waits*: each queue parks its packets, in their order, until [`Classes::settle`] says where they go. A class that leaves is looked for,
//! held and taken out as one that moves between workers; the move ends there, so that another class may leave or come meanwhile.
//!
//! A packet that came in here and another one of its flow that follows may take different ways: over the machine that had the class, and to the one that
//! has it now. The later one waits until a *mark* that was sent behind the first has come to the worker of the class, by the way of the first, and its
//! answer has come back ([`Elsewhere::mark`]); for [`MARKED`] at most.
//!
//! What is parked is bounded ([`PARKED`] packets a queue, all classes together). A packet beyond it is dropped and counted, so that a peer that does
//! not answer costs packets of the class that waits for it and of no other.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::state::{Phase, State};
use super::{Classes, Inside, MOST, MoveError, Moved, Moving, What};
use crate::module::Stamped;

/// Packets that a queue keeps of classes that wait.
pub const PARKED: usize = 128;

/// How long packets wait for the answer to a mark. Beyond that they go, and may come before those of the way of before.
pub const MARKED: Duration = Duration::from_millis(20);

/// A bit of the number of machines that have sent a frame on: it is no packet, but a mark.
pub const MARK: u8 = 0x80;

/// The number that stands for no worker: away.
pub(super) const AWAY: u32 = u32::MAX;
/// The number that stands for no worker yet.
pub(super) const WAITS: u32 = u32::MAX - 1;

/// How long a class is waited for that has to take its turn behind another one.
pub(super) const TURN: Duration = Duration::from_millis(1);

/// Where the packets of a class go.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Whose {
    /// to this worker
    Worker(usize),
    /// nowhere yet
    Waits,
    /// to another machine
    Away,
}

impl Whose {
    #[inline]
    pub(super) fn of(number: u32) -> Self {
        match number {
            AWAY => Self::Away,
            WAITS => Self::Waits,
            worker => Self::Worker(worker as usize),
        }
    }
}

/// A packet that is to be sent on.
#[derive(Clone, Copy, Debug)]
pub struct Stray<'a> {
    /// its class
    pub class: u16,
    /// the port of the function that it came in at
    pub port: u32,
    /// how many machines have sent it on before this one; with [`MARK`] where it is none
    pub hops: u8,
    /// its bytes
    pub frame: &'a [u8],
}

/// Why a packet is dropped that a worker of this machine would not get, or might not.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// this machine may not accept packets now
    NoLease,
    /// no machine has its class
    NoOwner,
    /// it is longer than what goes between machines
    TooLong,
    /// the way to the other machine took no more
    Full,
    /// it was sent on before, and its class is not here either
    Circle,
    /// its class waits, and as many packets as may wait do so
    Waits,
}

/// Packets between machines, and buckets, so far.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, serde::Serialize, serde::Deserialize)]
#[serde(default)]
pub struct PeerCounts {
    /// buckets that workers of this machine have now
    pub buckets: u64,
    /// packets that were sent to the machine that has their bucket; they are in no fate here
    pub sent: u64,
    /// packets that came from other machines
    pub received: u64,
    /// of these, sent under an older table than this machine's
    pub older: u64,
    /// datagrams that came to the port between machines and were no packets of a peer
    pub malformed: u64,
    /// packets of other machines that came faster than they were taken: the socket's buffer was full. They were not read, and are in no fate
    pub missed: u64,
    /// packets that waited for a bucket's owner to be settled, or for the answer to a mark
    pub parked: u64,
    /// marks that were sent behind the last packet by a way that is no more
    pub marks: u64,
    /// of these, those whose answer did not come in time: packets that waited for it went without
    pub unmarked: u64,
    /// buckets that were taken out here to go to another machine
    pub given: u64,
    /// buckets that came from another machine and were put in
    pub taken: u64,
    /// entries of state in these
    pub entries: u64,
    /// hand-overs that this machine refused, or that another one refused
    pub refused: u64,
    /// copies of buckets; none where there are none
    #[serde(skip_serializing_if = "Option::is_none")]
    pub copies: Option<CopyCounts>,
}

/// Copies of this machine's buckets at others, and of others' here ([`crate::copies`]), so far.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, serde::Serialize, serde::Deserialize)]
#[serde(default)]
pub struct CopyCounts {
    /// rows that workers told: places of state with their new content
    pub rows: u64,
    /// bytes of these
    pub bytes: u64,
    /// of these rows, those that are not acknowledged yet: they are lost where this machine dies now
    pub behind: u64,
    /// changes that were not told at once as the machine that keeps the copy took too little; what is at their places is told later
    pub deferred: u64,
    /// from telling to the acknowledgement, of the row that was acknowledged last, ns
    pub delay_ns: u64,
    /// connections over which a copy began
    pub begun: u64,
    /// connections that ended since the other machine took nothing
    pub slow: u64,
    /// rows of other machines that were filed here
    pub filed: u64,
    /// entries of other machines of which there are copies here now
    pub entries: u64,
    /// rows of machines that died for which there was no room here
    pub full: u64,
    /// streams of rows that were refused
    pub refused: u64,
    /// buckets of machines that died with which this one went on
    pub inherited: u64,
    /// entries of these that were put in
    pub inherited_entries: u64,
    /// entries of these for which there was no room
    pub lost: u64,
    /// of these buckets, those of which the copy was not whole
    pub partial: u64,
}

impl PeerCounts {
    /// Those of two machines together; of a delay the longer one.
    pub fn add(&mut self, other: &Self) {
        for (mine, its) in [
            (&mut self.buckets, other.buckets),
            (&mut self.sent, other.sent),
            (&mut self.received, other.received),
            (&mut self.older, other.older),
            (&mut self.malformed, other.malformed),
            (&mut self.missed, other.missed),
            (&mut self.parked, other.parked),
            (&mut self.marks, other.marks),
            (&mut self.unmarked, other.unmarked),
            (&mut self.given, other.given),
            (&mut self.taken, other.taken),
            (&mut self.entries, other.entries),
            (&mut self.refused, other.refused),
        ] {
            *mine = mine.saturating_add(its);
        }
        if let Some(its) = &other.copies {
            self.copies.get_or_insert_default().add(its);
        }
    }
}

impl CopyCounts {
    fn add(&mut self, other: &Self) {
        for (mine, its) in [
            (&mut self.rows, other.rows),
            (&mut self.bytes, other.bytes),
            (&mut self.behind, other.behind),
            (&mut self.deferred, other.deferred),
            (&mut self.begun, other.begun),
            (&mut self.slow, other.slow),
            (&mut self.filed, other.filed),
            (&mut self.entries, other.entries),
            (&mut self.full, other.full),
            (&mut self.refused, other.refused),
            (&mut self.inherited, other.inherited),
            (&mut self.inherited_entries, other.inherited_entries),
            (&mut self.lost, other.lost),
            (&mut self.partial, other.partial),
        ] {
            *mine = mine.saturating_add(its);
        }
        self.delay_ns = self.delay_ns.max(other.delay_ns);
    }
}

/// Other machines, as queues see them. Called for each packet by workers: it does not wait.
pub trait Elsewhere: Send + Sync {
    /// Whether this machine may accept packets now; asked once a burst.
    fn accepts(&self) -> bool;

    /// Sends a packet to the machine that has its class.
    ///
    /// # Errors
    /// It did not go; why.
    fn send(&self, packet: &Stray<'_>) -> Result<(), Refusal>;

    /// What went between machines so far.
    fn counts(&self) -> PeerCounts;

    /// Notes that a packet waits.
    fn parked(&self);

    /// The machine that has a class, by its number; none where no machine has it.
    fn owner(&self, class: u16) -> Option<u16>;

    /// Sends a mark behind the packets of a class that were sent to machine `by` before. Its number; none where nothing can be sent there.
    fn mark(&self, class: u16, port: u32, by: u16) -> Option<u64>;

    /// Whether the answer to a mark has come, which is said once.
    fn passed(&self, number: u64) -> bool;

    /// A mark has come to the worker of its class, behind the packets before it: answers.
    fn reached(&self, class: u16, mark: &[u8]);

    /// Notes that the answer to a mark did not come in time.
    fn unmarked(&self);
}

/// A class that waits: its entries are at no worker, or at one that has no packets of it.
pub(super) struct Waiting {
    /// the worker that had it, or is to have it
    pub home: usize,
    /// its entries are there
    pub there: bool,
}

/// Where a class that waits is to go.
#[derive(Clone, Debug)]
pub enum Settled {
    /// a worker of this machine gets it, with these entries, which [`Classes::give`] took out
    Here(Vec<(usize, Stamped)>),
    /// to another machine; entries that are here are forgotten
    Away,
}

impl Classes {
    /// Where the packets of a class go.
    #[inline]
    #[must_use]
    pub fn whose(&self, class: u16) -> Whose {
        let worker = self.worker.get(usize::from(class));
        // As `worker`.
        worker.map_or(Whose::Worker(0), |w| Whose::of(w.load(Ordering::Acquire)))
    }

    /// Takes the entries of a class out, whose packets wait from then on until [`Self::settle`].
    ///
    /// # Errors
    /// It stays where it was.
    pub fn give(&self, class: usize) -> Result<Vec<(usize, Stamped)>, MoveError> {
        let class = self.known(class)?;
        if self.lock().pauses > 0 {
            return Err(MoveError::Asked);
        }
        self.out(class)
    }

    /// Puts the entries of a class in that is away, all or none. Its packets wait until [`Self::settle`].
    ///
    /// # Errors
    /// [`MoveError::Full`]; [`MoveError::Changed`], where another version of the function runs than the one of `generation`
    /// ([`Self::runs`]), of which these entries are; the class is away as before.
    pub fn take(
        &self,
        class: usize,
        entries: Vec<(usize, Stamped)>,
        generation: u64,
    ) -> Result<Moved, MoveError> {
        let class = self.known(class)?;
        let mut inside = self.turn()?;
        if inside.pauses > 0 {
            return Err(MoveError::Asked);
        }
        if inside.versions.generation != generation {
            return Err(MoveError::Changed);
        }
        if self.whose(class) != Whose::Away {
            return Err(MoveError::There);
        }
        let to = self.least();
        self.place(class, WAITS);
        let home = Waiting {
            home: to,
            there: false,
        };
        inside.waiting.insert(class, home);
        let put = self.comes(inside, (class, to), entries);
        if put.is_err() {
            let mut inside = self.lock();
            inside.waiting.remove(&class);
            self.place(class, AWAY);
            self.announce(&inside);
        }
        put
    }

    /// Says where a class is from now on; packets that wait go there.
    ///
    /// # Errors
    /// It is where it was: entries found no room, or the run ends.
    pub fn settle(&self, class: usize, place: Settled) -> Result<(), MoveError> {
        let class = self.known(class)?;
        let Settled::Here(entries) = place else {
            return self.leaves(class);
        };
        let home = match (self.whose(class), self.lock().waiting.get(&class)) {
            (Whose::Worker(_), _) => return Ok(()),
            (_, Some(waiting)) => waiting.home,
            (_, None) => self.least(),
        };
        if !entries.is_empty() {
            let inside = self.turn()?;
            self.comes(inside, (class, home), entries)?;
        }
        let mut inside = self.lock();
        inside.waiting.remove(&class);
        self.place(class, home as u32);
        self.announce(&inside);
        Ok(())
    }

    /// A class has no place here any more.
    fn leaves(&self, class: u16) -> Result<(), MoveError> {
        let there = match self.whose(class) {
            Whose::Away => return Ok(()),
            Whose::Worker(_) => true,
            Whose::Waits => self.lock().waiting.get(&class).is_some_and(|w| w.there),
        };
        if there {
            self.out(class)?;
        }
        let mut inside = self.lock();
        inside.waiting.remove(&class);
        self.place(class, AWAY);
        self.announce(&inside);
        Ok(())
    }

    /// Takes entries out of the worker that has them.
    fn out(&self, class: u16) -> Result<Vec<(usize, Stamped)>, MoveError> {
        let mut inside = self.turn()?;
        let from = match (self.whose(class), inside.waiting.get(&class)) {
            (Whose::Worker(from), _) => from,
            (Whose::Waits, Some(waiting)) if waiting.there => waiting.home,
            _ => return Err(MoveError::Gone),
        };
        let began = Instant::now();
        inside.begin(
            What::Out { class, from },
            State::new(Phase::Looking, self.workers),
        );
        self.announce(&inside);
        self.ends(inside, began)?;
        Ok(std::mem::take(&mut self.lock().given))
    }

    /// Puts entries into a worker that has no packets of their class.
    fn comes(
        &self,
        mut inside: std::sync::MutexGuard<'_, Inside>,
        (class, to): (u16, usize),
        entries: Vec<(usize, Stamped)>,
    ) -> Result<Moved, MoveError> {
        let began = Instant::now();
        let mut state = State::new(Phase::Putting, self.workers);
        state.brings(entries);
        inside.begin(What::In { class, to }, state);
        self.announce(&inside);
        self.ends(inside, began)
    }

    /// The lock, once nothing moves.
    fn turn(&self) -> Result<std::sync::MutexGuard<'_, Inside>, MoveError> {
        let began = Instant::now();
        let mut inside = self.lock();
        loop {
            match inside.admits() {
                Ok(()) if inside.moving.is_none() && inside.ended.is_none() => return Ok(inside),
                Ok(()) | Err(MoveError::Asked) if began.elapsed() < MOST => {}
                Ok(()) => return Err(MoveError::Busy),
                Err(error) => return Err(error),
            }
            let waited = self.changed.wait_timeout(inside, TURN);
            inside = waited.unwrap_or_else(std::sync::PoisonError::into_inner).0;
        }
    }

    fn known(&self, class: usize) -> Result<u16, MoveError> {
        let count = self.count();
        match u16::try_from(class) {
            Ok(known) if class < count => Ok(known),
            _ => Err(MoveError::NoClass { class, count }),
        }
    }

    pub(super) fn place(&self, class: u16, number: u32) {
        if let Some(worker) = self.worker.get(usize::from(class)) {
            worker.store(number, Ordering::Release);
        }
    }

    /// The worker with the fewest classes, of those that have any.
    fn least(&self) -> usize {
        let used = self.workers().1.max(1);
        let mut has = vec![0_u32; used];
        for worker in self.table() {
            if let Some(has) = has.get_mut(worker) {
                *has += 1;
            }
        }
        let least = has.iter().enumerate().min_by_key(|(_, has)| **has);
        least.map_or(0, |(worker, _)| worker)
    }
}

impl Inside {
    /// Something begins to move.
    pub(super) fn begin(&mut self, what: What, state: State) {
        let members = self.members.len();
        self.moving = Some(Moving {
            what,
            began: Instant::now(),
            marks: vec![None; members],
            through: vec![false; members],
            state,
            turned: Vec::new(),
            moved: None,
        });
    }
}
