//! `TimedSink([INTERVAL])`: pulls a packet each INTERVAL (0.5 s) and drops it.

use super::prelude::*;
use crate::arguments::{SECOND, duration};

/// The class of this file.
pub const CLASSES: &[Class] = &[Class::new("TimedSink", "1/0", "l/h", make)];

fn make(args: &mut Args<'_>, _: &mut Setup<'_>) -> Made {
    args.keywords("INTERVAL");
    let text = args.take("INTERVAL");
    let interval = args.value("INTERVAL", text, SECOND / 2, |t, _| duration(t))?;
    args.done()?;
    Ok(Box::new(Sink(interval.max(1))))
}

struct Sink(i64);

impl Element for Sink {
    fn start(&mut self, cx: &Context<'_>) -> Result<(), String> {
        cx.wake_at(cx.now().saturating_add(self.0));
        Ok(())
    }

    fn timer(&mut self, cx: &Context<'_>) {
        if let Some(packet) = cx.pull(0) {
            cx.drop(packet);
        }
        cx.wake_at(cx.now().saturating_add(self.0));
    }
}
