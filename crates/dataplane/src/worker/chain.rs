//! Connected functions on one worker.
//!
//! A chain of one function has its ports. Of a chain of several, its `Topology` (crates/topology) says which port
//! leads where. A burst goes through function by function, each of which runs over as many packets at once as may: the
//! result is that of one packet after the other (`order.rs`). A packet that keeps being sent back and forth is aborted
//! after [`SWEEPS`] times through the chain in each direction. Packets are not copied within it: one that a function
//! floods to more than one port is aborted, unless the function is the only one.

use std::sync::Arc;

use millrace_topology::{self as topology, Topology};

use super::classed::Guests;
use super::condition::Condition;
use super::foreign::{self, Handed};
use super::lives::Life;
use super::order::{Behaviour, Order};
use super::slow::SlowPaths;
use super::stage::Stage;
use super::watch::Watch;
use crate::module::{Config, Homes, Module, ModuleError, ObjectInfo, Shared, abi};
use crate::port::Frame;
use crate::replica::{Group, Small};
use crate::share::Share;

/// How often a packet may go through the whole chain, once in each direction.
pub const SWEEPS: usize = 4;

/// An element of a chain, as every worker gets it.
#[derive(Clone)]
pub struct Link {
    /// its name
    pub name: String,
    /// what it runs
    pub code: Code,
    /// names of its drop reasons, by index
    pub reasons: Vec<String>,
    /// memory that its objects take, as predicted from their declarations, bytes
    pub objects_bytes: u64,
    /// how each object stands on the workers, in the module's order; those that are missing are copies
    pub shares: Vec<Share>,
    /// what runs packets that it hands over; none: they are passed to the host
    pub slow: Option<Arc<dyn SlowPaths>>,
    /// it was linked from several elements: its objects and drop reasons have those elements' names already, `ELEMENT:NAME`
    pub linked: bool,
}

impl Link {
    /// Where packets come home that carry numbers which it leased, if it goes by that.
    pub(super) fn homes(&self) -> Option<Arc<Homes>> {
        match &self.code {
            Code::Module(code) => code.config.homes.clone(),
            Code::Foreign(_) | Code::Classed(_) => None,
        }
    }
}

/// What an element runs.
#[derive(Clone)]
pub enum Code {
    /// a module, of which every worker makes an instance
    Module(ModuleCode),
    /// something foreign, made already
    Foreign(Handed),
    /// something foreign, made already for each packet class
    Classed(Arc<Guests>),
}

/// A module and how it is run.
#[derive(Clone)]
pub struct ModuleCode {
    /// the code
    pub module: Arc<Module>,
    /// its state at start; `time` is set when the worker starts
    pub config: Config,
    /// which packet entry to run
    pub program: usize,
    /// whether to use the prefetching passes
    pub prefetch: bool,
    /// what is known of it beside neighbours
    pub behaviour: Behaviour,
    /// what its replicas have in common, where its state is replicated
    pub replicas: Option<Arc<Group>>,
    /// where only heavy keys are replicated: the code of that, beside this one for the worker's part
    pub small: Option<Arc<Small>>,
}

impl Link {
    /// The states of the foreign elements that it hosts, one for each packet class; a module has none. Workers have not
    /// taken them yet.
    #[must_use]
    pub fn conditions(&self) -> Vec<Arc<Condition>> {
        match &self.code {
            Code::Module(_) => Vec::new(),
            Code::Foreign(handed) => foreign::condition(handed).into_iter().collect(),
            Code::Classed(guests) => guests.conditions(),
        }
    }

    /// Whether it has an instance for each packet class.
    #[must_use]
    pub fn classed(&self) -> bool {
        matches!(self.code, Code::Classed(_))
    }

    /// Whether some of its contents at start are one worker's alone.
    #[must_use]
    pub fn has_owned(&self) -> bool {
        match &self.code {
            Code::Module(code) => code.config.entries.iter().any(|e| e.worker.is_some()),
            Code::Foreign(_) | Code::Classed(_) => false,
        }
    }

    /// What its replicas have in common, if its state is replicated.
    pub(super) fn replicas(&self) -> Option<&Arc<Group>> {
        match &self.code {
            Code::Module(code) => code.replicas.as_ref(),
            Code::Foreign(_) | Code::Classed(_) => None,
        }
    }

