//! Packets that end between rewriters as one leaf: which they have passed is computed, without a branch for each.
//!
//! A time to live of 1, 2, …, k - 1 ends behind as many of k rewriters: k - 1 leaves for each program of flows that differ in nothing but
//! the rewriters that are passed, and so k - 1 times the paths of all that follows.

use super::{Emitter, Known, condition};
use crate::action::Verdict;
use crate::diagram::{Id, Node};
use crate::field::Var;

/// Values of a field, the leaf's action, and the rewriters that are passed, a bit each.
struct Grade {
    first: u64,
    last: u64,
    action: u32,
    reach: u32,
}

impl Emitter<'_> {
    /// Writes the code of neighbouring values of a field whose packets end, each behind the rewriters of those below and one more. The
    /// values that are left, and the variable that holds the field by then.
    pub(super) fn graded(
        &mut self,
        var: Var,
        kids: &[(u64, Id)],
        known: Known,
        depth: usize,
    ) -> (Vec<(u64, u64, Id)>, Option<String>) {
        let all = kids.iter().enumerate().map(|(n, (first, id))| {
            let last = kids.get(n + 1).map_or(var.most(), |k| k.0 - 1);
            (*first, last, *id)
        });
        let all: Vec<_> = all.collect();
        let grades = self.grades(&all);
        let [lowest, .., highest] = grades.as_slice() else {
            return (all, None);
        };
        let value = self.read(var, known, depth);
        let value = self.local(var, &value, depth);
        let range = [(lowest.first, highest.last)];
        let test = condition::any(var, &value, &range);
        self.say(depth, &format!("if ({test}) {{"));
        self.say(depth + 1, &format!("reach = {:#x};", lowest.reach));
        for pair in grades.windows(2) {
            let [below, grade] = pair else {
                continue;
            };
            let (more, first) = (grade.reach & !below.reach, grade.first);
            self.say(
                depth + 1,
                &format!("reach |= {more:#x} & reached({first}, {value});"),
            );
        }
        self.say(depth + 1, "through = 0;");
        self.leave(lowest.action, known, depth + 1);
        self.say(depth, "}");
        let (from, to) = range.first().copied().unwrap_or_default();
        let left = all.into_iter();
        let left = left.filter(|(first, ..)| !(from..=to).contains(first));
        (left.collect(), Some(value))
    }

    /// The first run of neighbours that may be one, of two or more.
    fn grades(&self, all: &[(u64, u64, Id)]) -> Vec<Grade> {
        let mut found: Vec<Grade> = Vec::new();
        for (first, last, id) in all {
            let grade = self.grade(*first, *last, *id);
            match (found.last(), grade) {
                (None, None) => {}
                (None, Some(grade)) => found.push(grade),
                (Some(below), Some(grade))
                    if below.reach & !grade.reach == 0
                        && self.ends_alike(below.action, grade.action) =>
                {
                    found.push(grade);
                }
                (Some(_), grade) if found.len() < 2 => {
                    found.clear();
                    found.extend(grade);
                }
                (Some(_), _) => break,
            }
        }
        found
    }

    /// A leaf whose packets end behind some, but not all, of the rewriters on their way.
    fn grade(&self, first: u64, last: u64, id: Id) -> Option<Grade> {
        let program = self.program.filter(|_| self.stamped())?;
        let Node::Leaf(action) = self.of.store.node(id) else {
            return None;
        };
        let passed = usize::from(self.of.actions.get(*action)?.hops);
        let ends = self.ends_alike(*action, *action) && passed > 0 && passed < program.hops;
        ends.then(|| Grade {
            first,
            last,
            action: *action,
            reach: self.reach(*action, program),
        })
    }

    /// Whether two actions drop packets, and for the same reason: what they write is lost.
    pub(super) fn ends_alike(&self, one: u32, other: u32) -> bool {
        let drops = |number| match self.of.actions.get(number).map(|a| a.verdict) {
            Some(verdict @ Verdict::Drop(_)) => Some(verdict),
            _ => None,
        };
        drops(one).is_some_and(|verdict| drops(other) == Some(verdict))
    }
}
