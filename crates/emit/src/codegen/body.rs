//! One C function from one slice: locals, stack objects, labels, statements in layout order.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use millrace_check::facts::{FrameId, Kind, Op, StepId};
use millrace_object::insn::{Insn, REGISTERS, Reg};
use millrace_object::program::{Dialect, FunctionId, ObjectId, StateObject};

use super::c::{Code, Local, Statement};
use super::demand::{Cut, Demand};
use super::forms::Forms;
use super::known::Known;
use super::resume::{Entrance, Move, Resume};
use super::slice::{Role, Slice};
use super::stack::Stack;
use super::store_order::runs;
use super::text::Text;
use super::unit::Unit;
use super::{branch, statement};
use crate::c;
use crate::error::Error;
use crate::sync::{Attempt, Hooks, Plain};

/// What a function is emitted for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Purpose {
    /// to run: sets the packet's fate
    Program,
    /// to find and prefetch what the program will look up: fills a slot
    Prefetch,
    /// a part of the program for a treatment, which decides nothing about the packet: it returns nothing, or what
    /// [`Hooks::ends`] says
    Part,
}

/// Everything the statements of one function are made from.
pub struct Body<'a> {
    /// the steps
    pub slice: &'a Slice<'a>,
    /// which forms of registers are needed
    pub demand: Demand,
    /// the stack objects
    pub stack: Stack,
    /// the module
    pub unit: &'a Unit<'a>,
    /// what the function is for
    pub purpose: Purpose,
    /// the keyed operations that come first, with their numbers
    pub sites: &'a BTreeMap<StepId, u32>,
    /// whether there may be a slot with the token of one of them
    pub slotted: bool,
    /// what a slot holds besides
    pub resume: Option<&'a Resume<'a>>,
    /// what stands around its steps
    pub hooks: &'a dyn Hooks,
    /// how it leaves, if it may
    pub attempt: Option<Attempt>,
    /// where it goes on from what another pass found
    pub takes_up: Option<&'a TakesUp>,
    /// what is known of the packet's bytes where it is being written
    known: RefCell<Rc<Known>>,
}

/// Calls of elements of a linked program at which a packet goes on from what a pass for them found ([`super::later`]).
pub struct TakesUp {
    /// the C function that goes on from there
    pub function: String,
    /// by the called function: the sites at which the pass ends within it
    pub sites: BTreeMap<FunctionId, Vec<u32>>,
}

impl TakesUp {
    /// The statement before a call; none where nothing was looked up ahead.
    fn before(&self, called: FunctionId) -> Option<Statement> {
        let sites = self.sites.get(&called)?.iter();
        let sites: Vec<String> = sites.map(|n| format!("later->site == {n}")).collect();
        let (any, function) = (sites.join(" || "), &self.function);
        Some(c!("if ({}) return {}(self, pkt, later);", any, function).into())
    }
}

impl<'a> Body<'a> {
    /// Analyses a slice.
    ///
    /// # Errors
    /// [`Error::Facts`] when the facts contradict each other.
    pub fn new(
        slice: &'a Slice<'a>,
        unit: &'a Unit<'a>,
        purpose: Purpose,
        sites: &'a BTreeMap<StepId, u32>,
    ) -> Result<Self, Error> {
        let demand = Demand::solve(slice);
        let stack = Stack::split(slice, &demand)?;
        Ok(Body {
            slice,
            demand,
            stack,
            unit,
            purpose,
            sites,
            slotted: !sites.is_empty(),
            resume: None,
            hooks: &Plain,
            attempt: None,
            takes_up: None,
            known: RefCell::default(),
        })
    }

    /// The same with something around its steps.
    ///
    /// # Errors
    /// [`Error::Facts`] when the facts contradict each other.
    pub fn hooked(mut self, hooks: &'a dyn Hooks) -> Result<Self, Error> {
        self.hooks = hooks;
        self.attempt = hooks.attempt();
        if let Some(cut) = hooks.cut(self.slice) {
            self.demand = Demand::of_part(self.slice, &cut);
            self.stack = Stack::split(self.slice, &self.demand)?;
        }
        Ok(self)
    }

