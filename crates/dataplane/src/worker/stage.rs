//! One element of a worker's chain, running: a module's instance with its timers, or something foreign.

use std::sync::Arc;

use super::chain::{Code, Link};
use super::classed::Classed;
use super::foreign::{self, Epilogue, Foreign, Given};
use super::lives::Life;
use super::order::Behaviour;
use super::slow::SlowPath;
use crate::clock;
use crate::module::{
    Conflict, Instance, Keeping, ModuleError, ObjectInfo, Record, Shared, TransactCounts, abi,
};
use crate::port::Frame;
use crate::replica::{Fault, Mixed, Place, Replica};
use crate::runner::Timers;
use crate::share::{self, Share};

/// An element, running.
pub struct Stage {
    /// what it is called, and its counts
    pub life: Arc<Life>,
    /// its objects
    pub objects: Vec<ObjectInfo>,
    /// how each stands on the workers; those that are missing are copies
    pub shares: Vec<Share>,
    /// memory that they take, as predicted from their declarations, bytes
    pub objects_bytes: u64,
    /// how many firings of its maps' timers have been counted
    pub alarms: u64,
    /// what of its transactions has been counted
    pub transacted: TransactCounts,
    /// its timers; none of a foreign element
    pub timers: Timers,
    /// what is known of it beside its neighbours
    pub behaviour: Behaviour,
    /// what its objects begin with was settled
    pub(super) begun: bool,
    /// it goes on where another run was
    pub(super) resumed: bool,
    running: Running,
    /// what runs packets that it hands over
    pub(super) slow: Option<Box<dyn SlowPath>>,
    /// what became of a foreign element, at the end
    pub epilogue: Option<Epilogue>,
}

enum Running {
    Module {
        instance: Instance,
        program: usize,
        prefetch: bool,
        replica: Option<Box<Replica>>,
        /// beside the worker's part of state, its replica of heavy keys
        mixed: Option<Box<Mixed>>,
    },
    Foreign {
        element: Box<dyn Foreign>,
        given: Vec<Given>,
    },
    Classed(Classed),
}

// SAFETY: `given` is scratch of one call of `run`; all else moves between threads.
unsafe impl Send for Stage {}

impl Stage {
    /// Makes its state on worker `worker`, from 0; `shared` is what the workers have in common of a module. `start`
    /// is the time, ns since the epoch.
    ///
    /// # Errors
    /// As [`Instance::join`]; or there are fewer foreign elements than workers.
    pub fn new(
        link: &Link,
        life: &Arc<Life>,
        shared: Option<&Arc<Shared>>,
        worker: usize,
        start: u64,
    ) -> Result<Self, ModuleError> {
        let (running, timers, behaviour) = match &link.code {
            Code::Module(code) => {
                let start = code.replicas.as_ref().map_or(start, |group| group.start());
                let config = crate::module::Config {
                    time: start,
                    ..code.config.of_worker(worker as u32)
                };
                let instance = match shared {
                    Some(shared) => Instance::join(&config, shared, worker as u32)?,
                    None => Instance::create(code.module.clone(), &config)?,
                };
                let (mut replica, mut mixed) = (None, None);
                match (&code.replicas, &code.small) {
                    (Some(group), Some(small)) => {
                        mixed = Some(Box::new(Mixed::new(group, small, worker as u32)?));
                    }
                    (Some(group), None) => {
                        replica = Some(Box::new(Replica::new(group, &instance, worker as u32)));
                    }
                    (None, _) => {}
                }
                let running = Running::Module {
                    instance,
                    program: code.program,
                    prefetch: code.prefetch,
                    replica,
                    mixed,
                };
                let mut behaviour = code.behaviour.clone();
                behaviour.stateless |= code.module.objects().is_empty();
                // A replica's fire at their places in the order of rows.
                let periods = match code.replicas {
                    Some(_) => &[],
                    None => code.module.timers(),
                };
                (running, Timers::new(periods, start), behaviour)
            }
            Code::Foreign(handed) => {
                let element = handed.lock().ok().and_then(|mut handed| handed.pop());
                let element = element.ok_or_else(|| ModuleError::Create {
                    path: link.name.clone().into(),
                    what: "there are fewer of it than workers".into(),
                })?;
                let behaviour = of_foreign(element.decides());
                let given = Vec::new();
                let running = Running::Foreign { element, given };
                (running, Timers::new(&[], start), behaviour)
            }
            Code::Classed(guests) => {
                let behaviour = of_foreign(guests.decides());
                let classed = Classed::new(guests, worker);
                let running = Running::Classed(classed);
                (running, Timers::new(&[], start), behaviour)
            }
        };
        Ok(Self {
            life: life.clone(),
            objects: link.objects().to_vec(),
            shares: link.shares.clone(),
            objects_bytes: link.objects_bytes,
            alarms: 0,
            transacted: TransactCounts::default(),
            begun: false,
            resumed: false,
            timers,
            behaviour,
            running,
            slow: link.slow.as_ref().map(|slow| slow.open()),
            epilogue: None,
        })
    }

