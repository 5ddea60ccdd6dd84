//! `Discard([ACTIVE, BURST])`: drops all packets; where its input pulls, it asks for one in each round.
//!
//! `DiscardNoFree` and `ToHost` are the same here.
//!
//! Handlers: `count`, `reset_counts`, `active`.

use super::prelude::*;

/// The classes of this file.
pub const CLASSES: &[Class] = &[
    Class::new("Discard", "1/0", "a/a", make),
    Class::new("DiscardNoFree", "1/0", "a/a", make),
    // The same, whose arguments say nothing here.
    Class::new("ToHost", "1/0", "a/a", |args, setup| {
        args.all();
        make(args, setup)
    }),
];

fn make(args: &mut Args<'_>, setup: &mut Setup<'_>) -> Made {
    args.keywords("ACTIVE BURST");
    let active = args.flag("ACTIVE", true)?;
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
        self.pulls
            .then(|| self.active && cx.pull_into(|packet| self.push(0, packet, cx)))
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
