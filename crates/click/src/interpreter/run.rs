//! The scheduler: tasks in turn, timers, delivery of packets.

use super::build::configuring;
use super::{Context, Count, Outcome, Router, Timers, World};
use crate::error::Error;
use crate::language::Port;
use crate::packet::Packet;

/// Simulated time that a round of the scheduler takes, nanoseconds.
const ROUND: i64 = 1000;

/// Why a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    /// an element asked for it
    Stopped,
    /// no element will ever do anything again
    Idle,
    /// a bound was passed
    Failed(String),
}

impl Router {
    fn context(&self, id: usize) -> Context<'_> {
        Context {
            world: &self.world,
            id,
        }
    }

    pub(super) fn start(&mut self) -> Result<(), Vec<Error>> {
        let mut errors = Vec::new();
        for id in 0..self.world.elements.len() {
            let cx = self.context(id);
            let started = cx.with(id, |element, cx| element.start(cx));
            if let (Some(Err(what)), Some(flat)) = (started, self.world.graph.elements.get(id)) {
                errors.push(configuring(flat, &what));
            }
            self.world.drain();
        }
        self.tasks = (0..self.world.elements.len()).collect();
        if errors.is_empty() {
            Ok(())
        } else {
            Err(errors)
        }
    }

    /// Runs until an element stops the run, nothing is left to do, or a bound is passed; then files are written.
    pub fn run(&mut self) -> Ended {
        let ended = self.rounds();
        for id in 0..self.world.elements.len() {
            self.context(id).with(id, |element, cx| element.finish(cx));
        }
        ended
    }

    fn rounds(&mut self) -> Ended {
        loop {
            let mut worked = false;
            self.world.step();
            let tasks = std::mem::take(&mut self.tasks);
            for id in tasks {
                if self.world.stop.get() {
                    // A run that goes on has all its tasks again.
                    self.tasks.push(id);
                    continue;
                }
                let cx = self.context(id);
                match cx.with(id, |element, cx| element.task(cx)) {
                    Some(None) => {}
                    Some(Some(did)) => {
                        worked |= did;
                        self.tasks.push(id);
                    }
                    None => self.tasks.push(id),
                }
                self.world.drain();
            }
            if !self.world.stop.get() {
                worked |= self.due();
            }
            if let Some(why) = self.world.failed.borrow().clone() {
                return Ended::Failed(why);
            }
            if self.world.stop.get() {
                if !self.goes_on() {
                    return Ended::Stopped;
                }
                continue;
            }
            if worked {
                self.world
                    .now
                    .set(self.world.now.get().saturating_add(ROUND));
                continue;
            }
            let next = self.world.timers.borrow().due.first().map(|t| t.0);
            match next {
                Some(time) => self.world.now.set(self.world.now.get().max(time)),
                None => return Ended::Idle,
            }
        }
    }

    /// Runs the timers whose time has come.
    pub(super) fn due(&self) -> bool {
        let mut worked = false;
        let now = self.world.now.get();
        loop {
            let first = self.world.timers.borrow().due.first().copied();
            let Some((_, id)) = first.filter(|(time, _)| *time <= now) else {
                return worked;
            };
            self.world.wake(id, None);
            self.context(id).with(id, |element, cx| element.timer(cx));
            self.world.drain();
            worked = true;
            if self.world.stop.get() || !self.world.step() {
                return worked;
            }
        }
    }

    /// Asks drivers whether the run goes on after a stop.
    fn goes_on(&self) -> bool {
        if self.world.over.get() {
            return false;
        }
        self.world.stop.set(false);
        let mut on = false;
        for id in 0..self.world.elements.len() {
            let cx = self.context(id);
            on |= cx.with(id, |element, cx| element.stopping(cx)) == Some(true);
            self.world.drain();
        }
        on && !self.world.over.get()
    }

    /// A packet enters at an element's input; what became of it, and of packets that it released.
    pub fn inject(&self, element: usize, port: usize, packet: Packet) -> Vec<Outcome> {
        *self.world.outcomes.borrow_mut() = Some(Vec::new());
        self.world.deliver(Port { element, port }, packet);
        self.world.drain();
        self.world.outcomes.borrow_mut().take().unwrap_or_default()
    }

    /// A packet leaves an element's output, as if the element had pushed it.
    pub fn emit(&self, element: usize, port: usize, packet: Packet) -> Vec<Outcome> {
        *self.world.outcomes.borrow_mut() = Some(Vec::new());
        self.context(element).push(port, packet);
        self.world.drain();
        self.world.outcomes.borrow_mut().take().unwrap_or_default()
    }

    /// A packet leaves an element's output; what became of it once nothing is left to do at this time: packets in queues
    /// have been pulled. Time stands still.
    pub fn pass(&self, element: usize, port: usize, packet: Packet) -> Vec<Outcome> {
        *self.world.outcomes.borrow_mut() = Some(Vec::new());
        self.context(element).push(port, packet);
        self.world.drain();
        self.settle();
        self.world.outcomes.borrow_mut().take().unwrap_or_default()
    }

    /// A packet comes to an element's input; as [`Router::pass`].
    pub fn enter(&self, element: usize, port: usize, packet: Packet) -> Vec<Outcome> {
        *self.world.outcomes.borrow_mut() = Some(Vec::new());
        self.world.deliver(Port { element, port }, packet);
        self.world.drain();
        self.settle();
        self.world.outcomes.borrow_mut().take().unwrap_or_default()
    }

    /// Lets time pass, as [`Router::advance`]; what became of packets that elements released, once nothing is left to do.
    pub fn pass_time(&self, to: i64) -> Vec<Outcome> {
        *self.world.outcomes.borrow_mut() = Some(Vec::new());
        self.advance(to);
        self.settle();
        self.world.outcomes.borrow_mut().take().unwrap_or_default()
    }

    fn settle(&self) {
        let mut tasks = self.polled.take().unwrap_or_else(|| self.tasks.clone());
        let mut worked = true;
        while worked && self.world.step() {
            worked = false;
            // An element without a task never has one.
            tasks.retain(|id| {
                let done = { self.context(*id) }.with(*id, |element, cx| element.task(cx));
                if done == Some(None) {
                    return false;
                }
                worked |= done.flatten() == Some(true);
                self.world.drain();
                true
            });
        }
        self.polled.set(Some(tasks));
    }
}

