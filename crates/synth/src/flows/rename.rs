//! Diagrams in which words of entries are other values.

use std::collections::HashMap;

use super::{Becomes, FLOW, Work, asked};
use crate::action::{Value, Verdict};
use crate::backward::word_of;
use crate::diagram::{Full, Id};
use crate::field::Var;
use crate::listed::Moved;

impl Work<'_> {
    /// Writes of a rewriter's words are those of the flow's entry.
    pub(super) fn in_entry(&mut self, id: Id, number: u8) -> Result<Id, Full> {
        self.leaves(id, &mut |action| {
            for write in action.writes.values_mut() {
                if let Value::Field(Var::Entry(own, word), 0) = write.value
                    && own == number
                {
                    write.value = Value::Field(Var::Entry(FLOW, word), 0);
                    write.again = true;
                }
            }
        })
    }

    /// One more rewriter was passed.
    pub(super) fn passed(&mut self, id: Id) -> Result<Id, Full> {
        let early = self.early;
        self.leaves(id, &mut |action| {
            if !(early && matches!(action.verdict, Verdict::Drop(_))) {
                action.hops += 1;
            }
        })
    }

    pub(super) fn leaves(
        &mut self,
        id: Id,
        change: &mut dyn FnMut(&mut crate::action::Action),
    ) -> Result<Id, Full> {
        let actions = &mut *self.actions;
        self.store.rebuild(
            id,
            &mut HashMap::new(),
            &mut |store, number| {
                let Some(mut action) = actions.get(number).cloned() else {
                    return Ok(store.leaf(number));
                };
                if matches!(action.verdict, Verdict::State(_)) {
                    return Ok(store.leaf(number));
                }
                change(&mut action);
                let number = actions.number(action);
                Ok(store.leaf(number))
            },
            &mut |store, var, kids| store.select(var, kids),
        )
    }

    /// A diagram in which a variable is a number, another one, or one of a range.
    pub(super) fn resolve(
        &mut self,
        id: Id,
        var: Var,
        becomes: Becomes,
        header: u16,
    ) -> Result<Id, Full> {
        let new = match becomes {
            Becomes::Constant(number) => Value::Constant(number),
            Becomes::Word(word) => Value::Field(word_of(header, word), 0),
            Becomes::Range(low, count) => {
                return self.store.known(id, var, low, low + count - 1);
            }
        };
        self.renamed(id, &[(var, new)])
    }

    /// A diagram in which variables are other values, all at once; in askings, too.
    pub(super) fn renamed(&mut self, id: Id, new: &[(Var, Value)]) -> Result<Id, Full> {
        let mut states: HashMap<u32, u32> = HashMap::new();
        for number in asked(self.store, self.actions, id) {
            let Some(mut state) = self.actions.asked(number).cloned() else {
                continue;
            };
            for (_, then) in &mut state.then {
                *then = self.renamed(*then, new)?;
            }
            for value in &mut state.key {
                if let Value::Field(read, _) = *value
                    && let Some((_, to)) = new.iter().find(|n| n.0 == read)
                {
                    *value = *to;
                }
            }
            states.insert(number, self.actions.state(state));
        }
        let mut answers: HashMap<Var, Moved> = HashMap::new();
        for var in { self.store.reachable(id).into_iter() }.filter_map(|id| self.store.top(id)) {
            if matches!(var, Var::Listed(..)) {
                let to = |read| new.iter().find(|n| n.0 == read).map(|n| n.1);
                let moved = self.actions.lists.moved(var, &to);
                answers.insert(var, moved);
            }
        }
        let actions = &mut *self.actions;
        let at = |kids: &[(u64, Id)], number: u64| {
            let n = kids.partition_point(|k| k.0 <= number);
            kids.get(n.saturating_sub(1)).map_or(id, |k| k.1)
        };
        self.store.rebuild(
            id,
            &mut HashMap::new(),
            &mut |store, number| {
                let Some(mut action) = actions.get(number).cloned() else {
                    return Ok(store.leaf(number));
                };
                if let Verdict::State(asked) = action.verdict
                    && let Some(to) = states.get(&asked)
                {
                    action.verdict = Verdict::State(*to);
                }
                let number = actions.number(action);
                Ok(store.leaf(number))
            },
            &mut |store, var, kids| match (new.iter().find(|n| n.0 == var), answers.get(&var)) {
                (_, Some(Moved::Class(class))) => Ok(at(&kids, *class)),
                (_, Some(Moved::Answer(moved))) => store.select(*moved, kids),
                (Some((_, Value::Constant(number))), None) => Ok(at(&kids, *number)),
                (Some((_, Value::Field(from, _))), None) => store.select(*from, kids),
                (None, None) => store.select(var, kids),
            },
        )
    }

    pub(super) fn replace(&mut self, id: Id, replaced: &HashMap<u32, Id>) -> Result<Id, Full> {
        let actions = &*self.actions;
        self.store.rebuild(
            id,
            &mut HashMap::new(),
            &mut |store, number| {
                let state = actions.get(number).and_then(|a| match a.verdict {
                    Verdict::State(asked) => replaced.get(&asked).copied(),
                    _ => None,
                });
                Ok(state.unwrap_or_else(|| store.leaf(number)))
            },
            &mut |store, var, kids| store.select(var, kids),
        )
    }
}
