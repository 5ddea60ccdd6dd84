//! Pieces that use state objects, helpers and functions.

use millrace_object::insn::{AluOp, AtomicOp, Condition, Imm64, Insn, Operand, Reg, Size, Width};
use millrace_object::program::FunctionId;
use rand::{Rng, RngExt};

use super::{Generator, SIZES};
use crate::soundness::callee::{ELEMENT, ROUND};
use crate::soundness::objects::{
    CONSTANT, ELEMENTS, FILTER, HOLDER, LARGE, ONWARD, PAGE, QUEUE, RING, SECOND, TABLE, TABLES,
};

impl<R: Rng> Generator<'_, R> {
    /// A key of few different values at r10 - 16.
    pub(super) fn key(&mut self, mask: i64, size: Size) {
        let r = self.number();
        self.alu(AluOp::And, Width::W64, r, Operand::Imm(mask));
        self.store(size, 10, -16, Operand::Reg(Reg(r)));
    }

    /// Now and then the object in r1 is another one on another way.
    fn perhaps_another(&mut self) {
        while self.chance(4) {
            let (left, width) = (Reg(self.number()), self.of([Width::W32, Width::W64]));
            let condition = self.of([Condition::Test, Condition::Gt, Condition::Eq]);
            let right = Operand::Imm(self.of([0, 1, 3, 9]));
            let target = self.insns.len() + 2;
            self.put(Insn::Branch {
                condition,
                width,
                left,
                right,
                target,
            });
            let other = self.of([TABLE, ELEMENTS, SECOND, SECOND, LARGE, QUEUE]);
            self.object(1, other);
        }
    }

    pub(super) fn lookup(&mut self) {
        self.key(7, Size::B8);
        self.object(1, TABLE);
        self.perhaps_another();
        self.copy(2, 10);
        let at = self.near(-16);
        self.add(2, at);
        self.put(Insn::Call { helper: 1 });
        self.use_value();
    }

    pub(super) fn element(&mut self) {
        self.key(7, Size::B4);
        self.object(1, ELEMENTS);
        self.copy(2, 10);
        self.add(2, -16);
        self.put(Insn::Call { helper: 1 });
        self.use_value();
    }

    /// A map that was found in another one.
    pub(super) fn inner(&mut self) {
        self.key(7, Size::B8);
        self.object(1, HOLDER);
        self.copy(2, 10);
        self.add(2, -16);
        self.put(Insn::Call { helper: 1 });
        if !self.chance(8) {
            self.out_if(Condition::Eq, 0, Operand::Imm(0));
        }
        self.copy(1, 0);
        if self.chance(12) {
            let by = self.of([0, 8]);
            self.add(1, by);
        }
        self.copy(2, 10);
        self.add(2, -16);
        if self.chance(2) {
            self.put(Insn::Call { helper: 1 });
            self.use_value();
            return;
        }
        self.change(3);
    }

    /// Another program goes on, if there is one.
    pub(super) fn tail_call(&mut self) {
        let r = self.number();
        self.alu(AluOp::And, Width::W64, r, Operand::Imm(15));
        self.copy(3, r);
        self.copy(1, 6);
        self.object(2, ONWARD);
        self.put(Insn::Call { helper: 12 });
        self.copy(9, 0);
        self.numbers();
    }

    /// An element of a map in a hash of maps.
    pub(super) fn nested_element(&mut self) {
        self.key(7, Size::B4);
        self.object(1, TABLES);
        self.copy(2, 10);
        self.add(2, -16);
        self.put(Insn::Call { helper: 1 });
        self.out_if(Condition::Eq, 0, Operand::Imm(0));
        self.copy(1, 0);
        self.copy(2, 10);
        self.add(2, -16);
        self.put(Insn::Call { helper: 1 });
        self.use_value();
    }

    /// A lock in a value or a global, held for an access or two.
    pub(super) fn locked(&mut self) {
        let global = self.chance(3);
        if global {
            self.value(0, PAGE, 0);
        } else {
            self.key(7, Size::B4);
            self.object(1, ELEMENTS);
            self.copy(2, 10);
            self.add(2, -16);
            self.put(Insn::Call { helper: 1 });
            self.out_if(Condition::Eq, 0, Operand::Imm(0));
        }
        self.store(Size::B8, 10, -120, Operand::Reg(Reg(0)));
        if !self.chance(40) {
            self.of_lock(93);
        }
        if self.chance(2) {
            self.load_plain(Size::B8, 1, 10, -120);
            self.store(Size::B8, 1, 8, Operand::Reg(Reg(9)));
        }
        // No call may stand between.
        if self.chance(20) {
            self.put(Insn::Call { helper: 8 });
        }
        if !self.chance(20) {
            self.of_lock(94);
        }
        self.numbers();
    }

    /// Takes or gives back the lock in the value whose address is kept, or now and then another one.
    fn of_lock(&mut self, helper: u32) {
        self.load_plain(Size::B8, 1, 10, -120);
        let at = if self.chance(30) { 4 } else { 0 };
        self.add(1, at);
        self.put(Insn::Call { helper });
    }

    /// Values without a key.
    pub(super) fn sequence(&mut self) {
        let r = self.number();
        self.alu(AluOp::And, Width::W64, r, Operand::Imm(7));
        self.store(Size::B8, 10, -32, Operand::Reg(Reg(r)));
        if !self.chance(6) {
            self.store(Size::B4, 10, -24, Operand::Imm(1));
        }
        let object = self.of([QUEUE, QUEUE, FILTER]);
        self.object(1, object);
        self.copy(2, 10);
        let at = self.near(-32);
        self.add(2, at);
        let flags = self.of([0, 0, 2, 1]);
        self.set(3, flags);
        let helper = self.of([87, 87, 88, 89]);
        self.put(Insn::Call { helper });
        self.copy(9, 0);
        self.numbers();
        let size = self.of(SIZES);
        self.load(size, 3, 10, -28);
    }

    pub(super) fn use_value(&mut self) {
        if !self.chance(8) {
            self.out_if(Condition::Eq, 0, Operand::Imm(0));
        }
        self.numbers();
        let mut base = 0;
        if self.chance(3) {
            let back = self.of([-48i16, -48, -48, -56]);
            self.store(Size::B8, 10, -48, Operand::Reg(Reg(0)));
            self.load_plain(Size::B8, 5, 10, back);
            base = 5;
        }
        let (size, at) = (self.of(SIZES), self.of([0i16, 8, 8, 4, 9, 12, 15]));
        match self.random.random_range(0..3) {
            0 => self.load(size, 3, base, at),
            1 => self.lock(base, at),
            _ => self.store(size, base, at, Operand::Reg(Reg(9))),
        }
    }

    pub(super) fn lock(&mut self, base: u8, offset: i16) {
        if base != 0 && self.chance(6) {
            let (expected, src) = (self.number(), self.number());
            self.copy(0, expected);
            let size = self.of([Size::B4, Size::B8]);
            self.put(Insn::Atomic {
                op: AtomicOp::CompareExchange,
                fetch: true,
                size,
                base: Reg(base),
                offset,
                src: Reg(src),
            });
            self.copy(9, 0);
            return;
        }
        let (op, always) = self.of([
            (AtomicOp::Add, false),
            (AtomicOp::Add, false),
            (AtomicOp::Or, false),
            (AtomicOp::And, false),
            (AtomicOp::Xor, false),
            (AtomicOp::Exchange, true),
        ]);
        let (size, src) = (self.of([Size::B4, Size::B8]), self.number());
        let fetch = always || self.chance(3);
        self.put(Insn::Atomic {
            op,
            fetch,
            size,
            base: Reg(base),
            offset,
            src: Reg(src),
        });
    }

    pub(super) fn atomic(&mut self) {
        if self.chance(2) {
            let at = self.of([-8i16, -16, -24, -4, -5]);
            self.lock(10, at);
        } else {
            let (offset, at) = (self.of([0, 8, 16, 4]), self.of([0i16, 8, 4, 15]));
            self.value(5, PAGE, offset);
            self.lock(5, at);
        }
    }

    pub(super) fn update(&mut self) {
        self.key(7, Size::B8);
        let object = self.of([TABLE, TABLE, ELEMENTS]);
        self.object(1, object);
        self.perhaps_another();
        self.copy(2, 10);
        self.add(2, -16);
        self.change(4);
    }

    /// Deletes the entry of the key that is set up, one time in this many, else writes it.
    fn change(&mut self, one_in: u32) {
        if self.chance(one_in) {
            self.put(Insn::Call { helper: 3 });
        } else {
            self.copy(3, 10);
            let at = self.near(-32);
            self.add(3, at);
            let flags = self.of([0, 0, 1, 2]);
            self.set(4, flags);
            self.put(Insn::Call { helper: 2 });
        }
        self.copy(9, 0);
        self.numbers();
    }

    pub(super) fn indexed(&mut self) {
        let (r, size) = (self.number(), self.of(SIZES));
        let (object, bytes) = self.of([(PAGE, 32), (CONSTANT, 16)]);
        let fits = self.near(bytes - i64::from(size.bytes()));
        if self.chance(2) {
            let mask = if fits >= 24 { 24 } else { 8 };
            self.alu(AluOp::And, Width::W64, r, Operand::Imm(mask));
        } else {
            self.out_if(Condition::Gt, r, Operand::Imm(fits));
        }
        self.value(5, object, 0);
        self.alu(AluOp::Add, Width::W64, 5, Operand::Reg(Reg(r)));
        if self.chance(3) {
            self.store(size, 5, 0, Operand::Reg(Reg(r)));
        } else {
            self.load(size, r, 5, 0);
        }
    }

    pub(super) fn record(&mut self) {
        self.object(1, RING);
        self.set(2, 16);
        self.set(3, 0);
        self.put(Insn::Call { helper: 131 });
        self.out_if(Condition::Eq, 0, Operand::Imm(0));
        // What a record holds before it is written is not promised.
        self.store(Size::B8, 0, 0, Operand::Reg(Reg(9)));
        let at = self.near(8) as i16;
        self.store(Size::B8, 0, at.max(0), Operand::Imm(1));
        if !self.chance(8) {
            self.copy(1, 0);
            self.set(2, 0);
            let helper = self.of([132, 132, 133]);
            self.put(Insn::Call { helper });
        }
        self.numbers();
    }

    /// Bytes between packet and stack, as many as a number says.
    pub(super) fn bytes(&mut self) {
        let r = self.number();
        let mask = self.of([15, 15, 7, 31]);
        self.alu(AluOp::And, Width::W64, r, Operand::Imm(mask));
        self.copy(4, r);
        if !self.chance(4) {
            self.alu(AluOp::And, Width::W64, 4, Operand::Imm(7));
            self.add(4, 1);
        }
        self.copy(1, 6);
        let from = self.offset(60);
        self.set(2, i64::from(from));
        self.copy(3, 10);
        let at = self.near(-40);
        self.add(3, at);
        let helper = self.of([189, 190]);
        self.put(Insn::Call { helper });
        self.copy(9, 0);
        self.numbers();
    }

    pub(super) fn adjust(&mut self) {
        self.copy(1, 6);
        let by = self.of([-4, -20, 4, 8]);
        self.set(2, by);
        let helper = self.of([44, 44, 65]);
        self.put(Insn::Call { helper });
        if !self.chance(5) {
            self.packet();
        }
        self.copy(9, 0);
        self.numbers();
    }

    /// Has a function called back: its address perhaps by way of the stack, where other things may
    /// overwrite it.
    pub(super) fn call_back(&mut self) {
        let map = self.chance(2);
        let function = FunctionId(if map { ELEMENT } else { ROUND });
        let value = Imm64::Function(function);
        self.put(Insn::LoadImm { dst: Reg(2), value });
        if self.chance(4) {
            self.store(Size::B8, 10, -48, Operand::Reg(Reg(2)));
            if self.chance(3) {
                self.copy(5, 10);
                self.add(5, -48);
                self.store(Size::B8, 5, 0, Operand::Reg(Reg(9)));
            }
            self.load_plain(Size::B8, 2, 10, -48);
        }
        if map {
            // In which order the entries of other maps come is not promised.
            self.object(1, ELEMENTS);
        } else {
            let r = self.of([1, 3, 4, 9]);
            self.copy(1, r);
            if !self.chance(4) {
                self.alu(AluOp::And, Width::W64, 1, Operand::Imm(15));
            }
        }
        self.copy(3, 10);
        let at = self.near(-24);
        self.add(3, at);
        let flags = self.of([0, 0, 0, 0, 0, 0, 1]);
        self.set(4, flags);
        let helper = if map { 164 } else { 181 };
        self.put(Insn::Call { helper });
        self.copy(9, 0);
        self.numbers();
    }

    pub(super) fn call(&mut self) {
        let function = FunctionId(self.random.random_range(0..2));
        if function.0 == 0 {
            self.copy(1, 10);
            let at = self.near(-24);
            self.add(1, at);
            self.copy(2, 9);
        } else {
            self.copy(1, 7);
            self.copy(2, 8);
        }
        self.put(Insn::CallLocal { function });
        self.copy(9, 0);
        self.numbers();
    }
}
