//! The value that this stage gives: a [`Program`].

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::contract::{Act, Does, Reach, write};
use crate::helper::Helper;
use crate::insn::Insn;
use crate::state::{self, StateKind, memory};

/// Index into [`Program::functions`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize)]
pub struct FunctionId(pub usize);

/// Index into [`Program::objects`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct ObjectId(pub usize);

/// The dialect in which a program is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Dialect {
    /// as the kernel takes it: `SEC("xdp")`, verdicts `XDP_*`
    Xdp,
    /// Millrace's handlers: `ON_PACKET` and its kin, verdicts `FORWARD`, `DROP` …
    Handlers,
}

/// Section of functions that a linker wrote: no object file has it.
pub const LINKED: &str = "millrace/linked";

/// One decoded object file.
#[derive(Clone, Debug, Serialize)]
pub struct Program {
    /// the file's stem
    pub name: String,
    /// the dialect
    pub dialect: Dialect,
    /// every function that an entry can reach, and the entries themselves
    pub functions: Vec<Function>,
    /// where execution can begin
    pub entries: Vec<Entry>,
    /// maps, globals and handler state, in file order
    pub objects: Vec<StateObject>,
    /// names of the ports, in order (`PORTS`); empty for XDP
    pub ports: Vec<String>,
    /// settings that `--set` may change before start
    pub params: Vec<Param>,
    /// names of drop reasons; index 0 is the unnamed reason `dropped`
    pub reasons: Vec<String>,
    /// text of the `license` section, empty when absent
    pub license: String,
}

impl Program {
    /// The object of a number.
    #[must_use]
    pub fn object(&self, id: ObjectId) -> Option<&StateObject> {
        self.objects.get(id.0)
    }

    /// Content of these bytes of an object in every run: those of a constant global that no parameter covers. None
    /// where a run may find something else.
    #[must_use]
    pub fn constant(&self, object: ObjectId, from: u32, bytes: u32) -> Option<&[u8]> {
        let global = self.objects.get(object.0).filter(|o| o.kind.is_global())?;
        if !global.read_only {
            return None;
        }
        let to = from.checked_add(bytes)?;
        let mut settable = self.params.iter().filter(|p| p.object == object).peekable();
        // Which bytes are set nobody has said then.
        if global.settable && settable.peek().is_none() {
            return None;
        }
        if settable.any(|p| p.offset < to && from < p.offset.saturating_add(p.bytes)) {
            return None;
        }
        global.initial.as_deref()?.get(from as usize..to as usize)
    }

    /// Whether an entry is an element of a program array from the start: what others tail-call.
    #[must_use]
    pub fn is_tail_call_target(&self, entry: usize) -> bool {
        let arrays = self.objects.iter().filter(|o| o.kind.holds_programs());
        let mut elements = arrays.filter_map(|o| o.initial.as_deref());
        // An element is the entry's number from 1, 0 for none.
        let number = u32::try_from(entry + 1).map(u32::to_le_bytes);
        elements.any(|bytes| bytes.chunks(4).any(|e| number.is_ok_and(|n| e == n)))
    }
}

/// A sequence of instructions with one way in.
#[derive(Clone, Debug, Serialize)]
pub struct Function {
    /// the symbol's name
    pub name: String,
    /// the section it stands in
    pub section: String,
    /// decoded instructions
    pub insns: Vec<Insn>,
    /// for each of `insns`, the number of its first 8-byte slot, as disassemblers count
    pub slots: Vec<u32>,
    /// for each of `insns`, the source line; inherited from the last one before it that has a record
    pub lines: Vec<Option<Line>>,
}

/// A place in the author's source.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Line {
    /// the file as the compiler recorded it
    pub file: Arc<str>,
    /// from 1
    pub line: u32,
    /// from 1; 0 when unknown
    pub column: u32,
    /// the text of the line, without its indentation
    pub text: Arc<str>,
}

impl Line {
    /// FILE:LINE, without the file's folder.
    #[must_use]
    pub fn place(&self) -> String {
        let file = std::path::Path::new(&*self.file);
        let name = file.file_name().map_or_else(
            || self.file.to_string(),
            |f| f.to_string_lossy().into_owned(),
        );
        format!("{}:{}", clean(&name), self.line)
    }
}

/// Text from an object file as text: control characters, and what turns the direction of text, are shown
/// as what they are not.
#[must_use]
pub fn clean(text: &str) -> String {
    let bad =
        |c: char| c.is_control() || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    text.replace(bad, "\u{fffd}")
}

