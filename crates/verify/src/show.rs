//! Packets, fates and entries for people.

use millrace_dataplane::packet::Fate;
use millrace_dataplane::runner::hex;
use millrace_object::program::Program;
use millrace_traffic::language::summarise;

use crate::findings::{Did, Shown};
use crate::outcome::Outcome;
use crate::trace::Packet;

/// How keys and values are written.
pub trait Names {
    /// A key of an object.
    fn key(&self, object: usize, key: &[u8]) -> String;
    /// A value of an object.
    fn value(&self, object: usize, value: &[u8]) -> String;
}

/// As bytes.
pub struct Bytes;

impl Names for Bytes {
    fn key(&self, _: usize, key: &[u8]) -> String {
        hex(key)
    }

    fn value(&self, _: usize, value: &[u8]) -> String {
        hex(value)
    }
}

/// A port's name.
#[must_use]
pub fn port(ports: &[String], port: u32) -> String {
    let name = ports.get(port as usize).cloned();
    name.unwrap_or_else(|| format!("port {port}, which does not exist"))
}

/// A fate in words.
#[must_use]
pub fn fate(program: &Program, ports: &[String], fate: Fate) -> String {
    match fate {
        Fate::Aborted => "aborted".into(),
        Fate::Dropped(reason) => match program.reasons.get(reason as usize) {
            Some(name) if name != "dropped" => format!("dropped: {name}"),
            _ => "dropped".into(),
        },
        Fate::Passed => "passed to the host".into(),
        Fate::Forwarded(to) => format!("forwarded to {}", port(ports, to)),
        Fate::Flooded => "flooded".into(),
        Fate::Consumed => "consumed".into(),
    }
}

/// A packet.
#[must_use]
pub fn packet(ports: &[String], packet: &Packet) -> Shown {
    Shown {
        number: packet.number,
        port: port(ports, packet.port),
        time_ns: packet.time,
        bytes: hex(&packet.frame),
        headers: summarise(&packet.frame),
    }
}

/// Outcome of a side.
#[must_use]
pub fn did(program: &Program, ports: &[String], outcome: &Outcome) -> Did {
    Did {
        worker: outcome.worker,
        fate: fate(program, ports, outcome.fate),
        bytes: hex(&outcome.bytes),
        headers: summarise(&outcome.bytes),
    }
}
