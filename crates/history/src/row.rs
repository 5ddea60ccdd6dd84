//! The row of one site: its fields, what they are filled from, and what is set from them.

use std::collections::BTreeMap;

use millrace_check::facts::{Access, FrameId, Kind, Op, StepId};
use millrace_object::helper;
use millrace_object::insn::{AluOp, Insn, Operand, Reg, Width};

use crate::cut::{NEVER, Network};
use crate::effects::Effect;
use crate::expr::Expr;
use crate::graph::Graph;
use crate::places::{Place, Places, Which};
use crate::values::{Maker, Origin, Value, Values};

/// A field before it has a place in the row.
#[derive(Debug)]
pub struct Draft {
    /// what it is filled from
    pub from: Expr,
    /// the bits of it that are kept
    pub mask: u64,
    /// what it is
    pub name: String,
    /// the step whose line it is for
    pub step: StepId,
    /// part of the key of the first operation
    pub key: Option<i32>,
}

/// A place that is set from a row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Set {
    /// a register
    Register(FrameId, Reg),
    /// so many bytes of the stack
    Stack(FrameId, i32, u32),
}

/// What is known of a flow where a row is made.
pub struct Row<'a> {
    /// how steps read and write
    pub maker: &'a Maker<'a>,
    /// the graph
    pub graph: &'a Graph,
    /// the values
    pub values: &'a mut Values,
    /// what steps do to state
    pub effects: &'a [Effect],
    /// the first step that touches state
    pub site: usize,
    /// what places hold there
    pub state: Vec<Value>,
    /// the steps that may come from there on
    pub behind: &'a [bool],
    /// whether the time is used
    pub time: bool,
    demand: BTreeMap<Value, u64>,
    /// something that is needed lies before the cut
    lost: bool,
}

