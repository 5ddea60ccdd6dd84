//! Calls that are about no entry of a state object, or about it in a way of their own: one file a helper or a
//! family of helpers, and a line each here.
//!
//! A meaning is exact, or takes for any number what is not (`State::loose`, and the entry is then not said to
//! be exhaustive), or is a [`Gap`] with a name.

mod any;
mod bloom;
mod border;
mod bytes;
mod checksum;
mod crc;
mod environment;
mod metadata;
mod mtu;
mod percpu;
mod prefix;
mod queue;
mod record;
mod redirect;
mod redirect_map;
mod ring;
mod routes;
mod slot;
mod tail;
mod timer;

use millrace_object::helper::Helper;

use super::{Engine, Gap, State};

/// What a call means: the ways on from it.
pub(super) type Meaning = fn(&mut Engine<'_>, State, &Helper) -> Result<Vec<State>, Gap>;

/// By the helper's name.
const MEANINGS: &[(&str, Meaning)] = &[
    ("multiply_high", environment::multiply_high),
    ("get_prandom_u32", environment::random),
    ("ktime_get_ns", environment::time),
    ("ktime_get_boot_ns", environment::time),
    ("ktime_get_coarse_ns", environment::time),
    ("ktime_get_tai_ns", environment::time),
    ("jiffies64", environment::jiffies),
    ("get_smp_processor_id", environment::cpu),
    ("get_numa_node_id", environment::nothing),
    ("spin_lock", environment::nothing),
    ("spin_unlock", environment::nothing),
    ("trace_printk", environment::trace),
    ("trace_vprintk", environment::trace),
    ("redirect", redirect::meaning),
    ("redirect_map", redirect_map::meaning),
    ("tail_call", tail::meaning),
    ("xdp_get_buff_len", border::length),
    ("xdp_adjust_head", border::head),
    ("xdp_adjust_meta", border::meta),
    ("xdp_adjust_tail", border::tail),
    ("xdp_load_bytes", bytes::load),
    ("xdp_store_bytes", bytes::store),
    ("csum_diff", checksum::meaning),
    ("crc32c", crc::meaning),
    ("fib_lookup", routes::meaning),
    ("check_mtu", mtu::meaning),
    ("xdp_flow_lookup", metadata::flow),
    ("xdp_metadata_rx_hash", metadata::absent),
    ("xdp_metadata_rx_vlan_tag", metadata::absent),
    ("xdp_metadata_rx_timestamp", metadata::time),
    ("map_lookup_percpu_elem", percpu::meaning),
    ("map_slot", slot::meaning),
    ("timer_fired", slot::fired),
    ("timer_init", timer::init),
    ("timer_set_callback", timer::ready),
    ("timer_start", timer::ready),
    ("timer_cancel", timer::cancel),
    ("perf_event_output", ring::perf),
    ("ringbuf_output", ring::output),
    ("ringbuf_reserve", record::reserve),
    ("ringbuf_submit", record::give_back),
    ("ringbuf_discard", record::give_back),
    ("ringbuf_query", ring::query),
    ("strncmp", any::meaning),
    ("strtol", any::meaning),
    ("strtoul", any::meaning),
    ("snprintf", any::meaning),
    ("tcp_raw_gen_syncookie_ipv4", any::meaning),
    ("tcp_raw_gen_syncookie_ipv6", any::meaning),
    ("tcp_raw_check_syncookie_ipv4", any::meaning),
    ("tcp_raw_check_syncookie_ipv6", any::meaning),
    ("lpm_put", prefix::put),
    ("lpm_delete", prefix::delete),
    ("map_push_elem", queue::push),
    ("map_pop_elem", queue::pop),
    ("map_peek_elem", queue::peek),
];

/// What a helper's call means; none for those that are about an entry (`kinds`), and for those of which
/// nothing is known.
pub(super) fn meaning(helper: &str) -> Option<Meaning> {
    let found = MEANINGS.iter().find(|m| m.0 == helper);
    found.map(|m| m.1)
}
