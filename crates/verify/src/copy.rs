//! One running copy of the function: the whole of the sequential side, one worker of the parallel one.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use millrace_dataplane::Share;
use millrace_dataplane::module::{
    Access, Config, Homes, Instance, Keeping, KeyValue, Module, ModuleError, PartsSeen, Shared,
};
use millrace_dataplane::packet::{Arrival, Burst, Fate, Layout};

use millrace_dataplane::replica::{Fault, Group, Mixed, Place, Replica, Small};
use millrace_dataplane::share;
use millrace_object::Program;
use millrace_state::Content;

use crate::distributed::Saw;
use crate::outcome::{Outcome, Written};
use crate::sums::checksums;
use crate::trace::Packet;

/// Ingredients of a lane.
pub struct Start<'a> {
    /// the code
    pub module: &'a Arc<Module>,
    /// its state at start
    pub config: &'a Config,
    /// which packet entry of the module
    pub entry: usize,
    /// how many ports there are
    pub ports: u32,
    /// whether it may write into packets
    pub rewrites: bool,
    /// the program, for the numbers that its allocators lease
    pub program: &'a Program,
    /// where only heavy keys are replicated: the code of that
    pub small: Option<Small>,
}

/// What an allocator leases.
struct Numbers {
    object: usize,
    /// of a number
    bytes: usize,
    leased: Range<u64>,
}

/// A copy of the function with its state.
pub struct Copy {
    instance: Instance,
    entry: usize,
    ports: u32,
    allocators: Vec<Numbers>,
    records: bool,
    /// some of its state is other copies', too
    shares: bool,
    given: u64,
    /// a value that is looked at
    value: Vec<u8>,
    /// where packets come home, for allocators that go by it
    homes: Option<Arc<Homes>>,
    /// it is one of several replicas
    replica: Option<Replica>,
    /// it has a replica of heavy keys beside its part
    mixed: Option<Mixed>,
    /// the place of its next packet in the order of rows
    place: Place,
    /// where what it sees of other copies' parts of numbers is noted: the count of moments that all copies have
    moments: Option<Arc<AtomicU64>>,
}

impl Copy {
    /// Empty state, but for what the configuration has. `start` has not run yet, unless it works on what workers
    /// share: `shared` is that, and which of them this is.
    ///
    /// # Errors
    /// There is no memory for the state, or the entries do not fit.
    pub fn new(
        start: &Start<'_>,
        config: &Config,
        shared: Option<(&Arc<Shared>, u32)>,
    ) -> Result<Self, ModuleError> {
        let module = start.module;
        let objects = || module.objects().iter().enumerate();
        let allocators = objects().zip(&start.program.objects);
        let allocators = allocators.filter(|((_, o), _)| o.kind.leases());
        Ok(Self {
            instance: match shared {
                Some((shared, worker)) => Instance::join(config, shared, worker)?,
                None => Instance::create(module.clone(), config)?,
            },
            entry: start.entry,
            ports: start.ports,
            allocators: allocators
                .map(|((object, info), declared)| Numbers {
                    object,
                    bytes: info.key_bytes,
                    leased: declared.first..declared.first.saturating_add(declared.capacity),
                })
                .collect(),
            records: objects().any(|(i, o)| o.records && !module.is_shared(i)),
            shares: shared.is_some() && module.orders(),
            given: 0,
            value: Vec::new(),
            homes: config.homes.clone(),
            replica: None,
            mixed: None,
            place: Place::default(),
            moments: None,
        })
    }

    /// Notes what each packet sees of other copies' parts of numbers, at moments of this count.
    pub fn noting(&mut self, moments: &Arc<AtomicU64>) {
        self.moments = Some(moments.clone());
    }

    /// What it holds of such numbers, and of others' parts.
    pub fn parts(&mut self) -> Vec<PartsSeen> {
        let mut all = Vec::new();
        self.instance.parts(|seen| all.push(seen));
        all
    }

    /// The same now, where it is noted.
    pub fn holds(&mut self, worker: usize) -> Option<Saw> {
        let now = self.moments.as_ref()?.fetch_add(1, Ordering::SeqCst);
        Some(Saw {
            worker,
            began: now,
            ended: now,
            parts: self.parts(),
        })
    }

    /// From here on it has this part, and sees this of others'.
    pub fn feed(&mut self, object: usize, own: &[u64], others: &[u64]) {
        // A module that takes none is found out by what it does.
        let _ = self.instance.feed(object, own, others);
    }

    /// Its part of the state.
    pub fn instance(&mut self) -> &mut Instance {
        &mut self.instance
    }

