//! Helpers that do what they say, for comparing an execution with another implementation's: maps that
//! keep their entries from packet to packet, records, packets that move.
//!
//! Without this a machine draws what helpers return at random, which reaches more of a program; with
//! it two implementations must agree to the last byte. Only helpers whose result is a function of
//! state and packet are here.

mod aead;
mod checksum;
mod cookie;
mod crowd;
mod draw;
mod entries;
mod events;
mod frame;
pub(super) mod handlers;
pub(super) mod lru;
pub(super) mod prefix;
mod seed;
pub(super) mod target;

pub use target::Target;

use std::collections::{BTreeMap, VecDeque};

use millrace_classify::Rules;
use millrace_object::helper::Helper;
use millrace_object::program::{Dialect, Nesting, ObjectId, Program, StateObject};
use millrace_object::state::lpm_trie;

use super::{APART, Layout, Machine, Violation, timer, violation};

const MOST: i64 = 0xffff;
pub(super) const ENOENT: i64 = 2;
const EFAULT: i64 = 14;
pub(super) const E2BIG: i64 = 7;
const ENOSPC: i64 = 28;
const EEXIST: i64 = 17;
pub(super) const EINVAL: i64 = 22;
const EOPNOTSUPP: i64 = 95;
const EAFNOSUPPORT: i64 = 97;

/// A call of a helper that works on an object.
#[derive(Clone, Copy)]
pub(super) struct Asked<'a> {
    /// the helper's
    pub(super) name: &'a str,
    pub(super) id: ObjectId,
    /// the object's declaration
    pub(super) o: &'a StateObject,
    /// the call's arguments
    pub(super) a: [u64; 5],
}

/// State that outlives a helper call.
#[derive(Default)]
pub struct Exact {
    pub(super) maps: BTreeMap<ObjectId, BTreeMap<Vec<u8>, u64>>,
    /// what queues, stacks and Bloom filters hold, the oldest first
    pub(super) sequences: BTreeMap<ObjectId, VecDeque<Vec<u8>>>,
    /// which map is under which key of a map of maps
    pub(super) inner: BTreeMap<ObjectId, BTreeMap<Vec<u8>, ObjectId>>,
    /// the shapes of maps that were made, which are numbered after the program's objects
    pub(super) made: Vec<ObjectId>,
    /// records that are held: address and object
    held: Vec<(u64, ObjectId)>,
    /// by address, which is the order they were reserved in, or the reverse (`Layout`)
    submitted: BTreeMap<u64, (ObjectId, Vec<u8>)>,
    /// bytes before the packet that it may grow into, as they are
    headroom: Vec<u8>,
    /// bytes of metadata, which lie between headroom and frame in the packet's region
    meta: usize,
    /// bytes after the packet that it may grow into
    tailroom: i64,
    port: u32,
    ports: u32,
    /// what the last redirect named
    target: Option<Target>,
    tail_calls: u32,
    pub(super) clock: timer::Clock,
    /// what the handlers' kinds keep
    pub(crate) own: handlers::Own,
    /// bytes that records have taken of each ring buffer, before this packet and with it
    pub(super) produced: BTreeMap<ObjectId, (u64, u64)>,
    /// of each LRU map, whose turn it is
    pub(super) clocks: BTreeMap<ObjectId, lru::Clock>,
    /// entries that take room and are not made yet
    crowds: BTreeMap<ObjectId, crowd::Crowd>,
    /// keys of maps in the order in which entries are visited
    orders: BTreeMap<ObjectId, Vec<Vec<u8>>>,
    /// what random draws come from
    pub(super) seed: u64,
    /// the number of the next packet, that of this one, and its random draws so far
    pub(super) next: u64,
    number: u64,
    draws: u64,
}

impl Exact {
    /// Bytes of metadata before the frame.
    pub(super) fn metadata(&self) -> u64 {
        self.meta as u64
    }
}

/// Whether a map has an element for every index from the start.
pub(super) fn is_array(object: &StateObject) -> bool {
    object.kind.has_all() || object.kind.holds_programs()
}

/// An index or a leased number as a key.
pub(super) fn index(object: &StateObject, number: u64) -> Vec<u8> {
    let mut key = number.to_le_bytes().to_vec();
    key.resize(object.key_bytes as usize, 0);
    key
}

pub(super) fn error(number: i64) -> u64 {
    number.wrapping_neg() as u64
}

