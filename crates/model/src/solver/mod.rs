//! Can a guard hold? First what is known without asking: the simplifier, assignments that held before,
//! answers to the same question; then a solver, through the trait [`Solve`], about no more of the guard than
//! has to do with the new condition.

mod dump;
mod far;
mod repair;
mod sat;
mod search;
mod slice;
pub mod smt;
mod z3;

use std::collections::{HashMap, VecDeque};
use std::rc::Rc;
use std::time::{Duration, Instant};

use millrace_check::moment::Moment;

use crate::Limits;
use crate::expr::eval::Assignment;
use crate::expr::ids::{IdMap, IdSet};
use crate::expr::walk::cone;
use crate::expr::{Arena, Bin, ExprId, Node, Origin, mask};

use dump::Dump;
use far::assignment;
pub use far::{Lemma, Values};
pub use sat::Sat;
use slice::Leaves;
pub(crate) use slice::conjuncts;
pub use z3::Z3;

/// Outcome of a question.
#[derive(Clone, Debug)]
pub enum Answer {
    /// it can hold: so
    Holds(Rc<Assignment>),
    /// it cannot
    Fails,
    /// nothing was found within the time allowed, or there is no solver
    Unknown(String),
}

/// Answer of a solver.
#[derive(Clone, Debug)]
pub enum Said {
    /// it can hold, with these values of symbols and packet bytes
    Holds(Values),
    /// it could with these if products and quotients were any numbers
    Roughly(Values),
    /// it cannot: not even these of them, if the solver knows that
    Fails(Option<Vec<ExprId>>),
    /// nothing was found within the time allowed, or there is no solver
    Unknown(String),
}

/// Whether all of these can hold at once.
pub struct Question<'a> {
    /// expressions of width 1
    pub all: &'a [ExprId],
    /// bytes that are equal if their offsets are
    pub lemmas: &'a [Lemma],
    /// an assignment under which most of them hold
    pub near: Option<&'a Assignment>,
    /// values may do that take products and quotients for any numbers
    pub rough: bool,
}

impl<'a> Question<'a> {
    /// With nothing that helps.
    #[must_use]
    pub fn of(all: &'a [ExprId]) -> Self {
        Question {
            all,
            lemmas: &[],
            near: None,
            rough: false,
        }
    }
}

/// A decision procedure for conjunctions of expressions of width 1 over symbols and packet bytes, all of them
/// variables of their own; the two bytes of a lemma are equal if their offsets are.
pub trait Solve {
    /// Answers it.
    fn solve(&mut self, arena: &Arena, question: &Question<'_>) -> Said;
}

/// The solver that these limits ask for.
#[must_use]
pub fn of(limits: &Limits) -> Box<dyn Solve> {
    let solver: Box<dyn Solve> = match &limits.solver {
        None => Box::new(Sat::new(limits.question)),
        Some(command) => Box::new(Z3::new(command.clone(), limits.question)),
    };
    match &limits.dump {
        None => solver,
        Some(folder) => Box::new(Dump::new(solver, folder.clone())),
    }
}

/// Whether an assignment is one for the whole guard.
type Fits<'a> = &'a dyn Fn(&Arena, &Assignment) -> bool;

/// Most nodes of a condition that the first question of two contains.
const LIGHT: usize = 40;
/// Most assignments that are remembered.
const REMEMBERED: usize = 48;
/// Most answers that are remembered, and most expressions with a choice decided.
const ANSWERS: usize = 1 << 16;
/// Most expressions that a walk evaluates.
const LONG: usize = 20_000;
/// Most parameters that are set to their extremes before a question is asked exactly.
const PARAMETERS: usize = 8;
/// How often a question is asked again with more lemmas.
const ROUNDS: usize = 16;

/// The layers before the solver, and counts of what each answered.
pub struct Oracle {
    solver: Box<dyn Solve>,
    until: Moment,
    recent: VecDeque<Rc<Assignment>>,
    weights: IdMap<ExprId, usize>,
    leaves: Leaves,
    answers: HashMap<Vec<ExprId>, Option<Values>>,
    lemmas: Vec<Lemma>,
    /// what cannot hold at once, by the youngest of them
    cores: IdMap<ExprId, Vec<Rc<[ExprId]>>>,
    /// questions that a remembered assignment or answer settled
    pub remembered: u64,
    /// questions that a walk from an earlier assignment settled
    pub found: u64,
    /// questions that the solver got
    pub asked: u64,
    /// how long it took over them
    pub solving: Duration,
    /// questions that it did not answer
    pub unanswered: u64,
    /// what it said last
    pub reason: Option<String>,
}

impl Oracle {
    /// Before this solver, which is not asked any more after a while.
    #[must_use]
    pub fn new(solver: Box<dyn Solve>, until: Moment) -> Self {
        Self {
            solver,
            until,
            recent: VecDeque::new(),
            weights: IdMap::default(),
            leaves: Leaves::default(),
            answers: HashMap::new(),
            lemmas: Vec::new(),
            cores: IdMap::default(),
            remembered: 0,
            found: 0,
            asked: 0,
            solving: Duration::ZERO,
            unanswered: 0,
            reason: None,
        }
    }

