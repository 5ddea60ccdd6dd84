//! `Idle`: never pushes, and gives no packet when it is asked; drops what comes in.
//!
//! Any number of inputs and outputs.

use crate::arguments::Args;
use crate::element::{Class, Element, Made};
use crate::interpreter::{Context, Setup};
use crate::meaning::Meaning;
use crate::packet::Packet;

/// Idle
pub const CLASS: Class = Class {
    name: "Idle",
    ports: "-/-",
    processing: "a/a",
    make,
};

fn make(args: &mut Args<'_>, _: &mut Setup<'_>) -> Made {
    args.done()?;
    Ok(Box::new(Idle))
}

struct Idle;

impl Element for Idle {
    fn meaning(&self) -> Option<Meaning> {
        Some(Meaning::Drop)
    }

    fn push(&mut self, _: usize, packet: Packet, cx: &Context<'_>) {
        cx.drop(packet);
    }

    fn pull(&mut self, _: usize, _: &Context<'_>) -> Option<Packet> {
        None
    }
}
