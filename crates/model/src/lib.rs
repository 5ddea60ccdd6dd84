//! Symbolic execution of a checked program. The result is a [`Model`]: every path, and for each its guard,
//! its state accesses, what it writes to the packet and its verdict, as expressions over packet fields.
//!
//! The execution is bounded ([`Limits`]). Where a bound is met, where a helper has no meaning here yet, or
//! where the solver cannot say whether a path is possible, the entry says so ([`model::Outcome`]), and the
//! objects' uses are those that the proof of safety allows: more than what happens, never less.

pub mod exec;
pub mod expr;
mod facts;
pub mod kept;
pub mod kinds;
pub mod known;
pub mod model;
mod names;
pub mod observe;
mod presence;
pub mod solver;
pub mod sums;
pub mod symbols;
pub mod weaken;
pub mod writers;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use millrace_check::moment::Moment;

use millrace_check::{Budget, Checked};
use millrace_object::program::Program;

pub use facts::made_at_start;
pub use model::Model;

/// How far to go.
#[derive(Clone, Debug)]
pub struct Limits {
    /// most paths, finished or waiting
    pub paths: usize,
    /// most instructions followed
    pub steps: u64,
    /// most expressions of all entries together
    pub expressions: usize,
    /// most time for all entries together
    pub time: Duration,
    /// most time for one question to the solver
    pub question: Duration,
    /// another solver than ours: the command of Z3
    pub solver: Option<PathBuf>,
    /// paths are cut where more than this many meet, from the beginning; else only where a budget is spent
    pub cut: Option<usize>,
    /// a folder that gets each question as SMT-LIB text
    pub dump: Option<PathBuf>,
    /// what is left of the object's time and memory; none: [`Budget::default`] begins with the model
    pub budget: Option<Budget>,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            paths: 16384,
            steps: 2_000_000,
            expressions: 4_000_000,
            time: Duration::from_secs(SECONDS),
            question: Duration::from_millis(1000),
            solver: None,
            cut: weaken::cut(),
            dump: None,
            budget: None,
        }
    }
}

/// Most seconds for all entries together, unless somebody says otherwise. A debug build takes a multiple, and its tests
/// share a machine: what they ask is not how fast it is.
pub const SECONDS: u64 = if cfg!(debug_assertions) { 40 } else { 20 };

/// Longer than any execution; clocks do not count to the end of a [`Duration`].
const LONGEST: Duration = Duration::from_secs(366 * 24 * 3600);

/// Most time for one question where paths are cut.
const QUICK: Duration = Duration::from_millis(50);

/// Most paths that leave a join when they are cut; where that leaves too many as well, so few.
const CUTS: [usize; 3] = [16, 4, 1];

/// Most time for all questions whether two paths are two ways of one packet (presence.rs).
const PRESENCE: Duration = Duration::from_secs(2);

/// Executes a program symbolically.
#[must_use]
pub fn model(program: &Program, checked: &Checked, limits: &Limits) -> Model {
    let budget = limits.budget.unwrap_or_default();
    let until = (Moment::now() + limits.time.min(LONGEST)).min(budget.until());
    let mut limits = Limits {
        budget: Some(budget),
        ..limits.clone()
    };
    let (start, mut settled) = (Moment::now(), true);
    let mut entries = Vec::new();
    for running in checked.running(program) {
        let (role, flow) = (running.role, running.flow);
        // Some paths behind a cut may be impossible in any case.
        let quick = Limits {
            question: limits.question.min(QUICK),
            ..limits.clone()
        };
        let (began, clock) = (Moment::now(), Instant::now());
        let begin = |until, limits| {
            let oracle = solver::Oracle::new(solver::of(limits), until);
            exec::Engine::new(program, flow, role, limits, until, oracle)
        };
        // What is left of the time is for the same with paths cut, where they are too many.
        let exact = began + until.since(began) / 4 * 3;
        let mut engine = match limits.cut {
            Some(most) => begin(until, &quick).cut_at(most),
            None => begin(exact, &limits),
        };
        let mut done = engine.run();
        settled &= !done.spent;
        for most in CUTS {
            if !done.spent || limits.cut.is_some() || Moment::now() >= until {
                break;
            }
            // Paths that are not all are of no use, and take most of what a budget has.
            done.paths = Vec::new();
            let widened = engine.widened();
            engine = begin(until, &quick).cut_at(most).widen(&widened);
            let cut = engine.run();
            // What stands in the way of these is what stands in the way.
            if cut.outcome.covers() || !cut.spent {
                done = cut;
            }
        }
        settled &= engine.oracle.unanswered == 0;
        let function = program.functions.get(running.function.0);
        entries.push(model::Entry {
            function: function.map_or(String::new(), |f| f.name.clone()),
            role,
            paths: done.paths,
            outcome: done.outcome,
            at_most: facts::at_most(program, flow),
            took: model::Took {
                steps: done.steps,
                expressions: engine.arena.len(),
                asked: engine.oracle.asked,
                solving: engine.oracle.solving,
                unanswered: engine.oracle.unanswered,
                remembered: engine.oracle.remembered,
                found: engine.oracle.found,
                time: clock.elapsed(),
            },
            arena: engine.arena,
        });
        let kept = entries.last().map_or(0, |e: &model::Entry| e.arena.len());
        limits.expressions = limits.expressions.saturating_sub(kept);
    }
    let presence = (Moment::now() + PRESENCE).min(budget.until());
    let mut oracle = solver::Oracle::new(solver::of(&limits), presence);
    let objects = facts::objects(program, checked, &mut entries, &mut oracle);
    // Near its end time decides what is followed first (exec/order.rs).
    settled &= oracle.unanswered == 0 && start.elapsed() < until.since(start) / 8 * 5;
    Model {
        name: program.name.clone(),
        entries,
        objects,
        settled,
    }
}
