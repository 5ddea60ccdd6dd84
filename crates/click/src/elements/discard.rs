//! `Discard([ACTIVE, BURST])`: drops all packets; where its input pulls, it asks for one in each round.
//!
//! `DiscardNoFree` and `ToHost` are the same here.
//!
//! Handlers: `count`, `reset_counts`, `active`.

use crate::arguments::Args;
use crate::element::{Class, Element, Made, Read, Written};
use crate::interpreter::{Context, Setup};
use crate::meaning::Meaning;
use crate::packet::Packet;

/// Discard
pub const CLASS: Class = Class {
    name: "Discard",
    ports: "1/0",
    processing: "a/a",
    make,
};

/// DiscardNoFree
pub const NO_FREE: Class = Class {
    name: "DiscardNoFree",
    ports: "1/0",
    processing: "a/a",
    make,
};

/// ToHost
pub const TO_HOST: Class = Class {
    name: "ToHost",
    ports: "1/0",
    processing: "a/a",
    make: any,
};

fn make(args: &mut Args<'_>, setup: &mut Setup<'_>) -> Made {
    args.keywords(&["ACTIVE", "BURST"]);
    let active = args.flag("ACTIVE", true)?;
    args.keyword("BURST");
    args.done()?;
    Ok(Box::new(Discard {
        pulls: setup.pulls(),
        active,
        count: 0,
    }))
}

struct Discard {
    pulls: bool,
    active: bool,
    count: u64,
}

impl Element for Discard {
    fn meaning(&self) -> Option<Meaning> {
        self.active.then_some(Meaning::Drop)
    }

    fn push(&mut self, _: usize, packet: Packet, cx: &Context<'_>) {
        self.count += 1;
        cx.drop(packet);
    }

    fn task(&mut self, cx: &Context<'_>) -> Option<bool> {
        if !self.pulls {
            return None;
        }
        let packet = if self.active { cx.pull(0) } else { None };
        let worked = packet.is_some();
        if let Some(packet) = packet {
            self.push(0, packet, cx);
        }
        Some(worked)
    }

    fn read(&mut self, name: &str, _: &str, _: &Context<'_>) -> Read {
        match name {
            "count" => Some(Ok(self.count.to_string())),
            "active" => Some(Ok(self.active.to_string())),
            _ => None,
        }
    }

    fn write(&mut self, name: &str, value: &str, _: &Context<'_>) -> Written {
        match name {
            "active" => self.active = value.trim() != "false",
            "reset_counts" => self.count = 0,
            _ => return None,
        }
        Some(Ok(()))
    }
}

/// The same, whose arguments say nothing here.
fn any(args: &mut Args<'_>, setup: &mut Setup<'_>) -> Made {
    args.all();
    make(args, setup)
}