    /// The module's instance; a foreign element has none.
    pub fn instance(&mut self) -> Option<&mut Instance> {
        match &mut self.running {
            Running::Module { instance, .. } => Some(instance),
            Running::Foreign { .. } | Running::Classed(_) => None,
        }
    }

    /// The module's instance, and how its objects stand on the workers.
    pub fn held(&mut self) -> Option<(&mut Instance, &[Share])> {
        match &mut self.running {
            Running::Module { instance, .. } => Some((instance, &self.shares)),
            Running::Foreign { .. } | Running::Classed(_) => None,
        }
    }

    /// Whether all workers have one object in common.
    pub fn is_shared(&self, object: usize) -> bool {
        self.seen().is_some_and(|i| i.module().is_shared(object))
    }

    /// Bytes of the objects that all workers have in common.
    pub fn common_bytes(&self) -> u64 {
        self.seen().map_or(0, |i| i.module().common_bytes())
    }

    /// Begins again with the time: timers are due from `time` on, as if the state had been made now.
    pub fn begin(&mut self, time: u64) {
        if let Running::Module { instance, .. } = &self.running {
            self.timers = Timers::new(instance.module().timers(), time);
        }
        self.start(time);
    }

    /// Objects that have state and are not among those, by their index here, that take it up.
    pub fn lacks(&self, taken: &[(usize, usize)]) -> Vec<usize> {
        let Some(module) = self.seen().map(Instance::module) else {
            return Vec::new();
        };
        let all = (0..module.objects().len()).filter(|o| module.keeping(*o) != Keeping::Nothing);
        all.filter(|o| !taken.iter().any(|(_, here)| here == o))
            .collect()
    }

    /// Goes on where another element was, which has no packets any more: there is nothing to begin. Timers fire when its
    /// own would have, if they have the same periods; else from `time` on.
    pub fn follow(&mut self, other: &Self, time: u64) {
        (self.begun, self.resumed) = (true, true);
        let periods = |stage: &Self| stage.seen().map(|i| i.module().timers().to_vec());
        self.timers = match periods(self) {
            Some(own) if Some(&own) == periods(other).as_ref() => other.timers.clone(),
            Some(own) => Timers::new(&own, time),
            None => Timers::new(&[], time),
        };
    }

    fn seen(&self) -> Option<&Instance> {
        match &self.running {
            Running::Module { instance, .. } => Some(instance),
            Running::Foreign { .. } | Running::Classed(_) => None,
        }
    }

    /// Before the first packet. `time` in ns, here and below.
    pub fn start(&mut self, time: u64) {
        if self.resumed {
            return;
        }
        let first = !std::mem::replace(&mut self.begun, true);
        let time = self.replica().map_or(time, Replica::time);
        if let Running::Module { instance, .. } = &mut self.running {
            instance.start(time);
            if first {
                share::begin(instance, &self.shares, time);
            }
        }
        if let Some((mixed, _)) = self.mixed_mut() {
            mixed.start(time);
        }
        self.hush();
    }

    /// What all replicas do alike the first one says: drops the records of others.
    fn hush(&mut self) {
        if let Some((replica, instance)) = self.replica_mut()
            && replica.worker() > 0
        {
            instance.drain(drop);
        }
    }