/// Why a row cannot be made: the step, and what stands against it.
pub type Obstacle = (StepId, &'static str);

/// What a row consists of.
pub struct Made {
    /// fields
    pub fields: Vec<Draft>,
    /// what is set from them, in order
    pub sets: Vec<(Set, Expr)>,
    /// steps whose results are fields
    pub late: BTreeMap<StepId, Expr>,
}

/// Weight of a bit; that of a field is 1.
const SCALE: u32 = 1 << 12;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Vertex {
    Value(Value),
    Selector(usize),
}

const ADDRESS: &str = "the address of a byte of the packet, of the stack or of state is still needed behind the first access to state; compute it anew there";
const HOIST: &str = "what is read of the packet here depends on what state decided, or on a loop behind the first access to state; read it before";
const WRITTEN: &str =
    "bytes of the packet are read back after a write that state decides; read them before";
const CALL: &str = "a helper reads the packet behind the first access to state; call it before";

impl<'a> Row<'a> {
    /// The row of a site.
    #[must_use]
    pub fn new(
        (maker, graph): (&'a Maker<'a>, &'a Graph),
        values: &'a mut Values,
        effects: &'a [Effect],
        site: usize,
        behind: &'a [bool],
    ) -> Self {
        let state = values.before(maker, graph, site);
        Row {
            maker,
            graph,
            values,
            effects,
            site,
            state,
            behind,
            time: false,
            demand: BTreeMap::new(),
            lost: false,
        }
    }

    fn places(&self) -> &'a Places {
        self.maker.places
    }

    /// Makes it: `live` places at the site, and the `leaves` behind it.
    ///
    /// # Errors
    /// Where something cannot be computed before state is touched.
    pub fn make(&mut self, live: &[Place], leaves: &[usize]) -> Result<Made, Obstacle> {
        let site = StepId(self.site);
        let mut sinks: Vec<(Place, Value)> = Vec::new();
        for &place in live {
            let v = self.state[place];
            let which = self.places().which(place);
            match which {
                Which::Packet | Which::Borders => continue,
                Which::Draws => {
                    if !matches!(self.values.origin(v), Origin::Start(_)) {
                        return Err((
                            site,
                            "a random number is drawn before the first access to state, and another one behind it",
                        ));
                    }
                    continue;
                }
                Which::Register(frame, reg) => {
                    let step = &self.maker.flow.steps[self.site];
                    let own = frame == step.frame;
                    let kind = step.before[usize::from(reg.0)];
                    if own
                        && !matches!(
                            kind,
                            Kind::Scalar
                                | Kind::Mixed
                                | Kind::Value(_)
                                | Kind::Unset
                                | Kind::Packet
                                | Kind::PacketEnd
                                | Kind::PacketMeta
                                | Kind::Record(_)
                                | Kind::Inner(_)
                                | Kind::Pointer
                                | Kind::Stack { offset: None, .. }
                        )
                    {
                        continue;
                    }
                }
                Which::Stack(..) => {}
            }
            if let Some(kind) = self.pointer(v, 0)
                && !matches!(self.values.origin(v), Origin::Address(..))
            {
                // Constant addresses are written out where they are used.
                if matches!(
                    kind,
                    Kind::Context
                        | Kind::Object(_)
                        | Kind::Function(_)
                        | Kind::Stack {
                            offset: Some(_),
                            ..
                        }
                ) {
                    continue;
                }
                return Err((site, ADDRESS));
            }
            sinks.push((place, v));
        }
        let (vertices, network) = self.network(&sinks);
        let Some(cut) = network.cut() else {
            return Err((site, ADDRESS));
        };
        let mut drafts = Vec::new();
        for index in cut {
            let vertex = vertices[index];
            drafts.push((vertex, self.field(vertex, &sinks).ok_or((site, ADDRESS))?));
        }
        let (mut fields, number) = side_by_side(drafts);
        let mut late = BTreeMap::new();
        for &at in leaves {
            let (from, mask) = self.leaf(at)?;
            let index = match fields.iter().position(|f: &Draft| f.from == from) {
                Some(index) => {
                    fields[index].mask |= mask;
                    index
                }
                None => {
                    fields.push(Draft {
                        name: self.step_name(at),
                        from,
                        mask,
                        step: StepId(at),
                        key: None,
                    });
                    fields.len() - 1
                }
            };
            late.insert(StepId(at), Expr::Field(index));
        }
        let mut sets = Vec::new();
        for &(place, v) in &sinks {
            let expr = self.decoded(v, &number);
            match self.places().which(place) {
                Which::Register(frame, reg) => sets.push((Set::Register(frame, reg), expr)),
                Which::Stack(frame, from) => sets.push((Set::Stack(frame, from, 1), expr)),
                _ => {}
            }
        }
        if self.lost {
            return Err((site, ADDRESS));
        }
        Ok(Made {
            fields,
            sets: joined(&sets),
            late,
        })
    }

    /// Kind of pointer that a value is; none for numbers.
    fn pointer(&self, v: Value, depth: u32) -> Option<Kind> {
        match self.values.origin(v) {
            Origin::Step(id) => {
                let kind = self.maker.flow.steps[id.0].after;
                (!matches!(kind, Kind::Scalar | Kind::Unset)).then_some(kind)
            }
            Origin::Byte(of, _) => self.pointer(*of, depth),
            Origin::Join { .. } if depth < 8 => {
                let all = self.values.joined.get(&self.values.value(v))?;
                all.iter().find_map(|(_, v)| self.pointer(*v, depth + 1))
            }
            // An address of the stack that was stored there, or what a call left.
            Origin::Left { step, .. } => {
                let step = &self.maker.flow.steps[step.0];
                match step.op {
                    Op::Plain(Insn::Store {
                        src: Operand::Reg(src),
                        ..
                    }) => Some(step.before[usize::from(src.0)]).filter(|k| *k != Kind::Scalar),
                    _ => None,
                }
            }
            Origin::Address(..) => Some(Kind::Pointer),
            _ => None,
        }
    }

    fn acyclic(&self, at: usize) -> bool {
        self.graph.of[at].is_some_and(|b| !self.graph.cyclic[b])
    }

    /// What a value is computed from where that can be done anywhere, and the expression; none where it is known from the
    /// packet only.
    fn parts(&self, v: Value) -> Option<Vec<Value>> {
        let v = self.values.value(v);
        match self.values.origin(v) {
            Origin::Constant(_) | Origin::Address(..) | Origin::Start(_) => Some(Vec::new()),
            Origin::Byte(of, _) => Some(vec![*of]),
            Origin::Bytes(all) => Some(all.clone()),
            Origin::Step(id) => {
                let step = &self.maker.flow.steps[id.0];
                if self.maker.is_time(self.values, v) {
                    return Some(Vec::new());
                }
                if !self.acyclic(id.0) || self.effects[id.0] != Effect::Free || step.whole {
                    return None;
                }
                let Op::Plain(insn) = step.op else {
                    return None;
                };
                let number = |r: Reg| step.before[usize::from(r.0)] == Kind::Scalar;
                match insn {
                    Insn::Alu { op, dst, src, .. } => {
                        let simple = !matches!(
                            op,
                            AluOp::SignedDiv | AluOp::SignedMod | AluOp::Div | AluOp::Mod
                        );
                        let right = match src {
                            Operand::Reg(r) => number(r),
                            Operand::Imm(_) => true,
                        };
                        let left = op == AluOp::Mov || number(dst);
                        (simple && left && right).then(|| self.read(id.0))
                    }
                    Insn::Neg { dst, .. } | Insn::ByteOrder { dst, .. } => {
                        number(dst).then(|| self.read(id.0))
                    }
                    Insn::SignExtend { src, .. } => number(src).then(|| self.read(id.0)),
                    Insn::Load { base, .. } => match step.access {
                        Some(Access::Value(o)) if self.maker.constant(o) => {
                            let base = self.places().register(step.frame, base);
                            let all = &self.values.uses[id.0];
                            let found = all.iter().find(|(p, _)| *p == base)?;
                            let address = self.values.origin(found.1);
                            matches!(address, Origin::Address(..)).then(|| vec![found.1])
                        }
                        _ => None,
                    },
                    _ => None,
                }
            }
            Origin::Join { .. } => {
                let (branch, one, other) = self.choice(v)?;
                let mut all = self.read(branch);
                all.extend([one, other]);
                Some(all)
            }
            Origin::Left { .. } => None,
        }
    }

    fn read(&self, at: usize) -> Vec<Value> {
        let all = self.values.uses[at].iter();
        all.map(|(_, v)| self.values.value(*v)).collect()
    }

    /// A join behind one branch: the branch, the value where its condition holds, and where it fails.
    fn choice(&self, v: Value) -> Option<(usize, Value, Value)> {
        let Origin::Join { block, .. } = *self.values.origin(v) else {
            return None;
        };
        let ways = self.values.joined.get(&self.values.value(v))?;
        let [(p, a), (q, b)] = ways.as_slice() else {
            return None;
        };
        if self.graph.cyclic[block] {
            return None;
        }
        let only = |x: usize| match self.graph.blocks.get(x)?.before.as_slice() {
            [one] if self.graph.blocks[x].next.len() == 1 => Some(*one),
            _ => None,
        };
        // The branch's block, and through which block each way leaves it.
        let (branch, first, second) = match (only(*p), only(*q)) {
            (Some(x), _) if x == *q => (*q, *p, block),
            (_, Some(y)) if y == *p => (*p, block, *q),
            (Some(x), Some(y)) if x == y => (x, *p, *q),
            _ => return None,
        };
        let at = self.graph.blocks.get(branch)?.to - 1;
        let step = &self.maker.flow.steps[at];
        let Op::Branch { target, insn } = step.op else {
            return None;
        };
        let Insn::Branch { left, right, .. } = insn else {
            return None;
        };
        let number = |r: Reg| step.before[usize::from(r.0)] == Kind::Scalar;
        let numbers = number(left)
            && match right {
                Operand::Reg(r) => number(r),
                Operand::Imm(_) => true,
            };
        let holds = self.graph.of[target.0]?;
        let both = step.outcomes.holds && step.outcomes.fails && first != second;
        if !numbers || !both || step.whole {
            return None;
        }
        match (first == holds, second == holds) {
            (true, false) => Some((at, *a, *b)),
            (false, true) => Some((at, *b, *a)),
            _ => None,
        }
    }

    /// The numbers that a join may be, by way; none if it may be something else.
    fn numbers(&self, v: Value) -> Option<(usize, Vec<u64>)> {
        let Origin::Join { block, .. } = *self.values.origin(v) else {
            return None;
        };
        if self.graph.cyclic[block] {
            return None;
        }
        let ways = self.values.joined.get(&self.values.value(v))?;
        let numbers = ways.iter().map(|(_, v)| match *self.values.origin(*v) {
            Origin::Constant(n) => Some(n),
            _ => None,
        });
        Some((block, numbers.collect::<Option<_>>()?))
    }

    /// Whether a frame's call is under way at the site.
    fn active(&self, frame: FrameId) -> bool {
        let frames = &self.maker.flow.frames;
        let mut at = self.maker.flow.steps.get(self.site).map(|s| s.frame);
        while let Some(here) = at {
            if here == frame {
                return true;
            }
            at = frames.get(here.0).and_then(|f| f.caller);
        }
        false
    }

    /// A value where the program comes to the site: in a register, in the stack, or kept.
    fn held(&self, v: Value) -> Option<Expr> {
        let v = self.values.value(v);
        let registers = self.maker.flow.frames.len() * millrace_object::insn::REGISTERS;
        // What a frame held that has returned is no longer there.
        let holds = |p: &usize| {
            self.state[*p] == v
                && match self.places().which(*p) {
                    Which::Register(frame, _) | Which::Stack(frame, _) => self.active(frame),
                    _ => false,
                }
        };
        if let Some(p) = (0..registers).find(holds)
            && let Which::Register(frame, reg) = self.places().which(p)
        {
            return match self.pointer(v, 0) {
                None => Some(Expr::Register(frame, reg)),
                Some(Kind::Packet | Kind::PacketEnd | Kind::PacketMeta) => {
                    Some(Expr::Pointer(frame, reg))
                }
                Some(_) => None,
            };
        }
        if self.pointer(v, 0).is_some() {
            return None;
        }
        if let Some(p) = self.places().all_stacks().find(holds)
            && self.values.bits(v) <= 0xff
            && let Which::Stack(frame, at) = self.places().which(p)
        {
            return Some(Expr::Stack(frame, at));
        }
        let byte = |at: u8| {
            self.places().all_stacks().find(|p| {
                let there = matches!(self.places().which(*p), Which::Stack(f, _) if self.active(f));
                there && matches!(*self.values.origin(self.state[*p]), Origin::Byte(of, i) if i == at && self.values.value(of) == v)
            })
        };
        let needed = self.values.bits(v) & self.demand.get(&v).copied().unwrap_or(u64::MAX);
        let mut all = Vec::new();
        for at in 0..8u8 {
            if needed >> (8 * u32::from(at)) == 0 {
                break;
            }
            if needed >> (8 * u32::from(at)) & 0xff == 0 {
                all.push(Expr::Number(0));
                continue;
            }
            match byte(at).map(|p| self.places().which(p)) {
                Some(Which::Stack(frame, offset)) => all.push(Expr::Stack(frame, offset)),
                _ => {
                    all.clear();
                    break;
                }
            }
        }
        if !all.is_empty() {
            return Some(Expr::Bytes(all));
        }
        match *self.values.origin(v) {
            Origin::Step(id)
                if self.acyclic(id.0)
                    && !self.behind[id.0]
                    && self.maker.flow.steps[id.0].after == Kind::Scalar =>
            {
                Some(Expr::Kept(id))
            }
            _ => None,
        }
    }

    /// The joins of a block that are numbers, with the ways told apart by one of them.
    fn selector(&self, block: usize, all: &[Value]) -> Option<(Value, Vec<usize>)> {
        let tuples: Vec<Vec<u64>> = {
            let ways = all
                .iter()
                .filter_map(|v| Some(self.numbers(*v)?.1.len()))
                .max()?;
            (0..ways)
                .map(|w| {
                    let of = |v: &Value| self.numbers(*v).and_then(|(_, n)| n.get(w).copied());
                    all.iter().filter_map(of).collect()
                })
                .collect()
        };
        debug_assert!(
            all.iter()
                .all(|v| self.numbers(*v).is_some_and(|(b, _)| b == block))
        );
        let mut distinct: Vec<usize> = Vec::new();
        for (w, tuple) in tuples.iter().enumerate() {
            if !distinct.iter().any(|d| tuples[*d] == *tuple) {
                distinct.push(w);
            }
        }
        let tells = |v: &&Value| {
            let Some((_, numbers)) = self.numbers(**v) else {
                return false;
            };
            let mut seen: Vec<u64> = distinct
                .iter()
                .filter_map(|w| numbers.get(*w).copied())
                .collect();
            seen.sort_unstable();
            seen.dedup();
            seen.len() == distinct.len() && self.held(**v).is_some()
        };
        all.iter().find(tells).map(|v| (*v, distinct))
    }

    fn network(&mut self, sinks: &[(Place, Value)]) -> (Vec<Vertex>, Network) {
        // All that may be behind the cut.
        let mut seen: BTreeMap<Value, ()> = BTreeMap::new();
        let mut pending: Vec<Value> = sinks.iter().map(|(_, v)| self.values.value(*v)).collect();
        while let Some(v) = pending.pop() {
            if seen.insert(v, ()).is_none() {
                pending.extend(
                    self.parts(v)
                        .into_iter()
                        .flatten()
                        .map(|v| self.values.value(v)),
                );
            }
        }
        let mut joins: BTreeMap<usize, Vec<Value>> = BTreeMap::new();
        for &v in seen.keys() {
            if let Some((block, _)) = self.numbers(v) {
                joins.entry(block).or_default().push(v);
            }
        }
        self.demands(sinks, seen.keys().copied().collect());
        let selectors: BTreeMap<usize, Vec<usize>> = (joins.iter())
            .filter_map(|(b, all)| Some((*b, self.selector(*b, all)?.1)))
            .collect();
        let mut vertices: Vec<Vertex> = seen.keys().map(|v| Vertex::Value(*v)).collect();
        vertices.extend(selectors.keys().map(|b| Vertex::Selector(*b)));
        let index: BTreeMap<Vertex, usize> = (vertices.iter().enumerate())
            .map(|(i, v)| (*v, i))
            .collect();
        let mut network = Network::default();
        for (i, vertex) in vertices.iter().enumerate() {
            match *vertex {
                Vertex::Selector(block) => {
                    let ways = selectors[&block].len().max(1);
                    network
                        .weights
                        .push(SCALE * (usize::BITS - (ways - 1).leading_zeros()) + 1);
                    network.sources.push(i);
                }
                Vertex::Value(v) => {
                    let weight = self.weight(v);
                    let chosen = self
                        .numbers(v)
                        .map(|(b, _)| b)
                        .filter(|b| selectors.contains_key(b));
                    let held = matches!(self.values.origin(v), Origin::Constant(_))
                        || self.held(v).is_some();
                    // Of equal cuts the one with the fewest fields.
                    network.weights.push(match (held, weight) {
                        (false, _) => NEVER,
                        (true, 0) => 0,
                        (true, bits) => SCALE * bits + 1,
                    });
                    match (chosen, self.parts(v)) {
                        (Some(block), _) => {
                            network.edges.push((index[&Vertex::Selector(block)], i));
                        }
                        (None, Some(parts)) => network.edges.extend(parts.iter().filter_map(|p| {
                            Some((*index.get(&Vertex::Value(self.values.value(*p)))?, i))
                        })),
                        (None, None) => network.sources.push(i),
                    }
                }
            }
        }
        let needed = sinks
            .iter()
            .map(|(_, v)| index[&Vertex::Value(self.values.value(*v))]);
        network.sinks = needed.collect();
        network.sinks.sort_unstable();
        network.sinks.dedup();
        (vertices, network)
    }

    fn weight(&self, v: Value) -> u32 {
        let demanded = self.demand.get(&v).copied().unwrap_or(0);
        (self.values.bits(v) & demanded).count_ones()
    }

    /// Bits of each value that what is needed depends on: backwards, users before what they use.
    fn demands(&mut self, sinks: &[(Place, Value)], mut all: Vec<Value>) {
        self.demand.clear();
        for &(place, v) in sinks {
            let bits = match self.places().which(place) {
                Which::Register(..) => u64::MAX,
                _ => 0xff,
            };
            *self.demand.entry(self.values.value(v)).or_default() |= bits;
        }
        // A value is made behind what it is computed from, joins of loops excepted, which are no parts.
        all.sort_unstable_by(|a, b| b.cmp(a));
        for v in all {
            let bits = self.demand.get(&v).copied().unwrap_or(0);
            let parts: Vec<(Value, u64)> = match self.values.origin(v).clone() {
                Origin::Byte(of, at) => vec![(of, (bits & 0xff) << (8 * u32::from(at)))],
                Origin::Bytes(all) => (0u32..)
                    .zip(all)
                    .map(|(at, v)| (v, bits.checked_shr(8 * at).unwrap_or(0) & 0xff))
                    .collect(),
                Origin::Step(id) => {
                    let part = self.demanded(id.0, bits);
                    self.parts(v)
                        .unwrap_or_default()
                        .into_iter()
                        .map(|p| (p, part))
                        .collect()
                }
                Origin::Join { .. } => match self.choice(v) {
                    Some((branch, a, b)) => {
                        let mut all: Vec<(Value, u64)> = self
                            .read(branch)
                            .into_iter()
                            .map(|v| (v, u64::MAX))
                            .collect();
                        all.extend([(a, bits), (b, bits)]);
                        all
                    }
                    None => Vec::new(),
                },
                _ => Vec::new(),
            };
            for (part, bits) in parts {
                *self.demand.entry(self.values.value(part)).or_default() |= bits;
            }
        }
    }

    /// Bits of the operands of a step on which these bits of its result depend.
    fn demanded(&self, at: usize, bits: u64) -> u64 {
        let Op::Plain(insn) = self.maker.flow.steps[at].op else {
            return u64::MAX;
        };
        let up_to = |bits: u64| match bits {
            0 => 0,
            _ => u64::MAX >> bits.leading_zeros(),
        };
        match insn {
            Insn::Alu { op, width, src, .. } => {
                let all = if width == Width::W32 {
                    u64::from(u32::MAX)
                } else {
                    u64::MAX
                };
                let bits = bits & all;
                match (op, src) {
                    (AluOp::And, Operand::Imm(n)) => bits & n as u64,
                    (AluOp::Mov | AluOp::Or | AluOp::Xor | AluOp::And, _) => bits,
                    (AluOp::Add | AluOp::Sub | AluOp::Mul, _) => up_to(bits),
                    (AluOp::Lsh, Operand::Imm(n)) => {
                        bits >> (n as u32 & if width == Width::W32 { 31 } else { 63 })
                    }
                    (AluOp::Rsh, Operand::Imm(n)) => {
                        (bits << (n as u32 & if width == Width::W32 { 31 } else { 63 })) & all
                    }
                    _ => all,
                }
            }
            Insn::ByteOrder { order, bits: n, .. } => match order {
                millrace_object::insn::ByteOrder::ToLittle => bits & (u64::MAX >> (64 - n)),
                _ => (bits & (u64::MAX >> (64 - n))).swap_bytes() >> (64 - n),
            },
            _ => u64::MAX,
        }
    }

    /// A field that carries a vertex.
    fn field(&self, vertex: Vertex, sinks: &[(Place, Value)]) -> Option<Draft> {
        match vertex {
            Vertex::Value(v) => {
                // So that another load of the same field is the same field of the row.
                let again = match *self.values.origin(v) {
                    Origin::Step(id) => match (
                        self.maker.flow.steps[id.0].op,
                        self.maker.border(self.values, v),
                    ) {
                        (Op::Plain(Insn::Load { size, .. }), Some(offset)) => {
                            Some(Expr::Context(offset, size))
                        }
                        _ => None,
                    },
                    _ => None,
                };
                let from = again.or_else(|| self.held(v))?;
                let mask = self.values.bits(v) & self.demand.get(&v).copied().unwrap_or(0);
                let step = self.maker.flow.steps.get(self.site)?;
                let at_key = match step.op {
                    Op::Plain(Insn::Call { helper }) => helper::by_number(helper)
                        .and_then(|h| h.key_argument())
                        .and_then(|a| step.args.get(a))
                        .and_then(|fact| match *fact {
                            millrace_check::facts::ArgFact::Memory {
                                access: Access::Stack { frame, from, to },
                                ..
                            } => Some((frame, from, to)),
                            _ => None,
                        }),
                    _ => None,
                };
                let key = sinks.iter().find_map(|(p, s)| match self.places().which(*p) {
                    Which::Stack(f, at) => {
                        let (frame, from, to) = at_key?;
                        let own = *s == v
                            || matches!(*self.values.origin(*s), Origin::Byte(of, _) if self.values.value(of) == v);
                        (own && f == frame && (from..to).contains(&at)).then_some(at)
                    }
                    _ => None,
                });
                Some(Draft {
                    from,
                    mask,
                    name: self.name(v, 0),
                    step: self.line(v, 0),
                    key,
                })
            }
            Vertex::Selector(block) => {
                let all: Vec<Value> = (self.values.joined.keys().copied())
                    .filter(|v| self.demand.contains_key(v))
                    .filter(|v| self.numbers(*v).is_some_and(|(b, _)| b == block))
                    .collect();
                let (of, ways) = self.selector(block, &all)?;
                let numbers = self.numbers(of)?.1;
                let list = ways
                    .iter()
                    .filter_map(|w| numbers.get(*w).copied())
                    .collect();
                let bits = usize::BITS - (ways.len() - 1).leading_zeros();
                let decider = self.graph.deciders
                    [self.graph.blocks[block].before.first().copied()?]
                .last()
                .map_or(self.graph.blocks[block].from, |b| {
                    self.graph.blocks[*b].to - 1
                });
                Some(Draft {
                    from: Expr::Index(Box::new(self.held(of)?), list),
                    mask: (1 << bits) - 1,
                    name: format!("which of {} ways", ways.len()),
                    step: StepId(decider),
                    key: None,
                })
            }
        }
    }

    /// A value from a row.
    fn decoded(&mut self, v: Value, cut: &BTreeMap<Vertex, Expr>) -> Expr {
        let v = self.values.value(v);
        if let Some(field) = cut.get(&Vertex::Value(v)) {
            return field.clone();
        }
        if let Some((block, numbers)) = self.numbers(v)
            && let Some(field) = cut.get(&Vertex::Selector(block))
        {
            let all: Vec<Value> = (self.values.joined.keys().copied())
                .filter(|v| self.demand.contains_key(v))
                .filter(|v| self.numbers(*v).is_some_and(|(b, _)| b == block))
                .collect();
            let ways = self.selector(block, &all).map(|s| s.1).unwrap_or_default();
            let list = ways
                .iter()
                .filter_map(|w| numbers.get(*w).copied())
                .collect();
            return Expr::Pick(Box::new(field.clone()), list);
        }
        match self.values.origin(v).clone() {
            Origin::Constant(n) => Expr::Number(n),
            Origin::Address(o, at) => Expr::Address(o, at),
            Origin::Byte(of, at) => match self.decoded(of, cut) {
                Expr::Number(n) => Expr::Number(n >> (8 * u32::from(at)) & 0xff),
                of => Expr::Byte(Box::new(of), at),
            },
            Origin::Bytes(all) => {
                Expr::Bytes(all.into_iter().map(|v| self.decoded(v, cut)).collect())
            }
            Origin::Step(_) if self.maker.is_time(self.values, v) => {
                self.time = true;
                Expr::Time
            }
            Origin::Step(id) if self.parts(v).is_some() => self
                .computed(id.0, &mut |row, of| row.decoded(of, cut).into())
                .unwrap_or(Expr::Number(0)),
            Origin::Join { .. } => match self.choice(v) {
                Some((branch, a, b)) => {
                    let holds = self.decoded(a, cut);
                    let fails = self.decoded(b, cut);
                    let condition =
                        self.computed(branch, &mut |row, of| row.decoded(of, cut).into());
                    let condition = condition.unwrap_or(Expr::Number(0));
                    Expr::Select(Box::new(condition), Box::new(holds), Box::new(fails))
                }
                None => self.nothing(v),
            },
            // Nothing reads what nothing wrote.
            Origin::Start(_) => Expr::Number(0),
            Origin::Left { .. } | Origin::Step(_) => self.nothing(v),
        }
    }

    /// A value of which no bit is needed; of another one the cut is no cut.
    fn nothing(&mut self, v: Value) -> Expr {
        self.lost |= self.weight(v) > 0;
        Expr::Number(0)
    }

    /// The result of a step as an expression over its operands.
    fn computed(
        &mut self,
        at: usize,
        operand: &mut dyn FnMut(&mut Self, Value) -> Option<Expr>,
    ) -> Option<Expr> {
        let maker = self.maker;
        let step = &maker.flow.steps[at];
        let frame = step.frame;
        let of = |row: &Self, r: Reg| {
            let place = row.places().register(frame, r);
            let found = row.values.uses[at].iter().find(|(p, _)| *p == place);
            found.map(|(_, v)| row.values.value(*v))
        };
        let mut right = |row: &mut Self, src: Operand| match src {
            Operand::Imm(n) => Some(Expr::Number(n as u64)),
            Operand::Reg(r) => {
                let v = of(row, r)?;
                operand(row, v)
            }
        };
        let (Op::Plain(insn) | Op::Branch { insn, .. }) = step.op else {
            return None;
        };
        let width_of = |w: Width| if step.whole { Width::W64 } else { w };
        Some(match insn {
            Insn::Alu {
                op,
                width,
                dst,
                src,
                ..
            } => {
                let b = right(self, src)?;
                let a = match op {
                    AluOp::Mov => Expr::Number(0),
                    _ => right(self, Operand::Reg(dst))?,
                };
                Expr::Alu(op, width_of(width), Box::new(a), Box::new(b))
            }
            Insn::Neg { width, dst } => Expr::Neg(width, Box::new(right(self, Operand::Reg(dst))?)),
            Insn::SignExtend {
                width, from, src, ..
            } => Expr::Extend(width, from, Box::new(right(self, Operand::Reg(src))?)),
            Insn::ByteOrder { order, bits, dst } => {
                Expr::Order(order, bits, Box::new(right(self, Operand::Reg(dst))?))
            }
            Insn::Branch {
                condition,
                width,
                left,
                right: src,
                ..
            } => {
                let b = right(self, src)?;
                let a = right(self, Operand::Reg(left))?;
                Expr::Compare(condition, width_of(width), Box::new(a), Box::new(b))
            }
            Insn::Load {
                size,
                signed,
                base,
                offset,
                ..
            } => {
                let base = right(self, Operand::Reg(base))?;
                let address = Expr::Alu(
                    AluOp::Add,
                    Width::W64,
                    Box::new(base),
                    Box::new(Expr::Number(i64::from(offset) as u64)),
                );
                match step.access {
                    Some(Access::Packet) => Expr::Packet(Box::new(address), size, signed),
                    Some(Access::Value(o)) if self.maker.constant(o) => {
                        Expr::Constant(Box::new(address), size, signed)
                    }
                    _ => return None,
                }
            }
            _ => return None,
        })
    }

    /// What a step behind the site reads of the packet, as it can be read before it, and the bits that it may have.
    fn leaf(&mut self, at: usize) -> Result<(Expr, u64), Obstacle> {
        let (id, maker) = (StepId(at), self.maker);
        let step = &maker.flow.steps[at];
        if let (Op::Plain(Insn::Load { size, .. }), Some(Access::Context { offset })) =
            (step.op, step.access)
        {
            let mask = u64::MAX >> (64 - 8 * size.bytes());
            return Ok((Expr::Context(offset, size), mask));
        }
        let expr = match step.op {
            Op::Plain(Insn::Call { .. }) => return Err((id, CALL)),
            _ => {
                self.settled(at)?;
                self.computed(at, &mut |row, of| row.hoisted(of, 0))
            }
        };
        let expr = expr.ok_or((id, HOIST))?;
        let mask = match step.op {
            Op::Branch { .. } => 1,
            Op::Plain(Insn::Load { size, signed, .. }) if !signed => {
                u64::MAX >> (64 - 8 * size.bytes())
            }
            Op::Plain(insn) => {
                let dst = millrace_check::facts::written(&insn);
                let own = (self.values.origins.iter())
                    .position(|o| *o == Origin::Step(id))
                    .filter(|_| dst.is_some());
                own.map_or(u64::MAX, |v| self.values.may[v])
            }
            _ => u64::MAX,
        };
        Ok((expr, mask))
    }

    /// Whether the packet's bytes and borders are at a step what they are at the site.
    fn settled(&self, at: usize) -> Result<(), Obstacle> {
        let (packet, borders) = (self.places().packet(), self.places().borders());
        for &(p, v) in &self.values.uses[at] {
            let v = self.values.value(v);
            if (p == packet || p == borders) && v != self.state[p] {
                return Err((StepId(at), WRITTEN));
            }
        }
        Ok(())
    }

    /// A value behind the site from what is known there.
    fn hoisted(&mut self, v: Value, depth: u32) -> Option<Expr> {
        let v = self.values.value(v);
        if depth > 64 {
            return None;
        }
        match *self.values.origin(v) {
            Origin::Constant(n) => return Some(Expr::Number(n)),
            Origin::Address(o, at) => return Some(Expr::Address(o, at)),
            _ => {}
        }
        let before = match *self.values.origin(v) {
            Origin::Step(id) => !self.behind[id.0],
            Origin::Join { block, .. } => !self.behind[self.graph.blocks[block].from],
            _ => false,
        };
        if before && let Some(held) = self.held(v) {
            return Some(held);
        }
        match self.values.origin(v).clone() {
            Origin::Step(id) => {
                let maker = self.maker;
                let step = &maker.flow.steps[id.0];
                if let (Op::Plain(Insn::Load { size, .. }), Some(Access::Context { offset })) =
                    (step.op, step.access)
                {
                    self.settled(id.0).ok()?;
                    return Some(Expr::Context(offset, size));
                }
                if self.effects[id.0] != Effect::Free {
                    return None;
                }
                if let Op::Plain(Insn::Alu { op, .. }) = step.op
                    && matches!(
                        op,
                        AluOp::Div | AluOp::Mod | AluOp::SignedDiv | AluOp::SignedMod
                    )
                {
                    return None;
                }
                self.settled(id.0).ok()?;
                self.computed(id.0, &mut |row, of| row.hoisted(of, depth + 1))
            }
            Origin::Byte(of, at) => Some(Expr::Byte(Box::new(self.hoisted(of, depth + 1)?), at)),
            Origin::Bytes(all) => {
                let all = all.into_iter().map(|v| self.hoisted(v, depth + 1));
                Some(Expr::Bytes(all.collect::<Option<_>>()?))
            }
            _ => None,
        }
    }

    /// The step that a value's line is that of.
    fn line(&self, v: Value, depth: u32) -> StepId {
        match self.values.origin(v) {
            Origin::Step(id) => *id,
            Origin::Left { step, .. } => *step,
            Origin::Byte(of, _) if depth < 8 => self.line(*of, depth + 1),
            Origin::Bytes(all) if depth < 8 => all
                .first()
                .map_or(StepId(self.site), |v| self.line(*v, depth + 1)),
            Origin::Join { .. } if depth < 8 => {
                let all = self.values.joined.get(&self.values.value(v));
                let known = |v: &Value| {
                    !matches!(
                        self.values.origin(*v),
                        Origin::Constant(_) | Origin::Start(_)
                    )
                };
                all.into_iter()
                    .flatten()
                    .find(|(_, v)| known(v))
                    .map_or(StepId(self.site), |(_, v)| self.line(*v, depth + 1))
            }
            _ => StepId(self.site),
        }
    }

    fn name(&self, v: Value, depth: u32) -> String {
        match self.values.origin(v) {
            Origin::Constant(n) => n.to_string(),
            Origin::Step(id) => self.step_name(id.0),
            Origin::Byte(of, at) => format!("byte {at} of {}", self.name(*of, depth + 1)),
            Origin::Join { .. } if depth < 2 => {
                let all = self.values.joined.get(&self.values.value(v));
                let mut names: Vec<String> = (all.into_iter().flatten())
                    .map(|(_, v)| self.name(*v, depth + 1))
                    .collect();
                names.dedup();
                names.join(" or ")
            }
            Origin::Join { .. } => "a value of several ways".into(),
            Origin::Bytes(_) => "bytes".into(),
            Origin::Address(..) | Origin::Start(_) | Origin::Left { .. } => "memory".into(),
        }
    }

    fn step_name(&self, at: usize) -> String {
        let step = &self.maker.flow.steps[at];
        match (step.op, step.access) {
            (
                Op::Plain(Insn::Load {
                    size, base, offset, ..
                }),
                Some(Access::Packet),
            ) => {
                let place = self.places().register(step.frame, base);
                let of = self.values.uses[at].iter().find(|(p, _)| *p == place);
                match of.and_then(|(_, v)| self.start_distance(*v, 0)) {
                    Some(from) => {
                        let from = from + i64::from(offset);
                        format!("packet[{from}..{}]", from + i64::from(size.bytes()))
                    }
                    None => format!("packet[… {offset:+}], {} B", size.bytes()),
                }
            }
            (Op::Plain(Insn::Load { .. }), Some(Access::Context { offset })) => match offset {
                12 => "port".into(),
                16 => "queue".into(),
                _ => format!("context[{offset}]"),
            },
            (Op::Branch { insn, .. }, _) => insn.to_string(),
            (Op::Plain(Insn::Alu { op: AluOp::Sub, .. }), _)
                if self.values.uses[at].len() == 2
                    && self.values.uses[at]
                        .iter()
                        .all(|(_, v)| self.maker.border(self.values, *v).is_some()) =>
            {
                "length".into()
            }
            (Op::Plain(Insn::Call { helper }), _) => {
                helper::by_number(helper).map_or_else(|| "call".into(), |h| h.name.into())
            }
            (Op::Plain(insn), _) => {
                let of: Vec<String> = self.values.uses[at]
                    .iter()
                    .take(2)
                    .map(|(_, v)| match self.values.origin(*v) {
                        Origin::Step(id) if id.0 < at => self.step_name_short(id.0),
                        _ => "…".into(),
                    })
                    .collect();
                match of.iter().find(|o| *o != "…") {
                    Some(of) => format!("{insn} ({of})"),
                    None => insn.to_string(),
                }
            }
            _ => "value".into(),
        }
    }

    fn step_name_short(&self, at: usize) -> String {
        let step = &self.maker.flow.steps[at];
        match (step.op, step.access) {
            (Op::Plain(Insn::Load { .. }), Some(Access::Packet)) => self.step_name(at),
            _ => "…".into(),
        }
    }

    /// Distance of an address from the packet's first byte.
    fn start_distance(&self, v: Value, depth: u32) -> Option<i64> {
        if depth > 64 {
            return None;
        }
        if self.maker.border(self.values, v) == Some(0) {
            return Some(0);
        }
        let Origin::Step(id) = *self.values.origin(v) else {
            return None;
        };
        let step = &self.maker.flow.steps[id.0];
        match step.op {
            Op::Plain(Insn::Alu {
                op: AluOp::Add,
                src: Operand::Imm(n),
                ..
            }) => {
                let (_, of) = self.values.uses[id.0].first()?;
                Some(self.start_distance(*of, depth + 1)? + n)
            }
            _ => None,
        }
    }
}

/// Fields of bytes that lie side by side in the stack become one, of up to 8 bytes; and where each vertex is then.
fn side_by_side(mut drafts: Vec<(Vertex, Draft)>) -> (Vec<Draft>, BTreeMap<Vertex, Expr>) {
    let byte = |d: &Draft| match d.from {
        Expr::Stack(frame, at) if d.mask == 0xff => Some((frame, at)),
        _ => None,
    };
    drafts.sort_by_key(|(_, d)| byte(d).map_or((1, FrameId(0), 0), |(f, at)| (0, f, at)));
    let (mut fields, mut number) = (Vec::<Draft>::new(), BTreeMap::new());
    let mut last: Option<(FrameId, i32, u8)> = None;
    for (vertex, draft) in drafts {
        let here = byte(&draft);
        if let (Some((frame, at)), Some((f, before, count))) = (here, last)
            && (frame, at) == (f, before + 1)
            && count < 8
            && (count != 4 || draft.line_of(&fields))
            && let Some(field) = fields.last_mut()
        {
            field.mask |= 0xff << (8 * u32::from(count));
            let more = Expr::Stack(frame, at);
            match &mut field.from {
                Expr::Bytes(all) => all.push(more),
                one => *one = Expr::Bytes(vec![one.clone(), more]),
            }
            let whole = Expr::Field(fields.len() - 1);
            number.insert(vertex, Expr::Byte(Box::new(whole), count));
            last = Some((frame, at, count + 1));
            continue;
        }
        let whole = Expr::Field(fields.len());
        let of = match here {
            Some(_) => Expr::Byte(Box::new(whole), 0),
            None => whole,
        };
        number.insert(vertex, of);
        last = here.map(|(frame, at)| (frame, at, 1));
        fields.push(draft);
    }
    for field in &mut fields {
        if matches!(field.from, Expr::Bytes(_)) {
            field.name = field.name.replace("byte 0 of ", "");
        }
    }
    (fields, number)
}

/// Bytes side by side that are those of one number are set together.
fn joined(sets: &[(Set, Expr)]) -> Vec<(Set, Expr)> {
    let byte = |at: usize| match sets.get(at) {
        Some((Set::Stack(frame, from, 1), e)) => Some((*frame, *from, e)),
        _ => None,
    };
    let (mut out, mut at) = (Vec::new(), 0);
    while let Some((set, expr)) = sets.get(at) {
        let run = byte(at).and_then(|(frame, from, first)| {
            [8usize, 4, 2].into_iter().find_map(|n| {
                let all: Vec<&Expr> = (0..n)
                    .map_while(|i| byte(at + i).filter(|b| (b.0, b.1) == (frame, from + i as i32)))
                    .map(|b| b.2)
                    .collect();
                if all.len() < n {
                    return None;
                }
                let whole = match first {
                    Expr::Byte(of, 0) => {
                        let same = (0u8..)
                            .zip(&all)
                            .all(|(i, e)| matches!(e, Expr::Byte(o, j) if *j == i && o == of));
                        same.then(|| (**of).clone())
                    }
                    Expr::Number(_) => {
                        let numbers = (0u32..).zip(&all).map(|(i, e)| match e {
                            Expr::Number(v) => Some((v & 0xff) << (8 * i)),
                            _ => None,
                        });
                        numbers.sum::<Option<u64>>().map(Expr::Number)
                    }
                    _ => None,
                };
                whole.map(|e| ((Set::Stack(frame, from, n as u32), e), n))
            })
        });
        match run {
            Some((set, n)) => {
                out.push(set);
                at += n;
            }
            None => {
                out.push((*set, expr.clone()));
                at += 1;
            }
        }
    }
    out
}

impl Draft {
    /// Whether it is for the same step as the last of these.
    fn line_of(&self, fields: &[Draft]) -> bool {
        fields.last().is_some_and(|f| f.step == self.step)
    }
}

/// Whether a step reads what only the packet's own worker has: bytes and borders of the packet, fields of its context.
#[must_use]
pub fn is_leaf(maker: &Maker, at: usize) -> bool {
    let Some(step) = maker.flow.steps.get(at) else {
        return false;
    };
    let packet = |r: Reg| {
        matches!(
            step.before[usize::from(r.0)],
            Kind::Packet | Kind::PacketEnd | Kind::PacketMeta
        )
    };
    match step.op {
        Op::Plain(Insn::Load { .. }) => match step.access {
            Some(Access::Packet) => true,
            // Time stands in the row, addresses are read by leaves only.
            Some(Access::Context { offset }) => {
                step.after == Kind::Scalar
                    && !(offset == 24
                        && maker.program.dialect == millrace_object::program::Dialect::Handlers)
            }
            _ => false,
        },
        Op::Plain(insn @ Insn::Alu { dst, op, .. }) => {
            let right = crate::needs::second(&insn);
            step.after == Kind::Scalar
                && (op != AluOp::Mov && packet(dst) || right.is_some_and(packet))
        }
        Op::Branch { insn, .. } => match insn {
            Insn::Branch { left, .. } => {
                packet(left) || crate::needs::second(&insn).is_some_and(packet)
            }
            _ => false,
        },
        Op::Plain(Insn::Call { helper }) => {
            let reads = helper::by_number(helper)
                .is_some_and(|h| !h.takes_object() && h.args.contains(&helper::Arg::Context));
            let memory = step.args.iter().any(|a| {
                matches!(
                    a,
                    millrace_check::facts::ArgFact::Memory {
                        access: Access::Packet,
                        ..
                    }
                )
            });
            reads || memory
        }
        _ => false,
    }
}
