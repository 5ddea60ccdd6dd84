//! `get_numa_node_id`: the NUMA node that this CPU is of.
//!
//! `long bpf_get_numa_node_id(void)`. Workers count as one node: 0.

use super::{Effects, Helper, Return};

/// kernel helper 42
pub static HELPER: Helper = Helper {
    number: 42,
    name: "get_numa_node_id",
    args: &[],
    returns: Return::Scalar { min: 0, max: 0 },
    kinds: &[],
    effects: Effects::NONE,
};
