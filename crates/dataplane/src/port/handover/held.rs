//! Packets that one worker's queue holds while their class moves from one worker to another.

use std::collections::VecDeque;
use std::sync::Arc;

use millrace_steer::buckets::Buckets;

use super::parked::Parked;
use super::rings::Rings;
use super::{By, Hub};
use crate::classes::Classes;
use crate::classes::away::{PARKED, Whose};
use crate::classes::table::{Indirection, Leaving};
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
    /// the device brings a class elsewhere
    leaving: Option<Leaving>,
    /// the queue was empty behind that
    dry: bool,
}

impl Held {
    /// Worker `worker`'s part, where packets have classes, of a device with this table.
    pub fn join(
        hub: &Arc<Hub>,
        worker: usize,
        table: Option<Arc<dyn Indirection>>,
    ) -> Option<Self> {
        let By::Class { classes, port } = &hub.by else {
            return None;
        };
        // The classes outlive the port, and must not keep it.
        let weak = Arc::downgrade(hub);
        let member = classes.join((*port, worker), table, move || {
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
            leaving: None,
            dry: false,
        })
    }

    /// Looks what is to be held.
    #[inline]
    pub fn look(&mut self, classes: &Classes, rings: &Rings) {
        let waits = self.class.is_some() || self.still || self.dry;
        if !waits && !classes.has_changed(self.step) {
            return;
        }
        let waiting = self.frames.front().map(|frame| frame.class);
        let looked = classes.look(
            self.member,
            (waiting, self.dry && waiting.is_none()),
            |to| rings.given(to),
            |from| rings.came(from),
        );
        (self.step, self.class, self.still) = (looked.step, looked.hold, looked.still);
        // What was seen before counts for the same change only.
        let change = |leaving: &Option<Leaving>| leaving.as_ref().map(|l| l.change);
        self.dry &= change(&self.leaving) == change(&looked.leaving);
        self.leaving = looked.leaving;
        // Behind a change of the key, which nothing was received during.
        self.buckets = classes.buckets();
    }

    /// Whether nothing is received.
    #[inline]
    pub fn is_still(&self) -> bool {
        self.still
    }

    /// Whether what the device had received before its table was changed is all that its queue may still give of the class.
    #[inline]
    pub fn leaves(&self) -> bool {
        (self.leaving.as_ref()).is_some_and(|leaving| leaving.table.applies(leaving.change))
    }

    /// Whether this queue looks out for when it is empty.
    #[inline]
    pub fn looks_out(&self) -> bool {
        self.leaving.is_some()
    }

    /// The queue was empty, and [`Self::leaves`] before.
    pub fn ran_dry(&mut self) {
        self.dry = true;
    }

    /// The class of a frame that came in at a port.
    #[inline]
    pub fn class(&self, classes: &Classes, frame: &Frame, bytes: &[u8]) -> u16 {
        let Some(buckets) = &self.buckets else {
            return classes.of(frame.port, bytes);
        };
        let hashed = match frame.hash {
            0 => None,
            hash => buckets.hashed(frame.port, hash, bytes),
        };
        hashed.unwrap_or_else(|| buckets.packet(frame.port, bytes)) as u16
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
