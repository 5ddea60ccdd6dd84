//! Induction bound: a loop's counter stays below a number. By this invariant a loop over the elements of an array stays
//! within it.
//!
//! What seems to count (`check`'s hints) is supposed to stay below the greatest number that such are compared with, or
//! not to be above it. What does not hold before the first turn, or not after a turn before which it held, is supposed
//! no longer; what is left holds in every turn.

use millrace_check::facts::FrameId;
use millrace_check::flow::places::Span;
use millrace_object::insn::STACK;

use super::Engine;
use super::state::{Cell, State, Value};
use super::turns::Changes;
use crate::expr::{ExprId, Rel};

/// A candidate for the counter of iterations.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Counter {
    /// a register of the frame at this depth
    Reg(usize, usize),
    /// stack memory: offset, and how many bytes
    Stack(FrameId, i64, i64),
}

impl Engine<'_> {
    /// Supposed invariants of a loop's iterations, and their effects in this state at its head.
    pub(super) fn supposed(&mut self, s: &State, head: usize) -> Changes {
        let mut c = Changes::default();
        let known = self.loops.at_head(head).and_then(|l| self.turning.get(l));
        let most = known.and_then(|t| Some((t, u64::try_from(t.most?).ok()?)));
        if let (Some((turning, most)), Some(depth)) = (most, s.frames.len().checked_sub(1)) {
            let regs = (0..10).filter(|r| turning.counters >> r & 1 == 1);
            c.below.extend(regs.map(|r| (Counter::Reg(depth, r), most)));
            for slot in &turning.slots {
                if let Span::Exact(depth, from, bytes) = *slot
                    && let Some((frame, _)) = s.frames.get(usize::from(depth))
                    && bytes <= 8
                {
                    let slot = Counter::Stack(*frame, i64::from(from) - STACK, i64::from(bytes));
                    c.below.insert(slot, most);
                }
            }
        }
        self.stays_below(s, &mut c);
        c
    }

    /// Forgets what is supposed and not so in a state at the head.
    pub(super) fn stays_below(&mut self, s: &State, c: &mut Changes) {
        for (counter, most) in c.below.clone() {
            let next = most.saturating_add(1);
            if self.is_below(s, counter, most) {
                continue;
            }
            // `i > 63` is said of what stays below 64.
            if c.widened.insert(counter) && self.is_below(s, counter, next) {
                c.below.insert(counter, next);
            } else {
                c.below.remove(&counter);
            }
        }
    }

    fn is_below(&mut self, s: &State, counter: Counter, most: u64) -> bool {
        let Some(e) = self.counted(s, counter) else {
            return false;
        };
        let below = self.below(e, most);
        match self.arena.constant(below) {
            Some(below) => below == 1,
            None => {
                let above = self.arena.not(below);
                !self.possible(s, above)
            }
        }
    }

    /// Says of a state in any turn what turns keep.
    pub(super) fn keep_below(&mut self, s: &mut State, c: &Changes) {
        for (counter, most) in &c.below {
            let Some(e) = self.counted(s, *counter) else {
                continue;
            };
            let below = self.below(e, *most);
            if self.arena.constant(below).is_none() {
                s.guard.push(below);
            }
        }
    }

    fn below(&mut self, e: ExprId, most: u64) -> ExprId {
        let most = self.arena.number(most, 64);
        self.arena.compare(Rel::Less, e, most)
    }

    /// The number that a counter is at, in 64 bits.
    fn counted(&mut self, s: &State, counter: Counter) -> Option<ExprId> {
        match counter {
            Counter::Reg(depth, reg) => match s.frames.get(depth)?.1.get(reg)? {
                Value::Num(e) => Some(*e),
                _ => None,
            },
            Counter::Stack(frame, at, bytes) => {
                let byte = |at| match s.stack.get(&(frame, at)) {
                    Some(Cell::Byte(e)) => Some(*e),
                    _ => None,
                };
                let bytes: Option<Vec<ExprId>> = (at..at + bytes).rev().map(byte).collect();
                let number = self.arena.concat(&bytes?);
                Some(self.arena.resize(number, 64))
            }
        }
    }
}
