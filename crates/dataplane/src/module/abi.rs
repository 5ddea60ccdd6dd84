//! `fastpath/abi.h`, mirrored field by field.
//!
//! Nothing outside [`crate::module`] and [`crate::packet`] sees these types. The test at the end
//! compiles the header and compares every size and offset, so a change on one side cannot pass
//! unnoticed.

use std::ffi::{c_char, c_int, c_void};

/// The version this mirror speaks: `MR_ABI`.
pub const ABI: u32 = 15;

/// `enum mr_fate`.
pub mod fate {
    /// the program said so, or its verdict does not exist
    pub const ABORTED: u32 = 0;
    /// `out` is the reason
    pub const DROP: u32 = 1;
    /// to the host's own stack
    pub const PASS: u32 = 2;
    /// `out` is the port
    pub const FORWARD: u32 = 3;
    /// to every port but the ingress port
    pub const FLOOD: u32 = 4;
    /// taken by the program
    pub const CONSUME: u32 = 5;
}

/// `struct mr_packet`.
#[repr(C)]
#[derive(Debug)]
pub struct Packet {
    /// first byte of the frame
    pub data: *mut u8,
    /// one past its last byte
    pub end: *mut u8,
    /// start of the metadata
    pub meta: *mut u8,
    /// lowest address of `meta`
    pub floor: *mut u8,
    /// highest address of `end`
    pub ceiling: *mut u8,
    /// the module's scratch: the lowest address that `meta` has had
    pub bared: *mut u8,
    /// ns since the epoch
    pub time: u64,
    /// ingress number
    pub number: u64,
    /// ingress port
    pub port: u32,
    /// ingress queue
    pub queue: u32,
    /// how many ports there are
    pub ports: u32,
    /// the worker
    pub cpu: u32,
    /// one of [`fate`]
    pub fate: u32,
    /// port or reason
    pub out: u32,
    /// the module's scratch
    pub redirect: u32,
    /// the module's scratch, cleared by the host
    pub draws: u32,
    /// where workers share state: its place in the order of packets; where it is replicated, `crate::replica::Place`
    pub commit: u64,
    /// the module's scratch
    pub undo: *mut c_void,
    /// the module's scratch
    pub core: u32,
    /// the index of the indirection table that brought it to its worker
    pub home: u32,
}

/// The latest time that programs see, ns since the epoch: the clocks promise never to be negative as signed numbers
/// (`ktime_get_ns` and its like), and `check` relies on it. Stamps are whatever a capture, a NIC or a test says: who reads
/// them (crates/traffic, the worker, packet tests) lets none through that is later.
pub const LATEST: u64 = i64::MAX as u64;

impl Packet {
    /// A descriptor of nothing, with fate `ABORTED`.
    pub const fn empty() -> Self {
        Self {
            data: std::ptr::null_mut(),
            end: std::ptr::null_mut(),
            meta: std::ptr::null_mut(),
            floor: std::ptr::null_mut(),
            ceiling: std::ptr::null_mut(),
            bared: std::ptr::null_mut(),
            time: 0,
            number: 0,
            port: 0,
            queue: 0,
            ports: 0,
            cpu: 0,
            fate: fate::ABORTED,
            out: 0,
            redirect: 0,
            draws: 0,
            commit: 0,
            undo: std::ptr::null_mut(),
            core: 0,
            home: 0,
        }
    }
}

/// `enum mr_access_what`.
pub mod accessed {
    /// a word had this version
    pub const READ: u32 = 0;
    /// a word has had it since
    pub const WRITE: u32 = 1;
    /// an entry was removed for its age
    pub const EXPIRED: u32 = 2;
    /// ends what a packet did beside others
    pub const PACKET: u32 = 3;
    /// ends what a packet did alone
    pub const ALONE: u32 = 4;
    /// ends a decision over an entry's expiry
    pub const EVENT: u32 = 5;
}

/// `struct mr_instance`: only the module knows what is in it.
#[repr(C)]
pub struct Instance {
    opaque: [u8; 0],
}

/// `struct mr_shared`: as [`Instance`].
#[repr(C)]
pub struct Shared {
    opaque: [u8; 0],
}

