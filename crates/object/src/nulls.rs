//! Tests of several lookups at once, taken apart.
//!
//! Of `if (!a && !b)` clang makes one test, of `a | b`: what comes of two pointers by that is neither a pointer into memory nor a number
//! that a program may know. Where both may be what lookups found, and the result is compared with null and used for nothing
//! else, it becomes a number here: 0 where both are null, else 1. So it can be tested and says nothing about addresses. For two
//! numbers that would be right, too, so that it does not matter whether they are pointers in truth.

use std::collections::BTreeSet;

use crate::helper::{self, Return};
use crate::insn::{AluOp, Condition, Insn, Operand, Reg, Size, Width};

/// The frame pointer.
const FRAME: Reg = Reg(10);
/// Registers that a call leaves with nothing in them that may be read, but for its result in the first.
const CLOBBERED: u8 = 5;

/// So many instructions are looked at before and behind an `or`: clang puts the parts of a condition side by side.
const NEAR: usize = 512;
/// So many are looked at in an object; what comes then stays as it is. No program that people run comes near that, and a hostile one can
/// have an `or` in each instruction.
pub(crate) const MOST: usize = 1 << 20;
/// What a test that is taken apart counts for: it takes the room of several instructions, and a thousand of them may.
const TEST: usize = MOST >> 10;

/// Takes so many from what may still be looked at; false where there are fewer.
fn spend(left: &mut usize, count: usize) -> bool {
    let rest = left.checked_sub(count);
    *left = rest.unwrap_or(0);
    rest.is_some()
}

/// Takes such tests apart in a function whose jumps have their targets; each instruction has its slot. `left`: of [`MOST`].
pub(crate) fn apart(insns: &mut Vec<Insn>, slots: &mut Vec<u32>, left: &mut usize) {
    let or = |at: &usize| insns.get(*at).copied().and_then(joined).is_some();
    let all: Vec<usize> = (0..insns.len()).filter(or).collect();
    if all.is_empty() {
        return;
    }
    let targets: BTreeSet<usize> = insns.iter().filter_map(target).collect();
    let mut found = BTreeSet::new();
    for at in &all {
        if let Some((dst, src)) = insns.get(*at).copied().and_then(joined)
            && [dst, src]
                .into_iter()
                .all(|reg| is_found(insns, &targets, &found, (*at, reg), left))
        {
            found.insert(*at);
        }
    }
    // The later ones first, of which an earlier one may be a part.
    let mut tests = BTreeSet::new();
    for at in found.iter().rev() {
        if let Some((dst, _)) = insns.get(*at).copied().and_then(joined)
            && is_test(insns, &tests, (*at, dst), left)
            && spend(left, TEST)
        {
            tests.insert(*at);
        }
    }
    if !tests.is_empty() {
        rewrite(insns, slots, &tests);
    }
}

/// The registers of `dst |= src`, at full width.
fn joined(insn: Insn) -> Option<(Reg, Reg)> {
    match insn {
        Insn::Alu {
            op: AluOp::Or,
            width: Width::W64,
            dst,
            src: Operand::Reg(src),
        } if dst != src => Some((dst, src)),
        _ => None,
    }
}

fn target(insn: &Insn) -> Option<usize> {
    match insn {
        Insn::Jump { target } | Insn::Branch { target, .. } => Some(*target),
        _ => None,
    }
}

/// Where a value lies.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Register(Reg),
    /// eight bytes of the stack, from this offset on
    Stack(i16),
}

/// Whether a register holds in front of an instruction what a lookup found, or a test of several, as far as the instructions before
/// it say that are not jumped to.
fn is_found(
    insns: &[Insn],
    targets: &BTreeSet<usize>,
    tests: &BTreeSet<usize>,
    (at, reg): (usize, Reg),
    left: &mut usize,
) -> bool {
    let mut place = Place::Register(reg);
    for before in (0..at).rev().take(NEAR) {
        let Some(insn) = insns
            .get(before)
            .filter(|_| !targets.contains(&(before + 1)) && spend(left, 1))
        else {
            return false;
        };
        let here = |reg: Reg| place == Place::Register(reg);
        match *insn {
            Insn::Alu {
                op: AluOp::Mov,
                width: Width::W64,
                dst,
                src: Operand::Reg(src),
            } if here(dst) => place = Place::Register(src),
            Insn::Load {
                size: Size::B8,
                dst,
                base: FRAME,
                offset,
                ..
            } if here(dst) => place = Place::Stack(offset),
            Insn::Store {
                size: Size::B8,
                base: FRAME,
                offset,
                src: Operand::Reg(src),
            } if place == Place::Stack(offset) => place = Place::Register(src),
            Insn::Call { helper } if here(Reg(0)) => {
                return helper::by_number(helper).is_some_and(|h| h.returns == Return::ValueOrNull);
            }
            Insn::Jump { .. } | Insn::Exit => return false,
            _ if tests.contains(&before) && joined(*insn).is_some_and(|(dst, _)| here(dst)) => {
                return true;
            }
            _ => {
                if let Place::Register(reg) = place
                    && writes(insn, reg)
                {
                    return false;
                }
            }
        }
    }
    false
}

