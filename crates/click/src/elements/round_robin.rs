//! `RoundRobinSwitch`: outputs in turn. `RoundRobinSched`: pulls from inputs in turn; `PrioSched`: from the first input that has a
//! packet. `StrideSched(TICKETS, …)`: inputs by their tickets (Waldspurger and Weihl, Stride Scheduling, 1995).

use super::prelude::*;
use std::collections::VecDeque;

/// The classes of this file.
pub const CLASSES: &[Class] = &[
    Class::new("RoundRobinSwitch", "1/-", "h/h", |args, _| {
        robin(args, false)
    }),
    Class::new("RoundRobinSched", "-/1", "l/l", |args, _| {
        robin(args, false)
    }),
    Class::new("PrioSched", "-/1", "l/l", |args, _| robin(args, true)),
    Class::new("StrideSched", "-/1", "l/l", stride),
];

fn robin(args: &mut Args<'_>, prefer: bool) -> Made {
    args.all();
    Ok(Box::new(Robin { next: 0, prefer }))
}

fn stride(args: &mut Args<'_>, _: &mut Setup<'_>) -> Made {
    let tickets = args.all();
    let tickets = tickets
        .iter()
        .map(|t| crate::arguments::integer(t).filter(|n| (1..=1 << 16).contains(n)));
    let strides: Option<Vec<i64>> = tickets.map(|t| t.map(|t| (1 << 16) / t)).collect();
    let strides = strides.ok_or("tickets are numbers from 1 to 65536")?;
    let passes = strides.iter().enumerate().map(|(n, s)| (*s, n)).collect();
    Ok(Box::new(Stride { strides, passes }))
}

struct Robin {
    next: usize,
    prefer: bool,
}

impl Element for Robin {
    fn meaning(&self) -> Option<Meaning> {
        Some(Meaning::Outside("its output is that of the packet before"))
    }

    fn push(&mut self, _: usize, packet: Packet, cx: &Context<'_>) {
        let port = self.next;
        self.next = (port + 1) % cx.outputs().max(1);
        cx.push(port, packet);
    }

    fn pull(&mut self, _: usize, cx: &Context<'_>) -> Option<Packet> {
        let inputs = cx.inputs();
        let first = if self.prefer { 0 } else { self.next };
        for n in 0..inputs {
            let port = (first + n) % inputs;
            if let Some(packet) = cx.pull(port) {
                self.next = (port + 1) % inputs;
                return Some(packet);
            }
        }
        None
    }
}

struct Stride {
    strides: Vec<i64>,
    /// inputs in the order of their passes
    passes: VecDeque<(i64, usize)>,
}

impl Element for Stride {
    fn meaning(&self) -> Option<Meaning> {
        Some(Meaning::Outside("its output is that of the packet before"))
    }

    fn pull(&mut self, _: usize, cx: &Context<'_>) -> Option<Packet> {
        for at in 0..self.passes.len() {
            let (pass, input) = *self.passes.get(at)?;
            let Some(packet) = cx.pull(input) else {
                continue;
            };
            self.passes.remove(at);
            let pass = pass + self.strides.get(input).copied().unwrap_or(1);
            let place = self.passes.iter().position(|(p, _)| *p >= pass);
            self.passes
                .insert(place.unwrap_or(self.passes.len()), (pass, input));
            return Some(packet);
        }
        None
    }
}