    /// As one of the replicas of a group, if there is one.
    ///
    /// # Errors
    /// There is no memory for its replica of heavy keys.
    pub fn of_group(
        mut self,
        group: Option<&Arc<Group>>,
        small: Option<&Small>,
        worker: u32,
    ) -> Result<Self, ModuleError> {
        match (group, small) {
            (Some(group), Some(small)) => self.mixed = Some(Mixed::new(group, small, worker)?),
            (Some(group), None) => {
                self.replica = Some(Replica::new(group, &self.instance, worker));
            }
            (None, _) => {}
        }
        Ok(self)
    }

    /// The first row up to `upto` at which it would wait for another copy, and for which.
    #[must_use]
    pub fn waits(&self, upto: u64) -> Option<(u64, u32)> {
        self.mixed.as_ref()?.waits(upto)
    }

    /// Its next packet has this place in the order of rows.
    pub fn at(&mut self, place: Place) {
        self.place = place;
    }

    /// Applies all rows up to `upto`, if it is a replica.
    pub fn follow(&mut self, upto: u64) {
        if let Some(replica) = &mut self.replica {
            // `fault` tells it.
            let _ = replica.follow(&mut self.instance, upto);
        }
        if let Some(mixed) = &mut self.mixed {
            let _ = mixed.follow(&mut self.instance, upto);
        }
    }

    /// The last row that it has applied, if only heavy keys are replicated.
    #[must_use]
    pub fn applied(&self) -> Option<u64> {
        Some(self.mixed.as_ref()?.replica().applied())
    }

    /// All that is replicated of an object of which only heavy keys are, exactly; none where all or nothing is.
    pub fn small_content(
        &mut self,
        object: usize,
        now: u64,
    ) -> Option<Result<Content, ModuleError>> {
        Some(self.mixed.as_mut()?.small().save(object, now))
    }

    /// What is replicated of heavy keys, which the first copy counts for all.
    fn small(&mut self) -> Option<&mut Instance> {
        let mixed = self.mixed.as_mut()?;
        (mixed.replica().worker() == 0).then(|| mixed.small())
    }

    /// Why it cannot go on as a replica, told once.
    pub fn fault(&mut self) -> Option<Fault> {
        if let Some(mixed) = &mut self.mixed {
            return mixed.fault();
        }
        self.replica.as_mut()?.fault()
    }

    /// What of an object's content can be kept.
    #[must_use]
    pub fn keeping(&self, object: usize) -> Keeping {
        self.instance.module().keeping(object)
    }

    /// All of an object's content, exactly.
    ///
    /// # Errors
    /// It cannot be taken.
    pub fn content(&mut self, object: usize, now: u64) -> Result<Content, ModuleError> {
        self.instance.save(object, now)
    }

    /// Runs `ON_START`, at a time in ns.
    pub fn start(&mut self, time: u64) {
        self.instance.start(time);
        if let Some(mixed) = &mut self.mixed {
            mixed.start(time);
        }
    }

    /// Initial content of objects that workers hold so, as in `run`.
    pub fn begin(&mut self, shares: &[Share], time: u64) {
        share::begin(&mut self.instance, shares, time);
    }

