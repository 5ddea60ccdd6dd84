//! The solver of our own: a question about bit-vectors as a circuit, and that as clauses for a solver of
//! propositional formulas (BatSat, of the MiniSat family: Eén and Sörensson, SAT 2003). The circuit stays from
//! question to question, so that an expression is translated once; the clauses are new for each and hold no
//! more than the question speaks of, so that no answer depends on those before.
//!
//! Compared with Z3 on the questions of the bundled functions it is about a hundred times as fast: they are
//! small, and what Z3 does before it begins costs more than they do.

mod blast;
mod gates;
mod words;

use std::cell::Cell;
use std::time::{Duration, Instant};

use batsat::{Callbacks, ClauseKind, Lit, Solver, SolverInterface, SolverOpts, Var, lbool};

use super::far::{Lemma, Values};
use super::{Said, Solve};
use crate::expr::eval::Assignment;
use crate::expr::ids::IdSet;
use crate::expr::{Arena, ExprId, Node};
use blast::Circuit;
use gates::{Bit, Gate};

/// Most gates that are kept, about 60 bytes each.
const GATES: usize = 4 << 20;
/// How often the search goes on between two looks at the clock.
const LOOKS: u32 = 256;

/// Most wrong turns of a search that fixes the parameters, and most ways to fix them that are tried.
const TURNS: u64 = 1000;
const TRIES: usize = 13;

/// Ends a search when its time is up.
struct Watch {
    until: Instant,
    looks: Cell<u32>,
    /// wrong turns, and the most that there may be
    turns: u64,
    most: u64,
    over: Cell<bool>,
}

impl Watch {
    fn new(until: Instant) -> Self {
        Self {
            until,
            looks: Cell::new(0),
            turns: 0,
            most: u64::MAX,
            over: Cell::new(false),
        }
    }
}

impl Callbacks for Watch {
    fn on_new_clause(&mut self, _: &[Lit], kind: ClauseKind) {
        self.turns += u64::from(kind == ClauseKind::Learnt);
    }

    fn stop(&self) -> bool {
        // Once over it stays so: it is asked again on the way out.
        self.looks.set(self.looks.get().wrapping_add(1));
        let late = self.looks.get().is_multiple_of(LOOKS) && Instant::now() > self.until;
        if late || self.turns > self.most {
            self.over.set(true);
        }
        self.over.get()
    }
}

/// Decides questions by itself. All of them must be of one arena.
pub struct Sat {
    circuit: Circuit,
    timeout: Duration,
    /// the variable of a gate, in the question at hand
    vars: Vec<Option<Var>>,
    spoken: Vec<usize>,
    /// what each of them is under an assignment that nearly fits
    near: Vec<bool>,
}

/// A question is larger than what is kept.
struct TooLarge;

impl Sat {
    /// Takes at most so long for a question.
    #[must_use]
    pub fn new(timeout: Duration) -> Self {
        Self {
            circuit: Circuit::new(),
            timeout,
            vars: Vec::new(),
            spoken: Vec::new(),
            near: Vec::new(),
        }
    }

    /// The bits that must all be one.
    fn roots(
        &mut self,
        arena: &Arena,
        all: &[ExprId],
        lemmas: &[Lemma],
    ) -> Result<Vec<Bit>, TooLarge> {
        let mut roots = Vec::new();
        for e in all {
            let word = self.circuit.bits(arena, *e, GATES).ok_or(TooLarge)?;
            roots.extend(word.first());
        }
        for (a, b) in lemmas {
            let bytes = [*a, *b].map(|e| self.circuit.bits(arena, e, GATES));
            let [Some(x), Some(y)] = bytes else {
                return Err(TooLarge);
            };
            let p = self.offset(arena, *a).ok_or(TooLarge)?;
            let q = self.offset(arena, *b).ok_or(TooLarge)?;
            let gates = &mut self.circuit.gates;
            let (there, same) = (gates.equal(&p, &q), gates.equal(&x, &y));
            roots.push(gates.or(!there, same));
        }
        Ok(roots)
    }

    /// Where a packet byte is, in 16 bits.
    fn offset(&mut self, arena: &Arena, byte: ExprId) -> Option<Vec<Bit>> {
        let Node::Byte { base, at } = arena.node(byte) else {
            return Some(Vec::new());
        };
        let at = gates::Gates::number(*at as u64, 16);
        let Some(base) = base else { return Some(at) };
        let mut from = self.circuit.bits(arena, *base, GATES)?;
        from.truncate(16);
        Some(self.circuit.gates.plus(&from, &at, Bit::ZERO))
    }

