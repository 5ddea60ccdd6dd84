//! One running copy of the function: the whole of the sequential side, one worker of the parallel one.

use std::sync::Arc;

use millrace_dataplane::module::{Config, Instance, KeyValue, Module, ModuleError};
use millrace_dataplane::packet::{Arrival, Burst, Fate, Layout};

use crate::outcome::{Outcome, Written};
use crate::sums::checksums;
use crate::trace::Packet;

/// A copy of the function with its state.
pub struct Copy {
    instance: Instance,
    entry: usize,
    ports: u32,
    /// allocators: index, bytes of a number
    allocators: Vec<(usize, usize)>,
    records: bool,
    given: u64,
}

impl Copy {
    /// Empty state, but for what the configuration has. `start` has not run yet.
    ///
    /// # Errors
    /// There is no memory for the state, or the entries do not fit.
    pub fn new(
        module: &Arc<Module>,
        config: &Config,
        entry: usize,
        ports: u32,
    ) -> Result<Self, ModuleError> {
        let objects = || module.objects().iter().enumerate();
        let allocators = objects().filter(|(_, o)| o.kind == "allocator");
        Ok(Self {
            instance: Instance::create(module.clone(), config)?,
            entry,
            ports,
            allocators: allocators.map(|(i, o)| (i, o.key_bytes)).collect(),
            records: module.objects().iter().any(|o| o.records),
            given: 0,
        })
    }

    /// Runs `ON_START`, at a time in ns.
    pub fn start(&mut self, time: u64) {
        self.instance.start(time);
    }

    /// Runs `ON_STOP`.
    pub fn stop(&mut self, time: u64) {
        self.instance.stop(time);
    }

    /// Runs a timer.
    pub fn fire(&mut self, timer: usize, time: u64) {
        self.instance.fire(timer, time);
    }

    /// Fires the timers in values of maps that are due.
    pub fn alarm(&mut self, time: u64) {
        self.instance.alarm(time);
    }

    /// Whether a timer in a value is due.
    #[must_use]
    pub fn alarm_due(&self, time: u64) -> bool {
        self.instance.next_alarm() <= time
    }

    /// Records that were left by what is no packet.
    pub fn take_records(&mut self) -> Vec<(usize, Vec<u8>)> {
        let mut records = Vec::new();
        if self.records {
            self.instance.drain(|r| records.push((r.object, r.bytes)));
        }
        records
    }

    /// A burst for [`Self::give`]; each thread has one.
    #[must_use]
    pub fn burst(&self) -> Burst {
        Burst::new(1, self.ports, Layout::Pooled)
    }

    /// Gives it a packet, which the program sees on this CPU and in this queue. A frame that is too long to
    /// cross the border is dropped, as `run` does.
    pub fn give(
        &mut self,
        burst: &mut Burst,
        packet: &Packet,
        cpu: u32,
        (worker, turn): (u32, u64),
    ) -> Outcome {
        let arrival = Arrival {
            number: packet.number,
            port: packet.port,
            time: packet.time,
            stamp: packet.time,
            wire: packet.wire,
        };
        burst.clear();
        let mut outcome = Outcome {
            fate: Fate::Dropped(0),
            bytes: packet.frame.clone(),
            records: Vec::new(),
            leases: Vec::new(),
            worker,
            turn,
        };
        if !burst.push(&packet.frame, arrival) {
            return outcome;
        }
        burst.runs_on(cpu);
        self.given += 1;
        // Every other packet without the passes that prefetch: they must not show.
        let prefetch = self.given.is_multiple_of(2);
        self.instance.burst(self.entry, prefetch, burst);
        if let Some(done) = burst.outcome(0) {
            outcome.fate = done.fate;
            outcome.bytes.clear();
            outcome.bytes.extend_from_slice(done.bytes);
        }
        outcome.records = self.take_records();
        if !self.allocators.is_empty() {
            outcome.leases = self.written(packet, &outcome.bytes);
        }
        outcome
    }

    /// The leased numbers among the packet's words.
    fn written(&mut self, packet: &Packet, after: &[u8]) -> Vec<Written> {
        let before = &packet.frame;
        if before.len() != after.len() {
            return Vec::new();
        }
        let mut found = Vec::new();
        // A checksum may look like any number.
        let sums: Vec<usize> = checksums(after).iter().map(|s| s.at).collect();
        for at in (0..after.len()).step_by(2) {
            for bytes in [2_usize, 4] {
                if sums.iter().any(|sum| (at..at + bytes).contains(sum)) {
                    continue;
                }
                let (old, new) = (before.get(at..at + bytes), after.get(at..at + bytes));
                let Some(new) = new else { continue };
                let changed = old != Some(new);
                let number = new.iter().fold(0_u64, |n, b| n << 8 | u64::from(*b));
                for i in 0..self.allocators.len() {
                    let Some((object, size)) = self.allocators.get(i).copied() else {
                        continue;
                    };
                    if let Some(value) = self.lease(object, size, number, packet.time) {
                        found.push(Written {
                            at,
                            bytes,
                            object,
                            number,
                            value,
                            changed,
                        });
                    }
                }
            }
        }
        found
    }

    fn lease(&mut self, object: usize, size: usize, number: u64, now: u64) -> Option<Vec<u8>> {
        let key = number_key(number, size)?;
        self.instance.get(object, &key, now).ok().flatten()
    }

    /// The value that is kept with a leased number now.
    pub fn leased(&mut self, object: usize, number: u64, now: u64) -> Option<Vec<u8>> {
        let size = self.allocators.iter().find(|a| a.0 == object)?.1;
        self.lease(object, size, number, now)
    }

    /// The value under a key; none where there is none, or the kind tells nothing of single keys.
    pub fn get(&mut self, object: usize, key: &[u8], now: u64) -> Option<Vec<u8>> {
        self.instance.get(object, key, now).ok().flatten()
    }

    /// All live entries of an object.
    ///
    /// # Errors
    /// It has none to list.
    pub fn entries(&mut self, object: usize, now: u64) -> Result<Vec<KeyValue>, ModuleError> {
        self.instance.entries(object, usize::MAX, now)
    }

    /// How many live entries an object has.
    pub fn count(&mut self, object: usize, now: u64) -> Option<u64> {
        self.instance.count(object, now)
    }
}

/// A number as the key of an allocator; none if it has no room there.
#[must_use]
pub fn number_key(number: u64, size: usize) -> Option<Vec<u8>> {
    let all = number.to_le_bytes();
    let (key, rest) = all.split_at(size.min(8));
    rest.iter().all(|b| *b == 0).then(|| key.to_vec())
}
