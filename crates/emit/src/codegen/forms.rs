//! The two forms of a register, and which of them an instruction works on.

use millrace_check::facts::{Kind, Op, Step};
use millrace_object::helper;
use millrace_object::insn::{AluOp, Condition, Insn, Operand, Reg, Width};

/// Forms of a register, a set.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Forms {
    /// as a number
    pub scalar: bool,
    /// as a pointer
    pub pointer: bool,
}

impl Forms {
    /// Only as a number.
    pub const SCALAR: Forms = Forms {
        scalar: true,
        pointer: false,
    };
    /// Only as a pointer.
    pub const POINTER: Forms = Forms {
        scalar: false,
        pointer: true,
    };

    /// Whether any form is in it.
    pub fn any(self) -> bool {
        self.scalar || self.pointer
    }

    /// As a set of two bits: number, pointer.
    pub fn bits(self) -> u32 {
        u32::from(self.scalar) | u32::from(self.pointer) << 1
    }
}

/// What must be held of a register of this kind so that the wanted forms can be read: a number gives
/// its pointer form by a cast and the reverse; an address expression needs nothing.
pub fn needs(step: &Step, reg: Reg, wanted: Forms) -> Forms {
    if !wanted.any() {
        return Forms::default();
    }
    match step.before[usize::from(reg.0)] {
        Kind::Scalar | Kind::Unset => Forms::SCALAR,
        Kind::Mixed => wanted,
        Kind::Context
        | Kind::Object(_)
        | Kind::Stack {
            offset: Some(_), ..
        } => Forms::default(),
        kind if is_pointer(kind) => Forms::POINTER,
        _ => wanted,
    }
}

/// Whether a register of this kind holds a pointer (or null) in every execution.
pub fn is_pointer(kind: Kind) -> bool {
    !matches!(kind, Kind::Unset | Kind::Scalar | Kind::Mixed)
}

/// Whether this kind is written as an address expression, so that no local holds it.
pub fn is_address(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::Context
            | Kind::Object(_)
            | Kind::Stack {
                offset: Some(_),
                ..
            }
    )
}

/// The form in which a definition's right-hand side is computed; the other is cast from it.
pub fn natural(after: Kind, demanded: Forms) -> Forms {
    match after {
        Kind::Mixed if demanded == Forms::POINTER => Forms::POINTER,
        kind if is_pointer(kind) => Forms::POINTER,
        _ => Forms::SCALAR,
    }
}

/// Which operand of a pointer addition is the pointer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Base {
    /// the left one; the right one is a number
    Left,
    /// the right one; the left one is a number
    Right,
}

/// The width at which the code does what an instruction does: where 32 bits are the same as 64, what it works on may be
/// a pointer, of which this machine needs all bits.
pub fn width(step: &Step, width: Width) -> Width {
    if step.whole { Width::W64 } else { width }
}

/// How `dst = dst ± src` is computed in pointer form, if it can be.
pub fn pointer_base(step: &Step, op: AluOp, of: Width, dst: Reg, src: Operand) -> Option<Base> {
    let number = |reg: Reg| step.before[usize::from(reg.0)] == Kind::Scalar;
    match (op, width(step, of), src) {
        (AluOp::Add | AluOp::Sub, Width::W64, Operand::Imm(_)) => Some(Base::Left),
        (AluOp::Add | AluOp::Sub, Width::W64, Operand::Reg(src)) if number(src) => Some(Base::Left),
        (AluOp::Add, Width::W64, Operand::Reg(_)) if number(dst) => Some(Base::Right),
        _ => None,
    }
}

/// Whether a branch compares addresses rather than numbers.
pub fn compares_pointers(step: &Step, insn: &Insn) -> bool {
    let Insn::Branch {
        condition,
        width: of,
        left,
        right,
        ..
    } = *insn
    else {
        return false;
    };
    if width(step, of) != Width::W64 {
        return false;
    }
    let kind = |reg: Reg| step.before[usize::from(reg.0)];
    match (condition, right) {
        (Condition::Eq | Condition::Ne, Operand::Imm(0)) => is_pointer(kind(left)),
        (
            Condition::Eq
            | Condition::Ne
            | Condition::Gt
            | Condition::Ge
            | Condition::Lt
            | Condition::Le,
            Operand::Reg(right),
        ) => is_pointer(kind(left)) && is_pointer(kind(right)),
        _ => false,
    }
}

/// The distance in bytes between two places of a stack that are known in full: BPF's own number, whatever C objects
/// the places are in.
pub fn known_distance(step: &Step, insn: &Insn) -> Option<i64> {
    let Insn::Alu {
        op: AluOp::Sub,
        dst,
        src: Operand::Reg(src),
        ..
    } = *insn
    else {
        return None;
    };
    let place = |reg: Reg| match step.before[usize::from(reg.0)] {
        Kind::Stack {
            frame,
            offset: Some(offset),
        } => Some((frame, i64::from(offset))),
        _ => None,
    };
    let (left, right) = (place(dst)?, place(src)?);
    (left.0 == right.0).then_some(left.1 - right.1)
}

/// Two registers that may hold addresses of one stack, and whose distance or order a step computes at run time.
pub fn related(step: &Step) -> Option<(Reg, Reg)> {
    let may_be = |reg: Reg| {
        matches!(
            step.before[usize::from(reg.0)],
            Kind::Stack { .. } | Kind::Pointer | Kind::Mixed
        )
    };
    let (left, right) = match step.op {
        Op::Plain(
            insn @ Insn::Alu {
                op: AluOp::Sub,
                dst,
                src: Operand::Reg(src),
                ..
            },
        ) if known_distance(step, &insn).is_none() => (dst, src),
        Op::Branch {
            insn:
                Insn::Branch {
                    left,
                    right: Operand::Reg(right),
                    ..
                },
            ..
        } if step.outcomes.holds && step.outcomes.fails => (left, right),
        _ => return None,
    };
    (may_be(left) && may_be(right)).then_some((left, right))
}

/// Whether a call may be left out when nobody reads its result.
pub fn is_pure(number: u32) -> bool {
    helper::by_number(number).is_some_and(|h| {
        let e = h.effects;
        let writes = h.args.iter().any(|a| {
            matches!(
                a,
                helper::Arg::Write { .. }
                    | helper::Arg::Update
                    | helper::Arg::Out(_)
                    | helper::Arg::InOut(_)
                    | helper::Arg::KeyOut
                    | helper::Arg::ValueOut
                    | helper::Arg::Record
            )
        });
        !(e.moves_packet || h.does.is_some() || e.writes_packet || e.other || e.random || writes)
    })
}
