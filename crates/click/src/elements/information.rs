//! Elements that only inform: `AddressInfo`, `PortInfo` (names of addresses and ports, which `names.rs` reads),
//! `ScheduleInfo`, `StaticThreadSched`, `ThreadMonitor`, `AlignmentInfo`, `RandomSeed`, `ControlSocket`, `ChatterSocket`,
//! `HotSwap`, `Progress`: no ports, and no effect on packets here.

use crate::arguments::Args;
use crate::element::{Class, Element, Made};
use crate::interpreter::Setup;
use crate::meaning::Meaning;

/// AddressInfo
pub const ADDRESSINFO: Class = Class {
    name: "AddressInfo",
    ports: "0/0",
    processing: "a/a",
    make,
};

/// PortInfo
pub const PORTINFO: Class = Class {
    name: "PortInfo",
    ports: "0/0",
    processing: "a/a",
    make,
};

/// ScheduleInfo
pub const SCHEDULEINFO: Class = Class {
    name: "ScheduleInfo",
    ports: "0/0",
    processing: "a/a",
    make,
};

/// StaticThreadSched
pub const STATICTHREADSCHED: Class = Class {
    name: "StaticThreadSched",
    ports: "0/0",
    processing: "a/a",
    make,
};

/// AlignmentInfo
pub const ALIGNMENTINFO: Class = Class {
    name: "AlignmentInfo",
    ports: "0/0",
    processing: "a/a",
    make,
};

/// RandomSeed
pub const RANDOMSEED: Class = Class {
    name: "RandomSeed",
    ports: "0/0",
    processing: "a/a",
    make,
};

/// ControlSocket
pub const CONTROLSOCKET: Class = Class {
    name: "ControlSocket",
    ports: "0/0",
    processing: "a/a",
    make,
};

/// ChatterSocket
pub const CHATTERSOCKET: Class = Class {
    name: "ChatterSocket",
    ports: "0/0",
    processing: "a/a",
    make,
};

fn make(args: &mut Args<'_>, _: &mut Setup<'_>) -> Made {
    args.all();
    Ok(Box::new(Information))
}

struct Information;

impl Element for Information {
    fn meaning(&self) -> Option<Meaning> {
        Some(Meaning::Silent)
    }
}
