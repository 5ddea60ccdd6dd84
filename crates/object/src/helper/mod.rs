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
pub mod crc32c;
pub mod csum_diff;
pub mod get_prandom_u32;
pub mod get_smp_processor_id;
pub mod jiffies64;
pub mod ktime_get_boot_ns;
pub mod ktime_get_coarse_ns;
pub mod ktime_get_ns;
pub mod lpm_delete;
pub mod lpm_get;
pub mod lpm_put;
pub mod map_delete;
pub mod map_delete_elem;
pub mod map_get;
pub mod map_lookup_elem;
pub mod map_peek_elem;
pub mod map_pop_elem;
pub mod map_push_elem;
pub mod map_put;
pub mod map_refresh;
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
pub mod spin_lock;
pub mod spin_unlock;
pub mod tail_call;
pub mod trace_printk;
pub mod trace_vprintk;
pub mod vector_at;
pub mod xdp_adjust_head;
pub mod xdp_adjust_meta;
pub mod xdp_adjust_tail;
pub mod xdp_get_buff_len;
pub mod xdp_load_bytes;
pub mod xdp_store_bytes;

/// What an argument must be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Arg {
    /// the context pointer (the packet)
    Context,
    /// a state object, of a kind in [`Helper::kinds`]; before it there may only be the context
    Object,
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
    /// pointer to writable bytes; the next argument is their number; they are initialised afterwards
    Write,
    /// number of bytes of the argument before it, at most [`MAX_BYTES`]
    Bytes {
        /// zero is allowed
        zero: bool,
    },
    /// a pointer that this or another helper returned as [`Return::RecordOrNull`], given back by the call
    Record,
    /// pointer to that many writable bytes, initialised afterwards (e.g. an out parameter)
    Out(u32),
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
    /// the number in the call instruction; below 0x10000 the kernel's, from there on our own
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
    /// Which argument is the state object, from 0; none for helpers that work on none.
    #[must_use]
    pub fn object_argument(&self) -> Option<usize> {
        self.args.iter().position(|a| *a == Arg::Object)
    }
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
    &xdp_adjust_head::HELPER,
    &redirect_map::HELPER,
    &xdp_adjust_meta::HELPER,
    &xdp_adjust_tail::HELPER,
    &map_push_elem::HELPER,
    &map_pop_elem::HELPER,
    &map_peek_elem::HELPER,
    &spin_lock::HELPER,
    &spin_unlock::HELPER,
    &jiffies64::HELPER,
    &ktime_get_boot_ns::HELPER,
    &ringbuf_output::HELPER,
    &ringbuf_reserve::HELPER,
    &ringbuf_submit::HELPER,
    &ringbuf_discard::HELPER,
    &ringbuf_query::HELPER,
    &ktime_get_coarse_ns::HELPER,
    &trace_vprintk::HELPER,
    &xdp_get_buff_len::HELPER,
    &xdp_load_bytes::HELPER,
    &xdp_store_bytes::HELPER,
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
];

/// The helper with this number.
#[must_use]
pub fn by_number(number: u32) -> Option<&'static Helper> {
    let index = HELPERS.binary_search_by_key(&number, |h| h.number).ok()?;
    HELPERS.get(index).copied()
}
