//! Calls that are about no entry of a state object, or about it in a way of their own: one file a helper or a
//! family of helpers, and a line each here.
//!
//! A meaning is exact, or takes for any number what is not (`State::loose`, and the entry is then not said to
//! be exhaustive), or is a [`Gap`] with a name.

mod aead;
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
use Given::{Followed, Told};

/// Meaning of a call: the paths on from it.
pub(super) type Meaning = fn(&mut Engine<'_>, State, &Helper) -> Result<Vec<State>, Gap>;

/// Use of a call's arguments.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Given {
    /// they are in the expressions of what it answers and does, or the meaning notes what is not (`Engine::tell`)
    Followed,
    /// not all of them are: all that the call is given counts as observed (`Engine::tell_all`)
    Told,
}

/// By the helper's name.
const MEANINGS: &[(&str, Meaning, Given)] = &[
    ("multiply_high", environment::multiply_high, Followed),
    ("get_prandom_u32", environment::random, Followed),
    ("ktime_get_ns", environment::time, Followed),
    ("ktime_get_boot_ns", environment::time, Followed),
    ("ktime_get_coarse_ns", environment::time, Followed),
    ("ktime_get_tai_ns", environment::time, Followed),
    ("jiffies64", environment::jiffies, Followed),
    ("get_smp_processor_id", environment::cpu, Followed),
    ("get_numa_node_id", environment::nothing, Followed),
    ("spin_lock", environment::nothing, Followed),
    ("spin_unlock", environment::nothing, Followed),
    ("trace_printk", environment::trace, Followed),
    ("trace_vprintk", environment::trace, Followed),
    ("redirect", redirect::meaning, Followed),
    ("redirect_map", redirect_map::meaning, Followed),
    ("tail_call", tail::meaning, Followed),
    ("tail_away", tail::away, Followed),
    ("xdp_get_buff_len", border::length, Followed),
    ("xdp_adjust_head", border::head, Followed),
    ("xdp_adjust_meta", border::meta, Followed),
    ("xdp_adjust_tail", border::tail, Followed),
    ("xdp_load_bytes", bytes::load, Followed),
    ("xdp_store_bytes", bytes::store, Followed),
    ("csum_diff", checksum::meaning, Followed),
    ("crc32c", crc::meaning, Followed),
    ("fib_lookup", routes::meaning, Followed),
    ("check_mtu", mtu::meaning, Followed),
    ("xdp_flow_lookup", metadata::flow, Followed),
    ("xdp_metadata_rx_hash", metadata::absent, Followed),
    ("xdp_metadata_rx_vlan_tag", metadata::absent, Followed),
    ("xdp_metadata_rx_timestamp", metadata::time, Followed),
    ("map_lookup_percpu_elem", percpu::meaning, Followed),
    ("map_slot", slot::meaning, Followed),
    ("timer_fired", slot::fired, Followed),
    ("timer_init", timer::init, Told),
    ("timer_set_callback", timer::ready, Told),
    ("timer_start", timer::ready, Told),
    ("timer_cancel", timer::cancel, Told),
    ("perf_event_output", ring::perf, Followed),
    ("ringbuf_output", ring::output, Followed),
    ("ringbuf_reserve", record::reserve, Followed),
    ("ringbuf_submit", record::give_back, Followed),
    ("ringbuf_discard", record::give_back, Followed),
    ("ringbuf_query", ring::query, Followed),
    ("strncmp", any::meaning, Told),
    ("packet_find", any::meaning, Told),
    ("aead_seal", aead::meaning, Told),
    ("aead_open", aead::meaning, Told),
    ("strtol", any::meaning, Told),
    ("strtoul", any::meaning, Told),
    ("snprintf", any::meaning, Told),
    ("tcp_raw_gen_syncookie_ipv4", any::meaning, Told),
    ("tcp_raw_gen_syncookie_ipv6", any::meaning, Told),
    ("tcp_raw_check_syncookie_ipv4", any::meaning, Told),
    ("tcp_raw_check_syncookie_ipv6", any::meaning, Told),
    ("lpm_put", prefix::put, Followed),
    ("lpm_delete", prefix::delete, Followed),
    ("map_push_elem", queue::push, Followed),
    ("map_pop_elem", queue::pop, Followed),
    ("map_peek_elem", queue::peek, Followed),
];

/// Meaning of a helper's call; none for those that are about an entry (`kinds`), and for those of which
/// nothing is known.
pub(super) fn meaning(helper: &str) -> Option<(Meaning, Given)> {
    let found = MEANINGS.iter().find(|m| m.0 == helper);
    found.map(|m| (m.1, m.2))
}
