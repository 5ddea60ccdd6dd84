//! Values and where they come from: a flow in single static assignment form, over registers, bytes of the stack and the
//! packet as a whole.

mod step;

use std::collections::{BTreeMap, HashMap};

use millrace_check::facts::{Flow, Kind, StepId};
use millrace_object::Program;
use millrace_object::program::ObjectId;

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

/// Whether a register of this kind is written as an address where it is used, so that no place holds it. That of a function is
/// not: emitted code has its number in the register.
fn is_address(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::Context
            | Kind::Object(_)
            | Kind::Stack {
                offset: Some(_),
                ..
            }
    )
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
