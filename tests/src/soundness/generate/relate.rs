//! Pieces that relate two places: they subtract, order and compare addresses of the stack, of values, records, packets
//! and maps, and use what they find as a number, a bound or an index.
//!
//! The stack below r10 - 136 is theirs: what the other pieces keep there, they do not disturb.

use millrace_object::insn::{AluOp, Condition, Insn, Operand, Reg, Size, Width};
use millrace_object::program::FunctionId;
use rand::{Rng, RngExt};

use super::{CONDITIONS, Generator, SIZES};
use crate::soundness::callee::{APART, BELOW, MARK};
use crate::soundness::objects::{ELEMENTS, PAGE, RING, SECOND, TABLE};

/// Where addresses are kept, and the numbers that they become.
const KEPT: [i16; 2] = [-144, -152];
/// Arrays of 32 bytes on the stack, the second below the first with a gap.
const ARRAYS: [i64; 2] = [-192, -240];

impl<R: Rng> Generator<'_, R> {
    pub(super) fn relate(&mut self) {
        match self.random.random_range(0..12) {
            0..=2 => self.stack_places(),
            3 | 4 => self.walk(),
            5 => self.called_with_two(),
            6 => self.value_places(),
            7 => self.two_lookups(),
            8 => self.record_places(),
            9 => self.packet_places(),
            10 => self.mixed_places(),
            _ => self.two_objects(),
        }
        self.numbers();
    }

    /// An address of the stack into r0 or r5: of an array, its end, or somewhere in it; kept and loaded again at times.
    fn place(&mut self, dst: u8) {
        let base = self.of([ARRAYS[0], ARRAYS[0], ARRAYS[1], -40, -8]);
        let by = self.of([0, 0, 8, 16, 31, 32]);
        self.copy(dst, 10);
        self.add(dst, base);
        if by != 0 {
            self.add(dst, by);
        }
        if self.chance(3) {
            let r = self.number();
            let mask = self.of([7, 15, 24]);
            self.alu(AluOp::And, Width::W64, r, Operand::Imm(mask));
            self.alu(AluOp::Add, Width::W64, dst, Operand::Reg(Reg(r)));
        }
        if self.chance(4) {
            let at = self.of(KEPT);
            self.store(Size::B8, 10, at, Operand::Reg(Reg(dst)));
            if self.chance(2) {
                self.add(dst, 4);
            }
            self.load_plain(Size::B8, dst, 10, at);
        }
    }

    fn stack_places(&mut self) {
        for at in ARRAYS {
            for word in 0..4 {
                let number = 5 * word + 1;
                self.store(Size::B8, 10, (at + 8 * word) as i16, Operand::Imm(number));
            }
        }
        self.place(5);
        self.place(0);
        self.compare_or_subtract();
    }

    /// r5 and r0 are addresses.
    fn compare_or_subtract(&mut self) {
        if self.chance(3) {
            self.ask(5, 0);
            return;
        }
        // Half of an address is none, which only a hole in the checker admits.
        if self.chance(32) {
            self.alu(AluOp::Mov, Width::W32, 5, Operand::Reg(Reg(5)));
            self.load_plain(Size::B1, 5, 5, 0);
            return;
        }
        let width = self.of([Width::W64, Width::W64, Width::W32]);
        if width == Width::W32 && self.chance(2) {
            self.alu(AluOp::Mov, Width::W32, 5, Operand::Reg(Reg(5)));
            self.alu(AluOp::Mov, Width::W32, 0, Operand::Reg(Reg(0)));
        }
        self.alu(AluOp::Sub, width, 5, Operand::Reg(Reg(0)));
        self.use_distance();
    }

    /// Which of two registers is the greater goes into r9.
    fn ask(&mut self, left: u8, right: u8) {
        let condition = self.of(CONDITIONS);
        let target = self.insns.len() + 2;
        let narrow = self.chance(8);
        self.put(Insn::Branch {
            condition,
            width: if narrow { Width::W32 } else { Width::W64 },
            left: Reg(left),
            right: Operand::Reg(Reg(right)),
            target,
        });
        self.alu(AluOp::Xor, Width::W64, 9, Operand::Imm(0x55));
    }

    /// r5 is a number that was an address's distance from another.
    fn use_distance(&mut self) {
        if self.chance(4) {
            let at = self.of(KEPT);
            let size = self.of([Size::B8, Size::B8, Size::B4]);
            self.store(size, 10, at, Operand::Reg(Reg(5)));
            self.load_plain(size, 5, 10, at);
        }
        let scale = self.of([0, 0, 3]);
        if scale != 0 {
            self.alu(AluOp::Rsh, Width::W64, 5, Operand::Imm(scale));
        }
        match self.random.random_range(0..6) {
            0 => self.alu(AluOp::Xor, Width::W64, 9, Operand::Reg(Reg(5))),
            // An index whose bound is what the proof knows of the distance, or is tested.
            1 | 2 => {
                if self.chance(2) {
                    let most = self.of([24, 31, 32]);
                    self.out_if(Condition::Gt, 5, Operand::Imm(most));
                }
                self.value(0, PAGE, 0);
                self.alu(AluOp::Add, Width::W64, 0, Operand::Reg(Reg(5)));
                self.touch(0, 0);
            }
            3 | 4 => {
                // From the end of an array backwards, as in `b[31 - l]`.
                let back = self.chance(2);
                let from = self.of(ARRAYS) + if back { 31 } else { 0 };
                self.copy(0, 10);
                self.add(0, from);
                let op = if back { AluOp::Sub } else { AluOp::Add };
                self.alu(op, Width::W64, 0, Operand::Reg(Reg(5)));
                self.touch(0, 0);
            }
            _ => {
                // What a branch that never goes this way would hide.
                let bound = self.of([0, 8, 32, 48]);
                let condition = self.of(CONDITIONS);
                self.out_if(condition, 5, Operand::Imm(bound));
                self.alu(AluOp::Add, Width::W64, 9, Operand::Reg(Reg(5)));
            }
        }
    }

    fn touch(&mut self, base: u8, at: i16) {
        let size = self.of([Size::B1, Size::B1, Size::B4]);
        if self.chance(2) {
            self.load_plain(size, 9, base, at);
        } else {
            self.store(size, base, at, Operand::Reg(Reg(9)));
        }
    }

    /// A pointer that walks: `*p++ = i`, then `l = p - b` and `b[31 - l] = 1`.
    fn walk(&mut self) {
        let array = self.of(ARRAYS);
        for word in 0..4 {
            self.store(Size::B8, 10, (array + 8 * word) as i16, Operand::Imm(word));
        }
        let (slot, step) = (KEPT[0], self.of([1, 1, 8]));
        self.copy(5, 10);
        self.add(5, array);
        self.store(Size::B8, 10, slot, Operand::Reg(Reg(5)));
        let head = self.insns.len();
        self.load_plain(Size::B8, 5, 10, slot);
        let size = if step == 8 { Size::B8 } else { Size::B1 };
        self.store(size, 5, 0, Operand::Reg(Reg(9)));
        self.add(5, step);
        self.store(Size::B8, 10, slot, Operand::Reg(Reg(5)));
        // Enough when a byte of the packet says so, or at the end.
        if self.chance(2) {
            self.alu(AluOp::Add, Width::W64, 9, Operand::Imm(3));
            let (enough, bit) = (self.insns.len(), self.of([8, 16]));
            self.put(Insn::Branch {
                condition: Condition::Test,
                width: Width::W64,
                left: Reg(9),
                right: Operand::Imm(bit),
                target: enough + 4,
            });
        }
        let end = self.near(array + 32);
        self.copy(0, 10);
        self.add(0, end);
        let condition = self.of([Condition::Lt, Condition::Ne]);
        self.put(Insn::Branch {
            condition,
            width: Width::W64,
            left: Reg(5),
            right: Operand::Reg(Reg(0)),
            target: head,
        });
        self.copy(0, 10);
        self.add(0, array);
        self.alu(AluOp::Sub, Width::W64, 5, Operand::Reg(Reg(0)));
        self.use_distance();
    }

    /// A function of the program relates two addresses of its caller's stack, or one with its own.
    fn called_with_two(&mut self) {
        for word in 0..4 {
            self.store(Size::B8, 10, (ARRAYS[0] + 8 * word) as i16, Operand::Imm(1));
        }
        self.place(5);
        self.place(0);
        self.copy(1, 5);
        self.copy(2, 0);
        let function = self.of([APART, APART, APART, MARK, MARK, BELOW]);
        self.put(Insn::CallLocal {
            function: FunctionId(function),
        });
        self.copy(5, 0);
        self.use_distance();
    }

    /// Places in one value, by one lookup or in a global.
    fn value_places(&mut self) {
        if self.chance(2) {
            self.value(0, PAGE, 0);
        } else {
            self.key(7, Size::B4);
            self.object(1, ELEMENTS);
            self.copy(2, 10);
            self.add(2, -16);
            self.put(Insn::Call { helper: 1 });
            self.out_if(Condition::Eq, 0, Operand::Imm(0));
            self.numbers();
        }
        self.copy(5, 0);
        if self.chance(2) {
            self.alu(AluOp::And, Width::W64, 9, Operand::Imm(7));
            self.alu(AluOp::Add, Width::W64, 5, Operand::Reg(Reg(9)));
        } else {
            self.add(5, 8);
        }
        if self.chance(2) {
            let (a, b) = (KEPT[0], KEPT[1]);
            self.store(Size::B8, 10, a, Operand::Reg(Reg(5)));
            self.store(Size::B8, 10, b, Operand::Reg(Reg(0)));
            self.load_plain(Size::B8, 0, 10, a);
            self.load_plain(Size::B8, 5, 10, b);
        }
        self.compare_or_subtract();
    }

    /// What two lookups found: where entries lie is the host's affair.
    fn two_lookups(&mut self) {
        let map = self.of([TABLE, SECOND, ELEMENTS]);
        let size = if map == ELEMENTS { Size::B4 } else { Size::B8 };
        for (n, at) in KEPT.into_iter().enumerate() {
            if map != ELEMENTS && !self.chance(4) {
                self.store(size, 10, -16, Operand::Imm(n as i64));
                self.object(1, map);
                self.copy(2, 10);
                self.add(2, -16);
                self.copy(3, 10);
                self.add(3, -40);
                self.set(4, 0);
                self.put(Insn::Call { helper: 2 });
            }
            self.store(size, 10, -16, Operand::Imm(n as i64));
            self.object(1, map);
            self.copy(2, 10);
            self.add(2, -16);
            self.put(Insn::Call { helper: 1 });
            self.out_if(Condition::Eq, 0, Operand::Imm(0));
            self.store(Size::B8, 10, at, Operand::Reg(Reg(0)));
        }
        self.numbers();
        self.load_plain(Size::B8, 5, 10, KEPT[0]);
        self.load_plain(Size::B8, 0, 10, KEPT[1]);
        self.compare_or_subtract();
    }

    fn record_places(&mut self) {
        self.object(1, RING);
        self.set(2, 16);
        self.set(3, 0);
        self.put(Insn::Call { helper: 131 });
        self.out_if(Condition::Eq, 0, Operand::Imm(0));
        self.numbers();
        self.store(Size::B8, 0, 0, Operand::Reg(Reg(9)));
        self.store(Size::B8, 10, KEPT[0], Operand::Reg(Reg(0)));
        self.copy(5, 0);
        self.alu(AluOp::And, Width::W64, 9, Operand::Imm(15));
        self.alu(AluOp::Add, Width::W64, 5, Operand::Reg(Reg(9)));
        if self.chance(2) {
            self.alu(AluOp::Sub, Width::W64, 5, Operand::Reg(Reg(0)));
            self.copy(9, 5);
            self.store(Size::B8, 0, 8, Operand::Reg(Reg(5)));
        } else {
            self.store(Size::B8, 0, 8, Operand::Imm(1));
            self.ask(5, 0);
        }
        self.load_plain(Size::B8, 1, 10, KEPT[0]);
        self.set(2, 0);
        self.put(Insn::Call { helper: 132 });
    }

    fn packet_places(&mut self) {
        let (left, right) = self.of([(8, 7), (7, 8), (7, 7), (8, 8)]);
        self.copy(5, left);
        self.copy(0, right);
        match self.random.random_range(0..3) {
            0 => self.load_plain(Size::B4, 0, 6, 8),
            1 => {
                let r = self.number();
                self.alu(AluOp::And, Width::W64, r, Operand::Imm(15));
                self.copy(0, 7);
                self.alu(AluOp::Add, Width::W64, 0, Operand::Reg(Reg(r)));
            }
            _ => {}
        }
        self.compare_or_subtract();
    }

    /// The stack on one way, a value on another.
    fn mixed_places(&mut self) {
        self.stack_array();
        let left = self.number();
        let target = self.insns.len() + 6;
        self.copy(5, 10);
        self.add(5, ARRAYS[0] + 8);
        self.copy(0, 10);
        self.add(0, ARRAYS[0]);
        let condition = self.of([Condition::Gt, Condition::Test]);
        let right = Operand::Imm(self.of([0, 1, 7]));
        self.put(Insn::Branch {
            condition,
            width: Width::W64,
            left: Reg(left),
            right,
            target: target + 2,
        });
        self.value(5, PAGE, 16);
        self.value(0, PAGE, 0);
        self.copy(0, 0);
        self.compare_or_subtract();
    }

    fn stack_array(&mut self) {
        for word in 0..4 {
            let at = (ARRAYS[0] + 8 * word) as i16;
            self.store(Size::B8, 10, at, Operand::Imm(word));
        }
    }

    /// Two maps, or a map and what is in one.
    fn two_objects(&mut self) {
        let (a, b) = self.of([(TABLE, SECOND), (TABLE, TABLE), (ELEMENTS, RING)]);
        self.object(5, a);
        self.object(0, b);
        self.compare_or_subtract();
    }

    /// Bytes that a helper reads and writes may be the same.
    pub(super) fn overlap(&mut self) {
        self.check_bytes(40, Condition::Gt);
        let r = self.number();
        self.alu(AluOp::And, Width::W64, r, Operand::Imm(15));
        self.copy(4, r);
        self.add(4, 1);
        self.copy(1, 6);
        let from = self.of([0, 4, 8, 20]);
        self.set(2, from);
        self.copy(3, 7);
        let to = self.of([0, 3, 4, 9]);
        self.add(3, to);
        let helper = self.of([189, 189, 190]);
        self.put(Insn::Call { helper });
        self.copy(9, 0);
        self.numbers();
    }

    /// An iterator between whose steps the program touches what is the iterator's.
    pub(super) fn disturbed(&mut self) {
        let at = -112_i16;
        self.copy(1, 10);
        self.add(1, i64::from(at));
        self.set(2, 1);
        let end = self.of([3, 6]);
        self.set(3, end);
        self.call_iterator(0);
        let head = self.insns.len();
        self.copy(1, 10);
        self.add(1, i64::from(at));
        self.call_iterator(1);
        let leave = self.insns.len();
        self.put(Insn::Branch {
            condition: Condition::Eq,
            width: Width::W64,
            left: Reg(0),
            right: Operand::Imm(0),
            target: 0,
        });
        self.load_plain(Size::B4, 9, 0, 0);
        let size = self.of(SIZES);
        let by = self.of([0i16, 4, 8, -8]);
        match self.random.random_range(0..5) {
            0 => self.load_plain(size, 4, 10, at + by),
            1 => self.store(size, 10, at + by, Operand::Imm(2)),
            2 => self.store(Size::B4, 0, 0, Operand::Imm(2)),
            3 => self.load_plain(size, 4, 0, by.max(0)),
            _ => {}
        }
        self.put(Insn::Jump { target: head });
        let end = self.insns.len();
        if let Some(Insn::Branch { target, .. }) = self.insns.get_mut(leave) {
            *target = end;
        }
        self.copy(1, 10);
        self.add(1, i64::from(at));
        self.call_iterator(2);
        self.numbers();
    }

    fn call_iterator(&mut self, which: usize) {
        use millrace_object::helper::{ITER_NUM_DESTROY, ITER_NUM_NEW, ITER_NUM_NEXT};
        let helper = [
            ITER_NUM_NEW.number,
            ITER_NUM_NEXT.number,
            ITER_NUM_DESTROY.number,
        ];
        self.put(Insn::Call {
            helper: helper[which],
        });
    }
}