/// `struct mr_config`.
#[repr(C)]
pub struct Config {
    /// secret seed of the hash tables
    pub hash_seed: u64,
    /// recorded seed of sketches and draws
    pub sketch_seed: u64,
    /// ns, time of the first packet
    pub time: u64,
    /// per object: its content at start, or null for zeros
    pub initial: *const *const u8,
    /// made by `create_shared`, or null
    pub shared: *mut Shared,
    /// how many instances share it
    pub workers: u32,
    /// this one, below `workers`
    pub worker: u32,
    /// per object: of each number of an allocator the `home` of packets that carry it, or null; or null for all
    pub homes: *const *const u32,
}

/// `mr_record_fn`.
pub type RecordFn = unsafe extern "C" fn(*mut c_void, u32, *const u8, u64);

/// `struct mr_saved`.
#[repr(C)]
pub struct Saved {
    /// `enum mr_saved_what`
    pub what: u32,
    /// the function of an entry's timer
    pub callback: u32,
    /// where it belongs
    pub place: u64,
    /// last refresh
    pub stamp: u64,
    /// by when it is looked at again
    pub bound: u64,
    /// when its timer fires
    pub due: u64,
    /// which timer that is
    pub order: u64,
    /// bytes, or places
    pub length: u64,
    /// `key_bytes`, or null
    pub key: *const u8,
    /// `length` bytes, or null
    pub value: *const u8,
}

/// `mr_saved_fn`.
pub type SavedFn = unsafe extern "C" fn(*mut c_void, *const Saved) -> c_int;

/// `struct mr_object`.
#[repr(C)]
pub struct Object {
    /// zero-terminated
    pub name: *const c_char,
    /// zero-terminated
    pub kind: *const c_char,
    /// bytes of a key
    pub key_bytes: u32,
    /// bytes of a value
    pub value_bytes: u32,
    /// most entries
    pub capacity: u64,
    /// memory mapped by `create`
    pub bytes: u64,
    /// live entries
    pub count: Option<unsafe extern "C" fn(*mut Instance, u64) -> u64>,
    /// reads an entry
    pub get: Option<unsafe extern "C" fn(*mut Instance, *const u8, *mut u8, u64) -> c_int>,
    /// writes an entry
    pub set: Option<unsafe extern "C" fn(*mut Instance, *const u8, *const u8, u64) -> c_int>,
    /// removes an entry
    pub remove: Option<unsafe extern "C" fn(*mut Instance, *const u8, u64) -> c_int>,
    /// steps a cursor
    pub next: Option<unsafe extern "C" fn(*mut Instance, *mut u64, *mut u8, *mut u8, u64) -> c_int>,
    /// insertions that found every place taken
    pub full: Option<unsafe extern "C" fn(*mut Instance, u64) -> u64>,
    /// places taken
    pub used: Option<unsafe extern "C" fn(*mut Instance, u64) -> u64>,
    /// hands over records
    pub drain: Option<unsafe extern "C" fn(*mut Instance, u32, RecordFn, *mut c_void)>,
    /// hands over all of its content
    pub save: Option<unsafe extern "C" fn(*mut Instance, SavedFn, *mut c_void) -> c_int>,
    /// takes the next piece of a content
    pub load: Option<unsafe extern "C" fn(*mut Instance, *const Saved, u64) -> c_int>,
    /// hands over entries by place
    pub list: Option<unsafe extern "C" fn(*mut Instance, u64, u64, SavedFn, *mut c_void) -> c_int>,
    /// puts in an entry of another instance
    pub put: Option<unsafe extern "C" fn(*mut Instance, *const Saved, u64) -> c_int>,
    /// puts a table of rules in force
    pub attach: Option<unsafe extern "C" fn(*mut Instance, *const c_void) -> c_int>,
    /// hands over places that have changed
    pub changes:
        Option<unsafe extern "C" fn(*mut Instance, u64, u64, u64, SavedFn, *mut c_void) -> u64>,
    /// 1: one for all workers
    pub shared: u32,
    /// nothing
    pub unused: u32,
    /// numbers in its value of which the largest part counts, a bit each
    pub max: u64,
    /// numbers in its value of which the bits of all parts count
    pub or: u64,
}

/// `struct mr_timer`.
#[repr(C)]
pub struct Timer {
    /// ns
    pub period: u64,
    /// what to call
    pub fire: Option<Handler>,
    /// 1: one worker calls it for all
    pub once: u32,
    /// nothing
    pub unused: u32,
}

