//! The solver of our own: a question about bit-vectors as a circuit, and that as clauses for a solver of
//! propositional formulas (BatSat, of the MiniSat family: Eén and Sörensson, SAT 2003). The circuit stays from
//! question to question, so that an expression is translated once; the clauses are new for each and hold no
//! more than the question speaks of, so that no answer depends on those before.
//!
//! Compared with Z3 on the questions of the bundled functions it is about a hundred times as fast: they are
//! small, and what Z3 does before it begins costs more than they do.

mod blast;
mod clauses;
mod gates;
mod tries;
mod watch;
mod words;

use millrace_check::moment::Moment;
use std::time::Duration;

use batsat::{Lit, Var};

use super::far::Values;
use super::{Question, Said, Solve};
use crate::expr::eval::Assignment;
use crate::expr::{Arena, ExprId, Node};
use blast::Circuit;
use clauses::Clauses;
use gates::{Bit, Gate};
use words::Word;

/// Most gates that are kept from question to question, about 60 bytes each.
const GATES: usize = 2 << 20;
/// Most gates of one question; the clauses of each take about 300 bytes.
const QUESTION: usize = 1 << 19;

/// Decides questions by itself. All of them must be of one arena.
pub struct Sat {
    circuit: Circuit,
    timeout: Duration,
    /// room for the variables of a question
    vars: Vec<Option<Var>>,
    /// the gates that the question at hand speaks of
    spoken: Vec<usize>,
    /// what each of them is under an assignment that nearly fits
    near: Vec<bool>,
}