    /// After the last.
    pub fn stop(&mut self, time: u64) {
        let time = self.replica().map_or(time, Replica::time);
        match &mut self.running {
            Running::Module { instance, .. } => {
                instance.stop(time);
                if let Some((mixed, _)) = self.mixed_mut() {
                    mixed.stop(time);
                }
                self.hush();
            }
            Running::Foreign { element, .. } => self.epilogue = Some(element.finish()),
            Running::Classed(classed) => self.epilogue = classed.finish(),
        }
    }

    /// Nothing has come for a while.
    pub fn idle(&mut self) {
        match &mut self.running {
            Running::Foreign { element, .. } => element.idle(),
            Running::Classed(classed) => classed.idle(),
            Running::Module { .. } => {}
        }
    }

    /// As [`Foreign::sent`], each with its packet class.
    pub fn sent(&mut self, after: bool, each: &mut dyn FnMut(u16, u16, &[u8])) {
        if let Some(slow) = self.slow.as_mut().filter(|_| !after) {
            slow.back(&mut |port, bytes| each(0, port, bytes));
        }
        match &mut self.running {
            Running::Foreign { element, .. } => {
                element.sent(after, &mut |port, bytes| each(0, port, bytes));
            }
            Running::Classed(classed) => classed.sent(after, each),
            Running::Module { .. } => {}
        }
    }

    /// Whether packets may come back from its slow path.
    pub fn awaits(&self) -> bool {
        self.slow.as_ref().is_some_and(|slow| slow.waits())
    }

    /// As [`Foreign::holds`].
    pub fn holds(&self) -> bool {
        match &self.running {
            Running::Foreign { element, .. } => element.holds(),
            Running::Classed(classed) => classed.holds(),
            Running::Module { .. } => self.awaits(),
        }
    }

    /// Fires timer `index`; false where another worker does it for all.
    pub fn fire(&mut self, index: usize, time: u64) -> bool {
        self.instance().is_none_or(|i| i.fire(index, time))
    }

    /// When a timer in a map's value may be due next; `u64::MAX` when none is running. A replica's fire at their places in
    /// the order of rows.
    pub fn next_alarm(&self) -> u64 {
        let seen = self.seen().filter(|_| self.replica().is_none());
        seen.map_or(u64::MAX, Instance::next_alarm)
    }

    pub(super) fn replica(&self) -> Option<&Replica> {
        match &self.running {
            Running::Module { replica, mixed, .. } => {
                let mixed = mixed.as_ref().map(|m| m.replica());
                replica.as_deref().or(mixed)
            }
            Running::Foreign { .. } | Running::Classed(_) => None,
        }
    }

    pub(super) fn mixed_mut(&mut self) -> Option<(&mut Mixed, &mut Instance)> {
        match &mut self.running {
            Running::Module {
                mixed: Some(mixed),
                instance,
                ..
            } => Some((mixed, instance)),
            _ => None,
        }
    }

    /// The replica of heavy keys, where only these are replicated: the first worker's is seen for all.
    pub fn heavy(&mut self) -> Option<&mut Instance> {
        let (mixed, _) = self.mixed_mut()?;
        (mixed.replica().worker() == 0).then(|| mixed.small())
    }

    /// The module's instance, and [`Self::heavy`].
    pub fn both(&mut self) -> (Option<&mut Instance>, Option<&mut Instance>) {
        match &mut self.running {
            Running::Module {
                instance, mixed, ..
            } => {
                let first = mixed.as_mut().filter(|m| m.replica().worker() == 0);
                (Some(instance), first.map(|m| m.small()))
            }
            Running::Foreign { .. } | Running::Classed(_) => (None, None),
        }
    }

    fn replica_mut(&mut self) -> Option<(&mut Replica, &mut Instance)> {
        match &mut self.running {
            Running::Module {
                replica: Some(replica),
                instance,
                ..
            } => Some((replica, instance)),
            _ => None,
        }
    }

    /// Applies all rows up to `upto`, of a replica that has no packet before it; any other has nothing to apply.
    pub fn replay_to(&mut self, upto: u64) {
        if let Some((replica, instance)) = self.replica_mut() {
            // Told by `fault`.
            let _ = replica.follow(instance, upto);
        }
        if let Some((mixed, instance)) = self.mixed_mut() {
            let _ = mixed.follow(instance, upto);
        }
    }

