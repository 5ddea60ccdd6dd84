//! The way of common packets through a linked program, written once more for them alone.
//!
//! In a linked program each element's function ends in one place, where the ways of all packets meet: of those whose header was read and of those that
//! have none. What one element read, wrote and compared is not known in the next any more. So the paths of a few
//! common packets ([`super::walk`]) get steps of their own, in front of all others, in which no other path joins them. Bytes that were read are known all along them
//! ([`super::known`]), clang sees that a comparison was made before, and checksums are folded once.
//!
//! The copies are right for any packet: a branch that goes otherwise leads to the program's own steps, with the same registers. A packet whose path is not
//! known to its end, since it is moved or changed at some place, has none.
//!
//! Programs with a prefetch pass stay as they are: what packets run is taken up behind it, where their headers have been read, and is straight for common packets
//! up to there ([`super::straight`]). In front of it copies gained nothing, and cost `firewall+nat` a quarter.
//!
//! What a step is proved to be holds for each of its copies: it is said of all executions.

use std::collections::BTreeMap;

use millrace_check::Checked;
use millrace_check::facts::{Op, Step, StepId};
use millrace_object::program::{Entry, LINKED, Program};

use super::module::takes_packets;
use super::prefetch;
use super::slice::Slice;
use super::walk::{self, Taken};

/// Most steps that are written once more: clang's time grows with them.
const MOST_STEPS: usize = 4000;

/// The program's steps with those of common packets in front of each entry's; none where it was not linked, or claims of its steps are looked at.
pub fn of(program: &Program, checked: &Checked, wholes: &[Slice]) -> Option<Checked> {
    let linked = |entry: &Entry| {
        let handler = program.functions.get(entry.function.0);
        takes_packets(entry.role) && handler.is_some_and(|f| f.section == LINKED)
    };
    let entries = program.entries.iter().zip(wholes);
    let mut apart: Option<Checked> = None;
    for (at, (_, whole)) in entries.enumerate().filter(|(_, (entry, _))| linked(entry)) {
        if whole.flow.claims.is_some() || prefetch::pass(whole).is_some() {
            continue;
        }
        if let Some(steps) = copied(whole) {
            let apart = apart.get_or_insert_with(|| checked.clone());
            if let Some(flow) = apart.flows.get_mut(at) {
                flow.steps = steps;
            }
        }
    }
    apart
}

/// The steps of a flow behind those of common packets; none where no path of these is known to its end.
fn copied(whole: &Slice) -> Option<Vec<Step>> {
    let mut ways = Ways::default();
    for packet in walk::packets() {
        if let Some(path) = walk::whole(whole, &packet) {
            ways.add(&path);
        }
    }
    if ways.nodes.is_empty() || ways.nodes.len() > MOST_STEPS {
        return None;
    }
    let mut steps = ways.steps(whole);
    let behind = steps.len();
    let own = |id: StepId| StepId(behind + id.0);
    steps.extend(whole.flow.steps.iter().map(|step| led(step, own)));
    Some(steps)
}

/// The same step with another target.
fn led(step: &Step, to: impl Fn(StepId) -> StepId) -> Step {
    let op = match step.op {
        Op::Jump { target } => Op::Jump { target: to(target) },
        Op::Branch { insn, target } => Op::Branch {
            insn,
            target: to(target),
        },
        Op::Enter { frame, target } => Op::Enter {
            frame,
            target: to(target),
        },
        Op::Leave { target } => Op::Leave { target: to(target) },
        op @ (Op::Plain(_) | Op::Exit) => op,
    };
    Step { op, ..step.clone() }
}

/// Paths that begin alike, as one tree.
#[derive(Default)]
struct Ways {
    nodes: Vec<Node>,
}

/// A step on one of the paths.
struct Node {
    id: StepId,
    /// what comes behind it, by whether the condition of a branch holds
    next: [Option<usize>; 2],
}

impl Ways {
    fn add(&mut self, path: &[Taken]) {
        let mut from: Option<(usize, usize)> = None;
        for taken in path {
            let next = match from {
                Some((node, side)) => self.nodes.get(node).and_then(|n| n.next.get(side).copied()),
                None => Some((!self.nodes.is_empty()).then_some(0)),
            };
            let node = next.flatten().unwrap_or_else(|| {
                self.nodes.push(Node {
                    id: taken.id,
                    next: [None; 2],
                });
                let new = self.nodes.len() - 1;
                if let Some((node, side)) = from
                    && let Some(place) = self.nodes.get_mut(node).and_then(|n| n.next.get_mut(side))
                {
                    *place = Some(new);
                }
                new
            });
            from = Some((node, usize::from(taken.holds == Some(true))));
        }
    }

    /// The steps of the tree; those that lead out of it lead to the program's own, which will stand behind them.
    fn steps(&self, whole: &Slice) -> Vec<Step> {
        let mut laid: Vec<Laid> = Vec::new();
        let mut places: BTreeMap<usize, usize> = BTreeMap::new();
        let mut open = vec![0];
        while let Some(first) = open.pop() {
            let mut at = Some(first);
            while let Some((number, node)) = at.and_then(|n| Some((n, self.nodes.get(n)?))) {
                places.insert(number, laid.len());
                let step = whole.step(node.id);
                let [behind, holds] = node.next;
                let always = step.outcomes.holds && !step.outcomes.fails;
                let (to, falls) = match step.op {
                    Op::Exit => (None, false),
                    Op::Plain(_) => (None, true),
                    Op::Branch { target, .. } if always => (Some(End::of(behind, target)), false),
                    Op::Branch { target, .. } => (Some(End::of(holds, target)), true),
                    Op::Jump { target } | Op::Enter { target, .. } | Op::Leave { target } => {
                        (Some(End::of(behind, target)), false)
                    }
                };
                laid.push(Laid::Copy(step, to));
                open.extend(holds);
                if falls && behind.is_none() {
                    laid.push(Laid::Jump(step, StepId(node.id.0 + 1)));
                }
                at = behind;
            }
        }
        let count = laid.len();
        let own = |id: StepId| StepId(count + id.0);
        let place = |end: End| match end {
            End::Way(node) => StepId(places.get(&node).copied().unwrap_or(0)),
            End::Own(id) => own(id),
        };
        let step = |laid: &Laid| match *laid {
            Laid::Copy(step, None) => step.clone(),
            Laid::Copy(step, Some(to)) => led(step, |_| place(to)),
            Laid::Jump(behind, to) => jump(behind, own(to)),
        };
        laid.iter().map(step).collect()
    }
}

/// A step of the tree where it will stand.
enum Laid<'a> {
    /// one of the program's, and where it leads to unless to the next one
    Copy(&'a Step, Option<End>),
    /// on to one of the program's own behind a step of the tree
    Jump(&'a Step, StepId),
}

/// Where a step leads.
#[derive(Clone, Copy)]
enum End {
    /// a node
    Way(usize),
    /// one of the program's own steps
    Own(StepId),
}

impl End {
    fn of(node: Option<usize>, own: StepId) -> Self {
        node.map_or(Self::Own(own), Self::Way)
    }
}

/// Goes on elsewhere behind a step.
fn jump(step: &Step, target: StepId) -> Step {
    Step {
        op: Op::Jump { target },
        access: None,
        extents: Vec::new(),
        args: Vec::new(),
        load_once: false,
        whole: false,
        ..step.clone()
    }
}
