//! What is known of one way through the program so far.

use std::collections::BTreeMap;
use std::rc::Rc;

use millrace_check::facts::FrameId;
use millrace_object::program::{Line, ObjectId};

use crate::expr::ExprId;
use crate::expr::eval::Assignment;
use crate::model::Effect;

/// What memory a pointer is into.
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

/// What a register holds.
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
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Presence {
    /// nobody has looked
    Open,
    /// yes
    There,
    /// no
    Absent,
}

/// One entry of a state object that the path has touched.
#[derive(Clone, PartialEq, Eq, Debug)]
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
}

/// One access to state.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Access {
    /// the object
    pub object: ObjectId,
    /// the helper's name, `load`, `store` or `atomic`
    pub operation: &'static str,
    /// what it does
    pub effect: Effect,
    /// the key's bytes in memory order
    pub key: Vec<ExprId>,
    /// what is written, in memory order
    pub value: Vec<ExprId>,
    /// first byte of the value that is touched, for loads and stores
    pub offset: Option<u32>,
    /// the number that a call answered, where it is a symbol of its own
    pub answer: Option<ExprId>,
    /// what came of it: `there`, `absent`, `stored`, `full` …
    pub outcome: Option<&'static str>,
    /// where
    pub line: Option<Line>,
}

/// A packet byte that was written: offset and value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
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
    pub frames: Vec<(FrameId, [Value; 11])>,
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
    pub target: Option<ExprId>,
    /// steps taken
    pub steps: u64,
    /// helper calls that made a symbol of their own
    pub draws: u32,
}

impl State {
    /// The registers of the innermost frame.
    pub fn regs(&mut self) -> Option<&mut [Value; 11]> {
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