impl<'a> Machine<'a> {
    /// A machine whose helpers do what their contracts say. Entries, globals and records last from one
    /// [`Machine::packet`] to the next.
    #[must_use]
    pub fn exact(program: &'a Program) -> Self {
        Machine::exact_laid_out(program, Layout::Ascending)
    }

    /// The same, its memory laid out so.
    #[must_use]
    pub fn exact_laid_out(program: &'a Program, layout: Layout) -> Self {
        let mut machine = Machine::laid_out(program, &[], 0, layout);
        machine.exact = Some(Exact::default());
        for (i, object) in program.objects.iter().enumerate() {
            machine.create(ObjectId(i), object);
        }
        machine
    }

    /// The state of an object at start.
    pub(super) fn create(&mut self, id: ObjectId, object: &StateObject) {
        let mut entries = BTreeMap::new();
        // Other arrays' elements are zero until somebody asks for them (`element`).
        if let Some(initial) = object.initial.as_deref().filter(|_| is_array(object)) {
            for (index, value) in (0_u32..).zip(initial.chunks(object.value_bytes.max(1) as usize))
            {
                let at = self.map(value.to_vec(), true, true);
                self.forbid_timer(object, at);
                entries.insert(index.to_le_bytes().to_vec(), at);
            }
        }
        let Some(exact) = &mut self.exact else { return };
        exact.maps.insert(id, entries);
        // Those that are none are refused where the function is made.
        if let Some(Ok(rules)) = object.rules.as_deref().map(Rules::from_bytes) {
            exact.own.rules.insert(id, rules);
        }
        if let Some(Nesting::Holds { values, .. }) = &object.nesting {
            let mut inner = BTreeMap::new();
            for (index, map) in values {
                let mut key = index.to_le_bytes().to_vec();
                key.resize(object.key_bytes as usize, 0);
                inner.insert(key, *map);
            }
            exact.inner.insert(id, inner);
        }
    }

    /// Puts a packet before the machine, with this many zero bytes of headroom, as it arrives at `port`.
    pub fn packet(&mut self, bytes: &[u8], headroom: usize, port: u32) {
        self.place_packet(bytes.to_vec());
        if let Some(exact) = &mut self.exact {
            exact.headroom = vec![0; headroom];
            exact.meta = 0;
            exact.tailroom = 0;
            exact.port = port;
            exact.target = None;
            exact.tail_calls = 0;
            exact.number = exact.next;
            exact.next += 1;
            exact.draws = 0;
            // The host has taken all records.
            for produced in exact.produced.values_mut() {
                produced.0 = produced.1;
            }
        }
    }

    /// Records submitted since the last call, in the order they were reserved.
    pub fn take_records(&mut self) -> Vec<(ObjectId, Vec<u8>)> {
        let submitted = self
            .exact
            .as_mut()
            .map(|e| std::mem::take(&mut e.submitted));
        let mut records: Vec<_> = submitted.unwrap_or_default().into_values().collect();
        if self.layout == Layout::Descending {
            records.reverse();
        }
        records
    }

    /// The context's fields that do not depend on chance.
    pub(super) fn exact_field(&self, offset: u64, len: usize) -> Option<u64> {
        let exact = self.exact.as_ref()?;
        let handlers = self.program.dialect == Dialect::Handlers;
        match (offset, len) {
            (0, 4) => Some(self.packet + exact.meta as u64),
            (12, 4) if handlers => Some(u64::from(exact.port)),
            (12, 4) => Some(u64::from(exact.port) + 1),
            (16, 4) => Some(0),
            (24, 8) => Some(self.now()),
            (32, 4) => Some(u64::from(exact.ports)),
            _ => None,
        }
    }

    /// Notes the content of a record before it is given back.
    pub(super) fn give_back(&mut self, at: u64) {
        let bytes = self.memory.get(&(at / APART)).map(|m| m.bytes.clone());
        let Some(exact) = &mut self.exact else { return };
        if let Some(index) = exact.held.iter().position(|h| h.0 == at) {
            let (_, object) = exact.held.remove(index);
            exact
                .submitted
                .insert(at, (object, bytes.unwrap_or_default()));
        }
    }

    pub(super) fn bytes_at(&mut self, at: u64, len: u32) -> Result<Vec<u8>, Violation> {
        if len == 0 {
            return Ok(Vec::new());
        }
        let (memory, offset) = self.place(at, len as usize)?;
        Ok(memory.bytes[offset..offset + len as usize].to_vec())
    }