    /// Keeps an assignment to try first.
    fn remember(&mut self, model: Rc<Assignment>) {
        if self.recent.len() >= REMEMBERED {
            self.recent.pop_back();
        }
        self.recent.push_front(model);
    }

    /// How much work an expression is for a solver, very roughly: products and quotients are more.
    fn weight(&mut self, arena: &Arena, e: ExprId) -> usize {
        let one = |e: ExprId| match arena.node(e) {
            Node::Bin(Bin::Mul | Bin::MulHigh, ..) => 8,
            Node::Bin(Bin::Div | Bin::Rem | Bin::SignedDiv | Bin::SignedRem, ..) => LIGHT,
            _ => 1,
        };
        *self.weights.entry(e).or_insert_with(|| {
            let all = cone(arena, &[e], |_| false);
            all.into_iter().map(one).sum()
        })
    }

    /// Whether all can hold at once.
    pub fn holds(&mut self, arena: &Arena, all: &[ExprId]) -> Answer {
        self.decide(arena, all, None)
    }

    /// Whether a condition can hold beside a guard, which holds under the assignment, if there is one.
    pub fn and(
        &mut self,
        arena: &Arena,
        guard: &[ExprId],
        condition: ExprId,
        under: Option<&Rc<Assignment>>,
    ) -> Answer {
        let mut all = guard.to_vec();
        all.push(condition);
        self.decide(arena, &all, under.map(|m| (condition, m.clone())))
    }

    fn decide(
        &mut self,
        arena: &Arena,
        all: &[ExprId],
        new: Option<(ExprId, Rc<Assignment>)>,
    ) -> Answer {
        if all.iter().any(|e| arena.constant(*e) == Some(0)) {
            return Answer::Fails;
        }
        let fits =
            |arena: &Arena, m: &Assignment| all.iter().rev().all(|e| m.value(arena, *e) == 1);
        if let Some(i) = self.recent.iter().position(|m| fits(arena, m))
            && let Some(m) = self.recent.remove(i)
        {
            self.remembered += 1;
            self.recent.push_front(m.clone());
            return Answer::Holds(m);
        }
        let whole = conjuncts(arena, all);
        if self.contradicts(&whole) {
            self.remembered += 1;
            return Answer::Fails;
        }
        let mut why = None;
        if let Some((condition, under)) = new {
            let slice = self.leaves.slice(arena, all, condition);
            if !self.answers.contains_key(&slice) {
                if let Some(m) = self.walk(arena, &whole, &under, &fits) {
                    return Answer::Holds(m);
                }
                for m in extremes(arena, &[condition], &under) {
                    if let Some(m) = self.walk(arena, &whole, &m, &fits) {
                        return Answer::Holds(m);
                    }
                }
            }
            match self.lightly(arena, &slice, Some(&under), &fits) {
                Answer::Unknown(reason) => why = Some(reason),
                decided => return decided,
            }
        }
        match self.lightly(arena, &whole, None, &fits) {
            Answer::Unknown(reason) => {
                let why = why.unwrap_or(reason);
                self.unanswered += 1;
                self.reason = Some(why.clone());
                Answer::Unknown(why)
            }
            decided => decided,
        }
    }

    /// Whether some of them were found not to hold at once (Cadar, Dunbar, Engler, KLEE, OSDI 2008, section 3.3).
    fn contradicts(&self, all: &[ExprId]) -> bool {
        let set: IdSet<ExprId> = all.iter().copied().collect();
        let inside = |core: &Rc<[ExprId]>| core.iter().all(|e| set.contains(e));
        let cores = all.iter().filter_map(|e| self.cores.get(e));
        cores.flatten().any(inside)
    }

    /// A walk from an assignment that an earlier part of the path has.
    fn walk(
        &mut self,
        arena: &Arena,
        all: &[ExprId],
        under: &Rc<Assignment>,
        fits: Fits<'_>,
    ) -> Option<Rc<Assignment>> {
        let mut heavy: IdSet<ExprId> = IdSet::default();
        for e in all {
            if self.weight(arena, *e) > LIGHT {
                heavy.insert(*e);
            }
        }
        let found = search::search(arena, all, (under, LONG), &|e| heavy.contains(&e), &|m| {
            let candidates = [m.clone(), repair::checksums(m)];
            candidates.into_iter().find(|m| fits(arena, m))
        });
        let m = Rc::new(found?);
        self.found += 1;
        self.remember(m.clone());
        Some(m)
    }

