//! Demand analysis: the form in which each register is needed at each step, as a number, as a pointer, both, or neither.
//!
//! A BPF register becomes two C locals, `u64 r1_0` and `u8 *p1_0` (register 1, frame 0). Writing
//! both at each definition would hide from LLVM what is a pointer and would leave dead code, so a
//! backward analysis, liveness with two bits a register, finds for each definition which forms
//! some later instruction reads. A constant stack pointer, the context and a state object need
//! neither: they are written as address expressions where they are used.
//!
//! Only the frames on the current call path have live registers, so a point's demand is one word
//! per level of calls.

use std::collections::{BTreeMap, BTreeSet};

use millrace_check::facts::{FrameId, Op, Step, StepId};
use millrace_object::helper;
use millrace_object::insn::{Insn, REGISTERS, Reg};

use super::forms::{Forms, needs};
use super::reads;
use super::slice::{Role, Slice};

/// The registers of one frame with their forms: two bits each.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Live(u32);

impl Live {
    /// The forms of one register.
    pub fn forms(self, reg: Reg) -> Forms {
        let bits = self.0 >> (2 * u32::from(reg.0));
        Forms {
            scalar: bits & 1 != 0,
            pointer: bits & 2 != 0,
        }
    }

    /// Needs these too.
    pub fn add(&mut self, reg: Reg, forms: Forms) {
        self.0 |= forms.bits() << (2 * u32::from(reg.0));
    }

    fn add_all(&mut self, other: Live, registers: std::ops::RangeInclusive<u8>) {
        for reg in registers.map(Reg) {
            self.add(reg, other.forms(reg));
        }
    }

    /// Needs it no longer: it is written here.
    pub fn remove(&mut self, reg: Reg) {
        self.0 &= !(3 << (2 * u32::from(reg.0)));
    }
}

/// What is different where a program is cut into a prefetch pass and the rest.
#[derive(Default)]
pub struct Cut {
    /// needed of a prefetch pass where it ends, besides what the token is computed from, by level of calls
    pub ends: BTreeMap<StepId, Vec<Live>>,
    /// keyed operations of the rest whose key was kept as a whole, so that its address is not needed
    pub kept_keys: BTreeSet<StepId>,
    /// steps whose result is kept as a number
    pub kept: BTreeSet<StepId>,
}

/// The result: what is needed after each step, and which locals need a value from the start.
pub struct Demand {
    levels: usize,
    kept: BTreeSet<StepId>,
    /// `levels` words a step: needed before it
    before: Vec<Live>,
    /// by frame: read on some path of the graph that does not write them first
    pub unwritten: Vec<Live>,
}

impl Demand {
    /// Solves the backward equations over a slice by a work list.
    pub fn solve(slice: &Slice) -> Demand {
        Demand::of_part(slice, &Cut::default())
    }

    /// The same for a part of a program.
    pub fn of_part(slice: &Slice, cut: &Cut) -> Demand {
        let levels = slice.levels();
        let steps = slice.flow.steps.len();
        let order = slice.layout();
        let mut predecessors = vec![Vec::new(); steps];
        for &id in &order {
            for next in slice.successors(id) {
                predecessors[next.0].push(id);
            }
        }
        let mut demand = Demand {
            levels,
            kept: cut.kept.clone(),
            before: vec![Live::default(); steps * levels],
            unwritten: vec![Live::default(); slice.flow.frames.len()],
        };
        // A stack of the steps in layout order pops the last first, the good order backwards.
        let mut queued = vec![true; steps];
        let mut work = order;
        while let Some(id) = work.pop() {
            queued[id.0] = false;
            let before = demand.transfer(slice, id, cut);
            let row = &mut demand.before[id.0 * levels..][..levels];
            if row != before.as_slice() {
                row.copy_from_slice(&before);
                for &p in &predecessors[id.0] {
                    if !queued[p.0] {
                        queued[p.0] = true;
                        work.push(p);
                    }
                }
            }
        }
        // Somewhere in the middle all that is needed is brought along.
        if slice.starts == [StepId(0)] {
            let start = demand.row(StepId(0))[0];
            demand.unwritten[0].add_all(start, 0..=REGISTERS as u8 - 1);
        }
        demand
    }