impl World {
    pub(super) fn target(&self, from: Port) -> Option<Port> {
        *self.targets.get(from.element)?.get(from.port)?
    }

    pub(super) fn fail(&self, why: &str) {
        self.failed
            .borrow_mut()
            .get_or_insert_with(|| why.to_owned());
        self.stop.set(true);
        self.over.set(true);
    }

    /// Counts a step; whether there is one more.
    pub(super) fn step(&self) -> bool {
        self.spend(1)
    }

    /// Counts steps.
    pub(super) fn spend(&self, more: u64) -> bool {
        let steps = self.steps.get().saturating_add(more);
        self.steps.set(steps);
        if steps > self.bounds.steps {
            self.fail(&format!("more than {} steps", self.bounds.steps));
            return false;
        }
        true
    }

    pub(super) fn wake(&self, id: usize, time: Option<i64>) {
        let mut timers = self.timers.borrow_mut();
        let Timers { due: set, of } = &mut *timers;
        if let Some(slot) = of.get_mut(id) {
            if let Some(old) = slot.take() {
                set.remove(&(old, id));
            }
            if let Some(time) = time {
                set.insert((time, id));
                *slot = Some(time);
            }
        }
    }

    fn count(&self, id: usize, change: impl FnOnce(&mut Count) -> Option<&mut u64>) {
        let mut counts = self.counts.borrow_mut();
        if let Some(number) = counts.get_mut(id).and_then(change) {
            *number += 1;
        }
    }

    fn deliver(&self, to: Port, packet: Packet) {
        self.count(to.element, |c| c.inputs.get_mut(to.port));
        let cx = Context {
            world: self,
            id: to.element,
        };
        cx.with(to.element, |element, cx| element.push(to.port, packet, cx));
    }

    /// Delivers what was pushed, depth first, in the order in which it was pushed.
    pub(super) fn drain(&self) {
        let mut stack: Vec<(Port, Packet)> = Vec::new();
        loop {
            let mut pending = self.pending.borrow_mut();
            stack.extend(pending.drain(..).rev());
            drop(pending);
            if stack.len() > self.bounds.packets {
                self.fail(&format!(
                    "more than {} packets under way",
                    self.bounds.packets
                ));
            }
            let Some((from, packet)) = stack.pop() else {
                return;
            };
            if self.failed.borrow().is_some() || !self.step() {
                return;
            }
            self.count(from.element, |c| c.outputs.get_mut(from.port));
            if let Some(to) = self.target(from) {
                self.deliver(to, packet);
            }
        }
    }

    pub(super) fn pull(&self, to: Port) -> Option<Packet> {
        let from = (*self.sources.get(to.element)?.get(to.port)?)?;
        let depth = self.depth.get();
        // A loop of pulls, or a chain longer than the stack should bear.
        if depth >= 4 * self.bounds.depth || !self.step() {
            return None;
        }
        self.depth.set(depth + 1);
        let cx = Context {
            world: self,
            id: from.element,
        };
        let packet = cx.with(from.element, |element, cx| element.pull(from.port, cx));
        self.depth.set(depth);
        let packet = packet.flatten()?;
        self.count(from.element, |c| c.outputs.get_mut(from.port));
        self.count(to.element, |c| c.inputs.get_mut(to.port));
        Some(packet)
    }

    /// A read handler of the whole configuration.
    pub(super) fn global(&self, name: &str) -> Result<String, String> {
        let elements = &self.graph.elements;
        let text = match name {
            "list" => {
                let names = elements.iter().map(|e| format!("{}\n", e.name));
                format!("{}\n{}", elements.len(), names.collect::<String>())
            }
            "config" | "flatconfig" => self.graph.to_string(),
            "version" => env!("CARGO_PKG_VERSION").to_owned(),
            "requirements" => self.graph.requirements.join("\n"),
            "classes" => crate::elements::classes()
                .map(|c| format!("{}\n", c.name))
                .collect(),
            _ => return Err(format!("no '{name}' read handler")),
        };
        Ok(text)
    }
}
