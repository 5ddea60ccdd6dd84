//! `RatedSource([DATA, RATE, LIMIT, ACTIVE, STOP, LENGTH])`: pushes RATE packets a second (10), until LIMIT.
//! `TimedSource([INTERVAL, DATA, LIMIT])`: one packet each INTERVAL (0.5 s).
//!
//! Handlers: `count`, `reset`, `active`.

use super::infinite_source::SENTENCE;
use super::prelude::*;
use crate::arguments::{SECOND, duration};

/// The classes of this file.
pub const CLASSES: &[Class] = &[
    Class::new("RatedSource", "0/1", "h/h", make),
    Class::new("TimedSource", "0/1", "h/h", timed),
];

fn make(args: &mut Args<'_>, _: &mut Setup<'_>) -> Made {
    args.keywords("DATA RATE LIMIT ACTIVE STOP LENGTH BANDWIDTH");
    let stop = args.flag("STOP", false)?;
    let length = args.number_word("LENGTH", -1)?;
    let data = args.take("DATA");
    let rate = args.number("RATE", 10)?;
    let limit = args.number("LIMIT", -1)?;
    let active = args.flag_or_next("ACTIVE", true)?;
    args.done()?;
    if rate <= 0 {
        return Err("RATE must be above 0".into());
    }
    source(data, length, SECOND / rate, limit, active, stop)
}

fn timed(args: &mut Args<'_>, _: &mut Setup<'_>) -> Made {
    args.keywords("INTERVAL DATA LIMIT ACTIVE STOP");
    let stop = args.flag("STOP", false)?;
    let limit = args.number_word("LIMIT", -1)?;
    let active = args.flag("ACTIVE", true)?;
    let interval = args.take("INTERVAL");
    let interval = args.value("INTERVAL", interval, SECOND / 2, |t, _| duration(t))?;
    let data = args.take("DATA");
    args.done()?;
    source(data, -1, interval.max(1), limit, active, stop)
}

fn source(
    data: Option<String>,
    length: i64,
    interval: i64,
    limit: i64,
    active: bool,
    stop: bool,
) -> Made {
    let mut data = match data {
        Some(data) => crate::language::args::unquote(&data),
        None => SENTENCE.to_vec(),
    };
    if let Ok(length) = usize::try_from(length) {
        data.resize(length.min(65_535), 0);
    }
    Ok(Box::new(Source {
        data,
        interval,
        limit,
        active,
        stop,
        count: 0,
    }))
}

struct Source {
    data: Vec<u8>,
    interval: i64,
    limit: i64,
    active: bool,
    stop: bool,
    count: i64,
}

impl Element for Source {
    fn start(&mut self, cx: &Context<'_>) -> Result<(), String> {
        if self.active {
            cx.wake_at(cx.now().saturating_add(self.interval));
        }
        Ok(())
    }

    fn timer(&mut self, cx: &Context<'_>) {
        if !self.active {
            return;
        }
        if self.limit >= 0 && self.count >= self.limit {
            if self.stop {
                cx.stop();
            }
            return;
        }
        self.count += 1;
        let mut packet = Packet::new(&self.data);
        packet.time = cx.now();
        cx.push(0, packet);
        let last = self.limit >= 0 && self.count >= self.limit;
        cx.wake_at(
            cx.now()
                .saturating_add(if last { 1 } else { self.interval }),
        );
    }

    fn read(&mut self, name: &str, _: &str, _: &Context<'_>) -> Read {
        match name {
            "count" => Some(Ok(self.count.to_string())),
            "active" => Some(Ok(self.active.to_string())),
            _ => None,
        }
    }

    fn write(&mut self, name: &str, value: &str, cx: &Context<'_>) -> Written {
        match name {
            "active" => self.active = crate::arguments::boolean(value) != Some(false),
            "reset" => self.count = 0,
            _ => return None,
        }
        if self.active {
            cx.wake_at(cx.now().saturating_add(self.interval));
        }
        Some(Ok(()))
    }
}
