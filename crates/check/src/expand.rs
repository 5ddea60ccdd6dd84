//! Flattens an entry: every call path of local calls becomes frames and steps of its own, and calls of
//! helpers that call back become what they stand for (`driver`).

use std::cell::LazyCell;
use std::collections::BTreeMap;

use millrace_object::helper;
use millrace_object::insn::{AluOp, BUDGET, Condition, Imm64, Insn, Operand, ROUNDS, Reg, Width};
use millrace_object::program::{Entry, FunctionId, Line, ObjectId, Program, Role};

use crate::Options;
use crate::dispatch;
use crate::driver::resolve::{self, Known};
use crate::driver::{self, Driver};
use crate::facts::{Flow, Frame, FrameId, Op, Refusal, Step, StepId, timed_role};
use crate::refuse::{Fault, refusal_at};
use crate::rule::Rule;

/// The helper that leaves a function, if it finds a program to go on with.
const TAIL_CALL: u32 = helper::TAIL_CALL.number;
/// The helper whose answer depends on whether its flags are known.
const LOOP: u32 = helper::LOOP.number;

/// Most active calls, the entry's included; the kernel's figure.
pub const MAX_DEPTH: usize = 8;

/// The steps of an entry, nothing known about them yet.
///
/// # Errors
/// Refuses recursion, calls nested too deeply, functions that run off their end, and flows of more
/// steps than the options allow.
pub fn expand(program: &Program, entry: &Entry, options: &Options) -> Result<Flow, Box<Refusal>> {
    let addresses = program.functions.iter().flat_map(|f| &f.insns).any(|insn| {
        matches!(
            insn,
            Insn::LoadImm {
                value: Imm64::Function(_),
                ..
            }
        )
    });
    let mut e = Expander {
        program,
        limit: options.max_steps,
        addresses,
        path: Vec::new(),
        flow: Flow {
            frames: Vec::new(),
            steps: Vec::new(),
            callbacks: Vec::new(),
            claims: None,
        },
    };
    e.function(
        entry.function,
        From {
            frame: None,
            back: None,
            known: [Known::No; 5],
            arguments: 5,
        },
    )?;
    Ok(e.flow)
}

/// The same for a function that timers of a map call.
///
/// # Errors
/// As [`expand`], and `callback` for a map whose entries it cannot be given.
pub fn expand_timed(
    program: &Program,
    object: ObjectId,
    function: FunctionId,
    options: &Options,
) -> Result<Flow, Box<Refusal>> {
    let mut e = Expander {
        program,
        limit: options.max_steps,
        addresses: true,
        path: Vec::new(),
        flow: Flow {
            frames: Vec::new(),
            steps: Vec::new(),
            callbacks: Vec::new(),
            claims: None,
        },
    };
    let driver = match timed_role(program, object, function) {
        Role::Expiry => driver::expiry::driver(program, object, function),
        _ => driver::timer::driver(program, object, function),
    };
    let driver = driver.map_err(|what| {
        let what = format!("a timer's function is set {what}");
        e.fault(
            function,
            0,
            Rule::Callback,
            what,
            "Give the map smaller keys.",
        )
    })?;
    let lines = program.functions.get(function.0).map(|f| &f.lines);
    let line = lines.and_then(|l| l.first()).cloned().flatten();
    let frame = Frame {
        function,
        caller: None,
        stack_bytes: 0,
        arguments: 5,
        zeroed: Vec::new(),
        expansion: Some(driver.expansion),
    };
    let laid = e.lay(frame, &driver.insns, &|_| (0, line.clone()), None)?;
    e.call_back(&driver, (function, 0), &laid)?;
    Ok(e.flow)
}

struct Expander<'a> {
    program: &'a Program,
    limit: usize,
    /// the program takes the address of some function; if not, there is nothing to resolve
    addresses: bool,
    /// the functions that are being laid out, the entry first
    path: Vec<FunctionId>,
    flow: Flow,
}

/// Where a function is called from.
#[derive(Clone, Copy)]
struct From {
    frame: Option<FrameId>,
    /// the step after the call; none for the entry
    back: Option<StepId>,
    /// what is known of `r1` to `r5`
    known: [Known; 5],
    /// how many of them it gets
    arguments: u8,
}

