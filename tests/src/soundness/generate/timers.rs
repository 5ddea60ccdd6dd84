//! Timers of map values: set up, started, cancelled, forgotten, in any order.

use millrace_object::helper::{Helper, TIMER_CANCEL, TIMER_INIT, TIMER_SET_CALLBACK, TIMER_START};
use millrace_object::insn::{AluOp, Condition, Imm64, Insn, Operand, Reg, Size, Width};
use millrace_object::program::FunctionId;
use rand::{Rng, RngExt};

use super::{Generator, SIZES};
use crate::soundness::callee::{TICK, TOCK};
use crate::soundness::objects::{ALARMS, FADING, TICKS};

/// Where the value's address is kept between calls.
const KEPT: i16 = -104;

impl<R: Rng> Generator<'_, R> {
    /// Looks a value up and works on its timer.
    pub(super) fn timer(&mut self) {
        let (map, at, function) = self.of([
            (ALARMS, 8, TICK),
            (FADING, 8, TICK),
            (ALARMS, 8, TICK),
            (TICKS, 0, TOCK),
        ]);
        if map != TICKS && !self.chance(3) {
            self.key(3, Size::B8);
            self.object(1, map);
            self.copy(2, 10);
            self.add(2, -16);
            self.copy(3, 10);
            self.add(3, -40);
            let flags = self.of([1, 1, 0]);
            self.set(4, flags);
            self.put(Insn::Call { helper: 2 });
            self.copy(9, 0);
            self.numbers();
        } else {
            self.key(3, if map == TICKS { Size::B4 } else { Size::B8 });
        }
        self.object(1, map);
        self.copy(2, 10);
        self.add(2, -16);
        self.put(Insn::Call { helper: 1 });
        self.out_if(Condition::Eq, 0, Operand::Imm(0));
        self.store(Size::B8, 10, KEPT, Operand::Reg(Reg(0)));
        self.numbers();
        let usual = !self.chance(3);
        for step in 0..4 {
            let which = if usual {
                step
            } else {
                self.random.random_range(0..5)
            };
            match which {
                0 => {
                    self.address(at);
                    let owner = if self.chance(16) { TICKS } else { map };
                    self.object(2, owner);
                    let clock = self.of([0, 1, 1, 7, 5]);
                    self.set(3, clock);
                    self.finish(&TIMER_INIT);
                }
                1 => {
                    self.address(at);
                    // Proved for each map; for the other one it may touch the timer.
                    let other = self.chance(16);
                    let function = if other { TICK } else { function };
                    let value = Imm64::Function(FunctionId(function));
                    self.put(Insn::LoadImm { dst: Reg(2), value });
                    self.finish(&TIMER_SET_CALLBACK);
                }
                2 => {
                    self.address(at);
                    self.copy(2, 9);
                    self.alu(AluOp::And, Width::W64, 2, Operand::Imm(0xff));
                    let mut flags = self.of([0, 0, 0, 1, 2, 4]);
                    if self.chance(6) {
                        // A moment that a signed number cannot say.
                        self.set(2, -5);
                        flags = self.of([0, 1, 1]);
                    }
                    self.set(3, flags);
                    self.finish(&TIMER_START);
                }
                3 if usual && !self.chance(4) => {}
                3 => {
                    self.address(at);
                    self.finish(&TIMER_CANCEL);
                }
                _ => self.member(at),
            }
        }
        if self.chance(3) {
            self.member(at);
        }
    }

    fn address(&mut self, at: i64) {
        self.load_plain(Size::B8, 1, 10, KEPT);
        let at = self.near(at);
        self.add(1, at);
    }

    fn finish(&mut self, helper: &Helper) {
        self.put(Insn::Call {
            helper: helper.number,
        });
        self.copy(9, 0);
        self.numbers();
    }

    /// Touches another member of the value, or the timer.
    fn member(&mut self, timer: i64) {
        self.load_plain(Size::B8, 5, 10, KEPT);
        let size = self.of(SIZES);
        let right = if timer == 0 {
            16
        } else {
            [0, 24][usize::from(self.chance(2))]
        };
        let at = self.near(right).max(0) as i16;
        if self.chance(2) {
            self.load(size, 3, 5, at);
        } else {
            self.store(size, 5, at, Operand::Reg(Reg(9)));
        }
    }
}
