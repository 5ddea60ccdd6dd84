//! Is it safe? A [`Program`] goes in, a [`Checked`] or a [`Refusal`] comes out.
//!
//! Nothing is emitted that has not passed here: every load and store stays inside packet, stack,
//! map value or global; the program ends; it calls only what exists. What the proof learned on the
//! way (which region each access touches, which branches can happen) is handed on as [`facts`], so
//! that `emit` decides nothing again.

pub mod alters;
pub mod budget;
pub mod claims;
pub mod collect;
pub mod dispatch;
pub mod domain;
pub mod driver;
pub mod egress;
pub mod expand;
pub mod explore;
pub mod facts;
pub mod flow;
mod ids;
pub mod machine;
pub mod members;
pub mod moment;
pub mod part;
#[doc(hidden)]
pub mod planted;
pub mod prove;
pub mod refuse;
pub mod rule;
pub mod rules;
pub mod state;
pub mod timed;
pub mod zero;

use std::time::{Duration, Instant};

use millrace_object::program::Program;

pub use budget::Budget;
pub use facts::{Checked, Refusal};
pub use rule::Rule;

/// How far to go. An object's programs share all of it. These count what is done, so that the answer is the same on
/// every machine; the budget stands behind them.
#[derive(Clone, Debug)]
pub struct Options {
    /// most instructions of all programs with their local calls expanded
    pub max_steps: usize,
    /// most steps followed in one exploration; all of them together may follow four times as many
    pub max_visits: u64,
    /// whether what is claimed of each step is kept ([`facts::Flow::claims`])
    pub claims: bool,
    /// what is left of the object's time and memory; none: [`Budget::default`] begins with the check
    pub budget: Option<Budget>,
    /// paths are joined where they first meet: only for tests of that
    #[doc(hidden)]
    pub joins_early: bool,
    /// rules that are switched off: only for tests that show a rule to be needed
    #[doc(hidden)]
    pub disabled: Vec<Rule>,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            max_steps: 500_000,
            max_visits: 1_000_000,
            claims: false,
            budget: None,
            joins_early: false,
            disabled: Vec::new(),
        }
    }
}

impl Options {
    /// Those of a budget: with more time than [`budget::TIME`] more visits, with more memory than [`budget::MEMORY`] more
    /// steps, in proportion.
    #[must_use]
    pub fn within(budget: Budget) -> Self {
        let own = Self::default();
        let scaled = |n: u64, by: u128, of: u128| {
            let n = u128::from(n);
            u64::try_from((n * by / of).max(n)).unwrap_or(u64::MAX)
        };
        let time = (budget.time().as_millis(), budget::TIME.as_millis());
        let memory = (u128::from(budget.memory()), u128::from(budget::MEMORY));
        let steps = scaled(own.max_steps as u64, memory.0, memory.1);
        Self {
            max_steps: usize::try_from(steps).unwrap_or(usize::MAX),
            max_visits: scaled(own.max_visits, time.0, time.1),
            budget: Some(budget),
            ..own
        }
    }

    /// What is left of the steps behind these flows.
    fn after<'a>(&self, flows: impl IntoIterator<Item = &'a facts::Flow>) -> Self {
        let steps: usize = flows.into_iter().map(|f| f.steps.len()).sum();
        Self {
            max_steps: self.max_steps.saturating_sub(steps),
            ..self.clone()
        }
    }
}

/// What a check took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// steps followed
    pub visits: u64,
    /// states kept
    pub states: u64,
    /// explorations, over all entries
    pub rounds: u64,
    /// time
    pub time: Duration,
}

/// Proves a program safe.
///
/// # Errors
/// One refusal an entry that breaks a rule; all of them come first in the entries' order.
pub fn check(program: &Program, options: &Options) -> Result<Checked, Vec<Refusal>> {
    check_with_statistics(program, options).0
}

/// The same, and what it took.
pub fn check_with_statistics(
    program: &Program,
    options: &Options,
) -> (Result<Checked, Vec<Refusal>>, Statistics) {
    let begin = Instant::now();
    let mut statistics = Statistics::default();
    let mut flows = Vec::new();
    let mut refusals = Vec::new();
    let budget = options.budget.unwrap_or_default();
    for entry in &program.entries {
        let rest = options.after(&flows);
        match prove::prove(program, entry, (&rest, budget), &mut statistics) {
            Ok(flow) => flows.push(flow),
            Err(refusal) => refusals.push(*refusal),
        }
        // What follows has no budget either.
        if budget.spent().is_some() {
            break;
        }
    }
    let rest = options.after(&flows);
    let timers = match timed::prove(program, &flows, (&rest, budget), &mut statistics) {
        Ok(timers) => timers,
        Err(refusal) => {
            refusals.push(*refusal);
            Vec::new()
        }
    };
    statistics.time = begin.elapsed();
    let result = if refusals.is_empty() {
        let checked = Checked { flows, timers };
        match members::agree(program, &checked) {
            Ok(()) => Ok(checked),
            Err(refusal) => Err(vec![*refusal]),
        }
    } else {
        Err(refusals)
    };
    (result, statistics)
}
