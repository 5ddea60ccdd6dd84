//! An NF as Millrace runs it, driven packet by packet from a test.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use millrace_dataplane::module::{Config, Instance, Module};
use millrace_dataplane::packet::{Arrival, Burst, Fate, Layout};
use millrace_emit::cache::Cache;
use millrace_object::Program;
use millrace_object::program::Entry;

use crate::command::root;
use crate::kernel::Entries;

/// A running copy of an NF.
pub struct Emitted {
    /// the object it was made from, for another loader
    pub object: PathBuf,
    /// what it is
    pub program: Program,
    instance: Instance,
    burst: Burst,
    entry: usize,
    number: u64,
}

/// What became of one packet.
pub struct Outcome {
    /// its fate
    pub fate: Fate,
    /// the frame afterwards
    pub packet: Vec<u8>,
}

impl Emitted {
    /// Builds `nfs/NAME/NAME.c` and creates its state. `ports` is how many there are, `set` its
    /// parameters.
    ///
    /// # Errors
    /// Whatever stage fails, as text.
    pub fn nf(cache: &Path, name: &str, ports: u32, set: &[(&str, &str)]) -> Result<Self, String> {
        let source = root().join(format!("nfs/{name}/{name}.c"));
        Self::build(cache, &source, ports, set, &[])
    }

    /// Builds a source or an object and creates its state; `capacities` as in
    /// [`millrace_emit::Options`].
    ///
    /// # Errors
    /// Whatever stage fails, as text.
    pub fn of(
        cache: &Path,
        source: &Path,
        ports: u32,
        capacities: &[(String, u64)],
    ) -> Result<Self, String> {
        Self::build(cache, source, ports, &[], capacities)
    }

    fn build(
        cache: &Path,
        source: &Path,
        ports: u32,
        set: &[(&str, &str)],
        capacities: &[(String, u64)],
    ) -> Result<Self, String> {
        let cache = Cache::at(cache).map_err(|e| e.to_string())?;
        let options = millrace_emit::Options {
            capacities: capacities.to_vec(),
            ..Default::default()
        };
        let mut built = millrace_emit::build(&cache, source, &[], &options, &mut |_| {})
            .map_err(|e| e.to_string())?;
        for (name, value) in set {
            built
                .program
                .set_param(name, value)
                .map_err(|e| e.to_string())?;
        }
        let module = Module::load(&built.module).map_err(|e| e.to_string())?;
        let config = Config {
            initial: built
                .program
                .objects
                .iter()
                .map(|o| o.initial.clone())
                .collect(),
            ..Config::default()
        };
        let mut instance =
            Instance::create(Arc::new(module), &config).map_err(|e| e.to_string())?;
        instance.start(0);
        Ok(Self {
            object: built.object.ok_or("a linked program has no object")?,
            program: built.program,
            instance,
            burst: Burst::new(1, ports, Layout::Pooled),
            entry: 0,
            number: 0,
        })
    }

    /// Runs this program from now on, where there are several.
    ///
    /// # Errors
    /// When there is no such program.
    pub fn select(&mut self, name: &str) -> Result<(), String> {
        let mut entries = self.program.entries.iter();
        let function = |e: &Entry| self.program.functions.get(e.function.0);
        let found = entries.position(|e| function(e).is_some_and(|f| f.name == name));
        self.entry = found.ok_or_else(|| format!("there is no program {name}"))?;
        Ok(())
    }

    /// Sets an entry of a state object.
    ///
    /// # Errors
    /// When there is no such object, or it does not take the entry.
    pub fn set(&mut self, name: &str, key: &[u8], value: &[u8]) -> Result<(), String> {
        let at = self.program.objects.iter().position(|o| o.name == name);
        let at = at.ok_or_else(|| format!("there is no object {name}"))?;
        self.instance
            .set(at, key, value, 0)
            .map_err(|e| e.to_string())
    }

