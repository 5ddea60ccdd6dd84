//! The input of an exploration: the flow's shape, what to forget where, which loops to take round by round. Between
//! explorations that fail, the plan is refined.

use std::collections::{HashMap, HashSet};

use millrace_object::program::{Program, Role};

use super::counted_down;
use crate::facts::{Flow, FrameId, Op, StepId};
use crate::flow::backward::{AtStart, Backward, Needs};
use crate::flow::graph::Blocks;
use crate::flow::hints;
use crate::flow::loops::{LoopId, Loops};
use crate::flow::places::{Level, Places, Span};
use crate::flow::points::{Touch, points};
use millrace_object::insn::{Insn, Operand, Reg};

/// A place that may count the rounds of a loop.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Counter {
    /// a register of the head's frame
    Reg(Reg),
    /// stack memory: the depth of its frame, the first byte from the lowest, the number of bytes
    Slot(u8, u16, u8),
}

/// The plan.
pub struct Plan<'a> {
    flow: &'a Flow,
    role: Role,
    /// basic blocks
    pub blocks: Blocks,
    /// loops
    pub loops: Loops,
    touches: Vec<Touch>,
    /// places of the innermost frame that may hold a pointer, at the start of each block
    pub pointers: Vec<Level>,
    /// places read later, at the start of each block
    pub live: AtStart,
    /// places that may flow into a proof; none: all of them
    pub relevant: Option<AtStart>,
    /// loops that are taken round by round
    pub unroll: HashSet<LoopId>,
    /// blocks at whose start states are not joined
    pub apart: HashSet<usize>,
    /// no states are joined
    pub exact: bool,
    /// places that may count a loop's rounds
    pub counters: Vec<Vec<Counter>>,
    /// numbers at which a growing bound pauses
    pub thresholds: Vec<u64>,
    needs: Needs,
    budgets: Vec<Option<FrameId>>,
    /// gather stack bytes that are read before they are written, instead of refusing them
    pub gathers: bool,
}

impl<'a> Plan<'a> {
    /// Before the first exploration: only pointer arithmetic and sizes need proofs.
    #[must_use]
    pub fn new(program: &Program, flow: &'a Flow, role: Role) -> Self {
        let blocks = Blocks::of(flow);
        let loops = Loops::of(&blocks);
        let (touches, pointers) = points(program, flow, &blocks);
        let live = Backward {
            flow,
            blocks: &blocks,
            touches: &touches,
            role,
        }
        .live();
        let mut needs = Needs {
            branches: HashSet::new(),
            numbers: HashMap::new(),
            counters: HashMap::new(),
            strict: false,
        };
        let mut counters = Vec::new();
        for l in &loops.all {
            let head = blocks.starts[l.head];
            let (mut regs, spans) = hints::counters(flow, &blocks, &touches, l);
            regs &= live.get(l.head).map_or(0, |p| p.top().regs);
            let mut places: Vec<Counter> = (0..10)
                .filter(|r| regs >> r & 1 == 1)
                .map(|r| Counter::Reg(Reg(r)))
                .collect();
            for s in &spans {
                if let Span::Exact(d, at, len @ (4 | 8)) = *s {
                    places.push(Counter::Slot(d, at, len as u8));
                }
            }
            counters.push(places);
            needs.counters.insert(head, (regs, spans));
        }
        let budgets = counted_down::of(flow, &blocks, &loops);
        let mut plan = Plan {
            budgets,
            flow,
            role,
            blocks,
            loops,
            touches,
            pointers,
            live,
            relevant: None,
            unroll: HashSet::new(),
            apart: HashSet::new(),
            exact: false,
            counters,
            thresholds: hints::thresholds(flow),
            needs,
            gathers: false,
        };
        plan.unroll.extend(
            (0..plan.loops.all.len())
                .filter(|&l| plan.counters[l].is_empty() && plan.budgets[l].is_none()),
        );
        plan.refresh();
        plan
    }

    /// The frame whose `may_goto` bound a loop, if they do.
    #[must_use]
    pub fn budgeted(&self, l: LoopId) -> Option<FrameId> {
        self.budgets.get(l).copied().flatten()
    }

    fn backward(&self) -> Backward<'_> {
        Backward {
            flow: self.flow,
            blocks: &self.blocks,
            touches: &self.touches,
            role: self.role,
        }
    }

    fn refresh(&mut self) {
        self.relevant = Some(self.backward().relevant(&self.needs));
    }

    /// Whether the rounds of a loop are taken together.
    #[must_use]
    pub fn counted(&self, l: LoopId) -> bool {
        !self.unroll.contains(&l)
    }

    /// What may flow into a proof at the start of a block; none: everything.
    #[must_use]
    pub fn relevant_at(&self, block: usize) -> Option<&Places> {
        self.relevant.as_ref().and_then(|r| r.get(block))
    }

    /// Remembers more from now on; false if nothing new was asked for.
    pub fn refine(&mut self, branches: &[StepId], numbers: &[StepId]) -> bool {
        if self.relevant.is_none() {
            return false;
        }
        let mut new = false;
        for &b in branches {
            new |= self.needs.branches.insert(b);
        }
        for &n in numbers {
            let regs = self.number_regs(n);
            let old = self.needs.numbers.entry(n).or_insert(0);
            new |= *old | regs != *old;
            *old |= regs;
        }
        if new {
            self.refresh();
        }
        new
    }

    /// Forgets nothing from now on; false if that was so already.
    pub fn remember_all(&mut self) -> bool {
        self.relevant.take().is_some()
    }

    /// Loads whose result carries a proof, given where proofs were needed in the end and which
    /// branches were decided by what was known.
    #[must_use]
    pub fn carrying_loads(&self, numbers: &[StepId], decided: &[StepId]) -> Vec<bool> {
        let mut needs = self.needs.clone();
        needs.strict = true;
        needs.branches.extend(decided);
        for &n in numbers {
            *needs.numbers.entry(n).or_insert(0) |= self.number_regs(n);
        }
        self.backward().loads(&needs)
    }

    fn number_regs(&self, step: StepId) -> u16 {
        let reg = |r: Reg| 1u16.checked_shl(u32::from(r.0)).unwrap_or(0);
        match self.flow.steps.get(step.0).map(|s| s.op) {
            Some(Op::Plain(Insn::Alu { dst, src, .. })) => {
                reg(dst)
                    | match src {
                        Operand::Reg(r) => reg(r),
                        Operand::Imm(_) => 0,
                    }
            }
            Some(Op::Plain(Insn::Call { .. })) => 0x3e,
            _ => 0,
        }
    }
}
