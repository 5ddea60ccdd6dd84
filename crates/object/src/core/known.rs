//! The types of the kernel's user API that packet programs meet: what "exists" here.

use crate::{helper, state};

/// Names of structures, unions, enumerations and typedefs, ascending: the context and what helpers take
/// (include/uapi/linux/bpf.h), packet headers (include/uapi/linux/{if_ether,ip,ipv6,tcp,udp,icmp,…}.h).
const NAMES: &str = "\
    __be16 __be32 __be64 __le16 __le32 __le64 __s16 __s32 __s64 __s8 __sum16 __u16 __u32 __u64 \
    __u8 __wsum bpf_cpumap_val bpf_devmap_val bpf_fib_lookup bpf_func_id bpf_map_type \
    bpf_spin_lock bpf_timer ethhdr frag_hdr gre_base_hdr icmp6hdr icmphdr igmphdr in6_addr \
    in_addr ip_auth_hdr ip_comp_hdr ip_esp_hdr iphdr ipv6_opt_hdr ipv6_rt_hdr ipv6hdr sctphdr \
    tcphdr udphdr vlan_hdr xdp_action xdp_md \
";

/// Whether a type of this name exists.
pub(super) fn is_known(name: &str) -> bool {
    NAMES.split_whitespace().any(|known| known == name)
}

/// Whether an enumerator of a known enumeration stands for something that is supported here.
pub(super) fn is_supported(enumeration: &str, value: u64) -> bool {
    let number = u32::try_from(value).ok();
    match enumeration {
        "bpf_func_id" => number.is_some_and(|n| helper::by_number(n).is_some()),
        "bpf_map_type" => number.is_some_and(|n| state::by_bpf_type(n).is_some()),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn names_are_ascending() {
        assert!(super::NAMES.split_whitespace().is_sorted());
    }
}
