//! What state depends on: a backward slice from the steps that change it, and the steps that carry it out.
//!
//! The slice is over values (`values`) and control dependence, after Weiser, "Program Slicing" (1984): a join hangs on the
//! branches that decide between the ways to it, a step that touches state on those that decide whether it runs.

use std::collections::{BTreeMap, BTreeSet};

use millrace_check::facts::{Flow, Op, StepId};
use millrace_object::insn::{Insn, Operand};

use crate::effects::Effect;
use crate::graph::{Graph, successors};
use crate::places::{Place, Places};
use crate::values::{Origin, Value, Values};

/// What a set of steps depends on.
#[derive(Debug)]
pub struct Needs {
    /// steps whose results or effects are needed, branches that decide among them
    pub steps: Vec<bool>,
}

/// The slice from these steps. At a step that is a `leaf` it ends: its result comes from elsewhere.
#[must_use]
pub fn needs(
    flow: &Flow,
    graph: &Graph,
    values: &Values,
    effects: &[Effect],
    leaf: &dyn Fn(usize) -> bool,
) -> Needs {
    let mut steps = vec![false; flow.steps.len()];
    let mut seen: BTreeSet<Value> = BTreeSet::new();
    let mut pending: Vec<Item> = (0..flow.steps.len())
        .filter(|&at| graph.of[at].is_some() && matches!(effects[at], Effect::Writes(_)))
        .map(Item::Step)
        .collect();
    while let Some(item) = pending.pop() {
        match item {
            Item::Step(at) => {
                if std::mem::replace(&mut steps[at], true) {
                    continue;
                }
                if !leaf(at) {
                    pending.extend(values.uses[at].iter().map(|(_, v)| Item::Value(*v)));
                }
                let decided = matches!(flow.steps[at].op, Op::Branch { .. })
                    || matches!(effects[at], Effect::Reads(_) | Effect::Writes(_));
                if let Some(block) = graph.of[at].filter(|_| decided) {
                    pending.extend(graph.deciders[block].iter().map(|b| last(graph, *b)));
                }
            }
            Item::Value(v) => {
                let v = values.value(v);
                if !seen.insert(v) {
                    continue;
                }
                match values.origin(v) {
                    Origin::Constant(_) | Origin::Address(..) | Origin::Start(_) => {}
                    Origin::Step(id) => pending.push(Item::Step(id.0)),
                    Origin::Left { step, before, .. } => {
                        pending.extend([Item::Step(step.0), Item::Value(*before)]);
                    }
                    Origin::Byte(of, _) => pending.push(Item::Value(*of)),
                    Origin::Bytes(all) => pending.extend(all.iter().map(|v| Item::Value(*v))),
                    Origin::Join { .. } => {
                        for (from, v) in values.joined.get(&v).into_iter().flatten() {
                            pending.push(Item::Value(*v));
                            let Some(block) = graph.blocks.get(*from) else {
                                continue;
                            };
                            if block.next.len() > 1 {
                                pending.push(last(graph, *from));
                            }
                            pending.extend(graph.deciders[*from].iter().map(|b| last(graph, *b)));
                        }
                    }
                }
            }
        }
    }
    Needs { steps }
}

enum Item {
    Step(usize),
    Value(Value),
}

fn last(graph: &Graph, block: usize) -> Item {
    Item::Step(graph.blocks[block].to - 1)
}

/// Which places are read later, and which steps do something for that.
#[derive(Debug)]
pub struct Live {
    /// the steps that run
    pub runs: Vec<bool>,
    /// by block: places that are live where it begins
    starts: Vec<Vec<bool>>,
}

/// What liveness is asked about.
pub struct Question<'a> {
    /// the flow
    pub flow: &'a Flow,
    /// its graph
    pub graph: &'a Graph,
    /// its values
    pub values: &'a Values,
    /// its places
    pub places: &'a Places,
    /// steps of the part that is asked about
    pub part: &'a dyn Fn(usize) -> bool,
    /// steps that run whether a place that they write is live or not
    pub roots: &'a dyn Fn(usize) -> bool,
    /// steps whose result comes from elsewhere, so that they read nothing
    pub leaf: &'a dyn Fn(usize) -> bool,
    /// places that are read where a part ends
    pub ends: &'a dyn Fn(usize) -> Option<Vec<Place>>,
}

