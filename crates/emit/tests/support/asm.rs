//! Instructions in few words.

use millrace_object::insn::{
    AluOp, AtomicOp, ByteOrder, Condition, Imm64, Insn, Operand, Reg, Size, Width,
};
use millrace_object::program::FunctionId;

pub const R0: Reg = Reg(0);
pub const R1: Reg = Reg(1);
pub const R2: Reg = Reg(2);
pub const R3: Reg = Reg(3);
pub const R4: Reg = Reg(4);
pub const R5: Reg = Reg(5);
pub const R6: Reg = Reg(6);
pub const R7: Reg = Reg(7);
pub const R8: Reg = Reg(8);
pub const R9: Reg = Reg(9);
pub const R10: Reg = Reg(10);

pub fn alu(op: AluOp, width: Width, dst: Reg, src: Reg) -> Insn {
    Insn::Alu {
        op,
        width,
        dst,
        src: Operand::Reg(src),
    }
}

pub fn alui(op: AluOp, width: Width, dst: Reg, imm: i64) -> Insn {
    Insn::Alu {
        op,
        width,
        dst,
        src: Operand::Imm(imm),
    }
}

pub fn mov(dst: Reg, src: Reg) -> Insn {
    alu(AluOp::Mov, Width::W64, dst, src)
}

pub fn movi(dst: Reg, imm: i64) -> Insn {
    alui(AluOp::Mov, Width::W64, dst, imm)
}

pub fn addi(dst: Reg, imm: i64) -> Insn {
    alui(AluOp::Add, Width::W64, dst, imm)
}

pub fn add(dst: Reg, src: Reg) -> Insn {
    alu(AluOp::Add, Width::W64, dst, src)
}

pub fn neg(width: Width, dst: Reg) -> Insn {
    Insn::Neg { width, dst }
}

pub fn extend(width: Width, from: Size, dst: Reg, src: Reg) -> Insn {
    Insn::SignExtend {
        width,
        from,
        dst,
        src,
    }
}

pub fn order(order: ByteOrder, bits: u32, dst: Reg) -> Insn {
    Insn::ByteOrder { order, bits, dst }
}

pub fn number(dst: Reg, value: u64) -> Insn {
    Insn::LoadImm {
        dst,
        value: Imm64::Number(value),
    }
}

pub fn load(size: Size, dst: Reg, base: Reg, offset: i16) -> Insn {
    Insn::Load {
        size,
        signed: false,
        dst,
        base,
        offset,
    }
}

pub fn load_signed(size: Size, dst: Reg, base: Reg, offset: i16) -> Insn {
    Insn::Load {
        size,
        signed: true,
        dst,
        base,
        offset,
    }
}

pub fn store(size: Size, base: Reg, offset: i16, src: Reg) -> Insn {
    Insn::Store {
        size,
        base,
        offset,
        src: Operand::Reg(src),
    }
}

pub fn storei(size: Size, base: Reg, offset: i16, imm: i64) -> Insn {
    Insn::Store {
        size,
        base,
        offset,
        src: Operand::Imm(imm),
    }
}

pub fn atomic(op: AtomicOp, fetch: bool, size: Size, base: Reg, offset: i16, src: Reg) -> Insn {
    Insn::Atomic {
        op,
        fetch,
        size,
        base,
        offset,
        src,
    }
}

pub fn branch(condition: Condition, width: Width, left: Reg, right: Reg, target: usize) -> Insn {
    Insn::Branch {
        condition,
        width,
        left,
        right: Operand::Reg(right),
        target,
    }
}

pub fn branchi(condition: Condition, width: Width, left: Reg, right: i64, target: usize) -> Insn {
    Insn::Branch {
        condition,
        width,
        left,
        right: Operand::Imm(right),
        target,
    }
}

pub fn jump(target: usize) -> Insn {
    Insn::Jump { target }
}

pub fn call(helper: u32) -> Insn {
    Insn::Call { helper }
}

pub fn call_local(function: usize) -> Insn {
    Insn::CallLocal {
        function: FunctionId(function),
    }
}

pub fn exit() -> Insn {
    Insn::Exit
}

/// Moves the jump targets of a body that will begin at `at`.
pub fn shifted(body: &[Insn], at: usize) -> Vec<Insn> {
    body.iter()
        .map(|insn| match *insn {
            Insn::Jump { target } => Insn::Jump {
                target: target + at,
            },
            Insn::Branch {
                condition,
                width,
                left,
                right,
                target,
            } => Insn::Branch {
                condition,
                width,
                left,
                right,
                target: target + at,
            },
            other => other,
        })
        .collect()
}

/// A packet program around a body that computes `r0` from `r1` and `r2`, which are the packet's second
/// and third 64-bit words; `r0` becomes its first. `r6` is the packet, 64 bytes of which are checked.
pub fn around(body: &[Insn]) -> Vec<Insn> {
    let begin = [
        load(Size::B4, R6, R1, 0),
        load(Size::B4, R7, R1, 4),
        mov(R2, R6),
        addi(R2, 64),
        branch(Condition::Gt, Width::W64, R2, R7, 10 + body.len()),
        load(Size::B8, R1, R6, 8),
        load(Size::B8, R2, R6, 16),
    ];
    let mut insns = begin.to_vec();
    insns.extend(shifted(body, begin.len()));
    insns.extend([
        store(Size::B8, R6, 0, R0),
        movi(R0, 2),
        exit(),
        movi(R0, 0),
        exit(),
    ]);
    insns
}
