//! The helpers a program may call, one file each.
//!
//! A helper is a contract that `check` enforces and `emit` relies on. Helpers that work on a state
//! object are emitted as `<kind.c>_<name>(…)`, a function of the object's header; all others as
//! `helper_<name>(…)` of `fastpath/helpers/<name>.h`. Adding one is a file here, a C function there,
//! and a line in [`HELPERS`].

pub mod allocator_free;
pub mod allocator_get;
pub mod allocator_lease;
pub mod allocator_refresh;
pub mod check_mtu;
pub mod crc32c;
pub mod csum_diff;
pub mod fib_lookup;
pub mod for_each_map_elem;
pub mod get_numa_node_id;
pub mod get_prandom_u32;
pub mod get_smp_processor_id;
pub mod iter_num_destroy;
pub mod iter_num_new;
pub mod iter_num_next;
pub mod jiffies64;
pub mod kernel_functions;
pub mod ktime_get_boot_ns;
pub mod ktime_get_coarse_ns;
pub mod ktime_get_ns;
pub mod ktime_get_tai_ns;
pub mod loop_;
pub mod lpm_delete;
pub mod lpm_get;
pub mod lpm_put;
pub mod map_delete;
pub mod map_delete_elem;
pub mod map_get;
pub mod map_lookup_elem;
pub mod map_lookup_percpu_elem;
pub mod map_peek_elem;
pub mod map_pop_elem;
pub mod map_push_elem;
pub mod map_put;
pub mod map_refresh;
pub mod map_slot;
pub mod map_update_elem;
pub mod multiply_high;
pub mod perf_event_output;
pub mod redirect;
pub mod redirect_map;
pub mod refused;
pub mod ringbuf_discard;
pub mod ringbuf_output;
pub mod ringbuf_query;
pub mod ringbuf_reserve;
pub mod ringbuf_submit;
pub mod sketch_add;
pub mod sketch_count;
pub mod snprintf;
pub mod spin_lock;
pub mod spin_unlock;
pub mod strncmp;
pub mod strtol;
pub mod strtoul;
pub mod tail_away;
pub mod tail_call;
pub mod tcp_raw_check_syncookie_ipv4;
pub mod tcp_raw_check_syncookie_ipv6;
pub mod tcp_raw_gen_syncookie_ipv4;
pub mod tcp_raw_gen_syncookie_ipv6;
pub mod timer_cancel;
pub mod timer_fired;
pub mod timer_init;
pub mod timer_set_callback;
pub mod timer_start;
pub mod trace_printk;
pub mod trace_vprintk;
pub mod vector_at;
pub mod xdp_adjust_head;
pub mod xdp_adjust_meta;
pub mod xdp_adjust_tail;
pub mod xdp_flow_lookup;
pub mod xdp_get_buff_len;
pub mod xdp_load_bytes;
pub mod xdp_metadata_rx_hash;
pub mod xdp_metadata_rx_timestamp;
pub mod xdp_metadata_rx_vlan_tag;
pub mod xdp_store_bytes;

use crate::state::{StateKind, routes};

/// What an argument must be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Arg {
    /// the context pointer (the packet)
    Context,
    /// a state object, of a kind in [`Helper::kinds`]; before it there may only be the context, or a timer,
    /// which is then one of this object's
    Object,
    /// pointer to the timer in a value of an object of a kind in [`Helper::kinds`]
    Timer,
    /// the address of a function of the program, which a timer calls later
    Callback,
    /// pointer to `key_bytes` readable, initialised bytes of the object's key
    Key,
    /// pointer to `value_bytes` readable, initialised bytes
    Value,
    /// any number
    Scalar,
    /// pointer to readable, initialised bytes; the next argument is their number
    Read {
        /// the pointer may be null when the number is zero
        nullable: bool,
    },
    /// pointer to that many readable, initialised bytes
    In(u32),
    /// pointer to a constant string: read-only, with a zero byte at its end
    Text,
    /// pointer to writable bytes; the next argument is their number; they are initialised afterwards
    Write {
        /// the pointer may be null when the number is zero
        nullable: bool,
    },
    /// pointer to readable, initialised and writable bytes; the next argument is their number
    Update,
    /// number of bytes of the argument before it, at most [`MAX_BYTES`]
    Bytes {
        /// zero is allowed
        zero: bool,
    },
    /// a pointer that this or another helper returned as [`Return::RecordOrNull`], given back by the call
    Record,
    /// pointer to that many writable bytes, initialised afterwards (e.g. an out parameter)
    Out(u32),
    /// pointer to that many readable, initialised and writable bytes
    InOut(u32),
    /// pointer to `key_bytes` writable bytes, initialised afterwards
    KeyOut,
    /// the address of a function of the program, which the call calls back
    Function,
    /// anything that may be read, handed on to that function
    Any,
    /// pointer to 8 bytes of stack that are an iterator over numbers
    Iterator,
    /// pointer to `value_bytes` writable bytes, initialised afterwards; of an object that only says
    /// whether it holds a value ([`crate::state::StateKind::membership`]), readable initialised bytes
    ValueOut,
}

