//! Pieces in which what the proof knows of a number decides over an access: the number is an index without a test, or its
//! branch never goes where memory would be left. A wrong bound is a wrong access here.

use millrace_object::helper::{
    GET_PRANDOM_U32, MAP_LOOKUP_ELEM, SPIN_LOCK, SPIN_UNLOCK, XDP_ADJUST_HEAD, XDP_ADJUST_TAIL,
    XDP_LOAD_BYTES, XDP_STORE_BYTES,
};
use millrace_object::insn::{AluOp, Condition, Insn, Operand, Reg, Size, Width};
use rand::{Rng, RngExt};

use super::{CONDITIONS, Generator, SIZES};
use crate::soundness::objects::{ELEMENTS, PAGE, TABLE};

/// Where numbers and addresses are kept.
const KEPT: [i16; 2] = [-144, -152];
const SLOT: i16 = -24;

impl<R: Rng> Generator<'_, R> {
    pub(super) fn decided(&mut self) {
        match self.random.random_range(0..12) {
            0..=5 => {
                self.drawn();
                self.computed();
                self.decide();
            }
            6 | 7 => self.overwritten(),
            8 => self.called(),
            9 => self.moved(),
            10 => self.one_test(),
            _ => self.two_locks(),
        }
        self.numbers();
    }

    /// A number of the packet into r9; r4 may be the same.
    fn drawn(&mut self) {
        self.check_bytes(16, Condition::Gt);
        let size = self.of(SIZES);
        let signed = size != Size::B8 && self.chance(2);
        self.put(Insn::Load {
            size,
            signed,
            dst: Reg(9),
            base: Reg(7),
            offset: 8,
        });
        if self.chance(2) {
            self.copy(4, 9);
        }
    }

    fn computed(&mut self) {
        for _ in 0..self.random.random_range(1..4) {
            let width = self.of([Width::W64, Width::W64, Width::W32]);
            let wide = width == Width::W64;
            let small = self.of([1, 3, 8, 16, -1, -8]);
            let (op, imm) = match self.random.random_range(0..9) {
                0 => (AluOp::Arsh, self.of([1, 3, 28, if wide { 60 } else { 27 }])),
                1 => (AluOp::Rsh, self.of([1, 3, 28, if wide { 60 } else { 27 }])),
                2 | 3 => (AluOp::And, self.of([7, 15, 31, 0xf0])),
                4 => (AluOp::Mod, self.of([5, 16, 32])),
                5 => {
                    self.copy(3, 9);
                    self.alu(AluOp::And, Width::W64, 3, Operand::Imm(15));
                    self.alu(AluOp::Mod, width, 9, Operand::Reg(Reg(3)));
                    continue;
                }
                6 => {
                    let from = self.of([Size::B1, Size::B2]);
                    let (dst, src) = (Reg(9), Reg(9));
                    self.put(Insn::SignExtend {
                        width,
                        from,
                        dst,
                        src,
                    });
                    continue;
                }
                7 => (AluOp::Mul, self.of([2, 3, 8])),
                _ => (self.of([AluOp::Add, AluOp::Sub, AluOp::Or]), small),
            };
            self.alu(op, width, 9, Operand::Imm(imm));
        }
    }

    /// Decides by r9, or by what it was before.
    fn decide(&mut self) {
        let width = self.of([Width::W64, Width::W32]);
        let bound = Operand::Imm(self.of([0, 7, 15, 24, 31]));
        if self.chance(3) {
            // Where the proof says that nobody comes, there may be anything.
            let condition = self.of(CONDITIONS);
            let at = self.insns.len();
            self.put(Insn::Branch {
                condition,
                width,
                left: Reg(9),
                right: bound,
                target: at + 3,
            });
            self.value(0, PAGE, 0);
            self.load_plain(Size::B8, 5, 0, 40);
            return;
        }
        if self.chance(2) {
            let condition = self.of([Condition::Gt, Condition::Ge, Condition::SignedGt]);
            self.outs.push(self.insns.len());
            self.put(Insn::Branch {
                condition,
                width,
                left: Reg(9),
                right: bound,
                target: 0,
            });
        }
        let index = self.of([9, 9, 4]);
        self.index(index);
    }

    fn index(&mut self, by: u8) {
        self.value(0, PAGE, 0);
        self.alu(AluOp::Add, Width::W64, 0, Operand::Reg(Reg(by)));
        self.load_plain(Size::B1, 5, 0, 0);
    }

    /// A number on the stack that something overwrites, wholly or in part.
    fn overwritten(&mut self) {
        self.drawn();
        let before = self.of([0, 8]);
        self.store(Size::B8, 10, SLOT, Operand::Imm(before));
        match self.random.random_range(0..3) {
            0 => {
                let (size, by) = (self.of([Size::B1, Size::B2, Size::B4]), self.of([0, 4]));
                self.store(size, 10, SLOT + by, Operand::Reg(Reg(9)));
            }
            1 => self.lock(10, SLOT),
            _ => {
                let most = self.of([0, 7, 15]);
                self.copy(4, 9);
                self.alu(AluOp::And, Width::W64, 4, Operand::Imm(most));
                self.add(4, 1);
                self.copy(1, 6);
                self.set(2, 8);
                self.copy(3, 10);
                let at = self.of([SLOT, -8]);
                self.add(3, i64::from(at));
                let helper = self.of([XDP_LOAD_BYTES.number, XDP_STORE_BYTES.number]);
                self.put(Insn::Call { helper });
            }
        }
        self.load_plain(Size::B8, 9, 10, SLOT);
        self.copy(4, 9);
        self.decide();
    }

    /// A register that a call has taken away.
    fn called(&mut self) {
        let helper = GET_PRANDOM_U32.number;
        self.put(Insn::Call { helper });
        let by = self.of([1, 2, 3, 4]);
        self.index(by);
    }

    /// Bytes of the packet that were tested before its borders moved.
    fn moved(&mut self) {
        self.check_bytes(24, Condition::Gt);
        self.copy(1, 6);
        let by = self.of([8, -4, -20]);
        self.set(2, by);
        let helper = self.of([XDP_ADJUST_HEAD.number, XDP_ADJUST_TAIL.number]);
        self.put(Insn::Call { helper });
        self.packet();
        let at = self.of([0, 8, 23]);
        self.load_plain(Size::B1, 9, 7, at);
    }

    /// What a lookup of this key finds goes into a slot.
    fn found(&mut self, n: usize, key: i64, tested: bool) {
        let (map, size) = self.of([(TABLE, Size::B8), (ELEMENTS, Size::B4)]);
        let (map, size) = if tested {
            (ELEMENTS, Size::B4)
        } else {
            (map, size)
        };
        self.store(size, 10, -16, Operand::Imm(key));
        self.object(1, map);
        self.copy(2, 10);
        self.add(2, -16);
        let helper = MAP_LOOKUP_ELEM.number;
        self.put(Insn::Call { helper });
        if tested {
            self.out_if(Condition::Eq, 0, Operand::Imm(0));
        }
        self.store(Size::B8, 10, KEPT[n % 2], Operand::Reg(Reg(0)));
    }

    /// Two lookups, of which one is tested.
    fn one_test(&mut self) {
        for n in 0..2 {
            let key = self.of([1, 7]);
            self.found(n, key, false);
        }
        let tested = self.of([0, 1]);
        self.load_plain(Size::B8, 5, 10, KEPT[tested]);
        self.out_if(Condition::Eq, 5, Operand::Imm(0));
        let used = self.of([0, 1]);
        self.load_plain(Size::B8, 5, 10, KEPT[used]);
        self.load_plain(Size::B8, 9, 5, 0);
    }

    /// The locks of two entries: one is taken, one given back.
    fn two_locks(&mut self) {
        self.found(0, 0, true);
        self.found(1, 1, true);
        for (helper, at) in [(SPIN_LOCK.number, KEPT[0]), (SPIN_UNLOCK.number, KEPT[1])] {
            self.load_plain(Size::B8, 1, 10, at);
            self.put(Insn::Call { helper });
        }
    }
}
