//! `Counter([COUNT_CALL, BYTE_COUNT_CALL])`: counts packets and bytes. `COUNT_CALL N HANDLER [VALUE]` calls a handler once N
//! packets have come. `AverageCounter` and `CounterMP` count alike.
//!
//! Handlers: `count`, `byte_count`, `rate` (packets a second since the start), `reset`, `reset_counts`, `count_call`.

use super::prelude::*;

/// The classes of this file.
pub const CLASSES: &[Class] = &[
    Class::new("Counter", "1/1", "a/a", make),
    Class::new("AverageCounter", "1/1", "a/a", make),
    Class::new("CounterMP", "1/1", "a/a", make),
    Class::new("CounterRCU", "1/1", "a/a", make),
    Class::new("AverageCounterMP", "1/1", "a/a", make),
];

fn make(args: &mut Args<'_>, _: &mut Setup<'_>) -> Made {
    args.keywords("COUNT_CALL BYTE_COUNT_CALL");
    let calls = [args.keyword("COUNT_CALL"), args.keyword("BYTE_COUNT_CALL")];
    args.all();
    let mut read = [None, None];
    for (slot, call) in read.iter_mut().zip(calls) {
        *slot = call.as_deref().map(parse).transpose()?;
    }
    Ok(Box::new(Counter {
        count: [0; 2],
        calls: read,
        start: 0,
    }))
}

fn parse(text: &str) -> Result<(u64, String), String> {
    let (count, call) = crate::language::args::first_word(text);
    let count = count.parse().map_err(|_| format!("bad count '{count}'"))?;
    Ok((count, call.to_owned()))
}

struct Counter {
    /// packets and bytes
    count: [u64; 2],
    calls: [Option<(u64, String)>; 2],
    start: i64,
}

impl Element for Counter {
    fn meaning(&self) -> Option<Meaning> {
        self.calls
            .iter()
            .all(Option::is_none)
            .then_some(Meaning::Pass)
    }

    fn start(&mut self, cx: &Context<'_>) -> Result<(), String> {
        self.start = cx.now();
        Ok(())
    }

    fn action(&mut self, packet: Packet, cx: &Context<'_>) -> Option<Packet> {
        self.count[0] += 1;
        self.count[1] += packet.len() as u64 + u64::from(packet.missing);
        for (count, call) in self.count.iter().zip(&mut self.calls) {
            if let Some((_, call)) = call.take_if(|(at, _)| count >= at) {
                let (name, value) = crate::language::args::first_word(&call);
                if let Err(why) = cx.write(name, value) {
                    cx.note(&format!("{}: {why}\n", cx.title()));
                }
            }
        }
        Some(packet)
    }

    fn read(&mut self, name: &str, _: &str, cx: &Context<'_>) -> Read {
        let text = match name {
            "count" => self.count[0].to_string(),
            "byte_count" => self.count[1].to_string(),
            "rate" => {
                let seconds =
                    cx.now().saturating_sub(self.start) as f64 / crate::arguments::SECOND as f64;
                format!("{:.0}", self.count[0] as f64 / seconds.max(1e-6))
            }
            _ => return None,
        };
        Some(Ok(text))
    }

    fn write(&mut self, name: &str, value: &str, _: &Context<'_>) -> Written {
        match name {
            "reset" | "reset_counts" => self.count = [0; 2],
            "count_call" => match parse(value) {
                Ok(call) => self.calls[0] = Some(call),
                Err(why) => return Some(Err(why)),
            },
            _ => return None,
        }
        Some(Ok(()))
    }
}
