//! Sequencer of a group: numbers packets, and writes rows and heartbeats into the ring.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use millrace_steer::hybrid::{Key, Move};
use millrace_steer::sequence::{
    Arrival, Core, Header, Kind, MAX_GAP, Row, State, StepError, step, together,
};

use super::heavy::{Chooser, Goes};
use super::rows::{Changes, Rows, Seat};
use super::{At, Came, Choice, Counted, Effect, Elephant, Group, Place};
use crate::module::{Config, Module, ModuleError};
use crate::runner::Timers;

/// How late a timer in a value may fire where no packet comes, ns.
const IDLE: u64 = 1_000_000;

/// Why there is no sequencer, or it cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum SequencingError {
    /// More workers than it sprays over, or a function without rows.
    #[error(transparent)]
    Form(#[from] millrace_steer::sequence::FormError),
    /// There is no memory for the instance that makes rows.
    #[error(transparent)]
    Module(#[from] ModuleError),
}

/// Numbers what comes, in the order in which it is called.
pub struct Sequencing {
    group: Arc<Group>,
    state: State,
    rows: Rows,
    timers: Timers,
    /// values of maps have timers: a packet that only reads has to find those fired that are due
    alarms: bool,
    /// of the last packet or heartbeat, ns
    time: u64,
    changes: Changes,
    /// the least number, behind those of earlier runs, that no packet has
    packets: u64,
    /// the last row was made
    over: bool,
    /// only some keys are replicated
    chooser: Option<Chooser>,
}

impl Sequencing {
    /// For a group of replicas that run packet entry `program` of a module, with this state at start, between `ports` ports.
    ///
    /// # Errors
    /// There is no memory for the instance that makes rows.
    pub fn new(
        group: &Arc<Group>,
        module: &Arc<Module>,
        config: &Config,
        (program, ports): (usize, u32),
    ) -> Result<Self, SequencingError> {
        let config = Config {
            time: group.start,
            // Rows depend on settings, not on what is in maps.
            entries: Vec::new(),
            ..config.clone()
        };
        let cores = u16::try_from(group.workers).unwrap_or(u16::MAX);
        let mut changes = Changes::default();
        let base = group.base;
        let of = (
            &config,
            Seat {
                program,
                ports,
                base,
                enters: Vec::new(),
            },
        );
        Ok(Self {
            state: State::new(cores, MAX_GAP)?.after(0, group.start),
            rows: Rows::new(group.shape, module, of, &mut changes)?,
            timers: group.timers.clone(),
            packets: group.packets(),
            alarms: module.has_alarms(),
            time: group.start,
            changes,
            over: false,
            chooser: (group.heavies())
                .map(|h| Chooser::new(h, cores, (Choice::Measured, group.ahead))),
            group: group.clone(),
        })
    }

    /// Another thread's rows: made as this one makes them.
    ///
    /// # Errors
    /// There is no memory for its instance.
    pub(super) fn rows(&mut self) -> Result<Rows, ModuleError> {
        self.rows.another(&mut self.changes)
    }

    /// Lets another thread's rows be made with the settings of now; whether these have changed.
    pub(super) fn catch_up(&mut self, rows: &mut Rows) -> bool {
        rows.catch_up(&mut self.changes)
    }

    /// The same in a chain, whose ports lead to these of the function's, or to other elements: before anybody else makes rows.
    #[must_use]
    pub fn entering(mut self, enters: Vec<Option<u32>>) -> Self {
        self.rows.entering(enters);
        self
    }

    /// The same, with another choice of heavy keys where only these are replicated.
    #[must_use]
    pub fn choosing(mut self, choice: Choice) -> Self {
        let heavies = self.group.heavies();
        let of = (choice, self.group.ahead);
        self.chooser = heavies.map(|h| Chooser::new(h, self.group.workers as u16, of));
        self
    }

    /// What became of heavy keys; none where all are replicated.
    #[must_use]
    pub fn elephants(&self) -> Option<&[Elephant]> {
        self.chooser.as_ref().map(Chooser::told)
    }

    /// Promotions and demotions of heavy keys; none where all are replicated.
    #[must_use]
    pub fn moves(&self) -> Option<(u64, u64)> {
        self.chooser.as_ref().map(Chooser::moves)
    }

    /// Where only heavy keys are replicated: looks at a packet that comes next, and moves keys before it.
    ///
    /// # Errors
    /// As [`Self::packet`].
    pub fn look(&mut self, came: &Came<'_>, time: u64) -> Result<(), StepError> {
        let Some(chooser) = &mut self.chooser else {
            return Ok(());
        };
        let moves = chooser.count(came);
        self.make(moves, time)
    }

    /// The same at the end of a period that several threads have counted; gives the keys that are replicated from now on. `frame`
    /// gives a packet of a key.
    ///
    /// # Errors
    /// As [`Self::packet`].
    pub(super) fn period<'a>(
        &mut self,
        counted: &Counted,
        time: u64,
        frame: &dyn Fn(Key) -> &'a [u8],
    ) -> Result<Vec<Key>, StepError> {
        let chooser = self.chooser.as_mut();
        let moves = chooser.map_or_else(Vec::new, |c| c.period(counted, frame));
        self.make(moves, time)?;
        Ok(self.chooser.as_ref().map(Chooser::keys).unwrap_or_default())
    }

    /// Moves keys behind all packets so far.
    fn make(&mut self, moves: Vec<(Move, Key, u32)>, time: u64) -> Result<(), StepError> {
        self.announce();
        if moves.is_empty() {
            if let Some(chooser) = self.chooser.as_ref().filter(|c| c.tells()) {
                self.group.tell(chooser.told());
            }
            return Ok(());
        }
        let time = time.max(self.time);
        self.before(time)?;
        for of in moves {
            let last = self.state.sequence();
            let Some(chooser) = &mut self.chooser else {
                break;
            };
            let Some(moving) = chooser.shift(of, last) else {
                continue;
            };
            self.group.moves.place(moving);
            self.beat(time)?;
        }
        self.announce();
        if let Some(chooser) = &self.chooser {
            self.group.tell(chooser.told());
        }
        Ok(())
    }

    /// Tells owners of keys that will be promoted.
    fn announce(&mut self) {
        let news = self.chooser.as_mut().map(Chooser::news);
        if let Some(news) = news.filter(|n| !n.is_empty()) {
            self.group.moves.announce(news);
        }
    }

    /// What it numbers for.
    #[must_use]
    pub fn group(&self) -> &Arc<Group> {
        &self.group
    }

    /// The time of the last packet or heartbeat, ns.
    #[must_use]
    pub fn time(&self) -> u64 {
        self.time
    }

    /// The number of the last row.
    #[must_use]
    pub fn sequence(&self) -> u64 {
        self.state.sequence()
    }

    /// Numbers a packet that comes in at `port`, as the `number`th of all, at `time` (ns), after heartbeats for what is due
    /// before it; says which worker's turn it is. Time that goes back stands still, and the packet has to be given to the
    /// function with that time.
    ///
    /// # Errors
    /// [`StepError::Exhausted`]: there is no number left.
    pub fn packet(
        &mut self,
        frame: &[u8],
        port: u32,
        number: u64,
        time: u64,
    ) -> Result<(Place, u32), StepError> {
        let came = Came {
            frame,
            port,
            number,
        };
        self.came(&came, time)
    }

    /// The same of a packet that somebody else knows more of.
    ///
    /// # Errors
    /// As [`Self::packet`].
    pub fn came(&mut self, came: &Came<'_>, time: u64) -> Result<(Place, u32), StepError> {
        self.before(time)?;
        self.rows.number(came.number);
        self.numbered(came.number);
        if let Some(chooser) = &mut self.chooser {
            match chooser.goes(came) {
                Goes::To(owner) => {
                    self.time = self.time.max(time);
                    let place = Place::new(self.state.sequence(), false);
                    return Ok((place, owner.min(self.group.workers - 1)));
                }
                Goes::Around => chooser.placed(came),
            }
        }
        let (frame, port) = (came.frame, came.port);
        let arrival = Arrival::Packet {
            frame,
            port: port as u16,
        };
        let (header, row) = step(&mut self.state, &self.rows, arrival, time)?;
        if let Some(row) = &row {
            self.group.ring.put(row);
        }
        let (place, turn) = self.placed(header)?;
        let owner = match self.chooser {
            Some(_) => None,
            None => self.group.owner(port, frame),
        };
        Ok((place, owner.unwrap_or(turn)))
    }

    /// A packet of this number has come.
    #[inline]
    fn numbered(&mut self, number: u64) {
        let number = number.wrapping_add(self.group.base);
        self.packets = self.packets.max(number.wrapping_add(1));
    }

    /// Numbers packets that came together at the time of [`Self::time_for`], the last of them as the `last`th of all, and their rows,
    /// which have to be put into the ring; the number of the last row before them.
    ///
    /// # Errors
    /// As [`Self::packet`].
    pub(super) fn together(
        &mut self,
        (packets, rows): (u64, u64),
        last: Option<u64>,
    ) -> Result<u64, StepError> {
        last.into_iter().for_each(|last| self.numbered(last));
        together(&mut self.state, (packets, rows), self.time)
    }

    /// Does what is due before packets of this time (ns), or of the last one's if that is later; which it is.
    ///
    /// # Errors
    /// As [`Self::packet`].
    pub(super) fn time_for(&mut self, time: u64) -> Result<u64, StepError> {
        let time = time.max(self.time);
        self.before(time)?;
        if self.alarms && time > self.time {
            // A packet that only reads has to find those fired that are due.
            self.beat(time)?;
        }
        self.time = time;
        Ok(time)
    }

    fn placed(&mut self, header: Header) -> Result<(Place, u32), StepError> {
        let earlier = std::mem::replace(&mut self.time, header.stamp);
        let mut sequence = header.sequence;
        if header.kind == Kind::Plain && self.alarms && header.stamp > earlier {
            sequence = self.beat(header.stamp)?;
        }
        let worker = match header.core {
            Core::One(core) => u32::from(core),
            Core::All => 0,
        };
        let place = Place::new(sequence, header.kind == Kind::Touch);
        let heavy = self.chooser.is_some();
        Ok((if heavy { place.of_heavy() } else { place }, worker))
    }

    /// Gives the edits that wait their numbers, at this time (ns); the number of the last row.
    ///
    /// # Errors
    /// As [`Self::packet`].
    pub fn edits(&mut self, time: u64) -> Result<u64, StepError> {
        let group = self.group.clone();
        let edits = &group.edits;
        while edits.wait() {
            let at = At {
                time,
                packets: self.packets,
            };
            let Some(edit) = edits.place(self.state.sequence().saturating_add(1), at) else {
                break;
            };
            self.beat(time)?;
            // Rows behind this one are made with the new settings.
            if self.group.heavies().is_some() {
                self.group.moves.stop_at(self.state.sequence());
            }
            if edit.effect == Effect::Settings {
                self.changes.push(edit.make, at);
                self.rows.catch_up(&mut self.changes);
            }
        }
        Ok(self.state.sequence())
    }

    /// What is due at this time (ns) where no packet comes: edits that wait, and timers. The number of the last row.
    ///
    /// # Errors
    /// As [`Self::packet`].
    pub fn idle(&mut self, time: u64) -> Result<u64, StepError> {
        if self.over {
            return Ok(self.state.sequence());
        }
        let time = time.max(self.time);
        self.before(time)?;
        // Which timers in values are due, only the replicas know.
        if self.alarms && time - self.time >= IDLE {
            self.beat(time)?;
        }
        Ok(self.state.sequence())
    }

    /// A heartbeat at this time, ns: each replica does what is due by then. Its number.
    ///
    /// # Errors
    /// As [`Self::packet`].
    pub fn beat(&mut self, time: u64) -> Result<u64, StepError> {
        self.timers.pass(time);
        let (header, row): (Header, Option<Row>) =
            step(&mut self.state, &self.rows, Arrival::Idle, time)?;
        if let Some(row) = row {
            self.group.ring.put(&row);
        }
        self.time = header.stamp;
        Ok(header.sequence)
    }

    /// Heartbeats for what happens before a packet of this time.
    fn before(&mut self, time: u64) -> Result<(), StepError> {
        if self.group.edits.wait() {
            self.edits(time)?;
        }
        let long = self.state.due().is_some_and(|due| due <= time);
        if long || self.timers.due(time) {
            self.beat(time)?;
        }
        Ok(())
    }

    /// A last heartbeat, at the end, before which heavy keys go back to their owners. Its number.
    ///
    /// # Errors
    /// As [`Self::packet`].
    pub fn last(&mut self, time: u64) -> Result<u64, StepError> {
        if std::mem::replace(&mut self.over, true) {
            return Ok(self.state.sequence());
        }
        let time = time.max(self.time);
        self.group.packets.store(self.packets, Ordering::Release);
        while let Some(chooser) = &mut self.chooser {
            let Some(moving) = chooser.home(self.state.sequence()) else {
                break;
            };
            self.group.moves.place(moving);
            self.beat(time)?;
        }
        self.beat(time)
    }

    /// Shows the replicas all rows so far. Before descriptors of their packets are handed over.
    pub fn publish(&self) {
        self.group.ring.publish(self.state.sequence());
    }

    /// The descriptors of all packets so far have been handed to their workers.
    pub fn handed(&self) {
        self.group
            .handed
            .0
            .store(self.state.sequence(), Ordering::Release);
    }

    /// The last row was made: workers may apply all of them, and there will be none behind it.
    pub fn end(&self) {
        self.publish();
        self.handed();
        self.group.end_at(self.state.sequence());
    }

    /// Bytes of the instances that make rows, and of the ring.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.rows.bytes() * self.changes.threads() as u64 + self.group.bytes()
    }
}
