//! What packets may read of numbers of which each worker has a part (`DISTRIBUTED` with a staleness).
//!
//! The guarantee: a packet of worker A reads its own part as it is, and of each other worker's part one whole state, which
//! was there at a moment not before A began its first packet within the staleness; all members of one object of one moment's
//! parts. So what a read gives is not a function of the packets before it, but of them and of which states it saw. These are an input,
//! as the CPU's number is: each worker notes them, the sequential program is given them, and changes the part of the worker that had the
//! packet. What it leaves in that part is the state of the next version. Then it is looked at
//!
//! - whether each worker's part is what its packets left in it: nothing is lost, nothing counted twice;
//! - whether what a packet saw of the others is what their states of the versions that it names come to;
//! - whether none of these states had been replaced before the reader began its first packet within the staleness.
//!
//! Every run that keeps the guarantee passes: a state that was there at some moment since is named by its version, and the next
//! one was not complete before that moment. Moments are places in one count, taken before and behind each packet by the host: they order
//! no loads and stores of emitted code, whose memory order ThreadSanitizer looks at (fastpath/tests/distributed.c).
//!
//! What happens without a packet (expiry of what each worker has) is done by all workers and the sequential program at one
//! place, when no packet is under way: its sum is compared, and each worker's part is taken over.

use std::collections::{HashMap, VecDeque};

use millrace_dataplane::module::{Members, PartsSeen};
use millrace_object::program::Program;

use crate::compare::Kind;
use crate::copy::Copy;
use crate::deal::Deal;

/// What a worker held behind one packet, and when it had it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Saw {
    /// the worker
    pub worker: usize,
    /// place in the count before the packet
    pub began: u64,
    /// place in the count behind it
    pub ended: u64,
    /// by object
    pub parts: Vec<PartsSeen>,
}

/// A state of one worker's part.
#[derive(Clone, Debug)]
struct State {
    version: u64,
    members: Vec<u64>,
    /// when it had replaced the one before
    ended: u64,
}

/// One object.
#[derive(Debug)]
struct Object {
    /// its place among the program's objects
    place: usize,
    name: String,
    /// ns
    staleness: u64,
    members: Members,
    /// by worker: its part as the sequential program has it
    parts: Vec<Vec<u64>>,
    /// by worker: states that packets may still see, oldest first
    states: Vec<VecDeque<State>>,
    /// by worker: its packets within the staleness, the time of each and when it began
    recent: Vec<VecDeque<(u64, u64)>>,
}

/// A read that is still to be looked at.
#[derive(Debug)]
struct Read {
    packet: u64,
    worker: usize,
    /// place of the object among those looked at
    object: usize,
    /// when the worker began its first packet within the staleness
    since: u64,
    time: u64,
    saw: PartsSeen,
}

/// A packet's fault.
pub type Fault = (Option<u64>, Kind, String);

/// All objects of which workers have parts that packets read.
#[derive(Debug)]
pub struct Distributed {
    objects: Vec<Object>,
    /// what workers saw, by packet
    inputs: HashMap<u64, Saw>,
    /// what workers held behind what happened before this packet without one
    events: HashMap<u64, Vec<Saw>>,
    reads: Vec<Read>,
    faults: Vec<Fault>,
    /// packets that saw less than all that was there
    pub stale: u64,
    /// reads that were looked at
    pub looked: u64,
}

impl Distributed {
    /// Of a deal's objects; none where no packet reads parts of others.
    pub fn of(program: &Program, deal: &Deal<'_>, members: &[Members]) -> Option<Self> {
        if deal.workers < 2 {
            return None;
        }
        let workers = deal.workers as usize;
        let objects = program.objects.iter().enumerate();
        let objects = objects.filter_map(|(place, o)| {
            let staleness = deal.held(place).staleness()?;
            let zeros = vec![0; o.value_bytes as usize / 8];
            Some(Object {
                place,
                name: o.name.clone(),
                staleness,
                members: members.get(place).copied().unwrap_or_default(),
                parts: vec![zeros; workers],
                states: vec![VecDeque::new(); workers],
                recent: vec![VecDeque::new(); workers],
            })
        });
        let objects: Vec<Object> = objects.collect();
        (!objects.is_empty()).then(|| Self {
            objects,
            inputs: HashMap::new(),
            events: HashMap::new(),
            reads: Vec::new(),
            faults: Vec::new(),
            stale: 0,
            looked: 0,
        })
    }

    /// What both sides begin with, behind `ON_START`.
    pub fn start(&mut self, one: &mut Copy, others: &[Saw]) {
        self.resume(one, None, others);
    }

    /// What a worker saw with a packet.
    pub fn saw(&mut self, packet: u64, saw: Saw) {
        self.inputs.insert(packet, saw);
    }

    /// What workers held behind what happened without a packet, before this one.
    pub fn happened(&mut self, before: u64, all: Vec<Saw>) {
        self.events.insert(before, all);
    }