/// The most bytes an argument of kind [`Arg::Bytes`] may name.
pub const MAX_BYTES: u64 = 1 << 29;

/// What `r0` holds after the call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Return {
    /// a number within these bounds, as signed 64-bit
    Scalar {
        /// smallest
        min: i64,
        /// largest
        max: i64,
    },
    /// pointer to a value of the object, or null
    ValueOrNull,
    /// pointer to a reserved record of as many bytes as the second argument says (a constant), or
    /// null; must be given back before the program ends
    RecordOrNull,
}

/// What a call does beyond its result. Anything not named here has no effect: the call may be
/// repeated or left out.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Effects {
    /// packet pointers of before the call are invalid after it
    pub moves_packet: bool,
    /// reads or writes state, so that order among packets matters
    pub state: bool,
    /// depends on the clock
    pub time: bool,
    /// depends on a random draw
    pub random: bool,
    /// any other effect on the world (a trace line, a redirect target)
    pub other: bool,
}

impl Effects {
    /// None at all: a pure function of the arguments.
    pub const NONE: Effects = Effects {
        moves_packet: false,
        state: false,
        time: false,
        random: false,
        other: false,
    };
}

/// The contract of a helper.
#[derive(Debug)]
pub struct Helper {
    /// the number in the call instruction; below 0x10000 the kernel's, from there on our own, from
    /// [`kernel_functions::FIRST`] on ours for a kernel function
    pub number: u32,
    /// the name without the `bpf_` prefix
    pub name: &'static str,
    /// arguments in `r1` …, at most five
    pub args: &'static [Arg],
    /// result in `r0`
    pub returns: Return,
    /// names of the kinds that an [`Arg::Object`] may have
    pub kinds: &'static [&'static str],
    /// what else it does
    pub effects: Effects,
}

impl Helper {
    /// Which argument is a function that is called back, from 0; none for helpers that call none.
    #[must_use]
    pub fn function_argument(&self) -> Option<usize> {
        self.args.iter().position(|a| *a == Arg::Function)
    }

    /// Whether `check` lays a call out as what it stands for, so that there is no C function: it calls
    /// back, or keeps its state in the caller's stack.
    #[must_use]
    pub fn is_expanded(&self) -> bool {
        self.args
            .iter()
            .any(|a| matches!(a, Arg::Function | Arg::Iterator))
    }

    /// Which argument is the state object, from 0; none for helpers that work on none.
    #[must_use]
    pub fn object_argument(&self) -> Option<usize> {
        self.args.iter().position(|a| *a == Arg::Object)
    }

    /// Which argument is the address of a key, from 0; none for helpers that take none.
    #[must_use]
    pub fn key_argument(&self) -> Option<usize> {
        self.args.iter().position(|a| *a == Arg::Key)
    }
}

/// The state object that a helper works on without naming it, by its kind: a program that calls such a
/// helper has one such object, and its C function is of that kind's header.
#[must_use]
pub fn implied(helper: &Helper) -> Option<&'static StateKind> {
    const ROUTING: [u32; 2] = [fib_lookup::HELPER.number, check_mtu::HELPER.number];
    ROUTING.contains(&helper.number).then_some(&routes::KIND)
}

