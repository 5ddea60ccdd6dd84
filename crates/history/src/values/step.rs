//! Values that one step leaves: registers, stack bytes and borders behind it.

use millrace_check::facts::{Access, ArgFact, Kind, Op, Step, StepId};
use millrace_object::helper::{self, Arg, Helper, Return};
use millrace_object::insn::{AluOp, AtomicOp, ByteOrder, Imm64, Insn, Operand, Reg, Width};
use millrace_object::program::{Dialect, ObjectId};

use crate::effects::constant;
use crate::places::Place;

use super::{Maker, Origin, Value, Values, is_address, length, low};

impl Maker<'_> {
    pub(super) fn step(&self, values: &mut Values, at: usize, state: &mut [u32]) {
        let Some(step) = self.flow.steps.get(at) else {
            return;
        };
        let mut uses = Vec::new();
        let id = StepId(at);
        values.memory[at] = (Vec::new(), Vec::new());
        match step.op {
            Op::Jump { .. } | Op::Exit => {}
            Op::Branch { insn, .. } => {
                if let Insn::Branch { left, right, .. } = insn
                    && step.outcomes.holds
                    && step.outcomes.fails
                {
                    self.read(step, left, state, &mut uses);
                    if let Operand::Reg(right) = right {
                        self.read(step, right, state, &mut uses);
                    }
                }
            }
            Op::Enter { frame, .. } => {
                for reg in (1..=5).map(Reg) {
                    let from = self.places.register(step.frame, reg);
                    state[self.places.register(frame, reg)] = state[from];
                }
            }
            Op::Leave { .. } => {
                let caller = self.flow.frames.get(step.frame.0).and_then(|f| f.caller);
                if let Some(caller) = caller {
                    let from = self.places.register(step.frame, Reg(0));
                    state[self.places.register(caller, Reg(0))] = state[from];
                }
            }
            Op::Plain(insn) => self.plain(values, id, step, &insn, state, &mut uses),
        }
        uses.iter_mut().for_each(|(_, v)| *v = values.value(*v));
        values.uses[at] = uses;
    }

    fn read(&self, step: &Step, reg: Reg, state: &[u32], uses: &mut Vec<(Place, Value)>) {
        let kind = step.before.get(usize::from(reg.0)).copied();
        if kind.is_some_and(is_address) {
            return;
        }
        let place = self.places.register(step.frame, reg);
        if !uses.iter().any(|(p, _)| *p == place) {
            uses.push((place, state[place] as usize));
        }
    }

    fn operand(&self, values: &mut Values, step: &Step, operand: Operand, state: &[u32]) -> Value {
        match operand {
            Operand::Imm(n) => values.number(n as u64),
            Operand::Reg(reg) => state[self.places.register(step.frame, reg)] as usize,
        }
    }

    /// The stack bytes of an access, and whether it is exactly these in every execution.
    fn stack(&self, step: &Step, base: Reg, offset: i16, bytes: u32) -> Option<(Vec<Place>, bool)> {
        match (step.before[usize::from(base.0)], step.access) {
            (
                Kind::Stack {
                    frame,
                    offset: Some(at),
                },
                _,
            ) => {
                let from = at.saturating_add(i32::from(offset));
                let to = from.saturating_add(bytes as i32);
                Some((self.places.stack(frame, from, to).collect(), true))
            }
            (_, Some(Access::Stack { frame, from, to })) => {
                Some((self.places.stack(frame, from, to).collect(), false))
            }
            (_, Some(Access::Several)) => Some((self.places.all_stacks().collect(), false)),
            _ => None,
        }
    }

    fn plain(
        &self,
        values: &mut Values,
        id: StepId,
        step: &Step,
        insn: &Insn,
        state: &mut [u32],
        uses: &mut Vec<(Place, Value)>,
    ) {
        let place = |reg: Reg| self.places.register(step.frame, reg);
        match *insn {
            Insn::Alu {
                op: AluOp::Mov,
                width,
                dst,
                src,
            } => {
                if let Operand::Reg(src) = src {
                    self.read(step, src, state, uses);
                }
                let from = self.operand(values, step, src, state);
                let narrow = width == Width::W32 && !step.whole;
                let to = match *values.origin(from) {
                    Origin::Constant(n) if narrow => values.number(n & u64::from(u32::MAX)),
                    _ if !narrow || values.bits(from) <= u64::from(u32::MAX) => from,
                    _ => {
                        let may = values.bits(from) & u64::from(u32::MAX);
                        values.make(Origin::Step(id), may)
                    }
                };
                state[place(dst)] = to as u32;
            }
            Insn::Alu {
                op,
                width,
                dst,
                src,
            } => {
                self.read(step, dst, state, uses);
                if let Operand::Reg(src) = src {
                    self.read(step, src, state, uses);
                }
                let (a, b) = (
                    state[place(dst)] as usize,
                    self.operand(values, step, src, state),
                );
                let may = self.arithmetic(values, step, op, width, (a, b));
                state[place(dst)] = values.make(Origin::Step(id), may) as u32;
            }
            Insn::Neg { dst, width } => {
                self.read(step, dst, state, uses);
                let may = if width == Width::W32 {
                    low(32)
                } else {
                    u64::MAX
                };
                state[place(dst)] = values.make(Origin::Step(id), may) as u32;
            }
            Insn::SignExtend {
                width,
                from,
                dst,
                src,
            } => {
                self.read(step, src, state, uses);
                let bits = 8 * from.bytes();
                let of = values.bits(state[place(src)] as usize) & low(bits);
                let may = match (of >> (bits - 1) & 1, width) {
                    (0, _) => of,
                    (_, Width::W32) => low(32),
                    (_, Width::W64) => u64::MAX,
                };
                state[place(dst)] = values.make(Origin::Step(id), may) as u32;
            }
            Insn::ByteOrder { order, bits, dst } => {
                self.read(step, dst, state, uses);
                let of = values.bits(state[place(dst)] as usize) & low(bits);
                let may = match order {
                    ByteOrder::ToLittle => of,
                    ByteOrder::ToBig | ByteOrder::Swap => of.swap_bytes() >> (64 - bits),
                };
                state[place(dst)] = values.make(Origin::Step(id), may) as u32;
            }
            Insn::LoadImm { dst, value } => {
                let to = match value {
                    Imm64::Number(n) => values.number(n),
                    Imm64::ObjectValue { object, offset } => {
                        values.make(Origin::Address(object, offset), u64::MAX)
                    }
                    Imm64::Object(_) | Imm64::Function(_) => {
                        values.make(Origin::Step(id), u64::MAX)
                    }
                };
                state[place(dst)] = to as u32;
            }
            Insn::Load {
                size,
                signed,
                dst,
                base,
                offset,
            } => {
                let bytes = size.bytes();
                self.read(step, base, state, uses);
                let mut to = None;
                if let Some((all, exact)) = self.stack(step, base, offset, bytes) {
                    let held: Vec<Value> = all.iter().map(|&p| state[p] as usize).collect();
                    uses.extend(all.iter().copied().zip(held.iter().copied()));
                    if exact && !signed && held.len() == bytes as usize {
                        to = Some(values.bytes(held));
                    }
                }
                match step.access {
                    Some(Access::Packet | Access::Several) => {
                        for p in [self.places.packet(), self.places.borders()] {
                            uses.push((p, state[p] as usize));
                        }
                    }
                    Some(Access::Context { .. }) => {
                        let p = self.places.borders();
                        uses.push((p, state[p] as usize));
                    }
                    _ => {}
                }
                // The context's pointers have four bytes in BPF, and eight where they are spilled to.
                let pointer = !matches!(step.after, Kind::Scalar | Kind::Unset);
                let may = match signed || pointer {
                    true => u64::MAX,
                    false => low(8 * bytes),
                };
                let to = to.unwrap_or_else(|| values.make(Origin::Step(id), may));
                state[place(dst)] = to as u32;
            }
            Insn::Store {
                size,
                base,
                offset,
                src,
            } => {
                self.read(step, base, state, uses);
                if let Operand::Reg(src) = src {
                    self.read(step, src, state, uses);
                }
                let value = self.operand(values, step, src, state);
                // The address of a place in the stack is no value that a row can have.
                let held =
                    !matches!(src, Operand::Reg(r) if is_address(step.before[usize::from(r.0)]));
                if let Some((all, exact)) = self.stack(step, base, offset, size.bytes()) {
                    for (at, &place) in all.iter().enumerate() {
                        let to = match exact && held {
                            true => values.byte(value, at as u8),
                            false => values.left(id, place, state),
                        };
                        state[place] = to as u32;
                    }
                    match exact {
                        true => values.memory[id.0].0 = all,
                        false => values.memory[id.0].1 = all,
                    }
                }
                if matches!(step.access, Some(Access::Packet | Access::Several)) {
                    let packet = self.places.packet();
                    state[packet] = values.left(id, packet, state) as u32;
                    values.memory[id.0].1.push(packet);
                }
            }
            Insn::Atomic {
                op,
                fetch,
                size,
                base,
                offset,
                src,
            } => {
                self.read(step, base, state, uses);
                self.read(step, src, state, uses);
                if op == AtomicOp::CompareExchange {
                    self.read(step, Reg(0), state, uses);
                }
                if let Some((all, _)) = self.stack(step, base, offset, size.bytes()) {
                    for place in all {
                        uses.push((place, state[place] as usize));
                        state[place] = values.left(id, place, state) as u32;
                        values.memory[id.0].1.push(place);
                    }
                }
                if matches!(step.access, Some(Access::Packet | Access::Several)) {
                    let packet = self.places.packet();
                    uses.push((packet, state[packet] as usize));
                    state[packet] = values.left(id, packet, state) as u32;
                    values.memory[id.0].1.push(packet);
                }
                let to = match op {
                    AtomicOp::CompareExchange => Some(Reg(0)),
                    AtomicOp::Exchange => Some(src),
                    _ => fetch.then_some(src),
                };
                if let Some(to) = to {
                    state[place(to)] = values.make(Origin::Step(id), low(8 * size.bytes())) as u32;
                }
            }
            Insn::Call { helper } => {
                if let Some(helper) = helper::by_number(helper) {
                    self.call(values, (id, step), helper, state, uses);
                }
                let may = match helper::by_number(helper).map(|h| h.returns) {
                    Some(Return::Scalar { min, max }) if min >= 0 => low(length(max as u64)),
                    _ => u64::MAX,
                };
                state[place(Reg(0))] = values.make(Origin::Step(id), may) as u32;
                for reg in (1..=5).map(Reg) {
                    let start = values.make(Origin::Start(place(reg)), u64::MAX);
                    state[place(reg)] = start as u32;
                }
            }
            _ => {}
        }
    }

    fn call(
        &self,
        values: &mut Values,
        (id, step): (StepId, &Step),
        helper: &Helper,
        state: &mut [u32],
        uses: &mut Vec<(Place, Value)>,
    ) {
        let mut left = Vec::new();
        for ((arg, fact), reg) in helper.args.iter().zip(&step.args).zip((1..=5).map(Reg)) {
            if !matches!(arg, Arg::Context) {
                self.read(step, reg, state, uses);
            }
            let ArgFact::Memory { access, .. } = *fact else {
                continue;
            };
            let stack: Vec<Place> = match access {
                Access::Stack { frame, from, to } => self.places.stack(frame, from, to).collect(),
                Access::Several => self.places.all_stacks().collect(),
                _ => Vec::new(),
            };
            for place in stack {
                let new = !uses.iter().any(|(p, _)| *p == place);
                // What is only written need not be read, but a call may leave it as it was.
                if new && !matches!(arg, Arg::Out(_) | Arg::KeyOut) {
                    uses.push((place, state[place] as usize));
                }
                if arg.writes_memory() {
                    left.push(place);
                }
            }
            if matches!(access, Access::Packet | Access::Several) {
                uses.push((self.places.packet(), state[self.places.packet()] as usize));
                uses.push((self.places.borders(), state[self.places.borders()] as usize));
                if arg.writes_memory() {
                    left.push(self.places.packet());
                }
            }
        }
        let (packet, borders, draws) = (
            self.places.packet(),
            self.places.borders(),
            self.places.draws(),
        );
        let effects = helper.effects;
        if helper.args.contains(&Arg::Context) && !helper.takes_object() {
            uses.push((packet, state[packet] as usize));
            uses.push((borders, state[borders] as usize));
        }
        if effects.random {
            uses.push((draws, state[draws] as usize));
            left.push(draws);
        }
        if effects.writes_packet || effects.moves_packet {
            left.push(packet);
        }
        if effects.moves_packet {
            left.push(borders);
        }
        left.sort_unstable();
        left.dedup();
        for &place in &left {
            state[place] = values.left(id, place, state) as u32;
        }
        values.memory[id.0].1 = left;
    }

    /// Bits that a result may have set.
    fn arithmetic(
        &self,
        values: &Values,
        step: &Step,
        op: AluOp,
        width: Width,
        (a, b): (Value, Value),
    ) -> u64 {
        if self.border(values, a) == Some(4)
            && self.border(values, b) == Some(0)
            && op == AluOp::Sub
        {
            // fastpath/abi.h: end - data <= 0xffff
            return 0xffff;
        }
        let all = match width {
            Width::W32 if !step.whole => low(32),
            _ => u64::MAX,
        };
        let (x, y) = (values.bits(a) & all, values.bits(b) & all);
        let by = match *values.origin(b) {
            Origin::Constant(n) => Some((n & if all == u64::MAX { 63 } else { 31 }) as u32),
            _ => None,
        };
        let top = all & !(all >> 1);
        let found = match op {
            AluOp::Mov => y,
            AluOp::And => x & y,
            AluOp::Or | AluOp::Xor => x | y,
            AluOp::Add => low(length(x).max(length(y)) + 1),
            AluOp::Mul => low(length(x) + length(y)),
            AluOp::Lsh => by.map_or(u64::MAX, |by| x << by),
            AluOp::Rsh => by.map_or(low(length(x)), |by| x >> by),
            AluOp::Arsh if x & top == 0 => by.map_or(low(length(x)), |by| x >> by),
            AluOp::Div | AluOp::Mod => low(length(x)),
            AluOp::Sub | AluOp::Arsh | AluOp::SignedDiv | AluOp::SignedMod => u64::MAX,
        };
        found & all
    }

    /// Offset in the context that a value was loaded from.
    pub fn border(&self, values: &Values, v: Value) -> Option<u32> {
        let Origin::Step(id) = *values.origin(v) else {
            return None;
        };
        let step = self.flow.steps.get(id.0)?;
        match (step.op, step.access) {
            (Op::Plain(Insn::Load { .. }), Some(Access::Context { offset })) => Some(offset),
            _ => None,
        }
    }

    /// Whether a value is the packet's time in nanoseconds.
    #[must_use]
    pub fn is_time(&self, values: &Values, v: Value) -> bool {
        let Origin::Step(id) = *values.origin(v) else {
            return false;
        };
        let Some(step) = self.flow.steps.get(id.0) else {
            return false;
        };
        match step.op {
            Op::Plain(Insn::Call { helper }) => [
                helper::KTIME_GET_NS.number,
                helper::KTIME_GET_BOOT_NS.number,
                helper::KTIME_GET_COARSE_NS.number,
                helper::KTIME_GET_TAI_NS.number,
            ]
            .contains(&helper),
            // docs/dialect.md
            Op::Plain(Insn::Load { size, .. }) => {
                self.program.dialect == Dialect::Handlers
                    && step.access == Some(Access::Context { offset: 24 })
                    && size.bytes() == 8
            }
            _ => false,
        }
    }

    /// The places that a step may write, known before its values are.
    pub(super) fn written(&self, at: usize) -> Vec<Place> {
        let Some(step) = self.flow.steps.get(at) else {
            return Vec::new();
        };
        let mut all = Vec::new();
        let place = |reg: Reg| self.places.register(step.frame, reg);
        match step.op {
            Op::Enter { frame, .. } => {
                all.extend((1..=5).map(|r| self.places.register(frame, Reg(r))));
            }
            Op::Leave { .. } => {
                let caller = self.flow.frames.get(step.frame.0).and_then(|f| f.caller);
                all.extend(caller.map(|c| self.places.register(c, Reg(0))));
            }
            Op::Plain(insn) => {
                all.extend(millrace_check::facts::written(&insn).map(place));
                match insn {
                    Insn::Store {
                        size, base, offset, ..
                    }
                    | Insn::Atomic {
                        size, base, offset, ..
                    } => {
                        let stack = self.stack(step, base, offset, size.bytes());
                        all.extend(stack.into_iter().flat_map(|(places, _)| places));
                        all.push(self.places.packet());
                        if let Insn::Atomic { src, .. } = insn {
                            all.extend([place(src), place(Reg(0))]);
                        }
                    }
                    Insn::Call { .. } => {
                        all.extend((0..=5).map(|r| place(Reg(r))));
                        for fact in &step.args {
                            match *fact {
                                ArgFact::Memory {
                                    access: Access::Stack { frame, from, to },
                                    ..
                                } => all.extend(self.places.stack(frame, from, to)),
                                ArgFact::Memory {
                                    access: Access::Several,
                                    ..
                                } => all.extend(self.places.all_stacks()),
                                _ => {}
                            }
                        }
                        all.extend([
                            self.places.packet(),
                            self.places.borders(),
                            self.places.draws(),
                        ]);
                    }
                    _ => {}
                }
            }
            _ => {}
        }
        all
    }

    /// Whether an object's variables are the same constants everywhere.
    #[must_use]
    pub fn constant(&self, object: ObjectId) -> bool {
        constant(self.program, object)
    }
}
