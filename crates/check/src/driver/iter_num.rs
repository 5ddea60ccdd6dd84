//! The kernel's iterator over numbers (kernel/bpf/bpf_iter.c, `bpf_iter_num_new` and its kin). What is in
//! the iterator's eight bytes is the kernel's own affair, but that `next` gives the address of the number.
//! Here the number comes first, then how many are left: that count bounds the loop around `next`.

use millrace_object::helper::{Helper, ITER_NUM_DESTROY, ITER_NUM_NEW, ITER_NUM_NEXT, MOST_ROUNDS};
use millrace_object::insn::{AluOp, Condition, Insn, Operand, Reg, Size, Width};

use super::{alu, branch, imm, mov, reg};

const E2BIG: i64 = 7;
const EINVAL: i64 = 22;

/// Where the number is, and where how many are left.
const NUMBER: i16 = 0;
const LEFT: i16 = 4;

/// At entry: r1 the iterator; for the first of them r2 the start and r3 the end, of 32 bits.
pub fn insns(helper: &Helper) -> Option<Vec<Insn>> {
    let number = helper.number;
    if number == ITER_NUM_NEW.number {
        Some(new())
    } else if number == ITER_NUM_NEXT.number {
        Some(next())
    } else if number == ITER_NUM_DESTROY.number {
        Some(vec![mov(0, imm(0)), Insn::Exit])
    } else {
        None
    }
}

fn new() -> Vec<Insn> {
    vec![
        signed(4, 2),
        signed(5, 3),
        branch(Condition::SignedGt, 4, reg(5), 10),
        alu(AluOp::Sub, 5, reg(4)),
        branch(Condition::Gt, 5, imm(i64::from(MOST_ROUNDS)), 13),
        // The first call of `next` steps to the start.
        alu(AluOp::Add, 4, imm(-1)),
        store(Size::B4, NUMBER, reg(4)),
        store(Size::B4, LEFT, reg(5)),
        mov(0, imm(0)),
        Insn::Exit,
        // 10
        store(Size::B8, NUMBER, imm(0)),
        mov(0, imm(-EINVAL)),
        Insn::Exit,
        // 13
        store(Size::B8, NUMBER, imm(0)),
        mov(0, imm(-E2BIG)),
        Insn::Exit,
    ]
}

fn next() -> Vec<Insn> {
    vec![
        load(2, LEFT),
        branch(Condition::Eq, 2, imm(0), 9),
        alu(AluOp::Add, 2, imm(-1)),
        store(Size::B4, LEFT, reg(2)),
        load(3, NUMBER),
        alu(AluOp::Add, 3, imm(1)),
        store(Size::B4, NUMBER, reg(3)),
        mov(0, reg(1)),
        Insn::Exit,
        // 9: it is over, and stays so
        store(Size::B8, NUMBER, imm(0)),
        mov(0, imm(0)),
        Insn::Exit,
    ]
}

fn signed(dst: u8, src: u8) -> Insn {
    Insn::SignExtend {
        width: Width::W64,
        from: Size::B4,
        dst: Reg(dst),
        src: Reg(src),
    }
}

fn store(size: Size, offset: i16, src: Operand) -> Insn {
    Insn::Store {
        size,
        base: Reg(1),
        offset,
        src,
    }
}

fn load(dst: u8, offset: i16) -> Insn {
    Insn::Load {
        size: Size::B4,
        signed: false,
        dst: Reg(dst),
        base: Reg(1),
        offset,
    }
}
