//! The steps of `extract`, run over gates.

use std::collections::BTreeMap;

use millrace_check::facts::{Flow, FrameId, Op, Step, StepId};
use millrace_object::Program;
use millrace_object::insn::{Insn, Operand, Reg};
use millrace_object::program::ObjectId;

use super::gate::Wire;
use super::gates::Gates;
use crate::graph::Graph;
use crate::{History, Part, Refusal};

/// Where the packet lies: an address of 32 bits that is not null. No number depends on which.
pub(super) const BASE: u64 = 1 << 20;

/// How many iterations of loops are laid out one behind the other.
const MOST_ITERATIONS: usize = 32;
/// The most gates that are made.
const MOST_GATES: usize = 20_000;
const LOOP: &str = "a loop before the first access to state that has no bound, or more than 32 iterations: hardware has no loops";

/// What comes of a walk.
pub struct Made {
    pub gates: Gates,
    pub touch: Wire,
    pub row: Vec<Wire>,
}

/// What a register holds.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Value {
    /// a number, or an address in the packet, from [`BASE`] on
    Number(Wire),
    /// an address of a stack
    Stack(FrameId, i32),
    /// an address in the value of a section of variables
    Object(ObjectId, u64),
    Context,
    /// something that nothing may depend on
    Other,
}

/// A byte of a stack.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Cell {
    Byte(Wire),
    /// a byte of an address
    Of(Value, u32),
}

#[derive(Clone, Default)]
pub(super) struct State {
    pub registers: BTreeMap<(FrameId, Reg), Value>,
    pub stack: BTreeMap<(FrameId, i32), Cell>,
    pub kept: BTreeMap<StepId, Wire>,
    /// bytes that were written, by offset
    pub packet: BTreeMap<u64, Wire>,
}

/// A way to a step: the conditions that have to hold, and what places hold then.
struct Way {
    conditions: Vec<Wire>,
    state: State,
}

pub(super) struct Walk<'a> {
    pub program: &'a Program,
    pub flow: &'a Flow,
    pub part: &'a Part,
    pub gates: Gates,
    /// of the step at hand, or an obstacle that was met in it
    pub wrong: Option<String>,
}

/// Runs the steps.
pub fn walk(
    program: &Program,
    flow: &Flow,
    part: &Part,
    history: &History,
) -> Result<Made, Refusal> {
    let mut walk = Walk {
        program,
        flow,
        part,
        gates: Gates::default(),
        wrong: None,
    };
    let graph = Graph::of(flow);
    let mut place = vec![usize::MAX; graph.blocks.len()];
    for (at, block) in graph.order.iter().enumerate() {
        place[*block] = at;
    }
    // Steps in an order in which all ways to one come before it.
    let key = |at: usize| {
        let block = graph.of.get(at).copied().flatten();
        block.map(|b| (place[b], at))
    };
    let mut state = State::default();
    state.registers.insert((FrameId(0), Reg(1)), Value::Context);
    state
        .registers
        .insert((FrameId(0), Reg(10)), Value::Stack(FrameId(0), 0));
    let first = Way {
        conditions: Vec::new(),
        state,
    };
    // A loop is unrolled: each iteration comes behind all of the one before, and ways that leave it in different ones do not
    // meet again.
    let mut pending: BTreeMap<(usize, (usize, usize)), Vec<Way>> = BTreeMap::new();
    pending.entry((0, (0, 0))).or_default().push(first);
    let mut touch = walk.gates.number(0);
    let zero = walk.gates.number(0);
    // Without a row nothing looks at it, so that the first site's is the row of all.
    let mut row: Option<Vec<Wire>> = None;
    while let Some(((iteration, now), ways)) = pending.pop_first() {
        let at = now.1;
        if walk.gates.count() > MOST_GATES {
            return Err(walk.refusal(at, "the computation of a row is too large for a circuit"));
        }
        let way = walk.met(ways);
        if let Some(number) = part.sites.iter().position(|s| s.step.0 == at) {
            let all = walk.all(&way.conditions);
            let site = &part.sites[number];
            let bytes = walk.fill(history, number, site, &way.state);
            row = Some(match row {
                None => bytes,
                Some(row) => {
                    let each = row.into_iter().zip(bytes);
                    each.map(|(to, from)| walk.gates.select(all, from, to))
                        .collect()
                }
            });
            touch = walk.gates.or(touch, all);
            walk.answer(at)?;
            continue;
        }
        let next = walk.step(at, way);
        walk.answer(at)?;
        for (to, way) in next {
            match key(to) {
                Some(then) if then > now => {
                    pending.entry((iteration, then)).or_default().push(way);
                }
                Some(_) if iteration >= MOST_ITERATIONS => {
                    return Err(walk.refusal(at, LOOP));
                }
                Some(then) => pending.entry((iteration + 1, then)).or_default().push(way),
                None => {}
            }
        }
    }
    let gates = walk.gates;
    let row = row.unwrap_or_else(|| vec![zero; history.bytes as usize]);
    Ok(Made { gates, touch, row })
}

