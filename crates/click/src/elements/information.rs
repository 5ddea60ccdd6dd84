//! Elements that only inform: `AddressInfo`, `PortInfo` (names of addresses and ports, which `names.rs` reads),
//! `ScheduleInfo`, `StaticThreadSched`, `ThreadMonitor`, `AlignmentInfo`, `RandomSeed`, `ControlSocket`, `ChatterSocket`,
//! `HotSwap`, `Progress`: no ports, and no effect on packets here.

use super::prelude::*;

/// The classes of this file.
pub const CLASSES: &[Class] = &[
    Class::new("AddressInfo", "0/0", "a/a", make),
    Class::new("PortInfo", "0/0", "a/a", make),
    Class::new("ScheduleInfo", "0/0", "a/a", make),
    Class::new("StaticThreadSched", "0/0", "a/a", make),
    Class::new("AlignmentInfo", "0/0", "a/a", make),
    Class::new("RandomSeed", "0/0", "a/a", make),
    Class::new("ControlSocket", "0/0", "a/a", make),
    Class::new("ChatterSocket", "0/0", "a/a", make),
];

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
