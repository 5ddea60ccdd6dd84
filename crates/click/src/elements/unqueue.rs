//! `Unqueue([ACTIVE, LIMIT, BURST])`: pulls a packet in each round and pushes it on.
//!
//! Handlers: `count`, `active`, `limit`, `reset` (counts from 0 again, so that a LIMIT holds anew).

use super::prelude::*;

/// The class of this file.
pub const CLASSES: &[Class] = &[Class::new("Unqueue", "1/1", "l/h", make)];

fn make(args: &mut Args<'_>, _: &mut Setup<'_>) -> Made {
    args.keywords("ACTIVE LIMIT BURST QUIET");
    let active = args.flag("ACTIVE", true)?;
    let limit = args.number_word("LIMIT", -1)?;
    args.take("BURST");
    args.done()?;
    Ok(Box::new(Unqueue {
        active,
        limit,
        count: 0,
    }))
}

struct Unqueue {
    active: bool,
    limit: i64,
    count: i64,
}

impl Element for Unqueue {
    fn meaning(&self) -> Option<Meaning> {
        (self.active && self.limit < 0).then_some(Meaning::Pass)
    }

    fn task(&mut self, cx: &Context<'_>) -> Option<bool> {
        if !self.active || self.limit >= 0 && self.count >= self.limit {
            return Some(false);
        }
        Some(cx.pull_into(|packet| {
            self.count += 1;
            cx.push(0, packet);
        }))
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
        Some(Ok(()))
    }
}