impl Walk<'_> {
    fn refusal(&self, at: usize, reason: &str) -> Refusal {
        Refusal {
            object: None,
            line: self.flow.steps.get(at).and_then(|s| s.line.clone()),
            reason: reason.into(),
        }
    }

    fn answer(&mut self, at: usize) -> Result<(), Refusal> {
        match self.wrong.take() {
            Some(reason) => Err(self.refusal(at, &reason)),
            None => Ok(()),
        }
    }

    /// What is met in place of a number.
    pub(super) fn obstacle(&mut self, what: impl Into<String>) -> Wire {
        self.wrong.get_or_insert(what.into());
        self.gates.number(0)
    }

    fn all(&mut self, conditions: &[Wire]) -> Wire {
        let mut all = self.gates.number(1);
        for c in conditions {
            all = self.gates.and(*c, all);
        }
        all
    }

    /// One way where several meet.
    fn met(&mut self, mut ways: Vec<Way>) -> Way {
        let Some(mut way) = ways.pop() else {
            return Way {
                conditions: Vec::new(),
                state: State::default(),
            };
        };
        while let Some(other) = ways.pop() {
            let pairs = way.conditions.iter().zip(&other.conditions);
            let common = pairs.take_while(|(a, b)| a == b).count();
            let (first, second) = (
                self.all(&way.conditions[common..]),
                self.all(&other.conditions[common..]),
            );
            let state = self.joined(first, way.state, &other.state);
            let either = self.gates.or(first, second);
            way.conditions.truncate(common);
            if self.gates.constant(either) != Some(1) {
                way.conditions.push(either);
            }
            way.state = state;
        }
        way
    }

    /// Places as in `a` where `c` holds, else as in `b`.
    fn joined(&mut self, c: Wire, a: State, b: &State) -> State {
        let mut out = State::default();
        for (place, x) in a.registers {
            let Some(y) = b.registers.get(&place) else {
                continue;
            };
            let value = match (x, y) {
                (Value::Number(x), Value::Number(y)) => Value::Number(self.gates.select(c, x, *y)),
                (x, y) if x == *y => x,
                _ => Value::Other,
            };
            out.registers.insert(place, value);
        }
        for (place, x) in a.stack {
            let cell = match (x, b.stack.get(&place)) {
                (Cell::Byte(x), Some(Cell::Byte(y))) => Cell::Byte(self.gates.select(c, x, *y)),
                (x, Some(y)) if x == *y => x,
                (_, Some(_)) => Cell::Of(Value::Other, 0),
                // Nothing may read what is there on one side only.
                (_, None) => continue,
            };
            out.stack.insert(place, cell);
        }
        let zero = self.gates.number(0);
        for step in a.kept.keys().chain(b.kept.keys()) {
            let of = |s: &State| s.kept.get(step).copied().unwrap_or(zero);
            let (x, y) = (of_kept(&a.kept, *step, zero), of(b));
            out.kept.insert(*step, self.gates.select(c, x, y));
        }
        let written: Vec<u64> = a.packet.keys().chain(b.packet.keys()).copied().collect();
        for at in written {
            let offset = self.gates.number(at);
            let before = self.gates.byte(offset);
            let x = a.packet.get(&at).copied().unwrap_or(before);
            let y = b.packet.get(&at).copied().unwrap_or(before);
            out.packet.insert(at, self.gates.select(c, x, y));
        }
        out
    }

    /// A step; the ways on from it.
    fn step(&mut self, at: usize, mut way: Way) -> Vec<(usize, Way)> {
        let Some(step) = self.flow.steps.get(at) else {
            return Vec::new();
        };
        match step.op {
            Op::Exit => Vec::new(),
            Op::Jump { target } => vec![(target.0, way)],
            Op::Enter { frame, target } => {
                for reg in (1..=5).map(Reg) {
                    let value = way.state.registers.get(&(step.frame, reg)).cloned();
                    if let Some(value) = value {
                        way.state.registers.insert((frame, reg), value);
                    }
                }
                let stack = Value::Stack(frame, 0);
                way.state.registers.insert((frame, Reg(10)), stack);
                vec![(target.0, way)]
            }
            Op::Leave { target } => {
                let caller = self.flow.frames.get(step.frame.0).and_then(|f| f.caller);
                let value = way.state.registers.get(&(step.frame, Reg(0))).cloned();
                if let (Some(caller), Some(value)) = (caller, value) {
                    way.state.registers.insert((caller, Reg(0)), value);
                }
                vec![(target.0, way)]
            }
            Op::Branch { insn, target } => match self.part.extract.jumps.get(&StepId(at)) {
                Some(Some(to)) => vec![(to.0, way)],
                Some(None) => Vec::new(),
                None => self.branch(step, &insn, (at + 1, target.0), way),
            },
            Op::Plain(insn) => {
                if self.part.extract.runs.get(at) == Some(&true) {
                    self.plain(step, &insn, &mut way.state);
                    if self.part.kept.binary_search(&StepId(at)).is_ok()
                        && let Some(reg) = millrace_check::facts::written(&insn)
                    {
                        let value = self.register(&way.state, step.frame, reg);
                        way.state.kept.insert(StepId(at), value);
                    }
                }
                vec![(at + 1, way)]
            }
        }
    }

    fn branch(
        &mut self,
        step: &Step,
        insn: &Insn,
        (next, target): (usize, usize),
        way: Way,
    ) -> Vec<(usize, Way)> {
        match (step.outcomes.holds, step.outcomes.fails) {
            (true, false) => return vec![(target, way)],
            (false, true) => return vec![(next, way)],
            _ => {}
        }
        let Insn::Branch {
            condition,
            width,
            left,
            right,
            ..
        } = *insn
        else {
            return Vec::new();
        };
        let a = self.register(&way.state, step.frame, left);
        let b = self.operand(&way.state, step.frame, right);
        let holds = self.compare(condition, width, a, b);
        match self.gates.constant(holds) {
            Some(0) => return vec![(next, way)],
            Some(_) => return vec![(target, way)],
            None => {}
        }
        let fails = self.gates.not(holds);
        let with = |c: Wire| {
            let mut conditions = way.conditions.clone();
            conditions.push(c);
            conditions
        };
        let taken = Way {
            conditions: with(holds),
            state: way.state.clone(),
        };
        let other = Way {
            conditions: with(fails),
            state: way.state,
        };
        vec![(target, taken), (next, other)]
    }

    pub(super) fn register(&mut self, state: &State, frame: FrameId, reg: Reg) -> Wire {
        match state.registers.get(&(frame, reg)) {
            Some(Value::Number(wire)) => *wire,
            Some(_) => self.obstacle("an address of the stack or of state as a number"),
            // No execution reads it.
            None => self.gates.number(0),
        }
    }

    pub(super) fn operand(&mut self, state: &State, frame: FrameId, operand: Operand) -> Wire {
        match operand {
            Operand::Imm(n) => self.gates.number(n as u64),
            Operand::Reg(reg) => self.register(state, frame, reg),
        }
    }
}

pub(super) fn of_kept(kept: &BTreeMap<StepId, Wire>, step: StepId, zero: Wire) -> Wire {
    kept.get(&step).copied().unwrap_or(zero)
}