/// Whether an instruction leaves something else in a register, or nothing.
fn writes(insn: &Insn, reg: Reg) -> bool {
    let calls = matches!(
        insn,
        Insn::Call { .. }
            | Insn::CallLocal { .. }
            | Insn::CallRegister { .. }
            | Insn::LegacyPacketLoad
    );
    insn.written() == Some(reg) || calls && reg.0 <= CLOBBERED
}

/// Whether an instruction looks at what is in a register.
fn reads(insn: &Insn, reg: Reg) -> bool {
    let of = |operand: Operand| operand == Operand::Reg(reg);
    match *insn {
        Insn::Alu { op, dst, src, .. } => of(src) || (op != AluOp::Mov && dst == reg),
        Insn::Neg { dst, .. } | Insn::ByteOrder { dst, .. } => dst == reg,
        Insn::SignExtend { src, .. } => src == reg,
        Insn::LoadImm { .. } | Insn::Jump { .. } => false,
        Insn::Load { base, .. } => base == reg,
        Insn::Store { base, src, .. } => base == reg || of(src),
        Insn::Atomic { base, src, .. } => base == reg || src == reg || reg == Reg(0),
        Insn::Branch { left, right, .. } => left == reg || of(right),
        Insn::Call { helper } => {
            let args = helper::by_number(helper).map_or(usize::from(CLOBBERED), |h| h.args.len());
            reg.0 >= 1 && usize::from(reg.0) <= args
        }
        Insn::CallLocal { .. } => (1..=CLOBBERED).contains(&reg.0),
        Insn::CallRegister { .. } | Insn::LegacyPacketLoad => true,
        Insn::Exit => reg == Reg(0),
    }
}

/// Whether what an instruction leaves in `reg` is compared with null and used for nothing else, but for tests of more.
fn is_test(
    insns: &[Insn],
    tests: &BTreeSet<usize>,
    (at, reg): (usize, Reg),
    left: &mut usize,
) -> bool {
    let mut seen = BTreeSet::new();
    let mut open = vec![at + 1];
    while let Some(at) = open.pop() {
        if !seen.insert(at) {
            continue;
        }
        if seen.len() > NEAR || !spend(left, 1) {
            return false;
        }
        let Some(insn) = insns.get(at) else {
            return false;
        };
        let compared = match *insn {
            Insn::Branch {
                condition: Condition::Eq | Condition::Ne,
                width: Width::W64,
                left,
                right: Operand::Imm(0),
                ..
            } => left == reg,
            _ => tests.contains(&at),
        };
        if reads(insn, reg) && !compared {
            return false;
        }
        if writes(insn, reg) {
            continue;
        }
        open.extend(target(insn));
        if !matches!(insn, Insn::Jump { .. } | Insn::Exit) {
            open.push(at + 1);
        }
    }
    true
}

/// Instructions that stand for one test.
const EACH: usize = 5;

