//! Loads, stores, the split stack, spilled and mixed pointers, atomics.

use millrace_object::insn::{AluOp, AtomicOp, Condition, Size, Width};

use crate::semantics::{Case, run_all};
use crate::support::asm::*;

fn low(size: Size, value: u64) -> u64 {
    value & (u64::MAX >> (64 - 8 * size.bytes()))
}

const SIZES: &[Size] = &[Size::B1, Size::B2, Size::B4, Size::B8];

#[test]
fn loads_and_stores() {
    let mut cases = Vec::new();
    for &size in SIZES {
        cases.push(Case::new(
            format!("load {size:?}"),
            vec![load(size, R0, R6, 8)],
            move |a, _| low(size, a),
        ));
        if size != Size::B8 {
            cases.push(Case::new(
                format!("load signed {size:?}"),
                vec![load_signed(size, R0, R6, 8)],
                move |a, _| {
                    let shift = 64 - 8 * size.bytes();
                    ((a << shift) as i64 >> shift) as u64
                },
            ));
        }
        let body = vec![
            store(Size::B8, R10, -8, R1),
            store(size, R10, -8, R2),
            load(Size::B8, R0, R10, -8),
        ];
        cases.push(Case::new(format!("store {size:?}"), body, move |a, b| {
            let mask = u64::MAX >> (64 - 8 * size.bytes());
            a & !mask | b & mask
        }));
        let body = vec![
            store(Size::B8, R10, -8, R1),
            storei(size, R10, -8, -2),
            load(Size::B8, R0, R10, -8),
        ];
        cases.push(Case::new(
            format!("store imm {size:?}"),
            body,
            move |a, _| {
                let mask = u64::MAX >> (64 - 8 * size.bytes());
                a & !mask | -2i64 as u64 & mask
            },
        ));
    }
    // Unaligned, and narrow pieces in any order under one wide load.
    cases.push(Case::new(
        "pieces",
        vec![
            mov(R3, R1),
            store(Size::B4, R10, -12, R3),
            alui(AluOp::Rsh, Width::W64, R3, 32),
            store(Size::B2, R10, -14, R3),
            mov(R3, R2),
            store(Size::B1, R10, -15, R3),
            storei(Size::B1, R10, -16, 0x5a),
            load(Size::B8, R0, R10, -16),
        ],
        |a, b| 0x5a | (b & 0xff) << 8 | ((a >> 32) & 0xffff) << 16 | (a & 0xffff_ffff) << 32,
    ));
    // A sorted run whose way on was written down before it.
    cases.push(Case::new(
        "pieces before a join",
        vec![
            branchi(Condition::Test, Width::W64, R1, 1, 4),
            storei(Size::B8, R10, -8, 5),
            storei(Size::B8, R10, -16, 6),
            jump(6),
            store(Size::B8, R10, -8, R1),
            store(Size::B8, R10, -16, R2),
            load(Size::B8, R0, R10, -16),
            load(Size::B8, R3, R10, -8),
            alu(AluOp::Sub, Width::W64, R0, R3),
        ],
        |a, b| if a & 1 != 0 { b.wrapping_sub(a) } else { 1 },
    ));
    run_all(&cases);
}