/// Why a question is not put.
enum Unasked {
    /// there is no room for its gates
    TooLarge,
    /// the time ended before
    Late,
}

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

    /// The bits that must all be one: those of the conjuncts, then those of the lemmas.
    fn roots(
        &mut self,
        arena: &Arena,
        question: &Question<'_>,
        until: Moment,
    ) -> Result<Vec<Bit>, Unasked> {
        let mut roots = Vec::new();
        for e in question.all {
            let word = self.bits(arena, *e, until)?;
            roots.push(word.first().copied().unwrap_or(Bit::ONE));
        }
        for (a, b) in question.lemmas {
            let (x, y) = (self.bits(arena, *a, until)?, self.bits(arena, *b, until)?);
            let p = self.offset(arena, *a, until)?;
            let q = self.offset(arena, *b, until)?;
            let gates = &mut self.circuit.gates;
            let (there, same) = (gates.equal(&p, &q), gates.equal(&x, &y));
            roots.push(gates.or(!there, same));
        }
        Ok(roots)
    }

    fn bits(&mut self, arena: &Arena, e: ExprId, until: Moment) -> Result<Word, Unasked> {
        let bits = self.circuit.bits(arena, e, (GATES, until));
        bits.ok_or_else(|| {
            if self.circuit.gates.len() > GATES {
                Unasked::TooLarge
            } else {
                Unasked::Late
            }
        })
    }

    /// Where a packet byte is, in 16 bits.
    fn offset(&mut self, arena: &Arena, byte: ExprId, until: Moment) -> Result<Vec<Bit>, Unasked> {
        let Node::Byte { base, at } = arena.node(byte) else {
            return Ok(Vec::new());
        };
        let at = gates::Gates::number(*at as u64, 16);
        let Some(base) = base else { return Ok(at) };
        let mut from = self.bits(arena, *base, until)?;
        from.truncate(16);
        Ok(self.circuit.gates.plus(&from, &at, Bit::ZERO))
    }

    /// Value of each gate under an assignment.
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
        // Each input of a quotient is bound by the same.
        bounds.sort_unstable();
        bounds.dedup();
        (bounds, spoken)
    }

    /// The values of symbols and packet bytes that were spoken of.
    fn values(&self, arena: &Arena, question: &Question<'_>, clauses: &Clauses) -> Values {
        let mut spoken = question.all.to_vec();
        spoken.extend(question.lemmas.iter().flat_map(|l| [l.0, l.1]));
        let mut values = Values::default();
        for id in crate::expr::walk::cone(arena, &spoken, |_| false) {
            if !matches!(arena.node(id), Node::Sym(_) | Node::Byte { .. }) {
                continue;
            }
            let Some(word) = self.circuit.known(id) else {
                continue;
            };
            let mut spoken = false;
            let mut value = 0;
            for (i, b) in word.iter().enumerate() {
                let found = clauses.found(*b);
                spoken |= found.is_some();
                let one = b.constant().or(found).unwrap_or(false);
                value |= u64::from(one) << i;
            }
            if spoken {
                values.insert(id, value);
            }
        }
        values
    }

    /// Values of the known terms under the assignment of `evaluate`.
    fn as_near(&self, clauses: &Clauses) -> Vec<Lit> {
        let lit = |n: &usize| {
            let value = self.near.get(*n).copied().unwrap_or(false);
            clauses.literal_of(*n).map(|l| if value { l } else { !l })
        };
        self.spoken.iter().filter_map(lit).collect()
    }

    fn ask(
        &mut self,
        arena: &Arena,
        question: &Question<'_>,
        until: Moment,
    ) -> Result<Said, Unasked> {
        self.near.clear();
        let roots = self.roots(arena, question, until)?;
        let above = self.collect(&roots, false).1;
        let (bounds, below) = self.collect(&roots, true);
        if below.len() > QUESTION {
            return Err(Unasked::TooLarge);
        }
        self.spoken = below;
        let vars = std::mem::take(&mut self.vars);
        let mut clauses = Clauses::new(vars, self.circuit.gates.len(), until);
        clauses.declare(&self.spoken);
        let said = self.put(arena, question, (&roots, &bounds, &above), &mut clauses);
        self.vars = clauses.end(&self.spoken);
        said.ok_or(Unasked::Late)
    }

    /// Puts the question; none if the time ended before.
    fn put(
        &mut self,
        arena: &Arena,
        question: &Question<'_>,
        (roots, bounds, above): (&[Bit], &[Bit], &[usize]),
        clauses: &mut Clauses,
    ) -> Option<Said> {
        // First with products and quotients for any numbers: what cannot be then cannot be at all.
        let loose = |n: &usize| above.binary_search(n).is_ok() && !self.circuit.of_product(*n);
        let (first, second): (Vec<usize>, Vec<usize>) = self.spoken.iter().partition(|n| loose(n));
        if !clauses.write(&self.circuit.gates, &first) {
            return None;
        }
        if let Some(near) = question.near {
            self.evaluate(arena, near);
            // The search begins at the values that it saw last.
            clauses.solve(&self.as_near(clauses));
        }
        // What is asked for is assumed, so that the solver says which of it cannot be.
        let Some(assumed) = clauses.literals(roots) else {
            let never = roots.iter().position(|b| b.constant() == Some(false));
            let never = never.and_then(|i| question.all.get(i));
            return Some(Said::Fails(never.map(|e| vec![*e])));
        };
        if !second.is_empty() || !bounds.is_empty() {
            match clauses.solve(&assumed) {
                Some(false) => return Some(self.fails(question, roots, clauses)),
                Some(true) if question.rough => {
                    return Some(Said::Roughly(self.values(arena, question, clauses)));
                }
                Some(true) => {}
                None => return None,
            }
        }
        if !clauses.write(&self.circuit.gates, &second) {
            return None;
        }
        if !clauses.assert(bounds) {
            return Some(Said::Fails(None));
        }
        Some(if self.search(arena, &assumed, clauses)? {
            Said::Holds(self.values(arena, question, clauses))
        } else {
            self.fails(question, roots, clauses)
        })
    }

    /// That it cannot be, with what the last search blames. What lemmas and bounds say always holds.
    fn fails(&self, question: &Question<'_>, roots: &[Bit], clauses: &Clauses) -> Said {
        let blamed = question.all.iter().zip(roots);
        let blamed = blamed.filter(|(_, b)| clauses.blamed(**b));
        Said::Fails(Some(blamed.map(|(e, _)| *e).collect()))
    }
}

impl Solve for Sat {
    fn solve(&mut self, arena: &Arena, question: &Question<'_>) -> Said {
        let until = Moment::now() + self.timeout;
        let mut said = self.ask(arena, question, until);
        if matches!(said, Err(Unasked::TooLarge)) {
            // What was kept of earlier questions may be what leaves no room.
            self.circuit = Circuit::new();
            said = self.ask(arena, question, until);
        }
        match said {
            Ok(said) => said,
            Err(Unasked::Late) => {
                let ms = self.timeout.as_millis();
                Said::Unknown(format!("the solver found nothing within {ms} ms"))
            }
            Err(Unasked::TooLarge) => {
                self.circuit = Circuit::new();
                Said::Unknown(format!("the question takes more than {QUESTION} gates"))
            }
        }
    }
}
