//! Following paths: all of the entry's, or those of one turn of a loop.

use std::collections::BTreeMap;

use super::{Engine, Executed, Gap, State};
use crate::model::{Outcome, Path};

use super::step::Next;

/// Result of following some states.
#[derive(Default)]
pub(super) struct Followed {
    /// paths that ended
    pub paths: Vec<Path>,
    /// within a loop: states that came back to its head
    pub back: Vec<State>,
    /// within a loop: states that left it
    pub out: Vec<State>,
    /// why there may be paths that are not among these
    pub missing: Option<String>,
    /// a budget was spent
    pub spent: bool,
    /// states that wait, by the blocks in which they go on
    pub(super) pending: BTreeMap<usize, Vec<State>>,
    /// the loop, by its head
    pub(super) within: Option<usize>,
}

impl Engine<'_> {
    /// Follows every path.
    #[must_use]
    pub fn run(&mut self) -> Executed {
        let (host, mut done) = loop {
            let first = self.begin();
            let host = first.guard.len();
            let done = self.explore(first, None);
            // What merges at the head of a loop may have kept it from being seen that it multiplies the ways.
            let crowds = self.crowds == Some(true) && done.missing.is_some() && !self.late();
            if std::mem::take(&mut self.refines) && !self.late() {
                self.joints.clear();
                self.forget_turns();
                continue;
            }
            match self.widens.take() {
                Some(head) => {
                    self.summed.entry(head).or_default();
                    self.crowds = self.crowds.map(|_| false);
                }
                None if crowds => self.crowds = None,
                None => break (host, done),
            }
            self.forget_turns();
        };
        for p in &mut done.paths {
            p.guard.drain(..host.min(p.guard.len()));
        }
        let unsure = |what: &str| format!("some paths may be impossible: {what}");
        let undecided = done.paths.iter().any(|p| p.undecided);
        let undecided = self.oracle.reason.as_deref().filter(|_| undecided);
        let loose = done.paths.iter().find_map(|p| p.loose);
        let outcome = match (done.missing, undecided.or(loose)) {
            (Some(why), _) => Outcome::Bounded { why },
            (None, Some(doubt)) => Outcome::Covering { why: unsure(doubt) },
            (None, None) => Outcome::Exhaustive,
        };
        Executed {
            paths: done.paths,
            outcome,
            steps: self.steps,
            spent: done.spent,
        }
    }

    /// Before all is followed once more.
    fn forget_turns(&mut self) {
        self.entered.clear();
        self.rounds.clear();
        self.gone.clear();
        self.left.clear();
    }

    /// Follows a state to the ends of all its paths; within a loop, from its head, to the ends of one turn.
    pub(super) fn explore(&mut self, first: State, within: Option<usize>) -> Followed {
        let mut f = Followed {
            within,
            ..Followed::default()
        };
        let start = self.blocks.of.get(first.at).copied().unwrap_or(0);
        f.pending.entry(start).or_default().push(first);
        let mut kept = Vec::new();
        while let Some(block) = self.next_block(&f.pending) {
            self.keep(&mut kept, block, &f);
            let ready = match self.easiest(&mut f.pending) {
                Some(s) => vec![s],
                None => {
                    let states = f.pending.remove(&block).unwrap_or_default();
                    let states = self.arrive(block, states);
                    match within {
                        None => self.cut_at_join(block, states),
                        Some(_) => states,
                    }
                }
            };
            if within != Some(block) {
                self.look_at(block, &ready);
            }
            if self.go_back(&mut kept, &mut f) {
                continue;
            }
            for s in ready {
                // One block may be left in many ways, each of which asks the solver.
                if self.late() || self.widens.is_some() || self.refines {
                    break;
                }
                if let Err(Gap(what)) = self.goes_on(s, &mut f) {
                    f.missing.get_or_insert(what);
                }
            }
            f.paths.append(&mut self.left);
            let waiting: usize = f.pending.values().map(Vec::len).sum();
            let spent = if f.paths.len() + waiting > self.limits.paths {
                Some(format!("more than {} paths", self.limits.paths))
            } else {
                self.spent()
            };
            if let Some(spent) = spent {
                let gap = f
                    .missing
                    .map_or(String::new(), |gap| format!("; and {gap}"));
                f.spent = true;
                f.missing = Some(format!("the budget is spent: {spent}{gap}"));
                break;
            }
            if self.go_back(&mut kept, &mut f) {
                continue;
            }
            if self.widens.is_some() || self.refines {
                break;
            }
        }
        f
    }

    /// A state goes on: to the end of its block, or through a loop.
    fn goes_on(&mut self, s: State, f: &mut Followed) -> Result<(), Gap> {
        let block = self.blocks.of.get(s.at).copied().unwrap_or(0);
        let at_head = self.blocks.starts.get(block) == Some(&s.at) && f.within != Some(block);
        if !at_head || !self.summed.contains_key(&block) {
            return self.block(s, f);
        }
        let Followed {
            out,
            paths,
            missing,
            ..
        } = self.any_turns(s, block)?;
        f.paths.extend(paths);
        for s in out {
            self.arrives(s, block, f)?;
        }
        missing.map_or(Ok(()), |what| Err(Gap(what)))
    }

    /// A state is where its next block begins, or in the middle of it.
    fn arrives(&mut self, s: State, from: usize, f: &mut Followed) -> Result<(), Gap> {
        let Some(block) = self.blocks.of.get(s.at).copied() else {
            return Err(Gap("ran off the program".to_owned()));
        };
        let starts = self.blocks.starts.get(block) == Some(&s.at);
        let inside = |head, block| {
            let l = self.loops.at_head(head);
            l.is_some_and(|l| self.loops.contains(l, block))
        };
        for (id, l) in self.loops.all.iter().enumerate() {
            if self.loops.contains(id, from) && !self.loops.contains(id, block) {
                *self.gone.entry(l.head).or_default() += 1;
            }
        }
        let head = self.loops.at_head(block).is_some();
        if head && starts && !inside(block, from) {
            *self.entered.entry(block).or_default() += 1;
        }
        let outside = f.within.is_some_and(|head| !inside(head, block));
        if f.within == Some(block) && starts {
            f.back.push(s);
        } else if outside {
            f.out.push(s);
        } else {
            f.pending.entry(block).or_default().push(s);
        }
        Ok(())
    }

    /// Follows a path to the end of its block.
    fn block(&mut self, first: State, f: &mut Followed) -> Result<(), Gap> {
        // A helper may split a path in the middle of a block: each half goes on from there.
        let mut here = vec![first];
        let mut gap = None;
        while let Some(s) = here.pop() {
            // All of a program may be one block.
            if self.spent().is_some() {
                break;
            }
            self.steps += 1;
            let from = self.blocks.of.get(s.at).copied();
            let at = s.at;
            match self.step(s) {
                Ok(Next::On(next)) => {
                    for s in next {
                        let inside = {
                            let block = self.blocks.of.get(s.at).copied();
                            block == from
                                && from.and_then(|b| self.blocks.starts.get(b)) != Some(&s.at)
                        };
                        if inside && here.is_empty() {
                            here.push(s);
                        } else if let Err(g) = self.arrives(s, from.unwrap_or(0), f) {
                            gap = Some(g);
                        }
                    }
                }
                Ok(Next::End(s, verdict)) => {
                    let path = self.path(*s, verdict);
                    f.paths.push(path);
                }
                Err(Gap(what)) => {
                    let line = self.flow.steps.get(at).and_then(|s| s.line.as_ref());
                    gap = Some(Gap(match line {
                        Some(line) => format!("{what}, at {}", line.place()),
                        None => what,
                    }));
                }
            }
        }
        gap.map_or(Ok(()), Err)
    }
}