/// `struct mr_alarms`.
#[repr(C)]
pub struct Alarms {
    /// ns
    pub next: u64,
    /// how often one has fired
    pub fired: u64,
}

/// `start`, `stop`, `fire`, `alarm`.
pub type Handler = unsafe extern "C" fn(*mut Instance, *mut Packet);

/// `burst`.
pub type Burst = unsafe extern "C" fn(*mut Instance, *const *mut Packet, u32);

/// `struct mr_module`.
#[repr(C)]
pub struct Module {
    /// [`ABI`]
    pub abi: u32,
    /// length of `object`
    pub objects: u32,
    /// length of `timer`
    pub timers: u32,
    /// length of `burst` and `burst_plain`
    pub programs: u32,
    /// size of an instance
    pub instance_bytes: u64,
    /// its alignment
    pub instance_align: u64,
    /// the state objects
    pub object: *const Object,
    /// the timers
    pub timer: *const Timer,
    /// makes the state
    pub create: Option<unsafe extern "C" fn(*mut Instance, *const Config) -> c_int>,
    /// releases it
    pub destroy: Option<unsafe extern "C" fn(*mut Instance)>,
    /// `ON_START`
    pub start: Option<Handler>,
    /// `ON_STOP`
    pub stop: Option<Handler>,
    /// one function a packet entry
    pub burst: *const Option<Burst>,
    /// the same without prefetching
    pub burst_plain: *const Option<Burst>,
    /// the timers in the values of maps
    pub alarms: Option<unsafe extern "C" fn(*mut Instance) -> *const Alarms>,
    /// fires those that are due
    pub alarm: Option<Handler>,
    /// size of what instances have in common; 0: nothing
    pub shared_bytes: u64,
    /// its alignment
    pub shared_align: u64,
    /// makes it, before any instance
    pub create_shared: Option<unsafe extern "C" fn(*mut Shared, *const Config) -> c_int>,
    /// releases it, behind all instances
    pub destroy_shared: Option<unsafe extern "C" fn(*mut Shared)>,
    /// 1: one worker calls `start` for all
    pub start_once: u32,
    /// 1: one worker calls `stop` for all
    pub stop_once: u32,
    /// how replicas are kept alike; null where state is not replicated
    pub history: *const History,
    /// of packets that are transactions; null where they are none
    pub transact: *const Transact,
    /// of workers that share state; null but in modules for profiles
    pub profile: *const Profile,
    /// of numbers of which each worker has a part; null in modules that are not for tests
    pub parts: *const Parts,
}

/// `struct mr_profile`.
#[repr(C)]
pub struct Profile {
    /// length of `site`
    pub sites: u32,
    /// 0
    pub unused: u32,
    /// steps in words, with tabs
    pub site: *const *const c_char,
    /// hands over what was counted
    pub conflicts: Option<unsafe extern "C" fn(*mut Instance, ConflictFn, *mut c_void)>,
}

/// `mr_conflict_fn`.
pub type ConflictFn = unsafe extern "C" fn(*mut c_void, *const Conflict);

/// `struct mr_conflict`.
#[repr(C)]
pub struct Conflict {
    /// the packet's step, by its place among the sites
    pub mine: u32,
    /// the other core's; `u32::MAX`: unknown
    pub theirs: u32,
    /// `enum mr_conflict_what`
    pub what: u32,
    /// bytes of `key`
    pub key_bytes: u32,
    /// how often
    pub count: u64,
    /// ticks of waiting
    pub ticks: u64,
    /// how many more at `key` than not
    pub votes: u64,
    /// the key that was met most; null: none
    pub key: *const u8,
}

/// `struct mr_parts_seen`.
#[repr(C)]
pub struct PartsSeen {
    /// its place among the objects
    pub object: u32,
    /// length of `own` and `others`
    pub members: u32,
    /// length of `versions`; 0: it is one copy
    pub workers: u32,
    /// 1: the packet has read it
    pub read: u32,
    /// ns
    pub at: u64,
    /// of its own part
    pub version: u64,
    /// its own part
    pub own: *const u64,
    /// those of the others as one
    pub others: *const u64,
    /// of these, by worker
    pub versions: *const u64,
}

