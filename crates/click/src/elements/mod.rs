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

/// The names that all elements use.
mod prelude {
    pub(super) use crate::arguments::Args;
    pub(super) use crate::element::{Class, Element, Made, Read, Written};
    pub(super) use crate::interpreter::{Context, Setup};
    pub(super) use crate::meaning::Meaning;
    pub(super) use crate::packet::Packet;
}

/// The classes of each file, in the order of the files.
const FILES: &[&[Class]] = &[
    address::CLASSES,
    arp_print::CLASSES,
    arp_querier::CLASSES,
    arp_responder::CLASSES,
    check_ip_header::CLASSES,
    check_length::CLASSES,
    check_upper::CLASSES,
    classifier::CLASSES,
    counter::CLASSES,
    cycles::CLASSES,
    dec_ip_ttl::CLASSES,
    device::CLASSES,
    discard::CLASSES,
    drop_broadcasts::CLASSES,
    dump::CLASSES,
    ether_encap::CLASSES,
    fix_ip_src::CLASSES,
    from_ip_summary_dump::CLASSES,
    function::CLASSES,
    icmp_error::CLASSES,
    icmp_ping::CLASSES,
    icmp_rewriter::CLASSES,
    ether_filter::CLASSES,
    set_packet_type::CLASSES,
    set_vlan::CLASSES,
    timed_sink::CLASSES,
    link_unqueue::CLASSES,
    idle::CLASSES,
    infinite_source::CLASSES,
    information::CLASSES,
    ip_encap::CLASSES,
    ip_filter::CLASSES,
    ip_fragmenter::CLASSES,
    ip_gw_options::CLASSES,
    ip_lookup::CLASSES,
    ip_mapper::CLASSES,
    ip_print::CLASSES,
    ip_rewriter::CLASSES,
    mark_ip_header::CLASSES,
    message::CLASSES,
    null::CLASSES,
    paint::CLASSES,
    print::CLASSES,
    queue::CLASSES,
    rated::CLASSES,
    rated_source::CLASSES,
    round_robin::CLASSES,
    script::CLASSES,
    set_ip::CLASSES,
    small::CLASSES,
    search::CLASSES,
    source_ip_hash_mapper::CLASSES,
    store_ether_address::CLASSES,
    store_data::CLASSES,
    strip::CLASSES,
    switch::CLASSES,
    tee::CLASSES,
    to_ip_summary_dump::CLASSES,
    truncate::CLASSES,
    unqueue::CLASSES,
    vlan_encap::CLASSES,
    wire::CLASSES,
];

/// All classes, in the order of their files.
pub fn classes() -> impl Iterator<Item = &'static Class> {
    FILES.iter().copied().flatten()
}

/// The class of a name.
#[must_use]
pub fn find(name: &str) -> Option<&'static Class> {
    classes().find(|c| c.name == name)
}
