//! The knowledge about one path through the program so far.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use millrace_check::facts::FrameId;
use millrace_object::insn::REGISTERS;
use millrace_object::program::{Line, ObjectId};
use serde::{Deserialize, Serialize};

use crate::expr::eval::Assignment;
use crate::expr::{ExprId, Origin};
use crate::model::Effect;
use crate::names;

/// Memory that a pointer leads into.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Region {
    /// the packet
    Packet,
    /// the context
    Context,
    /// a frame's stack; offsets are from `r10`
    Stack(FrameId),
    /// a value of a state object, or a record: index into [`State::places`]
    Place(usize),
}

/// Contents of a register.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Value {
    /// nothing that may be read
    Unset,
    /// a number of 64 bits
    Num(ExprId),
    /// a pointer and its offset of 64 bits
    Ptr(Region, ExprId),
    /// a state object
    Object(ObjectId),
    /// a map that was found in another one: what it is like, and the 32-bit number that says which it is
    Inner(ObjectId, ExprId),
}

/// A byte of stack.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cell {
    /// a number's byte
    Byte(ExprId),
    /// this byte of a pointer
    Part(Value, u8),
}

/// Whether an entry is there.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Presence {
    /// nobody has looked
    Open,
    /// yes
    There,
    /// no
    Absent,
}

/// An entry that the path deleted: its value can be read and written until an entry is added, which may take its place.
pub(super) const DELETED: &str = "its entry was deleted";

/// A deleted entry whose place may have been taken.
pub(super) const REPLACED: &str = "its entry was deleted and another may have taken its place";

/// One entry of a state object that the path has touched.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Place {
    /// the object
    pub object: ObjectId,
    /// the key's bytes in memory order; an index's, too; empty for globals and records
    pub key: Vec<ExprId>,
    /// begins the names of what was there before
    pub stem: String,
    /// what the path has written, by offset
    pub bytes: BTreeMap<u32, ExprId>,
    /// whether it is there
    pub presence: Presence,
    /// what is not written is zero
    pub fresh: bool,
    /// why no key leads here any more; a pointer to its value is good no longer, unless this is "its entry was deleted"
    #[serde(with = "names::maybe")]
    pub lapsed: Option<names::Name>,
    /// how often its presence became open again
    pub doubts: u32,
    /// the path deleted it, and nothing has been added since in its stead: the object has room for one more
    pub room: bool,
    /// the slot of the object that it was found in
    pub slot: Option<u64>,
    /// a loop of the path that was taken for any number of turns may have changed it before the path came to it
    pub turned: bool,
}

/// Where a redirect leads.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Target {
    /// to an interface, by its index
    Interface(ExprId),
    /// to what an entry of this object says; the key's bytes in memory order
    Entry(ObjectId, Vec<ExprId>),
    /// to what all entries of this object say
    All(ObjectId),
}

/// Where the packet is now, in 64-bit offsets from its first byte as it came in.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Borders {
    /// the metadata's first byte
    pub meta: ExprId,
    /// the packet's first byte
    pub start: ExprId,
    /// one past its last byte
    pub end: ExprId,
    /// from where on a helper has changed it to bytes of which nothing is said
    pub changed: Option<Changed>,
}

/// A change of all bytes from some offset on.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Changed {
    /// the first of them
    pub from: ExprId,
    /// which change of the path it is
    pub number: u32,
}

/// One access to state.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Access {
    /// the object
    pub object: ObjectId,
    /// which of the object's entries that the path touches, from 1, as in the names of symbols; 0 where
    /// there is no key
    pub entry: u32,
    /// the helper's name, `load`, `store` or `atomic`
    #[serde(with = "names")]
    pub operation: names::Name,
    /// what it does
    pub effect: Effect,
    /// the key's bytes in memory order
    pub key: Vec<ExprId>,
    /// what is written, in memory order
    pub value: Vec<ExprId>,
    /// first byte of the value that is touched, for loads and stores
    pub offset: Option<u32>,
    /// how many bytes of the value are touched, for loads and stores
    pub bytes: u32,
    /// of an array whose element is computed the element that is touched: its offset, and how many bytes it has. `offset`
    /// and `bytes` are then those of all elements that it can be, and `value` is what they all hold afterwards
    pub chosen: Option<(ExprId, u32)>,
    /// the number that a call answered, where it is a symbol of its own
    pub answer: Option<ExprId>,
    /// what came of it: `there`, `absent`, `stored`, `full` …
    #[serde(with = "names::maybe")]
    pub outcome: Option<names::Name>,
    /// it is one of the earlier turns of a loop that is taken for any number of turns: it happens as often as
    /// it will, before, between and after the others of them that stand beside it
    pub repeated: bool,
    /// where
    pub line: Option<Line>,
}

