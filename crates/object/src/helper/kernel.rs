//! Names of the kernel's helpers, by their numbers (`enum bpf_func_id` in the kernel's UAPI header linux/bpf.h; the kernel
//! adds none any more), and what there is in the place of those that packets have no use for.

/// Names without `bpf_`; a helper's number is its place.
const NAMES: &str = "\
    unspec map_lookup_elem map_update_elem map_delete_elem probe_read ktime_get_ns trace_printk \
    get_prandom_u32 get_smp_processor_id skb_store_bytes l3_csum_replace l4_csum_replace tail_call \
    clone_redirect get_current_pid_tgid get_current_uid_gid get_current_comm get_cgroup_classid \
    skb_vlan_push skb_vlan_pop skb_get_tunnel_key skb_set_tunnel_key perf_event_read redirect \
    get_route_realm perf_event_output skb_load_bytes get_stackid csum_diff skb_get_tunnel_opt \
    skb_set_tunnel_opt skb_change_proto skb_change_type skb_under_cgroup get_hash_recalc \
    get_current_task probe_write_user current_task_under_cgroup skb_change_tail skb_pull_data \
    csum_update set_hash_invalid get_numa_node_id skb_change_head xdp_adjust_head probe_read_str \
    get_socket_cookie get_socket_uid set_hash setsockopt skb_adjust_room redirect_map sk_redirect_map \
    sock_map_update xdp_adjust_meta perf_event_read_value perf_prog_read_value getsockopt \
    override_return sock_ops_cb_flags_set msg_redirect_map msg_apply_bytes msg_cork_bytes msg_pull_data \
    bind xdp_adjust_tail skb_get_xfrm_state get_stack skb_load_bytes_relative fib_lookup \
    sock_hash_update msg_redirect_hash sk_redirect_hash lwt_push_encap lwt_seg6_store_bytes \
    lwt_seg6_adjust_srh lwt_seg6_action rc_repeat rc_keydown skb_cgroup_id get_current_cgroup_id \
    get_local_storage sk_select_reuseport skb_ancestor_cgroup_id sk_lookup_tcp sk_lookup_udp sk_release \
    map_push_elem map_pop_elem map_peek_elem msg_push_data msg_pop_data rc_pointer_rel spin_lock \
    spin_unlock sk_fullsock tcp_sock skb_ecn_set_ce get_listener_sock skc_lookup_tcp tcp_check_syncookie \
    sysctl_get_name sysctl_get_current_value sysctl_get_new_value sysctl_set_new_value strtol strtoul \
    sk_storage_get sk_storage_delete send_signal tcp_gen_syncookie skb_output probe_read_user \
    probe_read_kernel probe_read_user_str probe_read_kernel_str tcp_send_ack send_signal_thread \
    jiffies64 read_branch_records get_ns_current_pid_tgid xdp_output get_netns_cookie \
    get_current_ancestor_cgroup_id sk_assign ktime_get_boot_ns seq_printf seq_write sk_cgroup_id \
    sk_ancestor_cgroup_id ringbuf_output ringbuf_reserve ringbuf_submit ringbuf_discard ringbuf_query \
    csum_level skc_to_tcp6_sock skc_to_tcp_sock skc_to_tcp_timewait_sock skc_to_tcp_request_sock \
    skc_to_udp6_sock get_task_stack load_hdr_opt store_hdr_opt reserve_hdr_opt inode_storage_get \
    inode_storage_delete d_path copy_from_user snprintf_btf seq_printf_btf skb_cgroup_classid \
    redirect_neigh per_cpu_ptr this_cpu_ptr redirect_peer task_storage_get task_storage_delete \
    get_current_task_btf bprm_opts_set ktime_get_coarse_ns ima_inode_hash sock_from_file check_mtu \
    for_each_map_elem snprintf sys_bpf btf_find_by_name_kind sys_close timer_init timer_set_callback \
    timer_start timer_cancel get_func_ip get_attach_cookie task_pt_regs get_branch_snapshot \
    trace_vprintk skc_to_unix_sock kallsyms_lookup_name find_vma loop strncmp get_func_arg get_func_ret \
    get_func_arg_cnt get_retval set_retval xdp_get_buff_len xdp_load_bytes xdp_store_bytes \
    copy_from_user_task skb_set_tstamp ima_file_hash kptr_xchg map_lookup_percpu_elem skc_to_mptcp_sock \
    dynptr_from_mem ringbuf_reserve_dynptr ringbuf_submit_dynptr ringbuf_discard_dynptr dynptr_read \
    dynptr_write dynptr_data tcp_raw_gen_syncookie_ipv4 tcp_raw_gen_syncookie_ipv6 \
    tcp_raw_check_syncookie_ipv4 tcp_raw_check_syncookie_ipv6 ktime_get_tai_ns user_ringbuf_drain \
    cgrp_storage_get cgrp_storage_delete \
";