#[test]
fn pointers_in_memory() {
    let cases = vec![
        // Spilled and reloaded: a packet pointer, and one into the stack.
        Case::new(
            "spill packet",
            vec![
                mov(R3, R6),
                addi(R3, 16),
                store(Size::B8, R10, -8, R3),
                load(Size::B8, R4, R10, -8),
                load(Size::B8, R0, R4, 0),
            ],
            |_, b| b,
        ),
        Case::new(
            "spill stack",
            vec![
                store(Size::B8, R10, -16, R1),
                mov(R3, R10),
                addi(R3, -16),
                store(Size::B8, R10, -8, R3),
                load(Size::B8, R4, R10, -8),
                load(Size::B8, R0, R4, 0),
            ],
            |a, _| a,
        ),
        // One of two stack objects.
        Case::new(
            "two stack objects",
            vec![
                store(Size::B8, R10, -8, R1),
                store(Size::B8, R10, -24, R2),
                mov(R3, R10),
                addi(R3, -8),
                branchi(Condition::Test, Width::W64, R1, 1, 7),
                mov(R3, R10),
                addi(R3, -24),
                load(Size::B8, R0, R3, 0),
            ],
            |a, b| if a & 1 != 0 { a } else { b },
        ),
        // At a variable offset.
        Case::new(
            "stack index",
            vec![
                store(Size::B8, R10, -16, R1),
                store(Size::B8, R10, -8, R2),
                mov(R3, R10),
                addi(R3, -16),
                mov(R4, R1),
                alui(AluOp::And, Width::W64, R4, 8),
                add(R3, R4),
                load(Size::B8, R0, R3, 0),
            ],
            |a, b| if a & 8 != 0 { b } else { a },
        ),
        // The packet in some executions, the stack in others.
        Case::new(
            "packet or stack",
            vec![
                store(Size::B8, R10, -24, R1),
                store(Size::B8, R10, -8, R2),
                mov(R3, R10),
                addi(R3, -24),
                branchi(Condition::Test, Width::W64, R1, 1, 7),
                mov(R3, R6),
                addi(R3, 16),
                load(Size::B8, R0, R3, 0),
            ],
            |a, b| if a & 1 != 0 { a } else { b },
        ),
        // A pointer in some executions, null in others.
        Case::new(
            "pointer or null",
            vec![
                mov(R3, R6),
                branchi(Condition::Test, Width::W64, R1, 1, 3),
                movi(R3, 0),
                mov(R0, R2),
                branchi(Condition::Eq, Width::W64, R3, 0, 6),
                load(Size::B8, R0, R3, 8),
            ],
            |a, b| if a & 1 != 0 { a } else { b },
        ),
        Case::new(
            "packet index",
            vec![
                mov(R3, R6),
                mov(R4, R1),
                alui(AluOp::And, Width::W64, R4, 8),
                add(R4, R3),
                load(Size::B8, R0, R4, 8),
            ],
            |a, b| if a & 8 != 0 { b } else { a },
        ),
    ];
    run_all(&cases);
}

#[test]
fn atomics() {
    let mut cases = Vec::new();
    for size in [Size::B4, Size::B8] {
        for op in [AtomicOp::Add, AtomicOp::Or, AtomicOp::And, AtomicOp::Xor] {
            let apply = move |a: u64, b: u64| match op {
                AtomicOp::Add => a.wrapping_add(b),
                AtomicOp::Or => a | b,
                AtomicOp::And => a & b,
                _ => a ^ b,
            };
            let updated = move |a: u64, b: u64| {
                let mask = u64::MAX >> (64 - 8 * size.bytes());
                a & !mask | apply(a, b) & mask
            };
            let body = vec![
                store(Size::B8, R10, -8, R1),
                atomic(op, false, size, R10, -8, R2),
                load(Size::B8, R0, R10, -8),
            ];
            cases.push(Case::new(format!("{op:?} {size:?}"), body, updated));
            let body = vec![
                store(Size::B8, R10, -8, R1),
                atomic(op, true, size, R10, -8, R2),
                load(Size::B8, R0, R10, -8),
                alu(AluOp::Sub, Width::W64, R0, R2),
            ];
            cases.push(Case::new(
                format!("fetch {op:?} {size:?}"),
                body,
                move |a, b| updated(a, b).wrapping_sub(low(size, a)),
            ));
        }
        let mask = u64::MAX >> (64 - 8 * size.bytes());
        let body = vec![
            store(Size::B8, R10, -8, R1),
            atomic(AtomicOp::Exchange, true, size, R10, -8, R2),
            load(Size::B8, R0, R10, -8),
            alui(AluOp::Mul, Width::W64, R0, 3),
            add(R0, R2),
        ];
        cases.push(Case::new(
            format!("exchange {size:?}"),
            body,
            move |a, b| {
                (a & !mask | b & mask)
                    .wrapping_mul(3)
                    .wrapping_add(low(size, a))
            },
        ));
        // Expects r1's neighbour: equal in the corner where a + 0 == a, else not.
        let body = vec![
            store(Size::B8, R10, -8, R1),
            mov(R0, R2),
            mov(R3, R2),
            addi(R3, 77),
            atomic(AtomicOp::CompareExchange, true, size, R10, -8, R3),
            load(Size::B8, R3, R10, -8),
            alui(AluOp::Mul, Width::W64, R3, 5),
            add(R0, R3),
        ];
        cases.push(Case::new(
            format!("compare exchange {size:?}"),
            body,
            move |a, b| {
                let stored = if low(size, a) == low(size, b) {
                    a & !mask | b.wrapping_add(77) & mask
                } else {
                    a
                };
                low(size, a).wrapping_add(stored.wrapping_mul(5))
            },
        ));
    }
    run_all(&cases);
}