    /// Whether its packets are transactions.
    #[must_use]
    pub fn transacts(&self) -> bool {
        match &self.code {
            Code::Module(code) => code.module.transacts(),
            Code::Foreign(_) | Code::Classed(_) => false,
        }
    }

    /// Its state objects; a foreign element shows none.
    #[must_use]
    pub fn objects(&self) -> &[ObjectInfo] {
        match &self.code {
            Code::Module(code) => code.module.objects(),
            Code::Foreign(_) | Code::Classed(_) => &[],
        }
    }
}

/// What a stage has done with a burst.
#[derive(Clone, Copy, Debug, Default)]
pub struct Work {
    /// calls
    pub bursts: u64,
    /// packets
    pub packets: u64,
    /// ticks of [`crate::clock`]
    pub ticks: u64,
}

/// Where a packet of the burst ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct End {
    /// the function that decided
    pub stage: u32,
    /// it went round and was aborted
    pub looped: bool,
    /// it was to go to several ports and was aborted
    pub flooded: bool,
    /// the slow path had no room for it
    pub refused: bool,
}

/// What this many workers have in common of each element: of a foreign one nothing.
///
/// # Errors
/// As [`Shared::create`].
pub fn common(links: &[Link], workers: usize) -> Result<Vec<Option<Arc<Shared>>>, ModuleError> {
    let of = |link: &Link| match &link.code {
        Code::Module(code) => {
            Shared::create(code.module.clone(), &code.config, workers.max(1) as u32).map(Some)
        }
        Code::Foreign(_) | Code::Classed(_) => Ok(None),
    };
    links.iter().map(of).collect()
}

/// The descriptors of one burst, during one call of [`Chain::run`]. Every pointer to one is made of the same, so that
/// each is good for as long as the burst.
#[derive(Clone, Copy)]
struct Burst {
    first: *mut abi::Packet,
    packets: usize,
}

impl Burst {
    /// A packet's descriptor.
    fn descriptor(self, index: usize) -> Option<*mut abi::Packet> {
        (index < self.packets).then(|| self.first.wrapping_add(index))
    }
}

/// The functions of one worker.
pub struct Chain {
    /// in their order
    pub stages: Vec<Stage>,
    /// where their ports lead
    pub topology: Topology,
    /// whether packets need no way through it: one function has the chain's ports
    alone: bool,
    /// what each did with the last burst
    pub work: Vec<Work>,
    /// for each packet of the last burst
    pub ends: Vec<End>,
    /// which function runs next, over which packets
    order: Order,
    /// the function at which all packets that are still on their way wait, if it is one: they are `chosen`
    together: Option<usize>,
    /// the packets that one function is called with, by their places in the burst
    pub(super) chosen: Vec<usize>,
    /// their descriptors
    pub(super) pointers: Vec<*mut abi::Packet>,
    /// who watches packets
    pub(super) watch: Watch,
    /// packets of the burst that are followed apart, by their places; none while nobody watches
    pub(super) followed: Vec<usize>,
    /// and those whose end is told, the former among them
    pub(super) ending: Vec<usize>,
}

// SAFETY: `pointers` is scratch: it is filled and used within one call of `run`.
unsafe impl Send for Chain {}

impl Chain {
    /// Makes the state of each function of worker `worker`, from 0; `shared` is what the workers have in common
    /// of each, see [`common`]. `start` is the time, ns since the epoch.
    ///
    /// # Errors
    /// As `Stage::new`.
    pub fn new(
        links: &[Link],
        lives: &[Arc<Life>],
        topology: &Topology,
        shared: &[Option<Arc<Shared>>],
        worker: usize,
        start: u64,
    ) -> Result<Self, ModuleError> {
        let parts = links.iter().zip(lives).zip(shared);
        let stages = parts
            .map(|((link, life), shared)| Stage::new(link, life, shared.as_ref(), worker, start));
        let stages = stages.collect::<Result<Vec<_>, _>>()?;
        Ok(Self {
            alone: topology.is_alone(),
            order: Order::new(topology, stages.iter().map(|s| &s.behaviour)),
            topology: topology.clone(),
            stages,
            work: vec![Work::default(); links.len()],
            ends: Vec::new(),
            together: None,
            chosen: Vec::new(),
            pointers: Vec::new(),
            watch: Watch::default(),
            followed: Vec::new(),
            ending: Vec::new(),
        })
    }