/// A body that has been laid out.
struct Laid {
    frame: FrameId,
    start: usize,
    /// a step that returns to the caller, for what leaves the function from within a call
    landing: Option<StepId>,
}

impl<'a> Expander<'a> {
    fn fault(
        &self,
        id: FunctionId,
        pc: usize,
        rule: Rule,
        reason: String,
        remedy: &str,
    ) -> Box<Refusal> {
        refusal_at(self.program, id, pc, Fault::new(rule, reason, remedy))
    }

    /// Lays out a function's steps and then those of what it calls.
    fn function(&mut self, id: FunctionId, from: From) -> Result<Laid, Box<Refusal>> {
        let program = self.program;
        let Some(function) = program.functions.get(id.0) else {
            return Err(self.fault(
                FunctionId(0),
                0,
                Rule::UnknownFunction,
                "an entry or a call names a function that does not exist".to_owned(),
                "Compile the object again.",
            ));
        };
        if function.insns.is_empty() {
            return Err(self.fault(
                id,
                0,
                Rule::FallsOff,
                format!("the function `{}` has no instructions", function.name),
                "End every function with a return.",
            ));
        }
        let frame = Frame {
            function: id,
            caller: from.frame,
            stack_bytes: 0,
            arguments: from.arguments,
            zeroed: Vec::new(),
            expansion: None,
        };
        let place = |pc: usize| (pc, function.lines.get(pc).cloned().flatten());
        let laid = self.lay(frame, &function.insns, &place, from.back)?;
        self.path.push(id);
        let known = if self.addresses {
            resolve::arguments(&function.insns, &from.known)
        } else {
            BTreeMap::new()
        };
        let flags = LazyCell::new(|| driver::loop_flags(&function.insns));
        for (pc, insn) in function.insns.iter().enumerate() {
            let mut known = known.get(&pc).copied().unwrap_or([Known::No; 5]);
            if matches!(insn, Insn::Call { helper: LOOP }) && from.known != [Known::No; 5] {
                known[3] = flags.get(&pc).copied().unwrap_or(Known::No);
            }
            let step = laid.start + pc;
            match *insn {
                Insn::CallLocal { function: callee } => {
                    let from = From {
                        frame: Some(laid.frame),
                        back: Some(StepId(step + 1)),
                        known,
                        arguments: 5,
                    };
                    self.call(callee, (id, pc), step, from)?;
                }
                Insn::Call { helper } => match driver::of(program, helper, &known) {
                    Some(_) if driver::maps(helper, &known).is_some() => {
                        self.choose(helper, &known, (id, pc), step, laid.frame)?;
                    }
                    None if helper == TAIL_CALL && from.back.is_some() => {
                        let driver = driver::of_tail_call();
                        let drive = self.drive(&driver, (id, pc), step, step + 1, laid.frame)?;
                        let leaves = drive.start + driver::tail::LEAVES;
                        if let (Some(step), Some(target)) =
                            (self.flow.steps.get_mut(leaves), laid.landing)
                        {
                            step.op = Op::Leave { target };
                        }
                    }
                    None if helper >= helper::EXPANSION && helper != helper::ABSENT => {
                        return Err(self.fault(
                            id,
                            pc,
                            Rule::UnknownHelper,
                            format!("this instruction calls helper number {helper}, which XDP programs cannot call"),
                            "Use a helper that docs/support.md or docs/dialect.md lists.",
                        ));
                    }
                    None => {}
                    Some(Ok(driver)) => {
                        self.drive(&driver, (id, pc), step, step + 1, laid.frame)?;
                    }
                    Some(Err(what)) => return Err(self.callback((id, pc), helper, what)),
                },
                _ => {}
            }
        }
        self.path.pop();
        Ok(laid)
    }

    fn callback(&self, site: (FunctionId, usize), helper: u32, what: &str) -> Box<Refusal> {
        let name = helper::by_number(helper).map_or("?", |h| h.name);
        self.fault(
            site.0,
            site.1,
            Rule::Callback,
            format!("`{name}` is called with {what}"),
            "Name the function, and the map, in the call itself; one call for each.",
        )
    }

