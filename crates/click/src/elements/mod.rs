//! Elements, one a file: its comment is its manual.

pub mod address;
pub mod arp_print;
pub mod arp_querier;
pub mod arp_responder;
pub mod check_ip_header;
pub mod check_length;
pub mod check_upper;
pub mod classifier;
pub mod counter;
pub mod cycles;
pub mod dec_ip_ttl;
pub mod device;
pub mod discard;
pub mod drop_broadcasts;
pub mod dump;
pub mod ether_encap;
pub mod ether_filter;
pub mod fix_ip_src;
pub mod from_ip_summary_dump;
pub mod function;
pub mod icmp_error;
pub mod icmp_ping;
pub mod icmp_rewriter;
pub mod idle;
pub mod infinite_source;
pub mod information;
pub mod ip_encap;
pub mod ip_filter;
pub mod ip_fragmenter;
pub mod ip_gw_options;
pub mod ip_lookup;
pub mod ip_mapper;
pub mod ip_print;
pub mod ip_rewriter;
pub mod link_unqueue;
pub mod mark_ip_header;
pub mod message;
pub mod null;
pub mod paint;
pub mod print;
pub mod queue;
pub mod rated;
pub mod rated_source;
pub mod round_robin;
pub mod script;
pub mod search;
pub mod set_ip;
pub mod set_packet_type;
pub mod set_vlan;
pub mod small;
pub mod source_ip_hash_mapper;
pub mod store_data;
pub mod store_ether_address;
pub mod strip;
pub mod switch;
pub mod tee;
pub mod timed_sink;
pub mod to_ip_summary_dump;
pub mod truncate;
pub mod unqueue;
pub mod vlan_encap;
pub mod wire;

use crate::element::Class;

/// All classes, in the order of their files.
pub const CLASSES: &[Class] = &[
    address::CLASS,
    address::SET,
    address::STORE,
    arp_print::CLASS,
    arp_querier::CLASS,
    arp_responder::CLASS,
    check_ip_header::CLASS,
    check_ip_header::TWO,
    check_length::CLASS,
    check_upper::CLASS,
    check_upper::UDP,
    check_upper::ICMP,
    classifier::CLASS,
    counter::CLASS,
    counter::AVERAGE,
    counter::MP,
    counter::RCU,
    counter::AVERAGE_MP,
    cycles::SET,
    cycles::ACCUM,
    cycles::ROUND_TRIP,
    dec_ip_ttl::CLASS,
    device::CLASS,
    device::POLL,
    device::HOST,
    device::FROM_DPDK,
    device::FROM_NETMAP,
    device::TO,
    device::TO_DPDK,
    device::TO_NETMAP,
    discard::CLASS,
    discard::NO_FREE,
    discard::TO_HOST,
    drop_broadcasts::CLASS,
    dump::CLASS,
    dump::TO,
    ether_encap::CLASS,
    ether_encap::REWRITE,
    fix_ip_src::CLASS,
    from_ip_summary_dump::CLASS,
    function::CLASS,
    function::HOST,
    icmp_error::CLASS,
    icmp_ping::CLASS,
    icmp_ping::ENCAP,
    icmp_rewriter::CLASS,
    ether_filter::CLASS,
    set_packet_type::CLASS,
    set_vlan::CLASS,
    timed_sink::CLASS,
    link_unqueue::CLASS,
    idle::CLASS,
    infinite_source::CLASS,
    information::ADDRESSINFO,
    information::PORTINFO,
    information::SCHEDULEINFO,
    information::STATICTHREADSCHED,
    information::ALIGNMENTINFO,
    information::RANDOMSEED,
    information::CONTROLSOCKET,
    information::CHATTERSOCKET,
    ip_encap::CLASS,
    ip_encap::IP,
    ip_filter::CLASS,
    ip_filter::CLASSIFIER,
    ip_fragmenter::CLASS,
    ip_gw_options::CLASS,
    ip_lookup::CLASS,
    ip_lookup::LINEAR,
    ip_lookup::STATIC,
    ip_lookup::DIRECT,
    ip_lookup::RANGE,
    ip_lookup::SORTED,
    ip_lookup::ROUTE,
    ip_mapper::CLASS,
    ip_mapper::PATTERNS,
    ip_print::CLASS,
    ip_rewriter::CLASS,
    ip_rewriter::TCP,
    ip_rewriter::UDP,
    ip_rewriter::ADDRESS,
    ip_rewriter::PAIR,
    ip_rewriter::PING,
    mark_ip_header::CLASS,
    mark_ip_header::MAC,
    mark_ip_header::ETHER,
    message::CLASS,
    null::CLASS,
    null::PUSH,
    null::PULL,
    null::LOCK,
    null::ACQUIRE,
    null::RELEASE,
    null::PIPELINER,
    null::ALIGN,
    paint::CLASS,
    paint::CHECK,
    paint::TEE,
    paint::SWITCH,
    print::CLASS,
    queue::CLASS,
    queue::SIMPLE,
    queue::NOTIFIER,
    queue::FULL_NOTE,
    queue::QUICK,
    queue::THREADS,
    queue::FRONT,
    queue::MIXED,
    rated::CLASS,
    rated::BYTES,
    rated::SPLITTER,
    rated::BYTE_SPLITTER,
    rated::SHAPER,
    rated::BYTE_SHAPER,
    rated_source::CLASS,
    rated_source::TIMED,
    round_robin::CLASS,
    round_robin::SCHED,
    round_robin::PRIORITY,
    round_robin::STRIDE,
    script::CLASS,
    script::DRIVER,
    set_ip::CLASS,
    set_ip::CONGESTION,
    set_ip::CHECKSUM,
    set_ip::RESET,
    set_ip::TCP,
    set_ip::UDP,
    small::CLASS,
    small::PAINT_RR,
    small::STAMP,
    small::DELTA,
    small::MIRROR,
    small::IP_MIRROR,
    search::CLASS,
    search::UNSTRIP,
    source_ip_hash_mapper::CLASS,
    store_ether_address::CLASS,
    store_data::CLASS,
    store_data::MOVE,
    store_data::RESIZE,
    strip::CLASS,
    strip::UNSTRIP,
    strip::TO_NETWORK,
    strip::IP,
    switch::CLASS,
    switch::STATIC,
    switch::PULL,
    switch::SIMPLE_PULL,
    switch::STATIC_PULL,
    tee::CLASS,
    tee::DUPLICATE,
    tee::PULL,
    to_ip_summary_dump::CLASS,
    truncate::CLASS,
    truncate::PAD,
    unqueue::CLASS,
    vlan_encap::CLASS,
    vlan_encap::ETHER,
    vlan_encap::DECAP,
    wire::CLASS,
];

/// The class of a name.
#[must_use]
pub fn find(name: &str) -> Option<&'static Class> {
    CLASSES.iter().find(|c| c.name == name)
}