    /// The result of a call whose arguments fit the contract.
    pub(super) fn exactly(&mut self, h: &Helper, a: [u64; 5]) -> Result<u64, Violation> {
        let which = h.object_argument().and_then(|i| a.get(i).copied());
        let id = Self::named(which.unwrap_or(a[0]));
        // Of a helper that takes no object the registers hold whatever was there before.
        let object = which.and_then(|_| self.declaration(id));
        let name = h.name;
        let on = |o| Asked { name, id, o, a };
        match (name, object) {
            (_, Some(o)) if *o.kind == lpm_trie::KIND => self.prefixes(on(o)),
            ("map_push_elem" | "map_pop_elem" | "map_peek_elem", Some(o)) => self.sequence(on(o)),
            (
                "map_lookup_elem"
                | "map_lookup_percpu_elem"
                | "map_update_elem"
                | "map_delete_elem",
                Some(o),
            ) => self.keyed(on(o)),
            ("ringbuf_output", Some(o)) => {
                let bytes = self.bytes_at(a[1], a[2] as u32)?;
                Ok(self.output(id, o, bytes, a[3]))
            }
            ("ringbuf_reserve", Some(o)) => {
                // Buffers are drained after each packet; a program reserves little of one.
                if a[2] != 0 || a[1] + 8 > o.capacity || self.crowd_of(id) > 0 {
                    return Ok(0);
                }
                self.produce(id, a[1]);
                let at = self.map(vec![0; a[1] as usize], true, true);
                self.records.push(at);
                if let Some(exact) = &mut self.exact {
                    exact.held.push((at, id));
                }
                Ok(at)
            }
            ("ringbuf_submit", _) => Ok(0),
            ("ringbuf_discard", _) => {
                if let Some(exact) = &mut self.exact {
                    exact.submitted.remove(&a[0]);
                }
                Ok(0)
            }
            ("xdp_load_bytes", _) => {
                let result = self.part(a[1], a[3]);
                let len = a[3] as usize;
                let bytes = match result {
                    Ok(from) => self.packet_bytes()[from..from + len].to_vec(),
                    Err(_) => vec![0; len],
                };
                self.put(a[2], &bytes)?;
                Ok(result.err().unwrap_or(0))
            }
            ("xdp_get_buff_len", _) => Ok(self.packet_bytes().len() as u64),
            ("xdp_store_bytes", _) => {
                let bytes = self.bytes_at(a[2], a[3] as u32)?;
                match self.part(a[1], a[3]) {
                    Ok(from) => {
                        let at = self.frame() + from as u64;
                        self.note_store(at, bytes.clone());
                        self.put(at, &bytes)?;
                    }
                    Err(error) => return Ok(error),
                }
                Ok(0)
            }
            ("aead_seal", _) => self.seal(a),
            ("aead_open", _) => self.open(a),
            ("packet_find", _) => {
                let wanted = self.bytes_at(a[2], a[3] as u32)?;
                let frame = self.packet_bytes();
                let from = usize::try_from(a[1]).unwrap_or(usize::MAX);
                let rest = frame.get(from..).unwrap_or(&[]);
                let at = rest.windows(wanted.len().max(1)).position(|w| w == wanted);
                Ok(at.map_or(u64::MAX, |at| (from + at) as u64))
            }
            ("xdp_adjust_head", _) => Ok(self.move_head(i64::from(a[1] as i32))),
            ("xdp_adjust_tail", _) => Ok(self.move_tail(i64::from(a[1] as i32))),
            ("get_numa_node_id", _) => Ok(0),
            ("strtol", _) => self.string_to_number(a, true),
            ("strtoul", _) => self.string_to_number(a, false),
            ("snprintf", _) => self.print(a),
            ("strncmp", _) => self.compare_strings(a),
            ("fib_lookup", _) => {
                let ports = self.exact.as_ref().map_or(0, |e| e.ports);
                self.fib_lookup(a, ports)
            }
            ("check_mtu", _) => {
                let (port, ports) = self.exact.as_ref().map_or((0, 0), |e| (e.port, e.ports));
                self.check_mtu(a, port, ports)
            }
            ("xdp_adjust_meta", _) => Ok(self.move_meta(i64::from(a[1] as i32))),
            ("csum_diff", _) => {
                let (from, to) = (
                    self.bytes_at(a[0], a[1] as u32)?,
                    self.bytes_at(a[2], a[3] as u32)?,
                );
                Ok(checksum::difference(&from, &to, a[4] as u32))
            }
            ("redirect", _) => Ok(self.redirect(a[0] as u32, a[1])),
            ("redirect_map", Some(o)) => Ok(self.redirect_map(id, o, a[1] as u32, a[2])),
            ("tail_call", _) => {
                let key = (a[2] as u32).to_le_bytes();
                Ok(match self.value_of(id, &key) {
                    Some(at) => self.read(at, 4)?.unwrap_or(0),
                    None => 0,
                })
            }
            ("perf_event_output", Some(o)) => self.event(id, o, a),
            ("timer_init" | "timer_set_callback" | "timer_start" | "timer_cancel", _) => {
                Ok(self.timer(h.name, a))
            }
            (
                "map_get" | "map_refresh" | "map_put" | "map_delete" | "vector_at"
                | "allocator_lease" | "allocator_get" | "allocator_refresh" | "allocator_free"
                | "sketch_count" | "sketch_add" | "lpm_get" | "lpm_put" | "lpm_delete" | "classify"
                | "distributed_add" | "distributed_max" | "distributed_or" | "distributed_read",
                Some(o),
            ) => self.handlers(on(o)),
            ("crc32c", _) => Ok(handlers::crc32c(a[0], a[1])),
            ("multiply_high", _) => Ok(((u128::from(a[0]) * u128::from(a[1])) >> 64) as u64),
            ("ringbuf_query", Some(o)) => Ok(self.query(id, o, a[1])),
            // All clocks are one, one thread runs, and nothing is printed.
            (
                "ktime_get_ns" | "ktime_get_boot_ns" | "ktime_get_coarse_ns" | "ktime_get_tai_ns",
                _,
            ) => Ok(self.now()),
            ("jiffies64", _) => Ok(self.now() / 4_000_000),
            ("tcp_raw_gen_syncookie_ipv4", _) => self.make_cookie(a, 20),
            ("tcp_raw_gen_syncookie_ipv6", _) => self.make_cookie(a, 40),
            ("tcp_raw_check_syncookie_ipv4", _) => self.check_cookie(a, 20),
            ("tcp_raw_check_syncookie_ipv6", _) => self.check_cookie(a, 40),
            ("xdp_metadata_rx_timestamp", _) => {
                let now = self.now();
                self.put(a[1], &now.to_le_bytes())?;
                Ok(0)
            }
            ("get_prandom_u32", _) => Ok(self.random()),
            ("xdp_flow_lookup", _) => {
                let family = self.read(a[1], 1)?;
                let error = match (a[3] as u32, family) {
                    (4, Some(2 | 10)) => ENOENT,
                    (4, _) => EAFNOSUPPORT,
                    _ => EINVAL,
                };
                self.put(a[2], &(error.wrapping_neg() as i32).to_le_bytes())?;
                Ok(0)
            }
            // No interface said these.
            ("xdp_metadata_rx_hash" | "xdp_metadata_rx_vlan_tag", _) => Ok(error(EOPNOTSUPP)),
            ("get_smp_processor_id" | "spin_lock" | "spin_unlock", _) => Ok(0),
            ("trace_printk" | "trace_vprintk", _) => {
                let values = (h.name == "trace_vprintk").then_some((a[2], a[3]));
                self.line(a[0], a[1], values)
            }
            (name, _) => violation(format!("{name} has no exact meaning here")),
        }
    }

    /// Index of `len` bytes at this offset of the packet, or the error if they are not in it.
    fn part(&self, offset: u64, len: u64) -> Result<usize, u64> {
        let (from, len) = (u64::from(offset as u32), u64::from(len as u32));
        if from > MOST as u64 || len > MOST as u64 {
            return Err(error(EFAULT));
        }
        if from + len > self.packet_bytes().len() as u64 {
            return Err(error(EINVAL));
        }
        Ok(from as usize)
    }

    pub(super) fn put(&mut self, at: u64, bytes: &[u8]) -> Result<(), Violation> {
        for (i, byte) in bytes.iter().enumerate() {
            self.write(at + i as u64, 1, Some(u64::from(*byte)))?;
        }
        Ok(())
    }
}
