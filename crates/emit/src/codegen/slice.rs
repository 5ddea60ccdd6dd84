//! The steps of a flow that one emitted function holds, and the control flow through them.
//!
//! The whole program is one slice, its prefetch pass (see [`super::prefetch`]) another. Both are emitted by
//! the same code, so the prefetch pass cannot compute anything else than the program does.
//!
//! Building a slice checks once that every index in the flow is in range; the rest of this treatment
//! indexes on that ground.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use millrace_check::facts::{ArgFact, Flow, FrameId, Kind, Op, Step, StepId};
use millrace_object::Program;
use millrace_object::insn::{Imm64, Insn, Operand, REGISTERS, Reg};
use millrace_object::program::ObjectId;

use crate::error::Error;

/// What a slice does with a step.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    /// it is not there
    Absent,
    /// it runs
    Run,
    /// a prefetch pass ends here with the token of this keyed operation
    Site(u32),
    /// a prefetch pass ends here with nothing
    Stop,
    /// control goes through, and nothing is done
    Pass,
    /// its result comes from elsewhere ([`crate::sync::Hooks::given`]), so that its operands are not needed
    Given,
}

/// The deepest chain of calls that is emitted; the checker's own limit is lower.
const MAX_DEPTH: usize = 64;

/// The steps of one emitted function.
#[derive(Clone)]
pub struct Slice<'a> {
    /// the program
    pub program: &'a Program,
    /// the entry's steps and frames
    pub flow: &'a Flow,
    /// whether `r0` is read at the end; what a timer leaves there is nobody's business
    pub verdict: bool,
    /// where control comes in
    pub starts: Vec<StepId>,
    roles: Vec<Role>,
    depths: Vec<usize>,
    /// where control goes on behind a branch that is passed
    jumps: Arc<BTreeMap<StepId, StepId>>,
}

impl<'a> Slice<'a> {
    /// Every step that an execution can get to.
    ///
    /// # Errors
    /// [`Error::Facts`] if an index in the flow is out of range.
    pub fn whole(program: &'a Program, flow: &'a Flow, verdict: bool) -> Result<Self, Error> {
        let mut slice = Slice {
            program,
            flow,
            verdict,
            starts: vec![StepId(0)],
            roles: vec![Role::Absent; flow.steps.len()],
            depths: Vec::new(),
            jumps: Arc::default(),
        };
        slice.check_frames()?;
        for index in 0..flow.steps.len() {
            slice.check_step(StepId(index))?;
        }
        Ok(slice.from(&[StepId(0)]))
    }

    /// Every step that an execution can get to from these, themselves included. What stops, stops still.
    pub fn from(&self, starts: &[StepId]) -> Self {
        let mut slice = self.with_roles(vec![Role::Absent; self.roles.len()]);
        slice.starts = starts.to_vec();
        let mut pending = starts.to_vec();
        while let Some(id) = pending.pop() {
            if slice.role(id) == Role::Absent {
                slice.roles[id.0] = match self.role(id) {
                    Role::Stop => Role::Stop,
                    _ => Role::Run,
                };
                pending.extend(slice.successors(id));
            }
        }
        slice
    }

    /// The same, but that executions stop at some steps.
    pub fn stopping(&self, at: impl Fn(StepId) -> bool) -> Self {
        let steps = 0..self.roles.len();
        let role = |id| {
            if at(StepId(id)) {
                Role::Stop
            } else {
                Role::Absent
            }
        };
        let stops = self.with_roles(steps.map(role).collect());
        stops.from(&self.starts)
    }

    /// How many steps it runs.
    pub fn runs(&self) -> usize {
        self.roles.iter().filter(|r| **r == Role::Run).count()
    }

    /// The same flow with other roles.
    pub fn with_roles(&self, roles: Vec<Role>) -> Self {
        Slice {
            roles,
            ..self.clone()
        }
    }