    /// Lays out a call that goes through one of several maps: once for each, behind comparisons of the
    /// register, as `dispatch` does with other calls. What the last one is entered with is compared by
    /// its rule (`rules/callback`), which refuses any other map.
    fn choose(
        &mut self,
        helper: u32,
        known: &[Known; 5],
        site: (FunctionId, usize),
        step: usize,
        frame: FrameId,
    ) -> Result<(), Box<Refusal>> {
        let Some((register, maps)) = driver::maps(helper, known) else {
            return Ok(());
        };
        let line = self.flow.steps.get(step).and_then(|s| s.line.clone());
        let first = self.flow.steps.len();
        let compared = maps.len().saturating_sub(1);
        let place = |i: usize| first + 2 * compared + (i + 1) % maps.len();
        let mut ops = Vec::new();
        for (i, &(map, _)) in maps.iter().take(compared).enumerate() {
            ops.extend(dispatch::if_object(register, map, StepId(place(i))));
        }
        // Each becomes an entrance when its frame is laid out.
        let calls = maps.iter().map(|_| Op::Plain(Insn::Call { helper }));
        let steps =
            (ops.into_iter().chain(calls)).map(|op| Step::blank(frame, site.1, op, line.clone()));
        self.flow.steps.extend(steps);
        if let Some(step) = self.flow.steps.get_mut(step) {
            step.op = Op::Jump {
                target: StepId(first),
            };
        }
        for (i, (_, known)) in maps.iter().enumerate() {
            let Some(driver) = driver::of(self.program, helper, known) else {
                continue;
            };
            let driver = driver.map_err(|what| self.callback(site, helper, what))?;
            self.drive(&driver, site, place(i), step + 1, frame)?;
        }
        Ok(())
    }

    /// Lays out what the step, a call of this function at `site`, enters.
    fn call(
        &mut self,
        callee: FunctionId,
        (id, pc): (FunctionId, usize),
        step: usize,
        from: From,
    ) -> Result<(), Box<Refusal>> {
        if self.path.contains(&callee) {
            let name = self.program.functions.get(callee.0);
            let name = name.map_or("?", |f| f.name.as_str());
            return Err(self.fault(
                id,
                pc,
                Rule::Recursion,
                format!(
                    "`{name}` calls itself, directly or through others, so the depth of its stack has no bound"
                ),
                "Write it as a loop with a constant bound.",
            ));
        }
        if self.path.len() >= MAX_DEPTH {
            return Err(self.fault(
                id,
                pc,
                Rule::CallDepth,
                format!("calls nest deeper than {MAX_DEPTH}"),
                "Mark the innermost functions `static __always_inline`.",
            ));
        }
        let laid = self.function(callee, from)?;
        self.enter(step, &laid);
        Ok(())
    }

    /// Lays out a driver around the function that it calls back, and enters it at the step; it returns to
    /// `back`.
    fn drive(
        &mut self,
        driver: &Driver,
        site: (FunctionId, usize),
        step: usize,
        back: usize,
        caller: FrameId,
    ) -> Result<Laid, Box<Refusal>> {
        let frame = Frame {
            function: site.0,
            caller: Some(caller),
            stack_bytes: 0,
            arguments: 5,
            zeroed: Vec::new(),
            expansion: Some(driver.expansion),
        };
        let line = self.flow.steps.get(step).and_then(|s| s.line.clone());
        let place = |_: usize| (site.1, line.clone());
        let laid = self.lay(frame, &driver.insns, &place, Some(StepId(back)))?;
        self.enter(step, &laid);
        self.call_back(driver, site, &laid)?;
        Ok(laid)
    }

    /// Lays out what a driver calls.
    fn call_back(
        &mut self,
        driver: &Driver,
        site: (FunctionId, usize),
        laid: &Laid,
    ) -> Result<(), Box<Refusal>> {
        for (pc, insn) in driver.insns.iter().enumerate() {
            if let Insn::CallLocal { function } = *insn {
                let at = laid.start + pc;
                let from = From {
                    frame: Some(laid.frame),
                    back: Some(StepId(at + 1)),
                    known: [Known::No; 5],
                    arguments: driver.arguments,
                };
                self.call(function, site, at, from)?;
            }
        }
        Ok(())
    }

    fn enter(&mut self, step: usize, laid: &Laid) {
        if let Some(step) = self.flow.steps.get_mut(step) {
            step.op = Op::Enter {
                frame: laid.frame,
                target: StepId(laid.start),
            };
        }
    }

