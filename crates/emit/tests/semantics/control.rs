//! Branches (RFC 9669 section 4.3), loops and call frames.

use millrace_assemble::oracle::{CONDITIONS, holds};
use millrace_object::insn::{AluOp, Condition, Size, Width};

use crate::semantics::{Case, run_all};
use crate::support::asm::*;

#[test]
fn branches() {
    let mut cases = Vec::new();
    for condition in CONDITIONS {
        for width in [Width::W64, Width::W32] {
            let body = vec![
                movi(R0, 1),
                branch(condition, width, R1, R2, 3),
                movi(R0, 0),
            ];
            let name = format!("{condition:?} {width:?}");
            cases.push(Case::new(name, body, move |a, b| {
                u64::from(holds(condition, width, a, b))
            }));
            for imm in [0i64, 1, -1, 0x7fff_ffff, -0x8000_0000] {
                let body = vec![
                    movi(R0, 1),
                    branchi(condition, width, R1, imm, 3),
                    movi(R0, 0),
                ];
                let name = format!("{condition:?} {width:?} {imm}");
                cases.push(Case::new(name, body, move |a, _| {
                    u64::from(holds(condition, width, a, imm as u64))
                }));
            }
        }
    }
    run_all(&cases);
}

#[test]
fn loops_and_joins() {
    let cases = vec![
        // r0 = a + 0 + 1 + … + 7
        Case::new(
            "loop",
            vec![
                mov(R0, R1),
                movi(R3, 0),
                add(R0, R3),
                addi(R3, 1),
                branchi(Condition::Lt, Width::W64, R3, 8, 2),
            ],
            |a, _| a.wrapping_add(28),
        ),
        // A branch backwards over a jump forwards: labels in any order.
        Case::new(
            "tangle",
            vec![
                jump(4),
                alui(AluOp::Xor, Width::W64, R0, 5),
                alui(AluOp::Add, Width::W64, R0, 9),
                jump(7),
                mov(R0, R2),
                branchi(Condition::Test, Width::W64, R1, 1, 1),
                jump(2),
            ],
            |a, b| {
                if a & 1 != 0 {
                    (b ^ 5).wrapping_add(9)
                } else {
                    b.wrapping_add(9)
                }
            },
        ),
        // Only one outcome can happen: the other side is not emitted.
        Case::new(
            "decided",
            vec![
                movi(R3, 4),
                movi(R0, 1),
                branchi(Condition::Eq, Width::W64, R3, 4, 4),
                movi(R0, 2),
            ],
            |_, _| 1,
        ),
    ];
    run_all(&cases);
}

#[test]
fn frames() {
    let sub = |insns: Vec<_>| insns;
    let cases = vec![
        Case {
            name: "call".into(),
            body: vec![mov(R8, R2), call_local(1), add(R0, R8)],
            callees: vec![sub(vec![
                mov(R0, R1),
                alui(AluOp::Mul, Width::W64, R0, 3),
                mov(R8, R0),
                exit(),
            ])],
            expected: Box::new(|a, b| a.wrapping_mul(3).wrapping_add(b)),
        },
        Case {
            name: "nested".into(),
            body: vec![
                mov(R9, R1),
                mov(R8, R2),
                call_local(1),
                mov(R7, R0),
                mov(R1, R8),
                mov(R2, R9),
                call_local(1),
                add(R0, R7),
            ],
            callees: vec![
                sub(vec![
                    mov(R6, R2),
                    call_local(2),
                    alu(AluOp::Xor, Width::W64, R0, R6),
                    exit(),
                ]),
                sub(vec![mov(R0, R1), addi(R0, 1), exit()]),
            ],
            expected: Box::new(|a, b| (a.wrapping_add(1) ^ b).wrapping_add(b.wrapping_add(1) ^ a)),
        },
        // The callee writes through a pointer into its caller's stack, and has a stack of its own.
        Case {
            name: "caller's stack".into(),
            body: vec![
                store(Size::B8, R10, -8, R1),
                store(Size::B8, R10, -16, R2),
                mov(R1, R10),
                addi(R1, -16),
                call_local(1),
                load(Size::B8, R1, R10, -16),
                add(R0, R1),
                load(Size::B8, R1, R10, -8),
                alu(AluOp::Xor, Width::W64, R0, R1),
            ],
            callees: vec![sub(vec![
                load(Size::B8, R2, R1, 0),
                store(Size::B8, R10, -8, R2),
                addi(R2, 7),
                store(Size::B8, R1, 0, R2),
                load(Size::B8, R0, R10, -8),
                exit(),
            ])],
            expected: Box::new(|a, b| b.wrapping_add(b.wrapping_add(7)) ^ a),
        },
        // A packet pointer as an argument.
        Case {
            name: "packet argument".into(),
            body: vec![mov(R1, R6), call_local(1)],
            callees: vec![sub(vec![load(Size::B8, R0, R1, 16), exit()])],
            expected: Box::new(|_, b| b),
        },
    ];
    run_all(&cases);
}
