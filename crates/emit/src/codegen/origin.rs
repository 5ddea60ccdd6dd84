//! Where a pointer into the stack that is not a constant may have come from.
//!
//! The stack is split into independent objects only where that cannot be noticed. A constant
//! stack pointer names its byte. Any other (of two stack objects, of the stack or a map value, or
//! at a variable offset) is a local that was once set to an address expression: its *origin*. An
//! access through it may only touch the object of its origin, so the object must reach from one to
//! the other. This is a forward points-to analysis of just those locals.
//!
//! It can be noticed, too, where the program subtracts or compares two addresses: the distance of two C objects is the
//! compiler's affair, and the order of their addresses. So the origins of what is related lie in one object; a local's
//! address there is its origin's and what was added to it, as BPF counts.

use std::collections::{BTreeMap, BTreeSet};

use millrace_check::facts::{Access, ArgFact, FrameId, Kind, Op, Step, StepId};
use millrace_check::planted::{self, Planted};
use millrace_object::helper;
use millrace_object::insn::{AluOp, Insn, Operand, Reg, Width};

use super::forms::related;
use super::slice::{Role, Slice};

/// Beyond this many known distances from one origin, any distance is assumed.
const MAX_DISTANCES: usize = 8;

/// A stack byte, and how far a pointer has moved from it; none when unknown.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Origin {
    frame: usize,
    offset: i32,
    distance: Option<i32>,
}

type Local = (usize, u8);
type Origins = BTreeSet<Origin>;

/// Bytes of one frame that must lie in one object: `from..to`, from `r10`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Span {
    /// whose stack
    pub frame: FrameId,
    /// first byte
    pub from: i32,
    /// one past the last
    pub to: i32,
}

struct Solver<'a, 'b> {
    slice: &'b Slice<'a>,
    before: Vec<Option<BTreeMap<Local, Origins>>>,
    /// origins of pointers that were written to memory; any load may find them again
    spilled: Origins,
}

/// The spans that accesses through stack pointers that are not constant demand.
pub fn spans(slice: &Slice) -> Vec<Span> {
    let order = slice.layout();
    let varies = |kind: &Kind| {
        matches!(
            kind,
            Kind::Stack { offset: None, .. } | Kind::Pointer | Kind::Mixed
        )
    };
    let matters = |id: &StepId| {
        let step = slice.step(*id);
        related(step).is_some() || step.before.iter().any(varies)
    };
    if !order.iter().any(matters) {
        return Vec::new();
    }
    let mut solver = Solver {
        slice,
        before: vec![None; slice.flow.steps.len()],
        spilled: Origins::new(),
    };
    loop {
        let spilled = solver.spilled.len();
        solver.run();
        if solver.spilled.len() == spilled {
            break;
        }
    }
    order.iter().flat_map(|id| solver.demanded(*id)).collect()
}

impl Solver<'_, '_> {
    fn run(&mut self) {
        let mut work = self.slice.starts.clone();
        for start in &work {
            self.before[start.0].get_or_insert_with(BTreeMap::new);
        }
        let mut visited = vec![false; self.before.len()];
        while let Some(id) = work.pop() {
            visited[id.0] = true;
            let after = self.transfer(id);
            for next in self.slice.successors(id) {
                let changed = join(&mut self.before[next.0], &after);
                if changed || !visited[next.0] {
                    work.push(next);
                }
            }
        }
    }

    fn origins(&self, id: StepId, reg: Reg) -> Origins {
        let step = self.slice.step(id);
        if let Kind::Stack {
            frame,
            offset: Some(offset),
        } = step.before[usize::from(reg.0)]
        {
            return Origins::from([Origin {
                frame: frame.0,
                offset,
                distance: Some(0),
            }]);
        }
        let before = self.before[id.0].as_ref();
        before
            .and_then(|b| b.get(&(step.frame.0, reg.0)))
            .cloned()
            .unwrap_or_default()
    }

    fn transfer(&mut self, id: StepId) -> BTreeMap<Local, Origins> {
        let step = self.slice.step(id);
        let mut state = self.before[id.0].clone().unwrap_or_default();
        if self.slice.role(id) != Role::Run {
            return state;
        }
        let frame = step.frame.0;
        let mut set = |local: Local, origins: Origins| {
            if origins.is_empty() {
                state.remove(&local);
            } else {
                state.insert(local, widen(origins));
            }
        };
        match step.op {
            Op::Enter { frame: callee, .. } => {
                for reg in (1..=5).map(Reg) {
                    set((callee.0, reg.0), self.origins(id, reg));
                }
            }
            Op::Leave { .. } => {
                if let Some(caller) = self.slice.flow.frames[frame].caller {
                    set((caller.0, 0), self.origins(id, Reg(0)));
                }
            }
            Op::Plain(Insn::Store {
                src: Operand::Reg(src),
                ..
            }) if !planted::is(Planted::EmitSpilledOrigin) => {
                let spilled = self.origins(id, src);
                self.spilled.extend(spilled);
                self.spilled = widen(std::mem::take(&mut self.spilled));
            }
            Op::Plain(Insn::Call { .. }) => {
                (0..=5).for_each(|reg| set((frame, reg), Origins::new()));
            }
            Op::Plain(insn) => {
                if let Some(dst) = millrace_check::facts::written(&insn) {
                    set((frame, dst.0), self.defined(id, step, &insn));
                }
            }
            _ => {}
        }
        state
    }

