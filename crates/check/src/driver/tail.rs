//! `bpf_tail_call` in a function that another one calls: if there is a program to go on with, the function
//! returns what that one gives.

use millrace_object::helper::TAIL_AWAY;
use millrace_object::insn::{AluOp, Condition, Insn, Reg, Width};

use super::{branch, call_helper, imm, mov, reg};

const ENOENT: i64 = 2;

/// The instruction that leaves the function, and not only what the call stands for.
pub const LEAVES: usize = 3;

/// At entry: r1 the context, r2 the array of programs, r3 the index.
pub fn insns() -> Vec<Insn> {
    vec![
        call_helper(&TAIL_AWAY),
        branch(Condition::Eq, 0, imm(0), 4),
        Insn::Alu {
            op: AluOp::Mov,
            width: Width::W32,
            dst: Reg(0),
            src: reg(0),
        },
        // LEAVES
        Insn::Exit,
        mov(0, imm(-ENOENT)),
        Insn::Exit,
    ]
}