/// Parts of names, blanks between them, and what a function has instead; the first that fits.
const INSTEAD: &[(&str, &str)] = &[
    (
        "probe_read probe_write copy_from_user strncpy kptr",
        "Read the packet through `packet_at` or `data` and `data_end`; there is no other memory than that of state objects.",
    ),
    (
        "trace_printk trace_vprintk snprintf seq_ perf_event_read perf_prog",
        "Count in a state object, or send a record with `bpf_perf_event_output` or a ring buffer; both can be read while it runs.",
    ),
    (
        "ktime jiffies",
        "Use `p->time`, or `bpf_ktime_get_ns` in XDP programs: the packet's time in ns.",
    ),
    (
        "skb_ csum_level msg_ lwt_ clone_redirect set_hash get_hash route_realm",
        "This one is for socket buffers. Change the packet's bytes through its pointers, and its ends with `bpf_xdp_adjust_head` or `bpf_xdp_adjust_tail`.",
    ),
    (
        "sk_ skc_ sock tcp_ bind",
        "There are no sockets: keep what is known of a flow in a map, by its addresses and ports.",
    ),
    (
        "current task cgroup cgrp inode send_signal override_return stack get_func ima_ bprm \
         d_path lsm",
        "A packet belongs to no process: decide by its bytes, its port and state objects.",
    ),
    (
        "smp_processor numa this_cpu per_cpu",
        "Leave it out: the plan decides which core has which packets, and an object may be one of each core.",
    ),
    (
        "dynptr user_ringbuf",
        "Use `bpf_ringbuf_reserve` and `bpf_ringbuf_submit`, with a size that is a constant.",
    ),
];

/// The helper's name without `bpf_`; none if the kernel has no helper of this number.
#[must_use]
pub fn name(number: u32) -> Option<&'static str> {
    let name = NAMES.split_whitespace().nth(usize::try_from(number).ok()?);
    name.filter(|_| number != 0)
}

/// What a function has instead of a helper, if it has something.
#[must_use]
pub fn instead(number: u32) -> Option<&'static str> {
    let name = name(number)?;
    let fits =
        |(parts, _): &&(&str, &str)| parts.split_whitespace().any(|part| name.contains(part));
    INSTEAD.iter().find(fits).map(|(_, what)| *what)
}

#[cfg(test)]
mod tests {
    use super::super::{FAMILIES, refused};
    use super::{instead, name};

    /// The helpers that are supported, and those that are refused by name, say their names elsewhere, too.
    #[test]
    fn names_agree() {
        for helper in FAMILIES.iter().flat_map(|f| f.iter()) {
            if let Some(name) = name(helper.number) {
                assert_eq!(
                    name,
                    helper.name.trim_start_matches("bpf_"),
                    "{}",
                    helper.number
                );
            }
        }
        for (number, refused, _) in refused::REFUSED {
            assert_eq!(name(*number), Some(*refused));
        }
        assert_eq!((name(0), name(9999)), (None, None));
        assert_eq!(
            (name(4), name(14)),
            (Some("probe_read"), Some("get_current_pid_tgid"))
        );
        assert!(instead(14).is_some_and(|what| what.contains("no process")));
        assert!(instead(1).is_none());
    }
}