/// Where execution begins.
#[derive(Clone, Debug, Serialize)]
pub struct Entry {
    /// what starts it
    pub role: Role,
    /// the function
    pub function: FunctionId,
}

/// Trigger of an entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// a packet, XDP dialect
    Xdp,
    /// a packet, handler dialect
    OnPacket,
    /// before the first packet
    OnStart,
    /// after the last packet
    OnStop,
    /// time
    Every {
        /// nanoseconds, at least 1
        period: u64,
    },
    /// a timer in a map's value; no program has such an entry: `check` finds which functions are set
    Timer,
    /// an entry of a packet set has expired ([`StateObject::expiry`])
    Expiry,
}

/// One state object: a map, a global section, or a handler's `MAP`, `VECTOR` …
#[derive(Clone, Debug, Serialize)]
pub struct StateObject {
    /// the author's name for it
    pub name: String,
    /// what it is; the registry is [`crate::state::KINDS`]
    pub kind: &'static StateKind,
    /// bytes of a key; 0 for kinds without one; 4 for arrays
    pub key_bytes: u32,
    /// bytes of a value as the author declared it
    pub value_bytes: u32,
    /// most entries; for a ring buffer, its bytes
    pub capacity: u64,
    /// the kernel's `map_flags`, 0 for handlers
    pub flags: u32,
    /// nanoseconds until an entry that is not refreshed is absent; 0 means never
    pub expire_after: u64,
    /// allocators: the first number leased
    pub first: u64,
    /// sketches: rows; Bloom filters: hash functions
    pub rows: u32,
    /// sketches: nanoseconds after which counts start again; 0 means never
    pub window: u64,
    /// globals: what the value holds at start, `value_bytes` long
    pub initial: Option<Vec<u8>>,
    /// classifiers: rules in force until others are set, in the form in which they are saved
    #[serde(skip)]
    pub rules: Option<Vec<u8>>,
    /// the program cannot write it (`.rodata`, `BPF_F_RDONLY_PROG`); what of it are constants, [`Program::constant`] says
    pub read_only: bool,
    /// the host may set it, between two runs (parameters in `.rodata`) or during one (entries of maps)
    pub settable: bool,
    /// its part in maps of maps, if it has one
    pub nesting: Option<Nesting>,
    /// where in a value its timer is (`struct bpf_timer`, [`TIMER_BYTES`]), if it has one
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timer: Option<u32>,
    /// nanoseconds that a read may be behind what packets on other cores did (`DISTRIBUTED`); 0: not at all
    #[serde(skip_serializing_if = "is_zero")]
    pub staleness: u64,
    /// each entry is a set of packets, those with its key (`PACKET_SET`)
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub packet_set: bool,
    /// what runs when an entry expires, at that moment (`ON_EXPIRY`): it has a packet of no bytes, and copies of the
    /// key and the value that the entry had
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expiry: Option<FunctionId>,
}

/// Whether an option is left out.
#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde hands it so")]
fn is_zero(n: &u64) -> bool {
    *n == 0
}

/// Bytes of a `struct bpf_timer`. They are always zero: what a timer is set to is kept beside the values.
pub const TIMER_BYTES: u32 = 16;

/// How an object takes part in maps of maps.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Nesting {
    /// its values are maps
    Holds {
        /// the object that says what they are like: kind, sizes and flags are the same, the capacity is
        /// that of each (but see [`StateObject::fits`])
        shape: ObjectId,
        /// which of the file's maps are there at start: index (of a hash map: the key as a `__u32`) and map
        values: Vec<(u32, ObjectId)>,
    },
    /// it is no map itself but says what the values of that one are like; its capacity is that of maps
    /// which the host makes
    Shape(ObjectId),
}

/// `BPF_F_INNER_MAP`: arrays in a map of maps may differ in their capacity.
const INNER_MAP: u32 = 1 << 12;

impl StateObject {
    /// A plain object: of these sizes (bytes) and this capacity (entries), with all else zero or absent.
    #[must_use]
    pub fn new(
        name: impl Into<String>,
        kind: &'static StateKind,
        key_bytes: u32,
        value_bytes: u32,
        capacity: u64,
    ) -> Self {
        Self {
            name: name.into(),
            kind,
            key_bytes,
            value_bytes,
            capacity,
            flags: 0,
            expire_after: 0,
            first: 0,
            rows: 0,
            window: 0,
            initial: None,
            rules: None,
            read_only: false,
            settable: false,
            nesting: None,
            timer: None,
            staleness: 0,
            packet_set: false,
            expiry: None,
        }
    }

