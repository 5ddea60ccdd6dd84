//! A worker's replica: applies the rows of others, and runs its own packets at their places.

use std::sync::Arc;

use millrace_steer::sequence::ring::{End, Most, Taken};

use millrace_steer::hybrid::{Key, Moving};

use super::{At, Edit, Fault, Group, Place};
use crate::clock;
use crate::module::{Instance, Record, abi};
use crate::packet::Burst;
use crate::runner::Timers;

/// Rows that are replayed together, at most.
const TOGETHER: usize = 64;
/// Rows in one replay are at most so far apart in time, ns, so that each one's few bits of it say which it is.
const APART: u64 = 1 << 38;

/// Something that a worker with heavy keys has to do at a row beside what its replica does.
pub(super) enum Due {
    /// a key is moved
    Move(Moving<Key>),
    /// state is edited from outside
    Edit(Edit, At),
}

/// Progress of one worker in the order of rows.
pub struct Replica {
    group: Arc<Group>,
    worker: u32,
    /// the last row that was applied
    applied: u64,
    /// that row's time, ns
    time: u64,
    timers: Timers,
    /// rows to replay together
    rows: Vec<u8>,
    /// the ingress number of the last packet of its own, near which those of rows are
    ingress: u64,
    /// records that only the owner of a packet hands out: those of its own
    records: Vec<Record>,
    /// records may come of what all replicas do
    several: bool,
    replayed: u64,
    fired: u64,
    fault: Option<Fault>,
    told: bool,
}

impl Replica {
    /// Of a worker whose instance is at its start.
    #[must_use]
    pub fn new(group: &Arc<Group>, instance: &Instance, worker: u32) -> Self {
        let module = instance.module();
        let records = module.objects().iter().any(|o| o.records);
        Self {
            worker,
            applied: 0,
            time: group.start,
            timers: group.timers.clone(),
            rows: Vec::with_capacity(TOGETHER * module.row_bytes().unwrap_or(0)),
            ingress: 0,
            records: Vec::new(),
            several: records && (module.has_alarms() || !module.timers().is_empty()),
            replayed: 0,
            fired: 0,
            fault: None,
            told: false,
            group: group.clone(),
        }
    }

    /// The group that it belongs to.
    #[must_use]
    pub fn group(&self) -> &Arc<Group> {
        &self.group
    }

    /// Its worker, from 0.
    #[must_use]
    pub fn worker(&self) -> u32 {
        self.worker
    }

    /// The time of the last row that it has applied, ns; before the first when the state began.
    #[must_use]
    pub fn time(&self) -> u64 {
        self.time
    }

    /// Its timers (`EVERY`).
    #[must_use]
    pub fn timers(&self) -> &Timers {
        &self.timers
    }

    /// The last row that it has applied.
    #[must_use]
    pub fn applied(&self) -> u64 {
        self.applied
    }

    /// Rows of other workers' packets that it has applied.
    #[must_use]
    pub fn replayed(&self) -> u64 {
        self.replayed
    }

    /// Times that a timer (`EVERY`) fired here.
    #[must_use]
    pub fn fired(&self) -> u64 {
        self.fired
    }

    /// Why it cannot go on, told once.
    pub fn fault(&mut self) -> Option<Fault> {
        let told = std::mem::replace(&mut self.told, self.fault.is_some());
        self.fault.filter(|_| !told)
    }

    /// Whether it cannot go on, so that its state is not that of the others.
    #[must_use]
    pub fn failed(&self) -> bool {
        self.fault.is_some()
    }

    /// Records that came out before it applied rows of others.
    pub fn records(&mut self) -> impl Iterator<Item = Record> {
        std::mem::take(&mut self.records).into_iter()
    }

    /// Applies all rows up to `upto`. None of its own packets' may be among them, unless they are not to be run any more.
    ///
    /// # Errors
    /// It cannot go on.
    pub fn follow(&mut self, instance: &mut Instance, upto: u64) -> Result<(), Fault> {
        self.apply(instance, upto)
    }

    /// Runs packet entry `program` over a burst, whose packets carry their places.
    pub fn burst(&mut self, instance: &mut Instance, program: usize, burst: &mut Burst) {
        let (pointers, count) = burst.descriptors();
        // SAFETY: `Burst` promises `count` distinct descriptors, each pointing into a buffer of its own that lives and
        // stays in place while `burst` is borrowed.
        unsafe {
            let all = std::slice::from_raw_parts(pointers, count as usize);
            self.run(instance, program, all);
        }
    }

