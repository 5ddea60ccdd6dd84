//! Guesses which registers and stack slots count the rounds of a loop, and which numbers a counter
//! may be compared with. The explorer proves the guesses, or does without.

use millrace_object::insn::{AluOp, Insn, Operand, Width};

use super::graph::Blocks;
use super::loops::Loop;
use super::places::Span;
use super::points::Touch;
use crate::facts::{Flow, Op};

/// Registers (of the head's frame) and stack slots that are moved by constants inside the loop and
/// take part in one of its branches, perhaps by way of another register.
#[must_use]
pub fn counters(flow: &Flow, blocks: &Blocks, touches: &[Touch], l: &Loop) -> (u16, Vec<Span>) {
    let head = blocks.starts[l.head];
    let Some(frame) = flow.steps.get(head).map(|s| s.frame) else {
        return (0, Vec::new());
    };
    let steps = || l.body.iter().flat_map(|&b| blocks.steps(b));
    // What a call stands for counts in the caller's stack.
    let expanded =
        |f: crate::facts::FrameId| flow.frames.get(f.0).is_some_and(|f| f.expansion.is_some());
    // Registers among which constants are added, copies included: of the head's frame, and of others.
    let (mut own, mut others) = (0u16, 0u16);
    let mut slots: Vec<Span> = Vec::new();
    for _ in 0..3 {
        for at in steps() {
            let (Some(step), Some(touch)) = (flow.steps.get(at), touches.get(at)) else {
                continue;
            };
            let moved = if step.frame == frame {
                &mut own
            } else if expanded(step.frame) {
                &mut others
            } else {
                continue;
            };
            match step.op {
                Op::Plain(Insn::Alu {
                    op: AluOp::Add | AluOp::Sub,
                    dst,
                    src: Operand::Imm(_),
                    ..
                }) => *moved |= 1 << dst.0,
                Op::Plain(Insn::Alu {
                    op: AluOp::Mov,
                    dst,
                    src: Operand::Reg(src),
                    ..
                }) if *moved >> src.0 & 1 == 1 => *moved |= 1 << dst.0,
                Op::Plain(Insn::Store {
                    src: Operand::Reg(src),
                    ..
                }) if *moved >> src.0 & 1 == 1
                    && matches!(touch.access, Span::Exact(..))
                    && !slots.contains(&touch.access) =>
                {
                    slots.push(touch.access);
                }
                _ => {}
            }
        }
    }
    (own & 0x3ff, slots)
}

/// Numbers at which a growing bound should pause, sorted.
#[must_use]
pub fn thresholds(flow: &Flow) -> Vec<u64> {
    let mut all: Vec<u64> = vec![
        0,
        1,
        0xff,
        0x100,
        0xffff,
        0x1_0000,
        0x7fff_ffff,
        0xffff_ffff,
        u64::MAX,
    ];
    let mut steps: Vec<u64> = vec![1];
    let mut compared: Vec<u64> = Vec::new();
    for s in &flow.steps {
        match s.op {
            Op::Branch {
                insn:
                    Insn::Branch {
                        right: Operand::Imm(i),
                        width,
                        ..
                    },
                ..
            } => {
                compared.push(if width == Width::W32 {
                    u64::from(i as u32)
                } else {
                    i as u64
                });
            }
            Op::Plain(Insn::Alu {
                op: AluOp::And | AluOp::Mov,
                src: Operand::Imm(i),
                ..
            }) if i > 0 => compared.push(i as u64),
            Op::Plain(Insn::Alu {
                op: AluOp::Add,
                src: Operand::Imm(i),
                ..
            }) if i.unsigned_abs() <= 64 => steps.push(i.unsigned_abs()),
            _ => {}
        }
    }
    steps.sort_unstable();
    steps.dedup();
    compared.sort_unstable();
    compared.dedup();
    for c in compared {
        all.extend([c, c.wrapping_add(1)]);
        // A loop that ends when its counter equals c stays below it by one step.
        all.extend(steps.iter().map(|s| c.wrapping_sub(*s)));
    }
    all.sort_unstable();
    all.dedup();
    all
}
