//! Packets that one worker's queue holds while their class moves from one worker to another.

use std::collections::VecDeque;
use std::sync::Arc;

use millrace_steer::buckets::Buckets;

use super::parked::Parked;
use super::rings::Rings;
use super::{By, Hub};
use crate::classes::Classes;
use crate::classes::away::{PARKED, Whose};
use crate::port::Frame;

/// Packets that are held before no more are received; then the device keeps them.
pub const MOST: usize = 256;

/// Has a frame go to a worker, which may be this one; false where there is no room.
pub fn to_worker(
    frame: &Frame,
    worker: usize,
    own: usize,
    rings: &mut Rings,
    into: &mut Vec<Frame>,
    most: usize,
) -> bool {
    if worker != own {
        return rings.hand(worker, *frame);
    }
    let room = into.len() < most;
    if room {
        into.push(*frame);
    }
    room
}

/// One worker's part of what moves at a port.
pub struct Held {
    member: usize,
    /// the step of [`Classes`] that was looked at last
    step: u64,
    /// the class that is held
    class: Option<u16>,
    /// nothing is received
    still: bool,
    /// what classes are, where they are buckets
    buckets: Option<Arc<dyn Buckets>>,
    /// in the order that they came in, all of one class
    frames: VecDeque<Frame>,
}

impl Held {
    /// Worker `worker`'s part, where packets have classes.
    pub fn join(hub: &Arc<Hub>, worker: usize) -> Option<Self> {
        let By::Class { classes, port } = &hub.by else {
            return None;
        };
        // The classes outlive the port, and must not keep it.
        let weak = Arc::downgrade(hub);
        let member = classes.join(*port, worker, move || {
            if let Some(hub) = weak.upgrade()
                && let Some(bell) = hub.bells.get(worker)
            {
                bell.ring();
            }
        });
        Some(Self {
            member,
            step: 0,
            class: None,
            still: false,
            buckets: None,
            frames: VecDeque::new(),
        })
    }

    /// Looks what is to be held.
    #[inline]
    pub fn look(&mut self, classes: &Classes, rings: &Rings) {
        if self.class.is_none() && !self.still && !classes.has_changed(self.step) {
            return;
        }
        let waiting = self.frames.front().map(|frame| frame.class);
        let looked = classes.look(
            self.member,
            waiting,
            |to| rings.given(to),
            |from| rings.came(from),
        );
        (self.step, self.class, self.still) = (looked.step, looked.hold, looked.still);
        // Behind a change of the key, which nothing was received during.
        self.buckets = classes.buckets();
    }

    /// Whether nothing is received.
    #[inline]
    pub fn is_still(&self) -> bool {
        self.still
    }

    /// The class of a frame that came in at a port.
    #[inline]
    pub fn class(&self, classes: &Classes, port: u32, bytes: &[u8]) -> u16 {
        match &self.buckets {
            Some(buckets) => buckets.packet(port, bytes) as u16,
            None => classes.of(port, bytes),
        }
    }

    /// Keeps a frame of a class that is held, or of which others wait to go; whether it does.
    #[inline]
    pub fn keeps(&mut self, frame: &Frame) -> bool {
        let behind = |of: &Frame| of.class == frame.class;
        let keeps = self.class == Some(frame.class) || self.frames.front().is_some_and(behind);
        if keeps {
            self.frames.push_back(*frame);
        }
        keeps
    }

    /// Whether there are packets whose class has come to its worker.
    #[inline]
    pub fn may_go(&self) -> bool {
        self.class.is_none() && !self.frames.is_empty()
    }

    /// How many packets are held.
    pub fn count(&self) -> usize {
        self.frames.len()
    }

    /// The class whose packets are held.
    pub fn moves(&self) -> Option<u16> {
        self.class
    }

    /// Has packets go to their class's worker, as many as there is room for: to worker `own` into `into`, which may
    /// have `most` then. Those of a class that has none here go the way of `parked`.
    pub fn go(
        &mut self,
        classes: &Classes,
        own: usize,
        rings: &mut Rings,
        (into, most): (&mut Vec<Frame>, usize),
        (mut parked, back): (Option<&mut Parked>, &mut Vec<Frame>),
    ) {
        while let Some(frame) = self.frames.front() {
            let whose = classes.whose(frame.class);
            let to = match (&mut parked, whose) {
                (Some(parked), whose) => {
                    let accepts = parked.accepts();
                    parked.sees(frame, whose, (accepts, MOST + PARKED), back)
                }
                (None, Whose::Worker(to)) => Some(to),
                (None, _) => None,
            };
            if to.is_some_and(|worker| !to_worker(frame, worker, own, rings, into, most)) {
                break;
            }
            self.frames.pop_front();
        }
    }

    /// Gives up what is held.
    pub fn abandon(&mut self, into: &mut Vec<Frame>) {
        into.extend(self.frames.drain(..));
    }
}