    /// Before the sequential program does a packet: it has the part of the worker that had it, and sees what that saw.
    pub fn before(&mut self, one: &mut Copy, packet: u64) {
        let Some(saw) = self.inputs.get(&packet) else {
            return;
        };
        for object in &self.objects {
            let seen = saw.parts.iter().find(|p| p.object == object.place);
            let others = seen.map_or_else(|| object.others(saw.worker), |seen| seen.others.clone());
            if let Some(own) = object.parts.get(saw.worker) {
                one.feed(object.place, own, &others);
            }
        }
    }

    /// Behind a packet at a time (ns): what it left is its worker's part.
    pub fn behind(&mut self, one: &mut Copy, packet: u64, time: u64) {
        let Some(saw) = self.inputs.remove(&packet) else {
            return;
        };
        let now = one.parts();
        let mut stale = false;
        for (at, object) in self.objects.iter_mut().enumerate() {
            let of = |all: &[PartsSeen]| all.iter().find(|p| p.object == object.place).cloned();
            let (Some(left), Some(seen)) = (of(&now), of(&saw.parts)) else {
                continue;
            };
            if left.own != seen.own {
                let what = format!(
                    "worker {}'s part of `{}` is {:?} behind packet {packet}, and its packets made it {:?}",
                    saw.worker, object.name, seen.own, left.own
                );
                self.faults.push((Some(packet), Kind::Parts, what));
            }
            let since = object.since(saw.worker, time, saw.began);
            if seen.read {
                stale |= seen.others != object.others(saw.worker);
                self.reads.push(Read {
                    packet,
                    worker: saw.worker,
                    object: at,
                    since,
                    time,
                    saw: seen.clone(),
                });
            }
            // Where they differ what follows is not to be blamed for it.
            object.put(saw.worker, seen.version, seen.own, saw.ended);
        }
        self.stale += u64::from(stale);
    }

    /// Before something happens on the sequential side without a packet: it has all of it.
    pub fn whole(&self, one: &mut Copy) {
        for object in &self.objects {
            let zeros = vec![0; object.parts.first().map_or(0, Vec::len)];
            one.feed(object.place, &object.sum(None), &zeros);
        }
    }

    /// Behind it, before this packet.
    pub fn went_on(&mut self, one: &mut Copy, before: u64) {
        match self.events.remove(&before) {
            Some(all) => self.resume(one, Some(before), &all),
            // Nothing was due at any worker.
            None => self.resume(one, Some(before), &[]),
        }
    }

    /// What the sequential side has is what these parts come to, and goes on from them.
    fn resume(&mut self, one: &mut Copy, packet: Option<u64>, all: &[Saw]) {
        let now = one.parts();
        for object in &mut self.objects {
            for saw in all {
                let seen = saw.parts.iter().find(|p| p.object == object.place);
                if let Some(seen) = seen {
                    object.put(saw.worker, seen.version, seen.own.clone(), saw.ended);
                }
            }
            let Some(left) = now.iter().find(|p| p.object == object.place) else {
                continue;
            };
            let sum = object.sum(None);
            if sum != left.own {
                let what = format!(
                    "all workers' parts of `{}` come to {sum:?} behind what happened without a packet, and one core's to {:?}",
                    object.name, left.own
                );
                self.faults.push((packet, Kind::Parts, what));
            }
        }
    }

    /// Looks at all reads of a window, when the states are known that were there meanwhile; what is wrong with them.
    pub fn look(&mut self) -> Vec<Fault> {
        for read in std::mem::take(&mut self.reads) {
            self.looked += 1;
            let Some(object) = self.objects.get(read.object) else {
                continue;
            };
            if let Some(what) = object.wrong(&read) {
                self.faults.push((Some(read.packet), Kind::Parts, what));
            }
        }
        for object in &mut self.objects {
            object.forget();
        }
        std::mem::take(&mut self.faults)
    }
}

impl Object {
    /// The parts of all workers but one.
    fn sum(&self, but: Option<usize>) -> Vec<u64> {
        let mut sum = vec![0; self.parts.first().map_or(0, Vec::len)];
        for (worker, part) in self.parts.iter().enumerate() {
            if Some(worker) != but {
                self.members.join(&mut sum, part);
            }
        }
        sum
    }

    fn others(&self, worker: usize) -> Vec<u64> {
        self.sum(Some(worker))
    }

    /// A worker's part is this.
    fn put(&mut self, worker: usize, version: u64, members: Vec<u64>, ended: u64) {
        let (Some(part), Some(states)) = (self.parts.get_mut(worker), self.states.get_mut(worker))
        else {
            return;
        };
        let last = states.back();
        // What was not published replaces what was there before all the same.
        if last.is_none_or(|last| last.version != version || last.members != members) {
            states.push_back(State {
                version,
                members: members.clone(),
                ended,
            });
        }
        *part = members;
    }

