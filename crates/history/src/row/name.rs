//! Names of fields, and the author's lines that they are for.

use millrace_check::facts::{Access, Op, StepId};
use millrace_object::helper;
use millrace_object::insn::{AluOp, Insn, Operand};

use crate::values::{Origin, Value};

use super::Row;

impl Row<'_> {
    /// The step that a value's line is that of.
    pub(super) fn line(&self, v: Value, depth: u32) -> StepId {
        match self.values.origin(v) {
            Origin::Step(id) => *id,
            Origin::Left { step, .. } => *step,
            Origin::Byte(of, _) if depth < 8 => self.line(*of, depth + 1),
            Origin::Bytes(all) if depth < 8 => all
                .first()
                .map_or(StepId(self.site), |v| self.line(*v, depth + 1)),
            Origin::Join { .. } if depth < 8 => {
                let all = self.values.joined.get(&self.values.value(v));
                let known = |v: &Value| {
                    !matches!(
                        self.values.origin(*v),
                        Origin::Constant(_) | Origin::Start(_)
                    )
                };
                all.into_iter()
                    .flatten()
                    .find(|(_, v)| known(v))
                    .map_or(StepId(self.site), |(_, v)| self.line(*v, depth + 1))
            }
            _ => StepId(self.site),
        }
    }

    pub(super) fn name(&self, v: Value, depth: u32) -> String {
        match self.values.origin(v) {
            Origin::Constant(n) => n.to_string(),
            Origin::Step(id) => self.step_name(id.0),
            Origin::Byte(of, at) => format!("byte {at} of {}", self.name(*of, depth + 1)),
            Origin::Join { .. } if depth < 2 => {
                let all = self.values.joined.get(&self.values.value(v));
                let mut names: Vec<String> = (all.into_iter().flatten())
                    .map(|(_, v)| self.name(*v, depth + 1))
                    .collect();
                names.dedup();
                names.join(" or ")
            }
            Origin::Join { .. } => "a value of several ways".into(),
            Origin::Bytes(_) => "bytes".into(),
            Origin::Address(..) | Origin::Start(_) | Origin::Left { .. } => "memory".into(),
        }
    }

    pub(super) fn step_name(&self, at: usize) -> String {
        let step = &self.maker.flow.steps[at];
        match (step.op, step.access) {
            (
                Op::Plain(Insn::Load {
                    size, base, offset, ..
                }),
                Some(Access::Packet),
            ) => {
                let place = self.places().register(step.frame, base);
                let of = self.values.uses[at].iter().find(|(p, _)| *p == place);
                match of.and_then(|(_, v)| self.start_distance(*v, 0)) {
                    Some(from) => {
                        let from = from + i64::from(offset);
                        format!("packet[{from}..{}]", from + i64::from(size.bytes()))
                    }
                    None => format!("packet[… {offset:+}], {} B", size.bytes()),
                }
            }
            (Op::Plain(Insn::Load { .. }), Some(Access::Context { offset })) => match offset {
                12 => "port".into(),
                16 => "queue".into(),
                _ => format!("context[{offset}]"),
            },
            (Op::Branch { insn, .. }, _) => insn.to_string(),
            (Op::Plain(Insn::Alu { op: AluOp::Sub, .. }), _)
                if self.values.uses[at].len() == 2
                    && self.values.uses[at]
                        .iter()
                        .all(|(_, v)| self.maker.border(self.values, *v).is_some()) =>
            {
                "length".into()
            }
            (Op::Plain(Insn::Call { helper }), _) => {
                helper::by_number(helper).map_or_else(|| "call".into(), |h| h.name.into())
            }
            (Op::Plain(insn), _) => {
                let of: Vec<String> = self.values.uses[at]
                    .iter()
                    .take(2)
                    .map(|(_, v)| match self.values.origin(*v) {
                        Origin::Step(id) if id.0 < at => self.step_name_short(id.0),
                        _ => "…".into(),
                    })
                    .collect();
                match of.iter().find(|o| *o != "…") {
                    Some(of) => format!("{insn} ({of})"),
                    None => insn.to_string(),
                }
            }
            _ => "value".into(),
        }
    }

    pub(super) fn step_name_short(&self, at: usize) -> String {
        let step = &self.maker.flow.steps[at];
        match (step.op, step.access) {
            (Op::Plain(Insn::Load { .. }), Some(Access::Packet)) => self.step_name(at),
            _ => "…".into(),
        }
    }

    /// Distance of an address from the packet's first byte.
    pub(super) fn start_distance(&self, v: Value, depth: u32) -> Option<i64> {
        if depth > 64 {
            return None;
        }
        if self.maker.border(self.values, v) == Some(0) {
            return Some(0);
        }
        let Origin::Step(id) = *self.values.origin(v) else {
            return None;
        };
        let step = &self.maker.flow.steps[id.0];
        match step.op {
            Op::Plain(Insn::Alu {
                op: AluOp::Add,
                src: Operand::Imm(n),
                ..
            }) => {
                let (_, of) = self.values.uses[id.0].first()?;
                Some(self.start_distance(*of, depth + 1)? + n)
            }
            _ => None,
        }
    }
}
