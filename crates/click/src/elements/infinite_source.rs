//! `InfiniteSource([DATA, LIMIT, BURST, ACTIVE, STOP, LENGTH, TIMESTAMP])`: pushes BURST packets (1) in each round, until LIMIT
//! (-1: no limit); then STOP says whether the driver stops. It waits while all queues behind it are full. DATA is the content;
//! without it packets have 64 bytes of a sentence, or LENGTH of it.
//!
//! Where its output is pulled, a packet is made when it is asked for.
//!
//! Handlers: `count`, `reset`, `active`, `limit`, `data`.

use super::prelude::*;

/// The class of this file.
pub const CLASSES: &[Class] = &[Class::new("InfiniteSource", "0/1", "a/a", make)];

fn make(args: &mut Args<'_>, setup: &mut Setup<'_>) -> Made {
    args.keywords("DATA LIMIT BURST ACTIVE STOP LENGTH TIMESTAMP HEADROOM END_CALL");
    let length = args.number_word("LENGTH", -1)?;
    let stop = args.flag("STOP", false)?;
    let call = args.keyword("END_CALL");
    let data = args
        .take("DATA")
        .map(|d| crate::language::args::unquote(&d));
    let limit = args.number("LIMIT", -1)?;
    let burst = args.number("BURST", 1)?;
    let active = args.flag_or_next("ACTIVE", true)?;
    args.done()?;
    let mut data = data.unwrap_or_else(|| SENTENCE.to_vec());
    if let Ok(length) = usize::try_from(length) {
        let length = length.min(65_535);
        data = SENTENCE.iter().copied().cycle().take(length).collect();
    }
    Ok(Box::new(Source {
        data,
        limit,
        burst: burst.clamp(1, 1 << 16),
        active,
        stop,
        count: 0,
        call,
        done: false,
        pulled: setup.pulls(),
    }))
}

/// What packets hold where nothing else is said.
pub const SENTENCE: &[u8] =
    b"Random bullshit in a packet, at least 64 bytes long. Well, now it is.";

struct Source {
    data: Vec<u8>,
    limit: i64,
    burst: i64,
    active: bool,
    stop: bool,
    count: i64,
    call: Option<String>,
    done: bool,
    pulled: bool,
}

impl Element for Source {
    fn pull(&mut self, _: usize, cx: &Context<'_>) -> Option<Packet> {
        if !self.active || self.limit >= 0 && self.count >= self.limit {
            return None;
        }
        self.count += 1;
        let mut packet = Packet::new(&self.data);
        packet.time = cx.now();
        Some(packet)
    }

    fn task(&mut self, cx: &Context<'_>) -> Option<bool> {
        let more = self.limit < 0 || self.count < self.limit;
        if !self.active || self.done || self.pulled && more {
            return Some(false);
        }
        if self.limit >= 0 && self.count >= self.limit {
            self.done = true;
            if let Some(call) = &self.call {
                let (name, value) = crate::language::args::first_word(call);
                if let Err(why) = cx.write(name, value) {
                    cx.note(&format!("{}: {why}\n", cx.title()));
                }
            }
            if self.stop {
                cx.stop();
            }
            return Some(true);
        }
        if cx.blocked() {
            return Some(false);
        }
        let left = if self.limit < 0 {
            self.burst
        } else {
            self.burst.min(self.limit - self.count)
        };
        for _ in 0..left {
            let mut packet = Packet::new(&self.data);
            packet.time = cx.now();
            self.count += 1;
            cx.push(0, packet);
        }
        Some(true)
    }

    fn read(&mut self, name: &str, _: &str, _: &Context<'_>) -> Read {
        match name {
            "count" => Some(Ok(self.count.to_string())),
            "limit" => Some(Ok(self.limit.to_string())),
            "active" => Some(Ok(self.active.to_string())),
            _ => None,
        }
    }

    fn write(&mut self, name: &str, value: &str, _: &Context<'_>) -> Written {
        match name {
            "active" => self.active = crate::arguments::boolean(value) != Some(false),
            "limit" => self.limit = crate::arguments::integer(value).unwrap_or(-1),
            "reset" => self.count = 0,
            _ => return None,
        }
        self.done = false;
        Some(Ok(()))
    }
}