/// `mr_parts_fn`.
pub type PartsFn = unsafe extern "C" fn(*mut c_void, *const PartsSeen);

/// `struct mr_parts`.
#[repr(C)]
#[derive(Debug)]
pub struct Parts {
    /// tells what each object holds
    pub note: Option<unsafe extern "C" fn(*mut Instance, PartsFn, *mut c_void)>,
    /// from here on an object holds this
    pub feed: Option<unsafe extern "C" fn(*mut Instance, u32, *const u64, *const u64) -> c_int>,
}

/// `struct mr_transact_counts`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct TransactCounts {
    /// packets that committed beside others
    pub commits: u64,
    /// attempts that did not commit
    pub aborts: u64,
    /// attempts before which the packet took all words that it had met
    pub holds: u64,
    /// packets that ran as the only one at work
    pub alone: u64,
    /// waits for other cores' packets
    pub graces: u64,
}

/// `struct mr_access`.
#[repr(C)]
pub struct Access {
    /// `enum mr_access_what`
    pub what: u32,
    /// the packet's time may not be before that of the version's writer
    pub timed: u32,
    /// a map's place among the objects
    pub object: u32,
    /// bytes of `key`
    pub key_bytes: u32,
    /// which word
    pub word: u64,
    /// its version, or how many packets had run alone
    pub version: u64,
    /// the packet's
    pub number: u64,
    /// ns
    pub time: u64,
    /// of an entry that was removed
    pub key: *const u8,
}

/// `mr_access_fn`.
pub type AccessFn = unsafe extern "C" fn(*mut c_void, *const Access);

/// `struct mr_transact`.
#[repr(C)]
#[derive(Debug)]
pub struct Transact {
    /// length of `why`
    pub whys: u32,
    /// nothing
    pub unused: u32,
    /// reasons to run alone, zero-terminated
    pub why: *const *const c_char,
    /// what an instance has counted
    pub counts: Option<unsafe extern "C" fn(*mut Instance) -> *const TransactCounts>,
    /// packets that ran alone, by reason
    pub alone: Option<unsafe extern "C" fn(*mut Instance) -> *const u64>,
    /// hands over what was noted
    pub accesses: Option<unsafe extern "C" fn(*mut Instance, AccessFn, *mut c_void)>,
}

/// How replicas are kept alike.
#[repr(C)]
#[derive(Debug)]
pub struct History {
    /// bytes of a row
    pub bytes: u32,
    /// bits of the time, at a row's start
    pub time_bits: u32,
    /// fills a packet's row; 0: it has none
    pub extract: Option<unsafe extern "C" fn(*mut Instance, u32, *const Packet, *mut u8) -> u32>,
    /// runs a program on a packet with its row
    pub process: Option<unsafe extern "C" fn(*mut Instance, u32, *mut Packet, *const u8, u64)>,
    /// does to state what the packets of rows do
    pub replay: Option<Replay>,
    /// the same row by row
    pub replay_plain: Option<Replay>,
    /// both for successive places of the order, where either a packet or its row is null
    pub burst: Option<Mixed>,
}

/// Program, packets, rows, how many, the number of the first row, time and number of a packet near them.
type Mixed = unsafe extern "C" fn(
    *mut Instance,
    u32,
    *const *mut Packet,
    *const *const u8,
    u32,
    u64,
    u64,
    u64,
) -> c_int;

