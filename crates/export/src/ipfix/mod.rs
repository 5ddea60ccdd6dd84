//! Messages of IPFIX (RFC 7011), written and not read.
//!
//! Why not by a library: docs/dependencies.md. What is written is held against two readers that are not ours
//! (`crates/export/tests`, `crates/cli/tests/exported.rs`).

mod message;
mod template;

pub use message::{MOST, Message};
pub use template::{ENTERPRISE, Template};

use millrace_dataplane::packet::Fate;

use crate::flows::{End, Flow};
use crate::sample::{Ends, Key};

/// What a run says of itself beside its flows: sampling (RFC 5477), its ports, and what its own elements mean (RFC 5610).
#[derive(Clone, Debug)]
pub struct Facts {
    /// one packet of so many is sampled
    pub every: u32,
    /// names of the run's ports
    pub ports: Vec<String>,
}

/// The number of the only selector.
const SELECTOR: u64 = 1;
/// Systematic count-based sampling (RFC 5477, section 8.2.1).
const COUNT_BASED: u16 = 1;

/// The number of an interface: 0 says in IPFIX that it is not known.
fn interface(port: u32) -> u32 {
    port.saturating_add(1)
}

/// `forwardingStatus` (RFC 7270, section 4.12): its first two bits are unknown, forwarded, dropped, consumed; the rest says why.
#[must_use]
pub fn status(fate: Fate) -> u8 {
    match fate {
        Fate::Forwarded(_) | Fate::Flooded => 64,
        Fate::Dropped(_) | Fate::Aborted => 128,
        Fate::Consumed => 192,
        // "For us".
        Fate::Passed => 196,
    }
}

fn dropped(key: &Key) -> bool {
    matches!(key.fate, Fate::Dropped(_) | Fate::Aborted)
}

/// The template that a flow is written by.
#[must_use]
pub fn template(key: &Key) -> &'static Template {
    match (key.ends, dropped(key)) {
        (Ends::V4(..), false) => &template::V4,
        (Ends::V6(..), false) => &template::V6,
        (Ends::Link(..), false) => &template::LINK,
        (Ends::V4(..), true) => &template::V4_DROPPED,
        (Ends::V6(..), true) => &template::V6_DROPPED,
        (Ends::Link(..), true) => &template::LINK_DROPPED,
    }
}

/// The record of a flow, by its template.
#[must_use]
pub fn record(key: &Key, flow: &Flow, end: End) -> Vec<u8> {
    let mut out = Vec::with_capacity(160);
    let milliseconds = |ns: u64| ns / 1_000_000;
    out.extend(milliseconds(flow.first).to_be_bytes());
    out.extend(milliseconds(flow.last).to_be_bytes());
    out.extend(flow.packets.to_be_bytes());
    out.extend(flow.octets.to_be_bytes());
    out.extend(flow.frames.to_be_bytes());
    out.extend(SELECTOR.to_be_bytes());
    out.extend(interface(key.ingress).to_be_bytes());
    let egress = match key.fate {
        Fate::Forwarded(port) => interface(port),
        _ => 0,
    };
    out.extend(egress.to_be_bytes());
    out.extend([status(key.fate), end as u8]);
    template::text(&mut out, &key.element);
    if dropped(key) {
        template::text(&mut out, key.reason.as_deref().unwrap_or("dropped"));
        template::text(&mut out, key.line.as_deref().unwrap_or("unknown"));
    }
    match key.ends {
        Ends::Link(from, to, ethertype) => {
            out.extend(from);
            out.extend(to);
            out.extend(ethertype.to_be_bytes());
            return out;
        }
        Ends::V4(from, to) => {
            out.extend(from);
            out.extend(to);
            out.push(4);
        }
        Ends::V6(from, to) => {
            out.extend(from);
            out.extend(to);
            out.push(6);
        }
    }
    out.extend([key.protocol, key.class]);
    out.extend(key.ports.0.to_be_bytes());
    out.extend(key.ports.1.to_be_bytes());
    out.extend(u16::from(flow.flags).to_be_bytes());
    out
}

/// All templates, and the records of options, as messages: what a collector needs before the first flow, and again after
/// it may have missed it.
#[must_use]
pub fn preamble(facts: &Facts, sequence: &mut u32, time: u32) -> Vec<Vec<u8>> {
    let mut messages = Vec::new();
    let mut message = Message::new(*sequence, time);
    message.templates(template::FLOWS);
    message.options(template::OPTIONS);
    messages.push(message.done(sequence));
    let mut all: Vec<(&Template, Vec<u8>)> = vec![(&template::SAMPLING, {
        let mut out = SELECTOR.to_be_bytes().to_vec();
        out.extend(COUNT_BASED.to_be_bytes());
        out.extend(1_u32.to_be_bytes());
        out.extend(facts.every.saturating_sub(1).to_be_bytes());
        out
    })];
    for (port, name) in (0..).zip(&facts.ports) {
        let mut out = interface(port).to_be_bytes().to_vec();
        template::text(&mut out, name);
        all.push((&template::PORTS, out));
    }
    all.extend(template::own().map(|out| (&template::TYPES, out)));
    let mut message = Message::new(*sequence, time);
    for (by, record) in all {
        if !message.add(by, &record) {
            messages.push(message.done(sequence));
            message = Message::new(*sequence, time);
            message.add(by, &record);
        }
    }
    messages.push(message.done(sequence));
    messages
}
