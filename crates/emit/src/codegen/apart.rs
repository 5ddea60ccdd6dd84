//! The way of common packets through a linked program, written once more for them alone.
//!
//! In a linked program each element's function ends in one place, where the ways of all packets meet: of those whose header was read and of those that
//! have none. What one element read, wrote and compared is not known in the next any more. So the paths of a few
//! common packets ([`super::walk`]) get steps of their own, in front of all others, in which no other path joins them. Bytes that were read are known all along them
//! ([`super::known`]), clang sees that a comparison was made before, and checksums are folded once.
//!
//! The copies are right for any packet: a branch that goes otherwise leads to the program's own steps, with the same registers. Where the path of a
//! packet is not known any further (a loop, a number from elsewhere), it goes on in those, too.
//!
//! What a step is proved to be holds for each of its copies: it is said of all executions.

use std::collections::{BTreeMap, BTreeSet};

use millrace_check::Checked;
use millrace_check::facts::{Flow, Op, Step, StepId};
use millrace_object::program::{LINKED, Program};

use super::module::takes_packets;
use super::prefetch;
use super::slice::Slice;
use super::walk::{self, Taken};

/// Most steps that are written once more: clang's time grows with them.
const MOST_STEPS: usize = 4000;

/// The program's steps with those of common packets in front of each entry's; none where it was not linked, or claims of its steps are looked at.
pub fn of(program: &Program, checked: &Checked, wholes: &[Slice]) -> Option<Checked> {
    let mut apart = checked.clone();
    let mut changed = false;
    let entries = program.entries.iter().zip(wholes);
    for (flow, (entry, whole)) in apart.flows.iter_mut().zip(entries) {
        let handler = program.functions.get(entry.function.0);
        let linked = handler.is_some_and(|f| f.section == LINKED);
        if linked && takes_packets(entry.role) && flow.claims.is_none() {
            changed |= copied(flow, whole);
        }
    }
    changed.then_some(apart)
}

fn copied(flow: &mut Flow, whole: &Slice) -> bool {
    let sites = sites(whole);
    let mut ways: BTreeMap<Place, Ways> = BTreeMap::new();
    for packet in walk::packets() {
        let Some(path) = walk::whole(whole, &packet) else {
            continue;
        };
        let site = path.iter().rposition(|taken| sites.contains(&taken.id));
        let (place, behind) = match site.and_then(|at| Some((path.get(at)?, path.get(at + 1..)?))) {
            Some((site, behind)) => (Place::Behind(site.id), behind),
            None if sites.is_empty() => (Place::Front, path.as_slice()),
            None => continue,
        };
        ways.entry(place).or_default().add(behind);
    }
    ways.retain(|_, ways| !ways.nodes.is_empty());
    let count: usize = ways.values().map(|ways| ways.nodes.len()).sum();
    if ways.is_empty() || count > MOST_STEPS {
        return false;
    }
    let trees: Vec<(Place, Tree)> = ways.iter().map(|(at, w)| (*at, w.laid(whole))).collect();
    // In front of which of the program's own steps a tree stands, and where that step will be.
    let own = |id: StepId| {
        let before = trees.iter().filter(|(at, _)| at.before(id));
        StepId(id.0 + before.map(|(_, tree)| tree.steps.len()).sum::<usize>())
    };
    let mut steps = Vec::with_capacity(flow.steps.len() + count);
    let mut trees_left = trees.iter().peekable();
    for (at, step) in flow.steps.iter().enumerate() {
        if let Some((_, tree)) = trees_left.next_if(|(place, _)| place.before(StepId(at))) {
            tree.write(&mut steps, own);
        }
        steps.push(led(step, own));
    }
    flow.steps = steps;
    true
}

/// The keyed operations at which a program is taken up behind its prefetch passes: these find them, so that what comes before stays as it is.
fn sites(whole: &Slice) -> BTreeSet<StepId> {
    let staged = prefetch::staged(whole);
    let both = staged.into_iter().flat_map(|s| [s.first, s.second]);
    let all = both.chain(prefetch::pass(whole));
    all.flat_map(|pass| pass.sites.into_keys()).collect()
}

/// Where a tree of paths begins.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Place {
    /// with the program
    Front,
    /// behind a step
    Behind(StepId),
}

impl Place {
    /// Whether it is before this step of the program.
    fn before(self, id: StepId) -> bool {
        match self {
            Self::Front => true,
            Self::Behind(step) => step < id,
        }
    }
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

    /// Its steps in their order; those that lead out of it lead to the program's own.
    fn laid<'s>(&self, whole: &Slice<'s>) -> Tree<'s> {
        let mut steps: Vec<Laid> = Vec::new();
        let mut places: BTreeMap<usize, usize> = BTreeMap::new();
        let mut open = vec![0];
        while let Some(first) = open.pop() {
            let mut at = Some(first);
            while let Some((number, node)) = at.and_then(|n| Some((n, self.nodes.get(n)?))) {
                places.insert(number, steps.len());
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
                steps.push(Laid::Copy(step, to));
                open.extend(holds);
                if falls && behind.is_none() {
                    steps.push(Laid::Jump(step, StepId(node.id.0 + 1)));
                }
                at = behind;
            }
        }
        Tree { steps, places }
    }
}

/// A tree of paths as steps.
struct Tree<'s> {
    steps: Vec<Laid<'s>>,
    /// by node
    places: BTreeMap<usize, usize>,
}

impl Tree<'_> {
    /// Adds them; `own` says where a step of the program will be.
    fn write(&self, steps: &mut Vec<Step>, own: impl Fn(StepId) -> StepId) {
        let begin = steps.len();
        let place = |end: End| match end {
            End::Way(node) => StepId(begin + self.places.get(&node).copied().unwrap_or(0)),
            End::Own(id) => own(id),
        };
        steps.extend(self.steps.iter().map(|laid| match *laid {
            Laid::Copy(step, None) => step.clone(),
            Laid::Copy(step, Some(to)) => led(step, |_| place(to)),
            Laid::Jump(behind, to) => jump(behind, own(to)),
        }));
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