    /// One of the two parts of a program that is taken up again where its prefetch pass ends: the prefetch pass if `slice`
    /// is one, or else the rest. Both have the stack of the whole.
    pub fn part(
        slice: &'a Slice<'a>,
        unit: &'a Unit<'a>,
        purpose: Purpose,
        sites: &'a BTreeMap<StepId, u32>,
        resume: &'a Resume<'a>,
        stack: &Stack,
    ) -> Self {
        Body {
            slice,
            demand: Demand::of_part(slice, &resume.cut),
            stack: stack.clone(),
            unit,
            purpose,
            sites,
            slotted: true,
            resume: Some(resume),
            hooks: &Plain,
            attempt: None,
            takes_up: None,
            known: RefCell::default(),
        }
    }

    /// A part of a program for a treatment, with what `cut` keeps.
    ///
    /// # Errors
    /// [`Error::Facts`] when the facts contradict each other.
    pub fn of_part(
        slice: &'a Slice<'a>,
        unit: &'a Unit<'a>,
        sites: &'a BTreeMap<StepId, u32>,
        cut: &Cut,
        hooks: &'a dyn Hooks,
    ) -> Result<Self, Error> {
        let demand = Demand::of_part(slice, cut);
        let stack = Stack::split(slice, &demand)?;
        Ok(Body {
            slice,
            demand,
            stack,
            unit,
            purpose: Purpose::Part,
            sites,
            slotted: false,
            resume: None,
            hooks,
            attempt: None,
            takes_up: None,
            known: RefCell::default(),
        })
    }

    /// Writes the function's inside, braces excluded. `file` is the generated file's name.
    ///
    /// # Errors
    /// [`Error::Facts`] or [`Error::Unsupported`], with the place in the author's program.
    pub fn write(&self, out: &mut Text, file: &str) -> Result<(), Error> {
        for line in self.hooks.declarations(self)? {
            out.line(1, &line, "");
        }
        let order = self.slice.layout();
        self.knows(Rc::new(Known::of(self)));
        let mut statements = Vec::with_capacity(order.len());
        let before = self.follows(&order);
        for &id in &order {
            let mut lines = self.claimed(id, before.get(&id).copied());
            lines.extend(self.step(id)?);
            statements.push(lines);
        }
        let gotos = self.gotos(&order)?;
        let mut entry = self.entry();
        if self.purpose == Purpose::Part && self.slice.starts != [StepId(0)] {
            entry.extend(self.hooks.entry(self)?);
            entry.extend(
                self.slice
                    .starts
                    .first()
                    .map(|id| c!("goto L{};", id.0).into()),
            );
        }
        let mut named = BTreeSet::new();
        for statement in statements.iter().flatten().chain(&entry) {
            statement.locals(&mut named);
        }
        named.extend(
            gotos
                .iter()
                .flatten()
                .flat_map(|(condition, _)| condition.locals()),
        );
        self.declarations(out, &named);
        for statement in &entry {
            statement.lines(1, &mut |depth, text| out.line(depth, text, ""));
        }
        let starts = self.slice.starts.iter().copied();
        let part = self.purpose == Purpose::Part && self.slice.starts != [StepId(0)];
        let entered = self.entrances().map(|(id, _)| *id);
        let entered = entered.chain(starts.filter(|_| part));
        let labels: BTreeSet<StepId> = (gotos.iter().flatten())
            .map(|(_, to)| *to)
            .filter(|to| !self.ends(*to))
            .chain(entered)
            .collect();
        let runs = match self.purpose {
            Purpose::Part => BTreeMap::new(),
            Purpose::Program | Purpose::Prefetch => runs(self, &order, &labels)?,
        };
        let mut at = 0;
        while let Some(&id) = order.get(at) {
            let fallen_into = at == 0 || self.slice.successors(order[at - 1]).first() == Some(&id);
            if self.ends(id) && !fallen_into {
                at += 1;
                continue;
            }
            if labels.contains(&id) {
                out.lines(&format!("L{}:", id.0));
            }
            if let Some(run) = runs.get(&at) {
                out.line(1, "{", "stores in the order of addresses");
                for (step, text) in &run.statements {
                    self.emit(out, 2, *step, text);
                }
                out.line(1, "}", "");
                at += run.length;
                // Only the run's last step can lead elsewhere than to the step behind it.
                if let Some((condition, target)) = gotos.get(at - 1).and_then(|g| g.first()) {
                    debug_assert!(condition.is_empty(), "a store does not branch");
                    out.line(1, self.leave(*target)?.text(), "");
                }
                continue;
            }
            let mut lines = statements[at].clone();
            for (condition, target) in &gotos[at] {
                let leave = self.leave(*target)?;
                lines.push(match condition.is_empty() {
                    true => leave.into(),
                    false => c!("if ({}) {}", condition, leave).into(),
                });
            }
            self.emit(out, 1, id, &lines);
            at += 1;
        }
        out.own_numbering(file);
        Ok(())
    }

