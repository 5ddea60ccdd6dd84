//! Instructions, one by one, and draws.

use millrace_object::insn::{AluOp, Condition, Imm64, Insn, Operand, Reg, Size, Width};
use millrace_object::program::ObjectId;
use rand::{Rng, RngExt};

use super::{Generator, NUMBERS};

impl<R: Rng> Generator<'_, R> {
    pub(super) fn of<T: Copy, const N: usize>(&mut self, choices: [T; N]) -> T {
        choices[self.random.random_range(0..N)]
    }

    pub(super) fn chance(&mut self, of: u32) -> bool {
        self.random.random_range(0..of) == 0
    }

    pub(super) fn number(&mut self) -> u8 {
        self.of(NUMBERS)
    }

    pub(super) fn offset(&mut self, below: i16) -> i16 {
        self.random.random_range(0..below)
    }

    /// Mostly what fits, sometimes what does not.
    pub(super) fn near(&mut self, right: i64) -> i64 {
        if self.chance(6) {
            right + self.of([-8, -4, -1, 1, 1, 4, 8])
        } else {
            right
        }
    }

    pub(super) fn put(&mut self, insn: Insn) {
        self.insns.push(insn);
    }

    pub(super) fn alu(&mut self, op: AluOp, width: Width, dst: u8, src: Operand) {
        let dst = Reg(dst);
        self.put(Insn::Alu {
            op,
            width,
            dst,
            src,
        });
    }

    pub(super) fn set(&mut self, dst: u8, imm: i64) {
        self.alu(AluOp::Mov, Width::W64, dst, Operand::Imm(imm));
    }

    pub(super) fn copy(&mut self, dst: u8, src: u8) {
        self.alu(AluOp::Mov, Width::W64, dst, Operand::Reg(Reg(src)));
    }

    pub(super) fn add(&mut self, dst: u8, imm: i64) {
        self.alu(AluOp::Add, Width::W64, dst, Operand::Imm(imm));
    }

    pub(super) fn load(&mut self, size: Size, dst: u8, base: u8, offset: i16) {
        let signed = size != Size::B8 && self.chance(4);
        let (dst, base) = (Reg(dst), Reg(base));
        self.put(Insn::Load {
            size,
            signed,
            dst,
            base,
            offset,
        });
    }

    pub(super) fn load_plain(&mut self, size: Size, dst: u8, base: u8, offset: i16) {
        let (dst, base) = (Reg(dst), Reg(base));
        self.put(Insn::Load {
            size,
            signed: false,
            dst,
            base,
            offset,
        });
    }

    pub(super) fn store(&mut self, size: Size, base: u8, offset: i16, src: Operand) {
        let base = Reg(base);
        self.put(Insn::Store {
            size,
            base,
            offset,
            src,
        });
    }

    pub(super) fn object(&mut self, dst: u8, object: ObjectId) {
        let (dst, value) = (Reg(dst), Imm64::Object(object));
        self.put(Insn::LoadImm { dst, value });
    }

    pub(super) fn value(&mut self, dst: u8, object: ObjectId, offset: u32) {
        let (dst, value) = (Reg(dst), Imm64::ObjectValue { object, offset });
        self.put(Insn::LoadImm { dst, value });
    }

    pub(super) fn out_if(&mut self, condition: Condition, left: u8, right: Operand) {
        self.outs.push(self.insns.len());
        self.put(Insn::Branch {
            condition,
            width: Width::W64,
            left: Reg(left),
            right,
            target: 0,
        });
    }

    pub(super) fn packet(&mut self) {
        self.load_plain(Size::B4, 8, 6, 4);
        self.load_plain(Size::B4, 7, 6, 0);
    }
}
