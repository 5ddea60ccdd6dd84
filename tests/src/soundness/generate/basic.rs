//! Pieces that need no state: arithmetic, branches, accesses to packet and stack.

use millrace_object::insn::{AluOp, ByteOrder, Condition, Insn, Operand, Reg, Size, Width};
use rand::{Rng, RngExt};

use super::{CONDITIONS, Generator, OPS, SIZES};
use crate::soundness::objects::PAGE;

impl<R: Rng> Generator<'_, R> {
    pub(super) fn arithmetic(&mut self) {
        let (op, dst) = (self.of(OPS), self.number());
        let width = self.of([Width::W32, Width::W64]);
        let src = if self.chance(2) {
            Operand::Reg(Reg(self.number()))
        } else {
            let imm = i64::from(self.random.random::<i8>());
            let shift = matches!(op, AluOp::Lsh | AluOp::Rsh | AluOp::Arsh);
            Operand::Imm(if shift { imm & 31 } else { imm })
        };
        let zero = matches!(
            op,
            AluOp::Div | AluOp::Mod | AluOp::SignedDiv | AluOp::SignedMod
        ) && src == Operand::Imm(0);
        self.alu(op, width, dst, if zero { Operand::Imm(3) } else { src });
    }

    pub(super) fn unary(&mut self) {
        let (dst, src) = (Reg(self.number()), Reg(self.number()));
        let width = self.of([Width::W32, Width::W64]);
        let insn = match self.random.random_range(0..3) {
            0 => Insn::Neg { width, dst },
            1 => Insn::SignExtend {
                width,
                from: self.of([Size::B1, Size::B2]),
                dst,
                src,
            },
            _ => Insn::ByteOrder {
                order: self.of([ByteOrder::ToBig, ByteOrder::ToLittle, ByteOrder::Swap]),
                bits: self.of([16, 32, 64]),
                dst,
            },
        };
        self.put(insn);
    }

    pub(super) fn check(&mut self) {
        let n = i64::from(self.offset(48));
        let condition = self.of([Condition::Gt, Condition::Gt, Condition::Ge]);
        self.check_bytes(n, condition);
    }

    pub(super) fn check_bytes(&mut self, n: i64, condition: Condition) {
        self.copy(5, 7);
        self.add(5, n);
        self.out_if(condition, 5, Operand::Reg(Reg(8)));
    }

    pub(super) fn variable_packet(&mut self) {
        let r = self.number();
        // Added twice, a number without a bound comes round to a little before the packet.
        let round = self.chance(12);
        if round {
            self.check_bytes(16, Condition::Gt);
            self.load_plain(Size::B8, r, 7, 8);
            self.alu(AluOp::Rsh, Width::W64, r, Operand::Imm(1));
        } else if !self.chance(12) {
            let mask = self.of([3, 7, 15, 60]);
            self.alu(AluOp::And, Width::W64, r, Operand::Imm(mask));
        }
        self.copy(5, 7);
        for _ in 0..=u32::from(round) {
            self.alu(AluOp::Add, Width::W64, 5, Operand::Reg(Reg(r)));
        }
        let at = self.offset(8);
        let size = self.of(SIZES);
        if !self.chance(5) {
            let n = self.near(i64::from(at) + i64::from(size.bytes()));
            self.copy(0, 5);
            self.add(0, n);
            self.out_if(Condition::Gt, 0, Operand::Reg(Reg(8)));
        }
        if self.chance(2) {
            self.load(size, r, 5, at);
        } else {
            self.store(size, 5, at, Operand::Reg(Reg(r)));
        }
    }

    /// Bytes of the packet that are read, overwritten in part, and read again, by one pointer or another.
    pub(super) fn again(&mut self) {
        self.check_bytes(24, Condition::Gt);
        let (first, second) = (self.number(), self.number());
        let (size, at) = (self.of(SIZES), self.offset(8));
        self.load(size, first, 7, at);
        let base = if self.chance(2) { 5 } else { 7 };
        if base == 5 {
            let by = self.number();
            self.alu(AluOp::And, Width::W64, by, Operand::Imm(7));
            self.copy(5, 7);
            self.alu(AluOp::Add, Width::W64, 5, Operand::Reg(Reg(by)));
        }
        let (stored, place) = (self.of(SIZES), self.offset(8));
        self.store(stored, base, place, Operand::Reg(Reg(second)));
        let (size, at) = match self.chance(2) {
            true => (size, at),
            false => (self.of(SIZES), self.offset(8)),
        };
        self.load(size, second, 7, at);
        self.alu(AluOp::Add, Width::W64, first, Operand::Reg(Reg(second)));
    }

    pub(super) fn variable_stack(&mut self) {
        let (r, size) = (self.number(), self.of(SIZES));
        self.alu(AluOp::And, Width::W64, r, Operand::Imm(7));
        self.copy(5, 10);
        let low = self.near(-8 - i64::from(size.bytes()));
        self.add(5, low);
        self.alu(AluOp::Add, Width::W64, 5, Operand::Reg(Reg(r)));
        if self.chance(2) {
            self.load(size, r, 5, 0);
        } else {
            self.store(size, 5, 0, Operand::Reg(Reg(r)));
        }
    }

    pub(super) fn branch(&mut self, depth: u32) {
        let at = self.insns.len();
        let right = if self.chance(2) {
            Operand::Reg(Reg(self.number()))
        } else {
            Operand::Imm(i64::from(self.random.random::<i8>()))
        };
        let insn = Insn::Branch {
            condition: self.of(CONDITIONS),
            width: self.of([Width::W32, Width::W64]),
            left: Reg(self.number()),
            right,
            target: 0,
        };
        self.put(insn);
        for _ in 0..self.random.random_range(1..3) {
            self.piece(depth + 1);
        }
        let end = self.insns.len();
        if let Some(Insn::Branch { target, .. }) = self.insns.get_mut(at) {
            *target = end;
        }
    }

    /// A packet pointer goes to the stack and comes back.
    pub(super) fn spill(&mut self) {
        let (size, dst, off) = (self.of(SIZES), self.number(), self.offset(24));
        let n = self.near(i64::from(off) + i64::from(size.bytes()));
        self.check_bytes(n, Condition::Gt);
        let at = self.of([-48i16, -48, -56]);
        self.store(Size::B8, 10, at, Operand::Reg(Reg(7)));
        self.arithmetic();
        if self.chance(8) {
            let (size, dst, part) = (self.of([Size::B2, Size::B4]), self.number(), self.offset(6));
            self.load_plain(size, dst, 10, at + part);
        }
        if self.chance(16) {
            self.value(5, PAGE, 8);
            self.store(Size::B8, 5, 0, Operand::Reg(Reg(7)));
        }
        let back = self.of([at, at, at, -48, -52]);
        self.load_plain(Size::B8, 5, 10, back);
        self.load(size, dst, 5, off);
    }
}
