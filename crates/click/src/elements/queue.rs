//! `Queue([CAPACITY])`: holds packets between push and pull, first in, first out; 1,000 unless told otherwise. A full one drops
//! the new packet, `FrontDropQueue` the oldest. `SimpleQueue`, `NotifierQueue`, `FullNoteQueue`, `QuickNoteQueue` and
//! `ThreadSafeQueue` are the same here: a source waits while all queues that it fills are full.
//!
//! `MixedQueue([CAPACITY])`: packets of input 1 go to the front, and push out the last one when it is full.
//!
//! Handlers: `length`, `highwater_length`, `capacity` (also written), `drops`, `reset_counts`, `reset`.

use super::prelude::*;
use std::collections::VecDeque;

/// The classes of this file.
pub const CLASSES: &[Class] = &[
    Class::new("Queue", "1/1", "h/l", make),
    Class::new("SimpleQueue", "1/1", "h/l", make),
    Class::new("NotifierQueue", "1/1", "h/l", make),
    Class::new("FullNoteQueue", "1/1", "h/l", make),
    Class::new("QuickNoteQueue", "1/1", "h/l", make),
    Class::new("ThreadSafeQueue", "1/1", "h/l", make),
    Class::new("FrontDropQueue", "1/1", "h/l", |args, _| {
        queue(args, Full::Old)
    }),
    Class::new("MixedQueue", "2/1", "hh/l", make),
];

fn make(args: &mut Args<'_>, _: &mut Setup<'_>) -> Made {
    queue(args, Full::New)
}

fn queue(args: &mut Args<'_>, full: Full) -> Made {
    args.keywords("CAPACITY");
    let capacity = args.number("CAPACITY", 1000)?;
    args.done()?;
    let capacity = usize::try_from(capacity).map_err(|_| "bad capacity")?;
    Ok(Box::new(Queue {
        packets: VecDeque::new(),
        capacity,
        full,
        drops: 0,
        highest: 0,
    }))
}

/// Which packet goes when there is no room.
#[derive(PartialEq, Eq)]
enum Full {
    New,
    Old,
}

struct Queue {
    packets: VecDeque<Packet>,
    capacity: usize,
    full: Full,
    drops: u64,
    highest: usize,
}

impl Element for Queue {
    fn meaning(&self) -> Option<Meaning> {
        Some(Meaning::Pass)
    }

    fn push(&mut self, port: usize, packet: Packet, cx: &Context<'_>) {
        if self.packets.len() >= self.capacity {
            self.drops += 1;
            let old = match (port, &self.full) {
                (0, Full::New) => None,
                (0, Full::Old) => self.packets.pop_front(),
                _ => self.packets.pop_back(),
            };
            match old {
                Some(old) => cx.drop(old),
                None => return cx.drop(packet),
            }
        }
        match port {
            0 => self.packets.push_back(packet),
            _ => self.packets.push_front(packet),
        }
        self.highest = self.highest.max(self.packets.len());
    }

    fn pull(&mut self, _: usize, _: &Context<'_>) -> Option<Packet> {
        self.packets.pop_front()
    }

    fn room(&self) -> Option<usize> {
        Some(self.capacity.saturating_sub(self.packets.len()))
    }

    fn read(&mut self, name: &str, _: &str, _: &Context<'_>) -> Read {
        let text = match name {
            "length" => self.packets.len().to_string(),
            "highwater_length" => self.highest.to_string(),
            "capacity" => self.capacity.to_string(),
            "drops" => self.drops.to_string(),
            "config" => format!("CAPACITY {}", self.capacity),
            _ => return None,
        };
        Some(Ok(text))
    }

    fn write(&mut self, name: &str, value: &str, cx: &Context<'_>) -> Written {
        match name {
            "capacity" => match value.trim().parse() {
                Ok(capacity) => {
                    self.capacity = capacity;
                    while self.packets.len() > capacity {
                        self.packets.pop_back().into_iter().for_each(|p| cx.drop(p));
                    }
                }
                Err(_) => return Some(Err(format!("bad capacity '{value}'"))),
            },
            "reset_counts" => (self.drops, self.highest) = (0, self.packets.len()),
            "reset" => self.packets.drain(..).for_each(|p| cx.drop(p)),
            _ => return None,
        }
        Some(Ok(()))
    }
}
