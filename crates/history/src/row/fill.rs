//! Sources of a row's fields, and values that are computed from them.

use std::collections::BTreeMap;

use millrace_check::facts::{Access, Op, StepId};
use millrace_object::helper;
use millrace_object::insn::{AluOp, Insn, Operand, Reg, Width};

use crate::effects::Effect;
use crate::expr::Expr;
use crate::places::{Place, Which};
use crate::values::{Origin, Value};

use super::{CALL, Draft, HOIST, Obstacle, Row, Vertex, WRITTEN};

impl Row<'_> {
    /// A field that carries a vertex.
    pub(super) fn field(&self, vertex: Vertex, sinks: &[(Place, Value)]) -> Option<Draft> {
        match vertex {
            Vertex::Value(v) => {
                // So that another load of the same field is the same field of the row.
                let again = match *self.values.origin(v) {
                    Origin::Step(id) => match (
                        self.maker.flow.steps[id.0].op,
                        self.maker.border(self.values, v),
                    ) {
                        (Op::Plain(Insn::Load { size, .. }), Some(offset)) => {
                            Some(Expr::Context(offset, size))
                        }
                        _ => None,
                    },
                    _ => None,
                };
                let from = again.or_else(|| self.held(v))?;
                let mask = self.values.bits(v) & self.demand.get(&v).copied().unwrap_or(0);
                let step = self.maker.flow.steps.get(self.site)?;
                let at_key = match step.op {
                    Op::Plain(Insn::Call { helper }) => helper::by_number(helper)
                        .and_then(|h| h.key_argument())
                        .and_then(|a| step.args.get(a))
                        .and_then(|fact| match *fact {
                            millrace_check::facts::ArgFact::Memory {
                                access: Access::Stack { frame, from, to },
                                ..
                            } => Some((frame, from, to)),
                            _ => None,
                        }),
                    _ => None,
                };
                let key = sinks.iter().find_map(|(p, s)| match self.places().which(*p) {
                    Which::Stack(f, at) => {
                        let (frame, from, to) = at_key?;
                        let own = *s == v
                            || matches!(*self.values.origin(*s), Origin::Byte(of, _) if self.values.value(of) == v);
                        (own && f == frame && (from..to).contains(&at)).then_some(at)
                    }
                    _ => None,
                });
                Some(Draft {
                    from,
                    mask,
                    name: self.name(v, 0),
                    step: self.line(v, 0),
                    key,
                })
            }
            Vertex::Selector(block) => {
                let all: Vec<Value> = (self.values.joined.keys().copied())
                    .filter(|v| self.demand.contains_key(v))
                    .filter(|v| self.numbers(*v).is_some_and(|(b, _)| b == block))
                    .collect();
                let (of, ways) = self.selector(block, &all)?;
                let numbers = self.numbers(of)?.1;
                let list = ways
                    .iter()
                    .filter_map(|w| numbers.get(*w).copied())
                    .collect();
                let bits = usize::BITS - (ways.len() - 1).leading_zeros();
                let decider = self.graph.deciders
                    [self.graph.blocks[block].before.first().copied()?]
                .last()
                .map_or(self.graph.blocks[block].from, |b| {
                    self.graph.blocks[*b].to - 1
                });
                Some(Draft {
                    from: Expr::Index(Box::new(self.held(of)?), list),
                    mask: (1 << bits) - 1,
                    name: format!("which of {} ways", ways.len()),
                    step: StepId(decider),
                    key: None,
                })
            }
        }
    }

    /// A value from a row.
    pub(super) fn decoded(&mut self, v: Value, cut: &BTreeMap<Vertex, Expr>) -> Expr {
        let v = self.values.value(v);
        if let Some(field) = cut.get(&Vertex::Value(v)) {
            return field.clone();
        }
        if let Some((block, numbers)) = self.numbers(v)
            && let Some(field) = cut.get(&Vertex::Selector(block))
        {
            let all: Vec<Value> = (self.values.joined.keys().copied())
                .filter(|v| self.demand.contains_key(v))
                .filter(|v| self.numbers(*v).is_some_and(|(b, _)| b == block))
                .collect();
            let ways = self.selector(block, &all).map(|s| s.1).unwrap_or_default();
            let list = ways
                .iter()
                .filter_map(|w| numbers.get(*w).copied())
                .collect();
            return Expr::Pick(Box::new(field.clone()), list);
        }
        match self.values.origin(v).clone() {
            Origin::Constant(n) => Expr::Number(n),
            Origin::Address(o, at) => Expr::Address(o, at),
            Origin::Byte(of, at) => match self.decoded(of, cut) {
                Expr::Number(n) => Expr::Number(n >> (8 * u32::from(at)) & 0xff),
                of => Expr::Byte(Box::new(of), at),
            },
            Origin::Bytes(all) => {
                Expr::Bytes(all.into_iter().map(|v| self.decoded(v, cut)).collect())
            }
            Origin::Step(_) if self.maker.is_time(self.values, v) => {
                self.time = true;
                Expr::Time
            }
            Origin::Step(id) if self.parts(v).is_some() => self
                .computed(id.0, &mut |row, of| row.decoded(of, cut).into())
                .unwrap_or(Expr::Number(0)),
            Origin::Join { .. } => match self.choice(v) {
                Some((branch, a, b)) => {
                    let holds = self.decoded(a, cut);
                    let fails = self.decoded(b, cut);
                    let condition =
                        self.computed(branch, &mut |row, of| row.decoded(of, cut).into());
                    let condition = condition.unwrap_or(Expr::Number(0));
                    Expr::Select(Box::new(condition), Box::new(holds), Box::new(fails))
                }
                None => self.nothing(v),
            },
            // Nothing reads what nothing wrote.
            Origin::Start(_) => Expr::Number(0),
            Origin::Left { .. } | Origin::Step(_) => self.nothing(v),
        }
    }

    /// A value of which no bit is needed; of another one the cut is no cut.
    pub(super) fn nothing(&mut self, v: Value) -> Expr {
        self.lost |= self.weight(v) > 0;
        Expr::Number(0)
    }

    /// The result of a step as an expression over its operands.
    pub(super) fn computed(
        &mut self,
        at: usize,
        operand: &mut dyn FnMut(&mut Self, Value) -> Option<Expr>,
    ) -> Option<Expr> {
        let maker = self.maker;
        let step = &maker.flow.steps[at];
        let frame = step.frame;
        let of = |row: &Self, r: Reg| {
            let place = row.places().register(frame, r);
            let found = row.values.uses[at].iter().find(|(p, _)| *p == place);
            found.map(|(_, v)| row.values.value(*v))
        };
        let mut right = |row: &mut Self, src: Operand| match src {
            Operand::Imm(n) => Some(Expr::Number(n as u64)),
            Operand::Reg(r) => {
                let v = of(row, r)?;
                operand(row, v)
            }
        };
        let (Op::Plain(insn) | Op::Branch { insn, .. }) = step.op else {
            return None;
        };
        let width_of = |w: Width| if step.whole { Width::W64 } else { w };
        Some(match insn {
            Insn::Alu {
                op,
                width,
                dst,
                src,
                ..
            } => {
                let b = right(self, src)?;
                let a = match op {
                    AluOp::Mov => Expr::Number(0),
                    _ => right(self, Operand::Reg(dst))?,
                };
                Expr::Alu(op, width_of(width), Box::new(a), Box::new(b))
            }
            Insn::Neg { width, dst } => Expr::Neg(width, Box::new(right(self, Operand::Reg(dst))?)),
            Insn::SignExtend {
                width, from, src, ..
            } => Expr::Extend(width, from, Box::new(right(self, Operand::Reg(src))?)),
            Insn::ByteOrder { order, bits, dst } => {
                Expr::Order(order, bits, Box::new(right(self, Operand::Reg(dst))?))
            }
            Insn::Branch {
                condition,
                width,
                left,
                right: src,
                ..
            } => {
                let b = right(self, src)?;
                let a = right(self, Operand::Reg(left))?;
                Expr::Compare(condition, width_of(width), Box::new(a), Box::new(b))
            }
            Insn::Load {
                size,
                signed,
                base,
                offset,
                ..
            } => {
                let base = right(self, Operand::Reg(base))?;
                let address = Expr::Alu(
                    AluOp::Add,
                    Width::W64,
                    Box::new(base),
                    Box::new(Expr::Number(i64::from(offset) as u64)),
                );
                match step.access {
                    Some(Access::Packet) => Expr::Packet(Box::new(address), size, signed),
                    Some(Access::Value(o)) if self.maker.constant(o) => {
                        Expr::Constant(Box::new(address), size, signed)
                    }
                    _ => return None,
                }
            }
            _ => return None,
        })
    }

    /// What a step behind the site reads of the packet, as it can be read before it, and the bits that it may have.
    pub(super) fn leaf(&mut self, at: usize) -> Result<(Expr, u64), Obstacle> {
        let (id, maker) = (StepId(at), self.maker);
        let step = &maker.flow.steps[at];
        if let (Op::Plain(Insn::Load { size, .. }), Some(Access::Context { offset })) =
            (step.op, step.access)
        {
            let mask = u64::MAX >> (64 - 8 * size.bytes());
            return Ok((Expr::Context(offset, size), mask));
        }
        let expr = match step.op {
            Op::Plain(Insn::Call { .. }) => return Err((id, CALL)),
            _ => {
                self.settled(at)?;
                self.computed(at, &mut |row, of| row.hoisted(of, 0))
            }
        };
        let expr = expr.ok_or((id, HOIST))?;
        let mask = match step.op {
            Op::Branch { .. } => 1,
            Op::Plain(Insn::Load { size, signed, .. }) if !signed => {
                u64::MAX >> (64 - 8 * size.bytes())
            }
            Op::Plain(insn) => {
                let dst = millrace_check::facts::written(&insn);
                let own = (self.values.origins.iter())
                    .position(|o| *o == Origin::Step(id))
                    .filter(|_| dst.is_some());
                own.map_or(u64::MAX, |v| self.values.may[v])
            }
            _ => u64::MAX,
        };
        Ok((expr, mask))
    }

    /// Whether the packet's bytes and borders are at a step what they are at the site.
    pub(super) fn settled(&self, at: usize) -> Result<(), Obstacle> {
        let (packet, borders) = (self.places().packet(), self.places().borders());
        for &(p, v) in &self.values.uses[at] {
            let v = self.values.value(v);
            if (p == packet || p == borders) && v != self.state[p] {
                return Err((StepId(at), WRITTEN));
            }
        }
        Ok(())
    }

    /// A value behind the site from what is known there.
    pub(super) fn hoisted(&mut self, v: Value, depth: u32) -> Option<Expr> {
        let v = self.values.value(v);
        if depth > 64 {
            return None;
        }
        match *self.values.origin(v) {
            Origin::Constant(n) => return Some(Expr::Number(n)),
            Origin::Address(o, at) => return Some(Expr::Address(o, at)),
            _ => {}
        }
        let before = match *self.values.origin(v) {
            Origin::Step(id) => !self.behind[id.0],
            Origin::Join { block, .. } => !self.behind[self.graph.blocks[block].from],
            _ => false,
        };
        if before && let Some(held) = self.held(v) {
            return Some(held);
        }
        match self.values.origin(v).clone() {
            Origin::Step(id) => {
                let maker = self.maker;
                let step = &maker.flow.steps[id.0];
                if let (Op::Plain(Insn::Load { size, .. }), Some(Access::Context { offset })) =
                    (step.op, step.access)
                {
                    self.settled(id.0).ok()?;
                    return Some(Expr::Context(offset, size));
                }
                if self.effects[id.0] != Effect::Free {
                    return None;
                }
                if let Op::Plain(Insn::Alu { op, .. }) = step.op
                    && matches!(
                        op,
                        AluOp::Div | AluOp::Mod | AluOp::SignedDiv | AluOp::SignedMod
                    )
                {
                    return None;
                }
                self.settled(id.0).ok()?;
                self.computed(id.0, &mut |row, of| row.hoisted(of, depth + 1))
            }
            Origin::Byte(of, at) => Some(Expr::Byte(Box::new(self.hoisted(of, depth + 1)?), at)),
            Origin::Bytes(all) => {
                // All bytes of a value that was spilled are that value.
                if let Some(Origin::Byte(of, 0)) = all.first().map(|v| self.values.origin(*v)) {
                    let of = *of;
                    let same = (0u8..).zip(&all).all(|(at, v)| {
                        matches!(*self.values.origin(*v), Origin::Byte(o, i) if i == at && self.values.value(o) == self.values.value(of))
                    });
                    if same && all.len() == 8 {
                        return self.hoisted(of, depth + 1);
                    }
                }
                let all = all.into_iter().map(|v| self.hoisted(v, depth + 1));
                Some(Expr::Bytes(all.collect::<Option<_>>()?))
            }
            _ => None,
        }
    }
}
