//! RFC 9669 sections 4.1 and 4.2, and the 64-bit immediate of 5.4.

use millrace_object::insn::{AluOp, ByteOrder, Size, Width};

use crate::semantics::{Case, run_all};
use crate::support::asm::*;

const OPS: &[AluOp] = &[
    AluOp::Add,
    AluOp::Sub,
    AluOp::Mul,
    AluOp::Div,
    AluOp::SignedDiv,
    AluOp::Mod,
    AluOp::SignedMod,
    AluOp::Or,
    AluOp::And,
    AluOp::Xor,
    AluOp::Lsh,
    AluOp::Rsh,
    AluOp::Arsh,
    AluOp::Mov,
];

/// The RFC's text, in Rust.
fn result(op: AluOp, width: Width, a: u64, b: u64) -> u64 {
    match width {
        Width::W64 => match op {
            AluOp::Add => a.wrapping_add(b),
            AluOp::Sub => a.wrapping_sub(b),
            AluOp::Mul => a.wrapping_mul(b),
            AluOp::Div => a.checked_div(b).unwrap_or(0),
            AluOp::SignedDiv if b == 0 => 0,
            AluOp::SignedDiv => (a as i64).wrapping_div(b as i64) as u64,
            AluOp::Mod => a.checked_rem(b).unwrap_or(a),
            AluOp::SignedMod if b == 0 => a,
            AluOp::SignedMod => (a as i64).wrapping_rem(b as i64) as u64,
            AluOp::Or => a | b,
            AluOp::And => a & b,
            AluOp::Xor => a ^ b,
            AluOp::Lsh => a.wrapping_shl(b as u32),
            AluOp::Rsh => a.wrapping_shr(b as u32),
            AluOp::Arsh => (a as i64).wrapping_shr(b as u32) as u64,
            AluOp::Mov => b,
        },
        Width::W32 => {
            let (a, b) = (a as u32, b as u32);
            u64::from(match op {
                AluOp::Add => a.wrapping_add(b),
                AluOp::Sub => a.wrapping_sub(b),
                AluOp::Mul => a.wrapping_mul(b),
                AluOp::Div => a.checked_div(b).unwrap_or(0),
                AluOp::SignedDiv if b == 0 => 0,
                AluOp::SignedDiv => (a as i32).wrapping_div(b as i32) as u32,
                AluOp::Mod => a.checked_rem(b).unwrap_or(a),
                AluOp::SignedMod if b == 0 => a,
                AluOp::SignedMod => (a as i32).wrapping_rem(b as i32) as u32,
                AluOp::Or => a | b,
                AluOp::And => a & b,
                AluOp::Xor => a ^ b,
                AluOp::Lsh => a.wrapping_shl(b),
                AluOp::Rsh => a.wrapping_shr(b),
                AluOp::Arsh => (a as i32).wrapping_shr(b) as u32,
                AluOp::Mov => b,
            })
        }
    }
}

#[test]
fn registers() {
    let mut cases = Vec::new();
    for &op in OPS {
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
    for &op in OPS {
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