    /// Whether programs may not read its values (`BPF_F_WRONLY_PROG`).
    #[must_use]
    pub fn is_write_only(&self) -> bool {
        self.flags & state::WRONLY_PROG != 0
    }

    /// Whether its entries say where a packet goes on: devices, CPUs, sockets or programs, by a number in their
    /// first 32 bits. Programs cannot write them.
    #[must_use]
    pub fn leads_on(&self) -> bool {
        self.kind.host_only() || self.kind.holds_programs()
    }

    /// Upper bound of a helper's effect on it: [`StateKind::does`]; timers that run are in one heap.
    #[must_use]
    pub fn does(&self, helper: &Helper) -> Option<Does> {
        let does = self.kind.does(helper)?;
        let heap = self.has_moments() && does.act == Act::Write;
        Some(if heap {
            does.or(write(Reach::Whole))
        } else {
            does
        })
    }

    /// Whether things happen in it at moments of their own: timers in its values, or entries whose expiry runs a
    /// function.
    #[must_use]
    pub fn has_moments(&self) -> bool {
        self.timer.is_some() || self.expiry.is_some()
    }

    /// Whether something is there where an entry has this value: of those that lead on 0 is nothing.
    #[must_use]
    pub fn holds(&self, value: &[u8]) -> bool {
        let first = value.first_chunk().map(|b| u32::from_le_bytes(*b));
        !self.leads_on() || first.is_some_and(|n| n != 0)
    }

    /// Whether it is only the shape of maps in another one, so that it takes no memory itself.
    #[must_use]
    pub fn is_shape(&self) -> bool {
        matches!(self.nesting, Some(Nesting::Shape(_)))
    }

    /// Description of its values, if they are maps.
    #[must_use]
    pub fn shape(&self) -> Option<ObjectId> {
        match self.nesting {
            Some(Nesting::Holds { shape, .. }) => Some(shape),
            _ => None,
        }
    }

    /// Bytes that an instance takes for it from the start.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        if self.is_shape() {
            0
        } else {
            (self.kind.bytes)(self)
        }
    }

    /// Bytes that all workers together have of it where their packets are transactions, and what each worker adds. `timed`: programs
    /// compute with the packet's time. None of what is no map, allocator
    /// or vector: that is as under the lock.
    #[must_use]
    pub fn transacted_bytes(&self, timed: bool) -> Option<(u64, u64)> {
        let keyed = self.kind.c == "hash" && !self.kind.per_cpu && !self.has_moments();
        let common = match keyed {
            true => memory::transacted(self, timed),
            false if self.kind.leases() || self.kind.c == "vector" => {
                memory::transacted_leases(self, timed)
            }
            false => return None,
        };
        Some((common, memory::transacted_per_worker(self)))
    }

    /// Bytes that each worker beyond the first adds where all share it under the lock: stamps of its own of what expires.
    #[must_use]
    pub fn locked_bytes_per_worker(&self) -> u64 {
        let stamped = (self.kind.c == "hash" || self.kind.leases()) && !self.kind.per_cpu;
        if stamped { memory::stamps(self) } else { 0 }
    }

    /// Whether all maps of this shape have its capacity (kernel/bpf/arraymap.c array_map_meta_equal).
    #[must_use]
    pub fn one_capacity(&self) -> bool {
        self.kind.has_all() && self.flags & INNER_MAP == 0
    }

    /// Whether it can be a value where `shape` says what values are like (kernel/bpf/map_in_map.c
    /// bpf_map_meta_equal; of Bloom filters the number of hash functions, too).
    #[must_use]
    pub fn fits(&self, shape: &StateObject) -> bool {
        let alike = |o: &StateObject| (o.key_bytes, o.value_bytes, o.flags, o.rows, o.timer);
        self.nesting.is_none()
            && self.kind == shape.kind
            && alike(self) == alike(shape)
            && (!shape.one_capacity() || self.capacity == shape.capacity)
    }
}

/// A setting: `PARAM(type, name, default)`, or a `const volatile` global of an XDP program.
#[derive(Clone, Debug, Serialize)]
pub struct Param {
    /// its name
    pub name: String,
    /// the object whose value holds it
    pub object: ObjectId,
    /// offset in bytes in that value
    pub offset: u32,
    /// 1, 2, 4 or 8
    pub bytes: u32,
    /// whether its type is signed
    pub signed: bool,
    /// the type as the author wrote it
    pub type_name: String,
}
