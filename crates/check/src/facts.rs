//! The facts of a proof, step by step: the input of `emit` and `model`.
//!
//! Local calls are expanded: each call path has a [`Frame`] of its own with its own registers and
//! stack, so that every later analysis is within one flat list of [`Step`]s.

use millrace_object::insn::{Insn, REGISTERS, Reg};
use millrace_object::program::{FunctionId, Line, ObjectId, Program, Role};
use serde::Serialize;

use crate::claims::Claims;
pub use crate::ids::{FrameId, StepId};

/// A program that may be emitted: one [`Flow`] an entry, in the order of `Program::entries`.
#[derive(Clone, Debug, Serialize)]
pub struct Checked {
    /// the flows
    pub flows: Vec<Flow>,
    /// what timers in the values of maps call, and what runs when entries expire
    pub timers: Vec<Timed>,
}

/// A function that timers of a map call, or that its expiring entries run, the same way as an entry. One that several maps' timers call is there
/// once for each.
#[derive(Clone, Debug, Serialize)]
pub struct Timed {
    /// the map
    pub object: ObjectId,
    /// the function; the flow's first frame is what it is called from
    pub function: FunctionId,
    /// the steps
    pub flow: Flow,
}

impl Timed {
    /// What makes it run: a timer, or the expiry of an entry.
    #[must_use]
    pub fn role(&self, program: &Program) -> Role {
        timed_role(program, self.object, self.function)
    }
}

/// What makes this function of an object run beside packets.
#[must_use]
pub fn timed_role(program: &Program, object: ObjectId, function: FunctionId) -> Role {
    let expiry = program.objects.get(object.0).and_then(|o| o.expiry);
    match expiry == Some(function) {
        true => Role::Expiry,
        false => Role::Timer,
    }
}

impl Checked {
    /// Everything that can run: the entries' flows, and what timers call.
    pub fn running<'a>(&'a self, program: &'a Program) -> impl Iterator<Item = Running<'a>> {
        let entries = program.entries.iter().zip(&self.flows);
        let entries = entries.map(|(e, flow)| Running {
            role: e.role,
            function: e.function,
            flow,
        });
        entries.chain(self.timers.iter().map(|t| Running {
            role: t.role(program),
            function: t.function,
            flow: &t.flow,
        }))
    }
}

/// One of what can run.
#[derive(Clone, Copy, Debug)]
pub struct Running<'a> {
    /// what makes it run
    pub role: Role,
    /// the author's function
    pub function: FunctionId,
    /// the steps
    pub flow: &'a Flow,
}

/// One entry with all its local calls expanded.
#[derive(Clone, Debug, Serialize)]
pub struct Flow {
    /// frame 0 is the entry's
    pub frames: Vec<Frame>,
    /// the instructions; execution begins at step 0
    pub steps: Vec<Step>,
    /// what it sets timers in values of which maps to call, ascending
    pub callbacks: Vec<(ObjectId, FunctionId)>,
    /// what is claimed of registers and stack, if somebody asked; who runs the flow can see whether it holds
    #[serde(skip)]
    pub claims: Option<Claims>,
}

/// One call path's registers and stack.
#[derive(Clone, Debug, Serialize)]
pub struct Frame {
    /// the function
    pub function: FunctionId,
    /// the frame it was called from, none for frame 0
    pub caller: Option<FrameId>,
    /// bytes of stack used, counted down from `r10`: offsets are in `-stack_bytes..0`
    pub stack_bytes: u32,
    /// how many of `r1` to `r5` it is called with; the others are uninitialised
    pub arguments: u8,
    /// bytes that the frame begins with as zeros, `from..to` from `r10`, ascending: those that may be read before
    /// the function writes them. Steps at its start store the zeros (`zero`)
    pub zeroed: Vec<(i32, i32)>,
    /// the frame is none of `function`'s own, but what a call in it stands for: all its steps have the
    /// call's `pc` and line
    pub expansion: Option<Expansion>,
}

/// Kind of a call that is laid out as a frame (`driver`).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Expansion {
    /// the helper's number
    pub helper: u32,
    /// what it calls back
    pub function: Option<FunctionId>,
    /// the map that it goes through
    pub object: Option<ObjectId>,
    /// its flags are the constant 0
    pub plain: bool,
}

/// One instruction of one frame, and what is known about it.
#[derive(Clone, Debug, Serialize)]
pub struct Step {
    /// whose registers the instruction names
    pub frame: FrameId,
    /// index of the instruction in its function
    pub pc: usize,
    /// what to do
    pub op: Op,
    /// where it comes from
    pub line: Option<Line>,
    /// false: no execution gets here; emit nothing
    pub reached: bool,
    /// kinds of `r0` to `r10` of this frame before the instruction, joined over all executions
    pub before: [Kind; REGISTERS],
    /// kind of the register that the instruction writes, after it, joined over all executions
    pub after: Kind,
    /// what a load, store or atomic touches
    pub access: Option<Access>,
    /// which bytes of values and records it touches, whichever of its operands leads there: one range an
    /// object, over all executions, ascending
    pub extents: Vec<Extent>,
    /// what each argument of a helper call is; empty for all else
    pub args: Vec<ArgFact>,
    /// for branches: which outcomes can happen
    pub outcomes: Outcomes,
    /// the loaded value carries a proof: it must be loaded exactly once, because somebody else may
    /// write the memory between two loads
    pub load_once: bool,
    /// an instruction of 32 bits that works on pointers into the packet as a whole. Where it works on numbers
    /// instead, 64 bits give the same (with the right operand of an addition as a signed number)
    pub whole: bool,
}

