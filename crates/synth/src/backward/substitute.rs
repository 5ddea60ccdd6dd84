//! Writes as substitutions: a diagram for packets before an element writes fields, from the one for packets behind it.

use std::collections::HashMap;

use super::{Backward, Made};
use crate::action::{Value, Verdict, Write};
use crate::diagram::{Id, Node};
use crate::field::{Base, Var, bit, ip};
use crate::listed::Moved;

impl Backward<'_> {
    /// A diagram for packets before an element writes a field.
    pub(super) fn written(&mut self, id: usize, inner: Id, var: Var, write: Write) -> Made {
        self.substitute(id, inner, &mut HashMap::new(), &[(var, write)])
    }

    /// A diagram for packets before an element writes fields.
    pub(super) fn substitute(
        &mut self,
        element: usize,
        id: Id,
        memo: &mut HashMap<Id, Id>,
        new: &[(Var, Write)],
    ) -> Made {
        if let Some(done) = memo.get(&id) {
            return Ok(*done);
        }
        let made = match self.store.node(id).clone() {
            Node::Leaf(action) => self.substitute_leaf(element, action, memo, new)?,
            Node::Branch {
                var: var @ Var::Listed(..),
                kids,
            } => self.substitute_answer(element, (id, var, &kids), memo, new)?,
            Node::Branch { var, .. } if new.iter().any(|w| may_share(w.0, var)) => {
                // Which of the transport header's bytes it is, the header's length says: packets that come here are handed over.
                self.hand(element)
            }
            Node::Branch { var, kids } => match value_of(new, var) {
                Some(Value::Constant(value)) => {
                    let kid = self.store.at(id, var, value);
                    self.substitute(element, kid, memo, new)?
                }
                value => {
                    if let Some((written, _)) = new.iter().find(|w| clashes(w, var)) {
                        let why = format!("{var} is tested behind it, and it writes {written}");
                        self.unsaid(element, &why);
                    }
                    let mut changed = Vec::with_capacity(kids.len());
                    for (first, kid) in &kids {
                        changed.push((*first, self.substitute(element, *kid, memo, new)?));
                    }
                    match value {
                        Some(Value::Field(from, more)) => {
                            for (first, _) in &kids {
                                if let Some(id) = self.origins.get(&(var, *first)).copied() {
                                    let moved = first.wrapping_add_signed(-more) & var.most();
                                    self.origins.entry((from, moved)).or_insert(id);
                                }
                            }
                            let kids = shifted(&changed, more, var.most());
                            self.store.select(from, kids)?
                        }
                        _ => self.store.select(var, changed)?,
                    }
                }
            },
        };
        memo.insert(id, made);
        Ok(made)
    }

    /// A choice by the answer of a list, whose words may be written.
    fn substitute_answer(
        &mut self,
        element: usize,
        (id, var, kids): (Id, Var, &[(u64, Id)]),
        memo: &mut HashMap<Id, Id>,
        new: &[(Var, Write)],
    ) -> Made {
        for write in new {
            let clash = |read| value_of(new, read).is_none() && clashes(write, read);
            if self.actions.lists.depends(var, &clash) {
                let why = format!("a filter behind it tests what shares bits with {}", write.0);
                self.unsaid(element, &why);
            }
        }
        let moved = self.actions.lists.moved(var, &|read| value_of(new, read));
        let moved = match moved {
            Moved::Class(class) => {
                let kid = self.store.at(id, var, class);
                return self.substitute(element, kid, memo, new);
            }
            Moved::Answer(moved) => moved,
        };
        let mut changed = Vec::with_capacity(kids.len());
        for (first, kid) in kids {
            if let Some(filter) = self.origins.get(&(var, *first)).copied() {
                self.origins.entry((moved, *first)).or_insert(filter);
            }
            changed.push((*first, self.substitute(element, *kid, memo, new)?));
        }
        Ok(self.store.select(moved, changed)?)
    }

    pub(super) fn substitute_leaf(
        &mut self,
        element: usize,
        number: u32,
        memo: &mut HashMap<Id, Id>,
        new: &[(Var, Write)],
    ) -> Made {
        let Some(mut action) = self.actions.get(number).cloned() else {
            return Ok(self.store.leaf(number));
        };
        match action.verdict {
            Verdict::State(asked) => {
                if let Some(mut state) = self.actions.asked(asked).cloned() {
                    for (_, then) in &mut state.then {
                        *then = self.substitute(element, *then, memo, new)?;
                    }
                    for (var, write) in new {
                        for value in &mut state.key {
                            *value = value.before(*var, write.value);
                        }
                    }
                    action.verdict = Verdict::State(self.actions.state(state));
                }
            }
            _ => {
                let apart = |(var, write): &(Var, Write)| {
                    let later = action.writes.get(var);
                    later.is_some_and(|later| later.sums != write.sums)
                };
                // It was cut between two writes of a field, within the sum that follows the first: half of that is left, and no one
                // write of the field explains it.
                if matches!(action.verdict, Verdict::Leave { .. } | Verdict::Pass(_))
                    && new.iter().any(apart)
                {
                    return Ok(self.hand(element));
                }
                for (var, write) in new {
                    action = action.before(*var, *write);
                }
            }
        }
        let number = self.actions.number(action);
        Ok(self.store.leaf(number))
    }
}

/// What a field becomes.
fn value_of(new: &[(Var, Write)], var: Var) -> Option<Value> {
    new.iter().find(|w| w.0 == var).map(|w| w.1.value)
}

/// Whether a written field of the transport header may be one of the bytes that are tested at a place of the frame.
fn may_share(written: Var, tested: Var) -> bool {
    match (written, tested) {
        (Var::Bits(Base::Upper(at), ..), Var::Bits(Base::Frame, first, width)) => {
            first + u32::from(width) > (u32::from(at) + 20) * 8
        }
        _ => false,
    }
}

/// Whether a test of a field behind a write can be resolved by nobody: it shares bits with what is written, or is a sum that
/// follows the write.
fn clashes((written, write): &(Var, Write), tested: Var) -> bool {
    let sum = match tested {
        Var::Bits(Base::Frame, ..) => write
            .sums
            .header
            .is_some_and(|at| ip(at, bit::SUM).overlaps(tested)),
        Var::Bits(Base::Upper(_), first, _) => write.sums.upper != 0 && matches!(first, 48 | 128),
        // A right header stays right under a difference; one whose bytes are overwritten does not.
        Var::Checked(at, _) => {
            write.sums.header.is_none()
                && matches!(written, Var::Bits(Base::Frame, first, _) if *first >= u32::from(at) * 8)
        }
        _ => false,
    };
    sum || *written != tested && written.overlaps(tested)
}

/// Intervals of a field from those of the field with a number added to it.
fn shifted(kids: &[(u64, Id)], more: i64, max: u64) -> Vec<(u64, Id)> {
    let mut moved: Vec<(u64, Id)> = kids
        .iter()
        .map(|(first, id)| (first.wrapping_add_signed(-more) & max, *id))
        .collect();
    moved.sort_by_key(|k| k.0);
    if let (Some(first), Some(last)) = (moved.first().copied(), moved.last().copied())
        && first.0 != 0
    {
        // The last interval goes on at the other end.
        moved.insert(0, (0, last.1));
    }
    moved
}
