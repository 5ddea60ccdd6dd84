//! In which order values of the parameters are tried: first as they are, so that products with them are by
//! constants, then with each at its extremes, which is what decides whether a limit can be reached at all.

use batsat::{Lit, SolverInterface};
use millrace_check::moment::Moment;

use super::Sat;
use super::clauses::Clauses;
use crate::expr::{Arena, ExprId};

/// Most wrong turns of a search that fixes the parameters, and most ways to fix them that are tried.
const TURNS: u64 = 1000;
const TRIES: usize = 13;

/// A bit of a parameter: which, and what says that it is one.
struct Input {
    word: ExprId,
    at: u32,
    one: Lit,
    near: bool,
}

impl Input {
    fn is(&self, one: bool) -> Lit {
        if one { self.one } else { !self.one }
    }
}

impl Sat {
    fn parameters(&self, arena: &Arena, clauses: &Clauses) -> Vec<Input> {
        let input = |n: &usize| {
            let (word, at) = self.circuit.parameter(arena, *n)?;
            Some(Input {
                word,
                at,
                one: clauses.literal_of(*n)?,
                near: self.near.get(*n).copied().unwrap_or(false),
            })
        };
        self.spoken.iter().filter_map(input).collect()
    }

    /// Searches for what makes the roots one, with the parameters fixed in several ways, then with them free; none if
    /// the time ended.
    pub(super) fn search(
        &self,
        arena: &Arena,
        roots: &[Lit],
        clauses: &mut Clauses,
    ) -> Option<bool> {
        let inputs = self.parameters(arena, clauses);
        let mut words: Vec<ExprId> = inputs.iter().map(|i| i.word).collect();
        words.sort_unstable();
        words.dedup();
        let extremes = [0, 1, u64::MAX];
        let extremes = extremes
            .iter()
            .flat_map(|v| words.iter().map(move |w| Some((*w, *v))));
        let most = if inputs.is_empty() { 0 } else { TRIES };
        for set in std::iter::once(None).chain(extremes).take(most) {
            let fixed = |i: &Input| match set {
                Some((word, value)) if word == i.word => i.is(value >> i.at & 1 == 1),
                _ => i.is(i.near),
            };
            let mut assumed = roots.to_vec();
            assumed.extend(inputs.iter().map(fixed));
            clauses.solver.cb_mut().allow(Some(TURNS));
            let said = clauses.solve(&assumed);
            let innocent = |i: &Input| !clauses.solver.unsat_core_contains_var(i.one.var());
            // What cannot be although no parameter is blamed cannot be at all.
            if said == Some(true) || said == Some(false) && inputs.iter().all(innocent) {
                return said;
            }
            if Moment::now() > clauses.solver.cb().until {
                return None;
            }
        }
        clauses.solver.cb_mut().allow(None);
        clauses.solve(roots)
    }
}
