//! Pieces that break a rule, where small mistakes in the others seldom do.

use millrace_object::helper::{self, ITER_NUM_DESTROY, LOOP};
use millrace_object::insn::{AluOp, Condition, Imm64, Insn, Operand, Reg, Size, Width};
use millrace_object::program::FunctionId;
use rand::{Rng, RngExt};

use super::Generator;
use crate::soundness::callee::{LEAVE, ROUND};
use crate::soundness::objects::{PAGE, READING, RING, TABLE};

/// The address of a value, kept.
const KEPT: i16 = -128;

impl<R: Rng> Generator<'_, R> {
    /// One of them.
    pub(super) fn wrong(&mut self) {
        match self.random.random_range(0..23) {
            0 => {
                let helper = self.of([35, 4, 999]);
                self.call_number(helper);
            }
            1 => self.call_number(helper::ABSENT),
            2 => self.put(Insn::CallRegister { target: Reg(9) }),
            3 => self.put(Insn::LegacyPacketLoad),
            4 => self.copy(10, 10),
            5 => self.address_as_number(),
            6 => self.address_compared(),
            7 => self.one_load_of_two_regions(),
            8 => {
                // The object's own memory, or a function's code.
                let function = Imm64::Function(FunctionId(ROUND));
                let value = if self.chance(2) {
                    function
                } else {
                    Imm64::Object(TABLE)
                };
                self.put(Insn::LoadImm { dst: Reg(5), value });
                self.load_plain(Size::B8, 3, 5, 0);
            }
            9 => {
                self.check_bytes(24, Condition::Gt);
                let (size, r) = (self.of([Size::B4, Size::B8]), self.number());
                self.load_plain(size, 3, r, 8);
            }
            10 => {
                let (size, at) = self.of([(Size::B4, 20), (Size::B2, 12), (Size::B8, 8)]);
                self.load_plain(size, 3, 6, at);
            }
            11 => self.store(Size::B4, 6, 12, Operand::Imm(1)),
            12 => {
                // Nobody has said what is in these.
                self.call_number(8);
                let r = self.of([1, 2, 3, 4, 5]);
                self.copy(9, r);
                self.numbers();
            }
            13 => {
                // Moved, and not loaded again.
                self.check_bytes(30, Condition::Gt);
                self.copy(1, 6);
                let by = self.of([-8, 4, 8]);
                self.set(2, by);
                self.call_number(44);
                self.numbers();
                self.load_plain(Size::B8, 3, 7, 0);
            }
            14 => self.record_used_after(),
            15 => self.wandering(1, false, 16),
            16 => self.reading_format(),
            17 => {
                // An address as the verdict, near a number that is one.
                self.copy(0, 7);
                let by = self.of([1, 2, 3]);
                self.add(0, by);
                self.put(Insn::Exit);
            }
            18 => {
                self.set(1, 3);
                let value = Imm64::Function(FunctionId(LEAVE));
                self.put(Insn::LoadImm { dst: Reg(2), value });
                self.copy(3, 6);
                self.set(4, 0);
                self.call_number(LOOP.number);
                self.copy(9, 0);
                self.numbers();
            }
            19 => {
                // Ended before it began.
                self.copy(1, 10);
                self.add(1, -112);
                self.call_number(ITER_NUM_DESTROY.number);
                self.numbers();
            }
            20 => {
                // Half of an address, kept on the stack.
                self.store(Size::B8, 10, KEPT, Operand::Reg(Reg(7)));
                let half = self.of([0, 4]);
                self.load_plain(Size::B4, 3, 10, KEPT + half);
            }
            21 => {
                // What is left of one whose lower half is overwritten.
                self.store(Size::B8, 10, KEPT, Operand::Reg(Reg(7)));
                self.store(Size::B4, 10, KEPT, Operand::Imm(1));
                let (size, at) = self.of([(Size::B4, KEPT + 4), (Size::B8, KEPT)]);
                self.load_plain(size, 3, 10, at);
            }
            _ => {
                // A lock of a global, which is not given back.
                self.value(1, PAGE, 4);
                let helper = self.of([93, 93, 94]);
                self.call_number(helper);
                self.numbers();
            }
        }
    }

    fn call_number(&mut self, helper: u32) {
        self.put(Insn::Call { helper });
    }

    fn address_as_number(&mut self) {
        self.copy(5, 7);
        match self.random.random_range(0..3) {
            0 => self.alu(AluOp::Mul, Width::W64, 5, Operand::Imm(3)),
            1 => self.alu(AluOp::And, Width::W64, 5, Operand::Imm(0xfff0)),
            _ => self.alu(AluOp::Rsh, Width::W64, 5, Operand::Imm(4)),
        }
        self.copy(3, 5);
    }

    /// A branch on an address that is compared with something else.
    fn address_compared(&mut self) {
        let right = if self.chance(2) {
            Operand::Imm(i64::from(1 << self.random.random_range(4..14_u8)))
        } else {
            self.value(5, PAGE, 0);
            Operand::Reg(Reg(5))
        };
        let target = self.insns.len() + 2;
        let condition = self.of([Condition::Test, Condition::Gt, Condition::SignedLt]);
        self.put(Insn::Branch {
            condition,
            width: Width::W64,
            left: Reg(7),
            right,
            target,
        });
        self.set(3, 77);
    }

    /// A field of the context, or four bytes of the stack.
    fn one_load_of_two_regions(&mut self) {
        let left = Reg(self.number());
        self.copy(5, 10);
        self.add(5, -40);
        let target = self.insns.len() + 2;
        self.put(Insn::Branch {
            condition: Condition::Test,
            width: Width::W64,
            left,
            right: Operand::Imm(1),
            target,
        });
        self.copy(5, 6);
        self.load_plain(Size::B4, 3, 5, 12);
    }

    fn record_used_after(&mut self) {
        self.object(1, RING);
        self.set(2, 16);
        self.set(3, 0);
        self.call_number(131);
        self.out_if(Condition::Eq, 0, Operand::Imm(0));
        self.store(Size::B8, 0, 0, Operand::Reg(Reg(9)));
        self.store(Size::B8, 0, 8, Operand::Imm(1));
        self.store(Size::B8, 10, KEPT, Operand::Reg(Reg(0)));
        self.copy(1, 0);
        self.set(2, 0);
        let helper = self.of([132, 133]);
        self.call_number(helper);
        self.numbers();
        self.load_plain(Size::B8, 5, 10, KEPT);
        self.load_plain(Size::B8, 3, 5, 0);
    }

    fn reading_format(&mut self) {
        self.copy(1, 10);
        self.add(1, -40);
        self.set(2, 16);
        self.value(3, READING, 0);
        self.copy(4, 10);
        self.add(4, -16);
        self.set(5, 8);
        self.call_number(165);
        self.copy(9, 0);
        self.numbers();
    }
}
