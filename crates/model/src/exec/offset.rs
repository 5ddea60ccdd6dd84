//! Accesses to an array within a value, a variable or the stack: one path for each element.
//!
//! Which bytes of a value an access is to has to be a number, as objects are described byte by byte. An index that is
//! computed is compared with all that it can be on this path, as a chain of branches would: `ports[i]` with `i` below 10
//! is ten paths, each of which has `i` in its guard.

use std::rc::Rc;

use millrace_object::insn::{Insn, Reg};

use super::Engine;
use super::state::{Region, State, Value};
use crate::expr::eval::Assignment;
use crate::expr::{ExprId, Rel};
use crate::solver::Answer;

/// Most elements that an access may be to on one path.
const MOST: usize = 32;

impl Engine<'_> {
    /// The paths that an access through a pointer leads to: those of each offset that the pointer can have within memory
    /// other than the packet; only this one where that is a number, where there are more than `MOST` (array.rs), or where the
    /// solver does not say.
    pub(super) fn by_offset(&mut self, s: State, insn: Insn) -> Vec<State> {
        let Some((base, region, offset)) = self.computed_offset(&s, insn) else {
            return vec![s];
        };
        let Some(values) = self.offsets(&s, offset) else {
            return vec![s];
        };
        let mut out = Vec::new();
        for (value, model) in values {
            let number = self.arena.number(value, 64);
            let here = self.arena.compare(Rel::Eq, offset, number);
            let mut t = s.clone();
            t.guard.push(here);
            t.model = Some(model);
            t.set(usize::from(base.0), Value::Ptr(region, number));
            out.push(t);
        }
        out
    }

    /// The base register of a load or store, where its offset is no number yet.
    fn computed_offset(&self, s: &State, insn: Insn) -> Option<(Reg, Region, ExprId)> {
        let (Insn::Load { base, .. } | Insn::Store { base, .. } | Insn::Atomic { base, .. }) = insn
        else {
            return None;
        };
        // The run that is followed says which offset it was.
        if self.guide.is_some() {
            return None;
        }
        match s.reg(usize::from(base.0)) {
            Value::Ptr(region @ (Region::Stack(_) | Region::Place(_)), offset)
                if self.arena.constant(offset).is_none() =>
            {
                Some((base, region, offset))
            }
            _ => None,
        }
    }

    /// All that an offset can be, each with an assignment in which it is that.
    fn offsets(&mut self, s: &State, offset: ExprId) -> Option<Vec<(u64, Rc<Assignment>)>> {
        let mut other = self.arena.truth(true);
        let mut found = Vec::new();
        let mut model = s.model.clone();
        loop {
            let assignment = match model.take() {
                Some(m) => m,
                None => match self.asked(s, other) {
                    Answer::Holds(m) => m,
                    Answer::Fails => return Some(found),
                    Answer::Unknown(_) => return None,
                },
            };
            if found.len() == MOST {
                return None;
            }
            let value = assignment.value(&self.arena, offset);
            let number = self.arena.number(value, 64);
            let same = self.arena.compare(Rel::Eq, offset, number);
            let differs = self.arena.not(same);
            other = self.arena.all(&[other, differs]);
            found.push((value, assignment));
        }
    }
}