    /// Applies the rows in front of a packet with this place, of a replica that has run all packets before it; any other has
    /// nothing to apply.
    pub(super) fn replay_before(&mut self, commit: u64) {
        if let Some((replica, instance)) = self.replica_mut() {
            let place = Place::of(commit);
            let upto = place.sequence().saturating_sub(u64::from(place.own()));
            // Told by `fault`.
            let _ = replica.follow(instance, upto);
        }
    }

    /// The module's instance, where all that a packet meets is in it: none where heavy keys are replicated beside it.
    pub(super) fn whole(&mut self) -> Option<&mut Instance> {
        match &mut self.running {
            Running::Module {
                instance,
                mixed: None,
                ..
            } => Some(instance),
            _ => None,
        }
    }

    /// Why a replica cannot go on, told once.
    pub fn fault(&mut self) -> Option<Fault> {
        if let Some((mixed, _)) = self.mixed_mut() {
            return mixed.fault();
        }
        self.replica_mut().and_then(|(replica, _)| replica.fault())
    }

    /// Rows of other workers' packets that were applied here.
    pub fn replayed(&self) -> u64 {
        self.replica().map_or(0, Replica::replayed)
    }

    /// The last row that was applied here.
    pub fn applied(&self) -> u64 {
        self.replica().map_or(0, Replica::applied)
    }

    /// Fires those that are due.
    pub fn alarm(&mut self, time: u64) {
        if let Some(instance) = self.instance() {
            instance.alarm(time);
        }
    }

    /// What its packets did as transactions; none where they are none.
    pub fn transactions(&self) -> Option<TransactCounts> {
        self.seen().and_then(Instance::transacted)
    }

    /// What its packets met of other workers', of a module that is made for a profile.
    pub fn conflicts(&self) -> Vec<Conflict> {
        self.seen().map(Instance::conflicts).unwrap_or_default()
    }

    /// Why packets ran alone, and how many.
    pub fn ran_alone(&self) -> Vec<(String, u64)> {
        let Some(instance) = self.seen() else {
            return Vec::new();
        };
        let counts = instance.ran_alone();
        instance
            .module()
            .reasons_alone()
            .into_iter()
            .zip(counts)
            .collect()
    }

    /// How often they have fired. What all replicas do alike the first one counts.
    pub fn alarms_fired(&self) -> u64 {
        let fired = self.seen().map_or(0, Instance::alarms_fired);
        match self.replica() {
            None => fired,
            Some(replica) if replica.worker() == 0 => fired + replica.fired(),
            Some(_) => 0,
        }
    }

    /// Hands over the records of ring buffers.
    pub fn drain(&mut self, mut each: impl FnMut(Record)) {
        if let Some((replica, _)) = self.replica_mut() {
            replica.records().for_each(&mut each);
        }
        if let Some((mixed, _)) = self.mixed_mut() {
            mixed.drain(&mut each);
        }
        if let Some(instance) = self.instance() {
            instance.drain(each);
        }
    }

    /// How often an insertion found an object full.
    pub fn full(&mut self, index: usize) -> Option<u64> {
        self.instance().and_then(|instance| instance.full(index))
    }

    /// What is replicated of an object beside its parts, which counts once: the first worker says it.
    fn once(&mut self, count: impl FnOnce(&mut Instance) -> Option<u64>) -> u64 {
        self.heavy().and_then(count).unwrap_or(0)
    }

    /// Places of an object that are taken.
    pub fn used(&mut self, index: usize) -> Option<u64> {
        let more = self.once(|small| small.used(index));
        self.instance()
            .and_then(|instance| instance.used(index))
            .map(|used| used + more)
    }

    /// Entries of an object.
    pub fn count(&mut self, index: usize, time: u64) -> Option<u64> {
        let more = self.once(|small| small.count(index, time));
        self.instance()
            .and_then(|instance| instance.count(index, time))
            .map(|count| count + more)
    }

