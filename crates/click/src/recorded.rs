//! Packets of a file as a source: one in each round, or with TIMING as the time stamps say.

use crate::arguments::Args;
use crate::element::{Element, Read, Written};
use crate::interpreter::Context;
use crate::packet::Packet;

/// What a file holds.
pub trait Records {
    /// The next packet; none at the end.
    fn next(&mut self, cx: &Context<'_>) -> Option<Packet>;
}

/// A source of these packets. Keywords STOP, TIMING and ACTIVE; handlers `active` (also written) and `count`.
pub struct Recorded<R> {
    records: R,
    stop: bool,
    timing: bool,
    active: bool,
    /// time stamp of the first packet, and when it came
    first: Option<(i64, i64)>,
    ended: bool,
    count: u64,
    /// one whose time has not come
    next: Option<Packet>,
}

impl Recorded<()> {
    /// What the keywords say, before the file is read.
    ///
    /// # Errors
    /// One that is no boolean.
    pub fn of(args: &mut Args<'_>) -> Result<Self, String> {
        Ok(Self {
            records: (),
            stop: args.flag("STOP", false)?,
            timing: args.flag("TIMING", false)?,
            active: args.flag("ACTIVE", true)?,
            first: None,
            ended: false,
            count: 0,
            next: None,
        })
    }

    /// The same with the packets.
    pub fn with<R>(self, records: R) -> Recorded<R> {
        Recorded {
            records,
            stop: self.stop,
            timing: self.timing,
            active: self.active,
            first: self.first,
            ended: self.ended,
            count: self.count,
            next: self.next,
        }
    }
}

impl<R: Records> Element for Recorded<R> {
    fn task(&mut self, cx: &Context<'_>) -> Option<bool> {
        if !self.active || self.ended || self.next.is_some() || cx.blocked() {
            return Some(false);
        }
        let Some(packet) = self.records.next(cx) else {
            self.ended = true;
            if self.stop {
                cx.stop();
            }
            return Some(true);
        };
        self.count += 1;
        if self.timing {
            let (stamp, begin) = *self.first.get_or_insert((packet.time, cx.now()));
            let due = begin.saturating_add(packet.time.saturating_sub(stamp));
            if due > cx.now() {
                self.next = Some(packet);
                cx.wake_at(due);
                return Some(true);
            }
        }
        cx.push(0, packet);
        Some(true)
    }

    fn timer(&mut self, cx: &Context<'_>) {
        if let Some(packet) = self.next.take() {
            cx.push(0, packet);
        }
    }

    fn read(&mut self, name: &str, _: &str, _: &Context<'_>) -> Read {
        match name {
            "active" => Some(Ok(self.active.to_string())),
            "count" => Some(Ok(self.count.to_string())),
            _ => None,
        }
    }

    fn write(&mut self, name: &str, value: &str, _: &Context<'_>) -> Written {
        (name == "active").then(|| {
            self.active = crate::arguments::boolean(value) != Some(false);
            Ok(())
        })
    }
}
