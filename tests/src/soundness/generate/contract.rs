//! Calls of any helper, by nothing but its contract: arguments that fit, now and then one that does not
//! quite. A helper that is added is called here without further ado.

use millrace_object::helper::{self, Arg, HELPERS, Helper, Return};
use millrace_object::insn::{AluOp, Condition, Operand, Reg, Size, Width};
use millrace_object::program::{ObjectId, StateObject};
use rand::{Rng, RngExt};

use super::Generator;
use crate::soundness::objects::{self, FORMATS, TEXTS};

/// Where the bytes lie that calls get the address of, below everything else.
const ROOM: i16 = -512;
/// The most bytes of one.
const MOST: u32 = 64;

/// Whether a contract alone says enough for a call: not where something must have been set up, or must be
/// done afterwards. Those have pieces of their own.
#[must_use]
pub fn suffices(helper: &Helper) -> bool {
    let plain = |a: &Arg| {
        !matches!(
            a,
            Arg::Timer
                | Arg::Callback
                | Arg::Function
                | Arg::Any
                | Arg::Iterator
                | Arg::Record
                | Arg::KeyOut
        )
    };
    let paired = [helper::SPIN_LOCK.number, helper::SPIN_UNLOCK.number];
    helper.number < helper::EXPANSION
        && helper.returns != Return::RecordOrNull
        && helper.args.iter().all(plain)
        && !paired.contains(&helper.number)
}

impl<R: Rng> Generator<'_, R> {
    /// A call of some helper.
    pub(super) fn contract(&mut self) {
        let which = self.random.random_range(0..HELPERS.len());
        let usual = HELPERS.iter().cycle().skip(which);
        let Some(helper) = usual.take(HELPERS.len()).find(|h| suffices(h)) else {
            return;
        };
        let fitting = objects::of(helper);
        let object = match fitting.len() {
            0 => None,
            n => fitting.get(self.random.random_range(0..n)),
        };
        let mut size = 0;
        for (at, arg) in (0_u8..).zip(helper.args) {
            let next = helper.args.get(usize::from(at) + 1);
            if let Some(Arg::Bytes { zero }) = next {
                size = self.random.random_range(u32::from(!zero)..=24);
            }
            match objects::member(helper).filter(|_| at == 1) {
                Some(member) => self.set(at + 1, member),
                None => self.argument(at + 1, *arg, object, size, at == 0),
            }
        }
        self.put(millrace_object::insn::Insn::Call {
            helper: helper.number,
        });
        if helper.effects.moves_packet && !self.chance(6) {
            self.packet();
        }
        match helper.returns {
            Return::Scalar { .. } => {
                self.copy(9, 0);
                self.numbers();
            }
            _ => self.use_value(),
        }
    }

    fn argument(
        &mut self,
        reg: u8,
        arg: Arg,
        object: Option<&(ObjectId, StateObject)>,
        size: u32,
        first: bool,
    ) {
        let (key, value) = object.map_or((0, 0), |(_, o)| (o.key_bytes, o.value_bytes));
        match arg {
            Arg::Context => self.copy(reg, 6),
            Arg::Object => {
                if let Some((id, _)) = object {
                    self.object(reg, *id);
                }
            }
            Arg::Key => self.memory(reg, key, true, first),
            Arg::Value => self.memory(reg, value, true, first),
            Arg::ValueOut => self.memory(reg, value, true, first),
            Arg::In(n) | Arg::InOut(n) => self.memory(reg, n, true, first),
            Arg::Out(n) => self.memory(reg, n, false, first),
            Arg::Read { nullable: true } | Arg::Write { nullable: true } if size == 0 => {
                self.set(reg, 0);
            }
            Arg::Read { .. } | Arg::Update => self.memory(reg, size, true, first),
            Arg::Write { .. } => self.memory(reg, size, false, first),
            Arg::Bytes { .. } => {
                let size = self.near(i64::from(size));
                self.set(reg, size.max(0));
            }
            Arg::Text => {
                let which = self.random.random_range(0..TEXTS.len());
                let before = TEXTS.iter().take(which).map(|t| t.len() as u32 + 1);
                self.value(reg, FORMATS, before.sum());
            }
            Arg::Scalar if self.chance(3) => {
                self.copy(reg, 9);
                let mask = self.of([3, 15, 0xff]);
                self.alu(AluOp::And, Width::W64, reg, Operand::Imm(mask));
            }
            Arg::Scalar => {
                let number = self.of([0, 0, 0, 1, 2, 3, 8, 10, 16, -1]);
                self.set(reg, number);
            }
            // `suffices` leaves out helpers with these.
            Arg::Timer
            | Arg::Callback
            | Arg::Function
            | Arg::Any
            | Arg::Iterator
            | Arg::Record
            | Arg::KeyOut => {}
        }
    }

    /// The address of this many bytes: of the stack, or, where no argument has been set yet, of the packet.
    fn memory(&mut self, reg: u8, bytes: u32, written: bool, first: bool) {
        if first && self.chance(3) {
            let n = self.near(i64::from(bytes));
            self.check_bytes(n, Condition::Gt);
            self.copy(reg, 7);
            return;
        }
        // Each argument has a room of its own.
        let room = ROOM + i16::from(reg) * MOST as i16 - MOST as i16;
        let words = bytes.min(MOST).div_ceil(8) as i16;
        for word in (0..words).filter(|_| written) {
            if self.chance(40) {
                continue;
            }
            let small = i64::from(self.random.random_range(0..6_u8));
            let src = match self.random.random_range(0..3) {
                0 => Operand::Reg(Reg(9)),
                _ => Operand::Imm(small),
            };
            self.store(Size::B8, 10, room + 8 * word, src);
        }
        self.copy(reg, 10);
        self.add(reg, i64::from(room));
    }
}
