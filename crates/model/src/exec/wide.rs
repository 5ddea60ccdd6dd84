//! The loops that are modelled for any number of iterations: those that access state objects and are left in many
//! iterations, or have more than a few that multiply the paths, going on in several that do not merge; those that access
//! bytes only and are left in very many iterations; and those at whose head very many states wait.

use millrace_check::facts::{ArgFact, Flow, Op};
use millrace_check::flow::graph::Blocks;
use millrace_check::flow::hints;
use millrace_check::flow::loops::Loop;
use millrace_check::flow::places::Span;
use millrace_check::flow::points::Touch;
use millrace_object::insn::{Insn, Operand};

use std::collections::BTreeSet;

use super::turns::Changes;
use super::{Engine, State};

/// Most turns of a loop that are followed one by one though each multiplies the ways.
const FEW: i64 = 8;
/// Most turns that are followed one by one through state objects.
const MANY: usize = 16;
/// After this many iterations through nothing but bytes it is estimated how many states will have left the loop. If that is
/// more than the budget of paths, following it further is in vain: they rarely merge with each other (a checksum over a
/// packet's rest is another number in each).
const PLAIN: usize = 64;
/// This many states wait at the head of a loop that each turn multiplies the ways, if it is also this many times as many
/// as came to it from outside.
const WIDE: usize = 1024;
const WIDER: usize = 16;

impl Engine<'_> {
    /// Looks whether the turns of a loop multiply the ways, at states that wait at its head.
    pub(super) fn look_at(&mut self, head: usize, ready: &[State]) {
        let Some(l) = self.loops.at_head(head) else {
            return;
        };
        if self.summed.contains_key(&head) {
            return;
        }
        let entered = self.entered.get(&head).copied().unwrap_or(0);
        // Where paths are cut no turn multiplies them.
        if ready.len() >= WIDE.max(WIDER * entered) && self.cutting.is_none() {
            self.widens = Some(head);
            return;
        }
        let Some(Turning { stateful, most, .. }) = self.turning.get(l) else {
            return;
        };
        let (stateful, most) = (*stateful, *most);
        let few = most.is_some_and(|most| most <= FEW);
        let Some(first) = ready.first() else { return };
        let turns = self.rounds.entry(head).or_default();
        if turns.0 != entered {
            *turns = (entered, 0);
        }
        turns.1 += 1;
        let gone = self.gone.get(&head).copied().unwrap_or(0);
        let many = if stateful {
            turns.1 > MANY && gone > MANY
        } else {
            // What left so far says how many the last iteration would have left behind it.
            let most = most.map_or(usize::MAX, |most| usize::try_from(most).unwrap_or(0));
            let leave = gone.saturating_mul(most) / turns.1;
            turns.1 > PLAIN && gone > PLAIN && leave > self.limits.paths
        };
        let asked = match stateful {
            true => self.cutting.is_none(),
            false => many,
        };
        if !asked || few || (!self.looked_at.insert(head) && !many) {
            return;
        }
        // Merged, what is written in each turn would be a choice for each turn before.
        self.strict = true;
        let turn = self.one_turn(first.clone(), head);
        let back = turn.map(|(_, _, ways, _)| self.arrive(head, ways.back).len());
        self.strict = false;
        // A loop that cannot be taken so is followed turn by turn.
        let Ok(back) = back else {
            self.summed.remove(&head);
            return;
        };
        if many {
            self.widens = Some(head);
        } else if back < 2 {
            self.summed.remove(&head);
        }
    }

    /// Heads of the loops through nothing but bytes that are taken for any number of iterations.
    pub(crate) fn widened(&self) -> BTreeSet<usize> {
        let heads = self.summed.keys().copied();
        let stateful = |head: &usize| {
            let l = self.loops.at_head(*head);
            l.and_then(|l| self.turning.get(l))
                .is_none_or(|t| t.stateful)
        };
        heads.filter(|head| !stateful(head)).collect()
    }

    /// The same, with these loops taken for any number of iterations from the beginning.
    pub(crate) fn widen(mut self, heads: &BTreeSet<usize>) -> Self {
        self.summed = heads.iter().map(|h| (*h, Changes::default())).collect();
        self
    }
}

/// Facts about a loop before it is followed.
#[derive(Clone, Default)]
pub(super) struct Turning {
    /// it comes to state objects
    pub stateful: bool,
    /// registers of the head's frame that seem to count its turns, one bit each
    pub counters: u16,
    /// stack memory that seems to
    pub slots: Vec<Span>,
    /// the greatest number that these are compared with
    pub most: Option<i64>,
}

/// Facts about a loop.
pub(super) fn of_loop(flow: &Flow, blocks: &Blocks, touches: &[Touch], l: &Loop) -> Turning {
    let (mut stateful, mut most) = (false, None);
    let (counters, slots) = hints::counters(flow, blocks, touches, l);
    let steps = l.body.iter().flat_map(|b| blocks.steps(*b));
    for step in steps.filter_map(|at| flow.steps.get(at)) {
        let object = |a: &ArgFact| matches!(a, ArgFact::Object(_));
        stateful |= step.args.iter().any(object);
        if let Op::Branch { insn, .. } = step.op
            && let Insn::Branch { left, right, .. } = insn
            && let Operand::Imm(i) = right
            && counters >> left.0 & 1 == 1
        {
            most = most.max(Some(i));
        }
    }
    Turning {
        stateful,
        counters,
        slots,
        most,
    }
}