    /// The same over descriptors that lie anywhere; gives the ticks that took. Once it cannot go on it aborts all packets.
    ///
    /// # Safety
    /// The descriptors are distinct, and each describes a packet as abi.h asks for, in memory that nobody else uses
    /// during the call.
    pub(crate) unsafe fn run(
        &mut self,
        instance: &mut Instance,
        program: usize,
        packets: &[*mut abi::Packet],
    ) -> u64 {
        let begin = clock::ticks();
        for pointer in packets {
            // SAFETY: as the caller promises.
            let packet = unsafe { &mut **pointer };
            (packet.fate, packet.out) = (abi::fate::ABORTED, 0);
            let place = Place::of(packet.commit);
            packet.number = packet.number.wrapping_add(self.group.base);
            self.ingress = packet.number;
            if let Err(fault) = self.before(instance, place) {
                self.fault.get_or_insert(fault);
                continue;
            }
            let at = place.sequence().saturating_sub(1);
            let row = place.own().then_some(self.rows.as_slice());
            // SAFETY: as the caller promises; `packet` is not used any more.
            unsafe { instance.process(program, *pointer, row, at) };
        }
        clock::ticks().saturating_sub(begin)
    }

    /// Applies all rows before a packet, and leaves its own in `rows`.
    fn before(&mut self, instance: &mut Instance, place: Place) -> Result<(), Fault> {
        let (sequence, own) = (place.sequence(), place.own());
        if own && sequence <= self.applied {
            return Err(Fault::Late {
                worker: self.worker,
                row: sequence,
                applied: self.applied,
            });
        }
        self.apply(instance, sequence - u64::from(own))?;
        if own {
            self.take(sequence, 1)?;
        }
        Ok(())
    }

    /// Reads at most so many rows up to `upto` into `rows`.
    fn take(&mut self, upto: u64, rows: usize) -> Result<Taken, Fault> {
        let worker = self.worker;
        let most = Most { rows, time: APART };
        let ring = &self.group.ring;
        let taken = ring.take(&mut self.applied, upto, most, &mut self.rows);
        if taken.rows > 0 {
            self.time = taken.last;
        }
        match taken.end {
            End::Ahead => Err(Fault::Ahead { worker, row: upto }),
            // Rows before it are whole; but what comes behind will never be applied.
            End::Overrun => Err(Fault::Overrun {
                worker,
                row: self.applied.saturating_add(1),
                rows: ring.places() as u64,
            }),
            _ => Ok(taken),
        }
    }

    fn apply(&mut self, instance: &mut Instance, upto: u64) -> Result<(), Fault> {
        self.advance(instance, upto).map(drop)
    }

    /// Applies rows up to `upto`, or up to one before it at which the worker has something to do beside.
    pub(super) fn advance(
        &mut self,
        instance: &mut Instance,
        upto: u64,
    ) -> Result<Option<Due>, Fault> {
        if let Some(fault) = self.fault {
            return Err(fault);
        }
        if self.applied >= upto {
            return Ok(None);
        }
        if self.several {
            // Its own until here; what comes of rows of others, their owners hand out.
            instance.drain(|record| self.records.push(record));
        }
        let done = self.rows_up_to(instance, upto);
        if self.several {
            instance.drain(drop);
        }
        if let Err(fault) = done {
            self.fault.get_or_insert(fault);
        }
        done
    }

    /// That a worker which it waits for is gone.
    pub(super) fn gone(&mut self) -> Fault {
        let fault = Fault::Gone {
            worker: self.worker,
            row: self.applied,
        };
        *self.fault.get_or_insert(fault)
    }

    fn rows_up_to(&mut self, instance: &mut Instance, upto: u64) -> Result<Option<Due>, Fault> {
        loop {
            let first = self.applied.saturating_add(1);
            let taken = self.take(upto, TOGETHER)?;
            if taken.rows > 0 {
                let done = instance.replay(&self.rows, first - 1, taken.last, self.ingress);
                self.replayed += taken.rows as u64;
                if !done {
                    let worker = self.worker;
                    return Err(Fault::Malformed { worker, row: first });
                }
            }
            match taken.end {
                End::Beat(time) => {
                    self.time = time;
                    if let Some(due) = self.beat(instance, self.applied, time) {
                        return Ok(Some(due));
                    }
                }
                End::Done => return Ok(None),
                _ => {}
            }
        }
    }

    /// A heartbeat: what is due at its time, and an edit that has its number.
    fn beat(&mut self, instance: &mut Instance, number: u64, time: u64) -> Option<Due> {
        // One of the workers hands out the records of what all do.
        let mine = number % u64::from(self.group.workers) == u64::from(self.worker);
        if self.timers.due(time) {
            for (moment, timer) in self.timers.take(time) {
                instance.fire(timer, moment);
                self.fired += 1;
            }
        }
        instance.alarm(time);
        let edit = self.group.edits.at(number);
        let due = match edit {
            Some((edit, at)) if self.group.heavies().is_some() => Some(Due::Edit(edit, at)),
            Some((edit, at)) => {
                (edit.make)(instance, at);
                None
            }
            None => {
                let some = self.group.heavies().is_some();
                let moving = some.then(|| self.group.moves.at(number)).flatten();
                moving.map(Due::Move)
            }
        };
        if self.several && mine {
            instance.drain(|record| self.records.push(record));
        }
        due
    }
}
