//! From a broken rule to a message for the author.

use std::path::Path;

use millrace_object::program::{Function, FunctionId, Line, Program};

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
    let line = f.and_then(|f| f.lines.get(pc).cloned().flatten());
    let (line, reason) = match f.and_then(|f| authored(f, pc, line.as_ref()?)) {
        Some((author, header)) => {
            let reason = format!("{} (in {}:{})", fault.reason, header.file, header.line);
            (Some(author), reason)
        }
        None => (line, fault.reason),
    };
    Box::new(Refusal {
        function: f.map(|f| f.name.clone()).unwrap_or_default(),
        instruction: f.and_then(|f| f.slots.get(pc).copied()).unwrap_or(0),
        text: program.text(function, pc),
        line,
        rule: fault.rule.name(),
        reason,
        remedy: fault.remedy,
    })
}

/// For an instruction of a header that others wrote, inlined into a function: the function's line nearest to it, and
/// the header's. Headers in the folder of the function's file are the author's own. Line records
/// do not say where a call stood, so a line nearby is the best that they give.
fn authored(f: &Function, pc: usize, line: &Line) -> Option<(Line, Line)> {
    let folder = |l: &Line| Path::new(&*l.file).parent().map(Path::to_owned);
    let own = folder(f.lines.iter().flatten().next()?);
    if folder(line) == own {
        return None;
    }
    let near = (f.lines.iter().enumerate())
        .filter_map(|(at, l)| Some((at, l.as_ref().filter(|l| folder(l) == own)?)))
        .min_by_key(|(at, _)| (at.abs_diff(pc), *at < pc));
    let (_, near) = near?;
    Some((near.clone(), line.clone()))
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
