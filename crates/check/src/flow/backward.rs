//! Two passes from the end to the beginning: which places are read later (liveness), and which may
//! flow into a proof (relevance), given the instructions where proofs are needed.

use std::collections::{HashMap, HashSet};

use millrace_object::helper;
use millrace_object::insn::{AluOp, AtomicOp, Insn, Operand, Reg};
use millrace_object::program::Role;

use super::graph::Blocks;
use super::places::{Places, Span};
use super::points::Touch;
use crate::facts::{Flow, Op, StepId};

/// Where proofs are needed, as far as it is known.
#[derive(Clone, Debug, Default)]
pub struct Needs {
    /// branches whose outcome matters
    pub branches: HashSet<StepId>,
    /// numbers that become part of a pointer or a size, by register bits
    pub numbers: HashMap<StepId, u16>,
    /// counters of loops, at the loop's head: registers of the innermost frame, and stack memory
    pub counters: HashMap<usize, (u16, Vec<Span>)>,
    /// loads of values that flow into a proof are wanted, not only what the explorer should keep:
    /// what is compared with another number counts, too
    pub strict: bool,
}

/// What a pass works on.
pub struct Backward<'a> {
    /// the flow
    pub flow: &'a Flow,
    /// its blocks
    pub blocks: &'a Blocks,
    /// its stack accesses
    pub touches: &'a [Touch],
    /// what makes it run
    pub role: Role,
}

/// Most passes over the blocks; nested loops need about one each. Past it everything counts.
const PASSES: u32 = 64;

/// A set at the start of every block.
pub type AtStart = Vec<Places>;

fn bit(r: Reg) -> u16 {
    1u16.checked_shl(u32::from(r.0)).unwrap_or(0)
}

fn operand(o: Operand) -> u16 {
    match o {
        Operand::Reg(r) => bit(r),
        Operand::Imm(_) => 0,
    }
}

/// `r0` to `r5`
const CALLER_SAVED: u16 = 0x3f;

