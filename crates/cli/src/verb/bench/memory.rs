//! A function, or a chain on one worker, on workers that each have their packets in their own memory.

use millrace::Ports;
use millrace::cost::{Frames, Subject, row, together};
use millrace_dataplane::port::vnic::Settings;
use millrace_dataplane::signal;

use super::Once;
use super::figures::Latency;
use super::plan::{Config, Machine};
use crate::failure::Failure;

/// Note on such a port.
pub const FACT: &str = "no NIC: each worker copies its packets from its own memory into buffers";

/// The packets that the device would receive; a split names one of these ports, or one of the device.
///
/// # Errors
/// They cannot be read.
pub fn frames(settings: &Settings, named: &[String]) -> Result<Frames, Failure> {
    let ports = Ports::captures(
        std::slice::from_ref(&settings.file),
        settings.split.as_ref(),
    );
    // As the device names them: what the split names, and the other.
    let names = match &settings.split {
        Some(split) if named.iter().any(|n| n.eq_ignore_ascii_case(split.port())) => named.to_vec(),
        Some(_) => vec!["LAN".to_owned(), "WAN".to_owned()],
        None => ports.names(&[])?,
    };
    Frames::read(&ports, &names, signal::flag())
}

/// One repetition.
///
/// # Errors
/// There is no memory for the state.
pub fn once(
    config: &Config,
    machine: &Machine,
    frames: &Frames,
    rounds: u32,
) -> Result<Once, Failure> {
    let measured = &config.function;
    let ports = measured.row.ports.len().max(2);
    let several = measured.function.as_ref().filter(|_| config.cores > 1);
    let Some(function) = several else {
        if let Some(cpu) = machine.cpus.first() {
            millrace_dataplane::place::pin(*cpu);
        }
        let connected = row::Connected {
            links: &measured.row.links,
            topology: measured.row.topology.as_ref(),
            ports: ports as u32,
            rounds: rounds as usize,
        };
        let seen = row::turn(&connected, frames)?;
        return Ok(Once {
            mpps: seen.mpps,
            limited: false,
            taken: seen.mpps,
            function_ns: seen.packet_ns,
            functions_ns: seen.functions_ns,
            latency: vec![Latency {
                fraction: 1.0,
                mpps: seen.mpps,
                p50_ns: Some(seen.burst_ns[0]),
                p99_ns: Some(seen.burst_ns[1]),
                p999_ns: Some(seen.burst_ns[2]),
                lost: 0.0,
            }],
            load: vec![1.0],
            writes: None,
        });
    };
    let subject = Subject::on_workers(function, ports as u32);
    let owners = function.owners(ports)?;
    let cpus = machine.cpus.get(..config.cores).unwrap_or(&machine.cpus);
    let seen = together::turn(&subject, frames, &owners, cpus)?;
    Ok(Once {
        mpps: seen.mpps,
        limited: false,
        taken: seen.mpps,
        function_ns: 0.0,
        functions_ns: 0.0,
        latency: Vec::new(),
        load: seen.load,
        writes: Some(seen.writes),
    })
}