    /// Lays out instructions as steps of a new frame. `place` says which instruction of the frame's
    /// function each is, and its line.
    fn lay(
        &mut self,
        frame: Frame,
        insns: &[Insn],
        place: &dyn Fn(usize) -> (usize, Option<Line>),
        back: Option<StepId>,
    ) -> Result<Laid, Box<Refusal>> {
        let program = self.program;
        let id = frame.function;
        let name = || program.functions.get(id.0).map_or("?", |f| f.name.as_str());
        let start = self.flow.steps.len();
        if start + insns.len() > self.limit {
            return Err(self.fault(
                id,
                place(0).0,
                Rule::TooLarge,
                format!(
                    "check: with every local call expanded this program has more than the {} instructions that are left for it of the object's budget",
                    self.limit
                ),
                "Call the function from fewer places, or make it smaller; or raise the limit with `--budget-memory SIZE`, with which it grows.",
            ));
        }
        let number = FrameId(self.flow.frames.len());
        self.flow.frames.push(frame);
        for (pc, insn) in insns.iter().enumerate() {
            let (at, line) = place(pc);
            if !names_registers(insns, pc) {
                return Err(self.fault(
                    id,
                    at,
                    Rule::BadInstruction,
                    "this instruction names a register that does not exist".to_owned(),
                    "Compile the object again.",
                ));
            }
            let target = |t: usize| {
                if t < insns.len() {
                    Ok(StepId(start + t))
                } else {
                    Err(self.fault(
                        id,
                        at,
                        Rule::JumpOutside,
                        format!("this jump leaves the function `{}`", name()),
                        "Compile the object again; compilers do not write such a jump.",
                    ))
                }
            };
            let op = match *insn {
                Insn::Jump { target: t } => Op::Jump { target: target(t)? },
                Insn::Branch { target: t, .. } => Op::Branch {
                    insn: *insn,
                    target: target(t)?,
                },
                Insn::Exit => match back {
                    Some(to) => Op::Leave { target: to },
                    None => Op::Exit,
                },
                other => Op::Plain(other),
            };
            let falls_through = !matches!(op, Op::Jump { .. } | Op::Exit | Op::Leave { .. });
            if falls_through && pc + 1 == insns.len() {
                return Err(self.fault(
                    id,
                    at,
                    Rule::FallsOff,
                    format!("execution runs off the end of the function `{}`", name()),
                    "End every function with a return.",
                ));
            }
            self.flow.steps.push(Step::blank(number, at, op, line));
        }
        let tail_call = |insn: &Insn| matches!(insn, Insn::Call { helper } if *helper == TAIL_CALL);
        let landing = match back.filter(|_| insns.iter().any(tail_call)) {
            None => None,
            Some(target) => {
                let (at, line) = place(insns.len().saturating_sub(1));
                let landing = StepId(self.flow.steps.len());
                let op = Op::Leave { target };
                self.flow.steps.push(Step::blank(number, at, op, line));
                Some(landing)
            }
        };
        Ok(Laid {
            frame: number,
            start,
            landing,
        })
    }
}

/// Whether an instruction names registers that there are, and the budget only as decoding does: set to
/// the whole where a function begins, compared with 0, and only behind that comparison counted down.
fn names_registers(insns: &[Insn], pc: usize) -> bool {
    let Some(insn) = insns.get(pc) else {
        return false;
    };
    if (registers(insn).into_iter().flatten()).all(|r| r.0 <= 10) {
        return true;
    }
    let compares = |at: usize| {
        let insn = insns.get(at);
        insn.is_some_and(|i| {
            matches!(
                i,
                Insn::Branch {
                    condition: Condition::Eq,
                    width: Width::W64,
                    left: BUDGET,
                    right: Operand::Imm(0),
                    ..
                }
            )
        })
    };
    let entered = || {
        insns.iter().any(
            |i| matches!(i, Insn::Jump { target } | Insn::Branch { target, .. } if *target == pc),
        )
    };
    match *insn {
        Insn::Alu {
            op,
            width: Width::W64,
            dst: BUDGET,
            src: Operand::Imm(by),
        } => match (op, by) {
            (AluOp::Mov, ROUNDS) => pc == 0 && !entered(),
            (AluOp::Sub, 1) => pc.checked_sub(1).is_some_and(compares) && !entered(),
            _ => false,
        },
        _ => compares(pc),
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
