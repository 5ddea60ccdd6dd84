//! `Idle`: never pushes, and gives no packet when it is asked; drops what comes in.
//!
//! Any number of inputs and outputs.

use super::prelude::*;

/// The class of this file.
pub const CLASSES: &[Class] = &[Class::new("Idle", "-/-", "a/a", make)];

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
