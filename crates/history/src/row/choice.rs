//! Joins of a row: their parts, the selector on which they hang, and values that are one of few numbers.

use millrace_check::facts::{Access, FrameId, Kind, Op};
use millrace_object::insn::{AluOp, Insn, Operand, Reg, Width};

use crate::effects::Effect;
use crate::expr::Expr;
use crate::places::Which;
use crate::values::{Origin, Value};

use super::Row;

impl Row<'_> {
    /// What a value is computed from where that can be done anywhere, and the expression; none where it is known from the
    /// packet only.
    pub(super) fn parts(&self, v: Value) -> Option<Vec<Value>> {
        let v = self.values.value(v);
        match self.values.origin(v) {
            Origin::Constant(_) | Origin::Address(..) | Origin::Start(_) => Some(Vec::new()),
            Origin::Byte(of, _) => Some(vec![*of]),
            Origin::Bytes(all) => Some(all.clone()),
            Origin::Step(id) => {
                let step = &self.maker.flow.steps[id.0];
                if self.maker.is_time(self.values, v) {
                    return Some(Vec::new());
                }
                if !self.acyclic(id.0) || self.effects[id.0] != Effect::Free || step.whole {
                    return None;
                }
                let Op::Plain(insn) = step.op else {
                    return None;
                };
                let number = |r: Reg| step.before[usize::from(r.0)] == Kind::Scalar;
                match insn {
                    Insn::Alu { op, dst, src, .. } => {
                        let simple = !matches!(
                            op,
                            AluOp::SignedDiv | AluOp::SignedMod | AluOp::Div | AluOp::Mod
                        );
                        let right = match src {
                            Operand::Reg(r) => number(r),
                            Operand::Imm(_) => true,
                        };
                        let left = op == AluOp::Mov || number(dst);
                        let place = op == AluOp::Add && self.indexes(id.0);
                        (simple && (left && right || place)).then(|| self.read(id.0))
                    }
                    Insn::Neg { dst, .. } | Insn::ByteOrder { dst, .. } => {
                        number(dst).then(|| self.read(id.0))
                    }
                    Insn::SignExtend { src, .. } => number(src).then(|| self.read(id.0)),
                    Insn::Load { base, .. } => match step.access {
                        Some(Access::Value(o)) if self.maker.constant(o) => {
                            let base = self.places().register(step.frame, base);
                            let all = &self.values.uses[id.0];
                            let found = all.iter().find(|(p, _)| *p == base)?;
                            let address = self.values.origin(found.1);
                            matches!(address, Origin::Address(..)).then(|| vec![found.1])
                        }
                        _ => None,
                    },
                    _ => None,
                }
            }
            Origin::Join { .. } => {
                let (branch, one, other) = self.choice(v)?;
                let mut all = self.read(branch);
                all.extend([one, other]);
                Some(all)
            }
            Origin::Left { .. } => None,
        }
    }

    /// Whether a step adds a number to an address in a global variable, which is the same on all cores.
    pub(super) fn indexes(&self, at: usize) -> bool {
        let step = &self.maker.flow.steps[at];
        let Op::Plain(Insn::Alu {
            width: Width::W64,
            dst,
            src,
            ..
        }) = step.op
        else {
            return false;
        };
        let kind = |r: Reg| step.before[usize::from(r.0)];
        let global = |r: Reg| match kind(r) {
            Kind::Value(o) => {
                let declared = self.maker.program.objects.get(o.0);
                declared.is_some_and(|o| o.kind.is_global())
            }
            _ => false,
        };
        match src {
            Operand::Reg(src) => {
                global(dst) && kind(src) == Kind::Scalar || global(src) && kind(dst) == Kind::Scalar
            }
            Operand::Imm(_) => global(dst),
        }
    }

    pub(super) fn read(&self, at: usize) -> Vec<Value> {
        let all = self.values.uses[at].iter();
        all.map(|(_, v)| self.values.value(*v)).collect()
    }

    /// A join behind one branch: the branch, the value where its condition holds, and where it fails.
    pub(super) fn choice(&self, v: Value) -> Option<(usize, Value, Value)> {
        let Origin::Join { block, .. } = *self.values.origin(v) else {
            return None;
        };
        let ways = self.values.joined.get(&self.values.value(v))?;
        let [(p, a), (q, b)] = ways.as_slice() else {
            return None;
        };
        if self.graph.cyclic[block] {
            return None;
        }
        let only = |x: usize| match self.graph.blocks.get(x)?.before.as_slice() {
            [one] if self.graph.blocks[x].next.len() == 1 => Some(*one),
            _ => None,
        };
        // The branch's block, and through which block each way leaves it.
        let (branch, first, second) = match (only(*p), only(*q)) {
            (Some(x), _) if x == *q => (*q, *p, block),
            (_, Some(y)) if y == *p => (*p, block, *q),
            (Some(x), Some(y)) if x == y => (x, *p, *q),
            _ => return None,
        };
        let at = self.graph.blocks.get(branch)?.to - 1;
        let step = &self.maker.flow.steps[at];
        let Op::Branch { target, insn } = step.op else {
            return None;
        };
        let Insn::Branch { left, right, .. } = insn else {
            return None;
        };
        let number = |r: Reg| step.before[usize::from(r.0)] == Kind::Scalar;
        let numbers = number(left)
            && match right {
                Operand::Reg(r) => number(r),
                Operand::Imm(_) => true,
            };
        let holds = self.graph.of[target.0]?;
        let both = step.outcomes.holds && step.outcomes.fails && first != second;
        if !numbers || !both || step.whole {
            return None;
        }
        match (first == holds, second == holds) {
            (true, false) => Some((at, *a, *b)),
            (false, true) => Some((at, *b, *a)),
            _ => None,
        }
    }

    /// The numbers that a join may be, by way; none if it may be something else.
    pub(super) fn numbers(&self, v: Value) -> Option<(usize, Vec<u64>)> {
        let Origin::Join { block, .. } = *self.values.origin(v) else {
            return None;
        };
        if self.graph.cyclic[block] {
            return None;
        }
        let ways = self.values.joined.get(&self.values.value(v))?;
        let numbers = ways.iter().map(|(_, v)| match *self.values.origin(*v) {
            Origin::Constant(n) => Some(n),
            _ => None,
        });
        Some((block, numbers.collect::<Option<_>>()?))
    }

    /// Whether a frame's call is under way at the site.
    pub(super) fn active(&self, frame: FrameId) -> bool {
        let frames = &self.maker.flow.frames;
        let mut at = self.maker.flow.steps.get(self.site).map(|s| s.frame);
        while let Some(here) = at {
            if here == frame {
                return true;
            }
            at = frames.get(here.0).and_then(|f| f.caller);
        }
        false
    }

    /// A value where the program comes to the site: in a register, in the stack, or kept.
    pub(super) fn held(&self, v: Value) -> Option<Expr> {
        let v = self.values.value(v);
        let registers = self.maker.flow.frames.len() * millrace_object::insn::REGISTERS;
        // What a frame held that has returned is no longer there.
        let holds = |p: &usize| {
            self.state[*p] == v
                && match self.places().which(*p) {
                    Which::Register(frame, _) | Which::Stack(frame, _) => self.active(frame),
                    _ => false,
                }
        };
        if let Some(p) = (0..registers).find(holds)
            && let Which::Register(frame, reg) = self.places().which(p)
        {
            return match self.pointer(v, 0) {
                None => Some(Expr::Register(frame, reg)),
                Some(Kind::Packet | Kind::PacketEnd | Kind::PacketMeta) => {
                    Some(Expr::Pointer(frame, reg))
                }
                Some(_) => None,
            };
        }
        if self.pointer(v, 0).is_some() {
            return None;
        }
        if let Some(p) = self.places().all_stacks().find(holds)
            && self.values.bits(v) <= 0xff
            && let Which::Stack(frame, at) = self.places().which(p)
        {
            return Some(Expr::Stack(frame, at));
        }
        let byte = |at: u8| {
            self.places().all_stacks().find(|p| {
                let there = matches!(self.places().which(*p), Which::Stack(f, _) if self.active(f));
                there && matches!(*self.values.origin(self.state[*p]), Origin::Byte(of, i) if i == at && self.values.value(of) == v)
            })
        };
        let needed = self.values.bits(v) & self.demand.get(&v).copied().unwrap_or(u64::MAX);
        let mut all = Vec::new();
        for at in 0..8u8 {
            if needed >> (8 * u32::from(at)) == 0 {
                break;
            }
            if needed >> (8 * u32::from(at)) & 0xff == 0 {
                all.push(Expr::Number(0));
                continue;
            }
            match byte(at).map(|p| self.places().which(p)) {
                Some(Which::Stack(frame, offset)) => all.push(Expr::Stack(frame, offset)),
                _ => {
                    all.clear();
                    break;
                }
            }
        }
        if !all.is_empty() {
            return Some(Expr::Bytes(all));
        }
        match *self.values.origin(v) {
            Origin::Step(id)
                if self.acyclic(id.0)
                    && !self.behind[id.0]
                    && self.maker.flow.steps[id.0].after == Kind::Scalar =>
            {
                Some(Expr::Kept(id))
            }
            _ => None,
        }
    }

    /// The joins of a block that are numbers, with the ways told apart by one of them.
    pub(super) fn selector(&self, block: usize, all: &[Value]) -> Option<(Value, Vec<usize>)> {
        let tuples: Vec<Vec<u64>> = {
            let ways = all
                .iter()
                .filter_map(|v| Some(self.numbers(*v)?.1.len()))
                .max()?;
            (0..ways)
                .map(|w| {
                    let of = |v: &Value| self.numbers(*v).and_then(|(_, n)| n.get(w).copied());
                    all.iter().filter_map(of).collect()
                })
                .collect()
        };
        debug_assert!(
            all.iter()
                .all(|v| self.numbers(*v).is_some_and(|(b, _)| b == block))
        );
        let mut distinct: Vec<usize> = Vec::new();
        for (w, tuple) in tuples.iter().enumerate() {
            if !distinct.iter().any(|d| tuples[*d] == *tuple) {
                distinct.push(w);
            }
        }
        let tells = |v: &&Value| {
            let Some((_, numbers)) = self.numbers(**v) else {
                return false;
            };
            let mut seen: Vec<u64> = distinct
                .iter()
                .filter_map(|w| numbers.get(*w).copied())
                .collect();
            seen.sort_unstable();
            seen.dedup();
            seen.len() == distinct.len() && self.held(**v).is_some()
        };
        all.iter().find(tells).map(|v| (*v, distinct))
    }
}
