//! The context of every rule: the program, the flow, and where facts are gathered.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashSet};

use millrace_object::program::{ObjectId, Program, Role, StateObject};

use crate::Options;
use crate::collect::Collector;
use crate::facts::{Flow, FrameId, StepId};
use crate::refuse::{Fault, Verdict};
use crate::rule::Rule;

/// The surroundings of one step's rules.
pub struct Machine<'a> {
    /// the program
    pub program: &'a Program,
    /// what makes the entry run
    pub role: Role,
    /// one entry's flow; its facts are gathered in `facts`, not here
    pub flow: &'a Flow,
    /// the options
    pub options: &'a Options,
    /// what the visits so far have shown
    pub facts: Collector,
    /// the step at hand
    pub at: StepId,
    /// steps that it counts as, if more than one: those of a call, for which the bytes that it touches are steps
    pub work: u64,
    /// steps that have added a number to a pointer, or passed one as a size
    pub numbers: RefCell<HashSet<StepId>>,
    /// gather the stack bytes that are read before they are written, instead of refusing them (`zero`)
    pub gathers: bool,
    /// what was gathered: by frame, one bit a byte, lowest first
    pub unwritten: RefCell<BTreeMap<FrameId, [u64; 8]>>,
}

impl Machine<'_> {
    /// Refuses unless `ok` holds.
    ///
    /// # Errors
    /// The fault, unless a test has switched its rule off.
    pub fn enforce(&self, ok: bool, fault: impl FnOnce() -> Fault) -> Verdict<()> {
        if ok {
            return Ok(());
        }
        let fault = fault();
        if self.off(fault.rule) {
            Ok(())
        } else {
            Err(fault)
        }
    }

    /// Whether a test has switched a rule off, or what it refuses is gathered.
    #[must_use]
    pub fn off(&self, rule: Rule) -> bool {
        self.gathers && rule == Rule::UninitialisedStack || self.options.disabled.contains(&rule)
    }

    /// Gathers stack bytes that are read and have not been written.
    pub fn reads_unwritten(&self, frame: FrameId, bytes: [u64; 8]) {
        if self.gathers {
            let mut all = self.unwritten.borrow_mut();
            let known = all.entry(frame).or_default();
            for (k, b) in known.iter_mut().zip(bytes) {
                *k |= b;
            }
        }
    }

    /// A result of which, with its rule switched off, nothing is known but that it goes on.
    ///
    /// # Errors
    /// The fault, unless a test has switched its rule off.
    pub fn or<T>(&self, result: Verdict<T>, otherwise: impl FnOnce() -> T) -> Verdict<T> {
        match result {
            Err(fault) if self.off(fault.rule) => Ok(otherwise()),
            other => other,
        }
    }

    /// Notes that the step needs a number for a proof (a constant has nothing to lose).
    pub fn needs_number(&self, constant: Option<u64>) {
        if constant.is_none() {
            self.numbers.borrow_mut().insert(self.at);
        }
    }

    /// A state object.
    ///
    /// # Errors
    /// Refuses an id that the program does not have.
    pub fn object(&self, id: ObjectId) -> Verdict<&StateObject> {
        self.program.objects.get(id.0).ok_or_else(|| {
            Fault::new(
                Rule::UnknownObject,
                "this instruction names a state object that does not exist",
                "Compile the object again.",
            )
        })
    }

    /// Where a step came from, for messages: "line 12", or "instruction 7".
    #[must_use]
    pub fn place(&self, step: StepId) -> String {
        match self
            .flow
            .steps
            .get(step.0)
            .and_then(|s| s.line.as_ref().map(|l| l.line))
        {
            Some(line) => format!("line {line}"),
            None => {
                let slot = self.flow.steps.get(step.0).and_then(|s| {
                    let f = self.flow.frames.get(s.frame.0)?.function;
                    self.program.functions.get(f.0)?.slots.get(s.pc).copied()
                });
                format!("instruction {}", slot.unwrap_or(0))
            }
        }
    }
}