    /// Runs it over the descriptors at `chosen`, which say after it what becomes of their packets; gives the ticks
    /// that took.
    ///
    /// # Safety
    /// The pointers are distinct and each describes a packet as abi.h asks for, in memory that nobody else uses
    /// during the call. `frames` are the packets as they came in, and `chosen` says which each pointer belongs to.
    pub unsafe fn run(
        &mut self,
        pointers: &[*mut abi::Packet],
        chosen: &[usize],
        frames: &[Frame],
    ) -> u64 {
        match &mut self.running {
            Running::Module {
                instance,
                program,
                replica: Some(replica),
                ..
            } => {
                // SAFETY: as the caller promises.
                unsafe { replica.run(instance, *program, pointers) }
            }
            Running::Module {
                instance,
                program,
                prefetch,
                mixed: Some(mixed),
                ..
            } => {
                // SAFETY: as the caller promises.
                unsafe { mixed.run(instance, (*program, *prefetch), pointers) }
            }
            Running::Module {
                instance,
                program,
                prefetch,
                ..
            } => {
                // SAFETY: as the caller promises.
                unsafe { instance.run(*program, *prefetch, pointers) }
            }
            Running::Foreign { element, given } => {
                let begin = clock::ticks();
                let each = pointers.iter().zip(chosen);
                let each = each.map(|(pointer, index)| (*pointer, frames.get(*index)));
                // SAFETY: as the caller promises.
                unsafe { burst(Some(element), given, each) };
                clock::ticks().saturating_sub(begin)
            }
            // SAFETY: as the caller promises.
            Running::Classed(classed) => unsafe { classed.run(pointers, chosen, frames) },
        }
    }
}

fn of_foreign(decides: bool) -> Behaviour {
    match decides {
        true => Behaviour::default(),
        false => Behaviour::tap(),
    }
}

/// A foreign element has these descriptors' packets, which say after it what becomes of them; they go on past one that
/// has ended. `given` is scratch.
///
/// # Safety
/// As [`Stage::run`]: the pointers are distinct, and nobody else refers to what they describe.
pub(super) unsafe fn burst<'a>(
    element: Option<&mut Box<dyn Foreign>>,
    given: &mut Vec<Given>,
    each: impl Iterator<Item = (*mut abi::Packet, Option<&'a Frame>)> + Clone,
) {
    given.clear();
    // SAFETY: as the caller promises.
    given.extend(
        each.clone()
            .map(|(p, frame)| given_of(unsafe { &*p }, frame)),
    );
    if let Some(element) = element {
        // SAFETY: the descriptors' packets, as the caller promises.
        unsafe { element.burst(given) };
    }
    for ((pointer, _), given) in each.zip(given) {
        // SAFETY: as above.
        settle(unsafe { &mut *pointer }, given);
    }
}

/// Gives a packet the fate that a foreign element decided on.
fn settle(packet: &mut abi::Packet, given: &Given) {
    (packet.fate, packet.out) = match given.fate {
        foreign::ON => (abi::fate::FORWARD, 1 - packet.port.min(1)),
        foreign::KEEP => (abi::fate::CONSUME, 0),
        out @ foreign::OUT.. if given.length <= room_of(packet) => {
            packet.end = packet.data.wrapping_add(given.length as usize);
            (abi::fate::FORWARD, u32::from(out - foreign::OUT))
        }
        _ => (abi::fate::DROP, 0),
    };
}

/// A packet with its own stamp, not the chain's clock; one that was cut by a capture keeps what was cut off.
fn given_of(packet: &abi::Packet, frame: Option<&Frame>) -> Given {
    let length = packet.end.addr().saturating_sub(packet.data.addr()) as u32;
    let cut = frame.map_or(0, |f| {
        let came = f.end.addr().saturating_sub(f.data.addr()) as u32;
        f.wire.saturating_sub(came)
    });
    let stamp = frame.map_or(0, |f| f.stamp);
    Given {
        data: packet.data,
        time: if stamp == 0 { packet.time } else { stamp },
        length,
        wire: length.saturating_add(cut),
        room: room_of(packet),
        port: packet.port.min(1) as u16,
        fate: foreign::ON,
    }
}

/// How long a packet may become where it lies.
fn room_of(packet: &abi::Packet) -> u32 {
    let room = packet.ceiling.addr().saturating_sub(packet.data.addr());
    room.min(0xffff) as u32
}
