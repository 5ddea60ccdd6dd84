//! Values and where they come from: a flow in single static assignment form, over registers, bytes of the stack and the
//! packet as a whole.

use std::collections::{BTreeMap, HashMap};

use millrace_check::facts::{Access, ArgFact, Flow, Kind, Op, Step, StepId};
use millrace_object::Program;
use millrace_object::helper::{self, Arg, Helper, Return};
use millrace_object::insn::{AluOp, AtomicOp, ByteOrder, Imm64, Insn, Operand, Reg, Width};
use millrace_object::program::{Dialect, ObjectId};

use crate::effects::{constant, writes_memory};
use crate::graph::Graph;
use crate::places::{Place, Places};

/// Index of a value.
pub type Value = usize;

/// Where a value comes from.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Origin {
    /// a number
    Constant(u64),
    /// the address of a byte of a section of variables
    Address(ObjectId, u32),
    /// what a place holds before anything is written there
    Start(Place),
    /// the register that a step writes
    Step(StepId),
    /// what a step leaves at a place that it may write, which held `before`
    Left {
        /// the step
        step: StepId,
        /// the place
        place: Place,
        /// the value that it held
        before: Value,
    },
    /// a byte of a value, 0 the lowest
    Byte(Value, u8),
    /// bytes side by side, the lowest first
    Bytes(Vec<Value>),
    /// where a block is entered in several ways
    Join {
        /// the block
        block: usize,
        /// the place
        place: Place,
    },
}

/// The values of a flow.
#[derive(Debug)]
pub struct Values {
    /// where each comes from
    pub origins: Vec<Origin>,
    /// bits that each may have set
    pub may: Vec<u64>,
    /// of joins: predecessor and the value that comes from there
    pub joined: BTreeMap<Value, Vec<(usize, Value)>>,
    /// by step: what it reads, the constant addresses of stack, context and objects left out
    pub uses: Vec<Vec<(Place, Value)>>,
    /// by step: stack bytes that it writes in every execution; places beside registers that it may write
    memory: Vec<(Vec<Place>, Vec<Place>)>,
    /// by block: what the places hold where it begins
    starts: Vec<Vec<u32>>,
    known: HashMap<Origin, Value>,
    same: HashMap<Value, Value>,
}

/// Most places times blocks: the memory for one flow.
const MOST: usize = 1 << 24;

/// How a step reads and writes places.
pub struct Maker<'a> {
    /// the program
    pub program: &'a Program,
    /// its flow
    pub flow: &'a Flow,
    /// its places
    pub places: &'a Places,
}

