//! `bpf_loop` (kernel/bpf/bpf_iter.c): the errors first, then one call a round, with the round's number
//! and the context.
//!
//! One thing depends on how the call is written. Where the flags are the constant 0 and the function is
//! always the same, the kernel's verifier puts a loop in the call's place (`inline_bpf_loop`), and that
//! one gives -E2BIG as a 32-bit number: 4294967289.

use millrace_object::helper::MOST_ROUNDS;
use millrace_object::insn::{AluOp, Condition, Imm64, Insn, Reg, Width};
use millrace_object::program::FunctionId;

use super::{alu, branch, call, imm, mov, reg};

const E2BIG: i64 = 7;
const EINVAL: i64 = 22;

/// What a call for too many rounds gives; `plain` if its flags are the constant 0.
#[must_use]
pub fn too_many(plain: bool) -> u64 {
    if plain {
        u64::from(E2BIG.wrapping_neg() as u32)
    } else {
        E2BIG.wrapping_neg() as u64
    }
}

/// At entry: r1 the number of rounds (32 bits), r2 the function, r3 the context, r4 the flags, `plain` if
/// these are the constant 0.
pub fn insns(function: FunctionId, plain: bool) -> Vec<Insn> {
    let rounds = Insn::Alu {
        op: AluOp::Mov,
        width: Width::W32,
        dst: Reg(6),
        src: reg(1),
    };
    vec![
        branch(Condition::Ne, 4, imm(0), 14),
        rounds,
        branch(Condition::Gt, 6, imm(i64::from(MOST_ROUNDS)), 16),
        mov(7, reg(3)),
        mov(8, imm(0)),
        // 5: the next round
        branch(Condition::Ge, 8, reg(6), 12),
        mov(1, reg(8)),
        mov(2, reg(7)),
        call(function),
        alu(AluOp::Add, 8, imm(1)),
        branch(Condition::Ne, 0, imm(0), 12),
        Insn::Jump { target: 5 },
        // 12: enough
        mov(0, reg(8)),
        Insn::Exit,
        mov(0, imm(-EINVAL)),
        Insn::Exit,
        Insn::LoadImm {
            dst: Reg(0),
            value: Imm64::Number(too_many(plain)),
        },
        Insn::Exit,
    ]
}
