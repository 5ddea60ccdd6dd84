//! A branch that does no more than make an exception of a number (`sum ? sum : 0xffff`, `x < most ? x : most`) is an
//! expression, not two paths: nobody has to be asked whether both ways are possible.

use std::cmp::Ordering;

use millrace_check::facts::Op;
use millrace_object::insn::{Insn, REGISTERS};

use super::Engine;
use super::state::{State, Value};
use crate::expr::{Bin, ExprId, Node};

/// Most instructions of one side.
const MOST: usize = 8;
/// Most steps from a number to what it is made of.
const DEEP: usize = 8;

impl Engine<'_> {
    /// The state where the two sides of a branch meet, if they only compute, and if what they leave different is a
    /// computed number on one of them and the branch compares that with a constant. One of two constants is a decision
    /// that later branches ask for, and one of two numbers for another reason is better told apart.
    pub(super) fn picked(&mut self, s: &State, condition: ExprId, target: usize) -> Option<State> {
        let negated = self.arena.not(condition);
        let known = s.guard.contains(&condition) || s.guard.contains(&negated);
        let (yes, no, join) = self.sides(s.at, target).filter(|_| !known)?;
        let (yes, no) = (self.side(s, yes)?, self.side(s, no)?);
        let block = self.blocks.of.get(join).copied();
        let live = block.and_then(|b| self.live.get(b));
        let live = live.and_then(|l| l.levels.get(s.frames.len().saturating_sub(1)));
        let live: Vec<bool> = (0..REGISTERS)
            .map(|r| live.is_none_or(|l| l.has_reg(r as u8)))
            .collect();
        let mut out = s.clone();
        for (r, live) in live.into_iter().enumerate() {
            let value = match (yes.reg(r), no.reg(r)) {
                (a, b) if a == b => a,
                _ if !live => Value::Unset,
                (Value::Num(a), Value::Num(b)) if self.excepted(condition, a, b) => {
                    Value::Num(self.arena.ite(condition, a, b))
                }
                _ => return None,
            };
            out.set(r, value);
        }
        out.steps = yes.steps.max(no.steps);
        out.at = join;
        Some(out)
    }

    /// Whether one of two numbers is computed and a condition compares it with a constant.
    fn excepted(&mut self, condition: ExprId, a: ExprId, b: ExprId) -> bool {
        let plain = self.arena.negated(condition).unwrap_or(condition);
        let whole = match *self.arena.node(plain) {
            Node::Cmp(_, x, y) if self.arena.constant(y).is_some() => x,
            Node::Cmp(_, x, y) if self.arena.constant(x).is_some() => y,
            _ => return false,
        };
        let (compared, width) = (self.essence(whole), self.arena.width(whole));
        [a, b].into_iter().any(|e| {
            let essence = self.essence(e);
            let low = match self.arena.width(essence).cmp(&width) {
                Ordering::Less => essence,
                _ => self.arena.extract(essence, 0, width),
            };
            !self.is_kept(e) && [essence, low].contains(&compared)
        })
    }

    /// Composition of a number, by adding zeros, taking the lower bits, or a constant.
    fn essence(&self, mut e: ExprId) -> ExprId {
        let constant = |e: &ExprId| self.arena.constant(*e).is_some();
        for _ in 0..DEEP {
            e = match self.arena.node(e) {
                Node::Extract { of, low: 0 } => *of,
                Node::Concat(parts) => {
                    let mut others = parts.iter().filter(|p| !constant(p));
                    match (others.next(), others.next()) {
                        (Some(one), None) => *one,
                        _ => return e,
                    }
                }
                Node::Bin(Bin::Add | Bin::Xor | Bin::And, x, y) if constant(y) => *x,
                Node::Bin(Bin::Add | Bin::Xor | Bin::And, x, y) if constant(x) => *y,
                _ => return e,
            };
        }
        e
    }

    /// Where the sides of a branch begin and end, and where they meet, if each only computes.
    fn sides(&self, at: usize, target: usize) -> Option<([usize; 2], [usize; 2], usize)> {
        // A side goes on where it ends or jumps; one that only jumps, or an empty one, is a side, too.
        let end = |from: usize| -> Option<(usize, usize)> {
            for i in from..from + MOST {
                match self.flow.steps.get(i)?.op {
                    Op::Jump { target } => return Some((i, target.0)),
                    Op::Plain(insn) if computes(insn) => {}
                    _ => return Some((i, i)),
                }
                let next = self.blocks.of.get(i + 1)?;
                if self.blocks.starts.get(*next) == Some(&(i + 1)) {
                    return Some((i + 1, i + 1));
                }
            }
            None
        };
        let (through, over) = (end(at + 1)?, end(target)?);
        if through.1 == target {
            return Some(([target, target], [at + 1, through.0], target));
        }
        if over.1 == at + 1 {
            return Some(([target, over.0], [at + 1, at + 1], at + 1));
        }
        (through.1 == over.1).then_some(([target, over.0], [at + 1, through.0], over.1))
    }

    /// Result of these steps; none also where they compute what has no meaning, as that path may be impossible.
    fn side(&mut self, s: &State, [from, to]: [usize; 2]) -> Option<State> {
        let mut s = s.clone();
        for at in from..to {
            let Some(Op::Plain(insn)) = self.flow.steps.get(at).map(|s| s.op) else {
                return None;
            };
            self.plain(&mut s, insn, None).ok()?;
            s.steps += 1;
        }
        Some(s)
    }
}

/// Whether an instruction changes nothing but a register, and by what is in registers.
fn computes(insn: Insn) -> bool {
    matches!(
        insn,
        Insn::Alu { .. } | Insn::Neg { .. } | Insn::SignExtend { .. } | Insn::ByteOrder { .. }
    )
}