impl Values {
    /// The values of a flow; none if it is too large.
    #[must_use]
    pub fn of(maker: &Maker, graph: &Graph) -> Option<Self> {
        let (blocks, count) = (graph.blocks.len(), maker.places.count);
        if blocks.saturating_mul(count) > MOST {
            return None;
        }
        let mut values = Values {
            origins: Vec::new(),
            may: Vec::new(),
            joined: BTreeMap::new(),
            uses: vec![Vec::new(); maker.flow.steps.len()],
            memory: vec![(Vec::new(), Vec::new()); maker.flow.steps.len()],
            starts: vec![Vec::new(); blocks],
            known: HashMap::new(),
            same: HashMap::new(),
        };
        let fresh: Vec<u32> = (0..count)
            .map(|p| values.make(Origin::Start(p), u64::MAX) as u32)
            .collect();
        let written: Vec<Vec<Place>> = (graph.blocks.iter())
            .map(|b| (b.from..b.to).flat_map(|at| maker.written(at)).collect())
            .collect();
        let mut ends: Vec<Option<Vec<u32>>> = vec![None; blocks];
        let mut open = Vec::new();
        for &b in &graph.order {
            let before = &graph.blocks[b].before;
            let done: Vec<usize> = (before.iter().copied())
                .filter(|&p| ends[p].is_some())
                .collect();
            let mut state = match done.first().and_then(|&p| ends[p].as_ref()) {
                Some(end) => end.clone(),
                None => fresh.clone(),
            };
            let first_block = b == graph.order[0] && !before.is_empty();
            let mut here: Vec<Place> = Vec::new();
            if done.len() < before.len() || first_block {
                // A loop: whatever it writes may come round.
                let mut inside = vec![false; blocks];
                inside[b] = true;
                let mut pending: Vec<usize> = before.clone();
                while let Some(p) = pending.pop() {
                    if !std::mem::replace(&mut inside[p], true) {
                        pending.extend(&graph.blocks[p].before);
                    }
                }
                let round = (0..blocks).filter(|&p| inside[p]);
                here.extend(round.flat_map(|p| written[p].iter().copied()));
                here.sort_unstable();
                here.dedup();
            }
            for place in 0..count {
                let came = |p: &usize| ends[*p].as_ref().map(|e| e[place]);
                let first = done.first().and_then(came);
                if first_block || done.iter().any(|p| came(p) != first) {
                    here.push(place);
                }
            }
            here.sort_unstable();
            here.dedup();
            for place in here {
                let may = if done.len() == before.len() && !first_block {
                    let all = done.iter().filter_map(|&p| ends[p].as_ref());
                    all.fold(0, |bits, e| bits | values.may[e[place] as usize])
                } else {
                    u64::MAX
                };
                let join = values.make(Origin::Join { block: b, place }, may);
                state[place] = join as u32;
                open.push((b, place, join, first_block.then_some(fresh[place] as usize)));
            }
            values.starts[b] = state.clone();
            for at in graph.blocks[b].from..graph.blocks[b].to {
                maker.step(&mut values, at, &mut state);
            }
            ends[b] = Some(state);
        }
        for (b, place, join, fresh) in open {
            let came = graph.blocks[b].before.iter();
            let mut all: Vec<(usize, Value)> = came
                .filter_map(|&p| Some((p, ends[p].as_ref()?[place] as usize)))
                .collect();
            all.extend(fresh.map(|f| (usize::MAX, f)));
            values.joined.insert(join, all);
        }
        values.unite();
        Some(values)
    }

    /// Joins whose ways all bring one value are that value.
    fn unite(&mut self) {
        let mut open: Vec<Value> = self.joined.keys().copied().collect();
        let mut changed = true;
        while std::mem::take(&mut changed) {
            open.retain(|&join| {
                let all = self.joined.get(&join).into_iter().flatten();
                let mut others = all.map(|(_, v)| self.value(*v)).filter(|v| *v != join);
                let first = others.next();
                let Some(first) = first.filter(|f| others.all(|v| v == *f)) else {
                    return true;
                };
                self.same.insert(join, first);
                changed = true;
                false
            });
        }
    }

    /// The value that another one is.
    #[must_use]
    pub fn value(&self, mut v: Value) -> Value {
        while let Some(&other) = self.same.get(&v) {
            v = other;
        }
        v
    }

    /// Where a value comes from.
    #[must_use]
    pub fn origin(&self, v: Value) -> &Origin {
        &self.origins[self.value(v)]
    }

    /// The bits that it may have set.
    #[must_use]
    pub fn bits(&self, v: Value) -> u64 {
        self.may[self.value(v)]
    }

    /// What the places hold before a step.
    pub fn before(&mut self, maker: &Maker, graph: &Graph, at: usize) -> Vec<Value> {
        let Some(b) = graph.of.get(at).copied().flatten() else {
            return Vec::new();
        };
        let mut state = self.starts[b].clone();
        for step in graph.blocks[b].from..at {
            maker.step(self, step, &mut state);
        }
        state.into_iter().map(|v| self.value(v as usize)).collect()
    }

    /// Stack bytes that a step writes in every execution, and places beside registers that it may write.
    #[must_use]
    pub fn written(&self, at: usize) -> (Vec<Place>, Vec<Place>) {
        self.memory[at].clone()
    }

