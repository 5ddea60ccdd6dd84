//! The flow network that is cut for a row, and the bits that are demanded of each value.

use std::collections::BTreeMap;

use millrace_check::facts::Op;
use millrace_object::insn::{AluOp, Insn, Operand, Width};

use crate::cut::{NEVER, Network};
use crate::places::{Place, Which};
use crate::values::{Origin, Value};

use super::{Row, SCALE, Vertex};

impl Row<'_> {
    pub(super) fn network(&mut self, sinks: &[(Place, Value)]) -> (Vec<Vertex>, Network) {
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

    pub(super) fn weight(&self, v: Value) -> u32 {
        let demanded = self.demand.get(&v).copied().unwrap_or(0);
        (self.values.bits(v) & demanded).count_ones()
    }

    /// Bits of each value that what is needed depends on: backwards, users before what they use.
    pub(super) fn demands(&mut self, sinks: &[(Place, Value)], mut all: Vec<Value>) {
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
    pub(super) fn demanded(&self, at: usize, bits: u64) -> u64 {
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
}