    /// What each gate is under an assignment.
    fn evaluate(&mut self, arena: &Arena, under: &Assignment) {
        self.near.resize(self.circuit.gates.len(), false);
        for n in &self.spoken {
            let of = |b: Bit| {
                let plain = self.near.get(b.gate()).copied().unwrap_or(false);
                plain ^ b.negated()
            };
            let value = match self.circuit.gates.gate(*n) {
                Gate::Input => self.circuit.input(arena, *n, under),
                Gate::And(a, b) => of(a) && of(b),
                Gate::Xor(a, b) => of(a) ^ of(b),
                Gate::Choice(c, a, b) => of(if of(c) { a } else { b }),
                Gate::Sum(a, b, c) => of(a) ^ of(b) ^ of(c),
                Gate::Carry(a, b, c) => u8::from(of(a)) + u8::from(of(b)) + u8::from(of(c)) > 1,
            };
            if let Some(slot) = self.near.get_mut(*n) {
                *slot = value;
            }
        }
    }

    /// The gates below these, operands included, and what must be one with them; or none of what is below a
    /// product or binds a quotient.
    fn collect(&self, roots: &[Bit], all: bool) -> (Vec<Bit>, Vec<usize>) {
        let mut todo: Vec<usize> = roots.iter().map(|b| b.gate()).collect();
        let (mut bounds, mut spoken) = (Vec::new(), Vec::new());
        let mut seen = vec![false; self.circuit.gates.len()];
        while let Some(n) = todo.pop() {
            match seen.get_mut(n) {
                Some(seen) if !*seen && n != 0 => *seen = true,
                _ => continue,
            }
            spoken.push(n);
            if !all && self.circuit.of_product(n) {
                continue;
            }
            let gate = self.circuit.gates.gate(n);
            todo.extend(gate.operands().iter().flatten().map(|b| b.gate()));
            for b in self.circuit.gates.bound(n).iter().filter(|_| all) {
                bounds.push(*b);
                todo.push(b.gate());
            }
        }
        // Operands have smaller numbers.
        spoken.sort_unstable();
        (bounds, spoken)
    }

    /// Gives the gates variables. The first are decided on first, so what is asked for comes before what it is
    /// made of.
    fn declare(&mut self, to: &mut Solver<Watch>) {
        self.vars.resize(self.circuit.gates.len(), None);
        for n in self.spoken.iter().rev() {
            if let Some(slot) = self.vars.get_mut(*n) {
                *slot = Some(to.new_var_default());
            }
        }
    }

