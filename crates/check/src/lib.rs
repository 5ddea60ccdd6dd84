//! Is it safe? A [`Program`] goes in, a [`Checked`] or a [`Refusal`] comes out.
//!
//! Nothing is emitted that has not passed here: every load and store stays inside packet, stack,
//! map value or global; the program ends; it calls only what exists. What the proof learned on the
//! way (which region each access touches, which branches can happen) is handed on as [`facts`], so
//! that `emit` decides nothing again.

pub mod claims;
pub mod collect;
pub mod dispatch;
pub mod domain;
pub mod driver;
pub mod expand;
pub mod explore;
pub mod facts;
pub mod flow;
pub mod machine;
pub mod part;
#[doc(hidden)]
pub mod planted;
pub mod prove;
pub mod reference;
pub mod refuse;
pub mod rule;
pub mod rules;
pub mod state;
pub mod timed;
pub mod zero;

use std::time::{Duration, Instant};

use millrace_object::program::Program;

pub use facts::{Checked, Refusal};
pub use rule::Rule;

/// How far to go.
#[derive(Clone, Debug)]
pub struct Options {
    /// most instructions of an entry with its local calls expanded
    pub max_steps: usize,
    /// most steps followed for one entry
    pub max_visits: u64,
    /// whether what is claimed of each step is kept ([`facts::Flow::claims`])
    pub claims: bool,
    /// rules that are switched off: only for tests that show a rule to be needed
    #[doc(hidden)]
    pub disabled: Vec<Rule>,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            max_steps: 1_000_000,
            max_visits: 1_000_000,
            claims: false,
            disabled: Vec::new(),
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
    for entry in &program.entries {
        match prove::prove(program, entry, options, &mut statistics) {
            Ok(flow) => flows.push(flow),
            Err(refusal) => refusals.push(*refusal),
        }
    }
    let timers = match timed::prove(program, &flows, options, &mut statistics) {
        Ok(timers) => timers,
        Err(refusal) => {
            refusals.push(*refusal);
            Vec::new()
        }
    };
    statistics.time = begin.elapsed();
    let result = if refusals.is_empty() {
        Ok(Checked { flows, timers })
    } else {
        Err(refusals)
    };
    (result, statistics)
}