impl Question<'_> {
    /// The answer.
    #[must_use]
    pub fn solve(&self) -> Live {
        let n = self.graph.blocks.len();
        let mut live = Live {
            runs: vec![false; self.flow.steps.len()],
            starts: vec![vec![false; self.places.count]; n],
        };
        let mut todo = vec![true; n];
        let mut changed = true;
        while std::mem::take(&mut changed) {
            for &b in self.graph.order.iter().rev() {
                if !std::mem::take(&mut todo[b]) {
                    continue;
                }
                let from = self.graph.blocks[b].from;
                let now = self.walk(&mut live, b, from);
                if now != live.starts[b] {
                    live.starts[b] = now;
                    changed = true;
                    self.graph.blocks[b]
                        .before
                        .iter()
                        .for_each(|&p| todo[p] = true);
                }
            }
        }
        live
    }

    /// The places that are live before a step.
    #[must_use]
    pub fn before(&self, live: &mut Live, at: usize) -> Vec<Place> {
        let Some(b) = self.graph.of.get(at).copied().flatten() else {
            return Vec::new();
        };
        let now = self.walk(live, b, at);
        (0..now.len()).filter(|&p| now[p]).collect()
    }

    fn walk(&self, live: &mut Live, b: usize, to: usize) -> Vec<bool> {
        let block = &self.graph.blocks[b];
        let mut now = vec![false; self.places.count];
        for &next in &block.next {
            for (here, there) in now.iter_mut().zip(&live.starts[next]) {
                *here |= there;
            }
        }
        for at in (to..block.to).rev() {
            if let Some(read) = (self.ends)(at) {
                now = vec![false; self.places.count];
                read.into_iter().for_each(|p| now[p] = true);
            } else if (self.part)(at) {
                live.runs[at] = self.step(at, &mut now);
            }
        }
        now
    }

    /// Takes a step back; whether it runs.
    fn step(&self, at: usize, now: &mut [bool]) -> bool {
        let step = &self.flow.steps[at];
        let register = |r: u8| {
            self.places
                .register(step.frame, millrace_object::insn::Reg(r))
        };
        match step.op {
            Op::Enter { frame, .. } => {
                for r in 0..=9u8 {
                    let inner = self.places.register(frame, millrace_object::insn::Reg(r));
                    let read = std::mem::take(&mut now[inner]);
                    if (1..=5).contains(&r) {
                        now[register(r)] |= read;
                    }
                }
                return true;
            }
            Op::Leave { .. } => {
                if let Some(caller) = self.flow.frames[step.frame.0].caller {
                    for r in 0..=5u8 {
                        let outer = self.places.register(caller, millrace_object::insn::Reg(r));
                        let read = std::mem::take(&mut now[outer]);
                        if r == 0 {
                            now[register(0)] |= read;
                        }
                    }
                }
                return true;
            }
            Op::Jump { .. } | Op::Exit => return true,
            _ => {}
        }
        let (certain, possible) = self.writes(at);
        let runs = (self.roots)(at) || certain.iter().chain(&possible).any(|&p| now[p]);
        certain.iter().for_each(|&p| now[p] = false);
        if let Op::Plain(Insn::Call { .. }) = step.op {
            (1..=5).for_each(|r| now[register(r)] = false);
        }
        if runs && !(self.leaf)(at) {
            self.values.uses[at]
                .iter()
                .for_each(|(p, _)| now[*p] = true);
        }
        runs
    }

    /// The places that a step writes in every execution, and those that it may write.
    fn writes(&self, at: usize) -> (Vec<Place>, Vec<Place>) {
        let step = &self.flow.steps[at];
        let Op::Plain(insn) = step.op else {
            return (Vec::new(), Vec::new());
        };
        let mut certain: Vec<Place> = millrace_check::facts::written(&insn)
            .map(|r| self.places.register(step.frame, r))
            .into_iter()
            .collect();
        let (exact, possible) = self.values.written(at);
        certain.extend(exact);
        (certain, possible)
    }
}

/// Where control goes on behind branches that do not matter: where their ways meet; none: to the end.
///
/// Ways that meet may all leave the same value in a place that is read later, such as a register that each of them loads from
/// the stack again: where a step of theirs `runs`, control takes the shortest of them instead. Which one is the same,
/// since nothing hangs on the branch; that it is the shortest makes it end.
#[must_use]
pub fn jumps(
    flow: &Flow,
    graph: &Graph,
    needed: &[bool],
    runs: &[bool],
) -> BTreeMap<StepId, Option<StepId>> {
    let ends = |b: usize| -> Option<(StepId, Option<StepId>)> {
        let at = graph.blocks[b].to - 1;
        let branches = graph.blocks[b].next.len() > 1 && successors(flow, at).len() > 1;
        let idle = branches && !needed[at];
        idle.then(|| {
            let to = graph.join[b].map(|join| {
                let between = graph.between(b, join);
                let works = |b: &usize| {
                    let block = &graph.blocks[*b];
                    (block.from..block.to)
                        .any(|at| runs[at] && matches!(flow.steps[at].op, Op::Plain(_)))
                };
                match between.iter().any(works) {
                    true => graph.nearest(b, join),
                    false => join,
                }
            });
            (StepId(at), to.map(|to| StepId(graph.blocks[to].from)))
        })
    };
    (0..graph.blocks.len()).filter_map(ends).collect()
}

/// Whether the right side of a branch or of arithmetic is a register, and which.
#[must_use]
pub fn second(insn: &Insn) -> Option<millrace_object::insn::Reg> {
    match *insn {
        Insn::Branch {
            right: Operand::Reg(r),
            ..
        }
        | Insn::Alu {
            src: Operand::Reg(r),
            ..
        } => Some(r),
        _ => None,
    }
}
