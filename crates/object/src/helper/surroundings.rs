//! The processor that a packet is on, and random draws.

use super::{family, helper, within};

family! {
    /// `get_prandom_u32`: a random number of 32 bits.
    ///
    /// `u32 bpf_get_prandom_u32(void)`. A function of the packet's number and of how many draws came
    /// before it, so that runs can be repeated.
    GET_PRANDOM_U32 = helper(7, "get_prandom_u32", &[], within(0, u32::MAX as i64)).random();

    /// `get_smp_processor_id`: the worker's number, from 0.
    ///
    /// `u32 bpf_get_smp_processor_id(void)`. The same for the whole of a packet.
    GET_SMP_PROCESSOR_ID = helper(8, "get_smp_processor_id", &[], within(0, u32::MAX as i64));

    /// `get_numa_node_id`: the NUMA node that this CPU is of.
    ///
    /// `long bpf_get_numa_node_id(void)`. Workers count as one node: 0.
    GET_NUMA_NODE_ID = helper(42, "get_numa_node_id", &[], within(0, 0));
}
