//! The shim's functions and structures, as shim/shim.h declares them. Results are 0 or a negative errno
//! unless said otherwise.

use std::ffi::{c_char, c_int, c_uint, c_void};

/// Bytes of a driver's name, its terminating zero included.
pub const NAME: usize = 64;
/// Bytes of the longest key.
pub const KEY: usize = 64;

/// Choices of fields to hash: all, both addresses, the source's, the destination's.
pub const FIELDS: usize = 4;

/// A device as its driver describes it.
#[repr(C)]
pub struct Limits {
    pub rx_queues: u16,
    pub tx_queues: u16,
    pub table_entries: u16,
    pub key_bytes: u16,
    pub hash_types: u64,
    pub longest: u32,
    pub hashes: [u8; FIELDS],
    pub driver: [u8; NAME],
}

/// How a device is set up.
#[repr(C)]
#[derive(Clone)]
pub struct Setup {
    pub rx_queues: u16,
    pub tx_queues: u16,
    pub descriptors: u16,
    pub mtu: u16,
    pub room: u16,
    pub buffers: u32,
    pub rss: u16,
    pub fields: u16,
    pub key_bytes: u16,
    pub key: [u8; KEY],
}

/// A received packet.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Frame {
    pub mbuf: *mut c_void,
    pub data: *mut u8,
    pub end: *mut u8,
    pub floor: *mut u8,
    pub ceiling: *mut u8,
    pub stamp: u64,
}

/// A packet to send.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Packet {
    pub mbuf: *mut c_void,
    pub data: *const u8,
    pub length: u32,
    pub kept: u32,
}

/// Counts of a device.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct Stats {
    pub missed: u64,
    pub bad: u64,
    pub refused: u64,
}

/// Frames that a device sends, bytes.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    pub shortest: u32,
    pub longest: u32,
    pub tagged: u32,
}

/// Where buffers carry the time when they came.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct Stamps {
    pub flag: u64,
    pub offset: u32,
}

unsafe extern "C" {
    /// 0, or an errno.
    pub fn mr_init(argc: c_int, argv: *mut *mut c_char) -> c_int;
    /// Makes the calling thread one of DPDK's.
    pub fn mr_register() -> c_int;
    pub fn mr_unregister();
    /// The bytes written to `to`.
    pub fn mr_said(to: *mut c_char, room: usize) -> usize;
    pub fn mr_probe(devargs: *const c_char, name: *const c_char, port: *mut u16) -> c_int;
    pub fn mr_remove(port: u16) -> c_int;
    pub fn mr_limits(port: u16, limits: *mut Limits) -> c_int;
    pub fn mr_start(
        port: u16,
        setup: *mut Setup,
        pool_name: *const c_char,
        pool: *mut *mut c_void,
    ) -> c_int;
    pub fn mr_table(port: u16, queues: *const u16, entries: u16) -> c_int;
    #[cfg(test)]
    pub fn mr_rss(
        port: u16,
        key: *mut u8,
        key_bytes: u16,
        types: *mut u64,
        table: *mut u16,
        entries: u16,
    ) -> c_int;
    /// 1 for up, 0 for down, or a negative errno.
    pub fn mr_link(port: u16, wait: c_int) -> c_int;
    pub fn mr_mtu(port: u16, mtu: *mut u16) -> c_int;
    pub fn mr_promiscuous(port: u16) -> c_int;
    pub fn mr_stats(port: u16, stats: *mut Stats) -> c_int;
    pub fn mr_stop(port: u16);
    /// 1 when it was freed.
    pub fn mr_free_pool(pool: *mut c_void) -> c_int;
    pub fn mr_stamps(stamps: *mut Stamps) -> c_int;
    /// The packets written to `to`.
    pub fn mr_receive(
        port: u16,
        queue: u16,
        pool: *mut c_void,
        stamps: *const Stamps,
        to: *mut Frame,
        most: c_uint,
        unfit: *mut u64,
    ) -> c_uint;
    /// The packets taken from the front.
    pub fn mr_transmit(
        port: u16,
        queue: u16,
        pool: *mut c_void,
        sizes: *const Sizes,
        packets: *mut Packet,
        count: c_uint,
        refused: *mut u64,
    ) -> c_uint;
    /// The packets taken from the front; `mbufs` has a place for each, null for one that was refused.
    pub fn mr_prepare(
        pool: *mut c_void,
        sizes: *const Sizes,
        packets: *mut Packet,
        count: c_uint,
        mbufs: *mut *mut c_void,
        refused: *mut u64,
    ) -> c_uint;
    /// The buffers taken from the front.
    pub fn mr_send(port: u16, queue: u16, mbufs: *mut *mut c_void, count: c_uint) -> c_uint;
    #[cfg(test)]
    pub fn mr_hash(words: *const u32, count: c_uint, key: *const u8) -> u32;
    pub fn mr_free(mbufs: *mut *mut c_void, count: c_uint);
    /// 0 while the last packet waits to be sent.
    pub fn mr_sent(port: u16, queue: u16, descriptors: u16) -> c_int;
}
