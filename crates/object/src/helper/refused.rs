//! Helpers that the kernel offers to XDP programs and that are not supported, with the reason
//! (`xdp_func_proto` in net/core/filter.c and `bpf_base_func_proto` in kernel/bpf/helpers.c, Linux 6.18).

const NO_SOCKETS: &str = "there are no sockets to look up";
const NO_COOKIES: &str = "SYN cookies are the host's";
const NO_DYNPTR: &str = "dynamic pointers are not supported";
const NO_TASK: &str = "a packet belongs to no task or control group";
const NO_KERNEL: &str = "there is no kernel memory to read";

/// Number, name without `bpf_`, reason; by ascending number.
pub const REFUSED: &[(u32, &str, &str)] = &[
    (35, "get_current_task", NO_TASK),
    (80, "get_current_cgroup_id", NO_TASK),
    (84, "sk_lookup_tcp", NO_SOCKETS),
    (85, "sk_lookup_udp", NO_SOCKETS),
    (86, "sk_release", NO_SOCKETS),
    (99, "skc_lookup_tcp", NO_SOCKETS),
    (100, "tcp_check_syncookie", NO_COOKIES),
    (110, "tcp_gen_syncookie", NO_COOKIES),
    (112, "probe_read_user", NO_KERNEL),
    (113, "probe_read_kernel", NO_KERNEL),
    (114, "probe_read_user_str", NO_KERNEL),
    (115, "probe_read_kernel_str", NO_KERNEL),
    (149, "snprintf_btf", NO_KERNEL),
    (153, "per_cpu_ptr", NO_KERNEL),
    (154, "this_cpu_ptr", NO_KERNEL),
    (158, "get_current_task_btf", NO_TASK),
    (194, "kptr_xchg", NO_KERNEL),
    (197, "dynptr_from_mem", NO_DYNPTR),
    (198, "ringbuf_reserve_dynptr", NO_DYNPTR),
    (199, "ringbuf_submit_dynptr", NO_DYNPTR),
    (200, "ringbuf_discard_dynptr", NO_DYNPTR),
    (201, "dynptr_read", NO_DYNPTR),
    (202, "dynptr_write", NO_DYNPTR),
    (203, "dynptr_data", NO_DYNPTR),
    (209, "user_ringbuf_drain", NO_DYNPTR),
];

/// Name and reason of a helper that is refused by name.
#[must_use]
pub fn by_number(number: u32) -> Option<(&'static str, &'static str)> {
    let index = REFUSED.binary_search_by_key(&number, |r| r.0).ok()?;
    REFUSED.get(index).map(|(_, name, reason)| (*name, *reason))
}
