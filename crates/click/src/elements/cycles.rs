//! `SetCycleCount`, `CycleCountAccum`, `RoundTripCycleCount`: packets go on as they are. Click measures processor cycles with them;
//! simulated time has none, so that only packets are counted.
//!
//! Handlers of CycleCountAccum and RoundTripCycleCount: `packets`, `cycles` (0), `reset_counts`.

use crate::arguments::Args;
use crate::element::{Class, Element, Made, Read, Written};
use crate::interpreter::{Context, Setup};
use crate::meaning::Meaning;
use crate::packet::Packet;

/// SetCycleCount
pub const SET: Class = Class {
    name: "SetCycleCount",
    ports: "1/1",
    processing: "a/a",
    make,
};

/// CycleCountAccum
pub const ACCUM: Class = Class {
    name: "CycleCountAccum",
    ports: "1/1",
    processing: "a/a",
    make,
};

/// RoundTripCycleCount
pub const ROUND_TRIP: Class = Class {
    name: "RoundTripCycleCount",
    ports: "1/1",
    processing: "a/a",
    make,
};

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
