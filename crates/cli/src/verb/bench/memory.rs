//! A function on workers that each have their packets in their own memory.

use millrace_dataplane::Config as State;
use millrace_dataplane::port::vnic::Settings;

use super::Once;
use super::plan::{Config, Machine};
use crate::cost::{Frames, Subject, together};
use crate::failure::Failure;
use crate::seed;
use crate::wiring::{self, Words};

/// Note on such a port.
pub const FACT: &str = "no NIC: each worker copies its packets from its own memory into buffers";

/// The packets that the device would receive.
///
/// # Errors
/// They cannot be read.
pub fn frames(settings: &Settings) -> Result<Frames, Failure> {
    let inputs = [settings.file.clone()];
    let words = Words {
        inputs: &inputs,
        outputs: &[],
        split: settings.split.as_ref(),
        pass: None,
    };
    // As the device names them: what the split names, and the other.
    let ports = match &settings.split {
        Some(_) => vec!["LAN".to_owned(), "WAN".to_owned()],
        None => wiring::port_names(&[], &words)?,
    };
    Frames::read(&words, &ports)
}

/// One repetition.
///
/// # Errors
/// There is no memory for the state.
pub fn once(config: &Config, machine: &Machine, frames: &Frames) -> Result<Once, Failure> {
    let function = &config.function;
    let subject = Subject {
        module: function.module.clone(),
        config: State {
            hash_seed: seed::secret(),
            initial: function.initial.clone(),
            ..State::default()
        },
        entry: function.entry,
        ports: function.ports.len().max(2) as u32,
    };
    let owners = match &config.arrangement {
        Some(arrangement) => arrangement.owners(subject.ports as usize, config.cores)?,
        None => Vec::new(),
    };
    let cpus = machine.cpus.get(..config.cores).unwrap_or(&machine.cpus);
    let seen = together::turn(&subject, frames, &owners, cpus)?;
    Ok(Once {
        mpps: seen.mpps,
        limited: false,
        taken: seen.mpps,
        function_ns: 0.0,
        latency: Vec::new(),
        load: seen.load,
        writes: Some(seen.writes),
    })
}