    fn make(&mut self, origin: Origin, may: u64) -> Value {
        if let Some(&v) = self.known.get(&origin) {
            return v;
        }
        self.origins.push(origin.clone());
        self.may.push(may);
        self.known.insert(origin, self.origins.len() - 1);
        self.origins.len() - 1
    }

    fn number(&mut self, n: u64) -> Value {
        self.make(Origin::Constant(n), n)
    }

    /// A byte of a value.
    pub fn byte(&mut self, v: Value, at: u8) -> Value {
        let may = self.bits(v) >> (8 * u32::from(at)) & 0xff;
        if may == 0 {
            return self.number(0);
        }
        match self.origin(v).clone() {
            Origin::Constant(n) => self.number(n >> (8 * u32::from(at)) & 0xff),
            Origin::Bytes(all) => match all.get(usize::from(at)) {
                Some(&byte) => byte,
                None => self.number(0),
            },
            Origin::Byte(..) if at == 0 => self.value(v),
            Origin::Left { .. } | Origin::Start(_) if at == 0 && self.bits(v) <= 0xff => {
                self.value(v)
            }
            _ => {
                let v = self.value(v);
                self.make(Origin::Byte(v, at), may)
            }
        }
    }

    /// Bytes of the stack as a number.
    fn bytes(&mut self, all: Vec<Value>) -> Value {
        let all: Vec<Value> = all.into_iter().map(|v| self.value(v)).collect();
        let mut number = Some(0);
        let mut whole = None;
        for (at, v) in (0u8..).zip(&all) {
            let byte = match *self.origin(*v) {
                Origin::Constant(n) => Some(n & 0xff),
                _ => None,
            };
            number = number.zip(byte).map(|(n, b)| n | b << (8 * u32::from(at)));
            if let Origin::Byte(of, index) = *self.origin(*v)
                && index == at
            {
                whole = whole.or(Some(of));
            }
        }
        if let Some(n) = number {
            return self.number(n);
        }
        if let Some(of) = whole {
            let fits = all.len() == 8 || self.bits(of) >> (8 * all.len()) == 0;
            let same = (0u8..).zip(&all).all(|(at, &v)| self.byte(of, at) == v);
            if fits && same {
                return of;
            }
        }
        let may = (0u32..)
            .zip(&all)
            .fold(0, |bits, (at, &v)| bits | (self.bits(v) & 0xff) << (8 * at));
        self.make(Origin::Bytes(all), may)
    }
}

/// The lowest `n` bits.
fn low(n: u32) -> u64 {
    match n {
        0 => 0,
        1..=63 => (1 << n) - 1,
        _ => u64::MAX,
    }
}

fn length(v: u64) -> u32 {
    64 - v.leading_zeros()
}

/// Whether a register of this kind is written as an address where it is used, so that no place holds it.
fn is_address(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::Context
            | Kind::Object(_)
            | Kind::Function(_)
            | Kind::Stack {
                offset: Some(_),
                ..
            }
    )
}

impl Maker<'_> {
    fn step(&self, values: &mut Values, at: usize, state: &mut [u32]) {
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
                let may = if signed { u64::MAX } else { low(8 * bytes) };
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
                if writes_memory(*arg) {
                    left.push(place);
                }
            }
            if matches!(access, Access::Packet | Access::Several) {
                uses.push((self.places.packet(), state[self.places.packet()] as usize));
                uses.push((self.places.borders(), state[self.places.borders()] as usize));
                if writes_memory(*arg) {
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
    fn written(&self, at: usize) -> Vec<Place> {
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

impl Values {
    fn left(&mut self, step: StepId, place: Place, state: &[u32]) -> Value {
        let before = self.value(state[place] as usize);
        let may = if state.len() - place > 3 {
            0xff
        } else {
            u64::MAX
        };
        self.make(
            Origin::Left {
                step,
                place,
                before,
            },
            may,
        )
    }
}