    /// Runs the functions over a burst. After it each descriptor says what becomes of its packet, in
    /// the chain's ports, and `ends` which function said so. `frames` are the packets as they came in.
    ///
    /// # Safety
    /// Every descriptor describes a packet as abi.h asks for, in memory that nobody else uses.
    pub(super) unsafe fn run(&mut self, packets: &mut [abi::Packet], frames: &[Frame]) {
        if self.watch.any() {
            // SAFETY: as the caller promises.
            unsafe {
                self.watched(packets, frames);
                self.through(packets, frames);
            }
            self.told(packets);
        } else {
            // SAFETY: as the caller promises.
            unsafe { self.through(packets, frames) };
        }
    }

    /// # Safety
    /// As [`Chain::run`].
    unsafe fn through(&mut self, packets: &mut [abi::Packet], frames: &[Frame]) {
        let burst = self.begin(packets);
        if self.alone {
            // SAFETY: as the caller promises.
            unsafe { self.call(0, frames) };
            return;
        }
        self.order.begin(packets.len());
        let port = packets.first().map_or(0, |packet| packet.port);
        let leads = self.topology.entries().get(port as usize).copied();
        let together = packets.iter().all(|packet| packet.port == port);
        // SAFETY: `begin` has chosen the descriptors of this burst.
        unsafe {
            if !(together && self.all(None, leads)) {
                self.part(None, |topology, packet| {
                    match topology.entries().get(packet.port as usize) {
                        Some(end) => enter(topology, *end, packet),
                        None => Next::Through,
                    }
                });
            }
        }
        // SAFETY: as the caller promises.
        unsafe { self.pass(burst, frames) };
    }

    /// Sends packets that a function has made itself on along the chain, out of the port that `out` of each names.
    /// Of a function that is alone they leave at once. After it each descriptor says what becomes of its packet, as after
    /// [`Chain::run`].
    ///
    /// # Safety
    /// As [`Chain::run`].
    pub(super) unsafe fn emit(
        &mut self,
        stage: usize,
        packets: &mut [abi::Packet],
        frames: &[Frame],
    ) {
        let burst = self.begin(packets);
        if self.alone {
            return;
        }
        self.order.begin(packets.len());
        // SAFETY: `begin` has chosen the descriptors of this burst; the rest as the caller promises.
        unsafe {
            self.route(stage);
            self.pass(burst, frames);
        }
    }

    /// Before a burst, all of whose packets are chosen.
    fn begin(&mut self, packets: &mut [abi::Packet]) -> Burst {
        let burst = Burst {
            first: packets.as_mut_ptr(),
            packets: packets.len(),
        };
        self.work.fill(Work::default());
        // A function that is alone leaves these as they are.
        if !self.alone {
            self.ends.clear();
            self.chosen.clear();
        }
        self.ends.resize(packets.len(), End::default());
        self.chosen.truncate(packets.len());
        self.chosen.extend(self.chosen.len()..packets.len());
        self.pointers.clear();
        let all = (0..packets.len()).map(|index| burst.first.wrapping_add(index));
        self.pointers.extend(all);
        burst
    }

    /// Takes packets through the chain until each is through.
    ///
    /// # Safety
    /// As [`Chain::run`].
    unsafe fn pass(&mut self, burst: Burst, frames: &[Frame]) {
        while self.order.waiting() > 0 {
            let stage = match self.together {
                Some(stage) if !self.order.turns(stage) => stage,
                _ => match self.choose(burst) {
                    Some(stage) => stage,
                    None => return,
                },
            };
            self.order.runs(stage, self.chosen.len());
            // SAFETY: as the caller promises; bounds that a function moved are the packet's new ones, and still within
            // its room.
            unsafe {
                self.call(stage, frames);
                if cfg!(debug_assertions) {
                    self.holds(stage);
                }
                self.route(stage);
            }
        }
    }

