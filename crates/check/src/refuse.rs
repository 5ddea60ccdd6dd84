//! From a broken rule to a message for the author.

use millrace_object::program::{FunctionId, Program};

use crate::facts::{Flow, Refusal, StepId};
use crate::rule::Rule;

/// A broken rule, before it is known where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// which rule
    pub rule: Rule,
    /// what is wrong, with the value range
    pub reason: String,
    /// the smallest change that fixes it
    pub remedy: String,
}

impl Fault {
    /// A broken rule.
    pub fn new(rule: Rule, reason: impl Into<String>, remedy: impl Into<String>) -> Self {
        Fault {
            rule,
            reason: reason.into(),
            remedy: remedy.into(),
        }
    }
}

/// What a rule gives.
pub type Verdict<T> = Result<T, Fault>;

/// The message for a fault at an instruction of a function.
#[must_use]
pub fn refusal_at(
    program: &Program,
    function: FunctionId,
    pc: usize,
    fault: Fault,
) -> Box<Refusal> {
    let f = program.functions.get(function.0);
    Box::new(Refusal {
        function: f.map(|f| f.name.clone()).unwrap_or_default(),
        instruction: f.and_then(|f| f.slots.get(pc).copied()).unwrap_or(0),
        text: program.text(function, pc),
        line: f.and_then(|f| f.lines.get(pc).cloned().flatten()),
        rule: fault.rule.name(),
        reason: fault.reason,
        remedy: fault.remedy,
    })
}

/// The message for a fault at a step.
#[must_use]
pub fn refusal(program: &Program, flow: &Flow, step: StepId, fault: Fault) -> Box<Refusal> {
    let s = flow.steps.get(step.0);
    let function = s
        .and_then(|s| flow.frames.get(s.frame.0))
        .map_or(FunctionId(0), |f| f.function);
    refusal_at(program, function, s.map_or(0, |s| s.pc), fault)
}

/// Bytes `from..to` in words, for messages.
#[must_use]
pub fn bytes(from: i64, to: i64) -> String {
    if to - from == 1 {
        format!("byte {from}")
    } else {
        format!("bytes {from} to {}", to - 1)
    }
}