    /// What is known of the packet's bytes in what is being written.
    pub fn known(&self) -> Rc<Known> {
        self.known.borrow().clone()
    }

    /// From here on this is known of the packet's bytes.
    pub fn knows(&self, known: Rc<Known>) {
        *self.known.borrow_mut() = known;
    }

    /// Where control comes in, unless at the beginning.
    fn entrances(&self) -> impl Iterator<Item = (&StepId, &Entrance)> {
        let rest = self.resume.filter(|_| self.purpose != Purpose::Prefetch);
        rest.into_iter().flat_map(|r| &r.entrances)
    }

    /// Brings along what the prefetch pass kept and goes where it ended.
    fn entry(&self) -> Vec<Statement> {
        let count = self.entrances().count();
        let (mut out, mut cases) = (Vec::new(), Vec::new());
        for (number, (id, entrance)) in (1..).zip(self.entrances()) {
            let moves = entrance.moves();
            let mut lines: Vec<Statement> = moves.iter().map(Move::bring).collect();
            lines.push(c!("goto L{};", id.0).into());
            match (count, number == count) {
                (1, _) => out = lines,
                (_, true) => cases.push(("default".into(), lines)),
                (_, false) => cases.push((c!("case {}", entrance.site), lines)),
            }
        }
        if !cases.is_empty() {
            out.push(Statement::Switch("slot->site".into(), cases));
        }
        out
    }

    /// The end of the program: the verdict becomes the packet's fate.
    fn exit(&self, id: StepId) -> Result<Code, Error> {
        let meaning = match self.slice.program.dialect {
            Dialect::Xdp => "mr_verdict_xdp",
            Dialect::Handlers => "mr_verdict_handlers",
        };
        let verdict = self.scalar(id, Reg(0))?;
        let keep = if self.unit.verdicts {
            "self->verdict = "
        } else {
            ""
        };
        let done = self
            .attempt
            .map_or_else(Code::default, |a| c!(", {}", a.done));
        Ok(c!("return {}(pkt, {}{}){};", meaning, keep, verdict, done))
    }

    /// Whether a step is the program's end, which each jump to it repeats: where the ways to it are
    /// still apart the verdict is mostly a constant, and its meaning folds.
    fn ends(&self, id: StepId) -> bool {
        self.purpose == Purpose::Program
            && self.slice.verdict
            && self.slice.role(id) == Role::Run
            && self.slice.step(id).op == Op::Exit
    }