    /// Holds the chosen packets against what is known of the function, on which the order rests.
    ///
    /// # Safety
    /// The pointers are those of the burst's descriptors.
    unsafe fn holds(&self, stage: usize) {
        let behaviour = self.stages.get(stage).map(|s| &s.behaviour);
        for pointer in &self.pointers {
            // SAFETY: as the caller promises; nothing else refers to it now.
            let packet = unsafe { &**pointer };
            let (from, to) = (packet.port as usize, packet.out as usize);
            let known =
                packet.fate != abi::fate::FORWARD || behaviour.is_some_and(|b| b.leads(from, to));
            assert!(
                known,
                "element {stage} sent a packet of port {from} to {to}: {behaviour:?}"
            );
        }
    }

    /// Chooses the function that runs next and its packets; none where none waits.
    fn choose(&mut self, burst: Burst) -> Option<usize> {
        let stage = self.order.choose(&mut self.chosen);
        self.pointers.clear();
        let pointers = self.chosen.iter().filter_map(|i| burst.descriptor(*i));
        self.pointers.extend(pointers);
        stage
    }

    /// Calls one function with the chosen packets.
    ///
    /// # Safety
    /// As [`Chain::run`]; the packets were chosen from this burst.
    unsafe fn call(&mut self, stage: usize, frames: &[Frame]) {
        if !self.followed.is_empty() {
            // SAFETY: as the caller promises.
            return unsafe { self.call_apart(stage, frames) };
        }
        let (Some(running), Some(work)) = (self.stages.get_mut(stage), self.work.get_mut(stage))
        else {
            return;
        };
        // SAFETY: distinct descriptors (`choose` has each index once), as the caller promises.
        work.ticks += unsafe { running.run(&self.pointers, &self.chosen, frames) };
        work.bursts += 1;
        work.packets += self.pointers.len() as u64;
    }

    /// Sends the chosen packets on to where the ports lead that the function sent them to.
    ///
    /// # Safety
    /// The pointers are those of the burst's descriptors.
    unsafe fn route(&mut self, stage: usize) {
        // SAFETY: as the caller promises.
        unsafe {
            if let Some(out) = self.way()
                && let leads = self.topology.ports(stage).get(out as usize).copied()
                && self.all(Some(stage), leads)
            {
                return;
            }
            self.part(Some(stage), |topology, packet| {
                let leads = topology.ports(stage);
                let out = match packet.fate {
                    abi::fate::FORWARD => packet.out as usize,
                    // With two ports, every port but the ingress port is the other one.
                    abi::fate::FLOOD if leads.len() == 2 => 1 - packet.port.min(1) as usize,
                    abi::fate::FLOOD => {
                        packet.fate = abi::fate::ABORTED;
                        return Next::Flooded;
                    }
                    _ => return Next::Through,
                };
                match leads.get(out) {
                    Some(topology::End::Out(port)) => {
                        packet.fate = abi::fate::FORWARD;
                        packet.out = *port;
                    }
                    Some(end) => {
                        anew(packet);
                        return enter(topology, *end, packet);
                    }
                    // No port of the chain has this number, so that the packet is accounted as sent to none.
                    None => packet.out = u32::MAX,
                }
                Next::Through
            });
        }
    }

    /// The port that the function sends all packets of the burst to, if it has run over all of them and does.
    ///
    /// # Safety
    /// The pointers are those of the burst's descriptors, to which nothing else refers.
    unsafe fn way(&self) -> Option<u32> {
        if self.pointers.len() != self.ends.len() {
            return None;
        }
        let (first, others) = self.pointers.split_first()?;
        // SAFETY: as the caller promises.
        let of = |p: &*mut abi::Packet| unsafe { ((**p).fate, (**p).out) };
        let first = of(first);
        if first.0 != abi::fate::FORWARD {
            return None;
        }
        // Without a branch a packet: almost always all of them agree.
        let differ = others.iter().map(of).fold(0, |differ, (fate, out)| {
            differ | (fate ^ first.0) | (out ^ first.1)
        });
        (differ == 0).then_some(first.1)
    }

