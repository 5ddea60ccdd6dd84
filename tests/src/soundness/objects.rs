//! The state objects that all generated programs share.

use millrace_object::helper::Helper;
use millrace_object::program::{Nesting, ObjectId, StateObject};
use millrace_object::state::{
    StateKind, allocator, array, array_of_maps, bloom_filter, classifier, cpumap, devmap,
    devmap_hash, distributed, global, hash, hash_of_maps, lpm, lpm_trie, lru_hash, lru_percpu_hash,
    map, percpu_array, percpu_hash, perf_event_array, prog_array, queue, ringbuf, routes, sketch,
    stack, vector, xskmap,
};

/// Key 8, value 16 bytes, few places: full soon.
pub const TABLE: ObjectId = ObjectId(0);
/// 5 elements of 16 bytes.
pub const ELEMENTS: ObjectId = ObjectId(1);
/// A global of 32 bytes.
pub const PAGE: ObjectId = ObjectId(2);
/// A ring buffer.
pub const RING: ObjectId = ObjectId(3);
/// A global of 8 bytes, into which each program puts its registers at the end.
pub const TRACE: ObjectId = ObjectId(4);
/// A constant of 16 bytes.
pub const CONSTANT: ObjectId = ObjectId(5);
/// Three values of 12 bytes.
pub const QUEUE: ObjectId = ObjectId(6);
/// A Bloom filter of values of 12 bytes, large enough not to err.
pub const FILTER: ObjectId = ObjectId(7);
/// An array of maps; [`TABLE`] is one of them.
pub const HOLDER: ObjectId = ObjectId(8);
/// Like [`TABLE`], with room for more.
pub const SECOND: ObjectId = ObjectId(10);
/// Key 12, value 24 bytes.
pub const LARGE: ObjectId = ObjectId(11);
/// Key 8, value 32 bytes, with a timer at byte 8.
pub const ALARMS: ObjectId = ObjectId(12);
/// 3 elements of 24 bytes, with a timer at their start.
pub const TICKS: ObjectId = ObjectId(13);
/// Programs: the first one, under index 1.
pub const ONWARD: ObjectId = ObjectId(14);
/// Constant strings.
pub const FORMATS: ObjectId = ObjectId(15);
/// The same with a conversion that reads memory.
pub const READING: ObjectId = ObjectId(16);

/// A hash of maps; [`ELEMENTS`] is one of them.
pub const TABLES: ObjectId = ObjectId(17);

/// Like [`ALARMS`], but that entries are evicted.
pub const FADING: ObjectId = ObjectId(19);

/// What the maps in [`HOLDER`] and [`TABLES`] are like.
const HELD: ObjectId = ObjectId(9);
const HASH_HELD: ObjectId = ObjectId(18);

/// What [`FORMATS`] holds, each with a zero byte behind it.
pub const TEXTS: [&str; 4] = ["%d and %08llx", "", "plain", "%5u|%-6x|%c%%"];