impl Backward<'_> {
    /// Places that are read later, at the start of each block.
    #[must_use]
    pub fn live(&self) -> AtStart {
        self.solve(&|at, set| self.live_step(at, set))
    }

    /// Places that may flow into a proof, at the start of each block.
    #[must_use]
    pub fn relevant(&self, needs: &Needs) -> AtStart {
        self.solve(&|at, set| self.relevant_step(at, set, needs))
    }

    /// Loads whose result may flow into a proof.
    #[must_use]
    pub fn loads(&self, needs: &Needs) -> Vec<bool> {
        let at_start = self.relevant(needs);
        let mut marked = vec![false; self.flow.steps.len()];
        for &b in &self.blocks.order {
            let mut set = self.at_end(b, &at_start);
            for at in self.blocks.steps(b).rev() {
                if let Some(Op::Plain(Insn::Load { dst, .. } | Insn::Atomic { src: dst, .. })) =
                    self.flow.steps.get(at).map(|s| s.op)
                {
                    marked[at] = set.top().has_reg(dst.0);
                }
                self.relevant_step(at, &mut set, needs);
            }
        }
        marked
    }

    fn depth(&self, at: usize) -> usize {
        self.touches.get(at).map_or(1, |t| usize::from(t.depth) + 1)
    }

    fn solve(&self, transfer: &dyn Fn(usize, &mut Places)) -> AtStart {
        let n = self.blocks.starts.len();
        let mut at_start: AtStart = (0..n)
            .map(|b| Places::empty(self.depth(self.blocks.starts[b])))
            .collect();
        let mut todo = vec![true; n];
        for _ in 0..PASSES {
            let mut changed = false;
            for &b in self.blocks.order.iter().rev() {
                if !std::mem::take(&mut todo[b]) {
                    continue;
                }
                let mut set = self.at_end(b, &at_start);
                for at in self.blocks.steps(b).rev() {
                    transfer(at, &mut set);
                }
                if at_start[b].absorb(&set) {
                    changed = true;
                    for &p in &self.blocks.before[b] {
                        todo[p] = true;
                    }
                }
            }
            if !changed {
                return at_start;
            }
        }
        at_start.iter_mut().for_each(Places::fill);
        at_start
    }

    /// The set after the last step of a block, in terms of that step's frames.
    fn at_end(&self, block: usize, at_start: &AtStart) -> Places {
        let steps = self.blocks.steps(block);
        let last = steps.end.saturating_sub(1);
        let depth = self.depth(last);
        let mut set = Places::empty(depth);
        for &to in &self.blocks.next[block] {
            let next = &at_start[to];
            match self.flow.steps[last].op {
                Op::Enter { .. } => {
                    set.absorb(next);
                    // Arguments are copied into the callee's registers, the others are lost.
                    set.remove_regs(CALLER_SAVED);
                    let arguments = next.levels.get(depth).map_or(0, |l| l.regs & 0x3e);
                    set.add_regs(arguments);
                }
                Op::Leave { .. } => {
                    let mut callers = next.clone();
                    let result = callers.top().has_reg(0);
                    callers.remove_regs(CALLER_SAVED);
                    set.absorb(&callers);
                    if result {
                        set.add_regs(1);
                    }
                }
                _ => {
                    set.absorb(next);
                }
            }
        }
        set
    }

    fn live_step(&self, at: usize, set: &mut Places) {
        let (Some(step), Some(touch)) = (self.flow.steps.get(at), self.touches.get(at)) else {
            return;
        };
        match step.op {
            Op::Plain(insn) => match insn {
                Insn::Alu {
                    op: AluOp::Mov,
                    dst,
                    src,
                    ..
                } => {
                    set.remove_regs(bit(dst));
                    set.add_regs(operand(src));
                }
                Insn::Alu { dst, src, .. } => set.add_regs(bit(dst) | operand(src)),
                Insn::Neg { dst, .. } | Insn::ByteOrder { dst, .. } => set.add_regs(bit(dst)),
                Insn::SignExtend { dst, src, .. } => {
                    set.remove_regs(bit(dst));
                    set.add_regs(bit(src));
                }
                Insn::LoadImm { dst, .. } => set.remove_regs(bit(dst)),
                Insn::Load { dst, base, .. } => {
                    set.remove_regs(bit(dst));
                    set.add_regs(bit(base));
                    set.add_span(touch.access);
                }
                Insn::Store { base, src, .. } => {
                    set.remove_span(touch.access);
                    set.add_regs(bit(base) | operand(src));
                }
                Insn::Atomic { op, base, src, .. } => {
                    set.add_regs(bit(base) | bit(src) | u16::from(op == AtomicOp::CompareExchange));
                    set.add_span(touch.access);
                }
                Insn::Call { helper } => {
                    set.remove_regs(CALLER_SAVED);
                    let n = helper::by_number(helper).map_or(5, |h| h.args.len());
                    set.add_regs(((1u16 << n.min(5)) - 1) << 1);
                    for &r in &touch.reads {
                        set.add_span(r);
                    }
                }
                _ => {}
            },
            Op::Branch {
                insn: Insn::Branch { left, right, .. },
                ..
            } => set.add_regs(bit(left) | operand(right)),
            Op::Exit if matches!(self.role, Role::Xdp | Role::OnPacket) => set.add_regs(1),
            _ => {}
        }
    }

    fn relevant_step(&self, at: usize, set: &mut Places, needs: &Needs) {
        let (Some(step), Some(touch)) = (self.flow.steps.get(at), self.touches.get(at)) else {
            return;
        };
        match step.op {
            Op::Plain(insn) => {
                match insn {
                    Insn::Alu {
                        op: AluOp::Mov,
                        dst,
                        src,
                        ..
                    } => move_to(set, bit(dst), operand(src)),
                    Insn::Alu { dst, src, .. } if set.top().has_reg(dst.0) => {
                        set.add_regs(operand(src));
                    }
                    Insn::SignExtend { dst, src, .. } => move_to(set, bit(dst), bit(src)),
                    Insn::LoadImm { dst, .. } => set.remove_regs(bit(dst)),
                    Insn::Load { dst, .. } => {
                        let wanted = set.top().has_reg(dst.0);
                        set.remove_regs(bit(dst));
                        if wanted {
                            set.add_span(touch.access);
                        }
                    }
                    Insn::Store { src, .. } if set.touches(touch.access) => {
                        set.remove_span(touch.access);
                        set.add_regs(operand(src));
                    }
                    Insn::Call { .. } => set.remove_regs(CALLER_SAVED),
                    _ => {}
                }
                let number = needs.numbers.get(&StepId(at)).copied().unwrap_or(0);
                set.add_regs(number | touch.proof);
            }
            Op::Branch {
                insn: Insn::Branch { left, right, .. },
                ..
            } => {
                let sides = bit(left) | operand(right);
                let pair = matches!(right, Operand::Reg(_));
                // What a relevant number is compared with bounds it.
                if needs.branches.contains(&StepId(at))
                    || needs.strict && pair
                    || set.top().regs & sides != 0
                {
                    set.add_regs(sides);
                }
            }
            _ => {}
        }
        if let Some((regs, spans)) = needs.counters.get(&at) {
            set.add_regs(*regs);
            for &s in spans {
                set.add_span(s);
            }
        }
    }
}

fn move_to(set: &mut Places, dst: u16, src: u16) {
    let wanted = set.top().regs & dst != 0;
    set.remove_regs(dst);
    if wanted {
        set.add_regs(src);
    }
}
