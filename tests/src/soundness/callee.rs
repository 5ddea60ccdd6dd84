//! What generated programs may call.

use millrace_object::insn::{AluOp, Condition, Insn, Operand, Reg, Size, Width};

use super::CALLEES;

/// What `bpf_loop` may call back.
pub const ROUND: usize = 2;
/// What `bpf_for_each_map_elem` may call back.
pub const ELEMENT: usize = 3;

/// The functions, by number.
pub fn all() -> [Vec<Insn>; CALLEES] {
    [through_the_stack(), of_the_packet(), round(), element()]
}

fn alu(op: AluOp, dst: u8, src: Operand) -> Insn {
    Insn::Alu {
        op,
        width: Width::W64,
        dst: Reg(dst),
        src,
    }
}

fn load(size: Size, dst: u8, base: u8, offset: i16) -> Insn {
    Insn::Load {
        size,
        signed: false,
        dst: Reg(dst),
        base: Reg(base),
        offset,
    }
}

fn store(size: Size, base: u8, offset: i16, src: u8) -> Insn {
    Insn::Store {
        size,
        base: Reg(base),
        offset,
        src: Operand::Reg(Reg(src)),
    }
}

/// r1: 16 bytes of the caller's stack, r2: a number. Uses a stack of its own, too.
fn through_the_stack() -> Vec<Insn> {
    vec![
        store(Size::B8, 10, -8, 2),
        store(Size::B8, 10, -16, 1),
        load(Size::B8, 0, 1, 0),
        load(Size::B4, 3, 10, -8),
        alu(AluOp::Add, 0, Operand::Reg(Reg(3))),
        load(Size::B8, 4, 10, -16),
        store(Size::B4, 4, 9, 0),
        alu(AluOp::Mov, 6, Operand::Imm(1)),
        Insn::Exit,
    ]
}

/// r1: the packet, r2: its end. Its first word, or 0.
fn of_the_packet() -> Vec<Insn> {
    vec![
        alu(AluOp::Mov, 3, Operand::Reg(Reg(1))),
        alu(AluOp::Add, 3, Operand::Imm(8)),
        alu(AluOp::Mov, 0, Operand::Imm(0)),
        Insn::Branch {
            condition: Condition::Gt,
            width: Width::W64,
            left: Reg(3),
            right: Operand::Reg(Reg(2)),
            target: 5,
        },
        load(Size::B8, 0, 1, 0),
        Insn::Exit,
    ]
}

/// r1: the round, r2: 16 bytes of the caller's stack, both halves of which it writes. Seven rounds are
/// enough.
fn round() -> Vec<Insn> {
    vec![
        load(Size::B8, 3, 2, 0),
        alu(AluOp::Mul, 3, Operand::Imm(31)),
        alu(AluOp::Add, 3, Operand::Reg(Reg(1))),
        store(Size::B8, 2, 0, 3),
        alu(AluOp::Mov, 0, Operand::Imm(0)),
        Insn::Branch {
            condition: Condition::Le,
            width: Width::W64,
            left: Reg(1),
            right: Operand::Imm(5),
            target: 7,
        },
        alu(AluOp::Mov, 0, Operand::Imm(1)),
        alu(AluOp::And, 1, Operand::Imm(7)),
        alu(AluOp::Add, 2, Operand::Reg(Reg(1))),
        store(Size::B1, 2, 8, 3),
        Insn::Exit,
    ]
}

/// r1: a map, r2: a key of 4 bytes, r3: its value of 16, r4: 8 bytes of the caller's stack. Stops at key 3.
fn element() -> Vec<Insn> {
    vec![
        load(Size::B4, 5, 2, 0),
        load(Size::B8, 0, 3, 0),
        alu(AluOp::Add, 0, Operand::Reg(Reg(5))),
        load(Size::B8, 1, 4, 0),
        alu(AluOp::Mul, 1, Operand::Imm(7)),
        alu(AluOp::Add, 1, Operand::Reg(Reg(0))),
        store(Size::B8, 4, 0, 1),
        store(Size::B8, 3, 8, 1),
        alu(AluOp::Mov, 0, Operand::Imm(0)),
        Insn::Branch {
            condition: Condition::Ne,
            width: Width::W64,
            left: Reg(5),
            right: Operand::Imm(3),
            target: 11,
        },
        alu(AluOp::Mov, 0, Operand::Imm(1)),
        Insn::Exit,
    ]
}
