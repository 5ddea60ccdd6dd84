//! The inputs of a run, merged by time stamp, each packet with the port that it enters at.

use std::os::fd::RawFd;
use std::time::Duration;

use millrace_traffic::capture::Record;
use millrace_traffic::split::{Side, Split};

use super::{IDLE, Intake};
use crate::port::{Input, PortError};

/// Which port a packet of an input enters at.
#[derive(Clone, Debug)]
pub enum Entry {
    /// always this one
    Port(u32),
    /// by who sent it
    Split {
        /// the rule
        split: Split,
        /// the port of those the rule names
        named: u32,
        /// the port of all others
        other: u32,
    },
}

impl Entry {
    #[inline]
    pub(crate) fn port(&self, frame: &[u8]) -> u32 {
        match self {
            Self::Port(port) => *port,
            Self::Split {
                split,
                named,
                other,
            } => match split.side(frame) {
                Side::Named => *named,
                Side::Other => *other,
            },
        }
    }
}

/// Inputs with their entries. Of packets with the same stamp, that of the input named first comes
/// first; the order within an input is kept, even where its stamps go backwards.
pub struct Sources {
    inputs: Vec<(Box<dyn Input>, Entry)>,
    /// which of them are live
    live: Vec<bool>,
    /// the input whose packet is next
    at: Option<usize>,
    /// live inputs that have yet to be stepped
    behind: Vec<usize>,
    /// inputs that nothing more is taken from
    closed: Vec<bool>,
    /// what ended an input before its end
    pub(crate) failures: Vec<PortError>,
}

impl Sources {
    /// Takes the inputs and steps each to its first packet, live ones when [`Self::ready`] is asked.
    #[must_use]
    pub fn new(inputs: Vec<(Box<dyn Input>, Entry)>) -> Self {
        let mut sources = Self {
            closed: vec![false; inputs.len()],
            live: inputs.iter().map(|(input, _)| input.live()).collect(),
            inputs,
            at: None,
            behind: Vec::new(),
            failures: Vec::new(),
        };
        for index in 0..sources.inputs.len() {
            sources.go(index);
        }
        sources.choose();
        sources
    }

    /// Whether the next packet, or that there is none, is known; waits for it up to `patience`. Where
    /// several inputs are merged it is known once each of them has a packet or has ended: otherwise the
    /// order would depend on when somebody looked.
    #[inline]
    pub fn ready(&mut self, patience: Duration) -> bool {
        self.behind.is_empty() || self.catch_up(patience)
    }

    /// Whether the next packet, or that there is none, is known without a wait.
    #[inline]
    #[must_use]
    pub fn is_known(&self) -> bool {
        self.behind.is_empty()
    }

    /// What becomes readable when more may be there of the input that is waited for; none where nothing tells.
    #[must_use]
    pub fn descriptor(&self) -> Option<RawFd> {
        let (input, _) = self.inputs.get(*self.behind.last()?)?;
        input.descriptor()
    }

    fn catch_up(&mut self, patience: Duration) -> bool {
        while let Some(&index) = self.behind.last() {
            let ready = self
                .inputs
                .get_mut(index)
                .is_none_or(|(i, _)| i.ready(patience));
            if !ready {
                return false;
            }
            self.behind.pop();
            self.step(index);
        }
        self.choose();
        true
    }

    /// Takes nothing more from outside: what is left is what live inputs have taken already.
    pub fn drain(&mut self) {
        for ((input, _), closed) in self.inputs.iter_mut().zip(&mut self.closed) {
            *closed = !input.drain();
        }
        self.behind.retain(|i| self.closed.get(*i) == Some(&false));
        self.choose();
    }

    /// The next packet and its ingress port, once [`Self::ready`]; none at the end of all.
    #[inline]
    #[must_use]
    pub fn next(&self) -> Option<(Record<'_>, u32)> {
        let (input, entry) = self.inputs.get(self.at?)?;
        let record = input.record()?;
        let port = entry.port(record.data);
        Some((record, port))
    }

    /// Goes on to the packet after it.
    #[inline]
    pub fn advance(&mut self) {
        // Of one input that never waits the next packet is the next.
        if let ([(input, _)], [false], Some(0)) = (&mut *self.inputs, &*self.live, self.at) {
            if let Err(error) = input.advance() {
                self.failures.push(error);
            }
            return;
        }
        if let Some(index) = self.at {
            self.go(index);
            self.choose();
        }
    }

    /// Gathers packets for a window, all that belong into it and are there; true when nothing more comes. Where the window
    /// has none yet and nobody works on an earlier one (`idle`), it waits a moment.
    pub(super) fn pour(&mut self, into: &mut Intake, idle: bool) -> bool {
        if let ([(input, entry)], [false], Some(0)) = (&mut *self.inputs, &*self.live, self.at) {
            if let Err(error) = input.pour(entry, into) {
                self.failures.push(error);
            }
            return true;
        }
        while into.wants() {
            let wait = idle && into.is_empty();
            if !self.ready(if wait { IDLE } else { Duration::ZERO }) {
                return false;
            }
            let Some((record, port)) = self.next() else {
                break;
            };
            if !into.take(&record, port) {
                break;
            }
            self.advance();
        }
        true
    }

    /// Steps an input now, or later where that may wait.
    fn go(&mut self, index: usize) {
        if self.live.get(index) == Some(&true) {
            self.behind.push(index);
        } else {
            self.step(index);
        }
    }

    /// How far all of them are, between 0 and 1; none when that cannot be known.
    #[must_use]
    pub fn progress(&self) -> Option<f64> {
        let mut all = (0_u64, 0_u64);
        for (input, _) in &self.inputs {
            let (done, total) = input.progress()?;
            all = (all.0.saturating_add(done), all.1.saturating_add(total));
        }
        (all.1 > 0).then(|| (all.0 as f64 / all.1 as f64).min(1.0))
    }

    /// What ended an input before its end.
    #[must_use]
    pub fn failures(&self) -> &[PortError] {
        &self.failures
    }

    /// Bytes of memory that they keep.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.inputs.iter().map(|(input, _)| input.bytes()).sum()
    }

    fn step(&mut self, index: usize) {
        let Some((input, _)) = self.inputs.get_mut(index) else {
            return;
        };
        if let Err(error) = input.advance() {
            self.failures.push(error);
        }
    }

    fn choose(&mut self) {
        if !self.behind.is_empty() {
            self.at = None;
            return;
        }
        if let [closed] = self.closed.as_slice() {
            self.at = Some(0).filter(|_| !closed);
            return;
        }
        let open = |i: &usize| self.closed.get(*i) == Some(&false);
        let inputs = self.inputs.iter().enumerate().filter(|(i, _)| open(i));
        let heads = inputs.filter_map(|(i, (input, _))| Some((input.record()?.time_ns, i)));
        self.at = heads.min().map(|(_, index)| index);
    }
}
