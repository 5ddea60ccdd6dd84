//! `RatedUnqueue(RATE [, BURST_SIZE, BURST_DURATION])`: pulls RATE packets a second and pushes them; `BandwidthRatedUnqueue(RATE)` as many
//! bytes (BURST_BYTES). `RatedSplitter(RATE)`: pushes as many to output 0, the rest to output 1; `BandwidthRatedSplitter` by bytes;
//! `Shaper(RATE)`: gives as many when it is asked, others to output 1.
//!
//! A token bucket (Turner, 1986): it holds 20 ms of the rate, at least one packet, unless BURST says otherwise. Handlers: `rate`,
//! `reset`.

use super::prelude::*;

/// The classes of this file.
pub const CLASSES: &[Class] = &[
    Class::new("RatedUnqueue", "1/1", "l/h", make),
    Class::new("BandwidthRatedUnqueue", "1/1", "l/h", bytes),
    Class::new("RatedSplitter", "1/1-2", "h/h", make),
    Class::new("BandwidthRatedSplitter", "1/1-2", "h/h", bytes),
    Class::new("Shaper", "1/1-2", "l/l", make),
    Class::new("BandwidthShaper", "1/1-2", "l/l", bytes),
];

fn make(args: &mut Args<'_>, setup: &mut Setup<'_>) -> Made {
    rated(args, setup, false)
}

fn bytes(args: &mut Args<'_>, setup: &mut Setup<'_>) -> Made {
    rated(args, setup, true)
}

fn rated(args: &mut Args<'_>, setup: &mut Setup<'_>, bytes: bool) -> Made {
    args.keywords("RATE BURST_SIZE BURST_BYTES BURST_DURATION");
    let size = args
        .number_word("BURST_SIZE", 0)?
        .max(args.number_word("BURST_BYTES", 0)?);
    let time = args.duration_word("BURST_DURATION", 0)?;
    let rate = args.needed("RATE", "RATE")?;
    args.done()?;
    let number = if bytes {
        crate::arguments::bandwidth(&rate)
    } else {
        crate::arguments::integer(&rate)
    };
    let rate = number
        .filter(|r| *r >= 0)
        .ok_or(format!("bad RATE '{rate}'"))?;
    let mut rated = Rated {
        rate,
        burst: 0,
        size,
        time,
        tokens: 0,
        last: None,
        bytes,
        pulls: setup.pulls(),
        unqueue: setup.class(setup.id).ends_with("Unqueue"),
    };
    rated.fit();
    rated.tokens = rated.burst;
    Ok(Box::new(rated))
}

struct Rated {
    rate: i64,
    /// tokens that are kept, at most, times 10^9
    burst: i128,
    size: i64,
    time: i64,
    /// times 10^9
    tokens: i128,
    last: Option<i64>,
    bytes: bool,
    pulls: bool,
    unqueue: bool,
}

const ONE: i128 = 1_000_000_000;

impl Rated {
    fn fit(&mut self) {
        self.burst = match (self.size, self.time) {
            (0, 0) => i128::from(self.rate) * ONE / 50,
            (size, 0) => i128::from(size) * ONE,
            (_, time) => i128::from(self.rate) * i128::from(time),
        }
        .max(ONE);
    }

    fn refill(&mut self, now: i64) {
        let passed = now.saturating_sub(self.last.unwrap_or(now));
        self.last = Some(now);
        self.tokens = (self.tokens + i128::from(passed) * i128::from(self.rate)).min(self.burst);
    }

    /// Whether a packet may go; one does as soon as a single token is there, and may leave a debt.
    fn ready(&self) -> bool {
        self.tokens >= ONE
    }

    fn pay(&mut self, packet: &Packet) {
        let cost = if self.bytes {
            packet.len() as i128 + i128::from(packet.missing)
        } else {
            1
        };
        self.tokens -= cost * ONE;
    }
}

impl Element for Rated {
    fn start(&mut self, cx: &Context<'_>) -> Result<(), String> {
        self.refill(cx.now());
        Ok(())
    }

    fn push(&mut self, _: usize, packet: Packet, cx: &Context<'_>) {
        self.refill(cx.now());
        if self.ready() {
            self.pay(&packet);
            return cx.push(0, packet);
        }
        cx.reject(1, packet);
    }

    fn pull(&mut self, port: usize, cx: &Context<'_>) -> Option<Packet> {
        self.refill(cx.now());
        match (port, self.ready()) {
            (0, true) => {
                let packet = cx.pull(0)?;
                self.pay(&packet);
                Some(packet)
            }
            (1, false) => cx.pull(0),
            _ => None,
        }
    }

    fn task(&mut self, cx: &Context<'_>) -> Option<bool> {
        if !self.unqueue || !self.pulls {
            return None;
        }
        self.refill(cx.now());
        if !self.ready() {
            // As long as until there is one token again.
            if self.rate > 0 {
                let wait = (ONE - self.tokens + i128::from(self.rate) - 1) / i128::from(self.rate);
                cx.wake_at(
                    cx.now()
                        .saturating_add(i64::try_from(wait).unwrap_or(i64::MAX)),
                );
            }
            return Some(false);
        }
        Some(cx.pull_into(|packet| {
            self.pay(&packet);
            cx.push(0, packet);
        }))
    }

    fn read(&mut self, name: &str, _: &str, _: &Context<'_>) -> Read {
        (name == "rate").then(|| Ok(self.rate.to_string()))
    }

    fn write(&mut self, name: &str, value: &str, cx: &Context<'_>) -> Written {
        match name {
            "rate" => match crate::arguments::integer(value).filter(|r| *r >= 0) {
                Some(rate) => {
                    self.refill(cx.now());
                    self.rate = rate;
                    self.fit();
                    Some(Ok(()))
                }
                None => Some(Err(format!("bad rate '{value}'"))),
            },
            "reset" => {
                self.tokens = self.burst;
                Some(Ok(()))
            }
            _ => None,
        }
    }
}
