//! `SetCycleCount`, `CycleCountAccum`, `RoundTripCycleCount`: packets go on as they are. Click measures processor cycles with them;
//! simulated time has none, so that only packets are counted.
//!
//! Handlers of CycleCountAccum and RoundTripCycleCount: `packets`, `cycles` (0), `reset_counts`.

use super::prelude::*;

/// The classes of this file.
pub const CLASSES: &[Class] = &[
    Class::new("SetCycleCount", "1/1", "a/a", make),
    Class::new("CycleCountAccum", "1/1", "a/a", make),
    Class::new("RoundTripCycleCount", "1/1", "a/a", make),
];

fn make(args: &mut Args<'_>, _: &mut Setup<'_>) -> Made {
    args.done()?;
    Ok(Box::new(Cycles(0)))
}

/// Packets.
struct Cycles(u64);

impl Element for Cycles {
    fn meaning(&self) -> Option<Meaning> {
        Some(Meaning::Pass)
    }

    fn action(&mut self, packet: Packet, _: &Context<'_>) -> Option<Packet> {
        self.0 += 1;
        Some(packet)
    }

    fn read(&mut self, name: &str, _: &str, _: &Context<'_>) -> Read {
        match name {
            "packets" => Some(Ok(self.0.to_string())),
            "cycles" => Some(Ok("0".into())),
            _ => None,
        }
    }

    fn write(&mut self, name: &str, _: &str, _: &Context<'_>) -> Written {
        (name == "reset_counts").then(|| {
            self.0 = 0;
            Ok(())
        })
    }
}
