//! Can a guard hold? First what is known without asking: the simplifier, and assignments that held
//! before; then a solver, through the trait [`Solve`].

mod repair;
pub mod smt;
mod z3;

use std::rc::Rc;

use crate::expr::eval::Assignment;
use crate::expr::walk::cone;
use crate::expr::{Arena, ExprId};

pub use z3::Z3;

/// What a solver says.
#[derive(Clone, Debug)]
pub enum Answer {
    /// it can hold: so
    Holds(Rc<Assignment>),
    /// it cannot
    Fails,
    /// nothing was found within the time allowed, or there is no solver
    Unknown(String),
}

/// A decision procedure for conjunctions of expressions of width 1.
pub trait Solve {
    /// Whether all can hold at once.
    fn solve(&mut self, arena: &Arena, all: &[ExprId]) -> Answer;
}

/// Most nodes of a condition that the first question of two contains.
const LIGHT: usize = 150;
/// Most assignments that are remembered.
const REMEMBERED: usize = 48;

/// The layers before the solver, and counts of what each answered.
pub struct Oracle {
    solver: Box<dyn Solve>,
    recent: std::collections::VecDeque<Rc<Assignment>>,
    sizes: std::collections::HashMap<ExprId, usize>,
    /// questions that a remembered assignment answered
    pub remembered: u64,
    /// questions that the solver got
    pub asked: u64,
    /// questions that it did not answer, and what it said last
    pub unanswered: u64,
    /// the last reason
    pub reason: Option<String>,
}

impl Oracle {
    /// Before this solver.
    #[must_use]
    pub fn new(solver: Box<dyn Solve>) -> Self {
        Self {
            solver,
            recent: std::collections::VecDeque::new(),
            sizes: std::collections::HashMap::new(),
            remembered: 0,
            asked: 0,
            unanswered: 0,
            reason: None,
        }
    }

    /// Keeps an assignment to try first.
    pub fn remember(&mut self, model: Rc<Assignment>) {
        if self.recent.len() >= REMEMBERED {
            self.recent.pop_back();
        }
        self.recent.push_front(model);
    }

    fn size(&mut self, arena: &Arena, e: ExprId) -> usize {
        *self
            .sizes
            .entry(e)
            .or_insert_with(|| cone(arena, &[e], |_| false).len())
    }

    /// Whether all can hold at once.
    pub fn holds(&mut self, arena: &Arena, all: &[ExprId]) -> Answer {
        if all.iter().any(|e| arena.constant(*e) == Some(0)) {
            return Answer::Fails;
        }
        let fits = |m: &Assignment| all.iter().rev().all(|e| m.value(arena, *e) == 1);
        if let Some(i) = self.recent.iter().position(|m| fits(m))
            && let Some(m) = self.recent.remove(i)
        {
            self.remembered += 1;
            self.recent.push_front(m.clone());
            return Answer::Holds(m);
        }
        // Large conditions, checksums mostly, are left out at first. If the rest cannot hold, neither can
        // all; if it can, a packet with its checksum put right may already be the answer.
        let light: Vec<ExprId> = all
            .iter()
            .copied()
            .filter(|e| self.size(arena, *e) <= LIGHT)
            .collect();
        if light.len() < all.len() {
            self.asked += 1;
            match self.solver.solve(arena, &light) {
                Answer::Fails => return Answer::Fails,
                Answer::Holds(m) => {
                    let m = Rc::new(repair::checksums(&m));
                    if fits(&m) {
                        self.remember(m.clone());
                        return Answer::Holds(m);
                    }
                }
                Answer::Unknown(_) => {}
            }
        }
        self.asked += 1;
        let answer = self.solver.solve(arena, all);
        match &answer {
            // An assignment is taken only if it is one: the solver is not trusted with that.
            Answer::Holds(m) if fits(m) => self.remember(m.clone()),
            Answer::Holds(_) => {
                self.unanswered += 1;
                let why = "the solver's assignment does not satisfy the guard".to_owned();
                self.reason = Some(why.clone());
                return Answer::Unknown(why);
            }
            Answer::Unknown(why) => {
                self.unanswered += 1;
                self.reason = Some(why.clone());
            }
            Answer::Fails => {}
        }
        answer
    }
}
