//! One function with its state, a packet at a time.

use std::collections::BTreeMap;
use std::sync::Arc;

use millrace_check::Checked;
use millrace_control::Exposed;
use millrace_dataplane::module::{Config, Instance, Module, ModuleError};
use millrace_dataplane::packet::{Arrival, Burst, Fate, Layout};
use millrace_object::program::{Dialect, Program, Role};
use millrace_object::types::EntryTypes;
use millrace_verify::Packet;

/// A function as it is given.
pub struct Part<'a> {
    /// its name
    pub name: String,
    /// what was written
    pub program: &'a Program,
    /// what is proved of it
    pub checked: &'a Checked,
    /// its state as it is seen from outside
    pub exposed: &'a Exposed,
    /// what its keys and values are made of
    pub types: &'a BTreeMap<String, EntryTypes>,
    /// the code, for one worker
    pub module: Arc<Module>,
    /// its state at start; `time` is set to that of the first packet
    pub config: Config,
    /// which of the packet entries runs
    pub entry: usize,
    /// names of its ports
    pub ports: Vec<String>,
}

impl Part<'_> {
    /// The entry that packets run, as an index into `Program::entries`.
    #[must_use]
    pub fn running(&self) -> Option<usize> {
        let entries = self.program.entries.iter().enumerate();
        let mut takes = entries.filter(|(_, e)| matches!(e.role, Role::Xdp | Role::OnPacket));
        takes.nth(self.entry).map(|e| e.0)
    }

    /// A fate in words, and the reason of a drop.
    #[must_use]
    pub fn fate(&self, fate: Fate) -> (String, Option<String>) {
        let port = |n: u32| {
            let name = self.ports.get(n as usize).cloned();
            name.unwrap_or_else(|| format!("port {n}, which does not exist"))
        };
        match fate {
            Fate::Aborted => ("aborted".into(), None),
            Fate::Dropped(reason) => {
                let name = self.program.reasons.get(reason as usize).cloned();
                match name.filter(|n| n != "dropped" && self.program.dialect == Dialect::Handlers) {
                    Some(name) => (format!("dropped: {name}"), Some(name)),
                    None => ("dropped".into(), None),
                }
            }
            Fate::Passed => ("passed to the host".into(), None),
            Fate::Forwarded(to) => (format!("forwarded to {}", port(to)), None),
            Fate::Flooded => ("flooded".into(), None),
            Fate::Consumed => ("consumed".into(), None),
        }
    }
}

/// A function that runs.
pub struct Element<'a> {
    /// the function
    pub part: &'a Part<'a>,
    /// its state
    pub instance: Instance,
    burst: Burst,
    /// it has ring buffers
    records: bool,
}

impl<'a> Element<'a> {
    /// Before the first packet, which comes at this time, ns.
    ///
    /// # Errors
    /// The state cannot be made.
    pub fn new(part: &'a Part<'a>, time: u64) -> Result<Self, ModuleError> {
        let config = Config {
            time,
            ..part.config.clone()
        };
        let mut instance = Instance::create(part.module.clone(), &config)?;
        instance.start(time);
        Ok(Self {
            records: part.module.objects().iter().any(|o| o.records),
            part,
            instance,
            burst: Burst::new(1, part.ports.len() as u32, Layout::Pooled),
        })
    }

    /// Runs a packet: its fate and its bytes afterwards. A frame that is too long to cross the border is dropped, as
    /// `run` does.
    pub fn run(&mut self, packet: &Packet) -> (Fate, &[u8]) {
        self.burst.clear();
        let arrival = Arrival {
            number: packet.number,
            port: packet.port,
            time: packet.time,
            stamp: packet.time,
            wire: packet.wire,
            home: 0,
            place: 0,
        };
        if !self.burst.push(&packet.frame, arrival) {
            return (Fate::Dropped(0), &[]);
        }
        self.burst.runs_on(0);
        self.instance.burst(self.part.entry, false, &mut self.burst);
        match self.burst.outcome(0) {
            Some(outcome) => (outcome.fate, outcome.bytes),
            None => (Fate::Aborted, &[]),
        }
    }

    /// Gives records away that nobody takes, so that ring buffers do not fill.
    pub fn drain(&mut self) {
        if self.records {
            self.instance.drain(|_| {});
        }
    }
}