/// Every helper there is, by ascending number.
pub const HELPERS: &[&Helper] = &[
    &map_lookup_elem::HELPER,
    &map_update_elem::HELPER,
    &map_delete_elem::HELPER,
    &ktime_get_ns::HELPER,
    &trace_printk::HELPER,
    &get_prandom_u32::HELPER,
    &get_smp_processor_id::HELPER,
    &tail_call::HELPER,
    &redirect::HELPER,
    &perf_event_output::HELPER,
    &csum_diff::HELPER,
    &get_numa_node_id::HELPER,
    &xdp_adjust_head::HELPER,
    &redirect_map::HELPER,
    &xdp_adjust_meta::HELPER,
    &xdp_adjust_tail::HELPER,
    &fib_lookup::HELPER,
    &map_push_elem::HELPER,
    &map_pop_elem::HELPER,
    &map_peek_elem::HELPER,
    &spin_lock::HELPER,
    &spin_unlock::HELPER,
    &strtol::HELPER,
    &strtoul::HELPER,
    &jiffies64::HELPER,
    &ktime_get_boot_ns::HELPER,
    &ringbuf_output::HELPER,
    &ringbuf_reserve::HELPER,
    &ringbuf_submit::HELPER,
    &ringbuf_discard::HELPER,
    &ringbuf_query::HELPER,
    &ktime_get_coarse_ns::HELPER,
    &check_mtu::HELPER,
    &for_each_map_elem::HELPER,
    &snprintf::HELPER,
    &timer_init::HELPER,
    &timer_set_callback::HELPER,
    &timer_start::HELPER,
    &timer_cancel::HELPER,
    &trace_vprintk::HELPER,
    &loop_::HELPER,
    &strncmp::HELPER,
    &xdp_get_buff_len::HELPER,
    &xdp_load_bytes::HELPER,
    &xdp_store_bytes::HELPER,
    &map_lookup_percpu_elem::HELPER,
    &tcp_raw_gen_syncookie_ipv4::HELPER,
    &tcp_raw_gen_syncookie_ipv6::HELPER,
    &tcp_raw_check_syncookie_ipv4::HELPER,
    &tcp_raw_check_syncookie_ipv6::HELPER,
    &ktime_get_tai_ns::HELPER,
    &map_get::HELPER,
    &map_refresh::HELPER,
    &map_put::HELPER,
    &map_delete::HELPER,
    &vector_at::HELPER,
    &allocator_lease::HELPER,
    &allocator_get::HELPER,
    &allocator_refresh::HELPER,
    &allocator_free::HELPER,
    &sketch_count::HELPER,
    &sketch_add::HELPER,
    &lpm_get::HELPER,
    &lpm_put::HELPER,
    &lpm_delete::HELPER,
    &crc32c::HELPER,
    &multiply_high::HELPER,
    &xdp_flow_lookup::HELPER,
    &xdp_metadata_rx_timestamp::HELPER,
    &xdp_metadata_rx_hash::HELPER,
    &xdp_metadata_rx_vlan_tag::HELPER,
    &iter_num_new::HELPER,
    &iter_num_next::HELPER,
    &iter_num_destroy::HELPER,
    &map_slot::HELPER,
    &tail_away::HELPER,
    &timer_fired::HELPER,
];

/// The number of no helper: what is called where a CO-RE relocation asks for a field or value that does
/// not exist. libbpf marks such places with the same number.
pub const ABSENT: u32 = 0xbad_2310;

/// From here on a number is not an author's to call: kernel functions, which have names, and what other
/// calls are expanded into, from [`EXPANSION`] on.
pub const INTERNAL: u32 = kernel_functions::FIRST;

/// The first number of what other calls are expanded into.
pub const EXPANSION: u32 = 0x30000;

/// The helper with this number.
#[must_use]
pub fn by_number(number: u32) -> Option<&'static Helper> {
    let index = HELPERS.binary_search_by_key(&number, |h| h.number).ok()?;
    HELPERS.get(index).copied()
}