    /// When a worker began its first packet within the staleness of one at this time, which began then.
    fn since(&mut self, worker: usize, time: u64, began: u64) -> u64 {
        let staleness = self.staleness;
        let Some(recent) = self.recent.get_mut(worker) else {
            return began;
        };
        let old = |at: &(u64, u64)| time.checked_sub(at.0).is_none_or(|age| age > staleness);
        while recent.front().is_some_and(old) {
            recent.pop_front();
        }
        recent.push_back((time, began));
        recent.front().map_or(began, |at| at.1)
    }

    /// What is wrong with a read.
    fn wrong(&self, read: &Read) -> Option<String> {
        let name = &self.name;
        let mut sum = vec![0; read.saw.others.len()];
        for (worker, states) in self.states.iter().enumerate() {
            if worker == read.worker {
                continue;
            }
            let version = read.saw.versions.get(worker).copied().unwrap_or(0);
            let at = states.partition_point(|s| s.version < version);
            let Some(state) = states.get(at).filter(|s| s.version == version) else {
                return Some(format!(
                    "packet {} saw version {version} of worker {worker}'s part of `{name}`, which is none that could be seen",
                    read.packet
                ));
            };
            let next = states.get(at + 1);
            if let Some(next) = next.filter(|next| next.ended < read.since) {
                return Some(format!(
                    "packet {} at {} ns saw of worker {worker}'s part of `{name}` what had been replaced (by {:?}) before \
                     its worker began any packet of the {} ns before: too old",
                    read.packet, read.time, next.members, self.staleness
                ));
            }
            self.members.join(&mut sum, &state.members);
        }
        (sum != read.saw.others).then(|| {
            format!(
                "packet {} saw {:?} of the other workers' parts of `{name}`, which come to {sum:?}",
                read.packet, read.saw.others
            )
        })
    }

    /// Drops states that no packet may see any more: those that were replaced before any worker began a packet that a later
    /// one may be as old as.
    fn forget(&mut self) {
        let fronts = self.recent.iter().map(|r| r.front().map(|at| at.1));
        // A worker that has had no packet sees at least what is there now.
        let Some(oldest) = fronts.flatten().min() else {
            return;
        };
        for states in &mut self.states {
            while states.get(1).is_some_and(|next| next.ended < oldest) {
                states.pop_front();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Worker 1 has changed its part at these moments, one version each; worker 0 reads.
    fn object(staleness: u64, changes: &[(u64, u64)]) -> Object {
        let mut object = Object {
            place: 0,
            name: "counts".into(),
            staleness,
            members: Members::default(),
            parts: vec![vec![0]; 2],
            states: vec![VecDeque::new(); 2],
            recent: vec![VecDeque::new(); 2],
        };
        object.put(0, 0, vec![0], 0);
        object.put(1, 0, vec![0], 0);
        for (version, (ended, value)) in (1..).zip(changes) {
            object.put(1, version, vec![*value], *ended);
        }
        object
    }

    fn wrong(
        object: &mut Object,
        packets: &[(u64, u64)],
        version: u64,
        sum: u64,
    ) -> Option<String> {
        let mut since = 0;
        for (time, began) in packets {
            since = object.since(0, *time, *began);
        }
        object.wrong(&Read {
            packet: 7,
            worker: 0,
            object: 0,
            since,
            time: packets.last().unwrap().0,
            saw: PartsSeen {
                read: true,
                others: vec![sum],
                versions: vec![0, version],
                ..PartsSeen::default()
            },
        })
    }

    #[test]
    fn what_was_there_within_the_staleness_may_be_seen_and_nothing_else() {
        let changes = [(10, 1), (20, 2), (30, 3)];
        // Packets at 0, 50 and 100 ns, which began at moments 5, 15 and 35.
        let packets = [(0, 5), (50, 15), (100, 35)];
        for (staleness, oldest) in [(49, 3), (50, 1), (99, 1), (100, 0)] {
            for version in 0..=3 {
                let mut object = object(staleness, &changes);
                let found = wrong(&mut object, &packets, version, version);
                assert_eq!(
                    found.is_none(),
                    version >= oldest,
                    "{staleness} {version} {found:?}"
                );
            }
        }
    }

    #[test]
    fn sums_of_other_states_are_found() {
        let changes = [(10, 1), (20, 2)];
        for (version, sum, right) in [(2, 2, true), (2, 1, false), (2, 4, false), (3, 2, false)] {
            let found = wrong(&mut object(1000, &changes), &[(0, 5)], version, sum);
            assert_eq!(found.is_none(), right, "{version} {sum} {found:?}");
        }
    }

    #[test]
    fn what_cannot_be_seen_any_more_is_forgotten() {
        let mut object = object(10, &[(10, 1), (20, 2), (30, 3)]);
        object.since(0, 100, 25);
        object.forget();
        assert_eq!(object.states[1].len(), 2);
        assert!(wrong(&mut object, &[(101, 40)], 1, 1).is_some());
    }
}