    fn defined(&self, id: StepId, step: &Step, insn: &Insn) -> Origins {
        if let Kind::Stack {
            frame,
            offset: Some(offset),
        } = step.after
        {
            return Origins::from([Origin {
                frame: frame.0,
                offset,
                distance: Some(0),
            }]);
        }
        match *insn {
            // A lower half, which is good for a 32-bit difference, is held as the whole pointer.
            Insn::Alu {
                op: AluOp::Mov,
                src: Operand::Reg(src),
                ..
            } => self.origins(id, src),
            Insn::Alu {
                op: AluOp::Add | AluOp::Sub,
                width: Width::W64,
                dst,
                src,
            } => {
                let moved = match (*insn, src) {
                    (Insn::Alu { op: AluOp::Add, .. }, Operand::Imm(by)) => i32::try_from(by).ok(),
                    (_, Operand::Imm(by)) => i32::try_from(by).ok().and_then(i32::checked_neg),
                    _ => None,
                };
                let mut all = self.origins(id, dst);
                if let Operand::Reg(src) = src {
                    all.extend(self.origins(id, src));
                }
                let shift = |d: Option<i32>| d.and_then(|d| moved.and_then(|by| d.checked_add(by)));
                all.into_iter()
                    .map(|o| Origin {
                        distance: shift(o.distance),
                        ..o
                    })
                    .collect()
            }
            Insn::Load { .. }
                if matches!(step.after, Kind::Stack { .. } | Kind::Pointer | Kind::Mixed) =>
            {
                self.spilled.clone()
            }
            _ => Origins::new(),
        }
    }

    /// What the accesses of one step need in one object.
    fn demanded(&self, id: StepId) -> Vec<Span> {
        let step = self.slice.step(id);
        let mut spans = Vec::new();
        if let Some((left, right)) = related(step)
            && self.slice.role(id) == Role::Run
            && !planted::is(Planted::RelatedPlacesApart)
        {
            let mut all = self.origins(id, left);
            all.extend(self.origins(id, right));
            // One span a frame, from the lowest of the origins to the highest.
            for origin in &all {
                let of_frame = all.iter().filter(|o| o.frame == origin.frame);
                let most = of_frame.map(|o| o.offset).max().unwrap_or(origin.offset);
                spans.push(Span {
                    frame: FrameId(origin.frame),
                    from: origin.offset.min(-1),
                    to: most.saturating_add(1).min(0),
                });
            }
        }
        match step.op {
            Op::Plain(
                Insn::Load {
                    base, offset, size, ..
                }
                | Insn::Store {
                    base, offset, size, ..
                }
                | Insn::Atomic {
                    base, offset, size, ..
                },
            ) => {
                if let Some(access) = step.access {
                    self.through(
                        id,
                        base,
                        access,
                        Some((i32::from(offset), size.bytes() as i32)),
                        &mut spans,
                    );
                }
            }
            Op::Plain(Insn::Call { helper: number }) => {
                let arguments = helper::by_number(number).map_or(0, |h| h.args.len());
                for (arg, reg) in step.args.iter().take(arguments).zip((1..=5).map(Reg)) {
                    if let ArgFact::Memory { access, bytes } = *arg {
                        let extent = bytes.and_then(|b| i32::try_from(b).ok()).map(|b| (0, b));
                        self.through(id, reg, access, extent, &mut spans);
                    }
                }
            }
            _ => {}
        }
        spans
    }

    fn through(
        &self,
        id: StepId,
        base: Reg,
        access: Access,
        extent: Option<(i32, i32)>,
        spans: &mut Vec<Span>,
    ) {
        if matches!(
            self.slice.step(id).before[usize::from(base.0)],
            Kind::Stack {
                offset: Some(_),
                ..
            }
        ) {
            return;
        }
        for origin in self.origins(id, base) {
            let touched = match (access, origin.distance, extent) {
                (Access::Stack { .. } | Access::Several, Some(distance), Some((offset, bytes))) => {
                    let from = origin
                        .offset
                        .saturating_add(distance)
                        .saturating_add(offset);
                    (from, from.saturating_add(bytes))
                }
                (Access::Stack { frame, from, to }, _, _) if frame.0 == origin.frame => (from, to),
                (Access::Several, _, _) => (
                    -(self.slice.flow.frames[origin.frame].stack_bytes as i32),
                    0,
                ),
                _ => continue,
            };
            spans.push(Span {
                frame: FrameId(origin.frame),
                from: touched.0.min(origin.offset),
                to: touched.1.max((origin.offset + 1).min(0)),
            });
        }
    }
}

fn widen(origins: Origins) -> Origins {
    let mut distances: BTreeMap<(usize, i32), usize> = BTreeMap::new();
    for o in &origins {
        *distances.entry((o.frame, o.offset)).or_default() += 1;
    }
    // Any distance stays any distance, whatever is added to it: otherwise states that add the same few again would
    // take turns without end.
    let any: BTreeSet<_> = { origins.iter() }
        .filter(|o| o.distance.is_none())
        .map(|o| (o.frame, o.offset))
        .collect();
    let many = |o: &Origin| {
        let place = (o.frame, o.offset);
        any.contains(&place) || distances.get(&place).is_some_and(|n| *n > MAX_DISTANCES)
    };
    origins
        .into_iter()
        .map(|o| {
            if many(&o) {
                Origin {
                    distance: None,
                    ..o
                }
            } else {
                o
            }
        })
        .collect()
}

fn join(into: &mut Option<BTreeMap<Local, Origins>>, from: &BTreeMap<Local, Origins>) -> bool {
    let Some(into) = into else {
        *into = Some(from.clone());
        return true;
    };
    let mut changed = false;
    for (local, origins) in from {
        let held = into.entry(*local).or_default();
        let all: Origins = widen(held.union(origins).copied().collect());
        if all != *held {
            *held = all;
            changed = true;
        }
    }
    changed
}