fn rewrite(insns: &mut Vec<Insn>, slots: &mut Vec<u32>, tests: &BTreeSet<usize>) {
    // Where each instruction comes to stand.
    let mut places = Vec::with_capacity(insns.len());
    let mut next = 0;
    for at in 0..insns.len() {
        places.push(next);
        next += if tests.contains(&at) { EACH } else { 1 };
    }
    let (mut made, mut of) = (Vec::with_capacity(next), Vec::with_capacity(next));
    for (at, (insn, slot)) in insns.iter().zip(slots.iter()).enumerate() {
        let begin = made.len();
        match joined(*insn).filter(|_| tests.contains(&at)) {
            Some((dst, src)) => {
                let there = |left| Insn::branch(Condition::Ne, left, Operand::Imm(0), begin + 4);
                let number = |n| Insn::mov(dst, Operand::Imm(n));
                let behind = Insn::Jump {
                    target: begin + EACH,
                };
                made.extend([there(dst), there(src), number(0), behind, number(1)]);
            }
            None => {
                let mut insn = *insn;
                if let Insn::Jump { target } | Insn::Branch { target, .. } = &mut insn {
                    *target = places.get(*target).copied().unwrap_or(next);
                }
                made.push(insn);
            }
        }
        of.resize(made.len(), *slot);
    }
    (*insns, *slots) = (made, of);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn alu(op: AluOp, dst: u8, src: Operand) -> Insn {
        Insn::alu(op, Reg(dst), src)
    }

    fn branch(left: u8, target: usize) -> Insn {
        Insn::branch(Condition::Eq, Reg(left), Operand::Imm(0), target)
    }

    /// Two lookups, of which `rest` makes something: its first instruction is number 4.
    fn two(rest: &[Insn]) -> Vec<Insn> {
        let get = Insn::Call { helper: 0x1_0000 };
        let both = [
            get,
            alu(AluOp::Mov, 6, Operand::Reg(Reg(0))),
            get,
            alu(AluOp::Or, 6, Operand::Reg(Reg(0))),
        ];
        [&both, rest].concat()
    }

    fn taken_apart(insns: &[Insn]) -> Vec<Insn> {
        let (mut insns, mut slots) = (insns.to_vec(), (0..insns.len() as u32).collect());
        apart(&mut insns, &mut slots, &mut { MOST });
        assert_eq!(insns.len(), slots.len());
        assert!(slots.is_sorted());
        insns
    }

    #[test]
    fn a_test_of_two_lookups_becomes_a_number() {
        let zero = alu(AluOp::Mov, 0, Operand::Imm(0));
        let one = alu(AluOp::Mov, 0, Operand::Imm(1));
        // Between the two what was or-ed in is gone already, as clang likes to have it.
        let insns = two(&[zero, branch(6, 7), one, Insn::Exit]);
        let made = taken_apart(&insns);
        assert_eq!(made.len(), insns.len() + 4);
        assert_eq!(made.get(9), Some(&branch(6, 11)));
        assert_eq!(made.get(11), Some(&Insn::Exit));
        assert!(!made.iter().any(|i| joined(*i).is_some()));
        // What jumps over it, or to it, comes to where it was to come.
        let mut around = vec![branch(1, 9), branch(1, 1)];
        around.extend(two(&[branch(6, 7), one, zero, Insn::Exit]));
        let made = taken_apart(&around);
        assert_eq!(made.first().and_then(target), Some(13));
        assert_eq!(made.get(1).and_then(target), Some(1));
    }

    #[test]
    fn what_is_used_otherwise_stays() {
        let zero = alu(AluOp::Mov, 0, Operand::Imm(0));
        let moved = alu(AluOp::Mov, 0, Operand::Reg(Reg(6)));
        for rest in [
            // returned
            vec![moved, Insn::Exit],
            // compared, and returned on one side
            vec![branch(6, 6), moved, Insn::Exit],
            // added to
            vec![
                alu(AluOp::Add, 6, Operand::Imm(1)),
                branch(6, 6),
                zero,
                Insn::Exit,
            ],
            // handed to another function of the object: it may take any register up to r5, and r6 is kept
            vec![alu(AluOp::Mov, 1, Operand::Reg(Reg(6))), zero, Insn::Exit],
        ] {
            let insns = two(&rest);
            assert_eq!(taken_apart(&insns), insns);
        }
        // Numbers are or-ed as they are.
        let numbers = [
            alu(AluOp::Mov, 6, Operand::Imm(3)),
            alu(AluOp::Or, 6, Operand::Reg(Reg(1))),
            branch(6, 3),
            zero,
            Insn::Exit,
        ];
        assert_eq!(taken_apart(&numbers), numbers);
    }

    #[test]
    fn a_function_of_nothing_else_is_left_alone_after_a_while() {
        let or = alu(AluOp::Or, 6, Operand::Reg(Reg(7)));
        let get = Insn::Call { helper: 1 };
        let into = |reg| alu(AluOp::Mov, reg, Operand::Reg(Reg(0)));
        let mut insns = Vec::new();
        for _ in 0..100 {
            insns.extend([get, into(7), get, into(6)]);
            insns.extend([or; 400]);
        }
        insns.extend([branch(6, insns.len() + 1), Insn::Exit]);
        let (mut slots, before) = ((0..insns.len() as u32).collect(), insns.len());
        let mut left = MOST;
        apart(&mut insns, &mut slots, &mut left);
        assert_eq!(left, 0);
        assert!(insns.len() <= before + MOST / TEST * (EACH - 1));
    }

    #[test]
    fn tests_of_three_and_from_the_stack() {
        let get = Insn::Call { helper: 1 };
        let spill = Insn::Store {
            size: Size::B8,
            base: FRAME,
            offset: -8,
            src: Operand::Reg(Reg(0)),
        };
        let fill = Insn::Load {
            size: Size::B8,
            signed: false,
            dst: Reg(1),
            base: FRAME,
            offset: -8,
        };
        let insns = [
            get,
            spill,
            get,
            alu(AluOp::Mov, 6, Operand::Reg(Reg(0))),
            get,
            fill,
            alu(AluOp::Or, 1, Operand::Reg(Reg(6))),
            alu(AluOp::Or, 1, Operand::Reg(Reg(0))),
            branch(1, 10),
            alu(AluOp::Mov, 0, Operand::Imm(1)),
            Insn::Exit,
        ];
        let made = taken_apart(&insns);
        assert_eq!(made.len(), insns.len() + 2 * (EACH - 1));
        assert!(!made.iter().any(|i| joined(*i).is_some()));
    }
}