/// The objects.
#[must_use]
pub fn all() -> Vec<StateObject> {
    let object = |name: &str, kind: &'static StateKind, key_bytes, value_bytes, capacity| {
        StateObject::new(name, kind, key_bytes, value_bytes, capacity)
    };
    let text = |texts: &[&str]| -> Vec<u8> {
        let bytes = texts.iter().flat_map(|t| t.bytes().chain([0]));
        bytes.collect()
    };
    let global = |name: &str, initial: Vec<u8>, read_only| StateObject {
        read_only,
        initial: Some(initial.clone()),
        ..object(name, &global::KIND, 0, initial.len() as u32, 1)
    };
    let timed = |at, o: StateObject| StateObject {
        timer: Some(at),
        ..o
    };
    let nested = |nesting, o: StateObject| StateObject {
        nesting: Some(nesting),
        ..o
    };
    let holds = |shape: ObjectId, values: Vec<(u32, ObjectId)>| Nesting::Holds { shape, values };
    vec![
        object("table", &hash::KIND, 8, 16, 6),
        object("elements", &array::KIND, 4, 16, 5),
        global("page", (1..=32).collect(), false),
        object("ring", &ringbuf::KIND, 0, 0, 1 << 16),
        global("trace", (1..=8).collect(), false),
        global("constant", (1..=16).collect(), true),
        object("queue", &queue::KIND, 0, 12, 3),
        StateObject {
            rows: 5,
            ..object("filter", &bloom_filter::KIND, 0, 12, 1 << 20)
        },
        nested(
            holds(HELD, vec![(0, TABLE), (1, SECOND), (4, TABLE)]),
            object("holder", &array_of_maps::KIND, 4, 4, 5),
        ),
        nested(
            Nesting::Shape(HOLDER),
            object("holder.maps", &hash::KIND, 8, 16, 6),
        ),
        object("second", &hash::KIND, 8, 16, 9),
        object("large", &hash::KIND, 12, 24, 7),
        timed(8, object("alarms", &hash::KIND, 8, 32, 6)),
        timed(0, object("ticks", &array::KIND, 4, 24, 3)),
        StateObject {
            initial: Some([0_u32, 1, 0, 0].map(u32::to_le_bytes).concat()),
            ..object("onward", &prog_array::KIND, 4, 4, 4)
        },
        global("formats", text(&TEXTS), true),
        global("reading", text(&["%s"]), true),
        nested(
            holds(HASH_HELD, vec![(0, ELEMENTS), (7, ELEMENTS)]),
            object("tables", &hash_of_maps::KIND, 4, 4, 3),
        ),
        nested(
            Nesting::Shape(TABLES),
            object("tables.maps", &array::KIND, 4, 16, 5),
        ),
        timed(8, object("fading", &lru_hash::KIND, 8, 32, 3)),
        object("stack", &stack::KIND, 0, 16, 3),
        object("recent", &lru_hash::KIND, 8, 16, 4),
        object("percpu", &percpu_array::KIND, 4, 16, 4),
        object("percpu_table", &percpu_hash::KIND, 8, 16, 5),
        object("percpu_recent", &lru_percpu_hash::KIND, 8, 16, 4),
        StateObject {
            flags: 1,
            ..object("prefixes", &lpm_trie::KIND, 8, 16, 6)
        },
        object("events", &perf_event_array::KIND, 4, 4, 2),
        object("devices", &devmap::KIND, 4, 4, 3),
        object("links", &devmap_hash::KIND, 4, 4, 3),
        object("processors", &cpumap::KIND, 4, 4, 2),
        object("sockets", &xskmap::KIND, 4, 4, 2),
        StateObject {
            expire_after: 100,
            ..object("flows", &map::KIND, 8, 16, 4)
        },
        object("lasting", &map::KIND, 4, 16, 4),
        object("vector", &vector::KIND, 8, 16, 4),
        StateObject {
            expire_after: 200,
            first: 2,
            ..object("leases", &allocator::KIND, 4, 16, 3)
        },
        // Wide enough not to err.
        StateObject {
            rows: 4,
            window: 500,
            ..object("sketch", &sketch::KIND, 8, 4, 1 << 16)
        },
        object("addresses", &lpm::KIND, 4, 16, 5),
        StateObject {
            rows: 4,
            ..object("classes", &classifier::KIND, 8, 4, 16)
        },
        object("distributed", &distributed::KIND, 4, 24, 1),
        routes::object(16),
    ]
}

/// The member that a helper of DISTRIBUTED names, as a constant: each of them is changed by one operator.
#[must_use]
pub fn member(helper: &Helper) -> Option<i64> {
    match helper.name {
        "distributed_add" | "distributed_read" => Some(0),
        "distributed_max" => Some(1),
        "distributed_or" => Some(2),
        _ => None,
    }
}

/// The objects that a helper may be given, by number; those that hold or are found in others left out.
#[must_use]
pub fn of(helper: &Helper) -> Vec<(ObjectId, StateObject)> {
    (0..)
        .map(ObjectId)
        .zip(all())
        .filter(|(_, o)| helper.takes_object() && o.does(helper).is_some() && o.nesting.is_none())
        .collect()
}