    /// A jump.
    fn leave(&self, target: StepId) -> Result<Code, Error> {
        if self.ends(target) {
            self.exit(target)
        } else {
            Ok(c!("goto L{};", target.0))
        }
    }

    /// Writes statements of a step.
    pub fn emit(&self, out: &mut Text, depth: usize, id: StepId, lines: &[Statement]) {
        if lines.is_empty() {
            return;
        }
        let step = self.slice.step(id);
        let frame = &self.slice.flow.frames[step.frame.0];
        let function = &self.slice.program.functions[frame.function.0];
        let slot = function.slots.get(step.pc).copied().unwrap_or_default();
        // What a call stands for has no slots of its own, and a frame's zeros are nowhere in the program.
        let zeros =
            matches!(step.op, Op::Plain(insn) if function.insns.get(step.pc) != Some(&insn));
        let text = match (frame.expansion, step.op) {
            (None, Op::Plain(insn)) if zeros => format!("{insn} (not written before it is read)"),
            (Some(_), Op::Plain(insn) | Op::Branch { insn, .. }) => insn.to_string(),
            (Some(_), _) => String::new(),
            (None, _) => self.slice.program.text(frame.function, step.pc),
        };
        let comment = format!("{slot}: {text}");
        let mut comment = comment.as_str();
        for statement in lines {
            statement.lines(depth, &mut |depth, text| {
                out.at(step.line.as_ref());
                out.line(depth, text, std::mem::take(&mut comment));
            });
        }
    }

    /// Whether it is a program that comes to its end.
    pub fn runs_whole(&self) -> bool {
        self.purpose == Purpose::Program && self.attempt.is_none()
    }

    /// The statement with which the body leaves.
    ///
    /// # Errors
    /// [`Error::Facts`] where it never does.
    pub fn leaving(&self, id: StepId) -> Result<Code, Error> {
        let attempt = self.attempt.map(|a| a.leave.into());
        attempt.ok_or_else(|| {
            let step = self.slice.step(id);
            self.slice
                .contradiction(step, "a program that leaves before its end")
        })
    }

    /// The object that a call works on.
    ///
    /// # Errors
    /// [`Error::Facts`] where there is none.
    pub fn object(&self, id: StepId) -> Result<(ObjectId, &'a StateObject), Error> {
        super::call::object(self, id)
    }

    /// What is looked at before a step, where somebody asked. `follows`: what it always comes after.
    fn claimed(&self, id: StepId, follows: Option<StepId>) -> Vec<Statement> {
        match self.slice.role(id) {
            Role::Run if self.purpose == Purpose::Program => self.claims(id, follows),
            _ => Vec::new(),
        }
    }

    /// Steps that come after one other only, which goes on nowhere else and in the same frame.
    fn follows(&self, order: &[StepId]) -> BTreeMap<StepId, StepId> {
        let mut before: BTreeMap<StepId, Vec<StepId>> = BTreeMap::new();
        for id in order {
            for next in self.slice.successors(*id) {
                before.entry(next).or_default().push(*id);
            }
        }
        let only = |(id, all): (StepId, Vec<StepId>)| match all.as_slice() {
            [one] => {
                let step = self.slice.step(*one);
                let same = step.frame == self.slice.step(id).frame;
                (matches!(step.op, Op::Plain(_)) && same).then_some((id, *one))
            }
            _ => None,
        };
        before.into_iter().filter_map(only).collect()
    }

