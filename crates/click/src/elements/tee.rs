//! `Tee([N])`: a copy of each packet on each output. `PullTee`: output 0 is pulled, copies are pushed out of the others.
//! `Duplicate` is a Tee.

use super::prelude::*;

/// The classes of this file.
pub const CLASSES: &[Class] = &[
    Class::new("Tee", "1/1-", "h/h", make),
    Class::new("Duplicate", "1/1-", "h/h", make),
    Class::new("PullTee", "1/1-", "l/lh", make),
];

fn make(args: &mut Args<'_>, _: &mut Setup<'_>) -> Made {
    args.all();
    Ok(Box::new(Tee { outputs: 0 }))
}

struct Tee {
    outputs: usize,
}

impl Element for Tee {
    fn meaning(&self) -> Option<Meaning> {
        Some(match self.outputs {
            0 | 1 => Meaning::Pass,
            _ => Meaning::Outside("it copies packets"),
        })
    }

    fn start(&mut self, cx: &Context<'_>) -> Result<(), String> {
        self.outputs = cx.outputs();
        Ok(())
    }

    fn push(&mut self, _: usize, packet: Packet, cx: &Context<'_>) {
        for port in 0..self.outputs.max(1) - 1 {
            cx.push(port, packet.clone());
        }
        cx.push(self.outputs.max(1) - 1, packet);
    }

    fn pull(&mut self, _: usize, cx: &Context<'_>) -> Option<Packet> {
        let packet = cx.pull(0)?;
        for port in 1..self.outputs {
            cx.push(port, packet.clone());
        }
        Some(packet)
    }
}