    /// Removes an entry of a state object; false when there was none.
    ///
    /// # Errors
    /// When there is no such object, or its entries cannot be removed.
    pub fn remove(&mut self, name: &str, key: &[u8]) -> Result<bool, String> {
        let at = self.program.objects.iter().position(|o| o.name == name);
        let at = at.ok_or_else(|| format!("there is no object {name}"))?;
        self.instance.remove(at, key, 0).map_err(|e| e.to_string())
    }

    /// Runs one packet that came in by port 0 at time 0.
    ///
    /// # Errors
    /// A packet that is too long for the border.
    pub fn run(&mut self, packet: &[u8]) -> Result<Outcome, String> {
        self.burst.clear();
        let arrival = Arrival {
            number: self.number,
            ..Arrival::default()
        };
        self.number += 1;
        if !self.burst.push(packet, arrival) {
            return Err(format!("{} bytes are too long", packet.len()));
        }
        self.instance.burst(self.entry, true, &mut self.burst);
        let outcome = self.burst.outcome(0).ok_or("the packet is missing")?;
        Ok(Outcome {
            fate: outcome.fate,
            packet: outcome.bytes.to_vec(),
        })
    }

    /// Runs packets that came in by port 0 at these times (ns) as one burst, with the prefetching passes
    /// or without.
    ///
    /// # Errors
    /// Too many packets for a burst, or one that is too long for the border.
    pub fn burst(
        &mut self,
        packets: &[(u64, &[u8])],
        prefetch: bool,
    ) -> Result<Vec<Outcome>, String> {
        let mut burst = Burst::new(packets.len(), 1, Layout::Pooled);
        for (time, packet) in packets {
            let arrival = Arrival {
                number: self.number,
                time: *time,
                ..Arrival::default()
            };
            self.number += 1;
            if !burst.push(packet, arrival) {
                return Err(format!("{} bytes are too long", packet.len()));
            }
        }
        self.instance.burst(self.entry, prefetch, &mut burst);
        let outcome = |at| {
            let outcome = burst.outcome(at).ok_or("a packet is missing")?;
            Ok(Outcome {
                fate: outcome.fate,
                packet: outcome.bytes.to_vec(),
            })
        };
        (0..packets.len()).map(outcome).collect()
    }

    /// How often timers in the values of maps have fired.
    #[must_use]
    pub fn alarms_fired(&self) -> u64 {
        self.instance.alarms_fired()
    }

    /// The entries of a state object, by key.
    ///
    /// # Errors
    /// When there is no such object, or it has no entries to list.
    pub fn entries(&mut self, name: &str) -> Result<Entries, String> {
        let at = self.program.objects.iter().position(|o| o.name == name);
        let at = at.ok_or_else(|| format!("there is no object {name}"))?;
        let entries = self
            .instance
            .entries(at, usize::MAX, 0)
            .map_err(|e| e.to_string())?;
        Ok(entries.into_iter().collect())
    }

    /// The values of a state object in the order in which it lists them.
    ///
    /// # Errors
    /// When there is no such object, or it has no values to list.
    pub fn values(&mut self, name: &str) -> Result<Vec<Vec<u8>>, String> {
        let at = self.program.objects.iter().position(|o| o.name == name);
        let at = at.ok_or_else(|| format!("there is no object {name}"))?;
        let entries = self
            .instance
            .entries(at, usize::MAX, 0)
            .map_err(|e| e.to_string())?;
        Ok(entries.into_iter().map(|(_, value)| value).collect())
    }

    /// Records that have arrived in ring buffers since the last call, by object name.
    pub fn records(&mut self) -> Vec<(String, Vec<u8>)> {
        let mut records = Vec::new();
        self.instance.drain(|r| records.push((r.object, r.bytes)));
        let name = |at: usize| {
            self.program
                .objects
                .get(at)
                .map_or("?", |o| &o.name)
                .to_owned()
        };
        records
            .into_iter()
            .map(|(at, bytes)| (name(at), bytes))
            .collect()
    }
}