    /// Asks without what is heavy first, checksums mostly: if that cannot hold, neither can all; if it can, a
    /// packet with its checksum put right may already be the answer.
    fn lightly(
        &mut self,
        arena: &Arena,
        all: &[ExprId],
        under: Option<&Rc<Assignment>>,
        fits: Fits<'_>,
    ) -> Answer {
        let mut light = all.to_vec();
        light.retain(|e| self.weight(arena, *e) <= LIGHT);
        if light.len() < all.len() {
            match self.lazily(arena, &light, under, fits, true) {
                Answer::Unknown(_) => {}
                decided => return decided,
            }
        }
        self.lazily(arena, all, under, fits, false)
    }

    /// Asks, and asks again with what the answer overlooked of bytes at computed offsets.
    fn lazily(
        &mut self,
        arena: &Arena,
        all: &[ExprId],
        under: Option<&Rc<Assignment>>,
        fits: Fits<'_>,
        repair: bool,
    ) -> Answer {
        let mut mine: IdSet<ExprId> = IdSet::default();
        for e in all {
            mine.extend(self.leaves.of(arena, *e).iter());
        }
        let mut lemmas: Vec<Lemma> = self
            .lemmas
            .iter()
            .copied()
            .filter(|(a, b)| mine.contains(a) && mine.contains(b))
            .collect();
        let under_it = under.map(|m| &**m);
        // A packet with its checksum put right may do although what the solver took its sum for is not.
        let mut rough = true;
        for _ in 0..ROUNDS {
            let question = Question {
                all,
                lemmas: &lemmas,
                near: under_it,
                rough,
            };
            let (values, exact) = match self.answer(arena, &question) {
                Said::Holds(values) => (values, true),
                Said::Roughly(values) => (values, false),
                Said::Fails(_) => return Answer::Fails,
                Said::Unknown(why) => return Answer::Unknown(why),
            };
            let (made, clashes) = assignment(arena, &values, under_it, repair || !exact);
            let made = Rc::new(made);
            if fits(arena, &made) {
                self.remember(made.clone());
                return Answer::Holds(made);
            }
            let before = lemmas.len();
            for clash in clashes {
                if !lemmas.contains(&clash) {
                    lemmas.push(clash);
                    self.lemmas.push(clash);
                }
            }
            if lemmas.len() > before {
                continue;
            }
            if exact {
                break;
            }
            let others = under.into_iter().flat_map(|m| extremes(arena, all, m));
            for m in std::iter::once(made).chain(others) {
                if let Some(m) = self.walk(arena, all, &m, fits) {
                    return Answer::Holds(m);
                }
            }
            rough = false;
        }
        // An assignment is taken only if it is one: the solver is not trusted with that.
        Answer::Unknown("no assignment of the solver satisfies the guard".to_owned())
    }

    fn answer(&mut self, arena: &Arena, question: &Question<'_>) -> Said {
        let mut key = question.all.to_vec();
        key.sort_unstable();
        key.extend(question.lemmas.iter().flat_map(|l| [l.0, l.1]));
        if let Some(known) = self.answers.get(&key) {
            self.remembered += 1;
            return match known {
                Some(values) => Said::Holds(values.clone()),
                None => Said::Fails(None),
            };
        }
        if Moment::now() > self.until {
            return Said::Unknown("the time is up".to_owned());
        }
        self.asked += 1;
        let began = Instant::now();
        let said = self.solver.solve(arena, question);
        self.solving += began.elapsed();
        if self.answers.len() < ANSWERS {
            match &said {
                Said::Holds(values) => {
                    self.answers.insert(key, Some(values.clone()));
                }
                Said::Fails(core) => {
                    self.answers.insert(key, None);
                    if let Some(core) = core
                        && let Some(youngest) = core.iter().max()
                    {
                        let others = self.cores.entry(*youngest).or_default();
                        others.push(core.as_slice().into());
                    }
                }
                Said::Roughly(_) | Said::Unknown(_) => {}
            }
        }
        said
    }
}

/// The assignment with one parameter at an extreme, which is what decides whether a limit can be reached at all; for no
/// more parameters than functions have.
fn extremes<'a>(
    arena: &'a Arena,
    all: &[ExprId],
    from: &'a Assignment,
) -> impl Iterator<Item = Rc<Assignment>> + 'a {
    let is_parameter = |id: ExprId| match arena.node(id) {
        Node::Sym(s) if arena.symbol(*s).origin == Origin::Param => Some((*s, arena.width(id))),
        _ => None,
    };
    let parameters = cone(arena, all, |_| false).into_iter();
    let parameters = parameters.filter_map(is_parameter).take(PARAMETERS);
    parameters.flat_map(move |(s, width)| {
        [0, 1, mask(width)].into_iter().map(move |value| {
            let mut symbols = from.symbols.clone();
            symbols.insert(s, value);
            Rc::new(Assignment::new(symbols, from.packet.clone()))
        })
    })
}