    /// What a step does, its jumps excluded.
    ///
    /// # Errors
    /// [`Error::Facts`] or [`Error::Unsupported`], with the place in the author's program.
    pub fn step(&self, id: StepId) -> Result<Vec<Statement>, Error> {
        let step = self.slice.step(id);
        match self.slice.role(id) {
            Role::Absent => return Ok(Vec::new()),
            Role::Stop if self.purpose == Purpose::Prefetch => return Ok(vec!["return;".into()]),
            Role::Stop if self.purpose == Purpose::Part => return self.hooks.ends(self, Some(id)),
            Role::Stop => {
                let mut all = self.hooks.leaving(id);
                all.push(self.leaving(id)?.into());
                return Ok(all);
            }
            Role::Pass => return Ok(Vec::new()),
            Role::Given => return Ok(self.given(id)),
            Role::Site(site) => return super::call::prefetch_site(self, id, site, "return;"),
            Role::Run => {}
        }
        match step.op {
            Op::Plain(insn) => statement::whole(self, id, &insn),
            Op::Jump { .. } => Ok(Vec::new()),
            Op::Branch { .. } if !step.outcomes.holds && !step.outcomes.fails => {
                Ok(vec!["__builtin_trap();".into()])
            }
            Op::Branch { .. } => Ok(Vec::new()),
            Op::Enter { frame, target } => {
                let called = self.slice.flow.frames[frame.0].function;
                let outer = step.frame == FrameId(0);
                let up = self.takes_up.filter(|_| outer);
                let mut out = Vec::from_iter(up.and_then(|t| t.before(called)));
                for reg in (1..=5).map(Reg) {
                    let forms = self.demand.before(self.slice, target, frame, reg);
                    self.copy(id, reg, frame, forms, &mut out)?;
                }
                Ok(out)
            }
            Op::Leave { target } => {
                let mut out = Vec::new();
                if let Some(caller) = self.slice.flow.frames[step.frame.0].caller {
                    let forms = self.demand.before(self.slice, target, caller, Reg(0));
                    self.copy(id, Reg(0), caller, forms, &mut out)?;
                }
                Ok(out)
            }
            Op::Exit if self.purpose == Purpose::Part => self.hooks.ends(self, None),
            Op::Exit if self.purpose == Purpose::Prefetch || !self.slice.verdict => {
                Ok(vec!["return;".into()])
            }
            Op::Exit => Ok(vec![self.exit(id)?.into()]),
        }
    }

    /// A step's result from elsewhere.
    fn given(&self, id: StepId) -> Vec<Statement> {
        let Op::Plain(insn) = self.slice.step(id).op else {
            return Vec::new();
        };
        match (millrace_check::facts::written(&insn), self.hooks.given(id)) {
            (Some(reg), Some(value)) => self.assign(id, reg, Forms::SCALAR, &value),
            _ => Vec::new(),
        }
    }

    /// The place of a byte of a frame's stack.
    ///
    /// # Errors
    /// [`Error::Facts`] where nothing touches it.
    pub fn stack_at(&self, id: StepId, frame: FrameId, offset: i32) -> Result<Code, Error> {
        let found = self.stack.find(frame, offset);
        let object = found.filter(|o| (o.from..o.to).contains(&offset));
        let object = object.ok_or_else(|| {
            let step = self.slice.step(id);
            self.slice
                .contradiction(step, format!("stack byte {offset} that nothing touches"))
        })?;
        Ok(match offset - object.from {
            0 => Local::Stack(*object).into(),
            at => c!("({} + {})", Local::Stack(*object), at),
        })
    }

    /// A register into the same register of another frame.
    fn copy(
        &self,
        id: StepId,
        reg: Reg,
        to: FrameId,
        forms: Forms,
        out: &mut Vec<Statement>,
    ) -> Result<(), Error> {
        if forms.scalar {
            out.push(c!("{} = {};", Local::Number(to, reg), self.scalar(id, reg)?).into());
        }
        if forms.pointer {
            out.push(c!("{} = {};", Local::Pointer(to, reg), self.pointer(id, reg)?).into());
        }
        Ok(())
    }