    /// Sends all packets of the burst on to one place at once; false, and nothing is done, where one of them has gone round
    /// too often. They come from one function, or into the chain.
    ///
    /// # Safety
    /// As [`Self::part`].
    unsafe fn all(&mut self, from: Option<usize>, leads: Option<topology::End>) -> bool {
        match leads {
            Some(topology::End::Element { element, port }) => {
                if !self.order.all_come(from, element, port, 2 * SWEEPS) {
                    return false;
                }
                let ports = self.topology.ports(element).len() as u32;
                for pointer in &self.pointers {
                    // SAFETY: as the caller promises.
                    let packet = unsafe { &mut **pointer };
                    if from.is_some() {
                        anew(packet);
                    }
                    (packet.port, packet.ports) = (port, ports);
                }
                self.together = Some(element);
                true
            }
            Some(topology::End::Out(port)) => {
                let Some(from) = from else {
                    return false;
                };
                for pointer in &self.pointers {
                    // SAFETY: as the caller promises.
                    unsafe { (**pointer).out = port };
                }
                self.ends.fill(End {
                    stage: from as u32,
                    ..End::default()
                });
                self.order.all_leave();
                self.together = None;
                true
            }
            None => false,
        }
    }

    /// Parts the chosen packets by what `next` says of each, and notes where they wait; those that go where the first
    /// does stay chosen. They come from one function, or into the chain.
    ///
    /// Bursts stay together in most chains, and then nobody has to look for packets that wait.
    ///
    /// # Safety
    /// The pointers are those of the burst's descriptors, to which nothing else refers.
    unsafe fn part(
        &mut self,
        from: Option<usize>,
        mut next: impl FnMut(&Topology, &mut abi::Packet) -> Next,
    ) {
        let mut first = None;
        let mut kept = 0;
        for place in 0..self.chosen.len() {
            let (Some(&index), Some(&pointer)) = (self.chosen.get(place), self.pointers.get(place))
            else {
                break;
            };
            // SAFETY: as the caller promises.
            let packet = unsafe { &mut *pointer };
            let decided = from.unwrap_or_default() as u32;
            let end = match next(&self.topology, packet) {
                Next::At(stage) => {
                    let legs = self.order.comes(index, from, stage, packet.port);
                    if usize::from(legs) < 2 * SWEEPS {
                        if *first.get_or_insert(stage) == stage {
                            self.chosen.swap(kept, place);
                            self.pointers.swap(kept, place);
                            kept += 1;
                        }
                        continue;
                    }
                    self.order.runs(stage, 1);
                    End {
                        stage: stage as u32,
                        looped: true,
                        ..End::default()
                    }
                }
                Next::Through => End {
                    stage: decided,
                    ..End::default()
                },
                Next::Flooded => End {
                    stage: decided,
                    flooded: true,
                    ..End::default()
                },
            };
            self.order.leaves(index);
            if let Some(place) = self.ends.get_mut(index) {
                *place = end;
            }
        }
        self.chosen.truncate(kept);
        self.pointers.truncate(kept);
        self.together = first.filter(|_| kept == self.order.waiting());
    }

    /// Has other elements from now on: `was` says which of the present ones each of them is, none for the next of
    /// `fresh`. Gives those that are not in it any more.
    pub(super) fn rearrange(
        &mut self,
        topology: Topology,
        was: &[Option<usize>],
        fresh: Vec<Stage>,
    ) -> Vec<Stage> {
        let mut before: Vec<_> = self.stages.drain(..).map(Some).collect();
        let mut fresh = fresh.into_iter();
        for place in was {
            let stage = match place {
                Some(index) => before.get_mut(*index).and_then(Option::take),
                None => fresh.next(),
            };
            self.stages.extend(stage);
        }
        self.work = vec![Work::default(); self.stages.len()];
        self.order = Order::new(&topology, self.stages.iter().map(|s| &s.behaviour));
        self.ends.clear();
        self.chosen.clear();
        self.alone = topology.is_alone();
        self.topology = topology;
        self.watch.changed();
        before.into_iter().flatten().chain(fresh).collect()
    }
}

/// Where a packet goes.
enum Next {
    /// to this function
    At(usize),
    /// nowhere within the chain
    Through,
    /// to several ports, and so nowhere
    Flooded,
}

/// Forgets what an earlier function has said of a packet.
#[inline]
fn anew(packet: &mut abi::Packet) {
    packet.meta = packet.data;
    packet.fate = abi::fate::ABORTED;
    packet.redirect = 0;
    packet.draws = 0;
}

/// Lets a packet come to where a port leads.
fn enter(topology: &Topology, end: topology::End, packet: &mut abi::Packet) -> Next {
    let topology::End::Element { element, port } = end else {
        return Next::Through;
    };
    packet.port = port;
    packet.ports = topology.ports(element).len() as u32;
    Next::At(element)
}
