//! `LinkUnqueue(LATENCY, BANDWIDTH [, CAPACITY])`: a link: pulls a packet as soon as the one before it is sent, which takes its length by
//! BANDWIDTH, and pushes it LATENCY later, with that time as its time stamp.

use std::collections::VecDeque;

use super::prelude::*;
use crate::arguments::{SECOND, bandwidth, duration};

/// The class of this file.
pub const CLASSES: &[Class] = &[Class::new("LinkUnqueue", "1/1", "l/h", make)];

/// Packets on the link, at most, unless told otherwise.
const CAPACITY: i64 = 1000;

fn make(args: &mut Args<'_>, _: &mut Setup<'_>) -> Made {
    args.keywords("LATENCY BANDWIDTH CAPACITY");
    let text = args.needed("LATENCY", "LATENCY, BANDWIDTH")?;
    let latency = duration(&text)
        .filter(|l| *l >= 0)
        .ok_or(format!("bad LATENCY '{text}'"))?;
    let text = args.needed("BANDWIDTH", "BANDWIDTH")?;
    let rate = bandwidth(&text)
        .filter(|r| *r > 0)
        .ok_or(format!("bad BANDWIDTH '{text}'"))?;
    let capacity = args.number("CAPACITY", CAPACITY)?;
    args.done()?;
    Ok(Box::new(Link {
        latency,
        rate,
        capacity: usize::try_from(capacity).map_err(|_| "bad CAPACITY")?,
        free: 0,
        way: VecDeque::new(),
    }))
}

struct Link {
    latency: i64,
    /// bytes a second
    rate: i64,
    capacity: usize,
    /// when the last packet is sent
    free: i64,
    /// packets under way, and when they arrive
    way: VecDeque<(i64, Packet)>,
}

impl Element for Link {
    fn task(&mut self, cx: &Context<'_>) -> Option<bool> {
        if self.free > cx.now() || self.way.len() >= self.capacity {
            return Some(false);
        }
        let Some(packet) = cx.pull(0) else {
            return Some(false);
        };
        let bytes = packet.len() as i64 + i64::from(packet.missing);
        // What had to wait is sent without a gap, whatever the round of the scheduler.
        let begin = if cx.now().saturating_sub(self.free) < 100_000 {
            self.free
        } else {
            cx.now()
        };
        self.free = begin.saturating_add(bytes.saturating_mul(SECOND) / self.rate);
        self.way
            .push_back((self.free.saturating_add(self.latency), packet));
        self.plan(cx);
        Some(true)
    }

    fn timer(&mut self, cx: &Context<'_>) {
        while self.way.front().is_some_and(|w| w.0 <= cx.now()) {
            if let Some((time, mut packet)) = self.way.pop_front() {
                packet.time = time;
                cx.push(0, packet);
            }
        }
        self.plan(cx);
    }
}

impl Link {
    /// Wakes for the next arrival, or for the next packet to send.
    fn plan(&self, cx: &Context<'_>) {
        let arrival = self.way.front().map(|w| w.0);
        let free = (self.free > cx.now()).then_some(self.free);
        match arrival.into_iter().chain(free).min() {
            Some(time) => cx.wake_at(time),
            None => cx.sleep(),
        }
    }
}