    /// Runs `ON_STOP`.
    pub fn stop(&mut self, time: u64) {
        self.instance.stop(time);
        if let Some(mixed) = &mut self.mixed {
            mixed.stop(time);
        }
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

    /// Whether workers share an object.
    #[must_use]
    pub fn is_shared(&self, object: usize) -> bool {
        self.instance.module().is_shared(object)
    }

    /// Records that were left by what is no packet.
    pub fn take_records(&mut self) -> Vec<(usize, Vec<u8>)> {
        let mut records = Vec::new();
        if self.records {
            if let Some(replica) = &mut self.replica {
                records.extend(replica.records().map(|r| (r.object, r.bytes)));
            }
            if let Some(mixed) = &mut self.mixed {
                mixed.drain(|r| records.push((r.object, r.bytes)));
            }
            self.instance.drain(|r| records.push((r.object, r.bytes)));
            // A record in a buffer that workers share may be another one's.
            let module = self.instance.module();
            records.retain(|(object, _)| !module.is_shared(*object));
        }
        records
    }

    /// A burst for [`Self::give`]; each thread has one.
    #[must_use]
    pub fn burst(&self) -> Burst {
        Burst::new(1, self.ports, Layout::Pooled)
    }

    /// A burst for [`Self::give_all`]: of this many packets, or of one where what a packet left or saw could not be told from
    /// the next one's.
    #[must_use]
    pub fn bursts(&self, most: usize) -> (Burst, usize) {
        let apart = self.records || self.moments.is_some();
        let most = if apart { 1 } else { most.max(1) };
        (Burst::new(most, self.ports, Layout::Pooled), most)
    }

    /// Gives it a packet, which the program sees on this CPU and in this queue. A frame that is too long to
    /// cross the border is dropped, as `run` does.
    pub fn give(
        &mut self,
        burst: &mut Burst,
        packet: &Packet,
        cpu: u32,
        by: (u32, u64),
    ) -> Outcome {
        let done = self.give_all(burst, &[packet], cpu, |_| by).pop();
        done.unwrap_or_else(|| untouched(packet, by))
    }

    /// Gives it packets together, no more than the burst holds; `by` says of each by which worker it is done, and in
    /// which turn.
    pub fn give_all(
        &mut self,
        burst: &mut Burst,
        packets: &[&Packet],
        cpu: u32,
        by: impl Fn(usize) -> (u32, u64),
    ) -> Vec<Outcome> {
        burst.clear();
        let mut done = Vec::with_capacity(packets.len());
        let mut pushed = Vec::with_capacity(packets.len());
        for (i, packet) in packets.iter().enumerate() {
            done.push(untouched(packet, by(i)));
            let arrival = Arrival {
                number: packet.number,
                port: packet.port,
                time: packet.time,
                stamp: packet.time,
                wire: packet.wire,
                home: self
                    .homes
                    .as_ref()
                    .map_or(0, |h| h.of(packet.port, &packet.frame)),
                place: self.place.word(),
            };
            if burst.push(&packet.frame, arrival) {
                pushed.push(i);
            }
        }
        if pushed.is_empty() {
            return done;
        }
        burst.runs_on(cpu);
        self.given += 1;
        // Every other burst without the passes that prefetch: they must not show.
        let prefetch = self.given.is_multiple_of(2);
        let began = self.moment();
        match (&mut self.replica, &mut self.mixed) {
            (Some(replica), _) => replica.burst(&mut self.instance, self.entry, burst),
            (None, Some(mixed)) => {
                mixed.burst(&mut self.instance, (self.entry, prefetch), burst);
            }
            (None, None) => {
                self.instance.burst(self.entry, prefetch, burst);
            }
        }
        let ended = self.moment();
        let mut last = None;
        for (slot, i) in pushed.into_iter().enumerate() {
            let (Some(outcome), Some(packet)) = (done.get_mut(i), packets.get(i)) else {
                continue;
            };
            if let Some(after) = burst.outcome(slot) {
                outcome.fate = after.fate;
                outcome.bytes.clear();
                outcome.bytes.extend_from_slice(after.bytes);
            }
            outcome.commit = burst.commit(slot).unwrap_or(0);
            outcome.time = burst.time(slot).unwrap_or(packet.time);
            if !self.allocators.is_empty() {
                let leases = self.written(packet, &outcome.bytes, outcome.time);
                outcome.leases = leases;
            }
            last = Some(i);
        }
        if let (Some(began), Some(ended)) = (began, ended) {
            let parts = self.parts();
            if let Some(outcome) = last.and_then(|i| done.get_mut(i)) {
                let worker = outcome.worker as usize;
                outcome.saw = Some(Box::new(Saw {
                    worker,
                    began,
                    ended,
                    parts,
                }));
            }
        }
        let records = self.take_records();
        if let Some(outcome) = last.and_then(|i| done.get_mut(i)) {
            outcome.records = records;
        }
        done
    }

    fn moment(&self) -> Option<u64> {
        let moments = self.moments.as_ref()?;
        Some(moments.fetch_add(1, Ordering::SeqCst))
    }

    /// The leased numbers among the packet's words.
    fn written(&mut self, packet: &Packet, after: &[u8], time: u64) -> Vec<Written> {
        // In a frame of another length every word is one that the function wrote there.
        let before = Some(packet.frame.as_slice()).filter(|b| b.len() == after.len());
        let mut found = Vec::new();
        // A checksum may look like any number.
        let sums: Vec<usize> = checksums(after).iter().map(|s| s.at).collect();
        for at in 0..after.len() {
            for bytes in [1_usize, 2, 4] {
                if bytes > 1 && !at.is_multiple_of(2) {
                    break;
                }
                if sums.iter().any(|sum| (at..at + bytes).contains(sum)) {
                    continue;
                }
                let old = before.and_then(|b| b.get(at..at + bytes));
                let new = after.get(at..at + bytes);
                let Some(new) = new else { continue };
                let changed = old != Some(new);
                // To look at a number of an allocator that workers share is to hold all of them up; which number it is
                // that a packet already had is asked for where both sides may have different ones. That of one byte is a part of
                // an address that was written.
                if (self.shares || bytes == 1) && !changed {
                    continue;
                }
                let number = new.iter().fold(0_u64, |n, b| n << 8 | u64::from(*b));
                for i in 0..self.allocators.len() {
                    // Each word of a packet is a number, and hardly any is one that is leased.
                    let Some(of) = self
                        .allocators
                        .get(i)
                        .filter(|a| a.leased.contains(&number))
                    else {
                        continue;
                    };
                    let (object, bytes_of_number) = (of.object, of.bytes);
                    if let Some(value) = self.lease(object, bytes_of_number, number, time) {
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
        let key = number.to_le_bytes();
        let (key, rest) = key.split_at(size.min(8));
        // Each word of a packet is looked up: nothing is allocated for those that are no leased numbers.
        let fits = rest.iter().all(|b| *b == 0);
        let value = &mut self.value;
        let there = fits && self.instance.find(object, key, now, value).unwrap_or(false);
        there.then(|| self.value.clone())
    }

    /// The allocators, by their index in the program.
    pub fn allocators(&self) -> Vec<usize> {
        self.allocators.iter().map(|a| a.object).collect()
    }

    /// The value that is kept with a leased number now.
    pub fn leased(&mut self, object: usize, number: u64, now: u64) -> Option<Vec<u8>> {
        let size = self.allocators.iter().find(|a| a.object == object)?.bytes;
        self.lease(object, size, number, now)
    }

    /// The value under a key; none where there is none, or the kind tells nothing of single keys.
    pub fn get(&mut self, object: usize, key: &[u8], now: u64) -> Option<Vec<u8>> {
        let own = self.instance.get(object, key, now).ok().flatten();
        own.or_else(|| self.small()?.get(object, key, now).ok().flatten())
    }

    /// What its packets read and wrote since the last call, where they are transactions.
    pub fn accesses(&mut self) -> Vec<Access> {
        let mut all = Vec::new();
        self.instance.accesses(|access| all.push(access));
        all
    }

    /// Attempts of its packets that did not commit.
    #[must_use]
    pub fn aborted(&self) -> u64 {
        self.instance.transacted().map_or(0, |t| t.aborts)
    }

    /// Removes an entry that has expired at `now`, if it is there.
    pub fn expire(&mut self, object: usize, key: &[u8], now: u64) {
        // It may be gone already.
        let _ = self.instance.remove(object, key, now);
    }

    /// All live entries of an object. Those of heavy keys, of which each copy has a replica, are among the first one's.
    ///
    /// # Errors
    /// It has none to list.
    pub fn entries(&mut self, object: usize, now: u64) -> Result<Vec<KeyValue>, ModuleError> {
        let mut all = self.own_entries(object, now)?;
        if self.replicates(object)
            && let Some(small) = self.small()
        {
            all.extend(small.entries(object, usize::MAX, now)?);
        }
        Ok(all)
    }

    /// The same without those of heavy keys.
    ///
    /// # Errors
    /// As [`Self::entries`].
    pub fn own_entries(&mut self, object: usize, now: u64) -> Result<Vec<KeyValue>, ModuleError> {
        self.instance.entries(object, usize::MAX, now)
    }

    /// Whether heavy keys have a replica of an object's entries.
    fn replicates(&self, object: usize) -> bool {
        let group = self.mixed.as_ref().map(|m| m.replica().group());
        let heavies = group.and_then(|g| g.heavies());
        heavies.is_some_and(|h| h.objects.contains(&object))
    }

    /// How often an insertion or a lease found no place.
    pub fn full(&mut self, object: usize) -> Option<u64> {
        let small = self.mixed.as_mut().map(|m| m.small());
        let more = small.and_then(|s| s.full(object)).unwrap_or(0);
        Some(self.instance.full(object)? + more)
    }

    /// How many live entries an object has.
    pub fn count(&mut self, object: usize, now: u64) -> Option<u64> {
        let small = self.small().and_then(|s| s.count(object, now));
        Some(self.instance.count(object, now)? + small.unwrap_or(0))
    }
}

/// Fate of a packet that does not cross the border.
fn untouched(packet: &Packet, (worker, turn): (u32, u64)) -> Outcome {
    Outcome {
        fate: Fate::Dropped(0),
        bytes: packet.frame.clone(),
        records: Vec::new(),
        leases: Vec::new(),
        worker,
        turn,
        commit: 0,
        time: packet.time,
        saw: None,
    }
}