    /// The forms of a register of the step's own frame that are needed after the step.
    pub fn after(&self, slice: &Slice, id: StepId, reg: Reg) -> Forms {
        let level = slice.depth(slice.step(id).frame);
        let mut live = Live::default();
        for next in slice.successors(id) {
            live.0 |= self.row(next)[level].0;
        }
        if self.kept.contains(&id) {
            live.add(reg, Forms::SCALAR);
        }
        live.forms(reg)
    }

    /// The forms of a register of `frame` that are needed before the step.
    pub fn before(&self, slice: &Slice, id: StepId, frame: FrameId, reg: Reg) -> Forms {
        self.row(id)[slice.depth(frame)].forms(reg)
    }

    /// What is needed before the step, by level of calls.
    pub fn row(&self, id: StepId) -> &[Live] {
        &self.before[id.0 * self.levels..][..self.levels]
    }

    fn transfer(&mut self, slice: &Slice, id: StepId, cut: &Cut) -> Vec<Live> {
        let mut live = vec![Live::default(); self.levels];
        for next in slice.successors(id) {
            for (level, needed) in live.iter_mut().zip(self.row(next)) {
                level.0 |= needed.0;
            }
        }
        let step = slice.step(id);
        let level = slice.depth(step.frame);
        if cut.kept.contains(&id)
            && let Op::Plain(insn) = step.op
            && let Some(reg) = millrace_check::facts::written(&insn)
        {
            live[level].add(reg, Forms::SCALAR);
        }
        match slice.role(id) {
            Role::Absent | Role::Pass => return live,
            Role::Stop => {
                for (level, needed) in live.iter_mut().zip(cut.ends.get(&id).into_iter().flatten())
                {
                    level.0 |= needed.0;
                }
                return live;
            }
            Role::Given => {
                if let Op::Plain(insn) = step.op
                    && let Some(reg) = millrace_check::facts::written(&insn)
                {
                    live[level].remove(reg);
                }
                return live;
            }
            Role::Site(_) => {
                // What the token is computed from, and what the rest needs.
                for (level, needed) in live.iter_mut().zip(cut.ends.get(&id).into_iter().flatten())
                {
                    level.0 |= needed.0;
                }
                if let Some(reg) = key(step) {
                    live[level].add(reg, needs(step, reg, Forms::POINTER));
                }
                return live;
            }
            Role::Run => {}
        }
        // What a call leaves in these registers is not there in C. No execution reads it, but the graph may
        // have a path that does.
        if let Op::Plain(Insn::Call { .. }) = step.op {
            self.unwritten[step.frame.0].add_all(live[level], 1..=5);
        }
        match step.op {
            Op::Plain(insn) => {
                reads::plain(step, &insn, &mut live[level]);
                if let Some(reg) = key(step).filter(|_| cut.kept_keys.contains(&id)) {
                    live[level].remove(reg);
                }
            }
            Op::Branch { insn, .. } => {
                if step.outcomes.holds && step.outcomes.fails {
                    reads::branch(step, &insn, &mut live[level]);
                }
            }
            Op::Jump { .. } => {}
            Op::Enter { frame, .. } => {
                let inner = std::mem::take(&mut live[level + 1]);
                for reg in (0..REGISTERS as u8).map(Reg) {
                    let forms = inner.forms(reg);
                    match reg.0 {
                        1..=5 => live[level].add(reg, needs(step, reg, forms)),
                        _ => self.unwritten[frame.0].add(reg, forms),
                    }
                }
            }
            Op::Leave { .. } => {
                if let Some(outer) = level.checked_sub(1) {
                    let forms = live[outer].forms(Reg(0));
                    if let Some(caller) = slice.flow.frames[step.frame.0].caller {
                        self.unwritten[caller.0].add_all(live[outer], 1..=5);
                    }
                    for reg in (0..=5).map(Reg) {
                        live[outer].remove(reg);
                    }
                    live[level].add(Reg(0), needs(step, Reg(0), forms));
                }
            }
            Op::Exit if slice.verdict => {
                live[level].add(Reg(0), needs(step, Reg(0), Forms::SCALAR));
            }
            Op::Exit => {}
        }
        for (level, needed) in live.iter_mut().zip(cut.ends.get(&id).into_iter().flatten()) {
            level.0 |= needed.0;
        }
        live
    }
}

/// The register that holds the address of a keyed operation's key.
pub fn key(step: &Step) -> Option<Reg> {
    let Op::Plain(Insn::Call { helper: number }) = step.op else {
        return None;
    };
    let at = helper::by_number(number)?.key_argument()?;
    Some(Reg(at as u8 + 1))
}
