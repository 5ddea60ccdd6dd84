//! What makes rows: an instance of the function whose state nothing changes, one a thread.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::sync::Arc;

use millrace_steer::sequence::{Extract, Shape};

use super::{At, Change};
use crate::module::{Config, Instance, Module, ModuleError, Seen};
use crate::packet::MAX_FRAME;

/// Which function makes rows, and where it stands.
#[derive(Clone)]
pub(super) struct Seat {
    /// packet entry of the module
    pub program: usize,
    /// ports of the function
    pub ports: u32,
    /// what is added to the numbers of packets
    pub base: u64,
    /// in a chain, by port of the chain, at which of its ports a packet comes to the function, if it does; empty: its ports are those
    pub enters: Vec<Option<u32>>,
}

/// Changes of settings, which all that make rows repeat.
#[derive(Default)]
pub(super) struct Changes {
    /// those before the first of `left`, which all have made
    gone: usize,
    left: VecDeque<(Arc<Change>, At)>,
    /// how many each has made
    made: Vec<usize>,
}

impl Changes {
    /// One more that repeats them, and has made those so far; its number.
    fn one(&mut self) -> usize {
        self.made.push(self.gone + self.left.len());
        self.made.len() - 1
    }

    /// A change at this place.
    pub fn push(&mut self, make: Arc<Change>, at: At) {
        self.left.push_back((make, at));
    }

    /// How many make rows.
    pub fn threads(&self) -> usize {
        self.made.len()
    }
}

/// Makes rows.
pub(super) struct Rows {
    shape: Shape,
    module: Arc<Module>,
    config: Config,
    seat: Seat,
    instance: RefCell<Instance>,
    /// ingress number of the packet at hand
    number: Cell<u64>,
    /// its number in [`Changes`]
    index: usize,
}

impl Rows {
    /// By an instance with these settings.
    ///
    /// # Errors
    /// There is no memory for it.
    pub fn new(
        shape: Shape,
        module: &Arc<Module>,
        (config, seat): (&Config, Seat),
        changes: &mut Changes,
    ) -> Result<Self, ModuleError> {
        Ok(Self {
            shape,
            module: module.clone(),
            config: config.clone(),
            seat,
            instance: RefCell::new(Instance::create(module.clone(), config)?),
            number: Cell::new(0),
            index: changes.one(),
        })
    }

    /// The same by an instance of its own, before settings have changed.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn another(&self, changes: &mut Changes) -> Result<Self, ModuleError> {
        let of = (&self.config, self.seat.clone());
        Self::new(self.shape, &self.module, of, changes)
    }

    /// Makes the changes of settings that it has not made; whether there were any, so that rows are different from now on.
    pub fn catch_up(&mut self, changes: &mut Changes) -> bool {
        let all = changes.gone + changes.left.len();
        let Some(made) = changes.made.get_mut(self.index) else {
            return false;
        };
        let before = std::mem::replace(made, all);
        if before == all {
            return false;
        }
        for (make, at) in changes.left.iter().skip(before - changes.gone) {
            make(self.instance.get_mut(), *at);
        }
        let least = changes.made.iter().copied().min().unwrap_or(all);
        changes.left.drain(..least - changes.gone);
        changes.gone = least;
        true
    }

    /// Sets the ingress number of the packet whose row is next.
    pub fn number(&self, number: u64) {
        self.number.set(number.wrapping_add(self.seat.base));
    }

    /// The function stands in a chain, whose ports lead to these of its own, or past it.
    pub fn entering(&mut self, enters: Vec<Option<u32>>) {
        self.seat.enters = enters;
    }

    /// Bytes of the instance.
    pub fn bytes(&self) -> u64 {
        self.module.state_bytes()
    }
}

impl Extract for Rows {
    fn shape(&self) -> Shape {
        self.shape
    }

    fn extract(&self, frame: &[u8], port: u16, time: u64, row: &mut [u8]) -> bool {
        let port = u32::from(port);
        let port = match self.seat.enters.as_slice() {
            [] => Some(port),
            enters => enters.get(port as usize).copied().flatten(),
        };
        let Some(port) = port else {
            return false;
        };
        let seen = Seen {
            // What is longer crosses no border, and has no row.
            frame: frame.get(..MAX_FRAME).unwrap_or(frame),
            port,
            ports: self.seat.ports,
            time,
            number: self.number.get(),
        };
        // Nobody else borrows it: a step ends before the next begins.
        self.instance
            .try_borrow_mut()
            .is_ok_and(|mut instance| instance.extract(self.seat.program, &seen, row))
    }
}
