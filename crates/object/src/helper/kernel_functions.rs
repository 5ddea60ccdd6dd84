//! Functions of the kernel that programs call by name (kfuncs): those that are offered, which are helpers
//! with numbers from [`FIRST`] on, and those that are refused by name.

use super::{EXPANSION, HELPERS, Helper};

/// The number of the first one; the kernel's own numbers differ from kernel to kernel.
pub const FIRST: u32 = 0x20000;

const NO_DYNPTR: &str = "dynamic pointers are not supported";
const NO_NETFILTER: &str = "there is no connection tracking of netfilter's";
const NO_OBJECTS: &str = "there are no objects of the kernel's to hold";

/// Name and reason (net/core/filter.c, net/netfilter, kernel/bpf/helpers.c, Linux 6.18).
pub const REFUSED: &[(&str, &str)] = &[
    ("bpf_cast_to_kern_ctx", "there is no kernel memory to read"),
    ("bpf_ct_change_status", NO_NETFILTER),
    ("bpf_ct_change_timeout", NO_NETFILTER),
    ("bpf_ct_insert_entry", NO_NETFILTER),
    ("bpf_ct_release", NO_NETFILTER),
    ("bpf_ct_set_nat_info", NO_NETFILTER),
    ("bpf_ct_set_status", NO_NETFILTER),
    ("bpf_ct_set_timeout", NO_NETFILTER),
    ("bpf_dynptr_adjust", NO_DYNPTR),
    ("bpf_dynptr_clone", NO_DYNPTR),
    ("bpf_dynptr_from_xdp", NO_DYNPTR),
    ("bpf_dynptr_size", NO_DYNPTR),
    ("bpf_dynptr_slice", NO_DYNPTR),
    ("bpf_dynptr_slice_rdwr", NO_DYNPTR),
    ("bpf_obj_drop_impl", NO_OBJECTS),
    ("bpf_obj_new_impl", NO_OBJECTS),
    ("bpf_rdonly_cast", "there is no kernel memory to read"),
    ("bpf_xdp_ct_alloc", NO_NETFILTER),
    ("bpf_xdp_ct_lookup", NO_NETFILTER),
    ("bpf_xdp_get_xfrm_state", "there is no IPsec"),
    ("bpf_xdp_xfrm_state_release", "there is no IPsec"),
];

/// The kernel function of this name, `bpf_` included.
#[must_use]
pub fn by_name(name: &str) -> Option<&'static Helper> {
    let name = name.strip_prefix("bpf_")?;
    let offered = HELPERS
        .iter()
        .filter(|h| (FIRST..EXPANSION).contains(&h.number));
    offered.copied().find(|h| h.name == name)
}

/// Why the kernel function of this name is not offered.
#[must_use]
pub fn refused(name: &str) -> Option<&'static str> {
    let found = REFUSED.iter().find(|(refused, _)| *refused == name);
    found.map(|(_, why)| *why)
}