    /// A part of the flow: what is done with each step, and where control goes on behind branches that are passed.
    pub fn part(
        &self,
        starts: &[StepId],
        jumps: Arc<BTreeMap<StepId, StepId>>,
        role: impl Fn(StepId) -> Role,
    ) -> Self {
        let roles = (0..self.roles.len()).map(StepId).map(role).collect();
        let mut slice = Slice {
            jumps,
            starts: starts.to_vec(),
            ..self.with_roles(roles)
        };
        let mut reached = vec![false; slice.roles.len()];
        let mut pending = starts.to_vec();
        while let Some(id) = pending.pop() {
            if !std::mem::replace(&mut reached[id.0], true) {
                pending.extend(slice.successors(id));
            }
        }
        for (role, reached) in slice.roles.iter_mut().zip(reached) {
            if !reached {
                *role = Role::Absent;
            }
        }
        slice
    }

    /// The step.
    pub fn step(&self, id: StepId) -> &'a Step {
        &self.flow.steps[id.0]
    }

    /// What the slice does with it.
    pub fn role(&self, id: StepId) -> Role {
        self.roles[id.0]
    }

    /// How deep the calls are in this frame; 0 is the entry's.
    pub fn depth(&self, frame: FrameId) -> usize {
        self.depths[frame.0]
    }

    /// One more than the greatest depth.
    pub fn levels(&self) -> usize {
        self.depths.iter().max().map_or(1, |deepest| deepest + 1)
    }

    /// Where control can go from here, the preferred one (no jump needed, or the only one) first.
    pub fn successors(&self, id: StepId) -> Vec<StepId> {
        match self.role(id) {
            Role::Absent | Role::Site(_) | Role::Stop => return Vec::new(),
            Role::Pass => {
                if let Some(&to) = self.jumps.get(&id) {
                    return vec![to];
                }
            }
            Role::Run | Role::Given => {}
        }
        let step = self.step(id);
        let next = StepId(id.0 + 1);
        match step.op {
            Op::Plain(_) => vec![next],
            Op::Jump { target } | Op::Enter { target, .. } | Op::Leave { target } => vec![target],
            Op::Branch { target, .. } => match (step.outcomes.holds, step.outcomes.fails) {
                (true, true) => vec![next, target],
                (true, false) => vec![target],
                (false, true) => vec![next],
                (false, false) => Vec::new(),
            },
            Op::Exit => Vec::new(),
        }
    }

    /// The steps in the order they are written down: a callee's where it is called, the rest behind.
    pub fn layout(&self) -> Vec<StepId> {
        let mut order = Vec::new();
        let mut placed = vec![false; self.roles.len()];
        let mut pending: BTreeSet<usize> = self.starts.iter().map(|s| s.0).collect();
        while let Some(start) = pending.pop_first() {
            let mut at = StepId(start);
            while !placed[at.0] {
                placed[at.0] = true;
                order.push(at);
                let successors = self.successors(at);
                let Some(&first) = successors.first() else {
                    break;
                };
                pending.extend(successors.iter().filter(|s| !placed[s.0]).map(|s| s.0));
                at = first;
            }
        }
        order
    }

    /// Says where a step is, for messages.
    pub fn place(&self, step: &Step) -> String {
        place(self.program, self.flow, step)
    }

    /// An [`Error::Facts`] about a step.
    pub fn contradiction(&self, step: &Step, what: impl Into<String>) -> Error {
        Error::Facts {
            place: self.place(step),
            what: what.into(),
        }
    }

    /// An [`Error::Unsupported`] about a step.
    pub fn unsupported(&self, step: &Step, what: impl Into<String>) -> Error {
        Error::Unsupported {
            place: self.place(step),
            what: what.into(),
        }
    }

    fn check_frames(&mut self) -> Result<(), Error> {
        let bad = |what: &str| Error::Facts {
            place: self.program.name.clone(),
            what: what.into(),
        };
        let mut depths: Vec<usize> = Vec::with_capacity(self.flow.frames.len());
        for (index, frame) in self.flow.frames.iter().enumerate() {
            if frame.function.0 >= self.program.functions.len() {
                return Err(bad("a frame's function does not exist"));
            }
            let depth = match frame.caller {
                None if index == 0 => 0,
                Some(FrameId(caller)) if caller < index => depths[caller] + 1,
                _ => return Err(bad("a frame's caller does not come before it")),
            };
            if depth > MAX_DEPTH {
                return Err(bad("calls are nested too deep"));
            }
            depths.push(depth);
        }
        if depths.is_empty() || self.flow.steps.is_empty() {
            return Err(bad("an entry without steps"));
        }
        self.depths = depths;
        Ok(())
    }

    fn check_step(&self, id: StepId) -> Result<(), Error> {
        let step = self.step(id);
        let frames = self.flow.frames.len();
        let bad = |what: &str| Error::Facts {
            place: format!("step {} of {}", id.0, self.program.name),
            what: what.into(),
        };
        let function = self
            .flow
            .frames
            .get(step.frame.0)
            .ok_or_else(|| bad("frame"))?
            .function;
        if step.pc >= self.program.functions[function.0].insns.len() {
            return Err(bad("instruction"));
        }
        let (jump, falls) = match step.op {
            Op::Plain(_) => (None, true),
            Op::Branch { target, .. } => (Some(target), true),
            Op::Jump { target } | Op::Leave { target } => (Some(target), false),
            Op::Enter { target, frame } => {
                if frame.0 >= frames {
                    return Err(bad("callee"));
                }
                (Some(target), false)
            }
            Op::Exit => (None, false),
        };
        let steps = self.flow.steps.len();
        if step.reached && (jump.is_some_and(|t| t.0 >= steps) || falls && id.0 + 1 >= steps) {
            return Err(bad("target"));
        }
        let object = |id: ObjectId| id.0 < self.program.objects.len();
        let kind = |kind: &Kind| match *kind {
            Kind::Stack { frame, .. } => frame.0 < frames,
            Kind::Object(o) | Kind::Inner(o) | Kind::Value(o) | Kind::Record(o) => object(o),
            _ => true,
        };
        let known = step.before.iter().chain([&step.after]).all(kind)
            && step
                .args
                .iter()
                .all(|arg| !matches!(arg, ArgFact::Object(o) | ArgFact::Timer(o) if !object(*o)));
        let (Op::Plain(insn) | Op::Branch { insn, .. }) = step.op else {
            return if known { Ok(()) } else { Err(bad("kind")) };
        };
        if !known
            || !registers(&insn)
                .iter()
                .all(|r| usize::from(r.0) < REGISTERS)
        {
            return Err(bad("register or kind"));
        }
        match insn {
            Insn::LoadImm {
                value: Imm64::Object(o) | Imm64::ObjectValue { object: o, .. },
                ..
            } if !object(o) => Err(bad("object")),
            _ => Ok(()),
        }
    }
}

