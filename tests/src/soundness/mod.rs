//! Random programs, and whether what the checker admits does the same in the reference interpreter and
//! in the emitted code under sanitizers.

pub mod batch;
mod callee;
pub mod generate;
pub mod mutate;

use millrace_object::insn::Insn;
use millrace_object::program::{
    Dialect, Entry, Function, FunctionId, Nesting, ObjectId, Program, Role, StateObject,
};
use millrace_object::state;

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

/// The objects that all programs share.
#[must_use]
pub fn objects() -> Vec<StateObject> {
    let object = |name: &str, kind: &str, key_bytes, value_bytes, capacity| StateObject {
        name: name.to_owned(),
        kind: state::by_name(kind).unwrap_or(&state::global::KIND),
        key_bytes,
        value_bytes,
        capacity,
        flags: 0,
        expire_after: 0,
        first: 0,
        rows: 0,
        window: 0,
        initial: None,
        read_only: false,
        settable: false,
        nesting: None,
        timer: None,
    };
    let mut objects = vec![
        object("table", "hash", 8, 16, 6),
        object("elements", "array", 4, 16, 5),
        object("page", "global", 0, 32, 1),
        object("ring", "ringbuf", 0, 0, 1 << 16),
        object("trace", "global", 0, 8, 1),
        object("constant", "global", 0, 16, 1),
        object("queue", "queue", 0, 12, 3),
        object("filter", "bloom_filter", 0, 12, 1 << 20),
        object("holder", "array_of_maps", 4, 4, 5),
        object("holder.maps", "hash", 8, 16, 6),
        object("second", "hash", 8, 16, 9),
        object("large", "hash", 12, 24, 7),
    ];
    let shape = ObjectId(HOLDER.0 + 1);
    for (id, object) in objects.iter_mut().enumerate() {
        if object.kind.membership() {
            object.rows = 5;
        } else if id == HOLDER.0 {
            let values = vec![(0, TABLE), (1, SECOND), (4, TABLE)];
            object.nesting = Some(Nesting::Holds { shape, values });
        } else if id == shape.0 {
            object.nesting = Some(Nesting::Shape(HOLDER));
        }
    }
    for object in objects.iter_mut().filter(|o| o.kind.name == "global") {
        object.initial = Some((1..=object.value_bytes as u8).collect());
        object.read_only = object.name == "constant";
    }
    objects
}

/// How many functions come before the entries: those that they may call, or have called back.
pub const CALLEES: usize = 4;

/// A program of these entries; entry `i` is function `CALLEES + i`.
#[must_use]
pub fn program(bodies: &[Vec<Insn>]) -> Program {
    let callees = callee::all();
    let function = |(i, insns): (usize, &Vec<Insn>)| Function {
        name: format!("f{i}"),
        section: "xdp".into(),
        insns: insns.clone(),
        slots: (0..insns.len() as u32).collect(),
        lines: vec![None; insns.len()],
    };
    Program {
        name: "generated".into(),
        dialect: Dialect::Xdp,
        functions: callees
            .iter()
            .chain(bodies)
            .enumerate()
            .map(function)
            .collect(),
        entries: (0..bodies.len())
            .map(|f| Entry {
                role: Role::Xdp,
                function: FunctionId(CALLEES + f),
            })
            .collect(),
        objects: objects(),
        ports: Vec::new(),
        params: Vec::new(),
        reasons: vec!["dropped".into()],
        license: String::new(),
    }
}

/// A program as text, an instruction a line.
#[must_use]
pub fn text(insns: &[Insn]) -> String {
    let line = |(i, insn): (usize, &Insn)| format!("{i:4}: {insn}");
    insns
        .iter()
        .enumerate()
        .map(line)
        .collect::<Vec<_>>()
        .join("\n")
}