impl Access {
    /// The same with an outcome.
    pub(super) fn ended(self, outcome: &'static str) -> Self {
        Self {
            outcome: Some(outcome),
            ..self
        }
    }
}

/// A packet byte that was written: offset and value.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Written {
    /// the part of the offset that is no constant
    pub base: Option<ExprId>,
    /// the constant part
    pub at: i64,
    /// the byte
    pub byte: ExprId,
}

/// The state of one path.
#[derive(Clone)]
pub struct State {
    /// the next step
    pub at: usize,
    /// active frames, the entry's first, with their registers
    pub frames: Vec<(FrameId, [Value; REGISTERS])>,
    /// stacks
    pub stack: BTreeMap<(FrameId, i64), Cell>,
    /// entries touched
    pub places: Vec<Place>,
    /// the place of each global
    pub globals: BTreeMap<ObjectId, usize>,
    /// writes to the packet, the last wins
    pub packet: Vec<Written>,
    /// conditions, all of which hold
    pub guard: Vec<ExprId>,
    /// an assignment under which they do; none if the solver could not say
    pub model: Option<Rc<Assignment>>,
    /// the solver could not say whether this path is possible
    pub undecided: bool,
    /// accesses to state
    pub accesses: Vec<Access>,
    /// where the last redirect leads
    pub target: Option<Target>,
    /// where the packet begins and ends
    pub borders: Borders,
    /// why the path may be impossible although its guard can hold: what it takes for any number is not
    pub loose: Option<&'static str>,
    /// programs that tail calls have gone on with
    pub tail_calls: u32,
    /// steps taken
    pub steps: u64,
    /// helper calls that made a symbol of their own
    pub draws: u32,
    /// loops that were taken for any number of turns
    pub turns: u32,
    /// the cut behind which it began, 0 for none
    pub segment: u32,
    /// objects that these may have written to
    pub turned: BTreeSet<ObjectId>,
    /// what was handed to calls whose answer, or whose effect outside, is no expression of it here; and what decided
    /// whether they were called
    pub told: BTreeSet<ExprId>,
    /// which calls something outside hears of that no access is recorded of: a number of their sequence, 0 for none
    pub tells: u64,
    /// which symbols are random draws, a number of their sequence, 0 for none: what the next one gives depends on how
    /// many there were
    pub random: u64,
    /// random draws so far, their symbols in order
    pub drawn: Vec<ExprId>,
}

impl Place {
    /// One that the path touches for the first time.
    #[must_use]
    pub fn new(object: ObjectId, key: Vec<ExprId>, stem: String) -> Self {
        Self {
            object,
            key,
            stem,
            bytes: BTreeMap::new(),
            presence: Presence::Open,
            fresh: false,
            lapsed: None,
            doubts: 0,
            room: false,
            slot: None,
            turned: false,
        }
    }

    /// Where symbols of what was there before come from.
    #[must_use]
    pub fn origin(&self) -> Origin {
        if self.turned {
            Origin::Turn
        } else {
            Origin::State(self.object.0)
        }
    }

    /// Number of the entry among those that the path touches, from 1; 0 where there is no key.
    #[must_use]
    pub fn number(&self) -> u32 {
        let number = self.stem.rsplit_once('#').and_then(|s| s.1.parse().ok());
        number.filter(|_| !self.key.is_empty()).unwrap_or(0)
    }
}

impl State {
    /// The registers of the innermost frame.
    pub fn regs(&mut self) -> Option<&mut [Value; REGISTERS]> {
        self.frames.last_mut().map(|f| &mut f.1)
    }

    /// A register of the innermost frame.
    #[must_use]
    pub fn reg(&self, r: usize) -> Value {
        let regs = self.frames.last().map(|f| &f.1);
        regs.and_then(|r2| r2.get(r))
            .copied()
            .unwrap_or(Value::Unset)
    }

    /// Sets one.
    pub fn set(&mut self, r: usize, value: Value) {
        if let Some(slot) = self.regs().and_then(|regs| regs.get_mut(r)) {
            *slot = value;
        }
    }
}