/// Rows, how many, the number of the first, time and number of a packet near them.
type Replay = unsafe extern "C" fn(*mut Instance, *const u8, u32, u64, u64, u64) -> c_int;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;
    use millrace_state::What;
    use std::fmt::Write as _;
    use std::mem::{offset_of, size_of};

    #[test]
    fn layout_equals_the_header() {
        let mut rust: Vec<(String, usize)> = Vec::new();
        let mut c = String::from(
            "#include <stdio.h>\n#include \"abi.h\"\n\
             #define S(t) printf(#t \" %zu\\n\", sizeof(struct t));\n\
             #define O(t, f) printf(#t \".\" #f \" %zu\\n\", offsetof(struct t, f));\n\
             #define E(n) printf(#n \" %d\\n\", (int)n);\nint main(void) {\n",
        );
        macro_rules! layout {
            ($c:literal, $t:ty, $($field:ident),*) => {
                rust.push(($c.to_string(), size_of::<$t>()));
                writeln!(c, "S({})", $c).unwrap();
                $(
                    rust.push((format!("{}.{}", $c, stringify!($field)), offset_of!($t, $field)));
                    writeln!(c, "O({}, {})", $c, stringify!($field)).unwrap();
                )*
            };
        }
        layout!(
            "mr_packet",
            Packet,
            data,
            end,
            meta,
            floor,
            ceiling,
            bared,
            time,
            number,
            port,
            queue,
            ports,
            cpu,
            fate,
            out,
            redirect,
            draws,
            commit,
            undo,
            core,
            home
        );
        layout!(
            "mr_config",
            Config,
            hash_seed,
            sketch_seed,
            time,
            initial,
            shared,
            workers,
            worker,
            homes
        );
        layout!(
            "mr_object",
            Object,
            name,
            kind,
            key_bytes,
            value_bytes,
            capacity,
            bytes,
            count,
            get,
            set,
            remove,
            next,
            full,
            used,
            drain,
            save,
            load,
            list,
            attach,
            changes,
            shared,
            unused,
            max,
            or
        );
        layout!(
            "mr_saved", Saved, what, callback, place, stamp, bound, due, order, length, key, value
        );
        layout!("mr_timer", Timer, period, fire, once, unused);
        layout!("mr_alarms", Alarms, next, fired);
        layout!(
            "mr_module",
            Module,
            abi,
            objects,
            timers,
            programs,
            instance_bytes,
            instance_align,
            object,
            timer,
            create,
            destroy,
            start,
            stop,
            burst,
            burst_plain,
            alarms,
            alarm,
            shared_bytes,
            shared_align,
            create_shared,
            destroy_shared,
            start_once,
            stop_once,
            history,
            transact,
            profile,
            parts
        );
        layout!("mr_profile", Profile, sites, unused, site, conflicts);
        layout!(
            "mr_conflict",
            Conflict,
            mine,
            theirs,
            what,
            key_bytes,
            count,
            ticks,
            votes,
            key
        );
        layout!(
            "mr_parts_seen",
            PartsSeen,
            object,
            members,
            workers,
            read,
            at,
            version,
            own,
            others,
            versions
        );
        layout!("mr_parts", Parts, note, feed);
        layout!(
            "mr_transact_counts",
            TransactCounts,
            commits,
            aborts,
            holds,
            alone,
            graces
        );
        layout!(
            "mr_access",
            Access,
            what,
            timed,
            object,
            key_bytes,
            word,
            version,
            number,
            time,
            key
        );
        layout!(
            "mr_transact",
            Transact,
            whys,
            unused,
            why,
            counts,
            alone,
            accesses
        );
        layout!(
            "mr_history",
            History,
            bytes,
            time_bits,
            extract,
            process,
            replay,
            replay_plain,
            burst
        );
        for (name, value) in [
            ("MR_ABI", ABI),
            ("MR_ACCESS_READ", accessed::READ),
            ("MR_ACCESS_WRITE", accessed::WRITE),
            ("MR_ACCESS_EXPIRED", accessed::EXPIRED),
            ("MR_ACCESS_PACKET", accessed::PACKET),
            ("MR_ACCESS_ALONE", accessed::ALONE),
            ("MR_ACCESS_EVENT", accessed::EVENT),
            ("MR_SAVED_HEAD", What::Head as u32),
            ("MR_SAVED_ENTRY", What::Entry as u32),
            ("MR_SAVED_FREE", What::Free as u32),
            ("MR_SAVED_BYTES", What::Bytes as u32),
            ("MR_SAVED_END", What::End as u32),
            ("MR_ABORTED", fate::ABORTED),
            ("MR_DROP", fate::DROP),
            ("MR_PASS", fate::PASS),
            ("MR_FORWARD", fate::FORWARD),
            ("MR_FLOOD", fate::FLOOD),
            ("MR_CONSUME", fate::CONSUME),
        ] {
            rust.push((name.to_string(), value as usize));
            writeln!(c, "E({name})").unwrap();
        }
        c.push_str("return 0; }\n");

        let printed = testing::compile_and_run(&c);
        let expected: String = rust.iter().map(|(n, v)| format!("{n} {v}\n")).collect();
        assert_eq!(printed, expected);
    }
}
