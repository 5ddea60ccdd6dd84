//! Flattens an entry: every call path of local calls becomes frames and steps of its own.

use std::ops::Range;

use millrace_object::insn::{Insn, Operand, Reg};
use millrace_object::program::{Entry, FunctionId, Program};

use crate::Options;
use crate::facts::{ArgFact, Flow, Frame, FrameId, Kind, Op, Outcomes, Refusal, Step, StepId};
use crate::refuse::{Fault, refusal_at};

/// Most active calls, the entry's included; the kernel's figure.
pub const MAX_DEPTH: usize = 8;

/// The steps of an entry, nothing known about them yet.
///
/// # Errors
/// Refuses recursion, calls nested too deeply, functions that run off their end, and flows of more
/// steps than the options allow.
pub fn expand(program: &Program, entry: &Entry, options: &Options) -> Result<Flow, Box<Refusal>> {
    let mut e = Expander {
        program,
        limit: options.max_steps,
        flow: Flow {
            frames: Vec::new(),
            steps: Vec::new(),
        },
    };
    e.function(entry.function, None, None, &mut Vec::new())?;
    Ok(e.flow)
}

struct Expander<'a> {
    program: &'a Program,
    limit: usize,
    flow: Flow,
}

impl Expander<'_> {
    /// Lays out a function's steps and then those of its callees; gives the range of its own.
    fn function(
        &mut self,
        id: FunctionId,
        caller: Option<FrameId>,
        back: Option<StepId>,
        path: &mut Vec<FunctionId>,
    ) -> Result<(FrameId, Range<usize>), Box<Refusal>> {
        let program = self.program;
        let Some(function) = program.functions.get(id.0) else {
            return Err(refusal_at(
                program,
                FunctionId(0),
                0,
                Fault::new(
                    "unknown-function",
                    "an entry or a call names a function that does not exist",
                    "Compile the object again.",
                ),
            ));
        };
        let fault = |pc: usize, rule, reason: String, remedy: &str| {
            refusal_at(program, id, pc, Fault::new(rule, reason, remedy))
        };
        if function.insns.is_empty() {
            return Err(fault(
                0,
                "falls-off",
                format!("the function `{}` has no instructions", function.name),
                "End every function with a return.",
            ));
        }
        let frame = FrameId(self.flow.frames.len());
        let start = self.flow.steps.len();
        if start + function.insns.len() > self.limit {
            return Err(fault(
                0,
                "too-large",
                format!(
                    "with every local call expanded the program has more than {} instructions",
                    self.limit
                ),
                "Call the function from fewer places, or make it smaller.",
            ));
        }
        self.flow.frames.push(Frame {
            function: id,
            caller,
            stack_bytes: 0,
        });
        path.push(id);
        let target = |pc: usize, t: usize| {
            if t < function.insns.len() {
                Ok(StepId(start + t))
            } else {
                Err(fault(
                    pc,
                    "jump-outside",
                    format!("this jump leaves the function `{}`", function.name),
                    "Compile the object again; compilers do not write such a jump.",
                ))
            }
        };
        for (pc, insn) in function.insns.iter().enumerate() {
            if !registers(insn).into_iter().flatten().all(|r| r.0 <= 10) {
                return Err(fault(
                    pc,
                    "bad-instruction",
                    "this instruction names a register above r10".to_owned(),
                    "Compile the object again.",
                ));
            }
            let op = match *insn {
                Insn::Jump { target: t } => Op::Jump {
                    target: target(pc, t)?,
                },
                Insn::Branch { target: t, .. } => Op::Branch {
                    insn: *insn,
                    target: target(pc, t)?,
                },
                Insn::Exit => match back {
                    Some(to) => Op::Leave { target: to },
                    None => Op::Exit,
                },
                other => Op::Plain(other),
            };
            let falls_through = !matches!(op, Op::Jump { .. } | Op::Exit | Op::Leave { .. });
            if falls_through && pc + 1 == function.insns.len() {
                return Err(fault(
                    pc,
                    "falls-off",
                    format!(
                        "execution runs off the end of the function `{}`",
                        function.name
                    ),
                    "End every function with a return.",
                ));
            }
            self.flow.steps.push(blank(
                frame,
                pc,
                op,
                function.lines.get(pc).cloned().flatten(),
            ));
        }
        let end = self.flow.steps.len();
        for (pc, insn) in function.insns.iter().enumerate() {
            let Insn::CallLocal { function: callee } = *insn else {
                continue;
            };
            if path.contains(&callee) {
                let name = program
                    .functions
                    .get(callee.0)
                    .map_or("?", |f| f.name.as_str());
                return Err(fault(
                    pc,
                    "recursion",
                    format!(
                        "`{name}` calls itself, directly or through others, so the depth of its stack has no bound"
                    ),
                    "Write it as a loop with a constant bound.",
                ));
            }
            if path.len() >= MAX_DEPTH {
                return Err(fault(
                    pc,
                    "call-depth",
                    format!("calls nest deeper than {MAX_DEPTH}"),
                    "Mark the innermost functions `static __always_inline`.",
                ));
            }
            let (callee_frame, range) =
                self.function(callee, Some(frame), Some(StepId(start + pc + 1)), path)?;
            if let Some(step) = self.flow.steps.get_mut(start + pc) {
                step.op = Op::Enter {
                    frame: callee_frame,
                    target: StepId(range.start),
                };
            }
        }
        path.pop();
        Ok((frame, start..end))
    }
}

fn blank(frame: FrameId, pc: usize, op: Op, line: Option<millrace_object::program::Line>) -> Step {
    Step {
        frame,
        pc,
        op,
        line,
        reached: false,
        before: [Kind::Unset; 11],
        after: Kind::Unset,
        access: None,
        args: Vec::<ArgFact>::new(),
        outcomes: Outcomes::default(),
        load_once: false,
    }
}

/// The registers that an instruction names.
fn registers(insn: &Insn) -> [Option<Reg>; 2] {
    let of = |o: Operand| match o {
        Operand::Reg(r) => Some(r),
        Operand::Imm(_) => None,
    };
    match *insn {
        Insn::Alu { dst, src, .. } => [Some(dst), of(src)],
        Insn::Neg { dst, .. } | Insn::ByteOrder { dst, .. } | Insn::LoadImm { dst, .. } => {
            [Some(dst), None]
        }
        Insn::SignExtend { dst, src, .. } => [Some(dst), Some(src)],
        Insn::Load { dst, base, .. } => [Some(dst), Some(base)],
        Insn::Store { base, src, .. } => [Some(base), of(src)],
        Insn::Atomic { base, src, .. } => [Some(base), Some(src)],
        Insn::Branch { left, right, .. } => [Some(left), of(right)],
        Insn::CallRegister { target } => [Some(target), None],
        Insn::Jump { .. }
        | Insn::Call { .. }
        | Insn::CallLocal { .. }
        | Insn::LegacyPacketLoad
        | Insn::Exit => [None, None],
    }
}
