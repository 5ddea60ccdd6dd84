//! Loops: with a counter, with a budget (`may_goto`), with an iterator.

use millrace_object::helper::{ITER_NUM_DESTROY, ITER_NUM_NEW, ITER_NUM_NEXT};
use millrace_object::insn::{AluOp, BUDGET, Condition, Insn, Operand, ROUNDS, Reg, Size, Width};
use rand::{Rng, RngExt};

use super::Generator;

/// Where iterators are; nested ones below.
const ITERATOR: i16 = -112;

impl<R: Rng> Generator<'_, R> {
    pub(super) fn repeat(&mut self, depth: u32) {
        // The counter is on the stack, where the other pieces do not reach.
        let slot = -64 - 8 * (self.loops % 4);
        self.loops += 1;
        self.store(Size::B8, 10, slot, Operand::Imm(0));
        let head = self.insns.len();
        for _ in 0..self.random.random_range(1..3) {
            self.piece(depth + 1);
        }
        self.load_plain(Size::B8, 5, 10, slot);
        let step = self.of([1, 1, 3]);
        self.add(5, step);
        self.store(Size::B8, 10, slot, Operand::Reg(Reg(5)));
        let insn = Insn::Branch {
            condition: self.of([Condition::Lt, Condition::Ne, Condition::Le]),
            width: Width::W64,
            left: Reg(5),
            right: Operand::Imm(self.of([4, 9, 30])),
            target: head,
        };
        self.put(insn);
    }

    /// A loop that ends after at most 16 rounds, which nothing shows but its budget: its number goes through
    /// all remainders of 16 (Hull, Dobell: Random Number Generators, SIAM Review 1962, theorem 1).
    pub(super) fn budgeted(&mut self, depth: u32) {
        let last = i64::from(self.offset(16));
        self.wandering(depth, true, last);
    }

    /// The same; without a budget, and where `last` is no remainder, it never ends.
    pub(super) fn wandering(&mut self, depth: u32, budget: bool, last: i64) {
        let slot = -64 - 8 * (self.loops % 4);
        self.loops += 1;
        self.store(Size::B8, 10, slot, Operand::Imm(0));
        let head = self.insns.len();
        if budget {
            self.put(Insn::Branch {
                condition: Condition::Eq,
                width: Width::W64,
                left: BUDGET,
                right: Operand::Imm(0),
                target: 0,
            });
            self.alu(AluOp::Sub, Width::W64, BUDGET.0, Operand::Imm(1));
        }
        for _ in 0..self.random.random_range(1..3) {
            self.piece(depth + 1);
        }
        self.load_plain(Size::B8, 5, 10, slot);
        self.alu(AluOp::Mul, Width::W64, 5, Operand::Imm(5));
        self.add(5, 1);
        self.store(Size::B8, 10, slot, Operand::Reg(Reg(5)));
        self.alu(AluOp::And, Width::W64, 5, Operand::Imm(15));
        self.put(Insn::Branch {
            condition: Condition::Ne,
            width: Width::W64,
            left: Reg(5),
            right: Operand::Imm(last),
            target: head,
        });
        let end = self.insns.len();
        if budget && let Some(Insn::Branch { target, .. }) = self.insns.get_mut(head) {
            *target = end;
        }
    }

    /// Gives the function its budget, if anything counts it down.
    pub(super) fn give_budget(&mut self) {
        let counts = |i: &Insn| matches!(i, Insn::Branch { left: BUDGET, .. });
        if !self.insns.iter().any(counts) {
            return;
        }
        for insn in &mut self.insns {
            if let Insn::Jump { target } | Insn::Branch { target, .. } = insn {
                *target += 1;
            }
        }
        self.insns.insert(
            0,
            Insn::Alu {
                op: AluOp::Mov,
                width: Width::W64,
                dst: BUDGET,
                src: Operand::Imm(ROUNDS),
            },
        );
    }

    /// A loop over the numbers of an iterator.
    pub(super) fn iterate(&mut self, depth: u32) {
        let at = i64::from(ITERATOR) - 8 * i64::from(depth);
        if !self.chance(16) {
            self.copy(2, 9);
            self.alu(AluOp::And, Width::W64, 2, Operand::Imm(3));
            let end = self.of([0, 5, 9]);
            self.set(3, end);
            self.iterator(at, ITER_NUM_NEW.number);
        }
        let head = self.insns.len();
        self.iterator(at, ITER_NUM_NEXT.number);
        let leave = self.insns.len();
        self.put(Insn::Branch {
            condition: Condition::Eq,
            width: Width::W64,
            left: Reg(0),
            right: Operand::Imm(0),
            target: 0,
        });
        self.load_plain(Size::B4, 9, 0, 0);
        self.numbers();
        let outer = std::mem::take(&mut self.outs);
        for _ in 0..self.random.random_range(0..2) {
            self.piece(depth + 1);
        }
        let inner = std::mem::replace(&mut self.outs, outer);
        self.put(Insn::Jump { target: head });
        let end = self.insns.len();
        // What would end the program has to end the iterator first.
        if self.chance(16) {
            self.outs.extend(&inner);
        }
        for at in inner.iter().chain(&[leave]) {
            if let Some(Insn::Branch { target, .. }) = self.insns.get_mut(*at) {
                *target = end;
            }
        }
        self.numbers();
        if !self.chance(16) {
            self.iterator(at, ITER_NUM_DESTROY.number);
        }
        self.numbers();
    }

    fn iterator(&mut self, at: i64, helper: u32) {
        self.copy(1, 10);
        let off = if self.chance(30) { 4 } else { 0 };
        self.add(1, at + off);
        self.put(Insn::Call { helper });
    }
}
