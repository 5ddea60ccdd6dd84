//! Targets of redirects: interfaces, CPUs, sockets. The host sets them, a program can only look; a miss means
//! that nothing is set under the key.

use super::{Address, Answer, Meaning};
use crate::model::Effect;

/// The kernel's maps of targets.
pub const KINDS: (&[&str], &[Meaning]) = (
    &["devmap", "devmap_hash", "cpumap", "xskmap"],
    &[Meaning {
        helper: "map_lookup_elem",
        effect: Effect::Read,
        address: Address::Key,
        answer: Answer::Value,
    }],
);
