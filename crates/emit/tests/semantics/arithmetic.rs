//! RFC 9669 sections 4.1 and 4.2, and the 64-bit immediate of 5.4.

use millrace_assemble::oracle::{OPS, result};
use millrace_object::insn::{AluOp, ByteOrder, Size, Width};

use crate::semantics::{Case, run_all};
use crate::support::asm::*;

#[test]
fn registers() {
    let mut cases = Vec::new();
    for op in OPS {
        for width in [Width::W64, Width::W32] {
            let body = vec![mov(R0, R1), alu(op, width, R0, R2)];
            cases.push(Case::new(format!("{op:?} {width:?}"), body, move |a, b| {
                result(op, width, a, b)
            }));
        }
    }
    run_all(&cases);
}

#[test]
fn immediates() {
    let mut cases = Vec::new();
    for op in OPS {
        for width in [Width::W64, Width::W32] {
            for imm in [0, 1, 7, 33, 0x7fff_ffff, -1, -5, -0x8000_0000] {
                let shift = matches!(op, AluOp::Lsh | AluOp::Rsh | AluOp::Arsh);
                let divides = matches!(
                    op,
                    AluOp::Div | AluOp::SignedDiv | AluOp::Mod | AluOp::SignedMod
                );
                let bits = if width == Width::W64 { 64 } else { 32 };
                // Encodings that no loader admits: the kernel refuses them too.
                if shift && !(0..bits).contains(&imm) || divides && imm == 0 {
                    continue;
                }
                let body = vec![mov(R0, R1), alui(op, width, R0, imm)];
                let name = format!("{op:?} {width:?} {imm}");
                cases.push(Case::new(name, body, move |a, _| {
                    result(op, width, a, imm as u64)
                }));
            }
        }
    }
    run_all(&cases);
}

#[test]
fn signs_and_byte_order() {
    let mut cases = vec![
        Case::new("neg", vec![mov(R0, R1), neg(Width::W64, R0)], |a, _| {
            a.wrapping_neg()
        }),
        Case::new("neg32", vec![mov(R0, R1), neg(Width::W32, R0)], |a, _| {
            u64::from((a as u32).wrapping_neg())
        }),
        Case::new(
            "imm64",
            vec![number(R0, 0x8877_6655_4433_2211), add(R0, R1)],
            |a, _| a.wrapping_add(0x8877_6655_4433_2211),
        ),
    ];
    for size in [Size::B1, Size::B2, Size::B4] {
        let extend_to = move |a: u64| match size {
            Size::B1 => i64::from(a as i8),
            Size::B2 => i64::from(a as i16),
            _ => i64::from(a as i32),
        };
        cases.push(Case::new(
            format!("movsx {size:?}"),
            vec![extend(Width::W64, size, R0, R1)],
            move |a, _| extend_to(a) as u64,
        ));
        if size != Size::B4 {
            cases.push(Case::new(
                format!("movsx32 {size:?}"),
                vec![extend(Width::W32, size, R0, R1)],
                move |a, _| u64::from(extend_to(a) as u32),
            ));
        }
    }
    for bits in [16u32, 32, 64] {
        let mask = u64::MAX >> (64 - bits);
        let swap = move |a: u64| a.swap_bytes() >> (64 - bits);
        let body = |o| vec![mov(R0, R1), order(o, bits, R0)];
        cases.push(Case::new(
            format!("le{bits}"),
            body(ByteOrder::ToLittle),
            move |a, _| a & mask,
        ));
        cases.push(Case::new(
            format!("be{bits}"),
            body(ByteOrder::ToBig),
            move |a, _| swap(a),
        ));
        cases.push(Case::new(
            format!("bswap{bits}"),
            body(ByteOrder::Swap),
            move |a, _| swap(a),
        ));
    }
    run_all(&cases);
}
