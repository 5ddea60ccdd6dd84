//! Small changes to a program, as a compiler's bug or an attacker would make them.

use millrace_object::insn::{AluOp, BUDGET, Condition, Imm64, Insn, Operand, Reg, Size, Width};
use rand::{Rng, RngExt};

/// Whether a program may be changed and still be compared: what a ring buffer's record holds before it
/// is written is not promised, so a store into one must not get lost; and a loop that has nothing but its
/// budget must keep its own way out, or it goes round more often than there is time for.
#[must_use]
pub fn comparable(insns: &[Insn]) -> bool {
    let budgeted = |i: &Insn| matches!(i, Insn::Branch { left: BUDGET, .. });
    !insns.contains(&Insn::Call { helper: 131 }) && !insns.iter().any(budgeted)
}

/// Changes one to three instructions.
pub fn mutate(random: &mut impl Rng, insns: &[Insn]) -> Vec<Insn> {
    let mut insns = insns.to_vec();
    for _ in 0..random.random_range(1..4) {
        let at = random.random_range(0..insns.len());
        match random.random_range(0..8) {
            0 => remove(&mut insns, at),
            1 if at + 1 < insns.len() => insns.swap(at, at + 1),
            _ => {
                if let Some(insn) = insns.get_mut(at) {
                    change(random, insn);
                }
            }
        }
    }
    insns
}

fn remove(insns: &mut Vec<Insn>, at: usize) {
    if insns.len() < 3 {
        return;
    }
    insns.remove(at);
    for insn in insns {
        if let Insn::Jump { target } | Insn::Branch { target, .. } = insn
            && *target > at
        {
            *target -= 1;
        }
    }
}

fn step(random: &mut impl Rng) -> i64 {
    const STEPS: [i64; 10] = [1, -1, 2, -2, 4, -4, 8, -8, 64, 1 << 20];
    STEPS[random.random_range(0..STEPS.len())]
}

fn size(random: &mut impl Rng) -> Size {
    [Size::B1, Size::B2, Size::B4, Size::B8][random.random_range(0..4)]
}

fn other(random: &mut impl Rng, reg: &mut Reg) {
    *reg = Reg(random.random_range(0..10));
}

fn flip(width: &mut Width) {
    *width = match width {
        Width::W32 => Width::W64,
        Width::W64 => Width::W32,
    };
}

fn operand(random: &mut impl Rng, operand: &mut Operand) {
    match operand {
        Operand::Reg(reg) => other(random, reg),
        Operand::Imm(imm) => *imm = i64::from(imm.wrapping_add(step(random)) as i32),
    }
}

fn change(random: &mut impl Rng, insn: &mut Insn) {
    let which = random.random_range(0..3);
    match insn {
        Insn::Alu {
            op,
            width,
            dst,
            src,
        } => match which {
            0 => flip(width),
            1 if *dst != Reg(10) => other(random, dst),
            _ => {
                operand(random, src);
                // An immediate divisor of 0 and a shift beyond the width are not encodable as such.
                if let Operand::Imm(imm) = src
                    && !matches!(op, AluOp::Add | AluOp::Sub | AluOp::And | AluOp::Mov)
                {
                    *imm = (*imm & 31).max(1);
                }
            }
        },
        Insn::Load {
            size: bytes,
            signed,
            offset,
            base,
            dst,
        } => match which {
            0 => {
                *bytes = size(random);
                *signed &= *bytes != Size::B8;
            }
            1 => *offset = offset.wrapping_add(step(random) as i16),
            _ if random.random() => other(random, base),
            _ => other(random, dst),
        },
        Insn::Store {
            size: bytes,
            offset,
            base,
            src,
        } => match which {
            0 => *bytes = size(random),
            1 => *offset = offset.wrapping_add(step(random) as i16),
            _ if random.random() => other(random, base),
            _ => operand(random, src),
        },
        Insn::Atomic { offset, base, .. } => match which {
            0 => other(random, base),
            _ => *offset = offset.wrapping_add(step(random) as i16),
        },
        Insn::Branch {
            condition,
            width,
            right,
            target,
            ..
        } => match which {
            0 => {
                *condition = [
                    Condition::Eq,
                    Condition::Ne,
                    Condition::Gt,
                    Condition::Le,
                    Condition::SignedLt,
                    Condition::SignedGe,
                ][random.random_range(0..6)];
            }
            1 if random.random() => flip(width),
            1 => *target = target.saturating_add_signed(step(random).clamp(-2, 2) as isize),
            _ => operand(random, right),
        },
        Insn::LoadImm {
            value: Imm64::ObjectValue { offset, .. },
            ..
        } => *offset = offset.saturating_add_signed(step(random) as i32),
        Insn::SignExtend { width, src, .. } => {
            flip(width);
            other(random, src);
        }
        Insn::Neg { width, .. } => flip(width),
        _ => {}
    }
}
