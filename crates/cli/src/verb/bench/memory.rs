//! A function on workers that each have their packets in their own memory.

use millrace::Ports;
use millrace::cost::{Frames, Subject, together};
use millrace_dataplane::port::vnic::Settings;
use millrace_dataplane::signal;

use super::Once;
use super::plan::{Config, Machine};
use crate::failure::Failure;

/// Note on such a port.
pub const FACT: &str = "no NIC: each worker copies its packets from its own memory into buffers";

/// The packets that the device would receive.
///
/// # Errors
/// They cannot be read.
pub fn frames(settings: &Settings) -> Result<Frames, Failure> {
    let ports = Ports::captures(
        std::slice::from_ref(&settings.file),
        settings.split.as_ref(),
    );
    // As the device names them: what the split names, and the other.
    let names = match &settings.split {
        Some(_) => vec!["LAN".to_owned(), "WAN".to_owned()],
        None => ports.names(&[])?,
    };
    Frames::read(&ports, &names, signal::flag())
}

/// One repetition.
///
/// # Errors
/// There is no memory for the state.
pub fn once(config: &Config, machine: &Machine, frames: &Frames) -> Result<Once, Failure> {
    let function = &config.function;
    let ports = function.ports.len().max(2);
    let subject = Subject::on_workers(function, ports as u32);
    let owners = function.owners(ports)?;
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