    /// Writes the clauses of gates.
    fn write(&self, gates: &[usize], to: &mut Solver<Watch>) {
        let mut clause = Vec::new();
        for n in gates {
            let Some(out) = self.literal_of(*n) else {
                continue;
            };
            let lit = |b: Bit| self.literal(b);
            let mut say = |clauses: &[&[Option<Lit>]]| {
                for c in clauses {
                    clause.clear();
                    clause.extend(c.iter().flatten());
                    to.add_clause_reuse(&mut clause);
                }
            };
            let (g, h) = (Some(out), Some(!out));
            let not = |l: Option<Lit>| l.map(|l| !l);
            match self.circuit.gates.gate(*n) {
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
    }

    /// Says that these are one; false if that contradicts itself.
    fn assert(&self, all: &[Bit], to: &mut Solver<Watch>) -> bool {
        let mut clause = Vec::new();
        for b in all.iter().copied() {
            match b.constant() {
                Some(true) => {}
                Some(false) => return false,
                None => {
                    clause.clear();
                    clause.extend(self.literal(b));
                    if !to.add_clause_reuse(&mut clause) {
                        return false;
                    }
                }
            }
        }
        true
    }

    fn literal_of(&self, gate: usize) -> Option<Lit> {
        let var = self.vars.get(gate).copied().flatten()?;
        Some(Lit::new(var, true))
    }

    fn literal(&self, b: Bit) -> Option<Lit> {
        let lit = self.literal_of(b.gate())?;
        Some(if b.negated() { !lit } else { lit })
    }

    /// The values of symbols and packet bytes that were spoken of.
    fn values(&self, arena: &Arena, all: &[ExprId], solver: &Solver<Watch>) -> Values {
        let mut values = Values::default();
        for id in crate::expr::walk::cone(arena, all, |_| false) {
            if !matches!(arena.node(id), Node::Sym(_) | Node::Byte { .. }) {
                continue;
            }
            let Some(word) = self.circuit.known(id) else {
                continue;
            };
            let mut spoken = false;
            let mut value = 0;
            for (i, b) in word.iter().enumerate() {
                let one = match (b.constant(), self.literal(*b)) {
                    (Some(one), _) => one,
                    (None, Some(lit)) => {
                        spoken = true;
                        solver.value_lit(lit) == lbool::TRUE
                    }
                    (None, None) => false,
                };
                value |= u64::from(one) << i;
            }
            if spoken {
                values.insert(id, value);
            }
        }
        values
    }

    /// With the parameters as they are first, so that products with them are by constants, then with each at
    /// its extremes, which is what decides whether a limit can be reached at all.
    fn search(&mut self, arena: &Arena, solver: &mut Solver<Watch>) -> lbool {
        let circuit = &self.circuit;
        let parameters = self.as_near(|n| circuit.parameter(arena, n).is_some());
        let mut tries = vec![parameters.clone()];
        let mut words: Vec<ExprId> = Vec::new();
        for n in &self.spoken {
            words.extend(circuit.parameter(arena, *n).map(|p| p.0));
        }
        words.sort_unstable();
        words.dedup();
        for value in [0, 1, u64::MAX] {
            for word in &words {
                let set = |(l, n): (&Lit, usize)| match circuit.parameter(arena, n) {
                    Some((e, at)) if e == *word => Lit::new(l.var(), value >> at & 1 == 1),
                    _ => *l,
                };
                let inputs = self.spoken.iter().copied();
                let inputs = inputs.filter(|n| circuit.parameter(arena, *n).is_some());
                tries.push(parameters.iter().zip(inputs).map(set).collect());
            }
        }
        for assumed in tries.iter().filter(|t| !t.is_empty()).take(TRIES) {
            solver.cb_mut().most = solver.cb().turns + TURNS;
            let said = solver.solve_limited(assumed);
            solver.cb_mut().most = u64::MAX;
            if said == lbool::TRUE || said == lbool::FALSE && solver.unsat_core().is_empty() {
                return said;
            }
            if Instant::now() > solver.cb().until {
                return lbool::UNDEF;
            }
            solver.cb_mut().over.set(false);
        }
        solver.solve_limited(&[])
    }

    /// What is spoken of, as it is under the assignment of `evaluate`.
    fn as_near(&self, which: impl Fn(usize) -> bool) -> Vec<Lit> {
        let lit = |n: usize| {
            let value = self.near.get(n).copied().unwrap_or(false);
            self.literal_of(n).map(|l| if value { l } else { !l })
        };
        let spoken = self.spoken.iter().copied();
        spoken.filter(|n| which(*n)).filter_map(lit).collect()
    }

    fn ask(
        &mut self,
        arena: &Arena,
        all: &[ExprId],
        lemmas: &[Lemma],
        near: Option<&Assignment>,
    ) -> Result<Said, TooLarge> {
        let roots = self.roots(arena, all, lemmas)?;
        let above = self.collect(&roots, false).1;
        let (bounds, below) = self.collect(&roots, true);
        self.spoken = below;
        let until = Instant::now() + self.timeout;
        let mut solver = Solver::new(SolverOpts::default(), Watch::new(until));
        self.declare(&mut solver);
        // First with products and quotients for any numbers: what cannot be then cannot be at all.
        let is_above: IdSet<u32> = above.iter().map(|n| *n as u32).collect();
        let loose = |n: &usize| is_above.contains(&(*n as u32)) && !self.circuit.of_product(*n);
        let (first, second): (Vec<usize>, Vec<usize>) = self.spoken.iter().partition(|n| loose(n));
        self.write(&first, &mut solver);
        if let Some(near) = near {
            self.evaluate(arena, near);
            // The search begins at the values that it saw last.
            let near = self.as_near(|_| true);
            solver.solve_limited(&near);
        }
        let mut said = if self.assert(&roots, &mut solver) {
            lbool::UNDEF
        } else {
            lbool::FALSE
        };
        if said != lbool::FALSE && (!second.is_empty() || !bounds.is_empty()) {
            said = solver.solve_limited(&[]);
        }
        if said != lbool::FALSE {
            self.write(&second, &mut solver);
            said = if self.assert(&bounds, &mut solver) {
                self.search(arena, &mut solver)
            } else {
                lbool::FALSE
            };
        }
        let said = if said == lbool::TRUE {
            let mut spoken = all.to_vec();
            spoken.extend(lemmas.iter().flat_map(|l| [l.0, l.1]));
            Said::Holds(self.values(arena, &spoken, &solver))
        } else if said == lbool::FALSE {
            Said::Fails
        } else {
            let ms = self.timeout.as_millis();
            Said::Unknown(format!("the solver found nothing within {ms} ms"))
        };
        for n in self.spoken.drain(..) {
            if let Some(slot) = self.vars.get_mut(n) {
                *slot = None;
            }
        }
        Ok(said)
    }
}

impl Solve for Sat {
    fn solve(
        &mut self,
        arena: &Arena,
        all: &[ExprId],
        lemmas: &[Lemma],
        near: Option<&Assignment>,
    ) -> Said {
        if let Ok(said) = self.ask(arena, all, lemmas, near) {
            return said;
        }
        // What was kept of earlier questions may be what leaves no room.
        self.circuit = Circuit::new();
        self.vars = Vec::new();
        self.ask(arena, all, lemmas, near).unwrap_or_else(|_| {
            self.circuit = Circuit::new();
            self.vars = Vec::new();
            Said::Unknown(format!("the question takes more than {GATES} gates"))
        })
    }
}