    /// The jumps behind each step: a condition (empty: always) and where to.
    fn gotos(&self, order: &[StepId]) -> Result<Vec<Vec<(Code, StepId)>>, Error> {
        let mut all = Vec::with_capacity(order.len());
        for (at, &id) in order.iter().enumerate() {
            let successors = self.slice.successors(id);
            let mut jumps = Vec::new();
            if let (Op::Branch { insn, .. }, [_, target]) =
                (self.slice.step(id).op, successors.as_slice())
            {
                let condition = match self.hooks.given(id) {
                    Some(given) if self.slice.role(id) == Role::Given => given,
                    _ => branch::condition(self, id, &insn)?,
                };
                jumps.push((self.hooks.condition(id, condition), *target));
            }
            if let Some(first) = successors.first()
                && order.get(at + 1) != Some(first)
            {
                jumps.push((Code::default(), *first));
            }
            all.push(jumps);
        }
        Ok(all)
    }

    /// Declarations: the stack objects, then the registers, that some statement names.
    fn declarations(&self, out: &mut Text, named: &BTreeSet<Local>) {
        let (mut numbers, mut pointers) = (Vec::new(), Vec::new());
        for object in self.stack.objects() {
            if named.contains(&Local::Stack(*object)) {
                let (name, bytes) = (object.name(), object.to - object.from);
                let zero = match self.purpose {
                    Purpose::Part => " = { 0 }",
                    Purpose::Program | Purpose::Prefetch => "",
                };
                out.lines(&format!("\t_Alignas(8) u8 {name}[{bytes}]{zero};"));
            }
        }
        for (index, unwritten) in self.demand.unwritten.iter().enumerate() {
            let frame = FrameId(index);
            for reg in (0..REGISTERS as u8).map(Reg) {
                let start = unwritten.forms(reg);
                let is_context = index == 0
                    && self.slice.step(StepId(0)).before[usize::from(reg.0)] == Kind::Context;
                // A register is read unwritten on a path of the graph that no execution takes, or the compiler
                // cannot see so.
                let part = self.purpose == Purpose::Part && self.slice.starts != [StepId(0)];
                if part {
                    // Paths of the graph that no execution takes.
                    for (local, list) in [
                        (Local::Number(frame, reg), &mut numbers),
                        (Local::Pointer(frame, reg), &mut pointers),
                    ] {
                        if named.contains(&local) {
                            list.push(format!("{} = 0", local.name()));
                        }
                    }
                    continue;
                }
                let (number, pointer) = match is_context {
                    true => ("(u64)(uintptr_t)pkt", "(u8 *)pkt"),
                    false => ("0", "0"),
                };
                for (local, list, begins, value) in [
                    (
                        Local::Number(frame, reg),
                        &mut numbers,
                        start.scalar,
                        number,
                    ),
                    (
                        Local::Pointer(frame, reg),
                        &mut pointers,
                        start.pointer,
                        pointer,
                    ),
                ] {
                    if begins {
                        list.push(format!("{} = {value}", local.name()));
                    } else if named.contains(&local) {
                        list.push(local.name());
                    }
                }
            }
        }
        let known = (named.iter()).filter(|l| matches!(l, Local::Known(_) | Local::Sum(_)));
        numbers.extend(known.map(|l| l.name()));
        if !numbers.is_empty() {
            out.lines(&format!("\tu64 {};", numbers.join(", ")));
        }
        if !pointers.is_empty() {
            out.lines(&format!("\tu8 *{};", pointers.join(", *")));
        }
        out.blank();
    }

    /// Whether a step only computes a register and touches no stack memory.
    pub fn only_computes(&self, id: StepId) -> bool {
        let step = self.slice.step(id);
        let Op::Plain(insn) = step.op else {
            return false;
        };
        match insn {
            Insn::Alu { .. }
            | Insn::Neg { .. }
            | Insn::SignExtend { .. }
            | Insn::ByteOrder { .. }
            | Insn::LoadImm { .. } => true,
            Insn::Load { .. } => !matches!(
                step.access,
                None | Some(
                    millrace_check::facts::Access::Stack { .. }
                        | millrace_check::facts::Access::Several
                )
            ),
            _ => false,
        }
    }
}