/// File and line of a step, or function and instruction where there is none.
pub fn place(program: &Program, flow: &Flow, step: &Step) -> String {
    if let Some(line) = &step.line {
        return format!("{}:{}", line.file, line.line);
    }
    let function = flow
        .frames
        .get(step.frame.0)
        .and_then(|f| program.functions.get(f.function.0));
    let slot = function
        .and_then(|f| f.slots.get(step.pc))
        .copied()
        .unwrap_or_default();
    format!(
        "{} instruction {slot}",
        function.map_or("?", |f| f.name.as_str())
    )
}

/// Every register an instruction names.
fn registers(insn: &Insn) -> Vec<Reg> {
    let operand = |o: Operand| match o {
        Operand::Reg(r) => Some(r),
        Operand::Imm(_) => None,
    };
    match *insn {
        Insn::Alu { dst, src, .. } => [Some(dst), operand(src)].into_iter().flatten().collect(),
        Insn::Neg { dst, .. } | Insn::ByteOrder { dst, .. } | Insn::LoadImm { dst, .. } => {
            vec![dst]
        }
        Insn::SignExtend { dst, src, .. } => vec![dst, src],
        Insn::Load { dst, base, .. } => vec![dst, base],
        Insn::Store { base, src, .. } => [Some(base), operand(src)].into_iter().flatten().collect(),
        Insn::Atomic { base, src, .. } => vec![base, src],
        Insn::Branch { left, right, .. } => {
            [Some(left), operand(right)].into_iter().flatten().collect()
        }
        Insn::CallRegister { target } => vec![target],
        Insn::Jump { .. }
        | Insn::Call { .. }
        | Insn::CallLocal { .. }
        | Insn::LegacyPacketLoad
        | Insn::Exit => Vec::new(),
    }
}