impl Step {
    /// A step of which nothing is known.
    pub(crate) fn blank(frame: FrameId, pc: usize, op: Op, line: Option<Line>) -> Self {
        Self {
            frame,
            pc,
            op,
            line,
            reached: false,
            before: [Kind::Unset; REGISTERS],
            after: Kind::Unset,
            access: None,
            extents: Vec::new(),
            args: Vec::new(),
            outcomes: Outcomes::default(),
            load_once: false,
            whole: false,
        }
    }
}

/// The instruction of a [`Step`], its control flow in terms of steps.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub enum Op {
    /// an instruction that goes on to the next step; never a jump, branch, local call or exit
    Plain(Insn),
    /// go on at `target`
    Jump {
        /// next step
        target: StepId,
    },
    /// if the condition of `insn` (an [`Insn::Branch`], whose own target is to be ignored) holds go
    /// on at `target`, else at the next step
    Branch {
        /// the branch
        insn: Insn,
        /// next step when it holds
        target: StepId,
    },
    /// copy `r1` to `r5` into `frame`, whose other registers are uninitialised, and go on at `target`
    Enter {
        /// the callee's frame
        frame: FrameId,
        /// its first step
        target: StepId,
    },
    /// copy `r0` to the caller's `r0` (whose `r1` to `r5` are uninitialised from here) and go on at `target`
    Leave {
        /// the step after the call
        target: StepId,
    },
    /// end with `r0` as the verdict
    Exit,
}

/// Contents of a register.
///
/// Kinds say what may be *read*: for a register that no later instruction reads before writing it,
/// the kind is of no meaning. The number 0 is also the null pointer: joined with [`Kind::Value`],
/// [`Kind::Record`] or [`Kind::Inner`] it leaves them as they are, joined with any other pointer it gives
/// [`Kind::Pointer`], with a number [`Kind::Scalar`]. So where a step writes a constant 0 (or a
/// register that holds one), a later step may know the register as a pointer that is null.
///
/// The addresses of a packet have 32 bits: the context holds them in 32-bit fields, and no pointer into the packet
/// goes so far that the sum wraps. So a 32-bit copy of one, a 32-bit addition to it, a 32-bit comparison of two and a
/// spill of 4 bytes are the same as with 64 bits; such a step is [`Step::whole`]. Of other memory, and of the packet
/// as it was before a call that may have moved it, a 32-bit copy is good for a 32-bit difference alone, which is the
/// difference modulo 2^32.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub enum Kind {
    /// nothing that may be read; the bottom of joins
    Unset,
    /// a number
    Scalar,
    /// the context
    Context,
    /// a pointer into the packet, at or after its first byte
    Packet,
    /// one past the packet's last byte
    PacketEnd,
    /// the start of the metadata before the packet
    PacketMeta,
    /// a pointer into a frame's stack
    Stack {
        /// whose
        frame: FrameId,
        /// bytes from that frame's `r10`, negative; none when it differs between executions
        offset: Option<i32>,
    },
    /// a state object
    Object(ObjectId),
    /// a map that was found in another one, possibly null; the object is its shape
    /// (`Nesting::Shape`)
    Inner(ObjectId),
    /// a pointer into a value of that object, possibly null
    Value(ObjectId),
    /// a pointer into a reserved record of that object, possibly null
    Record(ObjectId),
    /// the address of a function; nothing is read through it
    Function(FunctionId),
    /// a pointer of different kinds in different executions (null included)
    Pointer,
    /// a number in some executions, a pointer in others
    Mixed,
}

/// Target of a load, store or atomic.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub enum Access {
    /// a field of the context, see `ContextField`
    Context {
        /// offset in bytes
        offset: u32,
    },
    /// the packet or its metadata
    Packet,
    /// a frame's stack
    Stack {
        /// whose
        frame: FrameId,
        /// lowest byte touched in any execution, from `r10`
        from: i32,
        /// one past the highest
        to: i32,
    },
    /// a value of a state object
    Value(ObjectId),
    /// a reserved record
    Record(ObjectId),
    /// different regions in different executions
    Several,
}

/// Bytes of an object's values, or of its records.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Extent {
    /// the object
    pub object: ObjectId,
    /// the lowest byte, from the value's first
    pub from: u32,
    /// one past the highest
    pub to: u32,
}

/// Kind of an argument of a helper call.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub enum ArgFact {
    /// a number; the constant when it is the same in all executions
    Scalar(Option<u64>),
    /// the context
    Context,
    /// a state object, the same in all executions; where it is a shape (`Nesting::Shape`), one of the maps
    /// of that shape, named by the register
    Object(ObjectId),
    /// a timer in a value of that object
    Timer(ObjectId),
    /// a function that is called later, one of [`Flow::callbacks`]
    Callback,
    /// memory that the helper reads or writes
    Memory {
        /// the region; for a stack, the whole range touched
        access: Access,
        /// how many bytes; none when it differs between executions
        bytes: Option<u32>,
    },
    /// a null pointer
    Null,
}

/// Possible outcomes of a branch.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Outcomes {
    /// the condition can hold
    pub holds: bool,
    /// the condition can fail
    pub fails: bool,
}

/// Why a program may not run, in the author's terms.
#[derive(Clone, Debug, Serialize)]
pub struct Refusal {
    /// the function
    pub function: String,
    /// slot number of the instruction, as disassemblers count
    pub instruction: u32,
    /// the instruction, disassembled
    pub text: String,
    /// the source line
    pub line: Option<Line>,
    /// which rule was broken, a stable kebab-case name, e.g. `packet-bounds`
    pub rule: &'static str,
    /// what was wrong, with the value range that broke the rule
    pub reason: String,
    /// the smallest change that would fix it
    pub remedy: String,
}

/// The register whose kind [`Step::after`] tells: the one that the instruction writes.
#[must_use]
pub fn written(insn: &Insn) -> Option<Reg> {
    insn.written()
}
