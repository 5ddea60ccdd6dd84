//! Gates as clauses (Tseitin 1968), for one question.

use batsat::{Lit, Solver, SolverInterface, SolverOpts, Var, lbool};
use millrace_check::moment::Moment;

use super::gates::{Bit, Gate, Gates};
use super::watch::Watch;

/// Gates of which the clauses are written between two looks at the clock.
const LOOKS: usize = 4096;

/// The variables of the gates that a question speaks of, and the solver that has their clauses.
pub(super) struct Clauses {
    pub(super) solver: Solver<Watch>,
    vars: Vec<Option<Var>>,
}

impl Clauses {
    /// Of as many gates, with the variables of an earlier question for their room.
    pub(super) fn new(mut vars: Vec<Option<Var>>, gates: usize, until: Moment) -> Self {
        vars.resize(gates, None);
        Self {
            solver: Solver::new(SolverOpts::default(), Watch::new(until)),
            vars,
        }
    }

    /// The room for the next question's variables.
    pub(super) fn end(mut self, spoken: &[usize]) -> Vec<Option<Var>> {
        for n in spoken {
            if let Some(slot) = self.vars.get_mut(*n) {
                *slot = None;
            }
        }
        self.vars
    }

    /// Gives the gates variables. The first are decided on first, so what is asked for comes before what it is
    /// made of.
    pub(super) fn declare(&mut self, spoken: &[usize]) {
        for n in spoken.iter().rev() {
            if let Some(slot) = self.vars.get_mut(*n) {
                *slot = Some(self.solver.new_var_default());
            }
        }
    }

    /// Writes the clauses of gates; false if the time ended before.
    pub(super) fn write(&mut self, circuit: &Gates, gates: &[usize]) -> bool {
        let mut clause = Vec::new();
        for (i, n) in gates.iter().enumerate() {
            if i % LOOKS == 0 && Moment::now() > self.solver.cb().until {
                return false;
            }
            let Some(out) = self.literal_of(*n) else {
                continue;
            };
            let vars = &self.vars;
            let lit = |b: Bit| literal(vars, b);
            let to = &mut self.solver;
            let mut say = |clauses: &[&[Option<Lit>]]| {
                for c in clauses {
                    clause.clear();
                    clause.extend(c.iter().flatten());
                    to.add_clause_reuse(&mut clause);
                }
            };
            let (g, h) = (Some(out), Some(!out));
            let not = |l: Option<Lit>| l.map(|l| !l);
            match circuit.gate(*n) {
                Gate::Input => {}
                Gate::And(a, b) => {
                    let (a, b) = (lit(a), lit(b));
                    say(&[&[h, a], &[h, b], &[g, not(a), not(b)]]);
                }
                Gate::Xor(a, b) => {
                    let (a, b) = (lit(a), lit(b));
                    let (x, y) = (not(a), not(b));
                    say(&[&[h, a, b], &[h, x, y], &[g, x, b], &[g, a, y]]);
                }
                Gate::Choice(c, a, b) => {
                    let (c, a, b) = (lit(c), lit(a), lit(b));
                    let (z, x, y) = (not(c), not(a), not(b));
                    // The last two follow, and let the solver see it at once.
                    say(&[
                        &[z, x, g],
                        &[z, a, h],
                        &[c, y, g],
                        &[c, b, h],
                        &[x, y, g],
                        &[a, b, h],
                    ]);
                }
                Gate::Sum(a, b, c) => {
                    let (a, b, c) = (lit(a), lit(b), lit(c));
                    let (x, y, z) = (not(a), not(b), not(c));
                    say(&[
                        &[h, a, b, c],
                        &[h, a, y, z],
                        &[h, x, b, z],
                        &[h, x, y, c],
                        &[g, x, y, z],
                        &[g, x, b, c],
                        &[g, a, y, c],
                        &[g, a, b, z],
                    ]);
                }
                Gate::Carry(a, b, c) => {
                    let (a, b, c) = (lit(a), lit(b), lit(c));
                    let (x, y, z) = (not(a), not(b), not(c));
                    say(&[
                        &[x, y, g],
                        &[x, z, g],
                        &[y, z, g],
                        &[a, b, h],
                        &[a, c, h],
                        &[b, c, h],
                    ]);
                }
            }
        }
        true
    }

    /// Says that these are one; false if that contradicts itself.
    pub(super) fn assert(&mut self, all: &[Bit]) -> bool {
        let mut clause = Vec::new();
        for b in all.iter().copied() {
            match b.constant() {
                Some(true) => {}
                Some(false) => return false,
                None => {
                    clause.clear();
                    clause.extend(self.literal(b));
                    if !self.solver.add_clause_reuse(&mut clause) {
                        return false;
                    }
                }
            }
        }
        true
    }

    /// The literal that says that these are one; none if one of them never is.
    pub(super) fn literals(&self, all: &[Bit]) -> Option<Vec<Lit>> {
        if all.iter().any(|b| b.constant() == Some(false)) {
            return None;
        }
        Some(all.iter().filter_map(|b| self.literal(*b)).collect())
    }

    /// Whether the last search, which found nothing, blames that this is one.
    pub(super) fn blamed(&self, b: Bit) -> bool {
        let lit = self.literal(b);
        lit.is_some_and(|l| self.solver.unsat_core_contains_var(l.var()))
    }

    /// Whether all clauses and these literals can hold at once; none if the search was ended.
    pub(super) fn solve(&mut self, assumed: &[Lit]) -> Option<bool> {
        let said = self.solver.solve_limited(assumed);
        (said != lbool::UNDEF).then(|| said == lbool::TRUE)
    }

    /// The literal that says that the gate is one, if the question speaks of it.
    pub(super) fn literal_of(&self, gate: usize) -> Option<Lit> {
        literal_of(&self.vars, gate)
    }

    fn literal(&self, b: Bit) -> Option<Lit> {
        literal(&self.vars, b)
    }

    /// Value of a bit in the last search that found something; none if it does not occur.
    pub(super) fn found(&self, b: Bit) -> Option<bool> {
        let lit = self.literal(b)?;
        Some(self.solver.value_lit(lit) == lbool::TRUE)
    }
}

fn literal_of(vars: &[Option<Var>], gate: usize) -> Option<Lit> {
    let var = vars.get(gate).copied().flatten()?;
    Some(Lit::new(var, true))
}

fn literal(vars: &[Option<Var>], b: Bit) -> Option<Lit> {
    let lit = literal_of(vars, b.gate())?;
    Some(if b.negated() { !lit } else { lit })
}
